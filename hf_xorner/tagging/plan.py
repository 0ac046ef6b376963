"""What a run reads and writes: inputs found and recognised, and the form and place of the output of each."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..data.columns import DOCUMENT_START
from ..data.files import JSON_SUFFIXES, SUFFIXES, suffix_of
from ..data.json_lines import sniff_json
from ..data.reading import AUTO
from ..errors import DataError
from .lines import STDIN, Lines
from .options import CONLL, SAME, SPANS, TaggingOptions
from .rows import HubRows, ParquetColumn
from .sources import Columns, JsonLines, Source, TextLines
from .writing import Form, added_field

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_TEXT_SUFFIXES = frozenset({"", ".txt"})
# Every other suffix of labelled data is one of columns, but those that only tell a split leave it to the first line.
_COLUMN_SUFFIXES = frozenset({".conll", ".conll03", ".tsv", ".tab", ".col", ".bio", ".iob", ".iob2", ".bioes"})
_WRITTEN_SUFFIX = {SPANS: ".jsonl", CONLL: ".conll"}
_CONLL2012_START = "#begin document"
_SHOWN = 4


class Part(NamedTuple):
    """An input, and where below the output of a folder its own output stands (at the output itself if empty)."""

    name: str
    source: Source
    form: Form


class Plan(NamedTuple):
    """All inputs of a run, and its output; what was left out of a folder."""

    parts: list[Part]
    output: Path | None
    is_folder: bool
    left_out: list[str]

    @property
    def size(self) -> int | None:
        """Bytes of all inputs, if they are known."""
        sizes = [part.source.size for part in self.parts]
        return None if None in sizes else sum(size or 0 for size in sizes)


def plan(source: str, options: TaggingOptions) -> Plan:
    """Find out what is to be read and written.

    Args:
        source: A file, a folder, ``-`` for standard input, or ``owner/name`` of the Hub.
        options: What has been said about it.

    Raises:
        DataError: If that cannot be, or cannot be guessed.
    """
    output = Path(options.output).expanduser() if options.output else None
    if source != STDIN and Path(source).expanduser().is_dir():
        return _plan_of_folder(Path(source).expanduser(), output, options)
    if output and output.is_dir():
        raise DataError(f"{output}: is a folder; name a file for the output of one input.")
    found = _open(source, options)
    form = _form(found, output.name if output else None, options)
    return Plan([Part("", found, form)], output, False, [])


def _plan_of_folder(folder: Path, output: Path | None, options: TaggingOptions) -> Plan:
    if output is None:
        raise DataError(f"{folder}: is a folder; name another as output.")
    inside = output.resolve()
    if inside == folder.resolve() or folder.resolve() in inside.parents:
        raise DataError(f"{output}: lies in the folder that is read; name one outside of it.")
    parts: dict[str, Part] = {}
    left_out = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if any(part.startswith(".") for part in name.parts) or not path.is_file():
            continue
        if options.input_format == AUTO and suffix_of(path) not in SUFFIXES:
            left_out.append(str(name))
            continue
        source = _open(str(path), options)
        form = _form(source, None, options, name)
        target = _target(name, form)
        if target in parts:
            raise DataError(
                f"{folder}: {Path(parts[target].source.name).name} and {path.name} would both be written to {target}; "
                "tag one of them alone."
            )
        parts[target] = Part(target, source, form)
    if not parts:
        raise DataError(f"{folder}: no file in it has a suffix that is known; name the format as input_format.")
    return Plan(list(parts.values()), output, True, left_out)


def _target(name: Path, form: Form) -> str:
    """The name of an output in the folder of outputs."""
    if form.format == SAME:
        return str(name)
    bare = name.name[: -len(".gz")] if name.name.lower().endswith(".gz") else name.name
    suffix = Path(bare).suffix
    stem = bare.removesuffix(suffix) if suffix.lower() in SUFFIXES else bare
    return str(name.with_name(f"{stem}{_WRITTEN_SUFFIX[form.format]}{'.gz' if form.compressed else ''}"))


def _open(source: str, options: TaggingOptions) -> Source:
    if source != STDIN:
        path = Path(source).expanduser()
        if not path.exists():
            if _HUB_NAME.fullmatch(source) and options.input_format == AUTO:
                return HubRows(source, options.split, options.field)
            raise DataError(f"{source}: there is no such file.")
        source = str(path)
    if options.split is not None:
        raise DataError(f"split={options.split!r}: only a data set of the Hub has splits; leave it out.")
    lines = Lines(source)
    kind = _kind_of(lines) if options.input_format == AUTO else options.input_format
    if kind == "parquet":
        if lines.path is None:
            raise DataError("standard input cannot be Parquet, which is read from several places; name the file.")
        return ParquetColumn(lines.path, options.field)
    if kind == "columns":
        return Columns(lines, options.field)
    if kind == "jsonl":
        return JsonLines(lines, options.field)
    if options.field is not None:
        raise DataError(f"{lines.name}: field={options.field!r}, but a line of text has no fields; leave it out.")
    return TextLines(lines)


def _kind_of(lines: Lines) -> str:
    """Recognise the format of a file by its suffix, or else by its first line that is not blank."""
    suffix = "" if lines.path is None else suffix_of(lines.path)
    if suffix == ".parquet":
        return "parquet"
    if suffix == ".arrow":
        raise DataError(f"{lines.name}: Arrow is not read here; convert it to Parquet.")
    if suffix in JSON_SUFFIXES:
        return "jsonl"
    line = lines.first_line()
    if line.startswith(_CONLL2012_START) or suffix.endswith("_conll"):
        raise DataError(
            f"{lines.name}: CoNLL-2012 is not read here; convert it by scripts/data.py, or name columns as "
            "input_format and the column of the words as field."
        )
    if suffix in _COLUMN_SUFFIXES or line.split(" ", 1)[0].split("\t", 1)[0].rstrip("\r\n") == DOCUMENT_START:
        return "columns"
    if sniff_json(line):
        return "jsonl"
    return "text" if suffix in _TEXT_SUFFIXES or suffix not in SUFFIXES else "columns"


def _form(source: Source, output: str | None, options: TaggingOptions, name: Path | None = None) -> Form:
    """How an input is written: as has been said, as the name of the output says, or as it is natural for the input."""
    kind = source.kind
    format = options.format
    if format == AUTO:
        format = _format_of_suffix(output, kind) or _natural_format(kind, output is not None or name is not None)
    if format == SAME and kind in ("text", "rows"):
        what = "lines of text have" if kind == "text" else "a data set of the Hub has"
        raise DataError(f"{source.name}: {what} no place for tags; choose the format {SPANS} or {CONLL}.")
    parquet = kind == "parquet" and format == SAME
    if parquet and output is None and name is None:
        raise DataError(f"{source.name}: Parquet is not written to standard output; name an output.")
    compressed = (output or str(name or "")).lower().endswith(".gz") and not parquet
    form = Form(format, kind, compressed, options.output_field)
    if parquet and isinstance(source, ParquetColumn):
        added = added_field(source.holds_words, form)
        if added in source.column_names:
            raise DataError(f"{source.name}: there is a column {added} already; name another as output_field.")
    return form


def _format_of_suffix(output: str | None, kind: str) -> str | None:
    suffix = suffix_of(Path(output)) if output else ""
    if suffix in JSON_SUFFIXES:
        return SAME if kind == "jsonl" else SPANS
    if suffix in _COLUMN_SUFFIXES:
        return SAME if kind == "columns" else CONLL
    if suffix == ".parquet":
        if kind != "parquet":
            raise DataError(
                f"{output}: only a Parquet input is written as Parquet; choose another suffix, or a format."
            )
        return SAME
    return None


def _natural_format(kind: str, to_file: bool) -> str:
    return SAME if kind in ("columns", "jsonl") or (kind == "parquet" and to_file) else SPANS


def left_out_line(names: Sequence[str]) -> str:
    """Say which files of a folder were left out."""
    others = f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else ""
    return f"left out for their suffix: {', '.join(names[:_SHOWN])}{others}; name input_format to have all files read."
