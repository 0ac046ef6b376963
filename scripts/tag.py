"""Tag a file, a folder or a dataset on the Hub, of any size, as a stream.

    python scripts/tag.py SOURCE --model MODEL [--output OUT] [options]

SOURCE is a file of texts (one a line), of CoNLL columns, of JSON Lines or of Parquet, the first three plain or
compressed by gzip; a folder of such files; `-` for standard input; or owner/name on the Hub. One record is written for
each that is read, in order. An output file appears when it is complete; until then the same command continues it. Each
process of `accelerate launch` or `torchrun` writes its share to a file of its own in the folder OUT.
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
        print("tag.py: interrupted; the same command continues the output.", file=sys.stderr)
        sys.exit(130)
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f"tag.py: {error}")
    if tally.ignored:
        print(f"tag.py: {tally.ignored}", file=sys.stderr)
    if tally.faults:
        print(f"tag.py: {tally.faults} records got no entities; the first: {tally.first_fault}", file=sys.stderr)
    if options.output:
        seconds = time.monotonic() - start
        name = tally.outputs[0] if len(tally.outputs) == 1 else options.output
        print(f"written: {name} ({tally.records:,} records, {tally.words:,} words, {seconds:.1f} s)")


if __name__ == "__main__":
    main()
