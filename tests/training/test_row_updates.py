"""Updates of the rows that a batch reads, against dense updates of the whole table."""

import copy

import pytest
import torch
from runs import make_trainer
from torch import nn

from hf_xorner.training import row_updates
from hf_xorner.training.optimization import Nadam
from hf_xorner.training.row_updates import RowUpdates

ROWS, SIZE = 3000, 6
OPTIMIZERS = {
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=2e-3, weight_decay=0),
    "fused adamw": lambda weights: torch.optim.AdamW(weights, lr=2e-3, weight_decay=0, fused=True),
    "adamw with weight decay": lambda weights: torch.optim.AdamW(weights, lr=2e-3, weight_decay=0.1),
    "adamw without momentum": lambda weights: torch.optim.AdamW(weights, lr=2e-3, betas=(0.0, 0.99), weight_decay=0.1),
    "nadam": lambda weights: Nadam(weights, lr=2e-3),
    "nadam with weight decay": lambda weights: Nadam(weights, lr=2e-3, weight_decay=0.1),
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.05),
    "sgd with momentum": lambda weights: torch.optim.SGD(weights, lr=0.05, momentum=0.9),
}


def build(make, dtype=torch.float64):
    """An embedding and its optimizer, the same ones every time."""
    torch.manual_seed(0)
    embedding = nn.Embedding(ROWS, SIZE, padding_idx=0, dtype=dtype)
    return embedding, make(embedding.parameters())


def backward(embedding, number):
    """Gradients of sizes from 1e-7 to 1 for 40 words, some of them frequent and most of them rare."""
    random = torch.Generator().manual_seed(number)
    ids = (torch.rand(4, 10, generator=random) ** 3 * ROWS).long()
    sizes = 10 ** (-7 * torch.rand(4, 10, 1, generator=random))
    target = torch.randn(4, 10, SIZE, generator=random).to(embedding.weight)
    ((embedding(ids) - target) ** 2 * sizes).sum().backward()


def train(embedding, optimizer, steps, first=0):
    """Take steps; every fifth has the gradients of two batches."""
    for number in range(first, first + steps):
        backward(embedding, number)
        if number % 5 == 0:
            backward(embedding, -1 - number)
        optimizer.param_groups[0]["lr"] *= 0.999
        optimizer.step()
        optimizer.zero_grad()


def state_of(optimizer):
    (state,) = optimizer.state_dict()["state"].values() or [{}]
    return {name: torch.as_tensor(value) for name, value in state.items() if value is not None}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_the_table_is_that_of_dense_updates_at_every_look(make):
    dense, rows = build(make), build(make)
    RowUpdates(*rows)
    for first in range(0, 600, 50):
        train(*dense, 50, first)
        train(*rows, 50, first)
        torch.testing.assert_close(rows[0].state_dict()["weight"], dense[0].weight.detach(), atol=3e-6, rtol=0)
    found, expected = state_of(rows[1]), state_of(dense[1])
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_batch_reads_the_vectors_of_dense_updates(make):
    dense, rows = build(make), build(make)
    RowUpdates(*rows)
    train(*dense, 300)
    train(*rows, 300)
    for number in range(5):
        ids = torch.randint(ROWS, (2, 50), generator=torch.Generator().manual_seed(number))
        torch.testing.assert_close(rows[0](ids), dense[0](ids), atol=3e-6, rtol=0)


def test_rows_that_no_batch_reads_are_not_touched():
    """Only then is there anything gained."""
    embedding, optimizer = build(OPTIMIZERS["adamw"])
    RowUpdates(embedding, optimizer)
    train(embedding, optimizer, 150)
    before = embedding.weight.detach().clone()
    backward(embedding, 1000)
    optimizer.step()
    changed = (embedding.weight.detach() != before).any(1).sum().item()
    assert 0 < changed <= 40


def test_clipping_scales_the_gradient():
    dense, rows = build(OPTIMIZERS["sgd"]), build(OPTIMIZERS["sgd"])
    RowUpdates(*rows)
    for embedding, optimizer in (dense, rows):
        for number in range(3):
            backward(embedding, number)
            assert nn.utils.clip_grad_norm_(embedding.parameters(), 0.1) > 0.1
            optimizer.step()
            optimizer.zero_grad()
    torch.testing.assert_close(rows[0].state_dict()["weight"], dense[0].weight.detach())


def test_the_gradient_of_a_batch_without_a_step_is_dropped():
    dense, rows = build(OPTIMIZERS["sgd"]), build(OPTIMIZERS["sgd"])
    RowUpdates(*rows)
    for embedding, optimizer in (dense, rows):
        backward(embedding, 1)
        optimizer.zero_grad()
        train(embedding, optimizer, 2)
    torch.testing.assert_close(rows[0].state_dict()["weight"], dense[0].weight.detach())


def test_a_replaced_gradient_updates_the_whole_table():
    dense, rows = build(OPTIMIZERS["sgd with momentum"]), build(OPTIMIZERS["sgd with momentum"])
    RowUpdates(*rows)
    for embedding, optimizer in (dense, rows):
        train(embedding, optimizer, 50)
        backward(embedding, 50)
        embedding.weight.grad = embedding.weight.grad.clone()
        optimizer.step()
        optimizer.zero_grad()
        train(embedding, optimizer, 50, 51)
    torch.testing.assert_close(rows[0].state_dict()["weight"], dense[0].weight.detach(), atol=3e-6, rtol=0)


def test_evaluation_reads_current_vectors():
    dense, rows = build(OPTIMIZERS["adamw"]), build(OPTIMIZERS["adamw"])
    RowUpdates(*rows)
    for embedding, optimizer in (dense, rows):
        train(embedding, optimizer, 200)
        embedding.eval()
    everything = torch.arange(ROWS)
    torch.testing.assert_close(rows[0](everything), dense[0](everything), atol=3e-6, rtol=0)


