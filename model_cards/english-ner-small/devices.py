"""Tells tensors whose values Python may read from those on a GPU."""

from __future__ import annotations

import torch
from torch import Tensor


def readable(values: Tensor) -> bool:
    """True if Python may read values, so that shapes may depend on them.

    On a GPU the host would wait for them; a compiled graph would break.
    """
    return values.device.type == "cpu" and not torch.compiler.is_compiling()
