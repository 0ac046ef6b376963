"""Significance of scores: bootstrap intervals, and a randomisation test between two systems.

Both resample whole sentences, so they only need the counts of each sentence: its correct, predicted and gold spans, or
its correct tags and its tokens for plain tags. Sentences with the same counts are drawn together, which gives the same
distribution from a few hundred kinds of sentences instead of thousands. scipy's `bootstrap` and `permutation_test`
resample one sentence at a time, and compare scores as floats, which misses ties.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .comparison import IntArray

# Draws that are scored at a time, to limit the memory.
_DRAWS = 100

# Each score as a ratio of two sums of columns, by the number of columns.
_FIGURES = {
    3: {"precision": ([0], [1]), "recall": ([0], [2]), "f1": ([0, 0], [1, 2])},
    2: {"accuracy": ([0], [1])},
}
_Ratio = tuple[list[int], list[int]]
_Fraction = tuple[NDArray[Any], NDArray[Any]]


def bootstrap_intervals(counts: IntArray, resamples: int = 1000, seed: int = 13) -> dict[str, list[float]]:
    """Return a 95 % confidence interval for each score, by a percentile bootstrap.

    Every resample draws as many sentences as there are, with replacement, and is scored as a whole (micro averages);
    the interval lies between the quantiles of these scores (Efron, 1979).

    Args:
        counts: The correct, predicted and gold spans of each sentence, shape (sentences, 3); or, for plain tags, the
            correct tags and tokens, shape (sentences, 2).
        resamples: The number of resamples.
        seed: The seed of the random numbers.

    Returns:
        ``precision``, ``recall`` and ``f1``, or ``accuracy`` for plain tags: ``[low, high]`` in percent. A score
        without a denominator is 0.
    """
    figures = _FIGURES[counts.shape[1]]
    if not len(counts):
        return {name: [0.0, 0.0] for name in figures}
    kinds, multiplicity = np.unique(counts, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    totals = np.concatenate(
        [rng.multinomial(len(counts), multiplicity / len(counts), size=size) @ kinds for size in _chunks(resamples)]
    )  # (resamples, columns)
    return {
        name: np.quantile(_percent(_fraction(totals, figure)), [0.025, 0.975]).tolist()
        for name, figure in figures.items()
    }


def randomisation_test(
    counts_a: IntArray, counts_b: IntArray, trials: int = 10_000, seed: int = 13
) -> dict[str, dict[str, Any]]:
    """Test whether two systems differ on the same sentences, by paired approximate randomisation.

    If the systems were equally good, their outputs could be exchanged. A trial swaps their outputs in each sentence
    with a probability of one half, and compares the scores of the two mixtures. The p value is the share of trials in
    which they differ at least as much as the systems do (Noreen, 1989; Yeh, 2000, who shows that tests of F1 that
    compare sentence by sentence are misleading). Differences are compared as fractions, so that ties count.

    Sentences with the same difference between the systems are interchangeable, so only the number of swapped ones
    matters.

    Args:
        counts_a: The counts of one system by sentence; see `bootstrap_intervals`.
        counts_b: Those of the other system, with the same gold spans (or tokens) in each sentence.
        trials: The number of random trials.
        seed: The seed of the random numbers.

    Returns:
        For ``precision``, ``recall`` and ``f1``, or for ``accuracy``: ``p``, between 0 and 1, with 1 added to numerator
        and denominator (Noreen's estimate, which is never 0); ``difference``, the score of the first system minus that
        of the second, in percent.
    """
    first, second = (counts.sum(axis=0, keepdims=True) for counts in (counts_a, counts_b))  # (1, columns)
    kinds, sizes = _kinds_of_difference(counts_a - counts_b)
    figures = _FIGURES[counts_a.shape[1]]
    extreme = dict.fromkeys(figures, 0)
    rng = np.random.default_rng(seed)
    for draws in _chunks(trials):
        swapped = rng.binomial(sizes, 0.5, size=(draws, len(sizes)))
        # A swap moves a difference from one system to the other; without swaps, a kind has size times its difference.
        differences = (sizes - 2 * swapped) @ kinds  # (draws, columns)
        mixture_a, mixture_b = (first + second + differences) // 2, (first + second - differences) // 2
        for name, figure in figures.items():
            drawn, drawn_whole = _distance(mixture_a, mixture_b, figure)
            observed, observed_whole = _distance(first, second, figure)
            extreme[name] += int((drawn * observed_whole >= observed * drawn_whole).sum())
    return {
        name: {
            "p": (1 + extreme[name]) / (1 + trials),
            "difference": (_percent(_fraction(first, figure)) - _percent(_fraction(second, figure))).item(),
        }
        for name, figure in figures.items()
    }


def _kinds_of_difference(differences: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct differences other than 0, up to their sign, and the number of sentences with each.

    The sign does not matter, since it is swapped with a probability of one half.
    """
    differences = differences[differences.any(axis=1)]
    leading = np.take_along_axis(differences, (differences != 0).argmax(axis=1)[:, None], axis=1)
    kinds, sizes = np.unique(differences * np.sign(leading), axis=0, return_counts=True)
    return kinds, sizes.astype(np.int64)


def _chunks(draws: int) -> Iterator[int]:
    return (min(_DRAWS, draws - start) for start in range(0, draws, _DRAWS))


def _fraction(totals: NDArray[Any], figure: _Ratio) -> _Fraction:
    part, whole = (totals[..., columns].sum(axis=-1) for columns in figure)
    return part, np.maximum(whole, 1)  # a score without a denominator is 0


def _percent(fraction: _Fraction) -> NDArray[Any]:
    return 100.0 * fraction[0] / fraction[1]


def _distance(a: NDArray[Any], b: NDArray[Any], figure: _Ratio) -> _Fraction:
    """Return the distances of scores as fractions of Python integers, as products may exceed 64 bits."""
    (part_a, whole_a), (part_b, whole_b) = (_fraction(totals.astype(object), figure) for totals in (a, b))
    return abs(part_a * whole_b - part_b * whole_a), whole_a * whole_b
