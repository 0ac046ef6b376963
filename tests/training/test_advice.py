"""The advice after a run names what limits the model, and what may help."""

import pytest

from hf_xorner.training.advice import advice

EARLY = [10.0, 60.0, *[50.0] * 18]
LATE = [float(step) for step in range(20)]


def scored(f1, support=100, **parts):
    return {"precision": f1, "recall": f1, "f1": f1, "support": support, **parts}


def facts(curve, validation, god=500, inputs=None, **options):
    """The parts of a run's facts that advice reads, with a dev score for every epoch."""
    return {
        "options": options,
        "inputs": inputs or {},
        "data": {"splits": {"train": {"per_type": {"PER": 500, "GOD": god}}}},
        "curve": [{"epoch": float(epoch), "dev": {"f1": f1}} for epoch, f1 in enumerate(curve, 1)],
        "scores": {"validation": validation} if validation else {},
    }


def test_a_late_best_epoch_asks_for_longer_training():
    assert advice(facts(LATE, scored(19.0))).endswith("longer training may help: --num_train_epochs 40.")
    assert advice(facts(LATE, scored(19.0), max_steps=30)).endswith("--max_steps 60.")
    assert advice(facts([*[18.5] * 19, 19.0], scored(19.0))) == ""  # no more than chance


def test_scores_of_all_or_nothing():
    assert advice(facts([0.0] * 3, scored(0.0))).endswith("--num_train_epochs 6.")
    assert advice(facts(LATE, scored(100.0))) == advice(facts([50.0] * 20, scored(50.0))) == ""
    assert "dev.txt" in advice(facts([], None))


@pytest.mark.parametrize(
    ("unseen", "inputs", "vectors", "advised"),
    [
        (30, {}, "none", "--model_name_or_path multilingual"),
        (80, {}, "none", ""),
        (30, {"vectors": {}}, "auto", "english-open"),
        (30, {"vectors": {}}, "glove.txt", ""),
    ],
)
def test_low_scores_of_unseen_entities_ask_for_vectors(unseen, inputs, vectors, advised):
    parts = {"seen": {"seen": scored(90.0, 25), "unseen": scored(unseen, 75)}}
    text = advice(facts(EARLY, scored(60.0, **parts), inputs=inputs, vectors=vectors))
    assert advised in text and bool(text) == bool(advised)


@pytest.mark.parametrize(("examples", "f1", "named"), [(7, 20.0, True), (500, 20.0, False), (7, 60.0, False)])
def test_rare_types_with_low_scores_are_named(examples, f1, named):
    validation = scored(60.0, per_type={"PER": scored(30.0), "GOD": scored(f1, 5)})
    text = advice(facts(EARLY, validation, examples))
    assert ("GOD has 7 examples" in text) == bool(text) == named
