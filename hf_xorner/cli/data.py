"""`hf-xorner data`: print the statistics of a corpus, or convert it to another format."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ..corpora import ReadingOptions, corpus_statistics, load_corpus, statistics_table, write_corpus
from ..corpora.assemble import assemble
from ..corpora.load import inputs_of
from ..corpora.schemes import WRITTEN_SCHEMES
from ..corpora.source import WRITTEN_FORMATS
from ..files import check_apart, write_json
from ..options import Commands, option, run_command

EXAMPLES = (
    "hf-xorner data my_corpus/",
    "hf-xorner data stats conll2003 --data_dir corpora/",
    "hf-xorner data convert my_corpus/ --to spans --output as_spans/",
)


DESCRIPTION = (
    "Print the statistics of a corpus, or convert it. DATASET is a corpus by name (xor, wnut17, conll2003, "
    "conll2002-es, conll2002-nl, ontonotes5), a file, a folder of files, or owner/name on the Hub. `data DATASET` is "
    "the same as `data stats DATASET`."
)


@dataclass(kw_only=True)
class Options(ReadingOptions):
    """The corpus to read."""

    dataset: str = option(help="A corpus by name, a file, a folder of files, a Hub id.", positional=True)
    data_dir: str | None = option(None, "The folder of the files of a named corpus.", group="data")


@dataclass(kw_only=True)
class StatsOptions(Options):
    """The options of `stats`."""

    json: str | None = option(None, "Write the figures to this JSON file.", group="output")


# The options of writing have a prefix, since the options of reading have the same names.
@dataclass(kw_only=True)
class ConvertOptions(Options):
    """The options of `convert`."""

    to: str = option(
        help=f"The format to write: {', '.join(WRITTEN_FORMATS)}.", group="output", choices=WRITTEN_FORMATS
    )
    output: str = option(help="The folder to write into.", group="output")
    as_scheme: str = option(
        "iob2", f"Scheme of the tags: {', '.join(WRITTEN_SCHEMES)}.", group="output", choices=WRITTEN_SCHEMES
    )
    overwrite: bool = option(False, "Replace files that exist.", group="output")


def stats(options: StatsOptions) -> None:
    """Print the statistics of a corpus."""
    # This command also logs the format of each split.
    logging.basicConfig(format="%(message)s")
    logger = logging.getLogger(assemble.__module__)
    logger.setLevel(logging.INFO)
    try:
        corpus = load_corpus(options.dataset, options.data_dir, **options.reading())
    finally:
        logger.setLevel(logging.NOTSET)
    statistics = corpus_statistics(corpus)
    if options.json:
        check_apart(options.json, *inputs_of(options.dataset, options.data_dir))
        write_json(options.json, statistics)
    print(statistics_table(statistics))


def convert(options: ConvertOptions) -> None:
    """Write a corpus in another format."""
    corpus = load_corpus(options.dataset, options.data_dir, **options.reading())
    inputs = inputs_of(options.dataset, options.data_dir)
    for path in write_corpus(corpus, options.output, options.to, options.as_scheme, options.overwrite, inputs):
        print(f"written: {path}")


#: The command if none is named.
DEFAULT = "stats"
COMMANDS: Commands = {"stats": (StatsOptions, stats), "convert": (ConvertOptions, convert)}


def run(words: Sequence[str]) -> None:
    """Run one of the commands."""
    run_command(COMMANDS, words)
