"""Count what a corpus holds, or write it in another format.

    python scripts/data.py stats SOURCE [--data_dir D] [--json OUT] [reading options]
    python scripts/data.py convert SOURCE --to FORMAT --output FOLDER [--as_scheme S] [--as_separator S]
                                   [--overwrite true] [reading options]

SOURCE is what load_corpus takes: a corpus by name (xor, wnut17, conll2003, ontonotes5), a file, a folder of files, or a
Hub id. The reading options say what is not to be recognised from the source itself; `stats --help` lists them.
"""

import argparse
import json
import sys
from dataclasses import fields
from pathlib import Path

from transformers import HfArgumentParser
from transformers.hf_argparser import string_to_bool

from hf_xorner.corpora import Reading, corpus_statistics, load_corpus, statistics_table, write_corpus
from hf_xorner.corpora.schemes import WRITTEN_SCHEMES
from hf_xorner.corpora.source import FORMATS, SEPARATORS


def arguments() -> argparse.ArgumentParser:
    """The options of both commands."""
    # The names of writing's options differ from those of reading, which say how the source is written.
    reading = HfArgumentParser(Reading, add_help=False, allow_abbrev=False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, summary in (("stats", "Count what a corpus holds."), ("convert", "Write a corpus in another format.")):
        command = commands.add_parser(name, parents=[reading], help=summary, description=summary, allow_abbrev=False)
        command.add_argument("source", metavar="SOURCE", help="A corpus by name, a file, a folder of files, a Hub id.")
        command.add_argument("--data_dir", help="Where the files of a named corpus lie.")
        if name == "stats":
            command.add_argument("--json", type=Path, help="Where to write the figures.")
            continue
        command.add_argument("--to", required=True, help=f"The format to write: {', '.join(FORMATS)}.")
        command.add_argument("--output", required=True, help="The folder to write into.")
        command.add_argument("--as_scheme", default="iob2", help=f"Scheme of the tags: {', '.join(WRITTEN_SCHEMES)}.")
        command.add_argument(
            "--as_separator", default="tab", help=f"What separates columns: {' or '.join(SEPARATORS)}."
        )
        command.add_argument(
            "--overwrite", type=string_to_bool, nargs="?", const=True, default=False, help="Replace files that exist."
        )
    return parser


def run(options: argparse.Namespace) -> str:
    """Do what was asked for, and return what is to be said about it."""
    told = {field.name: getattr(options, field.name) for field in fields(Reading)}
    corpus = load_corpus(options.source, options.data_dir, **told)
    if options.command == "convert":
        written = write_corpus(
            corpus, options.output, options.to, options.as_scheme, options.as_separator, options.overwrite
        )
        return "\n".join(f"written: {path}" for path in written)
    statistics = corpus_statistics(corpus)
    if options.json:
        options.json.write_text(json.dumps(statistics, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return statistics_table(statistics)


def main() -> None:
    """Run from the command line."""
    options = arguments().parse_args()
    try:
        report = run(options)
    except (ValueError, OSError) as error:
        sys.exit(f"data.py: {error}")
    print(report)


if __name__ == "__main__":
    main()