def test_loaded_weights_are_not_moved_by_steps_before():
    embedding, optimizer = build(OPTIMIZERS["adamw"])
    saved = copy.deepcopy(embedding.state_dict())
    RowUpdates(embedding, optimizer)
    train(embedding, optimizer, 200)
    embedding.load_state_dict(saved)
    assert torch.equal(embedding.eval()(torch.arange(ROWS)), saved["weight"])


def test_the_optimizers_state_continues_a_dense_run_and_the_reverse():
    """Checkpoints of either kind serve both."""
    for first, second in ((False, True), (True, False)):
        dense, one = build(OPTIMIZERS["adamw"]), build(OPTIMIZERS["adamw"])
        train(*dense, 300)
        if first:
            RowUpdates(*one)
        train(*one, 150)
        two = build(OPTIMIZERS["adamw"])
        if second:
            RowUpdates(*two)
        two[0].load_state_dict(copy.deepcopy(one[0].state_dict()))
        two[1].load_state_dict(copy.deepcopy(one[1].state_dict()))
        train(*two, 150, 150)
        torch.testing.assert_close(two[0].state_dict()["weight"], dense[0].weight.detach(), atol=3e-6, rtol=0)


def test_closing_leaves_embedding_and_optimizer_dense():
    dense, rows = build(OPTIMIZERS["nadam"]), build(OPTIMIZERS["nadam"])
    updates = RowUpdates(*rows)
    train(*rows, 200)
    updates.close()
    train(*dense, 200)
    torch.testing.assert_close(rows[0].weight, dense[0].weight, atol=3e-6, rtol=0)
    backward(rows[0], 3)
    assert rows[0].weight.grad.layout is torch.strided
    rows[1].step()
    assert not rows[0]._forward_pre_hooks


@pytest.mark.parametrize(
    "make",
    [
        lambda weights: torch.optim.AdamW(weights, amsgrad=True),
        lambda weights: torch.optim.SGD(weights, weight_decay=0.1),
        lambda weights: torch.optim.SGD(weights, momentum=0.9, nesterov=True),
        lambda weights: torch.optim.Adagrad(weights),
    ],
)
def test_other_optimizers_are_left_alone(make):
    assert not RowUpdates.supports(*build(make))


def test_small_and_frozen_tables_are_left_alone():
    embedding, optimizer = build(OPTIMIZERS["adamw"])
    assert RowUpdates.supports(embedding, optimizer)
    assert not RowUpdates.supports(nn.Embedding(ROWS, SIZE), optimizer)
    small = nn.Embedding(10, SIZE)
    assert not RowUpdates.supports(small, torch.optim.AdamW(small.parameters()))


# --- In a Trainer ----------------------------------------------------------------------------------------------------


@pytest.fixture
def for_any_table(monkeypatch):
    monkeypatch.setattr(row_updates, "_LARGE", 1)
    monkeypatch.setattr(row_updates, "_DENSE_STEPS", 2)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimizer": "nadam", "weight_decay": 0.1, "lr_scheduler_type": "linear"},
        {"optimizer": "sgd", "momentum": 0.9, "max_grad_norm": 0.5, "epoch_decay": 0.05},
        {"gradient_accumulation_steps": 2, "max_grad_norm": 1.0},
    ],
)
def test_a_run_ends_with_the_weights_of_a_dense_run(tmp_path, tokenizer, for_any_table, monkeypatch, options):
    options = {"size": 8, "dropout": 0, "num_train_epochs": 6, **options}
    with monkeypatch.context() as patch:
        patch.setattr(RowUpdates, "supports", staticmethod(lambda *_: False))
        dense = make_trainer(tmp_path / "dense", tokenizer, **options)
        dense.train()
    used = []
    monkeypatch.setattr(RowUpdates, "_update", lambda *a, update=RowUpdates._update: (used.append(1), update(*a)))
    rows = make_trainer(tmp_path / "rows", tokenizer, **options)
    rows.train()
    assert used
    for (name, found), expected in zip(rows.model.named_parameters(), dense.model.parameters(), strict=True):
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4, msg=name)


def test_a_resumed_run_ends_with_the_same_bits(tmp_path, tokenizer, for_any_table):
    whole = make_trainer(tmp_path / "whole", tokenizer, size=8, num_train_epochs=4)
    whole.train()
    make_trainer(tmp_path / "parts", tokenizer, size=8, num_train_epochs=2).train()
    resumed = make_trainer(tmp_path / "parts", tokenizer, size=8, num_train_epochs=4)
    resumed.train(resume_from_checkpoint=True)
    for (name, found), expected in zip(resumed.model.named_parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(found, expected), name


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("largest", [1e-3, 1e3])
def test_gradients_are_clipped_as_dense_ones(batches, largest):
    found, expected = (build(OPTIMIZERS["sgd"])[0] for _ in range(2))
    updates = RowUpdates(found, OPTIMIZERS["sgd"](found.parameters()))
    norms = []
    for embedding, clip in ((found, updates.clip), (expected, nn.utils.clip_grad_norm_)):
        other = nn.Parameter(torch.ones(3, dtype=torch.float64))
        for number in range(batches):
            backward(embedding, number)
        other.sum().backward()
        norms.append((clip([other, embedding.weight], largest), other.grad))
    torch.testing.assert_close(norms[0], norms[1])
    torch.testing.assert_close(found.weight.grad, expected.weight.grad)
    assert updates.embedding.weight.grad is updates.gradient
