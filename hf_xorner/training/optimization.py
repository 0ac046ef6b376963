"""Optimization as in the papers: TensorFlow's Nadam, learning rate decay by epoch; averaged weights, calibration."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import Trainer, TrainerCallback


def decay_by_epoch(optimizer: Optimizer, decay: float, steps_per_epoch: int) -> LambdaLR:
    """Return the schedule η = η0 / (1 + ρ·t) after t epochs, which `transformers.get_scheduler` does not have.

    Used by ma2016 (ρ = 0.05), chen2019 (0.02) and the program of lample2016 for its Stack-LSTM (0.08).

    Args:
        optimizer: The optimizer; each parameter group has its own η0.
        decay: ρ.
        steps_per_epoch: Optimizer steps in an epoch.
    """
    return LambdaLR(optimizer, lambda step: 1 / (1 + decay * (step // steps_per_epoch)))


class NoDenormals(TrainerCallback):
    """Sets values up to 1e-30 of an optimizer's state on a CPU to 0, every 100 steps.

    In steps without a word, the momentum of its vector shrinks until it is denormal, below 1e-38, and rounding keeps it
    from reaching 0. A CPU takes up to 20 times as long for denormal numbers.
    """

    def on_step_end(self, args: Any, state: Any, control: Any, optimizer: Any = None, **kwargs: Any) -> None:
        """Set small values to 0."""
        if state.global_step % 100 == 0:
            for value in [value for values in optimizer.state.values() for value in values.values()]:
                if isinstance(value, Tensor) and value.is_cpu and value.is_floating_point():
                    value.copy_(nn.functional.hardshrink(value, 1e-30))


class EpochAverage(TrainerCallback):
    """Keeps the trained weights after each of the last epochs; a resumed run has none from before it was interrupted.

    `torch.optim.swa_utils` averages all epochs after a given one, which is not known in advance.

    Args:
        epochs: The number of epochs to keep.
    """

    def __init__(self, epochs: int) -> None:
        self.weights: deque[dict[str, Tensor]] = deque(maxlen=epochs)

    def on_epoch_end(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        """Keep the weights of an epoch."""
        assert model is not None
        self.weights.append(trained_weights(model))

    def mean(self) -> dict[str, Tensor]:
        """Return the average of the weights."""
        return {name: torch.stack([weights[name] for weights in self.weights]).mean(0) for name in self.weights[0]}


def trained_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of the weights that are trained."""
    return {name: weight.detach().clone() for name, weight in model.named_parameters() if weight.requires_grad}


def keep_the_better(trainer: Trainer, average: EpochAverage) -> None:
    """Replace the weights of a trained model by the average of its last epochs if its validation score is higher.

    Args:
        trainer: The trainer after training, with the weights of the best epoch.
        average: The callback that kept the weights.
    """
    model = trainer.accelerator.unwrap_model(trainer.model)
    metric = f"eval_{trainer.args.metric_for_best_model.removeprefix('eval_')}"
    sign = 1 if trainer.args.greater_is_better else -1
    best, score = trained_weights(model), trainer.evaluate()[metric]
    model.load_state_dict(average.mean(), strict=False)
    if sign * trainer.evaluate()[metric] <= sign * score:
        model.load_state_dict(best, strict=False)


#: The temperatures that `fit_temperature` tries.
TEMPERATURES = [2 ** (step / 4) for step in range(-8, 13)]
#: The prior of ln T is normal with mean 0 and this precision: T = 2 costs 15 nats, as much as a handful of errors.
_PRECISION = 64.0


@torch.no_grad()
def fit_temperature(trainer: Trainer) -> None:
    """Set the temperature in a model's config by the validation labels (Guo et al., 2017) and a prior that keeps 1.

    Few errors say little: without any, the most likely temperature is 0. The result is the minimum of a parabola in
    log T through the best of `TEMPERATURES` and its two neighbours.

    Args:
        trainer: The trainer after training.
    """
    model = trainer.accelerator.unwrap_model(trainer.model).eval()
    sums = [0.0] * len(TEMPERATURES)

    def add_losses(decoder: Any, inputs: tuple[Tensor, ...], options: dict[str, Any], _: Any) -> None:
        if "gold" in options:  # not for decoding
            scores, lengths, states = inputs
            for number, model.config.score_temperature in enumerate(TEMPERATURES):
                losses = decoder.negative_log_likelihood(scores, options["gold"], lengths, states)
                sums[number] += losses.sum().item()

    with model.decoder.register_forward_hook(add_losses, with_kwargs=True):
        for batch in trainer.get_eval_dataloader():
            model(**trainer._prepare_inputs(batch), output_logits=False)
    model.config.score_temperature = 1.0
    losses = trainer.accelerator.reduce(torch.tensor(sums, device=trainer.accelerator.device)).cpu()
    if not losses.min() < losses.max():  # without labels, or after training that diverged
        return
    losses = losses + _PRECISION / 2 * torch.tensor(TEMPERATURES).log().square()
    best, step = int(losses.argmin()), 0.0
    if 0 < best < len(TEMPERATURES) - 1:
        before, lowest, after = losses[best - 1 : best + 2].tolist()
        step = (before - after) / (before - 2 * lowest + after) / 2
    model.config.score_temperature = round(TEMPERATURES[best] * 2 ** (step / 4), 3)


class Nadam(Optimizer):
    """Nadam as in `tf.contrib.opt.NadamOptimizer`, which li2020 used.

    In step t, with the gradient g::

        m = β1·m + (1 − β1)·g                v = β2·v + (1 − β2)·g²
        weight −= lr · √(1 − β2^t) / (1 − β1^t) · (β1·m + (1 − β1)·g) / (√v + ε)

    `torch.optim.NAdam` differs: β1 follows a schedule, and the bias of m and g is corrected separately. Here, ε is
    added to an uncorrected √v, so in the first steps it has more weight than in PyTorch's Adam.

    Gradients are dense: the embedding of a word that is not in the batch still moves by its momentum. TensorFlow's
    sparse gradients decayed m and v of every embedding but only moved those of the batch. t counts the steps of each
    weight since its first gradient; in TensorFlow, the steps of the optimizer.

    Args:
        params: Weights, or parameter groups.
        lr: Learning rate.
        betas: Decay of the means of the gradient (β1) and of its square (β2).
        eps: ε.
        weight_decay: Decoupled weight decay as in AdamW, which TensorFlow's Nadam does not have.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the weights that have a gradient; return the loss of the closure, which computes the gradients."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights:
                self._update(weights, [weight.grad for weight in weights], group)
        return loss

    def _update(self, weights: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> None:
        """Update the weights of a group, all of them in each operation."""
        states = [self._state_of(weight) for weight in weights]
        means = [state["mean"] for state in states]
        squares = [state["square"] for state in states]
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        rates = []
        for state in states:
            state["step"] += 1
            rates.append(-lr * (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"]))
        if group["weight_decay"]:
            torch._foreach_mul_(weights, 1 - lr * group["weight_decay"])
        torch._foreach_lerp_(means, gradients, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)
        roots = torch._foreach_sqrt(squares)
        torch._foreach_add_(roots, group["eps"])
        torch._foreach_addcdiv_(weights, torch._foreach_lerp(means, gradients, 1 - beta1), roots, rates)

    def _state_of(self, weight: Tensor) -> dict[str, Any]:
        """Return the state of a weight, which is created with its first gradient."""
        state = self.state[weight]
        if not state:
            state |= {"step": 0, "mean": torch.zeros_like(weight), "square": torch.zeros_like(weight)}
        return state
