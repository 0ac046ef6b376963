"""Read tables: datasets, Parquet and Arrow files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, DatasetDict, load_from_disk
from datasets.table import InMemoryTable, MemoryMappedTable

from ...errors import DataError, first_line
from ..source import Input, ReadingOptions, Record, Sentence
from . import json_lines
from .json_lines import JsonRecord

# Rows of a batch, of labelled data and of records to tag, which may be long.
_ROWS, _FEW = 1000, 64


def read_table(source: Input) -> Iterator[Sentence]:
    """Yield the rows of a file of Parquet or Arrow (stream or Feather); see `sentences_of_table`."""
    opened = _opened(source.path)
    dataset = opened if isinstance(opened, Dataset) else Dataset(InMemoryTable(opened.read()))
    return sentences_of_table(dataset, str(source.path), source.reading)


def records_of_table(source: Input) -> Iterator[Record]:
    """Yield the rows of a file as records to tag, in constant memory."""
    opened = _opened(source.path)
    batches = opened.with_format("arrow").iter(_FEW) if isinstance(opened, Dataset) else opened.iter_batches(_FEW)
    for number, row in enumerate(row for batch in batches for row in batch.to_pylist()):
        yield json_lines.record_of(row, source.reading.token_column, f"{source.path}, row {number}")


def _opened(path: Path) -> Dataset | pq.ParquetFile:
    name = str(path.absolute())
    try:
        with path.open("rb") as file:
            beginning = file.read(6)
        if beginning.startswith(b"PAR1"):
            return pq.ParquetFile(path)
        if beginning == b"ARROW1":
            return Dataset(MemoryMappedTable(pa.ipc.open_file(pa.memory_map(name)).read_all(), name))
        return Dataset.from_file(name)
    # The libraries' errors for a damaged file have no common type.
    except Exception as error:
        raise _unsound(path, error) from error


def _unsound(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: not a valid Parquet, Arrow or saved dataset ({first_line(error)}); save it again.")


def open_saved(folder: Path) -> DatasetDict:
    """Open a folder written by ``save_to_disk``; a single dataset becomes ``train``.

    Raises:
        DataError: If the folder is damaged or of another kind, or names a file that is not in it.
    """
    try:
        saved = load_from_disk(str(folder.absolute()))
    # The library's errors for a damaged folder have no common type.
    except Exception as error:
        raise _unsound(folder, error) from error
    splits = saved if isinstance(saved, DatasetDict) else DatasetDict({"train": saved})
    for file in (entry["filename"] for split in splits.values() for entry in split.cache_files):
        if not Path(os.path.abspath(file)).is_relative_to(os.path.abspath(folder)):
            raise DataError(f"{folder}: names the file {file}, which is not in the folder; save the dataset again.")
    return splits


def sentences_of_table(dataset: Dataset, source: str, reading: ReadingOptions) -> Iterator[Sentence]:
    """Yield the rows of a dataset of words and tags, which are read like JSON objects; class labels become names.

    Args:
        dataset: The dataset.
        source: Its name, for messages: ``"owner/name, train"``.
        reading: The options.

    Raises:
        DataError: If columns are missing or of other types, a word or tag is empty, or a class has no name.
    """
    names = dataset.column_names
    tokens = json_lines.find_key(names, json_lines.TOKEN_KEYS, "token_column", reading, source)
    tags = json_lines.find_key(names, json_lines.TAG_KEYS, "tag_column", reading, source)
    # Other columns are not read, as they may be large.
    columns = {*names} & {tokens, tags, *json_lines.POS_KEYS, json_lines.DOCUMENT_KEY, reading.pos_column}
    classes = {name: getattr(dataset.features[name], "feature", None) for name in columns}
    labels = {name: feature.names for name, feature in classes.items() if isinstance(feature, ClassLabel)}
    for start, batch in enumerate(dataset.select_columns(sorted(columns)).with_format("arrow").iter(_ROWS)):
        try:
            rows = batch.to_pylist()
        except UnicodeDecodeError as error:
            raise DataError(f"{source}: holds bytes that are not UTF-8; save it again.") from error
        for number, row in enumerate(rows, start * _ROWS):
            for name, names in labels.items():
                row[name] = json_lines.names_of_classes(row[name], names)
            yield json_lines.sentence_of_words(JsonRecord(f"{source}, row ", number, row), reading)
