"""Decoders as nodes of an ONNX graph (see `models/decoders.py`, `models/crf.py` and `models/tags.py`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from ..models.crf import IMPOSSIBLE
from ..models.decoders import ConditionedCrfDecoder, CrfDecoder
from ..models.modeling_stack_lstm import TransitionDecoder
from ..models.modeling_tagger import MARGIN, TaggerForTokenClassification
from ..models.tags import TagSpace
from ..models.word_ids import BEGIN, END, NO_TYPE, OUTSIDE, SINGLE, continues
from .graph import Graph, Value
from .recurrent import reversed_words
from .transitions import add_transitions

_LOWEST = float(np.finfo(np.float32).min)


class DecodedValues(NamedTuple):
    """Decoded inner tags, and log probabilities."""

    path: Value  # (T, B)
    log_probs: Value  # (T, B, L) log posterior of all public labels
    alone: Value  # (T, B) log probability of the path's tags by themselves
    conditional: Value  # (T, B) given the tag before


def add_decoder(graph: Graph, model: TaggerForTokenClassification, states: Value, lengths: Value) -> DecodedValues:
    """Decode the encoder's states (T, B, h) of sentences of lengths (B,)."""
    if isinstance(model.decoder, CrfDecoder):
        return _add_crf(graph, model, model.decoder, states, lengths)
    if isinstance(model.decoder, TransitionDecoder):
        path, log_probs, alone = add_transitions(graph, model.decoder, states, lengths)
        return DecodedValues(path, log_probs, alone, alone)
    scores = graph.linear(states, model.classifier)
    path, log_probs = graph.ArgMax(scores, axis=-1, keepdims=0), graph.log_softmax(scores)
    alone = graph.pick(log_probs, path)
    return DecodedValues(path, _public(graph, model.tags, log_probs), alone, alone)


# --- Linear-chain CRF ------------------------------------------------------------------------------------------------


class _Chain(NamedTuple):
    """The scores of a batch; −∞ forbids."""

    emissions: Value  # (T, B, K)
    transitions: Value  # (K, K), or (T, B, K, K) into each word
    start: Value  # (B, K)
    end: Value  # (K,)
    conditioned: bool  # whether every word has its own transitions


def _add_crf(
    graph: Graph, model: TaggerForTokenClassification, decoder: CrfDecoder, states: Value, lengths: Value
) -> DecodedValues:
    tags, time = model.tags.num_inner, graph.size(states, 0)
    chain = _chain(graph, model, decoder, states)
    steps = graph.unsqueeze(graph.arange(time), 1)  # (T, 1)
    path = _viterbi(graph, chain, steps, lengths)
    from_left, to_right, from_right = _messages(graph, chain, lengths)
    log_probs = graph.log_softmax(from_left + to_right)
    alone = graph.Max(graph.pick(log_probs, path), float(IMPOSSIBLE))
    # Given the tag before; what belongs to the word before is one step later here.
    before = _later(graph, path)
    pair = before * tags + path
    if chain.conditioned:
        moves = graph.pick(graph.reshape(chain.transitions, time, -1, tags * tags), pair)
    else:
        moves = graph.Gather(graph.reshape(chain.transitions, -1), pair)
    conditional = graph.pick(from_right, path) - graph.pick(_later(graph, to_right), before) + moves
    conditional = graph.Where(graph.IsNaN(conditional), float(IMPOSSIBLE), graph.Max(conditional, float(IMPOSSIBLE)))
    conditional = graph.Where(steps == 0, alone, conditional)
    inside = steps < lengths
    alone, conditional = graph.Where(inside, alone, 0.0), graph.Where(inside, conditional, 0.0)
    log_probs = _public(graph, model.tags, graph.Max(log_probs, float(IMPOSSIBLE)))
    return DecodedValues(path, log_probs, alone, conditional)


