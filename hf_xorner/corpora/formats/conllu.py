"""Read files of CoNLL-U and CoNLL-U Plus."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from ..schemes import NO_CHUNK
from ..source import NONE, Input, ReadingOptions, Sentence, clean_lines
from .columns import UNKNOWN, WORD_NUMBER, column_index, looks_like_tag, sample_of

ID, FORM, UPOS, XPOS, MISC = "id", "form", "upos", "xpos", "misc"
_COLUMNS = (ID, FORM, "lemma", UPOS, XPOS, "feats", "head", "deprel", "deps", MISC)
_GLOBAL_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*(.+)")
_DOCUMENT = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(.*\S))?\s*")
# Keys of entities in MISC, or names of their column in CoNLL-U Plus.
_ENTITY_NAMES = ("ner", "ne", "iob", "bio")


class _Columns(NamedTuple):
    """The columns of a file.

    Attributes:
        names: The names of the columns, in lower case.
        token: The index of the words.
        tag: The index of the tags.
        key: The key of the tags if their column holds pairs such as ``NER=B-PER``, else None.
        pos: The index of the parts of speech, if they are read.
        number: The index of the numbers of words, if there is one.
    """

    names: Sequence[str]
    token: int
    tag: int
    key: str | None
    pos: int | None
    number: int | None


def is_conllu(source: Input) -> bool:
    """Return True if a file names its columns, or its first token lines have the ten columns of CoNLL-U."""
    lines = source.first_lines
    if _GLOBAL_COLUMNS.match(lines[0]):
        return True
    rows = [line.text.split("\t") for line in sample_of(lines)]
    fitting = sum(len(row) == len(_COLUMNS) and WORD_NUMBER.fullmatch(row[0]) is not None for row in rows)
    # A few lines may be invalid.
    return fitting > 0.9 * len(rows)


def read_conllu(source: Input) -> Iterator[Sentence]:
    """Yield the sentences of a file of CoNLL-U, or of CoNLL-U Plus, whose first line names its columns.

    Columns are separated by TABs. The words are in the column FORM; ranges of words (``1-2``) and words that are not in
    the text (``1.1``) are left out. The tags are the first of these that exists: the column or key of MISC in
    `tag_column`; a key of MISC with tags such as ``B-PER``; a column named NER, NE, IOB or BIO; UPOS; XPOS. If the tags
    are entities, the parts of speech are those of UPOS. ``# newdoc`` begins a document.

    Raises:
        DataError: If a line has another number of columns, its word or tag is empty, or a column does not exist.
    """
    path, reading, repairs = source.path, source.reading, source.repairs
    columns = _columns_of(path, source.first_lines, reading)
    if reading.tag_column is None and source.labelled:
        name = columns.names[columns.tag].upper() + (f" ({columns.key}=)" if columns.key else "")
        repairs.note(f"the tags are read from {name}; pass tag_column for others (upos, xpos, misc)", str(path))
    document: str | None = None
    documents = 0
    rows: list[tuple[int, str, str, str]] = []
    for number, line in enumerate(chain(clean_lines(source.lines), [""]), start=1):
        # A line with all columns is a word such as a hashtag, not a comment.
        if line and (line[0] != "#" or 0 < line.count("\t") == len(columns.names) - 1):
            try:
                rows += _word(line.split("\t"), columns, source, number)
            except DataError as fault:
                repairs.leave_out(fault)
            continue
        if not line:
            yield from source.sentence(rows, columns.pos is not None, document)
            rows = []
        if begin := _DOCUMENT.fullmatch(line):
            document = begin[1] or str(documents)
            documents += 1


def _word(row: list[str], columns: _Columns, source: Input, number: int) -> list[tuple[int, str, str, str]]:
    """Return the number, word, tag and part of speech of a line; nothing for a word that is not in the text."""
    path = source.path
    if len(row) != len(columns.names):
        fault = f"{len(row)} columns, but {len(columns.names)} are expected, separated by TABs"
        raise DataError(f"{path}:{number}: {fault}; correct the line.")
    if columns.number is not None and not row[columns.number].isdecimal():
        if WORD_NUMBER.fullmatch(row[columns.number]):
            return []
        raise DataError(f"{path}:{number}: the line does not begin with the number of a word; correct the line.")
    token, tag = row[columns.token], row[columns.tag]
    if columns.key is not None:
        tag = dict(pair.partition("=")[::2] for pair in tag.split("|")).get(columns.key, "O")
    if not token or (source.labelled and not tag):
        raise DataError(f"{path}:{number}: the {'tag' if token else 'token'} is empty; correct the line.")
    return [(number, token, tag, UNKNOWN if columns.pos is None else row[columns.pos])]


def _columns_of(path: Path, lines: Sequence[str], reading: ReadingOptions) -> _Columns:
    """Return the columns of a file."""
    named = _GLOBAL_COLUMNS.match(lines[0])
    names: Sequence[str] = named[1].lower().split() if named else _COLUMNS
    rows = [row for line in sample_of(lines) if len(row := line.text.split("\t")) == len(names)]

    def index(column: str, option: str) -> int:
        return column_index(column, option, len(names), f"{path}:1", names)

    token = index(reading.token_column or FORM, "token_column")
    tag, key = _tag_column(names, rows, reading.tag_column, index)
    pos: int | None = None
    if reading.pos_column not in (None, NONE):
        pos = index(str(reading.pos_column), "pos_column")
    # If the tags are parts of speech themselves, there is no second layer.
    elif reading.pos_column is None and names[tag] not in (UPOS, XPOS) and _is_filled(UPOS, names, rows):
        pos = names.index(UPOS)
    return _Columns(names, token, tag, key, pos, names.index(ID) if ID in names else None)


def _tag_column(
    names: Sequence[str], rows: list[list[str]], named: str | None, index: Callable[[str, str], int]
) -> tuple[int, str | None]:
    """Return the column of the tags, and their key if the column is MISC."""
    keys: dict[str, set[str]] = {}
    for row in rows if MISC in names else ():
        for pair in row[names.index(MISC)].split("|"):
            key, equals, value = pair.partition("=")
            if equals:
                keys.setdefault(key, set()).add(value)
    if named is not None:
        same = next((key for key in keys if key.lower() == named.lower()), None)
        if same is not None and named.lower() not in names:
            return names.index(MISC), same
        return index(named, "tag_column"), None
    for key, values in keys.items():
        # Values that are all O may be something else, unless the key is one of these names.
        if all(map(looks_like_tag, values)) and (values - {*NO_CHUNK} or key.lower() in _ENTITY_NAMES):
            return names.index(MISC), key
    for at, name in enumerate(names):
        if any(part in _ENTITY_NAMES for part in re.split(r"\W", name)):
            return at, None
    return next((names.index(name) for name in (UPOS, XPOS) if _is_filled(name, names, rows)), len(names) - 1), None


def _is_filled(name: str, names: Sequence[str], rows: list[list[str]]) -> bool:
    return name in names and any(row[names.index(name)] != UNKNOWN for row in rows)
