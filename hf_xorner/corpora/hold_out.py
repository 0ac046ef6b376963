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
#: Held-out sentences in the folder of a model, as examples for `hf-xorner card`; not published.
EXAMPLES_FILE = "examples.txt"
#: The seed of the order in which documents or sentences are held out. Changing it changes the held-out sentences.
SEED = 13
#: With fewer documents than this, single sentences are held out.
FEWEST_DOCUMENTS = 10


class HeldOut(NamedTuple):
    """A record of the sentences that were held out.

    Attributes:
        share: The requested share of the training sentences.
        by: "document" or "sentence".
        seed: See `SEED`.
        sentences: The number of sentences that were held out.
    """

    share: float
    by: str
    seed: int
    sentences: int


def hold_out(corpus: DatasetDict, share: float, source: str) -> tuple[DatasetDict, HeldOut | None]:
    """Call `with_validation`, and log the result.

    Args:
        corpus: See `with_validation`.
        share: See `with_validation`.
        source: The name of the corpus, for the log.
    """
    splits, held_out = with_validation(corpus, share)
    if held_out is not None:
        _log.warning(
            "%s: no validation split; %s of %s training sentences were held out for it (by %s, seed %d); "
            "hold_out gives another share, or 0 for none.",
            *(source, f"{held_out.sentences:,}", f"{len(corpus[TRAIN]):,}", held_out.by, SEED),
        )
    elif VALIDATION not in corpus and share:
        _log.warning("%s: no validation split, and too few different sentences to hold one out.", source)
    return splits, held_out


def with_validation(corpus: DatasetDict, share: float) -> tuple[DatasetDict, HeldOut | None]:
    """Return a corpus with a validation split, held out from its training split if it has none.

    Whole documents are held out if there are at least `FEWEST_DOCUMENTS`, else sentences, with all copies of a
    sentence. They are chosen in the order of the SHA-256 of their names or words, so that the choice depends only on
    the data and changes little when the data grow. A document or sentence that is too large, or has the last example of
    a label, stays in the training split.

    Args:
        corpus: The splits in the form that `hf_xorner.corpora.load_corpus` returns.
        share: The share of the training sentences, from 0 (nothing is held out) to 1.

    Returns:
        The splits, and a record of the held-out sentences, or None if there are none.
    """
    if VALIDATION in corpus or not share:
        return corpus, None
    train = corpus[TRAIN]
    by, units = _units_of(train)
    chosen = _chosen(units, train, share)
    if not chosen:
        return corpus, None
    held_out = set(chosen)
    splits = {
        **corpus,
        TRAIN: train.select([row for row in range(len(train)) if row not in held_out]),
        VALIDATION: train.select(chosen),
    }
    return DatasetDict({name: splits[name] for name in SPLITS if name in splits}), HeldOut(share, by, SEED, len(chosen))


def _units_of(train: Dataset) -> tuple[str, dict[str, list[int]]]:
    """Group rows that must stay together, by the name of their document or by their words."""
    names = list(train[DOC_ID]) if DOC_ID in train.column_names else []
    by = "document" if len(set(names) - {None}) >= FEWEST_DOCUMENTS else "sentence"
    units: dict[str, list[int]] = {}
    for row, words in enumerate(train[TOKENS]):
        if words:
            key = names[row] if by == "document" and names[row] is not None else "\n".join(words)
            units.setdefault(key, []).append(row)
    return by, units


def _chosen(units: dict[str, list[int]], train: Dataset, share: float) -> list[int]:
    """Return the rows to hold out, sorted."""
    tags = list(train[TAGS])
    remaining = Counter(tag for row in tags for tag in row)
    room = int(share * sum(map(len, units.values())))
    chosen: list[int] = []
    for key in sorted(units, key=lambda key: sha256(f"{SEED} {key}".encode()).digest()):
        rows = units[key]
        needed = Counter(tag for row in rows for tag in tags[row])
        if len(rows) <= room and all(count < remaining[tag] for tag, count in needed.items()):
            remaining -= needed
            room -= len(rows)
            chosen += rows
        if not room:
            break
    return sorted(chosen)
