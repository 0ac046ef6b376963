"""`hf-xorner evaluate`: score a model on a corpus, or the predictions of any system."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..corpora.predictions import write_predictions
from ..evaluation.evaluate import EvaluationOptions, score
from ..evaluation.report import System
from ..evaluation.tables import report_text
from ..evaluation.thresholds import save_min_score
from . import fail
from .parser import DataclassParser

EXAMPLES = (
    "hf-xorner evaluate --model my_tagger --dataset my_corpus/ --json scores.json --plots pictures/",
    "hf-xorner evaluate --model my_tagger --dataset my_corpus/ --min_precision 95 --save_min_score true",
    "hf-xorner evaluate --predictions any_system.tsv --compare another_system.tsv",
)
DESCRIPTION = (
    "Score a model on a corpus, or a file of predictions: a token, its gold tag and its predicted tag a line, "
    "separated by tabs, with an empty line after each sentence. seqeval scores the same tags; if its scores differ, "
    "nothing is printed."
)
#: The options that --help shows; --help-all shows those of reading, too.
GROUPS = {
    "model and data": ("model", "dataset", "split", "data_dir", "predictions", "train", "vector_words"),
    "scores": ("policy", "compare", "min_precision", "save_min_score", "resamples", "trials", "seed"),
    "output": ("json", "plots", "save_predictions", "batch_size", "device"),
}


def parser() -> DataclassParser:
    """Return the parser of `hf-xorner evaluate`."""
    return DataclassParser(EvaluationOptions, prog="hf-xorner evaluate", description=DESCRIPTION, allow_abbrev=False)


def run(words: Sequence[str]) -> None:
    """Print the scores, then write what the options ask for."""
    (options,) = parser().parse_args_into_dataclasses(list(words))
    try:
        system, figures = score(options)
    except RuntimeError as error:
        fail("evaluate", error)
    # Printed before anything is written, so that an unwritable path does not lose the scores.
    print(report_text(figures), flush=True)
    for path in write(options, system, figures):
        print(f"written: {path}")


def write(options: EvaluationOptions, system: System, figures: dict[str, Any]) -> list[Path]:
    """Write what the options ask for, and return the files."""
    written = []
    if options.save_predictions:
        written.append(Path(options.save_predictions))
        write_predictions(written[-1], system.tokens, system.gold, system.predicted)
    if options.json:
        written.append(Path(options.json))
        written[-1].parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False)
        written[-1].write_text(f"{text}\n", encoding="utf-8")
    if options.save_min_score:
        written.append(save_min_score(Path(str(options.model)), figures["min_score"]["value"]))
    if options.plots:
        from ..evaluation.plots import draw

        written += draw(figures, options.plots)
    return written
