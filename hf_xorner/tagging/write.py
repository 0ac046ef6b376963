"""Write records with their tags or entities, in the format of the input or another."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..corpora.formats.tables import ParquetRows
from ..corpora.schemes import OUTSIDE_TAG
from ..errors import DataError
from ..tagger import Annotation, Entity
from .read import Record, RecordBlock

SPANS, CONLL, SAME = "spans", "conll", "same"
OUTPUTS = (SPANS, CONLL, SAME)
ENTITIES, TAGS = "predicted_entities", "predicted_tags"
_SCORE_DIGITS = 6
_to_json = json.JSONEncoder(ensure_ascii=False).encode


class Form(NamedTuple):
    """The form in which one input is written.

    Attributes:
        format: One of `OUTPUTS`.
        kind: The kind of the source.
        compressed: The file is compressed by gzip.
        field: The name of the added field, if it was given.
    """

    format: str
    kind: str
    compressed: bool
    field: str | None


def written(records: Sequence[Record], found: Sequence[Annotation | None], labels: Sequence[str], form: Form) -> bytes:
    """Return tagged records as a part of a file.

    Args:
        records: The records.
        found: Their annotations; None where there was nothing to tag.
        labels: The names of the labels.
        form: The form of the output.
    """
    write = _WRITERS[form.format if form.format in (SPANS, CONLL) else form.kind]
    text = b"".join([write(*pair, labels, form) for pair in zip(records, found, strict=True)])
    # Each part is a gzip member of its own, so that a file can be cut after any of them; without a time stamp.
    return gzip.compress(text, mtime=0) if form.compressed else text


def _spans(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """Return an object: the text or the words, and the entities."""
    if record.fault:
        return _line({"error": record.fault, "entities": []})
    if found is None:
        return b""
    name = "text" if isinstance(record.item, str) else "words"
    return _line({name: record.item, "entities": _objects(found.entities, name == "words")})


def _conll(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """Return a line for each word with its tag, and an empty line after each record."""
    if found is None:
        return b"\n" if record.fault else b""
    item = record.item
    if isinstance(item, str):
        words: Sequence[str] = [item[start:end] for start, end in found.places.tolist()]
    else:
        words = item or ()
    lines = [f"{word}\t{labels[label]}\n" for word, label in zip(words, found.labels.tolist(), strict=True)]
    return "".join([*lines, "\n"]).encode()


def _columns(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """Return the lines of the input, with a column added to those of words."""
    if record.fault:
        return record.form
    block: RecordBlock = record.form
    tags = [] if found is None else [labels[label] for label in found.labels.tolist()]
    lines = list(block.lines)
    for place, tag in [*zip(block.words, tags, strict=True), *((place, OUTSIDE_TAG) for place in block.documents)]:
        bare = lines[place].rstrip("\r")
        end = lines[place][len(bare) :]
        bare = bare if block.separator == "\t" else bare.rstrip(" \t")
        lines[place] = f"{bare}{block.separator}{tag}{end}"
    return "\n".join(lines).encode()


def _jsonl(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """Return the line of the input with a field added to its object and all else unchanged."""
    if record.fault:
        line = record.form.decode("utf-8", "replace").rstrip("\r\n")
        return _line({"line": line, "error": record.fault, form.field or ENTITIES: []})
    if found is None:
        return record.form.encode()
    line, _ = record.form
    name, value = _value(record, found, labels, form)
    end = line.rindex("}")
    return f"{line[:end].rstrip()}, {_to_json(name)}: {_to_json(value)}{line[end:]}".encode()


def _values(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """Return the row's value of the added column."""
    return _line(None if found is None else _value(record, found, labels, form)[1])


_WRITERS: dict[str, Callable[[Record, Annotation | None, Sequence[str], Form], bytes]] = {
    SPANS: _spans,
    CONLL: _conll,
    "columns": _columns,
    "jsonl": _jsonl,
    "parquet": _values,
}


def added_field(words: bool, form: Form) -> str:
    """Return the name of the field that is added to a text or to words."""
    return form.field or (TAGS if words else ENTITIES)


def _value(record: Record, found: Annotation, labels: Sequence[str], form: Form) -> tuple[str, Any]:
    """Return the name and the value of the added field: a tag for each given word, or the entities of a text."""
    words = isinstance(record.item, list)
    name = added_field(words, form)
    return name, [labels[label] for label in found.labels.tolist()] if words else _objects(found.entities, False)


def _objects(entities: Sequence[Entity], words: bool) -> list[dict[str, Any]]:
    found = []
    for entity in entities:
        one: dict[str, Any] = {"label": entity.label, "start": entity.start, "end": entity.end, "text": entity.text}
        if words:
            one |= {"word_start": entity.word_start, "word_end": entity.word_end}
        # The digits after these may depend on the number of threads.
        one["score"] = round(entity.score, _SCORE_DIGITS)
        found.append(one)
    return found


def _line(value: Any) -> bytes:
    return f"{_to_json(value)}\n".encode()


# The most rows and bytes of a row group.
_GROUP_ROWS, _GROUP_BYTES = 1 << 16, 1 << 25
_ENTITY = pa.struct(
    [("label", pa.string()), ("start", pa.int64()), ("end", pa.int64()), ("text", pa.string()), ("score", pa.float64())]
)


def add_column(source: Path, values: Path, target: Path, name: str, words: bool, first: int) -> None:
    """Write a copy of rows of a Parquet file with one more column.

    Args:
        source: The Parquet file.
        values: The values, one in JSON a line.
        target: The file to write.
        name: The name of the column.
        words: The values are tags of words instead of entities of texts.
        first: The row of the first value.
    """
    kind = pa.list_(pa.string() if words else _ENTITY)
    rows = ParquetRows(source)
    schema = rows.schema.append(pa.field(name, kind))
    # The metadata of datasets does not describe the new column.
    schema = schema.with_metadata({k: v for k, v in (schema.metadata or {}).items() if k != b"huggingface"})
    with values.open("rb") as file, pq.ParquetWriter(target, schema) as writer:
        for group in _groups(_with_values(rows, file, name, kind, first)):
            writer.write_table(group.cast(schema))


def _with_values(rows: ParquetRows, file: IO[bytes], name: str, kind: pa.DataType, first: int) -> Iterator[pa.Table]:
    for table in rows.batches(rows.schema.names):
        skipped = min(first, len(table))
        first -= skipped
        values = [json.loads(line) for line in islice(file, len(table) - skipped)]
        if values:
            yield table.slice(skipped, len(values)).append_column(name, pa.array(values, kind))
    if first or file.read(1):
        raise DataError("the Parquet file has changed while it was tagged; start again with overwrite.")


def _groups(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= _GROUP_ROWS or sum(table.nbytes for table in held) >= _GROUP_BYTES:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
