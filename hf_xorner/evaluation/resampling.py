"""How sure a score is: bootstrap intervals, and a randomisation test between two systems.

Both resample whole sentences, so that the counts of each sentence are all they need: its correct, predicted and gold
spans, or its correct tags and its tokens where the tags are plain. Sentences with the same counts are told apart by
nothing, so they are drawn together: the same distribution, from a few hundred kinds of sentences in place of thousands.
"""

from collections.abc import Callable, Iterator
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .spans import IntArray

# Numbers that a chunk of draws may hold, which bounds the memory (8 bytes each) whatever the number of sentences.
_CHUNK = 2_000_000

# A ratio as two integers, for each draw; denominators are positive.
_Fraction = tuple[NDArray[Any], NDArray[Any]]

# What the columns of counts make, by their number.
_SPANS: dict[str, Callable[[NDArray[Any]], _Fraction]] = {
    "precision": lambda totals: _fraction(totals[..., 0], totals[..., 1]),
    "recall": lambda totals: _fraction(totals[..., 0], totals[..., 2]),
    "f1": lambda totals: _fraction(2 * totals[..., 0], totals[..., 1] + totals[..., 2]),
}
_PLAIN: dict[str, Callable[[NDArray[Any]], _Fraction]] = {
    "accuracy": lambda totals: _fraction(totals[..., 0], totals[..., 1]),
}
_COLUMNS = {3: ("correct", "predicted", "gold spans"), 2: ("correct", "tokens")}


def bootstrap_intervals(
    counts: IntArray, resamples: int = 1000, confidence: float = 0.95, seed: int = 13
) -> dict[str, list[float]]:
    """Return the interval of each score in which it lies with the given confidence, by a percentile bootstrap.

    Every resample draws as many sentences as there are, with replacement, and is scored as a whole (micro averages);
    the interval lies between the quantiles of these scores (Efron, 1979).

    Args:
        counts: Of each sentence its correct, predicted and gold spans, shape (sentences, 3); or, for plain tags, its
            correct tags and its tokens, shape (sentences, 2).
        resamples: The number of resamples.
        confidence: The share of the resamples that the interval holds.
        seed: Of the random numbers: the same seed gives the same intervals.

    Returns:
        ``precision``, ``recall`` and ``f1``, or ``accuracy`` for plain tags: ``[low, high]`` in percent. Without any
        sentence, and where a ratio has no denominator, the score is 0.

    Raises:
        ValueError: If the counts cannot be counts of sentences, or a setting is out of its range.
    """
    _check_positive("resamples", resamples)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence} is no share of the resamples; give a number between 0 and 1.")
    counts = _checked(counts)
    figures = _figures(counts)
    if not len(counts):
        return {name: [0.0, 0.0] for name in figures}
    kinds, multiplicity = np.unique(counts, axis=0, return_counts=True)
    shares = multiplicity / len(counts)
    rng = np.random.default_rng(seed)
    totals = np.concatenate(
        [rng.multinomial(len(counts), shares, size=draws) @ kinds for draws in _chunks(resamples, len(kinds))]
    )  # (resamples, columns)
    tail = (1 - confidence) / 2
    intervals = {}
    for name, figure in figures.items():
        part, whole = figure(totals)
        intervals[name] = np.quantile(100.0 * part / whole, [tail, 1 - tail]).tolist()
    return intervals


