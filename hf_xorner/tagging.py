"""Tag a file, a folder, standard input or a dataset on the Hub as a stream, in constant memory."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import logging
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from .entities import Annotation, BaseTagger, Entities, Entity, NumberByLabel, blocks_of
from .errors import DataError, first_line
from .files import (
    BYTE_ORDER_MARK,
    GZIP_ERRORS,
    check_apart,
    decompressed,
    expanded,
    files_below,
    locked,
    model_folder,
    open_bytes,
    suffix_of,
)
from .options import check_values, number_by_label, option
from .safety import visible

_log = logging.getLogger(__name__)

STDIN = "-"
AUTO = "auto"
OUTPUTS = ("jsonl", "conll", "csv", "colour")
_ROWS = "rows"  # CSV output for CSV input
INPUTS = ("text", "conll", "jsonl", "csv", "parquet")
#: The format of a file by its suffix. Plain text that begins with an object or -DOCSTART- is read as JSON or columns.
KINDS = {
    **dict.fromkeys(("", ".txt"), "text"),
    **dict.fromkeys((".jsonl", ".json", ".ndjson"), "jsonl"),
    **dict.fromkeys((".conll", ".conll03", ".conllu", ".conllup", ".tsv", ".tab", ".col", ".data"), "conll"),
    **dict.fromkeys((".bio", ".bio2", ".iob", ".iob1", ".iob2", ".bioes", ".bilou", ".bmes", ".bmeso"), "conll"),
    **dict.fromkeys((".ner", ".train", ".testa", ".testb", ".annotated"), "conll"),
    ".csv": "csv",
    ".parquet": "parquet",
}
FIELDS = ("text", "tokens", "words")

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+(:\S+)?")
_BLANKS = re.compile(r"[ \t]+")
_WORD = re.compile(r"[^\t\r\n]+")
#: The number of a word in CoNLL-U; of a range of words (1-2), or of a word that is not in the text (1.1).
_NUMBER = re.compile(r"\d+([-.]\d+)?")
_FIRST_NUMBERS = (["0"], ["1"], ["0", "1"], ["1", "2"])
_SURROGATE = re.compile("[\ud800-\udfff]")
_DOCUMENT_START = "-DOCSTART-"
_TAG = re.compile(r"O|\?|[A-Z][-_]\S+")
_SCORE_DIGITS = 6  # further digits may depend on the number of threads


@dataclass
class TaggingOptions:
    """Options of tagging."""

    model: str | None = option(
        None, "A folder, a repository on the Hub, or a model of the package: english (the default) or english-open."
    )
    output: str | None = option(
        None, "The file to write, or the folder if the input is a folder; by default standard output."
    )
    format: str = option(
        AUTO,
        "The format to write: jsonl (an object with the record and its entities), conll (a line per word with its "
        "tag), csv (a line per entity; for CSV, its rows with a column of entities) or colour (the text with coloured "
        "entities, for a terminal); by default by the suffix of the output, else conll for columns, colour in a "
        "terminal, and jsonl otherwise.",
        choices=(AUTO, *OUTPUTS),
    )
    input_format: str = option(AUTO, f"The format to read: {', '.join(INPUTS)}.", choices=(AUTO, *INPUTS))
    field: str | None = option(None, "The field of the texts or words, or the number of the words' column.")
    split: str | None = option(None, "The split of a dataset on the Hub.")
    skip_bad_lines: bool = option(False, "Write bad records without entities, and count them.")
    overwrite: bool = option(False, "Replace outputs that exist.")
    min_score: list[str] = option(
        [],
        "Leave out entities with a lower score: a number from 0 to 1, or a number for each label, such as "
        "PER=0.9 LOC=0.8; by default the min_score in the model's config.json, or else 0.",
        aliases=("--threshold",),
    )
    redact: bool = option(
        False, "Replace entities in the texts: writes one text per line, or JSON Lines with the replaced entities."
    )
    template: str = option(
        "[{label}]",
        "The replacement for redact: {label} is the label of the entity, {number} counts the different entities of a "
        "label in a text.",
    )
    batch_size: int = option(64, "Texts per batch.", bounds=(1, math.inf))
    device: str | None = option(None, "The device of the model, such as cuda; by default the CPU.")

    def __post_init__(self) -> None:
        check_values(self)
        if self.redact and self.format not in (AUTO, "jsonl"):
            raise ValueError(f"redact writes texts or jsonl; leave out format={self.format}.")
        if self.template != TaggingOptions.template and not self.redact:
            raise ValueError("template is the replacement for redact; set redact as well.")

    def least_score(self) -> NumberByLabel | None:
        """Return `min_score` as a number, or numbers by label."""
        return number_by_label(self.min_score, "min_score") if self.min_score else None


@dataclass
class Tally:
    """The counts of a run.

    Attributes:
        records: Number of records that were read.
        words: Number of their words.
        faults: Number of bad records that were skipped.
        first_fault: The error message of the first of them.
    """

    records: int = 0
    words: int = 0
    faults: int = 0
    first_fault: str = ""


class Record(NamedTuple):
    """One record of an input.

    Attributes:
        fields: The record as an object.
        item: Its text, or its list of words; None for a bad record.
        fault: The error message of a bad record.
    """

    fields: dict[str, Any]
    item: str | list[str] | None
    fault: str = ""


#: The annotation of a bad record.
_NOTHING = Annotation(np.zeros((0, 2)), [], np.zeros((0, 2)), Entities())


# --- Inputs and outputs ----------------------------------------------------------------------------------------------


def tag_source(source: str, options: TaggingOptions, tagger: BaseTagger | None = None) -> Tally:
    """Tag a source record by record, and write the results in the same order.

    An output is called ``NAME.partial`` until it is complete. A folder of inputs becomes a folder of outputs; a second
    run writes the missing ones.

    Args:
        source: A file, a folder, a text that contains a blank, ``-`` for standard input, or ``owner/name`` on the Hub.
        options: The options.
        tagger: A tagger to use in place of `options.model`.

    Raises:
        DataError: If the input or the output is invalid, or for the first bad record unless such records are skipped.
        LockedError: If another run is writing the output.
    """
    tally = Tally()
    output = expanded(options.output) if options.output else None
    pairs: list[tuple[str, Path | None]] = [(source, output)]
    if source != STDIN and not _is_text(source) and expanded(source).is_dir():
        pairs = list(_pairs_of_folder(expanded(source), output, options))
    elif output and output.exists() and not (options.overwrite and output.is_file()):  # /dev/null is no file
        raise DataError(f"{output}: exists already; choose another output{', or set overwrite' * output.is_file()}.")
    for name, target in pairs:
        for path in [target.with_name(f"{target.name}{suffix}") for suffix in ("", ".partial", ".lock") if target]:
            source = "/dev/stdin" if name == STDIN or _is_text(name) else name
            check_apart(path, source, model_folder(options.model or "english"))
    tagger = tagger or _loaded(options)
    for name, target in pairs:
        kind, records = _records(name, options)
        format = _format_of(target, kind, options)
        # A progress bar would disturb texts that are shown on the terminal.
        hidden = True if format in ("colour", "txt") else None
        shown = tqdm(records, desc=name, unit=" records", disable=hidden, mininterval=0.5)
        outputs = _outputs(iter(shown), _ROWS if format == kind == "csv" else format, tagger, options, tally)
        if target is None:
            for content in outputs:
                if sys.stdout.isatty() and format != "colour":
                    content = visible(content.decode("utf-8", "replace")).encode()
                sys.stdout.buffer.write(content)
                sys.stdout.buffer.flush()
        else:
            _write_file(target, outputs)
    return tally


def _loaded(options: TaggingOptions) -> BaseTagger:
    """Return the tagger of the options."""
    from .tagger import Tagger  # imports PyTorch

    return Tagger.from_pretrained(options.model or "english", options.device, min_score=options.least_score())


def _pairs_of_folder(folder: Path, output: Path | None, options: TaggingOptions) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder whose outputs are missing, with these outputs."""
    if output is None or output.is_file() or output.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{folder}: is a folder; name another folder as output, outside of it.")
    inputs: dict[Path, Path] = {}
    ignored: list[Path] = []
    for path in files_below(folder):
        name = path.relative_to(folder)
        if options.input_format == AUTO and suffix_of(name) not in KINDS:
            ignored.append(name)
            continue
        kind, _ = _records(str(path), options)
        bare = output / (name.with_suffix("") if name.suffix.lower() == ".gz" else name)
        target = bare.with_suffix(f".{_format_of(None, kind, options)}")
        if target in inputs:
            raise DataError(f"{folder}: {inputs[target]} and {name} have the same output {target}; rename one of them.")
        inputs[target] = name
        if options.overwrite or not target.exists():
            yield str(path), target
    if not inputs:
        raise DataError(f"{folder}: has no files to tag; name another folder, or pass input_format.")
    if ignored:
        _log.warning(
            "%s: %d files are ignored because of their suffix, such as %s; pass input_format to read all files.",
            *(folder, len(ignored), ignored[0]),
        )


