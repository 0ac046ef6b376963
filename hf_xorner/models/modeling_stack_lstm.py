"""Stack-LSTM (lample2016): its decoder, with the loss of actions, greedy search and the posterior of tags."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers.utils.generic import maybe_autocast

from .configuration_stack_lstm import StackLstmConfig
from .decoders import Axes, Decoded, Decoder
from .modeling_tagger import Encoded, Encoder, TaggerForTokenClassification
from .recurrent import lstm_cell
from .stack_lstm import ActionScorer, log_softmax_of_valid, states_of
from .tags import TagSpace
from .transitions import FIRST_REDUCE, NO_ACTION, OUT, SHIFT, TransitionSystem


class States(NamedTuple):
    """The states of N sentences.

    The top state of a stack suffices, since it only grows until a REDUCE empties it.
    """

    sentence: Tensor  # (N,)
    position: Tensor  # (N,) words that have left the buffer
    depth: Tensor  # (N,) words on the stack: the last ones that left the buffer
    h: Tensor  # (layers, 3, N, H), of output, stack and actions
    c: Tensor

    def select(self, index: Tensor) -> States:
        """The states at indices (M,)."""
        h, c = self.h.index_select(2, index), self.c.index_select(2, index)
        return States(self.sentence[index], self.position[index], self.depth[index], h, c)


class Stepper:
    """Executes the actions of a batch of sentences step by step.

    Products that depend on the words alone are computed in advance. A step of the other three LSTMs, whose inputs
    depend on the actions, is one batched product per layer.
    """

    def __init__(self, scorer: ActionScorer, words: Tensor, lengths: Tensor) -> None:
        self.scorer, self.words, self.lengths = scorer, words, lengths
        self.time = words.shape[1]
        output, stack, history = self.lstms = (scorer.output, scorer.stack, scorer.history)
        flat = words.flatten(0, 1)
        size = history.weight_hh.shape[2]
        # The layer over all four states reads them in the order output, stack, buffer, actions.
        parts = scorer.hidden.weight.split(size, 1)
        (buffer,) = states_of([scorer.buffer], [scorer.backwards(words, lengths)], [lengths])
        self.from_buffer = torch.addmm(scorer.hidden.bias, buffer.flatten(0, 1), parts[2].T)
        self.from_others = torch.cat([parts[0], parts[1], parts[3]], 1).T.contiguous()
        self.to_actions = scorer.classifier.weight.T.contiguous()
        self.to_output = output.weight_ih.T.contiguous()
        # Input products of the lowest layers for every word and action.
        self.products = scorer.composition.products(flat)
        every_word = torch.arange(len(flat), device=flat.device)
        types = torch.full_like(every_word, scorer.system.num_types)
        outside = scorer.composition(self.products, every_word.unsqueeze(1), torch.ones_like(every_word), types)
        self.gates_of_outs = torch.addmm(output.bias[0], outside, self.to_output)
        self.gates_of_shifts = torch.addmm(stack.bias[0], flat, stack.weight_ih.T)
        self.gates_of_actions = torch.addmm(history.bias[0], scorer.actions.weight, history.weight_ih.T)
        recurrent = torch.stack([lstm.weight_hh for lstm in self.lstms], 1).transpose(2, 3)  # (layers, 3, H, gates · H)
        self.weights = [recurrent[0].contiguous()]
        upward: list[Tensor] = [lstm.weight_up for lstm in self.lstms if lstm.weight_up is not None]
        if upward:
            self.weights += torch.cat([torch.stack(upward, 1).transpose(2, 3), recurrent[1:]], 2)
        self.biases = torch.stack([lstm.bias for lstm in self.lstms], 1).unsqueeze(2)  # (layers, 3, 1, gates · H)
        peepholes: list[Tensor] = [lstm.weight_ch for lstm in self.lstms if lstm.weight_ch is not None]
        self.peepholes: list[Tensor | None] = [None] * len(self.weights)
        if peepholes:
            self.peepholes = [*torch.stack(peepholes, 1).transpose(2, 3).contiguous()]
        starts = [lstm.empty() for lstm in self.lstms]
        self.h, self.c = (torch.stack(states, 1).unsqueeze(2) for states in zip(*starts, strict=True))

    def start(self) -> States:
        """The initial states of all sentences."""
        sentence = torch.arange(len(self.words), device=self.lengths.device)
        nothing = torch.zeros_like(sentence)
        h, c = (states.expand(-1, -1, len(sentence), -1) for states in (self.h, self.c))
        return States(sentence, nothing, nothing, h, c)

    def unfinished(self, states: States) -> Tensor:
        """Sentences that need another action, (N,)."""
        return (states.position < self.lengths[states.sentence]) | (states.depth > 0)

    def log_probs(self, states: States) -> Tensor:
        """Log probabilities of the next action, (N, actions)."""
        length = self.lengths[states.sentence]
        left = states.sentence * (self.time + 1) + length - states.position
        others = states.h[-1].transpose(0, 1).flatten(1)
        p = torch.addmm(self.from_buffer.index_select(0, left), others, self.from_others).relu_()
        scores = torch.addmm(self.scorer.classifier.bias, p, self.to_actions)
        valid = self.scorer.system.valid(states.position, states.depth, length)
        return log_softmax_of_valid(scores, valid, self.scorer.config.score_temperature)

    def push(self, states: States, action: Tensor) -> States:
        """Execute one action (N,) of each sentence."""
        shifts, outs, reduces = action == SHIFT, action == OUT, action >= FIRST_REDUCE
        word = states.sentence * self.time + states.position.clamp(max=self.time - 1)
        gates = torch.stack(
            [
                self.gates_of_chunks(states, action, self.gates_of_outs.index_select(0, word)),
                self.gates_of_shifts.index_select(0, word),
                self.gates_of_actions.index_select(0, action),
            ]
        )
        pushes = torch.stack([~shifts, shifts, torch.ones_like(shifts)]).unsqueeze(-1)
        empties = torch.stack([torch.zeros_like(reduces), reduces, torch.zeros_like(reduces)]).unsqueeze(-1)
        below, hidden, cells = None, [], []
        for layer, weight in enumerate(self.weights):
            h, c = states.h[layer], states.c[layer]
            if below is None:
                gates = torch.baddbmm(gates, h, weight)
            else:
                gates = torch.baddbmm(self.biases[layer], torch.cat([below, h], -1), weight)
            below, cell = lstm_cell(gates, c, self.peepholes[layer])
            hidden.append(torch.where(pushes, below, torch.where(empties, self.h[layer], h)))
            cells.append(torch.where(pushes, cell, torch.where(empties, self.c[layer], c)))
        position = states.position + (shifts | outs)
        depth = (states.depth + shifts).masked_fill(reduces, 0)
        return States(states.sentence, position, depth, torch.stack(hidden), torch.stack(cells))

    def gates_of_chunks(self, states: States, action: Tensor, gates: Tensor) -> Tensor:
        """Input products of the output's lowest layer for the chunks of REDUCE, else `gates` (N, gates · H)."""
        index = (action >= FIRST_REDUCE).nonzero().squeeze(1)
        if not len(index):
            return gates
        sentence, position, depth = states.sentence[index], states.position[index], states.depth[index]
        offset = torch.arange(int(depth.max()), device=depth.device)
        word_rows = (position - depth).unsqueeze(1) + offset  # of the words on the stack
        word_rows = (sentence * self.time).unsqueeze(1) + word_rows.clamp(max=self.time - 1)
        chunk = self.scorer.composition(self.products, word_rows, depth, action[index] - FIRST_REDUCE)
        return gates.index_copy(0, index, torch.addmm(self.scorer.output.bias[0], chunk, self.to_output))


