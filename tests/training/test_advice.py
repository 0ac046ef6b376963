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


WORDS = ["../my corpus", "--output_dir", "/somewhere/out", "--num_train_epochs", "20", "--seeds", "1", "2"]


def said_of(found, words=WORDS):
    return advice(found, words, "/somewhere/out")


EARLY = [10.0, 60.0, *[50.0] * 18]
LATE = [float(step) for step in range(20)]


def test_nothing_is_said_where_nothing_is_known():
    assert said_of(facts(EARLY, scored(60.0))) == ""


def test_a_late_best_epoch_asks_for_more_epochs():
    command = said_of(facts(LATE, scored(19.0))).rpartition(": ")[2]
    assert command.startswith("hf-xorner train '../my corpus' --seeds 1 2")
    run, training, _ = parse(["--dataset", *shlex.split(command)[2:]])
    assert (run.dataset, run.seeds, training.num_train_epochs) == ("../my corpus", [1, 2], 40.0)
    assert training.output_dir == "/somewhere/out-2"


def test_a_suggested_command_names_a_folder_that_does_not_exist(tmp_path):
    (tmp_path / "out-2").mkdir()
    words = ["corpus", "--output_dir", str(tmp_path / "out"), "--overwrite", "--resume_from_checkpoint", "true"]
    said = advice(facts(LATE, scored(19.0)), words, str(tmp_path / "out"))
    assert shlex.split(said)[-6:] == [
        *("train", "corpus", "--output_dir", str(tmp_path / "out-3"), "--num_train_epochs", "40")
    ]


@pytest.mark.parametrize("words", [["corpus", "--max_steps", "30"], ["recipe.yaml"], ["corpus", "--max_steps=30"]])
def test_a_limit_of_steps_is_doubled(words):
    found = facts(LATE, scored(19.0))
    found.options["max_steps"] = 30
    # A part of an epoch.
    found.curve[:] = [{"epoch": 0.1 * place, "dev": {"f1": 10.0 * place}} for place in (1, 2, 3)]
    said = said_of(found, words)
    assert "more steps may help" in said and "num_train_epochs" not in said
    assert said.endswith(f"hf-xorner train {words[0]} --output_dir /somewhere/out-2 --max_steps 60")


def test_less_than_an_epoch_asks_for_whole_epochs():
    found = facts([], scored(19.0))
    found.curve[:] = [{"epoch": 0.3, "dev": {"f1": 19.0}}]
    assert said_of(found, ["corpus"]).endswith("--num_train_epochs 2")


def test_a_perfect_score_asks_for_no_more_epochs():
    assert said_of(facts(LATE, scored(100.0))) == ""


def test_a_score_of_zero_asks_for_more_epochs():
    said = said_of(facts([0.0] * 3, scored(0.0)))
    assert said.startswith("Nothing was found") and said.endswith("--num_train_epochs 6")


def test_a_constant_score_asks_for_no_more_epochs():
    assert said_of(facts([50.0] * 20, scored(50.0))) == ""


@pytest.mark.parametrize(
    ("unseen", "inputs", "expected"), [(30.0, None, True), (80.0, None, False), (30.0, {"vectors": {}}, False)]
)
def test_unseen_entities_ask_for_vectors(unseen, inputs, expected):
    parts = {"seen": {"seen": scored(90.0, 25), "unseen": scored(unseen, 75)}}
    said = said_of(facts(EARLY, scored(60.0, **parts), inputs=inputs))
    assert ("75 %" in said and "--vectors auto" in said) == expected
    assert bool(said) == expected


@pytest.mark.parametrize(("examples", "f1", "expected"), [(7, 20.0, True), (500, 20.0, False), (7, 60.0, False)])
def test_a_rare_type_with_low_scores_is_named(examples, f1, expected):
    validation = scored(60.0, per_type={"PER": scored(70.0), "GOD": scored(f1, 5)})
    said = said_of(facts(EARLY, validation, examples=(("PER", 500), ("GOD", examples))))
    assert ("GOD has 7 examples" in said) == expected
    assert bool(said) == expected


def test_missing_validation_data_are_asked_for():
    assert "dev.txt" in said_of(facts([], None))


def test_no_more_than_two_limits_are_named():
    parts = {
        "seen": {"seen": scored(90.0), "unseen": scored(10.0)},
        "per_type": {"GOD": scored(10.0, 5)},
    }
    said = said_of(facts(LATE, scored(60.0, **parts), examples=(("GOD", 3),)))
    assert "more epochs" in said and "--vectors" in said and "GOD has" not in said
