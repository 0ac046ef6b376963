"""Read JSON of texts with labelled spans of characters, as annotation tools export them."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from operator import le, lt
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from ...errors import DataError
from ...files import BYTE_ORDER_MARK
from ...models.word_rule import WORD_PATTERN
from ..source import NONE, Reading, Repairs, Sentence
from .json_lines import (
    TEXT_KEYS,
    JsonRecord,
    check_characters,
    document_of,
    find_key,
    is_task,
    keys_to_try,
    kind_of,
    parts_of_speech,
    records,
)

SPAN_KEYS = ("spans", "entities", "labels", "label", "ents", "annotations")
WORD_KEY = "tokens"
# doccano writes the second pair where it also writes relations.
_OFFSET_KEYS = (("start", "end"), ("start_offset", "end_offset"))

_WIDENED = "spans that cut a word were widened to whole words"
_OVERLAPPING = "spans that overlap another were left out, the longest kept"
_LEFT_OUT = "records that their annotator rejected or ignored were left out"
_UNANNOTATED = "tasks without an annotation were left out"
_FURTHER = "further annotations of the same task were left out"
# In Label Studio's JSON-MIN, each annotation of a task is a record with the number of its task as its id; a task
# without an annotation has null here.
_MIN_KEY = "annotation_id"
# What values that Prodigy writes under "answer" besides "accept".
_REFUSALS = ("reject", "ignore")
# Unicode White_Space, which the word rule also goes by; str.strip alone would take four control characters more.
_BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_SHOWN = 120


class Span(NamedTuple):
    """A labelled span of characters; end is the place after its last one."""

    start: int
    end: int
    label: str
    written: Any  # as the file has it, for messages


class WordSpans(NamedTuple):
    """The words of a text with their starts and ends."""

    tokens: list[str]
    starts: Sequence[int]
    ends: Sequence[int]


class _Chunk(NamedTuple):
    """The words that a span covers: from first to before after."""

    first: int
    after: int
    span: Span


def read_spans(path: Path, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    """Yield the texts of a file of JSON objects, each with a text and labelled spans, as sentences; see `records`.

    The text is under ``text`` or ``data``, the spans under the first key there is of ``spans``, ``entities``,
    ``labels``, ``label``, ``ents`` and ``annotations``: each ``[start, end, label]`` or an object with these names,
    counted in characters (Unicode code points) from 0, with the end after the last character, as doccano, Prodigy,
    spaCy and Label Studio (JSON-MIN) write them. A record without that key has no spans. Of a task in Label Studio's
    JSON, the annotation marked as ground truth is read, or else the first that was not cancelled; tasks without one
    are left out.

    The words are those under ``tokens``, if a record has them with their offsets (Prodigy, spaCy), else those of the
    library's word rule. Blanks at the ends of a span are ignored, and a span that cuts a word is widened. Of spans that
    overlap, the longest is kept, the first of equally long ones. Parts of speech and ``doc_id`` are read as in JSON of
    words, the former only beside words with offsets. Records that Prodigy marks as rejected or ignored are left out.

    Args:
        path: A file in UTF-8, plain or gzip.
        reading: Other keys of the text (its token column), the spans (its tag column) and the parts of speech.
        repairs: Counts the spans that were widened, and the spans and records that were left out.

    Yields:
        One sentence a text, with tags in IOB2; a text without words gives an empty one.

    Raises:
        DataError: For a line that is not a JSON object or lacks a text, a span that is malformed, reaches outside of
            its text or covers no word, faulty words, and a file none of whose records has spans.
    """
    text_keys = keys_to_try(TEXT_KEYS, reading.token_column)
    span_keys = keys_to_try(SPAN_KEYS, reading.tag_column)
    kept = annotated = False
    for record in _accepted(path, reading, repairs):
        span_key = next((key for key in span_keys if key in record.content), None)
        kept, annotated = True, annotated or span_key is not None
        try:
            sentence = _sentence_of(record, text_keys, span_key, reading, repairs)
        except DataError as fault:
            repairs.leave_out(fault)
        else:
            yield sentence
    if not kept:
        raise DataError(f"{path}:1: every record is rejected, ignored or not annotated; accept some of them.")
    if not annotated:
        # Such a file would otherwise be read as one without entities.
        names = " or ".join(map(repr, span_keys))
        raise DataError(f"{path}:1: no record has spans under {names}; name their key as tag_column.")


def _sentence_of(
    found: JsonRecord, text_keys: Sequence[str], span_key: str | None, reading: Reading, repairs: Repairs
) -> Sentence:
    """Return the sentence of a record with a text and spans."""
    source, number, record = found
    place = f"{source}{number}"
    text = _text_of(record, find_key(record, text_keys, "text", "token_column", place), place)
    spans = [] if span_key is None else _spans_of(record[span_key], span_key, text, place)
    text, spans, words = words_of(record, text, spans, place)
    pos_tags = None
    if record.get(WORD_KEY) is not None:
        pos_tags = parts_of_speech(record, reading, len(words.tokens), place)
    elif reading.pos_column not in (None, NONE):
        raise DataError(
            f"{place}: no words with offsets under {WORD_KEY!r}, which parts of speech need; "
            f"add them, or give {NONE!r} as pos_column."
        )
    tags = tags_of_spans(spans, text, words, repairs, place)
    return Sentence(words.tokens, tags, source, number, pos_tags, document_of(record, place))


# --- Records ---------------------------------------------------------------------------------------------------------


def _accepted(path: Path, reading: Reading, repairs: Repairs) -> Iterator[JsonRecord]:
    """Yield the records of a file without those that a tool marks as not to be used; tasks of Label Studio as spans."""
    seen: set[Any] = set()
    for source, number, record in records(path, repairs.leave_out):
        place = f"{source}{number}"
        if record.get("answer") in _REFUSALS:
            repairs.add(_LEFT_OUT, place)
        elif _MIN_KEY in record and record[_MIN_KEY] is None:
            repairs.add(_UNANNOTATED, place)
        elif _MIN_KEY in record and type(record.get("id")) is int and record["id"] in seen:
            repairs.add(_FURTHER, place)
        elif not is_task(record):
            if _MIN_KEY in record and type(record.get("id")) is int:
                seen.add(record["id"])
            yield JsonRecord(source, number, record)
        elif annotations := [found for found in record["annotations"] if not found.get("was_cancelled")]:
            # Several people may have annotated a task.
            if len(annotations) > 1:
                repairs.add(_FURTHER, place, len(annotations) - 1)
            chosen = next((found for found in annotations if found.get("ground_truth")), annotations[0])
            # Spans among the data are not the annotator's.
            data = {key: value for key, value in record["data"].items() if key not in (*SPAN_KEYS, WORD_KEY)}
            regions = _regions(chosen, reading)
            yield JsonRecord(source, number, data | ({reading.tag_column or SPAN_KEYS[0]: regions} if regions else {}))
        else:
            repairs.add(_UNANNOTATED, place)


def _regions(annotation: dict[str, Any], reading: Reading) -> list[Any]:
    """Return the labelled regions of an annotation of Label Studio; of one control only if ``tag_column`` names it."""
    found = (item for item in annotation["result"] if type(item) is dict and type(item.get("value")) is dict)
    return [
        item["value"]
        for item in found
        if "labels" in item["value"] and reading.tag_column in (None, item.get("from_name"))
    ]


def _text_of(record: dict[str, Any], key: str, place: str) -> str:
    text = record[key]
    if type(text) is not str:
        raise DataError(f"{place}: {key!r} holds {kind_of(text)}; write the text as a string.")
    check_characters(text, key, place)
    return text


def _spans_of(written: Any, key: str, text: str, place: str) -> list[Span]:
    """Return the spans of a record with some text."""
    if written is None:
        return []
    if type(written) is not list:
        raise DataError(f"{place}: {key!r} holds {kind_of(written)}; write a list of [start, end, label].")
    return [span for item in written for span in _labelled(item, text, place)]


def _labelled(written: Any, text: str, place: str) -> list[Span]:
    """Return the spans of one place in a text, which Label Studio may give several labels."""
    start, end = _ends_of(written, 3)
    own = written.get("text") if type(written) is dict and "labels" in written else None
    own = own if type(own) is str else None
    if own and type(start) is type(end) is int:
        start, end = _in_characters(start, end, text, own)
    fault = _fault_of(start, end, len(text), "[start, end, label]")
    labels: Any = ()
    if not fault:
        several = written.get("labels") if type(written) is dict else None
        labels = several if type(several) is list else [written[2] if type(written) is list else written.get("label")]
        if not labels or not all(type(label) is str and label.strip(_BLANKS + BYTE_ORDER_MARK) for label in labels):
            fault = "has no string for its label"
        elif own and not same_text(text[start:end], own):
            fault = f"is {_show(text[start:end])} in the text"
    if fault:
        raise DataError(f"{place}: the span {_show(written)} {fault}; correct or remove it.")
    for label in labels:
        check_characters(label, "label", place)
    return [Span(start, end, label.replace(BYTE_ORDER_MARK, ""), written) for label in labels]


def _in_characters(start: int, end: int, text: str, own: str) -> tuple[int, int]:
    """Return the ends of a span in characters, where those written are of UTF-16, in which browsers count."""
    if same_text(text[start:end], own):
        return start, end
    places = _places_of_units(text)
    if not 0 <= start <= end < len(places):
        return start, end
    first, after = places[start], places[end]
    return (first, after) if same_text(text[first:after], own) else (start, end)


@lru_cache(maxsize=1)
def _places_of_units(text: str) -> list[int]:
    """Return the index of the character at each place that UTF-16 counts, the end included."""
    places: list[int] = []
    for index, character in enumerate(text):
        places += [index, index + 1] if character > "\uffff" else [index]
    return [*places, len(text)]


def same_text(found: str, own: str) -> bool:
    """Return whether the text at the place of a span is the one that a tool wrote beside it, but for white space."""
    return found.split() == own.split()


def _ends_of(written: Any, count: int) -> tuple[Any, Any]:
    """Return the first two values of a list of that many, or the start and end of an object, or None and None."""
    if type(written) is list and len(written) == count:
        return written[0], written[1]
    if type(written) is dict:
        for start, end in _OFFSET_KEYS:
            if start in written and end in written:
                return written[start], written[end]
    return None, None


def _fault_of(start: Any, end: Any, size: int, form: str) -> str:
    """Return the fault of two ends in a text of some size, or an empty string."""
    if start is None and end is None:
        return f"is neither {form} nor an object of these"
    # A boolean is an int to isinstance.
    if type(start) is not int or type(end) is not int:
        return "has no whole numbers for its start and end"
    if start < 0 or max(start, end) > size:
        return f"reaches outside of the text, which has {size} characters"
    if start >= end:
        return "is empty" if start == end else "ends before it starts"
    return ""


def _show(written: Any) -> str:
    shown = json.dumps(written, ensure_ascii=False)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


# --- Words -----------------------------------------------------------------------------------------------------------


@cache
def _word_rule() -> Split:
    # The tokenizer's rule without its vocabulary and characters, which take half of its time.
    return Split(Regex(WORD_PATTERN), behavior="removed", invert=True)


def words_of(record: dict[str, Any], text: str, spans: list[Span], place: str) -> tuple[str, list[Span], WordSpans]:
    """Return the text and its spans without byte-order marks, and its words: the record's, or by the word rule."""
    own = record.get(WORD_KEY) is not None
    starts, ends = _offsets_of(record[WORD_KEY], len(text), place) if own else ([], [])
    if BYTE_ORDER_MARK in text:
        marks = [at for at, character in enumerate(text) if character == BYTE_ORDER_MARK]

        def move(offset: int) -> int:
            return offset - bisect_left(marks, offset)

        text = text.replace(BYTE_ORDER_MARK, "")
        spans = [span._replace(start=move(span.start), end=move(span.end)) for span in spans]
        starts, ends = [*map(move, starts)], [*map(move, ends)]
    if not own:
        found = _word_rule().pre_tokenize_str(text)
        words = WordSpans(
            [word for word, _ in found], [start for _, (start, _) in found], [end for _, (_, end) in found]
        )
        return text, spans, words
    tokens = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    if "" in tokens:
        index = tokens.index("")
        raise DataError(f"{place}: the word at index {index} of {WORD_KEY!r} is only a byte-order mark; remove it.")
    return text, spans, WordSpans(tokens, starts, ends)


