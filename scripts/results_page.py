"""Generate the tables of docs/results.md and README.md from model_cards/results.json; `--check` only compares."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from hf_xorner.papers.presentation import p_text, table_line
from hf_xorner.papers.tables import NOT_PUBLISHED, published_text, read_table

ROOT = Path(__file__).resolve().parents[1]
#: The results in README.md.
HEADLINES = {
    "li2020/table1/cross": "Cross-BiLSTM-CNN",
    "wnut17/contextual": "Cross-BiLSTM-CNN with an encoder's states",
    "ma2016/table3/blstm-cnns-crf": "BLSTM-CNNs-CRF",
    "chen2019/table2/grn": "GRN",
    "chen2019/table2/grn-context": "GRN with an encoder's states",
}


HEADS = ("result", "corpus", "features", "seeds", "published", "test F1", "dev F1", "p", "minutes")


def results_page(rows: Iterable[Mapping[str, Any]]) -> str:
    """Lay out results as Markdown: a table for each paper, in the order of its tables."""
    lines: list[str] = []
    for paper, group in groupby(sorted(rows, key=place_of), key=lambda row: row["work"].partition("/")[0]):
        lines += [f"### {paper}", "", table_line(HEADS), table_line(["---"] * 4 + ["---:"] * 5)]
        lines += [*(table_line(cells_of(row)) for row in group), ""]
    return "\n".join(lines)


def place_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the place of a result: paper, table, row of the table, and name; other results come last."""
    paper, table, *rest = row["work"].split("/")
    rows = list(read_table(f"{paper}/{table}").rows) if rest else []
    key = rest[0].partition(",")[0] if rest else ""
    number = int("".join(filter(str.isdigit, table)) or 0)
    return not rest, paper, number, rows.index(key) if key in rows else len(rows), row["work"], row["dataset"]


def headline_table(rows: Iterable[Mapping[str, Any]], works: Mapping[str, str]) -> str:
    """Lay out a few results as Markdown.

    Args:
        rows: All results.
        works: The names to show, by the results' `work`, in the order to show them.
    """
    by_work = {row["work"]: row for row in rows if "f1_mean" in row}
    lines = [table_line(["corpus", "tagger", "seeds", "test F1", "published"]), table_line(["---"] * 3 + ["---:"] * 2)]
    for work, name in works.items():
        row = by_work[work]
        cells = [row["dataset"], name, str(len(row["seeds"])), score(row), published(row)]
        lines.append(table_line(cells))
    return "\n".join(lines)


def cells_of(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a result on the page."""
    seconds, p = row.get("seconds"), row.get("p")
    if isinstance(p, float):
        p = p_text(p)
    return [
        row["work"].partition("/")[2],
        row["dataset"],
        row["features"],
        str(len(row["seeds"])),
        published(row),
        score(row),
        spread(row, "dev"),
        f"{p} ({row['baseline']})" if p else NOT_PUBLISHED,
        NOT_PUBLISHED if seconds is None else f"{seconds / 60:.0f}",
    ]


def published(row: Mapping[str, Any]) -> str:
    """Return the published figure, and its other data, vectors or encoder."""
    return published_text(row["published"]) + (f" ({row['published_with']})" if row["published_with"] else "")


def score(row: Mapping[str, Any]) -> str:
    """Return the score on the test split."""
    measure = "accuracy" if "accuracy_mean" in row else "f1"
    return spread(row, measure) + (" (accuracy)" if measure == "accuracy" else "")


def spread(row: Mapping[str, Any], figure: str) -> str:
    """Return a mean and its deviation."""
    if row.get(f"{figure}_mean") is None:
        return NOT_PUBLISHED
    std = row[f"{figure}_std"]
    return f"{row[f'{figure}_mean']:.2f}" + ("" if std is None else f" ± {std:.2f}")


def main(check: bool) -> None:
    """Write the pages, or exit with a sentence if they differ."""
    rows = json.loads((ROOT / "model_cards" / "results.json").read_text(encoding="utf-8"))
    tables = {"docs/results.md": results_page(rows), "README.md": headline_table(rows, HEADLINES)}
    for name, table in tables.items():
        page = ROOT / name
        old = page.read_text(encoding="utf-8")
        # A function, since backslashes in a replacement string are escapes.
        block = r"(?s)(?<=<!-- results -->\n).*?(?=<!-- end of results -->)"
        new = re.sub(block, lambda _, table=table: f"{table}\n", old)
        if check and new != old:
            sys.exit(f"{name} differs from model_cards/results.json; run: python scripts/results_page.py")
        page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main(check="--check" in sys.argv[1:])
