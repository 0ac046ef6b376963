"""The tokenizer matches plain loops over words and characters for all options; its policies, errors, copies, files."""

import copy
import pickle
import random
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LABELS, SENTENCES, build_model
from datasets import Dataset
from datasets.fingerprint import Hasher
from hypothesis import given
from hypothesis import strategies as st
from random_texts import PIECES
from tokenizer_oracle import (
    ALL_COLUMNS,
    GIVEN,
    LONG_WORD,
    POLICIES,
    TEXTS,
    Oracle,
    expected,
    pairs,
    plain,
    random_settings,
)
from transformers import AutoTokenizer, DataCollatorForTokenClassification

from hf_xorner import WordCharTokenizer
from hf_xorner.models.word_ids import CHARACTER_TYPE_CODES, character_types


@pytest.fixture(scope="module", params=POLICIES, ids=str)
def both(request):
    """A tokenizer and its oracle."""
    return WordCharTokenizer.from_corpus(SENTENCES, **request.param), Oracle(SENTENCES, **request.param)


def test_encodings_match_plain_loops(both):
    tokenizer, oracle = copy.deepcopy(both[0]), both[1]
    chooser = random.Random(0)
    for _ in range(200):
        given_words, single = chooser.random() < 0.5, chooser.random() < 0.3
        tensors, tokenizer.truncation_side = chooser.choice([None, "np", "pt"]), chooser.choice(["left", "right"])
        pool = GIVEN if given_words else TEXTS
        batch = [chooser.choice(pool) for _ in range(1 if single else chooser.randrange(1, 6))]
        call, wanted = random_settings(chooser, tensors)
        output = tokenizer(batch[0] if single else batch, is_split_into_words=given_words, **call, **ALL_COLUMNS)
        columns = expected(oracle, batch, cut_side=tokenizer.truncation_side, **wanted)
        word_ids = columns.pop("word_ids")
        assert [output.word_ids(row) for row in range(len(word_ids))] == word_ids
        assert set(output) == set(columns)
        unpacked = single and tensors is None and not wanted["overflow"]
        for name, rows in columns.items():
            values = [output[name]] if unpacked else plain(output[name])
            assert (pairs(values) if name == "offset_mapping" else values) == rows, (name, call)


@pytest.mark.parametrize("tensors", ["np", "pt"])
def test_tensors_are_integers_of_full_shape_even_when_empty(tokenizer, tensors):
    for item, rows, words in (("", 1, 0), ([""], 1, 0), (["", "Ann"], 2, 1)):
        output = tokenizer(item, padding=True, return_tensors=tensors, return_offsets_mapping=True)
        assert list(output) == ["input_ids", "char_ids", "attention_mask", "offset_mapping"]
        assert all("int64" in str(value.dtype) for value in output.values())
        assert tuple(output["char_ids"].shape) == (rows, words, 10)
        assert tuple(output["offset_mapping"].shape) == (rows, words, 2)
    batch = tokenizer([], padding=True, return_tensors="pt")
    assert build_model("bilstm-cnn", tokenizer)(**batch).logits.shape[:2] == (0, 0)


def test_columns_and_truncation_are_as_requested(tokenizer):
    assert list(tokenizer("Ann")) == ["input_ids", "char_ids", "attention_mask"]
    assert "attention_mask" not in tokenizer("Ann", return_attention_mask=False)
    text = "Ann " * 30_000
    assert len(tokenizer(text)["input_ids"]) == len(tokenizer(text, truncation=True)["input_ids"]) == 30_000


