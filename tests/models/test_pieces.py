"""Pieces of words compared with the encoder's own tokenizer, one word at a time; pieces in a tagger's tokenizer."""

import shutil

import numpy as np
import pytest
import tiny_encoders as tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_texts import PIECES
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, DataCollatorForTokenClassification

from hf_xorner import WordCharTokenizer
from hf_xorner.models.word_ids import WordPieces

# The encoders' own tokenizers, as they come from the Hub.
OWN = {
    "wordpiece": tiny.bert_tokenizer(),
    "byte-level": tiny.roberta_tokenizer(),
    "unigram": tiny.unigram_tokenizer(),
}
CUT = {family: tiny.pieces_of(own) for family, own in OWN.items()}
WIDTH = 4
words = st.lists(PIECES, max_size=6).map("".join)
families = pytest.mark.parametrize("family", OWN)


def reference_pieces(family, word):
    """Pieces of a word inside a sentence: only byte-level BPE depends on the preceding space."""
    text = " " + word if word and family == "byte-level" else word
    return OWN[family](text, add_special_tokens=False, split_special_tokens=True)["input_ids"]


def expected_rows(family, given_words, width):
    rows = []
    for word in given_words:
        ids = [index + 1 for index in reference_pieces(family, word)][:width]
        rows.append(ids + [0] * (width - len(ids)))
    return rows


@families
def test_pieces_of_unusual_words_match_the_encoders_tokenizer(family):
    for width in (1, 3, 400):
        found = CUT[family].of(tiny.ODD_WORDS, width)
        assert found.dtype == np.int64
        assert found.tolist() == expected_rows(family, tiny.ODD_WORDS, width)


@families
@settings(max_examples=25, deadline=None)
@given(st.lists(words, max_size=8))
def test_pieces_of_any_words_match_the_encoders_tokenizer(family, given_words):
    found = CUT[family].of(given_words, WIDTH)
    assert found.shape == (len(given_words), WIDTH)
    assert found.tolist() == expected_rows(family, given_words, WIDTH)


