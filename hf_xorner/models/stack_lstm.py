"""The network of the Stack-LSTM: LSTMs over stack and queues, composition of chunks, scores of actions (lample2016)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import initialization as init

from .configuration_stack_lstm import StackLstmConfig
from .frozen_vectors import draw_vectors
from .recurrent import Packing, build_layer, coupled_states, in_one_chunk, lstm_cell, reversed_order
from .tags import TagSpace
from .transitions import FIRST_REDUCE, OUT, SHIFT, TransitionSystem


class StackLstm(nn.Module):
    """An LSTM of several layers that first reads a learned vector, so that an empty stack has a state.

    The cells are those of `recurrent.lstm_cell`.
    """

    def __init__(self, config: StackLstmConfig, input_size: int) -> None:
        super().__init__()
        self.config = config
        self.coupled = config.cell == "coupled"
        size, layers = config.hidden_size, config.num_hidden_layers
        gates = (3 if self.coupled else 4) * size
        self.start = nn.Parameter(torch.empty(input_size))
        self.weight_ih = nn.Parameter(torch.empty(gates, input_size))  # of the lowest layer
        # Input weights of the layers above it.
        self.weight_up = nn.Parameter(torch.empty(layers - 1, gates, size)) if layers > 1 else None
        self.weight_hh = nn.Parameter(torch.empty(layers, gates, size))
        # Peepholes of i and o.
        self.weight_ch = nn.Parameter(torch.empty(layers, 2 * size, size)) if self.coupled else None
        self.bias = nn.Parameter(torch.empty(layers, gates))

    def reset_parameters(self) -> None:
        """Glorot-uniform weights, drawn gate by gate; zero biases, but forget bias 1 in standard cells."""
        draw_vectors(self.start, self.config)
        size = self.config.hidden_size
        for weight in (self.weight_ih, self.weight_up, self.weight_hh, self.weight_ch):
            if weight is None:
                continue
            bound = (6 / (weight.shape[-1] + size)) ** 0.5
            nn.init.uniform_(weight, -bound, bound)
        bias = torch.zeros_like(self.bias)
        if not self.coupled:
            bias[:, size : 2 * size] = 1
        init.copy_(self.bias, bias)

    def empty(self) -> tuple[Tensor, Tensor]:
        """The h and c of all layers after the learned vector, (layers, H) each: the state of an empty stack."""
        below: Tensor = self.start
        hidden, cells = [], []
        for layer, (reader, bias) in enumerate(zip(self.readers(), self.bias, strict=True)):
            # One step from h = c = 0.
            gates = ((reader * below).sum(1) + bias).view(1, 1, -1)
            peepholes = None if self.weight_ch is None else self.weight_ch[layer : layer + 1].transpose(1, 2)
            h, c = lstm_cell(gates, gates.new_zeros(1, 1, self.config.hidden_size), peepholes)
            below = h.flatten()
            hidden.append(below)
            cells.append(c.flatten())
        return torch.stack(hidden), torch.stack(cells)

    def fused(self, inputs: Tensor) -> Tensor:
        """Run PyTorch's fused LSTM over all steps, padding included: inputs (B, T, d) → (B, T + 1, H)."""
        start = self.empty()
        empty = start[0][-1].expand(len(inputs), 1, -1)
        if not inputs.shape[1]:
            return empty
        initial = tuple(state.unsqueeze(1).expand(-1, len(inputs), -1).contiguous() for state in start)
        no_bias = torch.zeros_like(self.bias[0])
        layers = list(zip(self.readers(), self.weight_hh, self.bias, strict=True))
        weights = [weight for layer in layers for weight in (*layer, no_bias)]
        weights = in_one_chunk(weights) if inputs.is_cuda else weights
        # cuDNN needs `train` for a backward pass.
        states = torch.lstm(inputs, initial, weights, True, len(layers), 0.0, torch.is_grad_enabled(), False, True)
        return torch.cat([empty, states[0]], 1)

    def readers(self) -> list[Tensor]:
        """The input weights of each layer."""
        above: list[Tensor] = [] if self.weight_up is None else list(self.weight_up)
        return [self.weight_ih, *above]


