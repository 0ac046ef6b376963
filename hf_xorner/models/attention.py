"""Self-attention over a sentence, in overlapping windows where the sentence is long."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_tagger import SelfAttentionConfig


class HeadProjections(nn.Module):
    """The linear maps of all heads, without bias: (…, input_size) → (…, heads · head_dim)."""

    def __init__(self, config: SelfAttentionConfig, input_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.num_attention_heads * config.attention_head_dim, input_size))
        self.fan_out = config.attention_head_dim if config.attention_initializer == "head" else len(self.weight)
        self.reset_parameters()  # as `nn.Linear`, which was here, so that a seed gives the weights that it gave

    def reset_parameters(self) -> None:
        """Glorot-uniform weights, each head's matrix apart or not."""
        bound = (6 / (self.weight.shape[1] + self.fan_out)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, states: Tensor) -> Tensor:
        """Project states (…, input_size)."""
        return F.linear(states, self.weight)


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
        batch, time, _ = states.shape
        split = (batch, time, self.num_heads, self.head_dim)
        query, key, value = (
            project(states).view(split).transpose(1, 2) for project in (self.query, self.key, self.value)
        )  # (B, heads, T, head_dim)
        if time <= self.window:
            allowed = torch.arange(time, device=states.device) < lengths.unsqueeze(1)  # (B, T)
            context, weights = attend(query, key, value, allowed, with_weights)
        else:
            context, weights = self.attend_in_windows(query, key, value, lengths, with_weights)
        return context.transpose(1, 2).flatten(2), weights

    def attend_in_windows(
        self, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, with_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Attend window by window, and take each word's context from the window that holds it most centrally."""
        time, step = query.shape[2], self.window - self.overlap
        count = -(-(time - self.overlap) // step)
        padded = (count - 1) * step + self.window
        query, key, value = (F.pad(states, (0, 0, 0, padded - time)) for states in (query, key, value))
        results = []
        for start in range(0, count * step, step):
            q, k, v = (states[:, :, start : start + self.window] for states in (query, key, value))
            allowed = torch.arange(start, start + self.window, device=lengths.device) < lengths.unsqueeze(1)
            results.append(attend(q, k, v, allowed, with_weights))
        home = self.home_windows(lengths, time)  # (B, T)
        sentence = torch.arange(len(home), device=home.device).unsqueeze(1)
        # Padding may lie beyond its sentence's last window; its context is arbitrary.
        within = (torch.arange(time, device=home.device) - home * step).clamp(max=self.window - 1)
        context = torch.stack([context for context, _ in results], 1)  # (B, windows, heads, window, head_dim)
        context = context[sentence, home, :, within].transpose(1, 2)
        if not with_weights:
            return context, None
        local = torch.stack([weights for _, weights in results if weights is not None], 1)
        local = local[sentence, home, :, within]  # (B, T, heads, window)
        columns = (home * step).unsqueeze(-1) + torch.arange(self.window, device=home.device)
        weights = local.new_zeros(*local.shape[:3], padded).scatter(3, columns.unsqueeze(2).expand_as(local), local)
        return context, weights[..., :time].transpose(1, 2)

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
