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
    "zcat corpus.conll.gz | hf-xorner tag - --model my_tagger --input_format conll",
)


DESCRIPTION = (
    "Tag texts (one a line), CoNLL columns, JSON (an object a line, or an array), CSV or Parquet, also compressed by "
    "gzip: a file, a folder of files, - for standard input, or owner/name on the Hub. Writes one record for each that "
    "it reads, in order. An output is called NAME.partial until it is complete. A folder of inputs becomes a folder of "
    "outputs; a second run writes those that are missing."
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
