"""The best paths of a chain are those that trying every path finds."""

import chain_oracle as oracle
import helpers
import numpy as np
import pytest
import torch
from test_crf import IDS, KINDS, LENGTHS, TIME, each_sentence, random_chain, random_paths

from hf_xorner.models.crf import Chain, best_path, k_best_paths, path_score


@pytest.fixture(params=KINDS, ids=IDS)
def chain(request):
    return random_chain(*request.param)


def test_best_path_is_the_best_of_all_paths(chain):
    best = best_path(chain, LENGTHS)
    for row, length, sentence in each_sentence(chain):
        assert best[row, :length].tolist() == oracle.all_paths(*sentence)[0][0].tolist()
    # Padding, too, holds tags that can be looked up.
    assert 0 <= best.min() <= best.max() < chain.emissions.shape[2]


def test_score_of_a_path_adds_up(chain):
    paths = random_paths(chain)
    scores = path_score(chain, LENGTHS, paths)
    for row, length, sentence in each_sentence(chain):
        helpers.close(scores[row], oracle.score_of(*sentence, paths[row, :length].tolist()), 1e-10)


def test_barred_path_scores_minus_infinity():
    chain = random_chain("constant", 3)
    chain.transitions[1, 2] = -torch.inf
    path = torch.tensor([0, 1, 2, 0, 0, 0]).repeat(len(LENGTHS), 1)
    assert (path_score(chain, LENGTHS, path) == -torch.inf).tolist() == (LENGTHS >= 3).tolist()


@pytest.mark.parametrize("k", [1, 3, 20])
def test_k_best_paths_are_the_first_of_all_paths(chain, k):
    paths, scores = k_best_paths(chain, LENGTHS, k)
    for row, length, sentence in each_sentence(chain):
        expected, totals = (values[:k] for values in oracle.all_paths(*sentence))
        assert paths[row, : len(expected), :length].tolist() == expected.tolist()
        helpers.close(scores[row, : len(totals)], totals, 1e-10)
        assert (scores[row, len(totals) :] == -torch.inf).all()


def test_k_is_a_number_of_paths():
    with pytest.raises(ValueError, match="k=0 is no number of paths; give 1 or more"):
        k_best_paths(random_chain("constant", 3), LENGTHS, 0)


def test_first_of_the_k_best_is_the_best_in_long_sentences():
    torch.manual_seed(0)
    lengths = torch.tensor([300, 0, 200, 1])
    chain = Chain(torch.randn(4, 300, 7), torch.randn(7, 7), torch.randn(7), torch.randn(7))
    paths, scores = k_best_paths(chain, lengths, 5)
    inside = torch.arange(300) < lengths.unsqueeze(1)
    assert torch.equal(paths[:, 0] * inside, best_path(chain, lengths) * inside)
    for rank in range(5):
        exact = path_score(Chain(*(values.double() for values in chain)), lengths, paths[:, rank])
        possible = scores[:, rank] > -torch.inf
        helpers.close(scores[possible, rank], exact[possible].numpy(), 1e-2)
    assert (scores[0].diff() <= 0).all()
    distinct = {tuple(path) for path in paths[0].tolist()}
    assert len(distinct) == 5


@pytest.mark.parametrize("kind", ["constant", "conditioned"])
def test_among_equal_paths_one_of_the_best_is_taken(kind):
    generator = np.random.default_rng(0)
    whole = [torch.from_numpy(generator.integers(0, 2, values.shape)).double() for values in random_chain(kind, 3)]
    best = best_path(Chain(*whole), LENGTHS)
    for row, length, sentence in each_sentence(Chain(*whole)):
        assert oracle.score_of(*sentence, best[row, :length].tolist()) == oracle.best_score(*sentence)
    assert best.shape == (len(LENGTHS), TIME)
