"""A pretrained encoder whose states are features: read once, and while it is frozen each sentence encoded once."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from datasets import DatasetDict, Features, Value
from transformers import PreTrainedModel

from ..errors import DataError
from ..models.pieces import ContextualFeatures, WordPieces
from ..models.tokenization_word_char import WordCharTokenizer
from ..vectors.distill import Composition, PretrainedEncoder, usual_layers
from .batches import CONTEXT_STATES

#: Sentences whose states are computed together, padded to the longest of them.
_BATCH = 32

#: Sentences whose states are written together.
_WRITTEN = 256

#: What a saved config says of the machine and the program that wrote it, not of the encoder.
_NOT_OF_THE_ENCODER = ("_name_or_path", "transformers_version", "architectures", "torch_dtype", "dtype")


def context_fields(encoder: PretrainedEncoder) -> dict[str, Any]:
    """The fields of a config that follow from an encoder, with all but its first two layers averaged."""
    settings = encoder.model.config.to_dict()
    before, after = encoder.pieces.frame()
    return {
        "context_encoder": {name: settings[name] for name in settings if name not in _NOT_OF_THE_ENCODER},
        "context_layers": usual_layers(encoder.model.config.num_hidden_layers),
        "context_window": encoder.window,
        "context_overlap": encoder.window // 4,
        "context_prefix": before,
        "context_suffix": after,
    }


def pieces_of(encoder: PretrainedEncoder | None, composition: Composition | None) -> WordPieces | None:
    """Return what cuts words into pieces, for an encoder and for composed vectors alike.

    Raises:
        DataError: If the two do not agree.
    """
    if encoder is None or composition is None:
        return encoder.pieces if encoder else composition.pieces if composition else None
    if encoder.pieces.to_str() != composition.pieces.to_str():
        raise DataError("context and composed cut words into different pieces; distil the vectors from that encoder.")
    return encoder.pieces


def place_encoder(context: ContextualFeatures, encoder: PreTrainedModel) -> None:
    """Give the encoder inside a tagger its pretrained weights."""
    wanted = context.encoder.state_dict()
    context.encoder.load_state_dict({name: value for name, value in encoder.state_dict().items() if name in wanted})


def with_context_states(
    corpus: DatasetDict, context: ContextualFeatures, tokenizer: WordCharTokenizer, words: str
) -> DatasetDict:
    """Add what a frozen encoder says of every word as a column of bytes, cached as `datasets` caches.

    Args:
        corpus: The splits.
        context: The encoder inside a tagger.
        tokenizer: The tagger's tokenizer.
        words: Column of the words.
    """
    device = next(context.encoder.parameters()).device

    @torch.inference_mode()
    def encode(batch: dict[str, list]) -> dict[str, list]:
        pieces = tokenizer(batch[words], is_split_into_words=True, padding=True, return_tensors="pt")["piece_ids"]
        states = context.states(pieces.to(device)).float().cpu().numpy()
        return {CONTEXT_STATES: [row[: len(given)].tobytes() for row, given in zip(states, batch[words], strict=True)]}

    identity = _identity(context, tokenizer)
    return DatasetDict(
        {
            name: split.map(
                encode,
                batched=True,
                batch_size=_BATCH,
                writer_batch_size=_WRITTEN,
                features=Features({**split.features, CONTEXT_STATES: Value("binary")}),
                new_fingerprint=hashlib.sha256(f"{split._fingerprint} {identity}".encode()).hexdigest()[:32],
                desc=f"encoding {name}",
            )
            for name, split in corpus.items()
        }
    )


def _identity(context: ContextualFeatures, tokenizer: WordCharTokenizer) -> str:
    """What the states depend on besides the words."""
    digest = hashlib.sha256()
    for name, value in context.encoder.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    config = context.config
    settings = {name: value for name, value in config.to_dict().items() if name.startswith("context_")}
    pieces = tokenizer.pieces.to_str() if tokenizer.pieces else ""
    digest.update(repr((sorted(settings.items(), key=str), pieces, tokenizer.max_word_pieces)).encode())
    return digest.hexdigest()
