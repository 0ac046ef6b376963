"""`hf-xorner reproduce`: run a table of a paper again, and compare it with what was published."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from ..files import locked, write_whole
from ..papers.jobs import Plan, Settings, execute, plan
from ..papers.presentation import draw_tables, to_json, to_markdown
from ..papers.reproduction import Filled, fill
from ..papers.results import merge_results, read_results
from ..papers.tables import Table, read_table
from ..training.recipes import table_names
from . import fail
from .parser import Parser

TRAIN = [sys.executable, "-m", "hf_xorner", "train"]
EXAMPLES = (
    "hf-xorner reproduce --list",
    "hf-xorner reproduce ma2016/table7 --vectors glove.6B.100d.txt --data_dir corpora/ --seeds 1 2 3",
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of `hf-xorner reproduce`."""
    parser = Parser(
        prog="hf-xorner reproduce",
        description="Train the rows of a paper's table over seeds, and write the table as Markdown, JSON and a "
        "picture. Runs go below --output, each into a folder of its own. Finished runs are not repeated; "
        "interrupted ones continue from their last checkpoint.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "table", nargs="?", help="One of --list, such as ma2016/table7, or a YAML file of the same form."
    )
    parser.add_argument("--list", action="store_true", help="List the tables.")
    parser.add_argument("--dry_run", action="store_true", help="Say what would be run, and run nothing.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="A run of every row for each.")
    parser.add_argument("--jobs", type=int, help="Runs at a time; by default one a core, and one on a GPU.")
    parser.add_argument("--output", default="runs/tables", help="The folder of the runs and of the filled table.")
    parser.add_argument(
        "--override",
        nargs="+",
        default=[],
        metavar="OPTION=VALUE",
        help="Options other than the recipes'; RUN:OPTION=VALUE for one of a row's runs. Printed as a deviation.",
    )
    parser.add_argument("--epochs", type=int, help="The same as --override num_train_epochs=EPOCHS.")
    parser.add_argument(
        "--vectors",
        nargs="+",
        default=[],
        metavar="[KIND=]FILE",
        help="Pretrained vectors, by the kind that the table names; none for random ones.",
    )
    parser.add_argument("--context", help="An encoder for rows with contextual features.")
    parser.add_argument("--data_dir", help="Where the files of named corpora lie.")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="Rows, runs of rows, or both, that are run."
    )
    parser.add_argument("--results", help="A JSON list of results to put the rows into.")
    return parser


def run(words: Sequence[str]) -> None:
    """Run the table; exits with 1 if a run failed."""
    options = parser().parse_args(words)
    # Ends the child processes too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(run_table(options))
    except KeyboardInterrupt:
        fail("reproduce", "interrupted; the same command continues.", 130)


def run_table(options: argparse.Namespace) -> int:
    """Do what the options say; 1 if some run failed."""
    if options.list:
        for name in table_names():
            print(f"{name:<20}{read_table(name).title}")
        return 0
    if options.table is None:
        raise ValueError("name a table; --list lists them.")
    table, settings = read_table(options.table), settings_of(options)
    planned = plan(table, settings)
    if settings.overrides and planned.missing and not planned.jobs:
        raise ValueError(f"with these overrides nothing can be run: {next(iter(planned.missing.values()))}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    at_once = jobs_at_once(options.jobs, cores)
    if options.dry_run:
        print_plan(table, planned, at_once)
        return 0
    base = settings.output / table.name
    if options.results:
        read_results(Path(options.results))  # refused before anything is trained
    with locked(lock_of(base), base):
        failed = execute(planned.all(), TRAIN, at_once, max(1, cores // at_once), lambda line: print(line, flush=True))
        filled = fill(table, planned, settings, failed)
        print(to_markdown(filled))
        for path in write(filled, base, options.results):
            print(f"written: {path}")
    return 1 if failed else 0


def lock_of(path: Path) -> Path:
    """The lock file of what is written to a path."""
    return path.with_name(f".{path.name}.lock")


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings of the table's runs."""
    overrides = list(options.override)
    if options.epochs is not None:
        overrides.append(f"num_train_epochs={options.epochs}")
    if len(set(options.seeds)) < len(options.seeds):
        raise ValueError("a seed is named twice; each is one run.")
    vectors = {}
    for given in options.vectors:
        # What stands before "=" is a kind, unless the whole is a path.
        kind, equals, file = given.partition("=")
        vectors.update({kind: file} if equals and "/" not in kind else {"": given})
    return Settings(
        output=Path(options.output),
        seeds=options.seeds,
        overrides=overrides,
        vectors=vectors,
        context=options.context,
        data_dir=options.data_dir,
        only=options.only,
    )


def jobs_at_once(asked: int | None, cores: int) -> int:
    """Return the number of runs at a time."""
    if asked is not None:
        if asked < 1:
            raise ValueError(f"jobs={asked} is too small; give 1 or more.")
        return asked
    import torch

    return 1 if torch.cuda.is_available() else cores


def print_plan(table: Table, planned: Plan, at_once: int) -> None:
    """Say what would be run."""
    jobs = planned.all()
    print(f"{table.name}: {table.title}\n{len(jobs)} runs, {at_once} at a time")
    for job in jobs:
        state = "done" if job.facts() else "resumed" if "--resume_from_checkpoint" in job.arguments() else "new"
        print(f"  {state:<8} hf-xorner train {' '.join(job.arguments())}")
    for (row, run_name), sentence in planned.missing.items():
        print(f"  missing  {table.rows[row].name} ({run_name}): {sentence}")


def write(filled: Filled, base: Path, results: str | None) -> list[Path]:
    """Write the filled table, and return the files."""
    written = [
        write_whole(base.with_name(f"{base.name}.md"), to_markdown(filled)),
        write_whole(base.with_name(f"{base.name}.json"), to_json(filled)),
    ]
    if results:
        with locked(lock_of(Path(results)), results):
            merge_results(Path(results), filled)
        written.append(Path(results))
    try:
        picture = draw_tables(filled, base.with_name(f"{base.name}.png"))
    except ImportError as error:
        print(f"no picture: {error}", file=sys.stderr)
    else:
        written += [picture] if picture else []
    return written
