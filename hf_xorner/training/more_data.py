"""More training sentences: those of further corpora, and copies of sentences in another case."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict, concatenate_datasets

from ..corpora import load_corpus
from ..corpora.assemble import TAGS, TOKENS, TRAIN, flat_batches, label_names_of
from ..errors import DataError


def with_more_data(
    corpus: DatasetDict, sources: Sequence[str], data_dir: str | None, reading: dict[str, Any]
) -> DatasetDict:
    """Return a corpus with the training sentences of further ones, whose other splits are left out.

    Args:
        corpus: The corpus, which sets the labels.
        sources: The further corpora, as for `load_corpus`, as the next two.
        data_dir: The folder of local files.
        reading: The options of reading.

    Raises:
        DataError: If one of them cannot be read, has no training sentences, or has a label that the corpus lacks.
    """
    if not sources:
        return corpus
    parts = [corpus[TRAIN].select_columns([TOKENS, TAGS])]
    names = label_names_of(parts[0], TRAIN)
    for source in sources:
        more = load_corpus(source, data_dir, **reading)
        if TRAIN not in more:
            raise DataError(f"more_data={source!r} has no training split; it has {', '.join(more)}.")
        parts.append(_renumbered(more[TRAIN], names, source).cast(parts[0].features))
    return DatasetDict({**corpus, TRAIN: concatenate_datasets(parts)})


def _renumbered(train: Dataset, names: list[str], source: str) -> Dataset:
    """Return words and labels with another numbering of the labels."""
    own = label_names_of(train, TRAIN)
    used = sorted({own[index] for batch in flat_batches(train, TRAIN) for index in set(batch.ids.tolist()) - {-1}})
    if lacking := [label for label in used if label not in names]:
        raise DataError(
            f"more_data={source!r}: the label {lacking[0]!r} is none of dataset's, which are {', '.join(names)}; "
            "rename its types by types, as in 'person=PER,product=?'."
        )
    number = np.array([*(names.index(label) if label in names else -1 for label in own), -1])
    table = train.select_columns([TOKENS, TAGS]).with_format("arrow")[:]
    tags = table[TAGS].combine_chunks()
    ids = number[tags.flatten().to_numpy(zero_copy_only=False)]
    ends = np.cumsum(tags.value_lengths().to_numpy(zero_copy_only=False))[:-1]
    return Dataset.from_dict({TOKENS: table[TOKENS].to_pylist(), TAGS: [row.tolist() for row in np.split(ids, ends)]})


def _with_capital(word: str) -> str:
    return word[:1].upper() + word[1:].lower()


_CASES = (str.lower, str.upper, _with_capital)


def with_recased(train: Dataset, share: float, seed: int) -> Dataset:
    """Return training sentences, and behind them a share of them in lower case, in capitals or With Capitals.

    Labels, and what teachers found in the sentences as they are spelt, stay the same.

    Args:
        train: The sentences.
        share: The share of the sentences.
        seed: The seed of which sentences these are, and of the case of each.
    """
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(random.random(len(train)) < share)
    cases = random.integers(len(_CASES), size=len(rows))

    def recase(batch: dict[str, list[list[str]]], places: list[int]) -> dict[str, list[list[str]]]:
        sentences = zip(batch[TOKENS], places, strict=True)
        return {TOKENS: [list(map(_CASES[cases[place]], words)) for words, place in sentences]}

    copies = train.select(rows)
    identity = f"{copies._fingerprint} {share} {seed} recased"
    copies = copies.map(
        recase,
        batched=True,
        with_indices=True,
        features=copies.features,
        new_fingerprint=hashlib.sha256(identity.encode()).hexdigest()[:32],
        desc="changing case",
    )
    return concatenate_datasets([train, copies])
