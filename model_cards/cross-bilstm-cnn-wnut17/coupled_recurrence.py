"""The recurrence of lample2016's LSTM, with coupled gates and full peepholes, in both directions at once."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .recurrence import Packing


@torch.compiler.disable
def coupled_recurrence(
    inputs: Tensor,
    lengths: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    weight_ch: Tensor,
    bias: Tensor,
    start: Tensor,
) -> Tensor:
    """Step through sentences; outside of compiled graphs, which would unroll it.

    The input products are one matrix product before the first step. On a CPU words alone are stepped through. A GPU
    steps through padding as well: to learn which words there are, it would wait for the host.

    Args:
        inputs: (2, B, T, d), right-padded.
        lengths: (B,).
        weight_ih: (2, 3H, d), the gates in the order i, c, o.
        weight_hh: (2, 3H, H).
        weight_ch: (2, 2H, H), the peepholes of i and o.
        bias: (2, 3H).
        start: (2, 2, H), h and c of either direction before the first word.

    Returns:
        (2, B, T, H); what stands beyond a sentence's end means nothing.
    """
    words_alone = inputs.device.type == "cpu" and not torch.compiler.is_compiling()
    packing = (Packing.of if words_alone else Packing.padded)(lengths, inputs.shape[2])
    products = torch.baddbmm(bias.unsqueeze(1), packing.pack(inputs), weight_ih.transpose(1, 2))
    sentences = packing.sizes[0] if packing.sizes else 0
    starts = start.unsqueeze(2).expand(-1, -1, sentences, -1)
    if torch.compiler.is_compiling():
        hidden = unrolled(products, weight_hh, weight_ch, starts, packing)
    else:
        hidden = _CoupledRecurrence.apply(products, weight_hh, weight_ch, starts, packing)
    return packing.unpack(hidden, *inputs.shape[1:3])


def unrolled(products: Tensor, weight_hh: Tensor, weight_ch: Tensor, starts: Tensor, packing: Packing) -> Tensor:
    """What `_CoupledRecurrence` computes, for programs that are exported: one operation after another."""
    h, c = starts.unbind(1)
    w_i, w_o = weight_ch.transpose(1, 2).chunk(2, -1)
    hidden = []
    for product in products.split(packing.sizes, 1):
        i, g, o = torch.baddbmm(product, h, weight_hh.transpose(1, 2)).chunk(3, -1)
        c = torch.lerp(c, g.tanh(), torch.baddbmm(i, c, w_i).sigmoid())
        h = torch.baddbmm(o, c, w_o).sigmoid() * c.tanh()
        hidden.append(h)
    return torch.cat(hidden, 1)


class _CoupledRecurrence(torch.autograd.Function):
    """The states of all words, with a backward pass that keeps no graph through time.

    Arrays of states hold the S starts of the sentences first and the N words in packed order after them, so that what
    comes before a word is always one of their rows.
    """

    @staticmethod
    def forward(
        ctx: Any, products: Tensor, weight_hh: Tensor, weight_ch: Tensor, starts: Tensor, packing: Packing
    ) -> Tensor:
        """Step from the first word to the last: products (2, N, 3H), starts (2, 2, S, H)."""
        directions, words, gate_size = products.shape
        size, sentences = gate_size // 3, starts.shape[2]
        gates = torch.empty_like(products)
        squashed = products.new_empty(directions, words, size)
        hidden, cells = products.new_empty(2, directions, sentences + words, size).unbind(0)
        hidden[:, :sentences], cells[:, :sentences] = starts.unbind(1)
        previous, cell = hidden[:, :sentences], cells[:, :sentences]
        recurrent, peephole = (weight.transpose(1, 2).contiguous() for weight in (weight_hh, weight_ch))
        peeped = torch.bmm(cell, peephole)  # What c adds to the i of the next step and to the o of its own.
        begin = 0
        for count in packing.sizes:
            here = slice(begin, begin + count)
            there = slice(sentences + begin, sentences + begin + count)
            gate = torch.baddbmm(products[:, here], previous[:, :count], recurrent, out=gates[:, here])
            i, g, o = gate.chunk(3, -1)
            i.add_(peeped[:, :count, :size]).sigmoid_()
            g.tanh_()
            cell = torch.lerp(cell[:, :count], g, i, out=cells[:, there])
            peeped = torch.bmm(cell, peephole)
            o.add_(peeped[..., size:]).sigmoid_()
            torch.tanh(cell, out=squashed[:, here])
            previous = torch.mul(o, squashed[:, here], out=hidden[:, there])
            begin += count
        ctx.save_for_backward(gates, squashed, hidden, cells, weight_hh, weight_ch)
        ctx.packing = packing
        return hidden[:, sentences:].contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        """Step back; what does not depend on the order of the steps is computed for all of them at once."""
        gates, squashed, hidden, cells, weight_hh, weight_ch = ctx.saved_tensors
        packing: Packing = ctx.packing
        directions, words, gate_size = gates.shape
        size, sentences = gate_size // 3, hidden.shape[1] - words
        i, g, o = gates.chunk(3, -1)
        first = torch.arange(sentences, device=gates.device)
        before = torch.cat([first, sentences + packing.before])  # the row of the state before each word
        # How the pre-activations of i and c move with c', that of o with h', and c' with h'.
        cell_to_gates = torch.stack([(g - cells.index_select(1, before)) * i * (1 - i), i * (1 - g * g)], 2)
        hidden_to_output = squashed * o * (1 - o)
        hidden_to_cell = o * (1 - squashed * squashed)
        kept = 1 - i
        grad_gates = torch.empty_like(gates)
        by_gate = grad_gates.view(directions, words, 3, size)
        # Of what each c adds to the i of the next step and to the o of its own.
        grad_peeped = gates.new_zeros(directions, sentences + words, 2 * size)
        grad_hidden = gradients[0].clone()
        grad_cell = grad_previous = gates.new_zeros(directions, 0, size)
        end = words
        sizes = [sentences, *packing.sizes]
        for count_before, count in reversed(list(itertools.pairwise(sizes))):
            here, later = slice(end - count, end), grad_cell.shape[1]
            there = slice(sentences + end - count, sentences + end)
            grad_state = grad_hidden[:, here]
            grad_state[:, :later] += grad_previous
            torch.mul(grad_state, hidden_to_output[:, here], out=by_gate[:, here, 2])
            grad_peeped[:, there, size:] = by_gate[:, here, 2]
            grad_now = torch.bmm(grad_peeped[:, there], weight_ch)
            grad_now.addcmul_(grad_state, hidden_to_cell[:, here])
            grad_now[:, :later] += grad_cell
            torch.mul(cell_to_gates[:, here], grad_now.unsqueeze(2), out=by_gate[:, here, :2])
            end -= count
            row = sentences + end - count_before
            grad_peeped[:, row : row + count, :size] = by_gate[:, here, 0]
            grad_cell = grad_now * kept[:, here]
            grad_previous = torch.bmm(grad_gates[:, here], weight_hh)
        grad_cell = grad_cell + torch.bmm(grad_peeped[:, :sentences], weight_ch)
        return (
            grad_gates,
            torch.bmm(grad_gates.transpose(1, 2), hidden.index_select(1, before)),
            torch.bmm(grad_peeped.transpose(1, 2), cells),
            torch.stack([grad_previous, grad_cell], 1),
            None,
        )
