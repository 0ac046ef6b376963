"""Joined tables, compared with a lookup of one word at a time."""

import numpy as np
import pytest

from hf_xorner.errors import DataError
from hf_xorner.vectors.formats import Vectors
from hf_xorner.vectors.lookup import join

FIRST = Vectors(["Oslo", "the", "b2"], np.array([[3, 4], [0, 0], [1, -2]], dtype=np.float32))
SECOND = Vectors(["oslo", "of", "b0"], np.array([[0.5], [0.25], [-0.25]], dtype=np.float16))


def looked_up(word, table, forms):
    """The vector of a word, divided by the root of the mean of the squares of the table's numbers."""
    numbers = [float(number) for row in table.matrix for number in row]
    scale = (sum(number**2 for number in numbers) / len(numbers)) ** 0.5
    for form in forms(word):
        if form in table.words:
            return [float(number) / scale for number in table.matrix[table.words.index(form)]]
    return [0.0] * table.dim


FORMS = {
    (): lambda word: [word],
    ("lower",): lambda word: [word, word.lower()],
    ("lower", "lower_zero"): lambda word: [word, word.lower(), word.lower().replace("2", "0")],
}


@pytest.mark.parametrize("fallback", FORMS, ids=str)
@pytest.mark.parametrize("tables", [(FIRST, SECOND), (SECOND, FIRST), (FIRST, SECOND, FIRST)], ids=len)
def test_joined_vectors_match_lookups_in_all_tables(tables, fallback):
    joined = join(tables, fallback)
    assert joined.words == [*tables[0].words, *(word for word in tables[1].words if word not in tables[0].words)]
    assert joined.matrix.dtype == np.float32
    for word, row in zip(joined.words, joined.matrix, strict=True):
        expected = [number for table in tables for number in looked_up(word, table, FORMS[fallback])]
        np.testing.assert_allclose(row, expected, rtol=1e-6)


def test_tables_are_scaled_to_equal_weight():
    """For tables of any scale."""
    generator = np.random.default_rng(0)
    words = [f"w{number}" for number in range(50)]
    small, large = (Vectors(words, generator.normal(size=(50, 8), scale=s).astype(np.float32)) for s in (1e-3, 1e3))
    joined = join([small, large]).matrix.astype(np.float64)
    for half in (joined[:, :8], joined[:, 8:]):
        assert np.sqrt(np.mean(half**2)) == pytest.approx(1, rel=1e-6)


def test_empty_tables_and_tables_of_zeros_stay_zero():
    none, zeros = Vectors([], np.zeros((0, 3), np.float32)), Vectors(["the"], np.zeros((1, 2), np.float32))
    joined = join([none, zeros, FIRST])
    assert joined.words == ["the", "Oslo", "b2"]
    assert not joined.matrix[:, :5].any() and joined.matrix[1, 5:].any()


def test_joining_a_single_table_raises():
    with pytest.raises(DataError, match="one source of vectors; name those that are to stand beside it"):
        join([FIRST])
