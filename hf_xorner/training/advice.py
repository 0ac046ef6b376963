"""Advice after a run: what limits the model most, and the command to try next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..vectors.distill import AUTO
from .facts import Facts, command_of

#: From this share of the epochs on, the best epoch is a late one.
_LATE = 0.9
#: Points of F1 by which one part lags behind another.
_LAG = 15.0
#: A type with fewer entities in the training data is rare.
_RARE = 50
_SENTENCES = 2


def advice(facts: Facts) -> str:
    """Return a paragraph about the largest limits of a trained model; empty if none is known."""
    limits = _limits(facts, facts.scores.get("validation", {}))
    return " ".join(sentence for sentence, _ in zip(limits, range(_SENTENCES), strict=False))


def _limits(facts: Facts, validation: Mapping[str, Any]) -> Iterator[str]:
    """Yield what limits a model, the most important first."""
    if not validation:
        yield (
            "Without validation data the last epoch was kept, which may not be the best: "
            "add a file dev.txt beside the training data."
        )
    epochs = facts.curve[-1]["epoch"] if facts.curve else 0
    score = validation.get("f1", validation.get("accuracy", 100.0))
    if _best_epoch(facts) > _LATE * epochs and score < 99:
        more = _command(facts, num_train_epochs=float(2 * round(epochs)))
        yield f"The best epoch was one of the last, so more epochs may help: {more}"
    seen, unseen = (validation.get("seen", {}).get(name, {}) for name in ("seen", "unseen"))
    if _lags(unseen, seen) and not facts.inputs:
        share = 100 * unseen["support"] / (seen["support"] + unseen["support"])
        yield (
            f"{share:.0f} % of the validation entities do not occur in the training data; their F1 is "
            f"{unseen['f1']:.1f}, that of the others {seen['f1']:.1f}. Pretrained vectors help with them, for English "
            f"those of pip install 'hf_xorner[vectors]': {_command(facts, vectors=AUTO)}"
        )
    examples = facts.data["splits"].get("train", {}).get("per_type", {})
    lagging = [name for name, scores in validation.get("per_type", {}).items() if _lags(scores, validation)]
    rarest = min(lagging, key=lambda name: examples.get(name, 0), default=None)
    if rarest is not None and examples.get(rarest, 0) < _RARE:
        yield (
            f"{rarest} has {examples.get(rarest, 0)} examples in the training data and F1 "
            f"{validation['per_type'][rarest]['f1']:.1f}: annotate more of them."
        )


def _best_epoch(facts: Facts) -> float:
    """Return the first epoch with the best validation score; 0 without any."""
    scores = [
        (row["dev"].get("f1", row["dev"].get("accuracy", 0.0)), row["epoch"]) for row in facts.curve if "dev" in row
    ]
    return max(scores, key=lambda score: score[0], default=(0.0, 0.0))[1]


def _lags(part: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    """Return whether both have entities, and the F1 of the part is far below."""
    return bool(part.get("support") and whole.get("support")) and part["f1"] < whole["f1"] - _LAG


def _command(facts: Facts, **options: Any) -> str:
    """Return the command of the run with other options."""
    return command_of(facts.recipe, {**facts.options, **options})
