"""`hf-xorner data`: count what a corpus contains, or write it in another format."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from pathlib import Path

from transformers.hf_argparser import string_to_bool

from ..corpora import Reading, corpus_statistics, load_corpus, statistics_table, write_corpus
from ..corpora.assemble import assemble
from ..corpora.load import inputs_of
from ..corpora.schemes import WRITTEN_SCHEMES
from ..corpora.source import SEPARATORS, WRITTEN_FORMATS
from ..files import check_apart
from .parser import DataclassParser, Parser

EXAMPLES = (
    "hf-xorner data stats conll2003 --data_dir corpora/",
    "hf-xorner data convert my_corpus/ --to spans --output as_spans/",
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of `hf-xorner data`."""
    # The names of writing's options differ from those of reading, which say how the source is written.
    reading = DataclassParser(Reading, add_help=False, allow_abbrev=False)
    parser = Parser(
        prog="hf-xorner data",
        description="Count what a corpus contains, or write it in another format. SOURCE is a corpus by name (xor, "
        "wnut17, conll2003, conll2002-es, conll2002-nl, ontonotes5), a file, a folder of files, or owner/name on the "
        "Hub.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, summary in (("stats", "Count what a corpus holds."), ("convert", "Write a corpus in another format.")):
        command = commands.add_parser(name, parents=[reading], help=summary, description=summary, allow_abbrev=False)
        command.add_argument("source", metavar="SOURCE", help="A corpus by name, a file, a folder of files, a Hub id.")
        command.add_argument("--data_dir", help="Where the files of a named corpus lie.")
        if name == "stats":
            command.add_argument("--json", type=Path, help="Where to write the figures.")
            continue
        command.add_argument("--to", required=True, help=f"The format to write: {', '.join(WRITTEN_FORMATS)}.")
        command.add_argument("--output", required=True, help="The folder to write into.")
        command.add_argument("--as_scheme", default="iob2", help=f"Scheme of the tags: {', '.join(WRITTEN_SCHEMES)}.")
        command.add_argument(
            "--as_separator", default="tab", help=f"What separates columns: {' or '.join(SEPARATORS)}."
        )
        command.add_argument(
            "--overwrite", type=string_to_bool, nargs="?", const=True, default=False, help="Replace files that exist."
        )
    return parser


@contextmanager
def formats_shown() -> Iterator[None]:
    """Log the format that each split is read as, which other commands do not show."""
    logging.basicConfig(format="%(message)s")
    logger = logging.getLogger(assemble.__module__)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(logging.NOTSET)


def run(words: Sequence[str]) -> None:
    """Print the statistics, or write the corpus."""
    options = parser().parse_args(words)
    told = {field.name: getattr(options, field.name) for field in fields(Reading)}
    with formats_shown() if options.command == "stats" else nullcontext():
        corpus = load_corpus(options.source, options.data_dir, **told)
    if options.command == "convert":
        inputs = inputs_of(options.source, options.data_dir)
        for path in write_corpus(
            corpus, options.output, options.to, options.as_scheme, options.as_separator, options.overwrite, inputs
        ):
            print(f"written: {path}")
        return
    statistics = corpus_statistics(corpus)
    if options.json:
        check_apart(options.json, *inputs_of(options.source, options.data_dir))
        options.json.write_text(json.dumps(statistics, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(statistics_table(statistics))
