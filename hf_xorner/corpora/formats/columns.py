"""Read files of CoNLL columns as a stream of sentences."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

from ...errors import DataError
from ...files import BYTE_ORDER_MARK, open_text
from ..source import AUTO, NONE, Reading, Sentence

DOCUMENT_START = "-DOCSTART-"
# Only these two separate columns: a non-breaking blank or any other Unicode blank belongs to its token.
BLANKS = " \t"

# Characters that are read at a time.
_CHUNK = 1 << 18
_BLANK_RUN = re.compile(r"[ \t]+")
_BLANK_LINE = re.compile(r"^[ \t]+$", re.MULTILINE)
_EDGE_BLANK = re.compile(r"^ | $", re.MULTILINE)
_CARRIAGE_RETURNS = re.compile(r"\r+(?=\n|\Z)")
_DOCUMENT_ID = re.compile(rf"{DOCUMENT_START}[ \t]+\((.*)\)[ \t]*$")


class _Layout(NamedTuple):
    """The columns of a file."""

    by_tab: bool
    columns: int
    token: int
    tag: int
    pos: int | None


def read_columns(path: str | Path, reading: Reading | None = None) -> Iterator[Sentence]:
    r"""Yield the sentences of a file of CoNLL columns.

    The first column holds the token, the last one the tag; of three or four columns the second is read as the part of
    speech. Whether TABs or blanks separate the columns is read off the file's first token line. A line that is empty,
    or holds only blanks and TABs, ends a sentence. So does a ``-DOCSTART-`` line, which is itself left out and begins a
    document: the documents of a file are numbered from 0, or have the name in brackets that follows, ``-DOCSTART-
    (name)``. A line that begins with ``#`` and a blank, stands before a sentence and has another number of columns than
    the others is a comment. Byte-order marks are removed wherever they stand; lines may end in ``\n`` or ``\r\n``.

    Args:
        path: A file in UTF-8, plain or compressed by gzip.
        reading: The options that differ from this.

    Yields:
        The sentences in the order of the file; none is empty.

    Raises:
        DataError: For a line with too few or too many columns, an empty token or tag, a byte that is not UTF-8, or a
            file without any sentence.
    """
    path = Path(path)
    reading = reading or Reading()
    layout = _layout_of(path, reading)
    with open_text(path) as file:
        yield from _Reader(path, layout, reading.comments).sentences(file)


class _Reader:
    """Cuts the text of one file into sentences."""

    def __init__(self, path: Path, layout: _Layout, comments: str) -> None:
        self.path = path
        self.layout = layout
        self.comments = comments
        self.separator = "\t" if layout.by_tab else " "
        self.documents = 0
        self.doc_id: str | None = None

    def sentences(self, file: TextIO) -> Iterator[Sentence]:
        """Yield the sentences of the file."""
        number = 1
        for pieces in _pieces(file, self.layout.by_tab):
            for piece in pieces:
                if self._is_plain(piece):
                    yield self._sentence(piece, number)
                elif piece.strip("\n"):
                    yield from self._line_by_line(piece.split("\n"), number)
                # The empty line that parts two pieces is in neither of them.
                number += piece.count("\n") + 2

    def _is_plain(self, piece: str) -> bool:
        """Return whether a piece of text holds one sentence and nothing else."""
        if not piece or piece[0] in "\n#" or piece[-1] == "\n" or DOCUMENT_START in piece:
            return False
        return self.comments in (AUTO, NONE) or self.comments not in piece

    def _line_by_line(self, lines: list[str], number: int) -> Iterator[Sentence]:
        """Yield the sentences of lines that may include document lines, comments and empty lines."""
        inside: list[str] = []
        for at, line in enumerate([*lines, ""], start=number):
            if line and _first_field(line) != DOCUMENT_START:
                if not self._is_comment(line, bool(inside), at):
                    inside.append(line)
                continue
            if inside:
                yield self._sentence("\n".join(inside), at - len(inside))
                inside = []
            if line:
                named = _DOCUMENT_ID.match(line)
                self.doc_id = named[1] if named else str(self.documents)
                self.documents += 1

    def _is_comment(self, line: str, inside_sentence: bool, number: int) -> bool:
        if self.comments == AUTO:
            may_be = line.startswith("# ") and not inside_sentence
            return may_be and line.count(self.separator) + 1 != self.layout.columns
        if self.comments == NONE or not line.startswith(self.comments):
            return False
        if inside_sentence:
            raise DataError(f"{self.path}:{number}: a comment inside a sentence; move it before the sentence.")
        return True

    def _sentence(self, text: str, number: int) -> Sentence:
        """Return the sentence of lines with one token each."""
        separator, columns = self.separator, self.layout.columns
        lines = text.count("\n") + 1
        # One split for all lines; a line break in every place where one belongs proves that no line has another
        # number of columns.
        fields = text.replace("\n", f"{separator}\n{separator}").split(separator)
        width = columns + 1
        if len(fields) != lines * width - 1 or fields[columns::width].count("\n") != lines - 1:
            raise self._ragged(text, number)
        tokens, tags = fields[self.layout.token :: width], fields[self.layout.tag :: width]
        for values, what in ((tokens, "token"), (tags, "tag")):
            if "" in values:
                at = number + values.index("")
                raise DataError(f"{self.path}:{at}: the {what} is empty; give every line both.")
        pos_tags = None if self.layout.pos is None else fields[self.layout.pos :: width]
        return Sentence(tokens, tags, f"{self.path}:", number, 1, pos_tags, self.doc_id)

    def _ragged(self, text: str, number: int) -> DataError:
        counts = [line.count(self.separator) + 1 for line in text.split("\n")]
        index = next(index for index, count in enumerate(counts) if count != self.layout.columns)
        return DataError(
            f"{self.path}:{number + index}: {_columns(counts[index])} where the first token line has "
            f"{self.layout.columns}; give every line the same number of columns."
        )


def _pieces(file: TextIO, by_tab: bool) -> Iterator[list[str]]:
    """Yield the text between empty lines, many pieces at a time."""
    rest = ""
    while chunk := file.read(_CHUNK):
        *pieces, rest = (rest + _clean(chunk + file.readline(), by_tab)).split("\n\n")
        yield pieces
    yield [rest.removesuffix("\n")]


def _clean(chunk: str, by_tab: bool) -> str:
    """Remove byte-order marks, carriage returns and superfluous blanks."""
    if BYTE_ORDER_MARK in chunk:
        chunk = chunk.replace(BYTE_ORDER_MARK, "")
    if "\r" in chunk:
        chunk = _CARRIAGE_RETURNS.sub("", chunk)
    # These searches are much faster than the regular expressions that they avoid.
    edged = f"\n{chunk}\n"
    if by_tab:
        return _BLANK_LINE.sub("", chunk) if "\n\t" in edged or "\n " in edged else chunk
    if any(blanks in edged for blanks in ("\t", "  ", " \n", "\n ")):
        return _EDGE_BLANK.sub("", _BLANK_RUN.sub(" ", chunk))
    return chunk


def _first_field(line: str) -> str:
    return _BLANK_RUN.split(line, maxsplit=1)[0]


def _layout_of(path: Path, reading: Reading) -> _Layout:
    """Return the layout of a file, taken from its first token line."""
    first: tuple[int, str] | None = None
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            line = line.replace(BYTE_ORDER_MARK, "").rstrip("\r\n")
            if not line.strip(BLANKS) or _first_field(line) == DOCUMENT_START:
                continue
            # A line that may be a comment decides only where there is no other.
            doubtful = line.startswith("#" if reading.comments == AUTO else reading.comments)
            if not doubtful or reading.comments == NONE:
                first = (number, line)
                break
            if first is None and reading.comments == AUTO:
                first = (number, line)
    if first is None:
        raise DataError(f"{path}:1: the file holds no sentence; expected lines of a token and its tag.")
    return _layout(*first, path, reading)


def _layout(number: int, line: str, path: Path, reading: Reading) -> _Layout:
    by_tab = "\t" in line if reading.separator == AUTO else reading.separator == "tab"
    columns = len(line.split("\t") if by_tab else _BLANK_RUN.split(line.strip(BLANKS)))
    if columns < 2:
        raise DataError(
            f"{path}:{number}: one column only; expected a token and its tag, separated by a TAB or blanks."
        )

    def column(name: str, default: str) -> int:
        value = getattr(reading, name) or default
        if not re.fullmatch(r"-?\d+", value) or not -columns <= int(value) < columns:
            raise DataError(
                f"{path}:{number}: {name}={value}, but the line has {_columns(columns)}; "
                f"give a number from 0 to {columns - 1}, or from -{columns} to -1 counted from the end."
            )
        return int(value) % columns

    token, tag = column("token_column", "0"), column("tag_column", "-1")
    if token == tag:
        raise DataError(
            f"{path}:{number}: column {token} is given for both tokens and tags; give token_column and tag_column."
        )
    if reading.pos_column is None:
        pos = 1 if columns in (3, 4) and 1 not in (token, tag) else None
    else:
        pos = None if reading.pos_column == NONE else column("pos_column", "1")
    return _Layout(by_tab, columns, token, tag, pos)


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"
