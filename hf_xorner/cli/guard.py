"""Regression guard of `hf-xorner benchmark --guard`: scores, memory and speed ratios beside stored bounds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

from ..training import parse, prepare

#: What can be compared. Ratios of speed need a quiet machine.
GUARDED = ("scores", "memory", "speed")


def read_bounds() -> dict[str, Any]:
    """Return the stored bounds: the least scores and speed ratios, and the most memory in MB."""
    return json.loads((files(__package__) / "bounds.json").read_text(encoding="utf-8"))


def test_score(model_type: str, epochs: int) -> float:
    """Train a model on the XOR corpus on the CPU with seed 42, and return its test F1 in percent."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--dataset", "xor", "--model_type", model_type, "--num_train_epochs", str(epochs), "--seed", "42"]
        words += ["--output_dir", folder, "--use_cpu", "true", "--disable_tqdm", "true"]
        ready = prepare(*parse(words))
        scores = ready.train()
        ready.leave()
    return scores["test"]["f1"]


def compare(
    kinds: Iterable[str],
    bounds: Mapping[str, Any],
    memory_of: Callable[[str], float],
    ratios_of: Callable[[list[str]], Mapping[str, Mapping[str, float]]],
) -> Iterator[tuple[str, float, float, bool]]:
    """Yield each figure that is guarded: its name, the figure, its bound, and whether it is within.

    Args:
        kinds: Some of `GUARDED`.
        bounds: See `read_bounds`.
        memory_of: Returns the peak memory of an architecture in MB.
        ratios_of: Returns the speeds of architectures as shares of the floors.
    """
    if "scores" in kinds:
        for model_type, entry in bounds["scores"].items():
            score = test_score(model_type, entry["epochs"])
            yield f"test F1 of {model_type} after {entry['epochs']} epochs", score, entry["f1"], score >= entry["f1"]
    if "memory" in kinds:
        for model_type, most in bounds["memory"].items():
            peak = memory_of(model_type)
            yield f"peak memory of {model_type} in MB", peak, most, peak <= most
    if "speed" in kinds:
        measured = ratios_of(list(bounds["speed"]))
        for model_type, entry in bounds["speed"].items():
            for kind, least in entry.items():
                ratio = measured[model_type][kind]
                yield f"{kind} of {model_type} as a share of the floor", ratio, least, ratio >= least
