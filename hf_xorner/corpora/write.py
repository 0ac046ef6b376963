"""Write a corpus to files that are read back without loss."""

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, groupby, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, DatasetDict

from ..errors import DataError
from ..files import check_apart
from .assemble import DOC_ID, POS_TAGS, TAGS, TOKENS, FlatBatch, flat_batches, label_names_of
from .formats.columns import DOCUMENT_START
from .formats.json_lines import TEXT_KEY
from .schemes import BRACKETS, UNLABELLED_TAG, WRITTEN_SCHEMES, TagSet, entity_type, from_iob2, is_chunked
from .source import WRITTEN_FORMATS, Sentence
from .splits import SPLITS

_SEPARATORS = {"tab": "\t", "blank": " "}

# The reader names the document "id" for part 0 of id, and "id#3" for part 3.
_PART = re.compile(r"(.+)#([1-9][0-9]*)", re.DOTALL)
_NO_DOCUMENT = "-"
_END_DOCUMENT = "#end document\n"
_to_json = json.JSONEncoder(ensure_ascii=False).encode


class _Form(NamedTuple):
    """The form of a text file.

    Attributes:
        scheme: The scheme of the tags.
        separator: The separator of columns: "tab" or "blank".
    """

    scheme: str
    separator: str


def _sentences(dataset: Dataset, split: str, scheme: str) -> Iterator[Sentence]:
    """Yield the sentences of a split with their tags in a scheme."""
    labels = label_names_of(dataset, split)
    for batch in flat_batches(dataset, split):
        ids, names = from_iob2(batch.chunk_ids, batch.lengths, labels, scheme)
        names, ids = [*names, UNLABELLED_TAG], np.where(batch.ids < 0, len(names), ids)
        words, tags = batch.tokens.to_pylist(), [names[index] for index in ids.tolist()]
        pos_tags = None if batch.pos_tags is None else batch.pos_tags.to_pylist()
        doc_ids = [None] * len(batch.lengths) if batch.doc_ids is None else batch.doc_ids.to_pylist()
        bounds = pairwise([0, *batch.ends.tolist()])
        for row, ((start, end), doc_id) in enumerate(zip(bounds, doc_ids, strict=True), start=batch.first_row):
            parts = None if pos_tags is None else pos_tags[start:end]
            yield Sentence(words[start:end], tags[start:end], split, row, 0, parts, doc_id)


def _as_columns(dataset: Dataset, split: str, form: _Form) -> Iterator[str]:
    """Yield a split as CoNLL columns: the word, its part of speech if there is one, its tag."""
    separator = _SEPARATORS[form.separator]
    numbered = _documents_are_numbered(dataset)
    first_line = [DOCUMENT_START, *(["-X-"] if POS_TAGS in dataset.column_names else []), "O"]
    document = None
    for sentence in _sentences(dataset, split, form.scheme):
        if sentence.doc_id != document:
            document = sentence.doc_id
            yield separator.join(first_line if numbered else [DOCUMENT_START, f"({document})"]) + "\n\n"
        columns = [column for column in (sentence.tokens, sentence.pos_tags, sentence.tags) if column is not None]
        yield "".join([f"{separator.join(row)}\n" for row in zip(*columns, strict=True)]) + "\n"


def _documents_are_numbered(dataset: Dataset) -> bool:
    """Return whether the documents of a split, in their order, have the numbers from 0 that reading gives them."""
    if DOC_ID not in dataset.column_names:
        return False
    batches = dataset.select_columns([DOC_ID]).with_format("arrow").iter(100_000)
    names = chain.from_iterable(batch.column(DOC_ID).to_pylist() for batch in batches)
    documents = [name for index, (name, _) in enumerate(groupby(names)) if index or name is not None]
    return documents == [str(number) for number in range(len(documents))]


def _as_conll2012(dataset: Dataset, split: str, form: _Form) -> Iterator[str]:
    """Yield a split as the twelve columns of CoNLL-2012, of which words, parts of speech and entities are filled.

    Sentences without a document stand outside of all documents. The format is recognised by its first line, so a file
    that would begin with such a sentence begins with a document without sentences.
    """
    document = None
    for sentence in _sentences(dataset, split, BRACKETS):
        if sentence.doc_id is None and sentence.line == 0:
            yield f"{_begin_document(_NO_DOCUMENT)}{_END_DOCUMENT}\n"
        if sentence.doc_id != document:
            end = "" if document is None else _END_DOCUMENT
            document = sentence.doc_id
            yield end + ("" if document is None else _begin_document(document))
        name, part = _name_and_part(_NO_DOCUMENT if document is None else document)
        pos_tags = sentence.pos_tags or ["-"] * len(sentence.tokens)
        words = enumerate(zip(sentence.tokens, pos_tags, sentence.tags, strict=True))
        lines = [f"{name} {part} {at} {word} {pos} * - - - - {tag} -\n" for at, (word, pos, tag) in words]
        yield "".join(lines) + "\n"
    if document is not None:
        yield _END_DOCUMENT


