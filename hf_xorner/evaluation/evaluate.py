"""Score a model on a corpus, or a file of predictions: `hf_xorner.evaluate` and `hf-xorner evaluate`."""

from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from datasets import DatasetDict

from ..corpora import ReadingOptions, load_corpus
from ..corpora.assemble import TRAIN, corpus_fingerprint, words_and_tags
from ..corpora.hold_out import VALIDATION, with_validation
from ..corpora.load import Source, inputs_of, name_of
from ..corpora.predictions import read_predictions, write_predictions
from ..corpora.schemes import EDGE, IO, WRITTEN_SCHEMES, from_iob2, is_of, recognise
from ..corpora.source import AUTO
from ..corpora.splits import has_data_suffix
from ..entities import NumberByLabel, checked_numbers
from ..files import FACTS_FILE, check_apart, model_folder, write_json
from ..options import check_known, full_names, number_by_label, option
from ..tagger import Tagger
from .comparison import POLICIES, Policy, Tags
from .report import System, Training, compare, report, wrong_sentences
from .thresholds import ScoredEntities, choose_min_score, save_min_score

_log = logging.getLogger(__name__)

_TEST = "test"


@dataclass
class EvaluationOptions(ReadingOptions):
    """The options of an evaluation."""

    model: str | None = option(
        None, "A folder, owner/name on the Hub, english, english-open or multilingual.", positional=True
    )
    dataset: str | None = option(
        None,
        "The corpus: a name, a file, a folder, or owner/name on the Hub.",
        aliases=("--corpus", "--data"),
        positional=True,
    )
    split: str | None = option(None, "The split to score; by default test, or the only one.", group="model and data")
    data_dir: str | None = option(None, "The folder of the files of a named corpus.", group="model and data")
    predictions: str | None = option(None, "A file of predictions, in place of a model.", group="model and data")
    policy: Policy = option(
        "conlleval",
        f"Treatment of malformed spans: {' (repaired) or '.join(POLICIES[::-1])} (dropped).",
        group="scores",
        choices=POLICIES,
    )
    compare: str | None = option(
        None,
        "Another model, or a file of another system's predictions: adds the difference, its significance, and "
        "sentences in which the two differ.",
        group="scores",
    )
    min_precision: list[str] = option(
        [],
        "Choose the minimum score of entities (min_score) so that their precision is at least this, in percent: a "
        "number, or a number for each label, such as PER=95 LOC=90. It is always chosen on the split validation.",
        group="scores",
    )
    save_min_score: bool = option(
        False,
        "Save this minimum in the model's config.json: Tagger, hf-xorner tag and the integrations then leave out "
        "entities with lower scores by default; the pipeline of transformers does not.",
        group="scores",
    )
    resamples: int = option(1000, "Resamples for intervals; 0: no intervals.", group="scores", bounds=(0, math.inf))
    json: str | None = option(None, "Write all figures to this JSON file.", group="output")
    plots: str | None = option(None, "Draw plots into this folder.", group="output")
    save_predictions: str | None = option(None, "Write the predictions to this file.", group="output")
    batch_size: int = option(64, "Sentences per batch.", group="output", bounds=(1, math.inf))
    device: str | None = option(None, "The device: cpu, cuda, …", group="output")

    def __post_init__(self) -> None:
        """Check options that would otherwise fail after the model has run."""
        super().__post_init__()
        if self.min_precision and not self.model:
            raise ValueError("min_precision needs the scores of a model's entities; name it with --model.")
        if self.save_min_score and (not self.min_precision or not Path(self.model or "").is_dir()):
            raise ValueError("save_min_score needs min_precision, and a model in a folder.")
        if self.plots:
            import_module("matplotlib")

    @property
    def least_precision(self) -> NumberByLabel:
        """`min_precision` as a number or numbers by label; 0 if it is not given."""
        wanted: Any = self.min_precision or 0.0  # numbers if set from Python
        return number_by_label(wanted, "min_precision") if isinstance(wanted, list) else wanted


def evaluate(model: Tagger | str | Path, dataset: Source, split: str | None = None, **options: Any) -> dict[str, Any]:
    """Score a model on a split of a corpus; the options `json`, `plots` and `save_predictions` write files.

        scores = evaluate("my_tagger", "my_corpus/")
        print(scores["f1"])

    Args:
        model: A tagger, its folder, or owner/name on the Hub.
        dataset: A corpus by name, a file, a folder, owner/name on the Hub, a `Dataset`, `DatasetDict`, `DataFrame` or
            list of (words, tags); see `hf_xorner.load_corpus`.
        split: The split; by default ``test``, or the only one other than ``train``, or the only one.
        **options: The other options of ``hf-xorner evaluate``, such as ``policy="strict"`` or ``resamples=0``.

    Returns:
        All scores in percent; see `hf_xorner.evaluation.report.report`.

    Raises:
        ValueError: If an option is wrong, or the model or the corpus cannot be read.
    """
    options = full_names(options, EvaluationOptions)
    check_known(options, {entry.name for entry in fields(EvaluationOptions)}, "evaluate")
    name = "the tagger"
    if not isinstance(model, Tagger):
        name, model = str(model), Tagger.from_pretrained(str(model), options.get("device"), min_score=0)
    settings = EvaluationOptions(model=name, dataset=name_of(dataset), split=split, **options)
    system, figures = score(settings, model, dataset)
    write(settings, system, figures)
    return figures


