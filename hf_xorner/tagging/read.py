"""Read inputs as streams of raw records, which become texts or words when they are tagged."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
from datasets import IterableDataset, LargeList, List

from ..corpora.formats.json_lines import (
    TEXT_KEY,
    TOKEN_KEYS,
    begins_document,
    check_characters,
    find_key,
    kind_of,
    lines_of_document,
    record_of,
    strings,
)
from ..corpora.formats.layout import BLANKS, DOCUMENT_START
from ..corpora.formats.tables import ParquetRows, open_table
from ..corpora.load import load_hub_dataset
from ..errors import DataError
from ..files import BYTE_ORDER_MARK, bounded, damage_reported, open_bytes

STDIN, STDIN_NAME = "-", "standard input"
_MARK = BYTE_ORDER_MARK.encode()
_BLANK = b" \t\r\n"
_BLANK_RUN = re.compile(r"[ \t]+")
_COMMENT = "# "
_TEXTS = {"string", "large_string", "string_view", "null"}  # a column without any value has the type null


class Lines:
    r"""The lines of a file, plain or gzip, or of standard input; they end in ``\n`` alone."""

    def __init__(self, name: str) -> None:
        """Read a file, or `STDIN`, which can be read only once."""
        self.path = None if name == STDIN else Path(name)
        self.name = STDIN_NAME if name == STDIN else name
        self.size = None if self.path is None else os.stat(self.path).st_size
        self._file: IO[bytes] | None = None
        self._head: list[bytes] = []  # the lines of standard input that `first_line` has read

    def __iter__(self) -> Iterator[bytes]:
        with damage_reported(Path(self.name)):
            if self.path is None:
                self._file, head, self._head = self._file or bounded(sys.stdin.buffer, self.name), self._head, []
                yield from chain(head, self._file)
            else:
                with open_bytes(self.path) as file:
                    self._file = file
                    yield from file
                self._file = None

    def first_line(self) -> str:
        """Return the first line that is not blank, without a byte-order mark, for recognising the format."""
        lines = []
        for line in self:
            lines.append(line)
            if line.strip(_BLANK + _MARK):
                break
        if self.path is None:
            self._head = lines
        first = lines[-1] if lines else b""
        return first.decode("utf-8", "replace").replace(BYTE_ORDER_MARK, "")

    def position(self) -> int:
        """Return the bytes of the file on disk that have been read so far; 0 for standard input."""
        if self.path is None or self._file is None:
            return self.size or 0
        file: Any = self._file
        return file.raw.position()


def _decoded(raw: bytes, name: str, number: int) -> str:
    """Return the text of the bytes that begin at a line of a file.

    Raises:
        DataError: If they are not UTF-8.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = number + raw.count(b"\n", 0, error.start)
        byte = raw[error.start]
        raise DataError(f"{name}:{line}: byte 0x{byte:02x} is not valid UTF-8; save the file as UTF-8.") from None


class Record(NamedTuple):
    """One record of an input.

    Attributes:
        item: A text, or a list of words; None if there is nothing to tag.
        form: The record as it was read, for writing it with tags added.
        fault: The error message of a faulty record that is skipped.
    """

    item: str | list[str] | None
    form: Any
    fault: str = ""


class RecordBlock(NamedTuple):
    """The lines of a file of columns up to an empty line.

    Attributes:
        lines: The lines, unchanged.
        words: Indices of the lines with a word.
        documents: Indices of the lines that begin a document and have as many columns as those with a word.
        separator: The separator of columns.
    """

    lines: list[str]
    words: list[int]
    documents: list[int]
    separator: str


class Source:
    """An input as a stream of raw records."""

    kind = ""
    name = ""
    first = 1  # the number of the first line or row
    size: int | None = None  # in bytes, if it is known

    def raw_records(self) -> Iterator[Any]:
        """Iterate over the raw records from the beginning; standard input can be read only once."""
        raise NotImplementedError

    def position(self) -> int:
        """Return the bytes read so far, out of `size`."""
        return 0

    def lines_of(self, raw: Any) -> int:
        """Return the number of lines or rows of a raw record."""
        return 1

    def record(self, raw: Any, number: int) -> Record:
        """Parse the raw record that begins at a line or row; raises DataError for a faulty one."""
        raise NotImplementedError


