"""Statistics of a corpus, as in the tables of papers."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, DatasetDict
from numpy.typing import NDArray

from .assemble import TRAIN, FlatBatch, flat_batches, label_names_of
from .schemes import TagSet, chunks_of, is_chunked

_LENGTHS = ("1", "2", "3", "4 or more")
_GAP = 2


def corpus_statistics(corpus: DatasetDict) -> dict[str, dict[str, Any]]:
    """Count sentences, words and entities of every split of a corpus.

    Shares are in percent, and None where there is nothing to share; words and surface forms are compared as they are
    spelt. A surface form is the words of an entity with blanks between them, whatever its type.

    Args:
        corpus: The splits in the form that `hf_xorner.corpora.load_corpus` returns.

    Returns:
        By split, under stable keys:

        - ``sentences``, ``tokens``, ``distinct_words``; and ``unlabelled_tokens``, if any have no label;
        - ``documents``, and ``with_document_lines``: ``sentences`` and ``tokens`` as the papers on CoNLL-2003 count
          them, every ``-DOCSTART-`` line a sentence of one token. Only if the corpus has documents; sentences
          that belong to none are then one document together, as those before a file's first such line are;
        - ``sentence_lengths``: ``min``, ``mean``, ``median``, ``p95`` (the least length that 95 % of the sentences do
          not exceed) and ``max``;
        - ``entities``, ``per_type``, and ``entity_lengths``: how many consist of ``1``, ``2``, ``3`` and
          ``4 or more`` words. For plain tags, ``per_tag`` in their place;
        - ``unseen``, in all splits but ``train`` where there is one: the share of ``tokens`` and distinct ``words``
          that do not occur in it, and of ``entity_mentions`` and distinct ``entity_forms`` whose surface form is none
          of an entity there.

    Raises:
        DataError: If a split is not of that form.
    """
    counts = {split: _Counts(dataset, split) for split, dataset in corpus.items()}
    train = counts.get(TRAIN)
    return {split: _report(found, None if found is train else train) for split, found in counts.items()}


class _Counts:
    """The counts of a split."""

    def __init__(self, dataset: Dataset, split: str) -> None:
        self.labels = label_names_of(dataset, split)
        self.chunked = is_chunked(self.labels)
        self.tag_set = TagSet.of(self.labels, "iob2" if self.chunked else "plain")
        self.words: Counter[str] = Counter()
        self.forms: Counter[str] = Counter()
        self.unlabelled = 0
        self.documents: set[str | None] = set()
        self.per_label = np.zeros(len(self.labels), dtype=np.int64)
        self.per_type = np.zeros(len(self.tag_set.types), dtype=np.int64)
        self.per_length = np.zeros(len(_LENGTHS), dtype=np.int64)
        lengths = [np.zeros(0, dtype=np.int64)]
        for batch in flat_batches(dataset, split):
            lengths.append(batch.lengths)
            self.unlabelled += int((batch.ids < 0).sum())
            _count(self.words, batch.tokens)
            if batch.doc_ids is not None:
                self.documents.update(batch.doc_ids.unique().to_pylist())
            if self.chunked:
                self._count_entities(batch)
            else:
                self.per_label += np.bincount(batch.ids, minlength=len(self.labels))
        self.lengths: NDArray[np.int64] = np.concatenate(lengths)

    def _count_entities(self, batch: FlatBatch) -> None:
        chunks = chunks_of(batch.chunk_ids, batch.lengths, self.tag_set)
        lengths = chunks.end - chunks.first
        self.per_type += np.bincount(chunks.type, minlength=len(self.per_type))
        self.per_length += np.bincount(np.minimum(lengths, len(_LENGTHS)) - 1, minlength=len(_LENGTHS))
        inside = np.zeros(len(batch.ids) + 1, dtype=np.int64)
        np.add.at(inside, chunks.first, 1)
        np.add.at(inside, chunks.end, -1)
        words = batch.tokens.filter(pa.array(np.cumsum(inside)[:-1] > 0))
        offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
        _count(self.forms, pc.binary_join(pa.ListArray.from_arrays(offsets, words), " "))


def _count(counter: Counter[str], values: pa.Array) -> None:
    found = values.value_counts()
    for value, count in zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True):
        counter[value] += count


def _report(found: _Counts, train: _Counts | None) -> dict[str, Any]:
    sentences, tokens = len(found.lengths), int(found.lengths.sum())
    report: dict[str, Any] = {"sentences": sentences, "tokens": tokens}
    if found.unlabelled:
        report["unlabelled_tokens"] = found.unlabelled
    if found.documents - {None}:
        documents = len(found.documents)
        report["documents"] = documents
        report["with_document_lines"] = {"sentences": sentences + documents, "tokens": tokens + documents}
    report["distinct_words"] = len(found.words)
    report["sentence_lengths"] = _sentence_lengths(found.lengths)
    if found.chunked:
        report["entities"] = int(found.per_type.sum())
        report["per_type"] = dict(zip(found.tag_set.types, found.per_type.tolist(), strict=True))
        report["entity_lengths"] = dict(zip(_LENGTHS, found.per_length.tolist(), strict=True))
    else:
        report["per_tag"] = dict(zip(found.labels, found.per_label.tolist(), strict=True))
    if train is not None:
        unseen = {"tokens": _unseen_mentions(found.words, train.words), "words": _unseen(found.words, train.words)}
        if found.chunked:
            unseen["entity_mentions"] = _unseen_mentions(found.forms, train.forms)
            unseen["entity_forms"] = _unseen(found.forms, train.forms)
        report["unseen"] = unseen
    return report


def _sentence_lengths(lengths: NDArray[np.int64]) -> dict[str, float | None]:
    if not len(lengths):
        return dict.fromkeys(("min", "mean", "median", "p95", "max"))
    return {
        "min": int(lengths.min()),
        "mean": float(lengths.mean()),
        "median": float(np.median(lengths)),
        "p95": int(np.percentile(lengths, 95, method="inverted_cdf")),
        "max": int(lengths.max()),
    }


def _unseen(found: Counter[str], train: Counter[str]) -> float | None:
    return 100 * len(found.keys() - train.keys()) / len(found) if found else None


def _unseen_mentions(found: Counter[str], train: Counter[str]) -> float | None:
    mentions = found.total()
    return 100 * sum(found[value] for value in found.keys() - train.keys()) / mentions if mentions else None


def statistics_table(statistics: Mapping[str, Mapping[str, Any]]) -> str:
    """Format the statistics of a corpus as a table with a column for each split.

    Args:
        statistics: What `corpus_statistics` returns.
    """
    rows = [("", list(statistics))]
    for name, values in _lines(list(statistics.values())):
        rows.append((name, [_cell(value) for value in values]))
    width = max(len(name) for name, _ in rows)
    widths = [max(len(cells[index]) for _, cells in rows if cells) + _GAP for index in range(len(statistics))]
    lines = []
    for name, cells in rows:
        padded = "".join(cell.rjust(size) for cell, size in zip(cells, widths, strict=False))
        lines.append(f"{name.ljust(width)}{padded}".rstrip())
    return "\n".join(lines)


def _lines(splits: list[Mapping[str, Any]]) -> Iterable[tuple[str, list[Any]]]:
    """Yield the name and the values of every line; a heading has no values."""
    keys = list(dict.fromkeys(key for split in splits for key in split))
    for key in keys:
        found = [split.get(key) for split in splits]
        name = _NAMES.get(key, key.replace("_", " "))
        if not any(isinstance(value, Mapping) for value in found):
            yield name, found
            continue
        inner = [value if isinstance(value, Mapping) else {} for value in found]
        yield name, []
        for below in dict.fromkeys(key for value in inner for key in value):
            label = below if key in _NAMES_OF_DATA else below.replace("_", " ")
            yield f"  {label}", [value.get(below) for value in inner]


_NAMES = {
    "per_type": "entities by type",
    "per_tag": "tokens by tag",
    "entity_lengths": "entities by words",
    "sentence_lengths": "tokens of a sentence",
    "unseen": "not in train, %",
}
# What stands below these is named by the corpus.
_NAMES_OF_DATA = ("per_type", "per_tag")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
