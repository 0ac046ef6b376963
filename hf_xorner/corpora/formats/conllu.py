"""Read files of CoNLL-U and CoNLL-U Plus as a stream of sentences."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from ...files import BYTE_ORDER_MARK
from ..encodings import encoding_of, open_corpus_file
from ..source import NONE, Reading, Repairs, Sentence
from .layout import BLANKS, WORD_NUMBER, Line, in_words, looks_like_tag, sample_of

ID, FORM, UPOS, XPOS, MISC = "id", "form", "upos", "xpos", "misc"
_COLUMNS = (ID, FORM, "lemma", UPOS, XPOS, "feats", "head", "deprel", "deps", MISC)
_GLOBAL_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*(.+)")
_DOCUMENT = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(.*\S))?\s*")
# Names under which entities are found in MISC, or in a column of CoNLL-U Plus.
_ENTITY_NAMES = ("ner", "ne", "iob", "bio")
_UNKNOWN = "_"
_OUTSIDE = "O"


class _Columns(NamedTuple):
    """The columns of a file.

    Attributes:
        names: The names of the columns, in lower case.
        token: The index of the words.
        tag: The index of the tags.
        key: The key of the tags where that column holds pairs such as ``NER=B-PER``, else None.
        pos: The index of the parts of speech, if they are read beside the tags.
        number: The index of the numbers of words, if there is one.
    """

    names: Sequence[str]
    token: int
    tag: int
    key: str | None
    pos: int | None
    number: int | None

    @property
    def tag_name(self) -> str:
        """The name of the tags, for messages."""
        return self.names[self.tag].upper() + (f" ({self.key}=)" if self.key else "")


def is_conllu(lines: Sequence[Line]) -> bool:
    """Return whether the first token lines of a file have the ten columns of CoNLL-U."""
    rows = [line.text.split("\t") for line in lines]
    fitting = sum(len(row) == len(_COLUMNS) and WORD_NUMBER.fullmatch(row[0]) is not None for row in rows)
    # A few lines may be faulty.
    return fitting > 0.9 * len(rows)


def names_columns(line: str) -> bool:
    """Return whether a line is the first one of CoNLL-U Plus."""
    return _GLOBAL_COLUMNS.match(line) is not None


def read_conllu(path: Path, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    """Yield the sentences of a file of CoNLL-U, or of CoNLL-U Plus, whose first line names its columns.

    Columns are separated by TABs. The words are in the column FORM; ranges of words (``1-2``) and words that are not in
    the text (``1.1``) are left out. The tags are those of the first of these that is there: the column that was named,
    by its number or its name, or as a key of MISC; a key of MISC or a column named NER, NE, IOB or BIO; UPOS; XPOS. The
    parts of speech beside entities are those of UPOS. ``# newdoc`` begins a document.

    Args:
        path: A file, plain or gzip.
        reading: The options of reading.
        repairs: Notes which tags are read, another encoding than UTF-8, and bad lines that are left out.

    Yields:
        The sentences in the order of the file; none is empty.

    Raises:
        DataError: For a line with another number of columns, or whose word or tag is empty, a column that does not
            exist, and a file without any sentence.
    """
    columns = conllu_columns(path, reading)
    encoding_of(path, reading, repairs)
    if reading.tag_column is None:
        repairs.note(
            f"the tags are those of {columns.tag_name}; name others as tag_column (upos, xpos, misc)", str(path)
        )
    document: str | None = None
    documents = 0
    rows: list[tuple[int, str, str, str]] = []
    found = False
    with open_corpus_file(path, reading) as file:
        for number, line in _lines(file):
            if line and line[0] != "#":
                row = line.split("\t")
                if columns.number is None or len(row) <= columns.number or row[columns.number].isdecimal():
                    rows += _word(row, columns, f"{path}:{number}", number, reading, repairs)
                elif not WORD_NUMBER.fullmatch(row[columns.number]):
                    rows += _word([], columns, f"{path}:{number}", number, reading, repairs)
                continue
            if not line and rows:
                found = True
                yield Sentence.of_rows(rows, path, columns.pos is not None, document)
                rows = []
            if line and (begin := _DOCUMENT.fullmatch(line)):
                document = begin[1] or str(documents)
                documents += 1
    if not found:
        raise DataError(f"{path}:1: the file holds no sentence; expected the columns of CoNLL-U.")


def _lines(file: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a file, blank ones as empty, and one blank line after the last."""
    number = 0
    for number, line in enumerate(file, start=1):
        if BYTE_ORDER_MARK in line:
            line = line.replace(BYTE_ORDER_MARK, "")
        line = line.rstrip("\r\n")
        yield number, line if line.strip(BLANKS) else ""
    yield number + 1, ""


