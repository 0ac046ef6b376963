"""Hold out validation data from the training split of a corpus that has none."""

import logging
from collections import Counter
from hashlib import sha256
from typing import NamedTuple

from datasets import Dataset, DatasetDict

from .assemble import DOC_ID, TAGS, TOKENS, TRAIN
from .splits import SPLITS

_log = logging.getLogger(__name__)

VALIDATION = "validation"
#: The seed of the order in which documents or sentences are held out. Another one would change which they are.
SEED = 13
#: Fewer documents than this are not held out as a whole.
FEWEST_DOCUMENTS = 10


class HeldOut(NamedTuple):
    """A record of the sentences that were held out.

    Attributes:
        share: The share of the training sentences that was asked for.
        by: "document" or "sentence".
        seed: See `SEED`.
        sentences: The number of sentences that were held out.
    """

    share: float
    by: str
    seed: int
    sentences: int


def hold_out(corpus: DatasetDict, share: float, source: str) -> tuple[DatasetDict, HeldOut | None]:
    """Return a corpus with a validation split, held out from its training split if it has none, and log it.

    Args:
        corpus: See `with_validation`, as the share.
        share: The share of the training sentences.
        source: The name of the corpus, for the log.
    """
    found, held = with_validation(corpus, share)
    if held is not None:
        _log.warning(
            "%s: no validation split; %s of %s training sentences were held out for it (by %s, seed %d); "
            "hold_out gives another share, or 0 for none.",
            *(source, f"{held.sentences:,}", f"{len(corpus[TRAIN]):,}", held.by, SEED),
        )
    elif VALIDATION not in corpus and share:
        _log.warning("%s: no validation split, and too few different sentences to hold one out.", source)
    return found, held


def with_validation(corpus: DatasetDict, share: float) -> tuple[DatasetDict, HeldOut | None]:
    """Return a corpus with a validation split, held out from its training split if it has none.

    Whole documents are held out if at least `FEWEST_DOCUMENTS` are known, else sentences, equal ones together. They are
    taken in the order of the SHA-256 of their names or words, so that the choice depends on nothing but the data, and
    changes little when the data grow. What is too large, or has the last example of a label, stays in training.

    Args:
        corpus: The splits in the form that `hf_xorner.corpora.load_corpus` returns.
        share: The share of the training sentences, from 0 (nothing is held out) to 1.

    Returns:
        The splits, and what was held out, or None.
    """
    if VALIDATION in corpus or not share:
        return corpus, None
    train = corpus[TRAIN]
    by, units = _units_of(train)
    chosen = _chosen(units, train, share)
    if not chosen:
        return corpus, None
    held = set(chosen)
    splits = {
        **corpus,
        TRAIN: train.select([row for row in range(len(train)) if row not in held]),
        VALIDATION: train.select(chosen),
    }
    return DatasetDict({name: splits[name] for name in SPLITS if name in splits}), HeldOut(share, by, SEED, len(chosen))


def _units_of(train: Dataset) -> tuple[str, dict[str, list[int]]]:
    """Return the rows that are held out together or not at all, by the name of the document or the words."""
    names = list(train[DOC_ID]) if DOC_ID in train.column_names else []
    by = "document" if len(set(names) - {None}) >= FEWEST_DOCUMENTS else "sentence"
    units: dict[str, list[int]] = {}
    for row, words in enumerate(train[TOKENS]):
        if words:
            key = names[row] if by == "document" and names[row] is not None else "\n".join(words)
            units.setdefault(key, []).append(row)
    return by, units


def _chosen(units: dict[str, list[int]], train: Dataset, share: float) -> list[int]:
    """Return the rows to hold out, in their order."""
    tags = list(train[TAGS])
    left = Counter(tag for row in tags for tag in row)
    room = int(share * sum(map(len, units.values())))
    chosen: list[int] = []
    for key in sorted(units, key=lambda key: sha256(f"{SEED} {key}".encode()).digest()):
        rows = units[key]
        needed = Counter(tag for row in rows for tag in tags[row])
        if len(rows) <= room and all(count < left[tag] for tag, count in needed.items()):
            left -= needed
            room -= len(rows)
            chosen += rows
        if not room:
            break
    return sorted(chosen)
