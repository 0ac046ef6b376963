"""A filled table as Markdown, JSON and a picture, and as rows of a file of results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from ..files import write_whole
from ..training.facts import Facts, command_of, rounded
from .reproduction import Cell, Filled
from .tables import NOT_PUBLISHED, Column, published_number, published_text

#: How the measured figures are computed.
METHOD = (
    "Measured: the mean over seeds ± the sample standard deviation (n − 1); the papers do not say which theirs is. "
    "p: paired randomisation against the baseline row; what the runs of all seeds did on a sentence is swapped "
    "together."
)
_MEASURED = "measured, ± std over seeds"


def to_markdown(filled: Filled) -> str:
    """Lay out a filled table: each column as published, and beside it as measured."""
    table = filled.table
    heads = [head for column in table.columns.values() for head in (f"{column.head}, published", "measured")]
    lines = [f"# {table.name}: {table.title}", "", _line(["", *heads]), _line(["---", *["---:"] * len(heads)])]
    for key, row in table.rows.items():
        sign = "+" if table.change_from not in (None, key) else ""
        cells = [(filled.cells[key, name], column) for name, column in table.columns.items()]
        texts = [
            text for cell, column in cells for text in (published_text(cell.published), _measured(cell, column, sign))
        ]
        lines.append(_line([f"{row.name} (baseline)" if key == table.baseline else row.name, *texts]))
    for title, sentences in (
        ("Other than in the paper", filled.deviations),
        ("Not measured", filled.notes),
        ("How to read it", [sentence for sentence in (_method(filled), table.note) if sentence]),
    ):
        if sentences:
            lines += ["", f"{title}:", "", *(f"- {sentence}" for sentence in sentences)]
    return "\n".join(lines) + "\n"


def to_json(filled: Filled) -> str:
    """Return a filled table as JSON: every figure by row, column and seed."""
    table = filled.table
    rows = {
        key: {
            "name": row.name,
            "recipes": row.recipes,
            "cells": {name: rounded(asdict(filled.cells[key, name]), 6) for name in table.columns},
            "commands": {
                run: {str(seed): one.command for seed, one in sorted(filled.facts[key, run].items())}
                for run in row.recipes
                if filled.facts.get((key, run))
            },
        }
        for key, row in table.rows.items()
    }
    content = {
        "table": table.name,
        "title": table.title,
        "note": table.note,
        "baseline": table.baseline,
        "change_from": table.change_from,
        "paper_runs": table.paper_runs,
        "method": _method(filled),
        "columns": {key: {"head": column.head, "figure": column.figure} for key, column in table.columns.items()},
        "rows": rows,
        "deviations": filled.deviations,
        "notes": filled.notes,
    }
    return _dumped(content)


def draw_tables(filled: Filled, path: Path) -> Path | None:
    """Draw the published and the measured figures, a panel a column; None if nothing was measured.

    Args:
        filled: The table.
        path: The PNG file.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    table = filled.table
    shown = [name for name in table.columns if any(filled.cells[key, name].values for key in table.rows)]
    if not shown or table.kind != "trained":
        return None
    try:  # imported here because it takes a second, and is optional
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots need matplotlib, which is not installed: pip install "hf_xorner[plots]".') from error
    figure = Figure(figsize=(2.5 + 2.6 * len(shown), 1.6 + 0.42 * len(table.rows)), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    places = np.arange(len(table.rows))
    for axes, name in zip(panels, shown, strict=True):
        cells = [filled.cells[key, name] for key in table.rows]
        published = [published_number(cell.published) for cell in cells]
        is_mean = table.columns[name].is_mean
        measured = [(cell.mean, cell.std) if is_mean else (cell.shown, None) for cell in cells]
        for pairs, shift, style, label in ((published, -0.12, "C1D", "published"), (measured, 0.12, "C0o", _MEASURED)):
            values, errors = np.array(pairs, dtype=float).T  # None becomes NaN, which is not drawn
            axes.errorbar(values, places + shift, xerr=errors, fmt=style, label=label)
        axes.set_xlabel(table.columns[name].head)
        axes.grid(axis="x", linewidth=0.5, alpha=0.5)
    panels[0].set_yticks(places, [row.name for row in table.rows.values()])
    panels[0].set_ylim(len(table.rows) - 0.5, -0.5)  # from top to bottom
    figure.suptitle(f"{table.name}: {table.title}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", dpi=120)
    return path


def merge_results(path: Path, filled: Filled) -> list[dict[str, Any]]:
    """Put the rows of a table into a file of results, and replace earlier ones of the same work, dataset and split.

    A result has `work` (paper, table and row), `dataset`, `split`, `model_type`, `features` (none, static, contextual
    or static+contextual), `seeds`, `f1_mean` and `f1_std` in percent, `published` and `command`.

    Args:
        path: A JSON file with a list of results; created if needed.
        filled: The table.

    Raises:
        ValueError: If the file has other content.
    """
    rows = read_results(path)
    places = {(row.get("work"), row.get("dataset"), row.get("split")): place for place, row in enumerate(rows)}
    for row in _results(filled):
        place = places.get((row["work"], row["dataset"], row["split"]), len(rows))
        rows[place : place + 1] = [row]
    write_whole(path, _dumped(rows))
    return rows


def read_results(path: Path) -> list[dict[str, Any]]:
    """Read a file of results; an empty list if there is no file.

    Raises:
        ValueError: If the file has other content.
    """
    if not path.exists():
        return []
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: is not JSON ({error}); correct it, or name another file of results.") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{path}: is not a list of results; name another file.")
    return rows


