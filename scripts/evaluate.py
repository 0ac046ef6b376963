"""Score a model on a corpus, or the predictions of any system, with every figure that papers on names give.

    python scripts/evaluate.py --model MODEL --dataset SOURCE [--split test] [options]
    python scripts/evaluate.py --predictions FILE [options]

MODEL is a folder or a Hub repository, SOURCE what load_corpus takes. FILE holds a token, its gold tag and its predicted
tag a line, separated by TABs, with an empty line after each sentence. seqeval scores the same tags, and nothing is
printed if its figures differ. `--help` lists the options.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import HfArgumentParser

from hf_xorner import Tagger
from hf_xorner.data import Reading, load_corpus
from hf_xorner.data.predictions import read_predictions, write_predictions
from hf_xorner.data.textfile import open_text
from hf_xorner.evaluation.report import System, Training, compare, report
from hf_xorner.evaluation.spans import POLICIES
from hf_xorner.evaluation.tables import report_text


@dataclass
class Options(Reading):
    """What is scored, and what is to come of it."""

    model: str | None = field(default=None, metadata={"help": "The model: a folder, or a repository of the Hub."})
    dataset: str | None = field(default=None, metadata={"help": "The corpus, as load_corpus takes it."})
    split: str = field(default="test", metadata={"help": "The split that is scored."})
    data_dir: str | None = field(default=None, metadata={"help": "Where the files of a named corpus lie."})
    predictions: str | None = field(default=None, metadata={"help": "A file of predictions, in place of a model."})
    train: str | None = field(
        default=None, metadata={"help": "The corpus trained on, for seen and unseen entities; by default the dataset."}
    )
    vector_words: str | None = field(
        default=None, metadata={"help": "A file of the words that have pretrained vectors, each the first of its line."}
    )
    policy: str = field(
        default="conlleval",
        metadata={"help": f"What malformed spans are: {' (repaired) or '.join(POLICIES[::-1])} (dropped)."},
    )
    compare: str | None = field(default=None, metadata={"help": "Predictions of another system, for the paired test."})
    json: str | None = field(default=None, metadata={"help": "Where to write all figures."})
    plots: str | None = field(default=None, metadata={"help": "The folder to draw pictures into."})
    save_predictions: str | None = field(default=None, metadata={"help": "Where to write the predictions."})
    resamples: int = field(default=1000, metadata={"help": "Resamples of the confidence intervals; 0 for none."})
    trials: int = field(default=10_000, metadata={"help": "Trials of the paired test."})
    seed: int = field(default=13, metadata={"help": "Of resamples and trials."})
    batch_size: int = field(default=64, metadata={"help": "Sentences of a batch."})
    device: str | None = field(default=None, metadata={"help": "Where the model runs: cpu, cuda, …"})


def main() -> None:
    """Run from the command line."""
    (options,) = HfArgumentParser(Options, allow_abbrev=False).parse_args_into_dataclasses()
    try:
        print(run(options))
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        sys.exit(f"evaluate.py: {error}")


def run(options: Options) -> str:
    """Score what the options name, write what they ask for, and return the tables."""
    if bool(options.predictions) == bool(options.model and options.dataset):
        raise ValueError("give either --model and --dataset, or --predictions.")
    corpus = load_corpus(options.dataset, options.data_dir, **options.reading()) if options.dataset else {}
    system = _system(options, corpus)
    figures = report(
        system,
        options.policy,
        options.scheme if options.predictions else "auto",
        _training(options, corpus),
        _first_words(options.vector_words) if options.vector_words else None,
        options.resamples,
        options.seed,
    )
    if options.compare:
        other = System(*read_predictions(options.compare))
        scheme = options.scheme if options.predictions else "auto"
        figures["compare"] = compare(system, other, options.policy, scheme, options.trials, options.seed)
    if options.save_predictions:
        write_predictions(options.save_predictions, system.tokens, system.gold, system.predicted)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.plots:
        from hf_xorner.evaluation.plots import draw

        draw(figures, options.plots)
    return report_text(figures)


def _system(options: Options, corpus: Any) -> System:
    if options.predictions:
        return System(*read_predictions(options.predictions))
    if options.split not in corpus:
        raise ValueError(f"{options.dataset} has no split {options.split!r}; choose one of {', '.join(corpus)}.")
    tokens, gold = _sentences(corpus[options.split])
    return System.of_tagger(Tagger.from_pretrained(options.model, options.device), tokens, gold, options.batch_size)


def _training(options: Options, corpus: Any) -> Training | None:
    """What the training data show, where they are known and are not what is scored."""
    if options.train:
        corpus = load_corpus(options.train, options.data_dir, **options.reading())
    elif options.split == "train":
        return None
    return Training.of(*_sentences(corpus["train"])) if "train" in corpus else None


def _sentences(split: Dataset) -> tuple[Sequence[Sequence[str]], list[list[str]]]:
    names = split.features["ner_tags"].feature.names
    return list(split["tokens"]), [[names[tag] for tag in row] for row in split["ner_tags"]]


def _first_words(path: str) -> set[str]:
    with open_text(Path(path)) as file:
        return {line.split(" ", 1)[0].split("\t", 1)[0].rstrip("\r\n") for line in file}


if __name__ == "__main__":
    main()
