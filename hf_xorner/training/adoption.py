"""What a run takes over from the model that it goes on from, and what it may not ask of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..loading import load_config, load_tokenizer
from ..models.configuration_tagger import TaggerConfig

if TYPE_CHECKING:
    from .arguments import RunArguments

EVERYTHING, HEAD = "everything", "head"


def adopt(run: RunArguments, said: Collection[str] | None = None) -> None:
    """Settle what a run takes over from the model that it goes on from; options that say otherwise are refused.

    Args:
        run: What is trained on what; its options are set.
        said: The options that were given. By default, those that differ from their defaults.
    """
    if said is None:
        said = {entry.name for entry in fields(run) if getattr(run, entry.name) != _default(entry)}
    source = run.model_name_or_path
    if source is None:
        for option in ("train_only", "keep_labels"):
            if option in said:
                raise ValueError(
                    f"{option} is about a model that training goes on from; name it by model_name_or_path."
                )
        return
    if run.train_only not in (EVERYTHING, HEAD):
        raise ValueError(f"train_only={run.train_only!r} is unknown; choose {EVERYTHING!r} or {HEAD!r}.")
    for option in ("context", "composed"):
        if option in said:
            raise ValueError(
                f"{option} cannot be given to a model that is there already; leave it out, or train afresh."
            )
    config, tokenizer = load_config(source), load_tokenizer(source)
    own = {
        "model_type": config.model_type,
        "casing": tokenizer.init_kwargs["casing"],
        "digits": tokenizer.init_kwargs["digits"],
        "fallback": list(tokenizer.init_kwargs["fallback"]),
        "max_word_pieces": tokenizer.max_word_pieces,
        "vectors_as": use_of_vectors(config) or run.vectors_as,
    }
    for option, value in own.items():
        if option in said:
            check_same(option, getattr(run, option), value)
        setattr(run, option, value)


def check_folder(source: str, output_dir: str | None) -> None:
    """Refuse to write over the model that training goes on from."""
    output, model = Path(output_dir or "").resolve(), Path(source).resolve()
    # Of its own checkpoints, a run deletes the older ones.
    own_checkpoint = output == model.parent and model.name.startswith("checkpoint-")
    if model.exists() and (output == model or own_checkpoint):
        raise ValueError(f"output_dir={output_dir!r} holds the model that training goes on from; name another folder.")


def use_of_vectors(config: TaggerConfig) -> str | None:
    """What a model has pretrained vectors of words for, as `vectors_as` names it; None if it has none."""
    if config.pretrained_words:
        return "tuned"
    if config.static_dim:
        return "beside" if config.word_dim else "frozen"
    return None


def check_same(option: str, value: Any, own: Any) -> None:
    """Refuse an option that would make another model than there is."""
    if (list(value) if isinstance(value, tuple) else value) != (list(own) if isinstance(own, tuple) else own):
        raise ValueError(
            f"{option}={value!r} would make another model, whose {option} is {own!r}; leave the option out, or train "
            "afresh without model_name_or_path."
        )


def _default(entry: Any) -> Any:
    return entry.default if entry.default_factory is MISSING else entry.default_factory()
