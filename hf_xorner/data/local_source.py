"""Local files as splits: recognise the format of each and read it."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

from datasets import Dataset

from ..errors import DataError
from .character_spans import read_spans
from .columns import read_columns
from .conll2012 import read_conll2012
from .files import JSON_SUFFIXES, find_splits, suffix_of
from .json_lines import read_json_lines, sniff_json
from .reading import AUTO, Reading
from .repairs import Repairs
from .sentence import Sentence
from .survey import Split
from .tables import open_saved, open_table, sentences_of_table
from .textfile import BYTE_ORDER_MARK, open_text

# What `save_to_disk` leaves in a folder: of several splits, and of one.
_SAVED = ("dataset_dict.json", "state.json")
_CONLL2012_START = "#begin document"


def is_saved(folder: Path) -> bool:
    """Tell whether a folder was written by `save_to_disk`."""
    return any((folder / name).is_file() for name in _SAVED)


def splits_of_folder(folder: Path, reading: Reading) -> dict[str, Split]:
    """Return the splits of a folder.

    Args:
        folder: A folder of files whose names tell their splits, or one that `save_to_disk` wrote.
        reading: How they are to be read.

    Raises:
        DataError: If no file tells its split, or two claim the same.
    """
    if is_saved(folder):
        return {
            name: split_of_table(found, f"{folder.resolve()}, {name}", reading)
            for name, found in open_saved(folder).items()
        }
    files = find_splits(folder)
    if not files:
        raise DataError(f"{folder}: no file name tells its split; name them train.conll, dev.conll and test.conll.")
    return {name: split_of_files(paths, reading) for name, paths in files.items()}


def split_of_table(dataset: Dataset, source: str, reading: Reading) -> Split:
    """Return a data set as a split.

    Args:
        dataset: The data set.
        source: Where it comes from, in words.
        reading: How it is to be read.
    """

    def read(repairs: Repairs) -> Iterator[Sentence]:
        return sentences_of_table(dataset, f"{source}, row ", reading)

    return Split(read, repr((source, dataset._fingerprint, astuple(reading))), source)


def split_of_files(paths: Sequence[Path], reading: Reading) -> Split:
    """Return the split that files make, one after the other.

    Args:
        paths: The files, each of any format.
        reading: How they are to be read.
    """
    kinds = {path: format_of(path) if reading.format == AUTO else reading.format for path in paths}

    def read(repairs: Repairs) -> Iterator[Sentence]:
        for path, kind in kinds.items():
            yield from _read_file(path, kind, reading, repairs)

    identity = repr(([_identity_of(path) for path in paths], astuple(reading)))
    guesses_pos = reading.pos_column is None and "columns" in kinds.values()
    return Split(read, identity, str(paths[0]), guesses_pos)


def _identity_of(path: Path) -> tuple[str, int, int, int]:
    stat = path.stat()
    # The last of them tells of a change even where a copying program has set the time of modification back.
    return str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _read_file(path: Path, kind: str, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    if kind == "columns":
        return read_columns(path, reading)
    if kind == "conll2012":
        return read_conll2012(path, reading)
    if kind == "jsonl":
        return read_json_lines(path, reading)
    if kind == "spans":
        return read_spans(path, reading, repairs)
    return sentences_of_table(open_table(path), f"{path}, row ", reading)


def format_of(path: Path) -> str:
    """Recognise the format of a file by its suffix, or else by its first line that is not blank."""
    suffix = suffix_of(path)
    if suffix in (".parquet", ".arrow"):
        return suffix[1:]
    if suffix.endswith("gold_conll"):
        return "conll2012"
    with open_text(path) as file:
        line = next((line for line in file if line.strip(f" \t\r\n{BYTE_ORDER_MARK}")), "")
    if line.replace(BYTE_ORDER_MARK, "").startswith(_CONLL2012_START):
        return "conll2012"
    return sniff_json(line) or ("jsonl" if suffix in JSON_SUFFIXES else "columns")
