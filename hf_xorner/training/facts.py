"""The facts of a run: everything that a reader of its model may ask, in one small JSON file beside it."""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from transformers import PreTrainedConfig, Trainer, TrainerCallback

from ..corpora.assemble import TRAIN, corpus_fingerprint, flat_batches, label_names_of
from ..corpora.schemes import TagSet
from ..corpora.statistics import corpus_statistics
from ..errors import TrainingError
from ..evaluation.breakdowns import confusion, per_length, seen_partition, surface_forms, surface_scores
from ..evaluation.calibration import calibration, entity_confidences
from ..evaluation.comparison import Comparison
from ..evaluation.spans import spans_of_ids
from ..files import file_fingerprint, write_whole
from ..registration import CONFIGS
from .arguments import RunArguments, TaggerTrainingArguments, as_words, parse

FACTS_FILE = "facts.json"
#: Beside the facts: of each sentence of a held-out split its correct, predicted and gold spans, or its correct and all
#: words where the labels are plain. What paired tests between runs need, and no word of the corpus.
COUNTS_FILE = "sentence_counts.json"

#: Options that name a file or folder, whose content says more than where it lies.
_INPUTS = ("vectors", "composed", "context", "model_name_or_path")

# What belongs to a machine or an account, or says only where things go and what is shown on the way.
_OF_THE_MACHINE = {
    *("output_dir", "data_dir", "logging_dir", "resume_from_checkpoint", "run_name", "project", "recipe", "report_to"),
    *("disable_tqdm", "local_rank", "deepspeed", "overwrite_output_dir"),
}
_OF_THE_MACHINE_PREFIXES = (
    "hub_",
    "push_to_hub",
    "trackio_",
    "log_level",
    "ddp_",
    "fsdp",
    "dataloader_",
    "xpu_",
    "mp_",
    "tpu_",
)
_LIBRARIES = ("torch", "transformers", "datasets", "hf_xorner")


#: So many levels deep may JSON be nested.
_DEEPEST = 100
#: Numbers from here on cannot be computed with.
_LARGEST = 1e300

# The JSON of facts: of an object the keys with the types of their values, `*` for any key, `?` after one that may be
# missing; further keys are of any type. Of a list the type of its items.
_RATIOS = {"precision": float, "recall": float, "f1": float}
_COUNTED = {**_RATIOS, "support": int}
_COUNTS = {"*": int}
_SCORES = {
    "precision?": float,
    "recall?": float,
    "f1?": float,
    "accuracy?": float,
    "support?": int,
    "macro?": _RATIOS,
    "per_type?": {"*": _COUNTED},
    "per_length?": {"*": _COUNTED},
    "surface?": _COUNTED,
    "seen?": {"seen": _COUNTED, "unseen": _COUNTED},
    "calibration?": {
        "ece": float,
        "count": int,
        "bins": [{"lower": float, "upper": float, "confidence": float, "accuracy": float, "count": int}],
    },
    "confusion?": {
        "matrix": {"*": _COUNTS},
        "boundary": _COUNTS,
        "boundary_and_type": _COUNTS,
        "missed": _COUNTS,
        "support": _COUNTS,
        "spurious": _COUNTS,
    },
}
_SPLIT = {"sentences": int, "tokens": int, "entities?": int, "per_type?": _COUNTS, "per_tag?": _COUNTS}
_EPOCH = {"epoch": float, "loss?": float, "seconds?": float, "dev?": {"*": float}}
_SPEED = {"training_seconds": float, "training_tokens_per_second?": float, "prediction_tokens_per_second?": float}


