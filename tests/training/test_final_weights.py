"""A successful run saves the weights whose scores it reports; damaged files raise."""

import json
import os
import shutil

import pytest
import runs
import torch
from helpers import write_towns
from safetensors.torch import load_file
from transformers import TrainerCallback

from hf_xorner.training import TrainingError, TrainingRun
from hf_xorner.training.checkpoints import CheckpointedCallback

FIRST = "checkpoint-6"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_towns(tmp_path_factory.mktemp("final") / "corpus")


def ready(corpus, out, **options):
    """A run of three epochs, of which the first scores best."""
    options = {"hidden_size": 4, "word_dim": 4, "num_train_epochs": 3, "per_device_train_batch_size": 8, **options}
    run = runs.ready(corpus, out, **options)
    run.trainer.compute_metrics = lambda prediction: {"f1": 1 / max(1, run.trainer.state.global_step)}
    return run


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "the folder is gone": (shutil.rmtree, "is not there"),
    "the weights are gone": (lambda best: (best / "model.safetensors").unlink(), "lacks model.safetensors"),
    "the weights are cut": (lambda best: cut(best / "model.safetensors"), "bytes of model.safetensors"),
    "a bit is flipped": (lambda best: flip(best / "model.safetensors"), "has other bytes in model.safetensors"),
    "the manifest is gone": (lambda best: (best / "manifest.json").unlink(), "has no manifest.json"),
}


class DamageAt(CheckpointedCallback):
    """Damages the best checkpoint before the last epoch, or when a run has just been resumed."""

    def __init__(self, out, damage, resumed=False):
        self.best, self.damage, self.resumed = out / FIRST, damage, resumed

    def begin(self, trainer, checkpoint):
        if self.resumed:
            self.damage(self.best)

    def on_epoch_begin(self, args, state, control, **kwargs):
        if state.epoch == 2 and not self.resumed:
            self.damage(self.best)


def unfinished_without_model(out):
    assert not (out / "config.json").exists() and not (out / "facts.json").exists()
    return not json.loads((out / "training_run.json").read_text())["finished"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_best_checkpoint_raises(corpus, tmp_path, damage):
    do, fault = DAMAGES[damage]
    run = ready(corpus, tmp_path / "out")
    run.trainer.add_callback(DamageAt(tmp_path / "out", do))
    with pytest.raises(TrainingError, match=f"{tmp_path / 'out'} .*{FIRST} .*{fault}"):
        run.train()
    assert unfinished_without_model(tmp_path / "out")


def test_a_best_checkpoint_deleted_during_resuming_raises(corpus, tmp_path):
    class Killed(BaseException):
        pass

    class Kill(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == 14:
                raise Killed

    run = ready(corpus, tmp_path / "out")
    run.trainer.add_callback(Kill())
    with pytest.raises(Killed):
        run.train()
    again = ready(corpus, tmp_path / "out", resume_from_checkpoint=True)
    again.trainer.add_callback(DamageAt(tmp_path / "out", shutil.rmtree, resumed=True))
    with pytest.raises(TrainingError, match=f"{FIRST} is not there"):
        again.train()
    assert unfinished_without_model(tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "damage"), [("model.safetensors", flip), ("config.json", cut), ("tokenizer.json", os.remove)]
)
def test_a_saved_model_damaged_during_scoring_raises(corpus, tmp_path, monkeypatch, name, damage):
    judge = TrainingRun.judge

    def damaging(run, split):
        damage(tmp_path / "out" / name)
        monkeypatch.setattr(TrainingRun, "judge", judge)
        return judge(run, split)

    monkeypatch.setattr(TrainingRun, "judge", damaging)
    with pytest.raises(TrainingError, match=f"The model in {tmp_path / 'out'} .*{name}"):
        ready(corpus, tmp_path / "out", num_train_epochs=1).train()
    assert not (tmp_path / "out" / "facts.json").exists()
    assert not json.loads((tmp_path / "out" / "training_run.json").read_text())["finished"]


def test_the_weights_of_the_best_epoch_are_saved(corpus, tmp_path):
    ready(corpus, tmp_path / "out").train()
    saved, best = (load_file(tmp_path / "out" / place / "model.safetensors") for place in ("", FIRST))
    assert saved.keys() == best.keys()
    assert all(torch.equal(saved[name], best[name]) for name in best)