def states_of(lstms: Sequence[StackLstm], inputs: Sequence[Tensor], lengths: Sequence[Tensor]) -> Sequence[Tensor]:
    """Push inputs (B, T, d) of lengths (B,) one after another onto each of D LSTMs.

    Returns:
        For each LSTM the states (B, ≥ T + 1, H) of its top layer, first that of the empty stack; arbitrary beyond a
        length.
    """
    if not lstms[0].coupled:
        return [lstm.fused(values) for lstm, values in zip(lstms, inputs, strict=True)]
    # One recurrence for all LSTMs, each step of which is a batched product.
    starts = torch.stack([torch.stack(lstm.empty(), 1) for lstm in lstms], 1)  # (layers, D, 2, H)
    batch, time = len(inputs[0]), max(values.shape[1] for values in inputs)
    empty = starts[-1, :, 0].view(len(lstms), 1, 1, -1).expand(-1, batch, -1, -1)
    packing = Packing.for_device(torch.stack([*lengths]).amax(0), time)
    order = packing.words[0]
    padded = [F.pad(values, (0, 0, 0, time - values.shape[1])).flatten(0, 1) for values in inputs]
    lowest = [
        torch.addmm(lstm.bias[0], values.index_select(0, order), lstm.weight_ih.T)
        for lstm, values in zip(lstms, padded, strict=True)
    ]
    states = products = torch.stack(lowest)  # (D, N, 3H)

    def stacked(name: str, layer: int) -> Tensor:
        return torch.stack([getattr(lstm, name)[layer] for lstm in lstms])

    for layer, start in enumerate(starts):
        if layer:
            products = torch.baddbmm(stacked("bias", layer).unsqueeze(1), states, stacked("weight_up", layer - 1).mT)
        states = coupled_states(products, stacked("weight_hh", layer), stacked("weight_ch", layer), start, packing)
    flat = states.new_zeros(len(lstms), batch * time, states.shape[-1]).index_copy(1, order, states)
    return torch.cat([empty, flat.unflatten(1, (batch, time))], 2).unbind(0)


class SpanComposition(nn.Module):
    """g: one vector of the words u, …, v of a chunk and its type y (lample2016, section 3.2).

    A bidirectional LSTM reads the words and then the type's vector r_y, projected to the size of a word; g consists of
    the last states of both directions. Words outside of chunks have their own type.
    """

    def __init__(self, config: StackLstmConfig, num_types: int, word_size: int) -> None:
        super().__init__()
        self.types = nn.Embedding(num_types + 1, config.label_dim)  # the last is for words outside
        self.layer = build_layer(config.cell, word_size, config.composition_size)
        self.label = nn.Linear(config.label_dim, word_size, bias=False)
        self.output_size = 2 * config.composition_size

    def products(self, words: Tensor) -> Tensor:
        """Input products of both directions for words (N, d) and types: (2, N + types, gates · H)."""
        tokens = torch.cat([words, self.label(self.types.weight)])
        return self.layer.products(tokens.expand(2, -1, -1))

    def forward(self, products: Tensor, word_rows: Tensor, lengths: Tensor, types: Tensor) -> Tensor:
        """Compose chunks of words at indices (N, L) of `products`, right-padded, of lengths and types (N,): (N, g)."""
        first_type = products.shape[1] - self.types.num_embeddings
        steps = torch.arange(word_rows.shape[1] + 1, device=word_rows.device)
        last = lengths.unsqueeze(1)  # the step of the type, from the left
        ahead, behind = (
            index.clamp(0, word_rows.shape[1] - 1).expand(len(word_rows), -1) for index in (steps, last - steps)
        )
        order = torch.stack([word_rows.gather(1, ahead), word_rows.gather(1, behind)])  # (2, N, steps)
        types_at = torch.stack([steps == last, (steps == 0).expand(len(word_rows), -1)])
        order = torch.where(types_at, first_type + types.unsqueeze(1), order)
        rows = torch.stack([products[d].index_select(0, order[d].T.flatten()) for d in range(2)])
        h = c = products.new_zeros(2, len(word_rows), self.layer.hidden_size)
        for step, gates in enumerate(rows.unflatten(1, (len(steps), len(word_rows))).unbind(1)):
            after = self.layer.step(gates, h, c)
            h, c = (torch.where(step <= last, *pair) for pair in zip(after, (h, c), strict=True))
        return torch.cat(h.unbind(0), -1)


