"""Encodings match plain loops over words and characters for all options."""

import copy
import random

import pytest
from conftest import LABELS, SENTENCES
from hypothesis import given, settings
from hypothesis import strategies as st
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
from transformers import DataCollatorForTokenClassification

from hf_xorner import WordCharTokenizer


@pytest.fixture(scope="module", params=POLICIES, ids=str)
def both(request):
    """A tokenizer and its oracle."""
    return WordCharTokenizer.from_corpus(SENTENCES, **request.param), Oracle(SENTENCES, **request.param)


@pytest.mark.parametrize("tensors", [None, "np", "pt"])
@pytest.mark.parametrize("cut_side", ["right", "left"])
def test_encodings_match_plain_loops(both, tensors, cut_side):
    tokenizer, oracle = both
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.truncation_side = cut_side
    chooser = random.Random(0)
    for _ in range(60):
        given_words = chooser.random() < 0.5
        pool = GIVEN if given_words else TEXTS
        single = chooser.random() < 0.3
        batch = [chooser.choice(pool) for _ in range(1 if single else chooser.randrange(1, 6))]
        call, wanted = random_settings(chooser, tensors)
        output = tokenizer(batch[0] if single else batch, is_split_into_words=given_words, **call, **ALL_COLUMNS)
        columns = expected(oracle, batch, cut_side=cut_side, **wanted)

        word_ids = columns.pop("word_ids")
        assert [output.word_ids(row) for row in range(len(word_ids))] == word_ids
        assert set(output) == set(columns)
        unpacked = single and tensors is None and not wanted["overflow"]
        for name, rows in columns.items():
            found = [output[name]] if unpacked else plain(output[name])
            if name == "offset_mapping":
                found = pairs(found)
            assert found == rows, (name, call)


@pytest.mark.parametrize(
    ("item", "given_words", "ids"),
    [("", False, []), ([""], False, [[]]), ([], False, []), ([[]], True, [[]]), ([[], []], True, [[], []])],
)
def test_empty_input_gives_empty_output(tokenizer, item, given_words, ids):
    assert tokenizer(item, is_split_into_words=given_words)["input_ids"] == ids
    assert tokenizer(item, is_split_into_words=given_words, padding=True, truncation=True)["char_ids"] == ids


def test_texts_are_truncated_only_on_request(tokenizer):
    text = "Ann " * 30_000
    assert len(tokenizer(text)["input_ids"]) == 30_000
    assert len(tokenizer(text, truncation=True)["input_ids"]) == 30_000


# --- pad and the stock collator ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("tensors", [None, "np", "pt"])
def test_pad_matches_padding_in_the_call(both, side, tensors):
    tokenizer = copy.deepcopy(both[0])
    tokenizer.padding_side = side
    for options in ({}, {"pad_to_multiple_of": 4}, {"padding": "max_length", "max_length": 12}):
        at_once = tokenizer(GIVEN, is_split_into_words=True, return_tensors=tensors, **{"padding": True, **options})
        one_by_one = [tokenizer(words, is_split_into_words=True) for words in GIVEN]
        columns = {name: [row[name] for row in one_by_one] for name in one_by_one[0]}
        for rows in (one_by_one, columns):
            later = tokenizer.pad(copy.deepcopy(rows), return_tensors=tensors, **options)
            assert {name: plain(value) for name, value in later.items()} == {
                name: plain(value) for name, value in at_once.items()
            }


@pytest.mark.parametrize("side", ["left", "right"])
def test_stock_collator_pads_words_characters_and_labels(tokenizer, side):
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.padding_side = side
    labels = [[position % len(LABELS) for position in range(len(words))] for words in GIVEN]
    rows = [
        {**tokenizer(words, is_split_into_words=True), "labels": row} for words, row in zip(GIVEN, labels, strict=True)
    ]
    batch = DataCollatorForTokenClassification(tokenizer)(rows)
    columns = expected(Oracle(SENTENCES, max_word_chars=10), GIVEN, pad=True, side=side)
    for name in ("input_ids", "char_ids", "attention_mask"):
        assert batch[name].tolist() == columns[name]
    width = max(map(len, GIVEN))
    filling = [[-100] * (width - len(row)) for row in labels]
    wanted = [f + row if side == "left" else row + f for row, f in zip(labels, filling, strict=True)]
    assert batch["labels"].tolist() == wanted


