"""Checkpoints that are complete or absent, and a Trainer that resumes from them with bit-identical results.

A checkpoint or model is first written to the folder `_unfinished` of the run, then flushed to the disk and renamed to
its final place. The process may be killed at any moment: the next one removes or completes what it left. Every
checkpoint has a manifest with the size and the SHA-256 of its files, by which damage is detected.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor
from transformers import Trainer, TrainerCallback, TrainerControl, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.utils import CONFIG_NAME

from ..errors import TrainingError, first_line
from ..files import LockedError, file_fingerprint, flush_to_disk, locked, write_whole

_log = logging.getLogger(__name__)

#: Folder for incomplete checkpoints and models. The Trainer uploads nothing whose name begins with an underscore.
UNFINISHED = "_unfinished"

#: A complete model whose files are being moved to the folder of its run.
_ARRIVING_MODEL = "_model"

_MANIFEST = "manifest.json"

#: Held by the run that writes a folder.
LOCK = ".training.lock"

#: The part of the training progress that each process counts for itself.
_PROGRESS = "progress_{}.json"

#: The ``bytes`` and the ``sha256`` of files, by their paths in a folder.
Manifest = dict[str, dict[str, Any]]

_CHECKPOINT = re.compile(r"checkpoint-(\d+)")


@contextmanager
def folder_locked(folder: str | Path, arguments: TrainingArguments) -> Iterator[None]:
    """Hold the lock of an output folder; see `hf_xorner.files.locked`.

    Args:
        folder: The folder, which is created if it does not exist.
        arguments: The arguments of the run, which contain the number of this process.

    Raises:
        TrainingError: If another run writes the folder, or it cannot be written.
    """
    with ExitStack() as stack:
        try:
            str(folder).encode()  # the tokenizers library writes to no other path
            lock = locked(Path(folder) / LOCK, folder, arguments.process_index, arguments.world_size)
            stack.enter_context(lock)
        except LockedError as error:
            raise TrainingError(str(error)) from None
        except UnicodeEncodeError:
            raise TrainingError(f"output_dir={str(folder)!a} is not UTF-8; name another folder.") from None
        except OSError as error:
            reason = error.strerror or first_line(error)
            raise TrainingError(
                f"output_dir={str(folder)!r} cannot be written ({reason}); name another folder."
            ) from None
        yield


# --- Folders ----------------------------------------------------------------------------------------------------------


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, ordered by their steps."""
    if not folder.is_dir():
        return []
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := _CHECKPOINT.fullmatch(path.name))]
    return [path for _, path in sorted(found) if path.is_dir()]


def move_into_place(staged: Path, final: Path) -> None:
    """Write the manifest of a complete checkpoint and move it to its final place, where it replaces another one."""
    write_whole(staged / _MANIFEST, json.dumps(manifest_of(staged), indent=2) + "\n")
    for path in (*staged.rglob("*"), staged):
        flush_to_disk(path)
    if final.exists():
        remove(final)
    os.replace(staged, final)
    flush_to_disk(final.parent)


def remove(checkpoint: Path) -> None:
    """Remove a checkpoint atomically."""
    doomed = checkpoint.parent / UNFINISHED / f"removed-{checkpoint.name}"
    doomed.parent.mkdir(exist_ok=True)
    shutil.rmtree(doomed, ignore_errors=True)
    os.replace(checkpoint, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def rotate(folder: Path, limit: int | None, best: Path | None) -> None:
    """Remove the oldest checkpoints but never the newest or the best one, as the Trainer does, but atomically.

    Args:
        folder: The folder of the run.
        limit: The number of checkpoints to keep; None or 0: all.
        best: The best checkpoint.
    """
    if not limit or limit < 0:
        return
    checkpoints = checkpoints_in(folder)
    kept = {path.resolve() for path in (*checkpoints[-1:], *([best] if best else []))}
    others = [path for path in checkpoints if path.resolve() not in kept]
    surplus = len(checkpoints) - max(limit, len(checkpoints) - len(others))
    for path in others[: max(surplus, 0)]:
        remove(path)


def manifest_of(folder: Path) -> Manifest:
    """Return the size and the SHA-256 of every file in a folder."""
    return {path.relative_to(folder).as_posix(): file_fingerprint(path) for path in _files_in(folder)}


def difference_from(folder: Path, manifest: Manifest) -> str | None:
    """Return how a folder differs from a manifest, as a predicate such as "lacks config.json", or None."""
    for name, entry in manifest.items():
        path = folder / name
        if not path.is_file():
            return f"lacks {name}"
        if path.stat().st_size != entry["bytes"]:
            return f"has {path.stat().st_size:,} of the {entry['bytes']:,} bytes of {name}"
        if file_fingerprint(path)["sha256"] != entry["sha256"]:
            return f"has other bytes in {name} than were written"
    return None


def fault_of(checkpoint: Path) -> str | None:
    """Return the damage of a checkpoint, as a predicate such as "lacks config.json", or None."""
    if not checkpoint.is_dir():
        return "is not there"
    try:
        manifest = json.loads((checkpoint / _MANIFEST).read_text(encoding="utf-8"))
        return difference_from(checkpoint, manifest)
    except FileNotFoundError:
        return f"has no {_MANIFEST}"
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return f"has a damaged {_MANIFEST}"


def best_of(checkpoint: Path) -> Path | None:
    """Return the best checkpoint that is recorded in another one, or None; the run may have been moved since."""
    best = json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))["best_model_checkpoint"]
    if best is None:
        return None
    beside = checkpoint.parent / Path(best).name
    return beside if beside.is_dir() or not Path(best).is_dir() else Path(best)


