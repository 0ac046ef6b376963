"""The CRF gives the results of pytorch-crf, and several times as fast."""

import time

import pytest
import torch

from hf_xorner.models.crf import Chain, best_path, negative_log_likelihood

torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed: pip install pytorch-crf==0.7.2")


def crf_calls(batch, length, tags):
    """Calls of both CRFs with the same weights and sentences: losses with all gradients, and paths."""
    torch.manual_seed(0)
    theirs = torchcrf.CRF(tags, batch_first=True)
    emissions = torch.randn(batch, length, tags, requires_grad=True)
    gold = torch.randint(tags, (batch, length))
    lengths = torch.randint(1, length + 1, (batch,))
    lengths[0] = length
    mask = torch.arange(length) < lengths.unsqueeze(1)
    leaves = [emissions, theirs.transitions, theirs.start_transitions, theirs.end_transitions]
    chain = Chain(*(values.detach() for values in leaves))

    def gradients(loss):
        return [loss.detach(), *torch.autograd.grad(loss, leaves)]

    def paths():
        return [path[:end] for path, end in zip(best_path(chain, lengths).tolist(), lengths.tolist(), strict=True)]

    return {
        "theirs": (lambda: gradients(-theirs(emissions, gold, mask=mask)), lambda: theirs.decode(emissions, mask=mask)),
        "ours": (lambda: gradients(negative_log_likelihood(Chain(*leaves), lengths, gold).sum()), paths),
    }


def test_losses_gradients_and_paths_are_those_of_pytorch_crf():
    calls = crf_calls(32, 30, 25)
    for ours, theirs in zip(calls["ours"][0](), calls["theirs"][0](), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)  # pytorch-crf sums in single precision
    assert calls["ours"][1]() == calls["theirs"][1]()


@pytest.mark.slow
def test_losses_and_paths_are_computed_twice_as_fast(two_threads):
    calls = crf_calls(32, 30, 25)
    for ours, theirs in zip(calls["ours"], calls["theirs"], strict=True):
        seconds = {}
        for _ in range(100):  # rounds alternate, so that other load affects both alike
            for name, call in (("ours", ours), ("theirs", theirs)):
                begin = time.perf_counter()
                call()
                seconds[name] = min(seconds.get(name, 9), time.perf_counter() - begin)
        assert seconds["theirs"] > 2 * seconds["ours"], seconds
