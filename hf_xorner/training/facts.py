"""The facts of a run: what a reader of its model may ask, in one small JSON file beside it."""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from transformers import PreTrainedConfig, Trainer, TrainerCallback

from ..corpora.assemble import TOKENS, TRAIN, corpus_fingerprint, flat_labels, label_names_of, split_fingerprint
from ..corpora.hold_out import HeldOut
from ..corpora.schemes import TagSet
from ..corpora.statistics import corpus_statistics
from ..errors import TrainingError
from ..evaluation.breakdowns import confusion, per_length, seen_partition, surface_forms, surface_scores
from ..evaluation.calibration import calibration, entity_confidences
from ..evaluation.comparison import Comparison
from ..evaluation.spans import spans_of_ids
from ..files import FACTS_FILE, file_fingerprint, write_whole
from ..registration import CONFIGS
from ..vectors.distill import AUTO, installed_encoder
from .arguments import RunArguments, TaggerTrainingArguments, arguments_of, as_words
from .batches import word_counts
from .defaults import CHOSEN
from .model_files import json_object

#: Written beside the facts, for paired tests between runs: of each sentence of a held-out split the number of correct,
#: predicted and gold spans, or of correct and all words where the labels are plain. It contains no word of the corpus.
COUNTS_FILE = "sentence_counts.json"

#: Options that name a file or folder; its content is recorded as a SHA-256.
_INPUTS = ("vectors", "composed", "context", "model_name_or_path")
#: Options that name several of them.
_LISTS = ("teacher", "teacher_text")

#: Options that depend on the machine or the user's account, or only say where files go and what is shown.
_OF_THE_MACHINE = {
    *("output_dir", "data_dir", "logging_dir", "resume_from_checkpoint", "run_name", "project", "recipe", "report_to"),
    *("disable_tqdm", "local_rank", "deepspeed", "overwrite_output_dir", "overwrite", "push_to_hub"),
}
_PREFIXES = ("hub_", "push_to_hub_", "trackio_", "log_level", "ddp_", "fsdp", "dataloader_", "xpu_", "mp_", "tpu_")

#: Larger numbers cannot be computed with.
_LARGEST = 1e300

# The schema of the JSON. An object: the keys with the types of their values; `*` is any key, and `?` marks an optional
# one; other keys may have any value. A list: the type of its items.
# By hand, because huggingface_hub's validate_typed_dict knows no nested objects, refuses other keys and an int where a
# float is declared, and does not say at which place the fault is.
_RATIOS = {"precision": float, "recall": float, "f1": float}
_COUNTED = {**_RATIOS, "support": int}
_COUNTS = {"*": int}
_BIN = {"lower": float, "upper": float, "confidence": float, "accuracy": float, "count": int}
_SCORES = {
    **dict.fromkeys(("precision?", "recall?", "f1?", "accuracy?"), float),
    "per_type?": {"*": _COUNTED},
    "per_length?": {"*": _COUNTED},
    "support?": int,
    "macro?": _RATIOS,
    "surface?": _COUNTED,
    "seen?": {"seen": _COUNTED, "unseen": _COUNTED},
    "calibration?": {"ece": float, "count": int, "bins": [_BIN]},
    "confusion?": {
        "matrix": {"*": _COUNTS},
        **dict.fromkeys(("boundary", "boundary_and_type", "missed", "support", "spurious"), _COUNTS),
    },
}
_SPLIT = {"sentences": int, "tokens": int, "entities?": int, "per_type?": _COUNTS, "per_tag?": _COUNTS}
_MORE_DATA = {"source": str, "fingerprint": str, "sentences": int}
_HOLD_OUT = {"share": float, "by": str, "seed": int, "sentences": int}
_SPEEDS = {"training_tokens_per_second?": float, "prediction_tokens_per_second?": float}
_FACTS = {
    "recipe?": str,
    "command": str,
    "options": dict,
    "config": {"model_type": str, "id2label": {"*": str}},
    "inputs": {"*": {"name": str, "bytes?": int, "sha256?": str}},
    "data": {
        "source": str,
        "fingerprint": str,
        "splits": {"*": _SPLIT},
        "hold_out?": _HOLD_OUT,
        "more_data?": [_MORE_DATA],
    },
    "curve": [{"epoch": float, "loss?": float, "seconds?": float, "dev?": {"*": float}}],
    "scores": {"*": _SCORES},
    "speed": {"training_seconds": float, **_SPEEDS},
    "model": {"parameters": int, "file": str, "bytes": int, "sha256": str},
    "hardware": {"device": str, "name": str, "cores": int, "threads": int},
    "versions": {"*": str},
    "seed": int,
}


