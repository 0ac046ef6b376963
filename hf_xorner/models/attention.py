"""Self-attention over a sentence, in overlapping windows where the sentence is long."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_tagger import SelfAttentionConfig


class HeadProjections(nn.Linear):
    """The linear maps of all heads: (…, input_size) → (…, heads · head_dim).

    Initial weights are Glorot-uniform, within ±`bound`, each head's matrix by itself or all as one.
    """

    def __init__(self, config: SelfAttentionConfig, input_size: int) -> None:
        size = config.num_attention_heads * config.attention_head_dim
        super().__init__(input_size, size, bias=False)
        fan_out = config.attention_head_dim if config.attention_initializer == "head" else size
        self.bound = (6 / (input_size + fan_out)) ** 0.5


class WindowedSelfAttention(nn.Module):
    """Multi-head self-attention of li2020: C_k = softmax(Q_k K_kᵀ / √d) V_k, no bias, projection, residual or norm.

    Windows start at 0, S, 2S, … with S = window - overlap, and a word attends within the window that holds it most
    centrally. The windows depend on a sentence's own length, never on its batch; sentences of up to one window are
    attended to as a whole.
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
        allowed = torch.arange(time, device=states.device) < lengths.unsqueeze(1)  # (B, T)
        context, weights = attend(query, key, value, allowed, with_weights)
        return context.transpose(1, 2).flatten(2), weights

    def attend_in_windows(self, states: Tensor, lengths: Tensor, with_weights: bool) -> tuple[Tensor, Tensor | None]:
        """Attend window by window, and take each word's context from the window that holds it most centrally."""
        batch, time, _ = states.shape
        step = self.window - self.overlap
        home = self.home_windows(lengths, time)  # (B, T)
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

    def home_windows(self, lengths: Tensor, time: int) -> Tensor:
        """The number of the window from which each word takes its context: lengths (B,) → (B, T)."""
        step = self.window - self.overlap
        last = (-((self.overlap - lengths) // step)).clamp(min=1) - 1  # Each sentence's own last window.
        position = torch.arange(time, device=lengths.device)
        home = ((position - self.overlap // 2) // step).clamp(min=0)
        return torch.minimum(home, last.unsqueeze(1))


def attend(
    query: Tensor, key: Tensor, value: Tensor, allowed: Tensor, with_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """Scaled dot-product attention over the allowed keys: allowed (B, T), the rest (B, heads, T, head_dim)."""
    # Without any word all keys are allowed, so that the result is finite.
    allowed = allowed | ~allowed.any(-1, keepdim=True)
    mask = allowed[:, None, None, :]
    if not with_weights:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask), None
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return weights @ value, weights
