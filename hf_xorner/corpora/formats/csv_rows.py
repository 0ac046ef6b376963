"""Read CSV and TSV files with a header as a stream of sentences."""

import ast
import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from ...files import BYTE_ORDER_MARK
from ..encodings import encoding_of, open_corpus_file
from ..source import AUTO, NONE, Reading, Repairs, Sentence
from .layout import looks_like_tag, recognise_columns

_TOKEN_NAMES = ("token", "tokens", "word", "words", "form", "text", "sentence")
_TAG_NAMES = (
    *("ner_tag", "ner_tags", "ner", "ne_tag", "ne", "entity_tag", "entity", "entities", "iob", "bio", "tag", "tags"),
    *("label", "labels"),
)
_POS_NAMES = ("pos", "pos_tag", "pos_tags", "upos", "xpos")
_DOCUMENT_NAMES = ("doc_id", "document_id", "document", "doc")
_SENTENCE_NAME = re.compile(r"sent(ence)?(_?(id|idx|index|no|num|number|#))?")
# The tags of a whole sentence in one cell.
_LIST = re.compile(r"^\[.*\]$|\S \S")
_DELIMITERS = (",", ";", "\t")
# A file of as many words that ends no sentence is one whose sentences cannot be told.
_MOST_WORDS = 1000
# Rows that are enough to tell texts from words.
_ENOUGH = 10


class _Columns(NamedTuple):
    """The columns of a file.

    Attributes:
        delimiter: The separator of the fields.
        names: Their names; empty for a file without a header.
        token: The index of the words.
        tag: The index of the tags.
        pos: The index of the parts of speech, as the next two None if there are none.
        sentence: The index of the number or name of the sentence.
        document: The index of the name of the document.
        lists: Whether a row holds a whole sentence.
        quoted: Whether fields may be in quotation marks.
        note: The difference to the usual columns of a file without a header, for the log.
    """

    delimiter: str
    names: Sequence[str]
    token: int
    tag: int
    pos: int | None
    sentence: int | None
    document: int | None
    lists: bool
    quoted: bool
    note: str


def has_header(line: str) -> bool:
    """Return whether a line names a column of words and one of tags."""
    for delimiter in _DELIMITERS:
        names = _names(line, delimiter)
        token, tag = _first(names, _TOKEN_NAMES), _first(names, _TAG_NAMES)
        if token is not None and tag is not None:
            return True
    return False


