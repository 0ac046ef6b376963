"""The CRF gives the same results as pytorch-crf in a fraction of the time."""

import sys
import time

import pytest
import torch

from hf_xorner.models.crf import Chain, best_path, negative_log_likelihood, posterior

ROUNDS, SECONDS = 15, 10  # minimum measuring time per size
LEAST = {"loss and backward": 2.5, "Viterbi": 2.0}


def best_seconds(calls):
    """The best time of each call; rounds alternate, so that other load affects all calls alike."""
    best = dict.fromkeys(calls, float("inf"))
    start, number = time.perf_counter(), 0
    while number < ROUNDS or time.perf_counter() < start + SECONDS:
        number += 1
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def crf_calls(batch, length, tags, ragged):
    """Calls of both CRFs with the same weights and sentences; the loss calls return all gradients."""
    torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed: pip install pytorch-crf==0.7.2")
    torch.manual_seed(0)
    theirs = torchcrf.CRF(tags, batch_first=True)
    emissions = torch.randn(batch, length, tags, requires_grad=True)
    gold = torch.randint(tags, (batch, length))
    lengths = torch.randint(1, length + 1, (batch,)) if ragged else torch.full((batch,), length)
    lengths[0] = length
    mask = torch.arange(length) < lengths.unsqueeze(1)
    leaves = [emissions, theirs.transitions, theirs.start_transitions, theirs.end_transitions]
    chain = Chain(*(values.detach() for values in leaves))

    def gradients(loss):
        return [loss.detach(), *torch.autograd.grad(loss, leaves)]

    return {
        ("loss and backward", "theirs"): lambda: gradients(-theirs(emissions, gold, mask=mask)),
        ("loss and backward", "ours"): lambda: gradients(negative_log_likelihood(Chain(*leaves), lengths, gold).sum()),
        ("Viterbi", "theirs"): lambda: theirs.decode(chain.emissions, mask=mask),
        ("Viterbi", "ours"): lambda: [
            path[:end] for path, end in zip(best_path(chain, lengths).tolist(), lengths.tolist(), strict=True)
        ],
        ("marginals", "ours"): lambda: posterior(chain, lengths, gold),
    }


@pytest.mark.slow
@pytest.mark.parametrize("ragged", [False, True], ids=["one length", "many lengths"])
@pytest.mark.parametrize(("batch", "length", "tags"), [(32, 30, 25), (256, 50, 25)])
def test_is_several_times_faster_than_pytorch_crf(two_threads, capsys, batch, length, tags, ragged):
    calls = crf_calls(batch, length, tags, ragged)
    for found, expected in zip(
        calls["loss and backward", "ours"](), calls["loss and backward", "theirs"](), strict=True
    ):
        # pytorch-crf sums a batch in single precision.
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
    assert calls["Viterbi", "ours"]() == calls["Viterbi", "theirs"]()
    seconds = best_seconds(calls)
    ratios = {name: seconds[name, "theirs"] / seconds[name, "ours"] for name in LEAST}
    with capsys.disabled():
        sys.stdout.write(f"\n(B, T, K) = ({batch}, {length}, {tags}), {'many lengths' if ragged else 'one length'}:\n")
        for (name, whose), took in seconds.items():
            sys.stdout.write(f"  {name}, {whose}: {took * 1e3:.2f} ms\n")
        for name, ratio in ratios.items():
            sys.stdout.write(f"  {name}: {ratio:.1f} times as fast\n")
    for name, ratio in ratios.items():
        assert ratio >= LEAST[name], f"{name}: {ratio:.2f} times as fast as pytorch-crf, not {LEAST[name]}"
