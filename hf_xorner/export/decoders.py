"""Decoders as nodes of an ONNX graph (see `models/decoders.py`, `models/crf.py` and `models/tags.py`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from ..models.crf import IMPOSSIBLE
from ..models.decoders import ConditionedCrfDecoder, CrfDecoder
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tags import TagSpace
from .graph import Graph, Value
from .recurrent import reversed_words

#: The score of a forbidden tag or transition.
_BARRED = -1e9


class DecodedValues(NamedTuple):
    """Decoded inner tags, and log probabilities."""

    path: Value  # (T, B)
    marginal: Value  # (T, B) marginal log probability of the path's tags
    conditional: Value  # (T, B) log probability given the previous tag


def add_decoder(graph: Graph, model: Any, states: Value, lengths: Value) -> DecodedValues:
    """Decode the encoder's states (T, B, h) of sentences of lengths (B,)."""
    if isinstance(model.decoder, CrfDecoder):
        return _add_crf(graph, model, model.decoder, states, lengths)
    if model.config.model_type == "stack-lstm":
        from .transitions import add_transitions

        path, marginal = add_transitions(graph, model.decoder, states, lengths)
        return DecodedValues(path, marginal, marginal)
    scores = graph.linear(states, model.classifier) / float(model.config.score_temperature)
    path = graph.ArgMax(scores, axis=-1, keepdims=0)
    marginal = graph.pick(graph.LogSoftmax(scores), path)
    return DecodedValues(path, marginal, marginal)


# --- Linear-chain CRF ------------------------------------------------------------------------------------------------


class _Chain(NamedTuple):
    """The scores of a batch, in float64; scores of forbidden tags are finite, since −∞ − −∞ would be NaN."""

    emissions: Value  # (T, B, K)
    transitions: Value  # (K, K), or (T, B, K, K) into each word
    start: Value  # (B, K)
    end: Value  # (K,)
    conditioned: bool  # true if every word has its own transitions


def _add_crf(
    graph: Graph, model: TaggerForTokenClassification, decoder: CrfDecoder, states: Value, lengths: Value
) -> DecodedValues:
    tags, time = model.tags.num_inner, graph.size(states, 0)
    chain = _chain(graph, model, decoder, states)
    (best_before, sums_before), (best_after, sums_after) = _paths(graph, chain, lengths)
    # The best path has, for each word, the tag with the best path through it.
    best = best_before + chain.emissions + best_after
    path = graph.ArgMax(best, axis=-1, keepdims=0)
    marginal = graph.pick(graph.LogSoftmax(best + sums_before + sums_after), path)
    # Given the previous tag: values of the previous word are shifted by one step.
    before = _later(graph, path)
    pair = before * tags + path
    if chain.conditioned:
        moves = graph.pick(graph.reshape(chain.transitions, time, -1, tags * tags), pair)
    else:
        moves = graph.Gather(graph.reshape(chain.transitions, -1), pair)
    after = best_after + sums_after
    scores = chain.emissions + after - graph.ReduceLogSumExp(sums_after, [2])
    conditional = graph.pick(scores, path) - graph.pick(_later(graph, after), before) + moves
    steps = graph.unsqueeze(graph.arange(time), 1)  # (T, 1)
    conditional = graph.Where(steps == 0, marginal, conditional)
    inside = steps < lengths
    marginal, conditional = (graph.Where(inside, _finite(graph, values), 0.0) for values in (marginal, conditional))
    return DecodedValues(path, marginal, conditional)


def _chain(graph: Graph, model: TaggerForTokenClassification, decoder: CrfDecoder, states: Value) -> _Chain:
    tags = model.tags.num_inner
    time, batch = graph.size(states, 0), graph.size(states, 1)
    no_emissions = model.config.pairs_only
    emissions = graph.filled(0, time, batch, tags) if no_emissions else graph.linear(states, model.classifier)
    start: torch.Tensor | Value = torch.zeros(tags)
    end = graph.value(torch.zeros(tags) if decoder.end is None else decoder.end)
    if isinstance(decoder, ConditionedCrfDecoder):
        transitions = graph.reshape(graph.linear(states, decoder.pairs), time, batch, tags, tags)
        if decoder.starts is not None:
            start = graph.linear(graph.Gather(states, 0, axis=0), decoder.starts)
    else:
        transitions = graph.value(decoder.transitions)
        if decoder.start is not None:
            start = decoder.start
    if model.config.constrain_transitions:
        tables = model.tags.on(torch.device("cpu"))
        transitions = graph.Where(tables.barred_transitions, _BARRED, transitions)
        start = graph.Where(tables.barred_start, _BARRED, start)
        end = graph.Where(tables.barred_end, _BARRED, end)
    start = graph.Expand(start, graph.shape(batch, tags))
    temperature = float(model.config.score_temperature)
    emissions, transitions, start, end = (
        graph.cast(scores / temperature, "float64") for scores in (emissions, transitions, start, end)
    )
    return _Chain(emissions, transitions, start, end, isinstance(decoder, ConditionedCrfDecoder))


