"""Read CSV and TSV files.

The loader of `datasets` would read words such as ``None``, ``nan`` and ``NA`` as missing values.
"""

import ast
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import dropwhile, islice, zip_longest
from typing import Any, NamedTuple

from ...errors import DataError, first_line
from ...files import BYTE_ORDER_MARK, suffix_of
from ..schemes import NO_CHUNK
from ..source import NONE, Input, Record, Sentence
from .columns import UNKNOWN, looks_like_tag, recognise_columns
from .conllu import is_conllu
from .json_lines import DOCUMENT_KEY, POS_KEYS, TAG_KEYS, TEXT_KEY, TOKEN_KEYS, JsonRecord, record_of, sentence_of_words

_TOKEN_NAMES = ("token", "tokens", "word", "words", "form", "text", "sentence")
_TAG_NAMES = (
    *("ner_tag", "ner_tags", "ner", "ne_tag", "ne", "entity_tag", "entity", "entities", "iob", "bio", "tag", "tags"),
    *("label", "labels", "ne_coarse_lit"),
)
_POS_NAMES = ("pos", "pos_tag", "pos_tags", "upos", "xpos")
_DOCUMENT_NAMES = ("doc_id", "document_id", "document", "doc")
_SENTENCE_NAME = re.compile(r"sent(ence)?(_?(id|idx|index|no|num|number|#))?")
# Marks the last word of a sentence in HIPE.
_SENTENCE_END = re.compile(r"EndOfSentence|PySBDSegment")
_DELIMITERS = (",", ";", "\t")
# A row with a single value that begins with #.
_COMMENT = re.compile(r"#[^,;\t]*")
_SAMPLE = 1000
# If no sentence has ended after this many words, the file has no marks of sentences.
_MOST_WORDS = 1000
# The number of a sentence; a text may recur.
_NUMBER = re.compile(r"\D{0,12}\d+")
# A list that was written as text, and its items; those of NumPy have no commas between items.
_LIST = re.compile(r"\[\s*['\"\d\]]")
_ITEM = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\d+""")
# Minimum number of rows with texts for an error.
_ENOUGH = 10


class _Columns(NamedTuple):
    """The columns of a file.

    Attributes:
        delimiter: The separator of the fields.
        width: The number of columns.
        names: The names of the columns in the first row; empty if it has none.
        token: The index of the words.
        tag: The index of the tags; None only if the words need no tags.
        tagged: True if most of the first values there are tags.
        pos: The index of the parts of speech, if there are any.
        sentence: The index of the number or name of the sentence, if there is one.
        document: The index of the name of the document, if there is one.
        quoted: True if fields may be in quotation marks.
        lists: True if a row is a sentence, its tags a list written as text.
        note: The difference to the usual columns of a file without a header, for the log.
    """

    delimiter: str
    width: int
    names: list[str]
    token: int
    tag: int | None
    tagged: bool
    pos: int | None
    sentence: int | None
    document: int | None
    quoted: bool
    lists: bool
    note: str


def is_csv(source: Input) -> bool:
    """Return True for a file of words whose first line names columns, or with a column of tags between commas.

    Labelled data are in this format also if their suffix is ``.csv``, or if options name columns.
    """
    lines, reading = source.first_lines, source.reading
    # Some files of columns have the suffix of CSV, but no commas.
    separated = sum(re.search("[,;\t]", line) is not None for line in lines) > sum(map(bool, lines)) / 2
    is_named = suffix_of(source.path) == ".csv" and separated
    if source.labelled:
        # Only a header, or CoNLL-U, names columns.
        named = any(not re.fullmatch(r"-?\d+", name or "0") for name in (reading.token_column, reading.tag_column))
        if is_named or _names_columns(lines[0], _delimiter(lines[0])) or (named and not is_conllu(source)):
            return True
    try:
        columns = _columns_of(source)
    except DataError:
        return False
    if not columns.names:
        return columns.tagged and (columns.delimiter != "\t" or is_named)
    usual = reading.token_column is None and columns.tag is not None
    of_words = usual and columns.names[columns.token] not in ("text", "sentence")
    return not source.labelled and (columns.tagged or columns.lists or columns.sentence is not None or of_words)


def is_table(source: Input) -> bool:
    """Return True for rows of texts: a file with a suffix of CSV, or with TABs and a column of the text."""
    header = source.first_lines[0].split("\t")
    named = (source.reading.token_column or TEXT_KEY) in header and not looks_like_tag(header[-1])
    return suffix_of(source.path) in (".csv", ".tsv") or (len(header) > 1 and named)


def rows_to_tag(source: Input) -> Iterator[Record]:
    """Yield the rows of texts below a header as records to tag."""
    csv.field_size_limit(1 << 30)  # the default of 128 kB is too small for texts
    first = next(filter(None, source.first_lines), "")
    delimiter = max(_DELIMITERS, key=first.count)
    rows = (item for item in _rows(source, source.lines, delimiter) if item[1])
    start, names = next(rows, (0, []))
    if len(names) > len(set(names)):
        raise DataError(f"{source.path}:{start}: two columns have the same name; rename one of them.")
    field = source.reading.token_column or (TEXT_KEY if TEXT_KEY in names else None)
    for number, row in rows:
        fields = dict(zip_longest(names, row[: len(names)]))
        if len(row) > len(names):
            fields[names[-1]] = delimiter.join(row[len(names) - 1 :])  # the row is written as it was
            yield Record(fields, None, f"{source.path}:{number}: has more fields than the header; quote the text.")
        else:
            yield record_of(fields, field, f"{source.path}:{number}")


def read_csv(source: Input) -> Iterator[Sentence]:
    """Yield the sentences of a file of values separated by commas, semicolons or TABs.

    The first row names the columns: of words (``token``, ``word``, …), of tags (``ner_tags``, ``tag``, ``label``, …),
    and perhaps of parts of speech (``pos``), documents (``doc_id``) and sentences (``sentence_id``, ``Sentence #``). A
    sentence ends if the value in the column of sentences changes (it may be empty after the first row of a sentence),
    at an empty row, or after a row whose last value contains ``EndOfSentence`` (HIPE). Rows with a single value that
    begins with ``#`` are comments. Columns without names are recognised like CoNLL columns. If the first row has a list
    of tags, as pandas writes it, each row is a sentence.

    Raises:
        DataError: If the file has no columns of words and tags, a word or tag is empty, quotation marks do not match,
            the number of a sentence recurs, or no sentence ends in a long file.
    """
    columns = _columns_of(source)
    if columns.note and source.labelled:
        source.repairs.note(columns.note, str(source.path))
    rows = _rows(source, _lines(source.lines), columns.delimiter, columns.quoted)
    rows = (item for item in rows if not (len(item[1]) == 1 and item[1][0].startswith("#")))
    if columns.names:
        rows = islice(dropwhile(lambda item: not any(item[1]), rows), 1, None)
    rows = ((number, row if any(row) else []) for number, row in rows)
    yield from (_sentences_of_lists if columns.lists else _sentences)(source, rows, columns)


_Rows = Iterator[tuple[int, list[str]]]


def _lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines without byte-order marks; those of "CSV (Macintosh)" end in carriage returns."""
    for line in lines:
        line = line.replace(BYTE_ORDER_MARK, "")
        yield from [line] if line[-1:] == "\n" else io.StringIO(line.replace("\r", "\n"), newline="\n")


def _rows(source: Input, lines: Iterable[str], delimiter: str, quoted: bool = True) -> _Rows:
    """Yield all rows and the numbers of their first lines."""
    # Without quoting, a quotation mark is an ordinary character.
    quoting: Any = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    rows = csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting)
    number = 1
    try:
        for row in rows:
            yield number, row
            number = rows.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{source.path}:{number}: the quotation marks of the row do not match, or a carriage return is outside of "
            f"them ({first_line(error).partition(' - ')[0]}); double the quotation marks within a word, and quote it."
        ) from None