@pytest.mark.parametrize("side", ["left", "right"])
def test_pad_and_the_stock_collator_match_padding_in_the_call(both, side):
    tokenizer, oracle = copy.deepcopy(both[0]), both[1]
    tokenizer.padding_side = side
    rows = [tokenizer(words, is_split_into_words=True) for words in GIVEN]
    for tensors in (None, "np", "pt"):
        for options in ({}, {"pad_to_multiple_of": 4}, {"padding": "max_length", "max_length": 12}):
            options = {"padding": True, "return_tensors": tensors, **options}
            later = tokenizer.pad(copy.deepcopy(rows), **options)
            at_once = tokenizer(GIVEN, is_split_into_words=True, **options)
            assert {name: plain(later[name]) for name in later} == {name: plain(at_once[name]) for name in at_once}
    labels = [[position % len(LABELS) for position in range(len(words))] for words in GIVEN]
    labelled = [{**row, "labels": ids} for row, ids in zip(rows, labels, strict=True)]
    batch = DataCollatorForTokenClassification(tokenizer)(labelled)
    columns = expected(oracle, GIVEN, pad=True, side=side)
    for name in ("input_ids", "char_ids", "attention_mask"):
        assert batch[name].tolist() == columns[name]
    assert ((batch["labels"] != -100) == batch["attention_mask"].bool()).all()
    assert [row[row != -100].tolist() for row in batch["labels"]] == labels


# --- Words -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(PIECES, max_size=30).map("".join), min_size=1, max_size=10))
def test_any_text_has_the_expected_words_in_order_and_any_given_word_is_one(both, texts):
    tokenizer, oracle = both
    for batch, options in ((texts, {}), ([texts, texts[::-1]], {"is_split_into_words": True})):
        output = tokenizer(batch, return_offsets_mapping=True, return_special_tokens_mask=True, **options)
        for number, item in enumerate(batch):
            tokens = oracle.tokens(item)
            columns = [output[name][number] for name in ("input_ids", "char_ids", "offset_mapping")]
            assert list(zip(*columns, strict=True)) == tokens
            assert not any(output["special_tokens_mask"][number])
    for text in texts:
        position, offsets = 0, tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
        for start, end in offsets:
            assert position <= start < end <= len(text)
            assert not text[position:start].strip()
            position = end
        assert tokenizer.tokenize(text) == [text[start:end] for start, end in offsets]


def test_special_tokens_inside_a_text_are_ordinary_text(both):
    tokenizer = both[0]
    for text in ("[PAD]", "Ann[PAD]", "[UNK] [PAD]"):
        assert 0 not in tokenizer(text)["input_ids"]
        assert "".join(tokenizer.tokenize(text)) == text.replace(" ", "")
    assert tokenizer.convert_tokens_to_ids(["[PAD]", "[UNK]"]) == [0, 1] == [tokenizer.pad_token_id, 1]


def test_special_and_invalid_words_are_left_out_of_the_vocabulary():
    tokenizer = WordCharTokenizer.from_corpus([["[PAD]", "[UNK]", "", "\ue000", LONG_WORD, "Ann"]])
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "Ann": 2}
    words = ["", " ", "\t\n", "[PAD]", "[UNK]", LONG_WORD, "\ue000", "\ue000\ue001", "\0", "Ann"]
    assert tokenizer(words, is_split_into_words=True)["input_ids"] == [1] * 9 + [2]


# --- Policies --------------------------------------------------------------------------------------------------------


def test_all_spellings_of_a_word_in_lower_case_are_one_word():
    """Also of words that have a vector as they are spelt."""
    options = {"casing": "lower", "digits": "zero", "vector_words": ["London", "london", "OSLO", "1996"]}
    tokenizer = WordCharTokenizer.from_corpus([["Ann"]], **options)
    assert tokenizer.get_vocab().keys() - {"[PAD]", "[UNK]"} == {"ann", "london", "1996"}
    words = ["London", "LONDON", "london", "OSLO", "1996", "1997"]
    assert tokenizer([words], is_split_into_words=True)["input_ids"] == [[3, 3, 3, 1, 4, 1]]


def test_casing_policy_lowercases_words_of_the_same_length_but_not_characters():
    tokenizer = WordCharTokenizer.from_corpus([["Ann", "İstanbul", "ΑΣ"]], casing="lower")
    assert set(tokenizer.get_vocab()) == {"[PAD]", "[UNK]", "ann", "istanbul", "ας"}
    upper = tokenizer(["ANN", "İSTANBUL", "ΑΣ"], is_split_into_words=True)
    lower = tokenizer(["ann", "istanbul", "ας"], is_split_into_words=True)
    assert upper["input_ids"] == lower["input_ids"]
    assert 1 not in upper["input_ids"]
    assert upper["char_ids"][0] != lower["char_ids"][0]
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    assert [character for character in characters if len(character.lower()) != 1] == ["İ"]


