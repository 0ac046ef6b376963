"""A killed and resumed run gives bit-identical results to an uninterrupted one."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runs
import tiny_encoders as tiny
import torch
from conftest import REPOSITORY
from helpers import TORCHRUN, write_towns
from runs import words_of
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import EarlyStoppingCallback, TrainerCallback

from hf_xorner.evaluation.tables import score_table
from hf_xorner.training import TrainingError
from hf_xorner.training.checkpoints import (
    clear,
    fault_in_resuming,
    fault_of,
    install_model,
    move_into_place,
    rotate,
    written_aside,
)

resource = pytest.importorskip("resource", reason="signals and limits of processes are POSIX")

TIMES = {"train_runtime", "train_samples_per_second", "train_steps_per_second"}
TIMES |= {f"eval_{name}" for name in ("runtime", "samples_per_second", "steps_per_second")}
TIMES |= {"seconds"}  # of an epoch


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_towns(tmp_path_factory.mktemp("resuming") / "corpus")


SMALL = {"hidden_size": 6, "word_dim": 6, "char_dim": 3, "num_train_epochs": 3, "model_type": "lstm-crf"}
SMALL |= {"per_device_train_batch_size": 4, "learning_rate": 0.01}
STEPS = {"save_strategy": "steps", "save_steps": 7, "eval_strategy": "steps", "eval_steps": 7}


def options_of(corpus, out, **options):
    return words_of(dataset=corpus, output_dir=out, **{**SMALL, **options})


def ready(corpus, out, **options):
    return runs.ready(corpus, out, **{**SMALL, **options})


class Killed(BaseException):
    pass


class KillAt(TrainerCallback):
    """Ends a run after a step, as if it were killed."""

    def __init__(self, step):
        self.step = step

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            raise Killed


def without_times(history):
    return [{name: value for name, value in entry.items() if name not in TIMES} for entry in history]


def model_files(folder):
    """The saved model: neither what the pickled arguments say of this very call, nor how fast it was, is part of it."""
    left_out = {"training_args.bin", "training_run.json", "facts.json"}
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name not in left_out}


def facts_of(folder):
    """The facts of a run without its times."""
    facts = json.loads((folder / "facts.json").read_text())
    curve = [{name: value for name, value in row.items() if name != "seconds"} for row in facts["curve"]]
    return {**facts, "curve": curve, "speed": sorted(facts["speed"])}


def outcome(run, scores, folder):
    return {
        "scores": scores,
        "facts": facts_of(folder),
        "history": without_times(run.trainer.state.log_history),
        "files": model_files(folder),
        "best": (run.trainer.state.best_metric, run.trainer.state.best_global_step),
    }


PLAIN = {"save_strategy": "steps", "load_best_model_at_end": False}
VARIANTS = {
    "steps, averaged": {"average_epochs": 2, "save_steps": 5, **PLAIN},
    "accumulation": {**STEPS, "save_steps": 2, "eval_steps": 2, "gradient_accumulation_steps": 3, "logging_steps": 1},
    "nadam": {"optimizer": "nadam", "epoch_decay": 0.3, **STEPS},
    "sgd": {"optim": "sgd", "optim_args": "momentum=0.9", **STEPS, "lr_scheduler_type": "linear", "max_grad_norm": 1.0},
    "steps that end epochs": {"save_steps": 11, **PLAIN, "model_type": "cross-bilstm-cnn"},
    "best only": {"save_strategy": "best", "metric_for_best_model": "f1", "eval_strategy": "steps", "eval_steps": 3},
    "eval at start": {"eval_on_start": True, **STEPS},
}
MORE_VARIANTS = {
    "epochs": {},
    "softmax": {"model_type": "cross-bilstm-cnn", "decoder": "softmax", "singleton_dropout": 0.5, **STEPS},
    "stack": {"model_type": "stack-lstm", **STEPS},
    "max_steps": {"max_steps": 18, "save_steps": 6, **PLAIN},
    "workers": {"dataloader_num_workers": 1, **STEPS},
}


def killed_and_resumed(corpus, out, step, **options):
    run = ready(corpus, out, **options)
    run.trainer.add_callback(KillAt(step))
    with pytest.raises(Killed):
        run.train()
    return finish(corpus, out, **options, resume_from_checkpoint="true")


def finish(corpus, out, **options):
    run = ready(corpus, out, **options)
    return outcome(run, run.train(), out)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_resumed_run_gives_bit_identical_results(corpus, tmp_path, variant):
    expected = finish(corpus, tmp_path / "whole", **VARIANTS[variant])
    step = {"accumulation": 7, "steps, averaged": 28}.get(variant, 17)
    assert killed_and_resumed(corpus, tmp_path / "killed", step, **VARIANTS[variant]) == expected


@pytest.mark.slow
@pytest.mark.parametrize("variant", [*VARIANTS, *MORE_VARIANTS])
def test_resuming_from_any_step_gives_bit_identical_results(corpus, tmp_path, variant):
    options = {**VARIANTS, **MORE_VARIANTS}[variant]
    expected = finish(corpus, tmp_path / "whole", **options)
    last = max(entry["step"] for entry in expected["history"])
    for step in range(last):
        assert killed_and_resumed(corpus, tmp_path / f"at {step}", step, **options) == expected, step


@pytest.mark.parametrize("frozen", [True, False])
def test_resuming_with_an_encoder_gives_bit_identical_results(corpus, tmp_path, frozen):
    options = {"context": tiny.save_encoder(tmp_path / "encoder"), "model_type": "bilstm-cnn", **STEPS}
    options |= {"context_frozen": frozen, "context_learning_rate": 1e-3}
    expected = finish(corpus, tmp_path / "whole", **options)
    assert killed_and_resumed(corpus, tmp_path / "killed", 17, **options) == expected


def test_resuming_an_early_stopped_run_does_not_train(corpus, tmp_path):
    def run(out, **options):
        made = ready(corpus, out, learning_rate=0, eval_strategy="epoch", num_train_epochs=6, **options)
        made.trainer.add_callback(EarlyStoppingCallback(2))
        return made

    whole = run(tmp_path / "whole")
    expected = outcome(whole, whole.train(), tmp_path / "whole")
    assert whole.trainer.state.global_step == 33
    for step in (14, 25):  # with one fruitless epoch behind it, and with none
        killed = run(tmp_path / str(step))
        killed.trainer.add_callback(KillAt(step))
        with pytest.raises(Killed):
            killed.train()
        again = run(tmp_path / str(step), resume_from_checkpoint="true")
        assert outcome(again, again.train(), tmp_path / str(step)) == expected
    # It had come to its end, but its model was not saved.
    for name in expected["files"]:
        (tmp_path / "whole" / name).unlink()
    again = run(tmp_path / "whole", resume_from_checkpoint="true")
    assert outcome(again, again.train(), tmp_path / "whole") | {"history": 0} == expected | {"history": 0}
    assert again.trainer.state.global_step == 33


# --- Checkpoints in the folder ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unfinished(corpus, tmp_path_factory):
    """A folder with three checkpoints of a run that was killed, and what it would have become."""
    folder = tmp_path_factory.mktemp("unfinished")
    options = {**STEPS, "save_total_limit": 4, "average_epochs": 2}
    run = ready(corpus, folder / "out", **options)
    run.trainer.add_callback(KillAt(25))
    with pytest.raises(Killed):
        run.train()
    assert {path.name for path in (folder / "out").glob("*")} == {
        *("checkpoint-7", "checkpoint-14", "checkpoint-21", "training_run.json")
    }
    return folder / "out", options, finish(corpus, folder / "whole", **options)


@pytest.fixture
def left(unfinished, tmp_path):
    """A copy of that folder."""
    shutil.copytree(unfinished[0], tmp_path / "out")
    return tmp_path / "out"


def names_of(checkpoint):
    return sorted(path.relative_to(checkpoint).as_posix() for path in checkpoint.rglob("*") if path.is_file())


def test_damage_to_any_checkpoint_file_is_detected(left):
    checkpoint = left / "checkpoint-21"
    names = names_of(checkpoint)
    wanted = {"model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json", "config.json"}
    assert wanted | {"manifest.json", "last_epochs.safetensors", "progress_0.json", "training_run.json"} <= set(names)
    assert fault_of(checkpoint) is None
    for name in names:
        path = checkpoint / name
        content = path.read_bytes()
        half = len(content) // 2
        flipped = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
        for damaged in (None, b"", content[:-1], flipped):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            # A manifest is JSON: a cut one is none, but a blank less at its end is no damage.
            if not (name == "manifest.json" and damaged == content[:-1]):
                assert name in fault_of(checkpoint) or name == "manifest.json"
            path.write_bytes(content)
    assert fault_of(checkpoint) is None


def test_resuming_uses_the_newest_complete_checkpoint(left, corpus, unfinished, caplog):
    _, options, expected = unfinished
    (left / "checkpoint-21" / "optimizer.pt").write_bytes(b"cut")
    (left / "_unfinished" / "checkpoint-27").mkdir(parents=True)
    (left / "_unfinished" / "checkpoint-27" / "model.safetensors").write_bytes(b"cut")
    run = ready(corpus, left, **options, resume_from_checkpoint="True")
    assert outcome(run, run.train(), left) == expected
    size = (left / "checkpoint-21" / "optimizer.pt").stat().st_size
    assert (
        f"checkpoint-21 has 3 of the {size:,} bytes of optimizer.pt; resuming from checkpoint-14 instead."
        in caplog.text
    )
    assert fault_of(left / "checkpoint-21") is None
    assert not (left / "_unfinished").exists()


def test_a_checkpoint_with_a_damaged_best_model_is_not_used(tmp_path):
    for step in (7, 14):
        staged = tmp_path / "_unfinished" / f"checkpoint-{step}"
        staged.mkdir(parents=True)
        (staged / "rng_state.pth").write_bytes(b"states")
        (staged / "trainer_state.json").write_text('{"best_model_checkpoint": "elsewhere/checkpoint-7"}')
        move_into_place(staged, tmp_path / staged.name)
    assert fault_in_resuming(tmp_path / "checkpoint-14", needs_best=True) is None
    (tmp_path / "checkpoint-7" / "rng_state.pth").write_bytes(b"stale!")
    fault = "needs checkpoint-7, which has other bytes in rng_state.pth than were written"
    assert fault_in_resuming(tmp_path / "checkpoint-14", needs_best=True) == fault
    assert fault_in_resuming(tmp_path / "checkpoint-14", needs_best=False) is None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("true", r"checkpoint-21 lacks rng_state[.]pth; checkpoint-14 lacks"),
        (".", "has no manifest.json"),
        ("checkpoint-8", "is not there"),
    ],
)
def test_without_an_undamaged_checkpoint_resuming_raises(left, corpus, unfinished, name, fault):
    for checkpoint in left.glob("checkpoint-*"):
        (checkpoint / "rng_state.pth").unlink()
    before = {path: path.stat().st_mtime_ns for path in left.rglob("*")}
    place = name if name == "true" else left / name
    with pytest.raises(TrainingError, match=f"{left} cannot be resumed: .*{fault}"):
        ready(corpus, left, **unfinished[1], resume_from_checkpoint=place).train()
    assert before == {path: path.stat().st_mtime_ns for path in left.rglob("*")}


def test_a_moved_folder_can_be_resumed(left, corpus, unfinished):
    folder, options, expected = unfinished
    away = folder.rename(folder.parent / "away")
    try:
        run = ready(corpus, left, **options, resume_from_checkpoint="true")
        assert outcome(run, run.train(), left) == expected
    finally:
        away.rename(folder)
    assert Path(run.trainer.state.best_model_checkpoint).parent == left


CHANGES = {
    "learning_rate": ({"learning_rate": 0.02}, "learning_rate was 0.01 and is now 0.02"),
    "hidden_size": ({"hidden_size": 8}, "hidden_size was 6 and is now 8"),
    "average": ({"average_epochs": 3}, "average_epochs was 2 and is now 3"),
    "shorter": ({"num_train_epochs": 2}, "num_train_epochs was 3.0 and is now 2.0, which is less"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_resuming_with_other_options_raises(left, corpus, unfinished, change):
    options, sentence = CHANGES[change]
    before = {path: path.stat().st_mtime_ns for path in left.rglob("*") if path.name != "out"}
    run = ready(corpus, left, **{**unfinished[1], **options}, resume_from_checkpoint="true")
    with pytest.raises(TrainingError, match=f"checkpoint-21 is from another run: {re.escape(sentence)}"):
        run.train()
    assert before == {path: path.stat().st_mtime_ns for path in left.rglob("*") if path.name != "out"}


@pytest.mark.parametrize(("split", "what"), [("train", "word"), ("validation", "label"), ("test", "word")])
def test_resuming_with_another_corpus_raises(left, corpus, unfinished, tmp_path, split, what):
    changed = shutil.copytree(corpus, tmp_path / "changed")
    path = changed / {"train": "train.txt", "validation": "dev.txt", "test": "test.txt"}[split]
    text = path.read_text()
    path.write_text(text.replace("burns O", "sinks O" if what == "word" else "burns B-LOC", 1))
    run = ready(changed, left, **unfinished[1], resume_from_checkpoint="true")
    with pytest.raises(TrainingError, match=f"the {split} split of the corpus has other words or labels"):
        run.train()


def test_harmless_options_may_change_when_resuming(left, corpus, unfinished, tmp_path):
    elsewhere = shutil.copytree(corpus, tmp_path / "elsewhere")
    options = {**unfinished[1], "per_device_eval_batch_size": 5, "logging_first_step": True, "save_total_limit": 1}
    found = finish(elsewhere, left, **options, resume_from_checkpoint="true")
    assert found["files"] == unfinished[2]["files"]
    assert len(list(left.glob("checkpoint-*"))) <= 2


def test_a_run_can_be_extended_with_a_constant_learning_rate(corpus, tmp_path):
    longer = finish(corpus, tmp_path / "longer", num_train_epochs=2)
    finish(corpus, tmp_path / "short", num_train_epochs=1)
    found = finish(corpus, tmp_path / "short", num_train_epochs=2, resume_from_checkpoint="true")
    assert found["files"] == longer["files"] and found["scores"] == longer["scores"]
    finish(corpus, tmp_path / "linear", num_train_epochs=1, lr_scheduler_type="linear")
    with pytest.raises(
        TrainingError, match=r"num_train_epochs was .* and is now .*, on which the learning rate depends"
    ):
        again = {"num_train_epochs": 2, "lr_scheduler_type": "linear", "resume_from_checkpoint": "true"}
        ready(corpus, tmp_path / "linear", **again).train()


def test_earlier_runs_are_replaced_only_with_overwrite(left, corpus, unfinished, tmp_path, caplog):
    with pytest.raises(TrainingError, match="holds checkpoint-21 of an unfinished run"):
        ready(corpus, left, **unfinished[1]).train()
    assert sorted(path.name for path in left.glob("checkpoint-*")) == ["checkpoint-14", "checkpoint-21", "checkpoint-7"]
    out = tmp_path / "ended"
    first = finish(corpus, out, num_train_epochs=1)
    run = ready(corpus, out, num_train_epochs=1, hidden_size=4, overwrite=True)
    run.trainer.add_callback(KillAt(5))
    with pytest.raises(Killed):
        run.train()
    assert "is replaced" in caplog.text
    assert not list(out.glob("checkpoint-*"))
    assert model_files(out) == first["files"]
    assert finish(corpus, out, num_train_epochs=1, hidden_size=4, overwrite=True)["files"] != first["files"]


def test_resuming_without_checkpoints_starts_a_new_run(corpus, tmp_path):
    first = finish(corpus, tmp_path / "a", num_train_epochs=1, resume_from_checkpoint="true")
    assert first == finish(corpus, tmp_path / "b", num_train_epochs=1)
    assert json.loads((tmp_path / "a" / "training_run.json").read_text())["finished"]


# --- Files ------------------------------------------------------------------------------------------------------------


def test_rotation_keeps_the_newest_and_the_best(tmp_path):
    for step in (2, 10, 9, 100):
        (tmp_path / f"checkpoint-{step}").mkdir()
    for limit, expected in ((None, {2, 9, 10, 100}), (0, {2, 9, 10, 100}), (3, {9, 10, 100}), (1, {9, 100})):
        rotate(tmp_path, limit, tmp_path / "checkpoint-9")
        assert {int(path.name.split("-")[1]) for path in tmp_path.glob("checkpoint-*")} == expected


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("moment", range(8))
def test_the_saved_model_is_never_incomplete(tmp_path, monkeypatch, moment):
    """After an interruption anywhere, a folder with a config has all files of one model, and the next run fixes it."""
    old, new = (
        {name: f"{kind} {name}" for name in ("config.json", "model.safetensors", "tokenizer.json")}
        for kind in ("old", "new")
    )
    staged = tmp_path / "_unfinished" / "model"
    staged.mkdir(parents=True)
    for name in new:
        (tmp_path / name).write_text(old[name])
        (staged / name).write_text(new[name])
    left = [moment]

    def counted(call):
        def wrapped(*arguments, **options):
            if not left[0]:
                raise Interrupted
            left[0] -= 1
            return call(*arguments, **options)

        return wrapped

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", counted(os.replace))
        patched.setattr("pathlib.Path.unlink", counted(Path.unlink))
        patched.setattr("shutil.rmtree", counted(shutil.rmtree))
        try:
            install_model(staged, tmp_path)
        except Interrupted:
            found = {name: (tmp_path / name).read_text() for name in new if (tmp_path / name).exists()}
            assert found in (old, new) or "config.json" not in found
    clear(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == (old if moment == 0 else new)


# --- Processes --------------------------------------------------------------------------------------------------------

TRAIN = str(REPOSITORY / "scripts" / "train.py")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def children_of(pid):
    listing = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(child) for child, parent in map(str.split, listing.splitlines()) if int(parent) == pid]


class Process:
    """scripts/train.py in a process, or in several, of a group of its own."""

    def __init__(self, options, launcher=(), **settings):
        self.launched = bool(launcher)
        command = [sys.executable, *launcher, TRAIN, *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True, **pipes, **settings)

    def signal_when(self, seen, number=signal.SIGKILL):
        """Send a signal as soon as something is the case, and return whether it was before the process ended."""
        end = time.monotonic() + 240
        while not seen() and self.process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.0002)
        if self.process.poll() is None:
            # What torchrun starts is no longer of its group, and would go on without it.
            for pid in [self.process.pid, *(children_of(self.process.pid) if self.launched else [])]:
                os.kill(pid, number)
        return self.end()

    def end(self):
        out, errors = self.process.communicate(timeout=240)
        return self.process.returncode, out, errors


@pytest.fixture(scope="module")
def expected(corpus, tmp_path_factory):
    """The result of an uninterrupted run: averaged epochs, a CRF, checkpoints within epochs."""
    return finish(corpus, tmp_path_factory.mktemp("undisturbed"), **DISTURBED)


DISTURBED = {**PLAIN, "save_steps": 7, "average_epochs": 2, "num_train_epochs": 4, "save_total_limit": 2}


def test_a_process_killed_while_writing_resumes_bit_identically(corpus, tmp_path, expected):
    out = tmp_path / "out"
    options = options_of(corpus, out, **DISTURBED, resume_from_checkpoint="true")
    moments = {
        "while it writes a checkpoint": lambda: (out / "_unfinished" / "checkpoint-14").exists(),
        "amid an epoch": lambda: (out / "checkpoint-21").exists(),
        "while it writes the model": lambda: (out / "_unfinished" / "model").exists(),
    }
    for seen in moments.values():
        code, _, errors = Process(options).signal_when(seen)
        assert code == -signal.SIGKILL, errors[-2000:]
        assert not (out / "config.json").exists() or model_files(out) == expected["files"]
    code, printed, errors = Process(options).end()
    assert code == 0, errors[-2000:]
    assert model_files(out) == expected["files"]
    assert score_table(expected["scores"]) in printed
    assert not [path for path in out.iterdir() if path.name.startswith(("_", "."))]


def test_a_signal_stops_the_process_cleanly(corpus, tmp_path, expected):
    out = tmp_path / "out"
    process = Process(options_of(corpus, out, **DISTURBED))
    code, _, errors = process.signal_when((out / "checkpoint-14").exists, signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert (
        errors.strip().splitlines()[-1]
        == "hf-xorner train: stopped by SIGTERM; --resume_from_checkpoint true continues."
    )
    assert "Traceback" not in errors
    assert finish(corpus, out, **DISTURBED, resume_from_checkpoint="true")["files"] == expected["files"]


def full_disk(errors, what):
    pattern = rf"hf-xorner train: {what} could not be written to \S+ \(.*\): "
    pattern += r"it needs about [\d.]+ MB, and [\d.,]+ MB are free; "
    assert re.fullmatch(
        pattern + "nothing that was there is lost. Make room, and continue with .*", errors.splitlines()[-1]
    )
    assert "Traceback" not in errors


def test_a_failed_checkpoint_write_can_be_resumed(corpus, tmp_path, expected):
    """The optimiser's state is the largest file: a limit below it lets the model through and ends the checkpoint."""
    out = tmp_path / "out"
    size = len(expected["files"]["model.safetensors"])

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, size + 100))

    code, _, errors = Process(options_of(corpus, out, **DISTURBED), preexec_fn=limit).end()
    assert code == 1
    full_disk(errors, "checkpoint-7")
    assert [path.name for path in out.iterdir()] == ["training_run.json"]
    assert finish(corpus, out, **DISTURBED, resume_from_checkpoint="true")["files"] == expected["files"]


