"""Write a corpus to files that reading gives back."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, DatasetDict
from numpy.typing import NDArray

from ..errors import DataError
from .assemble import DOC_ID, POS_TAGS, TAGS, TOKENS, FlatBatch, flat_batches, label_names_of
from .formats.columns import DOCUMENT_START
from .schemes import BRACKETS, WRITTEN_SCHEMES, TagSet, chunks_of, from_iob2, is_chunked
from .source import FORMATS
from .splits import SPLITS

_SEPARATORS = {"tab": "\t", "blank": " "}

# The reader names the document "id" for part 0 of id, and "id#3" for part 3.
_PART = re.compile(r"(.+)#([1-9][0-9]*)", re.DOTALL)
NO_DOCUMENT = "-"
_END_DOCUMENT = "#end document\n"
_to_json = json.JSONEncoder(ensure_ascii=False).encode


class _Form(NamedTuple):
    """How a text is to be written.

    Attributes:
        scheme: The scheme of the tags.
        separator: What stands between columns: "tab" or "blank".
    """

    scheme: str
    separator: str


def as_columns(dataset: Dataset, split: str, form: _Form) -> Iterator[pa.Buffer]:
    """Yield a split as CoNLL columns: the word, its part of speech if there is one, its tag; in UTF-8."""
    labels = label_names_of(dataset, split)
    separator = _SEPARATORS[form.separator]
    numbered = documents_are_numbered(dataset)
    fields = [DOCUMENT_START, *(["-X-"] if POS_TAGS in dataset.column_names else []), "O"]

    def opening(doc_id: str) -> str:
        return f"{separator.join(fields if numbered else [DOCUMENT_START, f'({doc_id})'])}\n\n"

    before: str | None = None
    for batch in flat_batches(dataset, split):
        tag_ids, tags = from_iob2(batch.ids, batch.lengths, labels, form.scheme)
        heads = []
        if batch.doc_ids is not None:
            changes = _document_changes(batch.doc_ids, before)
            heads = [_at_sentences({row: opening(str(doc_id)) for row, doc_id in changes.items()}, batch)]
            before = batch.doc_ids[-1].as_py()
        middle = [] if batch.pos_tags is None else [separator, batch.pos_tags]
        tails = _with_line_ends([f"{separator}{tag}" for tag in tags], tag_ids, batch)
        yield _text_of(heads, batch.tokens, middle, tails)


def as_conll2012(dataset: Dataset, split: str, form: _Form) -> Iterator[pa.Buffer]:
    """Yield a split as the twelve columns of CoNLL-2012, of which words, parts of speech and entities are filled.

    Sentences without a document stand outside of any. A file that would begin with one begins with a document without
    sentences instead, as the first line is what the format is known by.
    """
    labels = label_names_of(dataset, split)
    before: str | None = None
    for batch in flat_batches(dataset, split):
        tag_ids, tags = from_iob2(batch.ids, batch.lengths, labels, BRACKETS)
        doc_ids = batch.doc_ids if batch.doc_ids is not None else pa.nulls(len(batch.lengths), pa.string())
        if batch.first_row == 0 and not doc_ids[0].is_valid:
            yield pa.py_buffer(f"{_begin_document(NO_DOCUMENT)}{_END_DOCUMENT}\n".encode())
        openings = {}
        for row, doc_id in _document_changes(doc_ids, before).items():
            end = "" if before is None else _END_DOCUMENT
            openings[row] = end + ("" if doc_id is None else _begin_document(doc_id))
            before = doc_id
        heads = [_at_sentences(openings, batch), _document_columns(doc_ids, batch), _word_numbers(batch), " "]
        middle = [" ", "-" if batch.pos_tags is None else batch.pos_tags]
        tails = _with_line_ends([f" * - - - - {tag} -" for tag in tags], tag_ids, batch)
        yield _text_of(heads, batch.tokens, middle, tails)
    if before is not None:
        yield pa.py_buffer(_END_DOCUMENT.encode())


def as_jsonl(dataset: Dataset, split: str, form: _Form) -> Iterator[bytes]:
    """Yield a split as JSON Lines of words and tags, with parts of speech and document if there are any; in UTF-8."""
    labels = label_names_of(dataset, split)
    for batch in flat_batches(dataset, split):
        tag_ids, tags = from_iob2(batch.ids, batch.lengths, labels, form.scheme)
        written = pa.array(map(_to_json, tags), pa.string()).take(pa.array(tag_ids))
        yield _json_lines([(TOKENS, _json_of_words(batch.tokens, batch)), (TAGS, _json_lists(written, batch))], batch)


def as_spans(dataset: Dataset, split: str, form: _Form) -> Iterator[bytes]:
    """Yield a split as JSON Lines of a text, its entities as ``[start, end, label]`` and its words' places; in UTF-8.

    The text is the words with one blank between them; places count its characters, as Python does.
    """
    labels = label_names_of(dataset, split)
    tag_set = TagSet.of(labels, "iob2")
    types = pa.array(map(_to_json, tag_set.types), pa.string())
    for batch in flat_batches(dataset, split):
        texts = pc.binary_join(_lists(batch.tokens, batch.lengths), " ").to_pylist()
        characters = pc.utf8_length(batch.tokens).to_numpy(zero_copy_only=False).astype(np.int64)
        # Where the words end if a blank follows each, counted through the batch, then from the sentence's beginning.
        ends = np.cumsum(characters + 1) - 1
        ends -= np.repeat(np.append(0, ends + 1)[batch.ends - batch.lengths], batch.lengths)
        starts = ends - characters
        chunks = chunks_of(batch.ids, batch.lengths, tag_set)
        spans = _bracketed(starts[chunks.first], ends[chunks.end - 1], types.take(pa.array(chunks.type)))
        per_sentence = np.diff(np.searchsorted(chunks.first, np.append(0, batch.ends)))
        yield _json_lines(
            [
                ("text", [_to_json(text) for text in texts]),
                ("spans", _json_lists(spans, batch, per_sentence)),
                (TOKENS, _json_lists(_bracketed(starts, ends), batch)),
            ],
            batch,
        )


TEXT_FORMATS: dict[str, Callable[[Dataset, str, _Form], Iterator[Any]]] = {
    "columns": as_columns,
    "conll2012": as_conll2012,
    "jsonl": as_jsonl,
    "spans": as_spans,
}


def documents_are_numbered(dataset: Dataset) -> bool:
    """Tell whether the documents of a split, in their order, bear the numbers from 0 that reading gives them."""
    if DOC_ID not in dataset.column_names:
        return False
    before: str | None = None
    count = 0
    for table in dataset.select_columns([DOC_ID]).with_format("arrow").iter(100_000):
        doc_ids = table.column(DOC_ID).combine_chunks()
        for doc_id in _document_changes(doc_ids, before).values():
            if doc_id != str(count):
                return False
            count += 1
        before = doc_ids[-1].as_py()
    return True


def _document_changes(doc_ids: pa.Array, before: str | None) -> dict[int, str | None]:
    """Return the sentences that do not belong to the document of the one before, and the document of each.

    Args:
        doc_ids: The document of each sentence.
        before: The document of the sentence before them.
    """
    encoded = doc_ids.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    names = [*encoded.dictionary.to_pylist(), None]
    rows = np.flatnonzero(np.append(names[codes[0]] != before, codes[1:] != codes[:-1]))
    return {row: names[codes[row]] for row in rows.tolist()}


def _begin_document(doc_id: str) -> str:
    name, part = _name_and_part(doc_id)
    return f"#begin document ({name}); part {part:03d}\n"


def _name_and_part(doc_id: str) -> tuple[str, int]:
    found = _PART.fullmatch(doc_id)
    return (found[1], int(found[2])) if found else (doc_id, 0)


def _document_columns(doc_ids: pa.Array, batch: FlatBatch) -> pa.Array:
    """Return the first two columns of CoNLL-2012 for every token: the document and its part."""
    encoded = doc_ids.fill_null(NO_DOCUMENT).dictionary_encode()
    names = pa.array(["{} {} ".format(*_name_and_part(name)) for name in encoded.dictionary.to_pylist()], pa.string())
    return names.take(pa.array(np.repeat(encoded.indices.to_numpy(zero_copy_only=False), batch.lengths)))


def _word_numbers(batch: FlatBatch) -> pa.Array:
    numbers = np.arange(len(batch.tokens)) - np.repeat(batch.ends - batch.lengths, batch.lengths)
    return pa.array(numbers).cast(pa.string())


def _at_sentences(texts: dict[int, str], batch: FlatBatch) -> pa.Array:
    """Return an empty string for every token but the first ones of some sentences, which get the text of theirs."""
    choice = np.zeros(len(batch.tokens), dtype=np.int64)
    choice[(batch.ends - batch.lengths)[list(texts)]] = np.arange(1, len(texts) + 1)
    return pa.array(["", *texts.values()]).take(pa.array(choice))


def _with_line_ends(tails: list[str], choice: NDArray[np.int64], batch: FlatBatch) -> pa.Array:
    """Return the end of every token's line, and after the last line of a sentence an empty one."""
    closes = np.zeros(len(choice), dtype=np.int64)
    closes[batch.ends - 1] = 1
    lines = [f"{tail}{end}" for end in ("\n", "\n\n") for tail in tails]
    return pa.array(lines).take(pa.array(choice + len(tails) * closes))


