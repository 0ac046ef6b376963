"""model_cards/results.json: the command of every score matches the fields beside it."""

import json
import shlex

import pytest
from conftest import REPOSITORY

from hf_xorner.training import parse

RESULTS = json.loads((REPOSITORY / "model_cards" / "results.json").read_text(encoding="utf-8"))
FIELDS = {"work", "dataset", "split", "model_type", "features", "seeds", "f1_mean", "f1_std", "published", "command"}


def test_results_are_unique():
    places = [(row["work"], row["dataset"], row["split"]) for row in RESULTS]
    assert len(places) == len(set(places)) >= 6


@pytest.mark.parametrize("row", RESULTS, ids=lambda row: row["work"])
def test_the_command_of_a_result_matches_its_fields(row):
    assert set(row) == FIELDS
    assert row["features"] in ("none", "static", "contextual", "static+contextual")
    assert 0 < row["f1_mean"] < 100
    assert (row["f1_std"] is None) == (len(row["seeds"]) == 1)
    words = shlex.split(row["command"])
    assert words[:2] == ["python", "scripts/train.py"]
    run, training, _ = parse(words[2:])
    assert (run.model_type, run.dataset) == (row["model_type"], row["dataset"])
    assert (run.seeds or [training.seed]) == row["seeds"]
    assert bool(run.context) == ("contextual" in row["features"])
    assert bool(run.vectors or run.composed) == ("static" in row["features"])
