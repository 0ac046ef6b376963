"""The fast algorithm is used only where it is accurate: huge scores, forbidden transitions, long sentences."""

from itertools import cycle

import chain_oracle as oracle
import helpers
import numpy as np
import pytest
import torch
from test_crf import log_marginals

from hf_xorner.models import crf
from hf_xorner.models.crf import (
    IMPOSSIBLE,
    Chain,
    LogMessages,
    ScaledMessages,
    best_path,
    log_partition,
    messages,
    negative_log_likelihood,
    path_score,
    posterior,
)
from hf_xorner.models.tags import IGNORED, TagSpace

LENGTHS = torch.tensor([8, 0, 1, 5, 2])
TAGS = 5
#: Sizes of emissions and of transitions.
SIZES = [(1, 1), (30, 3), (100, 1), (1, 300), (300, 300), (1e3, 1), (1e4, 10), (1e4, 1e4)]
FILLERS = [3000.0, -3000.0, float("nan"), float("inf")]


def random_scores(
    kind, seed, emissions=1.0, transitions=1.0, barred=0.0, dtype=torch.float32, lengths=LENGTHS, tags=TAGS
):
    """A chain whose scores are of the given sizes."""
    torch.manual_seed(seed)
    rows, time = len(lengths), int(lengths.max())
    words = (rows, time) if kind == "conditioned" else ()
    moves = transitions * torch.randn(*words, tags, tags, dtype=dtype)
    if barred:
        bars = torch.rand(tags, tags) < barred
        bars[range(tags), range(tags)] = False
        moves = moves.masked_fill(bars, -torch.inf)
    start, end = torch.randn(*words[:1], tags, dtype=dtype), torch.randn(tags, dtype=dtype)
    return Chain(emissions * torch.randn(rows, time, tags, dtype=dtype), moves, start, end)


def check(chain, lengths=LENGTHS, tolerance=1e-5):
    """Compare partition, marginals and all gradients with recursions over logarithms in float64."""
    leaves = Chain(*(scores.clone().requires_grad_() for scores in chain))
    partition = log_partition(leaves, lengths)
    gradients = torch.autograd.grad(partition.sum(), leaves)
    partition = partition.detach()
    with torch.no_grad():
        marginals = log_marginals(chain, lengths)
    moves = np.zeros(chain.transitions.shape)
    for row, length in enumerate(lengths.tolist()):
        if not length:
            continue
        total, log_probs, pairs = oracle.recursions(*oracle.alone(chain, row, length))
        assert float(partition[row]) == pytest.approx(total, rel=1e-6, abs=1e-5)
        helpers.close(marginals[row, :length].exp(), np.exp(log_probs), tolerance)
        probable = log_probs > -50
        helpers.close(marginals[row, :length][torch.from_numpy(probable)], log_probs[probable], 1e-4)
        helpers.close(gradients[0][row, :length], np.exp(log_probs), tolerance)
        if chain.conditioned:
            moves[row, :length] = pairs
        else:
            moves += pairs
    assert all(gradient.isfinite().all() for gradient in gradients)
    helpers.close(gradients[1], moves, tolerance * max(1, lengths.sum().item() / 100))


@pytest.mark.parametrize("kind", ["constant", "conditioned"])
@pytest.mark.parametrize(("sizes", "barred"), list(zip(SIZES, cycle([0.0, 0.5]))), ids=str)
def test_posterior_of_scores_of_any_size(kind, sizes, barred):
    check(random_scores(kind, 0, *sizes, barred))


@pytest.mark.parametrize("size", [200.0, 400.0], ids=["product underflows", "factors underflow"])
def test_tags_with_vanishing_forward_and_backward_scores_keep_their_probability(size):
    """Partial sums may be dominated by paths that end in a forbidden transition.

    The first words favour tag 0 and the last ones tag 1, each by twice the size, and the transition from 0 to 1 is
    forbidden. The sums of tag 2 in both directions, or their product, underflow, though it is as probable as the
    others.
    """
    emissions = torch.zeros(1, 6, 3)
    emissions[0, :2, 0] = emissions[0, -2:, 1] = size
    emissions[0, 2:4, 2] = size
    transitions = torch.full((3, 3), -torch.inf)
    transitions[range(3), range(3)] = 0.0
    chain, lengths = Chain(emissions, transitions, torch.zeros(3), torch.zeros(3)), torch.tensor([6])
    assert not ScaledMessages(chain, lengths).exact()
    helpers.close(log_partition(chain, lengths), [2 * size + np.log(3)], 1e-3)
    helpers.close(log_marginals(chain, lengths).exp(), np.full((1, 6, 3), 1 / 3), 1e-5)
    check(chain, lengths)