class ActionScorer(nn.Module):
    """p = relu(O o + S s + B b + A a + bias), and a softmax over the valid actions of W p + q (lample2016, section 3).

    o, s, b and a are the states of LSTMs over the output, the stack, the buffer (last word first) and the actions.
    """

    def __init__(self, config: StackLstmConfig, tags: TagSpace, word_size: int) -> None:
        super().__init__()
        self.config = config
        self.system = TransitionSystem(tags)
        self.composition = SpanComposition(config, self.system.num_types, word_size)
        self.actions = nn.Embedding(self.system.num_actions, config.action_dim)
        self.output = StackLstm(config, self.composition.output_size)
        self.stack = StackLstm(config, word_size)
        self.buffer = StackLstm(config, word_size)
        self.history = StackLstm(config, config.action_dim)
        self.hidden = nn.Linear(4 * config.hidden_size, config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, self.system.num_actions)

    def forward(self, words: Tensor, lengths: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Score all valid actions along a known sequence of actions, in parallel.

        REDUCE empties the stack, so the chunks are the batch of the stack's LSTM.

        Args:
            words: Vectors of words (B, T, d) of right-padded sentences.
            lengths: (B,).
            actions: Sequences (B, S) that finish their sentences, NO_ACTION after the last action.

        Returns:
            Log probabilities (N, actions) in at least float32 before each of N actions, sentence by sentence, and the
            sentence and the step of each, (N,).
        """
        batch, time, _ = words.shape
        present = actions >= 0
        sentence, step = present.nonzero(as_tuple=True)
        position, depth, outputs = (values[sentence, step] for values in self.system.trace(actions))
        action = actions[sentence, step]
        flat = words.flatten(0, 1)
        word = (sentence * time + position).clamp(max=max(len(flat) - 1, 0))
        shifts, outs, reduces = action == SHIFT, action == OUT, action >= FIRST_REDUCE
        shifted = shifts.cumsum(0) - shifts.long()  # words shifted before in the batch
        on_stack = word[shifts]

        begin, length = (shifted - depth)[reduces], depth[reduces]
        width = int(length.max()) if len(length) else 1
        word_rows = begin.unsqueeze(1) + torch.arange(width, device=begin.device)
        within = word_rows < (begin + length).unsqueeze(1)
        words_of_chunks = on_stack[word_rows.clamp(max=max(len(on_stack) - 1, 0))]  # (chunks, width)

        types = action[reduces] - FIRST_REDUCE
        pushed = self.composed(flat, words_of_chunks, length, types, word[outs])  # chunks first, then words outside
        counts = torch.stack([(actions >= OUT).sum(1), present.sum(1)])  # (2, B): pushes to the output, and actions
        longest = int(counts[0].max()) if batch else 0
        slot = sentence * longest + outputs
        slot = torch.cat([slot[reduces], slot[outs]])
        on_output = pushed.new_zeros(batch * longest, pushed.shape[1]).index_copy(0, slot, pushed)
        on_output = on_output.unflatten(0, (batch, longest))

        (under,) = states_of([self.stack], [_rows(flat, words_of_chunks)], [length])
        under = under[:, 1 : width + 1].flatten(0, 1)
        shifted_at = within.flatten().nonzero().squeeze(1)
        stack = torch.cat([self.stack.empty()[0][-1:], _rows(under, shifted_at)])  # after each shifted word

        earlier = self.actions(actions[:, :-1].clamp(min=0))
        output, buffer, history = states_of(
            (self.output, self.buffer, self.history),
            (on_output, self.backwards(words, lengths), earlier),
            (counts[0], lengths, (counts[1] - 1).clamp(min=0)),
        )
        states = [
            _rows(output.flatten(0, 1), sentence * output.shape[1] + outputs),
            _rows(stack, torch.where(depth > 0, shifted, 0)),
            _rows(buffer.flatten(0, 1), sentence * buffer.shape[1] + lengths[sentence] - position),
            _rows(history.flatten(0, 1), sentence * history.shape[1] + step),
        ]
        scores = self.classifier(torch.relu(self.hidden(torch.cat(states, -1))))
        valid = self.system.valid(position, depth, lengths[sentence])
        return log_softmax_of_valid(scores, valid, self.config.score_temperature), sentence, step

    def composed(self, words: Tensor, word_rows: Tensor, lengths: Tensor, types: Tensor, outside: Tensor) -> Tensor:
        """Input of the output's LSTM for chunks of words (W, d) at (N, L), and for words outside (M,): (N + M, g)."""
        products = self.composition.products(words)
        chunks = self.composition(products, word_rows, lengths, types)
        no_type = torch.full_like(outside, self.system.num_types)
        return torch.cat([chunks, self.composition(products, outside.unsqueeze(1), torch.ones_like(outside), no_type)])

    def backwards(self, words: Tensor, lengths: Tensor) -> Tensor:
        """The words (B, T, d) in the order in which the buffer's LSTM reads them."""
        batch, time, _ = words.shape
        order = torch.arange(batch, device=lengths.device).unsqueeze(1) * time + reversed_order(lengths, time)
        return _rows(words.flatten(0, 1), order)


def log_softmax_of_valid(scores: Tensor, valid: Tensor, temperature: float) -> Tensor:
    """Log probabilities of the valid actions in at least float32, −∞ for others; of all actions if none is valid."""
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) / temperature
    return scores.masked_fill(valid.any(-1, keepdim=True) & ~valid, -torch.inf).log_softmax(-1)


def _rows(values: Tensor, index: Tensor) -> Tensor:
    """The rows (…, d) of values (N, d); its backward pass is faster than that of indexing."""
    return values.index_select(0, index.flatten()).unflatten(0, index.shape)
