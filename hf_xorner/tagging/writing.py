"""How records are written with what was found in them."""

import gzip
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..tagger import Annotation, Entity
from .options import CONLL, SPANS
from .sources import Block, Record

ENTITIES, TAGS = "predicted_entities", "predicted_tags"
OUTSIDE = "O"
_SCORE_DIGITS = 6
_to_json = json.JSONEncoder(ensure_ascii=False).encode


class Form(NamedTuple):
    """How one input is written.

    Attributes:
        format: One of `options.OUTPUTS`.
        kind: The kind of the source.
        compressed: Whether the file is to be compressed by gzip.
        field: The name of the added field, if it has been told.
    """

    format: str
    kind: str
    compressed: bool
    field: str | None


def written(records: Sequence[Record], found: Sequence[Annotation | None], labels: Sequence[str], form: Form) -> bytes:
    """Return records with what was found in each, as a part of a file.

    Args:
        records: The records.
        found: What was found; None where there was nothing to be tagged.
        labels: The names of the labels.
        form: How they are written.
    """
    write = _WRITERS[form.format if form.format in (SPANS, CONLL) else form.kind]
    text = b"".join([write(*pair, labels, form) for pair in zip(records, found, strict=True)])
    # Each part is a member of its own, so that a file can be cut after any of them; without the time of writing.
    return gzip.compress(text, mtime=0) if form.compressed else text


def _spans(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """An object a record: the text or the words, and the entities."""
    if record.fault:
        return _line({"error": record.fault, "entities": []})
    if found is None:
        return b""
    name = "text" if isinstance(record.item, str) else "words"
    return _line({name: record.item, "entities": _objects(found.entities, name == "words")})


def _conll(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """A word and its tag a line, and an empty line after each record, be it ever so empty."""
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
    """The lines of the input, those of words with one column more."""
    if record.fault:
        return record.form
    block: Block = record.form
    tags = [] if found is None else [labels[label] for label in found.labels.tolist()]
    lines = list(block.lines)
    for place, tag in [*zip(block.words, tags, strict=True), *((place, OUTSIDE) for place in block.documents)]:
        bare = lines[place].rstrip("\r")
        end = lines[place][len(bare) :]
        bare = bare if block.separator == "\t" else bare.rstrip(" \t")
        lines[place] = f"{bare}{block.separator}{tag}{end}"
    return "\n".join(lines).encode()


def _jsonl(record: Record, found: Annotation | None, labels: Sequence[str], form: Form) -> bytes:
    """The line of the input, whose object has one field more; nothing else of it is written anew."""
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
    """What will be the row's value of the added column."""
    return _line(None if found is None else _value(record, found, labels, form)[1])


_WRITERS: dict[str, Callable[[Record, Annotation | None, Sequence[str], Form], bytes]] = {
    SPANS: _spans,
    CONLL: _conll,
    "columns": _columns,
    "jsonl": _jsonl,
    "parquet": _values,
}


def added_field(words: bool, form: Form) -> str:
    """The name of the field that is added to a text or to words."""
    return form.field or (TAGS if words else ENTITIES)


def _value(record: Record, found: Annotation, labels: Sequence[str], form: Form) -> tuple[str, Any]:
    """The name and the value of the added field: a tag for each given word, or the entities of a text."""
    words = isinstance(record.item, list)
    name = added_field(words, form)
    return name, [labels[label] for label in found.labels.tolist()] if words else _objects(found.entities, False)


def _objects(entities: Sequence[Entity], words: bool) -> list[dict[str, Any]]:
    found = []
    for entity in entities:
        one: dict[str, Any] = {"label": entity.label, "start": entity.start, "end": entity.end, "text": entity.text}
        if words:
            one |= {"word_start": entity.word_start, "word_end": entity.word_end}
        # Threads that divide the work otherwise may change what comes after these digits.
        one["score"] = round(entity.score, _SCORE_DIGITS)
        found.append(one)
    return found


def _line(value: Any) -> bytes:
    return f"{_to_json(value)}\n".encode()
