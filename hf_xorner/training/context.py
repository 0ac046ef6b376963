"""A pretrained encoder whose states are features; while it is frozen, each sentence is encoded once."""

from __future__ import annotations

from typing import Any

import torch
from datasets import DatasetDict
from torch import Tensor
from transformers import PreTrainedModel

from ..errors import DataError
from ..models.contextual import ContextualFeatures
from ..models.tokenization_word_char import WordCharTokenizer
from ..models.word_ids import WordPieces
from ..vectors.distill import Composition, PretrainedEncoder, usual_layers
from .batches import CONTEXT_STATES, with_bytes
from .model_files import settings_of, tensors_digest


def context_fields(encoder: PretrainedEncoder) -> dict[str, Any]:
    """Return the fields of a config that follow from an encoder, with all but its first two layers averaged."""
    before, after = encoder.pieces.frame()
    return {
        "context_encoder": settings_of(encoder.model.config),
        "context_layers": usual_layers(encoder.model.config.num_hidden_layers),
        "context_window": encoder.window,
        "context_overlap": encoder.window // 4,
        "context_prefix": before,
        "context_suffix": after,
    }


def pieces_of(encoder: PretrainedEncoder | None, composition: Composition | None) -> WordPieces | None:
    """Return the tokenizer of word pieces for an encoder, composed vectors, or both.

    Raises:
        DataError: If the two have different ones.
    """
    if encoder is None or composition is None:
        return encoder.pieces if encoder else composition.pieces if composition else None
    if encoder.pieces.to_str() != composition.pieces.to_str():
        raise DataError("context and composed cut words into different pieces; distil the vectors from that encoder.")
    return encoder.pieces


def place_encoder(context: ContextualFeatures, encoder: PreTrainedModel) -> None:
    """Copy pretrained weights to the encoder of a tagger, which may lack the pooler."""
    missing, _ = context.encoder.load_state_dict(encoder.state_dict(), strict=False)
    assert not missing, missing


def with_context_states(
    corpus: DatasetDict, context: ContextualFeatures, tokenizer: WordCharTokenizer, words: str
) -> DatasetDict:
    """Add a frozen encoder's states of every word as a column of bytes; `datasets` caches them.

    Args:
        corpus: The splits.
        context: The encoder of a tagger.
        tokenizer: The tagger's tokenizer.
        words: The column of the words.
    """
    device = next(context.encoder.parameters()).device

    @torch.inference_mode()
    def encode(sentences: list[list[str]]) -> Tensor:
        pieces = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")["piece_ids"]
        return context.states(pieces.to(device)).float()

    identity = _identity(context, tokenizer)
    return DatasetDict(
        {
            name: with_bytes(split, CONTEXT_STATES, encode, identity, f"encoding {name}", words)
            for name, split in corpus.items()
        }
    )


def _identity(context: ContextualFeatures, tokenizer: WordCharTokenizer) -> str:
    """Return what the states depend on besides the words."""
    weights = tensors_digest(context.encoder.state_dict().items())
    settings = {name: value for name, value in context.config.to_dict().items() if name.startswith("context_")}
    pieces = tokenizer.pieces.to_str() if tokenizer.pieces else ""
    return repr((weights, sorted(settings.items(), key=str), pieces, tokenizer.max_word_pieces))