def _text_of(heads: Sequence[Any], tokens: pa.Array, middle: Sequence[Any], tails: pa.Array) -> pa.Buffer:
    """Join columns to lines and all lines to one text."""
    lines = pc.binary_join_element_wise(*heads, tokens, *middle, tails, "")
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(whole, "")[0].as_buffer()


def _lists(values: pa.Array, lengths: NDArray[np.int64]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32)), values)


def _bracketed(starts: NDArray[np.int64], ends: NDArray[np.int64], *more: pa.Array) -> pa.Array:
    """Return pairs of numbers, and what else belongs to them, as JSON lists."""
    inside = pc.binary_join_element_wise(pa.array(starts).cast("string"), pa.array(ends).cast("string"), *more, ", ")
    return pc.binary_join_element_wise("[", inside, "]", "")


def _json_of_words(words: pa.Array, batch: FlatBatch) -> list[str]:
    flat = words.to_pylist()
    return [_to_json(flat[first:end]) for first, end in pairwise([0, *batch.ends.tolist()])]


def _json_lists(values: pa.Array, batch: FlatBatch, lengths: NDArray[np.int64] | None = None) -> list[str]:
    """Return what is JSON already as one list a sentence."""
    joined = pc.binary_join(_lists(values, batch.lengths if lengths is None else lengths), ", ")
    return [f"[{inside}]" for inside in joined.to_pylist()]