def score(
    options: EvaluationOptions, tagger: Tagger | None = None, dataset: Source | None = None
) -> tuple[System, dict[str, Any]]:
    """Score a model or a file of predictions.

    Args:
        options: The options.
        tagger: The model, if it is already loaded.
        dataset: The corpus, if it is not `options.dataset`, such as data in memory.

    Returns:
        The tokens with gold and predicted tags, and the scores.

    Raises:
        ValueError: If the options contradict each other or a file cannot be read, usually before the model runs.
    """
    if bool(options.predictions) == bool(options.model) or (options.model and not options.dataset):
        raise ValueError("give either a model and a corpus, or --predictions.")
    reading = options.reading()
    if options.predictions:
        reading["scheme"] = AUTO  # the option is for the predictions
    source = options.dataset if dataset is None else dataset
    inputs = [Path(name) for name in (options.predictions, options.compare) if name and Path(name).is_file()]
    inputs += inputs_of(source, options.data_dir) if isinstance(source, (str, Path)) else []
    for path in filter(None, (options.json, options.save_predictions)):
        check_apart(path, *inputs)
    corpus = load_corpus(source, options.data_dir, **reading) if options.dataset else {}
    if options.model:
        folder = tagger.model.name_or_path if tagger else model_folder(options.model)
        corpus, trained_on = _divided(corpus, folder, str(options.dataset))
        if options.min_precision and (VALIDATION not in corpus or VALIDATION in trained_on):
            raise ValueError(
                f"min_precision needs the split {VALIDATION!r}, on which min_score is chosen and the model was not "
                f"trained; {options.dataset} has {', '.join(corpus)}."
            )
        options = replace(options, split=_split_of(options, corpus))
        if options.split in trained_on:
            _log.warning("%s was trained on this split; the scores say little about other texts.", options.model)
    has_training = TRAIN in corpus and options.split != TRAIN
    training = Training.of(*words_and_tags(corpus[TRAIN])) if has_training else None
    second = _second(options.compare, options, corpus) if options.compare else None
    systems: dict[str, System] = {}
    if options.predictions:
        system = _system_in(options.predictions, options)
    else:
        tagger = _tagger_for(options, corpus, tagger)
        names = {str(options.split), VALIDATION} if options.min_precision else {str(options.split)}
        of_tagger = partial(System.of_tagger, tagger)
        systems = {
            name: replace(of_tagger(*words_and_tags(corpus[name]), options.batch_size), policy=options.policy)
            for name in names
        }
        system = systems[str(options.split)]
    figures = report(system, training, resamples=options.resamples)
    if tagger:
        figures |= _by_score(options, systems, getattr(tagger.model.config, "min_score", None))
    figures["mistakes"] = wrong_sentences(system)
    if isinstance(second, Tagger):
        has_iob2 = second.model.tags.chunked
        second = System.of_tagger(second, system.tokens, system.gold, options.batch_size)
        if has_iob2 and figures["scheme"] in WRITTEN_SCHEMES:  # the file may have another scheme
            second = replace(second, predicted=[from_iob2(tags, figures["scheme"]) for tags in second.predicted])
    if second:
        figures["compare"] = compare(system, second)
    return system, figures


def write(options: EvaluationOptions, system: System, figures: dict[str, Any]) -> list[Path]:
    """Write the files that the options name, and return their paths."""
    written = []
    if options.json:
        written.append(write_json(options.json, figures))
    if options.save_min_score:
        written.append(save_min_score(Path(str(options.model)), figures["min_score"]["value"]))
    if options.plots:
        from .plots import draw  # imported here because only plots need it

        written += draw(figures, options.plots)
    if options.save_predictions:  # last, as words with a line break cannot be written
        written.append(Path(options.save_predictions))
        write_predictions(written[-1], system.tokens, system.gold, system.predicted)
    return written


