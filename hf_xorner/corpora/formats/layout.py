"""Recognise which columns of a file hold the words and the tags."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from ...files import BYTE_ORDER_MARK
from ..encodings import open_corpus_file
from ..schemes import NO_CHUNK
from ..source import AUTO, NONE, Reading

DOCUMENT_START = "-DOCSTART-"
# Only these two separate columns: a non-breaking blank or any other Unicode blank belongs to its token.
BLANKS = " \t"
BLANK_RUN = re.compile(r"[ \t]+")
#: The number of a word in its sentence, of a range of words ("1-2") or of one that is not written ("1.1").
WORD_NUMBER = re.compile(r"\d+([-.]\d+)?")
# A tag that a chunk scheme can have; some corpora have an underscore for the hyphen.
_CHUNK_TAG = re.compile(r"(?:[A-Z]-|[BIES]_)\S.*")
# Types of syntactic chunks, English and German, which stand before the entities in CoNLL-2003's columns.
_SYNTACTIC = {"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "NC", "VC", "PC"}
_BRAT = re.compile(r"T\d+\t\S+ \d+ \d+(;\d+ \d+)*(\t|$)")
# Lines of tokens that are looked at, and how many numbered ones are no coincidence.
_SAMPLE, _ENOUGH = 2000, 4


class Line(NamedTuple):
    """A line of a file, without marks and line ends.

    Attributes:
        number: Its number from 1.
        text: Its text.
        first: Whether it is the first of its sentence.
    """

    number: int
    text: str
    first: bool


class ColumnLayout(NamedTuple):
    """The columns of a file.

    Attributes:
        by_tab: Whether TABs separate them; else blanks and TABs do.
        columns: Their number in the first token line.
        token: The index of the words, as the next two.
        tag: The index of the tags.
        pos: The index of the parts of speech, if there are any.
        numbered: Whether the first column numbers the words of each sentence.
        chunked: Whether the tags are of a chunk scheme, which tells them from other columns.
        named: The indices of words and tags as they were given, negative from the end, if both were.
        note: The difference to the usual columns, for the log.
    """

    by_tab: bool
    columns: int
    token: int
    tag: int
    pos: int | None
    numbered: bool = False
    chunked: bool = False
    named: tuple[int, int] | None = None
    note: str = ""


def looks_like_tag(value: str) -> bool:
    """Return whether a value is ``O`` or ``?``, or could be the tag of a chunk scheme, blanks around it ignored."""
    value = value.strip()
    return value in NO_CHUNK or _CHUNK_TAG.fullmatch(value) is not None


def first_field(line: str) -> str:
    """Return what stands before the first blank or TAB of a line."""
    return BLANK_RUN.split(line, maxsplit=1)[0]


def split_line(line: str, by_tab: bool) -> list[str]:
    """Return the columns of a line."""
    return line.split("\t") if by_tab else BLANK_RUN.split(line.strip(BLANKS))


def sample_of(file: Iterable[str], comments: str = AUTO) -> list[Line]:
    """Return the first token lines of a file; those that may be comments only where there are no others."""
    lines: list[Line] = []
    doubtful: list[Line] = []
    first = True
    prefix = "#" if comments == AUTO else comments
    for number, text in enumerate(file, start=1):
        text = text.replace(BYTE_ORDER_MARK, "").rstrip("\r\n")
        if not text.strip(BLANKS) or first_field(text) == DOCUMENT_START:
            first = True
        elif comments != NONE and text.startswith(prefix):
            if comments == AUTO and len(doubtful) < _SAMPLE:
                doubtful.append(Line(number, text, first=False))
        else:
            lines.append(Line(number, text, first))
            first = False
            if len(lines) == _SAMPLE:
                break
    return lines or doubtful


def layout_of(path: Path, reading: Reading) -> ColumnLayout:
    """Return the layout of a file of columns, recognised by its first token lines.

    Raises:
        DataError: If the file has no token line, its first one has one column only, or a column that was named does
            not exist.
    """
    with open_corpus_file(path, reading) as file:
        sample = sample_of(file, reading.comments)
    if not sample:
        raise DataError(f"{path}:1: the file holds no sentence; expected lines of a token and its tag.")
    first = sample[0]
    if reading.token_column is None and _BRAT.match(first.text):
        raise DataError(
            f"{path}:{first.number}: annotations of BRAT, which are spans of the text in the .txt file beside it; "
            "give its name the suffix .ann."
        )
    by_tab = "\t" in first.text if reading.separator == AUTO else reading.separator == "tab"
    rows = [split_line(line.text, by_tab) for line in sample]
    if reading.skip_bad_lines and any(len(row) > 1 for row in rows):
        kept = [index for index, row in enumerate(rows) if len(row) > 1]
        sample, rows = [sample[index] for index in kept], [rows[index] for index in kept]
        first = sample[0]
    columns = _columns_of(rows)
    if columns < 2:
        raise DataError(
            f"{path}:{first.number}: one column only; expected a token and its tag, separated by a TAB or blanks."
        )
    numbered = columns > 2 and _are_numbered(sample, rows)
    named = {
        name: _index(getattr(reading, name), name, columns, f"{path}:{first.number}")
        for name in ("token_column", "tag_column", "pos_column")
    }
    token, tag, doubt = recognise_columns(rows, columns, numbered, named["token_column"], named["tag_column"])
    if token == tag:
        raise DataError(
            f"{path}:{first.number}: column {token} is given for both tokens and tags; "
            "give token_column and tag_column."
        )
    if reading.pos_column is None:
        pos = 1 if columns in (3, 4) and not numbered and 1 not in (token, tag) else None
    else:
        pos = named["pos_column"]
    told = (reading.token_column, reading.tag_column)
    return ColumnLayout(
        by_tab,
        columns,
        token,
        tag,
        pos,
        numbered,
        # In lines of several lengths, the last columns may be tags without being one column.
        chunked=_holds_chunks(rows, tag) or (tag == columns - 1 and _are_chunks({row[-1] for row in rows})),
        named=None if None in told else (int(told[0]), int(told[1])),  # type: ignore[arg-type]
        note=doubt,
    )


def _columns_of(rows: Sequence[list[str]]) -> int:
    """Return the number of columns of the first line; one after the last that is empty in all lines does not count."""
    columns = len(rows[0])
    while columns > 1 and not any(row[columns - 1] for row in rows if len(row) >= columns):
        columns -= 1
    return columns


def _index(told: str | None, name: str, columns: int, place: str) -> int | None:
    """Return the index of a column that was named, counted from 0."""
    if told is None or (name == "pos_column" and told == NONE):
        return None
    if not re.fullmatch(r"-?\d+", told) or not -columns <= int(told) < columns:
        raise DataError(
            f"{place}: {name}={told}, but the line has {in_words(columns)}; "
            f"give a number from 0 to {columns - 1}, or from -{columns} to -1 counted from the end."
        )
    return int(told) % columns


def in_words(columns: int) -> str:
    """Return a number of columns in words."""
    return "1 column" if columns == 1 else f"{columns} columns"


def _are_numbered(sample: Sequence[Line], rows: Sequence[list[str]]) -> bool:
    """Return whether the first column counts the words of each sentence from 0 or 1."""
    expected = 0
    for line, row in zip(sample, rows, strict=True):
        number = row[0]
        if line.first and number in ("0", "1"):
            expected = int(number)
        if number == str(expected):
            expected += 1
        # Ranges and words that are not written stand between the others.
        elif number.isdecimal() or not WORD_NUMBER.fullmatch(number):
            return False
    return len(rows) >= _ENOUGH


def recognise_columns(
    rows: Sequence[list[str]], columns: int, numbered: bool, token: int | None, tag: int | None
) -> tuple[int, int, str]:
    """Return the indices of the words and of the tags, and a note if they are not the first and the last column.

    Args:
        rows: The fields of the first lines.
        columns: The number of columns.
        numbered: Whether the first column numbers the words of each sentence.
        token: The index of the words, if it is known.
        tag: The index of the tags, if it is known.
    """
    usual_token, usual_tag, other = int(token or 0), columns - 1 if tag is None else tag, None
    free = columns == 2 and token is None and tag is None
    # As in the corpora of the MIT on films and restaurants.
    if free and _holds_chunks(rows, 0) and not all(looks_like_tag(row[-1]) for row in rows):
        token, tag = 1, 0
    if token is None:
        token = 1 if numbered else 0
    if tag is None:
        tag, other = _tag_column(rows, columns, token)
    if (token, tag) == (usual_token, usual_tag) and other is None:
        return token, tag, ""
    note = f"words are read from column {token} and tags from column {tag}, counted from 0"
    if other is not None:
        note += f", though column {other} holds tags of entities, too"
    return token, tag, f"{note}; name others as token_column and tag_column if that is wrong"


def _tag_column(rows: Sequence[list[str]], columns: int, token: int) -> tuple[int, int | None]:
    """Return the index of the tags, and that of another column that holds tags of entities.

    The tags are in the last column, unless that holds none of a chunk scheme and another one does. Of several columns
    of entities, the first has the outer ones (GermEval 2014, FiNER) or the gold tags.
    """
    last = columns - 1
    chunked = [index for index in range(columns) if index != token and _holds_chunks(rows, index)]
    entities = [index for index in chunked if not _types(rows, index) <= _SYNTACTIC]
    last_fields = {row[last].strip() for row in rows if len(row) > last}
    # A last column of O only may hold nested entities, which are rare, or stand beside syntactic chunks.
    if last not in chunked and not last_fields <= {*NO_CHUNK, ""}:
        # Tags without prefixes are tags, too.
        if "O" in last_fields or all(looks_like_tag(row[-1]) for row in rows):
            return last, None
        entities = entities or chunked[-1:]
    if not entities:
        return last, None
    return entities[0], (entities[-1] if len(entities) > 1 else None)


def _holds_chunks(rows: Sequence[list[str]], index: int) -> bool:
    """Return whether a column holds nothing but tags of a chunk scheme, and not only ``O`` and ``?``."""
    return _are_chunks({row[index] for row in rows if len(row) > index})


def _are_chunks(values: set[str]) -> bool:
    tags = {value.strip() for value in values if looks_like_tag(value)}
    # A single wrong tag does not make a column one of something else.
    return bool(tags.difference(NO_CHUNK)) and len(tags) >= 0.9 * len({value.strip() for value in values})


def _types(rows: Sequence[list[str]], index: int) -> set[str]:
    return {row[index].strip()[2:] for row in rows if len(row) > index and row[index].strip() not in NO_CHUNK}