def _format_of(output: Path | None, kind: str, options: TaggingOptions) -> str:
    """Return the format to write: of the option, else of the output's suffix, else for the format of the input."""
    target = KINDS.get(suffix_of(output)) if output else None
    if target == "parquet":
        raise DataError(f"{output}: Parquet is not written; name a file of JSON Lines (.jsonl) or CSV (.csv).")
    if options.redact and target in ("csv", "conll"):
        raise DataError(f"{output}: redact writes texts or JSON Lines; name a file .txt or .jsonl.")
    if options.redact:
        return "jsonl" if "jsonl" in (options.format, target) else "txt"
    if options.format != AUTO:
        return options.format
    if target in ("jsonl", "conll", "csv"):
        return target
    if kind == "conll":
        return kind
    return "jsonl" if options.output or not sys.stdout.isatty() else "colour"


def _write_file(output: Path, contents: Iterator[bytes]) -> None:
    """Write an output, which is called ``NAME.partial`` until it is complete."""
    partial = output.with_name(f"{output.name}.partial")
    output.parent.mkdir(parents=True, exist_ok=True)
    with locked(output.with_name(f"{output.name}.lock"), output):
        opened: Any = gzip.open if output.suffix.lower() == ".gz" else open
        partial.unlink(missing_ok=True)  # of a killed run; a link would be followed
        with opened(partial, "xb") as file:
            for content in contents:
                file.write(content)
        os.replace(partial, output)


