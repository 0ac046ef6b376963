"""The transition system of lample2016 (section 3.1): words become labelled chunks by SHIFT, OUT and REDUCE(y).

A sentence of n words starts on the buffer, with nothing on the stack and nothing on the output. SHIFT moves the first
word of the buffer to the stack, OUT moves it to the output, and REDUCE(y) moves all words on the stack to the output as
one chunk of type y. The sentence is finished, after n to 2n actions, when buffer and stack are empty.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .layers import length_mask
from .tags import IGNORED, TagSpace
from .word_ids import BEGIN, END, INSIDE, OUTSIDE, SINGLE

SHIFT, OUT, FIRST_REDUCE = range(3)

#: Padding of sequences of actions.
NO_ACTION = -1


class Trace(NamedTuple):
    """The state before each action of sequences (N, S): three tensors (N, S)."""

    position: Tensor  # words that have left the buffer
    depth: Tensor  # words on the stack
    outputs: Tensor  # chunks and single words on the output


class TransitionSystem:
    """Actions 0 SHIFT, 1 OUT and 2 + y REDUCE(y), for the types y of a `TagSpace`.

    OUT needs an empty stack, so chunks have no gaps. A type without an I- label has only chunks of one word. Plain
    labels, such as parts of speech, are types of this kind, and never OUT.
    """

    def __init__(self, tags: TagSpace) -> None:
        self.tags, self.num_types = tags, tags.num_types
        self.num_actions = FIRST_REDUCE + tags.num_types

    @property
    def actions(self) -> list[str]:
        """The actions' names in the order of their ids."""
        names = [self.tags.labels[label] for label in self.tags.on(torch.device("cpu")).begin_label.tolist()]
        return ["SHIFT", "OUT", *(f"REDUCE({name[2:] if self.tags.chunked else name})" for name in names)]

    def of_many_words(self, device: torch.device) -> Tensor:
        """True for types that may have chunks of more than one word, (types,)."""
        tables = self.tags.on(device)
        return tables.inside_label != tables.begin_label

    def valid(self, position: Tensor, depth: Tensor, lengths: Tensor) -> Tensor:
        """Mask of the valid actions in states (…) of sentences of lengths (…): (…, actions).

        SHIFT and OUT need a word on the buffer, OUT an empty stack, REDUCE a word on the stack. Only finished sentences
        have no valid action.
        """
        waiting, empty = position < lengths, depth == 0
        many = self.of_many_words(position.device)
        shift = waiting & (empty | many.any())
        out = waiting & empty & self.tags.chunked
        reduce = ~empty.unsqueeze(-1) & ((depth == 1).unsqueeze(-1) | many)
        return torch.cat([shift.unsqueeze(-1), out.unsqueeze(-1), reduce], -1)

    def trace(self, actions: Tensor) -> Trace:
        """The states before each action of sequences (N, S) from their starts."""
        shifts, takes, pushes = actions == SHIFT, (actions == SHIFT) | (actions == OUT), actions >= OUT
        shifted = shifts.cumsum(1)
        reduced = torch.where(actions >= FIRST_REDUCE, shifted, 0)
        if actions.shape[1]:
            reduced = reduced.cummax(1).values
        return Trace(
            takes.cumsum(1) - takes.long(),
            shifted - shifts.long() - torch.cat([torch.zeros_like(reduced[:, :1]), reduced[:, :-1]], 1),
            pushes.cumsum(1) - pushes.long(),
        )

    def actions_of(self, inner: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The sequence of actions for the contiguous chunks of inner tags (B, T).

        Returns:
            Actions (B, 2T), NO_ACTION after the last, and a mask of those that the tags determine. A word whose tag is
            IGNORED has OUT, outside of this mask.
        """
        batch, time = inner.shape
        known = inner != IGNORED
        tag = inner.clamp(min=0)
        tables = self.tags.on(inner.device)
        kind = torch.where(known, tables.kind[tag], OUTSIDE)
        word = length_mask(lengths, time)
        closes = word & ((kind == END) | (kind == SINGLE))
        take = torch.where(kind == OUTSIDE, OUT, SHIFT)
        reduce = FIRST_REDUCE + tables.entity_type[tag]
        present = torch.stack([word, closes], -1).flatten(1)  # (B, 2T): a word's own action, and that after it
        column = torch.where(present, present.cumsum(1) - 1, 2 * time)  # absent actions go to an extra column
        actions = inner.new_full((batch, 2 * time + 1), NO_ACTION)
        actions = actions.scatter(1, column, torch.stack([take, reduce], -1).flatten(1))
        right = torch.zeros_like(actions, dtype=torch.bool)
        right = right.scatter(1, column, known.unsqueeze(-1).expand(-1, -1, 2).flatten(1))
        return actions[:, :-1], right[:, :-1]

    def tags_of(self, actions: Tensor, time: int) -> Tensor:
        """The inner tags (N, T) of sequences of actions (N, S); O for padding, and for words left on the stack."""
        steps = actions.shape[1]
        outside, _ = self.tags.outside
        if not steps or not time:
            return actions.new_full((len(actions), time), outside)
        trace = self.trace(actions)
        end = self.later(actions >= FIRST_REDUCE)
        in_chunk = (actions == SHIFT) & (end < steps)
        end = end.clamp(max=steps - 1)
        type_ = (actions.gather(1, end) - FIRST_REDUCE).clamp(min=0)
        first = trace.depth == 0
        last = end == torch.arange(steps, device=actions.device) + 1
        kind = torch.where(first, torch.where(last, SINGLE, BEGIN), torch.where(last, END, INSIDE))
        tag = torch.where(in_chunk, self.tags.on(actions.device).inner[kind, type_], outside)
        step, leaves = self.leaving_steps(actions, time)
        return torch.where(leaves, tag.gather(1, step), outside)

    @staticmethod
    def later(events: Tensor) -> Tensor:
        """For each step, the first one from it on with an event, S if there is none: (N, S), S above 0."""
        steps = events.shape[1]
        step = torch.arange(steps, device=events.device)
        return torch.where(events, step, steps).flip(1).cummin(1).values.flip(1)

    @staticmethod
    def leaving_steps(actions: Tensor, time: int) -> tuple[Tensor, Tensor]:
        """The step (N, T) at which each word leaves the buffer, 0 where it never does, and whether it does."""
        takes = (actions == SHIFT) | (actions == OUT)
        word = torch.where(takes, takes.cumsum(1) - 1, time)  # other steps go to an extra column
        step = torch.arange(actions.shape[1], device=actions.device).expand_as(actions)
        leaving = actions.new_full((len(actions), time + 1), NO_ACTION).scatter(1, word, step)[:, :time]
        return leaving.clamp(min=0), leaving >= 0
