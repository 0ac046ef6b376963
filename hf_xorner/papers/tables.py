"""Definitions of the papers' tables: rows, columns, published figures, and recipes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..training.recipes import ROOT, nearest, read_yaml, recipe_names, table_names

NOT_PUBLISHED = "–"

_NUMBER = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*(?:±\s*(\d+(?:\.\d+)?)\s*)?")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        head: The heading.
        run: The run of each row that it shows; None if nothing is measured.
        split: The split that is scored.
        figure: The path of the figure in the scores of the split, such as per_type/person/f1; below speed/, in the
            run's speed; below vocabulary/, in the saved model's scores by what training and vectors contain; below
            raw_chunk_tags/, in its recall of chunk tags. In a table of counts, figures of rows that are also below this
            path are taken from there.
        highest: Show the highest figure of all seeds, not the mean.
        over: The row of which the mean is shown as a multiple.
        options: The dataset that is counted: options of `RunArguments`.
        vectors: The kind of vectors that its figures need.
        missing: Why nothing can be measured.
        published_on: The dataset of the published figures, where it is another one.
    """

    head: str
    run: str | None = None
    split: str | None = None
    figure: str | None = None
    highest: bool = False
    over: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    vectors: str | None = None
    missing: str | None = None
    published_on: str | None = None

    @property
    def is_mean(self) -> bool:
        """True if it shows the mean over seeds, no maximum or multiple."""
        return not (self.highest or self.over)


@dataclass(frozen=True)
class TableRow:
    """A row of a table.

    Args:
        name: The heading.
        recipes: The recipe of each run; empty for systems of others.
        vectors: The kind of vectors of each run.
        context: The encoder that its runs need, in words.
        published: The published figures, by column.
        split: In a table of counts, the split.
        figure: In a table of counts, the figure.
        reads: In columns below raw_chunk_tags/, the vectors that the classifier reads; see `raw_chunk_tags`.
    """

    name: str
    recipes: dict[str, str] = field(default_factory=dict)
    vectors: dict[str, str] = field(default_factory=dict)
    context: str | None = None
    published: dict[str, Any] = field(default_factory=dict)
    split: str | None = None
    figure: str | None = None
    reads: str | None = None


@dataclass(frozen=True)
class Table:
    """A table of a paper.

    Args:
        name: Its name, such as ma2016/table7.
        title: Its title.
        columns: Its columns by key.
        rows: Its rows by key.
        kind: "trained": scores of models. "statistics": counts of datasets. "partition": counts of words and entities
            by whether training and vectors contain them.
        baseline: The row that the others are tested against.
        change_from: The row whose figures are subtracted from those of the others.
        vectors: The kinds of vectors that its rows need, in words.
        paper_runs: The number of runs behind a published figure, if the paper says so.
        note: A remark for the reader.
    """

    name: str
    title: str
    columns: dict[str, Column]
    rows: dict[str, TableRow]
    kind: str = "trained"
    baseline: str | None = None
    change_from: str | None = None
    vectors: dict[str, str] = field(default_factory=dict)
    paper_runs: int | None = None
    note: str | None = None


def read_table(source: str) -> Table:
    """Read the definition of a table.

    Args:
        source: The name of a table of the package, or a path.

    Raises:
        ValueError: If there is no such table, or it is invalid.
    """
    name, path = source.removesuffix(".yaml"), Path(source)
    if name in table_names():
        path = ROOT / f"{name}.yaml"
    elif path.suffix in (".yaml", ".yml") or path.is_file():
        name = path.stem
    else:
        raise ValueError(f"The table {source!r} is unknown; {nearest(name, table_names())}.")
    content = {**read_yaml(path), "name": name}
    try:
        vectors = content["vectors"] = dict(content.get("vectors", {}))
        content["columns"] = {key: Column(**value) for key, value in content["columns"].items()}
        runs = {column.run for column in content["columns"].values()}
        content["rows"] = {key: _row(dict(value), path, vectors, runs) for key, value in content["rows"].items()}
        return Table(**content)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"The table {path} is invalid: {error}.") from None


def published_number(value: Any) -> tuple[float | None, float | None]:
    """Return the mean and the deviation of a published figure, each None if there is none."""
    match = _NUMBER.fullmatch(str(value))
    return (float(match[1]), float(match[2]) if match[2] else None) if match else (None, None)


def published_text(value: Any) -> str:
    """Return a published figure as the paper prints it."""
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
    return NOT_PUBLISHED if value is None else str(value)


def _row(value: dict[str, Any], path: Path, vectors: dict[str, str], runs: set[str | None]) -> TableRow:
    """Build a row, with these runs of rows of other tables; their kinds of vectors are added to `vectors`."""
    references = value.pop("as", [])
    sources = []
    for reference in [references] if isinstance(references, str) else references:
        name, _, row = reference.rpartition("/")
        other = read_table(name)
        source = dict(vars(other.rows[row]))
        for part in ("recipes", "vectors"):
            source[part] = {run: inner for run, inner in source[part].items() if run in runs}
        for kind in source["vectors"].values():
            vectors.setdefault(kind, other.vectors[kind])
        sources.append(source)
    merged: dict[str, Any] = {}
    for source in [*sources, value]:
        for name, inner in source.items():
            if isinstance(inner, dict):
                merged[name] = {**merged.get(name, {}), **inner}
            elif inner is not None or source is value:
                merged[name] = inner
    # A user's table finds its recipes in its own folder.
    packaged = recipe_names()
    merged["recipes"] = {
        run: str(path.parent / recipe) if recipe not in packaged and (path.parent / recipe).is_file() else recipe
        for run, recipe in merged.get("recipes", {}).items()
    }
    return TableRow(**merged)