def _sentences_of_lists(source: Input, rows: _Rows, columns: _Columns) -> Iterator[Sentence]:
    reading = source.reading
    keys = {
        reading.token_column or TOKEN_KEYS[0]: columns.token,
        reading.tag_column or TAG_KEYS[0]: columns.tag,
        reading.pos_column or POS_KEYS[0]: columns.pos,
    }
    for number, row in rows:
        if row:
            record = {key: _list_of(_cell(row, index)) for key, index in keys.items() if index is not None}
            record[DOCUMENT_KEY] = _cell(row, columns.document) or None
            try:
                yield sentence_of_words(JsonRecord(f"{source.path}:", number, record), reading)
            except DataError as fault:
                source.repairs.leave_out(fault)


def _list_of(cell: str) -> Any:
    """Return a list that was written as text, or the words of a text between blanks; an invalid list is not changed."""
    if not cell.startswith("["):
        return cell.split()
    return cell if _ITEM.sub("", cell).strip("[], \n") else [ast.literal_eval(item) for item in _ITEM.findall(cell)]


def _sentences(source: Input, rows: _Rows, columns: _Columns) -> Iterator[Sentence]:
    path, repairs = source.path, source.repairs
    words: list[tuple[int, str, str, str]] = []
    sentence_name, document = "", None
    ended = ends_here = False
    seen: set[tuple[str | None, str]] = set()
    for number, row in rows:
        name, doc_id = _cell(row, columns.sentence), _cell(row, columns.document) or None
        token, tag = _cell(row, columns.token), _cell(row, columns.tag)
        if row and columns.sentence is None and not token.strip() and tag.strip() in ("", "O"):
            repairs.note("rows without a word were read as the ends of sentences", str(path))
            row = []
        if words and (not row or ends_here or (name and name != sentence_name) or (doc_id and doc_id != document)):
            ended = True
            yield from source.sentence(words, columns.pos is not None, document)
            words = []
        if not row:
            continue
        ends_here = _SENTENCE_END.search(row[-1]) is not None
        document = (doc_id or document) if words else doc_id
        if name and name != sentence_name and _NUMBER.fullmatch(name):
            if (document, name) in seen:
                raise DataError(
                    f"{path}:{number}: the sentence {name} begins again; sort the rows, or name the documents in a "
                    "column doc_id if each numbers its own sentences."
                )
            seen.add((document, name))
        sentence_name = name or sentence_name
        fault = f"the {'tag' if token else 'token'} is empty" if not token or (source.labelled and not tag) else ""
        if any(row[columns.width :]):
            fault = f"{len(row)} fields, but {columns.width} in the first row"
        elif "\n" in token and columns.delimiter in token:
            fault = f"a word with lines, {token[:60]!r}, so quotation marks are not doubled within words"
        if fault:
            repairs.leave_out(DataError(f"{path}:{number}: {fault}; correct the row."), tag not in ("", *NO_CHUNK))
            continue
        words.append((number, token, tag, _cell(row, columns.pos) or UNKNOWN))
        if len(words) > _MOST_WORDS and not ended and columns.sentence is None:
            raise DataError(
                f"{path}:{number}: no sentence has ended after {_MOST_WORDS:,} words; number the sentences in a "
                "column sentence_id, or put an empty row after each."
            )
    yield from source.sentence(words, columns.pos is not None, document)


