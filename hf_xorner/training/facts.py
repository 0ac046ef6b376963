"""The facts of a run: one JSON object with options, data, learning curve, scores and versions, saved with the model."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, DatasetDict
from jinja2 import TemplateError
from transformers import Trainer, TrainerCallback
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import ExportableState

from ..corpora.assemble import TOKENS, TRAIN, split_fingerprint
from ..corpora.hold_out import HeldOut
from ..corpora.statistics import corpus_statistics
from ..errors import first_line
from ..files import FACTS_FILE, expanded, file_fingerprint, model_folder, write_whole
from ..registration import CONFIGS
from ..vectors.distill import AUTO, NONE, START
from ..vectors.formats import split_member
from .arguments import RunArguments, TaggerTrainingArguments, arguments_of, as_words, settings_of
from .batches import word_counts

#: Written with the facts, for paired tests between runs: for each sentence of a held-out split, the number of correct,
#: predicted and gold spans, or of correct and all words if the labels are plain. It contains no words of the corpus.
COUNTS_FILE = "sentence_counts.json"

#: The name of F1 where the labels are those of a teacher.
AGREEMENT = "agreement with the teacher"

#: Options that name files; their content is recorded as a SHA-256.
INPUTS = ("vectors", "composed", "context", "model_name_or_path", "teacher", "teacher_text")

#: Options that depend on the machine or the user's account, or only concern output files and the display.
_OF_THE_MACHINE = {
    *("output_dir", "data_dir", "logging_dir", "resume_from_checkpoint", "run_name", "project", "recipe", "report_to"),
    *("disable_tqdm", "local_rank", "deepspeed", "overwrite", "push_to_hub"),
}
_PREFIXES = ("hub_", "trackio_", "log_level", "ddp_", "fsdp", "dataloader_")

#: The options whose defaults depend on the size of the data. They are always recorded, so that a command repeats a run.
CHOSEN = ("per_device_train_batch_size", "num_train_epochs", "casing", "digits", "singleton_dropout", "vectors")

#: Options, and beginnings of their names, that may change when a run is resumed.
_MAY_CHANGE = ("num_train_epochs", "max_steps", "average_epochs", "early_stopping", "calibrate", "quantize", "use_cpu")
_MAY_CHANGE_PREFIXES = ("eval_", "save_", "logging_")

_WEIGHTS = "model.safetensors"


class RunFacts(TrainerCallback, ExportableState):
    """Keeps the facts that are known before training in the Trainer's state, which is part of every checkpoint."""

    def __init__(self, facts: dict[str, Any] | None) -> None:
        self.facts = facts

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"args": {"facts": self.facts}, "attributes": {}}


def differences(checkpoint: Path, facts: Mapping[str, Any]) -> list[str]:
    """Return the options, "inputs" or "data" in which a run differs from that of a checkpoint to resume."""
    state = json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
    saved = state["stateful_callbacks"].get(RunFacts.__name__, {"args": {"facts": {}}})["args"]["facts"]
    before, now = (
        {**values.get("options", {}), "inputs": values.get("inputs"), "data": values.get("data")}
        for values in (saved, plain(facts))
    )
    changed = sorted(name for name in before.keys() | now if before.get(name) != now.get(name))
    return [name for name in changed if name not in _MAY_CHANGE and not name.startswith(_MAY_CHANGE_PREFIXES)]


def read_facts(folder: str | Path) -> dict[str, Any]:
    """Read the facts in a model's folder; docs/formats.md describes them."""
    with whole_facts(folder):
        facts = json.loads((Path(folder) / FACTS_FILE).read_text(encoding="utf-8"))
        return {**facts, "model": {**facts["model"]}}


@contextmanager
def whole_facts(folder: str | Path) -> Iterator[None]:
    """Convert errors for facts that are not JSON, or lack something, to a ValueError of one sentence."""
    try:
        yield
    except (
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        TemplateError,
        json.JSONDecodeError,
        UnicodeError,
    ) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise ValueError(f"{Path(folder) / FACTS_FILE} is not complete ({reason}); copy it again.") from error


