"""What a folder of training says of the run in it, and what becomes of it when another run begins there."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from datasets import DatasetDict
from torch import nn
from transformers import PreTrainedConfig, Trainer, TrainerCallback

from ..corpora.assemble import split_fingerprint
from ..corpora.source import Reading
from ..errors import TrainingError
from ..models.tokenization_word_char import WordCharTokenizer
from .checkpoints import checkpoints_in, remove, write_json

#: Options that say where something lies, how it is read, and for what seeds; what they lead to is compared instead.
_OF_THE_SOURCE = {"recipe", "dataset", "data_dir", "seeds", *(entry.name for entry in fields(Reading))}

#: Options of the run that name a file or folder.
_PLACES = ("vectors", "composed", "context", "model_name_or_path")

#: Options of the Trainer by which a run may differ and end with the same weights and scores.
_HARMLESS = {
    *("output_dir", "resume_from_checkpoint", "do_train", "do_eval", "do_predict", "disable_tqdm", "debug"),
    *(
        "report_to",
        "run_name",
        "project",
        "push_to_hub",
        "local_rank",
        "ddp_backend",
        "ddp_timeout",
        "skip_memory_metrics",
    ),
    *("save_total_limit", "save_on_each_node", "per_device_eval_batch_size", "eval_accumulation_steps"),
    *("dataloader_num_workers", "dataloader_pin_memory", "dataloader_prefetch_factor", "torch_empty_cache_steps"),
    *("include_num_input_tokens_seen", "restore_callback_states_from_checkpoint"),
}
_HARMLESS_KINDS = ("logging_", "log_", "hub_", "trackio_")

#: How long a run is; it may become longer.
LENGTHS = ("num_train_epochs", "max_steps")

#: Schedules in which no learning rate depends on how long the run will be.
_WITHOUT_END = ("constant", "constant_with_warmup", "inverse_sqrt", "reduce_lr_on_plateau")

#: What a config says of the program that wrote it, not of the model.
_NOT_OF_THE_MODEL = ("_name_or_path", "transformers_version", "architectures", "torch_dtype", "dtype", "auto_map")


def run_identity(trainer: Trainer, corpus: DatasetDict, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run is, as values that JSON can hold.

    Args:
        trainer: A trainer that is about to begin.
        corpus: The splits.
        options: What is trained on what.
    """
    arguments = trainer.args.to_dict()
    model = trainer.accelerator.unwrap_model(trainer.model)
    identity = {
        "options": {**_of_the_run(options), **_of_the_trainer(arguments)},
        "length": {name: arguments[name] for name in LENGTHS},
        "corpus": {name: split_fingerprint(split, name) for name, split in corpus.items()},
        "vocabulary": _vocabulary(trainer.processing_class),
        "config": _of_the_model(model.config),
        "frozen weights": _frozen_weights(model),
        "processes": trainer.args.world_size,
    }
    return json.loads(json.dumps(identity, default=str))


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Return the first thing in which a run is no longer the one that it was, in words, or None if there is none."""
    for kind in ("options", "config"):
        # A corpus and a vocabulary leave traces in the config.
        if kind == "config" and (change := _change_of_content(old, new)):
            return change
        for name in sorted({*old[kind], *new[kind]}):
            if old[kind].get(name) != new[kind].get(name):
                return f"{name} was {_short(old[kind].get(name))} and is now {_short(new[kind].get(name))}"
    if old["frozen weights"] != new["frozen weights"]:
        return "the weights that are never trained (vectors, encoder) are others"
    if old["processes"] != new["processes"]:
        return f"{old['processes']} processes trained, and now there are {new['processes']}"
    return _change_of_length(old, new)


def _of_the_run(options: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in options.items() if name not in _OF_THE_SOURCE}
    for name in _PLACES:
        if kept.get(name):
            # Where it lies is nobody's business: this goes where the model goes.
            kept[name] = Path(kept[name]).name
    return kept


def _of_the_trainer(arguments: Mapping[str, Any]) -> dict[str, Any]:
    apart = {*_HARMLESS, *LENGTHS}
    kept = {name: arguments[name] for name in arguments if name not in apart and not name.startswith(_HARMLESS_KINDS)}
    return {name: value for name, value in kept.items() if not name.endswith("_token")}


def _of_the_model(config: PreTrainedConfig) -> dict[str, Any]:
    values = config.to_dict()
    return {name: values[name] for name in values if name not in _NOT_OF_THE_MODEL}


def _vocabulary(tokenizer: WordCharTokenizer) -> str:
    pieces = tokenizer.pieces.to_str() if tokenizer.pieces else ""
    words = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    policies = {name: tokenizer.init_kwargs.get(name) for name in ("casing", "digits", "fallback")}
    return hashlib.sha256(json.dumps([words, tokenizer.characters, policies, pieces]).encode()).hexdigest()


def _frozen_weights(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in _untrained(model):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _untrained(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from ((name, value) for name, value in model.named_parameters() if not value.requires_grad)
    yield from model.named_buffers()


def _change_of_content(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    for name in {**old["corpus"], **new["corpus"]}:
        if old["corpus"].get(name) != new["corpus"].get(name):
            return f"the {name} split of the corpus has other words or labels"
    return "the vocabulary is another" if old["vocabulary"] != new["vocabulary"] else None


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
        self.identity = run_identity(trainer, self.corpus, self.options)
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