def _cell(row: list[str], index: int | None) -> str:
    return row[index] if index is not None and index < len(row) else ""


# --- Columns ---------------------------------------------------------------------------------------------------------


def _columns_of(source: Input) -> _Columns:
    """Return the columns of a file, recognised by its first lines."""
    path, reading = source.path, source.reading
    lines = [line.rstrip("\r\n") for line in islice(_lines(io.StringIO(source.sample, newline="\n")), _SAMPLE)]
    filled = [at for at, line in enumerate(lines) if line.strip(" \t,;") and not _COMMENT.fullmatch(line)]
    if not filled:
        raise DataError(f"{path}:1: the file holds no sentence; expected rows of a token and its tag.")
    first = lines[filled[0]]
    location = f"{path}:{filled[0] + 1}"
    delimiter = _delimiter(first)
    fields = _fields(first, delimiter)
    header = not any(map(looks_like_tag, fields[1:]))
    names = list(map(_normal, fields)) if header else []
    body = filled[1:] if header else filled
    rows = _sample(lines[body[0] :] if body else [], delimiter)

    def index(name: str | None, usual: Sequence[str], content: str, option: str) -> int | None:
        if name is None and not header:
            return None
        position = _first(names, usual if name is None else (_normal(name),))
        if position is not None:
            return position
        if name is not None and re.fullmatch(r"-?\d+", name) and -len(fields) <= int(name) < len(fields):
            return int(name) % len(fields)
        wanted = name if name is not None else " or ".join(usual[:2])
        raise DataError(
            f"{location}: no column of {content} named {wanted} among {', '.join(fields)}; pass its name as {option}."
        )

    token = index(reading.token_column, _TOKEN_NAMES, "words", "token_column")
    untagged = header and not source.labelled and _first(names, _TAG_NAMES) is None
    tag = None if untagged else index(reading.tag_column, _TAG_NAMES, "tags", "tag_column")
    by_number = all(re.fullmatch(r"-?\d+", str(name)) for name in (reading.token_column, reading.tag_column))
    if header and by_number and any(_cell(row, tag) == fields[tag or 0] for row in rows):
        header, names = False, []  # its tag is one of the others
    note = ""
    if not untagged:
        token, tag, note = recognise_columns(rows, len(fields), False, token, tag, location)
    pos = _first(names, _POS_NAMES)
    if reading.pos_column is not None:
        named = reading.pos_column != NONE
        pos = index(reading.pos_column, _POS_NAMES, "parts of speech", "pos_column") if named else None
    lists = bool(rows and _LIST.match(_cell(rows[0], tag)))
    texts = 0 if lists else sum(_cell(row, token).count(" ") > 1 for row in rows)
    if texts > max(len(rows) / 2, _ENOUGH):
        raise DataError(
            f"{location}: column {token} holds texts; give every word a row with its tag, or pass other columns as "
            "token_column and tag_column."
        )
    return _Columns(
        delimiter,
        len(fields),
        names,
        token or 0,
        tag,
        sum(looks_like_tag(_cell(row, tag)) for row in rows) > 0.9 * len(rows) > 0,
        None if pos in (token, tag) else pos,
        next((at for at, name in enumerate(names) if _SENTENCE_NAME.fullmatch(name) and at != token), None),
        _first(names, _DOCUMENT_NAMES),
        # Words rarely contain TABs, so most programs write TSV without quotation marks.
        quoted=lists or delimiter != "\t" or re.search(r'(^|\t)""""(\t|\r?$)', source.sample, re.MULTILINE) is not None,
        lists=lists,
        note="" if header else note,
    )


def _delimiter(line: str) -> str:
    named = (delimiter for delimiter in _DELIMITERS if _names_columns(line, delimiter))
    return next(named, max(_DELIMITERS, key=line.count))


def _names_columns(line: str, delimiter: str) -> bool:
    names = list(map(_normal, _fields(line, delimiter)))
    return _first(names, _TOKEN_NAMES) is not None and _first(names, _TAG_NAMES) is not None


def _sample(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Return the fields of the rows in lines; a field in quotation marks may have several lines."""
    lines = [line for line in lines if line.strip(" \t,;") and not _COMMENT.fullmatch(line)]
    if delimiter != "\t":
        with suppress(csv.Error):
            return list(csv.reader([f"{line}\n" for line in lines], delimiter=delimiter))
    return [_fields(line, delimiter) for line in lines]


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # The line contains a carriage return or a NUL, so it is not a header.
        return line.split(delimiter)


def _normal(name: str) -> str:
    """Return the name of a column in lower case, with underscores in place of blanks and hyphens."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _first(names: Sequence[str], usual: Sequence[str]) -> int | None:
    return next((names.index(name) for name in usual if name in names), None)
