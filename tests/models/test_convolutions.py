"""In every batch layout, each word's neighbours are those of its own sentence, with zero padding."""

import pytest
import torch
import torch.nn.functional as F

from hf_xorner.models.layers import Layout

# Expected number of rows: one if that saves much padding, else one per sentence.
LENGTHS = {(7, 2, 0, 3): 1, (7, 0, 0): 1, (1, 9): 1, (7, 7, 6): 3, (5,): 1, (0, 0): 2, (): 0}


@pytest.fixture(params=LENGTHS, ids=str)
def lengths(request):
    return torch.tensor(request.param, dtype=torch.long)


@pytest.fixture
def states(lengths):
    """States with nonzero values in the padding."""
    return torch.randn(
        len(lengths), max([*lengths.tolist(), 1]) + 1, 3, generator=torch.Generator().manual_seed(0)
    ).double()


def layout_of(lengths, states, gap=2):
    return Layout.of(lengths, states.shape[1], gap)


def test_positions_without_a_word_are_zero(lengths, states):
    layout = layout_of(lengths, states)
    rows = layout.lay_out(states)
    assert len(rows) == LENGTHS[tuple(lengths.tolist())]
    assert layout.within.sum() == lengths.sum()
    assert not (rows * ~layout.within).any()


@pytest.mark.parametrize("gap", [0, 1, 2, 4])
def test_convolutions_are_zero_padded_at_sentence_ends(lengths, states, gap):
    kernel = torch.randn(2, 3, 2 * gap + 1, generator=torch.Generator().manual_seed(1)).double()
    layout = layout_of(lengths, states, gap)
    results = layout.take_back(F.conv1d(layout.lay_out(states), kernel, padding=gap))
    for sentence, length in enumerate(lengths.tolist()):
        if length:
            alone = F.conv1d(states[sentence, :length].t().unsqueeze(0), kernel, padding=gap)
            torch.testing.assert_close(results[sentence, :length], alone[0].t(), rtol=0, atol=1e-12)