def _divided(corpus: DatasetDict, model: str, source: str) -> tuple[DatasetDict, set[str]]:
    """Return a corpus, with the part that training held out as validation, and the splits that it was trained on."""
    path = Path(model) / FACTS_FILE
    if not model or not path.is_file():
        return corpus, set()
    facts = json.loads(path.read_text(encoding="utf-8"))
    data = facts["data"]
    share = (data.get("hold_out") or {}).get("share", 0.0)
    divided, held_out = with_validation(corpus, share) if TRAIN in corpus else (corpus, None)
    if corpus_fingerprint(divided) != data["fingerprint"]:
        return corpus, set()
    if facts["options"].get("train_on_validation"):
        return divided, {TRAIN, VALIDATION}
    if held_out is not None:
        _log.warning(
            "%s: the %d sentences that training held out are the split %s.", source, held_out.sentences, VALIDATION
        )
    return divided, {TRAIN}


def _by_score(
    options: EvaluationOptions, systems: dict[str, System], min_score: NumberByLabel | None
) -> dict[str, Any]:
    """Return the scores of entities above several minimum scores, and for the chosen or saved `min_score`."""
    scored = {}
    for name, system in systems.items():
        entities = ScoredEntities.of_system(system)
        if entities is None:
            return {}
        scored[name] = entities
    figures: dict[str, Any] = {"thresholds": scored[str(options.split)].table()}
    if options.min_precision:
        min_score = choose_min_score(scored[VALIDATION], options.least_precision)
    if min_score is not None:
        rows = {name: scored[name].at(min_score) for name in sorted(scored, key=VALIDATION.__ne__)}
        figures["min_score"] = {"value": min_score, "rows": rows}
    return figures


def _split_of(options: EvaluationOptions, corpus: Any) -> str:
    """Return the split to score: that of the option, else test, else the only one other than train, or at all."""
    split = options.split or _TEST
    candidates = [name for name in corpus if name != TRAIN] or list(corpus)
    if split not in corpus and options.split is None and len(candidates) == 1:
        (split,) = candidates
        trained = "; sentences that the model was trained on may be among them" if split == TRAIN else ""
        _log.warning("%s has no split %s; %s is scored%s.", options.dataset, _TEST, split, trained)
    if split not in corpus:
        raise ValueError(f"{options.dataset} has no split {split!r}; choose one of {', '.join(corpus)}.")
    return split


def _tagger_for(options: EvaluationOptions, corpus: Any, tagger: Tagger | None) -> Tagger:
    """Return the tagger, which the options must fit."""
    tagger = tagger or Tagger.from_pretrained(str(options.model), options.device, min_score=0)
    _check_labels(tagger, str(options.model), options, corpus)
    if options.min_precision and not tagger.model.tags.chunked:
        raise ValueError(f"min_precision chooses among entities, and {options.model} labels single words.")
    checked_numbers(options.least_precision, "min_precision", 100, tagger.entity_labels)
    return tagger


def _check_labels(tagger: Tagger, name: str, options: EvaluationOptions, corpus: Any) -> None:
    """Check that a tagger has at least one label of the split; warn if it does not have all."""
    known, wanted = (
        [label for label in labels if label != "O"]
        for labels in (tagger.model.config.labels, corpus[options.split].features["ner_tags"].feature.names)
    )
    if wanted and not set(wanted) & set(known):
        raise ValueError(
            f"{name} knows none of the labels of {options.dataset}: it has {', '.join(known[:3])}, …, and the "
            f"corpus {', '.join(wanted[:3])}, …; score it on a corpus with its labels."
        )
    if lacking := [label for label in wanted if label not in known]:
        _log.warning("%s lacks the labels %s of the corpus; --types renames types.", name, ", ".join(lacking[:6]))


def _system_in(path: str, options: EvaluationOptions) -> System:
    """Return the predictions in a file; with `scheme` io, types without a prefix are tags of IOB1."""
    predictions = read_predictions(path)
    for tags in chain(predictions.gold, predictions.predicted) if options.scheme == IO else ():
        tags[:] = [tag if is_of("iob1", tag) else f"I-{tag}" for tag in tags]
    return System(*predictions, policy=options.policy, scheme=_scheme(options, predictions.gold))


def _second(name: str, options: EvaluationOptions, corpus: Any) -> System | Tagger:
    """Return the other system of a comparison: predictions in a file, or a tagger."""
    if Path(name).is_file():
        return _system_in(name, options)
    if has_data_suffix(Path(name)):  # a mistyped path, not a model on the Hub
        raise ValueError(f"{name}: there is no such file.")
    tagger = Tagger.from_pretrained(name, options.device, min_score=0)
    if options.model:
        _check_labels(tagger, name, options, corpus)
    return tagger


def _scheme(options: EvaluationOptions, gold: Tags) -> Any:
    """Return the scheme of the tags; `report` alone would mistake the IOB1 of a file for IOB2."""
    if not options.predictions:
        return AUTO
    if options.scheme != AUTO:
        return "iob1" if options.scheme == IO else options.scheme  # the same without B-
    pairs = {pair for tags in gold for pair in pairwise((EDGE, *tags, EDGE))}
    return "iob1" if recognise(pairs) == "iob1" else AUTO
