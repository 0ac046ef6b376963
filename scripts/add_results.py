"""Add the complete runs of a table to model_cards/results.json.

    python scripts/add_results.py ma2016/table3 --vectors glove.txt --seeds 1 2 3

The options are those of `hf-xorner reproduce`, which trains the runs. Write the pages afterwards: results_page.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from hf_xorner.cli.reproduce import Options
from hf_xorner.evaluation.scores import measure_of
from hf_xorner.files import write_json
from hf_xorner.options import read_options
from hf_xorner.papers.jobs import plan
from hf_xorner.papers.reproduction import Cell, Filled, fill
from hf_xorner.papers.tables import Column, TableRow, read_table
from hf_xorner.training.facts import command_of

RESULTS = Path(__file__).resolve().parents[1] / "model_cards" / "results.json"


def main(words: Sequence[str], path: Path = RESULTS) -> None:
    """Fill a table, and add its rows to a file of results."""
    options = read_options(Options, words)
    table = read_table(str(options.table))
    merge_results(path, fill(table, plan(table, options), options))


def merge_results(path: Path, filled: Filled) -> None:
    """Add the rows of a table to a file of results; earlier rows of the same work, data and measure are replaced.

    docs/formats.md describes the fields.

    Args:
        path: A JSON file with a list of results.
        filled: The table.
    """
    rows = {_key(row): row for row in json.loads(path.read_text(encoding="utf-8"))}
    rows |= {_key(row): row for row in _results(filled)}
    write_json(path, list(rows.values()))


def _published_with(column: Column, row: TableRow, inputs: Mapping[str, Any]) -> str | None:
    """Return the dataset, kind of vectors and encoder of a published figure that differ from the run's."""
    kind, context = row.vectors.get(str(column.run), ""), row.context or ""
    differences = [
        column.published_on,
        *(name for name in (kind, context.partition(",")[0]) if name not in str(inputs)),
    ]
    return ", ".join(filter(None, differences)) or None


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (*(row.get(name) for name in ("work", "dataset", "split")), "accuracy_mean" in row)


def _features_of(facts: dict[str, Any]) -> str:
    kinds = {"static": {"vectors", "composed"}, "contextual": {"context"}}
    return "+".join(kind for kind, options in kinds.items() if options & facts["inputs"].keys()) or "none"


def _results(filled: Filled) -> Iterator[dict[str, Any]]:
    for (key, run), of_seeds in filled.facts.items():
        scored = {seed: facts for seed, facts in sorted(of_seeds.items()) if "test" in facts["scores"]}
        if not scored or filled.table.rows[key].reads:  # no result of a whole model
            continue
        first = next(iter(scored.values()))
        measure = measure_of(first["scores"]["test"])
        shown = [
            (filled.cells[key, name], column)
            for name, column in filled.table.columns.items()
            if (column.run, column.split, column.figure, column.is_mean) == (run, "test", measure, True)
        ]
        cell, column = shown[0] if shown else (Cell(), Column(""))
        marks = _published_with(column, filled.table.rows[key], first["inputs"])
        splits = [facts["scores"] for facts in scored.values()]
        dev = [scores["validation"][measure] for scores in splits if "validation" in scores]
        yield {
            "work": f"{filled.table.name}/{key}",
            "dataset": first["data"]["source"],
            "split": "test",
            "model_type": first["options"]["model_type"],
            "features": _features_of(first),
            "seeds": list(scored),
            **_mean_and_std(measure, [scores["test"][measure] for scores in splits]),
            f"{measure}_by_seed": [round(scores["test"][measure], 2) for scores in splits],
            **_mean_and_std("dev", dev),
            "published": cell.published,
            "published_with": None if cell.published is None else marks,
            "p": cell.p,
            "baseline": None if cell.p is None else filled.table.baseline,
            "seconds": round(mean(facts["speed"]["training_seconds"] for facts in scored.values())),
            "device": first["hardware"]["device"],
            "threads": first["hardware"]["threads"],
            "command": _command_of_seeds(first, list(scored)),
        }


def _mean_and_std(name: str, figures: Sequence[float]) -> dict[str, float | None]:
    std = round(stdev(figures), 2) if len(figures) > 1 else None
    return {f"{name}_mean": round(mean(figures), 2) if figures else None, f"{name}_std": std}


def _command_of_seeds(facts: dict[str, Any], seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return facts["command"]
    options = {name: value for name, value in facts["options"].items() if name != "seed"}
    return command_of(facts["recipe"], {**options, "seeds": list(seeds)})


if __name__ == "__main__":
    main(sys.argv[1:])
