"""Corpora as text: columns, CoNLL-2012, and JSON Lines of words and tags or of character spans."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import NDArray

from .batches import DOC_ID, POS_TAGS, TAGS, TOKENS, FlatBatch, flat_batches, label_names_of
from .chunks import BRACKETS, chunks_of, from_iob2, types_of
from .columns import DOCUMENT_START

SEPARATORS = {"tab": "\t", "blank": " "}

# The reader names the document "id" for part 0 of id, and "id#3" for part 3.
_PART = re.compile(r"(.+)#([1-9][0-9]*)", re.DOTALL)
NO_DOCUMENT = "-"
_END_DOCUMENT = "#end document\n"
_to_json = json.JSONEncoder(ensure_ascii=False).encode


class Form(NamedTuple):
    """How a text is to be written.

    Attributes:
        scheme: The scheme of the tags.
        separator: What stands between columns: "tab" or "blank".
    """

    scheme: str
    separator: str


def as_columns(dataset: Dataset, split: str, form: Form) -> Iterator[pa.Buffer]:
    """Yield a split as CoNLL columns: the word, its part of speech if there is one, its tag; in UTF-8."""
    labels = label_names_of(dataset, split)
    separator = SEPARATORS[form.separator]
    numbered = documents_are_numbered(dataset)
    fields = [DOCUMENT_START, *(["-X-"] if POS_TAGS in dataset.column_names else []), "O"]

    def opening(doc_id: str) -> str:
        return f"{separator.join(fields if numbered else [DOCUMENT_START, f'({doc_id})'])}\n\n"

    before: str | None = None
    for batch in flat_batches(dataset, split):
        tag_ids, tags = from_iob2(batch.ids, batch.lengths, labels, form.scheme)
        heads = []
        if batch.doc_ids is not None:
            changes = _document_changes(batch.doc_ids, before)
            heads = [_at_sentences({row: opening(str(doc_id)) for row, doc_id in changes.items()}, batch)]
            before = batch.doc_ids[-1].as_py()
        middle = [] if batch.pos_tags is None else [separator, batch.pos_tags]
        tails = _with_line_ends([f"{separator}{tag}" for tag in tags], tag_ids, batch)
        yield _text_of(heads, batch.tokens, middle, tails)


def as_conll2012(dataset: Dataset, split: str, form: Form) -> Iterator[pa.Buffer]:
    """Yield a split as the twelve columns of CoNLL-2012, of which words, parts of speech and entities are filled.

    Sentences without a document stand outside of any. A file that would begin with one begins with a document without
    sentences instead, as the first line is what the format is known by.
    """
    labels = label_names_of(dataset, split)
    before: str | None = None
    for batch in flat_batches(dataset, split):
        tag_ids, tags = from_iob2(batch.ids, batch.lengths, labels, BRACKETS)
        doc_ids = batch.doc_ids if batch.doc_ids is not None else pa.nulls(len(batch.lengths), pa.string())
        if batch.first_row == 0 and not doc_ids[0].is_valid:
            yield pa.py_buffer(f"{_begin_document(NO_DOCUMENT)}{_END_DOCUMENT}\n".encode())
        openings = {}
        for row, doc_id in _document_changes(doc_ids, before).items():
            end = "" if before is None else _END_DOCUMENT
            openings[row] = end + ("" if doc_id is None else _begin_document(doc_id))
            before = doc_id
        heads = [_at_sentences(openings, batch), _document_columns(doc_ids, batch), _word_numbers(batch), " "]
        middle = [" ", "-" if batch.pos_tags is None else batch.pos_tags]
        tails = _with_line_ends([f" * - - - - {tag} -" for tag in tags], tag_ids, batch)
        yield _text_of(heads, batch.tokens, middle, tails)
    if before is not None:
        yield pa.py_buffer(_END_DOCUMENT.encode())


def as_jsonl(dataset: Dataset, split: str, form: Form) -> Iterator[bytes]:
    """Yield a split as JSON Lines of words and tags, with parts of speech and document if there are any; in UTF-8."""
    labels = label_names_of(dataset, split)
    for batch in flat_batches(dataset, split):
        tag_ids, tags = from_iob2(batch.ids, batch.lengths, labels, form.scheme)
        written = pa.array(map(_to_json, tags), pa.string()).take(pa.array(tag_ids))
        yield _json_lines([(TOKENS, _json_of_words(batch.tokens, batch)), (TAGS, _json_lists(written, batch))], batch)


def as_spans(dataset: Dataset, split: str, form: Form) -> Iterator[bytes]:
    """Yield a split as JSON Lines of a text, its entities as ``[start, end, label]`` and its words' places; in UTF-8.

    The text is the words with one blank between them; places count its characters, as Python does.
    """
    labels = label_names_of(dataset, split)
    types = pa.array(map(_to_json, types_of(labels)), pa.string())
    for batch in flat_batches(dataset, split):
        texts = pc.binary_join(_lists(batch.tokens, batch.lengths), " ").to_pylist()
        characters = pc.utf8_length(batch.tokens).to_numpy(zero_copy_only=False).astype(np.int64)
        # Where the words end if a blank follows each, counted through the batch, then from the sentence's beginning.
        ends = np.cumsum(characters + 1) - 1
        ends -= np.repeat(np.append(0, ends + 1)[batch.ends - batch.lengths], batch.lengths)
        starts = ends - characters
        chunks = chunks_of(batch.ids, batch.lengths, labels)
        spans = _bracketed(starts[chunks.first], ends[chunks.end - 1], types.take(pa.array(chunks.type)))
        per_sentence = np.diff(np.searchsorted(chunks.first, np.append(0, batch.ends)))
        yield _json_lines(
            [
                ("text", [_to_json(text) for text in texts]),
                ("spans", _json_lists(spans, batch, per_sentence)),
                (TOKENS, _json_lists(_bracketed(starts, ends), batch)),
            ],
            batch,
        )


TEXT_FORMATS: dict[str, Callable[[Dataset, str, Form], Iterator[Any]]] = {
    "columns": as_columns,
    "conll2012": as_conll2012,
    "jsonl": as_jsonl,
    "spans": as_spans,
}


def documents_are_numbered(dataset: Dataset) -> bool:
    """Tell whether the documents of a split, in their order, bear the numbers from 0 that reading gives them."""
    if DOC_ID not in dataset.column_names:
        return False
    before: str | None = None
    count = 0
    for table in dataset.select_columns([DOC_ID]).with_format("arrow").iter(100_000):
        doc_ids = table.column(DOC_ID).combine_chunks()
        for doc_id in _document_changes(doc_ids, before).values():
            if doc_id != str(count):
                return False
            count += 1
        before = doc_ids[-1].as_py()
    return True


def _document_changes(doc_ids: pa.Array, before: str | None) -> dict[int, str | None]:
    """Return the sentences that do not belong to the document of the one before, and the document of each.

    Args:
        doc_ids: The document of each sentence.
        before: The document of the sentence before them.
    """
    encoded = doc_ids.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    names = [*encoded.dictionary.to_pylist(), None]
    rows = np.flatnonzero(np.append(names[codes[0]] != before, codes[1:] != codes[:-1]))
    return {row: names[codes[row]] for row in rows.tolist()}


def _begin_document(doc_id: str) -> str:
    name, part = _name_and_part(doc_id)
    return f"#begin document ({name}); part {part:03d}\n"


def _name_and_part(doc_id: str) -> tuple[str, int]:
    found = _PART.fullmatch(doc_id)
    return (found[1], int(found[2])) if found else (doc_id, 0)


def _document_columns(doc_ids: pa.Array, batch: FlatBatch) -> pa.Array:
    """Return the first two columns of CoNLL-2012 for every token: the document and its part."""
    encoded = doc_ids.fill_null(NO_DOCUMENT).dictionary_encode()
    names = pa.array(["{} {} ".format(*_name_and_part(name)) for name in encoded.dictionary.to_pylist()], pa.string())
    return names.take(pa.array(np.repeat(encoded.indices.to_numpy(zero_copy_only=False), batch.lengths)))


def _word_numbers(batch: FlatBatch) -> pa.Array:
    numbers = np.arange(len(batch.tokens)) - np.repeat(batch.ends - batch.lengths, batch.lengths)
    return pa.array(numbers).cast(pa.string())


def _at_sentences(texts: dict[int, str], batch: FlatBatch) -> pa.Array:
    """Return an empty string for every token but the first ones of some sentences, which get the text of theirs."""
    choice = np.zeros(len(batch.tokens), dtype=np.int64)
    choice[(batch.ends - batch.lengths)[list(texts)]] = np.arange(1, len(texts) + 1)
    return pa.array(["", *texts.values()]).take(pa.array(choice))


def _with_line_ends(tails: list[str], choice: NDArray[np.int64], batch: FlatBatch) -> pa.Array:
    """Return the end of every token's line, and after the last line of a sentence an empty one."""
    closes = np.zeros(len(choice), dtype=np.int64)
    closes[batch.ends - 1] = 1
    lines = [f"{tail}{end}" for end in ("\n", "\n\n") for tail in tails]
    return pa.array(lines).take(pa.array(choice + len(tails) * closes))


