"""Spans from IOB2 tags, for all sentences at once."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Policy = Literal["strict", "conlleval"]
POLICIES = ("strict", "conlleval")

OUTSIDE = "O"
_PREFIXES = ("B-", "I-")


@dataclass(frozen=True)
class TagSet:
    """What each tag of a numbering says.

    Attributes:
        tags: The tags by number.
        types: The entity types, sorted; empty for plain tags.
        type_of: For each tag the index of its type, -1 for ``O``. Shape: (tags,).
        is_inside: For each tag whether it is an ``I-``. Shape: (tags,).
        plain: Whether the tags label single tokens (part of speech), so that there are no spans.
    """

    tags: tuple[str, ...]
    types: tuple[str, ...]
    type_of: IntArray
    is_inside: BoolArray
    plain: bool

    @classmethod
    def of(cls, tags: Sequence[str]) -> "TagSet":
        """Read a numbering of tags.

        Args:
            tags: Distinct tags. They are plain when none begins with ``B-`` or ``I-`` and one is not ``O``.

        Raises:
            ValueError: If some tags begin with ``B-`` or ``I-`` and another is neither such a tag nor ``O``.
        """
        plain = are_plain(tags)
        if plain:
            return cls(tuple(tags), (), np.full(len(tags), -1), np.zeros(len(tags), dtype=bool), plain)
        for tag in tags:
            if tag != OUTSIDE and not (tag.startswith(_PREFIXES) and len(tag) > 2):
                raise ValueError(f"unknown tag {tag!r}: scores need IOB2, that is O, or a type after B- or I-.")
        types = tuple(sorted({tag[2:] for tag in tags if tag != OUTSIDE}))
        type_of = np.array([-1 if tag == OUTSIDE else types.index(tag[2:]) for tag in tags], dtype=np.int64)
        is_inside = np.array([tag.startswith("I-") for tag in tags], dtype=bool)
        return cls(tuple(tags), types, type_of, is_inside, plain)


def are_plain(tags: Collection[str]) -> bool:
    """Tell whether tags label single tokens: none begins with ``B-`` or ``I-``, and one is not ``O``."""
    return any(tag != OUTSIDE for tag in tags) and not any(tag.startswith(_PREFIXES) for tag in tags)


@dataclass(frozen=True)
class Spans:
    """The spans of a corpus, sorted by sentence and start; those of a sentence never overlap.

    Attributes:
        sentence: The index of the sentence. Shape: (spans,), as the others.
        start: The index of the first word in the sentence.
        end: The index after the last word.
        type: The index of the type in the tag set.
    """

    sentence: IntArray
    start: IntArray
    end: IntArray
    type: IntArray

    def __len__(self) -> int:
        return len(self.sentence)

    def matches(self, gold: "Spans") -> BoolArray:
        """Tell for each span whether gold spans hold the same one: sentence, both ends and type.

        Returns:
            A truth value for each of these spans. Shape: (spans,).
        """
        if not len(self) or not len(gold):
            return np.zeros(len(self), dtype=bool)
        # A start belongs to one span only, so sentence and start find the one candidate.
        stride = int(max(self.start.max(), gold.start.max())) + 1
        keys, gold_keys = self.sentence * stride + self.start, gold.sentence * stride + gold.start
        at = np.minimum(np.searchsorted(gold_keys, keys), len(gold) - 1)
        return (gold_keys[at] == keys) & (gold.end[at] == self.end) & (gold.type[at] == self.type)


def spans_of_ids(ids: IntArray, lengths: IntArray, tag_set: TagSet, policy: Policy) -> Spans:
    """Return the spans of numbered tags.

    A span is ``B-`` and all ``I-`` of its type that follow at once. The policies differ on an ``I-`` that continues no
    entity of its type: "conlleval" repairs it, so that it starts an entity, and "strict" drops it along with the ``I-``
    of its type that follow.

    Args:
        ids: One number for each token, sentence after sentence. Shape: (tokens,).
        lengths: The number of tokens of each sentence. Shape: (sentences,).
        tag_set: What the numbers say.
        policy: "strict" or "conlleval".
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}; expected one of {', '.join(POLICIES)}.")
    types, is_inside = tag_set.type_of[ids], tag_set.is_inside[ids]
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    # Whether a token continues the run of the token before it; a run is a span, well-formed or not.
    continues = np.zeros(len(ids), dtype=bool)
    continues[1:] = is_inside[1:] & (types[1:] == types[:-1]) & (sentence[1:] == sentence[:-1])
    in_run = types >= 0
    first = np.flatnonzero(in_run & ~continues)
    last = np.flatnonzero(in_run & ~np.append(continues[1:], False))
    if policy == "strict":
        well_formed = ~is_inside[first]
        first, last = first[well_formed], last[well_formed]
    offset = (np.cumsum(lengths) - lengths)[sentence[first]]
    return Spans(sentence[first], first - offset, last + 1 - offset, types[first])


def spans_of_tags(sentences: Sequence[Sequence[str]], policy: Policy, tag_set: TagSet | None = None) -> Spans:
    """Return the spans of sentences of IOB2 tags; see `spans_of_ids`.

    Args:
        sentences: The tags of each sentence.
        policy: "strict" or "conlleval".
        tag_set: A numbering of the types to share with other sentences; that of the tags themselves if None.
    """
    tag_set = tag_set or TagSet.of(sorted(set(chain.from_iterable(sentences))))
    return spans_of_ids(number_tags(sentences, tag_set), lengths_of(sentences), tag_set, policy)


def number_tags(sentences: Sequence[Sequence[str]], tag_set: TagSet) -> IntArray:
    """Return the numbers of all tags, sentence after sentence. Shape: (tokens,)."""
    number = {tag: index for index, tag in enumerate(tag_set.tags)}
    return np.fromiter(map(number.__getitem__, chain.from_iterable(sentences)), dtype=np.int64)


def lengths_of(sentences: Sequence[Sequence[str]]) -> IntArray:
    """Return the number of tags of each sentence. Shape: (sentences,)."""
    return np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