def _json_lines(columns: list[tuple[str, list[str]]], batch: FlatBatch) -> bytes:
    """Return one object a sentence and line: values that are JSON already, parts of speech, and document if known."""
    if batch.pos_tags is not None:
        columns.append((POS_TAGS, _json_of_words(batch.pos_tags, batch)))
    # A name holds no character that JSON would escape.
    values = [[f'"{name}": {value}' for value in column] for name, column in columns]
    if batch.doc_ids is not None:
        doc_ids = batch.doc_ids.to_pylist()
        values.append([f'"{DOC_ID}": {_to_json(doc_id)}' if doc_id is not None else "" for doc_id in doc_ids])
    lines = ["{" + ", ".join(filter(None, row)) + "}\n" for row in zip(*values, strict=True)]
    return "".join(lines).encode()


class _Limit(NamedTuple):
    """A pattern (of RE2) that a text must not have, and what is wrong with a text that has it."""

    pattern: str
    fault: str


_EMPTY = _Limit("^$", "is empty")
_MARK = _Limit(r"\x{FEFF}", "holds a byte-order mark")
_LINE = (_Limit(r"\t", "holds a TAB"), _Limit(r"[\n\r]", "holds a line break"), _MARK)
_BLANK = _Limit(" ", "holds a blank")
_BLANK_RUN = _Limit("  ", "holds two blanks in a row")
_DOCUMENT = _Limit(f"^{DOCUMENT_START}( |$)", "would be read as the beginning of a document")
_COMMENT = _Limit("^#", "would be read as a comment")
_HIDDEN = _Limit(r"^\[WORD\]$", "would be read as a word that was taken out")
_BRACKET = _Limit(r"[()*]", "holds a bracket or a star")
_ONLY_BLANKS = _Limit(r"^[\pZ\t\n\v\f\r\x{85}]*$", "holds nothing but blanks")


