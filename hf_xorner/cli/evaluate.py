"""`hf-xorner evaluate`: score a model on a corpus, or the predictions of any system."""

from collections.abc import Sequence
from itertools import takewhile

from ..errors import UsageError
from ..evaluation.evaluate import EvaluationOptions, score, write
from ..evaluation.report_text import report_text
from ..options import read_options

EXAMPLES = (
    "hf-xorner evaluate my_tagger my_corpus/ --json scores.json --plots pictures/",
    "hf-xorner evaluate my_tagger another_tagger my_corpus/",
    "hf-xorner evaluate my_tagger my_corpus/ --min_precision 95 --save_min_score",
    "hf-xorner evaluate --predictions any_system.tsv --compare another_system.tsv",
)
DESCRIPTION = (
    "Score a model on a corpus, or a file of predictions with a token, its gold tag and its predicted tag per line, "
    "separated by TABs, and an empty line after each sentence. If two models are given before the corpus, they are "
    "compared."
)
Options = EvaluationOptions


def run(words: Sequence[str]) -> None:
    """Print the scores, then write the files."""
    if len(list(takewhile(lambda word: not word.startswith("-"), words))) == 3:
        model, second, corpus, *rest = words
        if any(word.startswith("--compare") for word in rest):
            raise UsageError(f"both {second} and --compare name the other system; leave one of them out.")
        words = [model, corpus, f"--compare={second}", *rest]
    options = read_options(Options, words)
    system, figures = score(options)
    # Printed before anything is written, so that an unwritable path does not lose the scores.
    print(report_text(figures), flush=True)
    for path in write(options, system, figures):
        print(f"written: {path}")
