"""The runs behind a table: planned from its recipes, trained several at once, resumed where they stopped."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from transformers.trainer_utils import get_last_checkpoint

from ..corpora import load_corpus
from ..corpora.assemble import corpus_fingerprint
from ..training import parse
from ..training.facts import FACTS_FILE, Facts, input_facts, options_of, versions
from .tables import Table, TableRow

LOG_FILE = "train.log"
#: In place of a file of vectors: words start from random ones.
NO_VECTORS = "none"

# How long a run that is to end may take over it, and how often it is looked at, in seconds.
_GRACE, _GLANCE = 15.0, 0.2


@dataclass
class Settings:
    """How a table is run.

    Args:
        output: The folder that all runs lie below.
        seeds: A run for each.
        overrides: What is done otherwise than in the recipes, `option=value`, or `run:option=value` for one of a row's
            runs, such as `pos:dataset=wsj/`.
        vectors: Files of vectors by kind, or "none"; that of the kind "" serves every kind.
        context: An encoder.
        data_dir: Where the files of named corpora lie.
        only: Rows, or runs of rows, that are run; all of them if empty.
    """

    output: Path
    seeds: Sequence[int] = (1, 2, 3)
    overrides: Sequence[str] = ()
    vectors: Mapping[str, str] = field(default_factory=dict)
    context: str | None = None
    data_dir: str | None = None
    only: Sequence[str] = ()


@dataclass(frozen=True)
class Job:
    """One training: a recipe with a seed.

    Args:
        recipe: The recipe.
        seed: Its seed.
        words: The arguments of train.py besides the folder.
        identity: A digest of everything that its result depends on.
        folder: Where it goes. The digest is part of its name, so what lies there is of the same run.
    """

    recipe: str
    seed: int
    words: tuple[str, ...]
    identity: str
    folder: Path

    def facts(self) -> Facts | None:
        """What came of it, if it has been run to its end."""
        if not (self.folder / FACTS_FILE).is_file():
            return None
        try:
            facts = Facts.read(self.folder)
        except ValueError:
            return None
        same = identity_of(facts.options, facts.seed, facts.data["fingerprint"], facts.inputs, facts.versions)
        return facts if same == self.identity else None

    def arguments(self) -> list[str]:
        """The arguments of train.py, which go on from the last checkpoint where there is one."""
        words = [*self.words, "--output_dir", str(self.folder), "--disable_tqdm", "true"]
        if self.folder.is_dir() and get_last_checkpoint(str(self.folder)):
            words += ["--resume_from_checkpoint", "true"]
        return words


class Plan(NamedTuple):
    """What is to be run for a table.

    Attributes:
        jobs: By row and run, a job for each seed.
        missing: By row and run, why there is none.
    """

    jobs: dict[tuple[str, str], list[Job]]
    missing: dict[tuple[str, str], str]

    def all(self) -> list[Job]:
        """Every job once, whatever rows share it; one seed of all rows before the next."""
        jobs = {job.folder: job for of_row in self.jobs.values() for job in of_row}
        return sorted(jobs.values(), key=lambda job: job.seed)


def plan(table: Table, settings: Settings) -> Plan:
    """Find out what a table needs, and what of that is there.

    Args:
        table: The table.
        settings: How it is run.

    Raises:
        ValueError: If an override is none, or names what the table does not have.
    """
    _check(table, settings)
    found = Plan({}, {})
    known: dict[str, Any] = {}
    for key, row in table.rows.items():
        for run in row.recipes:
            try:
                found.jobs[key, run] = _jobs(table, key, row, run, settings, known)
            except ValueError as error:
                found.missing[key, run] = str(error)
    return found


def identity_of(
    options: Mapping[str, Any], seed: int, fingerprint: str, inputs: Mapping[str, Any], versions: Mapping[str, str]
) -> str:
    """A digest of all that the result of a run depends on."""
    content = [dict(options), seed, fingerprint, dict(inputs), dict(versions)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def execute(
    jobs: Sequence[Job],
    command: Sequence[str],
    at_once: int,
    threads: int,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[Path, str]:
    """Run jobs, each in a process of its own; whatever ends this, ends them.

    Args:
        jobs: What is to be run; what has been run to its end is left alone.
        command: The command that `train.py` is started by.
        at_once: How many run at a time.
        threads: How many threads each has.
        tell: Is told what begins and ends.

    Returns:
        For the folder of each that failed, the last line that it left.
    """
    waiting = [job for job in jobs if job.facts() is None]
    running: dict[Job, subprocess.Popen[bytes]] = {}
    failed: dict[Path, str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                job = waiting.pop(0)
                running[job] = _start(job, command, threads)
                tell(f"started {job.recipe}, seed {job.seed}")
            time.sleep(_GLANCE)
            for job in [job for job, process in running.items() if process.poll() is not None]:
                code = running.pop(job).returncode
                if code == 0 and job.facts() is not None:
                    tell(f"finished {job.recipe}, seed {job.seed}")
                    continue
                failed[job.folder] = _last_line(job.folder / LOG_FILE) or f"it ended with the code {code}"
                tell(f"failed {job.recipe}, seed {job.seed}: {failed[job.folder]}")
    finally:
        _end(list(running.values()))
    return failed


def options_of_override(override: str, run: str) -> list[str]:
    """An override as words of a command line, none where it is meant for another run."""
    name, _, value = override.partition("=")
    meant, _, option = name.rpartition(":")
    return [f"--{option.removeprefix('--')}", value] if meant in ("", run) else []


def _check(table: Table, settings: Settings) -> None:
    runs = {run for row in table.rows.values() for run in row.recipes}
    for override in settings.overrides:
        name, equals, _ = override.partition("=")
        meant = name.rpartition(":")[0]
        if not equals or not name.rpartition(":")[2]:
            raise ValueError(f"The override {override!r} sets nothing; write option=value.")
        if meant and meant not in runs:
            raise ValueError(f"The override {override!r} is for the run {meant!r}; the table has {', '.join(runs)}.")
    needed = {kind for row in table.rows.values() for kind in row.vectors.values()}
    needed |= {column.vectors for column in table.columns.values() if column.vectors}
    for kind in settings.vectors:
        if kind and kind not in needed:
            raise ValueError(f"vectors={kind!r} is no kind that the table needs; it needs {_listed(needed)}.")
    if "" in settings.vectors and len(needed) > 1:
        raise ValueError(f"The table needs vectors of several kinds; say which, as KIND=FILE: {_listed(needed)}.")
    for name in settings.only:
        if name not in table.rows and name not in runs:
            raise ValueError(f"only={name!r} is neither a row nor a run; choose from {_listed({*table.rows, *runs})}.")


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _jobs(table: Table, key: str, row: TableRow, run: str, settings: Settings, known: dict[str, Any]) -> list[Job]:
    """The jobs of a row's run; what is missing is said in a ValueError."""
    only = set(settings.only)
    if (only and not (only & {key, run})) or (only & set(table.rows) and key not in only):
        raise ValueError("not asked for.")
    words = [row.recipes[run]]
    for override in settings.overrides:
        words += options_of_override(override, run)
    kind = row.vectors.get(run)
    if kind is not None and (file := vectors_of(kind, table, settings)) != NO_VECTORS:
        words += ["--vectors", file]
    if row.context is not None:
        if settings.context is None:
            raise ValueError(f"needs an encoder ({row.context}); give it as --context FOLDER.")
        words += ["--context", settings.context]
    if settings.data_dir is not None:
        words += ["--data_dir", settings.data_dir]
    return [_job(words, seed, settings.output, known) for seed in settings.seeds]


