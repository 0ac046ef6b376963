"""What scores the actions of the Stack-LSTM, and does so for whole sequences at once where these are known."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .configuration_stack_lstm import StackLstmConfig
from .recurrence import reversed_order
from .stack_lstm import Composition, StackLstm
from .tags import TagSpace
from .transitions import FIRST_REDUCE, OUT, SHIFT, TransitionSystem


class ActionScorer(nn.Module):
    """p = relu(O o + S s + B b + A a + bias), and a softmax over the valid actions of W p + q (lample2016, section 3).

    o, s, b and a are the states of LSTMs over the output, the stack, the buffer and the actions so far. The buffer's
    LSTM reads the last word first, so that taking a word off takes a step back.
    """

    def __init__(self, config: StackLstmConfig, tags: TagSpace, word_size: int) -> None:
        super().__init__()
        self.system = TransitionSystem(tags, config.discontiguous)
        self.raw_words_outside = config.outside == "word"
        self.composition = Composition(config, self.system.num_types, word_size)
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
