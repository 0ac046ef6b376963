"""The report: every figure under its key, seqeval agreeing, and tables that show them."""

import json
import random

import numpy as np
import pytest
from conftest import LABELS, SENTENCES, build_model

from hf_xorner import Tagger
from hf_xorner.evaluation import scores, span_scores
from hf_xorner.evaluation.report import System, Training, compare, report
from hf_xorner.evaluation.tables import report_text

TOKENS = [["Ann", "Lee", "saw", "Oslo"], ["Oslo", "rains"], ["Bo", "left"]]
GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"], ["B-PER", "O"]]
PREDICTED = [["B-PER", "I-PER", "O", "B-PER"], ["B-LOC", "O"], ["O", "B-LOC"]]
SYSTEM = System(TOKENS, GOLD, PREDICTED, [0.9, 0.7, 1.0, 0.6, 0.95, 1.0, 1.0, 0.5])
TRAINING = Training.of([["Oslo", "and", "Ann", "Lee"]], [["B-LOC", "O", "B-PER", "I-PER"]])


def test_every_figure_has_its_key():
    found = report(SYSTEM, training=TRAINING, vector_words=["ann", "lee", "saw", "oslo", "left"], resamples=100)
    assert list(found) == [
        "policy",
        "sentences",
        "tokens",
        "precision",
        "recall",
        "f1",
        "support",
        "accuracy",
        "macro",
        "per_type",
        "per_length",
        "chunk_tags",
        "surface",
        "confusion",
        "vocabulary",
        "seen",
        "calibration",
        "ci95",
    ]
    assert {name: found[name] for name in span_scores(GOLD, PREDICTED)} == span_scores(GOLD, PREDICTED)
    assert (found["sentences"], found["tokens"]) == (3, 8)
    assert found["surface"] == {
        "precision": 50.0,
        "recall": pytest.approx(200 / 3),
        "f1": pytest.approx(400 / 7),
        "support": 3,
    }
    assert found["seen"]["unseen"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1}
    assert {name: row["support"] for name, row in found["vocabulary"]["entities"].items()} == {
        "IV": 3,
        "OOTV": 0,
        "OOEV": 0,
        "OOBV": 1,
    }
    assert found["calibration"]["count"] == 4
    # Confidences .8 right, .6 wrong, .95 right, .5 wrong, each in a bin of its own.
    assert found["calibration"]["ece"] == pytest.approx(100 * (0.2 + 0.6 + 0.05 + 0.5) / 4)
    low, high = found["ci95"]["f1"]
    assert 0 <= low <= found["f1"] <= high <= 100
    assert json.loads(json.dumps(found)) == found


def test_plain_tags_have_figures_of_their_own():
    system = System([["a", "b", "c"]], [["DT", "NN", "VB"]], [["DT", "NN", "NN"]], [1.0, 0.5, 0.5])
    found = report(system, training=Training.of([["a", "b"]], [["DT", "NN"]]), resamples=10)
    assert list(found) == [
        "policy",
        "sentences",
        "tokens",
        "accuracy",
        "support",
        "per_tag",
        "confusions",
        "vocabulary",
        "ci95",
    ]
    assert found["confusions"] == [{"gold": "VB", "predicted": "NN", "count": 1}]
    assert found["vocabulary"]["words"]["OOTV"] == {"accuracy": 0.0, "support": 1}
    assert list(found["ci95"]) == ["accuracy"]
    assert "VB" in report_text(found)


def test_a_figure_that_seqeval_does_not_share_stops_the_report(monkeypatch):
    monkeypatch.setattr(scores, "f1_score", lambda *arguments, **options: 0.123)
    with pytest.raises(RuntimeError, match=r"f1 is 50\.0 here and 12\.3 by seqeval"):
        report(SYSTEM)


