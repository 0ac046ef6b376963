"""Training steps as CUDA graphs: forward, loss and backward; clipping and the optimizer follow as usual."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainingArguments

from ..cuda_graphs import Capture, CudaCapture, Replayed

_log = logging.getLogger(__name__)


class GraphedSteps:
    """Replays the steps that compute gradients, for batches whose shapes are frequent.

    A graph adds to gradients at fixed addresses, while the Trainer drops gradients after each step: those of the first
    steps are kept, and set to zero for each step.

    Args:
        step: Takes the inputs of the model and the `num_items_in_batch`; adds to the gradients, and returns the loss.
        model: The model.
        capture: A `CudaCapture`.
    """

    def __init__(self, step: Callable[[dict[str, Any], Tensor], Tensor], model: nn.Module, capture: Capture) -> None:
        self.model = model
        self.gradients: dict[nn.Parameter, Tensor] = {}

        def loss(num_items: Tensor, **inputs: Any) -> tuple[Tensor]:
            return (step(inputs, num_items),)

        self.replayed = Replayed(loss, model, capture)

    def __call__(self, inputs: dict[str, Any], num_items: Tensor) -> Tensor:
        """Do a step, and return its loss."""
        dropped = [weight for weight in self.gradients if weight.grad is None]
        for weight in dropped:
            weight.grad = self.gradients[weight]
        if dropped:
            torch._foreach_zero_([self.gradients[weight] for weight in dropped])
        (loss,) = self.replayed(num_items=num_items, **inputs)
        for weight in self.model.parameters():
            if weight.grad is not None:
                self.gradients[weight] = weight.grad
        return loss


def capture_for(arguments: TrainingArguments, capture: Capture | None) -> Capture | None:
    """Return what captures the steps of a run: what is given, or on CUDA a `CudaCapture`; None for ordinary steps."""
    on_cuda = arguments.device.type == "cuda" and getattr(arguments, "cuda_graphs", False)
    if capture is None and not on_cuda:
        return None
    reasons = {
        "there are several devices": arguments.world_size > 1 or arguments.n_gpu > 1,
        "of torch_compile": arguments.torch_compile,
        "of label_smoothing_factor": arguments.label_smoothing_factor,
        "of neftune_noise_alpha": arguments.neftune_noise_alpha,
        "of torch_empty_cache_steps": arguments.torch_empty_cache_steps,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    if reason is None:
        return capture or CudaCapture(arguments.device)
    if arguments.process_index == 0:
        log_refusal(reason)
    return None


def log_refusal(reason: str) -> None:
    """Log why a run has no CUDA graphs."""
    _log.warning("Training uses no CUDA graphs, because %s.", reason)


def can_be_captured(model: nn.Module, inputs: dict[str, Any], num_items: Any) -> bool:
    """Return whether the steps of a model are computed without values that Python reads."""
    checks = getattr(model, "can_be_captured", None)  # not in the code of models saved before
    return checks is not None and checks(inputs) and isinstance(num_items, Tensor) and "labels" in inputs
