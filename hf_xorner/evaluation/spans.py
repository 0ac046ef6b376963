"""Spans of tags in every chunk scheme, for all sentences at once."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..models.tags import BEGIN, END, INSIDE, OUTSIDE, SINGLE

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Policy = Literal["strict", "conlleval"]
Scheme = Literal["plain", "iob1", "iob2", "bioes", "bilou", "bmes"]
POLICIES: tuple[Policy, ...] = ("strict", "conlleval")

_NO_TYPE = -1

# What the prefixes of each chunk scheme mean. Tags that fit several schemes are read in the first that fits: B and I
# alone are IOB2 (IOB1 looks the same and has to be asked for), and B, E and S alone mean the same in BIOES and BMES.
_KINDS: dict[Scheme, dict[str, int]] = {
    "iob2": {"B": BEGIN, "I": INSIDE},
    "iob1": {"B": BEGIN, "I": INSIDE},
    "bioes": {"B": BEGIN, "I": INSIDE, "E": END, "S": SINGLE},
    "bilou": {"B": BEGIN, "I": INSIDE, "L": END, "U": SINGLE},
    "bmes": {"B": BEGIN, "M": INSIDE, "E": END, "S": SINGLE},
}
_SCHEMES_IN_WORDS = "IOB1 or IOB2 (B- I-), BIOES (B- I- E- S-), BILOU (B- I- L- U-) or BMES (B- M- E- S-)"


@dataclass(frozen=True, eq=False)
class TagSet:
    """What each tag of a numbering says.

    Attributes:
        tags: The tags by number.
        scheme: How they mark spans: "iob1", "iob2", "bioes", "bilou", "bmes"; "plain" where they label single tokens
            (part of speech), so that there are no spans.
        types: The entity types, sorted; empty for plain tags.
        type_of: For each tag the index of its type, -1 for ``O``. Shape: (tags,).
        kind_of: For each tag its meaning by the numbers of `hf_xorner.models.tags`: OUTSIDE, BEGIN, INSIDE, END or
            SINGLE, whatever letter the scheme has for it. Shape: (tags,).
    """

    tags: tuple[str, ...]
    scheme: Scheme
    types: tuple[str, ...]
    type_of: IntArray
    kind_of: IntArray

    @property
    def plain(self) -> bool:
        """Whether the tags label single tokens."""
        return self.scheme == "plain"

    @classmethod
    def of(cls, tags: Collection[str], scheme: Scheme | Literal["auto"] = "auto") -> "TagSet":
        """Read a numbering of tags.

        Args:
            tags: Distinct tags.
            scheme: How they mark spans; "auto" goes by their prefixes, see `scheme_of`. IOB1 cannot be told from IOB2
                and has to be asked for.

        Raises:
            ValueError: If the scheme has no such tag, or is unknown.
        """
        if scheme == "auto":
            scheme = scheme_of(tags)
        if scheme == "plain":
            return cls(tuple(tags), scheme, (), np.full(len(tags), _NO_TYPE), np.full(len(tags), OUTSIDE))
        if scheme not in _KINDS:
            raise ValueError(f"unknown scheme {scheme!r}; expected one of auto, plain, {', '.join(_KINDS)}.")
        kinds = _KINDS[scheme]
        for tag in tags:
            if tag != "O" and not (_is_chunk_tag(tag) and tag[0] in kinds):
                prefixes = ", ".join(f"{prefix}-" for prefix in kinds)
                raise ValueError(f"the tag {tag!r} is not {scheme}: its tags are O, or a type after {prefixes}.")
        types = tuple(sorted({tag[2:] for tag in tags if tag != "O"}))
        number = {name: index for index, name in enumerate(types)}
        type_of = np.array([_NO_TYPE if tag == "O" else number[tag[2:]] for tag in tags], dtype=np.int64)
        kind_of = np.array([OUTSIDE if tag == "O" else kinds[tag[0]] for tag in tags], dtype=np.int64)
        return cls(tuple(tags), scheme, types, type_of, kind_of)


def scheme_of(tags: Collection[str]) -> Scheme:
    """Recognise the scheme of tags by their prefixes.

    B- and I- make "iob2", as does nothing but ``O``; an E- or S- makes "bioes", an L- or U- "bilou", an M- "bmes". Tags
    are "plain" when none begins with ``B-`` or ``I-``, and not all look like the tags of some chunk scheme.

    Args:
        tags: The distinct tags of everything that is read together: a single split may lack the telling ones.

    Raises:
        ValueError: If no one scheme has all the tags.
    """
    inside = [tag for tag in tags if tag != "O"]
    unknown = [tag for tag in inside if not _is_chunk_tag(tag)]
    if unknown:
        if not any(tag.startswith(("B-", "I-")) for tag in inside):
            return "plain"
        raise ValueError(f"unknown tag {unknown[0]!r}: scores need O, or a type after a prefix of {_SCHEMES_IN_WORDS}.")
    prefixes = {tag[0] for tag in inside}
    for scheme, kinds in _KINDS.items():
        if prefixes <= kinds.keys():
            return scheme
    raise ValueError(
        f"the tags have the prefixes {', '.join(f'{prefix}-' for prefix in sorted(prefixes))}, which belong to no one "
        f"scheme; give tags in {_SCHEMES_IN_WORDS}."
    )


def _is_chunk_tag(tag: str) -> bool:
    return tag[:1] in {prefix for kinds in _KINDS.values() for prefix in kinds} and tag[1:2] == "-" and len(tag) > 2


@dataclass(frozen=True, eq=False)
class Spans:
    """The spans of a corpus, sorted by their start; they never overlap, and never cross a sentence.

    Attributes:
        start: The index of the first word, counted over all sentences in a row. Shape: (spans,), as the others.
        end: The index after the last word.
        type: The index of the type in the tag set.
    """

    start: IntArray
    end: IntArray
    type: IntArray

    def __len__(self) -> int:
        return len(self.start)

    def any_word(self, flag: BoolArray) -> BoolArray:
        """Return for each span whether any of its words is flagged; `flag` has the shape (tokens,)."""
        flagged_before = np.append(0, np.cumsum(flag))
        return flagged_before[self.end] > flagged_before[self.start]


def spans_of_ids(ids: IntArray, lengths: IntArray, tag_set: TagSet, policy: Policy) -> Spans:
    """Return the spans of numbered tags.

    Tags fall into runs: an "inside" or "end" tag continues the tag before it if that one has the same type and is
    "begin" or "inside"; every other tag but ``O`` opens a run. The policies differ on runs that the scheme does not
    allow. "conlleval" repairs them: every run is a span, as in seqeval's default mode. For B- and I- this is the rule
    of conlleval.pl, which does not support S-, and joins an E- to the B- after it. "strict" drops them (li2020): only
    B I* counts in IOB2, only B I* E and S in BIOES, BILOU and BMES. IOB1 allows every run: both policies agree there.

    Args:
        ids: One number for each token, sentence after sentence. Shape: (tokens,).
        lengths: The number of tokens of each sentence. Shape: (sentences,).
        tag_set: The meaning of the numbers.
        policy: "strict" or "conlleval".
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}; expected one of {', '.join(POLICIES)}.")
    types, kinds = tag_set.type_of[ids], tag_set.kind_of[ids]
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    stays_open = (kinds == BEGIN) | (kinds == INSIDE)
    continues = (kinds == INSIDE) | (kinds == END)
    continues[:1] = False
    continues[1:] &= stays_open[:-1] & (types[1:] == types[:-1]) & (sentence[1:] == sentence[:-1])
    in_run = types != _NO_TYPE
    first = np.flatnonzero(in_run & ~continues)
    last = np.flatnonzero(in_run & ~np.append(continues[1:], False))
    if policy == "strict":
        well_formed = _well_formed(kinds[first], kinds[last], tag_set.scheme)
        first, last = first[well_formed], last[well_formed]
    return Spans(first, last + 1, types[first])


def _well_formed(first: IntArray, last: IntArray, scheme: Scheme) -> BoolArray:
    """Return which runs a scheme allows, by the kinds of their first and last tags; all between are INSIDE."""
    if scheme == "iob1":
        return np.ones(len(first), dtype=bool)
    if scheme == "iob2":
        return first == BEGIN
    return (first == SINGLE) | ((first == BEGIN) & (last == END))
