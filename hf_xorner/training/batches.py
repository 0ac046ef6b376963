"""Batches: the collator from words and labels to padded tensors."""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import datasets
import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor

from ..models.tags import IGNORED
from ..models.tokenization_word_char import WordCharTokenizer

#: Words that are cached: about 35 MB with 20 characters a word, 240 MB with 200.
MOST_WORDS = 1 << 17


class WordRows:
    """Encodes sentences exactly as the tokenizer does, with a cache of words, which is emptied when it is full.

    Each word is one token, so the encoding of a sentence consists of the encodings of its words.

    Args:
        tokenizer: The tokenizer of the model.
    """

    def __init__(self, tokenizer: WordCharTokenizer) -> None:
        self.tokenizer = tokenizer
        self.row_of: dict[str, int] = {}
        self.columns: dict[str, np.ndarray] = {}

    def encode(self, sentences: list[list[str]]) -> dict[str, Tensor]:
        """Encode sentences, padded to the longest of them, and their characters to the longest word."""
        words = list(chain.from_iterable(sentences)) if set(map(type, sentences)) <= {list, tuple} else []
        # Anything but strings is an error of the tokenizer.
        if not words or not all(issubclass(kind, str) for kind in set(map(type, words))):
            batch = self._by_tokenizer(sentences)
            return batch | {"char_ids": batch["char_ids"][..., : longest_word(batch["char_ids"].flatten(0, 1))]}
        unseen = [word for word in dict.fromkeys(words) if word not in self.row_of]
        if len(self.row_of) + len(unseen) > MOST_WORDS:
            self.row_of, self.columns, unseen = {}, {}, list(dict.fromkeys(words))
        if unseen:
            self._remember(unseen)
        rows = np.fromiter(map(self.row_of.__getitem__, words), np.int64, len(words))
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        width = lengths.max()
        start = width - lengths[:, None] if self.tokenizer.padding_side == "left" else 0
        position = np.arange(width)
        mask = (position >= start) & (position < start + lengths[:, None])
        batch = {"attention_mask": torch.from_numpy(mask.astype(np.int64))}
        for name, column in self.columns.items():
            padding = self.tokenizer.pad_token_id if name == "input_ids" else 0
            values = column[rows]
            if name == "char_ids":
                values = values[:, : longest_word(values)]
            padded = np.full((*mask.shape, *values.shape[1:]), padding, values.dtype)
            padded[mask] = values
            batch[name] = torch.from_numpy(padded)
        return batch

    def _by_tokenizer(self, sentences: list[list[str]]) -> dict[str, Tensor]:
        return dict(self.tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt"))

    def _remember(self, words: list[str]) -> None:
        """Encode words by the tokenizer, and cache the result."""
        encoded = self._by_tokenizer([words])
        encoded.pop("attention_mask")
        first, last = len(self.row_of), len(self.row_of) + len(words)
        for name, rows in encoded.items():
            new = rows[0].numpy()
            column = self.columns.get(name, new[:0])
            if len(column) < last:  # The capacity doubles, so that appending stays cheap.
                room = np.zeros((max(last, 2 * len(column)) - len(column), *new.shape[1:]), new.dtype)
                column = np.concatenate([column, room])
            column[first:last] = new
            self.columns[name] = column
        self.row_of.update(zip(words, range(first, last), strict=True))


def longest_word(char_ids: Any) -> int:
    """Return the length of the longest word of (N, max_word_chars), at least 1; padding comes after the characters."""
    return max(int(char_ids.any(0).sum()), 1)


def word_counts(dataset: Any, words: str) -> np.ndarray:
    """Return the number of words of every sentence in a dataset, or a list of examples; `words` is their column."""
    if not isinstance(dataset, datasets.Dataset):
        return np.fromiter((len(example[words]) for example in dataset), np.int64, len(dataset))
    # Arrow stores the lengths of lists, so no words have to become Python objects.
    column = dataset.select_columns([words]).with_format("arrow")[:][words]
    return pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)


def has_words(dataset: Any, words: str) -> bool:
    """Return True if a dataset has a length and a column of words."""
    if not isinstance(dataset, Sized) or not len(dataset):
        return False
    if isinstance(dataset, datasets.Dataset):
        return words in dataset.column_names
    example = dataset[0]  # type: ignore[index]
    return isinstance(example, dict) and words in example


#: Column of a frozen encoder's states, as bytes of float32 (words, dimensions); also the model's argument.
CONTEXT_STATES = "context_states"
#: Column of the teachers' pair posterior, as bytes of float16 (words, tags, tags); also the model's argument.
TEACHER_PAIRS = "teacher_pairs"


@dataclass
class TaggingCollator:
    """Encodes examples when a batch is needed, so that memory holds only the corpus and its distinct words.

    Args:
        tokenizer: The tokenizer of the model.
        words: The column of the words.
        labels: The column of the labels; examples without it are collated without labels.
    """

    tokenizer: WordCharTokenizer
    words: str = "tokens"
    labels: str = "ner_tags"
    _rows: WordRows | None = field(default=None, init=False, repr=False, compare=False)

    def __call__(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        """Pad the examples to the longest of them."""
        if self.words not in examples[0]:
            raise ValueError(
                f"An example has the columns {sorted(examples[0])} but not {self.words!r}; name the column of the "
                "words: TaggingCollator(tokenizer, words=…)."
            )
        sentences = [example[self.words] for example in examples]
        if self._rows is None or self._rows.tokenizer is not self.tokenizer:
            self._rows = WordRows(self.tokenizer)
        batch: dict[str, Any] = self._rows.encode(sentences)
        mask = batch["attention_mask"].bool()
        for column, dtype in ((CONTEXT_STATES, np.float32), (TEACHER_PAIRS, np.float16)):
            if column in examples[0]:
                batch[column] = _padded([example[column] for example in examples], dtype, mask)
        if TEACHER_PAIRS in batch:
            tags = math.isqrt(batch[TEACHER_PAIRS].shape[2])
            batch[TEACHER_PAIRS] = batch[TEACHER_PAIRS].unflatten(2, (tags, tags))
        if self.labels not in examples[0]:
            return batch
        if TEACHER_PAIRS in examples[0]:  # text without labels
            none = [IGNORED] * mask.shape[1]
            examples = [e if e[self.labels] else {**e, self.labels: none[: len(e[self.words])]} for e in examples]
        for number, example in enumerate(examples):
            if len(example[self.labels]) != len(example[self.words]):
                raise ValueError(
                    f"Example {number} of the batch has {len(example[self.words])} {self.words} and "
                    f"{len(example[self.labels])} {self.labels}; every word needs one label ({IGNORED} for none)."
                )
        flat = [IGNORED if label == -1 else label for example in examples for label in example[self.labels]]
        labels = torch.full(mask.shape, IGNORED)
        labels[mask] = torch.tensor(flat, dtype=labels.dtype)
        return {**batch, "labels": labels}


def _padded(rows: list[bytes], dtype: Any, mask: Tensor) -> Tensor:
    """Pad the values of sentences, which are bytes: mask (B, T) → (B, T, d), float32."""
    flat = torch.from_numpy(np.frombuffer(b"".join(rows), dtype=dtype).astype(np.float32))
    words = int(mask.sum())
    size = len(flat) // words if words else 0
    padded = flat.new_zeros(*mask.shape, size)
    padded[mask] = flat.view(words, size)
    return padded
