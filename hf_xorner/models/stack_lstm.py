"""The network of the Stack-LSTM: LSTMs over stack and queues, composition of chunks, scores of actions (lample2016)."""

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

#: Minimum rows of a batch for a separate call of the backend's kernel, and the maximum number of such calls.
ROWS_TOGETHER, GROUPS = 16, 4


class StackLstm(nn.Module):
    """A standard LSTM of several layers that first reads a learned vector, so that an empty stack has a state.

    Gates in the order i, f, g, o; dropout between layers.
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
        """Glorot-uniform weights, each gate's matrix apart, and forget bias 1."""
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
        """Push inputs (B, T, d) of lengths (B,) one after another.

        Returns:
            The states (B, T + 1, H) of the top layer, from `start` on; arbitrary beyond a length.
        """
        batch, time, _ = inputs.shape
        if inputs.device.type != "cpu" or torch.compiler.is_compiling() or batch < 2 * ROWS_TOGETHER:
            return self.run(inputs, start)
        # Rows of similar length together, to save computation for padding.
        order = lengths.argsort(descending=True, stable=True)
        parts = []
        for rows in order.split(max(ROWS_TOGETHER, -(-batch // GROUPS))):
            width = int(lengths[rows[0]])
            states = self.run(inputs[:, :width].index_select(0, rows), start)
            parts.append(F.pad(states, (0, 0, 0, time - width)))
        return torch.cat(parts).index_select(0, order.argsort())

    def run(self, inputs: Tensor, start: tuple[Tensor, Tensor]) -> Tensor:
        """`forward` for rows of full length T."""
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
            # One step from h = c = 0.
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
        # cuDNN needs `train` for a backward pass.
        return torch.lstm(inputs, initial, weights, True, len(layers), dropout, torch.is_grad_enabled(), False, True)[0]

    def readers(self) -> list[Tensor]:
        """The input weights of each layer."""
        above: list[Tensor] = [] if self.weight_up is None else list(self.weight_up)
        return [self.weight_ih, *above]


class SpanComposition(nn.Module):
    """g: one vector of the words u, …, v of a chunk and its type y (lample2016, section 3.2).

    A bidirectional LSTM reads the words and then the type's vector r_y, projected to the size of a word; g consists of
    the last states of both directions. With "affine" chunks (its program) it reads only the words, and
    g = relu(W [h→ ; h←] + R r_y + b). Words outside of chunks have their own type.
    """

    def __init__(self, config: StackLstmConfig, num_types: int, word_size: int) -> None:
        super().__init__()
        self.affine = config.composition == "affine"
        self.types = nn.Embedding(num_types + 1, config.label_dim)  # the last is for words outside
        size = config.composition_size
        self.layer = BiLstmLayer(word_size, size)
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
            behind = torch.arange(room.shape[1], device=lengths.device) == lengths.unsqueeze(1)
            words = torch.where(behind.unsqueeze(-1), labels.unsqueeze(1), room)
        states = self.run(words.expand(2, -1, -1, -1), last + 1)
        chunk = torch.arange(len(lengths), device=lengths.device)
        ends = torch.cat([states[0, chunk, last], states[1, :, 0]], -1)
        return ends if self.states is None else torch.relu(self.states(ends) + labels)

    def run(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Both directions over (2, N, L, d) without padding, since most chunks are short."""
        nothing_dropped = inputs.new_ones(2, inputs.shape[1], self.layer.hidden_size)
        layer = self.layer
        return masked_recurrence(inputs, lengths, layer.weight_ih, layer.weight_hh, layer.bias, nothing_dropped)

    def products(self, words: Tensor) -> Tensor:
        """Input products of both directions for words (N, d), then for types, (2, N + types, 4H), for `compose`."""
        tokens = torch.cat([words, self.label(self.types.weight)])
        return torch.baddbmm(
            self.layer.bias.unsqueeze(1), tokens.expand(2, -1, -1), self.layer.weight_ih.transpose(1, 2)
        )

    def compose(self, products: Tensor, place: Tensor, lengths: Tensor, types: Tensor) -> Tensor:
        """`forward` from `products` for words at indices (N, L), right-padded, of lengths and types (N,)."""
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

    o, s, b and a are the states of LSTMs over the output, the stack, the buffer (last word first) and the actions.
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
        """Score all valid actions along a known sequence of actions, in parallel.

        REDUCE empties the stack, so the chunks are the batch of the stack's LSTM.

        Args:
            words: Vectors of words (B, T, d) of right-padded sentences.
            lengths: (B,).
            actions: Sequences (B, S) that finish their sentences, NO_ACTION after the last action.

        Returns:
            Log probabilities (N, actions) in at least float32 before each of the N actions, sentence by sentence, and
            the mask (B, S) of these actions.
        """
        time = words.shape[1]
        there = actions >= 0
        sentence, step = there.nonzero(as_tuple=True)
        position, depth, outputs, _ = (values[sentence, step] for values in self.system.trace(actions))
        action = actions[sentence, step]
        flat = words.flatten(0, 1)
        word = (sentence * time + position).clamp(max=max(len(flat) - 1, 0))
        shifts, outs, reduces = action == SHIFT, action == OUT, action >= FIRST_REDUCE
        shifted = shifts.cumsum(0) - shifts.long()  # words shifted before in the batch
        on_stack = _rows(flat, word[shifts])

        begin, length = (shifted - depth)[reduces], depth[reduces]
        width = int(length.max()) if len(length) else 1
        place = begin.unsqueeze(1) + torch.arange(width, device=begin.device)
        within = place < (begin + length).unsqueeze(1)
        chunks = _rows(on_stack, place.clamp(max=max(len(on_stack) - 1, 0)))  # (chunks, width, d)

        types = action[reduces] - FIRST_REDUCE
        outside = _rows(flat, word[outs])
        pushed = self.composed(chunks, length, types, outside)  # chunks first, then words outside
        counts = torch.stack([(actions >= OUT).sum(1), there.sum(1)])  # (2, B): pushes to the output, and actions
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
        """Input of the output's LSTM: chunks (N, L, d) and words outside of them (M, d) → (N + M, g)."""
        if self.raw_words_outside:
            return torch.cat([self.composition(chunks, lengths, types), outside])
        single = chunks.new_zeros(len(outside), chunks.shape[1], chunks.shape[2])
        single[:, 0] = outside
        lengths = torch.cat([lengths, lengths.new_ones(len(outside))])
        types = torch.cat([types, types.new_full((len(outside),), self.system.num_types)])
        return self.composition(torch.cat([chunks, single]), lengths, types)

    def buffer_states(self, words: Tensor, lengths: Tensor) -> Tensor:
        """The buffer's state (B, T + 1, H) by the number of words left on it."""
        batch, time, _ = words.shape
        order = torch.arange(batch, device=lengths.device).unsqueeze(1) * time + reversed_order(lengths, time)
        backwards = _rows(words.flatten(0, 1), order)
        return self.buffer(backwards, lengths, self.buffer.empty())


def log_softmax_of_valid(scores: Tensor, valid: Tensor) -> Tensor:
    """Log probabilities of the valid actions in at least float32, −∞ for others; of all actions if none is valid."""
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return scores.masked_fill(valid.any(-1, keepdim=True) & ~valid, -torch.inf).log_softmax(-1)


def _rows(values: Tensor, index: Tensor) -> Tensor:
    """The rows (…, d) of values (N, d); its backward pass is faster than that of indexing."""
    return values.index_select(0, index.flatten()).unflatten(0, index.shape)
