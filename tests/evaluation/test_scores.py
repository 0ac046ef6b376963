import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, classification_report
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES
from span_oracle import SCHEMES, in_bioes, pairs
from transformers import EvalPrediction

from hf_xorner.evaluation import compute_metrics_for, span_scores

STRICT = {"iob1": IOB1, "iob2": IOB2, "bioes": IOBES, "bilou": BILOU}


def seqeval_report(gold, predicted, **mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return classification_report(gold, predicted, output_dict=True, zero_division=0, **mode)


def assert_matches_seqeval(scores, gold, predicted, **mode):
    """Every figure equals that of seqeval on the same tags, to 1e-12 of a ratio."""
    if any(gold):
        assert scores["accuracy"] / 100 == pytest.approx(accuracy_score(gold, predicted), abs=1e-12)
    if not scores["per_type"]:
        assert (scores["f1"], scores["support"]) == (0, 0)
        return
    report = seqeval_report(gold, predicted, **mode)
    macro = {**scores["macro"], "support": scores["support"]}
    for name, ours in {**scores["per_type"], "micro avg": scores, "macro avg": macro}.items():
        theirs = report.pop(name)
        for figure, key in [("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")]:
            assert ours[figure] / 100 == pytest.approx(theirs[key], abs=1e-12)
        assert ours["support"] == theirs["support"]
    assert set(report) == {"weighted avg"}


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_scores_match_both_modes_of_seqeval(scheme, data):
    gold, predicted = data.draw(pairs(scheme))
    renamed = ([in_bioes(tags) for tags in side] for side in (gold, predicted))
    assert_matches_seqeval(span_scores(gold, predicted, "conlleval", scheme), *renamed)
    if scheme == "iob1":  # malformed IOB1 has no strict mode
        gold, predicted = data.draw(pairs(scheme, well_formed=True))
    if scheme in STRICT:
        scores = span_scores(gold, predicted, "strict", scheme)
        assert_matches_seqeval(scores, gold, predicted, mode="strict", scheme=STRICT[scheme])


class TestComputeMetrics:
    id2label = dict(enumerate(["O", "B-X", "I-X"]))
    labels = np.array([[1, 2, 0, -100], [-100, 0, 1, 1]])
    predicted = np.array([[1, 2, 1, 1], [2, 0, 1, 2]])

    def metrics(self, predictions, id2label=None):
        compute = compute_metrics_for(id2label or self.id2label)
        return compute(EvalPrediction(predictions=predictions, label_ids=self.labels))

    def test_ignored_labels_are_not_scored(self):
        expected = span_scores([["B-X", "I-X", "O"], ["O", "B-X", "B-X"]], [["B-X", "I-X", "B-X"], ["O", "B-X", "I-X"]])
        expected = {name: expected[name] for name in ("precision", "recall", "f1", "accuracy")}
        logits = np.eye(3, dtype=np.float32)[self.predicted]
        assert self.metrics(logits) == expected
        assert self.metrics((logits, np.zeros(3))) == expected
        assert self.metrics(self.predicted) == expected

    def test_plain_labels_have_an_accuracy_only(self):
        id2label = {0: "NN", 1: "VB", 2: "DT"}
        assert self.metrics(self.predicted, id2label=id2label) == {"accuracy": pytest.approx(100 * 4 / 6)}

    def test_labels_of_other_schemes_are_scored(self):
        compute = compute_metrics_for(dict(enumerate(["O", "B-X", "E-X"])))
        scores = compute(EvalPrediction(predictions=np.array([[1, 2, 2, 1]]), label_ids=np.array([[1, 2, 1, 2]])))
        assert scores == {"precision": pytest.approx(100 / 3), "recall": 50.0, "f1": 40.0, "accuracy": 50.0}
