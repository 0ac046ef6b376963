"""Conversions between actions and chunks for all label sets; test_stack_lstm.py compares the states between them."""

import itertools

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


def every_well_formed(labels, length):
    for tags in itertools.product(labels, repeat=length):
        if "O" not in labels or ref.public_tags(ref.spans_strict(ref.to_inner([*tags])), length) == [*tags]:
            yield [*tags]


@every_label_set
def test_actions_reproduce_every_label_sequence(labels):
    system = system_of(labels)
    for length in range(5 if len(labels) < 4 else 4):
        rows = [[labels.index(tag) for tag in row] for row in every_well_formed(labels, length)]
        inner = system.tags.to_inner(torch.tensor(rows, dtype=torch.long).view(len(rows), length))
        actions, right = system.actions_of(inner, torch.full((len(rows),), length))
        assert actions.shape == (len(rows), 2 * length)
        assert torch.equal(right, actions != NO_ACTION)
        assert torch.equal(system.tags_of(actions, length), inner)


def test_the_example_of_the_paper():
    """lample2016, figure 2."""
    system = system_of(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
    assert system.actions == ["SHIFT", "OUT", "REDUCE(PER)", "REDUCE(LOC)"]
    inner = system.tags.to_inner(torch.tensor([[1, 2, 0, 3, 0]]))  # Mark Watney visited Mars .
    actions, _ = system.actions_of(inner, torch.tensor([5]))
    assert actions.tolist() == [[SHIFT, SHIFT, 2, OUT, SHIFT, 3, OUT, *[NO_ACTION] * 3]]


def test_words_left_on_the_stack_are_outside():
    system = system_of(LABELS)
    actions = torch.tensor([[SHIFT, system.actions.index("REDUCE(LOC)"), SHIFT, SHIFT]])
    assert [system.tags.inner_tags[tag] for tag in system.tags_of(actions, 4)[0]] == ["S-LOC", "O", "O", "O"]
