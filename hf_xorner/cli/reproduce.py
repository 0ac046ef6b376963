"""`hf-xorner reproduce`: reproduce a table of a paper, and compare it with the published figures."""

import math
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ..files import locked, write_json, write_whole
from ..options import option, read_options
from ..papers.jobs import NOT_SELECTED, Plan, Settings, execute, plan
from ..papers.presentation import to_json, to_markdown
from ..papers.reproduction import fill
from ..papers.tables import Table, read_table
from ..training.recipes import table_names
from . import fail

TRAIN = [sys.executable, "-m", "hf_xorner", "train"]
EXAMPLES = (
    "hf-xorner reproduce",
    "hf-xorner reproduce ma2016/table7 --vectors glove.6B.100d.txt --data_dir corpora/ --seeds 1 2 3",
)


DESCRIPTION = (
    "Train the rows of a paper's table with several seeds, and write the table as Markdown and JSON. Each "
    "run has a folder in --output. Finished runs are not repeated; interrupted runs continue from the last checkpoint."
)


@dataclass
class Options(Settings):
    """The options of reproducing a table."""

    table: str | None = option(
        None,
        "A table, such as ma2016/table7, or a YAML file of the same form; without one, all tables are listed.",
        positional=True,
    )
    dry_run: bool = option(False, "Print the runs without starting them.")
    jobs: int | None = option(None, "Runs at a time; by default one per core, or one on a GPU.", bounds=(1, math.inf))


def run(words: Sequence[str]) -> None:
    """Run the table; exit with code 1 if a run failed."""
    # This also ends the child processes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(run_table(read_options(Options, words)))
    except KeyboardInterrupt:
        fail("reproduce", "interrupted; the same command continues.", 130)


def run_table(options: Options) -> int:
    """List tables, print a plan or run a table; return 1 if a run failed."""
    if options.table is None:
        for name in table_names():
            print(f"{name:<20}{read_table(name).title}")
        return 0
    table = read_table(options.table)
    planned = plan(table, options)
    reasons = [reason for reason in planned.missing.values() if reason != NOT_SELECTED]
    if options.override and reasons and not planned.jobs:
        raise ValueError(f"with these overrides, no row can be run: {reasons[0]}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    at_once = options.jobs or (1 if torch.cuda.is_available() else cores)
    if options.dry_run:
        print_plan(table, planned, at_once)
        return 0
    base = Path(options.output) / table.name
    with locked(base.with_name(f".{base.name}.lock"), base):
        failed = execute(planned.all(), TRAIN, at_once, max(1, cores // at_once), lambda line: print(line, flush=True))
        filled = fill(table, planned, options, failed)
        print(to_markdown(filled))
        for path in (
            write_whole(base.with_name(f"{base.name}.md"), to_markdown(filled)),
            write_json(base.with_name(f"{base.name}.json"), to_json(filled)),
        ):
            print(f"written: {path}")
    return 1 if failed else 0


def print_plan(table: Table, planned: Plan, at_once: int) -> None:
    """Print the runs and their states."""
    jobs = planned.all()
    print(f"{table.name}: {table.title}\n{len(jobs)} runs, {at_once} at a time")
    for job in jobs:
        state = "done" if job.facts() else "resumed" if "--resume_from_checkpoint" in job.arguments() else "new"
        print(f"  {state:<8} hf-xorner train {shlex.join(job.arguments())}")
    for (row, run_name), sentence in planned.missing.items():
        print(f"  missing  {table.rows[row].name} ({run_name}): {sentence}")
