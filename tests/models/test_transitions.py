"""Conversions between actions and chunks for all label sets; every state can be finished."""

import itertools
import random

import pytest
import references as ref
import torch
from conftest import LABELS

from hf_xorner.models.tags import TagSpace
from hf_xorner.models.transitions import NO_ACTION, OUT, SHIFT, TransitionSystem

LABEL_SETS = {
    "types": LABELS,
    "one type": ["O", "B-PER", "I-PER"],
    "single words alone": ["B-GOD", "O", "B-ART"],
    "plain": ["NOUN", "VERB", "DET"],
}
every_label_set = pytest.mark.parametrize("labels", LABEL_SETS.values(), ids=LABEL_SETS)


def system_of(labels):
    return TransitionSystem(TagSpace(labels))


def padded(rows, fill=NO_ACTION):
    width = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], dtype=torch.long).view(len(rows), width)


def ids(system, names):
    return [system.actions.index(name) for name in names]


class Walk:
    """The state of a partly parsed sentence, as in lample2016; without O (plain labels) there is no OUT."""

    def __init__(self, labels, length):
        self.labels, self.buffer, self.stack, self.output = labels, [*range(length)], [], []
        self.kinds = list(dict.fromkeys(ref.split(label)[1] or label for label in labels if label != "O"))

    def may_hold_many(self, kind):
        return f"I-{kind}" in self.labels

    def valid(self):
        names = []
        if self.buffer and (not self.stack or any(map(self.may_hold_many, self.kinds))):
            names.append("SHIFT")
        if self.buffer and "O" in self.labels and not self.stack:
            names.append("OUT")
        if self.stack:
            names += [f"REDUCE({kind})" for kind in self.kinds if len(self.stack) == 1 or self.may_hold_many(kind)]
        return names

    def do(self, name):
        if name == "SHIFT":
            self.stack.append(self.buffer.pop(0))
        elif name == "OUT":
            self.output.append(("O", [self.buffer.pop(0)]))
        else:
            self.output.append((name[7:-1], self.stack))
            self.stack = []


def random_walks(labels, lengths, seed):
    """Names of actions of random walks to the end, and the states before each."""
    rng = random.Random(seed)
    sequences, states = [], []
    for length in lengths:
        walk, names, seen = Walk(labels, length), [], []
        while valid := walk.valid():
            seen.append((length - len(walk.buffer), len(walk.stack), len(walk.output), valid))
            names.append(rng.choice(valid))
            walk.do(names[-1])
        assert not walk.buffer
        assert not walk.stack
        sequences.append((names, walk.output))
        states.append(seen)
    return sequences, states


@every_label_set
def test_states_and_valid_actions_match_the_reference(labels):
    system = system_of(labels)
    lengths = [0, 1, 2, 7, 30] * 3
    sequences, states = random_walks(labels, lengths, seed=1)
    actions = padded([ids(system, names) for names, _ in sequences])
    assert all(len(names) <= 2 * length for (names, _), length in zip(sequences, lengths, strict=True))
    trace = system.trace(actions)
    valid = system.valid(trace.position, trace.depth, torch.tensor(lengths).unsqueeze(1))
    for row, seen in enumerate(states):
        for step, (position, depth, outputs, names) in enumerate(seen):
            assert [values[row, step] for values in trace[:3]] == [position, depth, outputs]
            assert valid[row, step].nonzero().squeeze(1).tolist() == ids(system, names)
        assert not valid[row, len(seen) :].any(), "a finished sentence has nothing to do"


def every_well_formed(labels, length):
    for tags in itertools.product(labels, repeat=length):
        if "O" not in labels or ref.public_tags(ref.spans_strict(ref.to_inner([*tags])), length) == [*tags]:
            yield [*tags]


@every_label_set
def test_actions_reproduce_every_label_sequence(labels):
    system = system_of(labels)
    for length in range(5 if len(labels) < 4 else 4):
        rows = list(every_well_formed(labels, length))
        gold = torch.tensor([[labels.index(tag) for tag in row] for row in rows], dtype=torch.long).view(
            len(rows), length
        )
        inner = system.tags.to_inner(gold)
        actions, right = system.actions_of(inner, torch.full((len(rows),), length))
        assert actions.shape == (len(rows), 2 * length)
        assert torch.equal(right, actions != NO_ACTION)
        assert torch.equal(system.tags_of(actions, length), inner)
        for row, names in zip(rows, actions.tolist(), strict=True):
            walk = Walk(labels, length)
            for action in names:
                if action != NO_ACTION:
                    assert system.actions[action] in walk.valid()
                    walk.do(system.actions[action])
            assert not walk.valid()
            assert chunks_of(row) == [chunk for chunk in walk.output if chunk[0] != "O"]


def chunks_of(tags):
    """Chunks (type, words) of public labels; plain labels are types of one word."""
    if not ref.is_chunked(tags) and "O" not in tags:
        return [(tag, [word]) for word, tag in enumerate(tags)]
    return [(kind, [*range(first, end)]) for kind, first, end in ref.spans_strict(ref.to_inner(tags))]


def test_the_example_of_the_paper():
    """lample2016, figure 2."""
    system = system_of(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
    assert system.actions == ["SHIFT", "OUT", "REDUCE(PER)", "REDUCE(LOC)"]
    inner = system.tags.to_inner(torch.tensor([[1, 2, 0, 3, 0]]))  # Mark Watney visited Mars .
    actions, _ = system.actions_of(inner, torch.tensor([5]))
    assert actions.tolist() == [[SHIFT, SHIFT, 2, OUT, SHIFT, 3, OUT, *[NO_ACTION] * 3]]


def test_words_left_on_the_stack_are_outside():
    system = system_of(LABELS)
    actions = torch.tensor([ids(system, ["SHIFT", "REDUCE(LOC)", "SHIFT", "SHIFT"])])
    assert [system.tags.inner_tags[tag] for tag in system.tags_of(actions, 4)[0]] == ["S-LOC", "O", "O", "O"]
