"""Read files of CoNLL columns, and recognise which columns hold the words and the tags."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from ...files import BYTE_ORDER_MARK
from ..schemes import NO_CHUNK
from ..source import AUTO, NONE, Reading, Repairs, Sentence

DOCUMENT_START = "-DOCSTART-"
# Only these two separate columns: a non-breaking blank or any other Unicode blank belongs to its token.
BLANKS = " \t"
BLANK_RUN = re.compile(r"[ \t]+")
#: The number of a word in its sentence, of a range of words ("1-2") or of one that is not written ("1.1").
WORD_NUMBER = re.compile(r"\d+([-.]\d+)?")
#: The part of speech of a word whose line does not show it.
UNKNOWN = "_"
# A tag that a chunk scheme can have; some corpora have an underscore for the hyphen.
_CHUNK_TAG = re.compile(r"(?:[A-Z]-|[BIES]_)\S.*")
# Types of syntactic chunks, English and German, which stand before the entities in CoNLL-2003's columns.
_SYNTACTIC = {"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "NC", "VC", "PC"}
_DOCUMENT_ID = re.compile(rf"{DOCUMENT_START}[ \t]+\((.*)\)[ \t]*$")
_COMMENT = re.compile(r"##?[ \t]")
# With which Universal NER has marked words outside of entities.
_TYPE_O = "B-O"
# Lines of tokens that are looked at, and how many numbered ones are no coincidence.
_SAMPLE, _ENOUGH = 2000, 4


class Line(NamedTuple):
    """A line with a word: its number from 1, its text, and whether it is the first of its sentence."""

    number: int
    text: str
    first: bool


class Layout(NamedTuple):
    """The columns of a file.

    Attributes:
        by_tab: Whether TABs separate them; else blanks and TABs do.
        columns: Their number in the first token line.
        token: The index of the words, as the next two.
        tag: The index of the tags.
        pos: The index of the parts of speech, if there are any.
        numbered: Whether the first column numbers the words of each sentence.
        chunked: Whether the tags are of a chunk scheme, which tells them from other columns.
        named: The indices of words and tags that the options name, negative from the end, if they name both.
        note: The difference to the usual columns, for the log.
    """

    by_tab: bool
    columns: int
    token: int
    tag: int
    pos: int | None
    numbered: bool
    chunked: bool
    named: tuple[int, int] | None
    note: str


def read_columns(path: Path, text: str, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    """Yield the sentences of a file of CoNLL columns.

    The first column holds the token, the last one the tag; of three or four columns the second is read as the part of
    speech. Where the first column numbers the words, the second holds the token, and where only another column than
    the last holds tags of a chunk scheme, it holds the tags. TABs separate the columns if the first token line has
    one, else blanks. A line with more or fewer columns is read if it is clear which hold its token and its tag.

    A line that is empty, or holds only blanks and TABs, ends a sentence. So does a ``-DOCSTART-`` line, which is itself
    left out and begins a document: the documents of a file are numbered from 0, or have the name in brackets that
    follows, ``-DOCSTART- (name)``. A line before a sentence that begins with ``#`` or ``##`` and a blank or TAB is a
    comment if it has another number of columns than the others, or no tag where they have tags of a chunk scheme.

    Raises:
        DataError: For a line whose token or tag is missing or cannot be told from other columns, and for a file without
            any sentence.
    """
    lines = split_lines(text)
    layout = _layout_of(path, lines, reading)
    if layout.note:
        repairs.note(layout.note, str(path))
    document, documents = None, 0
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate([*lines, ""], start=1):
        begins = _begins_document(line)
        if line and not begins:
            if not _is_comment(line, reading.comments, bool(rows), layout):
                rows.append((number, _split(line, layout.by_tab)))
            continue
        if rows and (words := list(_words(rows, layout, path, repairs))):
            yield Sentence.of_rows(words, path, layout.pos is not None, document)
        rows = []
        if begins:
            named = _DOCUMENT_ID.match(line)
            document = named[1] if named else str(documents)
            documents += 1


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text, which end in ``\n`` or ``\r\n``, without byte-order marks; blank ones are empty."""
    lines = (line.rstrip("\r") for line in text.replace(BYTE_ORDER_MARK, "").split("\n"))
    return [line if line.strip(BLANKS) else "" for line in lines]