def test_a_weight_that_underflows_and_is_favoured_at_the_end_is_not_lost():
    emissions = torch.zeros(1, 3, 2)
    emissions[..., 0] = 400.0
    transitions = torch.full((2, 2), -torch.inf)
    transitions[range(2), range(2)] = 0.0
    chain, lengths = Chain(emissions, transitions, torch.zeros(2), torch.tensor([0.0, 1300.0])), torch.tensor([3])
    helpers.close(log_partition(chain, lengths), [1300.0], 1e-3)
    check(chain, lengths)


def bioes_chain(spread):
    """A constrained chain over the tags of two types."""
    tags = TagSpace(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
    chain = random_scores("constant", 0, spread, tags=tags.num_inner)
    tables = tags.on(torch.device("cpu"))
    barred = (tables.barred_transitions, tables.barred_start, tables.barred_end)
    bounds = [scores.masked_fill(table, -torch.inf) for scores, table in zip(chain[1:], barred, strict=True)]
    return Chain(chain.emissions, *bounds)


@pytest.mark.parametrize("spread", [1, 20])
def test_typical_trained_scores_use_the_fast_algorithm(spread):
    for chain in (random_scores("constant", 0, spread), random_scores("conditioned", 0, spread), bioes_chain(spread)):
        assert isinstance(messages(chain, LENGTHS), ScaledMessages)
        check(chain)


def test_forbidden_transitions_are_never_taken_whatever_the_emissions():
    chain = bioes_chain(1e4)
    path, possible = best_path(chain, LENGTHS), chain.transitions > -torch.inf
    log_probs = log_marginals(chain, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        tags = path[row, :length]
        assert possible[tags[:-1], tags[1:]].all()
        if length:
            assert chain.start[tags[0]] + chain.end[tags[-1]] > -torch.inf
            assert (log_probs[row, 0, chain.start == -torch.inf] == IMPOSSIBLE).all()
    check(chain)


@pytest.mark.parametrize(("filler", "kind"), list(zip(FILLERS, cycle(["constant", "conditioned"]))))
@pytest.mark.parametrize("way", [messages, LogMessages], ids=["as chosen", "logarithms"])
def test_scores_of_padding_are_ignored(monkeypatch, filler, way, kind):
    """Scores of padding are arbitrary and must not affect values or gradients."""
    monkeypatch.setattr(crf, "messages", way)
    padding = torch.arange(int(LENGTHS.max())) >= LENGTHS.unsqueeze(1)
    chain = random_scores(kind, 0, dtype=torch.float64)
    gold = torch.randint(TAGS, padding.shape)
    partly = gold.clone()
    partly[:, 1] = IGNORED

    def results(number):
        emissions = chain.emissions.masked_fill(padding.unsqueeze(2), number)
        filled = Chain(*(scores.clone().requires_grad_() for scores in chain._replace(emissions=emissions)))
        path = best_path(filled, LENGTHS).masked_fill(padding, 0)
        values = [path, path_score(filled, LENGTHS, gold)]
        for labels in (gold, partly):
            losses = negative_log_likelihood(filled, LENGTHS, labels)
            values += [losses, *torch.autograd.grad(losses.sum(), filled)]
        with torch.no_grad():
            return [*values, *posterior(filled, LENGTHS, path)]

    for value, expected in zip(results(filler), results(0.0), strict=True):
        helpers.close(value.detach(), expected.detach().numpy(), 1e-10)


def test_the_best_path_of_20000_words_is_that_of_float64():
    """Viterbi scores that grow with the length lose float32 precision unless they are normalised."""
    chain = random_scores("constant", 0, transitions=0.1, lengths=(lengths := torch.tensor([20_000])), tags=3)
    chain = chain._replace(transitions=chain.transitions + 20)
    alone = oracle.alone(chain, 0, 20_000)
    scores = [
        oracle.score_of(*alone, path) for path in (best_path(chain, lengths)[0].tolist(), oracle.best_path(*alone))
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3, rel=0)


@pytest.mark.parametrize("way", [messages, LogMessages], ids=["as chosen", "logarithms"])
@pytest.mark.parametrize("kind", ["constant", "conditioned"])
def test_long_sentences_are_as_accurate_as_short_ones(monkeypatch, way, kind):
    """Sums that grow with the length lose float32 precision unless they are normalised."""
    monkeypatch.setattr(crf, "messages", way)
    lengths = torch.tensor([2000, 3])
    chain = random_scores(kind, 0, lengths=lengths, tags=3)
    check(chain._replace(emissions=chain.emissions + 20), lengths)
