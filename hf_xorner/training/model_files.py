"""The settings and weights that make up a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import torch
from transformers import PreTrainedConfig

#: Entries of a saved config that describe its file or the program that wrote it, or that were chosen after training.
_OF_THE_FILE = (
    *("_name_or_path", "transformers_version", "architectures", "auto_map", "torch_dtype", "dtype", "min_score"),
)


def settings_of(config: PreTrainedConfig) -> dict[str, Any]:
    """Return the entries of a config that describe the model."""
    return {name: value for name, value in config.to_dict().items() if name not in _OF_THE_FILE}


@torch.no_grad()
def tensors_digest(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Return the SHA-256 of named tensors."""
    digest = hashlib.sha256()
    for name, value in tensors:
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