@pytest.mark.parametrize(
    "split",
    [
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
        [
            # A short form of the splitting of GPT-4, Llama 3 and Qwen.
            pre_tokenizers.Split(Regex(r"'t|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ],
    ],
    ids=["digits", "llama"],
)
def test_a_space_is_prepended_to_words_but_not_inside_them(split):
    vocabulary, merges = tiny.byte_level_parts()
    backend = Tokenizer(models.BPE(vocabulary, merges))
    backend.pre_tokenizer = pre_tokenizers.Sequence(split)
    pieces = WordPieces(backend.to_str())
    for word in ("rain", "1984", "don't", "(Oslo)", "a1b2", "12:30"):
        expected = backend.encode(" " + word, add_special_tokens=False).ids
        assert [index - 1 for index in pieces.of([word], 30)[0] if index] == expected, word


@families
def test_the_frame_matches_the_encoders_special_tokens(family):
    own = OWN[family]
    before, after = CUT[family].frame()
    inside = [index for word in ("oslo", "rain") for index in reference_pieces(family, word)]
    assert before + inside + after == own(" oslo rain")["input_ids"]
    assert len(before) == len(after) == 1


# --- A tagger's tokenizer ---------------------------------------------------------------------------------------------

TEXTS = [*tiny.TEXTS, "", "Zeus's [SEP] \u200b don't", "rain"]
GIVEN = [["New York", "", " ", "rains"], [], ["[PAD]", "\0"], ["Ann"]]


def tagger_tokenizer(family="wordpiece", **options):
    options = {"pieces": CUT[family], "max_word_pieces": WIDTH, "max_word_chars": 6, **options}
    return WordCharTokenizer.from_corpus(tiny.SENTENCES, **options)


def surfaces(tokenizer, texts):
    return [tokenizer.tokenize(text) for text in texts]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(PIECES, max_size=12).map("".join), min_size=1, max_size=3), st.sampled_from(["left", "right"]))
def test_pieces_are_padded_along_with_their_words(texts, side):
    tokenizer = tagger_tokenizer("byte-level", casing="lower", digits="zero")
    batch = tokenizer(texts, padding=True, padding_side=side, return_tensors="pt")
    assert batch["piece_ids"].shape == (*batch["input_ids"].shape, WIDTH)
    for row, mask, sentence in zip(
        batch["piece_ids"], batch["attention_mask"], surfaces(tokenizer, texts), strict=True
    ):
        assert row[mask.bool()].tolist() == expected_rows("byte-level", sentence, WIDTH)
        assert not row[~mask.bool()].any()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("truncation_side", ["left", "right"])
def test_overflowing_parts_keep_the_pieces_of_their_words(side, truncation_side):
    tokenizer = tagger_tokenizer()
    tokenizer.truncation_side = truncation_side
    batch = tokenizer(
        TEXTS,
        truncation=True,
        max_length=3,
        stride=1,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding="max_length",
        padding_side=side,
        return_tensors="pt",
    )
    assert len(batch["input_ids"]) > len(TEXTS)
    for row, mask, offsets, number in zip(
        batch["piece_ids"],
        batch["attention_mask"].bool(),
        batch["offset_mapping"],
        batch["overflow_to_sample_mapping"],
        strict=True,
    ):
        sentence = [TEXTS[number][start:end] for start, end in offsets[mask].tolist()]
        assert row[mask].tolist() == expected_rows("wordpiece", sentence, WIDTH)
        assert not row[~mask].any()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("tensors", [None, "np", "pt"])
def test_examples_are_padded_together(side, tensors):
    tokenizer = tagger_tokenizer()
    tokenizer.padding_side = side
    examples = [tokenizer(text) for text in TEXTS]
    for options in ({}, {"pad_to_multiple_of": 8}):
        padded = tokenizer.pad(examples, return_tensors=tensors, **options)
        expected = tokenizer(TEXTS, padding=True, return_tensors=tensors, **options)
        for name in expected:
            assert np.array_equal(padded[name], expected[name]), name
    labelled = [{**example, "labels": [0] * len(example["input_ids"])} for example in examples]
    batch = DataCollatorForTokenClassification(tokenizer)(labelled)
    assert torch.equal(batch["piece_ids"], tokenizer(TEXTS, padding=True, return_tensors="pt")["piece_ids"])
    assert ((batch["labels"] == 0) == batch["attention_mask"].bool()).all()


@families
def test_a_loaded_tokenizer_gives_the_same_pieces_from_any_folder(family, tmp_path):
    tokenizer = tagger_tokenizer(family, casing="lower")
    expected = dict(tokenizer(TEXTS))
    tokenizer.save_pretrained(tmp_path / "first")
    (tmp_path / "first").rename(tmp_path / "moved")
    again = AutoTokenizer.from_pretrained(tmp_path / "moved")
    assert type(again) is WordCharTokenizer
    shutil.rmtree(tmp_path / "moved")
    assert dict(again(TEXTS)) == expected
    again.save_pretrained(tmp_path / "second")
    assert dict(WordCharTokenizer.from_pretrained(tmp_path / "second")(TEXTS)) == expected
    assert again.model_fields() == tokenizer.model_fields()
    for path in (tmp_path / "second").iterdir():
        assert str(tmp_path) not in path.read_text(encoding="utf-8"), path.name
    tokenizer.save_pretrained(tmp_path / "prefixed", filename_prefix="x")
    assert (tmp_path / "prefixed" / "x-piece_tokenizer.json").is_file()


def test_a_missing_piece_tokenizer_file_raises(tmp_path):
    tagger_tokenizer().save_pretrained(tmp_path)
    (tmp_path / "piece_tokenizer.json").unlink()
    for load in (AutoTokenizer.from_pretrained, WordCharTokenizer.from_pretrained):
        with pytest.raises(ValueError) as error:
            load(tmp_path)
        assert str(error.value) == (
            "piece_tokenizer.json is missing beside tokenizer.json; copy the whole folder of the model."
        )
