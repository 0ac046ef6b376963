"""A file of results: rows of filled tables as JSON, and the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from ..files import write_whole
from ..training.facts import command_of
from .presentation import dumped, table_line
from .reproduction import Cell, Filled
from .tables import NOT_PUBLISHED, Column, TableRow, published_text

_HEADS = ("result", "model", "features", "seeds", "test F1", "published", "dev F1", "p", "minutes")


def read_results(path: Path) -> list[dict[str, Any]]:
    """Read a file of results; an empty list if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def merge_results(path: Path, filled: Filled) -> list[dict[str, Any]]:
    """Put the rows of a table into a file of results, and replace earlier ones of the same work, data and measure.

    A result has `work` (paper, table and row), `dataset`, `split`, `model_type`, `features` (none, static, contextual
    or static+contextual), `seeds`, `f1_mean` and `f1_std` in percent (for plain tags `accuracy_mean` and
    `accuracy_std`), `dev_mean` and `dev_std` (the same on the validation split), `published` and
    `published_with` (its other data, vectors or encoder, with which it cannot be compared), `p` (against the row
    `baseline` of the same table), `seconds` of training (the mean over seeds, of `threads` threads on `device`) and
    `command`. What is not known is null.

    Args:
        path: A JSON file with a list of results; created if needed.
        filled: The table.
    """
    rows = read_results(path)
    places = {_key(row): place for place, row in enumerate(rows)}
    for row in _results(filled):
        place = places.get(_key(row), len(rows))
        rows[place : place + 1] = [row]
    write_whole(path, dumped(rows))
    return rows


def results_page(rows: Iterable[Mapping[str, Any]]) -> str:
    """Lay out results as Markdown: a table for each dataset, and below it the commands."""
    lines: list[str] = []
    ordered = sorted(rows, key=lambda row: (row["dataset"], row["work"]))
    for dataset, group in groupby(ordered, key=lambda row: row["dataset"]):
        of_dataset = list(group)
        lines += [f"### {dataset}", "", table_line(_HEADS), table_line(["---"] * 4 + ["---:"] * 5)]
        lines += [table_line(_cells(row)) for row in of_dataset]
        lines += ["", "Commands:", "", *(f"- {row['work']}: `{row['command']}`" for row in of_dataset), ""]
    return "\n".join(lines)


def headline_table(rows: Iterable[Mapping[str, Any]], works: Mapping[str, str]) -> str:
    """Lay out a few results as Markdown.

    Args:
        rows: All results.
        works: The names to show, by the results' `work`, in the order to show them.
    """
    by_work = {row["work"]: row for row in rows if _measure(row) == "f1"}
    lines = [table_line(["corpus", "tagger", "seeds", "test F1", "published"]), table_line(["---"] * 3 + ["---:"] * 2)]
    for work, name in works.items():
        row = by_work[work]
        cells = [row["dataset"], name, str(len(row["seeds"])), _score(row), _published(row)]
        lines.append(table_line(cells))
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> list[str]:
    seconds, p = row.get("seconds"), row.get("p")
    if isinstance(p, float):
        p = f"{p:.3f}" if p >= 0.001 else "< 0.001"
    return [
        row["work"],
        row["model_type"],
        row["features"],
        str(len(row["seeds"])),
        _score(row),
        _published(row),
        _spread(row, "dev"),
        f"{p} ({row['baseline']})" if p else NOT_PUBLISHED,
        NOT_PUBLISHED if seconds is None else f"{seconds / 60:.0f}",
    ]


def _published(row: Mapping[str, Any]) -> str:
    return published_text(row["published"]) + (f" ({row['published_with']})" if row["published_with"] else "")


def _published_with(column: Column, row: TableRow, inputs: Mapping[str, Any]) -> str | None:
    """Return the dataset, kind of vectors and encoder of a published figure, as far as the run has others."""
    kind, context = row.vectors.get(str(column.run), ""), row.context or ""
    others = [column.published_on, *(name for name in (kind, context.partition(",")[0]) if name not in str(inputs))]
    return ", ".join(filter(None, others)) or None


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (*(row.get(name) for name in ("work", "dataset", "split")), _measure(row))


def _measure(row: Mapping[str, Any]) -> str:
    return "accuracy" if "accuracy_mean" in row else "f1"


def _score(row: Mapping[str, Any]) -> str:
    measure = _measure(row)
    return _spread(row, measure) + (" (accuracy)" if measure == "accuracy" else "")


def _spread(row: Mapping[str, Any], figure: str) -> str:
    if row.get(f"{figure}_mean") is None:
        return NOT_PUBLISHED
    std = row[f"{figure}_std"]
    return f"{row[f'{figure}_mean']:.2f}" + ("" if std is None else f" ± {std:.2f}")


def _features_of(facts: dict[str, Any]) -> str:
    kinds = {"static": {"vectors", "composed"}, "contextual": {"context"}}
    return "+".join(kind for kind, options in kinds.items() if options & facts["inputs"].keys()) or "none"


def _results(filled: Filled) -> list[dict[str, Any]]:
    results = []
    for (key, run), of_seeds in filled.facts.items():
        scored = {seed: one for seed, one in sorted(of_seeds.items()) if "test" in one["scores"]}
        if not scored or filled.table.rows[key].reads:  # no result of a whole model
            continue
        first = next(iter(scored.values()))
        measure = "f1" if "f1" in first["scores"]["test"] else "accuracy"
        shown = [
            (filled.cells[key, name], column)
            for name, column in filled.table.columns.items()
            if (column.run, column.split, column.figure, column.is_mean) == (run, "test", measure, True)
        ]
        cell, column = shown[0] if shown else (Cell(), Column(""))
        marks = _published_with(column, filled.table.rows[key], first["inputs"])
        results.append(
            {
                "work": f"{filled.table.name}/{key}",
                "dataset": first["data"]["source"],
                "split": "test",
                "model_type": first["options"]["model_type"],
                "features": _features_of(first),
                "seeds": list(scored),
                **_mean_and_std(measure, [one["scores"]["test"][measure] for one in scored.values()]),
                **_mean_and_std("dev", [one["scores"]["validation"][measure] for one in scored.values()]),
                "published": cell.published,
                "published_with": None if cell.published is None else marks,
                "p": cell.p,
                "baseline": None if cell.p is None else filled.table.baseline,
                "seconds": round(mean(one["speed"]["training_seconds"] for one in scored.values())),
                "device": first["hardware"]["device"],
                "threads": first["hardware"]["threads"],
                "command": _command_of_seeds(first, list(scored)),
            }
        )
    return results


def _mean_and_std(name: str, figures: Sequence[float]) -> dict[str, float | None]:
    std = round(stdev(figures), 2) if len(figures) > 1 else None
    return {f"{name}_mean": round(mean(figures), 2), f"{name}_std": std}


def _command_of_seeds(one: dict[str, Any], seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return one["command"]
    options = {name: value for name, value in one["options"].items() if name != "seed"}
    return command_of(one["recipe"], {**options, "seeds": list(seeds)})
