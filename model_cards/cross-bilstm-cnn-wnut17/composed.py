"""Vectors of words composed of the frozen vectors of their pieces: no word is ever unknown."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_tagger import TaggerConfig

#: What a word of several pieces is a linear function of: its first piece, the mean over all, and its last piece.
ROLES = 3


class ComposedVectors(nn.Module):
    """A word of one piece has that piece's vector; a word of several, A [first ; mean ; last] + b.

    The mean alone misses much of what the encoder makes of such words; A and b are fitted to that when the pieces'
    vectors are distilled. Nothing here is trained.
    """

    weight: Tensor
    mix: Tensor
    bias: Tensor

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        dim = config.composed_dim
        dtype = torch.float16 if config.composed_half else None
        # Row 0 is that of padding. Buffers, which no optimiser ever sees.
        self.register_buffer("weight", torch.zeros(config.piece_vocab_size + 1, dim, dtype=dtype))
        self.register_buffer("mix", torch.zeros(dim, ROLES * dim))
        self.register_buffer("bias", torch.zeros(dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Until vectors are placed, a word of several pieces is the mean over them."""
        self.weight.zero_()
        self.bias.zero_()
        dim = len(self.bias)
        self.mix.zero_()
        self.mix[:, dim : 2 * dim].fill_diagonal_(1)

    def fill(self, pieces: Tensor, mix: Tensor, bias: Tensor) -> None:
        """Place distilled vectors: pieces (piece_vocab_size, d), mix (d, 3d), bias (d,)."""
        self.weight[1:] = pieces.to(self.weight)
        self.mix.copy_(mix)
        self.bias.copy_(bias)

    def forward(self, piece_ids: Tensor) -> Tensor:
        """piece_ids (B, T, max_word_pieces) → (B, T, composed_dim); zeros for a word without pieces."""
        vectors = F.embedding(piece_ids, self.weight).to(self.mix.dtype)  # (B, T, W, d)
        counts = (piece_ids > 0).sum(-1, keepdim=True)  # (B, T, 1)
        first, mean = vectors[..., 0, :], vectors.sum(-2) / counts.clamp(min=1)
        place = (counts - 1).clamp(min=0).unsqueeze(-1).expand(*counts.shape, vectors.shape[-1])
        last = vectors.gather(-2, place).squeeze(-2)
        composed = F.linear(torch.cat([first, mean, last], -1), self.mix, self.bias)
        return torch.where(counts > 1, composed, first)
