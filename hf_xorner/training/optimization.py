"""The optimiser of li2020: Adam with Nesterov's momentum, as TensorFlow 1 defined it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback


def decay_by_epoch(optimizer: Optimizer, decay: float, steps_per_epoch: int) -> LambdaLR:
    """A schedule η = η0 / (1 + decay · t), t being the number of finished epochs.

    So did ma2016 (decay 0.05), chen2019 (0.02) and the Stack-LSTM of lample2016's program (0.08).

    Args:
        optimizer: What is scheduled, each group of weights from a learning rate of its own.
        decay: ρ.
        steps_per_epoch: Steps of the optimiser in an epoch.
    """
    return LambdaLR(optimizer, lambda step: 1 / (1 + decay * (step // steps_per_epoch)))


class EarlyStopping(EarlyStoppingCallback):
    """The EarlyStoppingCallback of transformers, which a resumed run does not have count anew."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count the evaluations since the best one, where a checkpoint holds any."""
        super().on_train_begin(args, state, control, **kwargs)
        name = f"eval_{args.metric_for_best_model.removeprefix('eval_')}"
        scores = [entry[name] for entry in state.log_history if name in entry]
        if not args.greater_is_better:
            scores = [-score for score in scores]
        self.early_stopping_patience_counter = len(scores) - 1 - scores.index(max(scores)) if scores else 0


#: Where a checkpoint keeps the weights of the epochs before.
_KEPT = "last_epochs.safetensors"


class EpochAverage(TrainerCallback):
    """Keeps what training changes of a model, as it is at the ends of the last epochs.

    Args:
        epochs: How many epochs are kept. They go along in checkpoints, so a run that is resumed knows them all.
    """

    def __init__(self, epochs: int) -> None:
        self.kept: deque[dict[str, Tensor]] = deque(maxlen=epochs)

    def on_epoch_end(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        """Keep the weights of an epoch."""
        assert model is not None
        self.kept.append(weights_of(model))

    def begin(self, trainer: Trainer, checkpoint: Path | None) -> None:
        """Take up the weights that a checkpoint kept."""
        self.kept.clear()
        if checkpoint is None or not (path := checkpoint / _KEPT).is_file():
            return
        saved = {key: value.to(trainer.args.device) for key, value in load_file(path).items()}
        numbers = sorted({int(key.partition(".")[0]) for key in saved})
        self.kept.extend(
            {key.partition(".")[2]: saved[key] for key in saved if key.startswith(f"{n}.")} for n in numbers
        )

    def save_to(self, checkpoint: Path) -> None:
        """Keep the weights in a checkpoint, too."""
        kept = enumerate(self.kept)
        save_file(
            {f"{number}.{name}": value.contiguous() for number, weights in kept for name, value in weights.items()},
            checkpoint / _KEPT,
        )

    def mean(self) -> dict[str, Tensor]:
        """The average of the weights that are kept."""
        return {name: torch.stack([weights[name] for weights in self.kept]).mean(0) for name in self.kept[0]}


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights that training changes."""
    return {name: weight.detach().clone() for name, weight in model.named_parameters() if weight.requires_grad}


@torch.no_grad()
def place_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Put such a copy back."""
    parameters = dict(model.named_parameters())
    for name, weight in weights.items():
        parameters[name].copy_(weight)


def keep_the_better(trainer: Trainer, average: EpochAverage) -> None:
    """Give the trained model the average of its last epochs, if that scores higher on the validation data.

    Args:
        trainer: After training, its model being the best epoch's.
        average: The callback that was there in training.
    """
    model = trainer.accelerator.unwrap_model(trainer.model)
    metric = f"eval_{trainer.args.metric_for_best_model.removeprefix('eval_')}"
    sign = 1 if trainer.args.greater_is_better else -1
    best, score = weights_of(model), trainer.evaluate()[metric]
    place_weights(model, average.mean())
    if sign * trainer.evaluate()[metric] <= sign * score:
        place_weights(model, best)


class Nadam(Optimizer):
    """Nadam as `tf.contrib.opt.NadamOptimizer` had it.

    In step t, with the gradient g::

        m = β1·m + (1 − β1)·g                v = β2·v + (1 − β2)·g²
        weight −= lr · √(1 − β2^t) / (1 − β1^t) · (β1·m + (1 − β1)·g) / (√v + ε)

    `torch.optim.NAdam` is another: it lets β1 grow by a schedule, and corrects m and g apart. ε stands beside a √v that
    is not corrected, so in the first steps it weighs more than Adam's.

    Gradients are dense: a row of an embedding that no word of the batch has still moves by its momentum. TensorFlow,
    whose gradients of embeddings were sparse, decayed m and v of every row and moved those of the batch only. There t
    counted the steps of the optimiser; here each weight's own, from its first gradient on.

    Args:
        params: Weights, or groups of them with options of their own.
        lr: Learning rate.
        betas: Decay of the means of the gradient (β1) and of its square (β2).
        eps: ε.
        weight_decay: Shrinks the weights by lr · weight_decay in each step, apart from the gradient, as AdamW does.
            TensorFlow's has no such thing.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        if lr < 0 or eps < 0 or weight_decay < 0:
            raise ValueError(f"lr={lr}, eps={eps} and weight_decay={weight_decay} must not be negative.")
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas={betas} must both lie between 0 and 1.")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the weights that have a gradient; a closure computes these anew, and its loss is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights:
                self._move(weights, [weight.grad for weight in weights], group)
        return loss

    def _move(self, weights: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> None:
        """Move weights that share their options, all of them in each operation."""
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
        """What is kept of a weight, made when it first has a gradient."""
        if weight.grad is not None and (weight.grad.is_sparse or weight.is_complex()):
            raise ValueError("Nadam moves real weights by dense gradients; create embeddings with sparse=False.")
        state = self.state[weight]
        if not state:
            state["step"] = 0
            state["mean"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
            state["square"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
        return state
