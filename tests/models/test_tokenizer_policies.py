"""Options and errors of the tokenizer; saving, copying and sharing it."""

import random
import string
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import SENTENCES
from tokenizer_oracle import (
    ALL_COLUMNS,
    GIVEN,
    POLICIES,
    TEXTS,
    Oracle,
    plain,
    random_settings,
)

from hf_xorner import WordCharTokenizer
from hf_xorner.models.word_ids import CHARACTER_TYPE_CODES, character_types


@pytest.fixture(scope="module", params=POLICIES, ids=str)
def both(request):
    """A tokenizer and its oracle."""
    return WordCharTokenizer.from_corpus(SENTENCES, **request.param), Oracle(SENTENCES, **request.param)


# --- Policies ---------------------------------------------------------------------------------------------------------


def test_casing_policy_lowercases_words_but_not_characters():
    tokenizer = WordCharTokenizer.from_corpus([["Ann", "İstanbul", "ΑΣ"]], casing="lower")
    assert set(tokenizer.get_vocab()) == {"[PAD]", "[UNK]", "ann", "istanbul", "ας"}
    upper = tokenizer(["ANN", "İSTANBUL", "istanbul", "ΑΣ"], is_split_into_words=True)
    lower = tokenizer(["ann", "istanbul", "istanbul", "ας"], is_split_into_words=True)
    assert upper["input_ids"] == lower["input_ids"]
    assert 1 not in upper["input_ids"]
    assert upper["char_ids"][0] != lower["char_ids"][0]


def test_casing_policy_keeps_the_length_of_every_character():
    tokenizer = WordCharTokenizer.from_corpus([["ann"]], casing="lower")
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    changed = [character for character in characters if len(character.lower()) != 1]
    assert changed == ["İ"]
    words = [f"{character}nn" for character in ("A", "a", "İ")]
    assert tokenizer(words, is_split_into_words=True)["input_ids"] == [2, 2, 1]


def test_digit_policy_reads_every_digit_as_zero():
    tokenizer = WordCharTokenizer.from_corpus([["1996", "Ann"]], digits="zero")
    known = tokenizer.get_vocab()["0000"]
    output = tokenizer(["2024", "٣٥٠١", "𝟗𝟗𝟗𝟗", "½"], is_split_into_words=True)
    assert output["input_ids"] == [known] * 3 + [1]
    assert output["char_ids"][0] == output["char_ids"][1] == output["char_ids"][2]
    assert output["char_ids"][3][0] == 1


def test_rare_words_and_characters_stay_unknown():
    sentences = [["bee", "bee", "ox"], ["bee", "Qat", "ox", "7"]]
    tokenizer = WordCharTokenizer.from_corpus(sentences, min_count=2, min_char_count=2)
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "bee": 2, "ox": 3}
    assert tokenizer.characters == "ebox"
    assert tokenizer("Qat 7")["char_ids"][0][:3] == [2, 3, 3]
    assert tokenizer("Qat 7")["char_ids"][1][:1] == [4]


def test_character_types_match_unicode_for_every_code_point():
    def code(category):
        if category in ("Lu", "Lt"):
            return "U"
        return {"Ll": "l", "Nd": "d"}.get(category) or ("p" if category[0] in "PS" else ".")

    by_category = {}
    for point in range(sys.maxunicode + 1):
        by_category.setdefault(unicodedata.category(chr(point)), []).append(point)
    types = character_types()
    assert len(types) == sys.maxunicode + 1
    for category, points in by_category.items():
        assert (types[points] == CHARACTER_TYPE_CODES.index(code(category))).all(), category


def test_ascii_types_are_those_of_pythons_ascii_characters():
    """All ASCII letters, digits and punctuation are known, so that unknown characters are beyond ASCII."""
    tokenizer = WordCharTokenizer.from_corpus([["Üb", "é9€", "٣東"]], character_types="ascii")
    characters, letters = tokenizer.characters, tokenizer.model_fields()["char_types"]
    assert set(characters) == {*string.ascii_letters, *string.digits, *string.punctuation, *"Üé€٣東"}
    assert len(set(characters)) == len(characters) == len(letters) - 6
    groups = {"U": string.ascii_uppercase, "l": string.ascii_lowercase, "d": string.digits, "p": string.punctuation}
    expected = {**{character: key for key, group in groups.items() for character in group}, "Ü": "N", "é": "n"}
    assert dict(zip(characters, letters[6:], strict=True)) == {**expected, "€": ".", "٣": ".", "東": "."}
    # Unknown characters: any, upper-case, lower-case, digits, punctuation.
    assert letters[:6] == "..Nn.."
    assert tokenizer(["ÖöŁ५«"], is_split_into_words=True)["char_ids"][0][:6] == [2, 3, 2, 4, 5, 0]