@dataclass
class Facts:
    """The options, the data, the learning curve and the results of a run; scores in percent, times in seconds.

    They contain no local paths.

    Args:
        recipe: The name of one of the package's recipes, or of another recipe's file; None without one.
        command: A command line for the same run, with the user's files by their names.
        options: The options of the run, the Trainer and the config that differ from their defaults.
        config: The config of the model, without its vocabulary.
        inputs: For each given one of `vectors`, `composed`, `context` and `model_name_or_path`, and as `teacher 1` and
            so on for options that name several files, its `name` (of a package, with its version) and, of a file or
            folder, its `bytes` and `sha256`.
        data: `source`; `fingerprint`, a SHA-256 of the content; `splits`, by name with `sentences`, `tokens`,
            `entities` and `per_type`, or `per_tag` where the labels are plain; `hold_out`, where validation data were
            held out from the training data, with `share`, `by` ("document" or "sentence"), `seed` and `sentences`;
            `more_data`, where there are further corpora, the `source`, `fingerprint` and number of `sentences` of each:
            the split `train` contains their training sentences, the fingerprint of the corpus does not.
        curve: For each epoch its `epoch`, `loss`, `dev` (scores) and `seconds`, where they were recorded.
        scores: For each held-out split `precision`, `recall`, `f1`, `accuracy`, `support`, `macro`, `per_type`,
            `per_length`, `surface`, `seen`, `calibration` (without its empty bins) and `confusion` (its `matrix` by
            the names of types, without zeros), as in the report; only `accuracy` where the labels are plain. Earlier
            versions did not write the last three.
        speed: `training_seconds`, over all starts of the run; `training_tokens_per_second`;
            `prediction_tokens_per_second`, on the last held-out split.
        model: `parameters`; `file`, `bytes` and `sha256` of the saved weights.
        hardware: `device`, its `name`, and the processor's `cores` and the `threads` used.
        versions: Of python, torch, transformers, datasets and hf_xorner.
        seed: The random seed.
    """

    recipe: str | None
    command: str
    options: dict[str, Any]
    config: dict[str, Any]
    inputs: dict[str, dict[str, Any]]
    data: dict[str, Any]
    curve: list[dict[str, Any]]
    scores: dict[str, dict[str, Any]]
    speed: dict[str, float]
    model: dict[str, Any]
    hardware: dict[str, Any]
    versions: dict[str, str]
    seed: int

    def to_json(self) -> str:
        """Return the facts as JSON with sorted keys.

        Raises:
            ValueError: If a number is not finite, or a string is an absolute path or not UTF-8.
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
        """Read the facts from JSON of this or an earlier version.

        Earlier versions had an empty `usage` as well, and "3+" for the scores of entities of more than three words.

        Raises:
            ValueError: If it does not follow the schema; further keys of inner objects are kept.
        """
        content = json_object(text)
        names = {entry.name for entry in fields(cls)}
        if content.keys() - {"usage"} != names:
            raise ValueError(f"these are no facts of a run, which are {', '.join(sorted(names))}; train it again.")
        _check({name: value for name, value in content.items() if name != "recipe" or value is not None}, _FACTS, "")
        for scores in content["scores"].values():
            if "3+" in scores.get("per_length", {}):
                scores["per_length"]["4 or more"] = scores["per_length"].pop("3+")
        return cls(**{name: content[name] for name in names})

    def write(self, folder: str | Path) -> Path:
        """Write the facts to a folder, atomically."""
        return write_whole(Path(folder) / FACTS_FILE, self.to_json())

    @classmethod
    def read(cls, folder: str | Path) -> Facts:
        """Read the facts from a folder.

        Raises:
            ValueError: If they are missing or damaged.
        """
        path = Path(folder) / FACTS_FILE
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{path}: cannot be read ({error.strerror}); train the model to the end.") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


_IN_WORDS = {str: "a string", int: "an integer", float: "a number", dict: "an object", list: "a list"}


def _check(value: Any, kind: Any, place: str) -> None:
    """Raise a ValueError for a JSON value that does not follow the schema, or a number too large to compute with."""
    plain = type(kind) if isinstance(kind, (dict, list)) else kind
    accepted: Any = (int, float) if plain is float else plain
    if not isinstance(value, accepted) or isinstance(value, bool):
        raise ValueError(f"{place} must be {_IN_WORDS[plain]}, not {value!r:.40}; restore the file that the run wrote.")
    if isinstance(value, (int, float)) and abs(value) >= _LARGEST:
        raise ValueError(f"{place} is too large a number; restore the file that the run wrote.")
    if isinstance(kind, list) and isinstance(value, list):
        for number, inner in enumerate(value):
            _check(inner, kind[0], f"{place}[{number}]")
    if isinstance(kind, dict) and isinstance(value, dict):
        dot = "." if place else ""
        for name in kind:
            if name not in value and name[-1] not in "?*":
                raise ValueError(f"{place}{dot}{name} is missing; restore the file that the run wrote.")
        for name, inner in value.items():
            expected = next((kind[key] for key in (name, f"{name}?", "*") if key in kind), None)
            if expected is not None:
                _check(inner, expected, f"{place}{dot}{name}" if name.isidentifier() else f"{place}[{name!r:.60}]")


class EpochClock(TrainerCallback):
    """Adds the seconds of every epoch's training to its entry in the Trainer's log, which checkpoints contain."""

    def __init__(self) -> None:
        self.begun = self.spent = 0.0

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self.begun = time.monotonic()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop the clock, before the evaluation."""
        self.spent = time.monotonic() - self.begun

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Add the time to the entry that has just been logged."""
        if self.spent and logs and "loss" in logs and state.log_history:
            state.log_history[-1]["seconds"] = round(self.spent, 3)
            self.spent = 0.0


def options_of(
    run: RunArguments, training: TaggerTrainingArguments, config_fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options that differ from their defaults, as JSON values; files by their names, none of the machine's.

    Those that may depend on the size of the training data are always among them, so that a command repeats its run.

    Args:
        run: The arguments of the run.
        training: Those of the Trainer, before it changes them.
        config_fields: The given fields of the model's config.
    """
    defaults = {
        **{entry.name: entry.default for entry in fields(CONFIGS[run.model_type])},
        **(TaggerTrainingArguments(use_cpu=training.use_cpu).to_dict() | {"use_cpu": False}),
        **asdict(RunArguments()),
        "model_type": "",
    }
    given = {**config_fields, **training.to_dict(), **asdict(run)}
    kept: tuple[str, ...] = ()
    if run.model_name_or_path is None:
        kept = CHOSEN
        given.setdefault("singleton_dropout", CONFIGS[run.model_type].singleton_dropout)
    return {
        name: _mapped(_plain(value), _without_folder)
        for name, value in sorted(given.items())
        if name not in _OF_THE_MACHINE and not name.startswith(_PREFIXES)
        if name in kept or _plain(value) != _plain(defaults.get(name))
    }


