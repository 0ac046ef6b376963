"""Options and errors of the tokenizer; saving, copying and sharing it."""

import copy
import pickle
import random
import string
import sys
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import SENTENCES, build_model
from datasets import Dataset
from datasets.fingerprint import Hasher
from tokenizer_oracle import (
    ALL_COLUMNS,
    GIVEN,
    POLICIES,
    TEXTS,
    Oracle,
    expected,
    plain,
    random_settings,
)
from transformers import AutoTokenizer

from hf_xorner import WordCharTokenizer
from hf_xorner.models.word_ids import CHARACTER_TYPE_CODES, character_types
from hf_xorner.training.build import extended


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


def test_unknown_policies_raise_and_list_the_choices():
    with pytest.raises(ValueError, match=r"casing='upper' is unknown; choose 'keep' or 'lower'"):
        WordCharTokenizer.from_corpus([], casing="upper")
    with pytest.raises(ValueError, match=r"digits='drop' is unknown; choose 'keep' or 'zero'"):
        WordCharTokenizer.from_corpus([], digits="drop")


def test_rare_words_and_characters_stay_unknown():
    sentences = [["bee", "bee", "ox"], ["bee", "Qat", "ox", "7"]]
    tokenizer = WordCharTokenizer.from_corpus(sentences, min_count=2, min_char_count=2)
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "bee": 2, "ox": 3}
    assert tokenizer.characters == "ebox"
    assert tokenizer("Qat 7")["char_ids"][0][:3] == [2, 3, 3]
    assert tokenizer("Qat 7")["char_ids"][1][:1] == [4]


def test_vocabulary_does_not_depend_on_corpus_order():
    shuffled = [sentence[::-1] for sentence in SENTENCES[::-1]]
    one, other = (WordCharTokenizer.from_corpus(sentences) for sentences in (SENTENCES, shuffled))
    assert one.get_vocab() == other.get_vocab()
    assert one.characters == other.characters


def test_corpus_may_be_a_stream_of_texts_or_words():
    sentences = [[word for word in words if "'" not in word] for words in SENTENCES]
    texts = (" ".join(words) for words in sentences)
    mixed = (words if number % 2 else " ".join(words) for number, words in enumerate(sentences))
    vocabularies = [WordCharTokenizer.from_corpus(corpus).get_vocab() for corpus in (texts, mixed)]
    assert vocabularies[0] == vocabularies[1]


def test_unseen_characters_keep_their_type():
    tokenizer = WordCharTokenizer.from_corpus([["a"]], max_word_chars=12)
    row = tokenizer(["ŽǅžЖ५7€«–東\ue000ʰ"], is_split_into_words=True)["char_ids"][0]
    assert row == [2, 2, 3, 2, 4, 4, 5, 5, 5, 1, 1, 1]
    assert tokenizer.model_fields()["char_types"] == "..Uldpl"


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


def test_ascii_types_are_saved_and_kept_by_extensions(tmp_path):
    tokenizer = WordCharTokenizer.from_corpus([["ab"]], character_types="ascii", digits="zero")
    assert set(tokenizer.characters) & set(string.digits) == {"0"}
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.model_fields() == tokenizer.model_fields()
    longer = extended(loaded, [["Ünlü"]])
    assert longer.character_types == "ascii"
    assert longer.model_fields()["char_types"] == tokenizer.model_fields()["char_types"] + "Nn"
    with pytest.raises(ValueError, match=r"character_types='latin' is unknown; choose 'unicode' or 'ascii'"):
        WordCharTokenizer.from_corpus([], character_types="latin")


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


def test_token_type_ids_are_zeros_on_request(tokenizer):
    assert "token_type_ids" not in tokenizer("Ann saw")
    batch = tokenizer(["Ann saw", "x"], padding=True, return_token_type_ids=True)
    assert batch["token_type_ids"] == [[0, 0], [0, 0]]


@pytest.mark.parametrize("padding", [False, True])
def test_an_empty_list_gives_an_empty_batch(tokenizer, padding):
    batch = tokenizer([], padding=padding, return_tensors="pt")
    assert {name: tuple(values.shape) for name, values in batch.items()} == {
        "input_ids": (0, 0),
        "char_ids": (0, 0, tokenizer.max_word_chars),
        "attention_mask": (0, 0),
    }
    assert build_model("bilstm-cnn", tokenizer)(**batch).logits.shape[:2] == (0, 0)


@pytest.mark.parametrize("texts", [("a", "b"), (["a"], ["b"])])
def test_text_pairs_are_refused(tokenizer, texts):
    with pytest.raises(ValueError, match="reads single texts"):
        tokenizer(*texts)


