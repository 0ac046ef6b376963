"""A table filled: what was published beside what was measured, over seeds, tested against its baseline row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from ..corpora import load_corpus
from ..corpora.statistics import corpus_statistics
from ..evaluation.breakdowns import vocabulary_partition
from ..evaluation.comparison import Comparison
from ..evaluation.report import System, Training, report
from ..evaluation.resampling import randomisation_test
from ..tagger import Tagger
from ..training import RunArguments, parse
from ..training.facts import COUNTS_FILE, Facts
from ..vectors.formats import read_vectors
from .jobs import NO_VECTORS, Job, Plan, Settings, vectors_of
from .tables import Column, Table, TableRow

#: The figures that paired randomisation can test: micro averages of what is counted by sentence.
TESTED = ("precision", "recall", "f1", "accuracy")


@dataclass
class Cell:
    """A figure of a table.

    Args:
        published: As the paper prints it; None where it has none, or it could not be checked.
        values: The measured figures by seed; a counted one by the key 0.
        mean: Their mean.
        std: Their sample standard deviation (n − 1 in the denominator), from two seeds on.
        p: The share of random swaps that set row and baseline at least as far apart; see `significance`.
        difference: The figure less the baseline's, over the seeds that both have.
        over: The mean as a multiple of another row's, in columns that show that.
    """

    published: Any = None
    values: dict[int, float] = field(default_factory=dict)
    mean: float | None = None
    std: float | None = None
    p: float | None = None
    difference: float | None = None
    over: float | None = None


@dataclass
class Filled:
    """A table with what was measured.

    Args:
        table: Its definition.
        cells: By row and column.
        deviations: In what the runs differ from the paper's, a sentence each.
        notes: Why what is not measured is not, a sentence each.
        facts: Of each row and run, the facts of the finished runs by seed.
    """

    table: Table
    cells: dict[tuple[str, str], Cell]
    deviations: list[str]
    notes: list[str]
    facts: dict[tuple[str, str], dict[int, Facts]] = field(default_factory=dict)


def fill(table: Table, plan: Plan, settings: Settings, failed: Mapping[Path, str] | None = None) -> Filled:
    """Fill a table from the runs that are finished.

    Args:
        table: The table.
        plan: Its runs.
        settings: How they were run.
        failed: For the folder of each run that failed, what it said.
    """
    facts = {
        place: {job.seed: found for job in jobs if (found := job.facts()) is not None}
        for place, jobs in plan.jobs.items()
    }
    filled = Filled(table, {}, [], [], facts)
    for key, row in table.rows.items():
        for name in table.columns:
            filled.cells[key, name] = Cell(row.published.get(name))
    if table.kind == "trained":
        _measure(filled, plan, settings)
        _compare_rows(filled, plan)
    else:
        _count(filled, settings)
    filled.notes += _notes(table, plan, failed or {}, facts)
    filled.deviations += _deviations(table, settings, facts)
    return filled


def significance(counts: Sequence[np.ndarray[Any, Any]], others: Sequence[np.ndarray[Any, Any]]) -> dict[str, Any]:
    """Test two systems that were trained with several seeds, by paired randomisation over sentences.

    What the runs of a system did on a sentence is added up, and a trial swaps all of it with what the runs of the other
    did. So a sentence counts once however many seeds there are, and the runs of one system are no independent evidence.
    It is the sentences that are sampled and not the seeds: the p value is about these runs on other sentences.

    Args:
        counts: Of each run of one system its counts by sentence; see `randomisation_test`.
        others: As many of the other.
    """
    return randomisation_test(np.sum(counts, axis=0), np.sum(others, axis=0))


def _measure(filled: Filled, plan: Plan, settings: Settings) -> None:
    """Put the figures of models into the cells."""
    table = filled.table
    partitions: dict[tuple[Path, str], dict[str, Any]] = {}
    for (key, name), cell in filled.cells.items():
        column, row = table.columns[name], table.rows[key]
        if column.run is None or column.figure is None:
            continue
        place = (key, column.run)
        for job in plan.jobs.get(place, ()):
            found = filled.facts[place].get(job.seed)
            if found is None:
                continue
            if column.figure.startswith("vocabulary/"):
                at = (job.folder, str(column.split))
                if at not in partitions:
                    partitions[at] = _partition_of(job, column, row, table, settings)
                value = _reached(partitions[at], column.figure)
            elif column.figure.startswith("speed/"):
                value = _reached({"speed": found.speed}, column.figure)
            else:
                value = _reached(found.scores.get(str(column.split), {}), column.figure)
            if value is not None:
                cell.values[job.seed] = value
        _summarise(cell)


def _summarise(cell: Cell) -> None:
    if cell.values:
        cell.mean = mean(cell.values.values())
        cell.std = stdev(cell.values.values()) if len(cell.values) > 1 else None


def _reached(content: Any, path: str) -> Any:
    """The value at a path in nested mappings, None where there is none."""
    for name in path.split("/"):
        if not isinstance(content, Mapping) or name not in content:
            return None
        content = content[name]
    return content


def _compare_rows(filled: Filled, plan: Plan) -> None:
    """Test rows against the baseline, and set columns of multiples against their row."""
    table = filled.table
    tests: dict[tuple[str, str, str], dict[str, Any] | None] = {}
    for (key, name), cell in filled.cells.items():
        column = table.columns[name]
        if column.over is not None:
            base = filled.cells[column.over, name].mean
            cell.over = cell.mean / base if base and cell.mean is not None else None
        if table.baseline in (None, key) or column.figure not in TESTED or not cell.values:
            continue
        assert column.run is not None and column.split is not None and table.baseline is not None
        at = (key, column.run, column.split)
        if at not in tests:
            tests[at] = _test(filled, plan, (key, column.run), (table.baseline, column.run), column.split)
        found = tests[at]
        if found is not None and column.figure in found:
            cell.p, cell.difference = found[column.figure]["p"], found[column.figure]["difference"]


def _test(
    filled: Filled, plan: Plan, row: tuple[str, str], baseline: tuple[str, str], split: str
) -> dict[str, Any] | None:
    """Test a row's run against the baseline's, over the seeds that both have finished on the same data."""
    pairs: list[tuple[Any, Any]] = []
    ours = {job.seed: job for job in plan.jobs.get(row, ())}
    theirs = {job.seed: job for job in plan.jobs.get(baseline, ())}
    for seed in ours.keys() & theirs.keys():
        facts = filled.facts[row].get(seed), filled.facts[baseline].get(seed)
        if facts[0] is None or facts[1] is None or facts[0].data["fingerprint"] != facts[1].data["fingerprint"]:
            continue
        counts = [json.loads((job.folder / COUNTS_FILE).read_text())[split] for job in (ours[seed], theirs[seed])]
        pairs.append((np.array(counts[0]), np.array(counts[1])))
    if not pairs or pairs[0][0].shape != pairs[0][1].shape:
        return None
    return significance([pair[0] for pair in pairs], [pair[1] for pair in pairs])


def _partition_of(job: Job, column: Column, row: TableRow, table: Table, settings: Settings) -> dict[str, Any]:
    """Score a saved model apart by what training and vectors have."""
    run = RunArguments(**_corpus_options(job))
    corpus = load_corpus(run.dataset, run.data_dir, **run.reading())
    tokens, gold = _sentences(corpus[str(column.split)])
    system = System.of_tagger(Tagger.from_pretrained(str(job.folder)), tokens, gold)
    words = {word for sentence in tokens for word in sentence}
    kind = row.vectors.get(str(column.run))
    file = vectors_of(kind, table, settings) if kind else NO_VECTORS
    return report(
        system, training=Training.of(*_sentences(corpus["train"])), vector_words=_known(file, words), resamples=0
    )


def _known(file: str, words: set[str]) -> list[str] | None:
    """Which of some words, or of their forms in lower case, have a vector; None without a file."""
    if file == NO_VECTORS:
        return None
    return read_vectors(file, wanted={*words, *map(str.lower, words)}).words


def _corpus_options(job: Job) -> dict[str, Any]:
    run = parse([*job.words, "--output_dir", str(job.folder)])[0]
    return {"dataset": run.dataset, "data_dir": run.data_dir, **run.reading()}


def _sentences(split: Any) -> tuple[list[list[str]], list[list[str]]]:
    names = split.features["ner_tags"].feature.names
    return list(split["tokens"]), [[names[tag] for tag in row] for row in split["ner_tags"]]


def _count(filled: Filled, settings: Settings) -> None:
    """Put the counts of corpora into the cells of a table that trains nothing."""
    table = filled.table
    for name, column in table.columns.items():
        if column.missing is not None:
            filled.notes.append(f"{column.head}: not counted; {column.missing}.")
            continue
        try:
            found = _counts_of(table, column, settings)
        except ValueError as error:
            filled.notes.append(f"{column.head}: {error}")
            continue
        for key, row in table.rows.items():
            value = _reached(found.get(str(row.split or column.split)), str(row.figure))
            if value is not None:
                filled.cells[key, name].values[0] = value
                filled.cells[key, name].mean = value


def _counts_of(table: Table, column: Column, settings: Settings) -> dict[str, Any]:
    """What is counted of a column's corpus, by split."""
    run = RunArguments(**{**column.options, "data_dir": settings.data_dir})
    if table.kind == "partition":
        file = vectors_of(str(column.vectors), table, settings)
    corpus = load_corpus(run.dataset, run.data_dir, **run.reading())
    if table.kind == "statistics":
        return corpus_statistics(corpus)
    tokens, gold = _sentences(corpus[str(column.split)])
    words = [word for sentence in tokens for word in sentence]
    training = Training.of(*_sentences(corpus["train"]))
    comparison = Comparison.of(gold, gold)
    return {str(column.split): vocabulary_partition(comparison, words, training.words, _known(file, set(words)))}


