"""What a training run can be told, on the command line or in a YAML file of the same names."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
import yaml
from transformers import HfArgumentParser, PreTrainedConfig, TrainingArguments

from ..data import Reading
from ..registration import CONFIGS
from .adoption import adopt
from .recipes import read_recipe

OPTIMIZERS = ("nadam", "sgd")
VECTOR_USES = ("frozen", "tuned", "beside")


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
        if self.early_stopping < 0:
            raise ValueError(f"early_stopping={self.early_stopping} must be a number of epochs, or 0 for never.")
        if self.early_stopping and self.eval_strategy == "no":
            raise ValueError("early_stopping waits for evaluations and eval_strategy is no; set it to epoch.")
        if self.device.type != "cuda":
            self.dataloader_pin_memory = False

    def _check_optimizer(self) -> None:
        if self.optimizer not in (None, *OPTIMIZERS):
            raise ValueError(f"optimizer={self.optimizer!r} is unknown; choose one of {', '.join(OPTIMIZERS)}.")
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum={self.momentum} belongs to sgd; add optimizer=sgd, or leave it out.")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum={self.momentum} must lie between 0 and 1.")
        if self.epoch_decay is None:
            return
        if not 0 <= self.epoch_decay < math.inf:
            raise ValueError(f"epoch_decay={self.epoch_decay} must not be negative, or learning rates would grow.")
        if self.lr_scheduler_type != "constant":
            raise ValueError("epoch_decay is a schedule of its own; leave lr_scheduler_type at constant beside it.")


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
    HfArgumentParser((RunArguments, TaggerTrainingArguments), allow_abbrev=False).parse_known_args(words)
    (run, rest) = HfArgumentParser(RunArguments, allow_abbrev=False, add_help=False).parse_args_into_dataclasses(
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
    (training, rest) = HfArgumentParser(TaggerTrainingArguments, allow_abbrev=False).parse_args_into_dataclasses(
        [*folder, *rest], return_remaining_strings=True
    )
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
            words += [f"--{name}", json.dumps(value) if isinstance(value, (dict, list)) else str(value)]
    return words


def _config_fields(config_class: type[PreTrainedConfig], words: list[str], source: str) -> dict[str, Any]:
    """What is left of the options, as fields of the config."""
    names = {entry.name for entry in fields(config_class)}
    known = names.union(*({entry.name for entry in fields(kind)} for kind in (RunArguments, TaggerTrainingArguments)))
    values: dict[str, Any] = {}
    while words:
        name, equals, value = words.pop(0).removeprefix("--").partition("=")
        if name not in names:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; --help lists them all."
            raise ValueError(f"{source}: {name!r} is no option of {config_class.__name__} or the Trainer{hint}")
        if not equals:
            if not words:
                raise ValueError(f"{source}: the option {name!r} has no value.")
            value = words.pop(0)
        values[name] = yaml.safe_load(value)
    return values
