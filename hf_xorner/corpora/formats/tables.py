"""Read datasets, Parquet and Arrow files as a stream of sentences."""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value
from datasets.table import MemoryMappedTable

from ...errors import DataError, first_line
from ..schemes import UNLABELLED_TAG
from ..source import NONE, Reading, Sentence
from .json_lines import DOCUMENT_KEY, POS_KEYS, TAG_KEYS, TOKEN_KEYS, keys_to_try
from .layout import looks_like_tag

# Rows of a batch.
_ROWS = 1000
# Values and bytes of a column above which a batch has fewer rows.
_VALUES, _BYTES = 1 << 20, 1 << 26
# Characters of a value that no word, tag or part of speech has.
_LONGEST_VALUE = 10_000
_ARROW_FILE = b"ARROW1"
_PARQUET = b"PAR1"
# A column in which no row has a value yet has the type null.
_STRINGS = {"string", "large_string", "string_view", "null"}


class ParquetRows:
    """The rows of a Parquet file, read as a stream without a cache."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = pq.ParquetFile(path)
        self.schema = self._file.schema_arrow
        self.features = Features.from_arrow_schema(self.schema)
        self.column_names = list(self.features)

    def __len__(self) -> int:
        return self._file.metadata.num_rows

    def batches(self, names: list[str], shared: bool = False) -> Iterator[pa.Table]:
        """Yield some columns of the rows, a batch at a time.

        Args:
            names: The columns.
            shared: Return strings as dictionaries, as the file may hold a long one once and refer to it many times.
        """
        try:
            file = pq.ParquetFile(self._path, read_dictionary=self._string_leaves(names) if shared else None)
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(_rows_of_batch(file.metadata.row_group(group)), [group], names):
                    yield pa.Table.from_batches([batch])
        except (OSError, pa.ArrowException) as error:
            raise _unsound(self._path, error) from error

    def _string_leaves(self, names: list[str]) -> list[str]:
        leaves = (self._file.schema.column(at) for at in range(len(self._file.schema)))
        return [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and leaf.path.split(".")[0] in names]


def _rows_of_batch(group: pq.RowGroupMetaData) -> int:
    """Return how many rows to read at once, so that a batch stays small even if a few bytes hold very long rows."""
    columns = [group.column(at) for at in range(group.num_columns)]
    values = max((column.num_values for column in columns), default=0)
    size = max((column.total_uncompressed_size for column in columns), default=0)
    fitting = min(_VALUES * group.num_rows // max(values, 1), _BYTES * group.num_rows // max(size, 1))
    return min(max(fitting, 1), _ROWS)


Rows: TypeAlias = Dataset | ParquetRows


def _batches(rows: Rows, names: list[str]) -> Iterator[pa.Table]:
    if isinstance(rows, ParquetRows):
        return rows.batches(names, shared=True)
    return rows.select_columns(names).with_format("arrow").iter(_ROWS)


def sentences_of_table(dataset: Rows, source: str, reading: Reading) -> Iterator[Sentence]:
    """Yield the rows of a data set of words and tags.

    The words are the first column there is of ``tokens`` and ``words``, the tags the first of ``ner_tags``, ``tags``
    and ``labels``, as class labels or strings; parts of speech (``pos_tags`` or ``pos``) and ``doc_id`` are read where
    there are any.

    Args:
        dataset: The data set.
        source: Its name, to which the number of a row is appended: ``"owner/name, train, row "``.
        reading: Other columns than these.

    Yields:
        The rows in their order, one sentence each.

    Raises:
        DataError: If columns are missing or of other types, or a row has more words than tags or fewer, an empty word
            or tag, a class without a name, or nothing where a value should be.
    """
    tokens = _Lists(dataset, _find(dataset, TOKEN_KEYS, reading.token_column, "words", "token_column", source), source)
    tag_column = _find(dataset, TAG_KEYS, reading.tag_column, "tags", "tag_column", source)
    tags = _Lists(
        dataset, tag_column, source, "name them in tag_names, or write strings", (reading.tag_names or "").split()
    )
    pos_name = _find_pos(dataset, reading, source)
    pos_tags = _Lists(dataset, pos_name, source, f"or give {NONE!r} as pos_column") if pos_name else None
    with_documents = _has_documents(dataset, source)

    # Other columns may be large, and are not read.
    names = (
        {tokens.name, tags.name}
        | ({pos_tags.name} if pos_tags else set())
        | ({DOCUMENT_KEY} if with_documents else set())
    )
    first = 0
    for batch in _batches(dataset, sorted(names)):
        rows = zip(
            tokens.read(batch, first),
            tags.read(batch, first),
            pos_tags.read(batch, first) if pos_tags else repeat(None, len(batch)),
            _documents(batch) if with_documents else repeat(None, len(batch)),
            strict=True,
        )
        for row, (words, labels, parts, document) in enumerate(rows, start=first):
            if words is None or labels is None:
                name = tokens.name if words is None else tags.name
                raise DataError(f"{source}{row}: the column {name} holds nothing; fill or remove the row.")
            if len(words) != len(labels):
                raise DataError(f"{source}{row}: {len(words)} tokens but {len(labels)} tags; give every token one tag.")
            if parts is not None and len(parts) != len(words):
                raise DataError(
                    f"{source}{row}: {len(words)} tokens but {len(parts)} parts of speech; "
                    "give every token one, or leave them out."
                )
            yield Sentence(words, labels, source, row, parts, document)
        first += len(batch)


def open_table(path: Path) -> Rows:
    """Open a file of Parquet or Arrow, the latter as a stream or a file (Feather), without reading it into memory.

    Args:
        path: The file; its first bytes tell its kind.

    Raises:
        DataError: If the file is damaged or of another kind.
    """
    with path.open("rb") as file:
        magic = file.read(len(_ARROW_FILE))
    name = str(path.absolute())
    try:
        if magic.startswith(_PARQUET):
            return ParquetRows(path)
        if magic == _ARROW_FILE:
            return Dataset(MemoryMappedTable(pa.ipc.open_file(pa.memory_map(name)).read_all(), name))
        return Dataset.from_file(name)
    # The libraries' errors for a damaged file have no common type.
    except Exception as error:
        raise _unsound(path, error) from error


def _unsound(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path}: the file is not a valid Parquet or Arrow file ({_reason(error)}); write or fetch it again."
    )


def open_saved(folder: Path) -> DatasetDict:
    """Open a folder that ``save_to_disk`` has written; a single data set becomes ``train``.

    Raises:
        DataError: If the folder is damaged or of another kind.
    """
    name = str(folder.absolute())
    if "::" in name:
        raise DataError(f"{folder}: datasets takes the :: for a chain of places; give the folder a path without it.")
    try:
        if (folder / "dataset_dict.json").is_file():
            return DatasetDict.load_from_disk(name)
        return DatasetDict({"train": Dataset.load_from_disk(name)})
    except PermissionError:
        raise
    # The library's errors for a damaged folder have no common type.
    except Exception as error:
        raise DataError(
            f"{folder}: the folder is not a valid dataset of save_to_disk ({_reason(error)}); save or fetch it again."
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"no {error}"
    return first_line(error)


# --- Columns ---------------------------------------------------------------------------------------------------------


def _where(source: str) -> str:
    return source.removesuffix(", row ")


def _find(dataset: Rows, usual: Sequence[str], told: str | None, what: str, option: str, source: str) -> str:
    """Return the name of a column."""
    keys = keys_to_try(usual, told)
    name = next((key for key in keys if key in dataset.column_names), None)
    if name is None:
        raise DataError(
            f"{_where(source)}: expected {what} in a column {' or '.join(keys)}, "
            f"found the columns {', '.join(dataset.column_names)}; rename one, or name it as {option}."
        )
    return name


def _find_pos(dataset: Rows, reading: Reading, source: str) -> str | None:
    if reading.pos_column == NONE:
        return None
    if reading.pos_column is not None:
        return _find(dataset, (), reading.pos_column, "parts of speech", "pos_column", source)
    return next((key for key in POS_KEYS if key in dataset.column_names), None)


def _has_documents(dataset: Rows, source: str) -> bool:
    feature = dataset.features.get(DOCUMENT_KEY)
    if feature is None:
        return False
    # Numbers serve as names, but those of classes stand for others.
    kind = feature.dtype if isinstance(feature, Value) else ""
    if kind not in _STRINGS and "int" not in kind:
        raise DataError(f"{_where(source)}: the column {DOCUMENT_KEY} holds {feature}; make it one of strings.")
    return True


def _documents(batch: pa.Table) -> list[str | None]:
    return [None if name is None else str(name) for name in batch[DOCUMENT_KEY].to_pylist()]


class _Lists:
    """A column of lists of strings, or of classes, which become their names."""

    def __init__(
        self, dataset: Rows, name: str, source: str, else_: str = "or write strings", names: Sequence[str] = ()
    ) -> None:
        """Check a column of a data set.

        Args:
            dataset: The data set.
            name: The column's name.
            source: Its name, for messages.
            else_: Other advice for a column of numbers than to name them.
            names: The names of the numbers.
        """
        self.name = name
        self.source = source
        feature = dataset.features[name]
        inner = getattr(feature, "feature", None)
        self.classes: list[str] | None = inner.names if isinstance(inner, ClassLabel) else None
        if self.classes is not None or (isinstance(inner, Value) and inner.dtype in _STRINGS):
            return
        if isinstance(inner, Value) and "int" in inner.dtype:
            self.classes = list(names)
            if names:
                return
            raise DataError(
                f"{_where(source)}: the column {name} holds numbers without names; make it a List(ClassLabel), {else_}."
            )
        raise DataError(f"{_where(source)}: the column {name} is a {feature}; make it one of lists of strings.")

    def read(self, batch: pa.Table, first_row: int) -> list[list[str] | None]:
        """Return the lists of a batch that begins at a row; None for a row without one."""
        array = batch[self.name].combine_chunks()
        # All values of the batch at once, which takes a fraction of the time that lists take one by one.
        flat = pc.list_flatten(array)
        if flat.null_count:
            raise self._fault(array, first_row, lambda value: not value.is_valid, "nothing")
        values = self._texts(flat, array, first_row) if self.classes is None else self._names(flat, array, first_row)
        if "" in values:
            raise self._fault(array, first_row, lambda value: value.as_py() == "", "an empty string")
        counts = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        ends = counts.cumsum()
        lists: list[list[str] | None] = [
            values[start:end] for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True)
        ]
        if array.null_count:
            return [found if valid else None for found, valid in zip(lists, array.is_valid().to_pylist(), strict=True)]
        return lists

    def _texts(self, flat: pa.Array, array: pa.Array, first_row: int) -> list[str]:
        try:
            if not isinstance(flat, pa.DictionaryArray):
                values = distinct = flat.to_pylist()
            else:
                distinct = flat.dictionary.to_pylist()
                values = [distinct[index] for index in flat.indices.to_pylist()]
        except UnicodeDecodeError:
            raise self._fault(array, first_row, _is_undecodable, "bytes that are no UTF-8") from None
        if max(map(len, distinct), default=0) > _LONGEST_VALUE:
            fault = f"more than {_LONGEST_VALUE:,} characters"
            raise self._fault(array, first_row, lambda value: len(value.as_py()) > _LONGEST_VALUE, fault)
        return values

    def _names(self, flat: pa.Array, array: pa.Array, first_row: int) -> list[str]:
        classes = self.classes or []
        # `datasets` means by -1 that there is no label; among labels of single words, that is a fault.
        least = -1 if all(map(looks_like_tag, classes)) else 0
        ids = flat.to_numpy(zero_copy_only=False)
        if ((ids < least) | (ids >= len(classes))).any():
            unknown = f"a number beyond its {len(classes)} classes"
            raise self._fault(array, first_row, lambda value: not least <= value.as_py() < len(classes), unknown)
        return np.array([*classes, UNLABELLED_TAG], dtype=object)[ids].tolist()

    def _fault(self, array: pa.Array, first_row: int, is_faulty: Callable[[pa.Scalar], bool], what: str) -> DataError:
        """Return the error for the first faulty value of a batch."""
        row, index = next(
            (row, index)
            for row, values in enumerate(array, start=first_row)
            for index, value in enumerate(values.values or ())
            if is_faulty(value)
        )
        return DataError(f"{self.source}{row}: the column {self.name} holds {what} at index {index}; correct it.")


def _is_undecodable(value: pa.Scalar) -> bool:
    try:
        value.as_py()
    except UnicodeDecodeError:
        return True
    return False
