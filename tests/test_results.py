"""model_cards/results.json: the command of every score matches its fields, and the pages show every score."""

import json
import shlex
from statistics import mean

import pytest
from conftest import REPOSITORY
from helpers import ok

from hf_xorner.training import parse

RESULTS = json.loads((REPOSITORY / "model_cards" / "results.json").read_text(encoding="utf-8"))
FIELDS = {
    *("work", "dataset", "split", "model_type", "features", "seeds", "dev_mean", "dev_std"),
    *("published", "published_with", "p", "baseline", "seconds", "device", "threads", "command"),
}


def measure_of(row):
    return "accuracy" if "accuracy_mean" in row else "f1"


def test_results_are_unique_and_their_commands_match_their_fields():
    places = [(row["work"], row["dataset"], row["split"], measure_of(row)) for row in RESULTS]
    assert len(places) == len(set(places)) >= 6
    for row in RESULTS:
        measure = measure_of(row)
        assert set(row) == FIELDS | {f"{measure}_mean", f"{measure}_std", f"{measure}_by_seed"}
        by_seed = row[f"{measure}_by_seed"]
        if by_seed is not None:
            assert len(by_seed) == len(row["seeds"])
            assert mean(by_seed) == pytest.approx(row[f"{measure}_mean"], abs=0.01)
        words = shlex.split(row["command"])
        assert words[:2] in (["python", "scripts/train.py"], ["hf-xorner", "train"])
        run, training, _ = parse(words[2:])
        assert (run.model_type, run.dataset) == (row["model_type"], row["dataset"]), row["work"]
        assert (run.tag_column is None) == (measure == "f1"), row["work"]
        assert (run.seeds or [training.seed]) == row["seeds"], row["work"]
        assert bool(run.context) == ("contextual" in row["features"]), row["work"]
        assert bool(run.vectors or run.composed) == ("static" in row["features"]), row["work"]


def test_pages_are_generated_from_the_results(script):
    ok(script("results_page.py", "--check"))