@dataclass
class Facts:
    """The options, the data, the course and the results of a run; scores in percent, times in seconds, no local paths.

    Args:
        recipe: The recipe: the name of one of the package's, or a file's name; None without one.
        command: A command line that does the same, with the user's own files by their names alone.
        options: Every option that is not its default: of the run, the Trainer and the config.
        config: The config of the model, without its vocabulary.
        inputs: For each of the options that name files (`_INPUTS`) and were given its `name` and, of a file or
            folder, its `bytes` and `sha256`.
        data: `source`; `fingerprint`, a SHA-256 of the content; `splits`, by name with `sentences`, `tokens`,
            `entities` and `per_type`, or `per_tag` where the labels are plain.
        curve: For each epoch its `epoch`, `loss`, `dev` (scores) and `seconds`, as far as they were recorded.
        scores: For each held-out split `precision`, `recall`, `f1`, `accuracy`, `support`, `macro`, `per_type`,
            `per_length`, `surface`, `seen`, `calibration` (without its empty bins) and `confusion` (its `matrix` by
            the names of types, without zeros), as the report has them; `accuracy` alone where the labels are plain.
            Earlier versions wrote none of the last three.
        speed: `training_seconds`, over all starts of the run; `training_tokens_per_second`;
            `prediction_tokens_per_second`, on the last held-out split.
        model: `parameters`; `file`, `bytes` and `sha256` of the saved weights.
        hardware: `device`, its `name`, and the processor's `cores` and the `threads` used.
        versions: Of python, torch, transformers, datasets and hf_xorner.
        seed: Of everything random.
    """

    recipe: str | None
    command: str
    options: dict[str, Any]
    config: Annotated[dict[str, Any], {"model_type": str, "id2label": {"*": str}}]
    inputs: Annotated[dict[str, dict[str, Any]], {"*": {"name": str, "bytes?": int, "sha256?": str}}]
    data: Annotated[dict[str, Any], {"source": str, "fingerprint": str, "splits": {"*": _SPLIT}}]
    curve: Annotated[list[dict[str, Any]], [_EPOCH]]
    scores: Annotated[dict[str, dict[str, Any]], {"*": _SCORES}]
    speed: Annotated[dict[str, float], _SPEED]
    model: Annotated[dict[str, Any], {"parameters": int, "file": str, "bytes": int, "sha256": str}]
    hardware: Annotated[dict[str, Any], {"device": str, "name": str, "cores": int, "threads": int}]
    versions: Annotated[dict[str, str], {"*": str}]
    seed: int

    def to_json(self) -> str:
        """Write the facts as JSON, in one order whatever they were gathered in.

        Raises:
            ValueError: If a number is not finite, a string is a path from the root of a machine, or it is no text.
        """
        content = asdict(self)
        for place, value in _leaves(content, ""):
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(
                    f"The facts of the run have {value} as {place}, as after training that diverged; "
                    "lower the learning rate, or clip gradients by max_grad_norm."
                )
            if not isinstance(value, str):
                continue
            # A label may be "/".
            if Path(value).is_absolute() and not place.startswith("config.id2label."):
                raise ValueError(f"The facts of the run have a path of this machine as {place}; name it relatively.")
            if value != value.encode(errors="ignore").decode():
                raise ValueError(f"The facts of the run have {value!a} as {place}, which is not UTF-8; rename it.")
        return json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Facts:
        """Read what `to_json` wrote, here or in an earlier version, which had an empty `usage` besides.

        Raises:
            ValueError: If it is something else, or a value is not of the type above; further keys are kept.
        """
        content = json_object(text)
        names = {entry.name for entry in fields(cls)}
        if content.keys() - {"usage"} != names:
            raise ValueError(f"these are no facts of a run, which are {', '.join(sorted(names))}; train it again.")
        for name, kind in get_type_hints(cls, include_extras=True).items():
            _check(content[name], get_args(kind)[1] if get_origin(kind) is Annotated else kind, name)
        return cls(**{name: content[name] for name in names})

    def write(self, folder: str | Path) -> Path:
        """Write the facts into a folder, so that the file is there as a whole or not at all."""
        return write_whole(Path(folder) / FACTS_FILE, self.to_json())

    @classmethod
    def read(cls, folder: str | Path) -> Facts:
        """Read the facts of a folder.

        Raises:
            ValueError: If there are none, or they are not in order.
        """
        path = Path(folder) / FACTS_FILE
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{path}: cannot be read ({error.strerror}); train the model to the end.") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def json_object(text: str) -> dict[str, Any]:
    """Read a JSON object that all readers of JSON read: of finite numbers and valid strings, and not nested too deeply.

    Raises:
        ValueError: If it is something else.
    """
    try:
        content = json.loads(text, parse_constant=_refused, parse_float=_finite)
        level = [content]
        for _ in range(_DEEPEST):
            level = [one for held in level if isinstance(held, (dict, list)) for one in _items(held)]
    except RecursionError:
        level = [None]
    if level:
        raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    json.dumps(content, ensure_ascii=False).encode()  # refuses half of a surrogate pair
    return content


def _items(held: Any) -> Any:
    return held.values() if isinstance(held, dict) else held


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number of JSON")


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError(f"{digits[:20]} is not a finite number")
    return number


_IN_WORDS = {str: "a string", int: "an integer", float: "a number", dict: "an object", list: "a list"}


