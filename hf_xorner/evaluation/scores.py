"""Scores of predicted tags against gold tags, in percent."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from seqeval.metrics import accuracy_score
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as prfs
from seqeval.metrics.v1 import precision_recall_fscore_support as strict_prfs
from seqeval.scheme import BILOU, IOB2, IOBES
from transformers import EvalPrediction

from ..corpora.schemes import Scheme, TagSet
from ..models.tags import IGNORED
from .breakdowns import per_type
from .comparison import Comparison, percent, ratios
from .spans import Policy

# How far two computations of one score may be apart, in percent.
_TOLERANCE = 1e-9
_RATIOS = ("precision", "recall", "f1")

# seqeval's strict modes. Its IOB1 is left out: it refuses a B- that IOB1 would not need ("O B-X"), and then reads the
# I-X after it as a span of its own; here IOB1 has no malformed spans, which is seqeval's default mode.
_STRICT_SCHEMES = {"iob2": IOB2, "bioes": IOBES, "bilou": BILOU, "bmes": IOBES}


def span_scores(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    policy: Policy = "conlleval",
    scheme: Scheme | Literal["auto"] = "auto",
) -> dict[str, Any]:
    """Score tags by strict match: a predicted span counts when a gold span has its type and both its ends.

    Args:
        gold: The gold tags of each sentence.
        predicted: As many predicted tags of as many sentences.
        policy: What malformed spans are: see `hf_xorner.evaluation.spans.spans_of_ids`. It applies to both sides.
        scheme: How the tags mark spans; "auto" goes by their prefixes and takes IOB1 for IOB2.

    Returns:
        See `scores_of`.

    Raises:
        ValueError: If gold and prediction differ in length or scheme, or tags belong to no one scheme.
    """
    return scores_of(Comparison.of(gold, predicted, policy, scheme))


def scores_of(comparison: Comparison) -> dict[str, Any]:
    """Score a comparison by strict match.

    Returns:
        ``precision``, ``recall``, ``f1`` (micro averages over spans), ``support`` (the number of gold spans),
        ``accuracy`` (over tokens), ``macro`` (the plain means of the types' ``precision``, ``recall`` and ``f1``) and
        ``per_type``: for each type in gold or prediction its ``precision``, ``recall``, ``f1`` and ``support``. A ratio
        without a denominator is 0. Plain tags (part of speech) have no spans: for them ``accuracy`` alone.
    """
    right = int((comparison.gold_ids == comparison.predicted_ids).sum())
    accuracy = percent(right, len(comparison.gold_ids))
    if comparison.tag_set.plain:
        return {"accuracy": accuracy}
    types = per_type(comparison)
    return {
        **ratios(int(comparison.correct.sum()), len(comparison.predicted), len(comparison.gold)),
        "accuracy": accuracy,
        "macro": {name: sum(row[name] for row in types.values()) / max(len(types), 1) for name in _RATIOS},
        "per_type": types,
    }


def checked_span_scores(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    policy: Policy = "conlleval",
    scheme: Scheme | Literal["auto"] = "auto",
) -> dict[str, Any]:
    """Return `span_scores` after seqeval, an independent program, has come to the same figures.

    seqeval's default mode checks the policy "conlleval", and IOB1; its strict modes check "strict". seqeval has no
    BMES, and no BILOU in its default mode: it reads their prefixes renamed to those of BIOES.

    Raises:
        RuntimeError: If precision, recall, F1, support or accuracy differ by more than 1e-9 (percent).
    """
    comparison = Comparison.of(gold, predicted, policy, scheme)
    scores = scores_of(comparison)
    check_by_seqeval(scores, comparison, gold, predicted)
    return scores


def check_by_seqeval(
    scores: Mapping[str, Any],
    comparison: Comparison,
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
) -> None:
    """Have seqeval score tags, and refuse scores that differ from its figures; see `checked_span_scores`.

    Args:
        scores: What `scores_of` says of the comparison.
        comparison: The comparison of the tags.
        gold: The gold tags of each sentence.
        predicted: The predicted ones.

    Raises:
        RuntimeError: If precision, recall, F1, support or accuracy differ by more than 1e-9 (percent).
    """
    if not len(comparison.gold_ids):
        return  # seqeval fails where there is no word
    scheme = _STRICT_SCHEMES.get(comparison.tag_set.scheme) if comparison.policy == "strict" else None
    names = _names_for_seqeval(comparison.tag_set, scheme)
    both = [[[names[tag] for tag in tags] for tags in side] for side in (gold, predicted)]
    expected = {"accuracy": 100.0 * float(accuracy_score(*both))}
    if not comparison.tag_set.plain:
        # One call for what precision_score, recall_score and f1_score would each count anew.
        measure = partial(strict_prfs, scheme=scheme) if scheme else prfs
        *fractions, support = measure(*both, average="micro", zero_division=0)
        expected |= {name: 100.0 * float(fraction) for name, fraction in zip(_RATIOS, fractions, strict=True)}
        expected["support"] = int(support)
    for name, value in expected.items():
        if not abs(scores[name] - value) <= _TOLERANCE:
            raise RuntimeError(
                f"{name} is {scores[name]!r} here and {value!r} by seqeval; "
                "one of the two is wrong, so no score is given: please report the tags."
            )


def _names_for_seqeval(tag_set: TagSet, scheme: Any) -> dict[str, str]:
    """Return each tag as seqeval is to read it, in one of its strict schemes, or None for its default mode."""
    if tag_set.plain:
        return {tag: tag for tag in tag_set.tags}
    letters = {"M": "I"} if scheme is BILOU else {"M": "I", "L": "E", "U": "S"}
    # The strict modes strip hyphens off both ends of a type, so each type gets brackets.
    return {tag: f"{letters.get(tag[0], tag[0])}-<{tag[2:]}>" if tag != "O" else tag for tag in tag_set.tags}


def compute_metrics_for(
    id2label: Mapping[int, str], policy: Policy = "conlleval", scheme: Scheme | Literal["auto"] = "auto"
) -> Callable[[EvalPrediction], dict[str, float]]:
    """Return a ``compute_metrics`` for the Trainer of a token classification model.

    The function it returns takes logits (sentences, tokens, labels), or label ids (sentences, tokens) where
    ``preprocess_logits_for_metrics`` has taken the argmax. Tokens whose gold label is -100 do not count. It gives
    ``precision``, ``recall``, ``f1`` and ``accuracy`` in percent; for plain labels ``accuracy`` alone.

    Args:
        id2label: The labels of the model by id: those of our models are IOB2 or plain.
        policy: See `span_scores`.
        scheme: See `span_scores`.
    """
    tag_set = TagSet.of([id2label[index] for index in range(len(id2label))], scheme)

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
        gold = labels[counted].astype(np.int64)
        scores = scores_of(Comparison.of_ids(gold, predicted, counted.sum(axis=1), tag_set, policy))
        return {name: scores[name] for name in (*_RATIOS, "accuracy") if name in scores}

    return compute_metrics