def test_the_policy_is_that_of_every_figure():
    system = System([["a", "b"]], [["B-X", "I-X"]], [["I-X", "I-X"]])
    assert report(system, "conlleval", resamples=0)["per_length"]["2"]["f1"] == 100
    strict = report(system, "strict", resamples=0)
    assert (strict["f1"], strict["per_length"]["2"]["f1"], strict["surface"]["f1"]) == (0, 0, 0)
    assert "ci95" not in strict


def test_other_schemes_can_be_named():
    system = System([["a", "b"]], [["I-X", "B-X"]], [["I-X", "I-X"]])
    found = report(system, "strict", scheme="iob1", resamples=0)
    assert (found["support"], found["recall"]) == (2, 0)


def test_the_tables_show_the_figures():
    found = report(SYSTEM, training=TRAINING, resamples=100)
    found["compare"] = compare(SYSTEM, System(TOKENS, GOLD, GOLD))
    text = report_text(found)
    assert "3 sentences, 8 words; malformed spans: conlleval" in text
    for line in (
        ("all entities", 50, 50, 50, 4),
        ("surface forms", 50, 200 / 3, 400 / 7, 3),
        ("LOC", 50, 50, 50, 2),
        ("PER", 50, 50, 50, 2),
    ):
        expected = f"{line[0]:<22} " + " ".join(f"{value:>11.2f}" for value in line[1:4]) + f" {line[4]:>11}"
        assert expected in text.split("\n")
    assert "expected calibration error" in text
    assert "-50.00" in text


def test_two_systems_on_the_same_sentences_are_compared():
    perfect = System(TOKENS, GOLD, GOLD)
    found = compare(SYSTEM, perfect)
    assert found["f1"]["difference"] == -50
    # Two sentences differ, which gives four outcomes; as far apart are only the two that keep them together.
    assert (found["f1"]["p"], found["f1"]["exact"]) == (0.5, True)
    assert compare(SYSTEM, SYSTEM)["f1"]["p"] == 1


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (System(TOKENS[:2], GOLD[:2], GOLD[:2]), "3 sentences here and 2 there; compare two systems on one corpus."),
        (
            System([TOKENS[0], ["Rome", "rains"], TOKENS[2]], GOLD, GOLD),
            "the words of sentence 1 (counted from 0) differ; compare two systems on one corpus.",
        ),
        (
            System(TOKENS, [*GOLD[:2], ["O", "O"]], GOLD),
            "the gold tags of sentence 2 (counted from 0) differ; compare two systems on one corpus.",
        ),
    ],
)
def test_systems_on_other_sentences_are_not_compared(other, message):
    with pytest.raises(ValueError) as error:
        compare(SYSTEM, other)
    assert str(error.value) == message


@pytest.mark.parametrize("decoder", ["softmax", "crf"])
def test_a_tagger_is_a_system_whose_spans_are_its_entities(tokenizer, model_type, decoder):
    tagger = Tagger(build_model(model_type, tokenizer, decoder=decoder, spread=2.0), tokenizer)
    words = [word for words in SENTENCES for word in words]
    sentences = [*SENTENCES, [], ["Ann"], *(random.Random(number).sample(words, 12) for number in range(20))]
    gold = [["O"] * len(words) for words in sentences]
    system = System.of_tagger(tagger, sentences, gold, batch_size=2)
    assert [len(tags) for tags in system.predicted] == [len(words) for words in sentences]
    assert set().union(*system.predicted) <= set(LABELS)
    found = report(system, resamples=0)
    entities = [entity for listed in tagger.tag(sentences) for entity in listed]
    assert entities
    # Every entity is spurious, so the calibration holds the Tagger's own confidences and nothing is right.
    assert sum(found["confusion"]["spurious"].values()) == found["calibration"]["count"] == len(entities)
    bins = found["calibration"]["bins"]
    mean = sum(row["count"] * row["confidence"] for row in bins) / len(entities)
    assert mean == pytest.approx(100 * np.mean([entity.score for entity in entities]), abs=1e-3)


def test_nothing_can_be_reported_of_no_sentence():
    found = report(System([], [], []), resamples=10)
    assert (found["f1"], found["tokens"]) == (0, 0)
