"""Scores of predicted tags against gold tags, in percent, for training, evaluation, cards and papers."""

from collections.abc import Callable, Container, Mapping
from typing import Any, Literal

import numpy as np
from transformers import EvalPrediction

from ..corpora.schemes import UNLABELLED_TAG, Scheme, TagSet
from ..models.tags import IGNORED
from .breakdowns import per_type
from .comparison import Comparison, Policy, Tags, percent, ratios

_RATIOS = ("precision", "recall", "f1")


def span_scores(
    gold: Tags, predicted: Tags, policy: Policy = "conlleval", scheme: Scheme | Literal["auto"] = "auto"
) -> dict[str, Any]:
    """Score tags by strict match.

    Args:
        gold: The gold tags of each sentence.
        predicted: The predicted tags of each sentence.
        policy: The treatment of malformed spans on both sides; see `hf_xorner.evaluation.comparison.spans_of_ids`.
        scheme: The tag scheme; "auto" infers it from the prefixes and reads IOB1 as IOB2.

    Returns:
        See `scores_of`.

    Raises:
        ValueError: If gold and prediction differ in length or scheme, or the tags fit no scheme.
    """
    return scores_of(Comparison.of(gold, predicted, policy, scheme))


def scores_of(comparison: Comparison) -> dict[str, Any]:
    """Score a comparison by strict match: a predicted span is correct if a gold span has its type, start and end.

    Returns:
        ``precision``, ``recall``, ``f1`` (micro averages over spans), ``support`` (the number of gold spans),
        ``accuracy`` (over tokens), ``macro`` (the means of the types' ``precision``, ``recall`` and ``f1``) and
        ``per_type``: for each type in gold or prediction its ``precision``, ``recall``, ``f1`` and ``support``. A ratio
        without a denominator is 0. Plain tags (parts of speech) only have ``accuracy``.
    """
    right = (comparison.gold_ids == comparison.predicted_ids)[comparison.labelled]
    accuracy = percent(int(right.sum()), len(right))
    if comparison.tag_set.plain:
        return {"accuracy": accuracy}
    types = per_type(comparison)
    return {
        **ratios(int(comparison.correct.sum()), len(comparison.predicted), len(comparison.gold)),
        "accuracy": accuracy,
        "macro": {name: sum(row[name] for row in types.values()) / max(len(types), 1) for name in _RATIOS},
        "per_type": types,
    }


def measure_of(scores: Container[str]) -> Literal["f1", "accuracy"]:
    """Return the name of the main score: "f1" for entities, "accuracy" for plain labels."""
    return "f1" if "f1" in scores else "accuracy"


def compute_metrics_for(id2label: Mapping[int, str]) -> Callable[[EvalPrediction], dict[str, float]]:
    """Return a ``compute_metrics`` for the Trainer of a token classification model.

    The function takes logits (sentences, tokens, labels), or label ids (sentences, tokens) if
    ``preprocess_logits_for_metrics`` has taken the argmax. Tokens whose gold label is -100 are ignored; -1 is the
    number of ``?``, the gold tag of words without a label (see `Comparison`). It returns ``precision``, ``recall``,
    ``f1`` and ``accuracy`` in percent; for plain labels only ``accuracy``.

    Args:
        id2label: The labels of the model by id, IOB2 or plain.
    """
    labels = [id2label[index] for index in range(len(id2label))]
    tag_set = TagSet.of(labels)
    if not tag_set.plain:
        tag_set = TagSet.of([*labels, UNLABELLED_TAG])

    def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
        # A model with more outputs than its logits returns a tuple.
        outputs, labels = (
            np.asarray(values[0] if isinstance(values, tuple) else values)
            for values in (prediction.predictions, prediction.label_ids)
        )
        counted = labels != IGNORED
        predicted = outputs[counted]
        predicted = (predicted.argmax(-1) if outputs.ndim == 3 else predicted).astype(np.int64)
        gold = labels[counted].astype(np.int64)
        gold = np.where(gold < 0, tag_set.unlabelled, gold)
        scores = scores_of(Comparison(gold, predicted, counted.sum(axis=1), tag_set))
        return {name: scores[name] for name in (*_RATIOS, "accuracy") if name in scores}

    return compute_metrics
