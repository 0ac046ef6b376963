"""Partition, posterior, span probabilities, gradients and best paths match enumeration of all paths."""

import chain_oracle as oracle
import helpers
import numpy as np
import pytest
import torch

from hf_xorner.models import crf
from hf_xorner.models.crf import (
    IMPOSSIBLE,
    Chain,
    LogMessages,
    best_path,
    log_partition,
    negative_log_likelihood,
    posterior,
)
from hf_xorner.models.tags import IGNORED

LENGTHS = torch.tensor([4, 0, 1, 6, 2, 3, 5])
TIME = int(LENGTHS.max())
SPANS = [
    (row, begin, end) for row, length in enumerate(LENGTHS) for end in range(1, length + 1) for begin in range(end)
]
#: Kind, tags, seed, and whether some transitions are forbidden.
KINDS = [
    (kind, tags, seed, barred)
    for kind in ("constant", "conditioned")
    for tags, seed, barred in ((1, 0, False), (2, 1, False), (3, 2, False), (5, 3, False), (3, 4, True), (5, 5, True))
]
IDS = [f"{kind}, {tags} tags{', barred' if barred else ''}" for kind, tags, _, barred in KINDS]


@pytest.fixture(params=["as chosen", "logarithms"], autouse=True)
def way(request, monkeypatch):
    """Both summation algorithms: that of CPUs and that of GPUs."""
    if request.param == "logarithms":
        monkeypatch.setattr(crf, "messages", LogMessages)
    return request.param


def random_chain(kind, tags, seed=0, barred=False, spread=2.0):
    """A chain in float64: transitions (K, K), or of every word."""
    generator = torch.Generator().manual_seed(seed)
    rows = {"constant": (), "conditioned": (len(LENGTHS),)}[kind]
    words = (*rows, TIME) if rows else ()
    shapes = (len(LENGTHS), TIME, tags), (*words, tags, tags), (*rows, tags), (tags,)
    scores = [spread * torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes]
    if barred:
        moves = torch.rand(tags, tags, generator=generator) < 0.4
        moves[0] = moves[:, 0] = False  # every sentence has a valid path, through tag 0
        scores[1] = scores[1].masked_fill(moves, -torch.inf)
        scores[2][..., 1] = scores[3][-1] = -torch.inf
    return Chain(*scores)


@pytest.fixture(params=KINDS, ids=IDS)
def chain(request):
    return random_chain(*request.param)


def each_sentence(chain):
    for row, length in enumerate(LENGTHS.tolist()):
        if length:
            yield row, length, oracle.alone(chain, row, length)


def random_paths(chain, seed=0):
    """Paths (B, T) that are not forbidden, sampled for each sentence."""
    generator = np.random.default_rng(seed)
    paths = torch.zeros(len(LENGTHS), TIME, dtype=torch.long)
    for row, length, sentence in each_sentence(chain):
        possible, _ = oracle.all_paths(*sentence)
        paths[row, :length] = torch.from_numpy(possible[generator.integers(len(possible))])
    return paths


def log_marginals(chain, lengths):
    """The log posterior (B, T, K), which does not depend on a path."""
    return posterior(chain, lengths, torch.zeros(chain.emissions.shape[:2], dtype=torch.long))[0]


def span_log_probs(steps, sentence, begin, end):
    """Log probabilities (N,) of spans, added up from those of the steps (B, T, 2) of a path."""
    sums = [steps[row, a, 0] + steps[row, a + 1 : b, 1].sum() for row, a, b in zip(sentence, begin, end, strict=True)]
    return torch.stack(sums)


# --- Sums -------------------------------------------------------------------------------------------------------------


def test_partition_sums_over_all_paths(chain):
    partition = log_partition(chain, LENGTHS)
    for row, _, sentence in each_sentence(chain):
        helpers.close(partition[row], oracle.log_sum_exp(oracle.all_paths(*sentence)[1]), 1e-10)


def test_marginals_match_enumeration_of_paths(chain):
    marginals = log_marginals(chain, LENGTHS)
    assert marginals.min() >= IMPOSSIBLE
    for row, length, sentence in each_sentence(chain):
        helpers.close(marginals[row, :length].exp(), oracle.counts(*sentence)[0], 1e-10)
        helpers.close(
            marginals[row, length:].exp(),
            np.full((TIME - length, chain.emissions.shape[2]), 1 / chain.emissions.shape[2]),
            1e-10,
        )


def fitting(gold):
    """Whether paths fit gold tags (T,) of which some are IGNORED."""
    return lambda paths: ((paths == gold) | (gold == IGNORED)).all(1)


@pytest.mark.parametrize("unlabelled", [[], [0, 3, 5], range(TIME)], ids=str)
def test_likelihood_is_that_of_all_paths_that_fit_the_labels(chain, unlabelled):
    gold = random_paths(chain)
    gold[:, list(unlabelled)] = IGNORED
    losses = negative_log_likelihood(chain, LENGTHS, gold)
    for row, length, sentence in each_sentence(chain):
        fits = fitting(gold[row, :length].numpy())
        helpers.close(losses[row], -oracle.log_likelihood(*sentence, fits=fits), 1e-10)