def command_of(recipe: str | None, options: Mapping[str, Any]) -> str:
    """Return the command line for options: a recipe, and the options that differ from it."""
    known: dict[str, Any] = {}
    if recipe is not None:
        try:
            known = options_of(*arguments_of({}, recipe))
        except ValueError:  # the recipe is a file in another folder
            recipe = None
    differing = {name: value for name, value in options.items() if name not in known or known[name] != value}
    differing |= dict.fromkeys(known.keys() - options.keys(), "null")  # removed on the command line
    words = ["hf-xorner", "train", *([recipe] if recipe else []), *as_words(dict(sorted(differing.items())))]
    return shlex.join(words)


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


def config_facts(config: PreTrainedConfig) -> dict[str, Any]:
    """Return the config of a model without its vocabulary and the entries about its file."""
    left_out = {"_name_or_path", "transformers_version", "architectures", "auto_map", "char_types", "name_or_path"}

    def cleaned(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: cleaned(inner) for name, inner in value.items() if name not in left_out}
        return value

    settings = cleaned(_plain(config.to_dict()))
    return {**_mapped(settings, _without_folder), "id2label": settings["id2label"]}  # a label may look like a path


def hardware_facts(device: torch.device) -> dict[str, Any]:
    """Return the hardware of the run."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    return {"device": device.type, "name": name, "cores": cores, "threads": torch.get_num_threads()}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries of the run."""
    libraries = ("torch", "transformers", "datasets", "hf_xorner")
    found = {name: str(import_module(name).__version__) for name in libraries}
    return {"python": platform.python_version(), **found}


