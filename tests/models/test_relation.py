"""The sums over all pairs of words (chen2019) are exact, without a value in memory for each pair."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hf_xorner.models import modeling_grn as relation
from hf_xorner.models.modeling_grn import RELATIONS, gated_sum

LENGTHS = torch.tensor([5, 0, 7, 1, 3])
TIME, SIZE = 8, 6
# Of 5 · 8 · 6 numbers: all pairs in one slice; slices of words and groups of one sentence or more; one word at a time.
SLICES = {"one": 1 << 17, "blocks": 130, "small blocks": 80, "single words": 10}


@pytest.fixture(params=SLICES)
def slices(request, monkeypatch):
    monkeypatch.setattr(relation, "CPU_SLICE", SLICES[request.param])


@pytest.fixture(params=RELATIONS)
def kind(request):
    return request.param


def build(kind, size=SIZE, dtype=torch.float64):
    torch.manual_seed(0)
    layer = RELATIONS[kind](size).to(dtype)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer


def random_states(*shape, seed=1, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("scale", [1, 30, 300, 3e4])
def test_gates_are_exact_for_inputs_of_any_size(slices, scale):
    """Also where exponentials overflow: u and v far from 0, their sum close to 0."""
    u = scale * random_states(len(LENGTHS), TIME, SIZE, seed=2)
    v = random_states(len(LENGTHS), TIME, SIZE, seed=3) - u
    values = random_states(len(LENGTHS), TIME, SIZE, seed=4).masked_fill(relation.beyond(u, LENGTHS), 0)
    within = ~relation.beyond(u, LENGTHS)
    gates = torch.sigmoid(u.unsqueeze(2) + v.unsqueeze(1))
    expected = (gates * values.unsqueeze(1)).sum(2)
    sums = gated_sum(u, v, values, LENGTHS)
    torch.testing.assert_close(sums * within, expected * within, rtol=0, atol=1e-10)
    inputs = [part.clone().requires_grad_() for part in (u, v, values)]
    gradient = random_states(*u.shape, seed=5).masked_fill(relation.beyond(u, LENGTHS), 0)
    gated_sum(*inputs, LENGTHS).backward(gradient)
    slopes = gates * (1 - gates)
    pairs = gradient.unsqueeze(2) * values.unsqueeze(1) * slopes
    for part, wanted in zip(inputs, (pairs.sum(2), pairs.sum(1), (gradient.unsqueeze(2) * gates).sum(1)), strict=True):
        torch.testing.assert_close(part.grad * within, wanted * within, rtol=0, atol=1e-10)


class LargestTensor(TorchDispatchMode):
    """Records the size of the largest tensor that any operation returns."""

    largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(value, torch.Tensor) and value.untyped_storage().nbytes():
                self.largest = max(self.largest, value.numel())
        return result


@pytest.mark.parametrize("batch", [1, 4])
def test_no_tensor_is_larger_than_states_or_a_slice(kind, monkeypatch, batch):
    monkeypatch.setattr(relation, "CPU_SLICE", 1000)
    time, size = 300, 5
    layer = build(kind, size)
    states = random_states(batch, time, size).requires_grad_()
    lengths = torch.tensor([time, 7, 200, 0][:batch])
    with LargestTensor() as mode:
        layer(states, lengths).sum().backward()
    most = batch * time * time if kind == "scalar_gate" else max(2 * batch * time * size, 2 * relation.CPU_SLICE)
    assert batch * time * size <= mode.largest <= most
