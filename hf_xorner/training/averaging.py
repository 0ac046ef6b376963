"""The average of the weights of the last epochs: between them, noise only moves the weights about."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import Trainer, TrainerCallback

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