def _chain(graph: Graph, model: TaggerForTokenClassification, decoder: CrfDecoder, states: Value) -> _Chain:
    tags = model.tags.num_inner
    time, batch = graph.size(states, 0), graph.size(states, 1)
    nothing = model.config.pairs_only
    emissions = graph.zeros(time, batch, tags) if nothing else graph.linear(states, model.classifier)
    start: torch.Tensor | Value = torch.zeros(tags)
    end = graph.value(torch.zeros(tags) if decoder.end is None else decoder.end)
    conditioned = isinstance(decoder, ConditionedCrfDecoder)
    if isinstance(decoder, ConditionedCrfDecoder):
        transitions = graph.reshape(graph.linear(states, decoder.pairs), time, batch, tags, tags)
        if decoder.starts is not None:
            start = graph.linear(graph.Gather(states, 0, axis=0), decoder.starts)
    else:
        transitions = graph.value(decoder.transitions)
        if decoder.start is not None:
            start = decoder.start
    if decoder.constrained:
        tables = model.tags.on(torch.device("cpu"))
        transitions = graph.Where(tables.barred_transitions, -torch.inf, transitions)
        start = graph.Where(tables.barred_start, -torch.inf, start)
        end = graph.Where(tables.barred_end, -torch.inf, end)
    return _Chain(emissions, transitions, graph.Expand(start, graph.shape(batch, tags)), end, conditioned)


def _viterbi(graph: Graph, chain: _Chain, steps: Value, lengths: Value) -> Value:
    """The best path (T, B); beyond the end of a sentence its last tag is repeated."""

    def best(arriving: Value, emission: Value, *own: Value) -> tuple[Value, Value, Value]:
        score = _normalized(graph, arriving + emission)
        pairs = graph.unsqueeze(score, 2) + (own[0] if own else chain.transitions)  # (B, before, after)
        return graph.max(pairs, 1), score, graph.ArgMax(pairs, axis=1, keepdims=0)

    # The transitions into the next word.
    moves = [_earlier(graph, chain.transitions)] if chain.conditioned else []
    _, scores, sources = graph.scan(best, [chain.start], [chain.emissions, *moves])
    last = graph.GatherND(graph.transpose(scores, 1, 0, 2), graph.unsqueeze(graph.Max(lengths - 1, 0), 1), batch_dims=1)
    tag = graph.ArgMax(last + chain.end, axis=1, keepdims=0)

    def back(tag: Value, source: Value, goes_on: Value) -> tuple[Value, Value]:
        tag = graph.Where(goes_on, graph.pick(source, tag), tag)
        return tag, tag

    _, path = graph.scan(back, [tag], [sources, (steps + 1) < lengths], backwards=True)
    return path


def _messages(graph: Graph, chain: _Chain, lengths: Value) -> tuple[Value, Value, Value]:
    """Log-sums over partial paths of each tag of each word, (T, B, K) each, up to a number for each word.

    Returns:
        Of the paths from the start up to the tag, with its emission; of those from the tag to the end, without; and the
        latter with its emission.
    """
    both = graph.stack(chain.emissions, reversed_words(graph, chain.emissions, lengths), axis=1)  # (T, 2, B, K)
    start = graph.stack(chain.start, graph.Expand(chain.end, graph.Shape(chain.start)))
    constant, own_moves = chain.transitions, []
    if chain.conditioned:
        backwards = graph.transpose(reversed_words(graph, chain.transitions, lengths), 0, 1, 3, 2)
        own_moves = [graph.stack(_earlier(graph, chain.transitions), backwards, axis=1)]  # (T, 2, B, K, K)
    else:
        constant = graph.unsqueeze(graph.stack(chain.transitions, graph.transpose(chain.transitions, 1, 0)), 1)

    def step(arriving: Value, emission: Value, *own: Value) -> tuple[Value, Value, Value]:
        leaving = _normalized(graph, arriving + emission)
        pairs = graph.unsqueeze(leaving, 3) + (own[0] if own else constant)  # (2, B, before, after)
        return graph.ReduceLogSumExp(pairs, [2], keepdims=0), arriving, leaving

    _, arriving, leaving = graph.scan(step, [start], [both, *own_moves])
    from_left, from_right = (graph.squeeze(part, 1) for part in graph.split(leaving, 2, axis=1))
    to_right = graph.Gather(arriving, 1, axis=1)
    return from_left, reversed_words(graph, to_right, lengths), reversed_words(graph, from_right, lengths)