def randomisation_test(
    counts_a: IntArray, counts_b: IntArray, trials: int = 10_000, seed: int = 13
) -> dict[str, dict[str, Any]]:
    """Test whether two systems differ on the same sentences, by paired approximate randomisation.

    If the systems were alike, it would not matter which of the two wrote which output. A trial swaps their outputs in
    each sentence with a probability of one half and compares the scores of the two mixtures. The p value is the share
    of trials in which they are at least as far apart as the systems are (Noreen, 1989; Yeh, 2000, who shows that tests
    of F1 that compare sentence by sentence are misleading). Differences are compared as fractions, so that ties count.

    Sentences in which the systems differ alike can be swapped in fewer ways than there are subsets of them. Where all
    outcomes together are no more than ``trials``, each of them is weighed instead, and the p value is exact. That is so
    at least where 2 to the number of sentences that differ is no more than ``trials``.

    Args:
        counts_a: The counts of one system by sentence; see `bootstrap_intervals`.
        counts_b: Those of the other; the gold spans (or the tokens) of each sentence are the same.
        trials: The number of random trials.
        seed: Of the random numbers.

    Returns:
        For ``precision``, ``recall`` and ``f1``, or for ``accuracy``: ``p``, between 0 and 1, with one trial more in
        numerator and denominator unless it is exact (Noreen's estimate, which is never 0); ``difference``, the score of
        the first system less that of the second in percent; ``trials``, the number of trials, or of outcomes weighed;
        ``exact``, whether all of them were.

    Raises:
        ValueError: If the counts are not of the same sentences, cannot be counts of sentences, or ``trials`` is not
            positive.
    """
    _check_positive("trials", trials)
    counts_a, counts_b = _checked(counts_a), _checked(counts_b)
    _check_paired(counts_a, counts_b)
    first, second = counts_a.sum(axis=0), counts_b.sum(axis=0)
    kinds, sizes = _kinds_of_difference(counts_a - counts_b)
    outcomes = _number_of_outcomes(sizes, trials)
    exact = outcomes is not None
    figures = _figures(counts_a)
    extreme: dict[str, int] = dict.fromkeys(figures, 0)
    for swapped, weights in _every_outcome(sizes, outcomes) if outcomes else _random_outcomes(sizes, trials, seed):
        # A swap moves a difference from one system to the other; without any, a kind holds size times its difference.
        differences = (sizes - 2 * swapped) @ kinds  # (draws, columns)
        mixture_a = (first + second + differences) // 2
        mixture_b = (first + second - differences) // 2
        for name, figure in figures.items():
            as_far = _at_least_as_far(figure(mixture_a), figure(mixture_b), figure(first), figure(second))
            extreme[name] += int(weights[as_far].sum())
    results = {}
    for name, figure in figures.items():
        (part_a, whole_a), (part_b, whole_b) = figure(first), figure(second)
        results[name] = {
            # Integers of any size, of which Python rounds the quotient correctly.
            "p": extreme[name] / 2 ** int(sizes.sum()) if exact else (1 + extreme[name]) / (1 + trials),
            "difference": float(100.0 * part_a / whole_a - 100.0 * part_b / whole_b),
            "trials": outcomes if outcomes else trials,
            "exact": exact,
        }
    return results


def _kinds_of_difference(differences: IntArray) -> tuple[IntArray, IntArray]:
    """Pool the sentences that differ: the distinct differences up to their sign, and how many sentences have each.

    Which of the two systems a difference favours plays no role once it is swapped with a probability of one half.
    """
    differences = differences[differences.any(axis=1)]
    leading = np.take_along_axis(differences, (differences != 0).argmax(axis=1)[:, None], axis=1)
    kinds, sizes = np.unique(differences * np.sign(leading), axis=0, return_counts=True)
    return kinds, sizes.astype(np.int64)


def _number_of_outcomes(sizes: IntArray, most: int) -> int | None:
    """Count the ways to swap some sentences of each kind, or return None when there are more than ``most``."""
    outcomes = 1
    for size in sizes.tolist():
        outcomes *= size + 1
        if outcomes > most:
            return None
    return outcomes


def _every_outcome(sizes: IntArray, outcomes: int) -> Iterator[tuple[IntArray, NDArray[Any]]]:
    """Yield all numbers of swapped sentences by kind, (draws, kinds), and the number of subsets that each stands for.

    The weights are Python's integers, for they pass 2 to the 64th.
    """
    subsets = [np.array([comb(size, swapped) for swapped in range(size + 1)], dtype=object) for size in sizes.tolist()]
    start = 0
    for draws in _chunks(outcomes, len(sizes)):
        # An outcome's number, written in digits to the bases size + 1, is how many sentences of each kind are swapped.
        rest = np.arange(start, start + draws)
        swapped = np.empty((draws, len(sizes)), dtype=np.int64)
        weights = np.full(draws, 1, dtype=object)
        for kind, size in enumerate(sizes.tolist()):
            rest, swapped[:, kind] = np.divmod(rest, size + 1)
            weights = weights * subsets[kind][swapped[:, kind]]
        yield swapped, weights
        start += draws


