"""Write a corpus to files."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, count
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict

from ..errors import DataError
from ..files import check_apart, expanded, replacing
from .assemble import DOC_ID, POS_TAGS, TAGS, TOKENS, label_names_of, words_and_tags
from .formats.columns import DOCUMENT_START
from .formats.json_lines import TEXT_KEY
from .schemes import UNLABELLED_TAG, WRITTEN_SCHEMES, entity_type, from_iob2, is_chunked, is_of
from .source import WRITTEN_FORMATS, Sentence
from .splits import SPLITS

# What a column cannot hold.
_UNFIT = re.compile(rf"^({DOCUMENT_START})?$|[\t\r\n]")
_to_json = json.JSONEncoder(ensure_ascii=False).encode


def _sentences(dataset: Dataset, split: str, scheme: str = "iob2") -> Iterator[Sentence]:
    """Yield the sentences of a split with their tags in a scheme."""
    chunked = is_chunked(label_names_of(dataset, split))
    words, tags = words_and_tags(dataset)
    pos_tags, doc_ids = (
        dataset[name] if name in dataset.column_names else [None] * len(words) for name in (POS_TAGS, DOC_ID)
    )
    for row, (tokens, labels, parts, document) in enumerate(zip(words, tags, pos_tags, doc_ids, strict=True)):
        labels = from_iob2(labels, scheme) if chunked else labels
        yield Sentence(tokens, labels, f"{split}, row ", row, parts, document)


def _as_columns(sentences: Iterator[Sentence]) -> Iterator[str]:
    """Yield a split as CoNLL columns: the word, its part of speech if there is one, its tag."""
    document, number = None, count()
    for sentence in sentences:
        if sentence.doc_id != document:
            if sentence.doc_id is None:
                raise DataError(f"{sentence.location()}: has no document, unlike those before it; write jsonl.")
            document = sentence.doc_id
            if re.search(r"[\r\n]", document):
                raise DataError(f"{sentence.location()}: the document {document!r} has a line break; write jsonl.")
            # The reader numbers documents without a name.
            columns = ["-X-", "O"] if document == str(next(number)) else [f"({document})"]
            yield "\t".join([DOCUMENT_START, *columns]) + "\n\n"
        values = [column for column in (sentence.tokens, sentence.pos_tags, sentence.tags) if column is not None]
        yield from _lines(values, sentence)


def _lines(columns: Sequence[Sequence[str]], sentence: Sentence) -> Iterator[str]:
    """Yield the lines of a sentence and the empty line after it; nothing for one without words.

    Raises:
        DataError: For a word, tag or part of speech that is empty or would be read as several columns or lines.
    """
    for index, row in enumerate(zip(*columns, strict=True)):
        if unfitting := list(filter(_UNFIT.search, row)):
            raise DataError(f"{sentence.location(index)}: {unfitting[0]!r} does not fit into a column; write jsonl.")
        yield "\t".join(row) + "\n"
    if sentence.tokens:
        yield "\n"


def _as_csv(sentences: Iterator[Sentence]) -> Iterator[str]:
    """Yield a split as CSV, with a row for each word that has the number of its sentence."""
    buffer = io.StringIO()
    # Line ends of RFC 4180; words that contain a line break are quoted.
    writer = csv.writer(buffer, lineterminator="\r\n")
    header = ["sentence_id", DOC_ID, "token", "tag"]
    for sentence in sentences:
        values = [sentence.tokens, sentence.tags, *([sentence.pos_tags] if sentence.pos_tags is not None else [])]
        if header:
            writer.writerow([*header, *(["pos"] if sentence.pos_tags is not None else [])])
            header = []
        writer.writerows([sentence.line + 1, sentence.doc_id or "", *row] for row in zip(*values, strict=True))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _as_jsonl(sentences: Iterator[Sentence]) -> Iterator[str]:
    """Yield a split as JSON Lines of words and tags."""
    for sentence in sentences:
        yield _json_line({TOKENS: sentence.tokens, TAGS: sentence.tags}, sentence)


def _as_spans(sentences: Iterator[Sentence]) -> Iterator[str]:
    """Yield a split as JSON Lines of texts, entities as ``[start, end, label]`` and words as ``[start, end]``.

    A text is the words of a sentence joined by blanks; offsets count characters (code points).
    """
    for sentence in sentences:
        if other := [tag for tag in sentence.tags if tag == UNLABELLED_TAG or not is_of("iob2", tag)]:
            raise DataError(f"{sentence.location()}: spans can only hold entities, not {other[0]!r}; write jsonl.")
        ends = list(accumulate([len(word) + 1 for word in sentence.tokens]))
        spans_of_words = [(end - 1 - len(word), end - 1) for word, end in zip(sentence.tokens, ends, strict=True)]
        spans: list[list[Any]] = []
        for (start, end), tag in zip(spans_of_words, sentence.tags, strict=True):
            if tag.startswith("B-"):
                spans.append([start, end, entity_type(tag)])
            elif tag.startswith("I-"):
                spans[-1][1] = end
        yield _json_line({TEXT_KEY: " ".join(sentence.tokens), "spans": spans, TOKENS: spans_of_words}, sentence)


def _json_line(record: dict[str, Any], sentence: Sentence) -> str:
    optional = {POS_TAGS: sentence.pos_tags, DOC_ID: sentence.doc_id}
    return _to_json(record | {name: value for name, value in optional.items() if value is not None}) + "\n"


# The suffix of each text format, and the function that yields its text.
_TEXT_FORMATS: dict[str, tuple[str, Callable[[Iterator[Sentence]], Iterator[str]]]] = {
    "conll": (".conll", _as_columns),
    "csv": (".csv", _as_csv),
    "jsonl": (".jsonl", _as_jsonl),
    "spans": (".jsonl", _as_spans),
}


def write_corpus(
    corpus: DatasetDict,
    folder: str | Path,
    format: str,
    scheme: str = "iob2",
    overwrite: bool = False,
    inputs: Sequence[str | Path] = (),
) -> list[Path]:
    """Write a corpus into a folder, which `hf_xorner.corpora.load_corpus` reads.

    The formats are

    - ``conll``: ``train.conll``, ``dev.conll``, ``test.conll``; word, part of speech if there is one, and tag. A
      document begins with a line ``-DOCSTART- -X- O``, or ``-DOCSTART- (id)`` if documents are not numbered from 0;
    - ``csv``: ``train.csv`` and so on, with a row for each word and a header;
    - ``jsonl``: ``train.jsonl`` and so on, with one object per sentence: words and tags;
    - ``spans``: ``train.jsonl`` and so on, with one object per sentence: its text, its entities as
      ``[start, end, label]`` and its words as ``[start, end]``, in characters; for corpora of entities only;
    - ``parquet``: ``train.parquet``, ``validation.parquet``, ``test.parquet``;
    - ``arrow``: a folder for ``datasets.load_from_disk``.

    The last two keep every column, the others tokens, tags, parts of speech and documents. The first two leave out
    sentences without words. A file gets its name when it is complete.

    Args:
        corpus: The splits in the form that `hf_xorner.corpora.load_corpus` returns.
        folder: The folder, created if it does not exist.
        format: One of the formats.
        scheme: The scheme of the tags in ``conll``, ``csv`` and ``jsonl``: "iob1", "iob2", "bioes", "bilou" or
            "bmes". Plain tags are not changed.
        overwrite: Replace files that exist.
        inputs: The files and folders that the corpus was read from, which are never replaced.

    Returns:
        The paths, one for each split.

    Raises:
        DataError: If a file exists and `overwrite` is False, or is an input, or if the format cannot represent the
            corpus.
    """
    schemes = WRITTEN_SCHEMES if format in ("conll", "csv", "jsonl") else ("iob2",)
    for name, value, allowed in (("format", format, WRITTEN_FORMATS), ("scheme", scheme, schemes)):
        if value not in allowed:
            raise DataError(f"{name}={value!r} cannot be written as {format}; choose one of {', '.join(allowed)}.")
    if strange := [split for split in corpus if split not in SPLITS]:
        raise DataError(f"expected splits among {', '.join(SPLITS)}, found {', '.join(strange)}.")
    folder = expanded(folder)
    targets = {split: _target(folder, split, format) for split in corpus}
    for path in [*targets.values(), folder / "dataset_dict.json", folder] if format == "arrow" else targets.values():
        check_apart(path, *inputs)
        if path.exists() and path != folder and not overwrite:
            raise DataError(f"{path}: exists already; choose another folder to write into, or set overwrite.")
    if format == "arrow":
        corpus.save_to_disk(folder)
        return list(targets.values())
    for split, path in targets.items():
        with replacing(path) as new:
            if format == "parquet":
                with new.open("wb") as table:  # not by its path, in which datasets gives :: a special meaning
                    corpus[split].to_parquet(table)
                continue
            sentences = _sentences(corpus[split], split, scheme)
            with new.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(_TEXT_FORMATS[format][1](sentences))
    return list(targets.values())


def _target(folder: Path, split: str, format: str) -> Path:
    """Return the path of a split: text files are named as usual for CoNLL, tables as in `datasets`."""
    if format in _TEXT_FORMATS:
        return folder / f"{'dev' if split == 'validation' else split}{_TEXT_FORMATS[format][0]}"
    return folder / (f"{split}.parquet" if format == "parquet" else split)
