"""Read JSON objects of words and tags."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any, NamedTuple

from ...errors import DataError
from ...files import BYTE_ORDER_MARK, suffix_of
from ..schemes import UNLABELLED_TAG
from ..source import NONE, Input, ReadingOptions, Record, Sentence
from .columns import looks_like_tag

TOKEN_KEYS = ("tokens", "words")
TAG_KEYS = ("ner_tags", "tags", "labels")
POS_KEYS = ("pos_tags", "pos")
DOCUMENT_KEY = "doc_id"
TEXT_KEY = "text"
#: Keys of a text; "data" is from old versions of doccano, "content" from Dataturks.
TEXT_KEYS = (TEXT_KEY, "data", "content")
# The content of usual keys, for messages.
_CONTENT = {TOKEN_KEYS: "words", TAG_KEYS: "tags", TEXT_KEYS: "text", (): "parts of speech"}

#: Suffixes of JSON.
JSON_SUFFIXES = frozenset({".jsonl", ".json", ".ndjson"})
# The white space of JSON, and byte-order marks, which concatenated files have at the start of each part.
_BLANKS = " \t\r\n" + BYTE_ORDER_MARK
# The beginning of JSON objects or of an array, but not of columns whose first word is a bracket.
_JSON = re.compile(rf'[{_BLANKS}]*(\[[{_BLANKS}]*[\[{{\]]|\{{[{_BLANKS}]*("|\}}\s*?(\n|$)))')
# An array of records, as a line may be a list of a text and an object; and an object over several lines.
_ARRAY = re.compile(rf'[{_BLANKS}]*\[(?!\s*")')
_LONG_OBJECT = re.compile(rf"[{_BLANKS}]*\{{([^\n]*[^}}\s])?[^\S\n]*\n\s*[^{{\s]")
_KEYS = (*TOKEN_KEYS, "tokenized_text", *TEXT_KEYS)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = re.compile(r"[\t\r\n]")


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

    @property
    def location(self) -> str:
        """The location of the record, for messages."""
        return f"{self.source}{self.number}"


def read_words(source: Input, stream: Iterable[JsonRecord]) -> Iterator[Sentence]:
    """Yield the sentences of JSON objects, each with words and their tags.

    The words are under ``tokens`` or ``words``, their tags under ``ner_tags``, ``tags`` or ``labels``, the parts of
    speech, if any, under ``pos_tags`` or ``pos``, and the name of the document, if any, under ``doc_id``. If there are
    several of these keys, the first counts.

    Raises:
        DataError: If a line is not a JSON object, has no words or tags, or some are not strings.
    """
    for record in stream:
        try:
            yield sentence_of_words(record, source.reading)
        except DataError as fault:
            source.repairs.leave_out(fault)


def sentence_of_words(record: JsonRecord, reading: ReadingOptions) -> Sentence:
    """Return the sentence of an object with words and tags."""
    content, location = record.content, record.location
    token_key = find_key(content, TOKEN_KEYS, "token_column", reading, location)
    tokens = strings(content, token_key, location)
    tag_key = find_key(content, TAG_KEYS, "tag_column", reading, location)
    if reading.tag_names:
        content = {**content, tag_key: names_of_classes(content[tag_key], reading.tag_names)}
    tags = strings(content, tag_key, location)
    pos_tags = parts_of_speech(content, reading, location)
    return Sentence(tokens, tags, record.source, record.number, pos_tags, document_of(content))


def records_to_tag(source: Input) -> Iterator[Record]:
    """Yield the objects of a file as records to tag; see `record_of`."""
    faults = source.repairs.faults
    for record in chain(records(source), [None]):
        yield from (Record({}, None, str(fault)) for fault in faults)
        faults.clear()
        if record:
            yield record_of(record.content, source.reading.token_column, record.location)


def record_of(fields: dict[str, Any], field: str | None, location: str) -> Record:
    """Return a record with the words or the text of a field, by default the words, or else the text, of a usual one.

    Args:
        fields: The record; a task of Label Studio has them under ``data``.
        field: The name of the field.
        location: Its location, for messages.
    """
    inner = fields.get("data")
    for values in (fields, inner if isinstance(inner, dict) else {}):
        # An empty list comes last, as some tools write one beside the text. Others write words as objects.
        items = [values[key] for key in ([field] if field else _KEYS) if key in values]
        for item in sorted(items, key=lambda item: (item == [], isinstance(item, str))) if len(items) > 1 else items:
            if isinstance(item, str) or (isinstance(item, list) and {*map(type, item)} <= {str}):
                text, fault = item if isinstance(item, str) else "\t".join(item), ""
                if not text.isascii() and _SURROGATE.search(text):
                    fault = "a character is not valid UTF-8; save it as UTF-8"
                elif isinstance(item, list) and item and ("" in item or len(_BREAKS.findall(text)) >= len(item)):
                    fault = "a word is empty, or contains a TAB or a line break"
                return Record(fields, None, f"{location}: {fault}.") if fault else Record(fields, item)
    present, names = ", ".join(map(str, list(fields)[:8])), field or " or ".join((TEXT_KEY, *TOKEN_KEYS))
    return Record(fields, None, f"{location}: no text or list of words in {names}; name one of {present} as field.")


def names_of_classes(numbers: Any, names: Sequence[str]) -> Any:
    """Replace the numbers of classes by their names, and -1 by ``?`` if the names are chunk tags."""
    name_of = _by_number(tuple(names))
    if type(numbers) is not list:
        return numbers
    return [name_of.get(number, number) if type(number) is int else number for number in numbers]


@lru_cache
def _by_number(names: tuple[str, ...]) -> dict[int, str]:
    return dict(enumerate(names)) | ({-1: UNLABELLED_TAG} if all(map(looks_like_tag, names)) else {})


def records(source: Input) -> Iterator[JsonRecord]:
    """Yield the objects of a file: one object per line, an array of objects, or one object over several lines.

    Forms of some tools are converted: spaCy's lists of a text and an object, or a text and its tags; ``sentence`` and
    ``tags``; GLiNER's ``tokenized_text`` and ``ner``; NER Annotator's object of all ``annotations``.

    Raises:
        DataError: For a value that is not a JSON object.
    """
    for name, number, value in _values(source):
        value = _usual_form(value)
        if type(value) is dict and type(value.get("annotations")) is list and "classes" in value:
            for index, element in enumerate(filter(None, value["annotations"]), start=1):
                yield JsonRecord(f"{name}{number}, annotation ", index, _usual_form(element))
        elif type(value) is dict:
            yield JsonRecord(name, number, value)
        else:
            source.repairs.leave_out(DataError(f"{name}{number}: is a {type(value).__name__}; write an object."))


def _usual_form(value: Any) -> Any:
    """Return a record of a tool in the form of others, or the value itself."""
    kinds = list(map(type, value)) if type(value) is list else []
    if kinds == [str, dict]:
        return {**value[1], TEXT_KEY: value[0]}
    if kinds == [str, list] and {*map(type, value[1])} != {str}:
        return {TEXT_KEY: value[0], "spans": value[1]}
    if kinds == [str, list]:
        # In spaCy, "-" is a missing tag.
        return {TOKEN_KEYS[0]: value[0].split(), TAG_KEYS[0]: [{"-": UNLABELLED_TAG}.get(t, t) for t in value[1]]}
    if type(value) is not dict:
        return value
    if "sentence" in value and "tags" in value and not {*TOKEN_KEYS, *TEXT_KEYS} & value.keys():
        words, tags = (part.split() if type(part) is str else part for part in (value["sentence"], value["tags"]))
        return {**value, TOKEN_KEYS[0]: words, "tags": tags}
    words, spans = value.get("tokenized_text"), value.get("ner")
    if type(words) is list and type(spans) is list and all(type(word) is str for word in words):
        ends = [*accumulate(len(word) + 1 for word in words)]
        offsets = [[end - 1 - len(word), end - 1] for word, end in zip(words, ends, strict=True)]
        with suppress(TypeError, ValueError, IndexError):
            # The last index of a span is that of its last word.
            spans = [[offsets[start][0], offsets[end][1], label] for start, end, label in spans]
            return {**value, TEXT_KEY: " ".join(words), TOKEN_KEYS[0]: offsets, "spans": spans}
    return value


def _values(source: Input) -> Iterator[tuple[str, int, Any]]:
    """Yield the source, the number and the value of the lines of a file, or of the elements of the array in it."""
    if _ARRAY.match(source.sample) or _LONG_OBJECT.match(source.sample):
        value = _decoded("".join(source.lines).strip(_BLANKS), f"{source.path}", source.labelled)
        for number, element in enumerate(value if type(value) is list else [value], start=1):
            yield f"{source.path}, record ", number, element
        return
    for number, line in enumerate(source.lines, start=1):
        if line := line.strip(_BLANKS):
            try:
                yield f"{source.path}:", number, _decoded(line, f"{source.path}:{number}", source.labelled)
            except DataError as fault:
                source.repairs.leave_out(fault)


def _decoded(text: str, location: str, labelled: bool) -> Any:
    try:
        value = json.loads(text)
        # Of records to tag, only the text or words are checked.
        if labelled and "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()  # fails for lone surrogates
        return value
    except (ValueError, RecursionError) as error:
        raise DataError(f"{location}: not JSON ({error}); correct it, or write one complete object per line.") from None


def is_json(source: Input) -> bool:
    """Return True for a file with a suffix of JSON, or that begins like JSON."""
    return suffix_of(source.path) in JSON_SUFFIXES or _JSON.match(source.sample) is not None


def has_text(record: Mapping[str, Any], field: str | None) -> bool:
    """Return True for an object with a text and spans, or False for one with words and tags."""
    if field is not None and field in record:
        return isinstance(record[field], str)
    if is_task(record):
        return True
    words = [record[key] for key in TOKEN_KEYS if isinstance(record.get(key), list)]
    of_words = any({*map(type, value)} == {str} for value in words)
    if not any(words):
        # Records with spans have no tags, so an empty list with tags is one of words.
        of_words = bool(words) and any(key in record for key in TAG_KEYS[:2])
    return any(isinstance(record.get(key), str) for key in TEXT_KEYS) and not of_words


def is_task(record: Mapping[str, Any]) -> bool:
    """Return True if an object is a task of Label Studio, exported as JSON or for import with predictions."""
    annotations = record.get("annotations", [] if "predictions" in record else None)
    if not isinstance(record.get("data"), dict) or not isinstance(annotations, list):
        return False
    return all(isinstance(item, dict) and isinstance(item.get("result"), list) for item in annotations)


def find_key(
    record: Collection[str], usual: tuple[str, ...], option: str, reading: ReadingOptions, location: str
) -> str:
    """Return the key in an option of reading, or by default the first of the usual keys that a record has.

    Raises:
        DataError: If the record does not have it.
    """
    named = getattr(reading, option)
    keys = usual if named is None else (named,)
    for key in keys:
        if key in record:
            return key
    present = ", ".join(f"{key!r:.40}" for key in list(record)[:8]) or "none"
    under = " or ".join(map(repr, keys))
    raise DataError(f"{location}: no {_CONTENT[usual]} under {under}; name them as {option} (keys: {present}).")


def strings(record: dict[str, Any], key: str, location: str) -> list[str]:
    """Return a list of strings from a record, byte-order marks removed.

    Raises:
        DataError: If the value is not a list of strings that are not empty.
    """
    values = record[key]
    if type(values) is not list or not all(type(value) is str for value in values):
        raise DataError(
            f"{location}: {key!r} holds {str(values)[:60]}; write a list of strings, or name the tags in tag_names."
        )
    values = [value.replace(BYTE_ORDER_MARK, "") for value in values]
    if "" in values:
        raise DataError(f"{location}: {key!r} holds an empty string at index {values.index('')}; fill or remove it.")
    return values


def parts_of_speech(record: dict[str, Any], reading: ReadingOptions, location: str) -> list[str] | None:
    """Return the parts of speech of a record's words, or None if there are none or they are not to be read.

    Raises:
        DataError: If they are not strings, or missing under `pos_column`.
    """
    if reading.pos_column == NONE:
        return None
    key = next((key for key in POS_KEYS if key in record), None)
    if reading.pos_column is not None:
        key = find_key(record, (), "pos_column", reading, location)
    if key is None or record[key] is None:
        return None
    if reading.pos_column is None and type(record[key]) is list and any(type(value) is int for value in record[key]):
        return None  # numbers without names, as in exports of CoNLL-2003 from the Hub
    return strings(record, key, location)


def document_of(record: dict[str, Any]) -> str | None:
    """Return the name of a record's document, or None."""
    name = record.get(DOCUMENT_KEY)
    return None if name is None else str(name).replace(BYTE_ORDER_MARK, "")
