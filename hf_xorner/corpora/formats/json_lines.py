"""Read JSON Lines as a stream of objects, and those of words and tags as a stream of sentences."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...files import BYTE_ORDER_MARK, open_text
from ..source import NONE, Reading, Sentence

TOKEN_KEYS = ("tokens", "words")
TAG_KEYS = ("ner_tags", "tags", "labels")
POS_KEYS = ("pos_tags", "pos")
DOCUMENT_KEY = "doc_id"
TEXT_KEY = "text"

# The white space of JSON; other white space belongs to the content.
_BLANKS = " \t\r\n"
_decode = json.JSONDecoder().decode
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


def read_json_lines(path: Path, reading: Reading) -> Iterator[Sentence]:
    """Yield the sentences of a file that holds one JSON object a line, each with words and their tags.

    The words are under the first key found of ``tokens`` and ``words``, their tags under the first of
    ``ner_tags``, ``tags`` and ``labels``, their parts of speech, if any, under ``pos_tags`` or ``pos``, and the
    document's name, if any, under ``doc_id``. Byte-order marks are removed wherever they stand.

    Args:
        path: A file in UTF-8, plain or gzip.
        reading: Options that name other keys as columns.

    Yields:
        The sentences in the order of the file; one whose line has an empty list of words is empty.

    Raises:
        DataError: For a line that is not a JSON object, lacks words or tags, has more of one than of the other, or
            holds anything but strings there, and for a file without any object.
    """
    source = f"{path}:"
    token_keys = keys_to_try(TOKEN_KEYS, reading.token_column)
    tag_keys = keys_to_try(TAG_KEYS, reading.tag_column)
    for number, record in records(path):
        place = f"{source}{number}"
        tokens = strings(record, find_key(record, token_keys, "words", "token_column", place), place)
        tags = strings(record, find_key(record, tag_keys, "tags", "tag_column", place), place, "tags")
        if len(tags) != len(tokens):
            raise DataError(f"{place}: {len(tokens)} tokens but {len(tags)} tags; give every token one tag.")
        pos_tags = parts_of_speech(record, reading, len(tokens), place)
        yield Sentence(tokens, tags, source, number, 0, pos_tags, document_of(record, place))


def records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON Lines file with the numbers of their lines; blank lines are skipped.

    Args:
        path: A file in UTF-8, plain or gzip.

    Yields:
        Line numbers from 1, and the objects.

    Raises:
        DataError: For a line that is not a JSON object, and for a file without any.
    """
    found = False
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            record = record_of(line, f"{path}:{number}", found)
            if record is not None:
                found = True
                yield number, record
    if not found:
        raise DataError(f"{path}:1: the file holds no sentence; expected one JSON object a line.")


def record_of(line: str, place: str, found: bool = True) -> dict[str, Any] | None:
    """Return the object that a line holds, or None for a blank line.

    Args:
        line: The line.
        place: The file and line.
        found: Whether there was an object before it; a file's first line shows best what the file is instead.

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
        raise _broken(line, error, place, found) from None
    if type(record) is not dict:
        raise _no_object(record, place, found)
    return record


def sniff_json(line: str, reading: Reading | None = None) -> str | None:
    """Recognise JSON Lines, and their kind, by the first line that is not blank.

    Args:
        line: The line.
        reading: Options, of which ``token_column`` may name the key of the words or the text.

    Returns:
        ``"jsonl"`` for words and tags, ``"spans"`` for a text and spans, None for a line that is not a JSON object.
    """
    line = line.strip(_BLANKS + BYTE_ORDER_MARK)
    if not line.startswith("{"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    told = reading.token_column if reading else None
    if told is not None and told in record:
        return "spans" if isinstance(record[told], str) else "jsonl"
    if not isinstance(record.get(TEXT_KEY), str):
        return "jsonl"
    words = [record[key] for key in TOKEN_KEYS if isinstance(record.get(key), list)]
    if any(words):
        return "jsonl" if any(value and {str} == set(map(type, value)) for value in words) else "spans"
    # A list without anything in it is one of words where tags stand beside it, as they never do beside spans.
    return "jsonl" if words and any(key in record for key in TAG_KEYS[:2]) else "spans"


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
    raise DataError(f"{place}: no {what} under {names}; name the key as {option}, or add it.")


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
        return DataError(f"{place}: {key!r} holds numbers without names; write the {what} as strings.")
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


def _broken(line: str, error: Exception, place: str, found: bool) -> DataError:
    if not found and line.lstrip(_BLANKS).startswith("["):
        return _no_object([], place, found)
    if isinstance(error, json.JSONDecodeError):
        # The decoder takes the line's end for a blank, and looks for what is missing in the next line.
        reason = f"{error.msg.lower()}, column {min(error.pos, len(line.rstrip(_BLANKS))) + 1}"
    else:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error).lower()
    return DataError(f"{place}: the line is not JSON ({reason}); write one whole object a line.")


def _no_object(value: Any, place: str, found: bool) -> DataError:
    if isinstance(value, list) and not found:
        return DataError(f"{place}: the file is a JSON array; write one object a line, without the brackets.")
    return DataError(f"{place}: the line holds {kind_of(value)}; write one object a line.")
