"""Fill a table with published and measured figures, over seeds, tested against the baseline row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from ..corpora import load_corpus
from ..corpora.assemble import TRAIN, words_and_tags
from ..corpora.statistics import corpus_statistics
from ..evaluation.breakdowns import vocabulary_partition
from ..evaluation.comparison import Comparison
from ..evaluation.report import System, Training, report
from ..evaluation.resampling import randomisation_test
from ..tagger import Tagger
from ..training.arguments import RunArguments, parse
from ..training.facts import COUNTS_FILE
from ..vectors.formats import read_vectors
from .chunk_tags import raw_chunk_tags
from .jobs import NO_VECTORS, Job, Plan, Settings, vectors_of
from .tables import Column, Table, TableRow

# Figures that paired randomisation can test: micro averages of counts of sentences.
_TESTED = ("precision", "recall", "f1", "accuracy")


@dataclass
class Cell:
    """A figure of a table.

    Args:
        published: The figure in the paper, as printed; None if there is none.
        values: The measured figures by seed; a count has the key 0.
        mean: Their mean.
        std: Their sample standard deviation (n − 1), for at least two seeds.
        p: The p value of the difference to the baseline; see `randomisation_test`.
        difference: The figure minus the baseline's, over the seeds of both.
        shown: The maximum or multiple, in columns that show it in place of the mean.
    """

    published: Any = None
    values: dict[int, float] = field(default_factory=dict)
    mean: float | None = None
    std: float | None = None
    p: float | None = None
    difference: float | None = None
    shown: float | None = None


@dataclass
class Filled:
    """A table with the measured figures.

    Args:
        table: The definition.
        cells: The cells by row and column.
        deviations: Differences to the paper's runs, one sentence each.
        notes: Reasons for missing figures, one sentence each.
        facts: The facts of complete runs, by row and run, and by seed.
    """

    table: Table
    cells: dict[tuple[str, str], Cell]
    deviations: list[str]
    notes: list[str]
    facts: dict[tuple[str, str], dict[int, dict[str, Any]]] = field(default_factory=dict)


def fill(table: Table, plan: Plan, settings: Settings, failed: Mapping[Path, str] | None = None) -> Filled:
    """Fill a table from its complete runs.

    Args:
        table: The table.
        plan: The runs.
        settings: The options of the runs.
        failed: The last line of each failed run, by folder.
    """
    facts = {
        key: {job.seed: run_facts for job in jobs if (run_facts := job.facts()) is not None}
        for key, jobs in plan.jobs.items()
    }
    cells = {(key, name): Cell(row.published.get(name)) for key, row in table.rows.items() for name in table.columns}
    filled = Filled(table, cells, [], [], facts)
    filled.deviations += _deviations(filled, settings)
    if table.kind == "trained":
        _measure(filled, plan, settings)
        _compare_rows(filled, plan)
    else:
        _count(filled, settings)
    filled.notes += _notes(filled, plan, failed or {})
    return filled


def _measure(filled: Filled, plan: Plan, settings: Settings) -> None:
    """Fill the cells with the scores of models."""
    table = filled.table
    computed: dict[tuple[Path, str, str], dict[str, Any]] = {}
    for (key, name), cell in filled.cells.items():
        column, row = table.columns[name], table.rows[key]
        if column.run is None or column.figure is None:
            continue
        jobs = {job.seed: job for job in plan.jobs.get((key, column.run), ())}
        for seed, facts in filled.facts.get((key, column.run), {}).items():
            scores: Mapping[str, Any] = {"speed": facts["speed"], **facts["scores"].get(str(column.split), {})}
            kind = column.figure.partition("/")[0]
            if kind in ("vocabulary", "raw_chunk_tags") or column.split == TRAIN:
                at = (jobs[seed].folder, str(column.split), kind)
                if at not in computed:
                    computed[at] = _scores_of_model(kind, jobs[seed], column, row, table, settings)
                scores = computed[at]
            if (value := _value_at(scores, f"{column.figure}/{row.reads}" if row.reads else column.figure)) is not None:
                cell.values[seed] = value
    if table.change_from is not None:
        _subtract(filled, table.change_from)
    for cell in filled.cells.values():
        if cell.values:
            cell.mean = mean(cell.values.values())
            cell.std = stdev(cell.values.values()) if len(cell.values) > 1 else None


def _subtract(filled: Filled, base: str) -> None:
    """Subtract the figures of a row from the other rows, seed by seed."""
    for (key, name), cell in filled.cells.items():
        if key != base:
            subtrahend = filled.cells[base, name].values
            cell.values = {seed: value - subtrahend[seed] for seed, value in cell.values.items() if seed in subtrahend}


def _value_at(content: Any, path: str) -> Any:
    """Return the value at a path in nested mappings, None if there is none."""
    for name in path.split("/"):
        content = content.get(name) if isinstance(content, Mapping) else None
    return content


def _compare_rows(filled: Filled, plan: Plan) -> None:
    """Test rows against the baseline, and compute maxima over seeds and multiples of a row."""
    table = filled.table
    tests: dict[tuple[str, str, str], dict[str, Any]] = {}
    for (key, name), cell in filled.cells.items():
        column = table.columns[name]
        if column.highest:
            cell.shown = max(cell.values.values(), default=None)
        elif column.over is not None:
            base = filled.cells[column.over, name].mean
            cell.shown = cell.mean / base if base and cell.mean is not None else None
        if table.baseline in (None, key) or column.figure not in _TESTED or not cell.values:
            continue
        if not column.is_mean or column.split == TRAIN:
            continue
        at = (key, str(column.run), str(column.split))
        if at not in tests:
            tests[at] = _test(filled, plan, *at)
        if test := tests[at].get(str(column.figure)):
            cell.p, cell.difference = test["p"], test["difference"]


def _test(filled: Filled, plan: Plan, row: str, run: str, split: str) -> dict[str, Any]:
    """Test a row's run against the baseline's, over their common seeds with the same data; empty if there are none."""
    keys = (row, run), (str(filled.table.baseline), run)
    ours, theirs = (filled.facts.get(key, {}) for key in keys)
    folders = [{job.seed: job.folder for job in plan.jobs.get(key, ())} for key in keys]
    pairs = [
        [np.array(json.loads((of_row[seed] / COUNTS_FILE).read_text())[split]) for of_row in folders]
        for seed in ours.keys() & theirs.keys()
        if ours[seed]["data"]["fingerprint"] == theirs[seed]["data"]["fingerprint"]
    ]
    if not pairs or pairs[0][0].shape != pairs[0][1].shape:
        return {}
    # Summed over seeds: the runs of a system are not independent, so more seeds are no more evidence.
    return randomisation_test(*(np.sum(counts, axis=0) for counts in zip(*pairs, strict=True)))


def _scores_of_model(
    kind: str, job: Job, column: Column, row: TableRow, table: Table, settings: Settings
) -> dict[str, Any]:
    """Score a saved model by presence in training data and vectors, or its raw chunk tags."""
    run = parse([*job.words, "--output_dir", str(job.folder)])[0]
    corpus = load_corpus(run.dataset, run.data_dir, **run.reading())
    tokens, gold = words_and_tags(corpus[str(column.split)])
    tagger = Tagger.from_pretrained(str(job.folder))
    if kind == "raw_chunk_tags":
        return {kind: raw_chunk_tags(tagger, tokens, gold)}
    system = System.of_tagger(tagger, tokens, gold)
    vectors = row.vectors.get(str(column.run))
    vector_words = _known(vectors_of(vectors, table, settings) if vectors else NO_VECTORS, tokens)
    return report(system, training=Training.of(*words_and_tags(corpus[TRAIN])), vector_words=vector_words, resamples=0)


def _known(file: str, sentences: list[list[str]]) -> list[str] | None:
    """Return the words of sentences, also in lower case, that have a vector; None without a file."""
    if file == NO_VECTORS:
        return None
    words = {word for sentence in sentences for word in sentence}
    return read_vectors(file, wanted={*words, *map(str.lower, words)}).words


def _count(filled: Filled, settings: Settings) -> None:
    """Fill the cells of a table without training with the counts of datasets."""
    table = filled.table
    for name, column in table.columns.items():
        if column.missing is not None:
            continue
        try:
            of_splits = _counts_of(table, column, settings)
        except ValueError as error:
            filled.notes.append(f"{column.head}: {error}")
            continue
        for key, row in table.rows.items():
            counts = of_splits.get(str(row.split or column.split))
            value = _value_at(counts, f"{column.figure}/{row.figure}")
            if value is None:
                value = _value_at(counts, str(row.figure))
            if value is not None:
                filled.cells[key, name].values[0] = filled.cells[key, name].mean = value


def _counts_of(table: Table, column: Column, settings: Settings) -> dict[str, Any]:
    """Return the counts of a column's dataset, by split."""
    run = RunArguments(**{**column.options, "data_dir": settings.data_dir})
    file = vectors_of(str(column.vectors), table, settings) if table.kind == "partition" else NO_VECTORS
    corpus = load_corpus(run.dataset, run.data_dir, **run.reading())
    if table.kind == "statistics":
        return corpus_statistics(corpus)
    if missing := {TRAIN, str(column.split)}.difference(corpus):
        raise ValueError(f"{run.dataset} has no split {min(missing)!r}.")
    tokens, gold = words_and_tags(corpus[str(column.split)])
    words = [word for sentence in tokens for word in sentence]
    training = Training.of(*words_and_tags(corpus[TRAIN]))
    counts = vocabulary_partition(Comparison.of(gold, gold), words, training.words, _known(file, tokens))
    return {str(column.split): counts}


