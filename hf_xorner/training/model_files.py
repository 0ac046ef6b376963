"""The files, settings and weights that make up a saved model, apart from what training leaves beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedConfig

from ..files import FACTS_FILE

CONFIG, CARD = "config.json", "README.md"

#: The files of a model besides its description, as patterns of `fnmatch`: no pickles of a checkpoint.
MODEL_FILES = (
    *(CONFIG, "model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json", "tokenizer_config.json"),
    *("tokenizer.json", "piece_tokenizer.json", "special_tokens_map.json", "added_tokens.json", FACTS_FILE),
    *sorted(path.name for path in files("hf_xorner.models").iterdir() if path.name.endswith(".py")),
)
#: The card, its pictures and the license.
DESCRIPTION = (CARD, "LICENSE", "*.png", "*.svg", "*.jpg", "*.jpeg", "*.gif", "*.webp")

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


def files_of_model(folder: Path) -> list[str]:
    """Return the sorted names of the files in a folder that match `MODEL_FILES` or `DESCRIPTION`."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.is_file() and any(fnmatchcase(path.name, pattern) for pattern in (*MODEL_FILES, *DESCRIPTION))
    )