@torch.no_grad()
def greedy_search(scorer: ActionScorer, words: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The most probable action at each step.

    Returns:
        Actions (B, S), NO_ACTION after the last, and the log probabilities (B, S, actions) from which they were chosen.
    """
    stepper = Stepper(scorer, words, lengths)
    batch, time, _ = words.shape
    states = stepper.start()
    rows = torch.arange(batch, device=lengths.device)
    wide = torch.promote_types(words.dtype, torch.float32)
    actions = lengths.new_full((2 * time, batch), NO_ACTION)
    log_probs = words.new_zeros((2 * time, batch, scorer.system.num_actions), dtype=wide)
    for step in range(2 * time):
        unfinished = stepper.unfinished(states).nonzero().squeeze(1)
        if not len(unfinished):
            actions, log_probs = actions[:step], log_probs[:step]
            break
        if len(unfinished) < len(rows):
            rows, states = rows[unfinished], states.select(unfinished)
        now = stepper.log_probs(states)
        action = now.max(-1).indices
        states = stepper.push(states, action)
        actions[step, rows], log_probs[step, rows] = action, now
    return actions.t(), log_probs.transpose(0, 1)


class TransitionDecoder(Decoder):
    """Decodes vectors of words (the encoder's states) into actions, and these into tags; scores of tags are ignored.

    Probabilities of tags are those of `local_posterior`.
    """

    def __init__(self, config: StackLstmConfig, tags: TagSpace, input_size: int) -> None:
        super().__init__(config)
        self.scorer = ActionScorer(config, tags, input_size)

    def label_axes(self) -> Axes:
        """The axes of actions, and of types, which are named by their actions; OUT names that of words outside."""
        actions = self.scorer.system.actions
        types = [*actions[FIRST_REDUCE:], actions[OUT]]
        return {
            "scorer.composition.types.weight": (types, None),
            "scorer.actions.weight": (actions, None),
            "scorer.classifier.weight": (actions, None),
            "scorer.classifier.bias": (actions,),
        }

    @torch.compiler.disable
    def negative_log_likelihood(self, scores: Tensor, gold: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        """−log p of the actions for gold tags (B, T): (B,). A word whose tag is IGNORED is OUT, at no cost."""
        system = self.scorer.system
        words = self.words(states)
        with maybe_autocast(words.device.type, enabled=False):
            actions, known = system.actions_of(gold, lengths)
            steps = int((actions != NO_ACTION).sum(1).max()) if len(actions) else 0
            actions, known = actions[:, :steps], known[:, :steps]
            log_probs, sentence, step = self.scorer(words, lengths, actions)
            right = log_probs.gather(1, actions[sentence, step].unsqueeze(1)).squeeze(1)
            losses = torch.where(known[sentence, step], -right, 0)
            return losses.new_zeros(len(lengths)).index_add(0, sentence, losses)

    @torch.compiler.disable
    def decode(self, scores: Tensor, lengths: Tensor, states: Tensor, all_tags: bool = True) -> Decoded:
        """Greedy search, in the dtype of the weights."""
        system, words = self.scorer.system, self.words(states)
        batch, time, _ = words.shape
        with maybe_autocast(words.device.type, enabled=False):
            actions, log_probs = greedy_search(self.scorer, words, lengths)
        path = system.tags_of(actions, time)
        if not actions.shape[1]:
            even = log_probs.new_zeros(batch, time, system.tags.num_inner).log_softmax(-1)
            return Decoded(path, even, log_probs.new_zeros(batch, time, 2))
        probabilities = local_posterior(system, actions, log_probs, time)
        path_log_probs = word_log_probs(system, actions, log_probs, time)
        # The inner tags of a public label share its probability evenly.
        public = system.tags.on(probabilities.device).public
        shared = (public == public.unsqueeze(1)).sum(1).to(probabilities.dtype)
        inner = probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()[..., public] - shared.log()
        return Decoded(path, inner, path_log_probs.unsqueeze(-1).expand(-1, -1, 2))

    def words(self, states: Tensor) -> Tensor:
        """The words in the dtype of the weights."""
        if self.scorer.hidden.weight.is_meta:
            raise ValueError(
                "The weights of a Stack-LSTM's decoder are on the meta device: it can be neither offloaded nor run on "
                "the meta device; load the model whole on one device."
            )
        return states.to(self.scorer.hidden.weight.dtype)


def word_log_probs(system: TransitionSystem, actions: Tensor, log_probs: Tensor, time: int) -> Tensor:
    """Log probability (B, T) of each word's SHIFT or OUT, and of REDUCE(y) at the last word of a chunk.

    They add up to the log probability of a chunk given the actions before it. actions (B, S), log_probs
    (B, S, actions).
    """
    step, leaves = system.leaving_steps(actions, time)
    done = log_probs.gather(2, actions.clamp(min=0).unsqueeze(2)).squeeze(2)
    end = system.later(actions >= FIRST_REDUCE).gather(1, step).clamp(max=actions.shape[1] - 1)
    last = (actions.gather(1, step) == SHIFT) & (end == step + 1)
    decided = done.gather(1, step) + torch.where(last, done.gather(1, end), 0)
    return torch.where(leaves, decided, 0)


def local_posterior(system: TransitionSystem, actions: Tensor, log_probs: Tensor, time: int) -> Tensor:
    """Probabilities (B, T, L) of public labels from those of the actions, given the decoded actions before.

    With words on the stack, SHIFT of the next word is an I- label. Otherwise the chunk ends; then the stack is empty,
    OUT is O and SHIFT is a B- label. Types have the probabilities of the chunk's REDUCE. States that decoding did not
    reach have no probabilities: if the chunk did not end, the rest is split evenly among O and all B- labels, and if
    the word did not start a chunk, types are equally probable. actions (B, S), log_probs (B, S, actions).
    """
    tags, tables, many = system.tags, system.tags.on(actions.device), system.of_many_words(actions.device)
    leaving, _ = system.leaving_steps(actions, time)
    before = (leaving - 1).clamp(min=0)
    ended = (leaving > 0) & (actions.gather(1, before) >= FIRST_REDUCE)  # a chunk ended right before the word
    arrival = torch.where(ended, before, leaving)
    going_on = system.trace(actions).depth.gather(1, arrival) > 0
    end = system.later(actions >= FIRST_REDUCE).gather(1, leaving).clamp(max=actions.shape[1] - 1)
    steps = (arrival, leaving, end)
    at_arrival, at_step, at_end = (log_probs.take_along_dim(step.unsqueeze(-1), 1).exp() for step in steps)
    inside = at_arrival[..., SHIFT].masked_fill(~going_on, 0)
    closed = (1 - inside).clamp(min=0)
    unknown = going_on & ~ended
    types = system.num_types
    unknown_outside = 1 / (types + 1) if tags.chunked else 0.0
    begins = closed * torch.where(unknown, 1 - unknown_outside, at_step[..., SHIFT])
    outside = closed * torch.where(unknown, unknown_outside, at_step[..., OUT])
    started = ((actions.gather(1, leaving) == SHIFT) & ~unknown).unsqueeze(-1)
    type_begun = torch.where(started, _normal(at_end[..., FIRST_REDUCE:]), 1 / types)
    type_inside = _normal(torch.where(ended.unsqueeze(-1), at_arrival, at_end)[..., FIRST_REDUCE:] * many)
    public = log_probs.new_zeros(*leaving.shape, len(tags.labels))
    public = public.index_add(2, tables.begin_label, begins.unsqueeze(-1) * type_begun)
    public = public.index_add(2, tables.inside_label, inside.unsqueeze(-1) * type_inside)
    if tags.chunked:
        public[..., tags.outside[1]] += outside
    return public


def _normal(weights: Tensor) -> Tensor:
    """Weights (…, d) normalised to a sum of 1, or 0."""
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)


class WordVectors(Encoder):
    """The features; the LSTMs depend on the actions and belong to the decoder."""

    def __init__(self, config: StackLstmConfig, input_size: int) -> None:
        super().__init__()
        self.output_size = input_size

    def forward(
        self, features: Tensor, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """Return the features (B, T, d)."""
        return Encoded(features)


class StackLstmForTokenClassification(TaggerForTokenClassification):
    """Stack-LSTM.

    The loss is that of the gold actions, computed in parallel. A word without label is treated as OUT at no cost. In
    evaluation the argmax of the logits is the result of greedy search, and their softmax a posterior derived from the
    actions' probabilities (see `local_posterior`), without gradient.

    The decoder can be neither offloaded by accelerate nor run on the meta device: shapes depend on what is decoded.
    """

    config_class = StackLstmConfig
    encoder_class = WordVectors

    def build_head(self, config: StackLstmConfig) -> None:
        """Create the decoder, without a classifier: it reads the words in place of scores of tags."""
        self.classifier = nn.Identity()
        self.decoder = TransitionDecoder(config, self.tags, self.encoder.output_size)