def _text_of(heads: Sequence[Any], tokens: pa.Array, middle: Sequence[Any], tails: pa.Array) -> pa.Buffer:
    """Join columns to lines and all lines to one text."""
    lines = pc.binary_join_element_wise(*heads, tokens, *middle, tails, "")
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(whole, "")[0].as_buffer()


def _lists(values: pa.Array, lengths: NDArray[np.int64]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32)), values)


def _bracketed(starts: NDArray[np.int64], ends: NDArray[np.int64], *more: pa.Array) -> pa.Array:
    """Return pairs of numbers, and what else belongs to them, as JSON lists."""
    inside = pc.binary_join_element_wise(pa.array(starts).cast("string"), pa.array(ends).cast("string"), *more, ", ")
    return pc.binary_join_element_wise("[", inside, "]", "")


def _json_of_words(words: pa.Array, batch: FlatBatch) -> list[str]:
    flat = words.to_pylist()
    return [_to_json(flat[first:end]) for first, end in pairwise([0, *batch.ends.tolist()])]


def _json_lists(values: pa.Array, batch: FlatBatch, lengths: NDArray[np.int64] | None = None) -> list[str]:
    """Return what is JSON already as one list a sentence."""
    joined = pc.binary_join(_lists(values, batch.lengths if lengths is None else lengths), ", ")
    return [f"[{inside}]" for inside in joined.to_pylist()]


def _json_lines(columns: list[tuple[str, list[str]]], batch: FlatBatch) -> bytes:
    """Return one object a sentence and line: values that are JSON already, parts of speech, and document if known."""
    if batch.pos_tags is not None:
        columns.append((POS_TAGS, _json_of_words(batch.pos_tags, batch)))
    # A name holds no character that JSON would escape.
    values = [[f'"{name}": {value}' for value in column] for name, column in columns]
    if batch.doc_ids is not None:
        doc_ids = batch.doc_ids.to_pylist()
        values.append([f'"{DOC_ID}": {_to_json(doc_id)}' if doc_id is not None else "" for doc_id in doc_ids])
    lines = ["{" + ", ".join(filter(None, row)) + "}\n" for row in zip(*values, strict=True)]
    return "".join(lines).encode()
