"""Sentences of words and labels to padded tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field
from itertools import chain
from numbers import Integral
from typing import Any

import datasets
import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch.utils.data import Sampler

from ..models.tags import IGNORED
from ..models.tokenization_word_char import WordCharTokenizer

#: Words that are remembered, some 35 MB of them; rarer ones are encoded each time they occur.
MOST_WORDS = 1 << 17

_FIRST_ROOM = 1024


class WordRows:
    """Encodes sentences of given words as the tokenizer does, faster from the second time on.

    A given word is one token whatever stands beside it, so the rows of a batch are those of its words.

    Args:
        tokenizer: Of the model.
        most_words: How many words are remembered.
    """

    def __init__(self, tokenizer: WordCharTokenizer, most_words: int = MOST_WORDS) -> None:
        self.tokenizer, self.most_words = tokenizer, most_words
        self.place: dict[str, int] = {}
        self.columns: dict[str, np.ndarray] = {}

    def encode(self, sentences: list[list[str]]) -> dict[str, Tensor]:
        """Encode sentences, padded to the longest of them."""
        if not all(isinstance(sentence, (list, tuple)) for sentence in sentences):
            return self._by_tokenizer(sentences)
        try:
            words = list(chain.from_iterable(sentences))
            unseen = dict.fromkeys(word for word in words if word not in self.place)
        except TypeError:  # No words: the tokenizer says what is wrong.
            return self._by_tokenizer(sentences)
        if unseen:
            if len(self.place) + len(unseen) > self.most_words:
                return self._by_tokenizer(sentences)
            try:
                self._remember(list(unseen))
            except ValueError:
                return self._by_tokenizer(sentences)
        if not words:
            return self._by_tokenizer(sentences)
        rows = np.fromiter(map(self.place.__getitem__, words), np.int64, len(words))
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        width = lengths.max()
        start = width - lengths[:, None] if self.tokenizer.padding_side == "left" else 0
        position = np.arange(width)
        mask = (position >= start) & (position < start + lengths[:, None])
        batch = {}
        for name, column in self.columns.items():
            padded = np.full((*mask.shape, *column.shape[1:]), self.pad_of(name), column.dtype)
            padded[mask] = column[rows]
            batch[name] = torch.from_numpy(padded)
        batch["attention_mask"] = torch.from_numpy(mask.astype(np.int64))
        return batch

    def pad_of(self, name: str) -> int:
        """What stands where no word is."""
        return self.tokenizer.pad_token_id if name == "input_ids" else 0

    def _by_tokenizer(self, sentences: list[list[str]]) -> dict[str, Tensor]:
        return dict(self.tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt"))

    def _remember(self, words: list[str]) -> None:
        """Ask the tokenizer about words, and keep what it says."""
        encoded = self._by_tokenizer([words])
        encoded.pop("attention_mask")
        first = len(self.place)
        for name, rows in encoded.items():
            self.columns[name] = _with_room(self.columns.get(name), rows[0].numpy(), first + len(words))
            self.columns[name][first : first + len(words)] = rows[0].numpy()
        self.place.update(zip(words, range(first, first + len(words)), strict=True))


def _with_room(column: np.ndarray | None, like: np.ndarray, size: int) -> np.ndarray:
    """A column of at least `size` rows, which begins with what is there; its room doubles, so growing stays cheap."""
    if column is not None and len(column) >= size:
        return column
    room = max(size, _FIRST_ROOM, 0 if column is None else 2 * len(column))
    grown = np.zeros((room, *like.shape[1:]), like.dtype)
    if column is not None:
        grown[: len(column)] = column
    return grown


#: Batches among whose sentences the similarly long are brought together: fewer leave more to chance.
_POOL = 50


def word_counts(dataset: Any, words: str) -> np.ndarray:
    """The number of words of every sentence.

    Args:
        dataset: A data set, or a list of examples.
        words: Column of the words.
    """
    if not isinstance(dataset, datasets.Dataset):
        return np.fromiter((len(example[words]) for example in dataset), np.int64, len(dataset))
    # The lists of a table know their lengths: no word has to become a Python object.
    column = dataset.select_columns([words]).with_format("arrow")[:][words]
    return pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)


class Shuffled(Sampler[int]):
    """Every sentence once, in a random order that depends on seed and epoch alone.

    The order is that of Accelerate's own sampler, which forgets the epoch before Accelerate 1.15 where a run goes on in
    the middle of one.

    Args:
        size: Number of sentences.
        seed: What the order is drawn from.
        epoch: Says the number of the epoch that begins.
    """

    def __init__(self, size: int, seed: int, epoch: Callable[[], int]) -> None:
        self.size, self.seed, self.epoch = size, seed, epoch

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch())
        return iter(torch.randperm(self.size, generator=generator).tolist())


class LengthBuckets(Sampler[int]):
    """Every sentence once, in an order that puts similarly long ones into the same batch.

    The order depends on seed and epoch alone, so it is the same in each of several processes.

    Args:
        lengths: Words of each sentence.
        batch_size: Sentences of a batch, or of all batches that make a step together.
        seed: What the order is drawn from.
        epoch: Says the number of the epoch that begins.
    """

    def __init__(self, lengths: np.ndarray, batch_size: int, seed: int, epoch: Callable[[], int]) -> None:
        self.lengths, self.batch_size, self.seed, self.epoch = lengths, batch_size, seed, epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        random = np.random.default_rng([self.seed, self.epoch()])
        return iter(bucketed(self.lengths, self.batch_size, random).tolist())


def bucketed(lengths: np.ndarray, batch_size: int, random: np.random.Generator) -> np.ndarray:
    """A random order of sentences, sorted by length within pools of batches, the batches then in random order."""
    order = random.permutation(len(lengths))
    whole = len(order) - len(order) % batch_size
    # At least four pools where there are that many batches, or epochs would hardly differ.
    size = batch_size * min(_POOL, max(1, whole // batch_size // 4))
    pools = np.arange(whole) // size
    batches = order[:whole][np.lexsort((lengths[order[:whole]], pools))].reshape(-1, batch_size)
    # What fills no batch comes last, where a sampler of batches looks for it.
    rest = order[whole:]
    return np.concatenate([random.permutation(batches).ravel(), rest[np.argsort(lengths[rest], kind="stable")]])


def has_words(dataset: Any, words: str) -> bool:
    """Whether a data set has a length, and a column of words."""
    if not isinstance(dataset, Sized) or not len(dataset):
        return False
    if isinstance(dataset, datasets.Dataset):
        return words in dataset.column_names
    example = dataset[0]  # type: ignore[index]
    return isinstance(example, dict) and words in example


#: Column of the states of a frozen encoder, float32 words × dimensions as bytes; also the model's name for them.
CONTEXT_STATES = "context_states"


@dataclass
class TaggingCollator:
    """Encodes examples as they are drawn: nothing but the corpus and its distinct words has to be kept in memory.

    Args:
        tokenizer: The tokenizer of the model.
        words: Column of the words.
        labels: Column of the labels; examples without it are collated without labels.
    """

    tokenizer: WordCharTokenizer
    words: str = "tokens"
    labels: str = "ner_tags"
    _rows: WordRows | None = field(default=None, init=False, repr=False, compare=False)

    def __call__(self, examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        """Pad the examples to the longest of them."""
        if any(self.words not in example for example in examples):
            raise ValueError(
                f"An example has the columns {sorted(examples[0])} and none called {self.words!r}; name the column of "
                "the words: TaggingCollator(tokenizer, words=…)."
            )
        sentences = [example[self.words] for example in examples]
        if self._rows is None or self._rows.tokenizer is not self.tokenizer:
            self._rows = WordRows(self.tokenizer)
        batch = self._rows.encode(sentences)
        if CONTEXT_STATES in examples[0]:
            states = [example[CONTEXT_STATES] for example in examples]
            batch[CONTEXT_STATES] = _padded_states(states, batch["attention_mask"].bool())
        if self.labels not in examples[0]:
            return batch
        mask = batch["attention_mask"].bool()
        flat = [label for example in examples for label in example[self.labels]]
        if len(flat) != int(mask.sum()):
            number = next(i for i, e in enumerate(examples) if len(e[self.labels]) != len(e[self.words]))
            example = examples[number]
            raise ValueError(
                f"Example {number} of the batch has {len(example[self.words])} {self.words} and "
                f"{len(example[self.labels])} {self.labels}; every word needs one label ({IGNORED} for none)."
            )
        labels = torch.full(mask.shape, IGNORED)
        try:
            labels[mask] = torch.tensor(flat, dtype=labels.dtype)
        except (TypeError, ValueError):
            wrong = next((label for label in flat if not isinstance(label, Integral)), flat)
            raise ValueError(
                f"{self.labels} holds {wrong!r}, and labels are numbers: those of the model's id2label, or {IGNORED} "
                "for none."
            ) from None
        return {**batch, "labels": labels}


def _padded_states(rows: list[bytes], mask: Tensor) -> Tensor:
    """The states of an encoder, kept as bytes a sentence, beside the words of a batch: mask (B, T) → (B, T, d)."""
    flat = torch.from_numpy(np.frombuffer(b"".join(rows), dtype=np.float32).copy())
    words = int(mask.sum())
    size = len(flat) // words if words else 0
    padded = flat.new_zeros(*mask.shape, size)
    padded[mask] = flat.view(words, size)
    return padded
