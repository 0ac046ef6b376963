"""The figures of a report as pictures: confusion of types, scores by type, reliability of the confidences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Colours that people with any colour vision tell apart (Okabe and Ito, 2008), which also differ in lightness.
_BLUE, _ORANGE, _GREEN = "#0072B2", "#E69F00", "#009E73"
_FIGURES = {"precision": _BLUE, "recall": _ORANGE, "f1": _GREEN}
_NAMES = {"precision": "precision", "recall": "recall", "f1": "F1"}

_DOTS_PER_INCH = 120
# The share of its row from which on a cell is so dark that its number must be white.
_DARK = 0.55

# What else may become of a gold entity, as columns, and of a predicted one, as rows: key of the report and heading.
_OF_GOLD = {"boundary": "boundary", "boundary_and_type": "boundary and type", "missed": "missed"}
_OF_PREDICTED = {"inexact": "inexact", "spurious": "spurious"}
# Inches that a letter of a type's name needs.
_LETTER = 0.085


def draw(report: Mapping[str, Any], folder: str | Path) -> list[Path]:
    """Draw what a report holds: ``confusion.png``, ``per_type.png`` and ``reliability.png``.

    Nothing is drawn for a key that is absent, or has nothing to show. The drawing neither opens windows nor touches the
    settings of matplotlib.

    Args:
        report: Scores in percent under the keys ``confusion`` (``types``, the ``matrix`` of gold by predicted type, and
            by type the numbers ``boundary``, ``boundary_and_type``, ``missed``, ``inexact`` and ``spurious``: see
            `hf_xorner.evaluation.breakdowns.confusion`), ``per_type`` (``precision``, ``recall``, ``f1`` and
            ``support`` of each) and ``calibration`` (see `hf_xorner.evaluation.calibration.calibration`). Other keys
            play no role.
        folder: Where the pictures go; made if need be, and pictures of the same names are replaced.

    Returns:
        The files written.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    figure_class, text_class = _figure_and_text()
    folder = Path(folder)
    written = []
    for name, key, has_content, drawn in _PLOTS:
        content = report.get(key)
        if not content or not has_content(content):
            continue
        # Figures that pyplot does not know of: they draw on the Agg canvas when saved, and go when they are done with.
        figure = figure_class(layout="constrained")
        drawn(figure, content)
        for text in figure.findobj(text_class):
            text.set_parse_math(False)  # a type may have dollars in its name
        folder.mkdir(parents=True, exist_ok=True)
        written.append(folder / name)
        figure.savefig(written[-1], format="png", dpi=_DOTS_PER_INCH)
    return written


def _figure_and_text() -> tuple[type[Figure], type[Text]]:
    # Imported here because only those who draw need matplotlib, which takes a second.
    try:
        from matplotlib.figure import Figure
        from matplotlib.text import Text
    except ImportError as error:
        raise ImportError('plots need matplotlib, which is not installed: pip install "hf_xorner[plots]".') from error
    return Figure, Text


def _draw_confusion(figure: Figure, confusion: Mapping[str, Any]) -> None:
    """Draw what became of the gold entities of each type, a row each, and below what else was predicted."""
    types = list(confusion["types"])
    size = len(types)
    of_gold = {heading: confusion[key] for key, heading in _OF_GOLD.items() if key in confusion}
    of_predicted = {heading: confusion[key] for key, heading in _OF_PREDICTED.items() if key in confusion}
    counts = np.full((size + len(of_predicted), size + len(of_gold)), np.nan)
    counts[:size, :size] = confusion["matrix"]
    for column, numbers in enumerate(of_gold.values(), size):
        counts[:size, column] = [numbers.get(name, 0) for name in types]
    for row, numbers in enumerate(of_predicted.values(), size):
        counts[row, :size] = [numbers.get(name, 0) for name in types]
    # Colours are shares, of the gold entities of the row or of the predicted ones of the column: by the number itself,
    # a frequent type would leave all others white.
    shares = counts.copy()
    shares[:size] /= np.maximum(counts[:size].sum(axis=1, keepdims=True), 1)
    shares[size:, :size] /= np.maximum(counts[:, :size].sum(axis=0), 1)

    height, width = counts.shape
    letters = _LETTER * max(map(len, types))
    figure.set_size_inches(2.4 + letters + 0.52 * width, max(3.8, 1.8 + 0.7 * letters + 0.4 * height))
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for row, column in np.argwhere(counts > 0).tolist():
        colour = "white" if shares[row, column] > _DARK else "black"
        count = f"{counts[row, column]:.0f}"
        axes.text(column, row, count, ha="center", va="center", color=colour, fontsize=9 if len(count) < 5 else 7)
    axes.axvline(size - 0.5, color="black", linewidth=1)
    axes.axhline(size - 0.5, color="black", linewidth=1)
    axes.set_xticks(range(width), [*types, *of_gold], rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(height), [*types, *of_predicted])
    axes.set_xlabel("predicted")
    axes.set_ylabel("gold")
    axes.set_title("Confusion of entity types")
    bar = figure.colorbar(image, ax=axes, label="% of gold (below: of predicted)")
    bar.set_ticks([0, 0.25, 0.5, 0.75, 1], labels=["0", "25", "50", "75", "100"])