def _offsets_of(written: Any, size: int, place: str) -> tuple[Sequence[int], Sequence[int]]:
    """Return the starts and the ends of the words of a record."""
    if type(written) is not list:
        raise DataError(f"{place}: {WORD_KEY!r} holds {kind_of(written)}; write a list of [start, end].")
    if not written:
        return (), ()
    starts, ends = zip(*[_ends_of(word, 2) for word in written], strict=True)
    sound = {int} == {*map(type, starts), *map(type, ends)} and starts[0] >= 0 and ends[-1] <= size
    # All words at once: the reason of a fault is looked for only where there is one.
    if not sound or not all(map(lt, starts, ends)) or not all(map(le, ends, starts[1:])):
        raise _faulty_word(written, size, place)
    return starts, ends


def _faulty_word(written: list[Any], size: int, place: str) -> DataError:
    """Return the error for the first faulty word of a record that has one."""
    index, before, fault = -1, 0, ""
    while not fault:
        index += 1
        start, end = _ends_of(written[index], 2)
        fault = _fault_of(start, end, size, "[start, end]")
        if not fault and start < before:
            fault = "starts before the last one ends"
        before = end
    return DataError(
        f"{place}: the word {_show(written[index])} at index {index} of {WORD_KEY!r} {fault}; "
        f"correct it, or leave {WORD_KEY!r} out."
    )


