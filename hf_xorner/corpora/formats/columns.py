"""Read files of CoNLL columns, and recognise the columns of the words and the tags."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from ..schemes import NO_CHUNK
from ..source import AUTO, BLANKS, NONE, Input, ReadingLog, Sentence, clean_lines

DOCUMENT_START = "-DOCSTART-"
BLANK_RUN = re.compile(r"[ \t]+")
#: The number of a word in its sentence, of a range of words ("1-2") or of a word that is not in the text ("1.1").
WORD_NUMBER = re.compile(r"\d+([-.]\d+)?")
#: The part of speech of a word if its line has none.
UNKNOWN = "_"
# A tag of any chunk scheme; some corpora have an underscore in place of the hyphen.
_CHUNK_TAG = re.compile(r"(?:[A-Z]-|[BIES]_)\S.*")
# Types of syntactic chunks, English and German, which CoNLL-2003 has in the column before the entities.
_SYNTACTIC = {"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "NC", "VC", "PC"}
_DOCUMENT_ID = re.compile(rf"{DOCUMENT_START}[ \t]+\((.*)\)[ \t]*$")
_DOCUMENT_TAG = re.compile(r"</?doc\b(?:[^<>\t]*?\bid=\"?([^\"<>\s]*))?[^<>\t]*>\s*", re.IGNORECASE)
_COMMENT = re.compile(r"##?[ \t]")
# The tag of some words outside of entities in Universal NER.
_TYPE_O = "B-O"
# Number of lines that are read to recognise the columns, and the minimum for numbered words.
_SAMPLE, _ENOUGH = 2000, 4


class Line(NamedTuple):
    """A line with a word: its number from 1, its text, and whether it is the first of its sentence."""

    number: int
    text: str
    first: bool


class ColumnLayout(NamedTuple):
    """The columns of a file.

    Attributes:
        by_tab: True if TABs separate them, else blanks and TABs.
        columns: Their number in the first token line.
        token: The index of the words.
        tag: The index of the tags.
        pos: The index of the parts of speech, if there are any.
        numbered: True if the first column numbers the words of each sentence.
        tagged: True if the first lines have ``O`` or tags of a chunk scheme.
        chunked: True if the tags are of a chunk scheme, so that they can be recognised in any column.
        named: The indices of words and tags in the options, negative from the end, if both are given.
        note: The difference to the usual columns, for the log.
    """

    by_tab: bool
    columns: int
    token: int
    tag: int
    pos: int | None
    numbered: bool
    tagged: bool
    chunked: bool
    named: tuple[int, int] | None
    note: str


def read_columns(source: Input) -> Iterator[Sentence]:
    """Yield the sentences of a file of CoNLL columns.

    The first column holds the words, the last one the tags; of three or four columns, the second holds the parts of
    speech. If the first column numbers the words, the second holds the words. If the last column has no tags of a chunk
    scheme and another one has, that one holds the tags. TABs separate the columns if the first token line has one, else
    blanks. A line with more or fewer columns is read if its word and tag can be recognised.

    A line that is empty, or has only blanks and TABs, ends a sentence. So does a ``-DOCSTART-`` line, which begins a
    document. The documents of a file are numbered from 0, or have the name in brackets: ``-DOCSTART- (name)``. Lines
    ``<doc id="name">`` and ``</doc>`` are read as such. A line
    before a sentence that begins with ``#`` or ``##`` and a blank or TAB is a comment if it has another number of
    columns than the others, or no tag of the chunk scheme.

    Raises:
        DataError: If the word or tag of a line is missing or cannot be recognised, or the file has no sentence.
    """
    path, comments, repairs = source.path, source.reading.comments, source.repairs
    layout = _layout_of(source)
    if layout.note and source.labelled:
        repairs.note(layout.note, str(path))
    document, documents = None, 0
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(chain(clean_lines(source.lines), [""]), start=1):
        if line[:1] == "<":
            line = _without_document_tag(line)
        begins = line[:1] == "-" and _begins_document(line)
        if line and not begins:
            # Calls for every line would take a fifth of the time.
            is_word = comments == AUTO and (rows or line[0] != "#")
            if is_word or not _is_comment(line, comments, bool(rows), layout):
                rows.append((number, _split(line, layout.by_tab)))
            continue
        if rows:
            yield from source.sentence(list(_words(rows, layout, path, repairs)), layout.pos is not None, document)
        rows = []
        if begins:
            named = _DOCUMENT_ID.match(line)
            document = named[1] if named else str(documents)
            documents += 1


def _without_document_tag(line: str) -> str:
    """Return ``-DOCSTART-`` for a line ``<doc>``; other lines are not changed."""
    if not (match := _DOCUMENT_TAG.fullmatch(line)):
        return line
    return "" if line[1] == "/" else f"{DOCUMENT_START} ({match[1]})" if match[1] else DOCUMENT_START


def is_columns(source: Input) -> bool:
    """Return True for columns: with tags, with ``-DOCSTART-``, or as many in all lines, and empty lines between some.

    Labelled data that have no other format are columns.
    """
    if source.labelled or any(map(_begins_document, source.first_lines)):
        return True
    sample = sample_of(map(_without_document_tag, source.first_lines))
    by_tab = bool(sample) and "\t" in sample[0].text
    rows = [_split(line.text, by_tab) for line in sample]
    columns = len(rows[0]) if rows else 1
    if columns < 2:
        return False
    tagged = sum(len(row) > 1 and looks_like_tag(row[-1]) for row in rows) > len(rows) / 2
    even = all(len(row) == columns for row in rows)
    # Of lines of text, a few may have equally many words.
    separated = 1 < sum(line.first for line in sample) < len(rows) / 2 and (by_tab or len(rows) > 2 * _ENOUGH)
    return tagged or (even and separated) or any(_holds_chunks(rows, index) for index in range(columns))


def _begins_document(line: str) -> bool:
    return line.startswith(DOCUMENT_START) and BLANK_RUN.split(line, maxsplit=1)[0] == DOCUMENT_START


def _is_comment(line: str, comments: str, inside_sentence: bool, layout: ColumnLayout) -> bool:
    if comments != AUTO:
        return comments != NONE and line.startswith(tuple(comments.split("|")))
    if inside_sentence or not _COMMENT.match(line):
        return False
    row = _split(line, layout.by_tab)
    return len(row) != layout.columns or (layout.tagged and not looks_like_tag(row[layout.tag]))


def _split(line: str, by_tab: bool) -> list[str]:
    return line.split("\t") if by_tab else BLANK_RUN.split(line.strip(BLANKS))


def _words(
    rows: list[tuple[int, list[str]]], layout: ColumnLayout, path: Path, repairs: ReadingLog
) -> Iterator[tuple[int, str, str, str]]:
    """Yield line number, word, tag and part of speech of the rows of a sentence."""
    for number, row in rows:
        # A range of words, which also have separate lines, or a word that is not in the text.
        if layout.numbered and not row[0].isdecimal() and WORD_NUMBER.fullmatch(row[0]):
            continue
        # Some programs end every line with a TAB.
        while len(row) > layout.columns and not row[-1]:
            del row[-1]
        try:
            token, tag = (row[layout.token], row[layout.tag]) if len(row) == layout.columns else ("", "")
            if not token or not tag:
                even = len(rows) > 1 and len({len(row) for _, row in rows}) == 1
                token, tag = _token_and_tag(row, layout, even, f"{path}:{number}")
        except DataError as fault:
            repairs.leave_out(fault, any(looks_like_tag(value) and value not in NO_CHUNK for value in row))
            continue
        if layout.numbered and tag == _TYPE_O:
            repairs.add(f"tags {_TYPE_O} became O", f"{path}:{number}")
            tag = "O"
        # In a line with more or fewer columns, the part of speech cannot be recognised.
        pos = row[layout.pos] if layout.pos is not None and len(row) == layout.columns else UNKNOWN
        yield number, token, tag, pos


def _token_and_tag(row: list[str], layout: ColumnLayout, even: bool, location: str) -> tuple[str, str]:
    """Return the word and the tag of a line; ``even`` if all lines of its sentence have the same number of columns."""
    size, token, tag = len(row), layout.token, layout.tag
    if size != layout.columns:
        token, tag = layout.named or (token, _tag_of(row, layout, even))
        if not (-size <= token < size and -size <= tag < size) or token % size == tag % size:
            raise DataError(
                f"{location}: {size} columns, but the first token line has {layout.columns}; separate token and tag by "
                f"{'TABs' if layout.by_tab else 'blanks'}, name token_column and tag_column."
            )
    if not row[token] or not row[tag]:
        raise DataError(f"{location}: the {'tag' if row[token] else 'token'} is empty; every line needs both.")
    return row[token], row[tag]


def _tag_of(row: list[str], layout: ColumnLayout, even: bool) -> int:
    """Return the index of the tag in a line with more or fewer columns than the first, or ``len(row)`` if unclear."""
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
    # With blanks between columns, a token that contains a blank adds a column, unless all lines have it.
    return at_right if layout.by_tab or even else at_left


# --- Layout ----------------------------------------------------------------------------------------------------------


def sample_of(lines: Iterable[str], comments: str = AUTO) -> list[Line]:
    """Return the first token lines of a file, without possible comments."""
    sample: list[Line] = []
    first = True
    prefix = ("#",) if comments == AUTO else tuple(comments.split("|"))
    for number, text in enumerate(lines, start=1):
        if not text or _begins_document(text):
            first = True
        elif comments == NONE or not text.startswith(prefix):
            sample.append(Line(number, text, first))
            first = False
            if len(sample) == _SAMPLE:
                break
    return sample


def _layout_of(source: Input) -> ColumnLayout:
    """Return the layout of a file, recognised by its first token lines."""
    path, reading = source.path, source.reading
    sample = sample_of(map(_without_document_tag, source.first_lines), reading.comments)
    if not sample and not source.labelled:
        sample = [Line(1, "", True)]
    if not sample:
        raise DataError(f"{path}:1: the file holds no sentence; expected lines of a token and its tag.")
    by_tab = "\t" in sample[0].text if reading.separator == AUTO else reading.separator == "tab"
    rows = [_split(line.text, by_tab) for line in sample]
    location = f"{path}:{sample[0].number}"
    columns = len(rows[0])
    # Ignore columns at the end that are empty in all lines.
    while columns > 1 and not any(row[columns - 1] for row in rows if len(row) >= columns):
        columns -= 1
    if columns < 2 and source.labelled:
        raise DataError(f"{location}: only one column; expected a token and its tag, separated by a TAB or blanks.")
    numbered = columns > 2 and _are_numbered(sample, rows)

    def index(option: str) -> int | None:
        column = getattr(reading, option)
        return None if column is None else column_index(column, option, columns, location)

    named_token, named_tag = index("token_column"), index("tag_column")
    if columns < 2 or (named_token is not None and not source.labelled):
        token = tag = named_token or 0
        note = ""
    else:
        token, tag, note = recognise_columns(rows, columns, numbered, named_token, named_tag, location)
    if reading.pos_column is None:
        pos = 1 if columns in (3, 4) and not numbered and 1 not in (token, tag) else None
    else:
        pos = None if reading.pos_column == NONE else index("pos_column")
    # If lines have different lengths, tags may be at the end of each line, in different columns.
    chunked = _holds_chunks(rows, tag) or (tag == columns - 1 and _are_chunks({row[-1] for row in rows}))
    named = None
    if reading.token_column is not None and reading.tag_column is not None:
        named = int(reading.token_column), int(reading.tag_column)
    tagged = token != tag and (chunked or all(looks_like_tag("".join(row[tag : tag + 1])) for row in rows))
    # Lines without labels need no tag.
    tag = tag if tagged or source.labelled else token
    return ColumnLayout(by_tab, columns, token, tag, pos, numbered, tagged, chunked, named, note)


def column_index(column: str, option: str, columns: int, location: str, names: Sequence[str] = ()) -> int:
    """Return the index, counted from 0, of the column that an option gives by its number or its name."""
    if column.lower() in names:
        return names.index(column.lower())
    if not re.fullmatch(r"-?\d+", column) or not -columns <= int(column) < columns:
        named = f", or one of {', '.join(names)}" if names else ""
        raise DataError(
            f"{location}: {option}={column}, but the line has {columns} columns; "
            f"give a number from 0 to {columns - 1}, or from -{columns} to -1 counted from the end{named}."
        )
    return int(column) % columns


def _are_numbered(sample: Sequence[Line], rows: Sequence[list[str]]) -> bool:
    """Return True if the first column counts the words of each sentence from 0 or 1."""
    expected, starts = 0, False
    for line, row in zip(sample, rows, strict=True):
        number, starts = row[0], starts or line.first
        if starts and number in ("0", "1"):
            expected = int(number)
        starts = starts and not number.isdecimal()
        if number == str(expected):
            expected += 1
        # Ranges, and words that are not in the text, come between the others.
        elif number.isdecimal() or not WORD_NUMBER.fullmatch(number):
            return False
    return len(rows) >= _ENOUGH


def recognise_columns(
    rows: Sequence[list[str]], columns: int, numbered: bool, token: int | None, tag: int | None, location: str
) -> tuple[int, int, str]:
    """Return the indices of the words and of the tags, and a note if they are not the first and the last column.

    Args:
        rows: The fields of the first lines.
        columns: The number of columns.
        numbered: True if the first column numbers the words of each sentence.
        token: The index of the words, if it is known.
        tag: The index of the tags, if it is known.
        location: The file and line, for messages.

    Raises:
        DataError: If words and tags are in the same column.
    """
    usual_token, usual_tag, second_tag = int(token or 0), columns - 1 if tag is None else tag, None
    free = columns == 2 and token is None and tag is None
    # As in MIT's corpora of films and restaurants, which have tags first.
    if free and _holds_chunks(rows, 0) and not all(looks_like_tag(row[-1]) for row in rows):
        token, tag = 1, 0
    if token is None:
        token = 1 if numbered else 0
    if tag is None:
        tag, second_tag = _tag_column(rows, columns, token)
    if token == tag:
        raise DataError(f"{location}: column {token} has both tokens and tags; name token_column and tag_column.")
    if (token, tag) == (usual_token, usual_tag) and second_tag is None:
        return token, tag, ""
    ignored = ", ".join(str(index) for index in range(columns) if index not in (token, tag)) or "none"
    note = f"words are read from column {token} and tags from column {tag} of {columns}, counted from 0"
    note += f"; ignored: {ignored}"
    if second_tag is not None:
        note += f", of which column {second_tag} also holds tags of entities"
    return token, tag, f"{note}; pass token_column and tag_column if that is wrong"


def _tag_column(rows: Sequence[list[str]], columns: int, token: int) -> tuple[int, int | None]:
    """Return the index of the tags, and the index of another column of entities, if there is one.

    The tags are in the last column, unless it has no tags of a chunk scheme and another one has. If there are several
    columns of entities, the first has the outer ones (GermEval 2014, FiNER) or the gold tags.
    """
    last = columns - 1
    chunked = [index for index in range(columns) if index != token and _holds_chunks(rows, index)]
    entities = [index for index in chunked if not _types(rows, index) <= _SYNTACTIC]
    last_fields = {row[last].strip() for row in rows if len(row) > last}
    # A last column with only O may hold nested entities, which are rare, or come after syntactic chunks.
    if last not in chunked and not last_fields <= {*NO_CHUNK, ""}:
        # The last column has types without prefixes, or different tags in lines of different lengths.
        if not entities and ("O" in last_fields or all(looks_like_tag(row[-1]) for row in rows)):
            return last, None
        entities = entities or chunked[-1:]
    if not entities:
        return last, None
    return entities[0], (entities[-1] if len(entities) > 1 else None)


def looks_like_tag(value: str) -> bool:
    """Return True if a value, without blanks around it, is ``O``, ``?`` or a possible tag of a chunk scheme."""
    value = value.strip()
    return value in NO_CHUNK or _CHUNK_TAG.fullmatch(value) is not None


def _holds_chunks(rows: Sequence[list[str]], index: int) -> bool:
    """Return True if a column has tags of a chunk scheme, other than ``O`` and ``?``, and hardly other values."""
    return _are_chunks({row[index] for row in rows if len(row) > index})


def _are_chunks(values: set[str]) -> bool:
    tags = {value.strip() for value in values if looks_like_tag(value)}
    # A few wrong tags are tolerated.
    return bool(tags.difference(NO_CHUNK)) and len(tags) >= 0.9 * len({value.strip() for value in values})


def _types(rows: Sequence[list[str]], index: int) -> set[str]:
    return {row[index].strip()[2:] for row in rows if len(row) > index and row[index].strip() not in NO_CHUNK}
