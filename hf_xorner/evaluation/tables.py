"""Scores as text that people read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def score_table(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Lay out the scores of splits: one line a type and one for all of them, in percent.

    Args:
        scores: What `span_scores` returns, by split.
    """
    lines = [f"{'split':<12}{'type':<20}{'precision':>10}{'recall':>10}{'F1':>10}{'entities':>10}"]
    for split, score in scores.items():
        if "f1" not in score:
            lines.append(f"{split:<12}{'accuracy':<20}{score['accuracy']:>30.2f}")
            continue
        for name, row in [*score["per_type"].items(), ("all", score)]:
            ratios = "".join(f"{row[key]:>10.2f}" for key in ("precision", "recall", "f1"))
            lines.append(f"{split:<12}{name:<20}{ratios}{row['support']:>10}")
    return "\n".join(lines)
