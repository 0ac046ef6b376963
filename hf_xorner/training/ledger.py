"""Gathers the facts of a run, and writes them beside the model when it has ended."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset, DatasetDict
from transformers import Trainer

from ..data.assembly import TRAIN
from ..data.batches import flat_batches, label_names_of
from ..data.fingerprints import corpus_fingerprint, file_fingerprint
from ..data.statistics import corpus_statistics
from ..evaluation.breakdowns import confusion, per_length, surface_scores
from ..evaluation.calibration import calibration, entity_confidences
from ..evaluation.comparison import Comparison
from ..evaluation.partitions import seen_partition, surface_forms
from ..evaluation.spans import TagSet, spans_of_ids
from .arguments import RunArguments
from .errors import TrainingError
from .facts import (
    COUNTS_FILE,
    INPUTS,
    Facts,
    config_facts,
    curve_of,
    hardware_facts,
    rounded,
    versions,
    write_whole,
)

_COUNTED = ("sentences", "tokens", "entities", "per_type", "per_tag")
_WEIGHTS = "model.safetensors"


class Judged(NamedTuple):
    """What a model said of a split, and its scores.

    Attributes:
        gold: The gold label of each labelled word, by sentence.
        predicted: The predicted ones.
        probabilities: The probability of each predicted label, sentence after sentence. Shape: (words,).
        scores: See `hf_xorner.evaluation.scores.scores_of`.
        seconds: What the predictions took.
    """

    gold: list[list[str]]
    predicted: list[list[str]]
    probabilities: np.ndarray
    scores: dict[str, Any]
    seconds: float


def facts_before(
    trainer: Trainer, corpus: DatasetDict, run: RunArguments, options: dict[str, Any], command: str
) -> Facts:
    """Gather the facts of a run that are known before it trains, so that training is not lost to what they hold.

    Args:
        trainer: Before training.
        corpus: What it is trained and judged on.
        run: What was asked for.
        options: What of that, and of training and config, is not the default; see `options_of`.
        command: See `command_of`.

    Raises:
        TrainingError: If they cannot be written.
    """
    model = trainer.accelerator.unwrap_model(trainer.model)
    facts = Facts(
        recipe=run.recipe,
        command=command,
        options=options,
        config=config_facts(model.config),
        inputs=input_facts(run),
        data=data_facts(run.dataset, corpus),
        curve=[],
        scores={},
        speed={},
        model={"parameters": model.num_parameters(), "file": _WEIGHTS},
        hardware=hardware_facts(trainer.args.device),
        versions=versions(),
        seed=trainer.args.seed,
    )
    try:
        facts.to_json()
    except ValueError as error:
        raise TrainingError(str(error)) from None
    return facts


def leave_facts(trainer: Trainer, corpus: DatasetDict, before: Facts, judged: Mapping[str, Judged]) -> Facts:
    """Write the facts of a run, and the counts of its sentences, into the Trainer's output folder.

    Args:
        trainer: After training, the model saved.
        corpus: What it was trained and judged on.
        before: See `facts_before`.
        judged: The held-out splits by name.

    Raises:
        TrainingError: If they cannot be written.
    """
    folder = Path(trainer.args.output_dir)
    curve = curve_of(trainer.state.log_history)
    known = surfaces_in(corpus[TRAIN]) if judged else set()
    scores, counts = {}, {}
    for name, split in judged.items():
        scores[name], counts[name] = _figures(split, corpus[name]["tokens"], known)
    facts = replace(
        before,
        config=config_facts(trainer.accelerator.unwrap_model(trainer.model).config),
        curve=curve,
        scores=scores,
        speed=_speed(trainer, before.data, curve, judged),
        model={**before.model, **file_fingerprint(folder / _WEIGHTS)},
    )
    try:
        write_whole(folder / COUNTS_FILE, json.dumps(counts, sort_keys=True) + "\n")
        facts.write(folder)
    except OSError as error:
        raise TrainingError(
            f"The facts of the run cannot be written to {folder} ({error.strerror}); resume the run, which writes "
            "them again."
        ) from error
    return facts


def data_facts(source: str, corpus: DatasetDict) -> dict[str, Any]:
    """What a corpus is and holds; see `Facts`."""
    here = Path(source)
    return {
        "source": here.name if here.exists() or here.is_absolute() else source,
        "fingerprint": corpus_fingerprint(corpus),
        "splits": {
            name: {key: found[key] for key in _COUNTED if key in found}
            for name, found in corpus_statistics(corpus).items()
        },
    }


def input_facts(run: RunArguments) -> dict[str, dict[str, Any]]:
    """What files a run reads besides its corpus; see `Facts`."""
    found: dict[str, dict[str, Any]] = {}
    for option in INPUTS:
        given = getattr(run, option)
        if given:
            path = Path(os.path.expanduser(given))
            there = path.exists()
            found[option] = {"name": path.name if there else given} | (file_fingerprint(path) if there else {})
    return found


def surfaces_in(split: Dataset) -> set[str]:
    """The distinct surface forms of a split's entities; none where its labels are plain."""
    tag_set = TagSet.of(label_names_of(split, TRAIN))
    found: set[str] = set()
    if tag_set.plain:
        return found
    for batch in flat_batches(split, TRAIN):
        spans = spans_of_ids(batch.ids, batch.lengths, tag_set, "conlleval")
        found.update(surface_forms(spans, batch.tokens.to_pylist(), batch.lengths))
    return found


