"""The relation layers match chen2019's sums over all pairs of words, without a value in memory for each."""

import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import reference_grn as ref
import torch
from conftest import REPOSITORY
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


def expected_states(layer, kind, states):
    """p_i of one sentence (T, C) by the equations."""
    weights = {f"encoder.relation.{name}": values.numpy() for name, values in layer.state_dict().items()}
    states = states.numpy()
    return torch.from_numpy(np.tanh(ref.fuse(states, ref.relations(weights, states), kind)))


def assert_equations_hold(layer, kind, states, tolerance):
    fused = layer(states.to(next(layer.parameters()).dtype), LENGTHS)
    wide = build(kind)
    wide.load_state_dict(layer.state_dict())
    for sentence, length in enumerate(LENGTHS.tolist()):
        if length:
            expected = expected_states(wide, kind, states[sentence, :length])
            torch.testing.assert_close(fused[sentence, :length].double(), expected, rtol=0, atol=tolerance)
    assert fused.isfinite().all()


def test_fused_states_match_the_equations(kind, slices):
    assert_equations_hold(build(kind), kind, random_states(len(LENGTHS), TIME, SIZE), 1e-12)


def test_float32_is_close_to_the_equations(kind, slices):
    assert_equations_hold(build(kind, dtype=torch.float32), kind, random_states(len(LENGTHS), TIME, SIZE), 2e-6)


@pytest.mark.parametrize("scale", [30, 300, 3e4])
def test_gates_are_exact_for_inputs_of_any_size(slices, scale):
    """Also where exponentials overflow: u and v far from 0, their sum close to 0."""
    own = scale * random_states(len(LENGTHS), TIME, SIZE, seed=2)
    other = random_states(len(LENGTHS), TIME, SIZE, seed=3) - own
    values = random_states(len(LENGTHS), TIME, SIZE, seed=4).masked_fill(relation.beyond(own, LENGTHS), 0)
    within = ~relation.beyond(own, LENGTHS)
    gates = torch.sigmoid(own.unsqueeze(2) + other.unsqueeze(1))
    expected = (gates * values.unsqueeze(1)).sum(2)
    sums = gated_sum(own, other, values, LENGTHS)
    torch.testing.assert_close(sums * within, expected * within, rtol=0, atol=1e-10)
    inputs = [part.clone().requires_grad_() for part in (own, other, values)]
    gradient = random_states(*own.shape, seed=5).masked_fill(relation.beyond(own, LENGTHS), 0)
    gated_sum(*inputs, LENGTHS).backward(gradient)
    slopes = gates * (1 - gates)
    pairs = gradient.unsqueeze(2) * values.unsqueeze(1) * slopes
    for part, wanted in zip(inputs, (pairs.sum(2), pairs.sum(1), (gradient.unsqueeze(2) * gates).sum(1)), strict=True):
        torch.testing.assert_close(part.grad * within, wanted * within, rtol=0, atol=1e-10)


@pytest.mark.parametrize("far", [7.0, 700.0])
def test_gradients_of_gates_match_finite_differences(slices, far):
    """Gates come from products of exponentials or, where those overflow, from exponentials of sums."""
    within = ~relation.beyond(torch.empty(len(LENGTHS), TIME), LENGTHS)

    def sums(own, other, values):
        return gated_sum(own + far, other - far, values.masked_fill(~within, 0), LENGTHS) * within

    inputs = [random_states(len(LENGTHS), TIME, 2, seed=seed).requires_grad_() for seed in range(3)]
    assert torch.autograd.gradcheck(sums, inputs)


def test_gradients_of_the_layer_match_finite_differences(kind):
    """Those of W, b and x."""
    layer = build(kind, size=2)
    states = random_states(3, 4, 2).requires_grad_()
    lengths = torch.tensor([4, 0, 2])
    within = ~relation.beyond(states, lengths)

    def fused(x, *_):
        return layer(x, lengths) * within

    assert torch.autograd.gradcheck(fused, (states, *layer.parameters()))


def test_padding_is_ignored(kind, slices):
    layer = build(kind, dtype=torch.float32)
    states = random_states(len(LENGTHS), TIME, SIZE, dtype=torch.float32)
    fused = layer(states, LENGTHS)
    other = torch.where(relation.beyond(states, LENGTHS), 50 * random_states(*states.shape, seed=9).float(), states)
    within = ~relation.beyond(states, LENGTHS)
    torch.testing.assert_close(layer(other, LENGTHS) * within, fused * within, rtol=0, atol=1e-6)
    for sentence, length in enumerate(LENGTHS.tolist()):
        if length:
            alone = layer(states[sentence : sentence + 1, :length], LENGTHS[sentence : sentence + 1])
            torch.testing.assert_close(alone[0], fused[sentence, :length], rtol=0, atol=1e-6)


def test_no_gradient_reaches_padding(kind, slices):
    layer = build(kind)
    states = random_states(len(LENGTHS), TIME, SIZE).requires_grad_()
    (layer(states, LENGTHS) * ~relation.beyond(states, LENGTHS)).sum().backward()
    assert not states.grad[relation.beyond(states, LENGTHS).expand_as(states)].any()
    assert states.grad[0, 0].any()


