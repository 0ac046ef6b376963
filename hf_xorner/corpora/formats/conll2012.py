"""Read the files of CoNLL-2012, in which OntoNotes is distributed."""

import re
from collections.abc import Iterator
from itertools import chain

from ...errors import DataError
from ...files import suffix_of
from ..source import BLANKS, NONE, Input, Sentence, clean_lines
from .columns import BLANK_RUN, column_index

_BEGINS, _ENDS = "#begin document", "#end document"
_BEGIN = re.compile(r"#begin document \((.+)\)(?:; part (\d+))?")
# A cell of the column of named entities, other than "*": it opens an entity of a type, closes one, or both.
_CELL = re.compile(r"\(([^()*]+)(?:\*|\*?\))|\*\)")
# Replaces the words in files that are distributed without them.
_HIDDEN = "[WORD]"
# The value of a column without annotation.
_NOTHING = "-"


def is_conll2012(source: Input) -> bool:
    """Return True for a file ``*_gold_conll`` or one that begins with ``#begin document``."""
    return suffix_of(source.path).endswith("gold_conll") or any(
        line.startswith(_BEGINS) for line in source.first_lines[:5]
    )


def read_conll2012(source: Input) -> Iterator[Sentence]:
    """Yield the sentences of a CoNLL-2012 file, their entities as tags in IOB2.

    Columns are separated by runs of blanks and TABs. Columns 0 to 4 are document, part, word number, word and part of
    speech; column 10 has the entities in brackets, ``(PERSON*``, ``*``, ``*)`` or ``(GPE)``. The number of columns
    after it varies. A blank line ends a sentence. ``#begin document (id); part 000`` names the document: ``id``, or
    ``id#1`` and so on for later parts.

    Raises:
        DataError: If a line has too few columns, the brackets of entities do not match, entities are nested, or the
            words have been removed from the file.
    """
    document: str | None = None
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(chain(clean_lines(source.lines), [""]), start=1):
        if line and line[0] != "#":
            rows.append((number, BLANK_RUN.split(line.strip(BLANKS))))
            continue
        if rows:
            try:
                words = _words(rows, source)
            except DataError as fault:
                source.repairs.leave_out(fault)
                words = []
            yield from source.sentence(words, any(pos != _NOTHING for *_, pos in words), document)
            rows = []
        if begin := _BEGIN.match(line):
            name, part = begin.groups()
            document = f"{name}#{int(part)}" if int(part or 0) else name
        elif line.startswith(_ENDS):
            document = None


def _words(rows: list[tuple[int, list[str]]], source: Input) -> list[tuple[int, str, str, str]]:
    """Return line number, word, tag and part of speech of the rows of a sentence."""
    path, reading = source.path, source.reading

    def column(option: str, usual: int) -> int:
        named, (number, row) = getattr(reading, option), rows[0]
        return usual if named is None else column_index(named, option, len(row), f"{path}:{number}")

    token, tag = column("token_column", 3), column("tag_column", 10)
    pos = None if reading.pos_column == NONE else column("pos_column", 4)
    cells, words = [], []
    for number, row in rows:
        try:
            cells.append((f"{path}:{number}", row[tag]))
            words.append((number, row[token], _NOTHING if pos is None else row[pos]))
        except IndexError:
            raise DataError(f"{path}:{number}: too few columns ({len(row)}); restore the line.") from None
        if row[token] == _HIDDEN:
            raise DataError(
                f"{path}:{number}: the words have been removed from this file; first create a file with words from it "
                "and your copy of OntoNotes."
            )
    tags = _iob2(cells) if source.labelled else ["O"] * len(cells)
    return [(number, word, tag, pos) for (number, word, pos), tag in zip(words, tags, strict=True)]


def _iob2(cells: list[tuple[str, str]]) -> list[str]:
    """Convert a sentence's cells of named entities, with their locations, to IOB2."""
    tags = []
    open_type = opened_at = ""
    for location, cell in cells:
        match = _CELL.fullmatch(cell)
        if not match and cell != "*":
            raise DataError(f"{location}: unknown cell {cell!r}; expected (TYPE*, *, *) or (TYPE).")
        begins = match[1] if match else None
        if begins and open_type:
            raise DataError(
                f"{location}: the entity {cell!r} begins inside another of type {open_type}; close that first."
            )
        if match and not begins and not open_type:
            raise DataError(f"{location}: {cell!r} closes an entity where none is open; open it, or write '*'.")
        if begins:
            open_type, opened_at = begins, location
        tags.append(f"{'B' if begins else 'I'}-{open_type}" if open_type else "O")
        if cell.endswith(")"):
            open_type = ""
    if open_type:
        raise DataError(
            f"{opened_at}: the entity of type {open_type} is still open at the end of its sentence; close it."
        )
    return tags
