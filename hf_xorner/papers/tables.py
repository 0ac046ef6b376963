"""The papers' tables as they stand in the package: rows, columns, published figures, and the recipes that fill them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..training.recipes import ROOT, is_table, nearest, read_yaml, recipe_names, table_names

_KINDS = ("trained", "statistics", "partition")
NOT_PUBLISHED = "–"

_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:±\s*(\d+(?:\.\d+)?)\s*)?")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        head: What stands above it.
        run: Which of a row's recipes it shows; None for what is not measured here.
        split: The split that is scored.
        figure: The figure, by its path in the scores of the split, such as per_type/person/f1; below speed/, in the
            run's speed; below vocabulary/, in the scores apart by what training and vectors have, of the saved model.
        over: Show it as a multiple of that row's.
        options: The corpus that is counted: options of `RunArguments`.
        vectors: The kind of vectors that its figures need.
        missing: Why there is nothing to measure.
    """

    head: str
    run: str | None = None
    split: str | None = None
    figure: str | None = None
    over: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    vectors: str | None = None
    missing: str | None = None


@dataclass(frozen=True)
class TableRow:
    """A row of a table.

    Args:
        name: What stands before it.
        recipes: The recipe of each of its runs; without any, the row is not one of ours.
        vectors: The kind of vectors that each run needs.
        context: The encoder that its runs need, in words.
        published: The published figures, by column.
        split: Of a table that counts, the split.
        figure: Of a table that counts, the figure.
    """

    name: str
    recipes: dict[str, str] = field(default_factory=dict)
    vectors: dict[str, str] = field(default_factory=dict)
    context: str | None = None
    published: dict[str, Any] = field(default_factory=dict)
    split: str | None = None
    figure: str | None = None


@dataclass(frozen=True)
class Table:
    """A table of a paper.

    Args:
        name: Its name, such as ma2016/table7.
        title: What it shows.
        columns: Its columns by their keys.
        rows: Its rows by their keys.
        kind: "trained": figures of models. "statistics": counts of corpora. "partition": of words and entities by
            whether training and vectors have them.
        baseline: The row that the others are tested against.
        vectors: The kinds of vectors that its rows need, in words.
        paper_runs: The runs behind a published figure, where the paper says so.
        note: What a reader has to know besides.
    """

    name: str
    title: str
    columns: dict[str, Column]
    rows: dict[str, TableRow]
    kind: str = "trained"
    baseline: str | None = None
    vectors: dict[str, str] = field(default_factory=dict)
    paper_runs: int | None = None
    note: str | None = None


def read_table(source: str) -> Table:
    """Read the definition of a table.

    Args:
        source: The name of one of the package's, or a path.

    Raises:
        ValueError: If there is no such table, or it is not in order.
    """
    path = _located(source)
    return _read(path, [])


def published_number(value: Any) -> tuple[float | None, float | None]:
    """The mean and the deviation of a published figure, None where it is none or gives none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value), None
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None, None
    return float(found[1]), float(found[2]) if found[2] else None


def published_text(value: Any) -> str:
    """A published figure as the paper prints it."""
    if value is None:
        return NOT_PUBLISHED
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _located(source: str) -> Path:
    name = source.removesuffix(".yaml")
    if name in table_names():
        return ROOT / f"{name}.yaml"
    path = Path(source)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return path
    raise ValueError(f"The table {source!r} is unknown; {nearest(name, table_names())}.")


def _read(path: Path, below: list[Path]) -> Table:
    content = read_yaml(path, "table")
    root = ROOT.resolve()
    packaged = root in path.resolve().parents and is_table(path.stem)
    name = path.resolve().relative_to(root).with_suffix("").as_posix() if packaged else path.stem
    if path.resolve() in below:
        raise ValueError(f"The table {path} takes rows of tables that take its own; write one of them out.")
    for missing in ("title", "columns", "rows"):
        if missing not in content:
            raise ValueError(f"The table {path} has no {missing}; give it.")
    vectors = dict(content.pop("vectors", {}))
    columns = {key: _filled(Column, value, f"{path}, column {key}") for key, value in content.pop("columns").items()}
    rows = {}
    for key, value in content.pop("rows").items():
        rows[key] = _row(dict(value), path, key, [*below, path.resolve()], vectors)
    return _checked(
        _filled(Table, {**content, "name": name, "columns": columns, "rows": rows, "vectors": vectors}, str(path)), path
    )


def _row(value: dict[str, Any], path: Path, key: str, below: list[Path], vectors: dict[str, str]) -> TableRow:
    """A row, with what it takes from rows of other tables."""
    taken = value.pop("as", [])
    merged: dict[str, Any] = {}
    for reference in [taken] if isinstance(taken, str) else taken:
        name, _, row = reference.rpartition("/")
        other = _read(_located(name), below)
        if row not in other.rows:
            raise ValueError(f"{path}, row {key}: {name} has no row {row!r}, but {', '.join(other.rows)}.")
        for entry in fields(TableRow):
            inner = getattr(other.rows[row], entry.name)
            if isinstance(inner, dict):
                merged[entry.name] = {**merged.get(entry.name, {}), **inner}
            elif inner is not None:
                merged[entry.name] = inner
        for kind in other.rows[row].vectors.values():
            vectors.setdefault(kind, other.vectors[kind])
    for name, inner in value.items():
        merged[name] = {**merged.get(name, {}), **inner} if isinstance(inner, dict) else inner
    packaged = recipe_names()
    for run, recipe in merged.get("recipes", {}).items():
        # A table of one's own finds its recipes beside itself.
        if recipe not in packaged and (path.parent / recipe).is_file():
            merged["recipes"] = {**merged["recipes"], run: str(path.parent / recipe)}
    return _filled(TableRow, merged, f"{path}, row {key}")


def _filled(kind: type, values: Mapping[str, Any], place: str) -> Any:
    """An object of a class from the values of a file."""
    names = [entry.name for entry in fields(kind)]
    strange = [name for name in values if name not in names]
    if strange:
        raise ValueError(f"{place}: {strange[0]!r} is unknown; {nearest(strange[0], names)}.")
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{place}: {str(error).partition('() ')[2]}.") from None


def _checked(table: Table, path: Path) -> Table:
    """Refuse a table whose parts do not fit together."""
    if table.kind not in _KINDS:
        raise ValueError(f"The table {path} has the kind {table.kind!r}; choose one of {', '.join(_KINDS)}.")
    for named in (table.baseline, *(column.over for column in table.columns.values())):
        if named is not None and named not in table.rows:
            raise ValueError(f"The table {path} names the row {named!r}, but has {', '.join(table.rows)}.")
    for key, row in table.rows.items():
        for kind in row.vectors.values():
            if kind not in table.vectors:
                raise ValueError(f"{path}, row {key}: the vectors {kind!r} are not described below 'vectors'.")
    return table
