"""Pieces of words compared with the encoder's own tokenizer, one word at a time; pieces in a tagger's tokenizer."""

import copy
import pickle
import shutil

import numpy as np
import pytest
import tiny_encoders as tiny
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_texts import PIECES
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, DataCollatorForTokenClassification

from hf_xorner import WordCharTokenizer
from hf_xorner.models.word_ids import WordPieces

# The encoders' own tokenizers, as they come from the Hub.
OWN = {"wordpiece": tiny.bert_tokenizer(), "byte-level": tiny.roberta_tokenizer(), "unigram": tiny.unigram_tokenizer()}
CUT = {family: tiny.pieces_of(own) for family, own in OWN.items()}
WIDTH = 4
families = pytest.mark.parametrize("family", OWN)


def reference_pieces(family, word):
    """Pieces of a word inside a sentence: only byte-level BPE depends on the preceding space."""
    text = " " + word if word and family == "byte-level" else word
    return OWN[family](text, add_special_tokens=False, split_special_tokens=True)["input_ids"]


def expected_rows(family, words, width):
    rows = [[index + 1 for index in reference_pieces(family, word)][:width] for word in words]
    return [row + [0] * (width - len(row)) for row in rows]


@families
@given(st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=8))
def test_pieces_match_the_encoders_tokenizer(family, words):
    for width in (1, WIDTH, 400):
        rows = CUT[family].of([*tiny.ODD_WORDS, *words], width)
        assert rows.dtype == np.int64
        assert rows.tolist() == expected_rows(family, [*tiny.ODD_WORDS, *words], width)
    assert rows.max() <= CUT[family].size == len(OWN[family])
    assert CUT[family].of([], WIDTH).shape == (0, WIDTH)


def test_ids_are_below_the_size_of_a_vocabulary_with_gaps():
    backend = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 7}, unk_token="[UNK]"))
    pieces = WordPieces(backend.to_str())
    assert pieces.of(["a"], 1).max() <= pieces.size


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
    backend = Tokenizer(models.BPE(*tiny.byte_level_parts()))
    backend.pre_tokenizer = pre_tokenizers.Sequence(split)
    pieces = WordPieces(backend.to_str())
    for word in ("rain", "1984", "don't", "(Oslo)", "a1b2", "12:30"):
        expected = backend.encode(" " + word, add_special_tokens=False).ids
        assert [index - 1 for index in pieces.of([word], 30)[0] if index] == expected, word
    with_prefix = tiny.pieces_of(tiny.roberta_tokenizer(add_prefix_space=True))
    assert np.array_equal(with_prefix.of(tiny.ODD_WORDS, 20), CUT["byte-level"].of(tiny.ODD_WORDS, 20))


@families
def test_the_frame_matches_the_encoders_special_tokens(family):
    before, after = CUT[family].frame()
    inside = [index for word in ("oslo", "rain") for index in reference_pieces(family, word)]
    assert before + inside + after == OWN[family](" oslo rain")["input_ids"]
    assert len(before) == len(after) == 1


def test_the_frame_may_be_empty_and_does_not_depend_on_the_vocabulary():
    backend = Tokenizer(models.BPE({"<s>": 0, "</s>": 1, "東": 2}, []))
    assert WordPieces(backend.to_str()).frame() == ([], [])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    assert WordPieces(backend.to_str()).frame() == ([0], [1])


def copies_of(value):
    return copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))


@families
def test_copies_ignore_truncation_and_padding_and_give_the_same_pieces(family):
    backend = Tokenizer.from_str(OWN[family].backend_tokenizer.to_str())
    backend.enable_truncation(3)
    backend.enable_padding(length=9)
    for twin in copies_of(WordPieces(backend.to_str())):
        assert twin.to_str() == CUT[family].to_str()
        assert np.array_equal(twin.of(tiny.ODD_WORDS, 20), CUT[family].of(tiny.ODD_WORDS, 20))


