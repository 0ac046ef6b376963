"""Tag schemes (IOB1, IOB2, BIOES, BILOU and BMES): recognise, convert and repair them."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..models.word_ids import BEGIN, END, INSIDE, NO_TYPE, OUTSIDE, SINGLE, Chunks, chunks_of, continues

Scheme = Literal["plain", "iob1", "iob2", "bioes", "bilou", "bmes"]

#: The tag of a word outside of all entities.
OUTSIDE_TAG = "O"
#: The tag of a word whose tag is unknown, in corpora of chunks. No entity continues across it. In a `Dataset`, its
#: number is -1.
UNLABELLED_TAG = "?"
#: The tags that have no type.
NO_CHUNK = (OUTSIDE_TAG, UNLABELLED_TAG)
# The meaning of the prefixes of each scheme. Tags that fit several schemes are read in the first one: B and I alone are
# IOB2 (`recognise` tells IOB1 by their order), and B, E and S alone mean the same in BIOES and BMES.
_KINDS: dict[Scheme, dict[str, int]] = {
    "iob2": {"B": BEGIN, "I": INSIDE},
    "iob1": {"B": BEGIN, "I": INSIDE},
    "bioes": {"B": BEGIN, "I": INSIDE, "E": END, "S": SINGLE},
    "bilou": {"B": BEGIN, "I": INSIDE, "L": END, "U": SINGLE},
    "bmes": {"B": BEGIN, "M": INSIDE, "E": END, "S": SINGLE},
}
#: The schemes in which tags can be written.
WRITTEN_SCHEMES = ("iob1", "iob2", "bioes", "bilou", "bmes")
#: The name of tags that are ``O`` or a type without a prefix: neighbouring words of the same type are one entity.
IO = "io"
# Notes on tags with an unusual spelling.
_BLANKS_AROUND, _UNDERSCORES, _BARE_TYPES = (
    "tags with blanks around them were read without these",
    "tags with an underscore in place of the hyphen were read as tags of a scheme",
    "tags without prefixes were read as types of entities, next to O; pass scheme=plain to read labels of single words",
)
# Other spellings of tags, and of O; the groups of a spelling are the prefix and the type.
_SPELLINGS = {
    "usual": re.compile(r"(?P<prefix>[BIESLUM])-(?P<type>.+)"),
    "in lower case": re.compile(r"(?P<prefix>[bieslum])[-_](?P<type>.+)"),
    "prefix last": re.compile(r"(?P<type>.+)[-_](?P<prefix>[BIESLUM])"),
    "joined": re.compile(r"(?P<prefix>[BI])(?P<type>[A-Z]\w+)"),
    "without types": re.compile(r"(?P<prefix>[BIESLUM])(?P<type>)"),
}
_OUTSIDE_SPELLINGS = (OUTSIDE_TAG, "o", "OTHER", "0")
# A type without a prefix next to tags with one.
_LONE_TYPE = re.compile(r"[A-Z][A-Za-z_]+")


def is_of(scheme: str, tag: str) -> bool:
    """Return True if a tag belongs to a chunk scheme: ``O``, ``?``, or one of its prefixes, a hyphen and a type."""
    prefixes = _KINDS[scheme]  # type: ignore[index]
    return tag in NO_CHUNK or (tag[:1] in prefixes and tag[1:2] == "-" and len(tag) > 2)


def is_chunked(labels: Sequence[str]) -> bool:
    """Return True if labels are IOB2: each is ``O``, ``B-type`` or ``I-type``."""
    return UNLABELLED_TAG not in labels and all(is_of("iob2", label) for label in labels)


def prefixes_of(scheme: str) -> str:
    """Return the prefixes of a scheme as text: ``"B-, I-, E- or S-"``."""
    *first, last = (f"{prefix}-" for prefix in _KINDS[scheme])  # type: ignore[index]
    return f"{', '.join(first)} or {last}"


def entity_type(tag: str) -> str:
    """Return the type of a chunk tag; empty for ``O`` and ``?``."""
    return tag[2:]


def with_new_type(tag: str, new_types: Mapping[str, str]) -> str:
    """Return a chunk tag with its new type, or ``O`` or ``?`` if that is the new type; other tags are not changed."""
    new = new_types.get(entity_type(tag))
    return tag if new is None else new if new in NO_CHUNK else tag[:2] + new


# --- Pairs of neighbouring tags --------------------------------------------------------------------------------------
# The IOB2 tag of a word depends on its tag and the previous one. So the distinct pairs of a corpus are enough to
# recognise its scheme, to find its repairs, and to convert it with one look-up per token.

#: Takes the place of a tag before the first and after the last word of a sentence.
EDGE = ""
Pair = tuple[str, str]
OPENED = "tags that continued no entity began one"
LEFT_OPEN = "entities without their last tag were closed"
_IOB = re.compile(r"[BI]-.")
_PREFIXED = re.compile(r"([BIESLUM])[-_](.+)")
_ANY_CHUNK_SCHEME = re.compile(r"[BIESLUM]-.")
_UNDERSCORED_IOB, _UNDERSCORED = re.compile(r"[BI]_."), re.compile(r"[BIESLUM]_.")


def tags_of(pairs: Collection[Pair]) -> set[str]:
    """Return the distinct tags of pairs."""
    return {tag for pair in pairs for tag in pair} - {EDGE}


def scheme_of(tags: Collection[str]) -> Scheme:
    """Return the scheme of tags by their prefixes; IOB1 cannot be distinguished from IOB2.

    Tags are chunks if one begins with ``B-`` or ``I-``, if all have the form of chunk tags (a prefix of a
    scheme, a hyphen, a type), or if there are only ``O`` and ``?``.

    Args:
        tags: The distinct tags of the whole corpus, since a single split may lack some.
    """
    inside = set(tags) - set(NO_CHUNK)
    if not (any(map(_IOB.match, inside)) or all(map(_ANY_CHUNK_SCHEME.match, inside))):
        return "plain"
    prefixes = {tag[0] for tag in inside if tag[1:2] == "-"}
    # The scheme with most of the prefixes; a tag that does not belong to it is probably an error.
    return max(_KINDS, key=lambda name: len(prefixes & _KINDS[name].keys()))


def recognise(pairs: Collection[Pair]) -> Scheme:
    """Return the scheme of a corpus.

    See `scheme_of`. IOB1 and IOB2 have the same prefixes. In IOB1 an entity begins with ``I-``, or with ``B-`` directly
    after another entity of its type. A corpus in which entities begin in both ways is IOB2 with errors.

    Args:
        pairs: The distinct pairs of neighbouring tags of the whole corpus.
    """
    scheme = scheme_of(tags_of(pairs))
    if scheme != "iob2":
        return scheme
    first = {tag[:2] for before, tag in pairs if before in (EDGE, *NO_CHUNK) or entity_type(before) != tag[2:]}
    return "iob1" if "I-" in first and "B-" not in first else "iob2"


def usual_tags(counts: Mapping[str, int], scheme: str) -> tuple[dict[str, str], list[str]]:
    """Return the usual spelling of each tag, and notes on the changes.

    Blanks around a tag are removed, and ``B_PER`` becomes ``B-PER``. If all tags have the same other spelling, such as
    ``PER-B``, ``b-per``, ``BPER`` or ``B``, they are respelt, and ``o``, ``OTHER`` or ``0`` becomes ``O``. If no tag
    has a prefix and ``O`` is the most frequent tag, the others are types of entities: ``PER`` becomes the ``I-PER`` of
    IOB1. In tag sets of parts of speech, ``O`` is never the most frequent. Types in capitals next to tags with
    prefixes become ``I-`` tags as well.

    Args:
        counts: The frequency of each tag in the corpus.
        scheme: The option `scheme`.
    """
    form = {tag: tag.strip() for tag in counts}
    notes = [_BLANKS_AROUND] if any(tag != new for tag, new in form.items()) else []
    if scheme == "plain":
        return form, notes
    if any(map(_UNDERSCORED_IOB.match, form.values())):
        form = {tag: f"{new[0]}-{new[2:]}" if _UNDERSCORED.match(new) else new for tag, new in form.items()}
        notes.append(_UNDERSCORES)
    respelt = _respelt(set(form.values())) if scheme == "auto" else {}
    if changed := [(old, new) for old, new in sorted(respelt.items()) if old != new]:
        examples = ", ".join(f"{old} as {new}" for old, new in changed[:3])
        notes.append(f"tags with another spelling were read as tags of a scheme ({examples})")
    form = {tag: respelt.get(new, new) for tag, new in form.items()}
    inside, most = set(form.values()) - set(NO_CHUNK), max(counts, key=counts.__getitem__, default="")
    prefixed = {tag for tag in inside if _ANY_CHUNK_SCHEME.match(tag)}
    types = inside if scheme == IO or (not prefixed and form.get(most) == OUTSIDE_TAG) else set()
    if types and scheme == "auto":
        notes.append(_BARE_TYPES)
    lone = sorted(filter(_LONE_TYPE.fullmatch, inside - prefixed)) if OUTSIDE_TAG in form.values() else []
    if scheme == "auto" and any(map(_IOB.match, prefixed)) and lone:
        types = set(lone)
        notes.append(f"tags without prefixes ({', '.join(lone[:3])}) were read as types of entities")
    return {tag: f"I-{new}" if new in types else new for tag, new in form.items()}, notes


def _respelt(tags: Collection[str]) -> dict[str, str]:
    """Return the usual spelling of each tag, if all have the same one of `_SPELLINGS`."""
    outside = next((tag for tag in _OUTSIDE_SPELLINGS if tag in tags), "")
    inside = set(tags) - {outside, *NO_CHUNK}
    for name, pattern in _SPELLINGS.items() if outside and inside else ():
        matches = filter(None, map(pattern.fullmatch, inside))
        form = {match[0]: f"{match['prefix'].upper()}-{match['type'] or 'ENTITY'}" for match in matches}
        begun, within = ({tag[2:] for tag in form.values() if tag[0] == prefix} for prefix in "BI")
        # Types in capitals may begin with B or I by chance.
        if len(form) == len(inside) and (name != "joined" or (within and within <= begun)):
            return {**form, outside: OUTSIDE_TAG}
    return {}


def label_names(tags: Collection[str], plain: bool) -> list[str]:
    """Return the labels of a corpus: sorted plain tags, or ``B-`` and ``I-`` of each type; ``O`` first.

    Args:
        tags: The distinct tags of the corpus.
        plain: True for plain tags, among which ``O`` is a label only if it occurs.
    """
    if plain:
        return sorted(tags, key=lambda tag: (tag != OUTSIDE_TAG, tag))
    types = sorted({entity_type(tag) for tag in tags} - {""})
    return [OUTSIDE_TAG, *(f"{prefix}-{name}" for name in types for prefix in "BI")]


def iob2_of(pair: Pair, scheme: Scheme) -> str:
    """Return the second tag of a pair in IOB2; plain tags are not changed.

    A tag that should continue an entity but follows none of its type begins one. This is the rule in IOB1, and a repair
    in other schemes.
    """
    tag = pair[1]
    if scheme == "plain" or tag in NO_CHUNK:
        return tag
    return f"{'I' if _is_continued(pair, scheme) else 'B'}-{entity_type(tag)}"


def iob2_of_one(tag: str) -> str:
    """Return a tag of any scheme as IOB2 without its neighbours; a type without a prefix as ``I-``."""
    if tag == OUTSIDE_TAG:
        return tag
    prefixed = _PREFIXED.fullmatch(tag)
    return f"{'B' if prefixed[1] in 'BSU' else 'I'}-{prefixed[2]}" if prefixed else f"I-{tag}"


def repairs_of(pair: Pair, scheme: Scheme) -> list[str]:
    """Return the kinds of repair (`OPENED`, `LEFT_OPEN`) that a pair needs."""
    if scheme in ("plain", "iob1") or _is_continued(pair, scheme):
        return []
    repairs = [OPENED] if _kind_of(pair[1], scheme) in (INSIDE, END) else []
    marks_ends = END in _KINDS[scheme].values()
    return [*repairs, LEFT_OPEN] if marks_ends and _kind_of(pair[0], scheme) in (BEGIN, INSIDE) else repairs


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
        scheme: Their scheme; "plain" if they label single words (parts of speech).
        types: The entity types, sorted; empty for plain tags.
        type_of: The index of each tag's type, -1 for ``O`` and ``?``. Shape: (tags,).
        kind_of: The kind of each tag: OUTSIDE, BEGIN, INSIDE, END or SINGLE of `hf_xorner.models.word_ids`. Shape:
            (tags,).
    """

    tags: tuple[str, ...]
    scheme: Scheme
    types: tuple[str, ...]
    type_of: NDArray[np.int64]
    kind_of: NDArray[np.int64]

    @property
    def plain(self) -> bool:
        """True if the tags label single words."""
        return self.scheme == "plain"

    @property
    def unlabelled(self) -> int:
        """The number of ``?``, the tag of words without a label, or -1 if it is not among the tags."""
        return -1 if self.plain or UNLABELLED_TAG not in self.tags else self.tags.index(UNLABELLED_TAG)

    @classmethod
    def of(cls, tags: Collection[str], scheme: Scheme | Literal["auto"] = "auto") -> "TagSet":
        """Read a numbering of tags.

        Args:
            tags: Distinct tags.
            scheme: Their scheme; "auto" recognises it by their prefixes, see `scheme_of`.

        Raises:
            ValueError: If the scheme is unknown, or a tag does not belong to it.
        """
        if scheme == "auto":
            scheme = scheme_of(tags)
        if scheme == "plain":
            return cls(tuple(tags), scheme, (), np.full(len(tags), NO_TYPE), np.full(len(tags), OUTSIDE))
        if scheme not in _KINDS:
            raise ValueError(f"unknown scheme {scheme!r}; expected one of auto, plain, {', '.join(_KINDS)}.")
        for tag in tags:
            if not is_of(scheme, tag):
                raise ValueError(f"the tag {tag!r} is not {scheme}: write O, or a type after {prefixes_of(scheme)}.")
        types = tuple(sorted({entity_type(tag) for tag in tags} - {""}))
        number = {"": NO_TYPE, **{name: index for index, name in enumerate(types)}}
        type_of = np.array([number[entity_type(tag)] for tag in tags], dtype=np.int64)
        kind_of = np.array([_kind_of(tag, scheme) for tag in tags], dtype=np.int64)
        return cls(tuple(tags), scheme, types, type_of, kind_of)

    def chunks(self, ids: NDArray[np.int64], lengths: NDArray[np.int64]) -> Chunks:
        """Return the chunks of numbered tags, with numbers of `types`.

        Args:
            ids: The number of each word's tag, sentence after sentence. Shape: (words,).
            lengths: The number of words of each sentence. Shape: (sentences,).
        """
        return chunks_of(self.kind_of[ids], self.type_of[ids], lengths)


def from_iob2(tags: Sequence[str], scheme: str) -> list[str]:
    """Convert the IOB2 tags of a sentence to another of `WRITTEN_SCHEMES`.

    An ``I-`` that does not continue an entity of its type begins one.
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
