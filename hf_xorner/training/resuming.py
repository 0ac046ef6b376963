"""A Trainer that can be killed at any moment: resumed, it ends with the bits that it would have ended with."""

from __future__ import annotations

import json
import logging
import shutil
import time
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import Tensor
from transformers import Trainer, TrainerCallback, TrainerControl
from transformers.trainer import TRAINER_STATE_NAME

from ..errors import first_line
from .checkpoints import (
    UNFINISHED,
    Manifest,
    best_of,
    checkpoints_in,
    clear,
    difference_from,
    fault_in_resuming,
    fault_of,
    folder_locked,
    install_model,
    publish,
    rotate,
    tidy,
    write_json,
    written_aside,
)
from .errors import TrainingError

_log = logging.getLogger(__name__)

#: Each process has lost and counted something of its own.
_PROGRESS = "progress_{}.json"


@runtime_checkable
class GoesAlong(Protocol):
    """A callback with something of its own to keep in every checkpoint."""

    def begin(self, trainer: Trainer, checkpoint: Path | None) -> None:
        """Take up what a checkpoint kept, before anything is trained.

        Args:
            trainer: The Trainer that begins.
            checkpoint: What it resumes from, or None if it begins anew.
        """

    def save_to(self, checkpoint: Path) -> None:
        """Keep it in a checkpoint that is being written."""


