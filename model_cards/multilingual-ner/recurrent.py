"""Bidirectional recurrent layers: plain, LSTM, coupled LSTM."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import initialization as init
from transformers.utils.generic import maybe_autocast

from .layers import cheap_to_read, length_mask

#: Words whose products are in memory at a time, in inference.
WORDS_IN_BLOCK = 1 << 14


class Packing(NamedTuple):
    """The N words of a batch in the order in which a recurrence reads them, as in PyTorch's PackedSequence.

    Words are ordered by step, and within a step by the length of their sentence, longest first. So the sentences that
    have a next step are the first ones.
    """

    rows: Tensor  # (B,) the sentences, longest first
    sizes: list[int]  # sentences under way at each step
    words: Tensor  # (2, N) index of a word in the flattened (B, T), for either direction
    before: Tensor  # (N - sentences,) index of the word one step earlier, from the second step on

    @classmethod
    def of(cls, lengths: Tensor, time: int) -> Packing:
        """Pack right-padded sentences (B, T) of the given lengths (B,)."""
        rows = lengths.argsort(descending=True, stable=True)
        under_way = length_mask(lengths[rows], time).t()  # (T, B)
        size = under_way.sum(1)
        step, rank = under_way.nonzero(as_tuple=True)
        row = rows[rank]
        words = torch.stack([row * time + step, row * time + lengths[row] - 1 - step])
        later = torch.arange(len(step), device=lengths.device)[step > 0]
        before = later - size[step[step > 0] - 1]
        return cls(rows, size[size > 0].tolist(), words, before)

    @classmethod
    def for_device(cls, lengths: Tensor, time: int) -> Packing:
        """`of`, or `padded` where lengths are not readable."""
        return (cls.of if cheap_to_read(lengths) else cls.padded)(lengths, time)

    @classmethod
    def padded(cls, lengths: Tensor, time: int) -> Packing:
        """Pack the padding as well, so that shapes do not depend on the lengths.

        Padding comes after the words in both directions and does not affect them.
        """
        rows = torch.arange(len(lengths), device=lengths.device)
        step = torch.arange(time, device=lengths.device)
        starts = rows.unsqueeze(1) * time
        words = torch.stack([starts + step, starts + reversed_order(lengths, time)])  # (2, B, T)
        before = torch.arange(max(time - 1, 0) * len(rows), device=lengths.device)
        return cls(rows, [len(rows)] * time, words.transpose(1, 2).flatten(1), before)

    def blocks(self) -> Iterator[tuple[list[int], Tensor]]:
        """Yield consecutive steps, their sizes and `words` (2, n), of about WORDS_IN_BLOCK words."""
        first = begin = 0
        while first < len(self.sizes):
            steps = self.sizes[first : first + max(1, WORDS_IN_BLOCK // self.sizes[first])]
            end = begin + sum(steps)
            yield steps, self.words[:, begin:end]
            first, begin = first + len(steps), end

    def pack(self, values: Tensor) -> Tensor:
        """Bring (2, B, T, d) into packed order: (2, N, d)."""
        flat = values.flatten(1, 2)
        return torch.stack([flat[direction].index_select(0, self.words[direction]) for direction in range(2)])

    def unpack(self, packed: Tensor, batch: int, time: int) -> Tensor:
        """Bring (2, N, d) back into (2, B, T, d), with zeros for padding."""
        rows = (2 * self.words + torch.arange(2, device=packed.device).unsqueeze(1)).flatten()
        flat = packed.new_zeros(2 * batch * time, packed.shape[-1]).index_copy(0, rows, packed.flatten(0, 1))
        return flat.unflatten(0, (batch, time, 2)).permute(2, 0, 1, 3)  # so that `concatenated` makes no copy


#: The h and c of sentences under way, (D, sentences, H) each; of a plain recurrent layer, twice h.
RecurrentStates = tuple[Tensor, Tensor]


class DistinctWords(NamedTuple):
    """The words of a batch as rows of a table of distinct words."""

    table: Tensor  # (D, 2 · gates · H), their `word_products`
    rows: Tensor  # (B, T) rows of the table


def concatenated(states: Tensor) -> Tensor:
    """[H→ ; H←] of the states of both directions: (2, B, T, H) → (B, T, 2H)."""
    return states.permute(1, 2, 0, 3).flatten(2)  # a copy unless they lie so in memory


def both_directions(features: Tensor | DistinctWords) -> Tensor | DistinctWords:
    """Features (B, T, d) as the input of either direction, (2, B, T, d)."""
    return features if isinstance(features, DistinctWords) else features.expand(2, -1, -1, -1)


def reversed_order(lengths: Tensor, time: int) -> Tensor:
    """Indices (B, T) that reverse the words of every sentence, and its padding; twice, they restore the order."""
    return (lengths.unsqueeze(1) + torch.arange(-1, -time - 1, -1, device=lengths.device)) % time


class _PackedRecurrence(torch.autograd.Function):
    """h' = LSTM(products + U(m ⊙ h)) step by step, with a backward pass that keeps no graph through time."""

    @staticmethod
    def forward(ctx: Any, products: Tensor, weight_hh: Tensor, mask: Tensor | None, packing: Packing) -> Tensor:
        """Step from the first word to the last: products (2, N, 4H), weight_hh (2, 4H, H), mask (2, B, H) if any."""
        directions, words, gate_size = products.shape
        size = gate_size // 4
        hidden, cells, squashed = products.new_empty(3, directions, words, size).unbind(0)
        masked = hidden if mask is None else torch.empty_like(hidden)
        gates, recurrent = products.clone(), weight_hh.transpose(1, 2).clone(memory_format=torch.contiguous_format)
        for values in (gates, recurrent):
            values[..., 2 * size : 3 * size] *= 2
        cell, previous = products.new_zeros(directions, len(packing.rows), size), None
        steps = (values.split(packing.sizes, 1) for values in (gates, cells, squashed, hidden, masked))
        for gate, new_cell, squash, state, masked_state in zip(*steps, strict=True):
            count = gate.shape[1]
            if previous is not None:
                gate.baddbmm_(previous[:, :count], recurrent)
            previous = lstm_step(gate, cell[:, :count], new_cell, squash, state)
            cell = new_cell
            if mask is not None:
                previous = torch.mul(state, mask[:, :count], out=masked_state)
        for values in (gates[..., 2 * size : 3 * size], squashed):
            values.mul_(2).sub_(1)
        ctx.save_for_backward(gates, cells, squashed, masked, weight_hh, mask)
        ctx.packing = packing
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Step from the last word to the first; terms that need no recurrence are computed for all words at once."""
        gates, cells, squashed, masked, weight_hh, mask = ctx.saved_tensors
        packing: Packing = ctx.packing
        directions, words, gate_size = gates.shape
        size = gate_size // 4
        i, f, g, o = gates.chunk(4, -1)
        first = words - len(packing.before)  # words of the first step
        cell_before = torch.cat([torch.zeros_like(cells[:, :first]), cells.index_select(1, packing.before)], 1)
        # Derivatives of c by the pre-activations of i, f, g, and of h by that of o and by c.
        cell_to_gates = torch.stack([g * i * (1 - i), cell_before * f * (1 - f), i * (1 - g * g)], 2)
        hidden_to_output = squashed * o * (1 - o)
        hidden_to_cell = o * (1 - squashed * squashed)
        grad_gates = torch.empty_like(gates)
        grad_cell = grad_previous = gates.new_zeros(directions, 0, size)
        grad_states = gradients[0].clone()
        by_step = (grad_states, hidden_to_cell, hidden_to_output, cell_to_gates, f, grad_gates)
        steps = [values.split(packing.sizes, 1) for values in by_step]
        for grad_state, to_cell, to_output, to_gates, forget, grad_gate in zip(*map(reversed, steps), strict=True):
            later = grad_cell.shape[1]
            grad_state[:, :later] += grad_previous if mask is None else grad_previous * mask[:, :later]
            grad_now = grad_state * to_cell
            grad_now[:, :later] += grad_cell
            by_gate = grad_gate.unflatten(2, (4, size))
            torch.mul(to_gates, grad_now.unsqueeze(2), out=by_gate[:, :, :3])
            torch.mul(grad_state, to_output, out=by_gate[:, :, 3])
            grad_cell = grad_now * forget
            grad_previous = torch.bmm(grad_gate, weight_hh)
        earlier = masked.index_select(1, packing.before)
        return grad_gates, torch.bmm(grad_gates[:, first:].transpose(1, 2), earlier), None, None


def coupled_states(products: Tensor, weight_hh: Tensor, weight_ch: Tensor, start: Tensor, packing: Packing) -> Tensor:
    """The states (D, N, H) of D coupled LSTMs in packed order.

    Args:
        products: Input products (D, N, 3H) in this order; the gates are i, c, o.
        weight_hh: (D, 3H, H).
        weight_ch: (D, 2H, H), the peepholes of i and o.
        start: (D, 2, H), h and c before the first word.
        packing: The packed order.
    """
    sentences = packing.sizes[0] if packing.sizes else 0
    starts = start.unsqueeze(2).expand(-1, -1, sentences, -1)
    return _CoupledRecurrence.apply(products, weight_hh, weight_ch, starts, packing)


def lstm_states(
    products: Tensor, weight_hh: Tensor, sizes: list[int], states: RecurrentStates | None
) -> tuple[Tensor, RecurrentStates]:
    """The states of D standard LSTMs after each of some steps.

    Args:
        products: Input products of these steps' words, (D, N, 4H) in packed order and at least float32; overwritten.
        weight_hh: (D, 4H, H).
        sizes: Sentences under way at each step.
        states: The states before the first of the steps; None for zeros.

    Returns:
        All h, (D, N, H), and the states after the last step.
    """
    directions, words, gate_size = products.shape
    size = gate_size // 4
    recurrent = weight_hh.transpose(1, 2).clone(memory_format=torch.contiguous_format)
    for values in (products, recurrent):
        values[..., 2 * size : 3 * size] *= 2
    hidden = products.new_empty(directions, words, size)
    previous, cells = states if states is not None else (None, products.new_zeros(directions, sizes[0], size))
    gates, squashed = products.new_empty(directions, sizes[0], gate_size), torch.empty_like(cells[:, : sizes[0]])
    for product, state in zip(products.split(sizes, 1), hidden.split(sizes, 1), strict=True):
        count = state.shape[1]
        gate, cell, squash = gates[:, :count], cells[:, :count], squashed[:, :count]
        if previous is None:
            gate.copy_(product)
        else:
            torch.baddbmm(product, previous[:, :count], recurrent, out=gate)
        previous = lstm_step(gate, cell, cell, squash, state)
    return hidden, (hidden[:, words - sizes[-1] :], cells)


def lstm_step(gates: Tensor, cell: Tensor, new_cell: Tensor, squashed: Tensor, hidden: Tensor) -> Tensor:
    """Compute one step of D LSTMs in place, in the gates and the last three arguments; return h.

    PyTorch's tanh takes three times as long as its sigmoid on a CPU: tanh(x) = 2 σ(2x) − 1. In less than float32, the
    subtraction would lose digits.

    Args:
        gates: (D, n, 4H) before their activations, those of g doubled; i, f, o and (g + 1) / 2 after the call.
        cell: The previous c, (D, n, H).
        new_cell: The new c; it may be `cell`.
        squashed: (tanh(c) + 1) / 2.
        hidden: The new h.
    """
    i, f, g, o = gates.sigmoid_().chunk(4, -1)
    torch.mul(f, cell, out=new_cell).sub_(i).addcmul_(i, g, value=2)
    torch.mul(new_cell, 2, out=squashed).sigmoid_()
    return torch.mul(o, squashed, out=hidden).mul_(2).sub_(o)


def lstm_cell(gates: Tensor, c: Tensor, peepholes: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The new h and c of D LSTMs, from the gates' products (D, N, gates · H) of x and h and the previous c (D, N, H).

    A standard LSTM has the gates i, f, g, o. With peepholes of i and o, (D, H, 2H), it is the coupled LSTM of
    `CoupledBiLstmLayer`, with the gates i, c, o.
    """
    size = c.shape[-1]
    if peepholes is None:
        i, f, _, o = gates.sigmoid().chunk(4, -1)
        c = torch.addcmul(f * c, i, gates[..., 2 * size : 3 * size].tanh())
        return o * c.tanh(), c
    i, g, o = gates.chunk(3, -1)
    c = torch.lerp(c, g.tanh(), torch.baddbmm(i, c, peepholes[..., :size]).sigmoid())
    return torch.baddbmm(o, c, peepholes[..., size:]).sigmoid() * c.tanh(), c


