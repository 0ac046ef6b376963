"""Read BRAT's standoff files: a text, and beside it the annotation of its spans."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from ...errors import DataError
from ...files import open_text
from ..source import Reading, Repairs, Sentence
from ..splits import ANNOTATION_SUFFIX, TEXT_SUFFIX
from .spans import Span, same_text, sentences_between, tags_of_spans, words_of

_JOINED = "discontinuous spans were read as one, with the words between their parts"
_SPAN = re.compile(r"T\S*\t(\S+) ([0-9]{1,15} [0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*)(?:\t(.*))?")


def read_brat(path: Path, reading: Reading, repairs: Repairs, document: str | None = None) -> Iterator[Sentence]:
    """Yield the lines of the text beside an annotation file as sentences, the words by the library's word rule.

    A line break inside an entity does not end a sentence. Events, relations,
    attributes and notes are not read. A discontinuous span is read with the words between its parts; overlapping spans
    and spans that cut a word are treated as in `read_spans`.

    Args:
        path: The annotation, ``name.ann``, or its text, ``name.txt``, in UTF-8.
        reading: The options of reading, none of which is used.
        repairs: Counts the discontinuous spans, and what `read_spans` counts.
        document: The name of the document; by default that of the file.

    Raises:
        DataError: If one of the two files is missing, or for a span that is malformed, reaches outside of its text,
            covers no word, or has another text than BRAT has written beside it.
    """
    path, source = files_of_document(path)
    with open_text(source) as file:
        text = file.read()
    text, spans, words = words_of({}, text, list(_spans_of(path, text, repairs)), str(path))
    tags = tags_of_spans(spans, text, words, repairs, str(path))
    # The line of each word.
    lines = [1]
    for before, start in pairwise((0, *words.starts)):
        lines.append(lines[-1] + text.count("\n", before, start))
    starts = [line > before for before, line in pairwise(lines)]
    for first, after in sentences_between(starts, tags):
        line, doc_id = lines[first + 1], document or path.stem
        yield Sentence(words.tokens[first:after], tags[first:after], f"{source}:", line, doc_id=doc_id)


def files_of_document(path: Path) -> tuple[Path, Path]:
    """Return the annotation and the text of a document, either of which may be given.

    Raises:
        DataError: If one of them is missing.
    """
    annotation, text = path.with_suffix(ANNOTATION_SUFFIX), path.with_suffix(TEXT_SUFFIX)
    for file, other in ((annotation, text), (text, annotation)):
        if not file.is_file():
            raise DataError(f"{other}: no {file.name} beside it, which BRAT writes for every document; add it.")
    return annotation, text


def _spans_of(path: Path, text: str, repairs: Repairs) -> Iterator[Span]:
    """Yield the spans of an annotation file."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.startswith("T"):
                continue
            place, line = f"{path}:{number}", line.rstrip("\r\n")
            found = _SPAN.fullmatch(line)
            if found is None:
                raise DataError(f"{place}: {line[:60]!r} is not a span; expected T1, TAB, a type and two places.")
            label, places, own = found.groups()
            parts = sorted(tuple(map(int, part.split(" "))) for part in places.split(";"))
            start, end = parts[0][0], max(end for _, end in parts)
            written = f"{label} {places}"
            if end > len(text) or any(first >= after for first, after in parts):
                raise DataError(
                    f"{place}: the span {written!r} is empty or reaches outside of the text, which has {len(text)} "
                    "characters; correct or remove it."
                )
            inside = " ".join(text[first:after] for first, after in parts)
            if own is not None and not same_text(inside, own):
                raise DataError(
                    f"{place}: the span {written!r} is {inside[:60]!r} in the text, and {own[:60]!r} here; "
                    "keep the text that was annotated beside its annotation."
                )
            if len(parts) > 1:
                repairs.add(_JOINED, place)
            yield Span(start, end, label, written)
