"""`hf-xorner tag`: tag a file, a folder, a Hub dataset or standard input as a stream."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from ..tagging import TaggingOptions, tag_source
from . import fail
from .parser import DataclassParser, Parser

EXAMPLES = (
    "hf-xorner tag texts.txt --model my_tagger --output entities.jsonl",
    "zcat corpus.conll.gz | hf-xorner tag - --model my_tagger --input_format columns",
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of `hf-xorner tag`."""
    options = DataclassParser(TaggingOptions, add_help=False, allow_abbrev=False)
    parser = Parser(
        prog="hf-xorner tag",
        description="Tag texts (one a line), CoNLL columns, JSON (an object a line, or an array), CSV or Parquet, also "
        "compressed by gzip: a file, a folder of files, - for standard input, or owner/name on the Hub. Writes one "
        "record for each that it reads, in order. An output is called NAME.partial until it is complete. A folder of "
        "inputs becomes a folder of outputs; a second run writes those that are missing.",
        parents=[options],
        allow_abbrev=False,
    )
    parser.add_argument("source", metavar="SOURCE", help="A file, a folder, - or owner/name.")
    return parser


def run(words: Sequence[str]) -> None:
    """Tag what the options name, and print a summary."""
    start = time.monotonic()
    found = vars(parser().parse_args(words))
    source, options = found.pop("source"), TaggingOptions(**found)
    try:
        tally = tag_source(source, options)
    except KeyboardInterrupt:
        fail("tag", "interrupted.", 130)
    except RuntimeError as error:
        fail("tag", error)
    if tally.ignored:
        print(
            f"hf-xorner tag: {len(tally.ignored)} files were ignored for their suffix, such as {tally.ignored[0]}; "
            "name input_format to read all files.",
            file=sys.stderr,
        )
    if tally.faults:
        print(f"hf-xorner tag: {tally.faults} records are bad; the first: {tally.first_fault}", file=sys.stderr)
    if options.output:
        kept = f"; {tally.existing} files were complete already" if tally.existing else ""
        figures = f"{tally.records:,} records, {tally.words:,} words, {time.monotonic() - start:.1f} s"
        print(f"written: {options.output} ({figures}{kept})")