WRITERS = {
    "the standard library": (lambda path: path.write_text("a" * 9000), "File too large"),
    "tokenizers": (lambda path: Tokenizer(WordLevel({"a" * 9000: 0}, "")).save(str(path)), "File too large"),
    "safetensors": (lambda path: save_file({"a": torch.zeros(9000)}, path), "File too large"),
    "torch": (lambda path: torch.save({"a": torch.zeros(9000)}, path), "a file was cut short"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_write_errors_of_any_library_are_one_line(writer, tmp_path):
    """Every library that writes a part of a checkpoint raises its own error."""
    write, reason = WRITERS[writer]
    staged = tmp_path / "_unfinished" / "checkpoint-7"
    staged.mkdir(parents=True)
    unlimited, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(TrainingError) as caught, written_aside(staged, "checkpoint-7", 0):
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            write(staged / "file")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, hard))
    assert str(caught.value).startswith(f"checkpoint-7 could not be written to {tmp_path} ({reason}): it needs about ")
    assert not any(tmp_path.iterdir())


def test_other_errors_while_writing_are_not_changed(tmp_path):
    staged = tmp_path / "_unfinished" / "checkpoint-7"
    staged.mkdir(parents=True)
    with pytest.raises(Exception, match="no fault of the disk"), written_aside(staged, "checkpoint-7", 0):
        raise Exception("no fault of the disk")
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_a_process_killed_twenty_times_resumes_bit_identically(corpus, tmp_path, expected):
    out = tmp_path / "out"
    options = options_of(corpus, out, **DISTURBED, resume_from_checkpoint="true")
    draw = random.Random(0)
    started = time.monotonic()
    assert Process(options).end()[0] == 0
    whole = time.monotonic() - started
    kills = 0
    while kills < 20:
        if (out / "training_run.json").exists() and json.loads((out / "training_run.json").read_text())["finished"]:
            assert model_files(out) == expected["files"]
            shutil.rmtree(out)
        moment = time.monotonic() + draw.uniform(0.3, 1.0) * whole
        kills += Process(options).signal_when(lambda moment=moment: time.monotonic() > moment)[0] == -signal.SIGKILL
        for checkpoint in out.glob("checkpoint-*"):
            assert fault_of(checkpoint) is None
        assert not (out / "config.json").exists() or model_files(out) == expected["files"]
    code, printed, errors = Process(options).end()
    assert code == 0, errors[-2000:]
    assert model_files(out) == expected["files"]
    assert score_table(expected["scores"]) in printed