def _begin_document(doc_id: str) -> str:
    name, part = _name_and_part(doc_id)
    return f"#begin document ({name}); part {part:03d}\n"


def _name_and_part(doc_id: str) -> tuple[str, int]:
    found = _PART.fullmatch(doc_id)
    return (found[1], int(found[2])) if found else (doc_id, 0)


def _as_conllu(dataset: Dataset, split: str, form: _Form) -> Iterator[str]:
    """Yield a split as CoNLL-U: entities as ``NER=B-PER`` in MISC, plain tags and parts of speech in UPOS."""
    chunked = is_chunked(label_names_of(dataset, split))
    document = None
    for sentence in _sentences(dataset, split, form.scheme):
        if sentence.doc_id != document:
            document = sentence.doc_id
            yield f"# newdoc id = {document}\n"
        parts = sentence.pos_tags or (["_"] * len(sentence.tokens) if chunked else sentence.tags)
        words = enumerate(zip(sentence.tokens, parts, sentence.tags, strict=True), start=1)
        yield "".join(
            f"{at}\t{word}\t_\t{pos}\t_\t_\t_\t_\t_\t{f'NER={tag}' if chunked else '_'}\n"
            for at, (word, pos, tag) in words
        )
        yield "\n"


def _as_csv(dataset: Dataset, split: str, form: _Form) -> Iterator[str]:
    """Yield a split as CSV with a row for each word, and the number of its sentence in each."""
    buffer = io.StringIO()
    # Line ends as RFC 4180 has them; words that hold a part of one are written in quotation marks.
    writer = csv.writer(buffer, lineterminator="\r\n")
    optional = [name for name in (DOC_ID, "pos") if (POS_TAGS if name == "pos" else name) in dataset.column_names]
    writer.writerow(["sentence_id", "token", *optional, "tag"])
    for sentence in _sentences(dataset, split, form.scheme):
        more = {DOC_ID: [sentence.doc_id or ""] * len(sentence.tokens), "pos": sentence.pos_tags or []}
        columns = [sentence.tokens, *(more[name] for name in optional), sentence.tags]
        writer.writerows([sentence.line + 1, *row] for row in zip(*columns, strict=True))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _as_jsonl(dataset: Dataset, split: str, form: _Form) -> Iterator[str]:
    """Yield a split as JSON Lines of words and tags."""
    for sentence in _sentences(dataset, split, form.scheme):
        yield _json_line({TOKENS: sentence.tokens, TAGS: sentence.tags}, sentence)


def _as_spans(dataset: Dataset, split: str, form: _Form) -> Iterator[str]:
    """Yield a split as JSON Lines of a text, its entities as ``[start, end, label]`` and the places of its words.

    The text is the words with one blank between them; places count its characters, as Python does.
    """
    for sentence in _sentences(dataset, split, "iob2"):
        ends = list(accumulate([len(word) + 1 for word in sentence.tokens]))
        places = [(end - 1 - len(word), end - 1) for word, end in zip(sentence.tokens, ends, strict=True)]
        spans: list[list[Any]] = []
        for (start, end), tag in zip(places, sentence.tags, strict=True):
            if tag.startswith("B-"):
                spans.append([start, end, entity_type(tag)])
            elif tag.startswith("I-"):
                spans[-1][1] = end
        yield _json_line({TEXT_KEY: " ".join(sentence.tokens), "spans": spans, TOKENS: places}, sentence)


def _json_line(record: dict[str, Any], sentence: Sentence) -> str:
    optional = {POS_TAGS: sentence.pos_tags, DOC_ID: sentence.doc_id}
    return _to_json(record | {name: value for name, value in optional.items() if value is not None}) + "\n"


_TEXT_FORMATS: dict[str, Callable[[Dataset, str, _Form], Iterator[str]]] = {
    "columns": _as_columns,
    "conllu": _as_conllu,
    "conll2012": _as_conll2012,
    "csv": _as_csv,
    "jsonl": _as_jsonl,
    "spans": _as_spans,
}