# --- Tags ------------------------------------------------------------------------------------------------------------


def tags_of_spans(spans: Sequence[Span], text: str, words: WordSpans, repairs: Repairs, place: str) -> list[str]:
    """Return the IOB2 tags of words that spans cover.

    Raises:
        DataError: For a span that covers no word.
    """
    tags = ["O"] * len(words.tokens)
    chunks = [_chunk_of(span, text, words, repairs, place) for span in spans]
    # spaCy's filter_spans keeps the same ones.
    for first, after, span in sorted(chunks, key=lambda chunk: (chunk.first - chunk.after, chunk.first)):
        if any(tag != "O" for tag in tags[first:after]):
            repairs.add(_OVERLAPPING, f"{place}, span {_show(span.written)}")
            continue
        tags[first] = f"B-{span.label}"
        tags[first + 1 : after] = [f"I-{span.label}"] * (after - first - 1)
    return tags


def _chunk_of(span: Span, text: str, words: WordSpans, repairs: Repairs, place: str) -> _Chunk:
    first, after = _covered(span.start, span.end, words)
    if first < after and words.starts[first] == span.start and words.ends[after - 1] == span.end:
        # Taken as it is even where words with offsets of their own are or hold blanks.
        return _Chunk(first, after, span)
    inside = text[span.start : span.end]
    start = span.end - len(inside.lstrip(_BLANKS))
    end = span.start + len(inside.rstrip(_BLANKS))
    first, after = _covered(start, end, words) if start < end else (0, 0)
    if first >= after:
        raise DataError(f"{place}: the span {_show(span.written)} covers no word; correct or remove it.")
    if words.starts[first] < span.start or words.ends[after - 1] > span.end:
        repairs.add(_WIDENED, f"{place}, span {_show(span.written)}")
    return _Chunk(first, after, span)


def _covered(start: int, end: int, words: WordSpans) -> tuple[int, int]:
    """Return the range of the words that have a character between two places."""
    return bisect_right(words.ends, start), bisect_left(words.starts, end)


def sentences_between(starts: Sequence[bool], tags: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first word of each sentence of a document, and the one after its last; entities are not cut.

    Args:
        starts: Whether a sentence starts at a word.
        tags: The IOB2 tags of the words.
    """
    bounds = [at for at, starting in enumerate(starts) if at and starting and not tags[at].startswith("I-")]
    for start, end in zip([0, *bounds], [*bounds, len(tags)], strict=True):
        if start < end:
            yield start, end