def _outputs(
    records: Iterator[Record], format: str, tagger: BaseTagger, options: TaggingOptions, tally: Tally
) -> Iterator[bytes]:
    """Tag the records, and yield the output."""
    count = 0
    if format == "csv":
        yield b"record,label,text,start,end,score\n"
    for block in blocks_of(records, options.batch_size * tagger.batches_ahead, lambda record: len(record.item or "")):
        faults = [record.fault for record in block if record.fault]
        if faults and not options.skip_bad_lines:
            raise DataError(faults[0])
        tally.faults += len(faults)
        tally.first_fault = tally.first_fault or next(iter(faults), "")
        items = [record.item for record in block if record.item is not None]
        annotations = tagger.annotate(items, options.batch_size, options.least_score())
        written = []
        for record in block:
            count += 1
            annotation = _NOTHING if record.item is None else next(annotations)
            tally.words += len(annotation.labels)
            if options.redact:
                written.append(_redacted(record, annotation, format, options.template))
            else:
                written.append(_WRITERS[format](record, annotation, count))
        # In rows, bytes that are not UTF-8 are written as they were read; JSON has escapes for lone surrogates.
        yield "".join(written).encode("utf-8", "surrogateescape" if format == _ROWS else "backslashreplace")
        tally.records += len(block)


# --- Reading ---------------------------------------------------------------------------------------------------------


def _is_text(source: str) -> bool:
    """Return True if a source is a text: it contains a blank, and is not the name of a file or folder, or like one."""
    is_name = suffix_of(Path(source)) in KINDS.keys() - {""} or os.path.exists(expanded(source))
    return bool(re.search(r"\s", source)) and not is_name


def _rows_on_the_hub(source: str, options: TaggingOptions) -> Iterator[Record]:
    """Return the records of a split of a dataset on the Hub."""
    # A name with the suffix of a data file is a mistyped path, so the Hub is not asked.
    if not _HUB_NAME.fullmatch(source) or suffix_of(Path(source)) in KINDS.keys() - {""}:
        raise DataError(
            f"{source}: there is no such file; a text on the command line must contain a blank, and not end in the "
            "suffix of a file such as .txt."
        )
    from .corpora.load import load_hub_dataset  # imports datasets

    splits = load_hub_dataset(source, streaming=True)
    split = options.split or (next(iter(splits)) if len(splits) == 1 else None)
    if split not in splits:
        raise DataError(f"{source}: has the splits {', '.join(splits)}; name one of them as split.")
    place = f"{source}, {split}, row "
    return (_record(row, options.field, f"{place}{number}") for number, row in enumerate(splits[split]))


