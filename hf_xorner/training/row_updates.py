"""Updates of the word vectors that a batch reads, which give what updates of all of them would give."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import SGD, AdamW, Optimizer

from .optimization import Nadam

#: Steps of the optimizer that update the whole table; then the corrections of Adam's bias change slowly.
_DENSE_STEPS = 100
#: Momentum below this share of its start no longer moves a weight.
_NEGLIGIBLE = 1e-9
#: Smaller tables are always updated whole.
_LARGE = 2000
#: Rows made up for at a time.
_AT_ONCE = 8192


class RowUpdates:
    """Lets an optimizer update only those rows of an embedding that a batch reads.

    With dense updates, a row that is not read still moves, by its momentum and the weight decay. Here it makes up for
    those steps at once when it is next read, and before the weights or the optimizer's state are copied, scored or
    saved. Over the steps missed, a row moves by the sum of r·m / (a·√v + ε), where only r and a depend on the step; a
    two-point Gauss quadrature over a replaces the sum. Vectors differ from those of dense updates by its error and by
    rounding, together less than 3e-6 in the tests.

    The gradient is a dense tensor to others, so it is clipped and scaled as usual; only its read rows are zeroed.

    Args:
        embedding: On CPU, with `supports(embedding, optimizer)`.
        optimizer: The optimizer of its weight.
    """

    def __init__(self, embedding: nn.Embedding, optimizer: Optimizer) -> None:
        self.embedding, self.optimizer = embedding, optimizer
        self.gradient = torch.zeros_like(embedding.weight)
        self.current = torch.zeros(len(embedding.weight), dtype=torch.long)
        self._restart()
        self._read: list[Tensor] = []
        self._hooks = [
            embedding.register_forward_pre_hook(self._before_reading),
            embedding.register_state_dict_pre_hook(lambda *_: self.catch_up()),
            embedding.register_load_state_dict_post_hook(lambda *_: self._restart()),
            optimizer.register_step_pre_hook(lambda *_: self._step()),
            optimizer.register_state_dict_pre_hook(lambda *_: self.catch_up()),
            optimizer.register_load_state_dict_post_hook(lambda *_: self._restart()),
        ]

    @staticmethod
    def supports(embedding: nn.Embedding, optimizer: Optimizer) -> bool:
        """Return whether an embedding is large enough, and its optimizer is one that can be computed by rows."""
        weight = embedding.weight
        group = _group_of(weight, optimizer)
        if (
            not group
            or weight.device.type != "cpu"
            or weight.dtype not in (torch.float32, torch.float64)
            or len(weight) < _LARGE
        ):
            return False
        variants = ("amsgrad", "maximize", "nesterov", "dampening", "capturable", "differentiable")
        if type(optimizer) is SGD and group["weight_decay"]:
            return False
        return type(optimizer) in (AdamW, Nadam, SGD) and not any(group.get(variant) for variant in variants)

    def close(self) -> None:
        """Make up for all steps, and leave embedding and optimizer as they were."""
        self.catch_up()
        self._drop_gradient()
        self.embedding.sparse = False
        for hook in self._hooks:
            hook.remove()

    def clip(self, parameters: Iterable[Tensor], largest: float) -> Tensor:
        """`torch.nn.utils.clip_grad_norm_`, for which only the rows that were read are looked at."""
        weight = self.embedding.weight
        if weight.grad is not self.gradient:
            return clip_grad_norm_(parameters, largest)
        rows = self._rows()
        read = nn.Parameter(self.gradient[rows])
        read.grad = self.gradient[rows]
        norm = clip_grad_norm_([*(each for each in parameters if each is not weight), read], largest)
        self.gradient[rows] = read.grad
        return norm

    def _rows(self) -> Tensor:
        """Return the rows that were read since the last step."""
        return self._read[0] if len(self._read) == 1 else torch.cat(self._read).unique()

    # --- What the hooks do --------------------------------------------------------------------------------------------

    def _before_reading(self, embedding: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        """Bring the rows that are read up to date, and provide the tensor of the gradient."""
        if not (embedding.training and torch.is_grad_enabled()):
            self.catch_up()
            return
        if not self.embedding.sparse and not self._is_warm():
            return
        self.embedding.sparse = True
        if self.embedding.weight.grad is None:
            self._drop_gradient()  # of a batch without a step
            self.embedding.weight.grad = self.gradient
        rows = inputs[0].unique()
        self._read.append(rows)
        self.catch_up(rows)

    def _step(self) -> None:
        """Update the rows that were read, and hide the weight from the optimizer."""
        weight = self.embedding.weight
        if weight.grad is not self.gradient:
            self.catch_up()  # the optimizer updates the whole table
            return
        rows = self._rows()
        self._note_step()
        self._update(rows, self.gradient[rows])
        self.current[rows] = self.steps
        self._drop_gradient()
        weight.grad = None

    def _drop_gradient(self) -> None:
        for rows in self._read:
            self.gradient[rows] = 0
        self._read.clear()

    def _restart(self) -> None:
        """Take all rows as up to date."""
        self.steps = 0
        self.current.zero_()
        # For each step since: r, the factor of √v, and the logarithm of the weight decay's factor.
        self.noted = torch.empty(3, 512, dtype=torch.float64)

    # --- The optimizers ----------------------------------------------------------------------------------------------

    @property
    def _group(self) -> dict[str, Any]:
        return _group_of(self.embedding.weight, self.optimizer)

    def _is_warm(self) -> bool:
        """Return whether the optimizer has made its first steps, which are dense."""
        return type(self.optimizer) is SGD or self.optimizer.state[self.embedding.weight].get("step", 0) >= _DENSE_STEPS

    def _moments(self) -> tuple[Tensor | None, Tensor | None, float, float]:
        """Return the means of the gradient (m) and of its square (v), and their decays."""
        group, state = self._group, self.optimizer.state[self.embedding.weight]
        if type(self.optimizer) is SGD:
            if group["momentum"] and state.get("momentum_buffer") is None:
                state["momentum_buffer"] = torch.zeros_like(self.embedding.weight)
            return state.get("momentum_buffer"), None, group["momentum"], 1.0
        names = ("mean", "square") if type(self.optimizer) is Nadam else ("exp_avg", "exp_avg_sq")
        return state[names[0]], state[names[1]], *group["betas"]

    def _note_step(self) -> None:
        """Note what a step without gradient does."""
        if self.steps == self.noted.shape[1]:
            self.noted = torch.cat([self.noted, torch.empty_like(self.noted)], 1)
        group, state, rate, root = self._group, self.optimizer.state[self.embedding.weight], 1.0, 1.0
        if type(self.optimizer) is not SGD:
            state["step"] += 1
            beta1, beta2 = group["betas"]
            step = float(state["step"])
            rate, root = 1 / (1 - beta1**step), (1 - beta2**step) ** -0.5
            if type(self.optimizer) is Nadam:
                rate, root = rate / root, 1.0
        lr = float(group["lr"])
        self.noted[:, self.steps] = torch.tensor([lr * rate, root, math.log1p(-lr * group["weight_decay"])])
        self.steps += 1

    def _update(self, rows: Tensor, gradient: Tensor) -> None:
        """Do the last step noted for the rows with a gradient."""
        mean, square, beta1, beta2 = self._moments()
        rate, root, decay = self.noted[:, self.steps - 1].tolist()
        weight, ahead = self.embedding.weight.detach(), gradient
        if mean is not None:
            # SGD's momentum is a sum, Adam's a mean.
            share = 1.0 if square is None else 1 - beta1
            new = mean[rows].mul_(beta1).add_(gradient, alpha=share)
            mean[rows] = new
            ahead = new.mul(beta1).add_(gradient, alpha=share) if type(self.optimizer) is Nadam else new
        if square is None:
            weight.index_add_(0, rows, ahead, alpha=-rate)
            return
        new = square[rows].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        square[rows] = new
        new.sqrt_().mul_(root).add_(self._group["eps"])
        weight[rows] = weight[rows].mul_(math.exp(decay)).addcdiv_(ahead, new, value=-rate)

    # --- Steps without a gradient -------------------------------------------------------------------------------------

    @torch.no_grad()
    def catch_up(self, rows: Tensor | None = None) -> None:
        """Do the steps that rows missed, by default for all rows."""
        if rows is not None:
            self._catch_up(rows[self.current[rows] < self.steps])
        elif self.steps:
            for part in (self.current < self.steps).nonzero().squeeze(1).split(_AT_ONCE):
                self._catch_up(part)
            self._restart()

    def _catch_up(self, rows: Tensor) -> None:
        mean, square, beta1, beta2 = self._moments()
        if mean is None or not len(rows):  # SGD without momentum: rows without a gradient stay
            return
        starts, places = self.current[rows].unique(return_inverse=True)
        self.current[rows] = self.steps
        missed = self.steps - starts
        after = torch.arange(1, min(int(missed.max()), _reach(beta1)) + 1, dtype=torch.float64)
        step = (starts.unsqueeze(1) + after.long() - 1).clamp(max=self.steps - 1)  # (starts, steps)
        rates, roots, _ = self.noted[:, step]
        decays = self.noted[2, : self.steps].cumsum(0)
        shares = torch.where(after <= missed.unsqueeze(1), rates * beta1**after, 0) * (decays[-1] - decays[step]).exp()
        if type(self.optimizer) is Nadam:
            shares *= beta1
        decay = (self.noted[2, : self.steps].flip(0).cumsum(0)[missed - 1]).exp()

        def of_rows(values: Tensor) -> Tensor:
            return values.to(mean.dtype)[places].unsqueeze(1)

        weight, momentum = self.embedding.weight.detach(), mean[rows]
        if square is None:
            move = momentum * of_rows(shares.sum(1))
        else:
            squares = square[rows]
            square[rows] = squares * of_rows(beta2 ** missed.double())
            squares.sqrt_()
            move = torch.zeros_like(momentum)
            for share, root in zip(*_two_points(shares, roots * beta2 ** (after / 2)), strict=True):
                move += of_rows(share) / (squares * of_rows(root) + self._group["eps"])
            move *= momentum
        mean[rows] = momentum * of_rows(beta1 ** missed.double())
        weight[rows] = weight[rows] * of_rows(decay) - move


def _group_of(weight: Tensor, optimizer: Optimizer) -> dict[str, Any]:
    """Return the parameter group of a weight; empty if it has none."""
    groups = optimizer.param_groups
    return next((group for group in groups if any(weight is one for one in group["params"])), {})


def _reach(beta: float) -> int:
    """Return the number of steps after which momentum is negligible."""
    return max(1, math.ceil(math.log(_NEGLIGIBLE) / math.log(beta))) if beta else 1


def _two_points(weights: Tensor, places: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return the weights and places of two points with the first four moments of weighted points (N, K)."""
    total = weights.sum(1)
    shares = weights / total.clamp(min=1e-300).unsqueeze(1)
    centre = (shares * places).sum(1)
    offset = places - centre.unsqueeze(1)
    variance = (shares * offset**2).sum(1)
    width = variance.sqrt()
    skew = (shares * offset**3).sum(1) / (variance * width)
    half = torch.where(variance > 1e-14 * centre**2, skew / 2, 0)
    root = (1 + half**2).sqrt()
    first = total * (1 - half / root) / 2
    return (first, total - first), (centre + width * (half + root), centre + width * (half - root))
