"""Read datasets, Parquet and Arrow files."""

from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, DatasetDict, Features
from datasets.table import MemoryMappedTable

from ...errors import DataError, first_line
from ..schemes import UNLABELLED_TAG
from ..source import NONE, Reading, Sentence
from .columns import looks_like_tag
from .json_lines import DOCUMENT_KEY, POS_KEYS, TAG_KEYS, TOKEN_KEYS

# Rows of a batch.
_ROWS = 1000
# Values and bytes of a column above which a batch has fewer rows.
_VALUES, _BYTES = 1 << 20, 1 << 26
# Characters of a value that no word, tag or part of speech has.
_LONGEST_VALUE = 10_000


def read_parquet(path: Path, reading: Reading) -> Iterator[Sentence]:
    """Yield the rows of a Parquet file, see `sentences_of_table`, a bounded batch at a time."""
    try:
        file = pq.ParquetFile(path)
        features = Features.from_arrow_schema(file.schema_arrow)
        columns = _Columns(features, f"{path}", reading)
        # Strings come as dictionaries, as the file may hold a long one once and refer to it many times.
        leaves = (file.schema.column(at) for at in range(len(file.schema)))
        strings = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        file = pq.ParquetFile(path, read_dictionary=strings)
        first = 0
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            for batch in file.iter_batches(_rows_of_batch(group), [number], columns.names):
                yield from columns.sentences(pa.Table.from_batches([batch]), first)
                first += len(batch)
    except (OSError, pa.ArrowException) as error:
        raise _unsound(path, error) from error


