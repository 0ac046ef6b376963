"""Precision and recall of entities with a minimum score, and the minimum score for a wanted precision."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..entities import NumberByLabel, least_score
from ..files import write_json
from .comparison import BoolArray, ratios
from .report import System

_SHOWN = (*(tenth / 10 for tenth in range(10)), 0.95, 0.99)


class ScoredEntities(NamedTuple):
    """The entities that a system predicts in labelled sentences, in any order.

    Attributes:
        scores: Their scores. Shape: (entities,).
        correct: True for gold entities. Shape: (entities,).
        labels: Their labels. Shape: (entities,).
        gold: The number of gold entities of each label.
    """

    scores: np.ndarray
    correct: BoolArray
    labels: np.ndarray
    gold: Mapping[str, int]

    @classmethod
    def of_system(cls, system: System) -> ScoredEntities | None:
        """Return the entities of a system with their scores; None for plain tags."""
        comparison = system.comparison
        if comparison.tag_set.plain:
            return None
        types = np.array(comparison.tag_set.types)
        scores, labels = system.confidences(), types[comparison.predicted.type]
        return cls(scores, comparison.correct, labels, Counter(types[comparison.gold.type].tolist()))

    def at(self, min_score: NumberByLabel) -> dict[str, float]:
        """Score the entities with a minimum score.

        Returns:
            ``precision``, ``recall`` and ``f1`` in percent, ``support``, the number of gold entities, and ``entities``,
            the number of entities with this score.
        """
        above = self.scores >= [least_score(min_score, label) for label in self.labels.tolist()]
        count = int(above.sum())
        return {**ratios(int(self.correct[above].sum()), count, sum(self.gold.values())), "entities": count}

    def table(self) -> dict[str, dict[str, float]]:
        """Return `at` for scores from 0 to 0.99."""
        return {f"{least:.2f}": self.at(least) for least in _SHOWN}

    def least_score_for(self, precision: float, label: str | None = None) -> float:
        """Return the lowest minimum score with which entities reach a precision.

        It lies between the scores of two entities, with as few digits as possible; 0 if all entities are kept.

        Args:
            precision: The precision in percent.
            label: The label of the entities; None for all.

        Raises:
            ValueError: If no score reaches the precision.
        """
        selected = np.full(len(self.scores), True) if label is None else self.labels == label
        order = np.argsort(-self.scores[selected])
        scores, right = self.scores[selected][order], self.correct[selected][order].cumsum()
        percent = 100 * right / np.arange(1, len(right) + 1)
        # Entities with the same score are kept or left out together.
        ends = np.flatnonzero(scores != np.append(scores[1:], -1.0))
        reached = ends[percent[ends] >= precision]
        if not len(reached):
            reason = "no entity is found" if not len(ends) else f"the most is {percent[ends].max():.2f} %"
            of_label = "" if label is None else f" of {label}"
            raise ValueError(f"no min_score reaches a precision{of_label} of {precision:g} %: {reason}.")
        last = int(reached[-1])
        if last + 1 == len(scores):
            return 0.0
        below, least = float(scores[last + 1]), float(scores[last])
        rounded = (round((below + least) / 2, digits) for digits in range(2, 18))
        return next((number for number in rounded if below < number <= least), least)


def choose_min_score(entities: ScoredEntities, precision: NumberByLabel) -> NumberByLabel:
    """Return the minimum score, or one per label, for a precision in percent; see `ScoredEntities.least_score_for`."""
    if isinstance(precision, Mapping):
        return {label: entities.least_score_for(number, label) for label, number in precision.items()}
    return entities.least_score_for(precision)


def save_min_score(folder: Path, min_score: NumberByLabel) -> Path:
    """Save a minimum score in the config of a model, where `Tagger` reads it, and return the file."""
    path = folder / "config.json"
    return write_json(path, {**json.loads(path.read_text(encoding="utf-8")), "min_score": min_score})
