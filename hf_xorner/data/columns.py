"""Read files of CoNLL columns as a stream of sentences."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .errors import DataError

BYTE_ORDER_MARK = "\ufeff"
DOCUMENT_START = "-DOCSTART-"
# Only these two separate columns: a non-breaking blank or any other Unicode blank belongs to its token.
BLANKS = " \t"

_BLANK_RUN = re.compile(r"[ \t]+")


class Sentence(NamedTuple):
    """A sentence as its file has it.

    Attributes:
        tokens: The first column.
        tags: The last column, unchanged.
        line: The line number of the first token; the others follow without a gap.
    """

    tokens: list[str]
    tags: list[str]
    line: int


def read_columns(path: str | Path) -> Iterator[Sentence]:
    r"""Yield the sentences of a file of CoNLL columns.

    The first column holds the token, the last one the tag; those between are checked for their number only. Whether
    TABs or blanks separate the columns is read off the file's first token line. A line that is empty, or holds only
    blanks and TABs, ends a sentence, and so does a ``-DOCSTART-`` line, which is itself left out.
    Byte-order marks are removed wherever they stand, and lines may end in ``\n`` or ``\r\n``.

    Args:
        path: A file in UTF-8.

    Yields:
        The sentences in the order of the file; none is empty.

    Raises:
        DataError: For a line with too few or too many columns, an empty token or tag, a byte that is not UTF-8, or a
            file without any sentence.
    """
    path = Path(path)
    try:
        yield from _read_sentences(path)
    except UnicodeDecodeError:
        # The decoder works on large blocks and does not know the line: look for it only now that it is needed.
        raise _undecodable(path) from None


def _read_sentences(path: Path) -> Iterator[Sentence]:
    tokens: list[str] = []
    tags: list[str] = []
    separated_by_tab: bool | None = None
    columns = 0
    found = False
    # newline="\n": str.splitlines and universal newlines also break at characters that may stand inside a token.
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, raw in enumerate(file, start=1):
            line = raw.rstrip("\r\n")
            if BYTE_ORDER_MARK in line:
                line = line.replace(BYTE_ORDER_MARK, "")
            if not line.strip(BLANKS) or _opens_document(line):
                if tokens:
                    yield Sentence(tokens, tags, number - len(tokens))
                    tokens, tags = [], []
                continue
            if separated_by_tab is None:
                separated_by_tab = "\t" in line
            fields = line.split("\t") if separated_by_tab else _split_at_blanks(line)
            if len(fields) != columns:
                columns = _check_columns(len(fields), columns, path, number)
            token, tag = fields[0], fields[-1]
            if not token or not tag:
                raise DataError(f"{path}:{number}: the {'tag' if token else 'token'} is empty; give every line both.")
            found = True
            tokens.append(token)
            tags.append(tag)
    if tokens:
        yield Sentence(tokens, tags, number - len(tokens) + 1)
    if not found:
        raise DataError(f"{path}:1: the file holds no sentence; expected lines of a token and its tag.")


def _opens_document(line: str) -> bool:
    return line.startswith(DOCUMENT_START) and _BLANK_RUN.split(line, maxsplit=1)[0] == DOCUMENT_START


def _split_at_blanks(line: str) -> list[str]:
    fields = line.split(" ")
    # The regular expression costs several times the plain split, and few files align their columns with it.
    if "" in fields or "\t" in line:
        return _BLANK_RUN.split(line.strip(BLANKS))
    return fields


def _check_columns(count: int, expected: int, path: Path, number: int) -> int:
    """Return the number of columns that the file's first token line sets, or refuse a line that departs from it."""
    if expected:
        raise DataError(
            f"{path}:{number}: {_columns(count)} where the lines before have {expected}; "
            "give every line the same number of columns."
        )
    if count < 2:
        raise DataError(
            f"{path}:{number}: one column only; expected a token and its tag, separated by a TAB or blanks."
        )
    return count


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _undecodable(path: Path) -> DataError:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return DataError(f"{path}:{number}: byte 0x{byte:02x} is not valid UTF-8; save the file as UTF-8.")
    return DataError(f"{path}: the file is not valid UTF-8; save it as UTF-8.")
