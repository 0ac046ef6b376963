"""Read the files of CoNLL-2012, in which OntoNotes is distributed, as a stream of sentences."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import DataError
from ...files import BYTE_ORDER_MARK
from ..encodings import encoding_of, open_corpus_file
from ..source import NONE, Reading, Repairs, Sentence

TOKEN_COLUMN, POS_COLUMN, TAG_COLUMN = 3, 4, 10

# All that str.split takes for blank beside blanks, TABs and the ends of lines.
_OTHER_BLANKS = (
    "\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_BLANK_RUN = re.compile(r"[ \t]+")
_BEGIN = re.compile(r"#begin document \((.+)\)(?:; part (\d+))?")
_BEGINS, _ENDS = "#begin document", "#end document"
# A cell of the column of named entities that is not a plain star: it opens an entity of a type, closes one, or both.
_CELL = re.compile(r"\(([^()*]+)(?:\*|\*?\))|\*\)")
# What stands for every word in the files that are given away without the words.
_HIDDEN = "[WORD]"
# What stands in a column that nobody annotated.
_NOTHING = "-"
# Characters of lines that are looked through at once.
_CHUNK = 1 << 16


def read_conll2012(path: Path, reading: Reading, repairs: Repairs | None = None) -> Iterator[Sentence]:
    """Yield the sentences of a CoNLL-2012 file, their entities as tags in IOB2.

    Columns are separated by runs of blanks and TABs: document, part, word number, word, part of speech, and from 10 the
    entities in brackets, ``(PERSON*``, ``*``, ``*)`` or ``(GPE)``. How many follow varies by sentence. A blank line
    ends a sentence. ``#begin document (id); part 000`` names its document: ``id``, or ``id#1`` and so on for the parts
    that follow the first.

    Args:
        path: A file in UTF-8, plain or gzip.
        reading: The options that differ from this.
        repairs: Notes another encoding than UTF-8, and sentences with bad lines that are left out.

    Yields:
        The sentences in the order of the file; none is empty.

    Raises:
        DataError: For a line with too few columns, entities whose brackets do not match or that lie in each other, a
            file whose words have been taken out, and one without any sentence.
    """
    source = f"{path}:"
    token_column = _column(reading.token_column, TOKEN_COLUMN, "token_column")
    tag_column = _column(reading.tag_column, TAG_COLUMN, "tag_column")
    with_pos = reading.pos_column != NONE
    pos_column = _column(reading.pos_column, POS_COLUMN, "pos_column") if with_pos else token_column
    columns = (token_column, tag_column, pos_column)
    needed = max(column + 1 if column >= 0 else -column for column in columns)
    # What follows the last column that is read need not be split, unless columns count from the end.
    splits = needed if min(columns) >= 0 else -1

    def sentence(first: int, rows: list[list[str]], document: str | None) -> Sentence:
        if min(map(len, rows)) < needed:
            raise _too_short(rows, needed, source, first)
        tokens = [row[token_column] for row in rows]
        if _HIDDEN in tokens:
            raise DataError(
                f"{source}{first + tokens.index(_HIDDEN)}: the words have been taken out of this file; "
                "make a file with words from it and your copy of OntoNotes first."
            )
        tags = _iob2([row[tag_column] for row in rows], source, first)
        pos_tags = [row[pos_column] for row in rows] if with_pos else None
        if reading.pos_column is None and set(pos_tags or ()) == {_NOTHING}:
            pos_tags = None
        return Sentence(tokens, tags, source, first, pos_tags, document)

    repairs = repairs or Repairs(reading)
    encoding_of(path, reading, repairs)
    found = False
    for first, rows, document in _blocks(path, reading, splits, repairs):
        found = True
        try:
            ready = sentence(first, rows, document)
        except DataError as fault:
            repairs.leave_out(fault)
        else:
            yield ready
    if not found:
        raise DataError(f"{source}1: the file holds no sentence; expected the columns of CoNLL-2012.")


def _blocks(
    path: Path, reading: Reading, splits: int, repairs: Repairs
) -> Iterator[tuple[int, list[list[str]], str | None]]:
    """Yield the first line, the columns of all lines and the document of each sentence."""
    document: str | None = None
    rows: list[list[str]] = []
    number = 0
    for number, row in enumerate(_rows(path, reading, splits), start=1):
        if row and row[0][0] != "#":
            rows.append(row)
            continue
        if rows:
            yield number - len(rows), rows, document
            rows = []
        if row:
            try:
                document = _document(" ".join(row), f"{path}:{number}")
            except DataError as fault:
                repairs.leave_out(fault)
                document = None
    if rows:
        yield number - len(rows) + 1, rows, document


def _rows(path: Path, reading: Reading, splits: int) -> Iterator[list[str]]:
    """Yield the columns of every line; an empty list for a blank line."""
    with open_corpus_file(path, reading) as file:
        while lines := file.readlines(_CHUNK):
            text = "".join(lines)
            if "\r" in text or BYTE_ORDER_MARK in text:
                lines = [line.replace(BYTE_ORDER_MARK, "").rstrip("\r\n") for line in lines]
                text = "".join(lines)
            # str.split is many times as fast as a regular expression, but breaks at blanks that belong to their word.
            if any(blank in text for blank in _OTHER_BLANKS):
                for line in lines:
                    line = line.strip(" \t\n")
                    yield _BLANK_RUN.split(line, maxsplit=max(splits, 0)) if line else []
            else:
                for line in lines:
                    yield line.split(None, splits)


def _column(told: str | None, usual: int, option: str) -> int:
    if told is None:
        return usual
    try:
        return int(told)
    except ValueError:
        raise DataError(
            f"{option}={told!r} is not a number; CoNLL-2012 has columns without names, counted from 0."
        ) from None


def _too_short(rows: list[list[str]], needed: int, source: str, line: int) -> DataError:
    index, count = next((index, len(row)) for index, row in enumerate(rows) if len(row) < needed)
    columns = "1 column" if count == 1 else f"{count} columns"
    return DataError(
        f"{source}{line + index}: {columns} where CoNLL-2012 has {needed} or more; "
        "restore the line, or name the columns."
    )


def _document(line: str, place: str) -> str | None:
    """Return the name of the document that a line begins, or None for the end of a document."""
    if line == _ENDS:
        return None
    begin = _BEGIN.fullmatch(line)
    if not begin:
        raise DataError(
            f"{place}: unknown line {line[:40]!r}; expected '{_BEGINS} (name); part 000', '{_ENDS}' or columns."
        )
    name, part = begin.groups()
    return f"{name}#{int(part)}" if int(part or 0) else name


def _iob2(cells: Sequence[str], source: str, line: int) -> list[str]:
    """Convert a sentence's cells of named entities to IOB2."""
    tags = ["O"] * len(cells)
    open_type = ""
    opened_at = 0
    if cells.count("*") == len(cells):
        return tags
    for index, cell in enumerate(cells):
        if cell == "*":
            if open_type:
                tags[index] = f"I-{open_type}"
            continue
        match = _CELL.fullmatch(cell)
        if not match:
            raise DataError(f"{source}{line + index}: unknown cell {cell!r}; expected (TYPE*, *, *) or (TYPE).")
        begins = match.group(1)
        if begins:
            if open_type:
                raise DataError(
                    f"{source}{line + index}: the entity {cell!r} begins inside another of type {open_type}, open "
                    f"since line {line + opened_at}; close that one first."
                )
            open_type, opened_at = begins, index
            tags[index] = f"B-{begins}"
        elif open_type:
            tags[index] = f"I-{open_type}"
        else:
            raise DataError(
                f"{source}{line + index}: {cell!r} closes an entity where none is open; open it, or write '*'."
            )
        if cell.endswith(")"):
            open_type = ""
    if open_type:
        raise DataError(
            f"{source}{line + opened_at}: the entity of type {open_type} is still open at the end of its sentence; "
            "close it."
        )
    return tags
