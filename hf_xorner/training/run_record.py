"""The record of a run in its output folder: a run is only resumed with the options and data that it began with."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import fields
from itertools import chain
from pathlib import Path
from textwrap import shorten
from typing import Any

from datasets import DatasetDict
from transformers import Trainer

from ..corpora.assemble import split_fingerprint
from ..corpora.source import Reading
from ..errors import TrainingError
from ..files import write_whole
from ..models.tokenization_word_char import WordCharTokenizer
from .checkpoints import CheckpointedCallback, checkpoints_in, remove
from .model_files import settings_of, tensors_digest

_log = logging.getLogger(__name__)

RECORD = "training_run.json"

#: Options that name or describe the data, and the seeds of several runs; the content of the data is compared instead.
_OF_THE_SOURCE = {"recipe", "dataset", "data_dir", "more_data", "hold_out", "seeds", "overwrite"}
_OF_THE_SOURCE |= {entry.name for entry in fields(Reading)}

#: Options that name a file or folder.
_PLACES = ("vectors", "composed", "context", "model_name_or_path")

#: Options of the Trainer that may change without an effect on weights and scores, and prefixes of such options.
_HARMLESS = {
    *("output_dir", "resume_from_checkpoint", "do_train", "do_eval", "do_predict", "disable_tqdm", "debug"),
    *("report_to", "run_name", "project", "push_to_hub", "local_rank", "ddp_backend", "ddp_timeout"),
    *("skip_memory_metrics", "save_total_limit", "save_on_each_node", "per_device_eval_batch_size"),
    *("eval_accumulation_steps", "dataloader_num_workers", "dataloader_pin_memory", "dataloader_prefetch_factor"),
    *("torch_empty_cache_steps", "include_num_input_tokens_seen", "restore_callback_states_from_checkpoint"),
}
_HARMLESS_PREFIXES = ("logging_", "log_", "hub_", "trackio_")

#: The length of a run, which may be increased.
LENGTHS = ("num_train_epochs", "max_steps")

#: Schedules whose learning rates do not depend on the length of the run.
_WITHOUT_END = ("constant", "constant_with_warmup", "inverse_sqrt", "reduce_lr_on_plateau")


def run_identity(trainer: Trainer, corpus: DatasetDict, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that the result of a run depends on, as JSON values.

    Args:
        trainer: A trainer before training.
        corpus: The splits.
        options: The options of `RunArguments`.
    """
    arguments = trainer.args.to_dict()
    model = trainer.accelerator.unwrap_model(trainer.model)
    frozen = ((name, value) for name, value in model.named_parameters() if not value.requires_grad)
    identity = {
        "options": {**_of_the_run(options), **_of_the_trainer(arguments)},
        "length": {name: arguments[name] for name in LENGTHS},
        "corpus": {name: split_fingerprint(split, name) for name, split in corpus.items()},
        "vocabulary": _vocabulary(trainer.processing_class),
        "config": settings_of(model.config),
        "frozen weights": tensors_digest(chain(frozen, model.named_buffers())),
        "processes": trainer.args.world_size,
    }
    return json.loads(json.dumps(identity, default=str))


