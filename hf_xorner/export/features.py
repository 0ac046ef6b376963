"""The features of words as nodes of an ONNX graph (see `models/features.py` and `models/contextual.py`)."""

from __future__ import annotations

from typing import Any

import torch

from ..models.features import (
    CASINGS,
    LOWER,
    PADDING,
    UPPER,
    CharacterCnn,
    CharacterLstm,
    WordFeatures,
    trained_words,
)
from ..models.frozen_vectors import ComposedVectors, FrozenVectors, StaticVectors
from ..models.word_ids import RESERVED_CHARACTER_TYPES, UNKNOWN_ID
from .graph import Graph, Value
from .recurrent import Cells, input_products


def add_features(graph: Graph, features: WordFeatures, ids: dict[str, Value], index: Value, mask: Value) -> Value:
    """Features (T, B, d) of words, from the inputs for distinct words, the index of each word and the mask (T, B)."""
    vectors = _add_word_features(graph, features, ids["input_ids"], ids["char_ids"], ids.get("piece_ids"))
    parts = [graph.Gather(graph.concat(*vectors), index)] if vectors else []
    if features.context is not None:
        from .contextual import add_context

        inside = graph.unsqueeze(graph.cast(mask, "bool"), 2)
        in_sentences = graph.Where(inside, graph.Gather(ids["piece_ids"], index), 0)
        parts.append(add_context(graph, features.context, in_sentences))
    return graph.concat(*parts)


def _add_word_features(
    graph: Graph, features: WordFeatures, words: Any, chars: Any, pieces: Value | None
) -> list[Value]:
    """Features (N, …) of words (N,), characters (N, W) and, if there are any, pieces (N, P)."""
    config = features.config
    vectors: list[Value] = []
    codes = features.char_types.long()
    types = graph.Gather(codes, chars)
    if config.word_dim:
        trained = graph.Where(words >= trained_words(config), UNKNOWN_ID, words)
        vectors.append(graph.rows(features.words.weight, trained))
    if features.static is not None:
        vectors.append(_add_static(graph, features.static, words))
    if config.casing_features:
        vectors.append(graph.Gather(torch.eye(CASINGS), _casing(graph, types)))
    if features.shapes is not None:
        vectors.append(graph.rows(features.shapes.weight, _shape(graph, types, chars)))
    if isinstance(features.chars, CharacterCnn):
        vectors.append(_add_cnn(graph, features.chars, codes, chars, config.max_word_chars))
    elif isinstance(features.chars, CharacterLstm):
        vectors.append(_add_lstm(graph, features.chars, chars))
    if features.composed is not None and pieces is not None:
        vectors.append(_add_composed(graph, features.composed, pieces))
    return vectors


# --- Vectors of words and pieces -------------------------------------------------------------------------------------


def _frozen(graph: Graph, table: FrozenVectors, index: Value) -> Value:
    """Vectors (…, d) of rows (…), stored in the bits of the model's table if these are few."""
    if table.scale is None:
        return graph.rows(table.weight, index)
    vectors = graph.cast(graph.Gather(table.weight, index), "float32")
    if table.bits == 4:
        second = graph.Floor(vectors / 16.0)
        vectors = graph.slice(graph.concat(vectors - second * 16.0, second), 0, table.dim, axis=-1) - 8.0
    return vectors * graph.Gather(table.scale, index)


def _add_static(graph: Graph, static: StaticVectors, words: Value) -> Value:
    known = graph.unsqueeze(graph.Gather(static.has_vector, words), -1)
    return graph.Where(known, _frozen(graph, static, words), static.unknown)


def _add_composed(graph: Graph, composed: ComposedVectors, pieces: Value) -> Value:
    vectors = _frozen(graph, composed, pieces)  # (N, P, d)
    count = graph.sum(graph.cast(pieces > 0, "int64"), -1)  # (N,)
    first = graph.Gather(vectors, 0, axis=1)
    divisor = graph.unsqueeze(graph.cast(graph.Max(count, 1), "float32"), -1)
    last = graph.pick_rows(vectors, graph.Max(count - 1, 0))
    parts = graph.concat(first, graph.sum(vectors, 1) / divisor, last)
    mixed = parts @ graph.weight(composed.mix.t()) + composed.bias
    return graph.Where(graph.unsqueeze(count > 1, -1), mixed, first)


# --- Casing and shape ------------------------------------------------------------------------------------------------


