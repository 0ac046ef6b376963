"""What a training run can be told, on the command line or in a YAML file of the same names."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from enum import Enum
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from transformers import HfArgumentParser, PreTrainedConfig, SchedulerType, TrainingArguments
from transformers.trainer_utils import IntervalStrategy, SaveStrategy
from transformers.training_args import OptimizerNames

from ..corpora import Reading
from ..loading import load_config, load_tokenizer
from ..models.configuration_tagger import TaggerConfig
from ..registration import CONFIGS
from .recipes import read_recipe, yaml_value

OPTIMIZERS = ("nadam", "sgd")
VECTOR_USES = ("frozen", "tuned", "beside")

# Weights are 32-bit floats, which end at 3.4e38.
_COUNT, _RATE, _SHARE = (Integral, 1, 2**31), (Real, 0, 1e38), (Real, 0, 1)
_COUNT_OR_NONE, _LENGTH, _SEED = (Integral, 0, 2**31), (Real, 1e-6, 2**31), (Integral, 0, 2**32)

#: The type of a number, the least that an option takes, and the first that is too much.
_NUMBERS: dict[str, tuple[Any, float, float]] = {
    "per_device_train_batch_size": _COUNT,
    "per_device_eval_batch_size": _COUNT,
    "gradient_accumulation_steps": _COUNT,
    "eval_accumulation_steps": _COUNT,
    "num_train_epochs": _LENGTH,
    "max_steps": (Integral, -1, 2**31),
    "eval_steps": _LENGTH,
    "save_steps": _LENGTH,
    "logging_steps": _LENGTH,
    "save_total_limit": _COUNT_OR_NONE,
    "early_stopping": _COUNT_OR_NONE,
    "eval_delay": _RATE,
    "learning_rate": _RATE,
    "context_learning_rate": _RATE,
    "epoch_decay": _RATE,
    "warmup_steps": _RATE,
    "weight_decay": _RATE,
    "momentum": _SHARE,
    "adam_beta1": _SHARE,
    "adam_beta2": _SHARE,
    "adam_epsilon": _RATE,
    "max_grad_norm": _RATE,
    "label_smoothing_factor": _SHARE,
    "neftune_noise_alpha": _RATE,
    "torch_empty_cache_steps": _COUNT,
    "dataloader_num_workers": (Integral, 0, 1024),
    "dataloader_prefetch_factor": _COUNT,
    "ddp_bucket_cap_mb": _COUNT,
    "ddp_timeout": _COUNT,
    "seed": _SEED,
    "seeds": _SEED,
    "data_seed": _SEED,
    "min_count": _COUNT,
    "most_frequent_vectors": _COUNT,
    "max_word_pieces": _COUNT_OR_NONE,
    "average_epochs": _COUNT_OR_NONE,
}

_CHOICES: dict[str, type[Enum]] = {
    "eval_strategy": IntervalStrategy,
    "save_strategy": SaveStrategy,
    "logging_strategy": IntervalStrategy,
    "lr_scheduler_type": SchedulerType,
    "optim": OptimizerNames,
}

#: Fields of a config that follow from the training data, and from the encoder.
DERIVED = {
    *("vocab_size", "pad_token_id", "trained_vocab_size", "first_singleton_id"),
    *("char_vocab_size", "char_types", "piece_vocab_size", "context_encoder"),
}

#: Options of the Trainer with which a tagger could not be scored, by the value that they must have.
_NEEDED_FOR_SCORES = {
    "prediction_loss_only": False,
    "eval_do_concat_batches": True,
    "batch_eval_metrics": False,
    "dataloader_drop_last": False,
}


@dataclass
class RunArguments(Reading):
    """What is trained on what, and how that is read."""

    model_type: str = field(
        default="cross-bilstm-cnn",
        metadata={"help": f"Architecture: {', '.join(CONFIGS)}. Every field of its config is an option too."},
    )
    model_name_or_path: str | None = field(
        default=None,
        metadata={
            "help": "Go on from a model of this package, a folder or owner/name on the Hub, whose architecture and "
            "policies are then kept."
        },
    )
    train_only: str = field(
        default="everything",
        metadata={"help": 'Of such a model, train "everything", or the "head" behind the encoder.'},
    )
    keep_labels: bool = field(
        default=False, metadata={"help": "Keep the labels of such a model that the data lack; else they are dropped."}
    )
    dataset: str = field(
        default="xor",
        metadata={"help": "A corpus by name (xor, wnut17, conll2003, ontonotes5), a file or folder, or a Hub id."},
    )
    data_dir: str | None = field(default=None, metadata={"help": "Where the files of a named corpus lie."})
    min_count: int = field(default=1, metadata={"help": "Words seen less often in training stay unknown."})
    casing: str = field(default="keep", metadata={"help": '"keep", or "lower" to look words up in lower case.'})
    digits: str = field(default="keep", metadata={"help": '"keep", or "zero" to read every digit as 0.'})
    fallback: list[str] = field(
        default_factory=list,
        metadata={"help": "Further forms to look a word up by: lower, zero, lower_zero, in the order given."},
    )
    vectors: str | None = field(
        default=None, metadata={"help": "Pretrained word vectors: a file of any format, or owner/name:file on the Hub."}
    )
    vectors_as: str = field(
        default="frozen",
        metadata={
            "help": '"frozen": the only vectors of words, never changed (li2020). "tuned": what training starts from '
            '(lample2016, ma2016, chen2019). "beside": frozen, beside trained ones of word_dim.'
        },
    )
    most_frequent_vectors: int | None = field(
        default=None, metadata={"help": "Keep the first vectors of the file, where the frequent words stand."}
    )
    composed: str | None = field(
        default=None,
        metadata={
            "help": "Vectors of pieces, of which any word is composed: a folder that vectors.py distill wrote, or "
            "owner/name:composed.safetensors on the Hub. In place of trained vectors, unless word_dim is given."
        },
    )
    average_epochs: int = field(
        default=0,
        metadata={
            "help": "At the end, average the weights of so many last epochs too, and keep what scores higher on the "
            "validation data: that, or the best epoch."
        },
    )
    context: str | None = field(
        default=None,
        metadata={
            "help": "A pretrained encoder, a folder or owner/name on the Hub, whose states are features of the words."
        },
    )
    max_word_pieces: int = field(default=12, metadata={"help": "Pieces of a word that an encoder's features look at."})
    seeds: list[int] = field(
        default_factory=list,
        metadata={"help": "In place of seed: train once for each of these, into folders seed-N below output_dir."},
    )
    # The name of the recipe that `parse` was given.
    recipe: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_numbers(self)
        for name in ("dataset", "data_dir", "model_name_or_path", "vectors", "composed", "context"):
            if getattr(self, name) == "":
                raise ValueError(f"{name} is empty; name something, or leave the option out.")


@dataclass
class TaggerTrainingArguments(TrainingArguments):
    """The Trainer's arguments with defaults for taggers: li2020's batch, no clipping, the best epoch kept."""

    output_dir: str | None = field(
        default=None, metadata={"help": "Where model and checkpoints go; train.py: runs/DATASET-MODEL_TYPE."}
    )
    num_train_epochs: float = field(default=10.0, metadata={"help": "Passes over the training data."})
    per_device_train_batch_size: int = field(default=32, metadata={"help": "Sentences of a batch."})
    per_device_eval_batch_size: int = field(default=64, metadata={"help": "Sentences of a batch in evaluation."})
    # li2020: 1e-3 over 400 epochs and more. On the XOR corpus, twice that learns in half the epochs.
    learning_rate: float = field(default=2e-3, metadata={"help": "Learning rate."})
    context_learning_rate: float = field(
        default=3e-5, metadata={"help": "Learning rate of an encoder that is trained along (context_frozen false)."}
    )
    lr_scheduler_type: str = field(default="constant", metadata={"help": "Schedule of the learning rate."})
    epoch_decay: float | None = field(
        default=None,
        metadata={
            "help": "ρ of a learning rate η0 / (1 + ρ·t) after t epochs: 0.05 (ma2016), 0.02 (chen2019), 0.08 "
            "(lample2016's Stack-LSTM)."
        },
    )
    optimizer: str | None = field(
        default=None,
        metadata={"help": '"nadam" (li2020), "sgd" (lample2016, ma2016, chen2019), or what optim says.'},
    )
    momentum: float = field(default=0.0, metadata={"help": "Momentum of sgd: 0.9 (ma2016, chen2019)."})
    early_stopping: int = field(
        default=0,
        metadata={"help": "Evaluations without a better score, one an epoch, after which training ends; 0: never."},
    )
    max_grad_norm: float = field(default=0.0, metadata={"help": "Clip gradients to this norm; 0 leaves them alone."})
    eval_strategy: str = field(default="epoch", metadata={"help": "When to score the validation data."})
    save_strategy: str = field(default="epoch", metadata={"help": "When to write a checkpoint."})
    save_total_limit: int | None = field(default=1, metadata={"help": "Checkpoints kept besides the best."})
    logging_strategy: str = field(default="epoch", metadata={"help": "When to report the loss."})
    load_best_model_at_end: bool = field(default=True, metadata={"help": "Return to the best epoch at the end."})
    restore_callback_states_from_checkpoint: bool = field(
        default=True, metadata={"help": "Resume what callbacks had counted, as for stopping early."}
    )
    # The collator reads words, which are no argument of the model.
    remove_unused_columns: bool = field(default=False, metadata={"help": "Leave this to the collator."})
    # None comes first, as in the class above: HfArgumentParser takes the wrong one of the others otherwise.
    report_to: None | str | list[str] = field(  # noqa: RUF036
        default="none", metadata={"help": "Where to report to."}
    )

    def __post_init__(self) -> None:
        """Refuse what does not go together; pin memory only where there is a device to copy it to."""
        if self.output_dir == "":
            raise ValueError("output_dir is empty; name a folder.")
        _check_numbers(self)
        for name, needed in _NEEDED_FOR_SCORES.items():
            if getattr(self, name) != needed:
                raise ValueError(f"{name}={not needed} would leave out what the scores are computed from.")
        for name, kind in _CHOICES.items():
            choices = [choice.value for choice in kind]
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r} is unknown; choose one of {', '.join(choices)}.")
        if self.optim_args and not all("=" in part for part in self.optim_args.split(",")):
            raise ValueError(f"optim_args={self.optim_args!r} must be written as name=value, separated by commas.")
        if self.label_names not in (None, ["labels"]):
            raise ValueError(f"label_names={self.label_names} must be labels, which is the name here; leave it out.")
        processes = int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1
        # Untold, the Trainer takes several processes without a GPU for as many runs, which would share a folder.
        if processes > 1 and not torch.accelerator.is_available():
            self.use_cpu = True
        super().__post_init__()
        if processes > 1 and self.world_size == 1:
            raise ValueError(
                f"{processes} processes were started, and the Trainer sees one alone: each would train alone, "
                "into the same folder. Add --use_cpu true, or start one process."
            )
        self._check_optimizer()
        if self.early_stopping and self.eval_strategy == "no":
            raise ValueError("early_stopping waits for evaluations and eval_strategy is no; set it to epoch.")
        if self.device.type != "cuda":
            self.dataloader_pin_memory = False

    def _check_optimizer(self) -> None:
        if self.optimizer not in (None, *OPTIMIZERS):
            raise ValueError(f"optimizer={self.optimizer!r} is unknown; choose one of {', '.join(OPTIMIZERS)}.")
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum={self.momentum} belongs to sgd; add optimizer=sgd, or leave it out.")
        if self.epoch_decay is not None and self.lr_scheduler_type != "constant":
            raise ValueError("epoch_decay is a schedule of its own; leave lr_scheduler_type at constant beside it.")


def _check_numbers(options: Any) -> None:
    """Refuse numbers that an option does not take."""
    for entry in fields(options):
        if entry.name not in _NUMBERS:
            continue
        kind, least, limit = _NUMBERS[entry.name]
        given = getattr(options, entry.name)
        values: list[Any] = given if entry.name == "seeds" else [] if given is None else [given]
        for value in values:
            if not isinstance(value, kind) or not least <= value < limit:
                whole = "whole " if kind is Integral else ""
                raise ValueError(f"{entry.name}={value!r} must be a {whole}number from {least} up, and below {limit}.")


class _Parser(HfArgumentParser):
    """A parser whose errors are one sentence, without the hundreds of options."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; --help lists all options.")


