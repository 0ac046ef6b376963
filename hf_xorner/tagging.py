"""Tag a file, a folder, standard input or a dataset on the Hub as a stream, in constant memory."""

from __future__ import annotations

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
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from . import files
from .corpora.formats import FORMATS, NOT_SUPPORTED, Format, recognise
from .corpora.formats.json_lines import record_of
from .corpora.source import AUTO, Input, ReadingLog, ReadingOptions, Record, line_blocks
from .corpora.splits import is_hub_name
from .entities import Annotation, BaseTagger, Entities, Entity, NumberByLabel, blocks_of
from .errors import DataError
from .options import check_values, number_by_label, option
from .safety import visible

_log = logging.getLogger(__name__)

STDIN = "-"
OUTPUTS = ("jsonl", "conll", "csv", "colour")
_ROWS = "rows"  # CSV output for CSV input
INPUTS = tuple(dict.fromkeys(format.name for format in FORMATS if format.name != NOT_SUPPORTED))
#: The format of a file by its suffix, for outputs and for the files of a folder.
KINDS = {suffix: format.name for format in FORMATS for suffix in format.suffixes} | {"": "text", ".tsv": "conll"}
#: Formats whose records are sentences without other fields, read by the formats' own table.
WORDS = {format.name for format in FORMATS if format.records is None}
_SCORE_DIGITS = 6  # further digits may depend on the number of threads