def _records(source: str, options: TaggingOptions) -> tuple[str, Iterator[Record]]:
    """Return the format of a source, and its records."""
    if _is_text(source):
        return "text", iter([_record({"text": source}, "text", "the text")])
    path = expanded(source)
    if source != STDIN and not path.exists():
        return "parquet", _rows_on_the_hub(source, options)
    if options.split:
        raise DataError(f"{source}: split={options.split!r}, but only datasets on the Hub have splits; leave it out.")
    kind = KINDS.get(suffix_of(path), "text") if options.input_format == AUTO else options.input_format
    if kind == "parquet":
        import pyarrow.parquet as pq

        try:
            batches = pq.ParquetFile(path).iter_batches(64)
        except ValueError as error:
            raise DataError(f"{path}: is not Parquet ({first_line(error)}); copy it again.") from None
        rows = (row for batch in batches for row in batch.to_pylist())
        return kind, (_record(row, options.field, f"{path}, row {number}") for number, row in enumerate(rows))
    name = "standard input" if source == STDIN else source
    stream = enumerate(_lines(source), 1)
    head, first = [], ""
    for number, first in stream:
        head.append((number, first))
        if first.strip():
            break
    lines = chain(head, stream)
    kind = _kind_of(first, kind, options) if options.input_format == AUTO else kind
    if kind == "conll":
        return kind, _sentences(lines, name, options.field)
    if kind == "jsonl":
        return kind, _objects(lines, first.lstrip().startswith("["), name, options.field)
    if kind == "csv":
        return kind, _csv_rows(lines, name, options.field)
    if options.field is not None:
        raise DataError(f"{name}: field={options.field!r}, but a line of text has no fields; leave it out.")
    return kind, (_record({"text": line.rstrip("\r\n")}, "text", f"{name}:{number}") for number, line in lines)


def _kind_of(first: str, kind: str, options: TaggingOptions) -> str:
    """Return the format of a file by its first line and the format that its suffix says."""
    if kind == "text" and _BLANKS.split(first.rstrip("\r\n"), maxsplit=1)[0] == _DOCUMENT_START:
        return "conll"
    if kind == "text" and re.match(r'\{\s*"|\[\s*(\{\s*"|$)', first):
        return "jsonl"
    header, column = first.rstrip("\r\n").split("\t"), options.field or "text"
    # Columns whose first word is "text" have a tag, and options name their columns by number.
    is_table = len(header) > 1 and column in header and not column.isdecimal() and not _TAG.fullmatch(header[-1])
    return "csv" if kind == "conll" and is_table else kind


def _lines(source: str) -> Iterator[str]:
    """Yield the lines of a file or of standard input, plain or gzip; bytes that are not UTF-8 become surrogates."""
    opened = nullcontext(decompressed(sys.stdin.buffer)) if source == STDIN else open_bytes(expanded(source))
    try:
        with opened as file:
            for number, line in enumerate(file):
                if not number and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise DataError(f"{source}: is in UTF-16; save it as UTF-8.")
                text = line.decode("utf-8", "surrogateescape")
                yield text if number else text.removeprefix(BYTE_ORDER_MARK)
    except GZIP_ERRORS as error:  # from standard input
        raise DataError(f"standard input: the gzip data are damaged ({error}); compress them again.") from None


def _record(fields: dict[str, Any], field: str | None, place: str) -> Record:
    """Return a record with the text or the words of a field, by default one of `FIELDS`."""
    inner = fields.get("data")  # of a task of Label Studio
    for values in (fields, inner if isinstance(inner, dict) else {}):
        # An empty list comes last: some tools write one beside the text. Others write words as objects.
        for item in sorted(map(values.get, (field,) if field else FIELDS), key=lambda item: item == []):
            if isinstance(item, str) or (isinstance(item, list) and all(isinstance(word, str) for word in item)):
                if _SURROGATE.search("".join(item)):
                    return Record(fields, None, f"{place}: a character is not valid UTF-8; save it as UTF-8.")
                if isinstance(item, list) and not all(map(_WORD.fullmatch, item)):
                    return Record(fields, None, f"{place}: a word is empty, or contains a TAB or a line break.")
                return Record(fields, item)
    present, names = ", ".join(map(str, list(fields)[:8])), field or " or ".join(FIELDS)
    return Record(fields, None, f"{place}: no text or list of words in {names}; name one of {present} as field.")