def read_csv(path: Path, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    """Yield the sentences of a file of comma-separated values, or of values separated by semicolons or TABs.

    The first row names the columns: of words (``token``, ``word``, …), of tags (``ner_tags``, ``tag``, ``label``, …),
    and perhaps of parts of speech (``pos``), documents (``doc_id``) and sentences (``sentence_id``, ``Sentence #``). A
    sentence ends where the value of the last changes, which may stand in the first row of the sentence only, or at an
    empty row. Where the tags of the first row are a list, ``['O', 'B-PER']`` or ``O B-PER``, each row holds a whole
    sentence. The columns of a file without names are recognised as `hf_xorner.corpora.formats.layout` does.

    Args:
        path: A file, plain or gzip.
        reading: Other columns, by name or number.
        repairs: Notes another encoding than UTF-8, and bad rows that are left out.

    Yields:
        The sentences in the order of the file; none is empty.

    Raises:
        DataError: For a file without columns of words and tags, an empty word or tag, quotation marks that do not
            match, lists of unequal length, and a long file in which no sentence ends.
    """
    columns = csv_columns(path, reading)
    encoding_of(path, reading, repairs)
    if columns.note:
        repairs.note(columns.note, str(path))
    reader = _read_lists if columns.lists else _read_words
    found = False
    for sentence in reader(path, columns, reading, repairs):
        found = True
        yield sentence
    if not found:
        raise DataError(f"{path}:1: the file holds no sentence; expected rows of a token and its tag.")


def _rows(path: Path, columns: _Columns, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the header with the numbers of their first lines."""
    with open_corpus_file(path, reading) as file:
        clean = (line.replace(BYTE_ORDER_MARK, "") for line in file)
        # Without quoting, a quotation mark is a character as any other.
        rows = csv.reader(
            clean,
            delimiter=columns.delimiter,
            quoting=csv.QUOTE_MINIMAL if columns.quoted else csv.QUOTE_NONE,
            strict=True,
        )
        number = 1
        header = bool(columns.names)
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                raise DataError(
                    f"{path}:{number}: the quotation marks of the row do not match ({error}); "
                    "double those that belong to a word, and put them around it."
                ) from None
            if header and any(row):
                header = False
            elif not header:
                yield number, row
            number = rows.line_num + 1


def _read_words(path: Path, columns: _Columns, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    """Yield the sentences of a file with one word a row."""
    rows: list[tuple[int, str, str, str]] = []
    sentence_name, document = "", None
    ended = False
    for number, row in _rows(path, columns, reading):
        if not any(row):
            ended = ended or bool(rows)
            if rows:
                yield Sentence.of_rows(rows, path, columns.pos is not None, document)
                rows = []
            continue
        name = _cell(row, columns.sentence)
        doc_id = _cell(row, columns.document) or None
        begins = (name and name != sentence_name) or (columns.document is not None and doc_id != document)
        if begins and rows:
            ended = True
            yield Sentence.of_rows(rows, path, columns.pos is not None, document)
            rows = []
        sentence_name, document = name or sentence_name, doc_id
        token, tag = _cell(row, columns.token), _cell(row, columns.tag)
        if token and tag:
            rows.append((number, token, tag, _cell(row, columns.pos) or "_"))
            if len(rows) > _MOST_WORDS and not ended:
                raise DataError(
                    f"{path}:{number}: {_MOST_WORDS:,} words, and no sentence has ended; number the sentences in a "
                    "column sentence_id, or put an empty row after each."
                )
            continue
        _refuse(f"{path}:{number}: the {'tag' if token else 'token'} is empty", reading, repairs)
    if rows:
        yield Sentence.of_rows(rows, path, columns.pos is not None, document)


def _read_lists(path: Path, columns: _Columns, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    """Yield the sentences of a file with one sentence a row."""
    for number, row in _rows(path, columns, reading):
        if not any(row):
            continue
        tokens, tags = _list(_cell(row, columns.token)), _list(_cell(row, columns.tag))
        pos_tags = None if columns.pos is None else _list(_cell(row, columns.pos))
        if len(tokens) != len(tags):
            _refuse(f"{path}:{number}: {len(tokens)} tokens but {len(tags)} tags", reading, repairs)
            continue
        if pos_tags is not None and len(pos_tags) != len(tokens):
            _refuse(f"{path}:{number}: {len(tokens)} tokens but {len(pos_tags)} parts of speech", reading, repairs)
            continue
        if tokens:
            document = _cell(row, columns.document) or None
            yield Sentence(tokens, tags, f"{path}:", number, pos_tags, document)


def _refuse(fault: str, reading: Reading, repairs: Repairs) -> None:
    repairs.leave_out(DataError(f"{fault}; correct the row."))


def _cell(row: list[str], index: int | None) -> str:
    return row[index] if index is not None and index < len(row) else ""


def _list(cell: str) -> list[str]:
    """Return the values of a cell that holds a list as Python writes it, or words with blanks between them."""
    if cell.startswith("[") and cell.endswith("]"):
        try:
            values = ast.literal_eval(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            values = None
        if isinstance(values, list) and all(isinstance(value, str) and value for value in values):
            return values
    return cell.split()


# --- Columns ---------------------------------------------------------------------------------------------------------


def csv_columns(path: Path, reading: Reading) -> _Columns:
    """Return the columns of a file.

    Raises:
        DataError: If no column holds words, or none tags.
    """
    with open_corpus_file(path, reading) as file:
        lines = [line.replace(BYTE_ORDER_MARK, "").rstrip("\r\n") for _, line in zip(range(1000), file, strict=False)]
    number, first = next(((at, line) for at, line in enumerate(lines, start=1) if line.strip(" \t,;")), (1, ""))
    if not first:
        raise DataError(f"{path}:1: the file holds no sentence; expected rows of a token and its tag.")
    delimiter = _delimiter(first, reading)
    names = _names(first, delimiter)
    if any(looks_like_tag(field) for field in _fields(first, delimiter)[1:]):
        names = []
    rows = [_fields(line, delimiter) for line in lines[number if names else number - 1 :] if line.strip(" \t,;")]
    size = len(names) or len(_fields(first, delimiter))

    def index(told: str | None, usual: Sequence[str], what: str, option: str) -> int | None:
        if told is None and not names:
            return None
        found = _first(names, usual if told is None else (_normal(told),))
        if found is None and told is not None and re.fullmatch(r"-?\d+", told) and -size <= int(told) < size:
            found = int(told) % size
        if found is None:
            wanted = told if told is not None else " or ".join(usual[:2])
            columns = ", ".join(_fields(first, delimiter))
            raise DataError(f"{path}:{number}: no column of {what} named {wanted}, but {columns}; name it as {option}.")
        return found

    token, tag, note = recognise_columns(
        rows,
        size,
        numbered=False,
        token=index(reading.token_column, _TOKEN_NAMES, "words", "token_column"),
        tag=index(reading.tag_column, _TAG_NAMES, "tags", "tag_column"),
    )
    if token == tag:
        raise DataError(
            f"{path}:{number}: column {token} is given for both tokens and tags; give token_column and tag_column."
        )
    pos: int | None = _first(names, _POS_NAMES)
    if reading.pos_column is not None:
        told = reading.pos_column
        pos = None if told == NONE else index(told, _POS_NAMES, "parts of speech", "pos_column")
    sentence = next((at for at, name in enumerate(names) if _SENTENCE_NAME.fullmatch(name) and at != token), None)
    # A tabulator rarely belongs to a word, so most programs write it without quotation marks.
    quoted = delimiter != "\t" or any('""""' in line.split("\t") for line in lines)
    lists = any(_LIST.search(_cell(row, tag)) for row in rows)
    texts = sum(_cell(row, token).count(" ") > 1 for row in rows)
    if not lists and texts > max(len(rows) / 2, _ENOUGH):
        raise DataError(
            f"{path}:{number}: column {token} holds texts and column {tag} one tag for each; give every word of a text "
            "a tag, or name other columns as token_column and tag_column."
        )
    return _Columns(
        *(delimiter, names, token, tag, None if pos in (token, tag) else pos),
        *(sentence, _first(names, _DOCUMENT_NAMES), lists, quoted, "" if names else note),
    )


def _delimiter(line: str, reading: Reading) -> str:
    if reading.separator != AUTO:
        return "\t" if reading.separator == "tab" else " "
    for delimiter in _DELIMITERS:
        names = _names(line, delimiter)
        if _first(names, _TOKEN_NAMES) is not None and _first(names, _TAG_NAMES) is not None:
            return delimiter
    return max(_DELIMITERS, key=line.count)


def _names(line: str, delimiter: str) -> list[str]:
    return [_normal(name) for name in _fields(line, delimiter)]


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # The line has a carriage return or a NUL in it, as no header has.
        return line.split(delimiter)


def _normal(name: str) -> str:
    """Return the name of a column in lower case, with underscores for blanks and hyphens."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _first(names: Sequence[str], usual: Sequence[str]) -> int | None:
    return next((names.index(name) for name in usual if name in names), None)
