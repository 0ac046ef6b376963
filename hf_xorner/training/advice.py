"""Advice after a run: the main limits of the model, and what may help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ..evaluation.scores import measure_of
from ..vectors.distill import AUTO, START

#: The best epoch is late if it comes after this share of all epochs, and beats the earlier ones by this many points.
_LATE, _GAIN = 0.9, 1.0
#: A part of the entities lags if its F1 is lower by more than this many points.
_LAG = 15.0
#: A type with fewer entities in the training data is rare.
_RARE = 50

#: What helps with unseen entities: pretrained vectors or a trained start, by docs/few-labels.md.
_VECTORS = (
    "Pretrained vectors help with them: --vectors; or, for names in a language of Europe, a start (on 100 Spanish "
    "sentences, F1 74.1, not 34.5): --model_name_or_path multilingual; its license, CC BY-SA 4.0, may then apply to "
    "your model."
)
_START = (
    "A better start may help, most of all with persons, organisations and locations (on 200 sentences of CoNLL-2003, "
    "F1 83.6, not 71.5): --model_name_or_path english-open; its license, CC BY-SA 4.0, may then apply to your model."
)


def advice(facts: Mapping[str, Any]) -> str:
    """Return a paragraph about the two main limits of a trained model, given its facts; empty if none is known."""
    return " ".join(islice(_limits(facts), 2))


def _limits(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the limits of a model, the most important first."""
    validation, curve = facts["scores"].get("validation", {}), facts["curve"]
    if not validation and not facts["options"].get("train_on_validation"):
        yield (
            "Without validation data, the last epoch was kept, which may not be the best: "
            "add a file dev.txt to the folder of the training data."
        )
    epochs = curve[-1]["epoch"] if curve else 0
    measure = measure_of(validation)
    score = validation.get(measure, 100.0)
    late = _LATE * epochs
    rows = (row for row in curve if "dev" in row)
    best = max(rows, key=lambda row: row["dev"].get(measure, 0.0) - (_GAIN if row["epoch"] > late else 0), default=None)
    if not score or (best and best["epoch"] > late and score < 99):
        steps = facts["options"].get("max_steps")
        more = f"--max_steps {2 * steps}" if steps else f"--num_train_epochs {2 * max(1, round(epochs))}"
        why = "The best epoch was one of the last" if score else "Nothing was found in the validation data"
        yield f"{why}, so longer training may help: {more}."
    seen, unseen = (validation.get("seen", {}).get(name, {}) for name in ("seen", "unseen"))
    options = facts["options"]
    of_package = options.get("vectors") == AUTO or options.get("model_name_or_path") == START
    if _lags(unseen, seen) and (of_package or not facts["inputs"]):
        share = 100 * unseen["support"] / (seen["support"] + unseen["support"])
        yield (
            f"{share:.0f} % of the validation entities do not occur in the training data; their F1 is "
            f"{unseen['f1']:.1f}, that of the others {seen['f1']:.1f}. {_START if of_package else _VECTORS}"
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