def _casing(graph: Graph, types: Value) -> Value:
    upper, lower = graph.any(types == UPPER, -1), graph.any(types == LOWER, -1)
    without_all_upper = graph.Where(lower & ~upper, 2, 3)
    first = graph.Gather(types, 0, axis=1)
    return graph.Where(upper & ~lower, 0, graph.Where(first == UPPER, 1, without_all_upper))


def _shape(graph: Graph, types: Value, chars: Value) -> Value:
    capital = types == UPPER
    some = graph.any(capital, -1)
    without_all = graph.Where(graph.Gather(capital, 0, axis=1), 1, graph.Where(some, 2, 3))
    exception = graph.any(~(capital | (chars == PADDING)), -1)
    return graph.Where(some & ~exception, 0, without_all)


# --- Characters ------------------------------------------------------------------------------------------------------


def _add_cnn(graph: Graph, cnn: CharacterCnn, codes: torch.Tensor, chars: Value, max_word_chars: int) -> Value:
    # Restore columns that the caller has cut off, if they change the result.
    room = graph.Max(graph.Min(cnn.padding_needed(), max_word_chars - graph.size(chars, 1)), 0)
    characters, padding = cnn.channels(torch.arange(len(codes)), codes)
    rows = graph.Pad(chars + 1, graph.concat([0, 0, 0], room), 1)
    rows = graph.Pad(rows, [0, cnn.padding, 0, cnn.padding], 0)
    table = graph.weight(characters)
    strongest = []
    filters: Any
    for width, filters in zip(cnn.widths, cnn.convolutions, strict=True):
        positions = graph.size(rows, 1) - (width - 1)
        responses = None
        for offset in range(width):
            part = table @ graph.weight(filters.weight[:, :, offset].t())  # (C, filters)
            if cnn.centred and offset == (width - 1) // 2:
                part = graph.Where(padding.unsqueeze(1), -torch.inf, part)
            read = graph.Gather(part, graph.slice(rows, offset, positions + offset, axis=1))
            responses = read if responses is None else responses + read
        assert responses is not None
        best = graph.max(responses, 1)
        if cnn.centred:
            best = graph.Where(graph.IsInf(best), 0.0, best)
        strongest.append(best if filters.bias is None else best + filters.bias)
    vectors = graph.concat(*strongest)
    return graph.Tanh(vectors) if cnn.with_tanh else vectors


def _add_lstm(graph: Graph, lstm: CharacterLstm, rows: Value) -> Value:
    """Run all words at once, longest first; each step computes those that have not ended."""
    width = graph.size(rows, 1)
    # Unknown characters are skipped.
    rows = graph.Where(rows < len(RESERVED_CHARACTER_TYPES), PADDING, rows)
    column = graph.arange(width)
    _, order = graph.TopK(graph.Where(rows > PADDING, column, column + width), width, largest=0, outputs=2)
    rows = graph.GatherElements(rows, order, axis=1)
    lengths = graph.sum(graph.cast(rows > PADDING, "int64"), 1)
    has_characters = graph.unsqueeze(lengths > 0, 1)
    lengths, order = graph.TopK(lengths, graph.size(rows, 0), outputs=2)
    rows = graph.Gather(rows, order)
    products = input_products(graph, lstm.lstm, graph.weight(lstm.embedding.weight))
    cells = Cells.of_layer(graph, lstm.lstm)

    def step(number: Value, *states: Value) -> list[Value]:
        count = graph.sum(graph.cast(lengths > number, "int64"), 0, keep=True)
        words = graph.slice(rows, 0, count, axis=0)
        left = graph.slice(lengths, 0, count, axis=0) - number
        forward, backward = graph.Gather(words, number, axis=1), graph.pick(words, left - 1)
        gates = graph.stack(graph.Gather(products[0], forward), graph.Gather(products[1], backward))
        pushed = cells.push(gates, [graph.slice(state, 0, count, axis=1) for state in states])
        ended = [graph.slice(state, count, None, axis=1) for state in states]
        return [graph.value(True), *(graph.concat(*both, axis=1) for both in zip(pushed, ended, strict=True))]

    *_, h, _ = graph.loop(step, cells.start(graph.size(rows, 0)), graph.Gather(lengths, 0))
    ends = graph.reshape(graph.transpose(h, 1, 0, 2), -1, lstm.output_size)
    # Restore the order of the words.
    back = graph.ScatterElements(order, order, graph.arange(graph.size(rows, 0)), axis=0)
    return graph.Where(has_characters, graph.Gather(ends, back), 0.0)
