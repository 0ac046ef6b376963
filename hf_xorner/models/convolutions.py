"""The layout of a batch for convolutions: channels first, with zeros beyond a sentence's ends."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .devices import readable

#: Pack only below this share of the padded size.
WORTH_A_ROW = 0.8


class Layout(NamedTuple):
    """A padded batch, of R = B rows and S = T columns, or all sentences in R = 1 row with gaps of zeros between them.

    Either way a convolution reads zeros beyond the ends of a sentence, whatever its batch. The single row saves the
    computation for padding; a GPU would have to wait for its length.
    """

    within: Tensor  # (R, 1, S): whether there is a word
    batch: int  # B
    time: int  # T
    words: Tensor | None = None  # (N,) indices of the words in the flattened (B, T), for a single row
    places: Tensor | None = None  # (N,) and in the row

    @classmethod
    def of(cls, lengths: Tensor, time: int, gap: int) -> Layout:
        """The layout of right-padded sentences (B, T) of the given lengths (B,), with at least `gap` zeros between."""
        position = torch.arange(time, device=lengths.device)
        within = position < lengths.unsqueeze(1)  # (B, T)
        if readable(lengths) and within.any():
            ends = (lengths + gap).cumsum(0)
            size = int(ends[-1])
            if size < WORTH_A_ROW * within.numel():
                places = ((ends - lengths - gap).unsqueeze(1) + position)[within]
                row = torch.zeros(size, dtype=torch.bool).index_fill(0, places, True)
                return cls(row.view(1, 1, -1), len(lengths), time, within.flatten().nonzero().squeeze(1), places)
        return cls(within.unsqueeze(1), len(lengths), time)

    def lay_out(self, states: Tensor) -> Tensor:
        """States (B, T, C) → (R, C, S), with zeros where there is no word."""
        if self.words is None or self.places is None:
            # Contiguous; otherwise each convolution, and its backward pass, would copy it.
            return states.transpose(1, 2).contiguous() * self.within
        words = states.flatten(0, 1).index_select(0, self.words)
        row = words.new_zeros(self.within.shape[2], words.shape[1]).index_copy(0, self.places, words)
        return row.t().contiguous().unsqueeze(0)

    def take_back(self, rows: Tensor) -> Tensor:
        """(R, C, S) → (B, T, C); arbitrary values for padding."""
        if self.words is None or self.places is None:
            return rows.transpose(1, 2)
        words = rows[0].t().index_select(0, self.places)
        flat = words.new_zeros(self.batch * self.time, words.shape[1]).index_copy(0, self.words, words)
        return flat.unflatten(0, (self.batch, self.time))
