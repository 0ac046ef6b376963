"""Read JSON Lines of texts with labelled spans of characters, as annotation tools export them."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
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
    TEXT_KEY,
    check_characters,
    document_of,
    find_key,
    keys_to_try,
    kind_of,
    parts_of_speech,
    records,
)

SPAN_KEYS = ("spans", "entities", "labels", "label", "ents")
WORD_KEY = "tokens"
# doccano writes the second pair where it also writes relations.
_OFFSET_KEYS = (("start", "end"), ("start_offset", "end_offset"))

_WIDENED = "spans that cut a word were widened to whole words"
_LEFT_OUT = "records that their annotator rejected or ignored were left out"
# What values that Prodigy writes under "answer" besides "accept".
_REFUSALS = ("reject", "ignore")
# Unicode White_Space, which the word rule also goes by; str.strip alone would take four control characters more.
_BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_SHOWN = 120


class _Span(NamedTuple):
    """A labelled span of characters; end is the place after its last one."""

    start: int
    end: int
    label: str
    written: Any  # as the file has it, for messages


class _Words(NamedTuple):
    """The words of a text with their starts and ends."""

    tokens: list[str]
    starts: Sequence[int]
    ends: Sequence[int]


class _Chunk(NamedTuple):
    """The words that a span covers: from first to before after."""

    first: int
    after: int
    span: _Span


def read_spans(path: Path, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    """Yield the texts of a file that holds one JSON object a line, each with a text and labelled spans, as sentences.

    The text is under ``text``, the spans under the first key there is of ``spans``, ``entities``, ``labels``,
    ``label`` and ``ents``: each ``[start, end, label]`` or an object with these names, counted in characters (Unicode
    code points) from 0, with the end after the last character, as doccano, Prodigy and spaCy write them. A record
    without that key has no spans.

    The words are those under ``tokens``, if a record has them with their offsets (Prodigy, spaCy), else those of the
    library's word rule. Blanks at the ends of a span are ignored, and a span that cuts a word is widened. Parts of
    speech and ``doc_id`` are read as in JSON Lines of words, the former only beside words with offsets. Records that
    Prodigy marks as rejected or ignored are left out.

    Args:
        path: A file in UTF-8, plain or gzip.
        reading: Other keys of the text (its token column), the spans (its tag column) and the parts of speech.
        repairs: Counts the spans that were widened and the records that were left out.

    Yields:
        One sentence a text, with tags in IOB2; a text without words gives an empty one.

    Raises:
        DataError: For a line that is not a JSON object or lacks a text, a span that is malformed, reaches outside of
            its text, covers no word or overlaps another, faulty words, and a file none of whose records has spans.
    """
    source = f"{path}:"
    text_keys = keys_to_try((TEXT_KEY,), reading.token_column)
    span_keys = keys_to_try(SPAN_KEYS, reading.tag_column)
    kept = annotated = False
    for number, record in records(path):
        place = f"{source}{number}"
        if record.get("answer") in _REFUSALS:
            repairs.add(_LEFT_OUT, place)
            continue
        kept = True
        text = _text_of(record, find_key(record, text_keys, "text", "token_column", place), place)
        span_key = next((key for key in span_keys if key in record), None)
        annotated = annotated or span_key is not None
        spans = [] if span_key is None else _spans_of(record[span_key], span_key, len(text), place)
        text, spans, words = _words_of(record, text, spans, place)
        pos_tags = None
        if record.get(WORD_KEY) is not None:
            pos_tags = parts_of_speech(record, reading, len(words.tokens), place)
        elif reading.pos_column not in (None, NONE):
            raise DataError(
                f"{place}: no words with offsets under {WORD_KEY!r}, which parts of speech need; "
                f"add them, or give {NONE!r} as pos_column."
            )
        tags = _tags_of(spans, text, words, repairs, place)
        yield Sentence(words.tokens, tags, source, number, 0, pos_tags, document_of(record, place))
    if not kept:
        raise DataError(f"{source}1: every record is rejected or ignored; accept some of them.")
    if not annotated:
        # Such a file would otherwise be read as one without entities.
        names = " or ".join(map(repr, span_keys))
        raise DataError(f"{source}1: no record has spans under {names}; name their key as tag_column.")


# --- Records ---------------------------------------------------------------------------------------------------------


def _text_of(record: dict[str, Any], key: str, place: str) -> str:
    text = record[key]
    if type(text) is not str:
        raise DataError(f"{place}: {key!r} holds {kind_of(text)}; write the text as a string.")
    check_characters(text, key, place)
    return text


def _spans_of(written: Any, key: str, size: int, place: str) -> list[_Span]:
    """Return the spans of a record whose text has some size."""
    if written is None:
        return []
    if type(written) is not list:
        raise DataError(f"{place}: {key!r} holds {kind_of(written)}; write a list of [start, end, label].")
    return [_span_of(item, size, place) for item in written]


def _span_of(written: Any, size: int, place: str) -> _Span:
    start, end = _ends_of(written, 3)
    fault = _fault_of(start, end, size, "[start, end, label]")
    label: Any = None
    if not fault:
        label = written[2] if type(written) is list else written.get("label")
        if type(label) is not str or not label.strip(_BLANKS + BYTE_ORDER_MARK):
            fault = "has no string for its label"
    if fault:
        raise DataError(f"{place}: the span {_show(written)} {fault}; correct or remove it.")
    check_characters(label, "label", place)
    return _Span(start, end, label.replace(BYTE_ORDER_MARK, ""), written)


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


def _words_of(record: dict[str, Any], text: str, spans: list[_Span], place: str) -> tuple[str, list[_Span], _Words]:
    """Return the text and its spans without byte-order marks, and the words of the text."""
    own = record.get(WORD_KEY) is not None
    starts, ends = _offsets_of(record[WORD_KEY], len(text), place) if own else ([], [])
    if BYTE_ORDER_MARK in text:
        marked = text

        def move(offset: int) -> int:
            return offset - marked.count(BYTE_ORDER_MARK, 0, offset)

        text = text.replace(BYTE_ORDER_MARK, "")
        spans = [span._replace(start=move(span.start), end=move(span.end)) for span in spans]
        starts, ends = [*map(move, starts)], [*map(move, ends)]
    if not own:
        found = _word_rule().pre_tokenize_str(text)
        words = _Words([word for word, _ in found], [start for _, (start, _) in found], [end for _, (_, end) in found])
        return text, spans, words
    tokens = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    if "" in tokens:
        index = tokens.index("")
        raise DataError(f"{place}: the word at index {index} of {WORD_KEY!r} is only a byte-order mark; remove it.")
    return text, spans, _Words(tokens, starts, ends)


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


def _tags_of(spans: list[_Span], text: str, words: _Words, repairs: Repairs, place: str) -> list[str]:
    """Return the IOB2 tags of words that spans cover."""
    tags = ["O"] * len(words.tokens)
    chunks = sorted((_chunk_of(span, text, words, repairs, place) for span in spans), key=lambda chunk: chunk.first)
    for left, right in pairwise(chunks):
        if right.first < left.after:
            a, b = left.span, right.span
            fault = "overlap" if max(a.start, b.start) < min(a.end, b.end) else "cut the same word"
            raise DataError(f"{place}: the spans {_show(a.written)} and {_show(b.written)} {fault}; keep one of them.")
    for first, after, span in chunks:
        tags[first] = f"B-{span.label}"
        tags[first + 1 : after] = [f"I-{span.label}"] * (after - first - 1)
    return tags


def _chunk_of(span: _Span, text: str, words: _Words, repairs: Repairs, place: str) -> _Chunk:
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


def _covered(start: int, end: int, words: _Words) -> tuple[int, int]:
    """Return the range of the words that have a character between two places."""
    return bisect_right(words.ends, start), bisect_left(words.starts, end)
