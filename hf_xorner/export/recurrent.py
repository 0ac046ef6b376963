"""Recurrent layers as nodes of an ONNX graph (see `models/recurrent.py`)."""

from __future__ import annotations

import torch

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


def _add_fused(graph: Graph, layer: BiLayer, which: list[int], direction: str, inputs: Value, lengths: Value) -> Value:
    """The states (T, directions, B, H) of a standard LSTM or a plain recurrent layer."""
    gates = _ONNX_GATES if isinstance(layer, BiLstmLayer) else [0]

    def ordered(weight: torch.Tensor) -> torch.Tensor:
        return weight[which].unflatten(1, (len(gates), -1))[:, gates].flatten(1, 2)

    bias = torch.cat([ordered(layer.bias), torch.zeros_like(layer.bias[which])], 1)
    operator = graph.RNN if isinstance(layer, BiRnnLayer) else graph.LSTM
    return operator(
        inputs,
        graph.weight(ordered(layer.weight_ih)),
        graph.weight(ordered(layer.weight_hh)),
        bias,
        graph.cast(lengths, "int32"),
        hidden_size=layer.hidden_size,
        direction=direction,
    )


def _add_coupled(
    graph: Graph, layer: CoupledBiLstmLayer, forward: Value, backward: Value, lengths: Value
) -> tuple[Value, Value]:
    """The same of a coupled LSTM, step by step."""
    size = layer.hidden_size
    both = graph.stack(forward, reversed_words(graph, backward, lengths), axis=1)  # (T, 2, B, d)
    products = both @ graph.weight(layer.weight_ih.transpose(1, 2)) + layer.bias.unsqueeze(1)
    recurrent = graph.weight(layer.weight_hh.transpose(1, 2))
    peepholes = peepholes_of(graph, layer.weight_ch)
    shape = graph.shape(2, graph.size(forward, 1), size)
    h, c = (graph.Expand(state.unsqueeze(1), shape) for state in layer.first_states().unbind(1))

    def step(h: Value, c: Value, product: Value) -> tuple[Value, Value, Value]:
        h, c = add_cell(graph, product + h @ recurrent, c, peepholes)
        return h, c, h

    _, _, states = graph.scan(step, [h, c], [products])
    first, second = (graph.squeeze(part, 1) for part in graph.split(states, 2, axis=1))
    return first, reversed_words(graph, second, lengths)


def peepholes_of(graph: Graph, weight: torch.Tensor) -> tuple[Value, Value]:
    """The peepholes of i and o, (D, H, H) each, of a weight (D, 2H, H)."""
    to_input, to_output = (graph.weight(part.transpose(1, 2)) for part in weight.chunk(2, 1))
    return to_input, to_output


def add_cell(graph: Graph, gates: Value, c: Value, peepholes: tuple[Value, Value] | None) -> tuple[Value, Value]:
    """h and c of D LSTMs after a step (D, N, H); see `lstm_cell` of `models/recurrent.py`."""
    if peepholes is None:
        i, f, g, o = graph.split(gates, 4)
        c = graph.Sigmoid(f) * c + graph.Sigmoid(i) * graph.Tanh(g)
        return graph.Sigmoid(o) * graph.Tanh(c), c
    to_input, to_output = peepholes
    i, g, o = graph.split(gates, 3)
    c = c + graph.Sigmoid(i + c @ to_input) * (graph.Tanh(g) - c)
    return graph.Sigmoid(o + c @ to_output) * graph.Tanh(c), c


def reversed_words(graph: Graph, values: Value, lengths: Value) -> Value:
    """Values of words (T, B, …) in the reverse order of each sentence, padding last."""
    return graph.ReverseSequence(values, lengths, time_axis=0, batch_axis=1)