class ResumableTrainer(Trainer):
    """The stock Trainer, whose checkpoints are whole or not there, and hold all that a run depends on.

    A callback that `GoesAlong` has its own part in every checkpoint. A checkpoint at the last step of an epoch is
    written when the epoch is over: resuming goes on with the next one, and what happens in between would be lost.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._resumed: Path | None = None
        self._saved_files: Manifest = {}
        self._writes_aside = False
        self._epoch_is_over = False
        self._save_is_due = False
        self._has_begun = False
        self._started = 0.0
        self.add_callback(_Milestones(self))

    def train(self, resume_from_checkpoint: str | Path | bool | None = None, *arguments: Any, **options: Any) -> Any:
        """Train, or go on.

        Args:
            resume_from_checkpoint: A checkpoint's folder; True, or "true", for the newest whole one in `output_dir`,
                if there is one.
            arguments: See the stock Trainer.
            options: Likewise.

        Raises:
            TrainingError: If there is nothing whole to go on from, a checkpoint cannot be written, or another run
                writes the same folder.
        """
        with folder_locked(self.args.output_dir, self.args):
            return self._train(resume_from_checkpoint, *arguments, **options)

    def _train(self, resume_from_checkpoint: str | Path | bool | None, *arguments: Any, **options: Any) -> Any:
        folder = Path(self.args.output_dir)
        if self.args.should_save:
            clear(folder)
        self.accelerator.wait_for_everyone()
        self._resumed = self._checkpoint_to_resume(resume_from_checkpoint, folder)
        for callback in self._going_along():
            callback.begin(self, self._resumed)
        self.accelerator.wait_for_everyone()
        self._writes_aside = True
        evaluates_at_start = self.args.eval_on_start
        # A run that goes on has been at its start.
        self.args.eval_on_start = evaluates_at_start and self._resumed is None
        self._has_begun = False
        try:
            return super().train(str(self._resumed) if self._resumed else None, *arguments, **options)
        # Before the first step the Trainer builds what its arguments ask for, and what it raises has no common type.
        except Exception as error:
            if self._has_begun or isinstance(error, TrainingError):
                raise
            raise TrainingError(f"Training cannot begin: {first_line(error)}; correct the option.") from error
        finally:
            self.args.eval_on_start = evaluates_at_start
            self._writes_aside = False
            if self.args.should_save:
                tidy(folder)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model; in its folder it is never half there.

        Args:
            output_dir: Where to; by default into the folder of the run.
            _internal_call: Whether the Trainer itself calls.
        """
        folder = Path(output_dir or self.args.output_dir)
        if folder.parent.name == UNFINISHED:
            super().save_model(output_dir, _internal_call)
            return
        staged = folder / UNFINISHED / "model"
        needed = _bytes_of(self.model.state_dict())
        with folder_locked(folder, self.args), written_aside(staged, "The model", needed):
            super().save_model(str(staged), _internal_call=True)
            if self.args.should_save:
                saved = install_model(staged, folder)
                if folder == Path(self.args.output_dir):
                    self._saved_files = saved
        if self.args.push_to_hub and not _internal_call:
            self.push_to_hub(commit_message="Model save", revision=self.args.hub_revision)

    def _checkpoint_to_resume(self, wanted: str | Path | bool | None, folder: Path) -> Path | None:
        """The checkpoint that is named, or the newest whole one, which damaged ones may precede."""
        answer = str(wanted).casefold()
        if answer in ("none", "false"):
            return None
        needs_best = self.args.load_best_model_at_end
        if answer != "true":
            fault = fault_in_resuming(checkpoint := Path(str(wanted)), needs_best)
            if fault:
                raise TrainingError(
                    f"Nothing can be resumed from {checkpoint}, which {fault}; name another checkpoint."
                )
            return checkpoint
        faults: list[str] = []
        for checkpoint in reversed(checkpoints_in(folder)):
            fault = fault_in_resuming(checkpoint, needs_best)
            if fault is None:
                if faults and self.is_world_process_zero():
                    _log.warning("%s; going on from %s instead.", "; ".join(faults), checkpoint.name)
                return checkpoint
            faults.append(f"{checkpoint.name} {fault}")
        if faults:
            raise TrainingError(
                f"{folder} holds no checkpoint to go on from: {'; '.join(faults)}. Remove them to begin anew."
            )
        return None

    def _going_along(self) -> list[GoesAlong]:
        return [callback for callback in self.callback_handler.callbacks if isinstance(callback, GoesAlong)]

    # --- Writing ------------------------------------------------------------------------------------------------------

    def _get_output_dir(self, trial: Any) -> str:
        """Where checkpoints are written in training: there is nothing else there that the Trainer might remove."""
        folder = super()._get_output_dir(trial)
        return str(Path(folder) / UNFINISHED) if self._writes_aside else folder

    def _save_checkpoint(self, model: Any, trial: Any = None) -> None:
        if self._closes_epoch():
            self._save_is_due = True
            return
        self._save_is_due = False
        staged = Path(self._get_output_dir(trial)) / f"checkpoint-{self.state.global_step}"
        final = staged.parent.parent / staged.name
        needed = _bytes_of(self.model.state_dict()) + _bytes_of(self.optimizer.state_dict())
        with written_aside(staged, final.name, needed):
            if self.args.should_save:
                shutil.rmtree(staged, ignore_errors=True)
            self.accelerator.wait_for_everyone()
            super()._save_checkpoint(model, trial)
            if self.state.best_model_checkpoint == str(staged):
                self.state.best_model_checkpoint = str(final)
            write_json(staged / self._progress_name, self._progress())
            if self.args.should_save:
                self.state.save_to_json(str(staged / TRAINER_STATE_NAME))
                for callback in self._going_along():
                    callback.save_to(staged)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                publish(staged, final)
        if self.args.should_save:
            best = self.state.best_model_checkpoint
            rotate(final.parent, self.args.save_total_limit, [final, *([Path(best)] if best else [])])
        if self.args.push_to_hub:
            super()._push_from_checkpoint(str(final))

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        """Wait: what is being written has not come to its place."""

    def _closes_epoch(self) -> bool:
        """Whether the epoch ends with this step, and what belongs to its end has not happened yet."""
        ends = self.control.should_training_stop or self.control.should_epoch_stop
        return not self._epoch_is_over and (ends or float(self.state.epoch).is_integer())

    @property
    def _progress_name(self) -> str:
        return _PROGRESS.format(self.args.process_index)

    def _progress(self) -> dict[str, Any]:
        """What the Trainer keeps of a run besides its state, and a checkpoint of its own does not."""
        return {
            "loss_since_last_log": self._tr_loss.item(),
            "loss_before_last_log": self._total_loss_scalar,
            "last_logged_step": self._globalstep_last_logged,
            "max_steps": self.state.max_steps,
            "stopped": self.control.should_training_stop,
            "seconds": time.time() - self._started,
        }

    # --- Resuming -----------------------------------------------------------------------------------------------------

    def _init_training_state(
        self, max_steps: int, num_update_steps_per_epoch: int, num_train_epochs: int, *arguments: Any
    ) -> tuple[int, int]:
        """Read the state of a checkpoint. A run that had come to its end, or was stopped early, trains no further."""
        place = super()._init_training_state(max_steps, num_update_steps_per_epoch, num_train_epochs, *arguments)
        if self._resumed is None:
            return place
        progress, steps = self._saved_progress(), self.state.global_step
        if steps >= max_steps or (progress["stopped"] and steps < progress["max_steps"]):
            return num_train_epochs, 0
        return place

    def _saved_progress(self) -> dict[str, Any]:
        assert self._resumed is not None
        path = self._resumed / self._progress_name
        return json.loads((path if path.is_file() else self._resumed / _PROGRESS.format(0)).read_text(encoding="utf-8"))

    def _take_up(self) -> None:
        """Take up what the Trainer leaves aside when it resumes; called when everything else is in place."""
        self._started, self._epoch_is_over, self._save_is_due = time.time(), False, False
        self._has_begun = True
        if self._resumed is None:
            return
        progress = self._saved_progress()
        self._tr_loss.fill_(progress["loss_since_last_log"])
        self._total_loss_scalar = progress["loss_before_last_log"]
        self._globalstep_last_logged = progress["last_logged_step"]
        self._initial_global_step = 0
        self._started -= progress["seconds"]
        best = best_of(self._resumed)
        # Kept even if it has gone since: the run would end with other weights than the best without a word.
        self.state.best_model_checkpoint = str(best) if best else None

    # --- The end ------------------------------------------------------------------------------------------------------

    def _load_best_model(self) -> None:
        """Load the best checkpoint, unless it has changed since it was written: Trainer only warns if it is gone."""
        best = Path(str(self.state.best_model_checkpoint))
        if fault := fault_of(best):
            raise TrainingError(
                f"{best.parent} cannot be given its best model: {best.name} {fault}; train again, or use another "
                "checkpoint as the model."
            )
        super()._load_best_model()

    def check_saved_model(self) -> None:
        """Check that the model in `output_dir` is still as `save_model` wrote it.

        Raises:
            TrainingError: If it is not.
        """
        fault = difference_from(Path(self.args.output_dir), self._saved_files)
        if fault:
            raise TrainingError(
                f"The model in {self.args.output_dir} {fault}; resume the run, which saves it again, or train it again."
            )

    def _finalize_training(self, trial: Any, num_train_samples: int, start_time: float) -> Any:
        """Sum up the whole run, with the time that it took before it was resumed."""
        return super()._finalize_training(trial, num_train_samples, self._started)


class _Milestones(TrainerCallback):
    """Tells a Trainer where in its run it is."""

    def __init__(self, trainer: ResumableTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(self, *arguments: Any, **options: Any) -> None:
        self.trainer._take_up()

    def on_epoch_begin(self, *arguments: Any, **options: Any) -> None:
        self.trainer._epoch_is_over = False

    def on_step_end(self, args: Any, state: Any, control: TrainerControl, **options: Any) -> TrainerControl:
        # Here, so that no one is told of a checkpoint that is not there yet; `_save_checkpoint` sees to what is left.
        if control.should_save and self.trainer._closes_epoch():
            control.should_save, self.trainer._save_is_due = False, True
        return control

    def on_epoch_end(self, args: Any, state: Any, control: TrainerControl, **options: Any) -> TrainerControl:
        self.trainer._epoch_is_over = True
        control.should_save = control.should_save or self.trainer._save_is_due
        return control


def _bytes_of(state: Any) -> int:
    """The bytes of all tensors in nested dictionaries."""
    if isinstance(state, Tensor):
        return state.nbytes
    return sum(map(_bytes_of, state.values())) if isinstance(state, dict) else 0
