"""Recurrent layers: both directions of an LSTM at once, with variational dropout on the recurrent state."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import initialization as init

from .recurrence import masked_recurrence


class BiLstmLayer(nn.Module):
    """One LSTM layer in both directions, each with its own input.

    Direction 0 runs from left to right, direction 1 from right to left; gates in the order i, f, g, o:
        i, f, o = σ(·), g = tanh(·), c' = f ⊙ c + i ⊙ g, h' = o ⊙ tanh(c'), all states zero at the start.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(2, 4 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(2, 4 * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(2, 4 * hidden_size))

    def reset_parameters(self) -> None:
        """Start as li2020's program does: Glorot-uniform, zero biases, forget bias 1."""
        # TensorFlow keeps [x ; h] -> gates as one matrix, and Glorot's range is that of the whole matrix.
        fan_in, fan_out = self.weight_ih.shape[2] + self.hidden_size, self.weight_ih.shape[1]
        bound = (6 / (fan_in + fan_out)) ** 0.5
        nn.init.uniform_(self.weight_ih, -bound, bound)
        nn.init.uniform_(self.weight_hh, -bound, bound)
        bias = torch.zeros_like(self.bias)
        bias[:, self.hidden_size : 2 * self.hidden_size] = 1
        init.copy_(self.bias, bias)  # Not if it was loaded; a slice of it would not know.

    def forward(self, inputs: Tensor, lengths: Tensor, recurrent_mask: Tensor | None = None) -> Tensor:
        """Run both directions over right-padded sentences.

        Args:
            inputs: (2, B, T, d), what either direction reads.
            lengths: (B,), words of each sentence.
            recurrent_mask: (2, B, H), what dropout leaves of the recurrent h; (2, 1, H) if one mask serves all.

        Returns:
            (2, B, T, H), the states in the order of the words; what stands beyond a sentence's end means nothing.
        """
        with torch.autocast(inputs.device.type, enabled=False):
            inputs = inputs.to(self.weight_ih.dtype)
            if recurrent_mask is not None and recurrent_mask.shape[1] > 1:
                return masked_recurrence(inputs, lengths, self.weight_ih, self.weight_hh, self.bias, recurrent_mask)
            return self.run_fused(inputs, lengths, recurrent_mask)

    def run_fused(self, inputs: Tensor, lengths: Tensor, recurrent_mask: Tensor | None) -> Tensor:
        """Let the backend's fused kernel do all steps; a mask common to the batch moves into the weights."""
        # U(m ⊙ h) = (U diag(m)) h.
        weight_hh = self.weight_hh if recurrent_mask is None else self.weight_hh * recurrent_mask
        no_bias = torch.zeros_like(self.bias[0])
        weights = [[self.weight_ih[d], weight_hh[d], self.bias[d], no_bias] for d in range(2)]
        _, batch, time, _ = inputs.shape
        row = torch.arange(batch, device=lengths.device).unsqueeze(1) * time
        words = (row + reversed_order(lengths, time)).flatten()  # which word direction 1 reads at each step
        backwards = inputs[1].flatten(0, 1).index_select(0, words).unflatten(0, (batch, time))
        states = fused_recurrence(backwards, weights[1]).flatten(0, 1)
        states = torch.zeros_like(states).index_copy(0, words, states).unflatten(0, (batch, time))
        return torch.stack([fused_recurrence(inputs[0], weights[0]), states])


def reversed_order(lengths: Tensor, time: int) -> Tensor:
    """Indices (B, T) that reverse every sentence within its own length and leave its padding where it is."""
    position = torch.arange(time, device=lengths.device)
    last = lengths.unsqueeze(1) - 1
    return torch.where(position <= last, last - position, position)


@torch.compiler.disable
def fused_recurrence(inputs: Tensor, weights: list[Tensor]) -> Tensor:
    """The backend's kernel for one direction, outside of compiled graphs, which would unroll it for every length."""
    start = inputs.new_zeros(1, len(inputs), weights[1].shape[1])
    return torch.lstm(inputs, (start, start), weights, True, 1, 0.0, False, False, True)[0]


class VariationalDropout(nn.Module):
    """Dropout masks that hold for all words of a sentence (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float, shared: bool = False) -> None:
        super().__init__()
        self.rate = rate
        self.shared = shared

    @property
    def active(self) -> bool:
        """Whether anything is dropped now."""
        return self.training and self.rate > 0

    def mask(self, like: Tensor, *shape: int) -> Tensor:
        """A mask of the shape (…, B, d): zeros, and elsewhere 1 / (1 - rate); (…, 1, d) if the batch shares it."""
        *leading, batch, size = shape
        keep = like.new_empty(*leading, 1 if self.shared else batch, size)
        return keep.bernoulli_(1 - self.rate).div_(1 - self.rate)

    def forward(self, values: Tensor) -> Tensor:
        """Drop features of (2, B, T, d), for either direction on its own and for all T words of a sentence alike."""
        if not self.active:
            return values
        directions, batch, _, size = values.shape
        return values * self.mask(values, directions, batch, size).unsqueeze(2)