def _random_outcomes(sizes: IntArray, trials: int, seed: int) -> Iterator[tuple[IntArray, NDArray[Any]]]:
    """Yield random numbers of swapped sentences by kind, (draws, kinds), each of weight 1."""
    rng = np.random.default_rng(seed)
    for draws in _chunks(trials, len(sizes)):
        yield rng.binomial(sizes, 0.5, size=(draws, len(sizes))), np.ones(draws, dtype=np.int64)


def _at_least_as_far(a: _Fraction, b: _Fraction, first: _Fraction, second: _Fraction) -> NDArray[np.bool_]:
    """Tell for each draw whether its two scores are at least as far apart as those of the systems, without rounding.

    Python's integers, because the products of four totals pass 2 to the 63rd in corpora of some 50,000 spans.
    """
    (part_a, whole_a), (part_b, whole_b) = _exact(a), _exact(b)
    (part_1, whole_1), (part_2, whole_2) = _exact(first), _exact(second)
    drawn = abs(part_a * whole_b - part_b * whole_a) * (whole_1 * whole_2)
    seen = abs(part_1 * whole_2 - part_2 * whole_1) * (whole_a * whole_b)
    return np.asarray(drawn >= seen, dtype=bool)


def _exact(fraction: _Fraction) -> _Fraction:
    part, whole = fraction
    return np.asarray(part).astype(object), np.asarray(whole).astype(object)


def _fraction(part: NDArray[Any], whole: NDArray[Any]) -> _Fraction:
    # Nothing of nothing is 0 everywhere in this package.
    return part, np.maximum(whole, 1)


def _figures(counts: IntArray) -> dict[str, Callable[[NDArray[Any]], _Fraction]]:
    return _SPANS if counts.shape[1] == 3 else _PLAIN


def _chunks(draws: int, width: int) -> Iterator[int]:
    """Cut a number of draws, each as many numbers as the width, into chunks of bounded memory."""
    size = max(1, _CHUNK // max(1, width))
    for start in range(0, draws, size):
        yield min(size, draws - start)


def _checked(counts: IntArray) -> IntArray:
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.shape[1] not in _COLUMNS:
        raise ValueError(
            f"counts of the shape {counts.shape} are none of sentences; give (sentences, 3) for correct, predicted and "
            "gold spans, or (sentences, 2) for correct tags and tokens."
        )
    if not np.issubdtype(counts.dtype, np.integer):
        raise ValueError(f"counts are whole numbers, and these are of the type {counts.dtype}.")
    counts = counts.astype(np.int64)
    impossible = np.flatnonzero((counts.min(axis=1) < 0) | (counts[:, 0] > counts[:, 1:].min(axis=1)))
    if len(impossible):
        index = int(impossible[0])
        told = ", ".join(f"{n} {name}" for n, name in zip(counts[index], _COLUMNS[counts.shape[1]], strict=True))
        raise ValueError(f"sentence {index} (counted from 0) cannot have these counts: {told}.")
    return counts


def _check_paired(counts_a: IntArray, counts_b: IntArray) -> None:
    if counts_a.shape != counts_b.shape:
        raise ValueError(
            f"counts of the shapes {counts_a.shape} and {counts_b.shape} are not of the same sentences; "
            "compare two systems on one corpus."
        )
    different = np.flatnonzero(counts_a[:, -1] != counts_b[:, -1])
    if len(different):
        index = int(different[0])
        name = _COLUMNS[counts_a.shape[1]][-1]
        raise ValueError(
            f"sentence {index} (counted from 0) has {counts_a[index, -1]} {name} for one system but "
            f"{counts_b[index, -1]} for the other; compare two systems on the same gold tags."
        )


def _check_positive(name: str, number: int) -> None:
    if number < 1:
        raise ValueError(f"{name}={number} is too few; give 1 or more.")
