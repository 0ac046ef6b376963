"""Pictures of the analyses, by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluation.plots import save_figure
from .word_pairs import WordPairs
from .xor_demonstration import CONTENDERS, PATTERNS, Outcome
from .xor_proof import PHRASES

#: The share of the colour range above which a cell is so dark that its number must be white.
_DARK = 0.55


def draw_pairs(pairs: WordPairs, path: Path) -> Path:
    """Draw a heat map of each map of word pairs."""
    names = [f"{word}  {tag}" for word, tag in zip(pairs.words, pairs.tags, strict=True)]
    size = 1.8 + 0.4 * len(pairs.words)

    def draw(figure: Any) -> None:
        figure.set_size_inches(size * len(pairs.maps), size + 0.4)
        for axes, name, rows in zip(
            np.ravel(figure.subplots(1, len(pairs.maps))), pairs.names, pairs.maps, strict=True
        ):
            _heat_map(axes, rows, names, pairs.words)
            axes.set_title(name)

    return save_figure(path, draw)


def draw_demonstration(outcomes: Sequence[Outcome], path: Path) -> Path:
    """Draw the probability of an entity for left and right words, for each model and pattern."""
    lefts, rights = (list(dict.fromkeys(phrase[side] for phrase in PHRASES)) for side in (0, 2))
    place = {
        (contender.name, pattern): (row, column)
        for column, contender in enumerate(CONTENDERS)
        for row, pattern in enumerate(PATTERNS)
    }

    def draw(figure: Any) -> None:
        figure.set_size_inches(2.1 * len(CONTENDERS), 2.4 * len(PATTERNS))
        grid = figure.subplots(len(PATTERNS), len(CONTENDERS))
        for outcome in outcomes:
            axes = grid[place[outcome.contender.name, outcome.pattern]]
            values = np.zeros((len(lefts), len(rights)))
            for phrase, probability in zip(PHRASES, outcome.probabilities, strict=True):
                values[lefts.index(phrase[0]), rights.index(phrase[2])] = probability
            _heat_map(axes, values, lefts, rights)
            axes.set_title(f"{outcome.contender.name}\n{outcome.pattern}: {outcome.right} of 4", fontsize=9)
        figure.suptitle("Probability that the middle word is in an entity")

    return save_figure(path, draw)


def draw_ablation(recalls: Mapping[str, Mapping[str, float]], path: Path) -> Path:
    """Draw the recall of each chunk tag by the vectors that the classifier reads."""
    parts = [name for name in next(iter(recalls.values())) if name != "support"]
    values = np.array([[row[part] for part in parts] for row in recalls.values()])

    def draw(figure: Any) -> None:
        figure.set_size_inches(2 + 0.8 * len(parts), 1.5 + 0.5 * len(recalls))
        axes = figure.subplots()
        _heat_map(axes, values, list(recalls), parts, top=100.0, digits=1)
        axes.set(title="Recall of chunk tags (%)", xlabel="vectors that the classifier reads")

    return save_figure(path, draw)


def _heat_map(
    axes: Any, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], top: float = 1.0, digits: int = 2
) -> None:
    axes.imshow(values, cmap="Blues", vmin=0, vmax=top, aspect="auto")
    for row, column in np.ndindex(*values.shape):
        value = values[row, column]
        colour = "white" if value > _DARK * top else "black"
        axes.text(column, row, f"{value:.{digits}f}", ha="center", va="center", color=colour, fontsize=8)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
