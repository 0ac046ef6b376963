"""Read texts with labelled spans of characters: JSON exports of annotation tools, and BRAT's standoff files."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from ...errors import DataError
from ...files import BYTE_ORDER_MARK
from ...models.word_rule import WORD_PATTERN
from ..source import ANNOTATION_SUFFIX, TEXT_SUFFIX, Input, ReadingLog, Sentence, text_of
from . import json_lines
from .json_lines import JsonRecord

SPAN_KEYS = ("spans", "entities", "labels", "label", "ents", "annotations", "annotation")
WORD_KEY = "tokens"
# doccano writes the second pair in exports with relations.
_OFFSET_KEYS = (("start", "end"), ("start_offset", "end_offset"))

_WIDENED = "spans that cut a word were widened to whole words"
_OVERLAPPING = "spans that overlap a longer one were left out"
_LEFT_OUT = "records that the annotator rejected or ignored were left out"
_UNANNOTATED = "tasks without an annotation were left out"
_FURTHER = "further annotations of the same task were left out"
_JOINED = "discontinuous spans were read as one, with the words between their parts"
# In Label Studio's JSON-MIN, each annotation of a task is a record with the number of its task as its id; a task
# without an annotation has null here.
_MIN_KEY = "annotation_id"
# Prodigy's values under "answer" other than "accept".
_REFUSALS = ("reject", "ignore")
# Unicode White_Space, as in the word rule, and byte-order marks; str.strip would also remove four control characters.
_BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000" + BYTE_ORDER_MARK
)


class Span(NamedTuple):
    """A labelled span of characters; `end` is the index after the last one."""

    start: int
    end: int
    label: str


class WordSpans(NamedTuple):
    """The words of a text, with their start and end offsets."""

    tokens: list[str]
    starts: Sequence[int]
    ends: Sequence[int]


def read_json(source: Input) -> Iterator[Sentence]:
    """Yield the sentences of a file of JSON objects, of which the first has words and tags, or a text and spans."""
    stream = json_lines.records(source)
    if first := next(stream, None):
        read = read_spans if json_lines.has_text(first.content, source.reading.token_column) else json_lines.read_words
        yield from read(source, chain([first], stream))


def read_spans(source: Input, stream: Iterable[JsonRecord]) -> Iterator[Sentence]:
    """Yield the texts of JSON objects with labelled spans, each as a sentence.

    The text is under ``text``, ``data`` or ``content``. The spans are under the first of ``spans``, ``entities``,
    ``labels``, ``label``, ``ents``, ``annotations`` and ``annotation`` that a record has; without these keys it has no
    spans. A span is ``[start, end, label]`` or an object with these keys, as written by doccano, Prodigy, spaCy and
    Label Studio (JSON-MIN). Offsets count characters (Unicode code points) from 0; the end is after the last character.
    Dataturks' form, and objects of ``span`` and ``type``, are read as well. For a task in Label Studio's JSON, the
    annotation marked as ground truth is read, else the first that was not cancelled; tasks without one are left out.

    The words are under ``tokens``, if a record has them with offsets (Prodigy, spaCy), else they follow the package's
    word rule. Blanks at the ends of a span are ignored, and a span that cuts a word is widened. If spans overlap, the
    longest is kept, or the first of equally long ones. Parts of speech and ``doc_id`` are read as in JSON of words, the
    former only if words have offsets. Records that Prodigy marks as rejected or ignored are left out.

    Raises:
        DataError: If a line is not a JSON object or has no text, a span is malformed, reaches outside of its text or
            covers no word, words are invalid, or no record of the file has spans.
    """
    path, reading, repairs = source.path, source.reading, source.repairs
    span_keys = SPAN_KEYS if reading.tag_column is None else (reading.tag_column,)
    any_record = any_spans = False
    for record in _accepted(source, stream):
        span_key = next((key for key in span_keys if key in record.content), None)
        any_record, any_spans = True, any_spans or span_key is not None
        try:
            yield _sentence_of(record, span_key, repairs)
        except DataError as fault:
            repairs.leave_out(fault)
    if not any_record and '"predictions"' in source.sample:
        raise DataError(f"{path}: the tasks only have predictions; accept or correct them in Label Studio.")
    if any_record and not any_spans:
        # Otherwise, the file would be read as one without entities.
        names = " or ".join(map(repr, span_keys))
        raise DataError(f"{path}:1: no record has spans under {names}; name their key as tag_column.")


def _sentence_of(record: JsonRecord, span_key: str | None, repairs: ReadingLog) -> Sentence:
    """Return the sentence of a record with a text and spans."""
    content, location, reading = record.content, record.location, repairs.reading
    text = content[json_lines.find_key(content, json_lines.TEXT_KEYS, "token_column", reading, location)]
    if type(text) is not str:
        raise DataError(f"{location}: the text is {str(text)[:60]}; write a string.")
    written = [] if span_key is None else content[span_key] or []
    if type(written) is not list:
        raise DataError(f"{location}: {span_key!r} holds {str(written)[:60]}; write a list of [start, end, label].")
    usual = [span for item in written for span in _usual_spans(item)]
    positions = _positions_of(usual, text)
    spans = [span for item in usual for span in _labelled(item, text, positions, location)]
    offsets = content.get(WORD_KEY)
    words = _words_of(None if offsets is None else _offsets_of(offsets, len(text), location), text)
    pos_tags = None if offsets is None else json_lines.parts_of_speech(content, reading, location)
    tags = _tags_of(spans, text, words, repairs, location)
    return Sentence(words.tokens, tags, record.source, record.number, pos_tags, json_lines.document_of(content))


# --- Records ---------------------------------------------------------------------------------------------------------


def _accepted(source: Input, stream: Iterable[JsonRecord]) -> Iterator[JsonRecord]:
    """Yield the records of a file that were not rejected or skipped; tasks of Label Studio become records of spans."""
    tasks: set[str] = set()
    reading, repairs = source.reading, source.repairs
    for record in stream:
        content, location = record.content, record.location
        task = str(content.get("id")) if _MIN_KEY in content and "id" in content else None
        if content.get("answer") in _REFUSALS:
            repairs.add(_LEFT_OUT, location)
        elif content.get(_MIN_KEY, "") is None:
            repairs.add(_UNANNOTATED, location)
        elif task in tasks:
            repairs.add(_FURTHER, location)
        elif not json_lines.is_task(content):
            if task is not None:
                tasks.add(task)
            yield record
        elif annotations := [item for item in content.get("annotations", ()) if not item.get("was_cancelled")]:
            # Several people may have annotated a task.
            if len(annotations) > 1:
                repairs.add(_FURTHER, location, len(annotations) - 1)
            chosen = next((item for item in annotations if item.get("ground_truth")), annotations[0])
            # Spans in the data are not from the annotator.
            data = {key: value for key, value in content["data"].items() if key not in (*SPAN_KEYS, WORD_KEY)}
            control = reading.tag_column
            items = [item for item in chosen["result"] if type(item) is dict and type(item.get("value")) is dict]
            regions = [item for item in items if control in (None, item.get("from_name")) and "labels" in item["value"]]
            if regions:
                data[control or SPAN_KEYS[0]] = [item["value"] for item in regions]
            yield record._replace(content=data)
        else:
            repairs.add(_UNANNOTATED, location)


def _usual_spans(written: Any) -> list[Any]:
    """Convert an element of a list of spans from some tools' own forms to Label Studio's form.

    Dataturks has labels and ``points``, whose end is the index of the last character; other corpora have ``name``, the
    pair ``span`` and ``type``.
    """
    if type(written) is dict:
        points, labels, pair = written.get("points"), written.get("label"), written.get("span")
        if type(labels) is list and type(points) is list and all(map(_has_end, points)):
            return [{**point, "end": point["end"] + 1, "labels": labels} for point in points if labels]
        if type(pair) is list and len(pair) == 2 and "type" in written:
            return [{"start": pair[0], "end": pair[1], "labels": [written["type"]], "text": written.get("name")}]
    return [written]


def _has_end(point: Any) -> bool:
    return type(point) is dict and type(point.get("end")) is int


def _labelled(written: Any, text: str, positions: Sequence[int], location: str) -> list[Span]:
    """Return the spans of one element, which may have several labels in Label Studio."""
    start, end = _ends_of(written, 3)
    labels: Any = written[2:] if type(written) is list else [written.get("label")] if type(written) is dict else []
    expected: Any = None
    if type(written) is dict and type(written.get("labels")) is list:
        labels, expected = written["labels"], written.get("text")
    fault = ""
    if type(start) is not int or type(end) is not int:
        fault = "is neither [start, end, label] nor an object of these"
    elif not labels or not all(type(label) is str and label.strip(_BLANKS) for label in labels):
        fault = "has no string for its label"
    elif not 0 <= start < end < len(positions):
        fault = f"is empty or reaches outside of the text, which has {len(text)} characters"
    else:
        start, end = positions[start], positions[end]
        if expected and type(expected) is str and not _same_text(text[start:end], expected):
            fault = f"is {text[start:end][:60]!r} in the text"
    if fault:
        raise DataError(f"{location}: the span {str(written)[:120]} {fault}; correct or remove it.")
    return [Span(start, end, label.replace(BYTE_ORDER_MARK, "").strip(_BLANKS)) for label in labels]


def _positions_of(spans: list[Any], text: str) -> Sequence[int]:
    """Return the character at each offset of the spans: browsers count UTF-16 units, other tools count characters.

    Offsets are in units if more of the spans' own texts, which Label Studio writes, are found in this way.
    """
    characters = range(len(text) + 1)
    if max(text, default="") <= "\uffff":
        return characters
    units = [index for index, character in enumerate(text) for _ in range(2 if character > "\uffff" else 1)]
    units.append(len(text))
    quoted = [(*_ends_of(span, 3), span["text"]) for span in spans if type(span) is dict and "text" in span]
    quoted = [item for item in quoted if [*map(type, item)] == [int, int, str]]

    def found(positions: Sequence[int]) -> int:
        return sum(
            0 <= start < end < len(positions) and _same_text(text[positions[start] : positions[end]], own)
            for start, end, own in quoted
        )

    return max(characters, units, key=found)


def _same_text(first: str, second: str) -> bool:
    """Return True if two texts are equal except for white space."""
    return first.split() == second.split()


def _ends_of(written: Any, count: int) -> tuple[Any, Any]:
    """Return the first two values of a list of `count` values, or the start and end of an object, else None twice."""
    if type(written) is list and len(written) == count:
        return written[0], written[1]
    if type(written) is dict:
        for start, end in _OFFSET_KEYS:
            if start in written and end in written:
                return written[start], written[end]
    return None, None


# --- Words -----------------------------------------------------------------------------------------------------------


# Only the word rule: the tokenizer's look-ups would take as long again.
_WORD_RULE = Split(Regex(WORD_PATTERN), behavior="removed", invert=True)


def _words_of(offsets: list[tuple[int, int]] | None, text: str) -> WordSpans:
    """Return the words of a text without byte-order marks, from the offsets or by the word rule."""
    if offsets is None:
        offsets = [span for _, span in _WORD_RULE.pre_tokenize_str(text.replace(BYTE_ORDER_MARK, " "))]
    words = [(text[start:end].replace(BYTE_ORDER_MARK, ""), start, end) for start, end in offsets]
    words = [word for word in words if word[0]]
    return WordSpans([word for word, _, _ in words], [start for _, start, _ in words], [end for _, _, end in words])


def _offsets_of(written: Any, size: int, location: str) -> list[tuple[int, int]]:
    """Return the start and end offsets of the words of a record."""
    before = 0
    offsets = []
    for index, word in enumerate(written if type(written) is list else [written]):
        start, end = _ends_of(word, 2)
        if type(start) is not int or type(end) is not int or not before <= start < end <= size:
            raise DataError(
                f"{location}: the word {str(word)[:60]} at index {index} of {WORD_KEY!r} is not a [start, end] in the "
                f"text after the previous word; correct it, or leave {WORD_KEY!r} out."
            )
        offsets.append((start, end))
        before = end
    return offsets


# --- Tags ------------------------------------------------------------------------------------------------------------


def _tags_of(
    spans: Sequence[Span],
    text: str,
    words: WordSpans,
    repairs: ReadingLog,
    location: str,
    skip: Callable[[DataError], Any] | None = None,
) -> list[str]:
    """Return the IOB2 tags of words for spans.

    Raises:
        DataError: For a span that covers no word, unless `skip` is called with the error.
    """
    tags = ["O"] * len(words.tokens)
    chunks = []
    for span in spans:
        try:
            chunks.append((*_covered(span, text, words, repairs, location), span))
        except DataError as fault:
            if skip is None:
                raise
            skip(fault)
    # The same choice as spaCy's filter_spans.
    for first, after, span in sorted(chunks, key=lambda chunk: (chunk[0] - chunk[1], chunk[0])):
        if any(tag != "O" for tag in tags[first:after]):
            repairs.add(_OVERLAPPING, f"{location}, span {span.start} to {span.end}")
            continue
        tags[first] = f"B-{span.label}"
        tags[first + 1 : after] = [f"I-{span.label}"] * (after - first - 1)
    return tags


def _covered(span: Span, text: str, words: WordSpans, repairs: ReadingLog, location: str) -> tuple[int, int]:
    """Return the range of words that have a character in a span: the first index, and the index after the last."""
    first, after = bisect_right(words.ends, span.start), bisect_left(words.starts, span.end)
    if first < after and words.starts[first] == span.start and words.ends[after - 1] == span.end:
        # Words with offsets may be blank or contain blanks, so nothing is stripped.
        return first, after
    inside = text[span.start : span.end]
    start, end = span.end - len(inside.lstrip(_BLANKS)), span.start + len(inside.rstrip(_BLANKS))
    first, after = bisect_right(words.ends, start), bisect_left(words.starts, end)
    if start >= end or first >= after:
        raise DataError(f"{location}: the span {tuple(span)} covers no word; correct or remove it.")
    if words.starts[first] < span.start or words.ends[after - 1] > span.end:
        repairs.add(_WIDENED, f"{location}, span {span.start} to {span.end}")
    return first, after


def sentences_between(starts: Sequence[bool], tags: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the indices of the first word of each sentence and after its last; no sentence ends within an entity.

    Args:
        starts: For each word, True if a sentence starts with it.
        tags: The IOB2 tags of the words.
    """
    bounds = [at for at, starting in enumerate(starts) if at and starting and not tags[at].startswith("I-")]
    for start, end in pairwise([0, *bounds, len(tags)]):
        if start < end:
            yield start, end


