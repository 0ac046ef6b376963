"""Whether confidences mean what they say: the expected calibration error and the table of a reliability diagram."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .spans import IntArray, Spans


def calibration(confidences: ArrayLike, correct: ArrayLike, bins: int = 10) -> dict[str, Any]:
    """Compare the confidence of predicted entities with the share of them that is correct.

    The bins are of equal width over confidences from 0 to 1. A confidence on a border belongs to the bin below it, and
    0 to the first, as in Guo et al. (2017), equation 3. The expected calibration error is the mean distance between
    the confidence and the accuracy of a bin, weighed by the entities in it.

    Args:
        confidences: The confidence of each predicted entity, from 0 to 1; see `entity_confidences`. Shape: (spans,).
        correct: Whether each of them is a gold entity, as `Spans.matches` tells. Shape: (spans,).
        bins: The number of bins.

    Returns:
        ``ece``, the expected calibration error in percent; ``count``, the number of entities; and ``bins``, every bin
        with the confidences it lies between (``lower`` and ``upper``, from 0 to 1), its ``count``, its mean
        ``confidence`` and its ``accuracy``, the precision of its entities, both in percent and 0 where it is empty.

    Raises:
        ValueError: If a confidence is not within 0 and 1, there are not as many truth values, or no bins.
    """
    confidences = np.asarray(confidences, dtype=np.float64)
    correct = np.asarray(correct, dtype=bool)
    if bins < 1:
        raise ValueError(f"bins={bins} is too few; give 1 or more.")
    if confidences.ndim != 1 or confidences.shape != correct.shape:
        raise ValueError(
            f"confidences of the shape {confidences.shape} do not fit truth values of the shape {correct.shape}; "
            "give one of each for every entity."
        )
    outside = np.flatnonzero(~((confidences >= 0) & (confidences <= 1)))  # not a number is outside, too
    if len(outside):
        index = int(outside[0])
        raise ValueError(
            f"the confidence of entity {index} (counted from 0) is {float(confidences[index])}; "
            "a confidence is a probability from 0 to 1."
        )
    # i / bins is the very number that a border such as 0.3 is read as; i * (1 / bins) may be the next one.
    edges = np.arange(bins + 1) / bins
    bin_of = np.maximum(np.searchsorted(edges, confidences, side="left") - 1, 0)
    counts = np.bincount(bin_of, minlength=bins)
    filled = np.maximum(counts, 1)
    confidence = 100.0 * np.bincount(bin_of, weights=confidences, minlength=bins) / filled
    accuracy = 100.0 * np.bincount(bin_of, weights=correct, minlength=bins) / filled
    columns = (edges[:-1], edges[1:], counts, confidence, accuracy)
    names = ("lower", "upper", "count", "confidence", "accuracy")
    return {
        "ece": float((counts * np.abs(accuracy - confidence)).sum() / max(1, len(confidences))),
        "bins": [dict(zip(names, row, strict=True)) for row in zip(*(c.tolist() for c in columns), strict=True)],
        "count": len(confidences),
    }


def entity_confidences(probabilities: ArrayLike, spans: Spans, lengths: IntArray) -> NDArray[np.float64]:
    """Return the confidence of each span: the mean probability of its words' labels, as the pipeline's score is.

    Args:
        probabilities: The probability of the label that each word was given, sentence after sentence. Shape: (tokens,).
        spans: The predicted spans.
        lengths: The number of words of each sentence. Shape: (sentences,).

    Returns:
        The confidences in double precision. Shape: (spans,).

    Raises:
        ValueError: If there are not as many probabilities as words.
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    if probabilities.shape != (int(lengths.sum()),):
        raise ValueError(
            f"probabilities of the shape {probabilities.shape} do not fit sentences of {int(lengths.sum())} words; "
            "give one for each word."
        )
    if not len(spans):
        return np.zeros(0)
    first, end = spans.bounds(lengths)
    # Each span is summed by itself: a difference of running totals carries the rounding of the corpus before it, and
    # may end above 1. Every other sum is of what lies between two spans; the 0 is there to be the end of the last.
    borders = np.stack([first, end], axis=1).ravel()
    sums = np.add.reduceat(np.append(probabilities, 0.0), borders)[::2]
    return sums / (end - first)
