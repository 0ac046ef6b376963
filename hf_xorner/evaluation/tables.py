"""Scores as text tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_RATIOS = {"precision": "precision", "recall": "recall", "f1": "F1"}
_GROUP = {**_RATIOS, "support": "support"}
_KEPT = {**_RATIOS, "entities": "found"}
_NAME_WIDTH = 22
_WIDTH = 11

# Tables with one row per group: the key in the report or in its part "vocabulary"; the title; columns and headings.
_GROUPS: dict[str, tuple[str, dict[str, str]]] = {
    "per_type": ("By type", _GROUP),
    "per_length": ("By length in words (gold and predicted entities by their own lengths)", _GROUP),
    "sentence_kinds": ("By sentence: all capitals, a third numbers, up to 6 words, others", _GROUP),
    "per_tag": ("By tag", _GROUP),
    "seen": ("Entities seen and unseen as entities in the training data", _GROUP),
    "entities": ("Entities by presence of their words in training data and vectors", _GROUP),
    "words": ("Words by presence in training data and vectors", {"accuracy": "accuracy", "support": "words"}),
    "chunk_tags": ("Recall of gold tags by position, for all types", {"recall": "recall", "support": "words"}),
}


def score_table(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Format the scores of splits: one line per type and one for all, in percent.

    Args:
        scores: The result of `span_scores` by split.
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
    """Format a report of `hf_xorner.evaluation.report.report` as tables; every score is in percent."""
    return "\n\n".join("\n".join(table) for table in _tables({**report, **report.get("vocabulary", {})}))


def _tables(report: Mapping[str, Any]) -> Iterator[list[str]]:
    yield _overview(report)
    yield from (_table(*_GROUPS[key], report[key].items()) for key in _GROUPS if report.get(key))
    if "confusion" in report:
        yield _confusion(report["confusion"])
    if report.get("confusions"):
        rows = [(row["gold"], row) for row in report["confusions"]]
        yield _table("Most frequent confusions", {"predicted": "predicted", "count": "words"}, rows, "gold")
    if "calibration" in report:
        bins, count, ece = (report["calibration"][name] for name in ("bins", "count", "ece"))
        title = f"Confidence of {count:,} predicted entities: expected calibration error {ece:.2f} %"
        rows = [(f"{row['lower']:.2f} to {row['upper']:.2f}", row) for row in bins if row["count"]]
        yield _table(title, {"confidence": "confidence", "accuracy": "precision", "count": "entities"}, rows)
    if "thresholds" in report:
        yield _table("Entities with at least this score", _KEPT, report["thresholds"].items(), "min. score")
    if "min_score" in report:
        value, rows = report["min_score"].values()
        pairs = value.items() if isinstance(value, Mapping) else [("", value)]
        least = ", ".join(f"{label} {number:.10g}".strip() for label, number in pairs)
        yield _table(f"Entities with a min_score of {least}", _KEPT, rows.items(), "split")
    if "compare" in report:
        scores, better, worse, sentences = report["compare"].values()
        rows = [(name, {**row, "p": f"{row['p']:.4g}"}) for name, row in scores.items()]
        columns = {name: name for name in ("difference", "p")}
        yield _table("Difference to the other system, and its p value by randomisation", columns, rows)
        title = f"Fewer mistakes than the other in {better:,} sentences, more in {worse:,}; greatest differences"
        yield _sentences(title, sentences, ("gold", "predicted", "other"))
    if report.get("mistakes"):
        yield _sentences("Wrong sentences, most confident mistakes first", report["mistakes"], ("gold", "predicted"))


def _overview(report: Mapping[str, Any]) -> list[str]:
    about = f"{report['sentences']:,} sentences, {report['tokens']:,} words; tags: {report['scheme']}"
    of_words = [_row("", ["accuracy", "words"]), _row("tags of words", [report["accuracy"], report["tokens"]])]
    names = list(_RATIOS) if "f1" in report else ["accuracy"]
    intervals = [
        _row(f"  95 %: {end}", [report["ci95"][name][index] for name in names])
        for index, end in enumerate(("from", "to") if "ci95" in report else ())
    ]
    if "f1" not in report:
        return [about, *of_words, *intervals]
    malformed = ", ".join(f"{count:,} {side}" for side, count in report["malformed"].items())
    return [
        f"{about}; malformed spans: {malformed}; policy: {report['policy']}",
        _row("", [*_RATIOS.values(), "entities"]),
        _row("all entities", [report[key] for key in _GROUP]),
        *intervals,
        _row("mean of the types", [report["macro"][key] for key in _RATIOS]),
        _row("surface forms", [report["surface"][key] for key in _GROUP]),
        *of_words,
    ]


def _table(
    title: str, columns: Mapping[str, str], rows: Iterable[tuple[str, Mapping[str, Any]]], corner: str = ""
) -> list[str]:
    lines = [_row(name, [row[column] for column in columns]) for name, row in rows]
    return [title, _row(corner, list(columns.values())), *lines]


def _confusion(confusion: Mapping[str, Any]) -> list[str]:
    """Format gold types by predicted types of spans with equal ends, and the other outcomes of both sides."""
    types = confusion["types"]
    outcomes = {"boundary": "ends", "boundary_and_type": "ends+type", "missed": "missed"}
    rows = [
        _row(name, [*row, *(confusion[key][name] for key in outcomes)])
        for name, row in zip(types, confusion["matrix"], strict=True)
    ]
    rows += [_row(key, [confusion[key][name] for name in types]) for key in ("inexact", "spurious")]
    return ["Gold entities (down) by prediction (across)", _row("", [*types, *outcomes.values()]), *rows]


def _sentences(title: str, rows: Iterable[Mapping[str, Any]], sides: Sequence[str]) -> list[str]:
    lines = [title]
    for row in rows:
        probability = f"{row['probability']:.2f}  " if "probability" in row else ""
        lines.append(f"  {probability}{' '.join(row['words'])}")
        for side in sides:
            entities = ", ".join(f"{kind} {text!r}" for kind, text in row[side]) or "nothing"
            lines.append(f"    {side + ':':<10} {entities}")
    return lines


def _row(name: str, cells: Sequence[Any]) -> str:
    shown = (
        f"{cell:.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell for cell in cells
    )
    return f"{name:<{_NAME_WIDTH}}" + "".join(f" {cell:>{max(_WIDTH, len(cell))}}" for cell in shown)
