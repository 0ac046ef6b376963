"""The average of the weights of the last epochs: between them, noise only moves the weights about."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainerCallback


class EpochAverage(TrainerCallback):
    """Keeps what training changes of a model, as it is at the ends of the last epochs.

    Args:
        epochs: How many epochs are kept. A run that was resumed knows only those since then.
    """

    def __init__(self, epochs: int) -> None:
        self.kept: deque[dict[str, Tensor]] = deque(maxlen=epochs)

    def on_epoch_end(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        """Keep the weights of an epoch."""
        assert model is not None
        self.kept.append(weights_of(model))

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