def _normalized(graph: Graph, scores: Value) -> Value:
    """Scores (…, K) less their maximum; −∞ − −∞ would be NaN."""
    return scores - graph.Max(graph.max(scores, -1, keep=True), _LOWEST)


def _earlier(graph: Graph, values: Value) -> Value:
    """The values (T, …) one step earlier; the last one is arbitrary."""
    return graph.concat(graph.slice(values, 1, None, axis=0), graph.slice(values, 0, 1, axis=0), axis=0)


def _later(graph: Graph, values: Value) -> Value:
    """The values (T, …) one step later; the first one is arbitrary."""
    return graph.concat(graph.slice(values, 0, 1, axis=0), graph.slice(values, 0, -1, axis=0), axis=0)


# --- Public labels ---------------------------------------------------------------------------------------------------


def add_labels(graph: Graph, tags: TagSpace, path: Value, lengths: Value, repair: bool) -> Value:
    """The public labels (T, B) of inner tags (T, B), as `TagSpace.to_public_path` has them."""
    if not tags.chunked:
        return path
    tables = tags.on(torch.device("cpu"))
    time, batch = graph.size(path, 0), graph.size(path, 1)
    words = graph.unsqueeze(graph.arange(time), 1) < lengths
    kind = graph.Where(words, graph.Gather(tables.kind, path), OUTSIDE)
    type_ = graph.Where(words, graph.Gather(tables.entity_type, path), NO_TYPE)
    outside = graph.filled(OUTSIDE, 1, batch, dtype=np.int64)

    def before(values: Value) -> Value:
        return graph.concat(outside, graph.slice(values, 0, -1, axis=0), axis=0)

    continued = continues(kind, type_, before(kind), before(type_))
    inside = ~(kind == OUTSIDE)
    if not repair:
        inside = inside & _well_formed(graph, kind, continued)
    type_ = graph.Max(type_, 0)
    label = graph.Where(continued, graph.Gather(tables.inside_label, type_), graph.Gather(tables.begin_label, type_))
    return graph.Where(inside, label, tags.outside[1])


def _well_formed(graph: Graph, kind: Value, continued: Value) -> Value:
    """True for words (T, B) in a chunk B I* E or S, where `continued` says which words continue the word before."""
    starts = graph.cast(~continued, "int64")
    chunk = graph.CumSum(starts, 0) - 1  # each word's chunk in its sentence
    ends = graph.concat(
        graph.slice(starts, 1, None, axis=0), graph.filled(1, 1, graph.size(kind, 1), dtype=np.int64), axis=0
    )

    def of_chunk(values: Value) -> Value:
        """The sum of values (T, B) over the words of each word's chunk."""
        nothing = kind * 0
        sums = graph.ScatterElements(nothing, chunk, values, axis=0, reduction="add")
        return graph.GatherElements(sums, chunk, axis=0)

    first, last = of_chunk(kind * starts), of_chunk(kind * ends)
    alone = of_chunk(kind * 0 + 1) == 1
    return ((first == BEGIN) & (last == END)) | ((first == SINGLE) & alone)


def _public(graph: Graph, tags: TagSpace, log_probs: Value) -> Value:
    """The log posterior of public labels (T, B, L), from that of inner tags (T, B, K)."""
    if not tags.chunked:
        return log_probs
    first_tag, second_tag = tags.on(torch.device("cpu")).members.unbind(1)
    first = graph.Gather(log_probs, first_tag, axis=-1)
    second = graph.Where(first_tag == second_tag, -torch.inf, graph.Gather(log_probs, second_tag, axis=-1))
    top = graph.Max(first, second)
    return top + graph.Log(graph.Exp(first - top) + graph.Exp(second - top))


def add_probability(graph: Graph, log_probs: Value, labels: Value) -> Value:
    """Probability (T, B), as in the model's logits, of the labels (T, B), from the log posterior (T, B, L)."""
    # A label more probable than the decoded one is lowered to just below it.
    others = graph.Min(log_probs - graph.unsqueeze(graph.pick(log_probs, labels), -1), -MARGIN)
    own = 1 - float(np.exp(-MARGIN))  # the decoded label is among them, lowered
    return graph.Reciprocal(graph.sum(graph.Exp(others), -1) + own)
