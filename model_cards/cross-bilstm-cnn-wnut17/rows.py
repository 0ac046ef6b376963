"""A batch of encoded sentences as output rows: cut and padded as the caller asked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from tokenizers import Encoding
from transformers.utils import PaddingStrategy

#: A sentence has no longest length. A finite number keeps transformers from warning that there is none.
NO_LIMIT = 10**9


class Row(NamedTuple):
    """One output row: the words from first to before last of a batch, a sentence or what truncation left of one."""

    encoding: Encoding
    sentence: int
    first: int
    last: int


def as_batch(text: Any, is_split_into_words: bool) -> tuple[list[Any], bool]:
    """The input as a batch, and whether it came as one."""
    batched = isinstance(text, (list, tuple))
    if is_split_into_words:
        batched = batched and bool(text) and isinstance(text[0], (list, tuple))
    return list(text) if batched else [text], batched


def rows_of(encodings: list[Encoding], limit: int | None, stride: int, side: str, with_overflow: bool) -> list[Row]:
    """The output rows of a batch: its sentences, cut where they exceed a limit that was asked for."""
    rows = []
    begin = 0
    for sentence, encoding in enumerate(encodings):
        size = len(encoding)
        parts = [encoding]
        if limit is not None and size > limit:
            encoding.truncate(limit, stride=stride, direction=side)
            parts += encoding.overflowing if with_overflow else []
        for part in parts:
            first = begin + ((part.word_ids[0] or 0) if 0 < len(part) < size else 0)
            rows.append(Row(part, sentence, first, first + len(part)))
        begin += size
    return rows


def padded_width(
    rows: list[Row], strategy: PaddingStrategy, max_length: int | None, multiple: int | None
) -> int | None:
    """The width that all rows are padded to, or None if each keeps its own."""
    if strategy == PaddingStrategy.DO_NOT_PAD:
        return None
    if strategy == PaddingStrategy.MAX_LENGTH:
        if max_length is None or max_length >= NO_LIMIT:
            raise ValueError('padding="max_length" needs max_length=…, since sentences have no longest length.')
        width = max_length
    else:
        width = max((row.last - row.first for row in rows), default=0)
    return width if not multiple else -(-width // multiple) * multiple


def cut(values: np.ndarray, rows: list[Row], width: int | None, side: str, fill: int) -> Any:
    """Cut the values of all words (N, …) into rows: arrays of their own lengths, or one array (rows, width, …)."""
    if width is None and rows:
        parts = [values[row.first : row.last] for row in rows]
        same = len({len(part) for part in parts}) == 1
        return np.stack(parts) if same else parts
    width = width or 0
    padded = np.full((len(rows), width, *values.shape[1:]), fill, dtype=values.dtype)
    for number, row in enumerate(rows):
        size = row.last - row.first
        start = width - size if side == "left" else 0
        if size > width:
            raise ValueError(
                f"Text {row.sentence} has {size} words, more than max_length={width}; add truncation=True to cut it."
            )
        padded[number, start : start + size] = values[row.first : row.last]
    return padded


def as_list(row: Any, name: str) -> Any:
    """A row as plain Python: offsets as pairs, everything else as (lists of) integers."""
    if not isinstance(row, np.ndarray):
        return row
    return [tuple(pair) for pair in row.tolist()] if name == "offset_mapping" else row.tolist()