def _features_of(facts: Facts) -> str:
    kinds = {"static": ("vectors", "composed"), "contextual": ("context",)}
    return "+".join(kind for kind, options in kinds.items() if any(name in facts.inputs for name in options)) or "none"


def _results(filled: Filled) -> list[dict[str, Any]]:
    found = []
    for (key, run), of_seeds in filled.facts.items():
        scored = {seed: one for seed, one in sorted(of_seeds.items()) if "f1" in one.scores.get("test", {})}
        if not scored or filled.table.rows[key].reads:  # no result of a whole model
            continue
        first = next(iter(scored.values()))
        figures = [one.scores["test"]["f1"] for one in scored.values()]
        published = [
            filled.cells[key, name].published
            for name, column in filled.table.columns.items()
            if (column.run, column.split, column.figure, column.is_mean) == (run, "test", "f1", True)
        ]
        found.append(
            {
                "work": f"{filled.table.name}/{key}",
                "dataset": first.data["source"],
                "split": "test",
                "model_type": first.options["model_type"],
                "features": _features_of(first),
                "seeds": list(scored),
                "f1_mean": round(mean(figures), 2),
                "f1_std": round(stdev(figures), 2) if len(figures) > 1 else None,
                "published": published[0] if published else None,
                "command": _command_of_seeds(first, list(scored)),
            }
        )
    return found


def _command_of_seeds(one: Facts, seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return one.command
    options = {name: value for name, value in one.options.items() if name != "seed"}
    return command_of(one.recipe, {**options, "seeds": list(seeds)})


def _dumped(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _method(filled: Filled) -> str | None:
    return METHOD if filled.table.kind == "trained" else None


def _measured(cell: Cell, column: Column, sign: str) -> str:
    if not column.is_mean:
        return NOT_PUBLISHED if cell.shown is None else f"{cell.shown:.2f}"
    if cell.mean is None:
        return NOT_PUBLISHED
    if isinstance(cell.mean, int) or set(cell.values) == {0}:
        return f"{cell.mean:,}"
    std = "" if cell.std is None else f" ± {cell.std:.2f}"
    return f"{cell.mean:{sign}.2f}{std}" + ("" if cell.p is None else f" (p {cell.p:.3f})")


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