def options_of(
    run: RunArguments, training: TaggerTrainingArguments, config_fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options that differ from their defaults, and those in CHOSEN, as JSON values.

    Paths are reduced to names, and options of the machine are left out.

    Args:
        run: The arguments of the run.
        training: The Trainer's arguments, before the Trainer changes them.
        config_fields: The fields of the model's config that were set.
    """
    kinds = (CONFIGS[run.model_type], TaggerTrainingArguments)
    defaults = {entry.name: entry.default for kind in kinds for entry in fields(kind)}
    defaults |= {**asdict(RunArguments()), "model_type": ""}
    # The Trainer sets some of its options itself. The options of this package have an entry `bounds`.
    not_set = {entry.name for entry in fields(training) if "bounds" not in entry.metadata} - run.explicit
    values = {**config_fields, **training.to_dict(), **asdict(run)}
    always = CHOSEN if run.model_name_or_path is None else ()
    if always:
        values.setdefault("singleton_dropout", CONFIGS[run.model_type].singleton_dropout)
    return {
        name: _without_folder(plain(value), run.data_dir) if name in (*INPUTS, "dataset", "more_data") else plain(value)
        for name, value in sorted(values.items())
        if name not in _OF_THE_MACHINE | not_set and not name.startswith(_PREFIXES)
        if not (name == "dataset" and run.texts_alone)
        if (name in always and value is not None) or plain(value) != plain(defaults.get(name))
    }


def command_of(recipe: str | None, options: Mapping[str, Any]) -> str:
    """Return the command line for options: a recipe, and the options that differ from it."""
    of_recipe: dict[str, Any] = {}
    if recipe is not None:
        try:
            of_recipe = options_of(*arguments_of({}, recipe))
        except ValueError:  # the recipe is a file in another folder
            recipe = None
    differing = {name: value for name, value in options.items() if name not in of_recipe or of_recipe[name] != value}
    differing |= dict.fromkeys(of_recipe.keys() - options.keys(), "null")  # removed on the command line
    words = ["hf-xorner", "train", *([recipe] if recipe else []), *as_words(dict(sorted(differing.items())))]
    return shlex.join(words)


def input_facts(run: RunArguments) -> dict[str, dict[str, Any]]:
    """Return the name, size and SHA-256 of the files that a run reads in addition to its corpus."""
    inputs: dict[str, dict[str, Any]] = {}
    for option in INPUTS:
        value = [] if getattr(run, option) in (None, NONE) else getattr(run, option)
        several = isinstance(value, list)
        for number, name in enumerate(value if several else [value], 1):
            file, member = split_member(START if (option, name) == ("vectors", AUTO) else name)
            path = expanded(model_folder(str(file)))
            content = file_fingerprint(path) if path.exists() else {}
            shown = _without_folder(str(file)) + (f":{member}" if member else "")
            inputs[f"{option} {number}" if several else option] = {"name": shown, **content}
    return inputs


def facts_before(
    trainer: Trainer,
    corpus: DatasetDict,
    fingerprint: str,
    run: RunArguments,
    options: dict[str, Any],
    command: str,
    held_out: HeldOut | None,
    more: Sequence[Dataset],
) -> dict[str, Any]:
    """Return the facts that are known before training.

    Args:
        trainer: The trainer.
        corpus: The splits.
        fingerprint: The fingerprint of the corpus without further corpora.
        run: The arguments of the run.
        options: See `options_of`.
        command: See `command_of`.
        held_out: The part of the training data that was held out for validation.
        more: The training sentences of each corpus of `more_data`; they are the last ones of the split `train`, whose
            counts include them.
    """
    counts = ("sentences", "tokens", "entities", "per_type", "per_tag")
    data: dict[str, Any] = {
        "source": _without_folder(run.dataset, run.data_dir),
        "fingerprint": fingerprint,
        "splits": {
            split: {name: figures[name] for name in counts if name in figures}
            for split, figures in corpus_statistics(corpus).items()
        },
    }
    if run.texts_alone:
        data["labelled_by"] = [_without_folder(name) for name in run.teacher]
    if held_out:
        data["hold_out"] = held_out._asdict()
    if more:
        data["more_data"] = [
            {
                "source": _without_folder(name, run.data_dir),
                "fingerprint": split_fingerprint(train, TRAIN),
                "sentences": len(train),
            }
            for name, train in zip(run.more_data, more, strict=True)
        ]
    device = trainer.args.device
    return {
        "recipe": run.recipe,
        "command": command,
        "options": options,
        "inputs": input_facts(run),
        "data": data,
        "hardware": {
            "device": device.type,
            "name": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
        "versions": versions(),
        "seed": trainer.args.seed,
    }


def write_facts(
    trainer: Trainer,
    before: Mapping[str, Any],
    scores: Mapping[str, dict[str, Any]],
    counts: Mapping[str, list[list[int]]],
    seconds: float,
) -> None:
    """Write the facts of a run and the counts of its sentences to the Trainer's output folder.

    Args:
        trainer: The trainer after training, with the model saved.
        before: See `facts_before`.
        scores: The report of each held-out split.
        counts: The counts of the sentences of each held-out split.
        seconds: The time for the predictions of the last split.
    """
    folder = Path(str(trainer.args.output_dir))
    model = trainer.accelerator.unwrap_model(trainer.model)
    curve = curve_of(trainer.state.log_history)
    training_seconds = sum(row.get("seconds", 0.0) for row in curve)
    speed = {"training_seconds": round(training_seconds, 2)}
    if training_seconds:
        words = int(word_counts(trainer.train_dataset, TOKENS).sum()) * (trainer.state.epoch or 0)
        speed["training_tokens_per_second"] = round(words / training_seconds, 1)
    if seconds:
        words = before["data"]["splits"][list(scores)[-1]]["tokens"]
        speed["prediction_tokens_per_second"] = round(words / seconds, 1)
    facts = {
        **before,
        "config": {name: value for name, value in plain(settings_of(model.config)).items() if name != "char_types"},
        "curve": curve,
        "scores": {split: rounded(figures) for split, figures in scores.items()},
        "speed": speed,
        "model": {
            "parameters": model.num_parameters(),
            "file": _WEIGHTS,
            **file_fingerprint(folder / _WEIGHTS),
        },
    }
    write_whole(folder / COUNTS_FILE, json.dumps(counts, sort_keys=True) + "\n")
    write_whole(folder / FACTS_FILE, json.dumps(facts, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


def curve_of(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the learning curve in the Trainer's log: the first entry of each kind for each epoch."""
    rows: dict[float, dict[str, Any]] = {}
    for entry in history:
        if "epoch" not in entry or "train_runtime" in entry:
            continue
        epoch = round(entry["epoch"], 4)
        row = rows.setdefault(epoch, {"epoch": epoch})
        if math.isfinite(entry.get("loss", math.nan)):  # not after training that diverged
            row.setdefault("loss", float(f"{entry['loss']:.6g}"))
        if "seconds" in entry:
            row.setdefault("seconds", round(entry["seconds"], 2))
        names = (name for name in ("precision", "recall", "f1", "accuracy") if f"eval_{name}" in entry)
        if dev := {name: rounded(entry[f"eval_{name}"]) for name in names}:
            row.setdefault("dev", dev)
    return [rows[epoch] for epoch in sorted(rows)]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries of the run."""
    libraries = ("torch", "transformers", "datasets", "hf_xorner")
    return {
        "python": platform.python_version(),
        **{name: str(import_module(name).__version__) for name in libraries},
    }


def rounded(value: Any, digits: int = 4) -> Any:
    """Round every float in nested values."""
    return json.loads(json.dumps(value), parse_float=lambda number: round(float(number), digits))


def _processor() -> str:
    """Return the model of the processor."""
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    named = re.search(r"^model name\s*:\s*(.*)", text, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()


def plain(value: Any) -> Any:
    """Return a value as it would be read back from JSON."""
    return json.loads(json.dumps(value, default=str))


def _without_folder(value: Any, data_dir: str | None = None) -> Any:
    """Reduce paths, also those relative to `data_dir`, to their names; other values are unchanged."""
    if isinstance(value, list):
        return [_without_folder(item, data_dir) for item in value]
    if not isinstance(value, str) or not ("/" in value or os.sep in value or value in (".", "..")):
        return value
    is_path = value.startswith((os.sep, ".", "~")) or any(map(os.path.exists, (value, f"{data_dir or '.'}/{value}")))
    return os.path.basename(os.path.abspath(value)) if is_path else value
