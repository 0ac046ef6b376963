"""Conversion between public labels (IOB2 or plain) and the inner tags (BIOES or IOB2) of decoders."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .word_ids import BEGIN, END, INSIDE, NO_TYPE, OUTSIDE, SINGLE, continues

#: Label of words without label, ignored by the loss and the scores as in PyTorch.
IGNORED = -100


class Tables(NamedTuple):
    """K inner tags and L public labels as tensors on one device."""

    kind: Tensor  # (K,) the kind (O, B, I, E or S) of an inner tag
    entity_type: Tensor  # (K,) its type
    public: Tensor  # (K,) its public label
    members: Tensor  # (L, 2) the inner tags of a public label; a single one is repeated
    public_kind: Tensor  # (L,) the kind (O, B or I) of a public label
    public_type: Tensor  # (L,) its type
    inner: Tensor  # (5, types) inner tag of a kind and a type
    begin_label: Tensor  # (types,) public B- label
    inside_label: Tensor  # (types,) public I- label; the B- label where there is none
    continued: Tensor  # (K, K) true if the column's tag, after the row's tag, continues its chunk
    whole: Tensor  # (K, K) true if a chunk may begin with the row's tag and end with the column's
    label_of: Tensor  # (K, K) public label of the column's tag after the row's, as conlleval reads S as B and E as I
    inner_of: Tensor  # (2, 2, L) inner tag of a public label; axes: continues a chunk or not, is continued or not
    barred_transitions: Tensor  # (K, K) forbidden transitions from row to column
    barred_start: Tensor  # (K,) tags that cannot start a sentence
    barred_end: Tensor  # (K,) tags that cannot end one


class TagSpace:
    """Translates between the public labels of a config and the inner tags of its model.

    Public IOB2 labels become inner BIOES tags: O, then B, I, E, S of each type in the order of the types' first
    labels. A type without an I- label has only entities of one word, and S alone. The scheme "iob2" has only B and I,
    and an entity may end anywhere. Labels without B- or I- prefixes, such as parts of speech, are plain: inner and
    public tags are the same.
    """

    def __init__(self, labels: list[str], scheme: str = "bioes") -> None:
        self.labels, self.scheme = labels, scheme
        if len(set(labels)) < len(labels):
            raise ValueError(f"The labels {labels} contain a label twice; give every id of id2label its own name.")
        self.chunked = any(label.startswith(("B-", "I-")) for label in labels)
        self._lists = _chunk_tables(labels, scheme) if self.chunked else _plain_tables(labels)
        self._on: dict[torch.device, Tables] = {}

    def rename(self, labels: list[str]) -> None:
        """Rename the labels.

        Raises:
            ValueError: If the new labels have other tags, or an old label has a new position.
        """
        moved = any(label in self.labels and self.labels.index(label) != at for at, label in enumerate(labels))
        renamed = TagSpace(labels, self.scheme)
        if moved or (renamed.chunked, renamed._lists) != (self.chunked, self._lists):
            raise ValueError(f"{labels} are not new names of the labels {self.labels}, in the same order.")
        self.labels = labels

    def __reduce__(self) -> Any:
        """Pickle without the tables of devices, so that the fingerprint of a tagger in `Dataset.map` stays the same."""
        return TagSpace, (self.labels, self.scheme)

    def on(self, device: torch.device) -> Tables:
        """The tables on a device.

        They are not buffers: buffers would lose their values on the meta device, in `to_empty` and in loading, and
        would be on one device when a model is spread over several.
        """
        if torch.compiler.is_compiling():
            return self._tables(device)
        if device not in self._on:
            with torch.inference_mode(False):  # for use in training
                self._on[device] = self._tables(device)
        return self._on[device]

    def _tables(self, device: torch.device) -> Tables:
        tables = {name: torch.tensor(values, device=device) for name, values in self._lists.items()}
        kind, entity_type = tables["kind"], tables["entity_type"]
        before, entity_type_before = kind.unsqueeze(1), entity_type.unsqueeze(1)
        begun, goes_on = (kind == BEGIN) | (kind == INSIDE), (kind == INSIDE) | (kind == END)
        marks_ends = self.scheme == "bioes"
        stays_open, ends = begun & marks_ends, kind == END if marks_ends else begun
        continued = continues(kind, entity_type, before, entity_type_before)
        joined = goes_on & (entity_type == entity_type_before)
        owner = tables["public"][:1].where(kind == OUTSIDE, tables["begin_label"][entity_type])
        kinds, types = torch.tensor([[SINGLE, BEGIN], [END, INSIDE]], device=device), tables["public_type"]
        tables |= {
            "label_of": torch.where(joined, tables["inside_label"][entity_type], owner),
            "inner_of": tables["inner"][kinds][..., types].masked_fill(types == NO_TYPE, 0),
            "continued": continued,
            "whole": ((before == BEGIN) & ends) | ((before == SINGLE) & (kind == SINGLE)),
            "barred_transitions": (stays_open.unsqueeze(1) | goes_on) & ~continued,
            "barred_start": goes_on,
            "barred_end": stays_open,
        }
        return Tables(**tables)

    @property
    def num_inner(self) -> int:
        """Number of inner tags."""
        return len(self._lists["kind"])

    @property
    def num_types(self) -> int:
        """Number of types of chunks; each plain label is a type."""
        return len(self._lists["begin_label"])

    @property
    def outside(self) -> tuple[int, int]:
        """The inner tag and the public label of words outside of chunks."""
        return 0, self._lists["public"][0]

    @property
    def inner_tags(self) -> list[str]:
        """The inner tags' names in the order of their ids."""
        if not self.chunked:
            return list(self.labels)
        kinds, types, public = (self._lists[name] for name in ("kind", "entity_type", "public"))
        return [
            "O" if type_ == NO_TYPE else "OBIES"[kind] + self.labels[label][1:]
            for kind, type_, label in zip(kinds, types, public, strict=True)
        ]

    def to_inner(self, labels: Tensor) -> Tensor:
        """Public labels (B, T) as inner tags, IGNORED where they are IGNORED.

        An I- that continues nothing starts an entity, as conlleval reads it.
        """
        if not self.chunked:
            return labels
        tables, known = self.on(labels.device), labels != IGNORED
        labels = torch.where(known, labels, self.outside[1])
        kind, type_ = tables.public_kind[labels], tables.public_type[labels]
        continued = continues(kind, type_, _shifted(kind, 1, OUTSIDE), _shifted(type_, 1, NO_TYPE))
        followed = _shifted(continued, -1, False)
        return torch.where(known, tables.inner_of[continued.long(), followed.long(), labels], IGNORED)

    def to_public_path(self, path: Tensor, mask: Tensor, repair: bool = False) -> Tensor:
        """Inner tags (B, T) of sentences with mask (B, T) as public labels of well-formed spans.

        Malformed spans, other than B I* E or S of one type, are dropped (li2020). With `repair` they are read as in
        the programs of lample2016 and chen2019: S as B, E as I, then as conlleval does, so that E E is one entity.
        """
        if not self.chunked:
            return path
        tables = self.on(path.device)
        path = torch.where(mask, path, self.outside[0])
        before = _shifted(path, 1, self.outside[0])
        continued, label = tables.continued[before, path], tables.label_of[before, path]
        if repair:
            return label
        end = path.shape[1] - 1
        position = torch.arange(end + 1, device=path.device).expand_as(path)
        first = position.masked_fill(continued, 0).cummax(1).values
        last = position.masked_fill(_shifted(continued, -1, False), end).flip(1).cummin(1).values.flip(1)
        return torch.where(tables.whole[path.gather(1, first), path.gather(1, last)], label, self.outside[1])

    def to_public_log_probs(self, log_probs: Tensor) -> Tensor:
        """Sum the probabilities of the inner tags (…, K) of each public label: (…, L)."""
        if not self.chunked:
            return log_probs
        members = self.on(log_probs.device).members
        first, second = log_probs[..., members].unbind(-1)
        return torch.logaddexp(first, second.masked_fill(members[:, 0] == members[:, 1], -torch.inf))


