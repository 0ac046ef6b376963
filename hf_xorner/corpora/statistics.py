"""Statistics of a corpus, as in the tables of papers."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict
from numpy.typing import NDArray

from ..text_table import text_table
from .assemble import DOC_ID, TOKENS, TRAIN, flat_labels, label_names_of
from .schemes import TagSet, is_chunked

_LENGTHS = ("1", "2", "3", "4 or more")


def corpus_statistics(corpus: DatasetDict) -> dict[str, dict[str, Any]]:
    """Count sentences, words and entities of every split of a corpus.

    Shares are in percent, or None if there is nothing to count. Words and surface forms are compared with their case. A
    surface form is the text of an entity, its words joined by blanks; its type does not matter.

    Args:
        corpus: The splits in the form that `hf_xorner.corpora.load_corpus` returns.

    Returns:
        By split, under stable keys:

        - ``sentences``, ``tokens``, ``distinct_words``; and ``unlabelled_tokens``, if some have no label;
        - ``documents``, and ``with_document_lines``: ``sentences`` and ``tokens`` as the papers on CoNLL-2003 count
          them, with every ``-DOCSTART-`` line as a sentence of one token. Only if the corpus has documents; sentences
          without a document then form one document;
        - ``sentence_lengths``: ``min``, ``mean``, ``median``, ``p95`` (the least length that 95 % of the sentences do
          not exceed) and ``max``;
        - ``entities``, ``per_type``, and ``entity_lengths``: the numbers of entities with ``1``, ``2``, ``3`` and
          ``4 or more`` words. For plain tags, only ``per_tag``;
        - ``unseen``, in all splits but ``train`` if the corpus has it: the shares of ``tokens`` and distinct ``words``
          that do not occur in ``train``, and of ``entity_mentions`` and distinct ``entity_forms`` whose surface form is
          not that of an entity in ``train``.

    Raises:
        DataError: If a split does not have this form.
    """
    counts = {split: _Counts(dataset, split) for split, dataset in corpus.items()}
    train = counts.get(TRAIN)
    return {split: _report(count, None if count is train else train) for split, count in counts.items()}


class _Counts:
    """The counts of a split."""

    def __init__(self, dataset: Dataset, split: str) -> None:
        self.labels = label_names_of(dataset, split)
        self.chunked = is_chunked(self.labels)
        self.tag_set = TagSet.of(self.labels, "iob2" if self.chunked else "plain")
        self.documents = set(dataset[DOC_ID]) if DOC_ID in dataset.column_names else set()
        ids, self.lengths = flat_labels(dataset)
        words = list(chain.from_iterable(dataset[TOKENS]))
        self.words = Counter(words)
        self.unlabelled = int((ids < 0).sum())
        self.per_label = np.bincount(ids[ids >= 0], minlength=len(self.labels))
        chunks = self.tag_set.chunks(np.maximum(ids, 0), self.lengths)
        self.forms = Counter(" ".join(words[first:end]) for first, end in zip(chunks.first, chunks.end, strict=True))
        self.per_type = np.bincount(chunks.type, minlength=len(self.tag_set.types))
        lengths = np.minimum(chunks.end - chunks.first, len(_LENGTHS))
        self.per_length = np.bincount(lengths - 1, minlength=len(_LENGTHS))


def _report(counts: _Counts, train: _Counts | None) -> dict[str, Any]:
    sentences, tokens = len(counts.lengths), int(counts.lengths.sum())
    report: dict[str, Any] = {"sentences": sentences, "tokens": tokens}
    if counts.unlabelled:
        report["unlabelled_tokens"] = counts.unlabelled
    if counts.documents - {None}:
        documents = len(counts.documents)
        report["documents"] = documents
        report["with_document_lines"] = {"sentences": sentences + documents, "tokens": tokens + documents}
    report["distinct_words"] = len(counts.words)
    report["sentence_lengths"] = _sentence_lengths(counts.lengths)
    if counts.chunked:
        report["entities"] = int(counts.per_type.sum())
        report["per_type"] = dict(zip(counts.tag_set.types, counts.per_type.tolist(), strict=True))
        report["entity_lengths"] = dict(zip(_LENGTHS, counts.per_length.tolist(), strict=True))
    else:
        report["per_tag"] = dict(zip(counts.labels, counts.per_label.tolist(), strict=True))
    if train is not None:
        unseen = {"tokens": _unseen_mentions(counts.words, train.words), "words": _unseen(counts.words, train.words)}
        if counts.chunked:
            unseen["entity_mentions"] = _unseen_mentions(counts.forms, train.forms)
            unseen["entity_forms"] = _unseen(counts.forms, train.forms)
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


def _unseen(counts: Counter[str], train: Counter[str]) -> float | None:
    return 100 * len(counts.keys() - train.keys()) / len(counts) if counts else None


def _unseen_mentions(counts: Counter[str], train: Counter[str]) -> float | None:
    mentions = counts.total()
    return 100 * sum(counts[value] for value in counts.keys() - train.keys()) / mentions if mentions else None


def statistics_table(statistics: Mapping[str, Mapping[str, Any]]) -> str:
    """Format the statistics of a corpus as a table with a column for each split.

    Args:
        statistics: What `corpus_statistics` returns.
    """
    return text_table([("", *statistics), *((name, *values) for name, values in _lines(list(statistics.values())))])


def _lines(splits: list[Mapping[str, Any]]) -> Iterable[tuple[str, list[Any]]]:
    """Yield the name and the values of every line; a heading has no values."""
    for key in dict.fromkeys(key for split in splits for key in split):
        values = [split.get(key) for split in splits]
        name = _NAMES.get(key, key.replace("_", " "))
        if not any(isinstance(value, Mapping) for value in values):
            yield name, values
            continue
        inner = [value if isinstance(value, Mapping) else {} for value in values]
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
# Headings whose lines have names from the corpus.
_NAMES_OF_DATA = ("per_type", "per_tag")