#: The parts of a run in the order in which they are compared, and the clause that reports a change.
_CHANGES = {
    "options": "{name} was {before} and is now {now}",
    "corpus": "the {name} split of the corpus has other words or labels",
    "vocabulary": "the vocabulary has changed",
    "config": "{name} was {before} and is now {now}",
    "frozen weights": "the weights that are never trained (vectors, encoder) have changed",
    "processes": "{before} processes trained, and now there are {now}",
}


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Return the first difference between two runs as a clause, or None."""
    for kind, clause in _CHANGES.items():
        before, now, name = old[kind], new[kind], None
        if before == now:
            continue
        if isinstance(now, dict):
            name = next(name for name in sorted({*before, *now}) if before.get(name) != now.get(name))
            before, now = before.get(name), now.get(name)
        return clause.format(name=name, before=_short(before), now=_short(now))
    return _change_of_length(old, new)


def _of_the_run(options: Mapping[str, Any]) -> dict[str, Any]:
    # The record is published with the model, so it contains no paths.
    return {
        name: Path(value).name if value and name in _PLACES else value
        for name, value in options.items()
        if name not in _OF_THE_SOURCE
    }


def _of_the_trainer(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in arguments.items()
        if name not in {*_HARMLESS, *LENGTHS} and not name.startswith(_HARMLESS_PREFIXES) and name[-6:] != "_token"
    }


def _vocabulary(tokenizer: WordCharTokenizer) -> str:
    pieces = tokenizer.pieces.to_str() if tokenizer.pieces else ""
    words = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    policies = {name: tokenizer.init_kwargs.get(name) for name in ("casing", "digits", "fallback")}
    return hashlib.sha256(json.dumps([words, tokenizer.characters, policies, pieces]).encode()).hexdigest()


def _change_of_length(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    name = "max_steps" if max(old["length"]["max_steps"], new["length"]["max_steps"]) > 0 else "num_train_epochs"
    before, now = old["length"][name], new["length"][name]
    change = f"{name} was {before} and is now {now}"
    if now < before:
        return f"{change}, which is less"
    schedule, warmup = new["options"]["lr_scheduler_type"], new["options"]["warmup_steps"]
    if now > before and (schedule not in _WITHOUT_END or 0 < warmup < 1):
        return f"{change}, on which the learning rate depends (lr_scheduler_type {schedule})"
    return None


def _short(value: Any) -> str:
    return shorten(repr(value), 60, placeholder=" …")


class RunRecord(CheckpointedCallback):
    """Writes the record of a run, and checks it when the run is resumed.

    With `overwrite`, a run replaces an earlier one in its folder: its checkpoints are removed when training begins, its
    model when the new one is complete.

    Args:
        corpus: The splits.
        options: The options of `RunArguments`.
    """

    def __init__(self, corpus: DatasetDict, options: Mapping[str, Any]) -> None:
        self.corpus, self.options = corpus, options
        self.identity: dict[str, Any] = {}

    def begin(self, trainer: Trainer, checkpoint: Path | None) -> None:
        """Compare the run with that of the checkpoint, or remove the checkpoints of a finished one; write the record.

        Raises:
            TrainingError: If the checkpoint is from another run, or an unfinished run would be lost.
        """
        folder = Path(trainer.args.output_dir)
        self.identity = run_identity(trainer, self.corpus, self.options)
        if checkpoint is not None:
            _compare(checkpoint, self.identity)
        elif not self.options.get("overwrite"):
            check_unfinished(folder)
        # All processes have checked before one of them changes anything.
        trainer.accelerator.wait_for_everyone()
        if not trainer.is_world_process_zero():
            return
        if checkpoint is not None:
            _log.warning("Resuming from %s.", checkpoint)
        elif earlier := checkpoints_in(folder):
            _log.warning("The run in %s is replaced.", folder)
            for old in earlier:
                remove(old)
        _write(folder, self.identity, finished=False)

    def save_to(self, checkpoint: Path) -> None:
        """Write the record to a checkpoint."""
        write_whole(checkpoint / RECORD, _json(self.identity))

    def finish(self, trainer: Trainer) -> None:
        """Record that the run is finished, so that another may replace it."""
        if trainer.is_world_process_zero():
            _write(Path(trainer.args.output_dir), self.identity, finished=True)


def check_unfinished(folder: Path) -> None:
    """Raise a TrainingError if a folder has checkpoints of an unfinished run."""
    checkpoints = checkpoints_in(folder)
    if checkpoints and not _is_finished(folder):
        raise TrainingError(
            f"{folder} holds {checkpoints[-1].name} of an unfinished run: continue it with "
            "--resume_from_checkpoint true, name another --output_dir, or replace it with --overwrite."
        )


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _write(folder: Path, identity: Mapping[str, Any], finished: bool) -> None:
    try:
        write_whole(folder / RECORD, _json({"finished": finished, **identity}))
    except OSError as error:
        raise TrainingError(f"{folder / RECORD} cannot be written: {error.strerror}.") from error


def _compare(checkpoint: Path, identity: Mapping[str, Any]) -> None:
    try:
        before = json.loads((checkpoint / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TrainingError(f"{checkpoint} has no {RECORD}, so it cannot be resumed here.") from None
    change = difference(before, identity)
    if change:
        raise TrainingError(
            f"{checkpoint} is from another run: {change}. Resume it with the options that it began with, or name "
            "another --output_dir."
        )


def _is_finished(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / RECORD).read_text(encoding="utf-8"))["finished"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