def _rows_of_batch(group: pq.RowGroupMetaData) -> int:
    """Return how many rows to read at once, so that a batch stays small even if a few bytes hold very long rows."""
    columns = [group.column(at) for at in range(group.num_columns)]
    values = max((column.num_values for column in columns), default=0)
    size = max((column.total_uncompressed_size for column in columns), default=0)
    fitting = min(_VALUES * group.num_rows // max(values, 1), _BYTES * group.num_rows // max(size, 1))
    return min(max(fitting, 1), _ROWS)


def read_arrow(path: Path, reading: Reading) -> Iterator[Sentence]:
    """Yield the rows of an Arrow file, a stream or a file (Feather), see `sentences_of_table`."""
    name = str(path.absolute())
    try:
        with path.open("rb") as file:
            is_file = file.read(6) == b"ARROW1"
        if is_file:
            dataset = Dataset(MemoryMappedTable(pa.ipc.open_file(pa.memory_map(name)).read_all(), name))
        else:
            dataset = Dataset.from_file(name)
    # The libraries' errors for a damaged file have no common type.
    except Exception as error:
        raise _unsound(path, error) from error
    return sentences_of_table(dataset, str(path), reading)


def _unsound(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: not a valid Parquet, Arrow or saved dataset ({first_line(error)}); save it again.")


def open_saved(folder: Path) -> DatasetDict:
    """Open a folder that ``save_to_disk`` has written; a single data set becomes ``train``.

    Raises:
        DataError: If the folder is damaged or of another kind.
    """
    try:
        if (folder / "dataset_dict.json").is_file():
            return DatasetDict.load_from_disk(str(folder.absolute()))
        return DatasetDict({"train": Dataset.load_from_disk(str(folder.absolute()))})
    # The library's errors for a damaged folder have no common type.
    except Exception as error:
        raise _unsound(folder, error) from error


def sentences_of_table(dataset: Dataset, source: str, reading: Reading) -> Iterator[Sentence]:
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
        DataError: If columns are missing or of other types, or a row has an empty word
            or tag, a class without a name, or nothing where a value should be.
    """
    columns = _Columns(dataset.features, source, reading)
    # Other columns may be large, and are not read.
    batches = dataset.select_columns(columns.names).with_format("arrow").iter(_ROWS)
    for number, batch in enumerate(batches):
        yield from columns.sentences(batch, number * _ROWS)


class _Columns:
    """The columns of a table that hold words, tags, parts of speech and documents."""

    def __init__(self, features: Features, source: str, reading: Reading) -> None:
        self.source = source
        self.features = features
        self.tokens = self._find(TOKEN_KEYS, reading.token_column, "words", "token_column")
        self.tags = self._find(TAG_KEYS, reading.tag_column, "tags", "tag_column")
        self.pos = next((key for key in POS_KEYS if key in features), None)
        if reading.pos_column is not None:
            named = reading.pos_column != NONE
            self.pos = self._find((), reading.pos_column, "parts of speech", "pos_column") if named else None
        self.tag_names = reading.tag_names
        document = [DOCUMENT_KEY] if DOCUMENT_KEY in features else []
        self.names = list(dict.fromkeys([self.tokens, self.tags, *([self.pos] if self.pos else []), *document]))

    def _find(self, usual: Sequence[str], named: str | None, what: str, option: str) -> str:
        keys = usual if named is None else (named,)
        name = next((key for key in keys if key in self.features), None)
        if name is None:
            raise DataError(
                f"{self.source}: expected {what} in a column {' or '.join(keys)}, among the columns "
                f"{', '.join(self.features)}; rename one, or name it as {option}."
            )
        return name

    def sentences(self, batch: pa.Table, first: int) -> Iterator[Sentence]:
        """Yield the rows of a batch of which the first has some number."""
        rows = zip(
            self._lists(batch, self.tokens),
            self._lists(batch, self.tags),
            self._lists(batch, self.pos) if self.pos else repeat(None, len(batch)),
            batch[DOCUMENT_KEY].to_pylist() if DOCUMENT_KEY in self.names else repeat(None, len(batch)),
            strict=True,
        )
        for number, (words, tags, parts, document) in enumerate(rows, start=first):
            place = f"{self.source}, row {number}"
            yield Sentence(
                self._strings(words, self.tokens, place),
                self._strings(tags, self.tags, place, self.tag_names),
                f"{self.source}, row ",
                number,
                None if parts is None else self._strings(parts, str(self.pos), place),
                None if document is None else str(document),
            )

    def _lists(self, batch: pa.Table, name: str) -> list[Any]:
        """Return the lists of a column; equal strings of a dictionary share their memory."""
        array = batch[name].combine_chunks()
        if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
            raise DataError(f"{self.source}: the column {name} holds {array.type}; expected lists of strings.")
        flat = array.flatten()
        try:
            if pa.types.is_dictionary(flat.type):
                distinct = flat.dictionary.to_pylist()
                values = iter([None if at is None else distinct[at] for at in flat.indices.to_pylist()])
            else:
                values = iter(flat.to_pylist())
        except UnicodeDecodeError:
            raise DataError(
                f"{self.source}: the column {name} holds bytes that are not UTF-8; save it again."
            ) from None
        return [None if size is None else list(islice(values, size)) for size in array.value_lengths().to_pylist()]

    def _strings(self, values: Any, name: str, place: str, names: Sequence[str] = ()) -> list[str]:
        """Return the strings of a row, or the names of its classes."""
        kind = getattr(self.features[name], "feature", None)
        names = kind.names if isinstance(kind, ClassLabel) else names
        # `datasets` means by -1 that there is no label; among labels of single words, that is a fault.
        least = -1 if all(map(looks_like_tag, names)) else 0
        if (
            names
            and type(values) is list
            and all(type(value) is int and least <= value < len(names) for value in values)
        ):
            return [UNLABELLED_TAG if value < 0 else names[value] for value in values]
        if type(values) is not list or not all(type(value) is str and value for value in values):
            raise DataError(
                f"{place}: the column {name} holds {str(values)[:60]}; expected a list of strings, none empty, of "
                "classes with names, or of numbers that tag_names names."
            )
        if any(len(value) > _LONGEST_VALUE for value in values):
            raise DataError(f"{place}: the column {name} holds a value of more than {_LONGEST_VALUE:,} characters.")
        return values