def fault_in_resuming(checkpoint: Path, needs_best: bool) -> str | None:
    """Return why a run cannot be resumed from a checkpoint, as `fault_of` does, or None.

    Args:
        checkpoint: The checkpoint.
        needs_best: Whether the run loads its best checkpoint at the end.
    """
    fault = fault_of(checkpoint)
    if fault is None and not any(checkpoint.glob("rng_state*")):
        fault = "holds the model alone (save_only_model)"
    best = best_of(checkpoint) if fault is None and needs_best else None
    if best and (fault_of_best := fault_of(best)):
        fault = f"needs {best.name}, which {fault_of_best}"
    return fault


def install_model(staged: Path, folder: Path) -> Manifest:
    """Move a complete model from the folder `_unfinished` to the folder of its run; return its manifest."""
    _finish_installing(folder)
    for path in (*staged.rglob("*"), staged):
        flush_to_disk(path)
    manifest = manifest_of(staged)
    os.replace(staged, folder / _ARRIVING_MODEL)
    flush_to_disk(folder)
    _finish_installing(folder)
    return manifest


def clear(folder: Path) -> None:
    """Remove what a killed process was writing, and finish moving its model."""
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    _finish_installing(folder)


def tidy(folder: Path) -> None:
    """Remove the folder `_unfinished` if it is empty."""
    with suppress(OSError):
        (folder / UNFINISHED).rmdir()


