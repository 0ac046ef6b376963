"""The order of sentences in training: at random, or in batches of similar length, so that little of them is padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from typing import Any

import datasets
import numpy as np
import pyarrow.compute as pc
import torch
from torch.utils.data import Sampler

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
