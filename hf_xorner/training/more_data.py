"""More training sentences: those of further corpora, and copies of sentences in another case."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict, concatenate_datasets

from ..corpora import load_corpus
from ..corpora.assemble import TAGS, TOKENS, TRAIN, label_names_of
from ..errors import DataError


def with_more_data(
    corpus: DatasetDict, sources: Sequence[str], data_dir: str | None, reading: dict[str, Any]
) -> tuple[DatasetDict, list[Dataset]]:
    """Return a corpus with the training sentences of further ones behind its own, and those of each further one.

    Other splits of the further corpora are left out.

    Args:
        corpus: The corpus, which sets the labels.
        sources: The further corpora, as for `load_corpus`, as the next two.
        data_dir: The folder of local files.
        reading: The options of reading.

    Raises:
        DataError: If one of them cannot be read, has no training sentences, or has a label that the corpus lacks.
    """
    if not sources:
        return corpus, []
    own = corpus[TRAIN].select_columns([TOKENS, TAGS])
    more = [_more_like(own, source, load_corpus(source, data_dir, **reading)) for source in sources]
    return DatasetDict({**corpus, TRAIN: concatenate_datasets([own, *more])}), more


def _more_like(own: Dataset, source: str, corpus: DatasetDict) -> Dataset:
    """Return the words and labels of a further corpus' training sentences, with the corpus' own numbers of labels."""
    if TRAIN not in corpus:
        raise DataError(f"more_data={source!r} has no training split; it has {', '.join(corpus)}.")
    train, names = corpus[TRAIN], label_names_of(own, TRAIN)
    theirs = label_names_of(train, TRAIN)
    used = sorted({tag for row in train[TAGS] for tag in row if tag >= 0})
    if lacking := [theirs[tag] for tag in used if theirs[tag] not in names]:
        raise DataError(
            f"more_data={source!r}: the label {lacking[0]!r} is none of dataset's, which are {', '.join(names)}; "
            "rename its type by types, as in 'person=PER,product=?'."
        )
    # The last entry is that of -1, the number of words without label.
    number = [*(names.index(label) if label in names else -1 for label in theirs), -1]
    return train.select_columns([TOKENS, TAGS]).map(
        lambda rows: {TAGS: [[number[tag] for tag in row] for row in rows]},
        batched=True,
        input_columns=TAGS,
        features=own.features,
        new_fingerprint=_fingerprint(train, names),
        desc="numbering labels",
    )


def _fingerprint(dataset: Dataset, *settings: Any) -> str:
    return hashlib.sha256(repr((dataset._fingerprint, settings)).encode()).hexdigest()[:32]


def _with_capital(word: str) -> str:
    return word[:1].upper() + word[1:].lower()


_CASES = (str.lower, str.upper, _with_capital)


def with_recased(train: Dataset, share: float, seed: int) -> Dataset:
    """Return training sentences, and behind them copies of some in lower case, in capitals or With Capitals.

    A copy has all other columns of its sentence: the labels, and what teachers found in the sentence as it is spelt.

    Args:
        train: The sentences.
        share: The probability of a copy of each sentence.
        seed: The seed of which sentences are copied, and of the case of each copy.
    """
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(random.random(len(train)) < share)
    cases = random.integers(len(_CASES), size=len(rows))

    def recase(sentences: list[list[str]], places: list[int]) -> dict[str, list[list[str]]]:
        return {
            TOKENS: [list(map(_CASES[cases[place]], words)) for words, place in zip(sentences, places, strict=True)]
        }

    copies = train.select(rows)
    copies = copies.map(
        recase,
        batched=True,
        with_indices=True,
        input_columns=TOKENS,
        features=copies.features,
        new_fingerprint=_fingerprint(train, share, seed),
        desc="changing case",
    )
    return concatenate_datasets([train, copies])
