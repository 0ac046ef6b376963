"""The advice after a run names what limits the model, and a command that can be run."""

import shlex

import pytest

from hf_xorner.training import parse
from hf_xorner.training.advice import advice
from hf_xorner.training.facts import Facts


def scored(f1, support=100, **parts):
    return {"precision": f1, "recall": f1, "f1": f1, "support": support, **parts}


def facts(curve, validation, examples=(("PER", 500), ("LOC", 500)), inputs=None):
    """Facts of a run with a dev score for every epoch; the parts that advice reads."""
    return Facts(
        recipe=None,
        command="",
        options={"dataset": "corpus", "num_train_epochs": float(len(curve)), "model_type": "bilstm-cnn"},
        config={},
        inputs=inputs or {},
        data={"splits": {"train": {"per_type": dict(examples)}}},
        curve=[{"epoch": float(epoch), "dev": {"f1": f1}} for epoch, f1 in enumerate(curve, 1)],
        scores={"validation": validation} if validation else {},
        speed={},
        model={},
        hardware={},
        versions={},
        seed=1,
    )


EARLY = [10.0, 60.0, *[50.0] * 18]
LATE = [float(step) for step in range(20)]


def test_nothing_is_said_where_nothing_is_known():
    assert advice(facts(EARLY, scored(60.0))) == ""


def test_a_late_best_epoch_asks_for_more_epochs():
    command = advice(facts(LATE, scored(19.0))).rpartition(": ")[2]
    run, training, _ = parse(shlex.split(command)[2:])
    assert (run.dataset, training.num_train_epochs) == ("corpus", 40.0)


def test_a_perfect_score_asks_for_no_more_epochs():
    assert advice(facts(LATE, scored(100.0))) == ""


def test_a_constant_score_asks_for_no_more_epochs():
    assert advice(facts([50.0] * 20, scored(50.0))) == ""


@pytest.mark.parametrize(
    ("unseen", "inputs", "expected"), [(30.0, None, True), (80.0, None, False), (30.0, {"vectors": {}}, False)]
)
def test_unseen_entities_ask_for_vectors(unseen, inputs, expected):
    parts = {"seen": {"seen": scored(90.0, 25), "unseen": scored(unseen, 75)}}
    said = advice(facts(EARLY, scored(60.0, **parts), inputs=inputs))
    assert ("75 %" in said and "--vectors auto" in said) == expected
    assert bool(said) == expected


@pytest.mark.parametrize(("examples", "f1", "expected"), [(7, 20.0, True), (500, 20.0, False), (7, 60.0, False)])
def test_a_rare_type_with_low_scores_is_named(examples, f1, expected):
    validation = scored(60.0, per_type={"PER": scored(70.0), "GOD": scored(f1, 5)})
    said = advice(facts(EARLY, validation, examples=(("PER", 500), ("GOD", examples))))
    assert ("GOD has 7 examples" in said) == expected
    assert bool(said) == expected


def test_missing_validation_data_are_asked_for():
    assert "dev.txt" in advice(facts([], None))


def test_no_more_than_two_limits_are_named():
    parts = {
        "seen": {"seen": scored(90.0), "unseen": scored(10.0)},
        "per_type": {"GOD": scored(10.0, 5)},
    }
    said = advice(facts(LATE, scored(60.0, **parts), examples=(("GOD", 3),)))
    assert "more epochs" in said and "--vectors" in said and "GOD has" not in said
