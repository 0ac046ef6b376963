"""Vectors of several files side by side, each on the same scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..models.tokenization_word_char import WordCharTokenizer
from .vector_files import Vectors
from .vector_lookup import look_up_forms


def join(tables: Sequence[Vectors], fallback: Sequence[str] = ()) -> Vectors:
    """Give every word of any table its vectors of all of them, side by side.

    Tables differ in scale, and the numbers of one would drown those of another. So each is divided by the root mean
    square of its own; where it lacks a word, there are zeros.

    Args:
        tables: The tables, at least two. The words come in their order, those of the first at the beginning.
        fallback: Further forms to look a word up by in each table: lower, zero, lower_zero.

    Raises:
        DataError: If there is nothing to join.
    """
    if len(tables) < 2:
        raise DataError("there is one source of vectors; name those that are to stand beside it.")
    words = list(dict.fromkeys(word for table in tables for word in table.words))
    forms = WordCharTokenizer.from_corpus([], fallback=fallback).forms
    return Vectors(words, np.concatenate([_laid_out(table, [forms(word) for word in words]) for table in tables], 1))


def _laid_out(table: Vectors, forms: Sequence[Sequence[str]]) -> NDArray[np.float32]:
    """The vectors of a table for words of such forms, the first that it has counting."""
    values = table.matrix.astype(np.float32)
    scale = float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) if values.size else 0.0
    laid_out = np.zeros((len(forms), table.dim), dtype=np.float32)
    found = look_up_forms(enumerate(forms), table.words)
    laid_out[found.ids] = values[found.rows] / (scale or 1.0)
    return laid_out