class _Limits(NamedTuple):
    """What a format cannot hold, by what it is in."""

    token: tuple[_Limit, ...] = ()
    pos_tag: tuple[_Limit, ...] = ()
    tag: tuple[_Limit, ...] = ()
    doc_id: tuple[_Limit, ...] = ()
    chunks_only: bool = False
    empty_sentences: bool = True
    # Whether a sentence without a document may follow one that has one.
    documents_end: bool = True


_LIMITS: Mapping[tuple[str, str], _Limits] = {
    ("columns", "tab"): _Limits(
        token=(_EMPTY, *_LINE, _DOCUMENT),
        pos_tag=_LINE,
        tag=(_EMPTY, *_LINE),
        doc_id=_LINE,
        empty_sentences=False,
        documents_end=False,
    ),
    ("columns", "blank"): _Limits(
        token=(_EMPTY, *_LINE, _BLANK, _DOCUMENT),
        pos_tag=(_EMPTY, *_LINE, _BLANK),
        tag=(_EMPTY, *_LINE, _BLANK),
        doc_id=(*_LINE, _BLANK_RUN),
        empty_sentences=False,
        documents_end=False,
    ),
    ("conll2012", "tab"): _Limits(
        token=(_EMPTY, *_LINE, _BLANK, _HIDDEN),
        pos_tag=(_EMPTY, *_LINE, _BLANK),
        tag=(_EMPTY, *_LINE, _BLANK, _BRACKET),
        doc_id=(_EMPTY, *_LINE, _BLANK, _COMMENT),
        chunks_only=True,
        empty_sentences=False,
    ),
    ("jsonl", "tab"): _Limits(token=(_EMPTY, _MARK), pos_tag=(_EMPTY, _MARK), tag=(_EMPTY, _MARK), doc_id=(_MARK,)),
    ("spans", "tab"): _Limits(
        token=(_EMPTY, _MARK), pos_tag=(_EMPTY, _MARK), tag=(_ONLY_BLANKS, _MARK), doc_id=(_MARK,), chunks_only=True
    ),
}


def check_split(dataset: Dataset, split: str, format: str, separator: str) -> None:
    """Refuse a split that a text format cannot hold, so that reading would not give it back.

    Args:
        dataset: The split.
        split: Its name, for messages.
        format: The format.
        separator: What separates columns.

    Raises:
        DataError: For the first row that cannot be held, or a label.
    """
    limits = _LIMITS[format, separator]
    what_holds = format if separator == "tab" else "columns separated by blanks"
    advice = f"which {what_holds} cannot hold; write parquet instead."
    _check_labels(dataset, split, format, limits, advice)
    if not len(dataset):
        raise DataError(f"{split}: the split is empty, {advice}")
    before: str | None = None
    for batch in flat_batches(dataset, split):
        if not limits.empty_sentences and (batch.lengths == 0).any():
            raise DataError(f"{batch.place_of_sentence(int(batch.lengths.argmin()))}: the sentence is empty, {advice}")
        for values, patterns, what, place in (
            (batch.tokens, limits.token, "token", batch.place),
            (batch.pos_tags, limits.pos_tag, "part of speech", batch.place),
            (batch.doc_ids, limits.doc_id, "document", batch.place_of_sentence),
        ):
            if values is not None and (found := _first(values, patterns)):
                index, limit = found
                raise DataError(f"{place(index)}: the {what} {values[index].as_py()!r} {limit.fault}, {advice}")
        if batch.doc_ids is not None:
            if not limits.documents_end:
                _check_no_document_ends(batch, batch.doc_ids, before, advice)
            before = batch.doc_ids[-1].as_py()