def _finish_installing(folder: Path) -> None:
    arriving = folder / _ARRIVING_MODEL
    if not arriving.is_dir():
        return
    files = [path.relative_to(arriving) for path in _files_in(arriving)]
    if (arriving / CONFIG_NAME).is_file():
        # No model can be loaded without a config: it is removed first and moved last.
        (folder / CONFIG_NAME).unlink(missing_ok=True)
    for name in sorted(files, key=lambda name: name == Path(CONFIG_NAME)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name == Path(CONFIG_NAME):
            flush_to_disk(folder)
        os.replace(arriving / name, folder / name)
    flush_to_disk(folder)
    shutil.rmtree(arriving)
    tidy(folder)


@contextmanager
def written_aside(staged: Path, what: str, needed: int) -> Iterator[None]:
    """Remove an incomplete folder after an error, and explain an error of the disk in one sentence.

    Args:
        staged: The folder that is written to.
        what: What is written, as the subject of the sentence.
        needed: The bytes of its tensors; all of it takes a little more.

    Raises:
        TrainingError: If the disk is full, or cannot be written to.
    """
    try:
        yield
    except BaseException as error:
        folder = staged.parent.parent
        shutil.rmtree(staged, ignore_errors=True)
        tidy(folder)
        reason = _why_not_written(error)
        if reason is None:
            raise
        there = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
        raise TrainingError(
            f"{what} could not be written to {folder} ({reason}): it needs about {needed / 1e6:,.1f} MB, and "
            f"{shutil.disk_usage(there).free / 1e6:,.1f} MB are free; nothing that was there is lost. Make room, and "
            "continue with --resume_from_checkpoint true."
        ) from error


def _why_not_written(error: BaseException) -> str | None:
    """Return the reason for an error of writing, or None for another error."""
    if isinstance(error, OSError):
        return error.strerror or first_line(error)
    # Of the libraries in Rust, tokenizers raises no class of its own.
    if isinstance(error, SafetensorError) or (type(error) is Exception and "(os error " in str(error)):
        return first_line(error).rpartition("I/O error: ")[2].partition(" (os error ")[0]
    # PyTorch reports a file that is cut short as "unexpected pos".
    if isinstance(error, RuntimeError) and "inline_container" in str(error):
        return "a file was cut short"
    return None


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _bytes_of(state: Any) -> int:
    """Return the bytes of all tensors in nested dictionaries."""
    if isinstance(state, Tensor):
        return state.nbytes
    return sum(map(_bytes_of, state.values())) if isinstance(state, dict) else 0


# --- The Trainer ------------------------------------------------------------------------------------------------------


class CheckpointedCallback(TrainerCallback):
    """A callback that reads and writes files of its own in every checkpoint."""

    def begin(self, trainer: Trainer, checkpoint: Path | None) -> None:
        """Read the files before training; `checkpoint` is None if the run is not resumed."""

    def save_to(self, checkpoint: Path) -> None:
        """Write the files to a checkpoint that is being written."""


class ResumableTrainer(Trainer):
    """The stock Trainer with checkpoints that are complete or absent, from which a run is resumed exactly.

    The stock Trainer writes checkpoints in place, resumes without the loss since the last log, and skips the end of an
    epoch (evaluation, callbacks) when the checkpoint was written at its last step. Here, such a checkpoint is written
    when the epoch is over.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._resumed: Path | None = None
        self._saved_files: Manifest = {}
        self._writes_aside = self._has_begun = self._epoch_is_over = self._save_is_due = False
        self._started = 0.0
        self.add_callback(_Milestones(self))

    def train(self, resume_from_checkpoint: str | Path | bool | None = None, *arguments: Any, **options: Any) -> Any:
        """Train, or resume training.

        Args:
            resume_from_checkpoint: A checkpoint's folder; True or "true" for the newest undamaged one in `output_dir`,
                if there is one.
            arguments: See the stock Trainer.
            options: See the stock Trainer.

        Raises:
            TrainingError: If there is no undamaged checkpoint to resume from, a checkpoint cannot be written, or
                another run writes the same folder.
        """
        with folder_locked(self.args.output_dir, self.args):
            return self._train(resume_from_checkpoint, *arguments, **options)

    def _train(self, resume_from_checkpoint: str | Path | bool | None, *arguments: Any, **options: Any) -> Any:
        folder = Path(self.args.output_dir)
        if self.args.should_save:
            clear(folder)
        self.accelerator.wait_for_everyone()
        self._resumed = self._checkpoint_to_resume(resume_from_checkpoint, folder)
        for callback in self._checkpointed_callbacks():
            callback.begin(self, self._resumed)
        self.accelerator.wait_for_everyone()
        evaluates_at_start = self.args.eval_on_start
        self.args.eval_on_start = evaluates_at_start and self._resumed is None
        self._writes_aside, self._has_begun = True, False
        try:
            return super().train(str(self._resumed) if self._resumed else None, *arguments, **options)
        # Until the first step, the Trainer builds what its arguments name; its errors have no common type.
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
        """Save the model atomically.

        Args:
            output_dir: The folder; by default that of the run.
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
        """Return the checkpoint that is named, or the newest undamaged one."""
        answer = str(wanted).casefold()
        if answer in ("none", "false"):
            return None
        candidates = checkpoints_in(folder)[::-1] if answer == "true" else [Path(str(wanted))]
        faults: list[str] = []
        for checkpoint in candidates:
            fault = fault_in_resuming(checkpoint, self.args.load_best_model_at_end)
            if fault is None:
                if faults and self.is_world_process_zero():
                    _log.warning("%s; resuming from %s instead.", "; ".join(faults), checkpoint.name)
                return checkpoint
            faults.append(f"{checkpoint if answer != 'true' else checkpoint.name} {fault}")
        if faults:
            raise TrainingError(
                f"The run in {folder} cannot be resumed: {'; '.join(faults)}. Name another checkpoint, or remove these "
                "to start again."
            )
        return None

    def _checkpointed_callbacks(self) -> list[CheckpointedCallback]:
        return [callback for callback in self.callback_handler.callbacks if isinstance(callback, CheckpointedCallback)]

    def _get_output_dir(self, trial: Any) -> str:
        """Return the parent folder of checkpoints, which is `_unfinished` during training.

        The stock Trainer removes old checkpoints from this folder; there it finds none.
        """
        folder = super()._get_output_dir(trial)
        return str(Path(folder) / UNFINISHED) if self._writes_aside else folder

    def _save_checkpoint(self, model: Any, trial: Any = None) -> None:
        self._save_is_due = self._closes_epoch()
        if self._save_is_due:
            return
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
            write_whole(staged / _PROGRESS.format(self.args.process_index), json.dumps(self._progress()))
            if self.args.should_save:
                self.state.save_to_json(str(staged / TRAINER_STATE_NAME))
                for callback in self._checkpointed_callbacks():
                    callback.save_to(staged)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                move_into_place(staged, final)
        if self.args.should_save:
            best = self.state.best_model_checkpoint
            rotate(final.parent, self.args.save_total_limit, Path(best) if best else None)
        if self.args.push_to_hub:
            super()._push_from_checkpoint(str(final))

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        """Do nothing: the checkpoint is pushed when it is in its final place."""

    def _closes_epoch(self) -> bool:
        """Return whether this is the last step of the epoch and the end of the epoch has not been handled yet."""
        ends = self.control.should_training_stop or self.control.should_epoch_stop
        return not self._epoch_is_over and (ends or float(self.state.epoch).is_integer())

    def _progress(self) -> dict[str, Any]:
        """Return what TrainerState leaves out."""
        return {
            "loss_since_last_log": self._tr_loss.item(),
            "loss_before_last_log": self._total_loss_scalar,
            "last_logged_step": self._globalstep_last_logged,
            "max_steps": self.state.max_steps,
            "stopped": self.control.should_training_stop,
            "seconds": time.time() - self._started,
        }

    def _saved_progress(self) -> dict[str, Any]:
        assert self._resumed is not None
        own, first = (self._resumed / _PROGRESS.format(number) for number in (self.args.process_index, 0))
        return json.loads((own if own.is_file() else first).read_text(encoding="utf-8"))

    def _init_training_state(
        self, max_steps: int, num_update_steps_per_epoch: int, num_train_epochs: int, *arguments: Any
    ) -> tuple[int, int]:
        """Read the state of a checkpoint. A run that was finished or stopped early is not trained further."""
        place = super()._init_training_state(max_steps, num_update_steps_per_epoch, num_train_epochs, *arguments)
        if self._resumed is None:
            return place
        progress, steps = self._saved_progress(), self.state.global_step
        if steps >= max_steps or (progress["stopped"] and steps < progress["max_steps"]):
            return num_train_epochs, 0
        return place

    def _restore_progress(self) -> None:
        """Restore what the Trainer does not; called after it has set up everything else."""
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
        # Kept even if it is missing: without it, the run would silently end with other weights than the best.
        best = best_of(self._resumed)
        self.state.best_model_checkpoint = str(best) if best else None

    def _load_best_model(self) -> None:
        """Load the best checkpoint, or raise if it is damaged; the stock Trainer only warns if it is missing."""
        best = Path(str(self.state.best_model_checkpoint))
        if fault := fault_of(best):
            raise TrainingError(
                f"The best model of {best.parent} cannot be loaded: {best.name} {fault}; train again, or use another "
                "checkpoint as the model."
            )
        super()._load_best_model()

    def check_saved_model(self) -> None:
        """Raise a TrainingError if the model in `output_dir` is not as `save_model` wrote it."""
        fault = difference_from(Path(self.args.output_dir), self._saved_files)
        if fault:
            raise TrainingError(
                f"The model in {self.args.output_dir} {fault}; resume the run, which saves it again, or train it again."
            )

    def _finalize_training(self, trial: Any, num_train_samples: int, start_time: float) -> Any:
        """Report the whole run, including the time before it was resumed."""
        return super()._finalize_training(trial, num_train_samples, self._started)


class _Milestones(TrainerCallback):
    """Tells a Trainer where in its run it is."""

    def __init__(self, trainer: ResumableTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(self, *arguments: Any, **options: Any) -> None:
        self.trainer._restore_progress()

    def on_epoch_begin(self, *arguments: Any, **options: Any) -> None:
        self.trainer._epoch_is_over = False

    def on_step_end(self, args: Any, state: Any, control: TrainerControl, **options: Any) -> TrainerControl:
        # Here, so that callbacks are not told of a checkpoint that is not there yet. save_strategy "best" decides later
        # and is handled by `_save_checkpoint`.
        if control.should_save and self.trainer._closes_epoch():
            control.should_save, self.trainer._save_is_due = False, True
        return control

    def on_epoch_end(self, args: Any, state: Any, control: TrainerControl, **options: Any) -> TrainerControl:
        self.trainer._epoch_is_over = True
        control.should_save = control.should_save or self.trainer._save_is_due
        return control
