"""From sentences with tags as their source has them to a cached data set with one numbering of the labels."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from numpy.typing import NDArray

from ..errors import DataError
from .caching import cached
from .reading import AUTO, Reading
from .repairs import Repairs
from .schemes import EDGE, Pair, entity_type, iob2_of, is_of, label_names, prefixes_of, recognise, repairs_of
from .sentence import Sentence
from .survey import Split, Survey, find, survey

TRAIN = "train"

# Part of every fingerprint: another number makes all cached data sets be built anew.
_VERSION = 1
# Sentences of a table.
_BATCH = 1000


def assemble(
    splits: Mapping[str, Split], reading: Reading, source: str, cache_dir: str | Path | None = None
) -> DatasetDict:
    """Build the data set of a corpus, its tags as plain labels or IOB2, cached and memory-mapped.

    Every split is read twice: the labels, and what has to be repaired, must be known before the first row is written.

    Args:
        splits: The splits by name. ``train`` sets the labels; without it all splits together do.
        reading: How it is to be read.
        source: The corpus in words, for messages.
        cache_dir: Where the data sets are cached; by default where `datasets` does.

    Returns:
        The splits in the given order, with ``tokens: List(string)`` and ``ner_tags: List(ClassLabel)``, and with
        ``pos_tags: List(string)`` and ``doc_id: string`` where the source has them.

    Raises:
        DataError: If a split has no sentence, if a tag is none of its scheme, if a split has a tag (of chunks: a type)
            that the training split lacks, or for a repair that ``reading.strict`` refuses.
    """
    repairs = Repairs(reading.strict)
    surveys = {name: survey(split, repairs) for name, split in splits.items()}
    for name, found in surveys.items():
        if not found.pairs:
            raise DataError(f"{splits[name].source}: the split holds no sentence; fill it, or leave it out.")
    pairs = set().union(*(found.pairs for found in surveys.values()))
    scheme = recognise(pairs) if reading.scheme == AUTO else reading.scheme
    if scheme != "plain":
        for name, found in surveys.items():
            _check_prefixes(splits[name], found, scheme)
    known = surveys[TRAIN].tags if TRAIN in surveys else set().union(*(found.tags for found in surveys.values()))
    labels = label_names(known, scheme == "plain")
    for name, found in surveys.items():
        _check_known(splits[name], found, labels, scheme)
        _count_repairs(splits[name], found, scheme, repairs)
    repairs.report(source)
    extra = _extra_columns(surveys.values())
    return DatasetDict(
        {name: _build(name, split, surveys[name], scheme, labels, extra, cache_dir) for name, split in splits.items()}
    )


def _check_prefixes(split: Split, found: Survey, scheme: str) -> None:
    strange = {tag for tag in found.tags if not is_of(scheme, tag)}
    if strange:
        place, tag = find(split, lambda pair: pair[1] in strange)
        raise DataError(
            f"{place}: unknown tag {tag!r}; expected O, or a type after {prefixes_of(scheme)} ({scheme.upper()}); "
            "correct it, or say scheme=plain."
        )


def _check_known(split: Split, found: Survey, labels: list[str], scheme: str) -> None:
    plain = scheme == "plain"
    known = set(labels) if plain else {entity_type(label) for label in labels}
    unknown = {tag for tag in found.tags if (tag if plain else entity_type(tag)) not in known}
    if unknown:
        place, tag = find(split, lambda pair: pair[1] in unknown)
        raise DataError(
            f"{place}: the tag {tag!r} has no example in the training split; "
            "correct it, or add examples to the training data."
        )


def _count_repairs(split: Split, found: Survey, scheme: str, repairs: Repairs) -> None:
    counts: Counter[str] = Counter()
    for pair, count in found.pairs.items():
        for kind in repairs_of(pair, scheme):
            counts[kind] += count
    for kind, count in counts.items():
        repairs.add(kind, _first_repair(split, scheme, kind), count)


def _first_repair(split: Split, scheme: str, kind: str) -> str:
    return find(split, lambda pair: kind in repairs_of(pair, scheme))[0]


def _extra_columns(surveys: Collection[Survey]) -> dict[str, Any]:
    """Return the columns besides tokens and tags: parts of speech if all splits have them, documents if any has."""
    extra: dict[str, Any] = {}
    if all(found.has_pos for found in surveys):
        extra["pos_tags"] = List(Value("string"))
    if any(found.has_documents for found in surveys):
        extra["doc_id"] = Value("string")
    return extra


def _build(
    name: str,
    split: Split,
    found: Survey,
    scheme: str,
    labels: list[str],
    extra: dict[str, Any],
    cache_dir: str | Path | None,
) -> Dataset:
    features = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=labels)), **extra})
    number = {label: index for index, label in enumerate(labels)}
    label_of = {pair: number[iob2_of(pair, scheme)] for pair in found.pairs if pair[1] != EDGE}

    def tables() -> Iterator[pa.Table]:
        sentences = split.read(Repairs())
        while batch := list(islice(sentences, _BATCH)):
            yield _table(batch, label_of, features)

    identity = json.dumps([_VERSION, split.identity, scheme, labels, sorted(extra)])
    fingerprint = hashlib.sha256(identity.encode()).hexdigest()[:32]
    return cached(tables, features, name, fingerprint, split.source, cache_dir)


def _table(sentences: Sequence[Sentence], label_of: Mapping[Pair, int], features: Features) -> pa.Table:
    """Return sentences as a table, through flat arrays: a list of lists takes several times as long."""
    offsets = np.zeros(len(sentences) + 1, dtype=np.int32)
    np.cumsum([len(sentence.tokens) for sentence in sentences], out=offsets[1:])
    tags = chain.from_iterable(zip([EDGE, *found.tags], found.tags, strict=False) for found in sentences)
    labels = np.fromiter(map(label_of.__getitem__, tags), dtype=np.int64, count=int(offsets[-1]))
    columns = {
        "tokens": _lists(offsets, pa.array(_flat(found.tokens for found in sentences), pa.string())),
        "ner_tags": _lists(offsets, pa.array(labels)),
    }
    if "pos_tags" in features:
        columns["pos_tags"] = _lists(offsets, pa.array(_flat(found.pos_tags for found in sentences), pa.string()))
    if "doc_id" in features:
        columns["doc_id"] = pa.array([found.doc_id for found in sentences], pa.string())
    return pa.table(columns)


def _lists(offsets: NDArray[np.int32], values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _flat(lists: Iterable[Any]) -> list[Any]:
    return list(chain.from_iterable(lists))
