"""Scores as text that people read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_RATIOS = ("precision", "recall", "f1")
_NAME_WIDTH = 22
_WIDTH = 11

# Tables of one row a group, by the key of the report and what they say.
_GROUPS = (
    ("per_type", "By type"),
    ("per_length", "By length in words (3+: more than 3; predicted entities by their own length)"),
    ("per_tag", "By tag"),
    ("seen", "Entities whose surface form is one of an entity in training, and others"),
)


def score_table(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Lay out the scores of splits: one line a type and one for all of them, in percent.

    Args:
        scores: What `span_scores` returns, by split.
    """
    lines = [f"{'split':<12}{'type':<20}{'precision':>10}{'recall':>10}{'F1':>10}{'entities':>10}"]
    for split, score in scores.items():
        if "f1" not in score:
            lines.append(f"{split:<12}{'accuracy':<20}{score['accuracy']:>30.2f}")
            continue
        for name, row in [*score["per_type"].items(), ("all", score)]:
            ratios = "".join(f"{row[key]:>10.2f}" for key in _RATIOS)
            lines.append(f"{split:<12}{name:<20}{ratios}{row['support']:>10}")
    return "\n".join(lines)


def report_text(report: Mapping[str, Any]) -> str:
    """Lay out a report of `hf_xorner.evaluation.report.report` as tables; every score is in percent."""
    return "\n\n".join("\n".join(table) for table in _tables(report))


def _tables(report: Mapping[str, Any]) -> Iterator[list[str]]:
    yield _overview(report)
    for key, title in _GROUPS:
        if report.get(key):
            yield [title, *_ratio_rows(report[key])]
    if "chunk_tags" in report:
        yield [
            "Recall of gold tags by position",
            _row("", ["recall", "words"]),
            *(_row(name, [row["recall"], row["support"]]) for name, row in report["chunk_tags"].items()),
        ]
    if "confusion" in report:
        yield _confusion(report["confusion"])
    if report.get("confusions"):
        yield [
            "Most frequent confusions",
            _row("gold", ["predicted", "words"]),
            *(_row(row["gold"], [row["predicted"], row["count"]]) for row in report["confusions"]),
        ]
    yield from _vocabulary(report.get("vocabulary", {}))
    if "calibration" in report:
        yield _calibration(report["calibration"])
    if "compare" in report:
        yield _compared(report["compare"])


def _overview(report: Mapping[str, Any]) -> list[str]:
    about = f"{report['sentences']:,} sentences, {report['tokens']:,} words; tags: {report['scheme']}"
    of_words = [_row("tags of words", [report["accuracy"], report["tokens"]])]
    if "f1" not in report:
        return [about, _row("", ["accuracy", "words"]), *of_words, *_intervals(report, ["accuracy"])]
    malformed = ", ".join(f"{count:,} {side}" for side, count in report["malformed"].items())
    return [
        f"{about}; malformed spans: {malformed}; policy: {report['policy']}",
        _row("", ["precision", "recall", "F1", "entities"]),
        _row("all entities", [*(report[key] for key in _RATIOS), report["support"]]),
        *_intervals(report, _RATIOS),
        _row("mean of the types", [report["macro"][key] for key in _RATIOS]),
        _row("surface forms", [*(report["surface"][key] for key in _RATIOS), report["surface"]["support"]]),
        _row("", ["accuracy", "words"]),
        *of_words,
    ]


def _intervals(report: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    if "ci95" in report:
        for end, name in enumerate(("95 %: from", "95 %: to")):
            yield _row(f"  {name}", [report["ci95"][key][end] for key in names])


def _ratio_rows(groups: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        _row("", ["precision", "recall", "F1", "support"]),
        *(_row(name, [*(row[key] for key in _RATIOS), row["support"]]) for name, row in groups.items()),
    ]


def _confusion(confusion: Mapping[str, Any]) -> list[str]:
    """Gold types down; across the predicted types, where both ends are right, and what else became of them."""
    ends = ("boundary", "boundary_and_type", "missed")
    across = [*confusion["types"], "ends", "ends+type", "missed"]
    rows = [
        _row(name, [*row, *(confusion[key][name] for key in ends)])
        for name, row in zip(confusion["types"], confusion["matrix"], strict=True)
    ]
    rows += [_row(key, [confusion[key][name] for name in confusion["types"]]) for key in ("inexact", "spurious")]
    return ["Gold entities (down) by what was predicted (across)", _row("", across), *rows]


def _vocabulary(vocabulary: Mapping[str, Any]) -> Iterator[list[str]]:
    if "entities" in vocabulary:
        yield ["Entities by what training and vectors have of their words", *_ratio_rows(vocabulary["entities"])]
    if "words" in vocabulary:
        yield [
            "Words by what training and vectors have",
            _row("", ["accuracy", "words"]),
            *(_row(name, [row["accuracy"], row["support"]]) for name, row in vocabulary["words"].items()),
        ]


def _calibration(calibration: Mapping[str, Any]) -> list[str]:
    bins = [row for row in calibration["bins"] if row["count"]]
    return [
        f"Confidence of {calibration['count']:,} predicted entities: "
        f"expected calibration error {calibration['ece']:.2f} %",
        _row("", ["confidence", "precision", "entities"]),
        *(
            _row(f"{row['lower']:.2f} to {row['upper']:.2f}", [row["confidence"], row["accuracy"], row["count"]])
            for row in bins
        ),
    ]


def _compared(compared: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        "Difference to the other system, and its p value by randomisation",
        _row("", ["difference", "p", "trials"]),
        *(
            _row(name, [row["difference"], f"{row['p']:.4g}", f"{row['trials']:,}{' (all)' if row['exact'] else ''}"])
            for name, row in compared.items()
        ),
    ]


def _row(name: str, cells: Sequence[Any]) -> str:
    shown = (
        f"{cell:.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell for cell in cells
    )
    return f"{name:<{_NAME_WIDTH}}" + "".join(f" {cell:>{max(_WIDTH, len(cell))}}" for cell in shown)
