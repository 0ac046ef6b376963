"""Look up the vectors of words, as building a model and tagging do, and measure the coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..corpora.assemble import TOKENS
from ..corpora.load import load_corpus
from ..corpora.splits import TABLE_SUFFIXES, suffix_of
from ..errors import DataError
from ..files import BYTE_ORDER_MARK, open_text
from ..models.tokenization_word_char import WordCharTokenizer
from ..models.word_ids import FALLBACKS, UNKNOWN_ID, fold
from .formats import Vectors


def read_words(source: str | Path, data_dir: str | Path | None = None) -> list[str]:
    """Return the distinct words of a list or of a corpus, in the order in which they occur first.

    Args:
        source: A file with a word a line, plain or compressed by gzip, or a corpus as `hf_xorner.corpora.load_corpus`
            takes it, whose splits are all read. A file is a list if its first line is one field.
        data_dir: Where the files of a named corpus lie.

    Raises:
        DataError: If the source cannot be read.
    """
    path = Path(source).expanduser()
    if path.is_file() and suffix_of(path) not in TABLE_SUFFIXES and _is_list(path):
        with open_text(path) as file:
            lines = (line.rstrip("\r\n") for line in file.read().removeprefix(BYTE_ORDER_MARK).split("\n"))
            return list(dict.fromkeys(line for line in lines if line))
    words: dict[str, None] = {}
    for split in load_corpus(source, data_dir).values():
        # Column by column: a row at a time takes several times as long.
        for batch in split.select_columns([TOKENS]).with_format("arrow").iter(100_000):
            words.update(dict.fromkeys(batch.column(TOKENS).combine_chunks().flatten().to_pylist()))
    return list(words)


def _is_list(path: Path) -> bool:
    """Return whether a file is a list of words, by its first line that is not empty."""
    with open_text(path) as file:
        line = next((line for line in file if line.strip(f"\r\n{BYTE_ORDER_MARK}")), "").rstrip("\r\n")
    return bool(line) and not any(blank in line for blank in " \t") and not line.startswith('{"')


def with_foldings(words: Iterable[str]) -> set[str]:
    """Return words with all forms that a tokenizer may look them up by; see `WordLookup.forms`.

    Args:
        words: Words as they are spelt.
    """
    spelt = set(words)
    return spelt.union(*({fold(word, *policies) for word in spelt} for policies in FALLBACKS.values()))


class _Found(NamedTuple):
    """The words of a vocabulary that have a vector.

    Attributes:
        ids: Their ids. Shape: (found,).
        rows: The row of the vector of each. Shape: (found,).
    """

    ids: NDArray[np.int64]
    rows: NDArray[np.int64]


class Coverage(NamedTuple):
    """The share of a corpus that has a vector, in percent, by the step of the look-up.

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


def look_up(tokenizer: WordCharTokenizer, words: Sequence[str]) -> _Found:
    """Find a vector for each word of a tokenizer's vocabulary, under the forms that it looks words up by.

    Args:
        tokenizer: The tokenizer.
        words: The words that have a vector, by row.
    """
    known = ((word, index) for word, index in tokenizer.get_vocab().items() if index > UNKNOWN_ID)
    forms = tokenizer.lookup.forms
    return look_up_forms(((index, forms(word)) for word, index in known), words)


def look_up_forms(forms: Iterable[tuple[int, Sequence[str]]], words: Sequence[str]) -> _Found:
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
    return _Found(ids, rows)


def coverage_of(tokenizer: WordCharTokenizer, words: Iterable[str], sentences: Iterable[Sequence[str]]) -> Coverage:
    """Return the share of a corpus that has a vector, by the first step of the look-up that finds one.

    Args:
        tokenizer: The tokenizer, whose policies are the steps.
        words: The words that have a vector.
        sentences: The words of each sentence.
    """
    known = set(words)
    counts = Counter(chain.from_iterable(sentences))
    forms, steps = tokenizer.lookup.forms, ["exact", "folded", *tokenizer.init_kwargs["fallback"]]
    tokens, types = dict.fromkeys([*steps, "none"], 0), dict.fromkeys([*steps, "none"], 0)
    for word, count in counts.items():
        step = next((step for step, form in zip(steps, forms(word), strict=True) if form in known), "none")
        tokens[step] += count
        types[step] += 1
    return Coverage(_shares(tokens), _shares(types))


def _shares(counts: dict[str, int]) -> dict[str, float]:
    total = max(sum(counts.values()), 1)
    return {step: 100 * count / total for step, count in counts.items()}


def join(tables: Sequence[Vectors], fallback: Sequence[str] = ()) -> Vectors:
    """Concatenate the vectors that each word has in several tables.

    Tables differ in scale, and the numbers of one would drown those of another. So each is divided by the root mean
    square of its own; where it lacks a word, there are zeros.

    Args:
        tables: The tables, at least two. The words come in their order, those of the first at the beginning.
        fallback: Further forms to look a word up by in each table: lower, zero, lower_zero.

    Raises:
        DataError: If there is nothing to join.
    """
    if len(tables) < 2:
        raise DataError("name at least two sources of vectors to join.")
    words = list(dict.fromkeys(word for table in tables for word in table.words))
    forms = WordCharTokenizer.from_corpus([], fallback=fallback).lookup.forms
    return Vectors(words, np.concatenate([_laid_out(table, [forms(word) for word in words]) for table in tables], 1))


def _laid_out(table: Vectors, forms: Sequence[Sequence[str]]) -> NDArray[np.float32]:
    """The vectors of a table for words of such forms, the first that it has counting."""
    values = table.matrix.astype(np.float32)
    scale = float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) if values.size else 0.0
    laid_out = np.zeros((len(forms), table.dim), dtype=np.float32)
    found = look_up_forms(enumerate(forms), table.words)
    laid_out[found.ids] = values[found.rows] / (scale or 1.0)
    return laid_out
