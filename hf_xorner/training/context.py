"""A pretrained encoder whose states are features; while it is frozen, each sentence is encoded once."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from datasets import DatasetDict, Features, Value
from transformers import PreTrainedModel

from ..errors import DataError
from ..models.contextual import ContextualFeatures
from ..models.pieces import WordPieces
from ..models.tokenization_word_char import WordCharTokenizer
from ..vectors.distill import Composition, PretrainedEncoder, usual_layers
from .batches import CONTEXT_STATES
from .model_files import settings_of, tensors_digest

#: Sentences in a batch of the encoder, and of the cached dataset.
_BATCH, _WRITTEN = 32, 256


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
    """Return what the states depend on besides the words."""
    weights = tensors_digest(context.encoder.state_dict().items())
    settings = {name: value for name, value in context.config.to_dict().items() if name.startswith("context_")}
    pieces = tokenizer.pieces.to_str() if tokenizer.pieces else ""
    return repr((weights, sorted(settings.items(), key=str), pieces, tokenizer.max_word_pieces))