@dataclass
class TaggingOptions:
    """Options of tagging."""

    model: str | None = option(
        None,
        "A folder, a repository on the Hub, or a model of the package: english (the default), english-open or "
        "multilingual.",
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
    encoding: str = option(AUTO, "The encoding of text files, such as latin-1 or cp1250.")
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
        self.reading()  # raises for an unknown encoding
        if "\n".encode("utf-8" if self.encoding == AUTO else self.encoding) != b"\n":
            raise ValueError(f"encoding={self.encoding}: files are read line by line; convert them to UTF-8.")
        if self.redact and self.format not in (AUTO, "jsonl"):
            raise ValueError(f"redact writes texts or jsonl; leave out format={self.format}.")
        if self.template != TaggingOptions.template and not self.redact:
            raise ValueError("template is the replacement for redact; set redact as well.")

    def reading(self) -> ReadingOptions:
        """Return the options of reading."""
        return ReadingOptions(token_column=self.field, encoding=self.encoding)

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


#: The annotation of a bad record.
_NOTHING = Annotation(np.zeros((0, 2)), [], np.zeros((0, 2)), Entities())


# --- Inputs and outputs ----------------------------------------------------------------------------------------------


def tag_source(source: str, options: TaggingOptions, tagger: BaseTagger | None = None) -> Tally:
    """Tag a source record by record, and write the results in the same order.

    An output is called ``NAME.partial`` until it is complete. A folder of inputs becomes a folder of outputs; a second
    run writes the missing ones. A file of a folder that cannot be read does not stop the others.

    Args:
        source: A file, a folder, a text that contains a blank, ``-`` for standard input, or ``owner/name`` on the Hub.
        options: The options.
        tagger: A tagger to use in place of `options.model`.

    Raises:
        DataError: If the input or the output is invalid, or for the first bad record unless such records are skipped.
        LockedError: If another run is writing the output.
    """
    tally = Tally()
    output = files.expanded(options.output) if options.output else None
    pairs: list[tuple[str, Path | None]] = [(source, output)]
    if source != STDIN and not _is_text(source) and files.expanded(source).is_dir():
        pairs = list(_pairs_of_folder(files.expanded(source), output, options))
    elif output and output.exists() and not (options.overwrite and output.is_file()):  # /dev/null is no file
        advice = ", or set overwrite" if output.is_file() else ""
        raise DataError(f"{output}: exists already; choose another output{advice}.")
    for name, target in pairs:
        for path in [target.with_name(f"{target.name}{suffix}") for suffix in ("", ".partial", ".lock") if target]:
            file = "/dev/stdin" if name == STDIN or _is_text(name) else name
            files.check_apart(path, file, files.model_folder(options.model or "english"))
    tagger = tagger or _loaded(options)
    bad = []
    for name, target in pairs:
        try:
            _tag_file(name, target, options, tagger, tally)
        except DataError as fault:
            if name == source:
                raise
            _log.warning("%s", fault)
            bad.append(fault)
    if bad:
        raise DataError(f"{source}: {len(bad)} of {len(pairs)} files were not tagged, unlike the others: {bad[0]}")
    return tally


def _tag_file(name: str, target: Path | None, options: TaggingOptions, tagger: BaseTagger, tally: Tally) -> None:
    kind, records = records_of(name, options)
    format = _format_of(target, kind, options)
    # A progress bar would disturb texts that are shown on the terminal.
    hidden = True if format in ("colour", "txt") else None
    shown = tqdm(records, desc=name, unit=" records", disable=hidden, mininterval=0.5)
    outputs = _outputs(iter(shown), _ROWS if (kind, format) == (_ROWS, "csv") else format, tagger, options, tally)
    if target is not None:
        _write_file(target, outputs)
        return
    for content in outputs:
        if sys.stdout.isatty() and format != "colour":
            content = visible(content.decode("utf-8", "replace")).encode()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def _loaded(options: TaggingOptions) -> BaseTagger:
    """Return the tagger of the options."""
    from .tagger import Tagger  # imports PyTorch

    return Tagger.from_pretrained(options.model or "english", options.device, min_score=options.least_score())


def _pairs_of_folder(folder: Path, output: Path | None, options: TaggingOptions) -> Iterator[tuple[str, Path | None]]:
    """Yield the files of a folder whose outputs are missing, with these outputs, or None if a file cannot be read."""
    if output is None or output.is_file() or output.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{folder}: is a folder; name another folder as output, outside of it.")
    inputs: dict[Path, Path] = {}
    ignored: list[Path] = []
    for path in files.files_below(folder):
        name = path.relative_to(folder)
        # The text next to an annotation is tagged.
        if options.input_format == AUTO and KINDS.get(files.suffix_of(name), "brat") == "brat":
            ignored.append(name)
            continue
        try:
            kind, _ = records_of(str(path), options)
        except DataError:  # raised again when the file is tagged
            inputs[path] = name
            yield str(path), None
            continue
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
    target = KINDS.get(files.suffix_of(output)) if output else None
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
    if kind in WORDS:
        return "conll"
    return "jsonl" if options.output or not sys.stdout.isatty() else "colour"


def _write_file(output: Path, contents: Iterator[bytes]) -> None:
    """Write an output, which is called ``NAME.partial`` until it is complete."""
    partial = output.with_name(f"{output.name}.partial")
    output.parent.mkdir(parents=True, exist_ok=True)
    with files.locked(output.with_name(f"{output.name}.lock"), output):
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
    is_name = files.suffix_of(Path(source)) in KINDS.keys() - {""} or os.path.exists(files.expanded(source))
    return bool(re.search(r"\s", source)) and not is_name


def _rows_on_the_hub(source: str, options: TaggingOptions) -> Iterator[Record]:
    """Return the records of a split of a dataset on the Hub."""
    if not is_hub_name(source):
        raise DataError(
            f"{source}: there is no such file; a text on the command line must contain a blank, and not end in the "
            "suffix of a file such as .txt."
        )
    from .corpora.load import load_hub_dataset  # imports datasets

    splits = load_hub_dataset(source, streaming=True)
    split = options.split or (next(iter(splits)) if len(splits) == 1 else None)
    if split not in splits:
        raise DataError(f"{source}: has the splits {', '.join(splits)}; name one of them as split.")
    return (record_of(row, options.field, f"{source}, {split}, row {at}") for at, row in enumerate(splits[split]))


def records_of(source: str, options: TaggingOptions) -> tuple[str, Iterator[Record]]:
    """Return the format of a source, or "rows" for rows of CSV, and its records."""
    if _is_text(source):
        return "text", iter([record_of({"text": source}, "text", "the text")])
    path = Path("standard input") if source == STDIN else files.expanded(source)
    if source != STDIN and not path.exists():
        return "parquet", _rows_on_the_hub(source, options)
    if options.split:
        raise DataError(f"{source}: split={options.split!r}, but only datasets on the Hub have splits; leave it out.")
    repairs = ReadingLog(options.reading())
    repairs.collects = True
    opened = Input(path, repairs, blocks=_blocks(source))
    format = recognise(opened, options.input_format)
    return _ROWS if format.read is None and format.name == "csv" else format.name, _read(opened, format)


def _read(source: Input, format: Format) -> Iterator[Record]:
    """Yield the records of a source; for a format without fields, its sentences."""
    try:
        if format.records:
            yield from format.records(source)
        for sentence in format.read(source) if format.read and not format.records else ():
            if faults := source.repairs.faults:
                yield Record({}, None, _advice(faults[0]))
                faults.clear()
            else:
                words = [word.strip(" ") or word for word in sentence.tokens]
                yield record_of({"words": words}, None, f"{source.path}, the sentence at line {sentence.line}")
    except DataError as error:
        raise DataError(_advice(error)) from None
    source.repairs.report(str(source.path))


def _advice(error: DataError) -> str:
    """Return the message of a reader with the option of tagging."""
    return re.sub(r"token_column( and tag_column)?", "field", str(error))


def _blocks(source: str) -> Iterator[bytes]:
    """Yield blocks of lines of a file or of standard input, plain or gzip."""
    opened = (
        nullcontext(files.decompressed(sys.stdin.buffer))
        if source == STDIN
        else files.open_bytes(files.expanded(source))
    )
    try:
        with opened as file:
            yield from line_blocks(file)
    except files.GZIP_ERRORS as error:  # from standard input
        raise DataError(f"standard input: the gzip data are damaged ({error}); compress them again.") from None


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
