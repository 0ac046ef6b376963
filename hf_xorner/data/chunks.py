"""From IOB2 labels to the chunks they mean, and to the tags of other schemes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .schemes import OUTSIDE

BRACKETS = "brackets"
# What a scheme calls a word outside, and for each type the only word of a chunk, the first, those between, the last,
# and the first of a chunk that follows one of its own type at once (or that is its only word), which IOB1 sets apart.
_FORMS = {
    "iob1": (OUTSIDE, "I-{}", "I-{}", "I-{}", "I-{}", "B-{}"),
    "iob2": (OUTSIDE, "B-{}", "B-{}", "I-{}", "I-{}", None),
    "bioes": (OUTSIDE, "S-{}", "B-{}", "I-{}", "E-{}", None),
    "bilou": (OUTSIDE, "U-{}", "B-{}", "I-{}", "L-{}", None),
    "bmes": (OUTSIDE, "S-{}", "B-{}", "M-{}", "E-{}", None),
    BRACKETS: ("*", "({})", "({}*", "*", "*)", None),
}
_SINGLE, _FIRST, _BETWEEN, _LAST, _NEIGHBOUR = range(5)
WRITTEN_SCHEMES = tuple(scheme for scheme in _FORMS if scheme != BRACKETS)


class Chunks(NamedTuple):
    """The chunks of some sentences, in order.

    Attributes:
        first: The index of the first word among all words. Shape: (chunks,), as the others.
        end: The index after the last word.
        type: The index of the type among the types.
    """

    first: NDArray[np.int64]
    end: NDArray[np.int64]
    type: NDArray[np.int64]


def is_chunked(labels: Sequence[str]) -> bool:
    """Tell whether labels are IOB2 rather than plain: each is ``O``, ``B-type`` or ``I-type``."""
    return all(label == OUTSIDE or (label[:2] in ("B-", "I-") and len(label) > 2) for label in labels)


def types_of(labels: Sequence[str]) -> list[str]:
    """Return the types of IOB2 labels in the order in which they come."""
    return list(dict.fromkeys(label[2:] for label in labels if label != OUTSIDE))


def chunks_of(ids: NDArray[np.int64], lengths: NDArray[np.int64], labels: Sequence[str]) -> Chunks:
    """Return the chunks that IOB2 labels mean.

    An ``I-`` that continues no chunk of its type starts one, as `hf_xorner.data.load_corpus` repairs it.

    Args:
        ids: One index into ``labels`` for every word, sentence after sentence. Shape: (words,).
        lengths: The number of words of each sentence. Shape: (sentences,).
        labels: The IOB2 labels.

    Returns:
        The chunks, whose types are indices into ``types_of(labels)``.
    """
    types, continues = _types_and_runs(ids, lengths, labels)
    first = np.flatnonzero((types >= 0) & ~continues)
    last = np.flatnonzero((types >= 0) & ~_followed(continues))
    return Chunks(first, last + 1, types[first])


def from_iob2(
    ids: NDArray[np.int64], lengths: NDArray[np.int64], labels: Sequence[str], scheme: str
) -> tuple[NDArray[np.int64], list[str]]:
    """Renumber IOB2 labels as tags of another scheme: the way back from `hf_xorner.data.tags.to_iob2`.

    An ``I-`` that continues no chunk of its type is taken to start one. Plain labels stay as they are.

    Args:
        ids: One index into ``labels`` for every word, sentence after sentence. Shape: (words,).
        lengths: The number of words of each sentence. Shape: (sentences,).
        labels: The labels: IOB2 or plain.
        scheme: "iob1", "iob2", "bioes", "bilou" or "bmes"; or "brackets" for the bracket notation of CoNLL-2012.

    Returns:
        One index into the tags for every word, and the tags.

    Raises:
        DataError: If the scheme is unknown.
    """
    if scheme not in _FORMS:
        raise DataError(f"scheme={scheme!r} cannot be written; choose one of {', '.join(WRITTEN_SCHEMES)}.")
    if not is_chunked(labels):
        return ids, list(labels)
    outside, *forms = _FORMS[scheme]
    types, continues = _types_and_runs(ids, lengths, labels)
    followed = _followed(continues)
    position = np.where(continues, np.where(followed, _BETWEEN, _LAST), np.where(followed, _FIRST, _SINGLE))
    if forms[_NEIGHBOUR] is not None:
        position[_starts_beside_its_type(types, lengths) & ~continues] = _NEIGHBOUR
    tags = [outside, *(str(form or outside).format(name) for name in types_of(labels) for form in forms)]
    return np.where(types < 0, 0, 1 + types * len(forms) + position), tags


def _types_and_runs(
    ids: NDArray[np.int64], lengths: NDArray[np.int64], labels: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the type of each word, -1 outside, and whether the word continues the chunk of the word before."""
    number = {name: index for index, name in enumerate(types_of(labels))}
    type_of = np.array([number.get(label[2:], -1) if label != OUTSIDE else -1 for label in labels], dtype=np.int64)
    is_inside = np.array([label.startswith("I-") for label in labels], dtype=bool)
    types = type_of[ids]
    return types, is_inside[ids] & _starts_beside_its_type(types, lengths)


def _starts_beside_its_type(types: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell of each word whether the word before it, in its sentence, is of the same type."""
    beside = np.zeros(len(types), dtype=bool)
    beside[1:] = (types[1:] == types[:-1]) & (types[1:] >= 0)
    starts = np.cumsum(lengths) - lengths
    beside[starts[lengths > 0]] = False
    return beside


def _followed(continues: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell of each word whether the next one continues its chunk."""
    return np.append(continues[1:], False) if len(continues) else continues
