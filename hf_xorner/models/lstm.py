"""Recurrent layers of several cells, both directions at once, and variational dropout on the recurrent state."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.utils.generic import maybe_autocast

from .coupled_recurrence import coupled_recurrence
from .recurrence import masked_recurrence, reversed_order


class BiLayer(nn.Module):
    """One recurrent layer in both directions, each with its own input and weights.

    Direction 0 runs from left to right, direction 1 from right to left.
    """

    gates: ClassVar[int]

    def __init__(self, input_size: int, hidden_size: int, gates_apart: bool = True) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.gates_apart = gates_apart
        self.weight_ih = nn.Parameter(torch.empty(2, self.gates * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(2, self.gates * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(2, self.gates * hidden_size))

    def reset_parameters(self) -> None:
        """Start Glorot-uniform, each gate's matrices apart (ma2016, lample2016's program) or not; biases at zero."""
        for weight in (self.weight_ih, self.weight_hh):
            bound = self.glorot_bound(weight)
            nn.init.uniform_(weight, -bound, bound)
        nn.init.zeros_(self.bias)

    def glorot_bound(self, weight: Tensor) -> float:
        """√(6 / (fan in + fan out)) of a weight (2, gates · H, d)."""
        if self.gates_apart:
            return (6 / (weight.shape[2] + self.hidden_size)) ** 0.5
        # TensorFlow keeps [x ; h] -> gates as one matrix, and Glorot's range is that of the whole matrix (li2020).
        return (6 / (self.weight_ih.shape[2] + self.hidden_size + self.gates * self.hidden_size)) ** 0.5

    def forward(self, inputs: Tensor, lengths: Tensor, recurrent_mask: Tensor | None = None) -> Tensor:
        """Run both directions over right-padded sentences.

        Args:
            inputs: (2, B, T, d), what either direction reads.
            lengths: (B,), words of each sentence.
            recurrent_mask: (2, B, H), what dropout leaves of the recurrent h; (2, 1, H) if one mask serves all. For
                standard LSTMs alone.

        Returns:
            (2, B, T, H), the states in the order of the words; what stands beyond a sentence's end means nothing.
        """
        with maybe_autocast(inputs.device.type, enabled=False):
            return self.run(inputs.to(self.weight_ih.dtype), lengths, recurrent_mask)

    def run(self, inputs: Tensor, lengths: Tensor, recurrent_mask: Tensor | None) -> Tensor:
        """`forward` in the type of the weights: let the backend's fused kernel do all steps."""
        # A mask common to the batch moves into the weights: U(m ⊙ h) = (U diag(m)) h.
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


class BiRnnLayer(BiLayer):
    """A plain recurrent layer, as in ma2016's BRNN: h' = tanh(W x + U h + b) from h = 0."""

    gates = 1


class BiLstmLayer(BiLayer):
    """A standard LSTM layer; gates in the order i, f, g, o.

    i, f, o = σ(·), g = tanh(·), c' = f ⊙ c + i ⊙ g, h' = o ⊙ tanh(c'), all states zero at the start.
    """

    gates = 4

    def __init__(self, input_size: int, hidden_size: int, gates_apart: bool = False) -> None:
        super().__init__(input_size, hidden_size, gates_apart)

    def reset_parameters(self) -> None:
        """Start as every layer does, with forget bias 1 (ma2016, li2020's program)."""
        super().reset_parameters()
        bias = torch.zeros_like(self.bias)
        bias[:, self.hidden_size : 2 * self.hidden_size] = 1
        init.copy_(self.bias, bias)  # Not if it was loaded; a slice of it would not know.

    def run(self, inputs: Tensor, lengths: Tensor, recurrent_mask: Tensor | None) -> Tensor:
        """Step by step where every sentence has a mask of its own, by the fused kernel otherwise."""
        if recurrent_mask is not None and recurrent_mask.shape[1] > 1:
            return masked_recurrence(inputs, lengths, self.weight_ih, self.weight_hh, self.bias, recurrent_mask)
        return super().run(inputs, lengths, recurrent_mask)


class CoupledBiLstmLayer(BiLayer):
    """The LSTM layer of lample2016 (section 2.1): coupled gates and peepholes, whose matrices are full, as it writes.

    i = σ(W_xi x + W_hi h + W_ci c + b_i), c' = (1 − i) ⊙ c + i ⊙ tanh(W_xc x + W_hc h + b_c),
    o = σ(W_xo x + W_ho h + W_co c' + b_o), h' = o ⊙ tanh(c'); gates in the order i, c, o, peepholes in the order i, o.

    All products of x are one matrix product before the first step. The peephole of o reads the c that the peephole of i
    reads one step later, so a step takes two products, of h (H × 3H) and of c (H × 2H). Words alone are stepped
    through, never padding, and a backward pass written by hand keeps no graph through time (see `coupled_recurrence`).
    """

    gates = 3

    def __init__(self, input_size: int, hidden_size: int, learned_start: bool = False) -> None:
        super().__init__(input_size, hidden_size)
        self.weight_ch = nn.Parameter(torch.empty(2, 2 * hidden_size, hidden_size))
        # The h and c of either direction before the first word; zeros unless learned (lample2016's program).
        self.start = nn.Parameter(torch.empty(2, 2, hidden_size)) if learned_start else None

    def reset_parameters(self) -> None:
        """Start as every layer does, with states that start at zero."""
        super().reset_parameters()
        bound = self.glorot_bound(self.weight_ch)
        nn.init.uniform_(self.weight_ch, -bound, bound)
        if self.start is not None:
            nn.init.zeros_(self.start)

    def run(self, inputs: Tensor, lengths: Tensor, recurrent_mask: Tensor | None) -> Tensor:
        """Step through the words."""
        start = inputs.new_zeros(2, 2, self.hidden_size) if self.start is None else self.start
        return coupled_recurrence(inputs, lengths, self.weight_ih, self.weight_hh, self.weight_ch, self.bias, start)


def build_layer(cell: str, input_size: int, hidden_size: int, learned_start: bool = False) -> BiLayer:
    """A layer of "rnn", "standard" (LSTM) or "coupled" (LSTM) cells; only the last can learn where it starts."""
    if cell == "coupled":
        return CoupledBiLstmLayer(input_size, hidden_size, learned_start)
    if cell == "standard":
        return BiLstmLayer(input_size, hidden_size, gates_apart=True)
    return BiRnnLayer(input_size, hidden_size)


@torch.compiler.disable
def fused_recurrence(inputs: Tensor, weights: list[Tensor]) -> Tensor:
    """The backend's kernel for one direction, outside of compiled graphs, which would unroll it for every length.

    An LSTM where there are four gates, a plain network where there is one.
    """
    size = weights[1].shape[1]
    start = inputs.new_zeros(1, len(inputs), size)
    training = torch.is_grad_enabled()  # What is called training here is what a GPU needs to go backward.
    if len(weights[1]) == size:
        return torch.rnn_tanh(inputs, start, weights, True, 1, 0.0, training, False, True)[0]
    return torch.lstm(inputs, (start, start), weights, True, 1, 0.0, training, False, True)[0]


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