def rounded(value: Any, digits: int = 4) -> Any:
    """Round every float in nested values."""
    return _mapped(value, lambda leaf: round(float(leaf), digits) if isinstance(leaf, float) else leaf)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested values with every leaf changed."""
    if isinstance(value, Mapping):
        return {str(name): _mapped(inner, change) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mapped(inner, change) for inner in value]
    return change(value)


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield every leaf of nested values, with its place."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}.{name}".lstrip("."))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{index}]")
    else:
        yield place, value


def _processor() -> str:
    """Return the model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _plain(value: Any) -> Any:
    """Return a value as it is read from JSON."""
    return json.loads(json.dumps(value, default=str))


def _without_folder(value: Any) -> Any:
    """Return the name of a path; names of corpora and repositories, and other values, stay."""
    if not isinstance(value, str) or not ("/" in value or os.sep in value):
        return value
    path = Path(value)
    return path.name if path.is_absolute() or value.startswith((".", "~")) or path.exists() else value


_KEPT_SCORES = ("sentences", "tokens", "entities", "per_type", "per_tag")
_WEIGHTS = "model.safetensors"


class Judged(NamedTuple):
    """The predictions of a model for a split, and its scores.

    Attributes:
        gold: The gold label of each word, by sentence; ``?`` for a word without label.
        predicted: The predicted ones.
        probabilities: The probability of each predicted label, sentence after sentence. Shape: (words,).
        scores: See `hf_xorner.evaluation.scores.scores_of`.
        seconds: The time for the predictions.
    """

    gold: list[list[str]]
    predicted: list[list[str]]
    probabilities: np.ndarray
    scores: dict[str, Any]
    seconds: float


def facts_before(
    trainer: Trainer,
    corpus: DatasetDict,
    run: RunArguments,
    options: dict[str, Any],
    command: str,
    held_out: HeldOut | None = None,
    more: Sequence[Dataset] = (),
) -> Facts:
    """Return the facts that are known before training, so that one that cannot be written is reported in time.

    Args:
        trainer: The trainer before training.
        corpus: The splits.
        run: The arguments of the run.
        options: See `options_of`.
        command: See `command_of`.
        held_out: What was held out from the training data for validation.
        more: The training sentences of each of `more_data`, which are the last of the split `train`.

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
        data=data_facts(run.dataset, corpus, held_out, list(zip(run.more_data, more, strict=True))),
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
    """Write the facts of a run and the counts of its sentences to the Trainer's output folder.

    Args:
        trainer: The trainer after training, with the model saved.
        corpus: The splits.
        before: See `facts_before`.
        judged: The predictions for the held-out splits, by name.

    Raises:
        TrainingError: If they cannot be written.
    """
    folder = Path(trainer.args.output_dir)
    curve = curve_of(trainer.state.log_history)
    known = surfaces_in(corpus[TRAIN]) if judged else set()
    scores, counts = {}, {}
    for name, split in judged.items():
        scores[name], counts[name] = _figures(split, corpus[name]["tokens"], known)
    model = trainer.accelerator.unwrap_model(trainer.model)
    facts = replace(
        before,
        config=config_facts(model.config),
        curve=curve,
        scores=scores,
        speed=_speed(trainer, before.data, curve, judged),
        model={**before.model, "parameters": model.num_parameters(), **file_fingerprint(folder / _WEIGHTS)},
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


def data_facts(
    source: str,
    corpus: DatasetDict,
    held_out: HeldOut | None = None,
    more: Sequence[tuple[str, Dataset]] = (),
) -> dict[str, Any]:
    """Return the entry `data` of `Facts`; `more` are names and training sentences of further corpora."""
    own = corpus
    if more:
        sentences = len(corpus[TRAIN]) - sum(len(train) for _, train in more)
        own = DatasetDict({**corpus, TRAIN: corpus[TRAIN].select(range(sentences))})
    further = [
        {"source": _name_of(name), "fingerprint": split_fingerprint(train, TRAIN), "sentences": len(train)}
        for name, train in more
    ]
    return {
        **({"hold_out": held_out._asdict()} if held_out else {}),
        **({"more_data": further} if further else {}),
        "source": _name_of(source),
        "fingerprint": corpus_fingerprint(own),
        "splits": {
            name: {key: found[key] for key in _KEPT_SCORES if key in found}
            for name, found in corpus_statistics(corpus).items()
        },
    }


def _name_of(source: str) -> str:
    here = Path(source)
    return here.name if here.exists() or here.is_absolute() else source


def input_facts(run: RunArguments) -> dict[str, dict[str, Any]]:
    """Return the entry `inputs` of `Facts`: the files that a run reads besides its corpus."""
    found: dict[str, dict[str, Any]] = {}
    several = {f"{option} {n}": one for option in _LISTS for n, one in enumerate(getattr(run, option), 1)}
    for option, given in ({option: getattr(run, option) for option in _INPUTS} | several).items():
        if given:
            path, name = Path(os.path.expanduser(given)), given
            if option == "vectors" and given == AUTO:
                name, path = installed_encoder()
            elif path.exists():
                name = path.name
            found[option] = {"name": name} | (file_fingerprint(path) if path.exists() else {})
    return found


def surfaces_in(split: Dataset) -> set[str]:
    """Return the surface forms of a split's entities; none where its labels are plain."""
    tag_set = TagSet.of(label_names_of(split, TRAIN))
    if tag_set.plain:
        return set()
    ids, lengths = flat_labels(split)
    spans = spans_of_ids(np.maximum(ids, 0), lengths, tag_set, "conlleval")
    return set(surface_forms(spans, list(chain.from_iterable(split[TOKENS]))))


