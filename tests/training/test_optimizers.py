"""Optimisers and schedules, step by step against their definitions, alone and in a run."""

import numpy as np
import pytest
import torch
from runs import labelled, make_trainer
from transformers import TrainerCallback

from hf_xorner.training.optimization import Nadam, NoDenormals
from hf_xorner.training.trainer import TaggerTrainer

SHAPES = [(3, 4), (5,), (), (2, 1, 3)]


def nadam_by_definition(weights, gradients, lr, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0):
    """TensorFlow's contrib NadamOptimizer on float64 arrays, one at a time; gradients: steps of arrays."""
    weights = [weight.copy() for weight in weights]
    m = [np.zeros_like(weight) for weight in weights]
    v = [np.zeros_like(weight) for weight in weights]
    for t, step in enumerate(gradients, 1):
        rate = lr[t - 1] * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        for i, g in enumerate(step):
            m[i] = beta1 * m[i] + (1 - beta1) * g
            v[i] = beta2 * v[i] + (1 - beta2) * g * g
            m_bar = (1 - beta1) * g + beta1 * m[i]
            weights[i] = weights[i] * (1 - lr[t - 1] * decay) - rate * m_bar / (np.sqrt(v[i]) + eps)
    return weights


def sgd_by_definition(weights, gradients, lr, momentum):
    weights = [weight.copy() for weight in weights]
    velocity = [np.zeros_like(weight) for weight in weights]
    for t, step in enumerate(gradients):
        for i, g in enumerate(step):
            velocity[i] = momentum * velocity[i] + g
            weights[i] = weights[i] - lr[t] * velocity[i]
    return weights


def random_weights_and_gradients(steps):
    """Weights, and gradients of very different sizes."""
    random = np.random.default_rng(0)
    weights = [random.normal(size=shape) for shape in SHAPES]
    return weights, [[random.normal(size=s) * 10.0 ** random.integers(-6, 3) for s in SHAPES] for _ in range(steps)]


def weights_after_steps(optimizer_class, weights, gradients, **options):
    """The weights after a PyTorch optimiser's steps."""
    parameters = [torch.nn.Parameter(torch.tensor(weight, dtype=torch.float64)) for weight in weights]
    optimizer = optimizer_class(parameters, **options)
    for step in gradients:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    return [parameter.detach().numpy() for parameter in parameters]


def same(actual, expected, tolerance=1e-12):
    for left, right in zip(actual, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=tolerance)


def test_nadam_matches_its_definition():
    weights, gradients = random_weights_and_gradients(30)
    for changes in ({}, {"lr": 0.1, "betas": (0.5, 0.6)}, {"eps": 0.1}, {"betas": (0.0, 0.0)}, {"weight_decay": 0.3}):
        options = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, **changes}
        rates = [options["lr"]] * 30
        expected = nadam_by_definition(
            weights, gradients, rates, *options["betas"], options["eps"], options["weight_decay"]
        )
        same(weights_after_steps(Nadam, weights, gradients, **changes), expected)


def test_parameter_groups_and_weights_without_gradient():
    first, second, idle = (torch.nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(3))
    optimizer = Nadam([{"params": [first, idle]}, {"params": [second], "lr": 0.5, "weight_decay": 0.1}], lr=0.1)
    gradient = np.array([1.0, -2.0])
    for _ in range(3):
        first.grad, second.grad = torch.tensor(gradient), torch.tensor(gradient)
        optimizer.step()
    same([first.detach().numpy()], nadam_by_definition([np.ones(2)], [[gradient]] * 3, [0.1] * 3))
    same([second.detach().numpy()], nadam_by_definition([np.ones(2)], [[gradient]] * 3, [0.5] * 3, decay=0.1))
    assert idle.eq(1).all() and idle not in optimizer.state
    # Its own steps count from its first gradient on.
    idle.grad, first.grad, second.grad = torch.tensor(gradient), None, None
    before = second.clone()
    optimizer.step()
    same([idle.detach().numpy()], nadam_by_definition([np.ones(2)], [[gradient]], [0.1]))
    assert torch.equal(second, before)


class Watch(TrainerCallback):
    """Notes the learning rates and gradients of every step, and the weights after it."""

    def __init__(self):
        self.rates, self.gradients, self.epochs = [], [], []

    def on_pre_optimizer_step(self, args, state, control, model=None, optimizer=None, **kwargs):
        self.rates.append([group["lr"] for group in optimizer.param_groups])
        self.epochs.append(state.epoch)
        named = ((n, p) for n, p in model.named_parameters() if p.requires_grad)
        self.gradients.append({n: None if p.grad is None else p.grad.double().numpy().copy() for n, p in named})


