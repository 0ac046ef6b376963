"""The chain's sums, posteriors, best paths and gradients are those of trying every path."""

import helpers
import pytest
import references as ref
import torch

from hf_xorner.models.crf import best_path, log_marginals, log_partition, path_score

LENGTHS = torch.tensor([4, 0, 1, 5, 2, 3])
TAGS = 3


@pytest.fixture(params=range(3))
def chain(request):
    """Emissions (B, T, K), transitions, start and end in float64."""
    torch.manual_seed(request.param)
    shapes = (len(LENGTHS), int(LENGTHS.max()), TAGS), (TAGS, TAGS), (TAGS,), (TAGS,)
    return [2 * torch.randn(shape, dtype=torch.float64) for shape in shapes]


@pytest.fixture
def paths():
    return torch.randint(0, TAGS, (len(LENGTHS), int(LENGTHS.max())), generator=torch.Generator().manual_seed(0))


def each_sentence(chain):
    """The number and the unpadded arguments for the references of every sentence that has words."""
    emissions, *scores = (values.detach().numpy() for values in chain)
    for number, length in enumerate(LENGTHS.tolist()):
        if length:
            yield number, (emissions[number, :length], *scores)


def test_partition_sums_over_all_paths(chain):
    partition = log_partition(*chain, LENGTHS)
    for number, sentence in each_sentence(chain):
        helpers.close(partition[number], ref.log_partition(*sentence), 1e-10)


def test_partition_and_score_of_no_words_are_zero(chain, paths):
    assert log_partition(*chain, LENGTHS)[LENGTHS == 0].tolist() == [0]
    assert path_score(*chain, LENGTHS, paths)[LENGTHS == 0].tolist() == [0]


def test_marginals_are_the_share_of_all_paths(chain):
    marginals = log_marginals(*chain, LENGTHS).exp()
    for number, sentence in each_sentence(chain):
        helpers.close(marginals[number, : LENGTHS[number]], ref.marginals(*sentence), 1e-10)


def test_best_path_is_the_best_of_all_paths(chain):
    best = best_path(*chain, LENGTHS)
    for number, sentence in each_sentence(chain):
        assert best[number, : LENGTHS[number]].tolist() == ref.best_path(*sentence)


def test_path_score_less_partition_is_the_log_likelihood(chain, paths):
    likelihood = path_score(*chain, LENGTHS, paths) - log_partition(*chain, LENGTHS)
    for number, sentence in each_sentence(chain):
        path = paths[number, : LENGTHS[number]].tolist()
        helpers.close(likelihood[number], ref.log_likelihood(*sentence, path), 1e-10)


def test_gradients_are_expected_less_gold_counts(chain, paths):
    leaves = [values.requires_grad_() for values in chain]
    weights = torch.linspace(-1, 2, len(LENGTHS), dtype=torch.float64)  # sentences do not count alike
    losses = log_partition(*leaves, LENGTHS) - path_score(*leaves, LENGTHS, paths)
    (weights * losses).sum().backward()

    emissions, *expected = (torch.zeros_like(values) for values in chain)
    for number, sentence in each_sentence(chain):
        gradients = ref.nll_gradients(*sentence, paths[number, : LENGTHS[number]].tolist())
        by_name = [weights[number] * torch.from_numpy(gradients[name]) for name in ("transitions", "start", "end")]
        emissions[number, : LENGTHS[number]] = weights[number] * torch.from_numpy(gradients["emissions"])
        for total, gradient in zip(expected, by_name, strict=True):
            total += gradient
    for leaf, gradient in zip(leaves, [emissions, *expected], strict=True):
        helpers.close(leaf.grad, gradient.numpy(), 1e-10)


def test_partition_passes_gradcheck(chain):
    leaves = [values.requires_grad_() for values in chain]
    assert torch.autograd.gradcheck(lambda *scores: log_partition(*scores, LENGTHS), leaves)


def test_padding_may_hold_any_number(chain, paths):
    """Padding's scores come from states that mean nothing; they must reach neither values nor gradients."""
    emissions, *scores = chain
    padding = torch.arange(emissions.shape[1]) >= LENGTHS.unsqueeze(1)

    def results(values):
        leaves = [leaf.detach().requires_grad_() for leaf in (values, *scores)]
        losses = log_partition(*leaves, LENGTHS) - path_score(*leaves, LENGTHS, paths)
        losses.sum().backward()
        marginals = log_marginals(*leaves, LENGTHS).masked_fill(padding.unsqueeze(-1), 0)
        path = best_path(*leaves, LENGTHS).masked_fill(padding, 0)
        return losses, path, marginals, *(leaf.grad for leaf in leaves)

    clean = results(emissions.masked_fill(padding.unsqueeze(-1), 0))
    for filler in (-3000.0, 3000.0):
        for value, expected in zip(results(emissions.masked_fill(padding.unsqueeze(-1), filler)), clean, strict=True):
            helpers.close(value, expected.detach().numpy(), 1e-10)


def test_long_sentences_stay_as_exact_as_short_ones():
    """Sums that grow with the length leave float32 no digits for a single word, unless they are kept in bounds."""
    torch.manual_seed(0)
    length = 1000
    emissions = 20 + torch.randn(1, length, TAGS)
    chain = [emissions, torch.randn(TAGS, TAGS), torch.randn(TAGS), torch.randn(TAGS)]
    exact = [values.double() for values in chain]
    lengths = torch.tensor([length])
    helpers.close(log_marginals(*chain, lengths).exp(), log_marginals(*exact, lengths).exp().numpy(), 1e-5)
    assert torch.equal(best_path(*chain, lengths), best_path(*exact, lengths))

    def gradients(values):
        leaves = [leaf.clone().requires_grad_() for leaf in values]
        log_partition(*leaves, lengths).sum().backward()
        return [leaf.grad for leaf in leaves]

    for gradient, expected in zip(gradients(chain), gradients(exact), strict=True):
        torch.testing.assert_close(gradient.double(), expected, rtol=1e-5, atol=1e-5)
