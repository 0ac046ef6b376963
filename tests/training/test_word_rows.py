"""Encoding each word once matches the tokenizer."""

import random

import numpy as np
import pytest
import tiny_encoders as tiny
import torch
from conftest import SENTENCES

from hf_xorner import WordCharTokenizer
from hf_xorner.training import batches
from hf_xorner.training.batches import WordRows

ODD = ["[PAD]", "[UNK]", "", "İ", "ß" * 40, "\ue000x", "１２", "zeus", "ZEUS", "𝔸𝔸", " ", "a b"]


def same(actual, expected):
    """Compare batches; characters end with the longest word."""
    assert actual.keys() == expected.keys()
    used = expected["char_ids"].flatten(0, 1).any(0).sum()
    expected["char_ids"] = expected["char_ids"][..., : max(used, 1)]
    for name, values in expected.items():
        assert actual[name].dtype == values.dtype
        assert torch.equal(actual[name], values), name


def by_tokenizer(tokenizer, sentences):
    return dict(tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt"))


@pytest.mark.parametrize("kind", ["plain", "folded", "pieces", "left"])
def test_rows_match_the_tokenizer(kind, monkeypatch):
    options = {
        "folded": {"casing": "lower", "digits": "zero", "fallback": ["lower_zero"]},
        "pieces": {"pieces": tiny.pieces_of(tiny.bert_tokenizer()), "max_word_pieces": 3},
    }
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, max_word_chars=6, **options.get(kind, {}))
    tokenizer.padding_side = "left" if kind == "left" else "right"
    draw = random.Random(0)
    words = [word for sentence in SENTENCES for word in sentence] + ODD
    for most_words in (1 << 17, 12):
        monkeypatch.setattr(batches, "MOST_WORDS", most_words)
        rows = WordRows(tokenizer)
        for _ in range(30):
            lengths = [draw.choice([0, 1, 3, 9]) for _ in range(draw.randint(1, 5))]
            word_type = draw.choice([str, np.str_])  # as NumPy's arrays hold words
            sentences = [[word_type(draw.choice(words)) for _ in range(length)] for length in lengths]
            same(rows.encode(sentences), by_tokenizer(tokenizer, sentences))
            assert len(rows.row_of) <= max(most_words, sum(lengths))


def test_invalid_sentences_raise_the_error_of_the_tokenizer(tokenizer):
    for faulty in (["Ann", 3], "Ann", ["a", None], ["a", ["b"]], None, ["ok", True]):
        rows = WordRows(tokenizer)
        with pytest.raises((ValueError, TypeError)) as expected:
            by_tokenizer(tokenizer, [["Ann", "met"], faulty])
        with pytest.raises(expected.type) as raised:
            rows.encode([["Ann", "met"], faulty])
        assert str(raised.value) == str(expected.value)
