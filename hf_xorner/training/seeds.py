"""A run for each of several seeds, all that is random being drawn anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from .arguments import RunArguments, TaggerTrainingArguments


def check_seeds(run: RunArguments, training: TaggerTrainingArguments) -> None:
    """Refuse what cannot be told to several runs at once.

    Raises:
        ValueError: If that was asked for.
    """
    if not run.seeds:
        return
    if len(set(run.seeds)) < len(run.seeds):
        raise ValueError(f"seeds={run.seeds} has one of them twice; a run of the same seed has the same scores.")
    if training.push_to_hub:
        raise ValueError("push_to_hub publishes one model; train with seeds, then publish one by scripts/publish.py.")
    if str(training.resume_from_checkpoint).casefold() not in ("none", "true", "false"):
        raise ValueError(
            "resume_from_checkpoint names one run's checkpoint; with seeds say true, for the newest of each."
        )


def of_each_seed(
    run: RunArguments, training: TaggerTrainingArguments
) -> Iterator[tuple[RunArguments, TaggerTrainingArguments]]:
    """Tell each seed's run its seed, and a folder below the one of all; without seeds there is but the run itself."""
    for seed in run.seeds:
        one, settings = copy(run), copy(training)
        one.seeds, settings.seed = [], seed
        settings.output_dir = folder_of(str(training.output_dir), seed)
        yield one, settings
    if not run.seeds:
        yield run, training


def folder_of(folder: str, seed: int) -> str:
    """Where the run of a seed goes, below the folder of all."""
    return str(Path(folder) / f"seed-{seed}")


def seed_table(scores: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> str:
    """Lay out the scores of several seeds, in percent, with their mean and sample deviation.

    Args:
        scores: What a run returns, by its seed.
    """
    width = max(10, *(len(str(seed)) + 2 for seed in scores))
    lines = [f"{'seed':<22}{''.join(f'{seed:>{width}}' for seed in scores)}{'mean':>10}{'deviation':>12}"]
    for split, first in next(iter(scores.values())).items():
        measure = "f1" if "f1" in first else "accuracy"
        values = [score[split][measure] for score in scores.values()]
        name = f"{split:<12}{'F1' if measure == 'f1' else measure:<10}"
        spread = f"{stdev(values):>12.2f}" if len(values) > 1 else ""
        lines.append(f"{name}{''.join(f'{value:>{width}.2f}' for value in values)}{mean(values):>10.2f}{spread}")
    return "\n".join(lines)


def best_seed(scores: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> int:
    """The seed that scores highest on the validation data, the first if there are none."""
    validation = {seed: splits.get("validation", {}) for seed, splits in scores.items()}
    return max(scores, key=lambda seed: validation[seed].get("f1", validation[seed].get("accuracy", 0.0)))