@pytest.fixture
def trainer_of(tmp_path, tokenizer):
    def build(folder="out", dev=False, **options):
        options = {"size": 10, "dropout": 0.0, "save_strategy": "no", "learning_rate": 0.1, **options}
        trainer, watch = make_trainer(tmp_path / folder, tokenizer, dev=dev, **options), Watch()
        trainer.add_callback(watch)
        return trainer, watch

    return build


NADAM = {"optimizer": "nadam", "adam_beta1": 0.8, "adam_beta2": 0.9, "adam_epsilon": 1e-3}
SGD = {"optimizer": "sgd", "momentum": 0.9, "learning_rate": 0.02}


@pytest.mark.parametrize("options", [NADAM, SGD], ids=["nadam", "sgd"])
def test_optimizers_of_the_trainer_match_their_definitions(trainer_of, options):
    trainer, watch = trainer_of(epoch_decay=0.05, **options)
    before = {name: p.detach().double().numpy().copy() for name, p in trainer.model.named_parameters()}
    trainer.train()
    names = [name for name, gradient in watch.gradients[0].items() if gradient is not None]
    rates = [options.get("learning_rate", 0.1) / (1 + 0.05 * (step // 5)) for step in range(15)]
    arrays = [before[name] for name in names], [[step[name] for name in names] for step in watch.gradients], rates
    expected = sgd_by_definition(*arrays, 0.9) if options is SGD else nadam_by_definition(*arrays, 0.8, 0.9, 1e-3)
    after = dict(trainer.model.named_parameters())
    same([after[name].detach().double().numpy() for name in names], expected, 2e-5)


class WordsOnce(TrainerCallback):
    """Gives word vectors a gradient in the first step alone, as a word has that occurs once."""

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        if state.global_step:
            model.features.words.weight.grad.zero_()


def test_momentum_does_not_become_denormal(trainer_of):
    momenta = []
    for remove in (False, True):
        trainer, _ = trainer_of(str(remove), optimizer="sgd", momentum=0.4, learning_rate=0.01, max_steps=100)
        trainer.add_callback(WordsOnce)
        if remove:
            trainer.remove_callback(NoDenormals)
        trainer.train()
        states = trainer.optimizer.state.values()
        momenta.append(torch.cat([state["momentum_buffer"].flatten() for state in states]))
    actual, denormal = momenta
    assert 0 < denormal[denormal != 0].abs().min() < torch.finfo(torch.float32).tiny
    assert torch.equal(actual, denormal.where(denormal.abs() > 1e-30, 0.0))


@pytest.mark.parametrize(
    ("options", "steps", "steps_per_epoch"),
    [({"num_train_epochs": 2.5}, 13, 5), ({"max_steps": 4, "gradient_accumulation_steps": 4}, 4, 2)],
    ids=str,
)
def test_the_learning_rate_decays_by_epoch(trainer_of, options, steps, steps_per_epoch):
    trainer, watch = trainer_of(epoch_decay=0.5, optimizer="sgd", **options)
    trainer.train()
    rates = [rate for rate, *_ in watch.rates]
    assert rates == pytest.approx([0.1 / (1 + 0.5 * (step // steps_per_epoch)) for step in range(steps)], rel=1e-12)
    # A second run starts from the initial state.
    watch.rates.clear()
    trainer.train()
    assert watch.rates[0][0] == pytest.approx(0.1)


def test_optimizers_and_schedules_of_the_user_are_kept(trainer_of, tokenizer):
    trainer, watch = trainer_of(epoch_decay=1.0, optimizer="nadam")
    optimizer = torch.optim.SGD(trainer.model.parameters(), lr=0.3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    with_own = TaggerTrainer(
        trainer.model,
        trainer.args,
        train_dataset=labelled(10),
        processing_class=tokenizer,
        optimizers=(optimizer, schedule),
        callbacks=[watch],
    )
    with_own.train()
    assert [rate for rate, *_ in watch.rates] == pytest.approx([0.3 / (1 + step) for step in range(15)])


def scored(trainer, scores):
    """The trainer, whose evaluations give these scores."""
    scores = iter(scores)
    trainer.compute_metrics = lambda prediction: {"f1": next(scores)}
    return trainer


STOPPING = {
    "dev": True,
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "save_total_limit": None,
    "load_best_model_at_end": True,
    "metric_for_best_model": "f1",
    "num_train_epochs": 9,
    "optimizer": "sgd",
}
SCORES = [10, 30, 20, 30, 31, 5, 6, 7, 99]


@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (3, 8)])
def test_early_stopping(trainer_of, patience, epochs):
    trainer, _ = trainer_of(early_stopping=patience, size=4, **STOPPING)
    scored(trainer, SCORES).train()
    assert trainer.state.epoch == epochs
    best = SCORES.index(max(SCORES[:epochs])) + 1
    assert trainer.state.best_model_checkpoint.endswith(f"checkpoint-{2 * best}")