def test_model_fields_describe_the_ids(tokenizer):
    fields = tokenizer.model_fields()
    output = tokenizer(SENTENCES, is_split_into_words=True, padding=True, return_tensors="np")
    assert output["input_ids"].max() == fields["vocab_size"] - 1
    assert output["char_ids"].max() == fields["char_vocab_size"] - 1
    assert len(fields["char_types"]) == fields["char_vocab_size"]
    assert output["char_ids"].shape[-1] == fields["max_word_chars"] == 10
    assert fields["pad_token_id"] == 0


# --- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "given_words", "message"),
    [
        ("a\ud800", False, r"Text 0 holds a lone surrogate, U\+D800, at character 1"),
        (["a", "\udfff"], False, r"Text 1 holds a lone surrogate, U\+DFFF, at character 0"),
        ([["a"], ["b", "\udc00"]], True, r"Text 1 holds a lone surrogate, U\+DC00, at character 1"),
        # Surrogates split over two words are still invalid.
        (["\ud83d", "\ude00"], True, r"Text 0 holds a lone surrogate, U\+D83D"),
        (["a", 3], False, "text 1"),
        (["a", None], False, "text 1"),
        ([("a", "b")], False, "text 0"),
        (b"a", False, "text 0"),
        (7, False, "text 0"),
        ("a", True, "a list of words"),
        (["a", ["b"]], True, "a list of words"),
        ([["a"], "b"], True, "text 1"),
        ([["a", None]], True, "text 0"),
    ],
)
def test_invalid_input_raises_a_clear_message(tokenizer, item, given_words, message):
    with pytest.raises(ValueError, match=message) as refusal:
        tokenizer(item, is_split_into_words=given_words)
    assert "\n" not in str(refusal.value)


def test_lone_surrogate_in_a_corpus_is_refused():
    with pytest.raises(ValueError, match=r"Text 1 holds a lone surrogate, U\+D800, at character 2"):
        WordCharTokenizer.from_corpus(["a", "a \ud800"])


# --- Saving, copying, sharing -----------------------------------------------------------------------------------------


def all_outputs(tokenizer):
    """All outputs of a tokenizer for a few texts and words."""
    texts = tokenizer(TEXTS, padding=True, return_tensors="np", **ALL_COLUMNS)
    words = tokenizer(GIVEN, is_split_into_words=True, **ALL_COLUMNS)
    return [
        {name: plain(value) for name, value in output.items()} for output in (texts, words)
    ], tokenizer.model_fields()


def test_saved_and_loaded_tokenizers_are_equal(both, tmp_path):
    tokenizer = both[0]
    tokenizer.save_pretrained(tmp_path)
    loaded = WordCharTokenizer.from_pretrained(tmp_path)
    assert all_outputs(loaded) == all_outputs(tokenizer)
    assert loaded.get_vocab() == tokenizer.get_vocab()
    loaded.save_pretrained(tmp_path / "again")
    assert all_outputs(WordCharTokenizer.from_pretrained(tmp_path / "again")) == all_outputs(tokenizer)


def test_threads_with_different_settings_are_independent(tokenizer):
    chooser = random.Random(1)
    jobs = []
    for _ in range(400):
        given_words = chooser.random() < 0.5
        pool = GIVEN if given_words else TEXTS
        call, _ = random_settings(chooser, "np")
        jobs.append(([chooser.choice(pool) for _ in range(4)], {**call, "is_split_into_words": given_words}))

    def encode(job):
        output = tokenizer(job[0], **job[1], **ALL_COLUMNS)
        return {name: value.tolist() for name, value in output.items()}

    alone = [encode(job) for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(encode, jobs))
    assert together == alone


# --- Speed ------------------------------------------------------------------------------------------------------------
