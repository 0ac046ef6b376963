"""Tag schemes: recognise the one that a corpus uses, and read it as IOB2.

What a tag becomes in IOB2 depends on the tag and on the one before it, nothing else. So a corpus of any size is
understood from its distinct pairs of neighbouring tags, sentence edges included, and converted by one look-up a token.
"""

import re
from collections.abc import Collection

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