# --- Words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_every_given_word_is_one_token(policy):
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, **policy)
    words = [
        "",
        " ",
        "\t\n",
        "New York",
        "a  b ",
        "[PAD]",
        "[UNK]",
        LONG_WORD,
        "\ue000",
        "\ue000\ue001",
        "\uf8ff",
        "\0",
    ]
    output = tokenizer([words, words[::-1]], is_split_into_words=True)
    assert [len(row) for row in output["input_ids"]] == [len(words)] * 2
    assert output.word_ids(0) == list(range(len(words)))
    assert set(output["input_ids"][0]) == {1}
    assert not any(output["char_ids"][0][0])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=6), max_size=4))
def test_any_given_words_are_one_token_each(tokenizer_pair, sentences):
    tokenizer, oracle = tokenizer_pair
    if not sentences:
        return
    output = tokenizer(sentences, is_split_into_words=True, return_offsets_mapping=True)
    for number, words in enumerate(sentences):
        tokens = oracle.tokens(words)
        assert output["input_ids"][number] == [token[0] for token in tokens]
        assert output["char_ids"][number] == [token[1] for token in tokens]
        assert output["offset_mapping"][number] == [token[2] for token in tokens]


@pytest.fixture(scope="module")
def tokenizer_pair():
    policy = {"casing": "lower", "digits": "zero", "max_word_chars": 4}
    return WordCharTokenizer.from_corpus(SENTENCES, **policy), Oracle(SENTENCES, **policy)


PIECES = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from(
        ["Ann", "zeus", "'s", "[PAD]", "[UNK]", " ", "\n", "\0", "é", "e\u0301", "👩🏽‍🚀", "🇸🇪", "שלום", "مرحبا", "İ"]
    ),
)
ANY_TEXT = st.lists(PIECES, max_size=30).map("".join)


@settings(max_examples=25, deadline=None)
@given(st.lists(ANY_TEXT, min_size=1, max_size=3))
def test_offsets_of_any_text_are_its_words_in_order(tokenizer_pair, texts):
    tokenizer, oracle = tokenizer_pair
    output = tokenizer(texts, return_offsets_mapping=True, return_special_tokens_mask=True)
    for number, text in enumerate(texts):
        position = 0
        for start, end in output["offset_mapping"][number]:
            assert position <= start < end <= len(text)
            assert not text[position:start].strip()
            position = end
        assert tokenizer.tokenize(text) == [text[start:end] for start, end in output["offset_mapping"][number]]
        assert output["input_ids"][number] == [token[0] for token in oracle.tokens(text)]
        assert output["char_ids"][number] == [token[1] for token in oracle.tokens(text)]
        assert not any(output["special_tokens_mask"][number])


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_special_tokens_inside_a_text_are_ordinary_text(policy):
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, **policy)
    for text in ("[PAD]", "Ann[PAD]", "[UNK] [PAD]"):
        output = tokenizer(text)
        assert 0 not in output["input_ids"]
        assert "".join(tokenizer.tokenize(text)) == text.replace(" ", "")
    assert tokenizer.convert_tokens_to_ids(["[PAD]", "[UNK]"]) == [0, 1] == [tokenizer.pad_token_id, 1]


def test_special_and_invalid_words_are_left_out_of_the_vocabulary():
    tokenizer = WordCharTokenizer.from_corpus([["[PAD]", "[UNK]", "", "\ue000", LONG_WORD, "\ud800", "Ann"]])
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "Ann": 2}
    assert tokenizer(["[PAD]", "[UNK]", "Ann"], is_split_into_words=True)["input_ids"] == [1, 1, 2]


def test_the_calls_of_older_programs_encode_too(tokenizer):
    text = SENTENCES[0] if isinstance(SENTENCES[0], str) else " ".join(SENTENCES[0])
    assert dict(tokenizer.encode_plus(text)) == dict(tokenizer(text))
    assert dict(tokenizer.batch_encode_plus([text])) == dict(tokenizer([text]))
