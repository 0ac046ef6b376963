"""Scores as text tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..text_table import text_table
from .scores import measure_of

_RATIOS = {"precision": "precision", "recall": "recall", "f1": "F1"}
_GROUP = {**_RATIOS, "support": "support"}
_KEPT = {**_RATIOS, "entities": "found"}

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


def score_table(scores: Mapping[str, Mapping[str, Any]], f1: str = "F1") -> str:
    """Format the scores of splits: one line per type and one for all, in percent.

    Args:
        scores: The result of `span_scores` by split.
        f1: The heading of F1.
    """
    rows: list[Sequence[Any]] = [("split", "type", "precision", "recall", f1, "entities")]
    for split, score in scores.items():
        if "f1" in score:
            parts = [*score["per_type"].items(), ("all", score)]
            rows += [(split, name, *(row[key] for key in (*_RATIOS, "support"))) for name, row in parts]
        else:
            rows.append((split, "accuracy", "", "", score["accuracy"]))
    return text_table(rows, names=2)


def report_text(report: Mapping[str, Any]) -> str:
    """Format a report of `hf_xorner.evaluation.report.report` as tables; every score is in percent."""
    return "\n\n".join(_tables({**report, **report.get("vocabulary", {})}))


def _tables(report: Mapping[str, Any]) -> Iterator[str]:
    yield _overview(report)
    for key, (title, columns) in _GROUPS.items():
        if rows := [(name, row) for name, row in report.get(key, {}).items() if row["support"]]:
            yield _table(title, columns, rows)
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


def _overview(report: Mapping[str, Any]) -> str:
    about = f"{report['sentences']:,} sentences, {report['tokens']:,} words; tags: {report['scheme']}"
    of_words = [("", "accuracy", "words"), ("tags of words", report["accuracy"], report["tokens"])]
    names = list(_RATIOS) if measure_of(report) == "f1" else ["accuracy"]
    intervals = [
        (f"  95 %: {end}", *(report["ci95"][name][index] for name in names))
        for index, end in enumerate(("from", "to") if "ci95" in report else ())
    ]
    if "f1" not in report:
        return f"{about}\n{text_table([*of_words, *intervals])}"
    malformed = ", ".join(f"{count:,} {side}" for side, count in report["malformed"].items())
    rows: list[Sequence[Any]] = [
        ("", *_RATIOS.values(), "entities"),
        ("all entities", *(report[key] for key in _GROUP)),
        *intervals,
        ("mean of the types", *(report["macro"][key] for key in _RATIOS)),
        ("surface forms", *(report["surface"][key] for key in _GROUP)),
        *of_words,
    ]
    return f"{about}; malformed spans: {malformed}; policy: {report['policy']}\n{text_table(rows)}"


def _table(
    title: str, columns: Mapping[str, str], rows: Iterable[tuple[str, Mapping[str, Any]]], corner: str = ""
) -> str:
    cells = ((name, *(row[column] for column in columns)) for name, row in rows)
    return f"{title}\n{text_table([(corner, *columns.values()), *cells])}"


def _confusion(confusion: Mapping[str, Any]) -> str:
    """Format gold types by predicted types of spans with equal ends, and the other outcomes of both sides."""
    types = confusion["types"]
    outcomes = {"boundary": "ends", "boundary_and_type": "ends+type", "missed": "missed"}
    rows = [
        (name, *row, *(confusion[key][name] for key in outcomes))
        for name, row in zip(types, confusion["matrix"], strict=True)
    ]
    rows += [(key, *(confusion[key][name] for name in types)) for key in ("inexact", "spurious")]
    return f"Gold entities (down) by prediction (across)\n{text_table([('', *types, *outcomes.values()), *rows])}"


def _sentences(title: str, rows: Iterable[Mapping[str, Any]], sides: Sequence[str]) -> str:
    lines = [title]
    for row in rows:
        probability = f"{row['probability']:.2f}  " if "probability" in row else ""
        lines.append(f"  {probability}{' '.join(row['words'])}")
        for side in sides:
            entities = ", ".join(f"{kind} {text!r}" for kind, text in row[side]) or "nothing"
            lines.append(f"    {side + ':':<10} {entities}")
    return "\n".join(lines)
