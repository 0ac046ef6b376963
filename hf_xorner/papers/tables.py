"""Definitions of the papers' tables: rows, columns, published figures, and recipes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..training.recipes import ROOT, nearest, read_yaml, recipe_names, table_names

NOT_PUBLISHED = "–"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        head: The heading.
        run: The run of each row that is shown; None if nothing is measured.
        split: The split that is scored.
        figure: The path of the figure in the scores of the split, such as per_type/person/f1. Paths that begin with
            speed/ are in the run's speed, those with vocabulary/ in the saved model's scores by presence in training
            data and vectors, and those with raw_chunk_tags/ in its recall of chunk tags. In a table of counts, figures
            of rows are first looked up under this path.
        highest: Show the highest figure of all seeds, not the mean.
        over: Show the mean as a multiple of the mean of this row.
        options: The dataset that is counted: options of `RunArguments`.
        vectors: The kind of vectors that the figures need.
        missing: The reason why nothing can be measured.
        published_on: The dataset of the published figures, if it is another one.
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
        """True if the column shows the mean over seeds, not a maximum or multiple."""
        return not (self.highest or self.over)


@dataclass(frozen=True)
class TableRow:
    """A row of a table.

    Args:
        name: The heading.
        recipes: The recipe of each run; empty for systems that this package does not have.
        vectors: The kind of vectors of each run.
        context: A description of the encoder that the runs need.
        published: The published figures, by column.
        split: In a table of counts, the split.
        figure: In a table of counts, the figure.
        reads: In columns with raw_chunk_tags/, the vectors that the classifier reads; see `raw_chunk_tags`.
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
        name: The name, such as ma2016/table7.
        title: The title.
        columns: The columns by key.
        rows: The rows by key.
        kind: "trained": scores of models. "statistics": counts of datasets. "partition": counts of words and entities
            by presence in training data and vectors.
        baseline: The row against which the others are tested.
        change_from: The row whose figures are subtracted from the others.
        vectors: The kinds of vectors that the rows need, with descriptions.
        paper_runs: The number of runs of a published figure, if the paper gives it.
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
        table = Table(**content)
        named = {table.baseline, table.change_from, *(column.over for column in table.columns.values())}
        if unknown := named - {None, *table.rows}:
            raise KeyError(*unknown)
        return table
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"The table {path} is invalid: {error}.") from None


def published_text(value: Any) -> str:
    """Return a published figure as the paper prints it."""
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
    return NOT_PUBLISHED if value is None else str(value)


def _row(value: dict[str, Any], path: Path, vectors: dict[str, str], runs: set[str | None]) -> TableRow:
    """Build a row, including runs of rows of other tables; their kinds of vectors are added to `vectors`."""
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
    # Recipes of a user's table may be in the table's folder.
    packaged = recipe_names()
    merged["recipes"] = {
        run: str(path.parent / recipe) if recipe not in packaged and (path.parent / recipe).is_file() else recipe
        for run, recipe in merged.get("recipes", {}).items()
    }
    return TableRow(**merged)
