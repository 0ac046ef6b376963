"""A Parquet file with one column more, written as a stream."""

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from ..data.tables import ParquetRows
from ..errors import DataError

_MAGIC = b"PAR1"
# What a group of rows holds at most, in rows and in bytes.
_GROUP_ROWS, _GROUP_BYTES = 1 << 16, 1 << 25
_ENTITY = pa.struct(
    [("label", pa.string()), ("start", pa.int64()), ("end", pa.int64()), ("text", pa.string()), ("score", pa.float64())]
)


def add_column(source: Path, values: Path, name: str, words: bool) -> None:
    """Replace a file of values by a copy of a Parquet file that has them as its last column.

    Args:
        source: The Parquet file.
        values: One JSON value a line; nothing is done if the copy stands there already.
        name: The name of the column.
        words: Whether the values are tags of words, and not entities of texts.
    """
    with values.open("rb") as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            return
        file.seek(0)
        kind = pa.list_(pa.string() if words else _ENTITY)
        new = values.with_name(f"{values.name}.new")
        rows = ParquetRows(source)
        schema = rows.schema.append(pa.field(name, kind))
        # What datasets notes of the columns does not know the new one.
        schema = schema.with_metadata({k: v for k, v in (schema.metadata or {}).items() if k != b"huggingface"})
        with pq.ParquetWriter(new, schema) as writer:
            for group in _groups(_with_values(rows, file, name, kind)):
                writer.write_table(group.cast(schema))
    os.replace(new, values)


def _with_values(rows: ParquetRows, file: IO[bytes], name: str, kind: pa.DataType) -> Iterator[pa.Table]:
    for table in rows.batches(rows.schema.names):
        values = [json.loads(line) for line in islice(file, len(table))]
        if len(values) != len(table):
            raise DataError("the Parquet file has grown while it was tagged; start again, and overwrite what is there.")
        yield table.append_column(name, pa.array(values, kind))


def _groups(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= _GROUP_ROWS or sum(table.nbytes for table in held) >= _GROUP_BYTES:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
