"""The Trainer, with what a tagger needs besides."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..evaluation import compute_metrics_for
from ..models.tags import IGNORED
from .collator import TaggingCollator
from .resuming import ResumableTrainer


class TaggerTrainer(ResumableTrainer):
    """Trains a tagger on data sets of words and labels, scored by strict span F1 in percent.

    Everything is the stock Trainer's, but that a run may be killed at any moment and resumed; where they are not given,
    the collator encodes `tokens` and `ner_tags`, and the scores are those of the model's labels.
    """

    def __init__(self, model: Any = None, args: Any = None, **options: Any) -> None:
        if options.get("data_collator") is None and options.get("processing_class") is not None:
            options["data_collator"] = TaggingCollator(options["processing_class"])
        if options.get("compute_metrics") is None and model is not None:
            options["compute_metrics"] = compute_metrics_for(model.config.id2label)
        super().__init__(model, args, **options)
        # The count below is always the one that the loss is to be divided by.
        self.model_accepts_loss_kwargs = True

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Create the optimiser, with a learning rate of its own for an encoder that is trained along."""
        given, rate = self.optimizer is not None, getattr(self.args, "context_learning_rate", None)
        optimizer = super().create_optimizer(model)
        context = self.accelerator.unwrap_model(self.model).features.context
        if given or rate is None or context is None:
            return optimizer
        slow = set(context.encoder.parameters())
        for group in list(optimizer.param_groups):
            apart = [parameter for parameter in group["params"] if parameter in slow]
            if apart:
                group["params"] = [parameter for parameter in group["params"] if parameter not in slow]
                options = {name: value for name, value in group.items() if name not in ("params", "initial_lr")}
                optimizer.add_param_group({**options, "params": apart, "lr": rate})
        return optimizer

    def _get_num_items_in_batch(self, batch_samples: list[dict[str, Tensor]], device: torch.device) -> Any:
        """Count labelled sentences instead of words, where the loss is averaged over sentences."""
        if self.accelerator.unwrap_model(self.model).config.loss_reduction == "sentence":
            batch_samples = [
                {"labels": torch.where(batch["labels"].ne(IGNORED).any(1), 0, IGNORED)} for batch in batch_samples
            ]
        return super()._get_num_items_in_batch(batch_samples, device)
