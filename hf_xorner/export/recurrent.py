"""Recurrent layers as nodes of an ONNX graph (see `models/recurrent.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..models.recurrent import BiLayer, BiLstmLayer, BiRnnLayer, CoupledBiLstmLayer
from .graph import Graph, Value

#: The gates i, f, g, o of PyTorch in ONNX's order i, o, f, g.
_ONNX_GATES = [0, 3, 1, 2]


def add_recurrence(
    graph: Graph, layer: BiLayer, forward: Value, backward: Value, lengths: Value
) -> tuple[Value, Value]:
    """The states (T, B, H) of both directions, from the inputs (T, B, d) of each; arbitrary beyond a sentence's end."""
    if isinstance(layer, CoupledBiLstmLayer):
        return _add_coupled(graph, layer, forward, backward, lengths)
    if forward is backward:
        states = _add_fused(graph, layer, [0, 1], "bidirectional", forward, lengths)
        first, second = graph.split(states, 2, axis=1)
        return graph.squeeze(first, 1), graph.squeeze(second, 1)
    first = _add_fused(graph, layer, [0], "forward", forward, lengths)
    second = _add_fused(graph, layer, [1], "reverse", backward, lengths)
    return graph.squeeze(first, 1), graph.squeeze(second, 1)


def _add_fused(graph: Graph, layer: BiLayer, directions: list[int], mode: str, inputs: Value, lengths: Value) -> Value:
    """The states (T, directions, B, H) of a standard LSTM or a plain recurrent layer."""
    gates = _ONNX_GATES if isinstance(layer, BiLstmLayer) else [0]

    def ordered(weight: Tensor) -> Tensor:
        return weight[directions].unflatten(1, (len(gates), -1))[:, gates].flatten(1, 2)

    bias = torch.cat([ordered(layer.bias), torch.zeros_like(layer.bias[directions])], 1)
    operator = graph.RNN if isinstance(layer, BiRnnLayer) else graph.LSTM
    return operator(
        inputs,
        graph.weight(ordered(layer.weight_ih)),
        graph.weight(ordered(layer.weight_hh)),
        bias,
        graph.cast(lengths, "int32"),
        hidden_size=layer.hidden_size,
        direction=mode,
    )


def _add_coupled(
    graph: Graph, layer: CoupledBiLstmLayer, forward: Value, backward: Value, lengths: Value
) -> tuple[Value, Value]:
    """The states of a coupled LSTM, step by step."""
    both = graph.stack(forward, reversed_words(graph, backward, lengths), axis=1)  # (T, 2, B, d)
    products = both @ graph.weight(layer.weight_ih.mT) + layer.bias.unsqueeze(1)
    cells = Cells.of_layer(graph, layer)

    def step(h: Value, c: Value, product: Value) -> list[Value]:
        h, c = cells.push(product, [h, c])
        return [h, c, h]

    _, _, states = graph.scan(step, cells.start(graph.size(forward, 1)), [products])
    first, second = (graph.squeeze(part, 1) for part in graph.split(states, 2, axis=1))
    return first, reversed_words(graph, second, lengths)


def input_products(graph: Graph, layer: Any, table: Value) -> list[Value]:
    """The input products (N, gates · H) of a table (N, d), with the bias, for each direction of a layer."""
    pairs = zip(layer.weight_ih, layer.bias, strict=True)
    return [table @ graph.weight(weight.t()) + bias for weight, bias in pairs]


def reversed_words(graph: Graph, values: Value, lengths: Value) -> Value:
    """Values (T, B, …) with the words of each sentence reversed, padding last."""
    return graph.ReverseSequence(values, lengths, time_axis=0, batch_axis=1)


class Cells:
    """The cells of D parallel recurrences with several layers, each of which reads the states of the layer below.

    States are the h and c of the lowest layer, then of the layer above, and so on, (D, N, H) each.

    Args:
        graph: The graph.
        recurrent: The weight (D, gates · H, H) of h, for each layer.
        upward: The weight (D, gates · H, H) and the bias (D, gates · H) for the h below, for each layer but the lowest.
        peepholes: The weight (D, 2H, H) of c for i and o, for each layer; empty for standard LSTMs.
        first: h and c before the first step, (D, 2, H), for each layer.
    """

    def __init__(
        self,
        graph: Graph,
        recurrent: Sequence[Tensor],
        upward: Sequence[tuple[Tensor, Tensor]],
        peepholes: Sequence[Tensor],
        first: Sequence[Tensor],
    ) -> None:
        self.graph = graph
        self.recurrent = [graph.weight(weight.mT) for weight in recurrent]
        self.upward = [(graph.weight(weight.mT), bias.unsqueeze(1)) for weight, bias in upward]
        self.peepholes = [[graph.weight(part.mT) for part in weight.chunk(2, 1)] for weight in peepholes]
        self.first = [graph.value(state.unsqueeze(1)) for states in first for state in states.unbind(1)]  # (D, 1, H)

    @classmethod
    def of_layer(cls, graph: Graph, layer: BiLayer) -> Cells:
        """The cells of both directions of one recurrent layer."""
        peepholes = [layer.weight_ch] if isinstance(layer, CoupledBiLstmLayer) else []
        return cls(graph, [layer.weight_hh], [], peepholes, [layer.bias.new_zeros(2, 2, layer.hidden_size)])

    def start(self, count: Value) -> list[Value]:
        """The states of N recurrences before the first step."""
        return [self.graph.Expand(state, self.graph.shape(1, count, 1)) for state in self.first]

    def push(self, gates: Value, states: Sequence[Value]) -> list[Value]:
        """The states after a step, from the input products (D, N, gates · H) of the lowest layer."""
        pushed: list[Value] = []
        for layer, weight in enumerate(self.recurrent):
            h, c = states[2 * layer : 2 * layer + 2]
            if layer:
                upward, bias = self.upward[layer - 1]
                gates = pushed[-2] @ upward + bias
            pushed += self._cell(gates + h @ weight, c, layer)
        return pushed

    def _cell(self, gates: Value, c: Value, layer: int) -> tuple[Value, Value]:
        """See `lstm_cell` of `models/recurrent.py`."""
        graph = self.graph
        if not self.peepholes:
            i, f, g, o = graph.split(gates, 4)
            c = graph.Sigmoid(f) * c + graph.Sigmoid(i) * graph.Tanh(g)
            return graph.Sigmoid(o) * graph.Tanh(c), c
        to_input, to_output = self.peepholes[layer]
        i, g, o = graph.split(gates, 3)
        c = c + graph.Sigmoid(i + c @ to_input) * (graph.Tanh(g) - c)
        return graph.Sigmoid(o + c @ to_output) * graph.Tanh(c), c