@pytest.mark.slow
def test_two_killed_processes_resume_bit_identically(corpus, tmp_path):
    settings = {**DISTURBED, "ddp_backend": "gloo", "resume_from_checkpoint": "true"}
    code, _, errors = Process(options_of(corpus, tmp_path / "whole", **settings), TORCHRUN).end()
    assert code == 0, errors[-2000:]
    out = tmp_path / "out"
    for seen in ((out / "_unfinished" / "checkpoint-7").exists, (out / "checkpoint-14").exists):
        code, _, errors = Process(options_of(corpus, out, **settings), TORCHRUN).signal_when(seen)
        assert code == -signal.SIGKILL, errors[-2000:]
        assert not (out / "config.json").exists()
    with pytest.raises(TrainingError, match="2 processes trained, and now there are 1"):
        ready(corpus, out, **DISTURBED, resume_from_checkpoint="true").train()
    code, _, errors = Process(options_of(corpus, out, **settings), TORCHRUN).end()
    assert code == 0, errors[-2000:]
    assert json.loads((out / "training_run.json").read_text())["processes"] == 2
    assert model_files(out) == model_files(tmp_path / "whole")
    state = json.loads((out / "checkpoint-24" / "trainer_state.json").read_text())
    assert state["max_steps"] == 4 * 6
