"""The report: its keys, the tables, and the comparison of two systems."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import LABELS, SENTENCES, build_model

from hf_xorner import Tagger
from hf_xorner.evaluation import span_scores
from hf_xorner.evaluation.report import System, Training, compare, report, wrong_sentences
from hf_xorner.evaluation.report_text import report_text

TOKENS = [["Ann", "Lee", "saw", "Oslo"], ["Oslo", "rains"], ["Bo", "left"]]
GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"], ["B-PER", "O"]]
PREDICTED = [["B-PER", "I-PER", "O", "B-PER"], ["B-LOC", "O"], ["O", "B-LOC"]]
# The second word is a part of the first span, whose probability is 0.8.
SYSTEM = System(TOKENS, GOLD, PREDICTED, np.log([0.9, 0.7, 1.0, 0.6, 0.95, 1.0, 1.0, 0.5])[:, None] * [1, 1])
SYSTEM.log_probs[1, 1] = np.log(0.8 / 0.9)
TRAINING = Training.of([["Oslo", "and", "Ann", "Lee"]], [["B-LOC", "O", "B-PER", "I-PER"]])


@pytest.fixture(scope="module")
def figures():
    return report(SYSTEM, training=TRAINING, vector_words=["ann", "lee", "saw", "oslo", "left"], resamples=100)


def test_the_scores_of_the_report_are_those_of_its_entities(figures):
    assert {name: figures[name] for name in span_scores(GOLD, PREDICTED)} == span_scores(GOLD, PREDICTED)
    assert (figures["sentences"], figures["tokens"]) == (3, 8)
    assert (figures["surface"]["recall"], figures["surface"]["support"]) == (pytest.approx(200 / 3), 3)
    low, high = figures["ci95"]["f1"]
    assert 0 <= low <= figures["f1"] <= high <= 100


def test_entities_are_divided_by_the_training_data(figures):
    assert figures["seen"]["unseen"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1}
    parts = {name: row["support"] for name, row in figures["vocabulary"]["entities"].items()}
    assert parts == {"IV": 3, "OOTV": 0, "OOEV": 0, "OOBV": 1}


def test_the_calibration_error_is_that_of_the_predicted_entities(figures):
    # Confidences .8 right, .6 wrong, .95 right, .5 wrong, each in a bin of its own.
    assert figures["calibration"]["count"] == 4
    assert figures["calibration"]["ece"] == pytest.approx(100 * (0.2 + 0.6 + 0.05 + 0.5) / 4)


def test_wrong_sentences_begin_with_the_surest_mistakes():
    assert [(row["probability"], row["gold"], row["predicted"]) for row in wrong_sentences(SYSTEM)] == [
        (1.0, [["PER", "Bo"]], [["LOC", "left"]]),
        (0.6, [["PER", "Ann Lee"], ["LOC", "Oslo"]], [["PER", "Ann Lee"], ["PER", "Oslo"]]),
    ]
    assert wrong_sentences(SYSTEM)[0]["words"] == TOKENS[2]
    plain = System([["a", "b"], ["c"]], [["DT", "NN"], ["VB"]], [["DT", "NN"], ["NN"]])
    assert [(row["gold"], row["predicted"]) for row in wrong_sentences(plain)] == [([["VB", "c"]], [["NN", "c"]])]


def test_differing_sentences_are_counted_and_shown():
    other = replace(SYSTEM, predicted=[GOLD[0], ["O", "O"], PREDICTED[2]])
    comparison = compare(SYSTEM, other)
    assert (comparison["better"], comparison["worse"]) == (1, 1)
    assert [row["words"] for row in comparison["sentences"]] == [TOKENS[0], TOKENS[1]]
    assert comparison["sentences"][1] | {"predicted": [["LOC", "Oslo"]], "other": []} == comparison["sentences"][1]


def test_report_on_plain_tags():
    system = System(
        [["a", "b", "c"]], [["DT", "NN", "VB"]], [["DT", "NN", "NN"]], np.log([[1.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    )
    figures = report(system, training=Training.of([["a", "b"]], [["DT", "NN"]]), resamples=10)
    scores = "accuracy support per_tag confusions"
    assert list(figures) == f"policy scheme sentences tokens {scores} vocabulary ci95".split()
    assert figures["confusions"] == [{"gold": "VB", "predicted": "NN", "count": 1}]
    assert figures["vocabulary"]["words"]["OOTV"] == {"accuracy": 0.0, "support": 1}
    assert list(figures["ci95"]) == ["accuracy"]
    assert "VB" in report_text(figures)


@pytest.mark.parametrize("policy", ["conlleval", "strict"])
def test_malformed_spans_are_counted_under_both_policies(policy):
    tags = [["I-X", "O", "I-X", "I-X", "B-X"], ["B-X", "I-Y"]]
    system = System([["a"] * 5, ["b", "c"]], tags, [["B-X", "O", "B-X", "I-X", "B-X"], ["O", "I-Y"]])
    assert report(replace(system, policy=policy), resamples=0)["malformed"] == {"gold": 3, "predicted": 1}
    in_iob1 = report(replace(system, policy=policy, scheme="iob1"), resamples=0)
    assert (in_iob1["malformed"], in_iob1["scheme"]) == ({"gold": 0, "predicted": 0}, "iob1")


def test_policy_and_scheme_apply_to_all_scores():
    system = System([["a", "b"]] * 9, [["B-X", "O"]] * 9, [["I-X", "O"]] * 9)
    for policy, score in (("conlleval", 100), ("strict", 0)):
        figures = report(replace(system, policy=policy), resamples=9)
        assert figures["f1"] == figures["per_length"]["1"]["f1"] == figures["surface"]["f1"] == score
        assert figures["ci95"]["f1"] == [score, score]
    right = System(system.tokens, system.gold, system.gold)
    assert compare(system, right)["scores"]["f1"]["difference"] == 0
    assert compare(replace(system, policy="strict"), right)["scores"]["f1"]["difference"] == -100
    assert compare(replace(system, policy="strict", scheme="iob1"), right)["scores"]["f1"]["difference"] == 0
    assert "ci95" not in report(replace(system, policy="strict", scheme="iob1"), resamples=0)


def test_the_tables_show_the_scores():
    figures = report(SYSTEM, training=TRAINING, resamples=100)
    figures["compare"] = compare(SYSTEM, System(TOKENS, GOLD, GOLD))
    lines = [line.split() for line in report_text(figures).split("\n")]
    assert ["all", "entities", "50.00", "50.00", "50.00", "4"] in lines
    assert ["surface", "forms", "50.00", "66.67", "57.14", "3"] in lines
    assert ["LOC", "1", "1", "0", "0", "0"] in lines  # of the gold entities, one is found and one taken for PER
    assert ["f1", "-50.00", f"{figures['compare']['scores']['f1']['p']:.4g}"] in lines
    assert not any("capitals" in line for line in lines)  # there are no such sentences


def test_two_systems_on_the_same_sentences_are_compared():
    perfect = System(TOKENS, GOLD, GOLD)
    comparison = compare(SYSTEM, perfect)
    assert comparison["scores"]["f1"]["difference"] == -50
    # Two sentences differ, which gives four outcomes; as far apart are only the two that keep them together.
    assert comparison["scores"]["f1"]["p"] == pytest.approx(0.5, abs=0.03)
    # Files of predictions have no sentences without words.
    assert compare(System([[], *TOKENS], [[], *GOLD], [[], *PREDICTED]), perfect) == comparison
    for other, message in (
        (System(TOKENS[:2], GOLD[:2], GOLD[:2]), "words of sentence 2"),
        (System([TOKENS[0], ["Rome", "rains"], TOKENS[2]], GOLD, GOLD), "words of sentence 1"),
        (System(TOKENS, [*GOLD[:2], ["O", "O"]], GOLD), "gold tags of sentence 2"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(SYSTEM, other)


def test_the_spans_of_a_tagger_are_its_entities(tagger):
    words = [word for words in SENTENCES for word in words]
    sentences = [*SENTENCES, [], ["Ann"], *(random.Random(number).sample(words, 12) for number in range(20))]
    gold = [["O"] * len(words) for words in sentences]
    system = System.of_tagger(tagger, sentences, gold, batch_size=2)
    assert [len(tags) for tags in system.predicted] == [len(words) for words in sentences]
    assert set().union(*system.predicted) <= set(LABELS)
    figures = report(system, resamples=0)
    entities = [entity for listed in tagger(sentences) for entity in listed]
    assert entities
    # Every entity is spurious.
    assert sum(figures["confusion"]["spurious"].values()) == figures["calibration"]["count"] == len(entities)


def test_a_model_with_nan_probabilities_is_refused(tokenizer):
    model = build_model("bilstm-cnn", tokenizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    with pytest.raises(ValueError, match=r"the model's probabilities are nan; its training probably diverged"):
        System.of_tagger(Tagger(model, tokenizer), SENTENCES, [["O"] * len(words) for words in SENTENCES])
