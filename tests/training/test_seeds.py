"""Several seeds in one command: each matches a single run."""

import json
import statistics

import pytest
from helpers import ok

from hf_xorner.training.arguments import parse


def words_for(corpus, out, *options):
    words = "--hidden_size 6 --word_dim 6 --num_train_epochs 2 --per_device_train_batch_size 8 --learning_rate 0.03"
    words += " --use_cpu true --disable_tqdm true"
    return ["--dataset", str(corpus), "--output_dir", str(out), *words.split(), *options]


@pytest.fixture
def train(script, towns):
    return lambda out, *options: ok(script("train", *words_for(towns, out, *options)))


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def f1_of(folder, split):
    return json.loads((folder / "facts.json").read_text())["scores"][split]["f1"]


def test_each_seed_matches_a_single_run_and_seeds_can_be_added(train, tmp_path):
    third, fourth = tmp_path / "both" / "seed-3", tmp_path / "both" / "seed-4"
    train(tmp_path / "both", "--seeds", "3", "--resume")
    before = weights(third)
    printed = train(tmp_path / "both", "--seeds", "3", "4", "--resume_from_checkpoint", "true").splitlines()
    train(tmp_path / "alone", "--seed", "4")
    assert weights(third) == before != weights(fourth) == weights(tmp_path / "alone")
    facts = [json.loads((folder / "facts.json").read_text()) for folder in (fourth, tmp_path / "alone")]
    assert facts[0]["seed"] == 4 and facts[0]["command"] == facts[1]["command"]
    for split in ("validation", "test"):
        values = [f1_of(folder, split) for folder in (third, fourth)]
        expected = [*values, statistics.mean(values), statistics.stdev(values)]
        assert [split, "F1", *(f"{value:.2f}" for value in expected)] in [line.split() for line in printed]
    best = fourth if f1_of(fourth, "validation") > f1_of(third, "validation") else third
    assert any(line.endswith(f" {best}") for line in printed)


def test_options_incompatible_with_several_seeds_are_refused(tmp_path):
    for options, sentence in (
        (["--seeds", "1", "2", "--push_to_hub", "true", "--hub_model_id", "a/b"], "push_to_hub publishes one model"),
        (["--seeds", "1", "--resume_from_checkpoint", "runs/x/checkpoint-3"], "names one run's checkpoint"),
    ):
        with pytest.raises(ValueError, match=sentence):
            parse(["--output_dir", str(tmp_path), *options])
