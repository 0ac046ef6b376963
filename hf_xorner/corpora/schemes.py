"""Tag schemes: recognise the one that a corpus uses, and read it as IOB2.

What a tag becomes in IOB2 depends on the tag and on the one before it, nothing else. So a corpus of any size is
understood from its distinct pairs of neighbouring tags, sentence edges included, and converted by one look-up a token.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError

OUTSIDE = "O"
#: What stands before the first tag of a sentence, and after the last one.
EDGE = ""

Pair = tuple[str, str]

# The prefixes of each scheme, by what they say of a token: it begins an entity that may go on, continues one that may
# go on further, ends one, or is one.
_ROLES = {
    "iob1": {"B": "begin", "I": "inside"},
    "iob2": {"B": "begin", "I": "inside"},
    "bioes": {"B": "begin", "I": "inside", "E": "end", "S": "single"},
    "bilou": {"B": "begin", "I": "inside", "L": "end", "U": "single"},
    "bmes": {"B": "begin", "M": "inside", "E": "end", "S": "single"},
}
_MAY_GO_ON = ("begin", "inside")
_NEED_ENTITY = ("inside", "end")
# Schemes that mark the end of an entity, so that a missing end is a fault.
_MARK_ENDS = ("bioes", "bilou", "bmes")

_IOB = re.compile(r"[BI]-.")
_ANY_CHUNK_SCHEME = re.compile(r"[A-Z]-.")

OPENED = "tags that continued no entity began one"
LEFT_OPEN = "entities without their last tag were closed"


def recognise(pairs: Collection[Pair]) -> str:
    """Return the scheme of a corpus: ``plain``, ``iob1``, ``iob2``, ``bioes``, ``bilou`` or ``bmes``.

    A corpus is chunked when any tag begins with ``B-`` or ``I-``, when all tags look like those of some other chunk
    scheme (one capital, a hyphen, a type), or when there is nothing but ``O``; its prefixes tell the scheme. IOB1 and
    IOB2 share theirs: in IOB1 an entity begins with ``I-``, and ``B-`` stands only where another entity of its type
    ends just before. A corpus that does both is IOB2 with faults.

    Args:
        pairs: The distinct pairs of neighbouring tags of the whole corpus.
    """
    tags = tags_of(pairs)
    inside = tags - {OUTSIDE}
    if not (any(map(_IOB.match, inside)) or all(map(_ANY_CHUNK_SCHEME.match, inside))):
        return "plain"
    prefixes = {tag[0] for tag in inside if tag[1:2] == "-"}
    # With a tag that belongs to no scheme, the one that knows most of the others is what was meant.
    scheme = max(("iob2", "bioes", "bilou", "bmes"), key=lambda name: len(prefixes & set(_ROLES[name])))
    if scheme != "iob2":
        return scheme
    free = {tag[:2] for before, tag in pairs if not _same_type(before, tag)}
    return "iob1" if "I-" in free and "B-" not in free else "iob2"


def tags_of(pairs: Collection[Pair]) -> set[str]:
    """Return the distinct tags of pairs."""
    return {tag for pair in pairs for tag in pair} - {EDGE}


def is_of(scheme: str, tag: str) -> bool:
    """Tell whether a tag belongs to a scheme of chunks."""
    return tag == OUTSIDE or (tag[:1] in _ROLES[scheme] and tag[1:2] == "-" and len(tag) > 2)


def prefixes_of(scheme: str) -> str:
    """Return the prefixes of a scheme in words: ``"B-, I-, E- or S-"``."""
    *others, last = (f"{prefix}-" for prefix in _ROLES[scheme])
    return f"{', '.join(others)} or {last}"


def entity_type(tag: str) -> str:
    """Return the type of a chunk tag, and an empty string for ``O``."""
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


def iob2_of(pair: Pair, scheme: str) -> str:
    """Return what the second tag of a pair is in IOB2; plain tags stay as they are.

    A tag that ought to continue an entity and follows none of its type begins one. For IOB1 this is the definition, for
    the others a repair.
    """
    tag = pair[1]
    if scheme == "plain" or tag == OUTSIDE:
        return tag
    return f"{'I' if _continues(pair, scheme) else 'B'}-{entity_type(tag)}"


def repairs_of(pair: Pair, scheme: str) -> list[str]:
    """Return the kinds of repair that a pair of neighbouring tags takes, edges of sentences included."""
    if scheme in ("plain", "iob1"):
        return []
    before, tag = pair
    found = []
    if _role(tag, scheme) in _NEED_ENTITY and not _continues(pair, scheme):
        found.append(OPENED)
    if scheme in _MARK_ENDS and _role(before, scheme) in _MAY_GO_ON and not _continues(pair, scheme):
        found.append(LEFT_OPEN)
    return found


def _continues(pair: Pair, scheme: str) -> bool:
    before, tag = pair
    return (
        _role(tag, scheme) in _NEED_ENTITY
        and _role(before, scheme) in _MAY_GO_ON
        and entity_type(before) == entity_type(tag)
    )


def _role(tag: str, scheme: str) -> str | None:
    return _ROLES[scheme][tag[0]] if tag not in (EDGE, OUTSIDE) else None


def _same_type(before: str, tag: str) -> bool:
    return before not in (EDGE, OUTSIDE) and entity_type(before) == entity_type(tag)


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

    An ``I-`` that continues no chunk of its type starts one, as `hf_xorner.corpora.load_corpus` repairs it.

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
    """Renumber IOB2 labels as tags of another scheme: the way back from `hf_xorner.corpora.tags.to_iob2`.

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
