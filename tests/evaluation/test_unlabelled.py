"""Words without a gold tag count neither as right nor as wrong, compared with definitions by plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from span_oracle import POLICIES, SCHEMES, corpus_spans, pairs, ratios_by_loop, tuples_of
from transformers import EvalPrediction

from hf_xorner.corpora.schemes import TagSet
from hf_xorner.evaluation.comparison import Comparison
from hf_xorner.evaluation.report import System, report
from hf_xorner.evaluation.scores import compute_metrics_for, span_scores
from hf_xorner.models.tags import IGNORED

LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


@st.composite
def partly_labelled(draw, scheme):
    """Gold tags of which some words or all words of an entity are unknown, and predicted tags."""
    gold, predicted = draw(pairs(scheme))
    partial = []
    for tags in gold:
        unknown = draw(st.sets(st.integers(0, max(len(tags) - 1, 0))))
        types = draw(st.sets(st.sampled_from(["X", "Y"])))
        partial.append(["?" if at in unknown or tag[2:] in types else tag for at, tag in enumerate(tags)])
    return partial, predicted


def as_outside(sentences):
    return [["O" if tag == "?" else tag for tag in tags] for tags in sentences]


def judged(gold, predicted, scheme, policy):
    """The gold spans, and the predicted ones that have at least one labelled word."""
    right = corpus_spans(as_outside(gold), scheme, policy)
    scores = [
        span
        for span in corpus_spans(predicted, scheme, policy)
        if any(gold[span[0]][at] != "?" for at in range(span[1], span[2]))
    ]
    return right, scores


def accuracy(gold, predicted):
    words = [(tag, other) for row in zip(gold, predicted, strict=True) for tag, other in zip(*row, strict=True)]
    labelled = [tag == other for tag, other in words if tag != "?"]
    return 100 * sum(labelled) / len(labelled) if labelled else 0.0


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_scores_match_the_definitions(scheme, data):
    gold, predicted = data.draw(partly_labelled(scheme))
    policy = data.draw(st.sampled_from(POLICIES))
    right, actual = judged(gold, predicted, scheme, policy)
    comparison = Comparison.of(gold, predicted, policy, scheme)
    assert tuples_of(comparison.gold, comparison) == right
    assert tuples_of(comparison.predicted, comparison) == actual
    assert comparison.correct.tolist() == [span in right for span in actual]
    same_ends = [(g, p) for g, a in enumerate(right) for p, b in enumerate(actual) if a[:3] == b[:3]]
    assert list(zip(*(side.tolist() for side in comparison.aligned), strict=True)) == same_ends
    for index, counts in enumerate(comparison.counts_by_sentence().tolist()):
        of_gold, of_predicted = ([span for span in side if span[0] == index] for side in (right, actual))
        assert counts == [sum(span in of_gold for span in of_predicted), len(of_predicted), len(of_gold)]
    scores = span_scores(gold, predicted, policy, scheme)
    expected = {**ratios_by_loop(right, actual), "accuracy": accuracy(gold, predicted)}
    assert {name: scores[name] for name in expected} == pytest.approx(expected)


def test_words_without_a_plain_label_are_not_scored():
    compute = compute_metrics_for({0: "NOUN", 1: "VERB"})
    assert compute(EvalPrediction(np.array([[[2.0, 1.0], [1.0, 2.0]]]), np.array([[0, -1]]))) == {"accuracy": 100}


@given(partly_labelled("iob2"))
def test_predictions_on_unlabelled_words_do_not_change_scores(pair):
    """Neither scores nor breakdowns."""
    every_type = [["B-X", "B-Y", "B-art-work"]]
    gold, predicted = ([*side, *every_type] for side in pair)
    scores = judged(gold, predicted, "iob2", "conlleval")[1]
    counted = {(span[0], at) for span in scores for at in range(span[1], span[2])}
    cleared = [
        [tag if (number, at) in counted else "O" for at, tag in enumerate(tags)]
        for number, tags in enumerate(predicted)
    ]
    words = [["w"] * len(tags) for tags in gold]
    whole, reduced = (report(System(words, gold, side, scheme="iob2"), resamples=0) for side in (predicted, cleared))
    assert whole == reduced


@given(partly_labelled("iob2"), st.integers(0, 3))
def test_metrics_of_the_trainer_are_the_same(pair, padding):
    gold, predicted = ([[tag.replace("art-work", "X") for tag in tags] for tags in side] for side in pair)
    width = max(map(len, gold), default=0) + padding
    number = {**{label: index for index, label in enumerate(LABELS)}, "?": -1}
    labels, paths = np.full((len(gold), width), IGNORED), np.ones((len(gold), width), dtype=int)
    for row, (tags, path) in enumerate(zip(gold, predicted, strict=True)):
        labels[row, : len(tags)] = [number[tag] for tag in tags]
        paths[row, : len(tags)] = [number[tag] for tag in path]
    metrics = compute_metrics_for(dict(enumerate(LABELS)))(EvalPrediction(paths, labels))
    expected = span_scores(gold, predicted, scheme="iob2")
    assert metrics == pytest.approx({name: expected[name] for name in metrics})


def test_a_plain_tag_named_question_mark_is_a_label():
    assert span_scores([["NN", "?"]], [["NN", "NN"]]) == {"accuracy": 50.0}
    assert TagSet.of(["NN", "?"]).unlabelled == -1


def test_a_predicted_unknown_tag_is_refused():
    with pytest.raises(ValueError, match="a predicted tag is '\\?', which marks unknown gold tags; predict O"):
        Comparison.of([["B-X", "O"]], [["B-X", "?"]])
