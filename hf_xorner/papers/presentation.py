"""A filled table as Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ..training.facts import rounded
from .reproduction import Cell, Filled
from .tables import NOT_PUBLISHED, Column, published_text

#: How the measured figures are computed.
METHOD = (
    "Measured: the mean over seeds ± the sample standard deviation (n − 1); the papers do not say which deviation "
    "theirs is. p: paired randomisation against the baseline row; for a sentence, the predictions of all seeds are "
    "swapped together."
)


def to_markdown(filled: Filled) -> str:
    """Format a filled table; next to each published column is the measured one."""
    table = filled.table
    heads = [head for column in table.columns.values() for head in (f"{column.head}, published", "measured")]
    lines = [
        f"# {table.name}: {table.title}",
        "",
        table_line(["", *heads]),
        table_line(["---", *["---:"] * len(heads)]),
    ]
    for key, row in table.rows.items():
        sign = "+" if table.change_from not in (None, key) else ""
        cells = [(filled.cells[key, name], column) for name, column in table.columns.items()]
        texts = [
            text for cell, column in cells for text in (published_text(cell.published), _measured(cell, column, sign))
        ]
        lines.append(table_line([f"{row.name} (baseline)" if key == table.baseline else row.name, *texts]))
    for title, sentences in (
        ("Other than in the paper", filled.deviations),
        ("Not measured", filled.notes),
        ("How to read it", [sentence for sentence in (_method(filled), table.note) if sentence]),
    ):
        if sentences:
            lines += ["", f"{title}:", "", *(f"- {sentence}" for sentence in sentences)]
    return "\n".join(lines) + "\n"


def to_json(filled: Filled) -> dict[str, Any]:
    """Return a filled table for JSON, with all figures by row, column and seed."""
    table = filled.table
    rows = {
        key: {
            "name": row.name,
            "recipes": row.recipes,
            "cells": {name: rounded(asdict(filled.cells[key, name]), 6) for name in table.columns},
            "commands": {
                run: {str(seed): facts["command"] for seed, facts in sorted(filled.facts[key, run].items())}
                for run in row.recipes
                if filled.facts.get((key, run))
            },
        }
        for key, row in table.rows.items()
    }
    return {
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


def _method(filled: Filled) -> str | None:
    return METHOD if filled.table.kind == "trained" else None


def _measured(cell: Cell, column: Column, sign: str) -> str:
    if not column.is_mean:
        return NOT_PUBLISHED if cell.shown is None else f"{cell.shown:.2f}"
    if cell.mean is None or isinstance(cell.mean, int):
        return published_text(cell.mean)
    std = "" if cell.std is None else f" ± {cell.std:.2f}"
    return f"{cell.mean:{sign}.2f}{std}" + ("" if cell.p is None else f" (p {p_text(cell.p)})")


def p_text(p: float) -> str:
    """Return a p value; that of a sampled test is never 0."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def table_line(cells: Iterable[str]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