def _word(
    row: list[str], columns: _Columns, place: str, number: int, reading: Reading, repairs: Repairs
) -> list[tuple[int, str, str, str]]:
    """Return the number, word, tag and part of speech of a line; nothing for a bad line that is left out."""
    fault = ""
    token = tag = pos = ""
    if len(row) != len(columns.names):
        fault = (
            f"{in_words(len(row))} where {len(columns.names)} are expected, separated by TABs"
            if row
            else "the line does not begin with the number of a word"
        )
    else:
        token, tag = row[columns.token], _value(row[columns.tag], columns.key)
        pos = _UNKNOWN if columns.pos is None else row[columns.pos]
        if not token or not tag:
            fault = f"the {'tag' if token else 'token'} is empty"
    if not fault:
        return [(number, token, tag, pos)]
    error = DataError(f"{place}: {fault}; correct the line.")
    repairs.leave_out(error)
    return []


def _value(field: str, key: str | None) -> str:
    """Return the tag that a field holds, itself or under a key."""
    if key is None:
        return field
    pairs = dict(pair.partition("=")[::2] for pair in field.split("|"))
    return pairs.get(key, _OUTSIDE)


# --- Columns ---------------------------------------------------------------------------------------------------------


def conllu_columns(path: Path, reading: Reading) -> _Columns:
    """Return the columns of a file.

    Raises:
        DataError: If a column that was named does not exist.
    """
    names: Sequence[str] = _COLUMNS
    with open_corpus_file(path, reading) as file:
        first = file.readline()
        sample = sample_of(chain([first], file))
    if named := _GLOBAL_COLUMNS.match(first.replace(BYTE_ORDER_MARK, "")):
        names = named[1].lower().split()
    rows = [row for line in sample if len(row := line.text.split("\t")) == len(names)]

    def index(told: str, option: str) -> int:
        if re.fullmatch(r"-?\d+", told) and -len(names) <= int(told) < len(names):
            return int(told) % len(names)
        if told.lower() in names:
            return names.index(told.lower())
        raise DataError(f"{path}:1: no column {option}={told}; give a number from 0, or one of {', '.join(names)}.")

    token = index(reading.token_column or FORM, "token_column")
    tag, key = _tag_column(names, rows, reading.tag_column, index)
    pos: int | None = None
    if reading.pos_column not in (None, NONE):
        pos = index(str(reading.pos_column), "pos_column")
    # Beside XPOS, UPOS would be a second layer of the same thing.
    elif reading.pos_column is None and UPOS in names and names[tag] not in (UPOS, XPOS):
        pos = names.index(UPOS) if any(row[names.index(UPOS)] != _UNKNOWN for row in rows) else None
    return _Columns(names, token, tag, key, pos, names.index(ID) if ID in names else None)


def _tag_column(
    names: Sequence[str], rows: list[list[str]], told: str | None, index: Callable[[str, str], int]
) -> tuple[int, str | None]:
    """Return the column of the tags, and their key in it if it is MISC."""
    keys = _keys(names, rows)
    if told is not None:
        key = next((key for key in keys if key.lower() == told.lower()), None)
        if key is not None and told.lower() not in names:
            return names.index(MISC), key
        return index(told, "tag_column"), None
    for key, values in keys.items():
        if key.lower() in _ENTITY_NAMES and all(map(looks_like_tag, values)):
            return names.index(MISC), key
    for at, name in enumerate(names):
        if any(part in _ENTITY_NAMES for part in re.split(r"\W", name)):
            return at, None
    for name in (UPOS, XPOS):
        if name in names and any(row[names.index(name)] != _UNKNOWN for row in rows):
            return names.index(name), None
    return len(names) - 1, None


def _keys(names: Sequence[str], rows: list[list[str]]) -> dict[str, set[str]]:
    """Return the keys of MISC with their values."""
    found: dict[str, set[str]] = {}
    for row in rows if MISC in names else ():
        for pair in row[names.index(MISC)].split("|"):
            key, equals, value = pair.partition("=")
            if equals:
                found.setdefault(key, set()).add(value)
    return found