def _begins_document(line: str) -> bool:
    return line.startswith(DOCUMENT_START) and BLANK_RUN.split(line, maxsplit=1)[0] == DOCUMENT_START


def _is_comment(line: str, comments: str, inside_sentence: bool, layout: Layout) -> bool:
    if comments != AUTO:
        return comments != NONE and line.startswith(comments)
    if inside_sentence or not _COMMENT.match(line):
        return False
    row = _split(line, layout.by_tab)
    return len(row) != layout.columns or (layout.chunked and not looks_like_tag(row[layout.tag]))


def _split(line: str, by_tab: bool) -> list[str]:
    return line.split("\t") if by_tab else BLANK_RUN.split(line.strip(BLANKS))


def _words(
    rows: list[tuple[int, list[str]]], layout: Layout, path: Path, repairs: Repairs
) -> Iterator[tuple[int, str, str, str]]:
    """Yield the line, the word, its tag and its part of speech of the rows of a sentence."""
    even = len(rows) > 1 and len({len(row) for _, row in rows}) == 1
    for number, row in rows:
        # A range of words that are listed as well, or a word that is not in the text.
        if layout.numbered and not row[0].isdecimal() and WORD_NUMBER.fullmatch(row[0]):
            continue
        # Some programs end every line with a TAB.
        while len(row) > layout.columns and not row[-1]:
            del row[-1]
        try:
            token, tag = _token_and_tag(row, layout, even, f"{path}:{number}")
        except DataError as fault:
            repairs.leave_out(fault)
            continue
        if layout.numbered and tag == _TYPE_O:
            repairs.add(f"tags {_TYPE_O} became O", f"{path}:{number}")
            tag = "O"
        # Which of its columns is the part of speech is not clear in a line that has more or fewer.
        pos = row[layout.pos] if layout.pos is not None and len(row) == layout.columns else UNKNOWN
        yield number, token, tag, pos


def _token_and_tag(row: list[str], layout: Layout, even: bool, place: str) -> tuple[str, str]:
    """Return the token and the tag of a line; ``even`` says that all lines of its sentence have as many columns."""
    size, token, tag = len(row), layout.token, layout.tag
    if size != layout.columns:
        token, tag = layout.named or (token, _tag_of(row, layout, even))
        if not (-size <= token < size and -size <= tag < size) or token % size == tag % size:
            raise DataError(
                f"{place}: {size} columns where the first token line has {layout.columns}; separate its token and "
                f"its tag by {'TABs' if layout.by_tab else 'blanks'}, name token_column and tag_column."
            )
    if not row[token] or not row[tag]:
        raise DataError(f"{place}: the {'tag' if row[token] else 'token'} is empty; give every line both.")
    return row[token], row[tag]


def _tag_of(row: list[str], layout: Layout, even: bool) -> int:
    """Return the index of the tag of a line with more or fewer columns than the first; that of none if unclear."""
    size = unclear = len(row)
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


# --- Layout ----------------------------------------------------------------------------------------------------------


def sample_of(lines: Sequence[str], comments: str = AUTO) -> list[Line]:
    """Return the first token lines of a file, without those that may be comments."""
    sample: list[Line] = []
    first = True
    prefix = "#" if comments == AUTO else comments
    for number, text in enumerate(lines, start=1):
        if not text or _begins_document(text):
            first = True
        elif comments == NONE or not text.startswith(prefix):
            sample.append(Line(number, text, first))
            first = False
            if len(sample) == _SAMPLE:
                break
    return sample


