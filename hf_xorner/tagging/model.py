"""The model of a run, and what tells it from others."""

import json
import os
from hashlib import blake2b

import torch

from ..tagger import Tagger

# What a config notes of where it comes from; the model is the same without.
_PROVENANCE = ("_name_or_path", "transformers_version", "auto_map")
_POLICIES = ("characters", "casing", "digits", "fallback")


def load_tagger(name: str, device: str | None) -> Tagger:
    """Load a model with its tokenizer.

    Args:
        name: A folder, or a repository of the Hub.
        device: Where it runs; by default the GPU of this process's number, if there is one.

    Raises:
        ValueError: If it cannot be loaded.
    """
    if device is None and torch.cuda.is_available():
        device = f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"
    return Tagger.from_pretrained(name, device)


def digest_of(tagger: Tagger) -> str:
    """What tells a model with its tokenizer from every other, wherever it lies."""
    digest = blake2b(digest_size=16)
    config = {name: value for name, value in tagger.model.config.to_dict().items() if name not in _PROVENANCE}
    tokenizer = tagger.tokenizer
    policies = {name: tokenizer.init_kwargs.get(name) for name in _POLICIES}
    digest.update(json.dumps([config, policies], sort_keys=True, default=str).encode(errors="surrogatepass"))
    digest.update(tokenizer.backend_tokenizer.to_str().encode())
    if tokenizer.pieces is not None:
        digest.update(tokenizer.pieces.tokenizer.to_str().encode())
    for name, values in tagger.model.state_dict().items():
        digest.update(name.encode())
        digest.update(values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
