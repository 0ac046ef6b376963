"""The greedy search of a Stack-LSTM as a loop in an ONNX graph (see `models/modeling_stack_lstm.py`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ..models.modeling_stack_lstm import TransitionDecoder
from ..models.stack_lstm import SpanComposition, StackLstm
from ..models.transitions import FIRST_REDUCE, NO_ACTION, OUT, SHIFT, TransitionSystem
from ..models.word_ids import BEGIN, END, INSIDE, SINGLE
from .graph import Graph, Value
from .recurrent import Cells, input_products, reversed_words


def add_transitions(graph: Graph, decoder: TransitionDecoder, words: Value, lengths: Value) -> tuple[Value, Value]:
    """Decode words (T, B, d) of sentences of lengths (B,).

    Returns:
        Inner tags (T, B), and the log probability (T, B) of each word's actions.
    """
    steps = _Steps(graph, *_search(graph, decoder, words, lengths), graph.size(words, 0))
    return _tags(graph, decoder.scorer.system, steps), _word_log_probs(graph, steps)


# --- LSTMs -----------------------------------------------------------------------------------------------------------


def _cells(graph: Graph, lstms: Sequence[StackLstm]) -> Cells:
    """The cells of LSTMs of equal size."""

    def stacked(name: str) -> list[torch.Tensor]:
        """The weight of this name for each layer, stacked over the LSTMs."""
        return [torch.stack(weights) for weights in zip(*(getattr(lstm, name) for lstm in lstms), strict=True)]

    upward = stacked("weight_up") if lstms[0].weight_up is not None else []
    peepholes = stacked("weight_ch") if lstms[0].coupled else []
    first = [torch.stack(states) for states in zip(*(torch.stack(lstm.empty(), 1) for lstm in lstms), strict=True)]
    biases = stacked("bias")[1:]
    return Cells(graph, stacked("weight_hh"), list(zip(upward, biases, strict=True)), peepholes, first)


def _input_products(graph: Graph, lstm: StackLstm, inputs: Value) -> Value:
    """Input products of the lowest layer: (…, d) → (…, gates · H)."""
    return inputs @ graph.weight(lstm.weight_ih.t()) + lstm.bias[0]


def _buffer_states(graph: Graph, lstm: StackLstm, words: Value, lengths: Value) -> Value:
    """The states (T + 1, B, H) of the LSTM that reads words (T, B, d) backwards, by the number of words left."""
    cells = _cells(graph, [lstm])
    products = graph.unsqueeze(_input_products(graph, lstm, reversed_words(graph, words, lengths)), 1)

    def step(*values: Value) -> list[Value]:
        *states, product = values
        states = cells.push(product, states)
        return [*states, states[-2]]

    start = cells.start(graph.size(words, 1))
    states = graph.scan(step, start, [products])[-1]
    return graph.squeeze(graph.concat(graph.unsqueeze(start[-2], 0), states, axis=0), 1)


class _Composition:
    """Vectors of chunks (see `SpanComposition.forward`), whose words are rows of all words (N, d)."""

    def __init__(self, graph: Graph, composition: SpanComposition, words: Value) -> None:
        self.graph = graph
        tokens = graph.concat(words, composition.label(composition.types.weight), axis=0)
        self.first_type = graph.squeeze(graph.size(words, 0), 0)
        self.products = input_products(graph, composition.layer, tokens)
        self.cells = Cells.of_layer(graph, composition.layer)

    def vectors(self, word_rows: Value, lengths: Value, types: Value, width: Value) -> Value:
        """Vectors (n, g) of chunks with the words in the rows `word_rows` (n, L), and with lengths and types (n,).

        L is the scalar `width`; if it is 0, nothing is computed and the vectors are arbitrary.
        """
        graph, last = self.graph, lengths  # (n,) the step of the type, from the left
        steps = graph.Where(width > 0, width + 1, 0)
        last_column = graph.squeeze(graph.size(word_rows, 1), 0) - 1

        def row(column: Value) -> Value:
            column = graph.Max(graph.Min(column, last_column), 0)
            return graph.pick(word_rows, column)

        def step(number: Value, *states: Value) -> list[Value]:
            of_type = types + self.first_type
            rows = [
                graph.Where(last == number, of_type, row(graph.Expand(number, graph.Shape(last)))),
                graph.Where(number == 0, of_type, row(last - number)),
            ]
            gates = graph.stack(*(graph.Gather(table, rows_) for table, rows_ in zip(self.products, rows, strict=True)))
            under_way = graph.unsqueeze(last >= number, 1)
            pushed = zip(self.cells.push(gates, states), states, strict=True)
            return [graph.value(True), *(graph.Where(under_way, *both) for both in pushed)]

        *_, h, _ = graph.loop(step, self.cells.start(graph.size(word_rows, 0)), steps)
        return graph.concat(*(graph.squeeze(part, 0) for part in graph.split(h, 2, axis=0)))


# --- The search ------------------------------------------------------------------------------------------------------


def _search(graph: Graph, decoder: TransitionDecoder, words: Value, lengths: Value) -> tuple[Value, Value, Value]:
    """The actions (S, B), NO_ACTION after the last, their log probabilities (S, B, actions), and the depth before each.

    The depth (S, B) is the number of words on the stack.
    """
    scorer, system = decoder.scorer, decoder.scorer.system
    size, types = decoder.config.hidden_size, system.num_types
    time, batch = (graph.squeeze(graph.size(words, axis), 0) for axis in range(2))
    sentence = graph.arange(graph.size(words, 1))
    flat = graph.reshape(words, -1, scorer.stack.start.shape[0])
    # Products that only depend on the words are computed in advance.
    parts = scorer.hidden.weight.split(size, 1)  # of the output, the stack, the buffer, the actions
    from_buffer = _buffer_states(graph, scorer.buffer, words, lengths) @ graph.weight(parts[2].t()) + scorer.hidden.bias
    from_buffer = graph.reshape(from_buffer, -1, size)  # by words left and sentence
    from_others = graph.weight(torch.cat([parts[0], parts[1], parts[3]], 1).t())
    composition = _Composition(graph, scorer.composition, flat)
    every_word = graph.arange(graph.size(flat, 0))
    ones, no_type = every_word * 0 + 1, every_word * 0 + types
    outside = composition.vectors(graph.unsqueeze(every_word, 1), ones, no_type, graph.value(1))
    of_outs = _input_products(graph, scorer.output, outside)
    of_shifts = _input_products(graph, scorer.stack, flat)
    of_actions = _input_products(graph, scorer.history, graph.weight(scorer.actions.weight))
    to_output = graph.weight(scorer.output.weight_ih.t())
    cells = _cells(graph, (scorer.output, scorer.stack, scorer.history))

    def step(_: Value, position: Value, depth: Value, *states: Value) -> list[Value]:
        left = (lengths - position) * batch + sentence
        top = graph.reshape(graph.transpose(states[-2], 1, 0, 2), -1, 3 * size)
        hidden = graph.Relu(graph.Gather(from_buffer, left) + top @ from_others)
        scores = graph.linear(hidden, scorer.classifier) / float(scorer.config.score_temperature)
        log_probs = graph.LogSoftmax(graph.Where(_valid(graph, system, position, depth, lengths), scores, -torch.inf))
        unfinished = (position < lengths) | (depth > 0)
        action = graph.Where(unfinished, graph.ArgMax(log_probs, axis=-1, keepdims=0), NO_ACTION)

        shifts, outs, reduces = action == SHIFT, action == OUT, action >= FIRST_REDUCE
        word = graph.Min(position, time - 1) * batch + sentence
        # Chunks of the words on the stack, for sentences with REDUCE.
        width = graph.ReduceMax(graph.Where(reduces, depth, 0), keepdims=0)
        columns = graph.Range(0, width, 1)
        word_rows = graph.unsqueeze(position - depth, 1) + columns
        word_rows = graph.Min(word_rows, time - 1) * batch + graph.unsqueeze(sentence, 1)
        type_ = graph.Max(action - FIRST_REDUCE, 0)
        chunks = composition.vectors(word_rows, graph.Max(depth, 1), type_, width)
        to_chunks = chunks @ to_output + scorer.output.bias[0]
        gates = graph.stack(
            graph.Where(graph.unsqueeze(reduces, 1), to_chunks, graph.Gather(of_outs, word)),
            graph.Gather(of_shifts, word),
            graph.Gather(of_actions, graph.Max(action, 0)),
        )
        pushes = graph.unsqueeze(graph.stack(action >= OUT, shifts, action >= 0), 2)
        empties = graph.unsqueeze(reduces, 1) & np.array([False, True, False]).reshape(3, 1, 1)
        pushed = cells.push(gates, states)
        states = tuple(
            graph.Where(pushes, new, graph.Where(empties, empty, old))
            for new, empty, old in zip(pushed, cells.first, states, strict=True)
        )
        after = position + graph.cast(shifts | outs, "int64")
        deeper = graph.Where(reduces, 0, depth + graph.cast(shifts, "int64"))
        goes_on = graph.any((after < lengths) | (deeper > 0), 0)
        return [goes_on, after, deeper, *states, action, log_probs, depth]

    nothing = lengths * 0
    start = cells.start(graph.size(words, 1))
    *_, actions, log_probs, depth = graph.loop(step, [nothing, nothing, *start])
    return actions, log_probs, depth


def _valid(graph: Graph, system: TransitionSystem, position: Value, depth: Value, lengths: Value) -> Value:
    """Valid actions (B, actions), all of them in finished sentences; see `TransitionSystem.valid`."""
    many = system.of_many_words(torch.device("cpu"))
    waiting, empty = position < lengths, depth == 0
    shift = waiting & (empty | bool(many.any()))
    out = waiting & empty & bool(system.tags.chunked)
    reduce = graph.unsqueeze(~empty, 1) & (graph.unsqueeze(depth == 1, 1) | many)
    valid = graph.concat(graph.unsqueeze(shift, 1), graph.unsqueeze(out, 1), reduce)
    return valid | graph.unsqueeze(~graph.any(valid, 1), 1)


# --- Tags and probabilities ------------------------------------------------------------------------------------------


class _Steps:
    """The steps of a search, and those at which words leave the buffer and chunks end; see `_search`."""

    def __init__(self, graph: Graph, actions: Value, log_probs: Value, depth: Value, time: Value) -> None:
        self.graph, self.actions, self.log_probs, self.depth = graph, actions, log_probs, depth
        self.count = graph.size(actions, 0)
        self.shift = actions == SHIFT
        self.shifts = graph.CumSum(graph.cast(self.shift, "int64"), 0, exclusive=1)  # words shifted before
        number, reduced_at = self._events(actions >= FIRST_REDUCE, self.count)
        end = self.at(reduced_at, number)
        self.closed = end < self.count  # (S, B) true if there is a REDUCE at or after the step
        self.end = graph.Min(end, self.count - 1)  # (S, B) the first one
        _, leaving = self._events(self.shift | (actions == OUT), time)
        leaving = graph.slice(leaving, 0, time, axis=0)
        self.leaves = leaving < self.count  # (T, B) true if a word leaves the buffer
        self.leaving = graph.Where(self.leaves, leaving, 0)  # (T, B) the step at which it does
        self.shifted = self.at(graph.cast(self.shift, "int64"), self.leaving) == 1  # (T, B) true if by SHIFT

    def _events(self, events: Value, size: Value) -> tuple[Value, Value]:
        """The number of events before each step, and the steps (size + 1, B) of events, S if there are fewer."""
        graph, shape = self.graph, self.graph.Shape(events)
        number = graph.CumSum(graph.cast(events, "int64"), 0, exclusive=1)
        nowhere = graph.Expand(self.count, graph.shape(size + 1, graph.size(events, 1)))
        step = graph.Expand(graph.unsqueeze(graph.arange(self.count), 1), shape)
        # Steps without an event are written to the last row, which is not read.
        return number, graph.ScatterElements(nowhere, graph.Where(events, number, size), step, axis=0)

    def at(self, values: Value, steps: Value) -> Value:
        """Values (S, B) at steps (…, B)."""
        return self.graph.GatherElements(values, steps, axis=0)


def _tags(graph: Graph, system: TransitionSystem, steps: _Steps) -> Value:
    """The inner tags (T, B); see `TransitionSystem.tags_of`."""
    outside, _ = system.tags.outside
    last = steps.at(steps.shifts, steps.end) == steps.shifts + 1  # no other word is shifted before REDUCE
    first = steps.depth == 0
    kind = graph.Where(first, graph.Where(last, SINGLE, BEGIN), graph.Where(last, END, INSIDE))
    type_ = graph.Max(steps.at(steps.actions, steps.end) - FIRST_REDUCE, 0)
    inner = system.tags.on(torch.device("cpu")).inner.flatten()
    tag = graph.Where(steps.shift & steps.closed, graph.Gather(inner, kind * system.num_types + type_), outside)
    return graph.Where(steps.leaves, steps.at(tag, steps.leaving), outside)


def _word_log_probs(graph: Graph, steps: _Steps) -> Value:
    """The log probability (T, B) of each word's actions; see `word_log_probs` of `models/modeling_stack_lstm.py`."""
    chosen = graph.pick(steps.log_probs, graph.Max(steps.actions, 0))
    end = steps.at(steps.end, steps.leaving)
    last = steps.shifted & (steps.at(steps.shifts, end) == steps.at(steps.shifts, steps.leaving) + 1)
    decided = steps.at(chosen, steps.leaving) + graph.Where(last, steps.at(chosen, end), 0.0)
    return graph.Where(steps.leaves, decided, 0.0)