def coupled_steps(
    products: Tensor, weight_hh: Tensor, weight_ch: Tensor, starts: Tensor, sizes: list[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Run D coupled LSTMs.

    Args:
        products: (D, N, 3H).
        weight_hh: (D, 3H, H).
        weight_ch: (D, 2H, H).
        starts: (D, 2, S, H), the h and c of the S sentences before the first step.
        sizes: Sentences under way at each step.

    Returns:
        Gates (D, N, 3H), tanh(c) (D, N, H), and all h and all c, (D, S + N, H) each, `starts` included.
    """
    directions, words, gate_size = products.shape
    size, sentences = gate_size // 3, starts.shape[2]
    gates = torch.empty_like(products)
    squashed = products.new_empty(directions, words, size)
    hidden, cells = products.new_empty(2, directions, sentences + words, size).unbind(0)
    hidden[:, :sentences], cells[:, :sentences] = starts.unbind(1)
    previous, cell = hidden[:, :sentences], cells[:, :sentences]
    recurrent, peephole = (weight.transpose(1, 2).contiguous() for weight in (weight_hh, weight_ch))
    peeped = torch.bmm(cell, peephole)  # products of c for i of the next step and for o of the same step
    begin = 0
    for count in sizes:
        word_rows = slice(begin, begin + count)
        state_rows = slice(sentences + begin, sentences + begin + count)
        gate = torch.baddbmm(products[:, word_rows], previous[:, :count], recurrent, out=gates[:, word_rows])
        i, g, o = gate.chunk(3, -1)
        i.add_(peeped[:, :count, :size]).sigmoid_()
        g.tanh_()
        cell = torch.lerp(cell[:, :count], g, i, out=cells[:, state_rows])
        peeped = torch.bmm(cell, peephole)
        o.add_(peeped[..., size:]).sigmoid_()
        torch.tanh(cell, out=squashed[:, word_rows])
        previous = torch.mul(o, squashed[:, word_rows], out=hidden[:, state_rows])
        begin += count
    return gates, squashed, hidden, cells


class _CoupledRecurrence(torch.autograd.Function):
    """The coupled LSTM over packed words, with a backward pass that keeps no graph through time.

    Arrays of states hold the S initial states of the sentences, then the N words in packed order.
    """

    @staticmethod
    def forward(
        ctx: Any, products: Tensor, weight_hh: Tensor, weight_ch: Tensor, starts: Tensor, packing: Packing
    ) -> Tensor:
        """Step from the first word to the last: products (D, N, 3H), starts (D, 2, S, H)."""
        gates, squashed, hidden, cells = coupled_steps(products, weight_hh, weight_ch, starts, packing.sizes)
        ctx.save_for_backward(gates, squashed, hidden, cells, weight_hh, weight_ch)
        ctx.packing = packing
        return hidden[:, starts.shape[2] :].contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        """Step from the last word to the first; terms that need no recurrence are computed for all words at once."""
        gates, squashed, hidden, cells, weight_hh, weight_ch = ctx.saved_tensors
        packing: Packing = ctx.packing
        directions, words, gate_size = gates.shape
        size, sentences = gate_size // 3, hidden.shape[1] - words
        i, g, o = gates.chunk(3, -1)
        first = torch.arange(sentences, device=gates.device)
        before = torch.cat([first, sentences + packing.before])  # the row of the state before each word
        # Derivatives of c' by the pre-activations of i and c, and of h' by that of o and by c'.
        cell_to_gates = torch.stack([(g - cells.index_select(1, before)) * i * (1 - i), i * (1 - g * g)], 2)
        hidden_to_output = squashed * o * (1 - o)
        hidden_to_cell = o * (1 - squashed * squashed)
        forget = 1 - i
        grad_gates = torch.empty_like(gates)
        by_gate = grad_gates.view(directions, words, 3, size)
        # Gradient by the two products of each c: for i of the next step and for o of the same step.
        grad_peeped = gates.new_zeros(directions, sentences + words, 2 * size)
        grad_hidden = gradients[0].clone()
        grad_cell = grad_previous = gates.new_zeros(directions, 0, size)
        end = words
        sizes = [sentences, *packing.sizes]
        for count_before, count in reversed(list(itertools.pairwise(sizes))):
            word_rows, later = slice(end - count, end), grad_cell.shape[1]
            state_rows = slice(sentences + end - count, sentences + end)
            grad_state = grad_hidden[:, word_rows]
            grad_state[:, :later] += grad_previous
            torch.mul(grad_state, hidden_to_output[:, word_rows], out=by_gate[:, word_rows, 2])
            grad_peeped[:, state_rows, size:] = by_gate[:, word_rows, 2]
            grad_now = torch.bmm(grad_peeped[:, state_rows], weight_ch)
            grad_now.addcmul_(grad_state, hidden_to_cell[:, word_rows])
            grad_now[:, :later] += grad_cell
            torch.mul(cell_to_gates[:, word_rows], grad_now.unsqueeze(2), out=by_gate[:, word_rows, :2])
            end -= count
            row = sentences + end - count_before
            grad_peeped[:, row : row + count, :size] = by_gate[:, word_rows, 0]
            grad_cell = grad_now * forget[:, word_rows]
            grad_previous = torch.bmm(grad_gates[:, word_rows], weight_hh)
        grad_cell = grad_cell + torch.bmm(grad_peeped[:, :sentences], weight_ch)
        return (
            grad_gates,
            torch.bmm(grad_gates.transpose(1, 2), hidden.index_select(1, before)),
            torch.bmm(grad_peeped.transpose(1, 2), cells),
            torch.stack([grad_previous, grad_cell], 1),
            None,
        )


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
        """Glorot-uniform weights and zero biases; `gates_apart` draws gate by gate (ma2016, lample2016's program)."""
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

    def products(self, inputs: Tensor) -> Tensor:
        """Input products W x + b of the gates: inputs (2, N, d) → (2, N, gates · H)."""
        return torch.baddbmm(self.bias.unsqueeze(1), inputs, self.weight_ih.transpose(1, 2))

    def step(self, products: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """One step of an LSTM from the `products` of its inputs and the previous states (2, N, H)."""
        return lstm_cell(torch.baddbmm(products, h, self.weight_hh.transpose(1, 2)), c, self.peepholes())

    def peepholes(self) -> Tensor | None:
        """The peepholes (2, H, 2H) of i and o in coupled cells."""
        return None

    def word_products(self, features: Tensor) -> Tensor:
        """Input products of the gates of both directions, for distinct words: (D, d) → (D, 2 · gates · H)."""
        return torch.addmm(self.bias.flatten(), features.to(self.bias.dtype), self.weight_ih.flatten(0, 1).t())

    def states_of_products(
        self, products: Tensor, sizes: list[int], states: RecurrentStates | None
    ) -> tuple[Tensor, RecurrentStates]:
        """Run some steps, for inference.

        Args:
            products: Input products (2, N, gates · H) in packed order; overwritten.
            sizes: Sentences under way at each step.
            states: The states before the first of these steps; None at the start of the sentences.

        Returns:
            All h of these steps, (2, N, H), and the states after the last.
        """
        raise NotImplementedError

    def forward(self, inputs: Tensor | DistinctWords, lengths: Tensor, recurrent_mask: Tensor | None = None) -> Tensor:
        """Run both directions over right-padded sentences.

        Args:
            inputs: (2, B, T, d), the input of either direction; or, for inference on a CPU, distinct words.
            lengths: (B,), words of each sentence.
            recurrent_mask: (2, B, H), dropout masks of the recurrent h; (2, 1, H) if the batch shares one. For
                standard LSTMs only.

        Returns:
            (2, B, T, H), the states in the order of the words; arbitrary beyond a sentence's end.
        """
        with maybe_autocast(lengths.device.type, enabled=False):
            if isinstance(inputs, DistinctWords):
                return self.run_in_blocks(inputs, lengths)
            return self.run(inputs.to(self.weight_ih.dtype), lengths, recurrent_mask)

    def run_in_blocks(self, inputs: DistinctWords, lengths: Tensor) -> Tensor:
        """`forward` for inference, some steps at a time; padding is not computed."""
        batch, time = inputs.rows.shape
        packing = Packing.of(lengths, time)
        both = self.bias.new_zeros(batch * time, 2, self.hidden_size)
        states = None
        for sizes, words in packing.blocks():
            halves = zip(inputs.table.chunk(2, 1), inputs.rows.flatten()[words], strict=True)
            products = torch.stack([table.index_select(0, rows) for table, rows in halves])
            block, states = self.states_of_products(products, sizes, states)
            for direction in range(2):
                both[:, direction].index_copy_(0, words[direction], block[direction])
        return both.unflatten(0, (batch, time)).permute(2, 0, 1, 3)

    def run(self, inputs: Tensor, lengths: Tensor, recurrent_mask: Tensor | None) -> Tensor:
        """`forward` in the dtype of the weights, by the backend's fused kernel."""
        # A mask common to the batch is multiplied into the weights: U(m ⊙ h) = (U diag(m)) h.
        weight_hh = self.weight_hh if recurrent_mask is None else self.weight_hh * recurrent_mask
        no_bias = torch.zeros_like(self.bias[0])
        weights = [[self.weight_ih[d], weight_hh[d], self.bias[d], no_bias] for d in range(2)]
        _, batch, time, _ = inputs.shape
        sentences = torch.arange(0, batch * time, time, device=lengths.device).unsqueeze(1)
        words = (sentences + reversed_order(lengths, time)).flatten()  # which word direction 1 reads at each step
        backwards = inputs[1].flatten(0, 1).index_select(0, words).unflatten(0, (batch, time))
        states = fused_recurrence(backwards, weights[1]).flatten(0, 1).index_select(0, words)  # in order again
        return torch.stack([fused_recurrence(inputs[0], weights[0]), states.unflatten(0, (batch, time))])


class BiRnnLayer(BiLayer):
    """A plain recurrent layer, as in ma2016's BRNN: h' = tanh(W x + U h + b) from h = 0."""

    gates = 1


class BiLstmLayer(BiLayer):
    """A standard LSTM layer; gates in the order i, f, g, o.

    i, f, o = σ(·), g = tanh(·), c' = f ⊙ c + i ⊙ g, h' = o ⊙ tanh(c'), all states zero at the start.
    """

    gates = 4

    def reset_parameters(self) -> None:
        """As in the base class, with forget bias 1 (ma2016, li2020's program)."""
        super().reset_parameters()
        bias = torch.zeros_like(self.bias)
        bias[:, self.hidden_size : 2 * self.hidden_size] = 1
        init.copy_(self.bias, bias)  # unless it was loaded; `init` does not see that of a slice

    def states_of_products(
        self, products: Tensor, sizes: list[int], states: RecurrentStates | None
    ) -> tuple[Tensor, RecurrentStates]:
        """See `lstm_states`."""
        dtype = torch.promote_types(products.dtype, torch.float32)
        hidden, states = lstm_states(products.to(dtype), self.weight_hh.to(dtype), sizes, states)
        return hidden.to(products.dtype), states

    def run(self, inputs: Tensor, lengths: Tensor, recurrent_mask: Tensor | None) -> Tensor:
        """Run step by step if each sentence has its own mask or to skip padding on a CPU, else by the fused kernel."""
        own_masks = recurrent_mask is not None and recurrent_mask.shape[1] != 1
        if own_masks or (recurrent_mask is None and torch.is_grad_enabled() and cheap_to_read(lengths)):
            return self.run_packed(inputs, lengths, recurrent_mask)
        return super().run(inputs, lengths, recurrent_mask)

    @torch.compiler.disable
    def run_packed(self, inputs: Tensor, lengths: Tensor, recurrent_mask: Tensor | None) -> Tensor:
        """`run` step by step, without padding; excluded from compiled graphs, which would unroll it."""
        packing = Packing.for_device(lengths, inputs.shape[2])
        products = self.products(packing.pack(inputs))
        dtype = torch.promote_types(products.dtype, torch.float32)
        mask = None if recurrent_mask is None else recurrent_mask[:, packing.rows].to(dtype)
        hidden = _PackedRecurrence.apply(products.to(dtype), self.weight_hh.to(dtype), mask, packing)
        return packing.unpack(hidden.to(products.dtype), *inputs.shape[1:3])


class CoupledBiLstmLayer(BiLayer):
    """The LSTM layer of lample2016 (section 2.1): coupled gates, and peepholes with full matrices.

    i = σ(W_xi x + W_hi h + W_ci c + b_i), c' = (1 − i) ⊙ c + i ⊙ tanh(W_xc x + W_hc h + b_c),
    o = σ(W_xo x + W_ho h + W_co c' + b_o), h' = o ⊙ tanh(c'); gates in the order i, c, o, peepholes in the order i, o.

    The peephole of o reads the c that the peephole of i reads one step later, so a step takes two products, of h
    (H × 3H) and of c (H × 2H).
    """

    gates = 3

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.weight_ch = nn.Parameter(torch.empty(2, 2 * hidden_size, hidden_size))

    def reset_parameters(self) -> None:
        """As in the base class, for the peepholes as well."""
        super().reset_parameters()
        bound = self.glorot_bound(self.weight_ch)
        nn.init.uniform_(self.weight_ch, -bound, bound)

    def peepholes(self) -> Tensor:
        """The peepholes (2, H, 2H) of i and o."""
        return self.weight_ch.transpose(1, 2)

    def states_of_products(
        self, products: Tensor, sizes: list[int], states: RecurrentStates | None
    ) -> tuple[Tensor, RecurrentStates]:
        """See `coupled_steps`."""
        if states is None:
            starts = self.bias.new_zeros(2, 2, sizes[0], self.hidden_size)
        else:
            starts = torch.stack([values[:, : sizes[0]] for values in states], 1)
        _, _, hidden, cells = coupled_steps(products, self.weight_hh, self.weight_ch, starts, sizes)
        last_rows = slice(hidden.shape[1] - sizes[-1], None)
        return hidden[:, sizes[0] :], (hidden[:, last_rows], cells[:, last_rows])

    @torch.compiler.disable
    def run(self, inputs: Tensor, lengths: Tensor, recurrent_mask: Tensor | None) -> Tensor:
        """Step through the words; excluded from compiled graphs, which would unroll it."""
        packing = Packing.for_device(lengths, inputs.shape[2])
        products = self.products(packing.pack(inputs))
        start = products.new_zeros(2, 2, self.hidden_size)
        states = coupled_states(products, self.weight_hh, self.weight_ch, start, packing)
        return packing.unpack(states, *inputs.shape[1:3])


def build_layer(cell: str, input_size: int, hidden_size: int) -> BiLayer:
    """A layer of "rnn", "standard" (LSTM) or "coupled" (LSTM) cells."""
    classes = {"rnn": BiRnnLayer, "standard": BiLstmLayer, "coupled": CoupledBiLstmLayer}
    return classes[cell](input_size, hidden_size)


@torch.compiler.disable
def fused_recurrence(inputs: Tensor, weights: list[Tensor]) -> Tensor:
    """PyTorch's fused LSTM (four gates) or plain RNN (one gate), excluded from compiled graphs."""
    size = weights[1].shape[1]
    weights = in_one_chunk(weights) if inputs.is_cuda else weights
    start = inputs.new_zeros(1, len(inputs), size)
    training = torch.is_grad_enabled()  # cuDNN needs `train` for a backward pass.
    if len(weights[1]) == size:
        return torch.rnn_tanh(inputs, start, weights, True, 1, 0.0, training, False, True)[0]
    return torch.lstm(inputs, (start, start), weights, True, 1, 0.0, training, False, True)[0]


def in_one_chunk(weights: list[Tensor]) -> list[Tensor]:
    """The weights as parts of one tensor, matrices first: for cuDNN, which otherwise warns and copies them itself."""
    order = sorted(range(len(weights)), key=lambda number: -weights[number].dim())
    chunk = torch.cat([weights[number].flatten() for number in order])
    parts = chunk.split([weights[number].numel() for number in order])
    views = {number: part.view_as(weights[number]) for number, part in zip(order, parts, strict=True)}
    return [views[number] for number in range(len(weights))]