def vectors_of(kind: str, table: Table, settings: Settings) -> str:
    """The file of vectors of a kind.

    Raises:
        ValueError: If none was given.
    """
    file = settings.vectors.get(kind, settings.vectors.get(""))
    if file is None:
        raise ValueError(f"needs vectors ({table.vectors[kind]}); give them as --vectors {kind}=FILE.")
    return file


def _job(words: list[str], seed: int, output: Path, known: dict[str, Any]) -> Job:
    """The job of a recipe and a seed; what has been read for another one is known and not read again."""
    words = [*words, "--seed", str(seed)]
    run, training, config_fields = parse([*words, "--output_dir", str(output)])
    fingerprint = _once(
        known,
        json.dumps([run.dataset, run.data_dir, run.reading()]),
        lambda: corpus_fingerprint(load_corpus(run.dataset, run.data_dir, **run.reading())),
    )
    inputs = _once(known, json.dumps([run.vectors, run.composed, run.context]), lambda: input_facts(run))
    identity = identity_of(options_of(run, training, config_fields), seed, fingerprint, inputs, versions())
    recipe = run.recipe or words[0]
    return Job(recipe, seed, tuple(words), identity, output / recipe / f"seed-{seed}-{identity}")


def _once(known: dict[str, Any], name: str, read: Callable[[], Any]) -> Any:
    """What is read by a name, or the error that came of it, also if it is asked for again."""
    if name not in known:
        try:
            known[name] = read()
        except ValueError as error:
            known[name] = error
    if isinstance(known[name], ValueError):
        raise known[name]
    return known[name]


def _start(job: Job, command: Sequence[str], threads: int) -> subprocess.Popen[bytes]:
    job.folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    with (job.folder / LOG_FILE).open("ab") as log:
        # In a group of its own, so that an interruption from the keyboard reaches it through `_end` alone.
        return subprocess.Popen(
            [*command, *job.arguments()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End processes and what they have started: politely first."""
    for process in processes:
        _signal(process, signal.SIGTERM)
    patience = time.monotonic() + _GRACE
    for process in processes:
        try:
            process.wait(max(0.1, patience - time.monotonic()))
        except subprocess.TimeoutExpired:
            _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
            process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    if process.poll() is not None:
        return
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.terminate()
    except ProcessLookupError:
        pass


def _last_line(log: Path) -> str:
    """What a failed run said last, without the name of the script."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("train.py: ") if lines else ""