def _check(value: Any, kind: Any, place: str) -> None:
    """Refuse a value of JSON that is not of a type, or a number that is too large to be computed with."""
    if isinstance(kind, UnionType):  # with None
        if value is None:
            return
        kind = get_args(kind)[0]
    plain = type(kind) if isinstance(kind, (dict, list)) else get_origin(kind) or kind
    accepted = (int, float) if plain is float else plain
    if not isinstance(value, accepted) or isinstance(value, bool):
        raise ValueError(f"{place} must be {_IN_WORDS[plain]}, not {value!r:.40}; take the file as the run left it.")
    if isinstance(value, (int, float)) and abs(value) >= _LARGEST:
        raise ValueError(f"{place} is too large a number; take the file as the run left it.")
    if isinstance(value, list):
        for number, inner in enumerate(value):
            _check(inner, kind[0], f"{place}[{number}]")
    elif isinstance(value, dict) and isinstance(kind, dict):
        _check_keys(value, kind, place)


def _check_keys(value: dict[str, Any], kinds: dict[str, Any], place: str) -> None:
    """Refuse an object that lacks a key, or has a value of another type."""
    wanted = {name.removesuffix("?"): kind for name, kind in kinds.items()}
    for name in kinds:
        if name not in value and not name.endswith(("?", "*")):
            raise ValueError(f"{place}.{name} is missing; take the file as the run left it.")
    for name, inner in value.items():
        kind = wanted.get(name, wanted.get("*"))
        if kind is not None:
            _check(inner, kind, f"{place}.{name}" if name.isidentifier() else f"{place}[{name!r:.60}]")


class EpochClock(TrainerCallback):
    """Puts the seconds of every epoch's training beside its loss, where the Trainer's checkpoints keep them."""

    def __init__(self) -> None:
        self.begun = self.spent = 0.0

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self.begun = time.monotonic()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop it, before the validation data are scored."""
        self.spent = time.monotonic() - self.begun

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Note the time where the loss of the epoch has just been noted."""
        if self.spent and logs and "loss" in logs and state.log_history:
            state.log_history[-1]["seconds"] = round(self.spent, 3)
            self.spent = 0.0