class _Limit(NamedTuple):
    """A pattern (of RE2) that a text must not match, and the fault of a text that does."""

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
_EDGE = _Limit(r"^[\pZ\s\x{85}\x{1C}-\x{1F}\v]|[\pZ\s\x{85}\x{1C}-\x{1F}\v]$", "begins or ends with a blank")
_PAIR = _Limit(r"[|=]", "holds one of | and =")
_UNKNOWN = _Limit("^_$", "would be read as unknown")
_NUL = _Limit(r"\x00", "holds a NUL")
_LIST = _Limit(r"^\[(?s:.*)\]$", "would be read as a list")
_ONLY_BLANKS = _Limit(r"^[\pZ\t\n\v\f\r\x{85}]*$", "holds nothing but blanks")


class _Limits(NamedTuple):
    """The limits of a format."""

    token: tuple[_Limit, ...] = ()
    pos_tag: tuple[_Limit, ...] = ()
    tag: tuple[_Limit, ...] = ()
    doc_id: tuple[_Limit, ...] = ()
    chunks_only: bool = False
    empty_sentences: bool = True
    # Whether parts of speech may stand beside plain tags.
    pos_beside_plain: bool = True
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
    ("conllu", "tab"): _Limits(
        token=(_EMPTY, *_LINE),
        pos_tag=(_EMPTY, *_LINE, _UNKNOWN),
        tag=(_EMPTY, *_LINE, _EDGE, _PAIR, _UNKNOWN),
        doc_id=(_EMPTY, *_LINE, _EDGE),
        empty_sentences=False,
        pos_beside_plain=False,
        documents_end=False,
    ),
    ("csv", "tab"): _Limits(
        token=(_EMPTY, _MARK, _NUL),
        pos_tag=(_EMPTY, _MARK, _NUL),
        tag=(_EMPTY, _MARK, _NUL, _BLANK, _LIST),
        doc_id=(_EMPTY, _MARK, _NUL),
        empty_sentences=False,
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


def _check_split(dataset: Dataset, split: str, format: str, separator: str) -> None:
    """Raise DataError for a split that a text format cannot represent without loss.

    Args:
        dataset: The split.
        split: Its name, for messages.
        format: The format.
        separator: The separator of columns.

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
        if limits.chunks_only and (batch.ids < 0).any():
            raise DataError(f"{batch.place(int(batch.ids.argmin()))}: the word has no label, {advice}")
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
    if not chunked and not limits.pos_beside_plain and POS_TAGS in dataset.column_names:
        raise DataError(f"{split}: parts of speech beside plain tags such as {labels[0]!r}, {advice}")
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
    """Return the index of the first text that matches a limit, and the limit, or None."""
    if not limits:
        return None
    # One search for all patterns, as faults are rare.
    faulty = pc.match_substring_regex(values, "|".join(limit.pattern for limit in limits))
    index = pc.index(faulty, True).as_py()
    if index < 0:
        return None
    text = values[index]
    return index, next(limit for limit in limits if pc.match_substring_regex(text, limit.pattern).as_py())


_SUFFIXES = {
    "columns": ".conll",
    "conllu": ".conllu",
    "conll2012": ".gold_conll",
    "csv": ".csv",
    "jsonl": ".jsonl",
    "spans": ".jsonl",
}
# Text files have the usual names of CoNLL, tables those of `datasets`.
_STEMS = {"validation": "dev"}
_WITH_SCHEME = ("columns", "csv", "jsonl")
# The file by which a folder of `Dataset.save_to_disk` is recognised.
_SAVED = "dataset_info.json"


def write_corpus(
    corpus: DatasetDict,
    folder: str | Path,
    format: str,
    scheme: str = "iob2",
    separator: str = "tab",
    overwrite: bool = False,
    inputs: Sequence[str | Path] = (),
) -> list[Path]:
    """Write a corpus into a folder, so that `hf_xorner.corpora.load_corpus` reads it back without loss.

    The formats are

    - ``columns``: ``train.conll``, ``dev.conll``, ``test.conll``; word, part of speech if there is one, and tag. A
      document begins with a line ``-DOCSTART- -X- O``, or ``-DOCSTART- (id)`` where documents are not numbered from 0;
    - ``conllu``: ``train.conllu`` and so on, with entities as ``NER=B-PER`` in the column MISC and parts of speech, or
      plain tags, in UPOS. A document begins with a line ``# newdoc id = …``;
    - ``csv``: ``train.csv`` and so on, with a row for each word and a header;
    - ``conll2012``: ``train.gold_conll`` and so on, with the twelve columns of OntoNotes; entities only. What the
      corpus does not have (parses, speakers and others) is ``-`` or ``*``;
    - ``jsonl``: ``train.jsonl`` and so on, an object a sentence with its words and tags;
    - ``spans``: ``train.jsonl`` and so on, an object a sentence with its text, its entities as ``[start, end, label]``
      and its words' places as ``[start, end]``, in characters; entities only;
    - ``parquet``: ``train.parquet``, ``validation.parquet``, ``test.parquet``;
    - ``arrow``: a folder to ``datasets.load_from_disk``.

    The last two keep every column, the others tokens, tags, parts of speech and documents. Nothing is left half
    written: the files take their places at the end, when all of them are complete. Reading has to be told
    about plain tags that look like chunks, and about a column of parts of speech with one value or very many.

    Args:
        corpus: The splits in the form that `hf_xorner.corpora.load_corpus` returns.
        folder: The folder, created if it does not exist.
        format: One of the formats.
        scheme: The scheme of the tags in ``columns``, ``csv`` and ``jsonl``: "iob1", "iob2", "bioes", "bilou" or
            "bmes". Plain tags stay as they are.
        separator: The separator of ``columns``: "tab" or "blank".
        overwrite: Replace files that exist.
        inputs: The files and folders that the corpus was read from, which are never replaced.

    Returns:
        The paths, one for each split.

    Raises:
        DataError: If a file exists and `overwrite` is False, or is an input, or if the format cannot represent the
            corpus.
    """
    _check_options(format, scheme, separator)
    folder = Path(folder).expanduser()
    targets = _targets(corpus, folder, format)
    for path in [*targets.values(), folder] if format == "arrow" else targets.values():
        check_apart(path, *inputs)
    for path in targets.values():
        _check_target(path, format, overwrite)
    for split, dataset in corpus.items():
        # Raises for a dataset that is not a corpus.
        label_names_of(dataset, split)
        if format in _TEXT_FORMATS:
            _check_split(dataset, split, format, separator)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: is a file; name a folder to write into.")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".writing-", dir=folder) as aside:
        _write(corpus, Path(aside), format, _Form(scheme, separator))
        # A folder cannot be replaced in one step: the old one is moved into the temporary folder first.
        (Path(aside) / "old").mkdir()
        for path in targets.values():
            if path.is_dir():
                os.replace(path, Path(aside) / "old" / path.name)
            os.replace(Path(aside) / path.name, path)
    return [targets[split] for split in corpus]


def _check_options(format: str, scheme: str, separator: str) -> None:
    for name, value, allowed in (
        ("format", format, WRITTEN_FORMATS),
        ("scheme", scheme, WRITTEN_SCHEMES),
        ("separator", separator, tuple(_SEPARATORS)),
    ):
        if value not in allowed:
            raise DataError(f"{name}={value!r} cannot be written; choose one of {', '.join(allowed)}.")
    if format not in _WITH_SCHEME and scheme != "iob2":
        raise DataError(f"scheme={scheme!r}: {format} has but one form; only {', '.join(_WITH_SCHEME)} take a scheme.")
    if format != "columns" and separator != "tab":
        raise DataError(f"separator={separator!r}: {format} has but one form; only columns take a separator.")


def _targets(corpus: DatasetDict, folder: Path, format: str) -> dict[str, Path]:
    """Return the paths to write by split; last the index of a saved dataset."""
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
    # Only a dataset is replaced: a folder named train may hold something else.
    if path.is_dir() and not (format == "arrow" and (path / _SAVED).is_file()):
        raise DataError(f"{path}: is a folder, which is not overwritten; choose another folder to write into.")
    if not overwrite:
        raise DataError(f"{path}: exists already; choose another folder to write into, or set overwrite.")


def _write(corpus: DatasetDict, folder: Path, format: str, form: _Form) -> None:
    if format == "arrow":
        corpus.save_to_disk(folder)
        return
    for split, path in _targets(corpus, folder, format).items():
        if format == "parquet":
            with path.open("wb") as table:  # of a path, datasets would take a :: for a chain of places
                corpus[split].to_parquet(table)
        else:
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(_TEXT_FORMATS[format](corpus[split], split, form))