def _layout_of(path: Path, lines: Sequence[str], reading: Reading) -> Layout:
    """Return the layout of a file, recognised by its first token lines."""
    sample = sample_of(lines, reading.comments)
    if not sample:
        raise DataError(f"{path}:1: the file holds no sentence; expected lines of a token and its tag.")
    by_tab = "\t" in sample[0].text if reading.separator == AUTO else reading.separator == "tab"
    rows = [_split(line.text, by_tab) for line in sample]
    place = f"{path}:{sample[0].number}"
    columns = len(rows[0])
    # A column after the last that is empty in all lines does not count.
    while columns > 1 and not any(row[columns - 1] for row in rows if len(row) >= columns):
        columns -= 1
    if columns < 2:
        raise DataError(f"{place}: one column only; expected a token and its tag, separated by a TAB or blanks.")
    numbered = columns > 2 and _are_numbered(sample, rows)
    named_token = _index(reading.token_column, "token_column", columns, place)
    named_tag = _index(reading.tag_column, "tag_column", columns, place)
    token, tag, note = recognise_columns(rows, columns, numbered, named_token, named_tag, place)
    if reading.pos_column is None:
        pos = 1 if columns in (3, 4) and not numbered and 1 not in (token, tag) else None
    else:
        pos = None if reading.pos_column == NONE else _index(reading.pos_column, "pos_column", columns, place)
    # In lines of several lengths, the last columns may be tags without being one column.
    chunked = _holds_chunks(rows, tag) or (tag == columns - 1 and _are_chunks({row[-1] for row in rows}))
    named = None
    if reading.token_column is not None and reading.tag_column is not None:
        named = int(reading.token_column), int(reading.tag_column)
    return Layout(by_tab, columns, token, tag, pos, numbered, chunked, named, note)


def _index(number: str | None, option: str, columns: int, place: str) -> int | None:
    """Return the index of a column that an option names, counted from 0."""
    if number is None:
        return None
    if not re.fullmatch(r"-?\d+", number) or not -columns <= int(number) < columns:
        raise DataError(
            f"{place}: {option}={number}, but the line has {columns} columns; "
            f"give a number from 0 to {columns - 1}, or from -{columns} to -1 counted from the end."
        )
    return int(number) % columns


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
    rows: Sequence[list[str]], columns: int, numbered: bool, token: int | None, tag: int | None, place: str
) -> tuple[int, int, str]:
    """Return the indices of the words and of the tags, and a note if they are not the first and the last column.

    Args:
        rows: The fields of the first lines.
        columns: The number of columns.
        numbered: Whether the first column numbers the words of each sentence.
        token: The index of the words, if it is known.
        tag: The index of the tags, if it is known.
        place: The file and line, for messages.

    Raises:
        DataError: If both are the same column.
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
    if token == tag:
        raise DataError(f"{place}: column {token} has both tokens and tags; name token_column and tag_column.")
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
    # A last column of O only may hold nested entities, which are rare, or follow syntactic chunks.
    if last not in chunked and not last_fields <= {*NO_CHUNK, ""}:
        # Tags without prefixes are tags, too.
        if "O" in last_fields or all(looks_like_tag(row[-1]) for row in rows):
            return last, None
        entities = entities or chunked[-1:]
    if not entities:
        return last, None
    return entities[0], (entities[-1] if len(entities) > 1 else None)


def looks_like_tag(value: str) -> bool:
    """Return whether a value is ``O`` or ``?``, or could be the tag of a chunk scheme, blanks around it ignored."""
    value = value.strip()
    return value in NO_CHUNK or _CHUNK_TAG.fullmatch(value) is not None


def _holds_chunks(rows: Sequence[list[str]], index: int) -> bool:
    """Return whether a column holds nothing but tags of a chunk scheme, and not only ``O`` and ``?``."""
    return _are_chunks({row[index] for row in rows if len(row) > index})


def _are_chunks(values: set[str]) -> bool:
    tags = {value.strip() for value in values if looks_like_tag(value)}
    # A single wrong tag does not make a column one of something else.
    return bool(tags.difference(NO_CHUNK)) and len(tags) >= 0.9 * len({value.strip() for value in values})


def _types(rows: Sequence[list[str]], index: int) -> set[str]:
    return {row[index].strip()[2:] for row in rows if len(row) > index and row[index].strip() not in NO_CHUNK}
