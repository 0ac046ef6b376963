"""Look up the vectors of words with the fallbacks of a tokenizer, and measure the coverage of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..models.tokenization_word_char import WordCharTokenizer
from ..models.word_ids import FALLBACKS, UNKNOWN_ID, fold
from ..text_table import text_table
from .formats import Vectors


def with_foldings(words: Iterable[str]) -> set[str]:
    """Return words and all forms under which a tokenizer may look them up; see `WordLookup.forms`.

    Args:
        words: The words.
    """
    spelt = set(words)
    return spelt.union(*({fold(word, *policies) for word in spelt} for policies in FALLBACKS.values()))


class Coverage(NamedTuple):
    """The share of a corpus' words that have a vector, in percent, by the step of the look-up.

    Attributes:
        tokens: The share of tokens that each step finds, and under ``none`` of tokens without a vector.
        types: The same for distinct words.
    """

    tokens: dict[str, float]
    types: dict[str, float]

    def __str__(self) -> str:
        rows = ((step, self.tokens[step], self.types[step]) for step in self.tokens)
        return text_table([("found", "tokens, %", "words, %"), *rows])


def look_up(tokenizer: WordCharTokenizer, words: Sequence[str]) -> NDArray[np.int64]:
    """Return the ids of the words of a tokenizer's vocabulary that have a vector, with its fallbacks, and its row.

    Args:
        tokenizer: The tokenizer.
        words: The words that have a vector, by row.
    """
    entries = ((word, index) for word, index in tokenizer.get_vocab().items() if index > UNKNOWN_ID)
    forms = tokenizer.lookup.forms
    return look_up_forms(((index, forms(word)) for word, index in entries), words)


def look_up_forms(forms: Iterable[tuple[int, Sequence[str]]], words: Sequence[str]) -> NDArray[np.int64]:
    """Return the ids for which a form has a vector, and the row of the first such form. Shape: (2, ids).

    Args:
        forms: The ids, each with the forms of its word.
        words: The words that have a vector, by row.
    """
    row_of = {word: row for row, word in enumerate(words)}
    pairs = [
        (index, row_of[form])
        for index, word_forms in forms
        if (form := next((form for form in word_forms if form in row_of), None)) is not None
    ]
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T


def coverage_of(tokenizer: WordCharTokenizer, words: Iterable[str], sentences: Iterable[Sequence[str]]) -> Coverage:
    """Return the share of a corpus' words that have a vector, by the first step of the look-up that finds one.

    Args:
        tokenizer: The tokenizer; its policies are the steps.
        words: The words that have a vector.
        sentences: The words of each sentence.
    """
    with_vector = set(words)
    counts = Counter(chain.from_iterable(sentences))
    forms, steps = tokenizer.lookup.forms, ["exact", "folded", *tokenizer.init_kwargs["fallback"]]
    tokens, types = dict.fromkeys([*steps, "none"], 0), dict.fromkeys([*steps, "none"], 0)
    for word, count in counts.items():
        step = next((step for step, form in zip(steps, forms(word), strict=True) if form in with_vector), "none")
        tokens[step] += count
        types[step] += 1
    return Coverage(_shares(tokens), _shares(types))


def _shares(counts: dict[str, int]) -> dict[str, float]:
    total = max(sum(counts.values()), 1)
    return {step: 100 * count / total for step, count in counts.items()}


def join(tables: Sequence[Vectors], fallback: Sequence[str] = ()) -> Vectors:
    """Concatenate the vectors of each word in several tables.

    Since tables differ in scale, each is divided by the root mean square of its numbers. Words that a table does not
    have are zeros there.

    Args:
        tables: The tables. The words of the first come first, then the others, in their order.
        fallback: Forms in which unknown words are looked up in each table: lower, zero, lower_zero.
    """
    words = list(dict.fromkeys(word for table in tables for word in table.words))
    forms = WordCharTokenizer.from_corpus([], fallback=fallback).lookup.forms
    return Vectors(words, np.concatenate([_laid_out(table, [forms(word) for word in words]) for table in tables], 1))


def _laid_out(table: Vectors, forms: Sequence[Sequence[str]]) -> NDArray[np.float32]:
    """The scaled vectors of a table for words, given by their forms; zeros for words that it does not have."""
    values = table.matrix.astype(np.float32)
    scale = float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) if values.size else 0.0
    rows = np.zeros((len(forms), table.dim), dtype=np.float32)
    ids, found = look_up_forms(enumerate(forms), table.words)
    rows[ids] = values[found] / (scale or 1.0)
    return rows
