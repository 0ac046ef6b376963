"""`hf-xorner evaluate`: score a model on a corpus, or the predictions of any system."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from datasets import Dataset

from ..corpora import Reading, load_corpus
from ..corpora.predictions import read_predictions, write_predictions
from ..corpora.schemes import EDGE, recognise
from ..corpora.source import AUTO
from ..evaluation.report import System, Training, compare, report
from ..evaluation.spans import POLICIES, Policy
from ..evaluation.tables import report_text
from ..files import open_text
from ..tagger import Tagger
from . import fail
from .parser import DataclassParser

EXAMPLES = (
    "hf-xorner evaluate --model my_tagger --dataset my_corpus/ --json scores.json --plots pictures/",
    "hf-xorner evaluate --predictions any_system.tsv --compare another_system.tsv",
)
DESCRIPTION = (
    "Score a model on a corpus, or a file of predictions: a token, its gold tag and its predicted tag a line, "
    "separated by tabs, with an empty line after each sentence. seqeval scores the same tags; if its scores differ, "
    "nothing is printed."
)


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
    policy: Policy = field(
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

    def __post_init__(self) -> None:
        """Refuse at once what would otherwise come out after the model has run."""
        super().__post_init__()
        if self.policy not in POLICIES:
            raise ValueError(f"unknown policy {self.policy!r}; expected one of {', '.join(POLICIES)}.")
        for name, least in (("resamples", 0), ("trials", 1), ("seed", 0), ("batch_size", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)} is too small; give {least} or more.")
        for name in ("json", "save_predictions"):
            if getattr(self, name) and Path(getattr(self, name)).is_dir():
                raise ValueError(f"{name}={getattr(self, name)} is a folder; name a file.")


def parser() -> DataclassParser:
    """Return the parser of `hf-xorner evaluate`."""
    return DataclassParser(Options, prog="hf-xorner evaluate", description=DESCRIPTION, allow_abbrev=False)


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


def score(options: Options) -> tuple[System, dict[str, Any]]:
    """Score what the options name; what can fail on its own comes before the model, which may take long."""
    if bool(options.predictions) == bool(options.model) or (options.model and not options.dataset):
        raise ValueError("give either --model and --dataset, or --predictions.")
    reading = options.reading()
    if options.predictions:
        reading["scheme"] = AUTO  # the option speaks of the predictions
    corpus = load_corpus(options.dataset, options.data_dir, **reading) if options.dataset else {}
    training = _training(options, corpus, reading)
    vector_words = _first_words(options.vector_words) if options.vector_words else None
    if vector_words is not None and training is None:
        raise ValueError("vector_words tells words apart together with those of the training data; name them as train.")
    other = System(*read_predictions(options.compare)) if options.compare else None
    system = System(*read_predictions(options.predictions)) if options.predictions else _tagged(options, corpus)
    scheme = _scheme(options, system.gold)
    figures = report(system, options.policy, scheme, training, vector_words, options.resamples, options.seed)
    if other:
        figures["compare"] = compare(system, other, options.policy, scheme, options.trials, options.seed)
    return system, figures


def write(options: Options, system: System, figures: dict[str, Any]) -> list[Path]:
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
    if options.plots:
        from ..evaluation.plots import draw

        written += draw(figures, options.plots)
    return written


def _tagged(options: Options, corpus: Any) -> System:
    """Have the model tag the split."""
    if options.split not in corpus:
        raise ValueError(f"{options.dataset} has no split {options.split!r}; choose one of {', '.join(corpus)}.")
    tokens, gold = _sentences(corpus[options.split])
    assert options.model is not None
    tagger = Tagger.from_pretrained(options.model, options.device)
    known, wanted = (
        [label for label in labels if label != "O"]
        for labels in (tagger.model.config.labels, corpus[options.split].features["ner_tags"].feature.names)
    )
    if wanted and not set(wanted) & set(known):
        raise ValueError(
            f"{options.model} knows none of the labels of {options.dataset}: it has {', '.join(known[:3])}, …, and the "
            f"corpus {', '.join(wanted[:3])}, …; score it on a corpus with its labels."
        )
    return System.of_tagger(tagger, tokens, gold, options.batch_size)


def _training(options: Options, corpus: Any, reading: dict[str, Any]) -> Training | None:
    """What the training data show, where they are known and are not what is scored."""
    if options.train:
        corpus = load_corpus(options.train, options.data_dir, **reading)
        if "train" not in corpus:
            raise ValueError(f"{options.train} has no split 'train'; it has {', '.join(corpus)}.")
    elif options.split == "train":
        return None
    return Training.of(*_sentences(corpus["train"])) if "train" in corpus else None


def _scheme(options: Options, gold: Sequence[Sequence[str]]) -> Any:
    """The scheme of the tags, as far as the report does not see it by itself: in a file, it takes IOB1 for IOB2."""
    if not options.predictions:
        return AUTO
    if options.scheme != AUTO:
        return options.scheme
    pairs = {pair for tags in gold for pair in pairwise((EDGE, *tags, EDGE))}
    return "iob1" if recognise(pairs) == "iob1" else AUTO


def _sentences(split: Dataset) -> tuple[Sequence[Sequence[str]], list[list[str]]]:
    names = split.features["ner_tags"].feature.names
    return list(split["tokens"]), [[names[tag] for tag in row] for row in split["ner_tags"]]


def _first_words(path: str) -> set[str]:
    with open_text(Path(path)) as file:
        return {line.split(" ", 1)[0].split("\t", 1)[0].rstrip("\r\n") for line in file}
