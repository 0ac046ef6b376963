"""The optimiser of li2020: Adam with Nesterov's momentum, as TensorFlow 1 defined it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


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