def test_digit_policy_reads_every_digit_as_zero():
    tokenizer = WordCharTokenizer.from_corpus([["1996", "Ann"]], digits="zero")
    known = tokenizer.get_vocab()["0000"]
    output = tokenizer(["2024", "٣٥٠١", "𝟗𝟗𝟗𝟗", "½"], is_split_into_words=True)
    assert output["input_ids"] == [known] * 3 + [1]
    assert output["char_ids"][0] == output["char_ids"][1] == output["char_ids"][2]
    assert output["char_ids"][3][0] == 1


def test_a_tokenizer_is_not_trained_further():
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES)
    with pytest.raises(NotImplementedError, match="from_corpus"):
        tokenizer.train_new_from_iterator(SENTENCES, 100)
    with pytest.raises(NotImplementedError, match="Continue training"):
        tokenizer.add_tokens("newcomer")


def test_a_corpus_is_a_stream_of_texts_or_words_in_any_order():
    sentences = [[word for word in words if "'" not in word] for words in SENTENCES]
    texts = (" ".join(words) for words in sentences)
    mixed = (words[::-1] if number % 2 else " ".join(words) for number, words in enumerate(sentences[::-1]))
    from_texts, from_mixed = (WordCharTokenizer.from_corpus(corpus) for corpus in (texts, mixed))
    assert from_texts.get_vocab() == from_mixed.get_vocab()
    assert from_texts.characters == from_mixed.characters


def test_character_types_match_unicode_for_every_code_point():
    by_category = {}
    for point in range(sys.maxunicode + 1):
        by_category.setdefault(unicodedata.category(chr(point)), []).append(point)
    types = character_types()
    assert len(types) == sys.maxunicode + 1
    for category, points in by_category.items():
        code = {"Lu": "U", "Lt": "U", "Ll": "l", "Nd": "d"}.get(category) or ("p" if category[0] in "PS" else ".")
        assert (types[points] == CHARACTER_TYPE_CODES.index(code)).all(), category
    tokenizer = WordCharTokenizer.from_corpus([["a"]], max_word_chars=12)
    row = tokenizer(["ŽǅžЖ५7€«–東\ue000ʰ"], is_split_into_words=True)["char_ids"][0]
    assert row == [2, 2, 3, 2, 4, 4, 5, 5, 5, 1, 1, 1]
    assert tokenizer.model_fields()["char_types"] == "..Uldpl"


def test_model_fields_describe_the_ids(tokenizer):
    fields = tokenizer.model_fields()
    output = tokenizer(SENTENCES, is_split_into_words=True, padding=True, return_tensors="np")
    assert output["input_ids"].max() == fields["vocab_size"] - 1
    assert output["char_ids"].max() == fields["char_vocab_size"] - 1
    assert len(fields["char_types"]) == fields["char_vocab_size"]
    assert output["char_ids"].shape[-1] == fields["max_word_chars"] == 10
    assert fields["pad_token_id"] == 0


# --- Errors ----------------------------------------------------------------------------------------------------------

