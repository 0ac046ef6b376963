"""model_cards/results.json: its commands can be run, and the pages show every score."""

import json
import shlex

from conftest import REPOSITORY
from helpers import ok

from hf_xorner.training import parse


def test_the_command_of_every_result_trains_the_model_of_the_result():
    for row in json.loads((REPOSITORY / "model_cards" / "results.json").read_text(encoding="utf-8")):
        run, training, _ = parse(shlex.split(row["command"])[2:])
        assert (run.model_type, run.dataset) == (row["model_type"], row["dataset"]), row["work"]
        assert (run.seeds or [training.seed]) == row["seeds"], row["work"]


def test_pages_are_generated_from_the_results(script):
    ok(script("results_page.py", "--check"))
