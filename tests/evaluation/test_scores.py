import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, classification_report
from seqeval.scheme import IOB2
from transformers import EvalPrediction

from hf_xorner.evaluation import checked_span_scores, compute_metrics_for, scores, span_scores

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y", "B-art-work", "I-art-work"]
MODES = {"conlleval": {}, "strict": {"mode": "strict", "scheme": IOB2}}


@st.composite
def tagged(draw):
    lengths = draw(st.lists(st.integers(0, 8), min_size=1, max_size=6).filter(any))
    tag = st.sampled_from(TAGS)
    return [[draw(st.lists(tag, min_size=length, max_size=length)) for length in lengths] for _ in range(2)]


@pytest.mark.parametrize("policy", MODES)
@settings(deadline=None)
@given(tagged())
def test_every_figure_equals_seqevals(policy, pair):
    gold, predicted = pair
    found = span_scores(gold, predicted, policy)
    assert found["accuracy"] / 100 == pytest.approx(accuracy_score(gold, predicted), abs=1e-12)
    if not found["per_type"]:
        assert (found["f1"], found["support"]) == (0, 0)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = classification_report(gold, predicted, output_dict=True, zero_division=0, **MODES[policy])
    for name, here in {**found["per_type"], "micro avg": found}.items():
        there = report.pop(name)
        for figure, key in [("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")]:
            assert here[figure] / 100 == pytest.approx(there[key], abs=1e-12)
        assert here["support"] == there["support"]
    assert set(report) == {"macro avg", "weighted avg"}


def test_scores_by_hand():
    gold = [["B-X", "I-X", "O", "B-Y"], ["B-X"], ["O", "B-Y"]]
    predicted = [["B-X", "I-X", "O", "B-X"], ["B-X"], ["B-Y", "I-Y"]]
    found = span_scores(gold, predicted)
    assert found == {
        "precision": 50.0,
        "recall": 50.0,
        "f1": 50.0,
        "support": 4,
        "accuracy": pytest.approx(100 * 4 / 7),
        "per_type": {
            "X": {"precision": pytest.approx(200 / 3), "recall": 100.0, "f1": 80.0, "support": 2},
            "Y": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 2},
        },
    }


def test_the_policies_differ_on_malformed_spans():
    gold, predicted = [["B-X", "I-X"]], [["I-X", "I-X"]]
    assert span_scores(gold, predicted, "conlleval")["f1"] == 100
    assert span_scores(gold, predicted, "strict")["f1"] == 0


def test_plain_tags_have_an_accuracy_only():
    assert span_scores([["NN", "VB"]], [["NN", "NN"]]) == {"accuracy": 50.0}
    assert checked_span_scores([["NN", "VB"]], [["NN", "NN"]]) == {"accuracy": 50.0}


@pytest.mark.parametrize("function", [span_scores, checked_span_scores])
def test_nothing_scores_nothing(function):
    for empty in ([], [[]]):
        found = function(empty, empty)
        assert (found["f1"], found["accuracy"], found["support"], found["per_type"]) == (0, 0, 0, {})


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([["O"]], [], "1 gold sentences but 0 predicted ones; give as many of both."),
        (
            [["O"], ["O", "O"]],
            [["O"], ["O"]],
            "sentence 1 (counted from 0) has 2 gold tags but 1 predicted ones; give a tag for each word.",
        ),
        ([["B-X"]], [["S-X"]], "unknown tag 'S-X': scores need IOB2, that is O, or a type after B- or I-."),
    ],
)
def test_faulty_input_is_told(gold, predicted, message):
    with pytest.raises(ValueError) as error:
        span_scores(gold, predicted)
    assert str(error.value) == message


@pytest.mark.parametrize("policy", MODES)
def test_checked_scores_are_the_scores(policy):
    gold, predicted = (("B-X", "I-X", "O"), ("I-Y",)), (("B-X", "I-X", "I-X"), ("I-Y",))
    assert checked_span_scores(gold, predicted, policy) == span_scores(gold, predicted, policy)


@pytest.mark.parametrize(("function", "name"), [("f1_score", "f1"), ("accuracy_score", "accuracy")])
def test_a_figure_that_seqeval_does_not_share_is_refused(monkeypatch, function, name):
    monkeypatch.setattr(scores, function, lambda *arguments, **options: 1 - 1e-10)
    with pytest.raises(RuntimeError, match=f"{name} is 100.0 here and 99.99999998999999 by seqeval"):
        checked_span_scores([["B-X"]], [["B-X"]])


class TestComputeMetrics:
    id2label = dict(enumerate(["O", "B-X", "I-X"]))
    labels = np.array([[1, 2, 0, -100], [-100, 0, 1, 1]])
    predicted = np.array([[1, 2, 1, 1], [2, 0, 1, 2]])

    def metrics(self, predictions, labels=None, id2label=None):
        labels = self.labels if labels is None else labels
        compute = compute_metrics_for(id2label or self.id2label)
        return compute(EvalPrediction(predictions=predictions, label_ids=labels))

    def test_ignored_labels_do_not_count(self):
        expected = span_scores([["B-X", "I-X", "O"], ["O", "B-X", "B-X"]], [["B-X", "I-X", "B-X"], ["O", "B-X", "I-X"]])
        expected = {name: expected[name] for name in ("precision", "recall", "f1", "accuracy")}
        logits = np.eye(3, dtype=np.float32)[self.predicted]
        assert self.metrics(logits) == expected
        assert self.metrics((logits, np.zeros(3))) == expected
        assert self.metrics(self.predicted) == expected

    def test_the_padding_of_the_trainer_does_not_count(self):
        logits = np.eye(3)[self.predicted]
        padded = np.pad(logits, ((0, 0), (0, 3), (0, 0)), constant_values=-100)
        labels = np.pad(self.labels, ((0, 0), (0, 3)), constant_values=-100)
        assert self.metrics(padded, labels) == self.metrics(logits)

    def test_plain_labels_have_an_accuracy_only(self):
        id2label = {0: "NN", 1: "VB", 2: "DT"}
        assert self.metrics(self.predicted, id2label=id2label) == {"accuracy": pytest.approx(100 * 4 / 6)}

    def test_shapes_that_do_not_fit_are_told(self):
        with pytest.raises(ValueError) as error:
            self.metrics(np.zeros((2, 3, 3)))
        assert str(error.value) == "predictions of the shape (2, 3, 3) do not fit labels of the shape (2, 4)."


def test_a_hundred_thousand_tokens_take_no_time():
    rng = np.random.default_rng(0)
    gold, predicted = (np.array(TAGS)[rng.choice(7, size=(5000, 20))].tolist() for _ in range(2))
    start = time.perf_counter()
    span_scores(gold, predicted)
    assert time.perf_counter() - start < 1