def _check_labels(dataset: Dataset, split: str, format: str, limits: _Limits, advice: str) -> None:
    labels = label_names_of(dataset, split)
    chunked = is_chunked(labels)
    if limits.chunks_only and not chunked:
        raise DataError(f"{split}: plain tags such as {labels[0]!r}, but {format} holds entities only; write jsonl.")
    names = TagSet.of(labels, "iob2").types if chunked else labels
    if names and (found := _first(pa.array(names), limits.tag)):
        index, limit = found
        raise DataError(f"{split}: the {'type' if chunked else 'tag'} {names[index]!r} {limit.fault}, {advice}")


def _check_no_document_ends(batch: FlatBatch, doc_ids: pa.Array, before: str | None, advice: str) -> None:
    known = doc_ids.is_valid().to_numpy(zero_copy_only=False)
    ended = np.flatnonzero(~known & np.append(before is not None, known[:-1]))
    if len(ended):
        place = batch.place_of_sentence(int(ended[0]))
        raise DataError(f"{place}: the sentence belongs to no document after one that does, {advice}")


def _first(values: pa.Array, limits: Sequence[_Limit]) -> tuple[int, _Limit] | None:
    """Return the index of the first text that has one of the patterns, and which, or None."""
    if not limits:
        return None
    # One look for all patterns: faults are rare, and only they need telling apart.
    faulty = pc.match_substring_regex(values, "|".join(limit.pattern for limit in limits))
    index = pc.index(faulty, True).as_py()
    if index < 0:
        return None
    text = values[index]
    return index, next(limit for limit in limits if pc.match_substring_regex(text, limit.pattern).as_py())


_SUFFIXES = {"columns": ".conll", "conll2012": ".gold_conll", "jsonl": ".jsonl", "spans": ".jsonl"}
# Text files bear the names that the field gives them, tables those of `datasets`.
_STEMS = {"validation": "dev"}
_WITH_SCHEME = ("columns", "jsonl")
# What tells a folder that `Dataset.save_to_disk` wrote.
_SAVED = "dataset_info.json"