def _objects(lines: Iterator[tuple[int, str]], is_array: bool, name: str, field: str | None) -> Iterator[Record]:
    """Yield the records of JSON: one object per line, or an array of objects, which is read as a whole."""
    if is_array:
        try:
            values = json.loads("".join(line for _, line in lines))
            lines = ((number, json.dumps(value)) for number, value in enumerate(values, 1))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}: is not JSON ({first_line(error)}).") from None
    for number, line in lines:
        if line.strip():
            place = f"{name}{', record ' if is_array else ':'}{number}"
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield Record({}, None, f"{place}: is not JSON ({first_line(error)}); write one object per line.")
                continue
            no_object = Record({}, None, f"{place}: is a {type(value).__name__}; write objects.")
            yield _record(value, field, place) if isinstance(value, dict) else no_object


def _csv_rows(lines: Iterator[tuple[int, str]], name: str, field: str | None) -> Iterator[Record]:
    csv.field_size_limit(1 << 30)  # the default of 128 kB is too small for texts
    before, header = next(((number - 1, line) for number, line in lines if line.strip()), (0, ""))
    delimiter = max(",;\t", key=header.count)
    reader = csv.DictReader(chain([header], (line for _, line in lines)), delimiter=delimiter, strict=True)
    try:
        if len(names := reader.fieldnames or ()) > len(set(names)):
            raise DataError(f"{name}:{before + 1}: two columns have the same name; rename one of them.")
        for row in reader:
            place, more = f"{name}:{before + reader.line_num}", row.pop(None, [])
            if more:
                row[names[-1]] = delimiter.join([row[names[-1]], *more])  # the row is written as it was
                yield Record(row, None, f"{place}: has more fields than the header; quote the text.")
            else:
                yield _record(row, field or ("text" if "text" in row else None), place)
    except csv.Error as error:
        raise DataError(f"{name}:{before + reader.line_num + 1}: is not CSV ({error}); quote the text.") from None


def _sentences(lines: Iterator[tuple[int, str]], name: str, field: str | None) -> Iterator[Record]:
    """Yield the sentences of columns, which are separated by empty lines."""
    if field and not field.removeprefix("-").isdecimal():
        raise DataError(f"{name}: field={field!r} is not a column; give the number of the words' column, from 0.")
    column, columns, by_tab, are_tagged = 0, 0, False, False
    is_numbered: bool | None = None
    rows: list[tuple[int, list[str]]] = []  # the line and the columns of each word
    for number, line in chain(lines, [(0, "")]):
        bare = line.replace(BYTE_ORDER_MARK, "").rstrip("\r\n")
        if bare.strip(" \t") and not bare.startswith(_DOCUMENT_START):
            if bare.startswith("#begin document"):
                raise DataError(f"{name}: CoNLL-2012 cannot be tagged; convert it by `hf-xorner data convert`.")
            may_be_comment = not rows and re.match("#" if columns else r"##?[ \t]|#[^ \t]*$", bare)
            if not columns and not may_be_comment:
                by_tab = "\t" in bare
            values = bare.split("\t") if by_tab else _BLANKS.split(bare.strip(" \t"))
            has_tag = bool(_TAG.fullmatch(values[-1]))
            if not columns and not may_be_comment:
                columns, are_tagged = len(values), has_tag
            # A line with all columns, and with a tag if others have one, is a word, such as a hashtag.
            if not may_be_comment or (len(values) == columns and (has_tag or not are_tagged)):
                rows.append((number, values))
        elif rows:
            if is_numbered is None:  # in CoNLL-U and other formats, the first column numbers the words
                _check_columns(rows, name, field)
                first = [values[0] for _, values in rows]
                numbers = [number for number in first if number.isdecimal()]
                is_numbered = columns > 2 and all(map(_NUMBER.fullmatch, first)) and numbers[:2] in _FIRST_NUMBERS
                column = int(is_numbered if field is None else field)
            for number, values in rows:
                if len(values) != columns or not -columns <= column < columns:
                    fault = f"{len(values)} columns, but {columns} in the first line; the words are in column {column}."
                    yield Record({}, None, f"{name}:{number}: {fault}")
                    break
            else:
                words = [values[column] for _, values in rows if not is_numbered or values[0].isdecimal()]
                words = [word.strip(" ") or word for word in words]
                yield _record({"words": words}, None, f"{name}, the sentence at line {rows[0][0]}")
            rows = []