class TextLines(Source):
    """One text a line."""

    kind = "text"

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.name, self.size = lines.name, lines.size

    def raw_records(self) -> Iterator[Any]:
        """Iterate over the lines."""
        return iter(self.lines)

    def position(self) -> int:
        """Return the bytes read so far."""
        return self.lines.position()

    def record(self, raw: bytes, number: int) -> Record:
        """Return a line without its end; a byte-order mark at the beginning of the file is removed."""
        text = _decoded(raw, self.name, number).removesuffix("\n").rstrip("\r")
        return Record(text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text, None)


class JsonLines(TextLines):
    """Objects with a text or with words: one a line, or an array, which is read as a whole."""

    kind = "jsonl"

    def __init__(self, lines: Lines, field: str | None) -> None:
        """Read lines of JSON.

        Args:
            lines: The lines.
            field: The key of the text or the words; by default ``tokens``, ``words`` or ``text``.
        """
        super().__init__(lines)
        self.field = field
        self.in_array = False

    def raw_records(self) -> Iterator[bytes]:
        """Iterate over the lines, or over the elements of an array, each in a line."""
        self.in_array = False
        lines = iter(self.lines)
        for number, line in enumerate(lines, start=1):
            self.in_array = number == 1 and begins_document(line.decode("utf-8", "replace"))
            if self.in_array:
                text = _decoded(line + b"".join(lines), self.name, 1)
                yield from (element.encode() for element in lines_of_document(text, 1, self.name))
                return
            yield line

    def record(self, raw: bytes, number: int) -> Record:
        """Return the text or the words of an object; a blank line has none."""
        place = f"{self.name}, record {number}" if self.in_array else f"{self.name}:{number}"
        line = _decoded(raw, self.name, number)
        found = record_of(line, place)
        if found is not None and isinstance(found.get("data"), dict) and usual_field(found) is None:
            found = found["data"]  # of a task of Label Studio
        return Record(None if found is None else value_of(found, self.field, place), line)


class Columns(TextLines):
    """One word a line, in one of several columns; an empty line ends a sentence."""

    kind = "columns"

    def __init__(self, lines: Lines, field: str | None) -> None:
        """Read lines of columns.

        Args:
            lines: The lines.
            field: The column of the words: a number from 0, or from -1 backwards.
        """
        super().__init__(lines)
        if field is not None and not re.fullmatch(r"-?\d+", field):
            raise DataError(f"field={field!r} is not the number of a column; columns are counted from 0.")
        self.column = int(field or 0)
        # Set by the first line that must hold a word.
        self.by_tab = False
        self.columns = 0

    def raw_records(self) -> Iterator[bytes]:
        """Iterate over blocks of lines up to an empty line: a sentence, or only comments and document lines."""
        block: list[bytes] = []
        self.columns = 0
        for line in self.lines:
            block.append(line)
            if not line.strip(_BLANK + _MARK):
                yield b"".join(block)
                block = []
            elif not self.columns:
                self._infer_columns(line)
        if block:
            yield b"".join(block)

    def lines_of(self, raw: bytes) -> int:
        """Return the number of lines of a block."""
        return raw.count(b"\n") + (not raw.endswith(b"\n"))

    def record(self, raw: bytes, number: int) -> Record:
        """Return the words of a block."""
        lines = _decoded(raw, self.name, number).split("\n")
        block = RecordBlock(lines, [], [], "\t" if self.by_tab or self.columns == 1 else " ")
        words: list[str] = []
        for place, line in enumerate(lines):
            fields = self._fields(line)
            if not fields:
                continue
            if fields[0] == DOCUMENT_START:
                if len(fields) == self.columns:
                    block.documents.append(place)
            elif words or len(fields) == self.columns or not _is_comment(line):
                words.append(self._word(fields, number + place))
                block.words.append(place)
        return Record(words or None, block)

    def _word(self, fields: list[str], number: int) -> str:
        place = f"{self.name}:{number}"
        if len(fields) != self.columns:
            raise DataError(
                f"{place}: number of columns {len(fields)}, but {self.columns} in the first token line; "
                "give every line the same number."
            )
        if not -self.columns <= self.column < self.columns:
            raise DataError(f"{place}: field={self.column}, but the number of columns is {self.columns}; give another.")
        word = fields[self.column].replace(BYTE_ORDER_MARK, "")
        if not word:
            raise DataError(f"{place}: the token is empty; give every line one.")
        return word

    def _fields(self, line: str) -> list[str] | None:
        """Return the columns of a line, or None for a blank one."""
        line = line.rstrip("\r").removeprefix(BYTE_ORDER_MARK)
        if not line.strip(BLANKS + BYTE_ORDER_MARK):
            return None
        by_tab = self.by_tab and not line.startswith(f"{DOCUMENT_START} ")
        return line.split("\t") if by_tab else _BLANK_RUN.split(line.strip(BLANKS))

    def _infer_columns(self, raw: bytes) -> None:
        """Infer the separator and the number of columns from a line, unless it may be a comment."""
        line = raw.decode("utf-8", "replace").rstrip("\r\n").removeprefix(BYTE_ORDER_MARK)
        if _BLANK_RUN.split(line, maxsplit=1)[0] != DOCUMENT_START and not _is_comment(line):
            self.by_tab = "\t" in line
            self.columns = len(self._fields(line) or ())


