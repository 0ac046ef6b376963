"""The training runs of a table: planned from its recipes, several at a time, resumed after interruptions."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..corpora import load_corpus
from ..corpora.assemble import corpus_fingerprint
from ..files import FACTS_FILE
from ..options import option
from ..training.arguments import parse
from ..training.facts import INPUTS, input_facts, options_of, read_facts, versions
from .tables import Table, TableRow

LOG_FILE = "train.log"
#: Takes the place of a file of vectors: word vectors start at random.
NO_VECTORS = "none"
#: Why a row that was not asked for is not measured.
NOT_SELECTED = "not selected by only."

# Seconds between two checks of the runs.
_INTERVAL = 0.2


@dataclass
class Settings:
    """The options of a table's runs."""

    output: str = option("runs/tables", "The folder of the runs and of the filled table.")
    seeds: list[int] = option([1, 2, 3], "The seeds; every row is run with each of them.")
    override: list[str] = option(
        [],
        "Options that override the recipes, as OPTION=VALUE, or RUN:OPTION=VALUE for one of a row's runs. They are "
        "reported as deviations.",
    )
    vectors: list[str] = option(
        [], "Pretrained vectors, as FILE, or KIND=FILE for a kind in the table; none for random vectors."
    )
    context: str | None = option(None, "An encoder for rows with contextual features.")
    data_dir: str | None = option(None, "The folder of the files of named corpora.")
    only: list[str] = option([], "Only run these rows, or these runs of rows.")

    def __post_init__(self) -> None:
        self.seeds = list(dict.fromkeys(self.seeds))
        #: The files of vectors by kind; the kind "" means all.
        self.files: dict[str, str] = {}
        for word in self.vectors:
            # The part before "=" is a kind, unless it contains a slash.
            kind, equals, file = word.partition("=")
            self.files |= {kind: file} if equals and "/" not in kind else {"": word}


@dataclass(frozen=True)
class Job:
    """One training run: a recipe with a seed.

    Args:
        recipe: The recipe.
        seed: The seed.
        words: The arguments of train.py without the output folder.
        folder: The output folder. Its name contains a digest of everything that affects the result, so it never holds
            results of another run.
    """

    recipe: str
    seed: int
    words: tuple[str, ...]
    folder: Path

    def facts(self) -> dict[str, Any] | None:
        """Return the facts of the run, if it is complete."""
        return read_facts(self.folder) if (self.folder / FACTS_FILE).exists() else None

    def arguments(self) -> list[str]:
        """Return the arguments of train.py, which resume from the last checkpoint if there is one."""
        words = [*self.words, "--output_dir", str(self.folder), "--disable_tqdm", "true"]
        if any(self.folder.glob("checkpoint-*")):
            words += ["--resume_from_checkpoint", "true"]
        return words


class Plan(NamedTuple):
    """The runs of a table.

    Attributes:
        jobs: The jobs of all seeds, by row and run.
        missing: The reason why there are none, by row and run.
    """

    jobs: dict[tuple[str, str], list[Job]]
    missing: dict[tuple[str, str], str]

    def all(self) -> list[Job]:
        """Return every job once, sorted by seed."""
        jobs = {job.folder: job for of_row in self.jobs.values() for job in of_row}
        return sorted(jobs.values(), key=lambda job: job.seed)


def plan(table: Table, settings: Settings) -> Plan:
    """Find the runs that a table needs.

    Raises:
        ValueError: If settings are invalid, or name rows, runs or vectors that the table does not have.
    """
    _check(table, settings)
    planned = Plan({}, {})
    cache: dict[str, Any] = {}
    for key, row in table.rows.items():
        for run in row.recipes:
            try:
                words = _words(table, key, row, run, settings)
                planned.jobs[key, run] = [_job(words, seed, Path(settings.output), cache) for seed in settings.seeds]
            except ValueError as error:
                planned.missing[key, run] = str(error)
    return planned


def vectors_of(kind: str, table: Table, settings: Settings) -> str:
    """Return the file of vectors of a kind.

    Raises:
        ValueError: If none was given.
    """
    file = settings.files.get(kind, settings.files.get(""))
    if file is None:
        raise ValueError(f"needs vectors ({table.vectors[kind]}); pass --vectors {kind}=FILE.")
    return file


