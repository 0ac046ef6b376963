"""Plots of a report: confusion of types, reliability of the confidences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files import replacing
from .scores import measure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The picture of the learning curve, in the folder of the model.
CURVE_FILE = "learning_curve.png"

# Colours for any colour vision (Okabe and Ito, 2008), which also differ in lightness.
_BLUE, _ORANGE, _GREEN = "#0072B2", "#E69F00", "#009E73"

# Other outcomes of gold entities (columns) and of predicted ones (rows), by their keys in the report.
_OF_GOLD = {"boundary": "boundary", "boundary_and_type": "boundary and type", "missed": "missed"}
_OF_PREDICTED = ("inexact", "spurious")
# Above this share of the colour range, the number of a cell is white.
_DARK = 0.55
# Inches for one letter of a type's name.
_LETTER = 0.085


def draw(report: Mapping[str, Any], folder: str | Path) -> list[Path]:
    """Draw ``confusion.png`` and ``reliability.png`` of a report.

    Missing or empty keys are skipped. No window is opened, and the settings of matplotlib do not change, in contrast to
    `pyplot` and the displays of scikit-learn.

    Args:
        report: A report of `hf_xorner.evaluation.report.report`; the keys ``confusion`` and
            ``calibration`` are used.
        folder: The folder of the plots, which is created; files of the same names are replaced.

    Returns:
        The files written.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    written = []
    if report.get("confusion", {}).get("types"):
        written.append(save_figure(Path(folder) / "confusion.png", _draw_confusion, report["confusion"]))
    if report.get("calibration", {}).get("count"):
        written.append(save_figure(Path(folder) / "reliability.png", _draw_reliability, report["calibration"]))
    return written


def draw_curve(curve: Sequence[Mapping[str, Any]], path: Path) -> bool:
    """Draw loss and validation score of every epoch; return False without matplotlib or with fewer than two losses.

    Args:
        curve: The part ``curve`` of a run's facts.
        path: The picture.
    """
    losses = [(row["epoch"], row["loss"]) for row in curve if "loss" in row]
    if len(losses) < 2 or not find_spec("matplotlib"):
        return False
    scored = [row for row in curve if "dev" in row]
    name = measure_of(scored[0]["dev"] if scored else ())
    scores = [(row["epoch"], row["dev"][name]) for row in scored if name in row["dev"]]
    save_figure(path, _draw_curve, losses, scores, name)
    return True


def save_figure(path: Path, draw_on: Callable[..., None], *content: Any) -> Path:
    """Draw content on a new figure, save it as PNG, and return the file."""
    # Imported here because only plots need it, and it takes a second.
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    figure = Figure(layout="constrained")
    draw_on(figure, *content)
    for text in figure.findobj(Text):
        text.set_parse_math(False)  # a type or a word may contain dollar signs
    with replacing(path) as new:
        figure.savefig(new, format="png", dpi=120, metadata={"Software": None})
    return path


def heat_map(
    axes: Any,
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    texts: Sequence[Sequence[str]] | None = None,
) -> Any:
    """Draw numbers from 0 to 1 as coloured cells.

    Args:
        axes: The axes of matplotlib.
        values: (rows, columns)
        rows: The names of the rows.
        columns: The names of the columns.
        texts: The text of each cell; by default its number.

    Returns:
        The image, for a colour bar.
    """
    image = axes.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for row, column in np.ndindex(*values.shape):
        value = values[row, column]
        text = f"{value:.2f}" if texts is None else texts[row][column]
        axes.text(column, row, text, ha="center", va="center", color="white" if value > _DARK else "black", fontsize=8)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    return image


def _draw_curve(figure: Figure, losses: Sequence[Any], scores: Sequence[Any], name: str) -> None:
    """Draw loss (left axis) and score (right axis) by epoch."""
    figure.set_size_inches(6.5, 3.5)
    left = figure.subplots()
    left.plot(*zip(*losses, strict=True), color="C0")
    left.set_xlabel("epoch")
    left.set_ylabel("loss", color="C0")
    if scores:
        right = left.twinx()
        right.plot(*zip(*scores, strict=True), color="C1", linestyle="--")
        right.set_ylabel(f"{name.replace('f1', 'F1')} on validation (%)", color="C1")


def _draw_confusion(figure: Figure, confusion: Mapping[str, Any]) -> None:
    """Draw the outcomes of gold entities, one row per type, and other predictions below."""
    types = list(confusion["types"])
    size = len(types)
    counts = np.full((size + len(_OF_PREDICTED), size + len(_OF_GOLD)), np.nan)
    counts[:size, :size] = confusion["matrix"]
    counts[:size, size:] = np.transpose([[confusion[key][name] for name in types] for key in _OF_GOLD])
    counts[size:, :size] = [[confusion[key][name] for name in types] for key in _OF_PREDICTED]
    # Colours show shares of the row's gold entities, or of the column's predicted entities. If they showed numbers, one
    # frequent type would leave all others white.
    shares = counts.copy()
    shares[:size] /= np.maximum(counts[:size].sum(axis=1, keepdims=True), 1)
    shares[size:, :size] /= np.maximum(counts[:, :size].sum(axis=0), 1)

    height, width = counts.shape
    letters = _LETTER * max(map(len, types))
    figure.set_size_inches(2.4 + letters + 0.52 * width, max(3.8, 1.8 + 0.7 * letters + 0.4 * height))
    axes = figure.subplots()
    texts = [[f"{count:.0f}" if count > 0 else "" for count in row] for row in counts]
    image = heat_map(axes, shares, [*types, *_OF_PREDICTED], [*types, *_OF_GOLD.values()], texts)
    axes.axvline(size - 0.5, color="black", linewidth=1)
    axes.axhline(size - 0.5, color="black", linewidth=1)
    axes.set(xlabel="predicted", ylabel="gold", title="Confusion of entity types")
    bar = figure.colorbar(image, ax=axes, label="% of gold (below: of predicted)")
    bar.set_ticks([0, 0.25, 0.5, 0.75, 1], labels=["0", "25", "50", "75", "100"])


def _draw_reliability(figure: Figure, calibration: Mapping[str, Any]) -> None:
    """Draw the precision of the entities in each bin of confidence, and their number."""
    bins = [row for row in calibration["bins"] if row["count"]]
    precision = [row["accuracy"] for row in bins]
    middles = [50.0 * (row["lower"] + row["upper"]) for row in bins]
    widths = [100.0 * (row["upper"] - row["lower"]) for row in bins]
    figure.set_size_inches(5.2, 6.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.bar(middles, precision, widths, color=_BLUE, edgecolor="white", label="precision of the bin")
    above.plot([0, 100], [0, 100], color="black", linestyle="--", linewidth=1, label="perfect calibration")
    points = {"marker": "o", "markeredgecolor": "black", "linestyle": "none"}
    above.plot([row["confidence"] for row in bins], precision, color=_ORANGE, **points, label="at the mean confidence")
    title = f"Reliability of confidences\nexpected calibration error {calibration['ece']:.1f}%"
    above.set(ylim=(0, 102), ylabel="precision (%)", title=title)
    above.legend(loc="upper left", fontsize=8)
    below.bar(middles, [row["count"] for row in bins], widths, color=_GREEN, edgecolor="white")
    below.set(xlim=(0, 100), xlabel="confidence (%)", ylabel="entities")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