def write_corpus(
    corpus: DatasetDict,
    folder: str | Path,
    format: str,
    scheme: str = "iob2",
    separator: str = "tab",
    overwrite: bool = False,
) -> list[Path]:
    """Write a corpus into a folder, in a format that `hf_xorner.corpora.load_corpus` reads back without loss.

    The formats are

    - ``columns``: ``train.conll``, ``dev.conll``, ``test.conll``; word, part of speech if there is one, and tag. A
      document begins with a line ``-DOCSTART- -X- O``, or ``-DOCSTART- (id)`` where documents are not numbered from 0;
    - ``conll2012``: ``train.gold_conll`` and so on, with the twelve columns of OntoNotes; entities only. What the
      corpus does not have (parses, speakers and others) is ``-`` or ``*``;
    - ``jsonl``: ``train.jsonl`` and so on, an object a sentence with its words and tags;
    - ``spans``: ``train.jsonl`` and so on, an object a sentence with its text, its entities as ``[start, end, label]``
      and its words' places as ``[start, end]``, in characters; entities only;
    - ``parquet``: ``train.parquet``, ``validation.parquet``, ``test.parquet``;
    - ``arrow``: a folder to ``datasets.load_from_disk``.

    The last two keep every column, the others tokens, tags, parts of speech and documents. Nothing is left half
    written: the files take their places at the end, when all of them are complete. What reading cannot know must be
    told it: that tags are plain which look like chunks, and which column of ``columns`` holds parts of speech of a
    single kind or of very many.

    Args:
        corpus: The splits in the form that `hf_xorner.corpora.load_corpus` returns.
        folder: Where to write; made if it does not exist.
        format: One of the formats.
        scheme: How ``columns`` and ``jsonl`` write chunk tags: "iob1", "iob2", "bioes", "bilou" or "bmes". Plain tags
            stay as they are.
        separator: What separates ``columns``: "tab" or "blank".
        overwrite: Replace files that exist.

    Returns:
        What was written, one path a split.

    Raises:
        DataError: If a file exists and is not to be replaced, or if the corpus holds what the format cannot.
    """
    _check_options(format, scheme, separator)
    folder = Path(folder).expanduser()
    targets = _targets(corpus, folder, format)
    for path in targets.values():
        _check_target(path, format, overwrite)
    for split, dataset in corpus.items():
        # Refuses what is no corpus, in whatever format.
        label_names_of(dataset, split)
        if format in TEXT_FORMATS:
            check_split(dataset, split, format, separator)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: is a file; name a folder to write into.")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".writing-", dir=folder) as aside:
        _write(corpus, Path(aside), format, _Form(scheme, separator))
        # What is replaced moves into the folder that will be removed: a folder cannot be replaced in one step.
        (Path(aside) / "old").mkdir()
        for path in targets.values():
            if path.is_dir():
                os.replace(path, Path(aside) / "old" / path.name)
            os.replace(Path(aside) / path.name, path)
    return [targets[split] for split in corpus]


def _check_options(format: str, scheme: str, separator: str) -> None:
    for name, value, allowed in (
        ("format", format, FORMATS),
        ("scheme", scheme, WRITTEN_SCHEMES),
        ("separator", separator, tuple(_SEPARATORS)),
    ):
        if value not in allowed:
            raise DataError(f"{name}={value!r} cannot be written; choose one of {', '.join(allowed)}.")
    if format not in _WITH_SCHEME and scheme != "iob2":
        raise DataError(
            f"scheme={scheme!r}: {format} has but one form; only {' and '.join(_WITH_SCHEME)} take a scheme."
        )
    if format != "columns" and separator != "tab":
        raise DataError(f"separator={separator!r}: {format} has but one form; only columns take a separator.")


def _targets(corpus: DatasetDict, folder: Path, format: str) -> dict[str, Path]:
    """Return the paths to be written, by split; of a saved data set also its index, which comes last."""
    strange = [split for split in corpus if split not in SPLITS]
    if strange or not corpus:
        raise DataError(f"expected splits among {', '.join(SPLITS)}, found {', '.join(strange) or 'none'}.")
    if format == "arrow":
        return {**{split: folder / split for split in corpus}, "": folder / "dataset_dict.json"}
    if format == "parquet":
        return {split: folder / f"{split}.parquet" for split in corpus}
    return {split: folder / f"{_STEMS.get(split, split)}{_SUFFIXES[format]}" for split in corpus}


def _check_target(path: Path, format: str, overwrite: bool) -> None:
    if not path.exists():
        return
    # Never more than a data set is replaced: a folder train may well hold something else.
    if path.is_dir() and not (format == "arrow" and (path / _SAVED).is_file()):
        raise DataError(f"{path}: is a folder, which is not overwritten; choose another folder to write into.")
    if not overwrite:
        raise DataError(f"{path}: exists already; choose another folder to write into, or overwrite it.")


def _write(corpus: DatasetDict, folder: Path, format: str, form: _Form) -> None:
    if format == "arrow":
        corpus.save_to_disk(folder)
        return
    for split, path in _targets(corpus, folder, format).items():
        with path.open("wb") as file:
            if format == "parquet":
                corpus[split].to_parquet(file)
            else:
                for text in TEXT_FORMATS[format](corpus[split], split, form):
                    file.write(text)