def options_of(
    run: RunArguments, training: TaggerTrainingArguments, config_fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Every option that is not its default, as plain JSON; files by their names, nothing that belongs to a machine.

    Args:
        run: What is trained on what.
        training: How it is trained, as it was asked for.
        config_fields: The fields of the model's config that were given.
    """
    defaults = _defaults_of(run.model_type, training.use_cpu) | {"model_type": ""}
    given = {**config_fields, **training.to_dict(), **asdict(run)}
    found = {
        name: _without_folders(_plain(value))
        for name, value in given.items()
        if name not in _OF_THE_MACHINE and not name.startswith(_OF_THE_MACHINE_PREFIXES)
        if _plain(value) != _plain(defaults.get(name))
    }
    return dict(sorted(found.items()))


def _defaults_of(model_type: str, use_cpu: bool = True) -> dict[str, Any]:
    """What every option is by default, for an architecture."""
    training = TaggerTrainingArguments(use_cpu=use_cpu).to_dict() | {"use_cpu": False}
    config = {entry.name: entry.default for entry in fields(CONFIGS[model_type])}
    return {**config, **training, **asdict(RunArguments())}


def command_of(recipe: str | None, options: Mapping[str, Any]) -> str:
    """The command line of such options: a recipe, and what differs from it."""
    known: dict[str, Any] = {}
    if recipe is not None:
        try:
            known = options_of(*parse([recipe]))
        except ValueError:  # a file that lies elsewhere
            recipe = None
    differing = {name: value for name, value in options.items() if name not in known or known[name] != value}
    # What the recipe says and the command line has taken back.
    differing |= dict.fromkeys(known.keys() - options.keys(), "null")
    words = ["python", "scripts/train.py", *([recipe] if recipe else []), *as_words(dict(sorted(differing.items())))]
    return shlex.join(words)


def curve_of(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The learning curve in the Trainer's log: what was noted first of each epoch."""
    rows: dict[float, dict[str, Any]] = {}
    for entry in history:
        if "epoch" not in entry or "train_runtime" in entry:
            continue
        row = rows.setdefault(round(entry["epoch"], 4), {"epoch": round(entry["epoch"], 4)})
        if math.isfinite(entry.get("loss", math.nan)):  # not after training that diverged
            row.setdefault("loss", float(f"{entry['loss']:.6g}"))
        if "seconds" in entry:
            row.setdefault("seconds", round(entry["seconds"], 2))
        dev = {
            name: entry[f"eval_{name}"] for name in ("precision", "recall", "f1", "accuracy") if f"eval_{name}" in entry
        }
        if dev:
            row.setdefault("dev", rounded(dev))
    return [rows[epoch] for epoch in sorted(rows)]


def config_facts(config: PreTrainedConfig) -> dict[str, Any]:
    """The config of a model without its vocabulary and what only files have."""
    left_out = {"_name_or_path", "transformers_version", "architectures", "auto_map", "char_types", "name_or_path"}

    def cleaned(value: Any) -> Any:
        if isinstance(value, Mapping):
            kept = {str(name): inner for name, inner in value.items() if name not in left_out}
            return {name: inner if name == "id2label" else cleaned(inner) for name, inner in kept.items()}
        return [cleaned(inner) for inner in value] if isinstance(value, (list, tuple)) else _without_folders(value)

    return cleaned(json.loads(json.dumps(config.to_dict(), default=str)))


def hardware_facts(device: torch.device) -> dict[str, Any]:
    """What the run ran on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    return {"device": device.type, "name": name, "cores": cores, "threads": torch.get_num_threads()}


def versions() -> dict[str, str]:
    """The versions of what the run ran with."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    return found | {name: _version_of(name) for name in _LIBRARIES}


def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a package that is on the path and not installed
        return import_module(name).__version__


def rounded(value: Any, digits: int = 4) -> Any:
    """Round every float in nested values."""
    if isinstance(value, Mapping):
        return {str(name): rounded(inner, digits) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(inner, digits) for inner in value]
    return round(float(value), digits) if isinstance(value, float) else value


def _processor() -> str:
    """The model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    return json.loads(json.dumps(value, default=str))


def _without_folders(value: Any) -> Any:
    """A path by its name alone; names of corpora and repositories stay."""
    if isinstance(value, list):
        return [_without_folders(inner) for inner in value]
    if not isinstance(value, str) or not ("/" in value or os.sep in value):
        return value
    return (
        Path(value).name if Path(value).is_absolute() or value.startswith((".", "~")) or Path(value).exists() else value
    )


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every value in nested ones, with its place in words."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}.{name}".lstrip("."))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{index}]")
    else:
        yield place, value


_KEPT_SCORES = ("sentences", "tokens", "entities", "per_type", "per_tag")
_WEIGHTS = "model.safetensors"


class Judged(NamedTuple):
    """What a model said of a split, and its scores.

    Attributes:
        gold: The gold label of each labelled word, by sentence.
        predicted: The predicted ones.
        probabilities: The probability of each predicted label, sentence after sentence. Shape: (words,).
        scores: See `hf_xorner.evaluation.scores.scores_of`.
        seconds: What the predictions took.
    """

    gold: list[list[str]]
    predicted: list[list[str]]
    probabilities: np.ndarray
    scores: dict[str, Any]
    seconds: float


def facts_before(
    trainer: Trainer, corpus: DatasetDict, run: RunArguments, options: dict[str, Any], command: str
) -> Facts:
    """Gather the facts of a run that are known before it trains, so that training is not lost to what they hold.

    Args:
        trainer: Before training.
        corpus: What it is trained and judged on.
        run: What was asked for.
        options: What of that, and of training and config, is not the default; see `options_of`.
        command: See `command_of`.

    Raises:
        TrainingError: If they cannot be written.
    """
    model = trainer.accelerator.unwrap_model(trainer.model)
    facts = Facts(
        recipe=run.recipe,
        command=command,
        options=options,
        config=config_facts(model.config),
        inputs=input_facts(run),
        data=data_facts(run.dataset, corpus),
        curve=[],
        scores={},
        speed={},
        model={"parameters": model.num_parameters(), "file": _WEIGHTS},
        hardware=hardware_facts(trainer.args.device),
        versions=versions(),
        seed=trainer.args.seed,
    )
    try:
        facts.to_json()
    except ValueError as error:
        raise TrainingError(str(error)) from None
    return facts


def leave_facts(trainer: Trainer, corpus: DatasetDict, before: Facts, judged: Mapping[str, Judged]) -> Facts:
    """Write the facts of a run, and the counts of its sentences, into the Trainer's output folder.

    Args:
        trainer: After training, the model saved.
        corpus: What it was trained and judged on.
        before: See `facts_before`.
        judged: The held-out splits by name.

    Raises:
        TrainingError: If they cannot be written.
    """
    folder = Path(trainer.args.output_dir)
    curve = curve_of(trainer.state.log_history)
    known = surfaces_in(corpus[TRAIN]) if judged else set()
    scores, counts = {}, {}
    for name, split in judged.items():
        scores[name], counts[name] = _figures(split, corpus[name]["tokens"], known)
    facts = replace(
        before,
        config=config_facts(trainer.accelerator.unwrap_model(trainer.model).config),
        curve=curve,
        scores=scores,
        speed=_speed(trainer, before.data, curve, judged),
        model={**before.model, **file_fingerprint(folder / _WEIGHTS)},
    )
    try:
        write_whole(folder / COUNTS_FILE, json.dumps(counts, sort_keys=True) + "\n")
        facts.write(folder)
    except OSError as error:
        raise TrainingError(
            f"The facts of the run cannot be written to {folder} ({error.strerror}); resume the run, which writes "
            "them again."
        ) from error
    return facts


def data_facts(source: str, corpus: DatasetDict) -> dict[str, Any]:
    """What a corpus is and holds; see `Facts`."""
    here = Path(source)
    return {
        "source": here.name if here.exists() or here.is_absolute() else source,
        "fingerprint": corpus_fingerprint(corpus),
        "splits": {
            name: {key: found[key] for key in _KEPT_SCORES if key in found}
            for name, found in corpus_statistics(corpus).items()
        },
    }


def input_facts(run: RunArguments) -> dict[str, dict[str, Any]]:
    """What files a run reads besides its corpus; see `Facts`."""
    found: dict[str, dict[str, Any]] = {}
    for option in _INPUTS:
        given = getattr(run, option)
        if given:
            path = Path(os.path.expanduser(given))
            there = path.exists()
            found[option] = {"name": path.name if there else given} | (file_fingerprint(path) if there else {})
    return found


def surfaces_in(split: Dataset) -> set[str]:
    """The distinct surface forms of a split's entities; none where its labels are plain."""
    tag_set = TagSet.of(label_names_of(split, TRAIN))
    found: set[str] = set()
    if tag_set.plain:
        return found
    for batch in flat_batches(split, TRAIN):
        spans = spans_of_ids(batch.ids, batch.lengths, tag_set, "conlleval")
        found.update(surface_forms(spans, batch.tokens.to_pylist()))
    return found


def _figures(judged: Judged, tokens: Any, known: set[str]) -> tuple[dict[str, Any], list[list[int]]]:
    """The scores of a split with what else is cheap to know, and the counts of its sentences."""
    comparison = Comparison.of(judged.gold, judged.predicted)
    counts = comparison.counts_by_sentence()
    if comparison.tag_set.plain:
        return rounded(judged.scores), counts[:, :2].tolist()
    more: dict[str, Any] = {"per_length": per_length(comparison), "confusion": _sparse(confusion(comparison))}
    words = list(chain.from_iterable(tokens))
    if len(words) == len(comparison.gold_ids):
        more["surface"] = surface_scores(comparison, words)
        more["seen"] = seen_partition(comparison, words, known)
    if np.isfinite(judged.probabilities).all():  # training may have diverged, which the facts say in their own words
        confidences = entity_confidences(judged.probabilities, comparison)
        found = calibration(confidences, comparison.correct)
        more["calibration"] = {**found, "bins": [row for row in found["bins"] if row["count"]]}
    return rounded({**judged.scores, **more}), counts.tolist()


def _sparse(found: dict[str, Any]) -> dict[str, Any]:
    """A confusion by the names of types, without the pairs that do not occur: of many types there are few."""
    types, rows = found["types"], found["matrix"]
    matrix = {
        name: {other: count for other, count in zip(types, row, strict=True) if count}
        for name, row in zip(types, rows, strict=True)
    }
    return {**{key: value for key, value in found.items() if key != "types"}, "matrix": matrix}


def _speed(
    trainer: Trainer, data: Mapping[str, Any], curve: list[dict[str, Any]], judged: Mapping[str, Judged]
) -> dict[str, float]:
    """How long training took, over all starts of the run, and how many words a second."""
    seconds = sum(row.get("seconds", 0.0) for row in curve)
    words = data["splits"]["train"]["tokens"] * (trainer.state.epoch or 0)
    found = {"training_seconds": round(seconds, 2)}
    if seconds:
        found["training_tokens_per_second"] = round(words / seconds, 1)
    if judged:
        last = list(judged)[-1]
        if judged[last].seconds:
            found["prediction_tokens_per_second"] = round(data["splits"][last]["tokens"] / judged[last].seconds, 1)
    return found