def _check_columns(rows: list[tuple[int, list[str]]], name: str, field: str | None) -> None:
    """Raise an error if a column holds texts; words such as 10 000 000 have few blanks."""
    if field is None and any(value.count(" ") > 3 for _, values in rows for value in values):
        raise DataError(f"{name}: a column holds texts; pass input_format=csv, or text for lines of text.")


# --- Writing ---------------------------------------------------------------------------------------------------------


def _entities(record: Record, entities: Sequence[Entity]) -> list[dict[str, Any]]:
    """Return the entities of a record for JSON."""
    of_words = ("word_start", "word_end") if isinstance(record.item, list) else ()
    return [
        {name: entity[name] for name in ("label", "start", "end", "text", *of_words)}
        | {"score": round(entity.score, _SCORE_DIGITS)}
        for entity in entities
    ]


def _as_field(record: Record, annotation: Annotation) -> tuple[str, list[dict[str, Any]]]:
    """Return the name of the new field of a record, and its entities."""
    name = "predicted_entities" if "entities" in record.fields else "entities"
    return name, _entities(record, annotation.entities)


def _json_line(record: Record, annotation: Annotation, number: int) -> str:
    """Return the record as an object with its entities."""
    fault = {"error": record.fault} if record.fault else {}
    fields = {**record.fields, **fault, **dict([_as_field(record, annotation)])}
    try:
        return json.dumps(fields, ensure_ascii=False, default=str, allow_nan=False) + "\n"
    except ValueError:  # JSON has no NaN and no infinity
        fields = json.loads(json.dumps(fields, default=str), parse_constant=lambda _: None)
        return json.dumps(fields, ensure_ascii=False) + "\n"


def _csv_lines(record: Record, annotation: Annotation, number: int) -> str:
    """Return a line for each entity, with the number of its record."""
    return _as_csv(
        (number, entity.label, entity.text, entity.start, entity.end, round(entity.score, _SCORE_DIGITS))
        for entity in annotation.entities
    )


def _row(record: Record, annotation: Annotation, number: int) -> str:
    """Return the row of a record with its entities as JSON in a new column; the first record has the header, too."""
    name, entities = _as_field(record, annotation)
    row = {**record.fields, name: json.dumps(entities, ensure_ascii=False)}
    return _as_csv([*([row] if number == 1 else []), row.values()])


def _as_csv(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _columns(record: Record, annotation: Annotation, number: int) -> str:
    """Return a line for each word with its tag, and an empty line."""
    item = record.item or []
    words = [item[start:end] for start, end in annotation.offsets.tolist()] if isinstance(item, str) else item
    lines = [f"{word}\t{label}\n" for word, label in zip(words, annotation.labels, strict=True)]
    return "".join([*lines, "\n"])


def _in_colour(record: Record, annotation: Annotation, number: int) -> str:
    """Return the text with its entities in colour."""
    return (f"({record.fault})" if record.fault else annotation.entities.in_colour()) + "\n"


def _redacted(record: Record, annotation: Annotation, format: str, template: str) -> str:
    """Return the redacted text of a record as a line, or as an object with the replaced entities."""
    redacted = annotation.entities.redact(template)
    if format != "jsonl":
        return re.sub(r"\r\n?|\n", " ", redacted.text) + "\n"
    fault = {"error": record.fault} if record.fault else {}
    content = {"text": redacted.text, **fault, "replaced": _entities(record, redacted)}
    return json.dumps(content, ensure_ascii=False) + "\n"


_WRITERS = {"jsonl": _json_line, "conll": _columns, "csv": _csv_lines, _ROWS: _row, "colour": _in_colour}
