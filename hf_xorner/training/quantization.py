"""Store the word vectors of a trained model in 8 or 4 bits, which makes them four or eight times smaller."""

from __future__ import annotations

import torch
from transformers import AutoModelForTokenClassification

from ..models.features import WordFeatures, rows_of_words
from ..models.modeling_tagger import TaggerForTokenClassification
from .model_files import settings_of

#: The values of the option `quantize`, and the bits of a number.
BITS = {"int8": 8, "int4": 4}


@torch.no_grad()
def quantized(model: TaggerForTokenClassification, bits: int) -> TaggerForTokenClassification:
    """Return a model whose vectors of words and of pieces are frozen, and stored in few bits with a scale for each.

    All else is unchanged: trained and frozen vectors of a word become one frozen vector, in the same order.

    Args:
        model: The trained model.
        bits: Bits of a number, 8 or 4.
    """
    config, features = model.config, model.features
    table = _word_vectors(features)
    fields = {
        "word_dim": 0,
        "static_dim": table.shape[1],
        "static_bits": bits,
        "pretrained_words": False,
        "freeze_word_embeddings": False,
        "composed_bits": bits,
    }
    small = AutoModelForTokenClassification.from_config(
        type(config)(**{**settings_of(config), **fields}), dtype=torch.float32
    )
    replaced = {f"features.{part}" for part in ("words.weight", "static.weight", "static.scale", "static.has_vector")}
    replaced |= {"features.static.unknown", "features.composed.weight", "features.composed.scale"}
    kept = {name: values for name, values in model.state_dict().items() if name not in replaced}
    missing, unexpected = small.load_state_dict(kept, strict=False)
    assert set(missing) <= replaced and not unexpected, (missing, unexpected)
    if small.features.static is not None:
        small.features.static.fill(torch.arange(len(table)), table)
        small.features.static.unknown.zero_()  # not read: every word has a vector
    if features.composed is not None:
        pieces = torch.arange(len(features.composed.weight), device=features.composed.weight.device)
        small.features.composed.store(slice(None), features.composed.read(pieces, torch.float32))
    return small.to(model.device).eval()


def _word_vectors(features: WordFeatures) -> torch.Tensor:
    """Return [trained vector ; frozen vector] of each word id, (words, d)."""
    ids = torch.arange(features.config.vocab_size, device=features.words.weight.device)
    vectors = [features.words.weight[rows_of_words(ids, features.config)]]
    if features.static is not None:
        vectors.append(features.static(ids))
    return torch.cat(vectors, -1).float().cpu()
