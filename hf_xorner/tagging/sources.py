"""What is read: texts, columns and JSON Lines, each as raw records first and as texts or words when they are due."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from ..data.columns import BLANKS, DOCUMENT_START
from ..data.json_lines import TEXT_KEY, TOKEN_KEYS, check_characters, find_key, kind_of, record_of, strings
from ..data.textfile import BYTE_ORDER_MARK
from ..errors import DataError
from .lines import BLANK, MARK, Lines, decoded

_BLANK_RUN = re.compile(r"[ \t]+")
_COMMENT = "# "


class Record(NamedTuple):
    """One record of an input.

    Attributes:
        item: A text, or a list of words; None where there is nothing to be tagged.
        form: What the source needs to write the record as it was.
        fault: What is wrong with the record, if that is to be passed over.
    """

    item: str | list[str] | None
    form: Any
    fault: str = ""


class Block(NamedTuple):
    """What stands in columns up to an empty line.

    Attributes:
        lines: The lines, as they are.
        words: Which of them hold a word.
        documents: Which of them begin a document and have as many columns as those of words.
        separator: What separates columns.
    """

    lines: list[str]
    words: list[int]
    documents: list[int]
    separator: str


class Source(Protocol):
    """What can be read as a stream of raw records, few of which are looked at by each of several processes."""

    kind: str
    name: str
    first: int  # the number of the first line or row
    size: int | None

    def raws(self) -> Iterator[Any]:
        """The raw records, from the beginning; of standard input but once."""

    def position(self) -> int:
        """Bytes that have been read, as `size` counts them."""

    def bytes_of(self, raws: Sequence[Any]) -> bytes:
        """What tells raw records from others."""

    def lines_of(self, raw: Any) -> int:
        """Lines or rows that a raw record takes."""

    def record(self, raw: Any, number: int) -> Record:
        """Understand a raw record, whose first line or row has a number; DataError says what is wrong with it."""


class TextLines:
    """One text a line."""

    kind = "text"
    first = 1

    def __init__(self, lines: Lines) -> None:
        """Read some lines."""
        self.lines = lines
        self.name, self.size = lines.name, lines.size

    def raws(self) -> Iterator[Any]:
        """The lines."""
        return iter(self.lines)

    def position(self) -> int:
        """Bytes that have been read."""
        return self.lines.position()

    def bytes_of(self, raws: Sequence[bytes]) -> bytes:
        """The lines themselves."""
        return b"".join(raws)

    def lines_of(self, raw: bytes) -> int:
        """One."""
        return 1

    def record(self, raw: bytes, number: int) -> Record:
        """The text of a line, without its end; a byte-order mark at the beginning of the file is none of it."""
        text = decoded(raw, f"{self.name}:{number}").removesuffix("\n").rstrip("\r")
        return Record(text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text, None)


class JsonLines(TextLines):
    """One object a line, with a text or with words."""

    kind = "jsonl"

    def __init__(self, lines: Lines, field: str | None) -> None:
        """Read some lines.

        Args:
            lines: The lines.
            field: Where the text or the words stand; by default under ``tokens``, ``words`` or ``text``.
        """
        super().__init__(lines)
        self.field = field

    def record(self, raw: bytes, number: int) -> Record:
        """The text or the words of an object; a blank line holds none."""
        place = f"{self.name}:{number}"
        line = decoded(raw, place)
        found = record_of(line, place, found=number > 1)
        return Record(None, line) if found is None else Record(value_of(found, self.field, place), (line, found))


class Columns(TextLines):
    """One word a line, in the first of some columns or in another; an empty line ends a sentence."""

    kind = "columns"

    def __init__(self, lines: Lines, field: str | None) -> None:
        """Read some lines.

        Args:
            lines: The lines.
            field: The number of the column of the words, from 0, or from -1 backwards.
        """
        super().__init__(lines)
        if field is not None and not re.fullmatch(r"-?\d+", field):
            raise DataError(f"field={field!r} is no number of a column; columns are counted from 0.")
        self.column = int(field or 0)
        # Known with the first line that must be one of a word.
        self.by_tab = False
        self.columns = 0

    def raws(self) -> Iterator[bytes]:
        """What stands up to an empty line and with it: a sentence, or nothing but comments and document lines."""
        block: list[bytes] = []
        self.columns = 0
        for line in self.lines:
            block.append(line)
            if not line.strip(BLANK + MARK):
                yield b"".join(block)
                block = []
            elif not self.columns:
                self._look_at(line)
        if block:
            yield b"".join(block)

    def lines_of(self, raw: bytes) -> int:
        """The lines of a sentence."""
        return raw.count(b"\n") + (not raw.endswith(b"\n"))

    def record(self, raw: bytes, number: int) -> Record:
        """The words of a block."""
        lines = decoded(raw, f"{self.name}:{number}").split("\n")
        block = Block(lines, [], [], "\t" if self.by_tab or self.columns == 1 else " ")
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
                f"{place}: {_columns(len(fields))} where the first token line has {self.columns}; "
                "give every line the same number of columns."
            )
        if not -self.columns <= self.column < self.columns:
            raise DataError(f"{place}: field={self.column}, but the line has {_columns(self.columns)}; give another.")
        word = fields[self.column].replace(BYTE_ORDER_MARK, "")
        if not word:
            raise DataError(f"{place}: the token is empty; give every line one.")
        return word

    def _fields(self, line: str) -> list[str] | None:
        """The columns of a line, if there are any."""
        line = line.rstrip("\r").removeprefix(BYTE_ORDER_MARK)
        if not line.strip(BLANKS + BYTE_ORDER_MARK):
            return None
        by_tab = self.by_tab and not line.startswith(f"{DOCUMENT_START} ")
        return line.split("\t") if by_tab else _BLANK_RUN.split(line.strip(BLANKS))

    def _look_at(self, raw: bytes) -> None:
        """Read separator and number of columns off a line, unless it may be a comment."""
        line = raw.decode("utf-8", "replace").rstrip("\r\n").removeprefix(BYTE_ORDER_MARK)
        if _BLANK_RUN.split(line, maxsplit=1)[0] != DOCUMENT_START and not _is_comment(line):
            self.by_tab = "\t" in line
            self.columns = len(self._fields(line) or ())


def _is_comment(line: str) -> bool:
    return line.removeprefix(BYTE_ORDER_MARK).startswith(_COMMENT)


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def value_of(record: dict[str, Any], field: str | None, place: str) -> str | list[str]:
    """Return the text or the words of an object.

    Args:
        record: The object.
        field: Where they stand; by default the words under ``tokens`` or ``words``, else the text under ``text``.
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
    """The field of an object that a text or words are looked for in, if it has any of the usual ones."""
    for key in TOKEN_KEYS:
        value = record.get(key)
        # Annotation tools write words as objects beside the text.
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return key
    return next((key for key in (TEXT_KEY, *TOKEN_KEYS) if key in record), None)


def check_words(words: Iterable[str], place: str) -> None:
    """Refuse words that cannot stand in a column.

    Raises:
        DataError: For a word with a TAB or a line break.
    """
    for word in words:
        if any(character in word for character in "\t\n\r"):
            raise DataError(f"{place}: the word {word!r} holds a TAB or a line break; write spans instead of conll.")
