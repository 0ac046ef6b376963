import itertools
from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xorner.evaluation.resampling import bootstrap_intervals, randomisation_test

SPAN_FIGURES = ("precision", "recall", "f1")


def exact_scores(counts):
    """The scores of the sum of some rows, as fractions in 0..1, by the definitions."""

    def ratio(part, whole):
        return Fraction(int(part), int(whole)) if whole else Fraction(0)

    totals = [sum(column) for column in zip(*counts, strict=True)]
    if len(totals) == 2:
        return {"accuracy": ratio(totals[0], totals[1])}
    correct, predicted, gold = totals
    return {
        "precision": ratio(correct, predicted),
        "recall": ratio(correct, gold),
        "f1": ratio(2 * correct, predicted + gold),
    }


def p_by_brute_force(counts_a, counts_b):
    """The share of all ways to swap sentences in which the scores are at least as far apart."""
    rows = [tuple(map(tuple, pair)) for pair in zip(counts_a.tolist(), counts_b.tolist(), strict=True)]
    seen_a, seen_b = (exact_scores(counts.tolist()) for counts in (counts_a, counts_b))
    extreme, ways = Counter(), 0
    for swaps in itertools.product([False, True], repeat=len(rows)):
        mixed = [pair[::-1] if swap else pair for pair, swap in zip(rows, swaps, strict=True)]
        scores_a, scores_b = (exact_scores(side) for side in zip(*mixed, strict=True))
        ways += 1
        for name in seen_a:
            extreme[name] += abs(scores_a[name] - scores_b[name]) >= abs(seen_a[name] - seen_b[name])
    return {name: extreme[name] / ways for name in seen_a}


def system(rng, gold, skill):
    """Counts of a system of some skill on sentences with so many gold spans."""
    predicted = np.maximum(0, gold + rng.integers(-1, 2, len(gold)))
    correct = rng.binomial(np.minimum(gold, predicted), skill)
    return np.stack([correct, predicted, gold], axis=1)


def plain_system(rng, tokens, skill):
    return np.stack([rng.binomial(tokens, skill), tokens], axis=1)


@st.composite
def paired_counts(draw):
    """Span counts of two systems on up to eight sentences."""
    pair = []
    golds = draw(st.lists(st.integers(0, 3), min_size=1, max_size=8))
    for _ in range(2):
        rows = []
        for gold in golds:
            predicted = draw(st.integers(0, 3))
            rows.append([draw(st.integers(0, min(gold, predicted))), predicted, gold])
        pair.append(np.array(rows))
    return pair


def near(p, trials=10_000):
    """The estimate of a p value from random trials; six standard deviations are allowed."""
    return pytest.approx((1 + trials * p) / (1 + trials), abs=6 * np.sqrt(p * (1 - p) / trials) + 1e-9)


@given(paired_counts())
def test_small_cases_approximate_the_enumeration_of_all_swaps(pair):
    expected = p_by_brute_force(*pair)
    result = randomisation_test(*pair)
    assert tuple(result) == SPAN_FIGURES
    for name in SPAN_FIGURES:
        assert result[name]["p"] == near(expected[name])


def test_many_sentences_approximate_the_sign_test():
    # Of 300 sentences, one system is right in 170 and the other in 130.
    counts_a = np.array([[1, 1]] * 170 + [[0, 1]] * 130)
    counts_b = 1 - counts_a
    counts_b[:, 1] = 1
    result = randomisation_test(counts_a, counts_b)["accuracy"]
    tail = sum(comb(300, k) for k in range(301) if abs(k - 150) >= 20)
    assert result == {"p": near(tail / 2**300), "difference": pytest.approx(40 / 3)}


def test_ties_are_found_without_rounding_errors():
    counts_a = np.array([[1, 1, 1], [0, 1, 1], [2, 3, 2]])
    counts_b = np.array([[1, 2, 1], [1, 3, 1], [1, 2, 2]])
    # Half of the swaps leave precisions of 3/5 and 3/7, or two that are as far apart; in floats, a quarter does.
    assert p_by_brute_force(counts_a, counts_b)["precision"] == 0.5
    assert randomisation_test(counts_a, counts_b)["precision"]["p"] == near(0.5)


def test_large_counts_are_compared_exactly():
    # Products of four totals of this size do not fit into 64 bits.
    large = 10**9
    counts_a = np.array([[large, large, large], [large - 1, large, large]])
    counts_b = np.array([[large - 1, large, large], [large, large, large]])
    assert randomisation_test(counts_a, counts_b)["f1"]["p"] == 1.0
    counts_b[1, 0] = large - 1
    counts_a[1, 0] = large
    assert randomisation_test(counts_a, counts_b)["f1"]["p"] == near(0.5)


def naive_bootstrap(counts, resamples, seed):
    """The scores in percent of resamples that a loop draws sentence by sentence. Shape: (resamples,) each."""
    rng = np.random.default_rng(seed)
    drawn = [exact_scores(counts[rng.integers(len(counts), size=len(counts))].tolist()) for _ in range(resamples)]
    return {name: np.array([100 * float(scores[name]) for scores in drawn]) for name in drawn[0]}


@pytest.mark.parametrize("plain", [False, True])
def test_intervals_equal_those_of_a_loop_over_sentences(plain):
    rng = np.random.default_rng(1)
    counts = plain_system(rng, rng.integers(1, 20, 80), 0.8) if plain else system(rng, rng.integers(0, 4, 80), 0.8)
    naive = naive_bootstrap(counts, 4000, seed=3)
    intervals = bootstrap_intervals(counts, resamples=20_000)
    assert tuple(intervals) == (("accuracy",) if plain else SPAN_FIGURES)
    for name, interval in intervals.items():
        # In the tails, a quantile of 4,000 draws has an error of a twentieth of their spread.
        tolerance = 0.15 * naive[name].std()
        assert interval == pytest.approx(np.quantile(naive[name], [0.025, 0.975]), abs=tolerance)
        assert interval[0] < 100 * float(exact_scores(counts.tolist())[name]) < interval[1]


def test_empty_and_identical_systems_can_be_tested():
    assert bootstrap_intervals(np.zeros((0, 3), dtype=int)) == {name: [0.0, 0.0] for name in SPAN_FIGURES}
    assert bootstrap_intervals(np.zeros((7, 2), dtype=int)) == {"accuracy": [0.0, 0.0]}
    counts = np.array([[1, 2, 3], [0, 0, 0], [2, 2, 2]])
    for result in randomisation_test(counts, counts).values():
        assert result == {"p": 1.0, "difference": 0.0}


def test_the_seed_determines_the_results():
    rng = np.random.default_rng(4)
    gold = rng.integers(0, 4, 100)
    pair = system(rng, gold, 0.85), system(rng, gold, 0.8)
    assert randomisation_test(*pair) == randomisation_test(*pair) != randomisation_test(*pair, seed=14)
    assert bootstrap_intervals(pair[0]) == bootstrap_intervals(pair[0]) != bootstrap_intervals(pair[0], seed=14)
