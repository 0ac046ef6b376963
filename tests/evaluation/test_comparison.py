import pytest
from hypothesis import given
from hypothesis import strategies as st
from span_oracle import POLICIES, SCHEMES, corpus_spans, pairs, tuples_of

from hf_xorner.evaluation.comparison import Comparison


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_a_comparison_matches_the_definitions(scheme, data):
    gold, predicted = data.draw(pairs(scheme))
    policy = data.draw(st.sampled_from(POLICIES))
    comparison = Comparison.of(gold, predicted, policy, scheme)
    gold_spans, predicted_spans = (corpus_spans(side, scheme, policy) for side in (gold, predicted))
    assert tuples_of(comparison.gold, comparison) == gold_spans
    assert tuples_of(comparison.predicted, comparison) == predicted_spans
    assert comparison.correct.tolist() == [span in gold_spans for span in predicted_spans]
    same_ends = [(g, p) for g, a in enumerate(gold_spans) for p, b in enumerate(predicted_spans) if a[:3] == b[:3]]
    assert list(zip(*(side.tolist() for side in comparison.aligned), strict=True)) == same_ends
    assert comparison.counts_by_sentence().tolist() == [
        [
            sum(span[0] == index and span in gold_spans for span in predicted_spans),
            sum(span[0] == index for span in predicted_spans),
            sum(span[0] == index for span in gold_spans),
        ]
        for index in range(len(gold))
    ]


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
