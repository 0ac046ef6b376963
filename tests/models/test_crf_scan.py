"""The parallel prefix products of a GPU against recursions over one sentence in float64."""

import chain_oracle as oracle
import numpy as np
import pytest
import torch
from test_crf_extremes import random_scores

from hf_xorner.models.crf import Chain, best_path, log_partition, posterior

LENGTHS = torch.tensor([300, 257, 256, 129, 64, 9, 8, 3, 2, 1])
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


def relative(values, expected, tolerance):
    """Compare numbers, relative to the largest of them."""
    difference = np.abs(values.detach().cpu().double().numpy() - expected).max()
    assert difference <= tolerance * max(1, np.abs(expected).max()), (difference, np.abs(expected).max())


@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_sums_posterior_and_paths_match_float64_recursions(device, scores):
    *sizes, bounded, conditioned = scores
    chain = random_scores("conditioned" if conditioned else "constant", 0, *sizes, lengths=LENGTHS, tags=TAGS)
    chain, lengths = chain._replace(start=bounded * chain.start, end=bounded * chain.end), LENGTHS.to(device)
    leaves = Chain(*(values.to(device, copy=True).requires_grad_() for values in chain))
    partition = log_partition(leaves, lengths)
    emissions, transitions, *_ = torch.autograd.grad(partition.sum(), leaves)
    detached = Chain(*(values.detach() for values in leaves))
    best = best_path(detached, lengths)
    marginals, steps = posterior(detached, lengths, best)
    moves = np.zeros(chain.transitions.shape)
    for row, length in enumerate(LENGTHS.tolist()):
        sentence = oracle.alone(chain, row, length)
        total, log_probs, pairs = oracle.recursions(*sentence)
        relative(partition[row], total, 1e-5)
        relative(marginals[row, :length].exp(), np.exp(log_probs), 1e-5)
        relative(emissions[row, :length], np.exp(log_probs), 1e-5)
        path = best[row, :length].cpu().numpy()
        relative(steps[row, :length, 0].exp(), np.exp(log_probs[range(length), path]), 1e-5)
        # Another path of the same score would be as good.
        expected = oracle.score_of(*sentence, oracle.best_path(*sentence))
        assert oracle.score_of(*sentence, path) == pytest.approx(expected, rel=1e-9)
        if chain.conditioned:
            moves[row, :length] = pairs
        else:
            moves += pairs
    relative(transitions, moves, 1e-4)
