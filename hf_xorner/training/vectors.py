"""Pretrained vectors into a model: of words, frozen or as what training starts from, or of the pieces of words."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..data.composition import Composition
from ..data.vector_files import Vectors
from ..data.vector_lookup import look_up
from ..models.composed import ComposedVectors
from ..models.features import WordFeatures
from ..models.tokenization_word_char import WordCharTokenizer


def vector_fields(use: str, dim: int) -> dict[str, Any]:
    """The fields of a config that a use of vectors sets.

    Args:
        use: "frozen": the only vectors of words. "tuned": what the trained vectors start from. "beside": frozen, beside
            trained ones.
        dim: Their dimension.
    """
    if use == "tuned":
        return {"word_dim": dim, "pretrained_words": True}
    return {"static_dim": dim, "word_dim": 0} if use == "frozen" else {"static_dim": dim}


@torch.no_grad()
def place_vectors(features: WordFeatures, tokenizer: WordCharTokenizer, vectors: Vectors, use: str) -> None:
    """Give every word of a tokenizer's vocabulary its vector, where there is one; the others keep what they have.

    Args:
        features: The word features of a model that was built for the tokenizer.
        tokenizer: The tokenizer.
        vectors: The vectors.
        use: See `vector_fields`.
    """
    found = look_up(tokenizer, vectors.words)
    ids, rows = torch.from_numpy(found.ids), torch.from_numpy(vectors.matrix[found.rows])
    if use == "tuned":
        features.words.weight[ids] = rows.to(features.words.weight)
    elif features.static is not None:
        features.static.fill(ids, rows)


def composition_fields(composition: Composition) -> dict[str, Any]:
    """The fields of a config that follow from vectors of pieces, which stand in place of trained ones.

    Args:
        composition: The vectors.
    """
    return {
        "composed_dim": composition.dim,
        "composed_half": composition.vectors.dtype == np.float16,
        "word_dim": 0,
    }


@torch.no_grad()
def place_composition(composed: ComposedVectors, composition: Composition) -> None:
    """Give a model its vectors of pieces.

    Args:
        composed: The part of the model that holds them.
        composition: The vectors.
    """
    composed.fill(*map(torch.from_numpy, (composition.vectors, composition.mix, composition.bias)))
