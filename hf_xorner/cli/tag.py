"""`hf-xorner tag`: tag a file, a folder, a Hub dataset or standard input as a stream."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..options import option, read_options
from ..tagging import TaggingOptions, tag_source
from . import fail

EXAMPLES = (
    "hf-xorner tag texts.txt --model my_tagger --output entities.jsonl",
    "zcat corpus.conll.gz | hf-xorner tag - --model my_tagger --input_format columns",
)


DESCRIPTION = (
    "Tag texts (one a line), CoNLL columns, JSON (an object a line, or an array) or Parquet, plain or "
    "compressed by gzip: a file, a folder of files, - for standard input, or owner/name on the Hub. Writes one "
    "record for each that it reads, in order. The output appears when it is complete; until then, the same "
    "command continues it. Each process of `accelerate launch` or `torchrun` writes a shard of its own into the "
    "folder OUT."
)


@dataclass(kw_only=True)
class Options(TaggingOptions):
    """The options of tagging, with the source."""

    source: str = option(help="A file, a folder, - for standard input, or owner/name on the Hub.", positional=True)


def run(words: Sequence[str]) -> None:
    """Tag what the options name, and print a summary."""
    start = time.monotonic()
    options = read_options(Options, words)
    try:
        tally = tag_source(options.source, options)
    except KeyboardInterrupt:
        fail("tag", "interrupted; the same command continues the output.", 130)
    except RuntimeError as error:
        fail("tag", error)
    if tally.ignored:
        print(f"hf-xorner tag: {tally.ignored}", file=sys.stderr)
    if tally.faults:
        print(f"hf-xorner tag: {tally.faults} records got no entities; the first: {tally.first_fault}", file=sys.stderr)
    if options.output:
        seconds = time.monotonic() - start
        name = tally.outputs[0] if len(tally.outputs) == 1 else options.output
        print(f"written: {name} ({tally.records:,} records, {tally.words:,} words, {seconds:.1f} s)")