def parse(argv: Sequence[str] | None = None) -> tuple[RunArguments, TaggerTrainingArguments, dict[str, Any]]:
    """Read `[RECIPE] [--option value …]`; options on the command line win over those of the recipe.

    A recipe is one of the package's by its name, such as li2020/table1/cross, or a YAML file by its path.
    `--option null` takes an option of the recipe back.

    Returns:
        What to run, how to train, and the fields of the model's config.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    source = "the command line"
    recipe = None
    if words and not words[0].startswith("-"):
        source = words.pop(0)
        recipe = read_recipe(source)
        kept, words = _taken_back(recipe.options, words)
        words = [*as_words(kept), *words]
    # The Trainer's arguments are many, so both kinds share one help text; but what is trained names its folder.
    _Parser((RunArguments, TaggerTrainingArguments), allow_abbrev=False).parse_known_args(words)
    (run, rest) = _Parser(RunArguments, allow_abbrev=False, add_help=False).parse_args_into_dataclasses(
        words, return_remaining_strings=True
    )
    run.recipe = recipe.name if recipe else None
    said = {word.removeprefix("--").partition("=")[0].replace("-", "_") for word in words if word[:2] == "--"}
    adopt(run, said)
    if {"seed", "seeds"} <= said:
        raise ValueError("seed and seeds are both given; leave one of them out.")
    if run.vectors_as not in VECTOR_USES:
        raise ValueError(f"vectors_as={run.vectors_as!r} is unknown; choose one of {', '.join(VECTOR_USES)}.")
    if run.model_type not in CONFIGS:
        raise ValueError(f"model_type={run.model_type!r} is unknown; choose one of {', '.join(CONFIGS)}.")
    folder = ["--output_dir", str(Path("runs") / f"{Path(run.dataset).name}-{run.model_type}")]
    try:
        (training, rest) = _Parser(TaggerTrainingArguments, allow_abbrev=False).parse_args_into_dataclasses(
            [*folder, *rest], return_remaining_strings=True
        )
    # What the Trainer's arguments raise for a value has no common type, and may have several lines.
    except Exception as error:
        raise ValueError(" ".join(str(error).split())) from error
    return run, training, _config_fields(CONFIGS[run.model_type], rest, source)


def _taken_back(options: dict[str, Any], words: list[str]) -> tuple[dict[str, Any], list[str]]:
    """A recipe's options and the words of a command line, without the options that the latter sets to null."""
    at = [place for place, word in enumerate(words) if word == "null" and place and words[place - 1].startswith("--")]
    names = {words[place - 1].removeprefix("--") for place in at}
    gone = {place - before for place in at for before in (0, 1)}
    return (
        {name: value for name, value in options.items() if name not in names},
        [word for place, word in enumerate(words) if place not in gone],
    )