def _notes(filled: Filled, plan: Plan, failed: Mapping[Path, str]) -> list[str]:
    """Return the reasons for missing figures, one sentence each."""
    table = filled.table
    notes = [f"{column.head}: {column.missing}." for column in table.columns.values() if column.missing]
    notes += [f"{table.rows[key].name} ({run}): {sentence}" for (key, run), sentence in plan.missing.items()]
    published = [row.name for row in table.rows.values() if not row.recipes]
    if published and any(column.run for column in table.columns.values()):
        notes.append(f"Not ours, as published: {', '.join(published)}.")
    for (key, run), jobs in plan.jobs.items():
        for job in jobs:
            if job.seed not in filled.facts[key, run]:
                reason = f"failed: {failed[job.folder]}" if job.folder in failed else "not complete."
                notes.append(f"{table.rows[key].name} ({run}), seed {job.seed}: {reason}")
    return notes


def _deviations(filled: Filled, settings: Settings) -> list[str]:
    """Return the known differences to the paper's runs, one sentence each."""
    table = filled.table
    sentences = [f"{override} in place of the recipe's value." for override in settings.override]
    inputs: dict[str, set[str]] = {}
    for run_facts in (run_facts for of_seeds in filled.facts.values() for run_facts in of_seeds.values()):
        for option, read in run_facts["inputs"].items():
            inputs.setdefault(option, set()).add(read["name"])
    sentences += [f"{option}: {', '.join(sorted(names))}." for option, names in sorted(inputs.items())]
    without = [kind or "any" for kind, file in settings.files.items() if file == NO_VECTORS]
    sentences += [f"No pretrained vectors in place of {kind}." for kind in without]
    if table.kind == "trained" and table.paper_runs not in (None, len(settings.seeds)):
        sentences.append(f"{len(settings.seeds)} seeds; the paper has {table.paper_runs} runs.")
    return sentences
