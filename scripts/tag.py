"""Tag a file, a folder or a data set of the Hub, of any size, as a stream.

    python scripts/tag.py SOURCE --model MODEL [--output OUT] [options]

SOURCE is a file of texts (one a line), of CoNLL columns, of JSON Lines or of Parquet, the first three plain or
compressed by gzip; a folder of such files; `-` for standard input; or owner/name of the Hub. One record is written for
each that is read, in order. The output appears when it is complete: until then OUT.partial stands there, and the same
command goes on from it. Also to be started by `accelerate launch` or `torchrun`. `--help` lists the options.
"""

import argparse
import os
import sys
import time

from transformers import HfArgumentParser

import hf_xorner  # noqa: F401  registers the architectures
from hf_xorner.tagging import TaggingOptions, tag_source


def arguments() -> tuple[str, TaggingOptions]:
    """The source and the options."""
    options = HfArgumentParser(TaggingOptions, add_help=False, allow_abbrev=False)
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[options],
        allow_abbrev=False,
    )
    parser.add_argument("source", metavar="SOURCE", help="A file, a folder, - or owner/name.")
    found = vars(parser.parse_args())
    return found.pop("source"), TaggingOptions(**found)


def main() -> None:
    """Run from the command line."""
    start = time.monotonic()
    try:
        source, options = arguments()
        tally = tag_source(source, options)
    except BrokenPipeError:
        # Whoever read the output wants no more. Python would complain once more when it closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    except KeyboardInterrupt:
        print(
            "tag.py: interrupted; an output is kept as far as it came, and the same command goes on.", file=sys.stderr
        )
        sys.exit(130)
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f"tag.py: {error}")
    if tally is None:
        return
    if tally.left_out:
        print(f"tag.py: {tally.left_out}", file=sys.stderr)
    if tally.faults:
        print(f"tag.py: {tally.faults} records got no entities; the first: {tally.first_fault}", file=sys.stderr)
    if options.output:
        seconds = time.monotonic() - start
        print(f"written: {options.output} ({tally.records:,} records, {tally.words:,} words, {seconds:.1f} s)")


if __name__ == "__main__":
    main()