def _shifted(values: Tensor, offset: int, fill: float) -> Tensor:
    """Each word's left neighbour (offset 1) or right neighbour (offset -1) along dimension 1, `fill` at the edge."""
    neighbours, edge = (values[:, :-1], (1, 0)) if offset == 1 else (values[:, 1:], (0, 1))
    return nn.functional.pad(neighbours, edge, value=fill)


def _chunk_tables(labels: list[str], scheme: str) -> dict[str, list]:
    """The tables of IOB2 labels.

    Raises:
        ValueError: If the labels are not IOB2.
    """
    if "O" not in labels:
        raise ValueError(f"The labels {labels} have B- and I- prefixes but no O; add O to id2label.")
    ids = {label: index for index, label in enumerate(labels)}
    types: list[str] = []
    for label in labels:
        prefix, dash, name = label.partition("-")
        if label != "O" and not (dash and prefix in ("B", "I")):
            raise ValueError(
                f"The label {label!r} is neither O nor begins with B- or I-; give id2label in IOB2 (BIOES is used "
                "internally) or labels without prefixes."
            )
        if label != "O" and f"B-{name}" not in ids:
            raise ValueError(f"The label {label!r} has no partner 'B-{name}'; IOB2 starts every entity with B-.")
        if label != "O" and name not in types:
            types.append(name)
    tags = [(OUTSIDE, NO_TYPE, ids["O"])]
    inner = [[0] * len(types) for _ in range(5)]
    for index, name in enumerate(types):
        begin = ids[f"B-{name}"]
        inside = ids.get(f"I-{name}", begin)
        kinds: tuple[int, ...] = (BEGIN, INSIDE, END, SINGLE) if inside != begin else (SINGLE,)
        if scheme == "iob2":
            kinds = (BEGIN, INSIDE)[: len(kinds)]
        for kind_ in kinds:
            inner[kind_][index] = len(tags)
            tags.append((kind_, index, begin if kind_ in (BEGIN, SINGLE) else inside))
        if scheme == "iob2":
            inner[SINGLE][index], inner[END][index] = inner[BEGIN][index], inner[INSIDE][index]
    types_of = [NO_TYPE if label == "O" else types.index(label[2:]) for label in labels]
    kind, entity_type, public = map(list, zip(*tags, strict=True))
    return {
        "kind": kind,
        "entity_type": entity_type,
        "public": public,
        "members": [[public.index(label), len(public) - 1 - public[::-1].index(label)] for label in range(len(labels))],
        "public_kind": [OUTSIDE if label == "O" else "OBI".index(label[0]) for label in labels],
        "public_type": types_of,
        "inner": inner,
        "begin_label": [ids[f"B-{name}"] for name in types],
        "inside_label": [ids.get(f"I-{name}", ids[f"B-{name}"]) for name in types],
    }


def _plain_tables(labels: list[str]) -> dict[str, list]:
    """The tables of plain labels: every tag is its own type of one word."""
    same = list(range(len(labels)))
    kind = [SINGLE] * len(labels)
    return {
        **dict.fromkeys(("entity_type", "public", "public_type", "begin_label", "inside_label"), same),
        "kind": kind,
        "public_kind": kind,
        "members": [[tag, tag] for tag in same],
        "inner": [same] * 5,
    }
