"""Pretrained vectors into a model: as its frozen vectors, or as what its trained ones start from."""

from __future__ import annotations

from typing import Any

import torch

from ..data.vector_files import Vectors
from ..data.vector_lookup import look_up
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
