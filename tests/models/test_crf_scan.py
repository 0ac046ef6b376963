"""The parallel prefix products of a GPU against recursions over one sentence in float64."""

import chain_oracle as oracle
import numpy as np
import pytest
import torch

from hf_xorner.models.crf import Chain, best_path, negative_log_likelihood, posterior

LENGTHS = torch.tensor([300, 257, 256, 255, 129, 64, 17, 9, 8, 7, 4, 3, 2, 1])
TAGS = 5
#: Sizes of the emissions and of the transitions, the share of barred transitions, whether boundaries have scores, and
#: whether transitions are conditioned on the word.
SCORES = [(1, 1, 0.0, True, False), (1, 1, 0.0, True, True), (3, 1, 0.5, False, True), (1e3, 1, 0.5, True, False)]
SCORES += [(1, 1e3, 0.0, False, True), (1e4, 1e4, 0.5, True, False)]


@pytest.fixture(params=["cpu", "cuda"])
def device(request, as_on_a_gpu):
    """The processor on the paths of a GPU, and a GPU."""
    if request.param == "cuda":
        return request.getfixturevalue("cuda")
    as_on_a_gpu()
    return torch.device("cpu")


def chains():
    """Chains in float32 with constant or conditioned transitions, with and without scores of the boundaries."""
    draw = torch.Generator().manual_seed(0)
    rows, time = len(LENGTHS), int(LENGTHS.max())
    for size, moves, barred, bounded, conditioned in SCORES:
        emissions = size * torch.randn(rows, time, TAGS, generator=draw)
        shape = (rows, time, TAGS, TAGS) if conditioned else (TAGS, TAGS)
        bars = torch.rand(TAGS, TAGS, generator=draw).fill_diagonal_(1) < barred
        transitions = (moves * torch.randn(shape, generator=draw)).masked_fill(bars, -torch.inf)
        start = torch.randn((rows, TAGS) if conditioned else TAGS, generator=draw)
        yield Chain(emissions, transitions, bounded * start, bounded * torch.randn(TAGS, generator=draw))


def relative(values, expected, tolerance):
    """Compare numbers, relative to the largest of them."""
    difference = np.abs(values.detach().cpu().double().numpy() - expected).max()
    assert difference <= tolerance * max(1, np.abs(expected).max()), (difference, np.abs(expected).max())


def test_losses_gradients_posterior_and_paths_match_float64_recursions(device):
    for chain in chains():
        leaves = Chain(*(scores.to(device, copy=True).requires_grad_() for scores in chain))
        detached = Chain(*(scores.detach() for scores in leaves))
        lengths = LENGTHS.to(device)
        best = best_path(detached, lengths)
        losses = negative_log_likelihood(leaves, lengths, best)
        gradients = torch.autograd.grad(losses.sum(), leaves)
        marginals, steps = posterior(detached, lengths, best)
        moves, first, last = (np.zeros(scores.shape) for scores in chain[1:])
        for row, length in enumerate(LENGTHS.tolist()):
            sentence = oracle.alone(chain, row, length)
            path = best[row, :length].cpu().numpy()
            # Another path of the same score would be as good.
            score = oracle.score_of(*sentence, path)
            assert score == pytest.approx(oracle.score_of(*sentence, oracle.best_path(*sentence)), rel=1e-9)
            total, log_probs, pairs = oracle.recursions(*sentence)
            relative(losses[row], total - score, 1e-5)
            relative(marginals[row, :length].exp(), np.exp(log_probs), 1e-5)
            relative(steps[row, :length, 0].exp(), np.exp(log_probs[range(length), path]), 1e-5)
            counts = np.exp(log_probs)
            counts[range(length), path] -= 1
            relative(gradients[0][row, :length], counts, 1e-5)
            assert not gradients[0][row, length:].any()
            if chain.conditioned:
                pairs[range(1, length), path[:-1], path[1:]] -= 1
                moves[row, :length] = pairs
                first[row] = counts[0]
            else:
                np.add.at(pairs, (path[:-1], path[1:]), -1)
                moves += pairs
                first += counts[0]
            last += counts[-1]
        for gradient, expected in zip(gradients[1:], (moves, first, last), strict=True):
            relative(gradient, expected, 1e-4)