# --- A tagger's tokenizer --------------------------------------------------------------------------------------------

TEXTS = [*tiny.TEXTS, "", "Zeus's [SEP] \u200b don't", "rain"]
GIVEN = [["New York", "", " ", "rains"], [], ["[PAD]", "\0"], ["Ann"]]


def tagger_tokenizer(family="wordpiece", **options):
    options = {"pieces": CUT[family], "max_word_pieces": WIDTH, "max_word_chars": 6, **options}
    return WordCharTokenizer.from_corpus(tiny.SENTENCES, **options)


@families
def test_given_words_have_their_pieces(family):
    tokenizer = tagger_tokenizer(family, casing="lower", digits="zero")
    expected = [expected_rows(family, words, WIDTH) for words in GIVEN]
    assert tokenizer(GIVEN, is_split_into_words=True)["piece_ids"] == expected


PARTS = {"truncation": True, "max_length": 3, "stride": 1, "return_overflowing_tokens": True}


@families
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("options", [{}, PARTS], ids=["whole", "parts"])
def test_every_word_has_its_pieces_wherever_it_is_padded_or_cut(family, side, options):
    options = {"padding": True, "padding_side": side, "return_offsets_mapping": True, "return_tensors": "pt", **options}
    batch = tagger_tokenizer(family)(TEXTS, **options)
    numbers = batch.get("overflow_to_sample_mapping", torch.arange(len(TEXTS)))
    for row, mask, offsets, number in zip(
        batch["piece_ids"], batch["attention_mask"].bool(), batch["offset_mapping"], numbers, strict=True
    ):
        words = [TEXTS[number][start:end] for start, end in offsets[mask].tolist()]
        assert row[mask].tolist() == expected_rows(family, words, WIDTH)
        assert not row[~mask].any()


@pytest.mark.parametrize("side", ["left", "right"])
def test_examples_are_padded_together(side):
    tokenizer = tagger_tokenizer()
    tokenizer.padding_side = side
    examples = [{**tokenizer(text), "labels": [0] * len(tokenizer(text)["input_ids"])} for text in TEXTS]
    batch = DataCollatorForTokenClassification(tokenizer)(examples)
    assert torch.equal(batch["piece_ids"], tokenizer(TEXTS, padding=True, return_tensors="pt")["piece_ids"])


@families
def test_a_saved_or_copied_tokenizer_gives_the_same_pieces_from_any_folder(family, tmp_path):
    tokenizer = tagger_tokenizer(family, casing="lower")
    assert str(tmp_path / "first" / "piece_tokenizer.json") in tokenizer.save_pretrained(tmp_path / "first")
    (tmp_path / "first").rename(tmp_path / "moved")
    loaded = AutoTokenizer.from_pretrained(tmp_path / "moved")
    shutil.rmtree(tmp_path / "moved")
    loaded.save_pretrained(tmp_path / "second")
    for other in (loaded, AutoTokenizer.from_pretrained(tmp_path / "second"), *copies_of(loaded)):
        assert dict(other(TEXTS)) == dict(tokenizer(TEXTS))
        assert other.model_fields() == tokenizer.model_fields()
    for path in (tmp_path / "second").iterdir():
        assert str(tmp_path) not in path.read_text(encoding="utf-8"), path.name


def test_a_missing_file_of_pieces_is_named(tmp_path):
    tagger_tokenizer().save_pretrained(tmp_path)
    (tmp_path / "piece_tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"piece_tokenizer\.json is missing"):
        AutoTokenizer.from_pretrained(tmp_path)


def test_tokenizers_without_pieces_have_no_piece_columns_or_files(tmp_path):
    tokenizer = WordCharTokenizer.from_corpus(tiny.SENTENCES)
    assert "piece_ids" not in tokenizer(TEXTS)
    tokenizer.save_pretrained(tmp_path)
    assert not (tmp_path / "piece_tokenizer.json").exists()
    assert AutoTokenizer.from_pretrained(tmp_path).pieces is None