def _paths(graph: Graph, chain: _Chain, lengths: Value) -> list[list[Value]]:
    """The scores of the paths before and after each tag of each word, without its emission.

    One loop runs from both ends. Sums are relative to the best path, which is exact for scores of any size.

    Returns:
        For both sides, the score of the best path, and the log-sum of all paths minus this score, up to a constant for
        each word: (T, B, K) each.
    """
    both = graph.stack(chain.emissions, reversed_words(graph, chain.emissions, lengths), axis=1)
    both = graph.unsqueeze(both, 3)  # (T, 2, B, 1, K)
    start = graph.stack(chain.start, graph.Expand(chain.end, graph.Shape(chain.start)))
    start = graph.unsqueeze(start, 2)  # (2, B, 1, K)
    constant, own_moves = chain.transitions, []
    if chain.conditioned:
        backwards = graph.transpose(reversed_words(graph, chain.transitions, lengths), 0, 1, 3, 2)
        own_moves = [graph.stack(_earlier(graph, chain.transitions), backwards, axis=1)]  # (T, 2, B, K, K)
    else:
        constant = graph.unsqueeze(graph.stack(constant, graph.transpose(constant, 1, 0)), 1)

    def step(best: Value, sums: Value, emission: Value, *own: Value) -> tuple[Value, ...]:
        pairs = graph.transpose(best + emission, 0, 1, 3, 2) + (own[0] if own else constant)  # (2, B, before, after)
        top = graph.max(pairs, 2, keep=True)
        weights = graph.LpNormalization(sums, axis=3, p=1)
        return top, weights @ graph.Exp(graph.cast(pairs - top, "float32")), best, sums

    only_start = graph.Expand(1.0, graph.Shape(start))
    _, _, best, sums = graph.scan(step, [start, only_start], [both, *own_moves])
    rows = graph.concat(best, graph.cast(graph.Log(sums), "float64"), axis=3)  # (T, 2, B, 2, K)
    before, after = (graph.squeeze(part, 1) for part in graph.split(rows, 2, axis=1))
    sides = (before, reversed_words(graph, after, lengths))
    return [[graph.squeeze(part, 2) for part in graph.split(side, 2, axis=2)] for side in sides]


def _finite(graph: Graph, log_probs: Value) -> Value:
    """Log probabilities in float32, at least the lowest one that the model returns."""
    return graph.Max(graph.cast(log_probs, "float32"), float(IMPOSSIBLE))


def _earlier(graph: Graph, values: Value) -> Value:
    """The values (T, …) one step earlier; the last one is arbitrary."""
    return graph.concat(graph.slice(values, 1, None, axis=0), graph.slice(values, 0, 1, axis=0), axis=0)


def _later(graph: Graph, values: Value) -> Value:
    """The values (T, …) one step later; the first one is arbitrary."""
    return graph.concat(graph.slice(values, 0, 1, axis=0), graph.slice(values, 0, -1, axis=0), axis=0)


# --- Public labels ---------------------------------------------------------------------------------------------------


def add_labels(graph: Graph, tags: TagSpace, path: Value, lengths: Value, repair: bool) -> Value:
    """The public labels (T, B) of inner tags (T, B); see `TagSpace.to_public_path`."""
    if not tags.chunked:
        return path
    tables, (outside_tag, outside) = tags.on(torch.device("cpu")), tags.outside
    words = graph.unsqueeze(graph.arange(graph.size(path, 0)), 1) < lengths
    path = graph.Where(words, path, outside_tag)
    first = graph.filled(outside_tag, 1, graph.size(path, 1), dtype=np.int64)
    pair = graph.concat(first, graph.slice(path, 0, -1, axis=0), axis=0) * tags.num_inner + path
    labels = graph.Gather(tables.label_of.flatten(), pair)
    if repair:
        return labels
    # Only the spans remain whose first and last tags fit.
    starts = graph.cast(~graph.Gather(tables.continued.flatten(), pair), "int64")
    span = graph.CumSum(starts, 0) - 1  # the number of each word's span in its sentence
    last = graph.filled(1, 1, graph.size(path, 1), dtype=np.int64)
    ends = graph.concat(graph.slice(starts, 1, None, axis=0), last, axis=0)
    first_tag, last_tag = (
        graph.GatherElements(graph.ScatterElements(path * 0, span, path * at, axis=0, reduction="add"), span, axis=0)
        for at in (starts, ends)
    )
    whole = graph.Gather(tables.whole.flatten(), first_tag * tags.num_inner + last_tag)
    return graph.Where(whole, labels, outside)
