"""What is read in rows: a column of a Parquet file, or of a data set of the Hub as it comes in."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import IterableDataset, load_dataset

from ..data.json_lines import TEXT_KEY, TOKEN_KEYS
from ..data.tables import ParquetRows, open_table
from ..errors import DataError, first_line
from .sources import Record, usual_field, value_of


class Rows:
    """The values of one column, each a text or a list of words."""

    kind = "rows"
    first = 0
    size: int | None = None
    name = ""
    field: str | None = None

    def position(self) -> int:
        """Nothing is known of bytes."""
        return 0

    def bytes_of(self, raws: Sequence[Any]) -> bytes:
        """The values as JSON."""
        return json.dumps(raws, default=repr).encode()

    def lines_of(self, raw: Any) -> int:
        """One."""
        return 1

    def record(self, raw: Any, number: int) -> Record:
        """A value."""
        place = f"{self.name}, row {number}"
        if raw is None:
            raise DataError(f"{place}: the column {self.field} holds nothing; fill or remove the row.")
        if isinstance(raw, bytes):
            raise DataError(f"{place}: the column {self.field} holds bytes that are no UTF-8; correct it.")
        return Record(value_of({str(self.field): raw}, self.field, place), None)


class ParquetColumn(Rows):
    """A column of a Parquet file."""

    kind = "parquet"

    def __init__(self, path: Path, field: str | None) -> None:
        """Open a file.

        Args:
            path: The file.
            field: The column; by default ``tokens``, ``words`` or ``text``.
        """
        self.path, self.name = path, str(path)
        rows = open_table(path)
        if not isinstance(rows, ParquetRows):
            raise DataError(f"{path}: is no Parquet; convert it, or name its format as input_format.")
        self.size = os.stat(path).st_size
        self._rows = rows
        self._read = 0
        keys = (field,) if field else (*TOKEN_KEYS, TEXT_KEY)
        self.field = next((key for key in keys if key in rows.column_names), None)
        if self.field is None:
            raise DataError(
                f"{path}: expected texts or words in a column {' or '.join(keys)}, found the columns "
                f"{', '.join(rows.column_names)}; name one as field."
            )
        self.column_names = rows.column_names
        kind = pq_type(rows, self.field)
        self.holds_words = _is_list(kind)
        if not _is_text(kind.value_type if self.holds_words else kind):
            raise DataError(
                f"{path}: the column {self.field} holds {kind}; name one of strings or of lists of strings."
            )

    def raws(self) -> Iterator[Any]:
        """The values."""
        self._read = 0
        for table in self._rows.batches([str(self.field)]):
            column = table.column(0)
            try:
                values = column.to_pylist()
            except UnicodeDecodeError:
                values = [_value(value) for value in column]
            for value in values:
                self._read += 1
                yield value

    def position(self) -> int:
        """The share of the rows that have been read, in bytes."""
        return int(self._read * (self.size or 0) / max(1, len(self._rows)))


class HubRows(Rows):
    """A column of a data set of the Hub, which is never held as a whole."""

    def __init__(self, name: str, split: str | None, field: str | None) -> None:
        """Ask for a data set.

        Args:
            name: ``owner/name``.
            split: The split; may be left out where there is but one.
            field: The column; by default ``tokens``, ``words`` or ``text``.
        """
        try:
            splits = load_dataset(name, streaming=True)
        # What goes wrong there (no such set, no network, a loading script) has no common type.
        except Exception as error:
            raise DataError(
                f"{name}: neither a local path nor to be had from the Hub ({first_line(error)})."
            ) from error
        if split is None and len(splits) == 1:
            split = next(iter(splits))
        if split not in splits:
            what = f"no split {split!r}" if split else "several splits"
            raise DataError(f"{name}: {what}; name one of {', '.join(splits)} as split.")
        self.name = f"{name}, {split}"
        self.field = field
        self._rows: IterableDataset = splits[split]

    def raws(self) -> Iterator[Any]:
        """The values."""
        for row in self._rows:
            if self.field is None:
                self.field = usual_field(row)
            if self.field not in row:
                raise DataError(
                    f"{self.name}: no column {self.field or 'tokens, words or text'} among {', '.join(row)}; "
                    "name one as field."
                )
            yield row[self.field]


def pq_type(rows: ParquetRows, name: str) -> pa.DataType:
    """The type of a column."""
    return rows.schema.field(name).type


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return b""
