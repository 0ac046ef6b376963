"""Learning rates that stay constant within an epoch."""

from __future__ import annotations

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def decay_by_epoch(optimizer: Optimizer, decay: float, steps_per_epoch: int) -> LambdaLR:
    """A schedule η = η0 / (1 + decay · t), t being the number of finished epochs.

    So did ma2016 (decay 0.05), chen2019 (0.02) and the Stack-LSTM of lample2016's program (0.08).

    Args:
        optimizer: What is scheduled, each group of weights from a learning rate of its own.
        decay: ρ.
        steps_per_epoch: Steps of the optimiser in an epoch.
    """
    return LambdaLR(optimizer, lambda step: 1 / (1 + decay * (step // steps_per_epoch)))
