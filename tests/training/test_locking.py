"""One run at a time writes an output folder."""

import threading
from contextlib import nullcontext

from helpers import fault, lock_holder
from transformers import TrainerCallback

from hf_xorner.files import LockedError
from hf_xorner.training import run
from hf_xorner.training.arguments import parse
from hf_xorner.training.run import LOCK, prepare

SMALL = ["--hidden_size", "4", "--word_dim", "4", "--num_train_epochs", "1", "--use_cpu", "true"]
SMALL += ["--per_device_train_batch_size", "8", "--disable_tqdm", "true"]


class DuringTraining(TrainerCallback):
    """Calls something in another thread, as another process would, and keeps the error that it raises."""

    def __init__(self, call):
        self.call, self.error = call, None

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 2:
            thread = threading.Thread(target=self._caught)
            thread.start()
            thread.join()

    def _caught(self):
        try:
            self.call()
        except LockedError as error:
            self.error = str(error)


def test_a_process_that_is_not_the_first_needs_no_folder(towns, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "folder_locked", lambda *_: nullcontext())  # as in another process than the main one
    run.check_output(*parse(["--dataset", str(towns), "--output_dir", str(tmp_path / "new"), *SMALL])[:2])
    assert not (tmp_path / "new").exists()


def test_a_second_run_is_refused_while_the_first_trains(towns, tmp_path):
    options = ["--dataset", str(towns), "--output_dir", str(tmp_path / "out"), *SMALL]
    second, third = prepare(*parse([*options, "--seed", "1"])), parse(options)
    first = prepare(*parse(options))
    started = DuringTraining(second.train)
    prepared = DuringTraining(lambda: next(run.each_run(*third)))
    first.trainer.add_callback(started)
    first.trainer.add_callback(prepared)
    first.train()
    for error in (started.error, prepared.error):
        assert f"{tmp_path / 'out'} is being written by process " in error
    assert not (tmp_path / "out" / LOCK).exists()


def test_runs_of_several_seeds_are_refused_before_the_first_is_trained(script, towns, tmp_path):
    out = tmp_path / "out"
    words = ["train", "--dataset", towns, "--output_dir", out, *SMALL, "--seeds", "1", "2"]
    for locked_folder in (".", "seed-2"):
        with lock_holder(out / locked_folder / LOCK) as other:
            assert f"is being written by process {other.pid} on " in fault(script(*words))
    for name in ("checkpoint-3", "checkpoint-best"):
        (out / "seed-2" / name).mkdir(parents=True)
        (out / "seed-2" / name / "trainer_state.json").write_text("{\n}\n")
    assert f"{out / 'seed-2'} holds checkpoint-3 of an unfinished run" in fault(script(*words))
    assert not list(out.glob("seed-1/*"))
