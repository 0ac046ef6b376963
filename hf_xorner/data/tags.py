"""Tag schemes: tell plain tags from chunk tags, and turn IOB1 into IOB2."""

import re
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

OUTSIDE = "O"

_IOB = re.compile(r"[BI]-.")
_ANY_CHUNK_SCHEME = re.compile(r"[A-Z]-.")


def are_plain(tags: Collection[str]) -> bool:
    """Tell whether a corpus' tags label single tokens (part of speech) rather than chunks.

    A corpus is chunked when any tag begins with ``B-`` or ``I-``, when all tags look like those of some other chunk
    scheme (one capital, a hyphen, a type), or when there is nothing but ``O``.

    Args:
        tags: The distinct tags of the whole corpus: a single split may lack the telling ones.
    """
    inside = [tag for tag in tags if tag != OUTSIDE]
    return not (any(map(_IOB.match, inside)) or all(map(_ANY_CHUNK_SCHEME.match, inside)))


def is_iob(tag: str) -> bool:
    """Tell whether a tag is ``O``, ``B-type`` or ``I-type``."""
    return tag == OUTSIDE or _IOB.match(tag) is not None


def entity_type(tag: str) -> str:
    """Return the type of a ``B-`` or ``I-`` tag, and an empty string for ``O``."""
    return tag[2:]


def label_names(tags: Collection[str], plain: bool) -> list[str]:
    """Return the labels of a corpus in their order: ``O``, then ``B-`` and ``I-`` of each type, types sorted.

    Args:
        tags: The distinct tags of the corpus.
        plain: Whether they are plain tags, which are only sorted (``O`` first, if there is one).
    """
    if plain:
        return sorted(tags, key=lambda tag: (tag != OUTSIDE, tag))
    types = sorted({entity_type(tag) for tag in tags} - {""})
    return [OUTSIDE, *(f"{prefix}-{name}" for name in types for prefix in "BI")]


def to_iob2(
    tag_ids: NDArray[np.int64], lengths: NDArray[np.int64], tags: Sequence[str], labels: Sequence[str]
) -> NDArray[np.int64]:
    """Renumber IOB1 or IOB2 tags as IOB2 labels.

    The two schemes need no telling apart: in both an ``I-`` that does not continue an entity of its type opens one, so
    it becomes ``B-``, and every other tag stays as it is. For IOB2 this is a repair, for IOB1 the definition.

    Args:
        tag_ids: One index into ``tags`` for every token of the corpus, sentence after sentence.
        lengths: The number of tokens of each sentence.
        tags: The tags as the source has them: ``O``, ``B-type`` and ``I-type``.
        labels: The IOB2 labels, as `label_names` returns them.

    Returns:
        One index into ``labels`` for every token.
    """
    if not len(tag_ids):
        return tag_ids
    number = {label: index for index, label in enumerate(labels)}
    as_is = np.array([number[tag] for tag in tags], dtype=np.int64)
    as_begin = np.array([number[_begin(tag)] for tag in tags], dtype=np.int64)
    is_inside = np.array([tag.startswith("I-") for tag in tags])

    begin = as_begin[tag_ids]
    # Neighbours continue one entity when both have the same type; O is its own B- form and so never equals a type's.
    continues = np.zeros(len(tag_ids), dtype=bool)
    continues[1:] = begin[1:] == begin[:-1]
    starts = np.cumsum(lengths) - lengths
    continues[starts[lengths > 0]] = False
    opens = is_inside[tag_ids] & ~continues
    return np.where(opens, begin, as_is[tag_ids])


def _begin(tag: str) -> str:
    return tag if tag == OUTSIDE else f"B-{entity_type(tag)}"