def _check(table: Table, settings: Settings) -> None:
    runs = {run for row in table.rows.values() for run in row.recipes}
    for override in settings.override:
        run, name, _ = _parsed(override)
        if not name or "=" not in override:
            raise ValueError(f"The override {override!r} sets nothing; write option=value.")
        if run and run not in runs:
            raise ValueError(f"The override {override!r} is for the run {run!r}; the table has {_listed(runs)}.")
    needed = {kind for row in table.rows.values() for kind in row.vectors.values()}
    needed |= {column.vectors for column in table.columns.values() if column.vectors}
    for kind in settings.files:
        if kind and kind not in needed:
            raise ValueError(f"vectors={kind!r} is not a kind of this table; it needs {_listed(needed)}.")
    if "" in settings.files and len(needed) > 1:
        raise ValueError(f"The table needs vectors of several kinds; give KIND=FILE for {_listed(needed)}.")
    for name in settings.only:
        if name not in table.rows and name not in runs:
            raise ValueError(f"only={name!r} is neither a row nor a run; choose from {_listed({*table.rows, *runs})}.")


def _parsed(override: str) -> tuple[str, str, str]:
    """Return the run (empty for all), the option and the value of an override."""
    name, _, value = override.partition("=")
    run, _, option = name.rpartition(":")
    return run, option.removeprefix("--"), value


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _words(table: Table, key: str, row: TableRow, run: str, settings: Settings) -> list[str]:
    """Return the arguments of a row's run; a ValueError says what is missing for it."""
    rows = set(settings.only) & set(table.rows)
    runs = set(settings.only) - rows
    if (rows and key not in rows) or (runs and run not in runs):
        raise ValueError(NOT_SELECTED)
    words = [row.recipes[run]]
    for override_run, name, value in map(_parsed, settings.override):
        words += [f"--{name}", value] if override_run in ("", run) else []
    kind = row.vectors.get(run)
    if kind is not None and (file := vectors_of(kind, table, settings)) != NO_VECTORS:
        words += ["--vectors", file]
    if row.context is not None:
        if settings.context is None:
            raise ValueError(f"needs an encoder ({row.context}); pass --context FOLDER.")
        words += ["--context", settings.context]
    if settings.data_dir is not None:
        words += ["--data_dir", settings.data_dir]
    return words


def _job(words: list[str], seed: int, output: Path, cache: dict[str, Any]) -> Job:
    """Return the job of a seed; `cache` has facts about files for other jobs."""
    words = [*words, "--seed", str(seed)]
    run, training, config_fields = parse([*words, "--output_dir", str(output)])
    names = [run.dataset, *run.more_data]
    corpus = json.dumps([names, run.data_dir, run.reading()])
    files = json.dumps([getattr(run, name) for name in INPUTS])
    if corpus not in cache:
        corpora = (load_corpus(name, run.data_dir, **run.reading()) for name in names)
        cache[corpus] = list(map(corpus_fingerprint, corpora))
    if files not in cache:
        cache[files] = input_facts(run)
    content = [options_of(run, training, config_fields), seed, cache[corpus], cache[files], versions()]
    identity = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    recipe = run.recipe or words[0]
    return Job(recipe, seed, tuple(words), output / recipe / f"seed-{seed}-{identity}")


# --- Running ---------------------------------------------------------------------------------------------------------


def execute(
    jobs: Sequence[Job],
    command: Sequence[str],
    at_once: int,
    threads: int,
    log: Callable[[str], None] = lambda line: None,
) -> dict[Path, str]:
    """Run jobs, each in a separate process; an exception ends all of them.

    Args:
        jobs: The jobs; complete ones are skipped.
        command: The command of `train.py`.
        at_once: The number of simultaneous runs.
        threads: The number of threads of each run.
        log: Called with a line when a run starts or ends.

    Returns:
        The last line of each failed run, by folder.
    """
    waiting = [job for job in jobs if job.facts() is None]
    running: dict[Job, subprocess.Popen[bytes]] = {}
    failed: dict[Path, str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                job = waiting.pop(0)
                running[job] = _start(job, command, threads)
                log(f"started {job.recipe}, seed {job.seed}")
            time.sleep(_INTERVAL)
            for job in [job for job, process in running.items() if process.poll() is not None]:
                code = running.pop(job).returncode
                if code == 0 and job.facts() is not None:
                    log(f"finished {job.recipe}, seed {job.seed}")
                    continue
                failed[job.folder] = _last_line(job.folder / LOG_FILE) or f"it ended with the code {code}"
                log(f"failed {job.recipe}, seed {job.seed}: {failed[job.folder]}")
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
    return failed


def _start(job: Job, command: Sequence[str], threads: int) -> subprocess.Popen[bytes]:
    job.folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    with (job.folder / LOG_FILE).open("ab") as log:
        # In a new session, so that Ctrl-C only reaches this process, which then ends the run.
        return subprocess.Popen(
            [*command, *job.arguments()], stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("hf-xorner train: ") if lines else ""
