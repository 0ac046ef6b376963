"""Options of a run of tagging, and the inputs and outputs that follow from them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transformers.hf_argparser import HfArg

from ..corpora.formats.columns import DOCUMENT_START
from ..corpora.formats.json_lines import sniff_json
from ..corpora.source import AUTO
from ..corpora.splits import JSON_SUFFIXES, SUFFIXES, has_data_suffix, suffix_of
from ..entities import NumberByLabel, checked_numbers, number_by_label
from ..errors import DataError
from ..files import check_apart
from .output import MANIFESTS, partial_of
from .read import STDIN, STDIN_NAME, Columns, HubRows, JsonLines, Lines, ParquetColumn, Source, TextLines
from .write import CONLL, OUTPUTS, SAME, SPANS, Form, added_field

INPUTS = ("text", "columns", "jsonl", "parquet")
STOP, SKIP = "stop", "skip"

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_TEXT_SUFFIXES = frozenset({"", ".txt"})
# Suffixes of columns; those that only name a split leave the format to the first line.
_COLUMN_SUFFIXES = frozenset({".conll", ".conll03", ".tsv", ".tab", ".col", ".bio", ".iob", ".iob2", ".bioes"})
_WRITTEN_SUFFIX = {SPANS: ".jsonl", CONLL: ".conll"}
_CONLL2012_START = "#begin document"
_ARRAY_OF_OBJECTS = re.compile(r'\[\s*\{\s*"')
_SHOWN = 4


@dataclass
class TaggingOptions:
    """Options of a run of tagging."""

    model: str = HfArg(help="The model: a folder, or a repository on the Hub.")
    output: str | None = HfArg(
        default=None,
        help="The file to write, or a folder for the output of a folder or of several processes; by default standard "
        "output.",
    )
    format: str = HfArg(
        default=AUTO,
        help="The format to write: spans (JSON Lines of texts and entities), conll (a word and its tag a line), or "
        "same (the input with one more column or field); by default inferred from the names of output and input.",
    )
    input_format: str = HfArg(default=AUTO, help=f"The format to read: {', '.join(INPUTS)}.")
    field: str | None = HfArg(
        default=None, help="The field of the texts or words, or the number of the column of the words."
    )
    split: str | None = HfArg(default=None, help="The split of a dataset on the Hub.")
    output_field: str | None = HfArg(
        default=None,
        help="The name of the added field; by default predicted_entities for texts, predicted_tags for words.",
    )
    on_error: str = HfArg(
        default=STOP, help=f"At a faulty line: {STOP}, or {SKIP} to write it without entities and count it."
    )
    overwrite: bool = HfArg(default=False, help="Replace an output that exists, or a partial one of another run.")
    min_score: str | None = HfArg(
        default=None,
        help="Leave out entities with a lower score: a number from 0 to 1, or a number for each label, such as "
        "PER=0.9,LOC=0.8; by default the min_score in the model's config.json, or else 0.",
    )
    batch_size: int = HfArg(default=64, help="Texts in a batch.")
    device: str | None = HfArg(default=None, help="The device of the model; by default a GPU if there is one.")
    disable_tqdm: bool = HfArg(default=False, help="Show no progress bar, not even in a terminal.")

    def __post_init__(self) -> None:
        for name, allowed in (
            ("format", (AUTO, *OUTPUTS)),
            ("input_format", (AUTO, *INPUTS)),
            ("on_error", (STOP, SKIP)),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise DataError(f"{name}={value!r} is unknown; choose one of {', '.join(allowed)}.")
        if self.least_score is not None:
            checked_numbers(self.least_score, "min_score", 1)
        if self.batch_size < 1:
            raise DataError(f"batch_size={self.batch_size} must be at least 1.")

    @property
    def least_score(self) -> NumberByLabel | None:
        """The meaning of `min_score`."""
        return None if self.min_score is None else number_by_label(self.min_score, "min_score")


class Part(NamedTuple):
    """An input, and its output.

    Attributes:
        source: The input.
        form: The form of the output.
        output: The file to write; None for standard output.
        manifest: The file to keep the state of a complete output in, if there is one.
        shard: The number of this shard of the input, and the number of shards.
    """

    source: Source
    form: Form
    output: Path | None
    manifest: Path | None = None
    shard: tuple[int, int] = (0, 1)


def plan_tagging(source: str, options: TaggingOptions, rank: int = 0, world: int = 1) -> tuple[list[Part], str]:
    """Find the inputs of a process and their outputs.

    Several processes share the files of a folder. Of a single input each process tags a shard of consecutive records,
    and writes it to a file such as `part-00000-of-00004.jsonl` in the folder of outputs.

    Args:
        source: A file, a folder, ``-`` for standard input, or ``owner/name`` of the Hub.
        options: The options of the run.
        rank: The number of this process.
        world: The number of processes.

    Returns:
        The inputs, and a sentence that names the files of a folder that are ignored, or an empty string.

    Raises:
        DataError: If the input or the output is invalid.
    """
    output = Path(options.output).expanduser() if options.output else None
    if output:
        check_apart(output, options.model)
    if world > 1 and (output is None or source == STDIN):
        what = STDIN_NAME if source == STDIN else "standard output"
        raise DataError(f"{what} is for one process alone; name a file, or start one process.")
    if source != STDIN and Path(source).expanduser().is_dir():
        return _plan_of_folder(Path(source).expanduser(), output, options, rank, world)
    if world == 1 and output and output.is_dir():
        raise DataError(f"{output}: is a folder; name a file for the output of one input.")
    if world > 1 and output and (has_data_suffix(output) or output.is_file()):
        raise DataError(f"{output}: each of several processes writes its own file; name a folder for them.")
    found = _open(source, options)
    if world == 1 or output is None:
        if output:
            _check_target(output, source)
        return [Part(found, _form(found, output.name if output else None, options), output)], ""
    bare = Path(source.lower().removesuffix(".gz"))
    suffix = f"{suffix_of(bare) if has_data_suffix(bare) else ''}{'.gz' if source.lower().endswith('.gz') else ''}"
    name = Path(f"part-{rank:05d}-of-{world:05d}{suffix}")
    return [_part_in_folder(found, name, output, options, (rank, world))], ""


def _plan_of_folder(
    folder: Path, output: Path | None, options: TaggingOptions, rank: int, world: int
) -> tuple[list[Part], str]:
    if output is None:
        raise DataError(f"{folder}: is a folder; name another as output.")
    if output.is_file():
        raise DataError(f"{output}: is a file; name a folder for the output of a folder.")
    if output.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{output}: is inside the folder that is read; name a folder outside of it.")
    parts: dict[Path | None, Part] = {}
    ignored = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if any(part.startswith(".") for part in name.parts) or not path.is_file():
            continue
        if options.input_format == AUTO and suffix_of(path) not in SUFFIXES:
            ignored.append(str(name))
            continue
        part = _part_in_folder(_open(str(path), options), name, output, options)
        if part.output in parts:
            raise DataError(
                f"{folder}: {Path(parts[part.output].source.name).name} and {path.name} would both be written to "
                f"{part.output}; tag one of them alone."
            )
        parts[part.output] = part
    if not parts:
        raise DataError(f"{folder}: no file in it has a known suffix; name the format as input_format.")
    return list(parts.values())[rank::world], _ignored_sentence(ignored)


def _part_in_folder(
    source: Source, name: Path, output: Path, options: TaggingOptions, shard: tuple[int, int] = (0, 1)
) -> Part:
    """Return the part of an input that is written into a folder of outputs, by the name of the input there."""
    form = _form(source, None, options, name)
    target = _target(name, form)
    _check_target(output / target, source.name)
    return Part(source, form, output / target, output / MANIFESTS / f"{target}.json", shard)


def _check_target(output: Path, source: str) -> None:
    """Raise DataError if an output or its partial file is the input, which may be redirected to standard input."""
    for path in (output, partial_of(output)):
        check_apart(path, "/dev/stdin" if source == STDIN else source)


def _target(name: Path, form: Form) -> str:
    """Return the name of an output in the folder of outputs."""
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
        raise DataError(f"split={options.split!r}: only a dataset on the Hub has splits; leave it out.")
    lines = Lines(source)
    kind = _kind_of(lines) if options.input_format == AUTO else options.input_format
    if kind == "parquet":
        if lines.path is None:
            raise DataError("standard input cannot be Parquet, which is not read in order; name the file.")
        return ParquetColumn(lines.path, options.field)
    if kind in ("columns", "jsonl"):
        return (Columns if kind == "columns" else JsonLines)(lines, options.field)
    if options.field is not None:
        raise DataError(f"{lines.name}: field={options.field!r}, but a line of text has no fields; leave it out.")
    return TextLines(lines)


def _kind_of(lines: Lines) -> str:
    """Recognise the format of a file by its suffix, or else by its first line that is not blank."""
    suffix = "" if lines.path is None else suffix_of(lines.path)
    if suffix == ".parquet":
        return "parquet"
    if suffix == ".arrow":
        raise DataError(f"{lines.name}: Arrow is not supported; convert it to Parquet.")
    if suffix in JSON_SUFFIXES:
        return "jsonl"
    line = lines.first_line()
    if line.startswith(_CONLL2012_START) or suffix.endswith("_conll"):
        raise DataError(
            f"{lines.name}: CoNLL-2012 is not supported; convert it by `hf-xorner data`, or name columns as "
            "input_format and the column of the words as field."
        )
    if suffix in _COLUMN_SUFFIXES or line.split(" ", 1)[0].split("\t", 1)[0].rstrip("\r\n") == DOCUMENT_START:
        return "columns"
    if sniff_json(line) or _ARRAY_OF_OBJECTS.match(line):
        return "jsonl"
    return "text" if suffix in _TEXT_SUFFIXES or suffix not in SUFFIXES else "columns"


def _form(source: Source, output: str | None, options: TaggingOptions, name: Path | None = None) -> Form:
    """Return the form of an output: as given, or inferred from the name of the output or from the kind of the input."""
    kind, to_file = source.kind, output is not None or name is not None
    format = options.format if options.format != AUTO else _inferred_format(output, kind, to_file)
    if format == SAME and kind in ("text", "rows"):
        what = "a line of text" if kind == "text" else "a dataset on the Hub"
        raise DataError(f"{source.name}: {what} has no place for tags; choose the format {SPANS} or {CONLL}.")
    parquet = kind == "parquet" and format == SAME
    if parquet and not to_file:
        raise DataError(f"{source.name}: Parquet is not written to standard output; name an output.")
    compressed = (output or str(name or "")).lower().endswith(".gz") and not parquet
    form = Form(format, kind, compressed, options.output_field)
    if parquet and isinstance(source, ParquetColumn):
        added = added_field(source.holds_words, form)
        if added in source.column_names:
            raise DataError(f"{source.name}: there is a column {added} already; name another as output_field.")
    return form


def _inferred_format(output: str | None, kind: str, to_file: bool) -> str:
    suffix = suffix_of(Path(output)) if output else ""
    if suffix in JSON_SUFFIXES:
        return SAME if kind == "jsonl" else SPANS
    if suffix in _COLUMN_SUFFIXES:
        return SAME if kind == "columns" else CONLL
    if suffix == ".parquet" and kind != "parquet":
        raise DataError(f"{output}: only a Parquet input is written as Parquet; choose another suffix, or a format.")
    return SAME if kind in ("columns", "jsonl") or (kind == "parquet" and to_file) else SPANS


def _ignored_sentence(names: Sequence[str]) -> str:
    """Return a sentence that names the files of a folder that are ignored, or an empty string."""
    if not names:
        return ""
    others = f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else ""
    return f"ignored for their suffix: {', '.join(names[:_SHOWN])}{others}; name input_format to read all files."