def test_forbidden_gold_paths_have_the_loss_of_impossible_ones():
    chain = random_chain("constant", 3)
    chain.transitions[1, 2] = -torch.inf
    gold = torch.tensor([1, 2]).repeat(len(LENGTHS), TIME // 2)
    partly = gold.clone()
    partly[:, 3] = IGNORED
    leaves = Chain(*(scores.requires_grad_() for scores in chain))
    for labels in (gold, partly):
        losses = negative_log_likelihood(leaves, LENGTHS, labels)
        assert (losses[LENGTHS > 1] == -IMPOSSIBLE).all()
        gradients = torch.autograd.grad(losses.sum(), leaves)
        assert all(gradient.isfinite().all() for gradient in gradients)


# --- Gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unlabelled", [None, [], [1, 3]], ids=["partition", "path", "partial path"])
def test_gradients_are_expected_minus_gold_counts(chain, unlabelled):
    gold = random_paths(chain)
    gold[:, unlabelled or []] = IGNORED
    weights = torch.linspace(-1, 2, len(LENGTHS), dtype=torch.float64)  # sentences do not count alike
    leaves = Chain(*(scores.requires_grad_() for scores in chain))
    losses = negative_log_likelihood(leaves, LENGTHS, gold)
    if unlabelled is None:
        losses = log_partition(leaves, LENGTHS)
    (weights * losses).sum().backward()

    expected = [np.zeros(scores.shape) for scores in chain]
    for row, length, sentence in each_sentence(chain):
        words, moves = oracle.counts(*sentence)
        if unlabelled is not None:
            fixed = oracle.counts(*sentence, fitting(gold[row, :length].numpy()))
            words, moves = words - fixed[0], moves - fixed[1]
        weight = float(weights[row])
        emissions, transitions, start, end = expected
        emissions[row, :length] = weight * words
        if transitions.ndim == 2:
            transitions += weight * moves
            start += weight * words[0]
        else:
            transitions[row, 1:length] = weight * moves[1:]
            start[row] = weight * words[0]
        end += weight * words[-1]
    for leaf, gradient in zip(leaves, expected, strict=True):
        helpers.close(leaf.grad, gradient, 1e-10)


@pytest.mark.parametrize("barred", [False, True])
def test_posterior_is_differentiable(barred):
    chain = random_chain("constant", 3, barred=barred)
    path = random_paths(chain)
    emissions = chain.emissions.requires_grad_()

    def marginals(scores):
        return posterior(chain._replace(emissions=scores), LENGTHS, path)[1].clamp(min=-50)

    assert torch.autograd.gradcheck(marginals, (emissions,))


# --- Spans ------------------------------------------------------------------------------------------------------------


def test_span_probabilities_match_enumeration_of_paths(chain):
    sentence, begin, end = torch.tensor(SPANS).unbind(1)
    for path in (random_paths(chain), best_path(chain, LENGTHS)):
        log_prob = span_log_probs(posterior(chain, LENGTHS, path)[1], sentence, begin, end)
        for row, length, scores in each_sentence(chain):
            paths, shares = oracle.probabilities(*scores)
            tags = path[row, :length].numpy()
            for index in (sentence == row).nonzero().flatten().tolist():
                span = slice(begin[index], end[index])
                expected = shares[(paths[:, span] == tags[span]).all(1)].sum()
                helpers.close(log_prob[index].exp(), expected, 1e-10)


# --- The best path ----------------------------------------------------------------------------------------------------


def test_best_path_matches_enumeration_of_paths(chain):
    best = best_path(chain, LENGTHS)
    for row, length, sentence in each_sentence(chain):
        assert best[row, :length].tolist() == oracle.all_paths(*sentence)[0][0].tolist()
    # Padding, too, holds tags that can be looked up.
    assert 0 <= best.min() <= best.max() < chain.emissions.shape[2]


@pytest.mark.parametrize("kind", ["constant", "conditioned"])
def test_best_path_with_ties_is_one_of_the_best(kind):
    generator = np.random.default_rng(0)
    whole = [torch.from_numpy(generator.integers(0, 2, values.shape)).double() for values in random_chain(kind, 3)]
    best = best_path(Chain(*whole), LENGTHS)
    for row, length, sentence in each_sentence(Chain(*whole)):
        assert oracle.score_of(*sentence, best[row, :length].tolist()) == oracle.all_paths(*sentence)[1][0]
    assert best.shape == (len(LENGTHS), TIME)


# --- Empty input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["constant", "conditioned"])
@pytest.mark.parametrize(("rows", "time"), [(0, 4), (3, 4)], ids=str)
def test_empty_batches_and_sentences_are_supported(kind, rows, time):
    emissions, transitions, start, end = random_chain(kind, 3)
    if kind == "conditioned":
        transitions, start = transitions[:rows, :time], start[:rows]
    scores = emissions[:rows, :time], transitions, start, end
    chain = Chain(*(values.detach().requires_grad_() for values in scores))
    lengths = torch.zeros(rows, dtype=torch.long)
    path = torch.zeros(rows, time, dtype=torch.long)
    losses = negative_log_likelihood(chain, lengths, path)
    gradients = torch.autograd.grad(losses.sum() + log_partition(chain, lengths).sum(), chain)
    assert losses.tolist() == [0] * rows
    assert not any(gradient.any() for gradient in gradients)
    assert best_path(chain, lengths).shape == (rows, time)
    assert [values.shape for values in posterior(chain, lengths, path)] == [(rows, time, 3), (rows, time, 2)]
