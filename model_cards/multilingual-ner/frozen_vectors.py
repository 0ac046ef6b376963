"""Pretrained vectors that are never trained: of words, or of pieces from which the vectors of words are composed."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_tagger import TaggerConfig

#: The dtype in which a table is saved, by its bits per number.
_DTYPES = {32: torch.float32, 16: torch.float16, 8: torch.int8, 4: torch.uint8}

#: A word of several pieces is a linear function of its first piece, the mean of all, and its last piece.
ROLES = 3

NEEDS_PIECES = "This model needs piece_ids; use the tokenizer that was saved with it."


class FrozenVectors(nn.Module):
    """A table of vectors in buffers, which no optimizer updates.

    In 8 bits, the weights are whole numbers from −127 to 127, and each row has a scale. In 4 bits, they are whole
    numbers from −7 to 7, and a byte holds two of them plus 8: one of the row's first half, and 16 times one of its
    second half.
    """

    weight: Tensor
    scale: Tensor | None

    def __init__(self, rows: int, dim: int, bits: int) -> None:
        super().__init__()
        self.dim, self.bits = dim, bits
        columns = (dim + 1) // 2 if bits == 4 else dim
        self.register_buffer("weight", torch.zeros(rows, columns, dtype=_DTYPES[bits]))
        self.register_buffer("scale", torch.zeros(rows, 1) if bits < 16 else None)

    def clear(self) -> None:
        """Set all vectors to zero."""
        for table in self.buffers(recurse=False):
            table.zero_()

    def store(self, rows: Any, vectors: Tensor) -> None:
        """Set the vectors (N, d) of rows, given by indices (N,) or a slice."""
        if self.scale is not None:
            scale = vectors.float().abs().amax(-1, keepdim=True) / (2 ** (self.bits - 1) - 1)
            self.scale[rows] = scale.to(self.scale)
            vectors = (vectors / scale.clamp(min=torch.finfo(torch.float32).tiny)).round()
        if self.bits == 4:
            first, second = (F.pad(vectors, (0, self.dim % 2)) + 8).chunk(2, -1)
            vectors = first + 16 * second
        self.weight[rows] = vectors.to(self.weight)

    def read(self, index: Tensor, dtype: torch.dtype) -> Tensor:
        """The vectors (…, d) of rows (…)."""
        vectors = F.embedding(index, self.weight)
        if self.bits == 4:
            vectors = torch.cat([vectors & 15, vectors >> 4], -1)[..., : self.dim].to(dtype) - 8
        return vectors.to(dtype) if self.scale is None else vectors.to(dtype) * F.embedding(index, self.scale).to(dtype)


class StaticVectors(FrozenVectors):
    """Frozen vectors of words; words without one share a trained vector."""

    has_vector: Tensor

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__(config.vocab_size, config.static_dim, config.static_bits)
        self.config = config
        self.register_buffer("has_vector", torch.zeros(config.vocab_size, dtype=torch.bool))
        self.unknown = nn.Parameter(torch.empty(config.static_dim))

    def reset_parameters(self) -> None:
        """Start without any pretrained vector."""
        draw_vectors(self.unknown, self.config)
        self.clear()

    def fill(self, rows: Tensor, vectors: Tensor) -> None:
        """Set the vectors (N, static_dim) of words (N,)."""
        self.store(rows, vectors)
        self.has_vector[rows] = True

    def forward(self, input_ids: Tensor) -> Tensor:
        """input_ids (B, T) → (B, T, static_dim)."""
        vectors = self.read(input_ids, self.unknown.dtype)
        return torch.where(self.has_vector[input_ids].unsqueeze(-1), vectors, self.unknown)


class ComposedVectors(FrozenVectors):
    """Frozen vectors composed of a word's pieces: the vector of a single piece, else A [first ; mean ; last] + b.

    A and b are fitted to the encoder's vectors of words of several pieces when the pieces' vectors are distilled.
    """

    mix: Tensor
    bias: Tensor

    def __init__(self, config: TaggerConfig) -> None:
        dim = config.composed_dim
        # Row 0 is for padding.
        super().__init__(config.piece_vocab_size + 1, dim, config.composed_bits)
        self.register_buffer("mix", torch.zeros(dim, ROLES * dim))
        self.register_buffer("bias", torch.zeros(dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start with zero vectors, and with the mean of the pieces as the composition."""
        self.clear()
        dim = len(self.bias)
        self.mix[:, dim : 2 * dim].fill_diagonal_(1)

    def fill(self, pieces: Tensor, mix: Tensor, bias: Tensor) -> None:
        """Set distilled vectors: pieces (piece_vocab_size, d), mix (d, 3d), bias (d,)."""
        self.store(slice(1, None), pieces)
        self.mix.copy_(mix)
        self.bias.copy_(bias)

    def forward(self, piece_ids: Tensor | None) -> Tensor:
        """piece_ids (B, T, max_word_pieces) → (B, T, composed_dim); zeros for a word without pieces."""
        if piece_ids is None:
            raise ValueError(NEEDS_PIECES)
        vectors = self.read(piece_ids, self.mix.dtype)  # (B, T, W, d)
        counts = (piece_ids > 0).sum(-1, keepdim=True)  # (B, T, 1)
        first, mean = vectors[..., 0, :], vectors.sum(-2) / counts.clamp(min=1)
        last_index = (counts - 1).clamp(min=0).unsqueeze(-1).expand(*counts.shape, vectors.shape[-1])
        last = vectors.gather(-2, last_index).squeeze(-2)
        composed = F.linear(torch.cat([first, mean, last], -1), self.mix, self.bias)
        return torch.where(counts > 1, composed, first)


def draw_vectors(vectors: Tensor, config: TaggerConfig) -> None:
    """Initialise vectors (…, d) of words, characters or shapes by the config's `initializer`."""
    if config.initializer == "normal":
        nn.init.normal_(vectors, std=config.initializer_range)
        return
    size = max(vectors.shape[-1], 1)
    # A single vector has one row.
    fans = size + vectors.numel() // size if config.initializer == "glorot" else size
    bound = ((3 if config.initializer == "uniform" else 6) / fans) ** 0.5
    nn.init.uniform_(vectors, -bound, bound)