def _draw_per_type(figure: Figure, per_type: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw precision, recall and F1 of each type as bars, the most frequent type on top."""
    names = sorted(per_type, key=lambda name: (-per_type[name]["support"], name))
    places = np.arange(len(names))
    thickness = 0.8 / len(_FIGURES)
    figure.set_size_inches(6.5 + _LETTER * max(map(len, names)), 1.6 + 0.55 * len(names))
    axes = figure.subplots()
    for index, (key, colour) in enumerate(_FIGURES.items()):
        values = [per_type[name][key] for name in names]
        bars = axes.barh(
            places + (index - 1) * thickness, values, thickness, color=colour, edgecolor="white", label=_NAMES[key]
        )
        axes.bar_label(bars, fmt="%.1f", padding=2, fontsize=7)
    axes.set_yticks(places, [f"{name} ({per_type[name]['support']})" for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)  # from top to bottom
    axes.set_xlim(0, 108)  # room for the numbers at the ends of the bars
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("score (%)")
    axes.set_ylabel("type (gold entities)")
    axes.set_title("Scores by entity type")
    _hide_frame(axes)
    figure.legend(loc="outside lower center", ncols=len(_FIGURES), frameon=False)


def _draw_reliability(figure: Figure, calibration: Mapping[str, Any]) -> None:
    """Draw the precision of the entities of each bin of confidence, and how many entities are in it."""
    bins = [row for row in calibration["bins"] if row["count"]]
    middles = [50.0 * (row["lower"] + row["upper"]) for row in bins]
    widths = [100.0 * (row["upper"] - row["lower"]) for row in bins]
    figure.set_size_inches(5.2, 6.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.bar(
        middles, [row["accuracy"] for row in bins], widths, color=_BLUE, edgecolor="white", label="precision of the bin"
    )
    # On the diagonal, confidences mean what they say.
    above.plot([0, 100], [0, 100], color="black", linestyle="--", linewidth=1, label="perfect calibration")
    above.plot(
        [row["confidence"] for row in bins],
        [row["accuracy"] for row in bins],
        color=_ORANGE,
        marker="o",
        markeredgecolor="black",
        linestyle="none",
        label="at the mean confidence",
    )
    above.set_ylim(0, 102)
    above.set_ylabel("precision (%)")
    above.set_title(f"Reliability of confidences\nexpected calibration error {calibration['ece']:.1f}%")
    above.legend(loc="upper left", fontsize=8)
    below.bar(middles, [row["count"] for row in bins], widths, color=_GREEN, edgecolor="white")
    below.set_xlim(0, 100)
    below.set_xlabel("confidence (%)")
    below.set_ylabel("entities")
    for axes in (above, below):
        _hide_frame(axes)


def _hide_frame(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)


# File, key of the report, whether there is something to show, and how it is drawn.
_PLOTS: tuple[tuple[str, str, Callable[[Any], Any], Callable[[Figure, Any], None]], ...] = (
    ("confusion.png", "confusion", lambda confusion: confusion["types"], _draw_confusion),
    ("per_type.png", "per_type", lambda per_type: per_type, _draw_per_type),
    ("reliability.png", "calibration", lambda calibration: calibration["count"], _draw_reliability),
)