def test_lone_surrogate_in_a_corpus_is_refused():
    with pytest.raises(ValueError, match=r"Text 1 holds a lone surrogate, U\+D800, at character 2"):
        WordCharTokenizer.from_corpus(["a", "a \ud800"])


@pytest.mark.parametrize("overflow", [False, True])
def test_stride_as_large_as_max_length_is_refused(tokenizer, overflow):
    with pytest.raises(ValueError, match="stride=2 must be smaller than max_length=2"):
        tokenizer("a b c", truncation=True, max_length=2, stride=2, return_overflowing_tokens=overflow)


def test_padding_to_max_length_requires_a_sufficient_length(tokenizer):
    with pytest.raises(ValueError, match='padding="max_length" needs max_length'):
        tokenizer("Ann", padding="max_length")
    with pytest.raises(ValueError, match="Text 1 has 3 words, more than max_length=2; add truncation=True"):
        tokenizer(["Ann", "a b c"], padding="max_length", max_length=2)


def test_tensors_of_unequal_rows_require_padding(tokenizer):
    with pytest.raises(ValueError, match="padding=True"):
        tokenizer(["a", "b c"], return_tensors="pt")


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


def test_a_tokenizer_saved_with_a_model_loads_with_autotokenizer(tokenizer, model_type, tmp_path):
    build_model(model_type, tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert type(loaded) is WordCharTokenizer
    assert all_outputs(loaded) == all_outputs(tokenizer)


def test_changed_defaults_are_saved(tokenizer, tmp_path):
    changed = copy.deepcopy(tokenizer)
    changed.padding_side, changed.truncation_side, changed.model_max_length = "left", "left", 5
    changed.save_pretrained(tmp_path)
    loaded = WordCharTokenizer.from_pretrained(tmp_path, padding_side="left", truncation_side="left")
    output = loaded(["a b c d e f g", "Ann"], padding=True, truncation=True)
    assert output["attention_mask"] == [[1] * 5, [0] * 4 + [1]]
    assert output["char_ids"][0] == loaded("c d e f g")["char_ids"]


def test_copies_are_equal(both):
    tokenizer = both[0]
    for copied in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer), copy.copy(tokenizer)):
        assert all_outputs(copied) == all_outputs(tokenizer)


def test_use_does_not_change_the_state(tokenizer):
    used = copy.deepcopy(tokenizer)
    before = Hasher.hash(used)
    used("Ann saw", padding="max_length", max_length=9, truncation=True, padding_side="left")
    used(GIVEN, is_split_into_words=True, padding=True, pad_to_multiple_of=8, return_tensors="pt")
    used("a b c d", truncation=True, max_length=2, stride=1, return_overflowing_tokens=True)
    used.pad([used("Ann"), used("Ann saw")])
    used.tokenize("Ann saw")
    assert Hasher.hash(used) == before


def test_mapped_dataset_has_the_same_fingerprint_every_time(tokenizer):
    dataset = Dataset.from_dict({"tokens": [words for words in GIVEN if words]})

    def encode(batch):
        return tokenizer(batch["tokens"], is_split_into_words=True)

    first = dataset.map(encode, batched=True)
    tokenizer(["Ann", "a b"], padding=True, truncation=True, max_length=1)
    second = dataset.map(encode, batched=True)
    assert first._fingerprint == second._fingerprint
    columns = expected(Oracle(SENTENCES, max_word_chars=10), dataset["tokens"], side="right")
    assert list(second["input_ids"]) == columns["input_ids"]
    assert list(second["char_ids"]) == columns["char_ids"]


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


def wnut_sentences(path):
    sentences, words = [], []
    for line in path.read_text(encoding="utf-8").replace("\ufeff", "").split("\n"):
        token = line.split("\t")[0].strip()
        if token:
            words.append(token)
        elif words:
            sentences.append(words)
            words = []
    return sentences


def test_wnut_train_is_encoded_in_under_half_a_second(corpora):
    sentences = wnut_sentences(corpora / "wnut17" / "train.conll")
    tokenizer = WordCharTokenizer.from_corpus(sentences)
    assert sum(map(len, sentences)) == 62_730
    texts = [" ".join(words) for words in sentences]
    for batch, given_words in ((sentences, True), (texts, False)):
        times = []
        for _ in range(8):
            start = time.perf_counter()
            output = tokenizer(batch, is_split_into_words=given_words, padding=True, return_tensors="np")
            times.append(time.perf_counter() - start)
        assert output["char_ids"].shape == (len(batch), output["input_ids"].shape[1], 20)
        assert min(times[1:]) < 0.5