# --- BRAT ------------------------------------------------------------------------------------------------------------

# Some programs write TABs in place of blanks.
_PLACES = r"[0-9]{1,15}[ \t][0-9]{1,15}"
_BRAT_SPAN = re.compile(rf"T\S*\t(\S+)[ \t]({_PLACES}(?:;{_PLACES})*)(?:\t(.*))?")


def read_brat(source: Input) -> Iterator[Sentence]:
    """Yield the lines of the text of a BRAT annotation as sentences, split into words by the package's word rule.

    A line break within an entity does not end a sentence. Events, relations, attributes and notes are not read. A
    discontinuous span is read with the words between its parts; overlapping spans and spans that cut a word are treated
    as in `read_spans`. Offsets may count a line break of Windows as one character.

    Bad spans are malformed, reach outside of the text, cover no word, or have another text; see `Repairs.check_spans`.
    """
    path, repairs = source.path.with_suffix(ANNOTATION_SUFFIX), source.repairs
    text_path = path.with_suffix(TEXT_SUFFIX)
    text, annotation = text_of(text_path, repairs), text_of(path, repairs)
    annotation = annotation.removeprefix(BYTE_ORDER_MARK)
    marks = [(f"{path}:{number}", line.rstrip("\r")) for number, line in enumerate(annotation.split("\n"), start=1)]
    marks = [(location, line) for location, line in marks if line.startswith("T")]
    # The text in which more spans fit.
    texts = [text, text.replace("\r\n", "\n")] if "\r\n" in text else [text]
    text, spans, faults = min(((text, *_brat_spans(marks, text)) for text in texts), key=lambda read: len(read[2]))
    repairs.bad_spans += faults
    repairs.spans += len(marks)
    for location, _, parts in spans:
        if parts > 1:
            repairs.add(_JOINED, location)
    words = _words_of(None, text)
    tags = _tags_of([span for _, span, _ in spans], text, words, repairs, str(path), repairs.bad_spans.append)
    # The line of each word.
    lines = [1]
    for before, start in pairwise((0, *words.starts)):
        lines.append(lines[-1] + text.count("\n", before, start))
    starts = [line > before for before, line in pairwise(lines)]
    for first, after in sentences_between(starts, tags):
        location = f"{text_path}:"
        yield Sentence(words.tokens[first:after], tags[first:after], location, lines[first + 1], doc_id=source.document)


def _brat_spans(marks: Sequence[tuple[str, str]], text: str) -> tuple[list[tuple[str, Span, int]], list[DataError]]:
    """Return the spans in lines of an annotation, with their location and number of parts, and the errors of others."""
    spans, faults = [], []
    for location, line in marks:
        match = _BRAT_SPAN.fullmatch(line)
        if match is None:
            faults.append(
                DataError(f"{location}: {line[:60]!r} is not a span; expected T1, TAB, a type and two positions.")
            )
            continue
        label, positions, expected = match.groups()
        parts = sorted(tuple(map(int, part.split())) for part in positions.split(";"))
        inside = " ".join(text[start:end] for start, end in parts)
        if all(start < end <= len(text) for start, end in parts) and _same_text(inside, expected or inside):
            spans.append((location, Span(parts[0][0], max(end for _, end in parts), label), len(parts)))
        else:
            fault = f"{location}: the span is {inside[:60]!r} in the text of {len(text)} characters"
            faults.append(DataError(f"{fault}; put the text that was annotated next to the annotation."))
    return spans, faults