def test_inference_mode_gives_the_same_states(kind, slices):
    layer = build(kind)
    states = random_states(len(LENGTHS), TIME, SIZE)
    with torch.inference_mode():
        alone = layer(states, LENGTHS)
    torch.testing.assert_close(alone, layer(states, LENGTHS).detach(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch", [0, 3])
def test_empty_batches_and_sentences_are_supported(kind, batch):
    layer = build(kind)
    states = random_states(batch, 2, SIZE).requires_grad_()
    fused = layer(states, torch.zeros(batch, dtype=torch.long))
    assert fused.shape == states.shape
    fused.sum().backward()
    assert fused.isfinite().all()
    assert states.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_close_to_full_precision(kind, dtype):
    layer = build(kind, dtype=dtype)
    states = random_states(len(LENGTHS), TIME, SIZE, dtype=dtype)
    fused = layer(states, LENGTHS)
    assert fused.dtype == dtype
    expected = layer.double()(states.double(), LENGTHS)
    within = ~relation.beyond(states, LENGTHS)
    torch.testing.assert_close(fused.double() * within, expected * within, rtol=0, atol=0.1)


def test_norms_match_the_equations(kind):
    layer = build(kind)
    states = random_states(len(LENGTHS), TIME, SIZE)
    norms = layer.norms(states, LENGTHS)
    weights = {f"encoder.relation.{name}": values.numpy() for name, values in layer.state_dict().items()}
    for sentence, length in enumerate(LENGTHS.tolist()):
        if length:
            expected = (ref.relations(weights, states[sentence, :length].numpy()) ** 2).sum(2) ** 0.5
            torch.testing.assert_close(norms[sentence, :length, :length], torch.from_numpy(expected))
        assert not norms[sentence, length:].any()
        assert not norms[sentence, :, length:].any()


def test_small_norms_are_accurate_in_float32():
    layer = build("gated", dtype=torch.float32)
    with torch.no_grad():  # r_ij = 100 (x_i - x_j) + b
        layer.projection.weight.copy_(100 * torch.cat([torch.eye(SIZE), -torch.eye(SIZE)], 1))
        layer.projection.bias.fill_(1e-3)
    norms = layer.norms(random_states(1, 4, SIZE, dtype=torch.float32), torch.tensor([4]))
    torch.testing.assert_close(norms[0].diagonal(), torch.full((4,), 1e-3 * SIZE**0.5), rtol=0.05, atol=0)


# Memory and speed


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


#: chen2019's formula, evaluated directly: r_ij of all pairs and channels at once.
DIRECT_FORMULA = """
    def direct(u, v, x, lengths):
        within = (torch.arange(x.shape[1]) < lengths.unsqueeze(1)).unsqueeze(2)
        gates = torch.sigmoid(u.unsqueeze(2) + v.unsqueeze(1))
        return (gates * (x * within).unsqueeze(1)).sum(2)
"""

PEAK = (
    """
    import resource, sys, torch
    from hf_xorner.models.modeling_grn import gated_sum
    torch.set_num_threads(1)
"""
    + DIRECT_FORMULA
    + """
    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    u, v, x = (torch.randn(8, 512, 400, requires_grad=True) for _ in range(3))
    for part in (u, v, x):
        part.grad = torch.zeros_like(part)
    lengths = torch.full((8,), 512)
    gradient = torch.ones_like(u)
    gated_sum(u[:, :2], v[:, :2], x[:, :2], lengths.clamp(max=2)).sum().backward()
    before = peak()
    {"direct": direct, "slices": gated_sum}[sys.argv[1]](u, v, x, lengths).backward(gradient)
    print(peak() - before)
"""
)


def peak_memory(formula):
    command = [sys.executable, "-c", textwrap.dedent(PEAK), formula]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


@pytest.mark.slow
def test_peak_memory_is_at_most_a_tenth_of_the_direct_formulas():
    """At B = 8, T = 512, C = 400, forward and backward; the direct formula takes about 10 GB for it."""
    slices, direct = peak_memory("slices"), peak_memory("direct")
    assert slices <= direct / 10, f"{slices / 1024:.0f} MB; direct formula: {direct / 1024:.0f} MB"


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "length"), [(10, 15), (10, 30), (32, 15), (32, 30), (32, 50)])
def test_sentences_of_common_lengths_are_at_least_as_fast_as_by_the_direct_formula(batch, length):
    names = {"torch": torch}
    exec(textwrap.dedent(DIRECT_FORMULA), names)
    formulas = {"slices": gated_sum, "direct": names["direct"]}
    inputs = [random_states(batch, length, 400, seed=n, dtype=torch.float32).requires_grad_() for n in range(3)]
    lengths = torch.full((batch,), length)
    seconds = dict.fromkeys(formulas, float("inf"))
    for _ in range(5):
        for name, formula in formulas.items():
            begin = time.perf_counter()
            formula(*inputs, lengths).sum().backward()
            seconds[name] = min(seconds[name], time.perf_counter() - begin)
    assert seconds["slices"] <= seconds["direct"], seconds