def _notes(
    table: Table,
    plan: Plan,
    failed: Mapping[Path, str],
    facts: Mapping[tuple[str, str], Mapping[int, Facts]],
) -> list[str]:
    """Why what is not measured is not."""
    notes = [f"{table.rows[key].name} ({run}): {sentence}" for (key, run), sentence in plan.missing.items()]
    if table.kind == "trained":
        strangers = [row.name for row in table.rows.values() if not row.recipes]
        if strangers:
            notes.append(f"Not ours, as published: {', '.join(strangers)}.")
    for (key, run), jobs in plan.jobs.items():
        for job in jobs:
            if job.seed not in facts[key, run]:
                why = failed.get(job.folder)
                said = f"failed: {why}" if why else "not run to its end."
                notes.append(f"{table.rows[key].name} ({run}), seed {job.seed}: {said}")
    return notes


def _deviations(table: Table, settings: Settings, facts: Mapping[tuple[str, str], Mapping[int, Facts]]) -> list[str]:
    """In what the runs differ from the paper's, as far as it can be told."""
    found = [f"{override} in place of the recipe's." for override in settings.overrides]
    given: dict[str, set[str]] = {}
    for of_seeds in facts.values():
        for one in of_seeds.values():
            for option, read in one.inputs.items():
                given.setdefault(option, set()).add(read["name"])
    found += [f"{option}: {', '.join(sorted(names))}." for option, names in sorted(given.items())]
    found += [
        f"No pretrained vectors in place of {kind or 'any'}."
        for kind, file in settings.vectors.items()
        if file == NO_VECTORS
    ]
    if table.kind == "trained" and table.paper_runs not in (None, len(settings.seeds)):
        found.append(f"{len(settings.seeds)} seeds; the paper has {table.paper_runs} runs.")
    return found
