"""Advice after a run: the main limits of the model, and a command to try next."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from ..vectors.distill import AUTO
from .arguments import as_words

#: The best epoch is late if it comes after this share of all epochs.
_LATE = 0.9
#: A part of the entities lags if its F1 is lower by more than this many points.
_LAG = 15.0
#: A type with fewer entities in the training data is rare.
_RARE = 50


def advice(facts: Mapping[str, Any], words: Sequence[str], folder: str) -> str:
    """Return a paragraph about the two main limits of a trained model; empty if none is known.

    Args:
        facts: The facts of the run.
        words: The words of the command line after ``hf-xorner train``; suggested commands repeat them.
        folder: The output folder of the run; suggested commands name a new one.
    """
    new_folder = next(name for number in count(2) if not Path(name := f"{Path(folder)}-{number}").exists())
    return " ".join(islice(_limits(facts, partial(_command, words, output_dir=new_folder)), 2))


def _limits(facts: Mapping[str, Any], command: Callable[..., str]) -> Iterator[str]:
    """Yield the limits of a model, the most important first; `command` returns a command line with other options."""
    validation, curve = facts["scores"].get("validation", {}), facts["curve"]
    if not validation:
        yield (
            "Without validation data, the last epoch was kept, which may not be the best: "
            "add a file dev.txt to the folder of the training data."
        )
    epochs = curve[-1]["epoch"] if curve else 0
    measure = "f1" if "f1" in validation else "accuracy"
    score = validation.get(measure, 100.0)
    best = max((row for row in curve if "dev" in row), key=lambda row: row["dev"].get(measure, 0.0), default=None)
    if not score or (best and best["epoch"] > _LATE * epochs and score < 99):
        steps = facts["options"].get("max_steps")
        more = {"max_steps": 2 * steps} if steps else {"num_train_epochs": 2 * max(1, round(epochs))}
        unit = "steps" if steps else "epochs"
        why = "The best epoch was one of the last" if score else "Nothing was found in the validation data"
        yield f"{why}, so more {unit} may help: {command(**more)}"
    seen, unseen = (validation.get("seen", {}).get(name, {}) for name in ("seen", "unseen"))
    if _lags(unseen, seen) and not facts["inputs"]:
        share = 100 * unseen["support"] / (seen["support"] + unseen["support"])
        yield (
            f"{share:.0f} % of the validation entities do not occur in the training data; their F1 is "
            f"{unseen['f1']:.1f}, that of the others {seen['f1']:.1f}. Pretrained vectors help with them, for English "
            f"those from pip install 'hf_xorner[vectors]': {command(vectors=AUTO)}"
        )
    examples = facts["data"]["splits"]["train"].get("per_type", {})
    lagging = [name for name, scores in validation.get("per_type", {}).items() if _lags(scores, validation)]
    rarest = min(lagging, key=lambda name: examples.get(name, 0), default=None)
    if rarest is not None and examples.get(rarest, 0) < _RARE:
        yield (
            f"{rarest} has {examples.get(rarest, 0)} examples in the training data and F1 "
            f"{validation['per_type'][rarest]['f1']:.1f}: annotate more of them."
        )


def _lags(part: Mapping[str, Any], total: Mapping[str, Any]) -> bool:
    """Return True if both have entities and the F1 of the part is much lower than the total."""
    return bool(part.get("support") and total.get("support")) and part["f1"] < total["f1"] - _LAG


def _command(words: Sequence[str], **options: Any) -> str:
    """Return the command line of a new run in which some options have other values."""
    left_out = {*options, "overwrite", "resume_from_checkpoint"}
    unchanged: list[str] = []
    replaced = False
    for word in words:
        if word.startswith("--"):
            replaced = word.removeprefix("--").partition("=")[0] in left_out
        if not replaced:
            unchanged.append(word)
    return shlex.join(["hf-xorner", "train", *unchanged, *as_words(options)])
