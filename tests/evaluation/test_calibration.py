import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xorner.entities import span_scores
from hf_xorner.evaluation.report import calibration


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


@given(st.lists(st.lists(st.tuples(st.floats(-3, 0), st.floats(-3, 0)), min_size=1, max_size=4), max_size=8))
def test_the_score_of_a_span_is_the_product_of_its_words_probabilities(spans):
    log_probs = np.array([pair for span in spans for pair in span]).reshape(-1, 2)
    sizes = np.array([len(span) for span in spans], dtype=int)
    expected = [math.exp(span[0][0] + math.fsum(given for _, given in span[1:])) for span in spans]
    assert span_scores(log_probs, sizes.cumsum() - sizes, sizes.cumsum()).tolist() == pytest.approx(expected)
