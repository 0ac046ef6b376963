"""Calibration of confidences: the expected calibration error and the table of a reliability diagram."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .comparison import Comparison

_BINS = 10


def calibration(confidences: ArrayLike, correct: ArrayLike) -> dict[str, Any]:
    """Compare the confidence of predicted entities with the share of them that is correct.

    Ten bins have equal width over confidences from 0 to 1. A confidence on a border belongs to the bin below it, and 0
    to the first, as in Guo et al. (2017), equation 3. The expected calibration error is the mean distance between
    the confidence and the accuracy of a bin, weighted by the number of its entities.

    Args:
        confidences: The confidence of each predicted entity, from 0 to 1; see `entity_confidences`. Shape: (spans,).
        correct: Whether each of them is a gold entity; see `Comparison.correct`. Shape: (spans,).

    Returns:
        ``ece``, the expected calibration error in percent; ``count``, the number of entities; and ``bins``: of each its
        limits (``lower`` and ``upper``, from 0 to 1), its ``count``, its mean ``confidence`` and its ``accuracy``, the
        precision of its entities, both in percent and 0 for an empty bin.
    """
    confidences = np.asarray(confidences, dtype=np.float64)
    correct = np.asarray(correct, dtype=bool)
    # i / 10 is exactly the number that a border such as 0.3 is read as; i * 0.1 may be the next one.
    edges = np.arange(_BINS + 1) / _BINS
    bin_of = np.maximum(np.searchsorted(edges, confidences, side="left") - 1, 0)
    counts = np.bincount(bin_of, minlength=_BINS)
    confidence, accuracy = (
        100.0 * np.bincount(bin_of, weights=values, minlength=_BINS) / np.maximum(counts, 1)
        for values in (confidences, correct)
    )
    columns = {"lower": edges[:-1], "upper": edges[1:], "count": counts, "confidence": confidence, "accuracy": accuracy}
    return {
        "ece": float((counts * np.abs(accuracy - confidence)).sum() / max(1, len(confidences))),
        "bins": [{name: column[index].item() for name, column in columns.items()} for index in range(_BINS)],
        "count": len(confidences),
    }


def entity_confidences(probabilities: ArrayLike, comparison: Comparison) -> NDArray[np.float64]:
    """Return the confidence of each predicted span: the mean probability of its words' labels, as in the pipeline.

    Args:
        probabilities: The probability of the predicted label of each word, sentence after sentence. Shape: (tokens,).
        comparison: The comparison of the predicted tags.

    Returns:
        The confidences in double precision. Shape: (spans,).
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    spans = comparison.predicted
    # Each span is summed separately: a difference of running totals accumulates the rounding of the corpus before it,
    # and may exceed 1. Every other sum is that of the words between two spans; the 0 ends the last one.
    borders = np.stack([spans.start, spans.end], axis=1).ravel()
    sums = np.add.reduceat(np.append(probabilities, 0.0), borders)[::2] if len(spans) else np.zeros(0)
    return sums / (spans.end - spans.start)
