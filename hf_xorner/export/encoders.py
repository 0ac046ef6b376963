"""The encoders of all architectures as nodes of an ONNX graph (see `models/modeling_*.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .graph import Graph, Value
from .recurrent import add_recurrence
from .windows import home_window, number_of_windows

if TYPE_CHECKING:  # an export imports the classes of its own architecture only
    from ..models.layers import WindowedSelfAttention
    from ..models.modeling_bilstm_cnn import AttEncoder, BaselineEncoder
    from ..models.modeling_cnn_lstm_crf import CnnLstmCrfEncoder
    from ..models.modeling_grn import GrnEncoder, Relation
    from ..models.modeling_id_cnn import IdCnnEncoder
    from ..models.modeling_lstm_crf import LstmCrfEncoder
    from ..models.modeling_stack_lstm import WordVectors

#: A score whose exponential is 0, unless all scores are this low.
_NEVER = -1e30


def _bilstm_cnn(graph: Graph, encoder: BaselineEncoder, features: Value, lengths: Value) -> Value:
    forward = backward = features
    layer: Any
    for depth, layer in enumerate(encoder.layers):
        if depth and encoder.crossed:
            forward = backward = graph.concat(forward, backward)
        forward, backward = add_recurrence(graph, layer, forward, backward, lengths)
    return graph.concat(forward, backward)


def _att_bilstm_cnn(graph: Graph, encoder: AttEncoder, features: Value, lengths: Value) -> Value:
    states = _bilstm_cnn(graph, encoder, features, lengths)
    return graph.concat(states, _attention(graph, encoder.attention, states, lengths))


def _cnn_lstm_crf(graph: Graph, encoder: CnnLstmCrfEncoder, features: Value, lengths: Value) -> Value:
    states = graph.concat(*add_recurrence(graph, encoder.layer, features, features, lengths))
    if encoder.attention is None:
        return states
    return graph.concat(states, _attention(graph, encoder.attention, states, lengths))


def _lstm_crf(graph: Graph, encoder: LstmCrfEncoder, features: Value, lengths: Value) -> Value:
    states = graph.concat(*add_recurrence(graph, encoder.lstm, features, features, lengths))
    return states if encoder.hidden is None else graph.Tanh(graph.linear(states, encoder.hidden))


def _stack_lstm(graph: Graph, encoder: WordVectors, features: Value, lengths: Value) -> Value:
    return features


def _id_cnn(graph: Graph, encoder: IdCnnEncoder, features: Value, lengths: Value) -> Value:
    within = _within(graph, features, lengths)
    words = graph.transpose(within, 1, 2, 0)
    states = graph.transpose(features * within, 1, 2, 0)  # (B, C, T)
    for layer in (encoder.input, *(layer for _ in range(encoder.iterations) for layer in encoder.block)):
        states = graph.Relu(_convolution(graph, layer, states)) * words
    return graph.transpose(states, 2, 0, 1)


def _grn(graph: Graph, encoder: GrnEncoder, features: Value, lengths: Value) -> Value:
    within = _within(graph, features, lengths)
    states = features
    if encoder.context is not None:
        words = graph.transpose(features * within, 1, 2, 0)
        branches = [_convolution(graph, layer, words) for layer in encoder.context.convolutions]
        states = graph.transpose(graph.Tanh(graph.Max(*branches)), 2, 0, 1)
    if encoder.relation is None:
        return states
    return graph.Tanh(_related(graph, encoder.relation, states, within, lengths))


#: The functions that add an encoder, by the `model_type` of the config.
_ENCODERS: dict[str, Any] = {
    "bilstm-cnn": _bilstm_cnn,
    "cross-bilstm-cnn": _bilstm_cnn,
    "att-bilstm-cnn": _att_bilstm_cnn,
    "cnn-lstm-crf": _cnn_lstm_crf,
    "lstm-crf": _lstm_crf,
    "stack-lstm": _stack_lstm,
    "id-cnn": _id_cnn,
    "grn": _grn,
}


def add_encoder(graph: Graph, model: Any, features: Value, lengths: Value) -> Value:
    """The states (T, B, output_size) of a model's encoder, from features (T, B, d) of sentences of lengths (B,)."""
    return _ENCODERS[model.config.model_type](graph, model.encoder, features, lengths)


