"""The scores of a held-out split, as the tables of a model card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from .card_text import listed, shown

# With fewer entities than this, one more or less is over three points of recall.
_FEW = 30
_CONFUSIONS = 5
_FATES = ("boundary", "boundary_and_type", "missed")


@dataclass(frozen=True)
class HeldOut:
    """What a model did on a split that it was not trained on; what the facts do not have has no rows.

    Args:
        name: The split's.
        scores: See `hf_xorner.training.facts.Facts`.
        measures: The keys of its scores: ratios and F1 of entities, or the accuracy of plain labels.
    """

    name: str
    scores: Mapping[str, Any]
    measures: tuple[str, ...]

    @property
    def by_type(self) -> list[list[Any]]:
        """The scores: over all, as means, of surface forms, and by type."""
        scores = self.scores
        rows = [("all", scores), ("mean of the types", scores.get("macro")), ("surface forms", scores.get("surface"))]
        return [self._row(name, row) for name, row in [*rows, *sorted(scores.get("per_type", {}).items())] if row]

    @property
    def by_length(self) -> list[list[Any]]:
        """The scores by the lengths that its entities have."""
        return [self._row(name, row) for name, row in sorted(self.scores["per_length"].items()) if row["support"]]

    @property
    def by_novelty(self) -> list[list[Any]]:
        """The scores of entities that are entities of the training data, and of the others."""
        names = {"seen": "known", "unseen": "new"}
        found = self.scores.get("seen", {})
        return [self._row(name, found[key]) for key, name in names.items() if key in found and found[key]["support"]]

    def _row(self, name: str, row: Mapping[str, Any]) -> list[Any]:
        return [name, *(row[measure] for measure in self.measures), *([row.get("support", "")] * self._has_entities)]

    @property
    def _has_entities(self) -> bool:
        return "per_type" in self.scores

    # --- Confidence

    @property
    def calibration(self) -> Mapping[str, Any] | None:
        """How far confidences can be trusted, if any entity was predicted."""
        found = self.scores.get("calibration")
        return found if found and found["count"] else None

    @property
    def calibration_rows(self) -> list[list[Any]]:
        """The entities that were predicted with confidences within the same bounds."""
        return [
            [f"{100 * row['lower']:g} to {100 * row['upper']:g}", row["confidence"], row["accuracy"], row["count"]]
            for row in (self.calibration or {"bins": ()})["bins"]
        ]

    # --- Errors

    @property
    def error_rows(self) -> list[list[Any]]:
        """What became of the entities of each type, and how many were predicted where there is none."""
        errors = self.scores.get("confusion")
        if not errors or not errors["support"]:
            return []
        rows = []
        for name in sorted(errors["support"]):
            exact = errors["matrix"].get(name, {})
            right = exact.get(name, 0)
            others = (errors[key].get(name, 0) for key in (*_FATES, "spurious"))
            rows.append([errors["support"][name], right, sum(exact.values()) - right, *others])
        return [[name, *row] for name, row in zip(sorted(errors["support"]), rows, strict=True)] + [
            ["all", *(sum(column) for column in zip(*rows, strict=True))]
        ]

    @property
    def confusions(self) -> list[Markup]:
        """The types that were most often taken for another."""
        matrix = self.scores.get("confusion", {}).get("matrix", {})
        pairs = [(n, gold, other) for gold, row in matrix.items() for other, n in row.items() if other != gold]
        pairs.sort(key=lambda pair: (-pair[0], *pair[1:]))
        return [Markup(f"{shown(gold)} as {shown(other)} ({shown(n)})") for n, gold, other in pairs[:_CONFUSIONS]]

    # --- What speaks against it

    def limits(self, labels: Sequence[str]) -> Iterator[Markup]:
        """What the scores say against the model, which knows types of entities."""
        types = {name: row for name, row in sorted(self.scores["per_type"].items()) if row["support"]}
        weakest = sorted(types, key=lambda name: types[name]["f1"])[: min(3, len(types) // 2)]
        if weakest:
            found = listed([Markup(f"{shown(name)} (F1 {types[name]['f1']:.2f})") for name in weakest])
            yield Markup(f"Weakest on {self.name}: {found}.")
        few = [Markup(f"{shown(name)} ({row['support']})") for name, row in types.items() if row["support"] < _FEW]
        if few:
            yield Markup(f"Scores of types with fewer than {_FEW} entities in {self.name} say little: {listed(few)}.")
        if unjudged := [name for name in labels if name not in types]:
            yield Markup(f"Without any entity in {self.name}, and so without a recall: {listed(unjudged)}.")
        if (long := self.scores.get("per_length", {}).get("3+", {})).get("support"):
            yield Markup(
                f"Of the {long['support']:,} entities of {self.name} with more than 3 words "
                f"it finds {long['recall']:.2f} %."
            )
        novelty = self.scores.get("seen", {})
        if novelty and all(row["support"] for row in novelty.values()):
            seen, unseen = (novelty[key]["recall"] for key in ("seen", "unseen"))
            yield Markup(
                f"Of the entities of {self.name} that are entities of the training data too it finds {seen:.2f} %, "
                f"of the others {unseen:.2f} %."
            )
        if (surface := self.scores.get("surface")) and surface["support"]:
            yield Markup(
                f"Counting each distinct surface form of {self.name} once, its F1 is {surface['f1']:.2f}, "
                f"where over all mentions it is {self.scores['f1']:.2f}."
            )
