"""Tag schemes (IOB1, IOB2, BIOES, BILOU and BMES): recognise, read, repair and write them."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..models.word_ids import (
    BEGIN,
    END,
    INSIDE,
    NO_TYPE,
    OUTSIDE,
    SINGLE,
    Chunks,
    chunks_of,
    continues,
)

Scheme = Literal["plain", "iob1", "iob2", "bioes", "bilou", "bmes"]

#: The tag of a word outside of all entities.
OUTSIDE_TAG = "O"
#: The tag of a word whose tag is unknown, in corpora of chunks, where an entity ends before it and begins after it.
#: `datasets` gives it the number -1.
UNLABELLED_TAG = "?"
#: The tags that have no type.
NO_CHUNK = (OUTSIDE_TAG, UNLABELLED_TAG)
# The meaning of the prefixes of each scheme. Tags that fit several are read in the first that fits: B and I alone are
# IOB2 (only their order tells IOB1), and B, E and S alone mean the same in BIOES and BMES.
_KINDS: dict[Scheme, dict[str, int]] = {
    "iob2": {"B": BEGIN, "I": INSIDE},
    "iob1": {"B": BEGIN, "I": INSIDE},
    "bioes": {"B": BEGIN, "I": INSIDE, "E": END, "S": SINGLE},
    "bilou": {"B": BEGIN, "I": INSIDE, "L": END, "U": SINGLE},
    "bmes": {"B": BEGIN, "M": INSIDE, "E": END, "S": SINGLE},
}
#: The schemes that tags can be written in.
WRITTEN_SCHEMES = ("iob1", "iob2", "bioes", "bilou", "bmes")
#: The name of tags that are ``O`` or a bare type, which are read as IOB1: words of one type side by side are an entity.
IO = "io"
#: Notes on tags that are written in another way than a scheme has them.
BLANKS_AROUND, UNDERSCORES, BARE_TYPES = (
    "tags with blanks around them were read without these",
    "tags with an underscore for the hyphen were read as those of a scheme",
    "tags without prefixes beside O were read as types of entities; pass scheme=plain to read labels of single words",
)


def is_of(scheme: str, tag: str) -> bool:
    """Return whether a tag belongs to a chunk scheme: ``O``, ``?``, or a prefix of it, a hyphen and a type."""
    prefixes = _KINDS[scheme]  # type: ignore[index]
    return tag in NO_CHUNK or (tag[:1] in prefixes and tag[1:2] == "-" and len(tag) > 2)


def is_chunked(labels: Sequence[str]) -> bool:
    """Return whether labels are IOB2: each is ``O``, ``B-type`` or ``I-type``."""
    return UNLABELLED_TAG not in labels and all(is_of("iob2", label) for label in labels)


def prefixes_of(scheme: str) -> str:
    """Return the prefixes of a scheme in words: ``"B-, I-, E- or S-"``."""
    *others, last = (f"{prefix}-" for prefix in _KINDS[scheme])  # type: ignore[index]
    return f"{', '.join(others)} or {last}"


def entity_type(tag: str) -> str:
    """Return the type of a chunk tag; empty for ``O`` and ``?``."""
    return tag[2:]


def with_new_type(tag: str, new_types: Mapping[str, str]) -> str:
    """Return a chunk tag with the new type of its type, or ``O`` or ``?`` in its place; others stay as they are."""
    new = new_types.get(entity_type(tag))
    return tag if new is None else new if new in NO_CHUNK else tag[:2] + new


# --- Pairs of neighbouring tags --------------------------------------------------------------------------------------
# The IOB2 tag of a word depends on its own tag and the one before. So the distinct pairs of a corpus are enough to
# recognise its scheme, to count its repairs, and to convert it with one look-up a token.

#: Stands before the first and after the last tag of a sentence.
EDGE = ""
Pair = tuple[str, str]
OPENED = "tags that continued no entity began one"
LEFT_OPEN = "entities without their last tag were closed"
_IOB = re.compile(r"[BI]-.")
_ANY_CHUNK_SCHEME = re.compile(r"[A-Z]-.")
_UNDERSCORED_IOB, _UNDERSCORED = re.compile(r"[BI]_."), re.compile(r"[BIESLUM]_.")


def tags_of(pairs: Collection[Pair]) -> set[str]:
    """Return the distinct tags of pairs."""
    return {tag for pair in pairs for tag in pair} - {EDGE}


def scheme_of(tags: Collection[str]) -> Scheme:
    """Return the scheme of tags by their prefixes; IOB1 cannot be distinguished from IOB2.

    Tags are chunks if any begins with ``B-`` or ``I-``, if all look like those of some chunk scheme (a capital, a
    hyphen, a type), or if there is nothing but ``O`` and ``?``.

    Args:
        tags: The distinct tags of everything that is read together: a single split may lack those that decide.
    """
    inside = set(tags) - set(NO_CHUNK)
    if not (any(map(_IOB.match, inside)) or all(map(_ANY_CHUNK_SCHEME.match, inside))):
        return "plain"
    prefixes = {tag[0] for tag in inside if tag[1:2] == "-"}
    # Of the schemes, the one with most of the prefixes: a tag that belongs to none may be a fault.
    return max(_KINDS, key=lambda name: len(prefixes & _KINDS[name].keys()))


def recognise(pairs: Collection[Pair]) -> Scheme:
    """Return the scheme of a corpus.

    See `scheme_of`. IOB1 and IOB2 have the same prefixes: in IOB1 an entity begins with ``I-``, and with ``B-`` only
    directly after another entity of its type. A corpus that does both is IOB2 with faults.

    Args:
        pairs: The distinct pairs of neighbouring tags of the whole corpus.
    """
    scheme = scheme_of(tags_of(pairs))
    if scheme != "iob2":
        return scheme
    first = {tag[:2] for before, tag in pairs if before in (EDGE, *NO_CHUNK) or entity_type(before) != tag[2:]}
    return "iob1" if "I-" in first and "B-" not in first else "iob2"


def usual_tags(counts: Mapping[str, int], scheme: str) -> tuple[dict[str, str], list[str]]:
    """Return the usual form of each tag that is written in another way, and notes on what was changed.

    Blanks around a tag are removed, and ``B_PER`` becomes ``B-PER``. If no tag has a prefix and ``O`` is the most
    frequent one, all others are types of entities: ``PER`` becomes the ``I-PER`` of IOB1. No set of parts of speech
    has a more frequent ``O``.

    Args:
        counts: How often each tag occurs in the corpus.
        scheme: The scheme that was given, "auto" or "io".
    """
    form = {tag: tag.strip() for tag in counts}
    notes = [BLANKS_AROUND] if any(tag != new for tag, new in form.items()) else []
    if scheme == "plain":
        return form, notes
    inside = set(form.values()) - set(NO_CHUNK)
    if any(map(_UNDERSCORED_IOB.match, inside)):
        form = {tag: f"{new[0]}-{new[2:]}" if _UNDERSCORED.match(new) else new for tag, new in form.items()}
        notes.append(UNDERSCORES)
        inside = set(form.values()) - set(NO_CHUNK)
    most = max(counts, key=counts.__getitem__, default="")
    bare = inside and not any(map(_ANY_CHUNK_SCHEME.match, inside)) and form[most] == OUTSIDE_TAG
    if scheme == IO or (scheme == "auto" and bare):
        form = {tag: new if new in NO_CHUNK else f"I-{new}" for tag, new in form.items()}
        notes += [BARE_TYPES] if scheme == "auto" else []
    return form, notes


def label_names(tags: Collection[str], plain: bool) -> list[str]:
    """Return the labels of a corpus: sorted plain tags, or ``B-`` and ``I-`` of each type; ``O`` first.

    Args:
        tags: The distinct tags of the corpus.
        plain: Whether they are plain tags; ``O`` is then a label only if it is among them.
    """
    if plain:
        return sorted(tags, key=lambda tag: (tag != OUTSIDE_TAG, tag))
    types = sorted({entity_type(tag) for tag in tags} - {""})
    return [OUTSIDE_TAG, *(f"{prefix}-{name}" for name in types for prefix in "BI")]


def iob2_of(pair: Pair, scheme: Scheme) -> str:
    """Return the second tag of a pair in IOB2; plain tags stay as they are.

    A tag that should continue an entity and follows none of its type begins one. In IOB1 that is the rule, in other
    schemes a repair.
    """
    tag = pair[1]
    if scheme == "plain" or tag in NO_CHUNK:
        return tag
    return f"{'I' if _is_continued(pair, scheme) else 'B'}-{entity_type(tag)}"


def repairs_of(pair: Pair, scheme: Scheme) -> list[str]:
    """Return the kinds of repair (`OPENED`, `LEFT_OPEN`) that a pair needs."""
    if scheme in ("plain", "iob1") or _is_continued(pair, scheme):
        return []
    found = [OPENED] if _kind_of(pair[1], scheme) in (INSIDE, END) else []
    marks_ends = END in _KINDS[scheme].values()
    return [*found, LEFT_OPEN] if marks_ends and _kind_of(pair[0], scheme) in (BEGIN, INSIDE) else found


def _is_continued(pair: Pair, scheme: Scheme) -> bool:
    (kind_before, type_before), (kind, type_) = ((_kind_of(tag, scheme), entity_type(tag)) for tag in pair)
    return continues(kind, type_, kind_before, type_before)


def _kind_of(tag: str, scheme: Scheme) -> int:
    return OUTSIDE if tag in (EDGE, *NO_CHUNK) else _KINDS[scheme][tag[0]]


# --- Numbered tags ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TagSet:
    """The meaning of each tag of a numbering.

    Attributes:
        tags: The tags by number.
        scheme: Their scheme; "plain" if they label single tokens (parts of speech).
        types: The entity types, sorted; empty for plain tags.
        type_of: The index of each tag's type, -1 for ``O`` and ``?``. Shape: (tags,).
        kind_of: The meaning of each tag, whatever its letter: OUTSIDE, BEGIN, INSIDE, END or SINGLE of
            `hf_xorner.models.word_ids`. Shape: (tags,).
    """

    tags: tuple[str, ...]
    scheme: Scheme
    types: tuple[str, ...]
    type_of: NDArray[np.int64]
    kind_of: NDArray[np.int64]

    @property
    def plain(self) -> bool:
        """Return whether the tags label single tokens."""
        return self.scheme == "plain"

    @property
    def unlabelled(self) -> int:
        """Return the number of ``?`` as the tag of words without label, or -1 if there is none."""
        return -1 if self.plain or UNLABELLED_TAG not in self.tags else self.tags.index(UNLABELLED_TAG)

    @classmethod
    def of(cls, tags: Collection[str], scheme: Scheme | Literal["auto"] = "auto") -> "TagSet":
        """Read a numbering of tags.

        Args:
            tags: Distinct tags.
            scheme: Their scheme; "auto" recognises it by their prefixes, see `scheme_of`.

        Raises:
            ValueError: If the scheme is unknown or does not have one of the tags.
        """
        if scheme == "auto":
            scheme = scheme_of(tags)
        if scheme == "plain":
            return cls(tuple(tags), scheme, (), np.full(len(tags), NO_TYPE), np.full(len(tags), OUTSIDE))
        if scheme not in _KINDS:
            raise ValueError(f"unknown scheme {scheme!r}; expected one of auto, plain, {', '.join(_KINDS)}.")
        for tag in tags:
            if not is_of(scheme, tag):
                prefixes = ", ".join(f"{prefix}-" for prefix in _KINDS[scheme])
                raise ValueError(f"the tag {tag!r} is not {scheme}: its tags are O, or a type after {prefixes}.")
        types = tuple(sorted({entity_type(tag) for tag in tags} - {""}))
        number = {"": NO_TYPE, **{name: index for index, name in enumerate(types)}}
        type_of = np.array([number[entity_type(tag)] for tag in tags], dtype=np.int64)
        kind_of = np.array([_kind_of(tag, scheme) for tag in tags], dtype=np.int64)
        return cls(tuple(tags), scheme, types, type_of, kind_of)

    def chunks(self, ids: NDArray[np.int64], lengths: NDArray[np.int64]) -> Chunks:
        """Return the chunks of numbered tags, whose types are those of the tag set.

        Args:
            ids: The number of each word's tag, sentence after sentence. Shape: (words,).
            lengths: The number of words of each sentence. Shape: (sentences,).
        """
        return chunks_of(self.kind_of[ids], self.type_of[ids], lengths)


def from_iob2(tags: Sequence[str], scheme: str) -> list[str]:
    """Convert the IOB2 tags of a sentence to another of `WRITTEN_SCHEMES`.

    An ``I-`` that continues no entity of its type begins one.
    """
    letters = {kind: letter for letter, kind in _KINDS[scheme].items()}  # type: ignore[index]
    converted = []
    for before, tag, after in zip([EDGE, *tags], tags, [*tags[1:], EDGE], strict=False):
        name = entity_type(tag)
        if not name:
            converted.append(tag)
            continue
        continued = tag[0] == "I" and entity_type(before) == name
        followed = after == f"I-{name}"
        kind = (INSIDE if followed else END) if continued else BEGIN if followed else SINGLE
        if scheme == "iob1":
            kind = BEGIN if not continued and entity_type(before) == name else INSIDE
        usual = INSIDE if kind in (INSIDE, END) else BEGIN
        converted.append(f"{letters.get(kind, letters[usual])}-{name}")
    return converted
