"""What the text formats cannot hold, found before anything is written."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from ..errors import DataError
from .batches import FlatBatch, flat_batches, label_names_of
from .chunks import is_chunked, types_of
from .columns import DOCUMENT_START


class _Limit(NamedTuple):
    """A pattern (of RE2) that a text must not have, and what is wrong with a text that has it."""

    pattern: str
    fault: str


_EMPTY = _Limit("^$", "is empty")
_MARK = _Limit(r"\x{FEFF}", "holds a byte-order mark")
_LINE = (_Limit(r"\t", "holds a TAB"), _Limit(r"[\n\r]", "holds a line break"), _MARK)
_BLANK = _Limit(" ", "holds a blank")
_BLANK_RUN = _Limit("  ", "holds two blanks in a row")
_DOCUMENT = _Limit(f"^{DOCUMENT_START}( |$)", "would be read as the beginning of a document")
_COMMENT = _Limit("^#", "would be read as a comment")
_HIDDEN = _Limit(r"^\[WORD\]$", "would be read as a word that was taken out")
_BRACKET = _Limit(r"[()*]", "holds a bracket or a star")
_ONLY_BLANKS = _Limit(r"^[\pZ\t\n\v\f\r\x{85}]*$", "holds nothing but blanks")


class _Limits(NamedTuple):
    """What a format cannot hold, by what it is in."""

    token: tuple[_Limit, ...] = ()
    pos_tag: tuple[_Limit, ...] = ()
    tag: tuple[_Limit, ...] = ()
    doc_id: tuple[_Limit, ...] = ()
    chunks_only: bool = False
    empty_sentences: bool = True
    # Whether a sentence without a document may follow one that has one.
    documents_end: bool = True


_LIMITS: Mapping[tuple[str, str], _Limits] = {
    ("columns", "tab"): _Limits(
        token=(_EMPTY, *_LINE, _DOCUMENT),
        pos_tag=_LINE,
        tag=(_EMPTY, *_LINE),
        doc_id=_LINE,
        empty_sentences=False,
        documents_end=False,
    ),
    ("columns", "blank"): _Limits(
        token=(_EMPTY, *_LINE, _BLANK, _DOCUMENT),
        pos_tag=(_EMPTY, *_LINE, _BLANK),
        tag=(_EMPTY, *_LINE, _BLANK),
        doc_id=(*_LINE, _BLANK_RUN),
        empty_sentences=False,
        documents_end=False,
    ),
    ("conll2012", "tab"): _Limits(
        token=(_EMPTY, *_LINE, _BLANK, _HIDDEN),
        pos_tag=(_EMPTY, *_LINE, _BLANK),
        tag=(_EMPTY, *_LINE, _BLANK, _BRACKET),
        doc_id=(_EMPTY, *_LINE, _BLANK, _COMMENT),
        chunks_only=True,
        empty_sentences=False,
    ),
    ("jsonl", "tab"): _Limits(token=(_EMPTY, _MARK), pos_tag=(_EMPTY, _MARK), tag=(_EMPTY, _MARK), doc_id=(_MARK,)),
    ("spans", "tab"): _Limits(
        token=(_EMPTY, _MARK), pos_tag=(_EMPTY, _MARK), tag=(_ONLY_BLANKS, _MARK), doc_id=(_MARK,), chunks_only=True
    ),
}


def check_split(dataset: Dataset, split: str, format: str, separator: str) -> None:
    """Refuse a split that a text format cannot hold, so that reading would not give it back.

    Args:
        dataset: The split.
        split: Its name, for messages.
        format: The format.
        separator: What separates columns.

    Raises:
        DataError: For the first row that cannot be held, or a label.
    """
    limits = _LIMITS[format, separator]
    what_holds = format if separator == "tab" else "columns separated by blanks"
    advice = f"which {what_holds} cannot hold; write parquet instead."
    _check_labels(dataset, split, format, limits, advice)
    if not len(dataset):
        raise DataError(f"{split}: the split is empty, {advice}")
    before: str | None = None
    for batch in flat_batches(dataset, split):
        if not limits.empty_sentences and (batch.lengths == 0).any():
            raise DataError(f"{batch.place_of_sentence(int(batch.lengths.argmin()))}: the sentence is empty, {advice}")
        for values, patterns, what, place in (
            (batch.tokens, limits.token, "token", batch.place),
            (batch.pos_tags, limits.pos_tag, "part of speech", batch.place),
            (batch.doc_ids, limits.doc_id, "document", batch.place_of_sentence),
        ):
            if values is not None and (found := _first(values, patterns)):
                index, limit = found
                raise DataError(f"{place(index)}: the {what} {values[index].as_py()!r} {limit.fault}, {advice}")
        if batch.doc_ids is not None:
            if not limits.documents_end:
                _check_no_document_ends(batch, batch.doc_ids, before, advice)
            before = batch.doc_ids[-1].as_py()


def _check_labels(dataset: Dataset, split: str, format: str, limits: _Limits, advice: str) -> None:
    labels = label_names_of(dataset, split)
    chunked = is_chunked(labels)
    if limits.chunks_only and not chunked:
        raise DataError(f"{split}: plain tags such as {labels[0]!r}, but {format} holds entities only; write jsonl.")
    names = types_of(labels) if chunked else labels
    if names and (found := _first(pa.array(names), limits.tag)):
        index, limit = found
        raise DataError(f"{split}: the {'type' if chunked else 'tag'} {names[index]!r} {limit.fault}, {advice}")


def _check_no_document_ends(batch: FlatBatch, doc_ids: pa.Array, before: str | None, advice: str) -> None:
    known = doc_ids.is_valid().to_numpy(zero_copy_only=False)
    ended = np.flatnonzero(~known & np.append(before is not None, known[:-1]))
    if len(ended):
        place = batch.place_of_sentence(int(ended[0]))
        raise DataError(f"{place}: the sentence belongs to no document after one that does, {advice}")


def _first(values: pa.Array, limits: Sequence[_Limit]) -> tuple[int, _Limit] | None:
    """Return the index of the first text that has one of the patterns, and which, or None."""
    if not limits:
        return None
    # One look for all patterns: faults are rare, and only they need telling apart.
    faulty = pc.match_substring_regex(values, "|".join(limit.pattern for limit in limits))
    index = pc.index(faulty, True).as_py()
    if index < 0:
        return None
    text = values[index]
    return index, next(limit for limit in limits if pc.match_substring_regex(text, limit.pattern).as_py())
