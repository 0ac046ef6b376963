"""The Stack-LSTM one sentence and one action at a time, with real stacks, as lample2016 (section 3) tells it.

Plain torch, so that autograd gives the gradients; float64 where the weights are. `weights` is the state dict of what
scores actions, words are (T, d). Actions are strings: "SHIFT", "OUT", "REDUCE-PER".
"""

from __future__ import annotations

from typing import NamedTuple

import references as ref
import torch


class State(NamedTuple):
    """The parser state: the items of the four structures, and the states of their LSTMs below each item."""

    buffer: tuple  # words left, the next one last
    buffer_states: tuple
    stack: tuple
    stack_states: tuple
    chunks: tuple  # (type, words), types "" for words outside
    output_state: list
    history_state: list


class StackLstmReference:
    def __init__(self, weights, config):
        self.weights, self.config = weights, config
        self.labels = config.labels
        self.chunked = ref.is_chunked(self.labels)
        self.types = list(dict.fromkeys(self.type_of(label) for label in self.labels if label != "O"))
        self.actions = ["SHIFT", "OUT", *(f"REDUCE-{kind}" for kind in self.types)]

    def type_of(self, label):
        return label[2:] if self.chunked else label

    def many(self, kind):
        return f"I-{kind}" in self.labels

    # Networks

    def read(self, name, state, x):
        """One more input x to the LSTM of all layers."""
        after = []
        for layer, (h, c) in enumerate(state):
            matrix = self.weights[f"{name}.weight_up"][layer - 1] if layer else self.weights[f"{name}.weight_ih"]
            gates = matrix @ x + self.weights[f"{name}.weight_hh"][layer] @ h + self.weights[f"{name}.bias"][layer]
            h, c = cell(gates, c, self.of(f"{name}.weight_ch", layer))
            after.append((h, c))
            x = h
        return after

    def begin(self, name):
        start = self.weights[f"{name}.start"]
        zeros = start.new_zeros(self.config.hidden_size)
        return self.read(name, [(zeros, zeros)] * self.config.num_hidden_layers, start)

    def of(self, name, index):
        """One of several matrices, None if the model has none."""
        return self.weights[name][index] if name in self.weights else None

    def compose(self, words, kind):
        """g(words, type): an LSTM from each side over the words and the type's token behind them."""
        number = self.types.index(kind) if kind else len(self.types)
        label = self.weights["composition.label.weight"] @ self.weights["composition.types.weight"][number]
        tokens, ends = [*words, label], []
        for direction, ordered in enumerate((tokens, tokens[::-1])):
            parts = ("weight_ih", "weight_hh", "bias", "weight_ch")
            w_ih, w_hh, bias, w_ch = (self.of(f"composition.layer.{part}", direction) for part in parts)
            h = c = bias.new_zeros(self.config.composition_size)
            for x in ordered:
                h, c = cell(w_ih @ x + w_hh @ h + bias, c, w_ch)
            ends.append(h)
        return torch.cat(ends)

    # Transitions

    def initial(self, words):
        states = [self.begin("buffer")]
        for word in reversed(words):
            states.append(self.read("buffer", states[-1], word))
        return State(
            tuple(reversed(range(len(words)))), tuple(states),
            (), (self.begin("stack"),), (), self.begin("output"), self.begin("history"),
        )  # fmt: skip

    def valid(self, state):
        actions = []
        some_many = any(self.many(kind) for kind in self.types)
        if state.buffer and (not state.stack or some_many):
            actions.append("SHIFT")
        if state.buffer and self.chunked and not state.stack:
            actions.append("OUT")
        if state.stack:
            actions += [f"REDUCE-{kind}" for kind in self.types if len(state.stack) == 1 or self.many(kind)]
        return actions

    def log_probs(self, state):
        """Log probability of each valid action."""
        tops = [states[-1][0] for states in (state.output_state, state.stack_states[-1])]
        tops += [states[-1][0] for states in (state.buffer_states[-1], state.history_state)]
        p = torch.relu(self.weights["hidden.weight"] @ torch.cat(tops) + self.weights["hidden.bias"])
        scores = self.weights["classifier.weight"] @ p + self.weights["classifier.bias"]
        valid = self.valid(state)
        chosen = scores[[self.actions.index(action) for action in valid]]
        return dict(zip(valid, chosen - chosen.logsumexp(0), strict=True))

    def after(self, state, words, action):
        history = self.weights["actions.weight"][self.actions.index(action)]
        state = state._replace(history_state=self.read("history", state.history_state, history))
        if action.startswith("REDUCE-"):
            kind = action.removeprefix("REDUCE-")
            chunk = self.compose([words[word] for word in state.stack], kind)
            return state._replace(
                stack=(),
                stack_states=state.stack_states[:1],
                chunks=(*state.chunks, (kind, state.stack)),
                output_state=self.read("output", state.output_state, chunk),
            )
        word = state.buffer[-1]
        state = state._replace(buffer=state.buffer[:-1], buffer_states=state.buffer_states[:-1])
        if action == "SHIFT":
            top = self.read("stack", state.stack_states[-1], words[word])
            return state._replace(stack=(*state.stack, word), stack_states=(*state.stack_states, top))
        outside = self.compose([words[word]], "")
        return state._replace(
            chunks=(*state.chunks, ("", (word,))), output_state=self.read("output", state.output_state, outside)
        )

    # Sentences

    def gold(self, labels):
        """The actions of public labels, None for words without one, and whether each action is known to be right."""
        inner = ref.to_inner(["O" if label is None else label for label in labels])
        actions, known = [], []
        for tag, label in zip(inner, labels, strict=True):
            position, kind = ref.split(tag) if self.chunked else ("S", tag)
            if label is None or tag == "O":
                actions.append("OUT")
            else:
                actions.append("SHIFT")
                if position in ("E", "S"):
                    actions.append(f"REDUCE-{kind}")
            known += [label is not None] * (len(actions) - len(known))
        return actions, known

    def loss(self, words, labels):
        """The negative log-likelihood of the gold actions, along which the sentence is built step by step."""
        state, total = self.initial(words), words.sum() * 0
        for action, known in zip(*self.gold(labels), strict=True):
            if known:
                total = total - self.log_probs(state)[action]
            state = self.after(state, words, action)
        assert not self.valid(state)
        return total

    def greedy(self, words):
        """Actions, and log probabilities of all valid ones at each."""
        state, actions, log_probs = self.initial(words), [], []
        while self.valid(state):
            log_probs.append(self.log_probs(state))
            actions.append(max(log_probs[-1], key=log_probs[-1].get))
            state = self.after(state, words, actions[-1])
        return actions, log_probs, state.chunks

    def tags(self, chunks, length):
        """Public labels of chunks."""
        if not self.chunked:
            return [kind for kind, _ in sorted(chunks, key=lambda chunk: chunk[1])]
        return ref.public_tags([(kind, words[0], words[-1] + 1) for kind, words in chunks if kind], length)


def cell(gates, c, w_ch=None):
    """A standard LSTM, or with full peepholes the one of lample2016, section 2.1."""
    if w_ch is None:
        i, f, g, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
    (i, g, o), (w_ci, w_co) = gates.chunk(3), w_ch.chunk(2)
    i = (i + w_ci @ c).sigmoid()
    c = (1 - i) * c + i * g.tanh()
    return (o + w_co @ c).sigmoid() * c.tanh(), c
