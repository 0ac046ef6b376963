import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from span_oracle import POLICIES, SCHEMES, corpus_spans, pairs, ratios_by_loop

from hf_xorner.evaluation import Comparison, TagSet


def as_tuples(spans, types):
    columns = zip(spans.sentence.tolist(), spans.start.tolist(), spans.end.tolist(), spans.type.tolist(), strict=True)
    return [(sentence, start, end, types[index]) for sentence, start, end, index in columns]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("scheme", SCHEMES)
@settings(deadline=None)
@given(data=st.data())
def test_a_comparison_holds_what_the_definitions_say(scheme, policy, data):
    gold, predicted = data.draw(pairs(scheme))
    comparison = Comparison.of(gold, predicted, policy, scheme)
    types, tags = comparison.tag_set.types, comparison.tag_set.tags
    gold_spans, predicted_spans = (corpus_spans(side, scheme, policy) for side in (gold, predicted))
    assert as_tuples(comparison.gold, types) == gold_spans
    assert as_tuples(comparison.predicted, types) == predicted_spans
    assert comparison.correct.tolist() == [span in gold_spans for span in predicted_spans]
    assert comparison.found.tolist() == [span in predicted_spans for span in gold_spans]
    assert comparison.lengths.tolist() == [len(sentence) for sentence in gold]
    assert [tags[index] for index in comparison.gold_ids] == [tag for sentence in gold for tag in sentence]
    assert [tags[index] for index in comparison.predicted_ids] == [tag for sentence in predicted for tag in sentence]
    assert comparison.policy == policy
    assert comparison.counts_by_sentence().tolist() == [
        [
            sum(span[0] == index and span in gold_spans for span in predicted_spans),
            sum(span[0] == index for span in predicted_spans),
            sum(span[0] == index for span in gold_spans),
        ]
        for index in range(len(gold))
    ]


@settings(deadline=None)
@given(pairs("iob2"), st.data())
def test_spans_are_scored_by_group(pair, data):
    comparison = Comparison.of(*pair)
    # The group of a span is any function of its sentence, ends and type.
    odd = data.draw(st.integers(1, 4))
    groups = [(spans.start + spans.end + odd * spans.type) % 3 for spans in (comparison.gold, comparison.predicted)]
    sides = [as_tuples(spans, comparison.tag_set.types) for spans in (comparison.gold, comparison.predicted)]
    expected = {
        name: ratios_by_loop(
            *(
                [span for span, at in zip(side, group, strict=True) if at == index]
                for side, group in zip(sides, groups, strict=True)
            )
        )
        for index, name in enumerate("abc")
    }
    found = comparison.ratios_by(*groups, "abc")
    assert list(found) == ["a", "b", "c"]
    for name in "abc":
        assert found[name] == pytest.approx(expected[name], abs=1e-10)


def test_every_word_counts_where_tags_are_plain():
    comparison = Comparison.of([["NN", "VB"], [], ["NN"]], [["NN", "NN"], [], ["NN"]])
    assert comparison.counts_by_sentence().tolist() == [[1, 2, 2], [0, 0, 0], [1, 1, 1]]


def test_numbers_and_strings_compare_alike():
    gold, predicted = [["B-X", "I-X"], ["O"]], [["B-X", "I-X"], ["B-Y"]]
    of_tags = Comparison.of(gold, predicted)
    tag_set = TagSet.of(["O", "B-Y", "I-Y", "B-X", "I-X", "B-Z"])
    of_ids = Comparison.of_ids(np.array([3, 4, 0]), np.array([3, 4, 1]), np.array([2, 1]), tag_set)
    assert of_ids.counts_by_sentence().tolist() == of_tags.counts_by_sentence().tolist() == [[1, 1, 1], [0, 1, 0]]
    assert as_tuples(of_ids.gold, tag_set.types) == as_tuples(of_tags.gold, of_tags.tag_set.types)


def test_nothing_can_be_compared():
    for nothing in ([], [[]]):
        comparison = Comparison.of(nothing, nothing)
        assert comparison.counts_by_sentence().tolist() == [[0, 0, 0]] * len(nothing)
        assert len(comparison.gold) == len(comparison.predicted) == 0


def test_a_comparison_stays_as_it_is():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Comparison.of([], []).policy = "strict"


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([["O"]], [], "1 gold sentences but 0 predicted ones; give as many of both."),
        (
            [["O"], ["O", "O"]],
            [["O"], ["O"]],
            "sentence 1 (counted from 0) has 2 gold tags but 1 predicted ones; give a tag for each word.",
        ),
        (
            [["B-X", "I-X"]],
            [["B-X", "E-X"]],
            "gold tags look like iob2 and predicted ones like bioes; give both in one scheme, or say scheme='bioes' "
            "if that is what they are.",
        ),
        (
            [["B-X", "O"]],
            [["U-X", "O"]],
            "gold tags look like iob2 and predicted ones like bilou; give both in one scheme, or say scheme='bilou' "
            "if that is what they are.",
        ),
    ],
)
def test_faulty_pairs_are_told(gold, predicted, message):
    with pytest.raises(ValueError) as error:
        Comparison.of(gold, predicted)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        # A tagger that never closes an entity, entities of one word, no entity on one side.
        (["B-X", "E-X"], ["B-X", "I-X"]),
        (["B-X", "E-X"], ["S-X", "S-X"]),
        (["O", "O"], ["B-X", "E-X"]),
        (["B-X", "E-X"], ["O", "O"]),
    ],
)
def test_one_scheme_in_its_parts_is_one_scheme(gold, predicted):
    assert Comparison.of([gold], [predicted]).tag_set.scheme == "bioes"


def test_a_scheme_by_name_is_not_doubted():
    comparison = Comparison.of([["B-X", "I-X"]], [["B-X", "E-X"]], scheme="bioes")
    assert comparison.found.tolist() == [True]


def test_numbers_that_do_not_fit_are_told():
    with pytest.raises(ValueError) as error:
        Comparison.of_ids(np.array([0, 0]), np.array([0]), np.array([2]), TagSet.of(["O"]))
    assert str(error.value) == (
        "2 gold tags and 1 predicted ones do not fit sentences of 2 words together; give a tag of each kind for each "
        "word."
    )
