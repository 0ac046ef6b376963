"""Which vector a word has: one look-up for building a model and for tagging, and what it covers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..models.tokenization_word_char import UNKNOWN_ID, WordCharTokenizer


class Found(NamedTuple):
    """The words of a vocabulary that have a vector.

    Attributes:
        ids: Their ids. Shape: (found,).
        rows: The row of the vector of each. Shape: (found,).
    """

    ids: NDArray[np.int64]
    rows: NDArray[np.int64]


class Coverage(NamedTuple):
    """What part of a corpus has a vector, in percent, by the step of the look-up that found it.

    Attributes:
        tokens: The share of tokens found by each step, and under ``none`` those without a vector.
        types: The same of distinct words.
    """

    tokens: dict[str, float]
    types: dict[str, float]

    def __str__(self) -> str:
        lines = [f"{'found':<12}{'tokens, %':>12}{'words, %':>12}"]
        lines += [f"{step:<12}{self.tokens[step]:>12.2f}{self.types[step]:>12.2f}" for step in self.tokens]
        return "\n".join(lines)


def look_up(tokenizer: WordCharTokenizer, words: Sequence[str]) -> Found:
    """Find a vector for each word of a tokenizer's vocabulary, under the forms that it looks words up by.

    Args:
        tokenizer: The tokenizer.
        words: The words that have a vector, by row.
    """
    known = ((word, index) for word, index in tokenizer.get_vocab().items() if index > UNKNOWN_ID)
    return look_up_forms(((index, tokenizer.forms(word)) for word, index in known), words)


def look_up_forms(forms: Iterable[tuple[int, Sequence[str]]], words: Sequence[str]) -> Found:
    """Find a vector for each id, under the first of its word's forms that has one.

    Args:
        forms: The ids, and the forms of the word of each.
        words: The words that have a vector, by row.
    """
    row_of = {word: row for row, word in enumerate(words)}
    found = [
        (index, row_of[form])
        for index, tried in forms
        if (form := next((form for form in tried if form in row_of), None)) is not None
    ]
    ids, rows = np.array(sorted(found), dtype=np.int64).reshape(-1, 2).T
    return Found(ids, rows)


def coverage_of(tokenizer: WordCharTokenizer, words: Iterable[str], sentences: Iterable[Sequence[str]]) -> Coverage:
    """Return what part of a corpus has a vector, by the first step of the look-up that finds one.

    Args:
        tokenizer: The tokenizer, whose policies are the steps.
        words: The words that have a vector.
        sentences: The words of each sentence.
    """
    known = set(words)
    counts = Counter(chain.from_iterable(sentences))
    steps = [*tokenizer.steps, "none"]
    tokens, types = dict.fromkeys(steps, 0), dict.fromkeys(steps, 0)
    for word, count in counts.items():
        forms = zip(tokenizer.steps, tokenizer.forms(word), strict=True)
        step = next((step for step, form in forms if form in known), "none")
        tokens[step] += count
        types[step] += 1
    return Coverage(_shares(tokens), _shares(types))


def _shares(counts: dict[str, int]) -> dict[str, float]:
    total = max(sum(counts.values()), 1)
    return {step: 100 * count / total for step, count in counts.items()}
