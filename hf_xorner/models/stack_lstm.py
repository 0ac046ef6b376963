"""LSTMs that stand over a stack or a queue, and what becomes of the words of a chunk (lample2016, section 3)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import initialization as init

from .configuration_stack_lstm import StackLstmConfig
from .features import draw_vectors
from .recurrent import BiLstmLayer, masked_recurrence, reversed_order
from .tags import TagSpace
from .transitions import FIRST_REDUCE, OUT, SHIFT, TransitionSystem

#: Rows of a batch that are worth a call of their own of the backend's kernel, and how many such calls there may be.
ROWS_TOGETHER, GROUPS = 16, 4


class StackLstm(nn.Module):
    """An LSTM of several layers that reads a learned vector before all else, so that an empty stack has a state.

    Standard cells, gates in the order i, f, g, o. What reads a layer is the layer above it, dropout between them.
    """

    def __init__(self, config: StackLstmConfig, input_size: int) -> None:
        super().__init__()
        self.config = config
        size, layers = config.hidden_size, config.num_hidden_layers
        self.start = nn.Parameter(torch.empty(input_size))
        self.weight_ih = nn.Parameter(torch.empty(4 * size, input_size))  # of the lowest layer
        # Of those above it.
        self.weight_up = nn.Parameter(torch.empty(layers - 1, 4 * size, size)) if layers > 1 else None
        self.weight_hh = nn.Parameter(torch.empty(layers, 4 * size, size))
        self.bias = nn.Parameter(torch.empty(layers, 4 * size))

    def reset_parameters(self) -> None:
        """Start Glorot-uniform, each gate's matrix by itself, with forget bias 1 and a start like any vector."""
        draw_vectors(self.start, self.config)
        size = self.config.hidden_size
        for weight in (self.weight_ih, self.weight_up, self.weight_hh):
            if weight is None:
                continue
            bound = (6 / (weight.shape[-1] + size)) ** 0.5
            nn.init.uniform_(weight, -bound, bound)
        bias = torch.zeros_like(self.bias)
        bias[:, size : 2 * size] = 1
        init.copy_(self.bias, bias)

    def forward(self, inputs: Tensor, lengths: Tensor, start: tuple[Tensor, Tensor]) -> Tensor:
        """Push inputs (B, T, d), of which lengths (B,) count, one after another.

        Returns:
            The states (B, T + 1, H) of the top layer, from `start` on; what stands beyond a length means nothing.
        """
        batch, time, _ = inputs.shape
        if inputs.device.type != "cpu" or torch.compiler.is_compiling() or batch < 2 * ROWS_TOGETHER:
            return self.run(inputs, start)
        # Rows of like length together, so that little of what is computed is padding.
        order = lengths.argsort(descending=True, stable=True)
        parts = []
        for rows in order.split(max(ROWS_TOGETHER, -(-batch // GROUPS))):
            width = int(lengths[rows[0]])
            states = self.run(inputs[:, :width].index_select(0, rows), start)
            parts.append(F.pad(states, (0, 0, 0, time - width)))
        return torch.cat(parts).index_select(0, order.argsort())

    def run(self, inputs: Tensor, start: tuple[Tensor, Tensor]) -> Tensor:
        """`forward` for rows that are all as long as T."""
        empty = start[0][-1].expand(len(inputs), 1, -1)
        if not inputs.shape[1]:
            return empty
        initial = tuple(state.unsqueeze(1).expand(-1, len(inputs), -1).contiguous() for state in start)
        return torch.cat([empty, self.fused(inputs, initial)], 1)

    def empty(self) -> tuple[Tensor, Tensor]:
        """The h and c of all layers, (layers, H) each, after the learned vector alone."""
        below: Tensor = self.start
        hidden, cells = [], []
        for reader, bias in zip(self.readers(), self.bias, strict=True):
            # One step from h = c = 0, too small for the backend's kernel.
            below, c = lstm_cell((reader * below).sum(1) + bias, bias.new_zeros(self.config.hidden_size))
            hidden.append(below)
            cells.append(c)
        return torch.stack(hidden), torch.stack(cells)

    def fused(self, inputs: Tensor, initial: tuple[Tensor, ...]) -> Tensor:
        """The backend's kernel for all steps and layers."""
        no_bias = torch.zeros_like(self.bias[0])
        layers = list(zip(self.readers(), self.weight_hh, self.bias, strict=True))
        weights = [weight for layer in layers for weight in (*layer, no_bias)]
        dropout = self.config.dropout if self.training else 0.0
        # What is called training here is what a GPU needs to go backward.
        return torch.lstm(inputs, initial, weights, True, len(layers), dropout, torch.is_grad_enabled(), False, True)[0]

    def readers(self) -> list[Tensor]:
        """What reads the input of each layer: the vectors pushed, or the layer below."""
        above: list[Tensor] = [] if self.weight_up is None else list(self.weight_up)
        return [self.weight_ih, *above]


class SpanComposition(nn.Module):
    """g: the words u, …, v of a chunk and its type y become one vector (lample2016, section 3.2).

    A bidirectional LSTM reads the words and the vector r_y of the type as one more token behind them, brought to the
    size of a word by a matrix; g is [its last state ; that of its other direction]. With "affine" chunks (its program)
    it reads the words alone, and g = relu(W [h→ ; h←] + R r_y + b). A word outside of chunks has a type of its own.
    """

    def __init__(self, config: StackLstmConfig, num_types: int, word_size: int) -> None:
        super().__init__()
        self.affine = config.composition == "affine"
        self.types = nn.Embedding(num_types + 1, config.label_dim)  # the last is that of words outside
        size = config.composition_size
        self.layer = BiLstmLayer(word_size, size, gates_apart=True)
        self.label = nn.Linear(config.label_dim, word_size, bias=False)
        self.states = nn.Linear(2 * size, word_size) if self.affine else None
        self.output_size = word_size if self.affine else 2 * size

    def forward(self, words: Tensor, lengths: Tensor, types: Tensor) -> Tensor:
        """Compose chunks of words (N, L, d), right-padded, of lengths (N,) from 1 up and types (N,): (N, g)."""
        labels = self.label(self.types(types))
        last = lengths
        if self.affine:
            last = lengths - 1
        else:
            room = torch.cat([words, torch.zeros_like(words[:, :1])], 1)
            # Out of place, since a chunk's padding holds whatever its gather found.
            behind = torch.arange(room.shape[1], device=lengths.device) == lengths.unsqueeze(1)
            words = torch.where(behind.unsqueeze(-1), labels.unsqueeze(1), room)
        states = self.run(words.expand(2, -1, -1, -1), last + 1)
        chunk = torch.arange(len(lengths), device=lengths.device)
        ends = torch.cat([states[0, chunk, last], states[1, :, 0]], -1)
        return ends if self.states is None else torch.relu(self.states(ends) + labels)

    def run(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Both directions over (2, N, L, d), step by step and over words alone: most chunks are short."""
        nothing_dropped = inputs.new_ones(2, inputs.shape[1], self.layer.hidden_size)
        layer = self.layer
        return masked_recurrence(inputs, lengths, layer.weight_ih, layer.weight_hh, layer.bias, nothing_dropped)

    def products(self, words: Tensor) -> Tensor:
        """What both directions make of words (N, d), and behind these of types, before any state: (2, N + types, 4H).

        So chunks can be composed one after another, by `compose`, as decoding comes to them.
        """
        tokens = torch.cat([words, self.label(self.types.weight)])
        return torch.baddbmm(
            self.layer.bias.unsqueeze(1), tokens.expand(2, -1, -1), self.layer.weight_ih.transpose(1, 2)
        )

    def compose(self, products: Tensor, place: Tensor, lengths: Tensor, types: Tensor) -> Tensor:
        """What `forward` computes, of `products` for words in places (N, L), right-padded, lengths and types (N,)."""
        labels = products.shape[1] - self.types.num_embeddings + types.unsqueeze(1)
        tokens = 0 if self.affine else 1  # besides the words
        steps = torch.arange(place.shape[1] + tokens, device=place.device)
        last = (lengths + tokens - 1).unsqueeze(1)  # the step of the last token
        ahead, behind = (index.clamp(0, place.shape[1] - 1).expand(len(place), -1) for index in (steps, last - steps))
        order = torch.stack([place.gather(1, ahead), place.gather(1, behind)])  # (2, N, steps)
        if not self.affine:
            order = torch.where(torch.stack([steps == last, (steps == 0).expand(len(place), -1)]), labels, order)
        rows = torch.stack([products[d].index_select(0, order[d].T.flatten()) for d in range(2)])
        recurrent = self.layer.weight_hh.transpose(1, 2)
        h = c = products.new_zeros(2, len(place), self.layer.hidden_size)
        for step, gates in enumerate(rows.unflatten(1, (len(steps), len(place))).unbind(1)):
            after = lstm_cell(torch.baddbmm(gates, h, recurrent), c)
            under_way = step <= last
            h, c = (torch.where(under_way, new, old) for new, old in zip(after, (h, c), strict=True))
        ends = torch.cat([h[0], h[1]], -1)
        return ends if self.states is None else torch.relu(self.states(ends) + self.label(self.types(types)))


def lstm_cell(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """h and c of a standard LSTM from its gates (…, 4H), i, f, g, o, and the c before."""
    size = c.shape[-1]
    i, f, _, o = gates.sigmoid().chunk(4, -1)
    c = torch.addcmul(f * c, i, gates[..., 2 * size : 3 * size].tanh())
    return o * c.tanh(), c


class ActionScorer(nn.Module):
    """p = relu(O o + S s + B b + A a + bias), and a softmax over the valid actions of W p + q (lample2016, section 3).

    o, s, b and a are the states of LSTMs over the output, the stack, the buffer and the actions so far. The buffer's
    LSTM reads the last word first, so that taking a word off takes a step back.
    """

    def __init__(self, config: StackLstmConfig, tags: TagSpace, word_size: int) -> None:
        super().__init__()
        self.system = TransitionSystem(tags, config.discontiguous)
        self.raw_words_outside = config.outside == "word"
        self.composition = SpanComposition(config, self.system.num_types, word_size)
        self.actions = nn.Embedding(self.system.num_actions, config.action_dim)
        self.output = StackLstm(config, self.composition.output_size)
        self.stack = StackLstm(config, word_size)
        self.buffer = StackLstm(config, word_size)
        self.history = StackLstm(config, config.action_dim)
        self.hidden = nn.Linear(4 * config.hidden_size, config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, self.system.num_actions)

    def forward(self, words: Tensor, lengths: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Score all actions that are valid wherever a known sequence of actions leads, without stepping along it.

        What each LSTM reads is known beforehand. REDUCE empties the stack, so its LSTM is one that starts anew at each
        chunk: the chunks of a batch are its batch.

        Args:
            words: Vectors of words (B, T, d) of right-padded sentences.
            lengths: (B,).
            actions: Sequences (B, S) that finish their sentences, NO_ACTION after the last action.

        Returns:
            Log probabilities (N, actions) of what could be done where each of the N actions is done, at least float32,
            sentence by sentence, and where in (B, S) these are.
        """
        time = words.shape[1]
        there = actions >= 0
        sentence, step = there.nonzero(as_tuple=True)
        position, depth, outputs, _ = (values[sentence, step] for values in self.system.trace(actions))
        action = actions[sentence, step]
        flat = words.flatten(0, 1)
        word = (sentence * time + position).clamp(max=max(len(flat) - 1, 0))
        shifts, outs, reduces = action == SHIFT, action == OUT, action >= FIRST_REDUCE
        shifted = shifts.cumsum(0) - shifts.long()  # words shifted before, in all sentences
        on_stack = _rows(flat, word[shifts])

        begin, length = (shifted - depth)[reduces], depth[reduces]
        width = int(length.max()) if len(length) else 1
        place = begin.unsqueeze(1) + torch.arange(width, device=begin.device)
        within = place < (begin + length).unsqueeze(1)
        chunks = _rows(on_stack, place.clamp(max=max(len(on_stack) - 1, 0)))  # (chunks, width, d)

        types = action[reduces] - FIRST_REDUCE
        outside = _rows(flat, word[outs])
        pushed = self.composed(chunks, length, types, outside)  # chunks first, then words outside
        counts = torch.stack([(actions >= OUT).sum(1), there.sum(1)])  # (2, B): what goes to the output, and actions
        batch, longest = len(words), int(counts[0].max()) if len(words) else 0
        slot = sentence * longest + outputs
        slot = torch.cat([slot[reduces], slot[outs]])
        on_output = pushed.new_zeros(batch * longest, pushed.shape[1]).index_copy(0, slot, pushed)
        output = self.output(on_output.unflatten(0, (batch, longest)), counts[0], self.output.empty())

        empty = self.stack.empty()
        under = self.stack(chunks, length, empty)[:, 1:][within]  # the state after each shifted word
        stack = torch.cat([empty[0][-1:], under])

        buffer = self.buffer_states(words, lengths)
        done = self.actions(actions[:, :-1].clamp(min=0))
        history = self.history(done, (counts[1] - 1).clamp(min=0), self.history.empty())
        left = lengths[sentence] - position
        states = [
            _rows(output.flatten(0, 1), sentence * (longest + 1) + outputs),
            _rows(stack, torch.where(depth > 0, shifted, 0)),
            _rows(buffer.flatten(0, 1), sentence * (time + 1) + left),
            _rows(history.flatten(0, 1), sentence * history.shape[1] + step),
        ]
        scores = self.classifier(torch.relu(self.hidden(torch.cat(states, -1))))
        valid = self.system.valid(position, depth, lengths[sentence])
        return log_softmax_of_valid(scores, valid), there

    def composed(self, chunks: Tensor, lengths: Tensor, types: Tensor, outside: Tensor) -> Tensor:
        """What the output reads of chunks (N, L, d) and of words outside of them (M, d): (N + M, g)."""
        if self.raw_words_outside:
            return torch.cat([self.composition(chunks, lengths, types), outside])
        single = chunks.new_zeros(len(outside), chunks.shape[1], chunks.shape[2])
        single[:, 0] = outside
        lengths = torch.cat([lengths, lengths.new_ones(len(outside))])
        types = torch.cat([types, types.new_full((len(outside),), self.system.num_types)])
        return self.composition(torch.cat([chunks, single]), lengths, types)

    def buffer_states(self, words: Tensor, lengths: Tensor) -> Tensor:
        """The buffer's state (B, T + 1, H) by the number of words that are left on it."""
        batch, time, _ = words.shape
        order = torch.arange(batch, device=lengths.device).unsqueeze(1) * time + reversed_order(lengths, time)
        backwards = _rows(words.flatten(0, 1), order)
        return self.buffer(backwards, lengths, self.buffer.empty())


def log_softmax_of_valid(scores: Tensor, valid: Tensor) -> Tensor:
    """Log probabilities of the valid actions, at least float32, −∞ of all others; as if all were, where none is."""
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return scores.masked_fill(valid.any(-1, keepdim=True) & ~valid, -torch.inf).log_softmax(-1)


def _rows(values: Tensor, index: Tensor) -> Tensor:
    """The rows (…, d) of values (N, d); its way back is faster than that of plain indexing."""
    return values.index_select(0, index.flatten()).unflatten(0, index.shape)
