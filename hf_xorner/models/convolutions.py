"""How the words of a batch lie before convolutions: channels first, and nothing but zeros beyond a sentence's ends."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

#: From this share of the batch's words and padding on, a row of all sentences is no shorter than it is trouble.
WORTH_A_ROW = 0.8


class Layout(NamedTuple):
    """Sentences one below the other, R = B rows of S = T places, or all in one row, R = 1, with gaps of zeros between.

    A convolution that pads with zeros then sees the same beyond the end of a sentence, whatever its batch. The one row
    has no padding for which anything would be computed; a GPU would have to wait for its length.
    """

    within: Tensor  # (R, 1, S): where there is a word
    batch: int  # B
    time: int  # T
    words: Tensor | None = None  # (N,) where each word of the one row stands in the flattened (B, T)
    places: Tensor | None = None  # (N,) and where in the row

    @classmethod
    def of(cls, lengths: Tensor, time: int, gap: int) -> Layout:
        """Lay out right-padded sentences (B, T) of the given lengths (B,), at least `gap` places between any two."""
        position = torch.arange(time, device=lengths.device)
        within = position < lengths.unsqueeze(1)  # (B, T)
        if lengths.device.type == "cpu" and not torch.compiler.is_compiling() and within.any():
            ends = (lengths + gap).cumsum(0)
            size = int(ends[-1])
            if size < WORTH_A_ROW * within.numel():
                places = ((ends - lengths - gap).unsqueeze(1) + position)[within]
                row = torch.zeros(size, dtype=torch.bool).index_fill(0, places, True)
                return cls(row.view(1, 1, -1), len(lengths), time, within.flatten().nonzero().squeeze(1), places)
        return cls(within.unsqueeze(1), len(lengths), time)

    def lay_out(self, states: Tensor) -> Tensor:
        """Bring states (B, T, C) into (R, C, S), with zeros where there is no word."""
        if self.words is None or self.places is None:
            # Contiguous, or several convolutions, and their backward passes, would each copy it again.
            return states.transpose(1, 2).contiguous() * self.within
        words = states.flatten(0, 1).index_select(0, self.words)
        row = words.new_zeros(self.within.shape[2], words.shape[1]).index_copy(0, self.places, words)
        return row.t().contiguous().unsqueeze(0)

    def take_back(self, rows: Tensor) -> Tensor:
        """Bring (R, C, S) back into (B, T, C); what stands for padding means nothing."""
        if self.words is None or self.places is None:
            return rows.transpose(1, 2)
        words = rows[0].t().index_select(0, self.places)
        flat = words.new_zeros(self.batch * self.time, words.shape[1]).index_copy(0, self.words, words)
        return flat.unflatten(0, (self.batch, self.time))