def _figures(judged: Judged, tokens: Any, known: set[str]) -> tuple[dict[str, Any], list[list[int]]]:
    """Return the entry of a split in `scores`, and the counts of its sentences."""
    comparison = Comparison.of(judged.gold, judged.predicted)
    counts = comparison.counts_by_sentence()
    if comparison.tag_set.plain:
        return rounded(judged.scores), counts[:, :2].tolist()
    more: dict[str, Any] = {"per_length": per_length(comparison), "confusion": _sparse(confusion(comparison))}
    words = list(chain.from_iterable(tokens))
    if len(words) == len(comparison.gold_ids):
        more["surface"] = surface_scores(comparison, words)
        more["seen"] = seen_partition(comparison, words, known)
    if np.isfinite(judged.probabilities).all():  # not after training that diverged
        confidences = entity_confidences(judged.probabilities, comparison)
        found = calibration(confidences, comparison.correct)
        more["calibration"] = {**found, "bins": [row for row in found["bins"] if row["count"]]}
    return rounded({**judged.scores, **more}), counts.tolist()


def _sparse(found: dict[str, Any]) -> dict[str, Any]:
    """Return a confusion matrix by the names of types, without its zeros."""
    types, rows = found["types"], found["matrix"]
    matrix = {
        name: {other: count for other, count in zip(types, row, strict=True) if count}
        for name, row in zip(types, rows, strict=True)
    }
    return {**{key: value for key, value in found.items() if key != "types"}, "matrix": matrix}


def _speed(
    trainer: Trainer, data: Mapping[str, Any], curve: list[dict[str, Any]], judged: Mapping[str, Judged]
) -> dict[str, float]:
    """Return the entry `speed` of `Facts`."""
    seconds = sum(row.get("seconds", 0.0) for row in curve)
    words = int(word_counts(trainer.train_dataset, TOKENS).sum()) * (trainer.state.epoch or 0)
    found = {"training_seconds": round(seconds, 2)}
    if seconds:
        found["training_tokens_per_second"] = round(words / seconds, 1)
    if judged:
        last = list(judged)[-1]
        if judged[last].seconds:
            found["prediction_tokens_per_second"] = round(data["splits"][last]["tokens"] / judged[last].seconds, 1)
    return found