def as_words(options: dict[str, Any]) -> list[str]:
    """Options as words of a command line, which gives them their types."""
    words = []
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, list) and name not in {
            field.name for config in CONFIGS.values() for field in fields(config)
        }:
            words += [f"--{name}", *map(str, value)]
        else:
            words += [f"--{name}", json.dumps(value, default=str) if isinstance(value, (dict, list)) else str(value)]
    return words


def _config_fields(config_class: type[PreTrainedConfig], words: list[str], source: str) -> dict[str, Any]:
    """What is left of the options, as fields of the config."""
    left_out = {*DERIVED, *(entry.name for entry in fields(PreTrainedConfig))}
    types = {entry.name: entry.type for entry in fields(config_class) if entry.name not in left_out}
    known = {*types, *(entry.name for kind in (RunArguments, TaggerTrainingArguments) for entry in fields(kind))}
    values: dict[str, Any] = {}
    while words:
        name, equals, value = words.pop(0).removeprefix("--").partition("=")
        if name not in types:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; --help lists them all."
            raise ValueError(f"{source}: {name!r} is no option of {config_class.__name__} or the Trainer{hint}")
        if not equals:
            if not words:
                raise ValueError(f"{source}: the option {name!r} has no value.")
            value = words.pop(0)
        values[name] = yaml_value(value, f"{source}: the value of {name!r}")
        if types[name] == "float" and isinstance(values[name], str):
            with suppress(ValueError):  # YAML reads 1e-5 as a string
                values[name] = float(values[name])
    return values


if TYPE_CHECKING:
    pass

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


def check_output_apart(source: str, output_dir: str | None) -> None:
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
