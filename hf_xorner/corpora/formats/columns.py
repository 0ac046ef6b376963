"""Read files of CoNLL columns as a stream of sentences."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ...errors import DataError
from ...files import BYTE_ORDER_MARK
from ..encodings import encoding_of, open_corpus_file
from ..source import AUTO, NONE, Reading, Repairs, Sentence
from .layout import (
    BLANK_RUN,
    DOCUMENT_START,
    WORD_NUMBER,
    ColumnLayout,
    first_field,
    in_words,
    layout_of,
    looks_like_tag,
    split_line,
)

# The part of speech of a word whose line does not show it.
UNKNOWN = "_"
_TYPE_O = "B-O"
# Characters that are read at a time.
_CHUNK = 1 << 18
_BLANK_LINE = re.compile(r"^[ \t]+$", re.MULTILINE)
_EDGE_BLANK = re.compile(r"^ | $", re.MULTILINE)
_CARRIAGE_RETURNS = re.compile(r"\r+(?=\n|\Z)")
_DOCUMENT_ID = re.compile(rf"{DOCUMENT_START}[ \t]+\((.*)\)[ \t]*$")


def read_columns(
    path: str | Path, reading: Reading | None = None, repairs: Repairs | None = None
) -> Iterator[Sentence]:
    r"""Yield the sentences of a file of CoNLL columns.

    The first column holds the token, the last one the tag; of three or four columns the second is read as the part of
    speech. Where the first column numbers the words, the second holds the token, and where only another column than
    the last holds tags of a chunk scheme, it holds the tags: `layout_of` reads this off the first lines, and whether
    TABs or blanks separate the columns off the first token line. A line with more or fewer columns is read if it is
    clear which hold its token and its tag.

    A line that is empty, or holds only blanks and TABs, ends a sentence. So does a ``-DOCSTART-`` line, which is itself
    left out and begins a document: the documents of a file are numbered from 0, or have the name in brackets that
    follows, ``-DOCSTART- (name)``. A line that begins with ``#`` and a blank or TAB, stands before a sentence and has
    another number of columns than the others is a comment. Byte-order marks are removed wherever they stand; lines may
    end in ``\n`` or ``\r\n``.

    Args:
        path: A file, plain or compressed by gzip.
        reading: The options that differ from this.
        repairs: Notes other columns than the usual ones, another encoding than UTF-8, and bad lines that are left out.

    Yields:
        The sentences in the order of the file; none is empty.

    Raises:
        DataError: For a line whose token or tag is missing or cannot be told from other columns, a byte that the
            encoding does not have, or a file without any sentence.
    """
    path = Path(path)
    reading = reading or Reading()
    repairs = repairs or Repairs(reading)
    layout = layout_of(path, reading)
    encoding_of(path, reading, repairs)
    if layout.note:
        repairs.note(layout.note, str(path))
    with open_corpus_file(path, reading) as file:
        yield from _Reader(path, layout, reading, repairs).sentences(file)


class _Reader:
    """Cuts the text of one file into sentences."""

    def __init__(self, path: Path, layout: ColumnLayout, reading: Reading, repairs: Repairs) -> None:
        self.path = path
        self.layout = layout
        self.comments = reading.comments
        self.skips = reading.skip_bad_lines
        self.repairs = repairs
        self.separator = "\t" if layout.by_tab else " "
        self.documents = 0
        self.doc_id: str | None = None

    def sentences(self, file: TextIO) -> Iterator[Sentence]:
        """Yield the sentences of the file."""
        number = 1
        for pieces in _pieces(file, self.layout.by_tab):
            for piece in pieces:
                if self._is_plain(piece):
                    yield from self._sentence(piece, number)
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
            if line and first_field(line) != DOCUMENT_START:
                if not self._is_comment(line, bool(inside), at):
                    inside.append(line)
                continue
            if inside:
                yield from self._sentence("\n".join(inside), at - len(inside))
                inside = []
            if line:
                named = _DOCUMENT_ID.match(line)
                self.doc_id = named[1] if named else str(self.documents)
                self.documents += 1

    def _is_comment(self, line: str, inside_sentence: bool, number: int) -> bool:
        if self.comments == AUTO:
            may_be = line.startswith(("# ", "#\t")) and not inside_sentence
            return may_be and line.count(self.separator) + 1 != self.layout.columns
        if self.comments == NONE or not line.startswith(self.comments):
            return False
        if inside_sentence:
            raise DataError(f"{self.path}:{number}: a comment inside a sentence; move it before the sentence.")
        return True

    def _sentence(self, text: str, number: int) -> Iterator[Sentence]:
        """Yield the sentence of lines with one token each, unless all of them are left out."""
        separator, columns = self.separator, self.layout.columns
        lines = text.count("\n") + 1
        # One split for all lines; a line break in every place where one belongs proves that no line has another
        # number of columns.
        fields = text.replace("\n", f"{separator}\n{separator}").split(separator)
        width = columns + 1
        tokens, tags = fields[self.layout.token :: width], fields[self.layout.tag :: width]
        aligned = len(fields) == lines * width - 1 and fields[columns::width].count("\n") == lines - 1
        if not aligned or "" in tokens or "" in tags or self._has_other_numbers(fields[::width]):
            yield from self._row_by_row(text, number)
            return
        pos_tags = None if self.layout.pos is None else fields[self.layout.pos :: width]
        if self.layout.numbered and _TYPE_O in tags:
            tags = [self._outside(at) if tag == _TYPE_O else tag for at, tag in enumerate(tags, start=number)]
        yield Sentence(
            tokens, tags, f"{self.path}:", number, pos_tags, self.doc_id, list(range(number, number + lines))
        )

    def _has_other_numbers(self, numbers: list[str]) -> bool:
        return self.layout.numbered and not all(map(str.isdecimal, numbers))

    def _row_by_row(self, text: str, number: int) -> Iterator[Sentence]:
        """Yield the sentence of lines of which some have other columns than the first token line, or faults."""
        layout = self.layout
        rows = [split_line(line, layout.by_tab) for line in text.split("\n")]
        even = len(rows) > 1 and len({len(row) for row in rows}) == 1
        found: list[tuple[int, str, str, str]] = []
        for at, row in enumerate(rows, start=number):
            # A range of words that are listed as well, or a word that is not in the text.
            if layout.numbered and not row[0].isdecimal() and WORD_NUMBER.fullmatch(row[0]):
                continue
            # Some programs end every line with a TAB.
            while len(row) > layout.columns and not row[-1]:
                del row[-1]
            try:
                token, tag = self._token_and_tag(row, even, at)
            except DataError as error:
                self.repairs.leave_out(error)
                continue
            # Which of its columns is the part of speech is not clear in a line that has more or fewer.
            pos = row[layout.pos] if layout.pos is not None and len(row) == layout.columns else UNKNOWN
            if layout.numbered and tag == _TYPE_O:
                tag = self._outside(at)
            found.append((at, token, tag, pos))
        if found:
            yield Sentence.of_rows(found, self.path, layout.pos is not None, self.doc_id)

    def _outside(self, number: int) -> str:
        """Return ``O`` for ``B-O`` in a line, with which Universal NER has marked words outside of entities."""
        self.repairs.add(f"tags {_TYPE_O} became O", f"{self.path}:{number}")
        return "O"

    def _token_and_tag(self, row: list[str], even: bool, number: int) -> tuple[str, str]:
        """Return the token and the tag of a line.

        Args:
            row: Its columns.
            even: Whether all lines of its sentence have as many.
            number: Its number.
        """
        layout = self.layout
        size = len(row)
        token, tag = layout.token, layout.tag
        if size != layout.columns:
            token, tag = layout.named or (token, self._tag_of(row, even))
            if not (-size <= token < size and -size <= tag < size) or token % size == tag % size:
                raise self._ragged(row, number)
        for value, what in ((row[token], "token"), (row[tag], "tag")):
            if not value:
                raise DataError(f"{self.path}:{number}: the {what} is empty; give every line both.")
        return row[token], row[tag]

    def _tag_of(self, row: list[str], even: bool) -> int:
        """Return the index of the tag of a line with more or fewer columns than the first; that of none if unclear."""
        layout, size = self.layout, len(row)
        unclear = size
        if not layout.chunked or size <= layout.token + 1:
            return unclear
        at_left = layout.tag if layout.tag < size and looks_like_tag(row[layout.tag]) else unclear
        if layout.tag < layout.columns - 1:
            return at_left
        at_right = size - 1 if looks_like_tag(row[-1]) else unclear
        if size < layout.columns or at_right == unclear:
            return min(at_left, at_right)
        if layout.columns == 2:
            return unclear
        # With blanks between columns, a token of two words looks like one more column, unless all lines have it.
        return at_right if layout.by_tab or even else at_left

    def _ragged(self, row: list[str], number: int) -> DataError:
        given = "TABs" if self.layout.by_tab else "blanks"
        return DataError(
            f"{self.path}:{number}: {in_words(len(row))} where the first token line has {self.layout.columns}; "
            f"separate its token and its tag by {given}, name token_column and tag_column."
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
        return _EDGE_BLANK.sub("", BLANK_RUN.sub(" ", chunk))
    return chunk
