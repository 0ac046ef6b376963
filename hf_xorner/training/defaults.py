"""Options that fit the size of the training data, where the user has not given them."""

from __future__ import annotations

from typing import Any

from ..registration import CONFIGS
from .arguments import RunArguments, TaggerTrainingArguments

#: The options that are chosen; facts always contain them, so that their command repeats the run.
CHOSEN = ("per_device_train_batch_size", "num_train_epochs", "casing", "digits", "singleton_dropout")

#: Updates of the weights that a run aims at, within a range of epochs.
_UPDATES = 4000
_FEWEST_EPOCHS, _MOST_EPOCHS = 10, 40


def choose_options(
    run: RunArguments, training: TaggerTrainingArguments, config_fields: dict[str, Any], sentences: int
) -> dict[str, Any]:
    """Set the options in `CHOSEN` that the user has not given, and return them.

    Nothing is chosen for a recipe, for a model that training continues from, and for arguments that are not from
    `parse`.

    Args:
        run: The arguments of the run.
        training: Those of the Trainer; changed.
        config_fields: The given fields of the model's config; changed.
        sentences: The number of sentences in the training data.
    """
    if run.given is None or run.recipe is not None or run.model_name_or_path is not None:
        return {}
    chosen: dict[str, Any] = {}
    if "per_device_train_batch_size" not in run.given:
        chosen["per_device_train_batch_size"] = 8 if sentences < 5000 else 16 if sentences < 10000 else 32
        training.per_device_train_batch_size = chosen["per_device_train_batch_size"]
    if not {"num_train_epochs", "max_steps"} & run.given:
        together = training.train_batch_size * training.world_size * training.gradient_accumulation_steps
        epochs = round(_UPDATES * together / max(sentences, 1))
        chosen["num_train_epochs"] = float(min(max(epochs, _FEWEST_EPOCHS), _MOST_EPOCHS))
        training.num_train_epochs = chosen["num_train_epochs"]
    if run.vectors or run.composed or run.context:
        return chosen
    # Without pretrained vectors, forms of a word share one, and words seen once train that of unknown words.
    for name, value in (("casing", "lower"), ("digits", "zero")):
        if name not in run.given:
            chosen[name] = value
            setattr(run, name, value)
    if "singleton_dropout" not in run.given and not CONFIGS[run.model_type].singleton_dropout:
        chosen["singleton_dropout"] = config_fields["singleton_dropout"] = 0.5
    return chosen