WORDS = {"is_split_into_words": True}


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["a\ud800"], {}, r"Text 0 .* U\+D800, at character 1"),
        ([["a", "\udfff"]], {}, r"Text 1 .* U\+DFFF"),
        ([[["a"], ["b", "\udc00"]]], WORDS, r"Text 1 .* U\+DC00, at character 1"),
        ([["\ud83d", "\ude00"]], WORDS, r"Text 0 .* U\+D83D"),  # split over two words, still invalid
        ([["a", 3]], {}, "Text 1 is a int"),
        ([b"a"], {}, "Text 0 is a bytes"),
        (["a"], WORDS, "lists of words"),
        ([[["a"], "b"]], WORDS, "text 1"),
        ([[["a", None]]], WORDS, "text 0"),
        (["a", "b"], {}, "pairs of texts"),
        (["a b c"], {"truncation": True, "max_length": 2, "stride": 2}, "stride=2"),
        (["Ann"], {"padding": "max_length"}, "max_length"),
        ([["a", "b c"]], {"return_tensors": "pt"}, "padding=True"),
    ],
)
def test_invalid_input_is_refused(tokenizer, texts, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tokenizer(*texts, **options)


def test_invalid_policies_and_texts_of_a_corpus_are_refused():
    for policy in ({"casing": "upper"}, {"digits": "drop"}, {"fallback": ["upper"]}):
        with pytest.raises(ValueError, match=f"{next(iter(policy))}.* is unknown"):
            WordCharTokenizer.from_corpus([], **policy)
    with pytest.raises(ValueError, match=r"Text 1 .* U\+D800, at character 2"):
        WordCharTokenizer.from_corpus(["a", "a \ud800"])


# --- Saving, copying, sharing ----------------------------------------------------------------------------------------


def all_outputs(tokenizer):
    """All outputs of a tokenizer for a few texts and words."""
    texts = tokenizer(TEXTS, padding=True, return_tensors="np", **ALL_COLUMNS)
    words = tokenizer(GIVEN, is_split_into_words=True, **ALL_COLUMNS)
    outputs = [{name: plain(value) for name, value in output.items()} for output in (texts, words)]
    return outputs, tokenizer.model_fields(), tokenizer.get_vocab()


def test_saved_and_copied_tokenizers_are_equal(both, tmp_path):
    tokenizer = both[0]
    tokenizer.save_pretrained(tmp_path)
    loaded = WordCharTokenizer.from_pretrained(tmp_path)
    loaded.save_pretrained(tmp_path / "again")
    again = AutoTokenizer.from_pretrained(tmp_path / "again")
    copies = pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer), copy.copy(tokenizer)
    for other in (loaded, again, *copies):
        assert type(other) is WordCharTokenizer
        assert all_outputs(other) == all_outputs(tokenizer)


def test_changed_defaults_are_saved(tokenizer, tmp_path):
    changed = copy.deepcopy(tokenizer)
    changed.padding_side, changed.truncation_side, changed.model_max_length = "left", "left", 5
    changed.save_pretrained(tmp_path)
    assert "\n" not in (tmp_path / "tokenizer.json").read_text()
    loaded = WordCharTokenizer.from_pretrained(tmp_path, padding_side="left", truncation_side="left")
    output = loaded(["a b c d e f g", "Ann"], padding=True, truncation=True)
    assert output["attention_mask"] == [[1] * 5, [0] * 4 + [1]]
    assert output["char_ids"][0] == loaded("c d e f g")["char_ids"]


def test_use_does_not_change_the_state_or_the_fingerprint_of_a_mapped_dataset(tokenizer):
    used = copy.deepcopy(tokenizer)
    dataset = Dataset.from_dict({"tokens": [words for words in GIVEN if words]})

    def encode(batch):
        return used(batch["tokens"], is_split_into_words=True)

    before, first = Hasher.hash(used), dataset.map(encode, batched=True)
    used("Ann saw", padding="max_length", max_length=9, truncation=True, padding_side="left")
    used("a b c d", truncation=True, max_length=2, stride=1, return_overflowing_tokens=True)
    used.pad([used("Ann"), used("Ann saw")])
    used.tokenize("Ann saw")
    assert Hasher.hash(used) == before
    assert dataset.map(encode, batched=True)._fingerprint == first._fingerprint


def test_threads_with_different_settings_are_independent(tokenizer):
    chooser = random.Random(1)
    jobs = []
    for _ in range(200):
        given_words = chooser.random() < 0.5
        call, _ = random_settings(chooser, "np")
        items = chooser.choices(GIVEN if given_words else TEXTS, k=4)
        jobs.append((items, {**call, "is_split_into_words": given_words}))

    def encode(job):
        return {name: value.tolist() for name, value in tokenizer(job[0], **job[1], **ALL_COLUMNS).items()}

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(encode, jobs)) == [encode(job) for job in jobs]
