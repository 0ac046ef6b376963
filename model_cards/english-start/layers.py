"""Layers that several architectures share: masks, dropout, a layout for convolutions, self-attention."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_tagger import SelfAttentionConfig


def cheap_to_read(values: Tensor) -> bool:
    """True if Python may read values at little cost, so that shapes may depend on them.

    On a GPU, the host would have to wait for the values; in a compiled graph, reading them causes a graph break.
    """
    return values.device.type == "cpu" and not torch.compiler.is_compiling()


def length_mask(lengths: Tensor, time: int) -> Tensor:
    """True for the words of right-padded sentences: lengths (B,) → (B, T)."""
    return torch.arange(time, device=lengths.device) < lengths.unsqueeze(1)


# --- Dropout ---------------------------------------------------------------------------------------------------------

#: Random numbers cut from one 64-bit draw, and the values that each can take.
_PER_DRAW, _VALUES = 4, 1 << 16


def dropout(values: Tensor, rate: float, training: bool = True) -> Tensor:
    """`torch.nn.functional.dropout`; about twice as fast on a CPU, where the rate is rounded to a multiple of 2⁻¹⁶."""
    if values.device.type != "cpu" or torch.compiler.is_compiling() or not training or not 0 < rate < 1:
        return F.dropout(values, rate, training)
    size = -(-values.numel() // _PER_DRAW)
    draws = torch.empty(size, dtype=torch.int64, device=values.device).random_(-(2**63), None)
    numbers = draws.view(torch.int16)[: values.numel()].view(values.shape)
    kept = numbers >= round(rate * _VALUES) - _VALUES // 2
    return values * kept.to(values.dtype).mul_(1 / (1 - rate))


# --- Convolutions ----------------------------------------------------------------------------------------------------

#: All sentences are put in one row if it is shorter than this share of the padded size.
WORTH_A_ROW = 0.8


class Layout(NamedTuple):
    """A padded batch, of R = B rows and S = T columns, or all sentences in R = 1 row with gaps of zeros between them.

    In both layouts a convolution reads zeros beyond the ends of a sentence, whatever its batch. The single row saves
    the computation of padding; it is not used on a GPU, which would have to wait for the row's length.
    """

    within: Tensor  # (R, 1, S): true for words
    batch: int  # B
    time: int  # T
    words: Tensor | None = None  # (N,) indices of the words in the flattened (B, T), for a single row
    row_indices: Tensor | None = None  # (N,) their indices in the row

    @classmethod
    def of(cls, lengths: Tensor, time: int, gap: int) -> Layout:
        """The layout of right-padded sentences (B, T) of the given lengths (B,), with at least `gap` zeros between."""
        within = length_mask(lengths, time)
        if cheap_to_read(lengths) and within.any():
            ends = (lengths + gap).cumsum(0)
            size = int(ends[-1])
            if size < WORTH_A_ROW * within.numel():
                row_indices = ((ends - lengths - gap).unsqueeze(1) + torch.arange(time))[within]
                row = torch.zeros(size, dtype=torch.bool, device=lengths.device).index_fill(0, row_indices, True)
                return cls(row.view(1, 1, -1), len(lengths), time, within.flatten().nonzero().squeeze(1), row_indices)
        return cls(within.unsqueeze(1), len(lengths), time)

    def lay_out(self, states: Tensor) -> Tensor:
        """States (B, T, C) → (R, C, S), with zeros where there is no word."""
        if self.words is None or self.row_indices is None:
            # Contiguous; otherwise each convolution, and its backward pass, would copy it.
            return states.transpose(1, 2).contiguous() * self.within
        words = states.flatten(0, 1).index_select(0, self.words)
        row = words.new_zeros(self.within.shape[2], words.shape[1]).index_copy(0, self.row_indices, words)
        return row.t().contiguous().unsqueeze(0)

    def take_back(self, rows: Tensor) -> Tensor:
        """(R, C, S) → (B, T, C); arbitrary values for padding."""
        if self.words is None or self.row_indices is None:
            return rows.transpose(1, 2)
        words = rows[0].t().index_select(0, self.row_indices)
        flat = words.new_zeros(self.batch * self.time, words.shape[1]).index_copy(0, self.words, words)
        return flat.unflatten(0, (self.batch, self.time))


# --- Windows over long sentences -------------------------------------------------------------------------------------


def number_of_windows(lengths: Tensor, window: int, overlap: int) -> Tensor:
    """The number of windows, which start at 0, S, 2S, … with S = window - overlap, over sequences of some lengths."""
    return (-((overlap - lengths) // (window - overlap))).clamp(min=1)


def home_window(position: Tensor, lengths: Tensor, window: int, overlap: int) -> Tensor:
    """The window in which a position is nearest to the middle."""
    nearest = ((position - overlap // 2) // (window - overlap)).clamp(min=0)
    return nearest.minimum(number_of_windows(lengths, window, overlap) - 1)


# --- Self-attention --------------------------------------------------------------------------------------------------


class HeadProjections(nn.Linear):
    """The linear maps of all heads: (…, input_size) → (…, heads · head_dim).

    Initial weights are Glorot-uniform, within ±`bound`, for each head's matrix or for all heads as one matrix.
    """

    def __init__(self, config: SelfAttentionConfig, input_size: int) -> None:
        size = config.num_attention_heads * config.attention_head_dim
        super().__init__(input_size, size, bias=False)
        fan_out = config.attention_head_dim if config.attention_initializer == "head" else size
        self.bound = (6 / (input_size + fan_out)) ** 0.5


class WindowedSelfAttention(nn.Module):
    """Multi-head self-attention of li2020: C_k = softmax(Q_k K_kᵀ / √d) V_k, no bias, projection, residual or norm.

    Windows start at 0, S, 2S, … with S = window - overlap; a word attends within the window in which it is nearest to
    the middle. Windows depend on the length of the sentence, never on its batch; a sentence that fits into one window
    is attended to as a whole.
    """

    def __init__(self, config: SelfAttentionConfig, input_size: int) -> None:
        super().__init__()
        self.num_heads, self.head_dim = config.num_attention_heads, config.attention_head_dim
        self.window, self.overlap = config.attention_window, config.attention_overlap
        self.output_size = self.num_heads * self.head_dim
        self.query, self.key, self.value = (HeadProjections(config, input_size) for _ in range(3))

    def forward(self, states: Tensor, lengths: Tensor, with_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Attend from every word.

        Args:
            states: (B, T, d), right-padded.
            lengths: (B,), words of each sentence.
            with_weights: Also return the attention weights, (B, heads, T, T): memory quadratic in T.

        Returns:
            Context (B, T, heads · head_dim) and the weights or None.
        """
        if states.shape[1] > self.window:
            return self.attend_in_windows(states, lengths, with_weights)
        return self.attend_to_all(states, lengths, with_weights)

    def attend_to_all(self, states: Tensor, lengths: Tensor, with_weights: bool) -> tuple[Tensor, Tensor | None]:
        """Attend within each sentence as a whole; see `forward`."""
        batch, time, _ = states.shape
        split = (batch, time, self.num_heads, self.head_dim)
        query, key, value = (
            project(states).view(split).transpose(1, 2) for project in (self.query, self.key, self.value)
        )  # (B, heads, T, head_dim)
        allowed = length_mask(lengths, time)
        # In a sentence without words all keys are allowed, so that the result is finite.
        mask = (allowed | ~allowed.any(-1, keepdim=True))[:, None, None, :]
        if not with_weights:
            context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            return context.transpose(1, 2).flatten(2), None
        scores = query @ key.transpose(-1, -2) / self.head_dim**0.5
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        return (weights @ value).transpose(1, 2).flatten(2), weights

    def attend_in_windows(self, states: Tensor, lengths: Tensor, with_weights: bool) -> tuple[Tensor, Tensor | None]:
        """Attend window by window; each word's context comes from its home window."""
        batch, time, _ = states.shape
        step = self.window - self.overlap
        position = torch.arange(time, device=lengths.device)
        home = home_window(position, lengths.unsqueeze(1), self.window, self.overlap)  # (B, T)
        contexts, weights = states.new_zeros(batch, time, self.output_size), None
        if with_weights:
            weights = states.new_zeros(batch, self.num_heads, time, time)
        for number in range(-(-(time - self.overlap) // step)):
            start = number * step
            window = slice(start, start + self.window)
            context, local = self.attend_to_all(states[:, window], (lengths - start).clamp(min=0), with_weights)
            at_home = (home[:, window] == number).unsqueeze(2)
            contexts[:, window] = torch.where(at_home, context, contexts[:, window])
            if weights is not None and local is not None:
                rows = weights[:, :, window, window]
                rows.copy_(torch.where(at_home.unsqueeze(1), local, rows))
        return contexts, weights
