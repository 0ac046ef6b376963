import pytest

from hf_xorner.evaluation.comparison import Comparison


def test_mismatched_pairs_are_refused():
    for gold, predicted, message in (
        ([["O"]], [], "1 gold sentences but 0 predicted ones"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], r"sentence 1 \(counted from 0\) has 2 gold tags but 1 predicted"),
        ([["B-X", "I-X"]], [["B-X", "E-X"]], "gold tags look like iob2 and predicted ones like bioes"),
        ([["B-X"]], [["X"]], "the tag 'X' is not iob2"),
    ):
        with pytest.raises(ValueError, match=message):
            Comparison.of(gold, predicted)


def test_the_scheme_is_inferred_from_gold_and_predicted_tags():
    for gold, predicted in (
        # A tagger that never closes an entity, entities of one word, no entity on one side.
        (["B-X", "E-X"], ["B-X", "I-X"]),
        (["B-X", "E-X"], ["S-X", "S-X"]),
        (["O", "O"], ["B-X", "E-X"]),
        (["B-X", "E-X"], ["O", "O"]),
    ):
        assert Comparison.of([gold], [predicted]).tag_set.scheme == "bioes"
    assert Comparison.of([["B-X", "I-X"]], [["B-X", "E-X"]], scheme="bioes").correct.tolist() == [True]
