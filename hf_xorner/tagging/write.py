"""Write records with their tags or entities, in the format of the input or another."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..corpora.formats.tables import ParquetRows
from ..corpora.schemes import OUTSIDE_TAG
from ..entities import Annotation
from ..errors import DataError
from .read import Record, RecordBlock

SPANS, CONLL, SAME = "spans", "conll", "same"
OUTPUTS = (SPANS, CONLL, SAME)
_ENTITIES, _TAGS = "predicted_entities", "predicted_tags"
_SCORE_DIGITS = 6
_to_json = json.JSONEncoder(ensure_ascii=False).encode


class Form(NamedTuple):
    """The form of one output.

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
        found: Their annotations; None for records without anything to tag.
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
    return _line({name: record.item, "entities": _objects(found, name == "words")})


def _conll(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """Return a line for each word with its tag, and an empty line after each record."""
    if found is None:
        return b"\n" if record.fault else b""
    item = record.item
    words = [item[start:end] for start, end in found.places.tolist()] if isinstance(item, str) else item or []
    lines = [f"{word}\t{tag}\n" for word, tag in zip(words, _tags(found, labels), strict=True)]
    return "".join([*lines, "\n"]).encode()


def _columns(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """Return the lines of the input, with a column added to those of words."""
    if record.fault:
        return record.form
    block: RecordBlock = record.form
    tags = [] if found is None else _tags(found, labels)
    lines = list(block.lines)
    for place, tag in [*zip(block.words, tags, strict=True), *((place, OUTSIDE_TAG) for place in block.documents)]:
        bare = lines[place].rstrip("\r")
        end = lines[place][len(bare) :]
        bare = bare if block.separator == "\t" else bare.rstrip(" \t")
        lines[place] = f"{bare}{block.separator}{tag}{end}"
    return "\n".join(lines).encode()


def _jsonl(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """Return the line of the input with a field added to its object, and nothing else changed."""
    if record.fault:
        line = record.form.decode("utf-8", "replace").rstrip("\r\n")
        return _line({"line": line, "error": record.fault, added_field(False, form): []})
    line = record.form
    if found is None:
        return line.encode()
    name = added_field(isinstance(record.item, list), form)
    end = line.rindex("}")
    return f"{line[:end].rstrip()}, {_to_json(name)}: {_to_json(_value(record, found, labels))}{line[end:]}".encode()


def _values(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """Return the row's value of the added column."""
    return _line(None if found is None else _value(record, found, labels))


_WRITERS: dict[str, Callable[[Record, Annotation | None, Sequence[str], Form], bytes]] = {
    SPANS: _spans,
    CONLL: _conll,
    "columns": _columns,
    "jsonl": _jsonl,
    "parquet": _values,
}


def added_field(words: bool, form: Form) -> str:
    """Return the name of the field that is added to a text or to words."""
    return form.field or (_TAGS if words else _ENTITIES)


def _value(record: Record, found: Annotation, labels: Sequence[str]) -> list[Any]:
    """Return the value of the added field: a tag for each given word, or the entities of a text."""
    return _tags(found, labels) if isinstance(record.item, list) else _objects(found, False)


def _tags(found: Annotation, labels: Sequence[str]) -> list[str]:
    return [labels[label] for label in found.labels.tolist()]


def _objects(found: Annotation, words: bool) -> list[dict[str, Any]]:
    names = ("label", "start", "end", "text", *(("word_start", "word_end") if words else ()))
    return [
        # The digits after these may depend on the number of threads.
        {**{name: getattr(entity, name) for name in names}, "score": round(entity.score, _SCORE_DIGITS)}
        for entity in found.entities
    ]


def _line(value: Any) -> bytes:
    return f"{_to_json(value)}\n".encode()


_ENTITY = pa.struct(
    [("label", pa.string()), ("start", pa.int64()), ("end", pa.int64()), ("text", pa.string()), ("score", pa.float64())]
)


def add_column(source: Path, values: Path, target: Path, name: str, words: bool, first: int) -> None:
    """Write a copy of rows of a Parquet file with one more column, a batch of rows at a time.

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
        for table in rows.batches(rows.schema.names):
            skipped = min(first, len(table))
            first -= skipped
            found = [json.loads(line) for line in islice(file, len(table) - skipped)]
            if found:
                rest = table.slice(skipped, len(found)).append_column(name, pa.array(found, kind))
                writer.write_table(rest.cast(schema))
        if first or file.read(1):
            raise DataError("the Parquet file has changed while it was tagged; start again with overwrite.")