def _within(graph: Graph, states: Value, lengths: Value) -> Value:
    """1 for words and 0 for padding, (T, B, 1)."""
    inside = graph.unsqueeze(graph.arange(graph.size(states, 0)), 1) < lengths
    return graph.cast(graph.unsqueeze(inside, 2), "float32")


def _convolution(graph: Graph, layer: Any, words: Value) -> Value:
    """A convolution over words (B, C, T) that keeps their number."""
    weight, dilation = layer.weight, getattr(layer, "dilation", 1)
    (dilation,) = dilation if isinstance(dilation, tuple) else (dilation,)
    reach = dilation * (weight.shape[2] // 2)
    flat = graph.weight(weight.flatten(1))  # one scale per filter if it is quantised
    return graph.Conv(words, graph.reshape(flat, *weight.shape), layer.bias, pads=[reach, reach], dilations=[dilation])


def _related(graph: Graph, relation: Relation, states: Value, within: Value, lengths: Value) -> Value:
    """r_i of all words: states (T, B, C) → (T, B, C)."""
    from ..models.modeling_grn import DirectRelation, GatedRelation

    projection: Any = relation.projection
    first_weight, second_weight = (graph.weight(part.t()) for part in projection.weight.chunk(2, 1))
    values = states * within
    count = graph.unsqueeze(graph.cast(graph.Max(lengths, 1), "float32"), 1)  # (B, 1)
    u = states @ first_weight + projection.bias
    if isinstance(relation, DirectRelation):
        return u + (graph.sum(values, 0) / count) @ second_weight
    v = states @ second_weight
    if isinstance(relation, GatedRelation):

        def add_word(sums: Value, part: Value, value: Value) -> tuple[Value]:
            return (sums + graph.Sigmoid(u + part) * value,)

        # One word at a time, in memory linear in the length.
        nothing = graph.Expand(0.0, graph.Shape(u))
        (sums,) = graph.scan(add_word, [nothing], [v, values])
        return sums / count
    gates = graph.Sigmoid(graph.transpose(u, 1, 0, 2) + graph.transpose(v, 1, 2, 0))  # (B, T, T)
    return graph.transpose(gates @ graph.transpose(values, 1, 0, 2), 1, 0, 2) / count


def _attention(graph: Graph, attention: WindowedSelfAttention, states: Value, lengths: Value) -> Value:
    """The context (T, B, heads · head_dim) of self-attention; all windows are computed at once."""
    heads, size = attention.num_heads, attention.head_dim
    window, overlap = attention.window, attention.overlap
    step, time, batch = window - overlap, graph.size(states, 0), graph.size(states, 1)
    width = graph.Min(time, window)
    windows = number_of_windows(graph, time, window, overlap)
    starts = graph.arange(windows) * step
    word = graph.unsqueeze(starts, 1) + graph.arange(width)  # (windows, width)
    nearest = graph.Min(word, time - 1)

    def projected(layer: Any) -> Value:
        every = graph.transpose(states, 1, 0, 2) @ graph.weight(layer.weight.t())
        cut = graph.Gather(every, nearest, axis=1)  # (B, windows, width, heads · head_dim)
        split = graph.reshape(cut, batch, windows, width, heads, size)
        return graph.transpose(split, 0, 1, 3, 2, 4)

    query, key, value = map(projected, (attention.query, attention.key, attention.value))
    scores = query @ graph.transpose(key, 0, 1, 2, 4, 3) / float(np.sqrt(size))
    allowed = graph.unsqueeze(word, 0) < graph.unsqueeze(lengths, 1, 2)  # (B, windows, width)
    scores = graph.Where(graph.unsqueeze(allowed, 2, 3), scores, _NEVER)
    context = graph.transpose(graph.Softmax(scores, axis=-1) @ value, 0, 1, 3, 2, 4)
    context = graph.reshape(context, batch, windows * width, heads * size)
    home = home_window(graph, graph.arange(time), graph.unsqueeze(lengths, 1), window, overlap)  # (B, T)
    index = home * width + graph.arange(time) - home * step
    # Padding may be outside of the last window.
    index = graph.Min(graph.Max(index, 0), windows * width - 1)
    return graph.transpose(graph.pick_rows(context, index), 1, 0, 2)
