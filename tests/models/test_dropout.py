"""Dropout has the rate, the scale and the gradient of the stock function."""

from itertools import cycle

import helpers
import pytest
import torch

from hf_xorner.models.layers import dropout

RATES = [0.05, 0.35, 0.5, 0.68, 0.9]


@pytest.mark.parametrize(("rate", "dtype"), list(zip(RATES, cycle([torch.float32, torch.float64, torch.bfloat16]))))
def test_values_are_dropped_at_the_rate_and_scaled(rate, dtype):
    torch.manual_seed(0)
    values = torch.full((401, 499), 3, dtype=dtype)
    dropped = dropout(values, rate)
    assert dropped.dtype == dtype
    kept = dropped != 0
    expected = (values * torch.tensor(1 / (1 - rate), dtype=dtype))[kept]
    assert torch.equal(dropped[kept], expected)
    helpers.close((~kept).double().mean(), rate, 5 * (rate * (1 - rate) / values.numel()) ** 0.5)


def test_the_gradient_is_that_of_the_kept_values():
    values = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    dropped = dropout(values, 0.4)
    dropped.sum().backward()
    helpers.close(values.grad, (dropped != 0).double() / 0.6, 1e-12)
