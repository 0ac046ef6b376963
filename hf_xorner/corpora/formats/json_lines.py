"""Read JSON as a stream of objects, and those of words and tags as a stream of sentences."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import DataError
from ...files import BYTE_ORDER_MARK, open_text
from ..encodings import open_corpus_file
from ..source import NONE, Reading, Repairs, Sentence

TOKEN_KEYS = ("tokens", "words")
TAG_KEYS = ("ner_tags", "tags", "labels")
POS_KEYS = ("pos_tags", "pos")
DOCUMENT_KEY = "doc_id"
TEXT_KEY = "text"
#: Keys of a text; doccano once wrote the second.
TEXT_KEYS = (TEXT_KEY, "data")

# The white space of JSON; other white space belongs to the content.
_BLANKS = " \t\r\n"
_SEPARATOR = re.compile(rf"[{_BLANKS}]*([,\]]?)[{_BLANKS}]*")
_LINE_BREAK = re.compile(r"[ \t\r]*\n[ \t\r]*")
_EMPTY_ARRAY = re.compile(rf"\[[{_BLANKS}]*\][{_BLANKS}]*")
_decoder = json.JSONDecoder()
_decode = _decoder.decode
# Keys that a message lists.
_KEYS_SHOWN = 8
# Characters that are enough to see whether an array has objects in it.
_SNIFFED = 1000
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


#: Takes the error of a bad record, and raises it unless bad records are left out.
LeaveOut = Callable[[DataError], None]


def _raise(fault: DataError) -> None:
    raise fault


def read_json_lines(path: Path, reading: Reading, repairs: Repairs | None = None) -> Iterator[Sentence]:
    """Yield the sentences of a file of JSON objects, each with words and their tags; see `records`.

    The words are under the first key found of ``tokens`` and ``words``, their tags under the first of
    ``ner_tags``, ``tags`` and ``labels``, their parts of speech, if any, under ``pos_tags`` or ``pos``, and the
    document's name, if any, under ``doc_id``. Byte-order marks are removed wherever they stand.

    Args:
        path: A file in UTF-8, plain or gzip.
        reading: Options that name other keys as columns.
        repairs: Counts the bad records that are left out.

    Yields:
        The sentences in the order of the file; one whose line has an empty list of words is empty.

    Raises:
        DataError: For a line that is not a JSON object, lacks words or tags, has more of one than of the other, or
            holds anything but strings there, and for a file without any object.
    """
    token_keys = keys_to_try(TOKEN_KEYS, reading.token_column)
    tag_keys = keys_to_try(TAG_KEYS, reading.tag_column)
    names = (reading.tag_names or "").split()
    leave_out = (repairs or Repairs(reading)).leave_out
    for source, number, record in records(path, leave_out):
        place = f"{source}{number}"
        try:
            tokens = strings(record, find_key(record, token_keys, "words", "token_column", place), place)
            tags = _tags(record, find_key(record, tag_keys, "tags", "tag_column", place), names, place)
            if len(tags) != len(tokens):
                raise DataError(f"{place}: {len(tokens)} tokens but {len(tags)} tags; give every token one tag.")
            pos_tags, document = parts_of_speech(record, reading, len(tokens), place), document_of(record, place)
        except DataError as fault:
            leave_out(fault)
            continue
        yield Sentence(tokens, tags, source, number, pos_tags, document)


def _tags(record: dict[str, Any], key: str, names: Sequence[str], place: str) -> list[str]:
    """Return the tags of a record, which may be numbers of names."""
    values = record[key]
    if not names or type(values) is not list or set(map(type, values)) != {int}:
        return strings(record, key, place, "tags")
    if min(values) < 0 or max(values) >= len(names):
        raise DataError(f"{place}: {key!r} holds a number beyond its {len(names)} names; add its name to tag_names.")
    return [names[value] for value in values]


class JsonRecord(NamedTuple):
    """A JSON object of a file.

    Attributes:
        source: The name of the source, to which the number is appended: ``"corpus/train.jsonl:"``, or
            ``"corpus/train.json, record "``.
        number: The number of the line or of the record, from 1.
        content: The object.
    """

    source: str
    number: int
    content: dict[str, Any]


def records(path: Path, leave_out: LeaveOut = _raise) -> Iterator[JsonRecord]:
    """Yield the objects of a file: one object a line, an array of objects, or objects over several lines.

    A list of a text and an object, as spaCy's training data were often written, is read as the object with the text.

    Args:
        path: A file in UTF-8, plain or gzip.
        leave_out: Takes the errors of bad lines, and of elements of an array that are no objects.

    Raises:
        DataError: For anything that is not a JSON object, and for a file without any.
    """
    found = False
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if not found and begins_document(line):
                yield from _of_document(line + file.read(), number, path, leave_out)
                return
            try:
                record = record_of(line, f"{path}:{number}")
                inner = [_as_object(value, f"{path}:{number}") for value in _examples_in(record or {})]
            except DataError as fault:
                found = True
                leave_out(fault)
                continue
            if record is not None:
                found = True
                for example in inner:
                    yield JsonRecord(f"{path}:", number, example)
    if not found:
        raise _nothing(path)


def record_of(line: str, place: str) -> dict[str, Any] | None:
    """Return the object that a line holds, or None for a blank line.

    Args:
        line: The line.
        place: The file and line.

    Raises:
        DataError: For a line that is not a JSON object.
    """
    # Concatenated files have a mark at the start of each part. Inside a string, offsets may count it.
    if line.startswith(BYTE_ORDER_MARK):
        line = line.lstrip(BYTE_ORDER_MARK)
    if not line.strip(_BLANKS):
        return None
    try:
        record = _decode(line)
    except (ValueError, RecursionError) as error:
        # The decoder takes the line's end for a blank, and looks for what is missing in the next line.
        at = min(getattr(error, "pos", 0), len(line.rstrip(_BLANKS))) + 1
        raise DataError(
            f"{place}: the line is not JSON ({_reason(error, at)}); write one whole object a line."
        ) from None
    if type(record) is not dict:
        raise DataError(f"{place}: the line holds {kind_of(record)}; write one object a line.")
    return record


def begins_document(line: str) -> bool:
    """Return whether the first line of a file begins an array, or an object that goes on in the next line."""
    line = line.strip(_BLANKS + BYTE_ORDER_MARK)
    return line.startswith("[") or line == "{"


def _of_document(text: str, number: int, path: Path, leave_out: LeaveOut) -> Iterator[JsonRecord]:
    """Yield the objects of a text from some line of a file on."""
    text = text.lstrip(_BLANKS + BYTE_ORDER_MARK)
    values = (value for value, _ in _values(text, number, str(path)))
    inner = (example for value in values for example in (_examples_in(value) if type(value) is dict else [value]))
    source, count = f"{path}, record ", 0
    for count, value in enumerate(inner, start=1):
        try:
            record = _as_object(value, f"{source}{count}")
        except DataError as fault:
            leave_out(fault)
            continue
        yield JsonRecord(source, count, record)
    if not count:
        raise _nothing(path)


def lines_of_document(text: str, number: int, name: str) -> Iterator[str]:
    """Yield the elements of the array that a text holds, or its objects, each as it is written but in one line.

    Args:
        text: The text.
        number: Its first line in the file.
        name: The name of the file.

    Raises:
        DataError: If the text is not JSON.
    """
    for _, written in _values(text.lstrip(_BLANKS + BYTE_ORDER_MARK), number, name):
        # A line break cannot be in a string.
        yield _LINE_BREAK.sub(" ", written) + "\n"


def _values(text: str, number: int, name: str) -> Iterator[tuple[Any, str]]:
    """Yield the elements of the array that a text holds, or its objects, and what is written for each."""
    in_array = text.startswith("[")
    if _EMPTY_ARRAY.fullmatch(text):
        return
    at = len(text) - len(text[1:].lstrip(_BLANKS)) if in_array else 0
    while True:
        start = at
        try:
            value, at = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            raise _broken_document(text, getattr(error, "pos", at), error, number, name) from None
        yield value, text[start:at]
        separator, at = _separator_at(text, at)
        if separator == ("]" if in_array else "") and at == len(text):
            return
        if separator != ("," if in_array else ""):
            reason = "extra data" if separator == "]" else "expecting ',' or ']'"
            raise _broken_document(text, at, reason, number, name)


def _separator_at(text: str, at: int) -> tuple[str, int]:
    """Return the comma or bracket after some place, or nothing, and the place of what follows it."""
    found = _SEPARATOR.match(text, at)
    return (found[1], found.end()) if found else ("", at)


def _holds_examples(record: Mapping[str, Any]) -> bool:
    """Return whether an object holds all examples of a file, as NER Annotator writes it."""
    return "classes" in record and type(record.get("annotations")) is list


def _examples_in(record: dict[str, Any]) -> list[Any]:
    if _holds_examples(record):
        # NER Annotator writes null for an empty line.
        return [example for example in record["annotations"] if example is not None]
    return [record]


def _as_object(value: Any, place: str) -> dict[str, Any]:
    if type(value) is list and list(map(type, value)) == [str, dict]:
        return {**value[1], TEXT_KEY: value[0]}
    if type(value) is not dict:
        raise DataError(f"{place}: holds {kind_of(value)}; write an object.")
    return value


def sniff_json(line: str, reading: Reading | None = None) -> str | None:
    """Recognise JSON Lines, and their kind, by the first line that is not blank.

    Args:
        line: The line.
        reading: Options, of which ``token_column`` may name the key of the words or the text.

    Returns:
        See `kind_of_record`; None for a line that is not a JSON object.
    """
    line = line.strip(_BLANKS + BYTE_ORDER_MARK)
    if not line.startswith("{"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return kind_of_record(record, reading)


def sniff_document(path: Path, line: str, reading: Reading | None = None) -> str | None:
    """Recognise a file that is one JSON array, or an object over several lines, and the kind of its objects.

    Args:
        path: The file.
        line: Its first line that is not blank.
        reading: See `sniff_json`.

    Returns:
        See `kind_of_record`; None for a file that is neither.

    Raises:
        DataError: If its first object is faulty.
    """
    if not begins_document(line):
        return None
    # Columns may have another encoding than JSON, and a bracket for their first word.
    with open_corpus_file(path, reading or Reading()) as file:
        beginning = file.read(_SNIFFED).lstrip(_BLANKS + BYTE_ORDER_MARK)
    if beginning.startswith("[") and not re.match(rf"\[[{_BLANKS}]*[\[{{\]]", beginning):
        return None
    return kind_of_first(path, reading)


def kind_of_first(path: Path, reading: Reading | None = None) -> str:
    """Return the kind of the first object of a file of JSON, see `kind_of_record`; bad ones before it may be left out.

    Raises:
        DataError: If its first object is faulty.
    """
    first = next(records(path, Repairs(reading or Reading()).leave_out), None)
    return "jsonl" if first is None else kind_of_record(first.content, reading)


def kind_of_record(record: Mapping[str, Any], reading: Reading | None = None) -> str:
    """Return the kind of a JSON object.

    Args:
        record: The object.
        reading: See `sniff_json`.

    Returns:
        ``"jsonl"`` for words and tags, ``"spans"`` for a text and spans, ``"spacy_json"`` for a document of spaCy 2.
    """
    told = reading.token_column if reading else None
    if told is not None and told in record:
        return "spans" if isinstance(record[told], str) else "jsonl"
    if isinstance(record.get("paragraphs"), list):
        return "spacy_json"
    if is_task(record) or _holds_examples(record):
        return "spans"
    if not any(isinstance(record.get(key), str) for key in TEXT_KEYS):
        return "jsonl"
    words = [record[key] for key in TOKEN_KEYS if isinstance(record.get(key), list)]
    if any(words):
        return "jsonl" if any(value and {str} == set(map(type, value)) for value in words) else "spans"
    # A list without anything in it is one of words where tags stand beside it, as they never do beside spans.
    return "jsonl" if words and any(key in record for key in TAG_KEYS[:2]) else "spans"


def is_task(record: Mapping[str, Any]) -> bool:
    """Return whether an object is a task that Label Studio has exported as JSON."""
    annotations = record.get("annotations")
    if not isinstance(record.get("data"), dict) or not isinstance(annotations, list):
        return False
    return all(isinstance(found, dict) and isinstance(found.get("result"), list) for found in annotations)


def keys_to_try(usual: Sequence[str], told: str | None) -> Sequence[str]:
    """Return the keys to look for: the given one, or else the usual ones."""
    return usual if told is None else (told,)


def find_key(record: dict[str, Any], keys: Sequence[str], what: str, option: str, place: str) -> str:
    """Return the first of the keys that a record has.

    Raises:
        DataError: If it has none of them.
    """
    for key in keys:
        if key in record:
            return key
    names = " or ".join(map(repr, keys))
    there = ", ".join(f"{key!r:.40}" for key in list(record)[:_KEYS_SHOWN]) or "none"
    raise DataError(f"{place}: no {what} under {names}; name the key as {option} (its keys: {there}), or add it.")


def strings(record: dict[str, Any], key: str, place: str, what: str = "tokens") -> list[str]:
    """Return a list of strings from a record, byte-order marks removed.

    Args:
        record: The record.
        key: The key of the list.
        place: The file and line.
        what: The kind of values, for messages; numbers in place of anything but tokens are reported as unnamed classes.

    Raises:
        DataError: If the value is not a list of strings that are not empty.
    """
    values = record[key]
    if type(values) is not list:
        raise DataError(f"{place}: {key!r} holds {kind_of(values)}; write a list of strings.")
    try:
        joined = "".join(values)
    except TypeError:
        raise _no_strings(values, key, place, what) from None
    # Most lists are ASCII throughout, and that is quick to tell.
    if not joined.isascii():
        check_characters(joined, key, place)
        if BYTE_ORDER_MARK in joined:
            values = [value.replace(BYTE_ORDER_MARK, "") for value in values]
    if "" in values:
        raise DataError(f"{place}: {key!r} holds an empty string at index {values.index('')}; fill or remove it.")
    return values


def _no_strings(values: list[Any], key: str, place: str, what: str) -> DataError:
    if what != "tokens" and set(map(type, values)) <= {int, float}:
        remedy = "name them in tag_names, or " if what == "tags" else ""
        return DataError(f"{place}: {key!r} holds numbers without names; {remedy}write the {what} as strings.")
    index, value = next((index, value) for index, value in enumerate(values) if type(value) is not str)
    return DataError(f"{place}: {key!r} holds {kind_of(value)} at index {index}; write a list of strings.")


def parts_of_speech(record: dict[str, Any], reading: Reading, count: int, place: str) -> list[str] | None:
    """Return the parts of speech of a record's words, or None if there are none or they are not wanted.

    Raises:
        DataError: If they are not strings, not as many as the words, or missing under the given key.
    """
    told = reading.pos_column
    if told == NONE:
        return None
    if told is not None:
        key = find_key(record, (told,), "parts of speech", "pos_column", place)
    else:
        key = next((key for key in POS_KEYS if key in record), "")
    if record.get(key) is None:
        return None
    found = strings(record, key, place, "parts of speech")
    if len(found) != count:
        raise DataError(
            f"{place}: {count} tokens but {len(found)} parts of speech under {key!r}; give every token one, or none."
        )
    return found


def document_of(record: dict[str, Any], place: str) -> str | None:
    """Return the name of the document that a record belongs to, or None.

    Raises:
        DataError: If the name is neither a string nor a whole number.
    """
    name = record.get(DOCUMENT_KEY)
    if name is None:
        return None
    if type(name) is str:
        check_characters(name, DOCUMENT_KEY, place)
        return name.replace(BYTE_ORDER_MARK, "")
    if type(name) is int:
        return str(name)
    raise DataError(f"{place}: {DOCUMENT_KEY!r} holds {kind_of(name)}; write a string or a whole number.")


def check_characters(text: str, key: str, place: str) -> None:
    r"""Raise DataError for a text with a lone surrogate, such as ``\ud83d``, which UTF-8 does not allow.

    Raises:
        DataError: If the text cannot be written in UTF-8.
    """
    if not text.isascii() and (found := _SURROGATE.search(text)):
        raise DataError(
            f"{place}: {key!r} holds a lone surrogate, U+{ord(found.group()):04X}, which is not a character; "
            "write both its halves, or remove it."
        )


def kind_of(value: Any) -> str:
    """Return the type of a JSON value in words."""
    return _KINDS[type(value)]


def _broken_document(text: str, at: int, error: Exception | str, number: int, name: str) -> DataError:
    line = number + text.count("\n", 0, at)
    return DataError(
        f"{name}:{line}: the file is not JSON ({_reason(error, at - text.rfind(chr(10), 0, at))}); "
        "correct it, or export it again."
    )


def _reason(error: Exception | str, column: int) -> str:
    """Return the reason why a text is not JSON, with the column if there is one."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    if isinstance(error, json.JSONDecodeError):
        error = error.msg
    elif isinstance(error, Exception):
        return str(error).lower()
    return f"{error.lower()}, column {column}"


def _nothing(path: Path) -> DataError:
    return DataError(f"{path}:1: the file holds no sentence; expected one JSON object a line, or an array of objects.")
