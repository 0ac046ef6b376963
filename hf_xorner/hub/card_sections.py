"""What a user has changed in a card by hand stays when the card is written again.

A generated section stands between two comments, the first of which has a digest of it; a comment below the header has
one of every generated key. What is no longer as its digest says was changed by hand.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from markupsafe import Markup

_SECTION = re.compile(
    r"^<!-- hf_xorner:begin (?P<name>\w+) (?P<digest>\w+) -->\n(?P<text>.*?)^<!-- hf_xorner:end (?P=name) -->$",
    re.MULTILINE | re.DOTALL,
)
_HEADER = re.compile(r"^<!-- hf_xorner:header (?P<keys>.*) -->\n", re.MULTILINE)
#: So many levels deep may the header be nested, and by these tokens of YAML is it.
_DEEPEST = 50
_OPENING = (
    *(yaml.BlockSequenceStartToken, yaml.BlockMappingStartToken),
    *(yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken),
)
_CLOSING = (yaml.BlockEndToken, yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)
_MARK = re.compile(r"^(?=[ \t]*<!-- hf_xorner:)", re.MULTILINE)


def section(text: str, name: str) -> Markup:
    """Put a section of the card between its marks."""
    text = f"{text.strip()}\n"
    return Markup(f"<!-- hf_xorner:begin {name} {_digest(text)} -->\n{text}<!-- hf_xorner:end {name} -->\n")


def without_marks(text: str) -> str:
    """Lines of which none can be taken for a mark."""
    return _MARK.sub("# ", text)


def card_of(header: Mapping[str, Any], body: str) -> str:
    """Put a card together from its metadata and its sections."""
    header = yaml.safe_load(_dump(header))  # digests are of what will be read
    marks = " ".join(f"{key}={_digest(value)}" for key, value in header.items())
    return f"---\n{_dump(header)}---\n<!-- hf_xorner:header {marks} -->\n\n{body.strip()}\n"


def renewed(old: str, new: str) -> str:
    """Bring a card up to date.

    Sections and keys of the header that are as they were written are renewed; those that were changed stay, and so does
    everything else. A key that was removed stays away. A section that was removed comes back: it stays away when its
    marks are left with nothing between them. Comments inside the header are lost.

    Args:
        old: The card that is there.
        new: The same as it is written now.

    Raises:
        ValueError: If the header or the marks of sections are not in order.
    """
    old_header, remembered, body = _parts(old)
    header, digests, new_body = _parts(new)
    changed = {key: value for key, value in old_header.items() if remembered.get(key) != _digest(value)}
    removed = remembered.keys() - old_header.keys()
    header = {key: value for key, value in (header | changed).items() if key not in removed}
    marks = " ".join(f"{key}={digest}" for key, digest in digests.items())
    return f"---\n{_dump(header)}---\n<!-- hf_xorner:header {marks} -->\n{_sections_renewed(body, new_body)}"


def _sections_renewed(old: str, new: str) -> str:
    """Renew the sections of a body that were not changed, and add those that it lacks where they belong."""
    sections = {found["name"]: found[0] for found in _SECTION.finditer(new)}
    there = [found["name"] for found in _SECTION.finditer(old)]
    if len(_MARK.findall(old)) != 2 * len(there):
        raise ValueError("one of the marks <!-- hf_xorner:begin …, <!-- hf_xorner:end … has lost the other")
    body = _SECTION.sub(
        lambda found: sections.get(found["name"], "") if _digest(found["text"]) == found["digest"] else found[0], old
    )
    before = ""
    for name, text in sections.items():
        if name not in there:
            head, end, tail = body.partition(before) if before else (body.rstrip("\n"), "", "\n")
            body = f"{head}{end}\n\n{text}{tail}"
        before = f"<!-- hf_xorner:end {name} -->"
    return body


def model_card(text: str) -> ModelCard:
    """Return a card as the client of the Hub reads it.

    Raises:
        ValueError: If its header cannot be read.
    """
    _header_of(text)
    try:
        card = ModelCard(text)
        card.data.to_dict()
        return card
    # The client passes the keys of the header on as arguments, and looks for more below some of them.
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None


def _header_of(card: str) -> dict[str, Any]:
    """Read the header of a card: YAML of keys and values without tags, and without aliases, by which it may explode."""
    found = REGEX_YAML_BLOCK.search(card)
    depth = 0
    try:
        for token in yaml.scan(found[2] if found else ""):
            depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
            if isinstance(token, (yaml.AliasToken, yaml.TagToken)):
                line = token.start_mark.line + 2
                raise ValueError(f"line {line} has an alias or a tag of YAML; write the value out")
            if depth > _DEEPEST:
                raise ValueError(f"the header is nested more than {_DEEPEST} levels deep")
        header = (yaml.safe_load(found[2]) if found else None) or {}
    except (yaml.YAMLError, OverflowError):
        header = None
    if not isinstance(header, dict) or not all(isinstance(key, str) for key in header):
        raise ValueError("the header between the lines --- is not YAML of keys and values")
    return header


def _parts(card: str) -> tuple[dict[str, Any], dict[str, str], str]:
    """The header of a card, the digests of what was generated of it, and its body."""
    header = _header_of(card)
    found = REGEX_YAML_BLOCK.search(card)
    body = card[found.end() :] if found else card
    mark = _HEADER.search(body)
    keys = dict(pair.rpartition("=")[::2] for pair in mark["keys"].split()) if mark else {}
    return header, keys, _HEADER.sub("", body)


def _dump(header: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(header), sort_keys=False, allow_unicode=True, width=float("inf"))


def _digest(value: Any) -> str:
    text = value if isinstance(value, str) else yaml.safe_dump(value)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
