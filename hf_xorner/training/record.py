"""What a folder of training says of the run in it, and what becomes of it when another run begins there."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import DatasetDict
from transformers import Trainer, TrainerCallback

from .checkpoints import checkpoints_in, remove, write_json
from .errors import TrainingError
from .identity import difference, identity_of

_log = logging.getLogger(__name__)

RECORD = "training_run.json"


class RunRecord(TrainerCallback):
    """Writes down what a run is, and lets only that one go on from its checkpoints.

    A run that begins anew in the folder of another replaces it if that had come to its end: its checkpoints go, and its
    model stays until the new one is complete. Checkpoints of a run that had not are never touched.

    Args:
        corpus: The splits.
        options: What is trained on what.
    """

    def __init__(self, corpus: DatasetDict, options: Mapping[str, Any]) -> None:
        self.corpus, self.options = corpus, options
        self.identity: dict[str, Any] = {}

    def begin(self, trainer: Trainer, checkpoint: Path | None) -> None:
        """Compare the run with the one of a checkpoint, or make room for it, and write it down.

        Args:
            trainer: The trainer that begins.
            checkpoint: What it resumes from, or None if it begins anew.

        Raises:
            TrainingError: If another run would be continued, or lost.
        """
        folder = Path(trainer.args.output_dir)
        self.identity = identity_of(trainer, self.corpus, self.options)
        earlier = checkpoints_in(folder) if checkpoint is None else []
        if checkpoint is not None:
            _compare(checkpoint, self.identity)
        else:
            check_unfinished(folder)
        # All processes have looked before one of them changes anything.
        trainer.accelerator.wait_for_everyone()
        if not trainer.is_world_process_zero():
            return
        if checkpoint is not None:
            _log.warning("Going on from %s.", checkpoint)
        if earlier:
            _log.warning("The run in %s had come to its end and is replaced.", folder)
        for old in earlier:
            remove(old)
        _write(folder, self.identity, finished=False)

    def save_to(self, checkpoint: Path) -> None:
        """Write into a checkpoint whose it is."""
        write_json(checkpoint / RECORD, self.identity)

    def finish(self, trainer: Trainer) -> None:
        """Note that the run has come to its end, and another may take its place."""
        if trainer.is_world_process_zero():
            _write(Path(trainer.args.output_dir), self.identity, finished=True)


def check_unfinished(folder: Path) -> None:
    """Refuse a folder for a new run while it has checkpoints of a run that has not come to its end.

    Raises:
        TrainingError: If it has.
    """
    checkpoints = checkpoints_in(folder)
    if checkpoints and not _is_finished(folder):
        raise TrainingError(
            f"{folder} holds {checkpoints[-1].name} of a run that has not come to its end: go on with it by "
            "--resume_from_checkpoint true, name another --output_dir, or remove the folder."
        )


def _write(folder: Path, identity: Mapping[str, Any], finished: bool) -> None:
    try:
        write_json(folder / RECORD, {"finished": finished, **identity})
    except OSError as error:
        raise TrainingError(f"{folder / RECORD} cannot be written: {error.strerror}.") from error


def _compare(checkpoint: Path, identity: Mapping[str, Any]) -> None:
    try:
        before = json.loads((checkpoint / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TrainingError(
            f"{checkpoint} says nothing of the run that it is from ({RECORD}), so it cannot be resumed here."
        ) from None
    change = difference(before, identity)
    if change:
        raise TrainingError(
            f"{checkpoint} is from another run: {change}. Go on as that run was begun, or name another --output_dir."
        )


def _is_finished(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / RECORD).read_text(encoding="utf-8"))["finished"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
