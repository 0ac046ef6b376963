"""Interrupted runs go on from their newest complete checkpoint, and no run replaces another unasked."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module

import pytest
import runs
import torch
from conftest import REPOSITORY
from helpers import INTERRUPTIBLE, Trap, posix
from runs import words_of
from safetensors.torch import load_file
from transformers import TrainerCallback

from hf_xorner.errors import TrainingError
from hf_xorner.training.run import checkpoints_in

SMALL = {"hidden_size": 6, "word_dim": 6, "char_dim": 3, "num_train_epochs": 3, "model_type": "lstm-crf"}
SMALL |= {"per_device_train_batch_size": 4, "learning_rate": 0.01}
STEPS = {"save_strategy": "steps", "save_steps": 7, "eval_strategy": "steps", "eval_steps": 7}


class Killed(BaseException):
    pass


class KillAt(TrainerCallback):
    """Ends a run after a step, as if it were killed."""

    def __init__(self, step):
        self.step = step

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            raise Killed


def ready(corpus, out, **options):
    return runs.ready(corpus, out, **{**SMALL, **options})


def kill(corpus, out, step, **options):
    """Train until a step."""
    run = ready(corpus, out, **options)
    run.trainer.add_callback(KillAt(step))
    with pytest.raises(Killed):
        run.train()


def assert_same_weights(folder, other):
    weights, others = (load_file(path / "model.safetensors") for path in (folder, other))
    assert weights.keys() == others.keys()
    for name, values in weights.items():
        torch.testing.assert_close(values, others[name], msg=name)


SGD = {"optimizer": "sgd", "momentum": 0.9, "lr_scheduler_type": "linear", "max_grad_norm": 1.0}
VARIANTS = {
    "nadam, accumulation": {**STEPS, "optimizer": "nadam", "epoch_decay": 0.3, "gradient_accumulation_steps": 3},
    "sgd, linear, dropout": {**STEPS, **SGD, "model_type": "cross-bilstm-cnn", "singleton_dropout": 0.5},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_resumed_run_reaches_the_weights_of_an_uninterrupted_one(towns, tmp_path, variant):
    """State of the optimizer, the schedule and the random numbers, and the order of the sentences go on."""
    options = VARIANTS[variant]
    if "gradient_accumulation_steps" in options:
        options = {**options, "save_steps": 2, "eval_steps": 2}
    whole = ready(towns, tmp_path / "whole", **options)
    whole.train()
    kill(towns, tmp_path / "out", 7 if "gradient_accumulation_steps" in options else 17, **options)
    resumed = ready(towns, tmp_path / "out", **options, resume_from_checkpoint="true")
    resumed.train()
    assert resumed.trainer.state.global_step == whole.trainer.state.global_step
    assert resumed.trainer.state.best_global_step == whole.trainer.state.best_global_step
    assert_same_weights(tmp_path / "out", tmp_path / "whole")


def test_the_newest_complete_checkpoint_is_used(towns, tmp_path):
    kill(towns, tmp_path, 25, **STEPS, save_total_limit=4)
    # The Trainer writes this file last.
    (tmp_path / "checkpoint-21" / "trainer_state.json").unlink()
    (tmp_path / "checkpoint-28").mkdir()
    (tmp_path / "checkpoint-28" / "trainer_state.json").write_text('{\n  "best_metric": {\n  }')
    (tmp_path / "checkpoint-21" / "optimizer.pt").write_bytes(b"cut")
    steps = []

    class Begin(TrainerCallback):
        def on_train_begin(self, args, state, control, **kwargs):
            steps.append(state.global_step)

    run = ready(towns, tmp_path, **STEPS, save_total_limit=4, resume_from_checkpoint="true")
    run.trainer.add_callback(Begin())
    run.train()
    assert steps == [14] and run.trainer.state.global_step == 33


def test_the_first_files_of_a_first_checkpoint_are_no_obstacle(towns, tmp_path):
    (tmp_path / "checkpoint-11").mkdir()
    (tmp_path / "checkpoint-11" / "modeling_tagger.py").touch()
    ready(towns, tmp_path, resume_from_checkpoint="true")
    (tmp_path / "checkpoint-11" / "notes.txt").touch()
    with pytest.raises(TrainingError, match=r"notes\.txt would be replaced or deleted"):
        ready(towns, tmp_path, resume_from_checkpoint="true")


@pytest.mark.parametrize("writer", ["transformers.modeling_utils.safe_save_file", "torch.save"])
def test_a_full_disk_is_one_sentence_and_leaves_the_last_checkpoint(writer, towns, tmp_path, monkeypatch):
    module, _, name = writer.rpartition(".")
    write = getattr(import_module(module), name)

    def write_until_full(*args, **kwargs):
        if (tmp_path / "checkpoint-11" / "trainer_state.json").exists():
            raise RuntimeError("No space left on device")  # neither torch nor safetensors raises an OSError
        return write(*args, **kwargs)

    monkeypatch.setattr(writer, write_until_full)
    run = ready(towns, tmp_path, num_train_epochs=2)
    with pytest.raises(TrainingError, match=r"cannot be written, with [0-9,]+ bytes free: No space left on device;"):
        run.train()
    assert tmp_path / "checkpoint-11" in checkpoints_in(tmp_path)


def test_a_finished_run_is_only_scored_again(towns, tmp_path):
    options = {"num_train_epochs": 2, "average_epochs": 2, "resume_from_checkpoint": "true"}
    scores = ready(towns, tmp_path, **options).train()
    before = times_of(tmp_path)
    assert ready(towns, tmp_path, **options).train() == scores
    assert times_of(tmp_path) == before


@pytest.fixture(scope="module")
def killed_once(towns, tmp_path_factory):
    """The folder of a run that was killed after its first checkpoint."""
    folder = tmp_path_factory.mktemp("killed")
    kill(towns, folder, 14)
    return folder


@pytest.fixture
def killed(killed_once, tmp_path):
    """A copy of that folder."""
    return shutil.copytree(killed_once, tmp_path / "out")


def times_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_an_unfinished_run_is_not_replaced(towns, killed):
    before = times_of(killed)
    with pytest.raises(TrainingError, match="run: continue it with --resume_from_checkpoint,"):
        ready(towns, killed)
    assert times_of(killed) == before


def test_a_checkpoint_of_another_folder_does_not_continue_a_run(towns, killed, killed_once):
    before = times_of(killed)
    with pytest.raises(TrainingError, match="unfinished run"):
        ready(towns, killed, resume_from_checkpoint=killed_once / "checkpoint-11")
    assert times_of(killed) == before


def test_only_checkpoints_are_resumed(towns, killed, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").touch()
    for name in ("corpus", str(tmp_path / "model")):
        with pytest.raises(TrainingError, match="is not a checkpoint"):
            ready(towns, killed, resume_from_checkpoint=name)


def test_an_unfinished_run_in_the_folder_of_a_finished_one_is_not_replaced(towns, tmp_path):
    ready(towns, tmp_path, num_train_epochs=1).train()
    kill(towns, tmp_path, 14, overwrite=True)
    with pytest.raises(TrainingError, match="checkpoint-11 of an unfinished run"):
        ready(towns, tmp_path)


@pytest.mark.parametrize("name", ["optimizer.pt", "rng_state.pth"])
def test_a_pickle_in_a_checkpoint_runs_no_code(towns, killed, tmp_path, name):
    torch.save(Trap(tmp_path / "trace"), killed / "checkpoint-11" / name)
    with pytest.raises(pickle.UnpicklingError):
        ready(towns, killed, resume_from_checkpoint="true").train()
    assert not (tmp_path / "trace").exists()


def test_overwriting_deletes_the_checkpoints_of_the_earlier_run(towns, killed):
    for name in ("checkpoint-99", "checkpoint-9-good"):  # an incomplete one, and a folder of the user
        (killed / name).mkdir()
    kill(towns, killed, 5, overwrite=True, hidden_size=4)
    assert [path.name for path in killed.glob("checkpoint-*")] == ["checkpoint-9-good"]


def test_a_finished_run_can_become_longer(towns, tmp_path):
    ready(towns, tmp_path / "longer", num_train_epochs=2).train()
    ready(towns, tmp_path / "short", num_train_epochs=1).train()
    ready(towns, tmp_path / "short", num_train_epochs=2, resume_from_checkpoint="true").train()
    assert_same_weights(tmp_path / "short", tmp_path / "longer")


@pytest.mark.parametrize("option", [{"hidden_size": 4}, {"learning_rate": 0.02}, {"optimizer": "sgd"}, {"seed": 7}])
def test_a_run_is_not_resumed_with_other_options(towns, killed, option):
    with pytest.raises(TrainingError, match=f"checkpoint-11 is of a run that differs in {next(iter(option))};"):
        ready(towns, killed, **option, resume_from_checkpoint="true").train()


def test_a_run_is_not_resumed_with_other_data(towns, killed, tmp_path):
    other = shutil.copytree(towns, tmp_path / "other" / towns.name)
    for file in other.iterdir():
        file.write_text(file.read_text().replace("B-LOC", "O", 1))
    with pytest.raises(TrainingError, match="checkpoint-11 is of a run that differs in data;"):
        ready(other, killed, resume_from_checkpoint="true").train()


def test_a_run_is_not_resumed_with_other_vectors(towns, tmp_path):
    options = {"vectors": tmp_path / "vectors.txt", "vectors_as": "beside"}
    options["vectors"].write_text("is 1 0\n")
    kill(towns, tmp_path / "out", 14, **options)
    options["vectors"].write_text("is 0 1\n")
    with pytest.raises(TrainingError, match="differs in inputs;"):
        ready(towns, tmp_path / "out", **options, resume_from_checkpoint="true").train()


def train_in_process(corpus, out, seen, number):
    """Run scripts/train.py, and send it a signal as soon as something is the case."""
    words = words_of(dataset=corpus, output_dir=out, **SMALL, resume_from_checkpoint="true")
    command = [sys.executable, str(REPOSITORY / "scripts" / "train.py"), *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **pipes, **INTERRUPTIBLE)
    end = time.monotonic() + 240
    while not seen() and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.0005)
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=240)
    return process.returncode, errors


@pytest.mark.slow
@posix
def test_a_run_killed_while_it_writes_a_checkpoint_is_resumed(towns, tmp_path):
    out = tmp_path / "out"
    code, errors = train_in_process(towns, out, (out / "checkpoint-22").exists, signal.SIGKILL)
    assert code == -signal.SIGKILL, errors[-2000:]
    ready(towns, out, resume_from_checkpoint="true").train()
    ready(towns, tmp_path / "whole").train()
    assert_same_weights(out, tmp_path / "whole")
    shutil.rmtree(out)


@pytest.mark.slow
@posix
def test_an_interrupted_run_ends_with_one_sentence(towns, tmp_path):
    out = tmp_path / "out"
    code, errors = train_in_process(towns, out, (out / "checkpoint-11" / "trainer_state.json").exists, signal.SIGINT)
    assert code == 130 and "Traceback" not in errors
    assert "stopped; --resume_from_checkpoint continues." in errors.strip().splitlines()[-1]
    ready(towns, out, resume_from_checkpoint="true").train()