def _is_comment(line: str) -> bool:
    return line.removeprefix(BYTE_ORDER_MARK).startswith(_COMMENT)


def value_of(record: dict[str, Any], field: str | None, place: str) -> str | list[str]:
    """Return the text or the words of an object.

    Args:
        record: The object.
        field: Their key; by default ``tokens`` or ``words`` for words, else ``text``.
        place: The file and line.

    Raises:
        DataError: If there is neither.
    """
    key = field or usual_field(record)
    key = find_key(record, (key,) if key else (*TOKEN_KEYS, TEXT_KEY), "text or words", "field", place)
    value = record[key]
    if isinstance(value, list):
        return strings(record, key, place)
    if not isinstance(value, str):
        raise DataError(f"{place}: {key!r} holds {kind_of(value)}; write a string, or a list of strings.")
    check_characters(value, key, place)
    return value


def usual_field(record: dict[str, Any]) -> str | None:
    """Return the key of the text or the words of an object, or None if it has none of the usual keys."""
    for key in TOKEN_KEYS:
        value = record.get(key)
        # Annotation tools write words as objects beside the text.
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return key
    return next((key for key in (TEXT_KEY, *TOKEN_KEYS) if key in record), None)


def check_words(words: Iterable[str], place: str) -> None:
    """Refuse words that cannot be written in a column.

    Raises:
        DataError: For a word with a TAB or a line break.
    """
    for word in words:
        if any(character in word for character in "\t\n\r"):
            raise DataError(f"{place}: the word {word!r} holds a TAB or a line break; write spans instead of conll.")


class RowFile(Source):
    """The values of one column, each a text or a list of words."""

    kind = "rows"
    first = 0
    field: str | None = None

    def record(self, raw: Any, number: int) -> Record:
        """Return a value."""
        place = f"{self.name}, row {number}"
        if raw is None:
            raise DataError(f"{place}: the column {self.field} holds nothing; fill or remove the row.")
        if isinstance(raw, bytes):
            raise DataError(f"{place}: the column {self.field} holds bytes that are not UTF-8; correct it.")
        return Record(value_of({str(self.field): raw}, self.field, place), None)


class ParquetColumn(RowFile):
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
            raise DataError(f"{path}: is not Parquet; convert it, or name its format as input_format.")
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
        feature = rows.features[self.field]
        self.holds_words = isinstance(feature, (List, LargeList))
        if getattr(getattr(feature, "feature", feature), "dtype", None) not in _TEXTS:
            raise DataError(
                f"{path}: the column {self.field} holds {feature}; name one of strings or of lists of strings."
            )

    def raw_records(self) -> Iterator[Any]:
        """Iterate over the values."""
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
        """Return the share of the rows that have been read, in bytes."""
        return int(self._read * (self.size or 0) / max(1, len(self._rows)))


class HubRows(RowFile):
    """A column of a dataset on the Hub, streamed."""

    def __init__(self, name: str, split: str | None, field: str | None) -> None:
        """Open a dataset.

        Args:
            name: ``owner/name``.
            split: The split; may be None if there is only one.
            field: The column; by default ``tokens``, ``words`` or ``text``.
        """
        splits = load_hub_dataset(name, streaming=True)
        if split is None and len(splits) == 1:
            split = next(iter(splits))
        if split not in splits:
            what = f"no split {split!r}" if split else "several splits"
            raise DataError(f"{name}: {what}; name one of {', '.join(splits)} as split.")
        self.name = f"{name}, {split}"
        self.field = field
        self._rows: IterableDataset = splits[split]

    def raw_records(self) -> Iterator[Any]:
        """Iterate over the values."""
        for row in self._rows:
            if self.field is None:
                self.field = usual_field(row)
            if self.field not in row:
                raise DataError(
                    f"{self.name}: no column {self.field or 'tokens, words or text'} among {', '.join(row)}; "
                    "name one as field."
                )
            yield row[self.field]


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return b""
