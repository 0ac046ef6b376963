import numpy as np
import pytest
from conftest import LABELS
from hypothesis import given
from hypothesis import strategies as st

from hf_xorner.corpora.schemes import TagSet
from hf_xorner.evaluation.comparison import Comparison
from hf_xorner.evaluation.report import calibration, entity_confidences


@given(
    st.lists(
        st.tuples(st.floats(0, 1) | st.integers(0, 10).map(lambda tenth: tenth / 10), st.booleans()),
        min_size=1,
        max_size=40,
    )
)
def test_the_table_equals_a_loop(entities):
    assert calibration([], [])["ece"] == 0
    table = calibration([confidence for confidence, _ in entities], [correct for _, correct in entities])
    total = 0.0
    for index, row in enumerate(table["bins"]):
        lower, upper = index / 10, (index + 1) / 10
        inside = [(c, right) for c, right in entities if lower < c <= upper or (index == 0 and c == 0)]
        assert row["count"] == len(inside)
        if inside:
            confidence = 100 * sum(c for c, _ in inside) / len(inside)
            accuracy = 100 * sum(right for _, right in inside) / len(inside)
            assert (row["confidence"], row["accuracy"]) == pytest.approx((confidence, accuracy))
            total += len(inside) * abs(accuracy - confidence)
    assert table["ece"] == pytest.approx(total / len(entities), abs=1e-9)


def comparison_of(ids, lengths):
    ids = np.array(ids, dtype=np.int64)
    return Comparison(ids, ids, np.array(lengths), TagSet.of(LABELS))


def test_confidences_have_no_rounding_errors_in_long_texts():
    # A difference of running totals would be 1.0000000000582077.
    probabilities = np.random.default_rng(0).random(1_000_003)
    probabilities[-3:] = 1.0
    confidences = entity_confidences(probabilities, comparison_of([0] * 1_000_000 + [1, 2, 2], [1_000_003]))
    assert confidences.tolist() == [1.0]
