"""The recurrence of an LSTM in both directions at once, over the words of a batch alone, never its padding."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Packing(NamedTuple):
    """The N words of a batch in the order in which a recurrence comes to them.

    Step by step, and within a step the sentences by length, longest first: the sentences still under way at a step are
    the first ones of the step before.
    """

    rows: Tensor  # (B,) the sentences, longest first
    sizes: list[int]  # sentences under way at each step
    words: Tensor  # (2, N) where a word stands in the flattened (B, T), for either direction
    before: Tensor  # (N - sentences,) the place of the word one step earlier, from the second step on

    @classmethod
    def of(cls, lengths: Tensor, time: int) -> Packing:
        """Pack right-padded sentences (B, T) of the given lengths (B,)."""
        rows = lengths.argsort(descending=True, stable=True)
        position = torch.arange(time, device=lengths.device)
        under_way = position.unsqueeze(1) < lengths[rows]  # (T, B)
        size = under_way.sum(1)
        step, rank = under_way.nonzero(as_tuple=True)
        row = rows[rank]
        words = torch.stack([row * time + step, row * time + lengths[row] - 1 - step])
        later = torch.arange(len(step), device=lengths.device)[step > 0]
        before = later - size[step[step > 0] - 1]
        return cls(rows, size[size > 0].tolist(), words, before)

    @classmethod
    def padded(cls, lengths: Tensor, time: int) -> Packing:
        """As `of`, with every sentence as long as the longest: nothing has to be known of the lengths beforehand.

        In the order of a direction, padding comes after all words, so it changes nothing for these.
        """
        rows = torch.arange(len(lengths), device=lengths.device)
        step = torch.arange(time, device=lengths.device)
        starts = rows.unsqueeze(1) * time
        words = torch.stack([starts + step, starts + reversed_order(lengths, time)])  # (2, B, T)
        before = torch.arange(max(time - 1, 0) * len(rows), device=lengths.device)
        return cls(rows, [len(rows)] * time, words.transpose(1, 2).flatten(1), before)

    def pack(self, values: Tensor) -> Tensor:
        """Bring (2, B, T, d) into packed order: (2, N, d)."""
        flat = values.flatten(1, 2)
        return torch.stack([flat[direction].index_select(0, self.words[direction]) for direction in range(2)])

    def unpack(self, packed: Tensor, batch: int, time: int) -> Tensor:
        """Bring (2, N, d) back into (2, B, T, d), with zeros for padding."""
        flat = packed.new_zeros(batch * time, packed.shape[-1])
        states = [flat.index_copy(0, self.words[direction], packed[direction]) for direction in range(2)]
        return torch.stack(states).unflatten(1, (batch, time))


def reversed_order(lengths: Tensor, time: int) -> Tensor:
    """Indices (B, T) that reverse every sentence within its own length and leave its padding where it is."""
    position = torch.arange(time, device=lengths.device)
    last = lengths.unsqueeze(1) - 1
    return torch.where(position <= last, last - position, position)


@torch.compiler.disable
def masked_recurrence(
    inputs: Tensor, lengths: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor, recurrent_mask: Tensor
) -> Tensor:
    """Step through sentences, each with a mask of its own on the recurrent h.

    Outside of compiled graphs, which would unroll it. The input products are one matrix product before the first step.

    Args:
        inputs: (2, B, T, d), right-padded.
        lengths: (B,).
        weight_ih: (2, 4H, d).
        weight_hh: (2, 4H, H).
        bias: (2, 4H).
        recurrent_mask: (2, B, H).

    Returns:
        (2, B, T, H), zeros for padding.
    """
    packing = (Packing.padded if inputs.is_meta else Packing.of)(lengths, inputs.shape[2])
    products = torch.baddbmm(bias.unsqueeze(1), packing.pack(inputs), weight_ih.transpose(1, 2))
    mask = recurrent_mask[:, packing.rows].to(products.dtype)
    hidden = _MaskedRecurrence.apply(products, weight_hh, mask, packing)
    return packing.unpack(hidden, *inputs.shape[1:3])


class _MaskedRecurrence(torch.autograd.Function):
    """h' = LSTM(products + U(m ⊙ h)) step by step, with a backward pass that keeps no graph through time."""

    @staticmethod
    def forward(ctx: Any, products: Tensor, weight_hh: Tensor, mask: Tensor, packing: Packing) -> Tensor:
        """Step from the first word to the last: products (2, N, 4H), weight_hh (2, 4H, H), mask (2, B, H)."""
        directions, words, gate_size = products.shape
        size = gate_size // 4
        gates = torch.empty_like(products)
        hidden, cells, squashed, masked = products.new_empty(4, directions, words, size).unbind(0)
        cell = previous = products.new_zeros(directions, len(packing.rows), size)
        recurrent = weight_hh.transpose(1, 2).contiguous()
        begin = 0
        for count in packing.sizes:
            here = slice(begin, begin + count)
            gate = torch.baddbmm(products[:, here], previous[:, :count], recurrent, out=gates[:, here])
            i, f, g, o = gate.chunk(4, -1)
            gate[..., : 2 * size].sigmoid_()
            g.tanh_()
            o.sigmoid_()
            cell = torch.mul(f, cell[:, :count], out=cells[:, here]).addcmul_(i, g)
            torch.tanh(cell, out=squashed[:, here])
            torch.mul(o, squashed[:, here], out=hidden[:, here])
            previous = torch.mul(hidden[:, here], mask[:, :count], out=masked[:, here])
            begin += count
        ctx.save_for_backward(gates, cells, squashed, masked, weight_hh, mask)
        ctx.packing = packing
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Step back; what does not depend on the order of the steps is computed for all of them at once."""
        gates, cells, squashed, masked, weight_hh, mask = ctx.saved_tensors
        packing: Packing = ctx.packing
        (grad_hidden,) = gradients
        directions, words, gate_size = gates.shape
        size = gate_size // 4
        i, f, g, o = gates.chunk(4, -1)
        first = words - len(packing.before)  # words of the first step, which nothing comes before
        cell_before = torch.cat([torch.zeros_like(cells[:, :first]), cells.index_select(1, packing.before)], 1)
        # How the pre-activations of i, f, g move with c, that of o with h, and c with h.
        cell_to_gates = torch.stack([g * i * (1 - i), cell_before * f * (1 - f), i * (1 - g * g)], 2)
        hidden_to_output = squashed * o * (1 - o)
        hidden_to_cell = o * (1 - squashed * squashed)
        grad_gates = torch.empty_like(gates)
        by_gate = grad_gates.view(directions, words, 4, size)
        grad_hidden = grad_hidden.clone()
        grad_cell = gates.new_zeros(directions, 0, size)
        grad_previous = grad_cell
        end = words
        for count in reversed(packing.sizes):
            here, later = slice(end - count, end), grad_cell.shape[1]
            grad_state = grad_hidden[:, here]
            grad_state[:, :later].addcmul_(grad_previous, mask[:, :later])
            grad_now = grad_state * hidden_to_cell[:, here]
            grad_now[:, :later] += grad_cell
            torch.mul(cell_to_gates[:, here], grad_now.unsqueeze(2), out=by_gate[:, here, :3])
            torch.mul(grad_state, hidden_to_output[:, here], out=by_gate[:, here, 3])
            grad_cell = grad_now * f[:, here]
            grad_previous = torch.bmm(grad_gates[:, here], weight_hh)
            end -= count
        earlier = masked.index_select(1, packing.before)
        return grad_gates, torch.bmm(grad_gates[:, first:].transpose(1, 2), earlier), None, None