def _figures(judged: Judged, tokens: Any, known: set[str]) -> tuple[dict[str, Any], list[list[int]]]:
    """The scores of a split with what else is cheap to know, and the counts of its sentences."""
    comparison = Comparison.of(judged.gold, judged.predicted)
    counts = comparison.counts_by_sentence()
    if comparison.tag_set.plain:
        return rounded(judged.scores), counts[:, :2].tolist()
    more: dict[str, Any] = {"per_length": per_length(comparison), "confusion": _sparse(confusion(comparison))}
    words = list(chain.from_iterable(tokens))
    if len(words) == len(comparison.gold_ids):
        more["surface"] = surface_scores(comparison, words)
        more["seen"] = seen_partition(comparison, words, known)
    if np.isfinite(judged.probabilities).all():  # training may have diverged, which the facts say in their own words
        confidences = entity_confidences(judged.probabilities, comparison.predicted, comparison.lengths)
        found = calibration(confidences, comparison.correct)
        more["calibration"] = {**found, "bins": [row for row in found["bins"] if row["count"]]}
    return rounded({**judged.scores, **more}), counts.tolist()


def _sparse(found: dict[str, Any]) -> dict[str, Any]:
    """A confusion by the names of types, without the pairs that do not occur: of many types there are few."""
    types, rows = found["types"], found["matrix"]
    matrix = {
        name: {other: count for other, count in zip(types, row, strict=True) if count}
        for name, row in zip(types, rows, strict=True)
    }
    return {**{key: value for key, value in found.items() if key != "types"}, "matrix": matrix}


def _speed(
    trainer: Trainer, data: Mapping[str, Any], curve: list[dict[str, Any]], judged: Mapping[str, Judged]
) -> dict[str, float]:
    """How long training took, over all starts of the run, and how many words a second."""
    seconds = sum(row.get("seconds", 0.0) for row in curve)
    words = data["splits"]["train"]["tokens"] * (trainer.state.epoch or 0)
    found = {"training_seconds": round(seconds, 2)}
    if seconds:
        found["training_tokens_per_second"] = round(words / seconds, 1)
    if judged:
        last = list(judged)[-1]
        if judged[last].seconds:
            found["prediction_tokens_per_second"] = round(data["splits"][last]["tokens"] / judged[last].seconds, 1)
    return found
