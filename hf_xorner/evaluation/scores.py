"""Scores of predicted tags against gold tags, in percent."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from seqeval.metrics import accuracy_score, f1_score
from seqeval.scheme import IOB2
from transformers import EvalPrediction

from ..models.tags import IGNORED
from .spans import (
    BoolArray,
    IntArray,
    Policy,
    Spans,
    TagSet,
    lengths_of,
    number_tags,
    spans_of_ids,
)

# How far two computations of one score may be apart, in percent.
_TOLERANCE = 1e-9


def span_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], policy: Policy = "conlleval"
) -> dict[str, Any]:
    """Score IOB2 tags by strict match: a predicted span counts when a gold span has its type and both its ends.

    Args:
        gold: The gold tags of each sentence.
        predicted: As many predicted tags of as many sentences.
        policy: What an ``I-`` without an entity to continue is: see `hf_xorner.evaluation.spans.spans_of_ids`. It
            applies to both sides.

    Returns:
        ``precision``, ``recall``, ``f1`` (micro averages over spans), ``accuracy`` (over tokens), ``support`` (the
        number of gold spans), and ``per_type``: for each type in gold or prediction its ``precision``, ``recall``,
        ``f1`` and ``support``. A ratio without a denominator is 0. Plain tags (part of speech) have no spans: for them
        ``accuracy`` alone.

    Raises:
        ValueError: If gold and prediction differ in length, or a tag is neither IOB2 nor plain.
    """
    _check_lengths(gold, predicted)
    tag_set = TagSet.of(sorted(set(chain.from_iterable(gold)).union(chain.from_iterable(predicted))))
    return _scores(number_tags(gold, tag_set), number_tags(predicted, tag_set), lengths_of(gold), tag_set, policy)


def checked_span_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], policy: Policy = "conlleval"
) -> dict[str, Any]:
    """Return `span_scores` after seqeval, an independent program, has come to the same figures.

    seqeval's default mode checks the policy "conlleval", its strict mode for IOB2 checks "strict".

    Raises:
        RuntimeError: If F1 or accuracy differ by more than 1e-9 percent.
    """
    scores = span_scores(gold, predicted, policy)
    # seqeval knows lists only, and fails where there is no sentence.
    gold_lists, predicted_lists = [list(tags) for tags in gold], [list(tags) for tags in predicted]
    if not any(gold_lists):
        return scores
    expected = {"accuracy": accuracy_score(gold_lists, predicted_lists)}
    if "f1" in scores:
        mode: dict[str, Any] = {"mode": "strict", "scheme": IOB2} if policy == "strict" else {}
        expected["f1"] = f1_score(gold_lists, predicted_lists, zero_division=0, **mode)
    for name, value in expected.items():
        if not abs(scores[name] - 100.0 * float(value)) <= _TOLERANCE:
            raise RuntimeError(
                f"{name} is {scores[name]!r} here and {100.0 * float(value)!r} by seqeval; "
                "one of the two is wrong, so no score is given: please report the tags."
            )
    return scores


def compute_metrics_for(
    id2label: Mapping[int, str], policy: Policy = "conlleval"
) -> Callable[[EvalPrediction], dict[str, float]]:
    """Return a ``compute_metrics`` for the Trainer of a token classification model.

    The function it returns takes logits (sentences, tokens, labels), or label ids (sentences, tokens) where
    ``preprocess_logits_for_metrics`` has taken the argmax. Tokens whose gold label is -100 do not count. It gives
    ``precision``, ``recall``, ``f1`` and ``accuracy`` in percent; for plain labels ``accuracy`` alone.

    Args:
        id2label: The labels of the model by id: IOB2 or plain.
        policy: See `span_scores`.
    """
    tag_set = TagSet.of([id2label[index] for index in range(len(id2label))])

    def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
        # A model with more outputs than its logits hands over a tuple.
        outputs = prediction.predictions
        outputs = np.asarray(outputs[0] if isinstance(outputs, tuple) else outputs)
        labels = prediction.label_ids
        labels = np.asarray(labels[0] if isinstance(labels, tuple) else labels)
        if outputs.shape[:2] != labels.shape:
            raise ValueError(f"predictions of the shape {outputs.shape} do not fit labels of the shape {labels.shape}.")
        counted = labels != IGNORED
        chosen = outputs[counted]
        predicted = (chosen.argmax(-1) if outputs.ndim == 3 else chosen).astype(np.int64)
        scores = _scores(labels[counted].astype(np.int64), predicted, counted.sum(axis=1), tag_set, policy)
        return {name: scores[name] for name in ("precision", "recall", "f1", "accuracy") if name in scores}

    return compute_metrics


def _scores(gold: IntArray, predicted: IntArray, lengths: IntArray, tag_set: TagSet, policy: Policy) -> dict[str, Any]:
    accuracy = _percent(int((gold == predicted).sum()), len(gold))
    if tag_set.plain:
        return {"accuracy": accuracy}
    gold_spans = spans_of_ids(gold, lengths, tag_set, policy)
    predicted_spans = spans_of_ids(predicted, lengths, tag_set, policy)
    correct = predicted_spans.matches(gold_spans)
    return {
        **_ratios(int(correct.sum()), len(predicted_spans), len(gold_spans)),
        "accuracy": accuracy,
        "per_type": _per_type(gold_spans, predicted_spans, correct, tag_set.types),
    }


def _per_type(gold: Spans, predicted: Spans, correct: BoolArray, types: Sequence[str]) -> dict[str, dict[str, float]]:
    counts = zip(
        types,
        np.bincount(predicted.type[correct], minlength=len(types)).tolist(),
        np.bincount(predicted.type, minlength=len(types)).tolist(),
        np.bincount(gold.type, minlength=len(types)).tolist(),
        strict=True,
    )
    # A type of the label set without any span has no score.
    return {name: _ratios(right, found, there) for name, right, found, there in counts if found or there}


def _ratios(correct: int, predicted: int, gold: int) -> dict[str, float]:
    return {
        "precision": _percent(correct, predicted),
        "recall": _percent(correct, gold),
        "f1": _percent(2 * correct, predicted + gold),
        "support": gold,
    }


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def _check_lengths(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold sentences but {len(predicted)} predicted ones; give as many of both.")
    different = np.flatnonzero(lengths_of(gold) != lengths_of(predicted))
    if len(different):
        index = int(different[0])
        raise ValueError(
            f"sentence {index} (counted from 0) has {len(gold[index])} gold tags but {len(predicted[index])} "
            "predicted ones; give a tag for each word."
        )
