"""The CRF gives the results of pytorch-crf."""

import pytest
import torch

from hf_xorner.models.crf import Chain, best_path, negative_log_likelihood

torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed: pip install pytorch-crf==0.7.2")


def test_losses_gradients_and_paths():
    torch.manual_seed(0)
    theirs = torchcrf.CRF(25, batch_first=True)
    emissions = torch.randn(32, 30, 25, requires_grad=True)
    gold = torch.randint(25, (32, 30))
    lengths = torch.randint(1, 31, (32,))
    lengths[0] = 30
    mask = torch.arange(30) < lengths.unsqueeze(1)
    chain = Chain(emissions, theirs.transitions, theirs.start_transitions, theirs.end_transitions)
    losses = -theirs(emissions, gold, mask=mask), negative_log_likelihood(chain, lengths, gold).sum()
    expected, computed = ((loss, *torch.autograd.grad(loss, chain)) for loss in losses)
    torch.testing.assert_close(computed, expected, rtol=1e-4, atol=1e-3)  # pytorch-crf sums in single precision
    paths = best_path(chain, lengths).tolist()
    assert [path[:end] for path, end in zip(paths, lengths.tolist(), strict=True)] == theirs.decode(emissions, mask)
