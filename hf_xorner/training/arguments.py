"""Options of a training run, from Python, YAML recipes and the command line."""

from __future__ import annotations

import json
import math
import os
import re
from argparse import SUPPRESS
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import cleandoc
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedConfig, TrainingArguments
from transformers.hf_argparser import string_to_bool
from transformers.integrations import get_reporting_integration_callbacks

from ..corpora import ReadingOptions
from ..loading import check_fit, load_config, load_tokenizer
from ..models.configuration_tagger import TaggerConfig
from ..models.tokenization_word_char import WordCharTokenizer
from ..models.word_ids import FALLBACKS
from ..options import Parser, check_known, check_values, full_names, option
from ..registration import CONFIGS
from ..vectors.distill import AUTO, NONE
from .recipes import is_recipe, read_recipe

EVERYTHING, HEAD = "everything", "head"

#: Fields of a config that follow from the training data and the encoder, and so are not options.
DERIVED = {
    *("vocab_size", "pad_token_id", "trained_vocab_size", "first_singleton_id"),
    *("char_vocab_size", "char_types", "piece_vocab_size", "context_encoder", "score_temperature"),
}
#: Fields of configs that --help lists; --help-all lists all.
_SHOWN = ("decoder", "hidden_size", "dropout", "singleton_dropout")

#: Entries of a saved config that describe the file or the program that wrote it, or that are set after training.
_OF_THE_FILE = ("_name_or_path", "transformers_version", "architectures", "auto_map", "dtype", "min_score")

#: Options that name a model to start from, or that a tagger has from its first training.
OPTIONS_OF_A_MODEL = {
    "model_name_or_path",
    "model_type",
    "casing",
    "digits",
    "fallback",
    "max_word_pieces",
    "vectors_as",
}


@dataclass
class RunArguments(ReadingOptions):
    """The model, the data, and how the data are read."""

    model_type: str = option(
        "cross-bilstm-cnn", f"Architecture: {', '.join(CONFIGS)}.", group="model", choices=tuple(CONFIGS)
    )
    model_name_or_path: str | None = option(
        None,
        "Continue from a tagger: a folder, owner/name on the Hub, or a model of the package: english, english-open, "
        'multilingual; english-start, the default for English with PER, ORG or LOC and no option of the model; "none".',
        group="model",
        aliases=("--model", "--model_name"),
    )
    train_only: str = option(
        EVERYTHING, 'The part of an existing model to train: "everything" or "head".', choices=(EVERYTHING, HEAD)
    )
    keep_labels: bool = option(False, "Keep labels of model_name_or_path that the data do not have.")
    dataset: str = option(
        "xor",
        "xor, wnut17, conll2003, conll2002-es, conll2002-nl, ontonotes5; a file or folder; or a Hub id.",
        group="data",
        aliases=("--corpus", "--data"),
    )
    data_dir: str | None = option(None, "Folder with the files of a named corpus.", group="data")
    more_data: list[str] = option(
        [],
        "Corpora, named as in dataset, whose training sentences are added. Their types must be among dataset's; "
        "rename them with types.",
    )
    train_on_validation: bool = option(
        False, "Also train on the validation split, whose scores are then meaningless (ma2016, footnote 4)."
    )
    recased: float = option(
        0.0,
        "Share of the training sentences, from 0 to 1, of which a copy in lower case, IN CAPITALS or With Initial "
        "Capitals is added.",
        bounds=(0, 1),
    )
    hold_out: float = option(
        0.1,
        "Share of the training data that is held out if there is no validation split; 0: none.",
        bounds=(0, 0.999),
    )
    min_count: int = option(1, "Words with fewer occurrences in the training data are unknown.")
    casing: str = option(
        "keep",
        '"keep", or "lower" to look words up in lower case, the default without pretrained vectors.',
        choices=("keep", "lower"),
    )
    digits: str = option(
        "keep",
        '"keep", or "zero" to read every digit as 0, the default without pretrained vectors.',
        choices=("keep", "zero"),
    )
    fallback: list[str] = option([], f"Forms in which unknown words are looked up, in order: {', '.join(FALLBACKS)}.")
    vectors: str | None = option(
        None,
        'Pretrained word vectors: a file; owner/name:file on the Hub; "auto", the default for English text: vectors of '
        'word pieces, which the package has; or "none".',
        group="data",
        aliases=("--embeddings",),
    )
    vectors_as: str = option(
        "frozen",
        'Use of the vectors. "frozen": as the only word vectors, never trained (li2020). "tuned": as initial values of '
        'the trained ones (lample2016, ma2016, chen2019). "beside": frozen, in addition to trained ones. Only these '
        "have the size word_dim; else it is that of the vectors.",
        choices=("frozen", "tuned", "beside"),
    )
    most_frequent_vectors: int | None = option(
        None, "Read only this many vectors from the start of the file.", bounds=(1, math.inf)
    )
    composed: str | None = option(
        None,
        "Vectors of word pieces, from which the vector of any word is composed: a folder written by hf-xorner vectors "
        "distill, or owner/name:composed.safetensors on the Hub. They replace trained vectors unless word_dim is "
        "given.",
        group="data",
    )
    average_epochs: int = option(
        0,
        "Average the weights of this many last epochs, and keep the average if it beats the best epoch.",
        group="training",
        bounds=(0, math.inf),
    )
    calibrate: bool = option(True, "After training, fit the temperature of the scores to the validation data.")
    quantize: str | None = option(
        None,
        'After training, freeze the vectors of words and pieces, and store them in 8 ("int8") or 4 ("int4") bits, and '
        "other weights in 16.",
        choices=("int8", "int4"),
    )
    context: str | None = option(
        None, "A pretrained encoder, local or on the Hub, whose states are features of words.", group="data"
    )
    max_word_pieces: int = option(12, "Maximum number of pieces of a word that context or composed uses.")
    teacher: list[str] = option(
        [],
        "Larger models from which the model learns: taggers of this package, any token classification model of "
        "transformers (folders, or names on the Hub), gliner:NAME, spacy:NAME.",
        group="distillation",
    )
    teacher_text: list[str] = option(
        [],
        "Texts that the teachers label: files or folders of any format that `tag` reads, or datasets on the Hub (their "
        "split train). Without a corpus, the model learns from them alone.",
        group="distillation",
        aliases=("--text",),
    )
    teacher_types: list[str] = option([], "The types that a GLiNER looks for, in words.", group="distillation")
    teacher_min_score: float = option(
        0.5, "Words of a GLiNER's spans with a lower score have unknown labels.", group="distillation", bounds=(0, 1)
    )
    seeds: list[int] = option(
        [], "Train once per seed, into the folders seed-N of output_dir.", group="training", bounds=(0, 2**32 - 1)
    )
    overwrite: bool = option(
        False, "Replace the model, or the unfinished run, in output_dir, and the model on the Hub.", group="output"
    )
    # The name of the recipe.
    recipe: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        # Config and tokenizer of the model that training continues from; set by `take_options_from_model`.
        self.origin: tuple[TaggerConfig, WordCharTokenizer] | None = None
        # The names of the options that the user or the recipe set; filled by `arguments_of`.
        self.explicit: set[str] = set()
        # The labels are those of the teachers alone; set by `arguments_of`.
        self.texts_alone = False
        # The encoder whose pieces' vectors are the word vectors; set by `prepare`.
        self.composed_from: str | None = None
        # Data in memory, or a Path, which never names a corpus; used in place of `dataset`. Set by `train`.
        self.data: Any = None
        if self.vectors in (AUTO, NONE):
            for name in ("model_name_or_path", "composed", "vectors_as", "most_frequent_vectors"):
                if getattr(self, name) != getattr(RunArguments, name):
                    raise ValueError(f"{name} cannot be combined with vectors={self.vectors}; leave one of them out.")
        if self.teacher_text and not self.teacher:
            raise ValueError("teacher_text needs a model that labels it; name one with teacher.")
        if self.model_name_or_path is None:
            for name in ("train_only", "keep_labels"):
                if getattr(self, name) != getattr(RunArguments, name):
                    raise ValueError(f"{name} needs a model to continue from; name one with model_name_or_path.")


@dataclass
class TaggerTrainingArguments(TrainingArguments):
    """The Trainer's arguments, with defaults for taggers: li2020's batch size, no clipping, the best epoch is kept."""

    output_dir: str | None = option(
        None,
        "By default, runs/DATASET, or runs/DATASET-MODEL_TYPE if the architecture is named.",
        group="output",
        aliases=("--output", "--out"),
    )
    num_train_epochs: float = option(
        10.0,
        "Passes over the training data; by default 10 to 40, fewer for more data or after 10 without a better score.",
        group="training",
        bounds=(1e-6, math.inf),
        aliases=("--epochs",),
    )
    per_device_train_batch_size: int = option(
        32,
        "Sentences per batch; by default 8, or 16 from 5,000 sentences on, or 32 from 10,000 on.",
        group="training",
        bounds=(1, math.inf),
        aliases=("--batch_size", "--bs"),
    )
    per_device_eval_batch_size: int = option(64, "Sentences per batch in evaluation.", bounds=(1, math.inf))
    # li2020: 1e-3 for at least 400 epochs. On the XOR corpus, twice the rate needs half the epochs.
    learning_rate: float = option(2e-3, "Learning rate.", group="training", bounds=(0, math.inf), aliases=("--lr",))
    context_learning_rate: float = option(
        3e-5, "Learning rate of a fine-tuned encoder (context_frozen false).", bounds=(0, math.inf)
    )
    lr_scheduler_type: str = option("constant", "Schedule of the learning rate.")
    # 0.05 (ma2016), 0.02 (chen2019), 0.08 (lample2016's Stack-LSTM)
    epoch_decay: float | None = option(
        None, "ρ of the learning rate η0 / (1 + ρ·t) after t epochs.", bounds=(0, math.inf)
    )
    optimizer: str | None = option(
        None,
        '"nadam" (li2020) or "sgd" (the other papers); by default that of optim.',
        group="training",
        choices=("nadam", "sgd"),
    )
    momentum: float = option(0.0, "Momentum of sgd (ma2016, chen2019: 0.9).", bounds=(0, 1))
    teacher_weight: float = option(
        0.5, "Weight of the teachers in the loss; the labels have the rest.", group="distillation", bounds=(0, 1)
    )
    early_stopping: int = option(
        0,
        "Stop after this many evaluations without a better score, or at a perfect one; 0: never.",
        group="training",
        bounds=(0, math.inf),
        aliases=("--patience",),
    )
    max_grad_norm: float = option(0.0, "Clip gradients to this norm; 0: no clipping.", bounds=(0, math.inf))
    eval_strategy: str = option("epoch", "When to score the validation data.")
    save_strategy: str = option("epoch", "When to write a checkpoint.")
    save_total_limit: int | None = option(2, "Checkpoints kept, the best one included.")
    logging_strategy: str = option("epoch", "When to log the loss.")
    # It reads the loss of every step, so every step would wait for the GPU.
    logging_nan_inf_filter: bool = option(False, "Log the mean of earlier losses in place of NaN and infinite ones.")
    # They are frozen vectors, up to 500 MB, and equal in all processes.
    ddp_broadcast_buffers: bool | None = option(False, "Send buffers to all processes in every step.")
    load_best_model_at_end: bool = option(True, "Load the best epoch's weights at the end.")
    restore_callback_states_from_checkpoint: bool = option(True, "Restore the state of early_stopping.")
    resume_from_checkpoint: str | None = option(
        None,
        "Continue an interrupted run from its last checkpoint, or start if there is none.",
        group="output",
        aliases=("--resume",),
        without_value="true",
    )
    push_to_hub: bool = option(False, "Publish the model at the end, as `hf-xorner publish` does.", group="output")
    hub_model_id: str | None = option(None, "The repository to publish to, owner/name.", group="output")
    # The collator reads words, which are not an argument of the model.
    remove_unused_columns: bool = option(False, "Remove columns that are not arguments of the model.")
    # None comes first, as in the base class: otherwise HfArgumentParser takes the wrong type of the union.
    report_to: None | str | list[str] = option("none", "Integrations to report to.")  # noqa: RUF036

    def __post_init__(self) -> None:
        """Check the options; pin memory only for a CUDA device."""
        check_values(self)
        for name in ("prediction_loss_only", "dataloader_drop_last", "batch_eval_metrics"):
            if getattr(self, name):
                raise ValueError(f"{name} removes data that the scores need; leave it out.")
        if self.label_smoothing_factor:
            raise ValueError("label_smoothing_factor replaces the model's loss; leave it out.")
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum={self.momentum} needs optimizer=sgd; add it, or leave momentum out.")
        if self.epoch_decay is not None and self.lr_scheduler_type != "constant":
            raise ValueError("epoch_decay is a schedule; leave lr_scheduler_type at constant, or epoch_decay out.")
        if self.warmup_steps and self.lr_scheduler_type == "constant":
            raise ValueError("warmup_steps needs another lr_scheduler_type, such as constant_with_warmup.")
        if self.early_stopping and self.eval_strategy == "no":
            raise ValueError("early_stopping needs evaluations, but eval_strategy is no; set it to epoch.")
        processes = int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1
        # Without a GPU and without use_cpu, each process of the Trainer would train alone, all into one folder.
        if processes > 1 and not torch.accelerator.is_available():
            self.use_cpu = True
        super().__post_init__()
        if processes > 1 and self.world_size == 1:
            raise ValueError(
                f"{processes} processes were started but the Trainer sees only one: each would train alone, into the "
                "same folder. Add --use_cpu, or start one process."
            )
        if self.device.type != "cuda":
            self.dataloader_pin_memory = False
        elif self.dataloader_pin_memory:
            # Otherwise each copy of a batch would wait for the previous step.
            self.accelerator_config.non_blocking = True


#: Options for which Python code and YAML may give one value in place of a list.
_LISTS = {"seeds", "more_data", "teacher", "teacher_text", "teacher_types", "fallback"}
_LISTS |= {"char_widths", "context_layers", "context_widths", "dilations"}


def arguments_of(
    options: Mapping[str, Any], recipe: str | None = None
) -> tuple[RunArguments, TaggerTrainingArguments, dict[str, Any]]:
    """Return the arguments of the run, those of the Trainer, and fields of the model's config.

    Args:
        options: Values by name, which override those of the recipe; None removes an option of the recipe.
        recipe: A recipe of the package by its name, such as li2020/table1/cross, or a YAML file by its path.

    Raises:
        ValueError: If an option is unknown, or a value is wrong.
    """
    base = read_recipe(recipe) if recipe else None
    kinds = (RunArguments, TaggerTrainingArguments)
    values = {**full_names(base.options if base else {}, *kinds), **full_names(options, *kinds)}
    values = {name: _without_paths(value) for name, value in values.items() if value is not None}
    for name in _LISTS & values.keys():
        values[name] = values[name] if isinstance(values[name], (list, dict)) else [values[name]]
    if values.get("metric_for_best_model") == "loss":  # the Trainer's default, which `choose_metric` replaces
        values["metric_for_best_model"] = "eval_loss"
    explicit = set(values)
    run = RunArguments(**_taken(values, RunArguments))
    run.recipe, run.explicit, run.seeds = base.name if base else None, explicit, list(dict.fromkeys(run.seeds))
    if run.model_name_or_path == NONE:
        run.model_name_or_path = None
    if run.model_name_or_path:
        take_options_from_model(run, explicit)
    if run.teacher_text and "dataset" not in explicit:
        run.texts_alone, run.dataset = True, Path(run.teacher_text[0]).name
    if run.teacher and run.model_type == "stack-lstm":
        raise ValueError("A Stack-LSTM cannot learn from a teacher; choose another model_type.")
    corpus = os.path.basename(os.path.abspath(run.dataset))
    kind = f"-{run.model_type}" if "model_type" in explicit else ""
    values.setdefault("output_dir", str(Path("runs") / f"{corpus}{kind}"))
    try:
        training = TaggerTrainingArguments(**_taken(values, TaggerTrainingArguments))
        for callback in get_reporting_integration_callbacks(training.report_to):
            callback()  # raises an error if its package is missing
    # The errors of the Trainer's arguments have no common type, and may have several lines.
    except Exception as error:
        raise ValueError(" ".join(str(error).split())) from error
    model_options = config_options(CONFIGS[run.model_type])
    known = {*model_options, *(entry.name for kind in kinds for entry in fields(kind))}
    check_known(values, known, f"{run.model_type} or the Trainer")
    if run.seeds and training.push_to_hub:
        raise ValueError("push_to_hub publishes one model; train with seeds, then run `hf-xorner publish` on the best.")
    if run.seeds and str(training.resume_from_checkpoint).casefold() not in ("none", "true", "false"):
        raise ValueError(
            "resume_from_checkpoint names one run's checkpoint; with seeds, use true for the newest one of each run."
        )
    return run, training, values


def _taken(values: dict[str, Any], kind: type) -> dict[str, Any]:
    """Remove the fields of a dataclass from the values and return them."""
    return {entry.name: values.pop(entry.name) for entry in fields(kind) if entry.init and entry.name in values}


def _without_paths(value: Any) -> Any:
    """Return paths as text and sequences as lists; anything else as it is."""
    if isinstance(value, (list, tuple, range)):
        return list(map(_without_paths, value))
    return str(value) if isinstance(value, Path) else value


def config_options(config: type[TaggerConfig]) -> dict[str, Any]:
    """Return the names and types of the fields of a config that are options."""
    inherited = {entry.name for entry in fields(PreTrainedConfig)}
    return {entry.name: entry.type for entry in fields(config) if entry.name not in inherited | DERIVED}


def parse(
    words: Sequence[str], default: str | None = None
) -> tuple[RunArguments, TaggerTrainingArguments, dict[str, Any]]:
    """Read the command line `[RECIPE|CORPUS] [--option value …]`; see `arguments_of`. `null` is None.

    Args:
        words: The words of the command line.
        default: The recipe if they name neither data nor a model.
    """
    words, removed = list(words), []
    while "null" in words[1:]:
        index = words.index("null", 1)
        removed.append(words[index - 1].removeprefix("--").replace("-", "_"))
        del words[index - 1 : index + 1]
    parser = training_parser()
    for action in parser._actions:
        action.default = SUPPRESS
    options = vars(parser.parse_args(words))
    recipe = options.pop("recipe", None)
    if recipe is None and not {"dataset", "model_type", "model_name_or_path", "teacher_text"} & options.keys():
        if "teacher" in options:
            raise ValueError("teacher needs sentences to label; name them with teacher_text, or a corpus with dataset.")
        recipe = default
    elif recipe is not None and not is_recipe(recipe):
        if "dataset" in options:
            raise ValueError(f"both {recipe} and --dataset {options['dataset']} name the corpus; leave one out.")
        options["dataset"], recipe = recipe, None
    return arguments_of(dict.fromkeys(removed) | options, recipe)


def training_parser() -> Parser:
    """Return the parser of a run's options: the fields of the two dataclasses and of all configs."""
    parser = Parser(RunArguments, TaggerTrainingArguments)
    parser.add_argument(
        "recipe", nargs="?", metavar="RECIPE|CORPUS", help="A recipe, a YAML file of options, or a corpus."
    )
    readers = {"int": int, "float": float, "str": str, "bool": string_to_bool}
    for config in CONFIGS.values():
        described = _described(config)
        for name, kind in config_options(config).items():
            if f"--{name}" in parser._option_string_actions:
                continue
            reader: dict[str, Any] = {"type": readers.get(str(kind), int), "bounds": None}
            if kind not in readers:
                reader["nargs"] = "*"
            group = "model" if name in _SHOWN else None
            parser.add_argument(
                f"--{name}", f"--{name.replace('_', '-')}", help=described.get(name), group=group, **reader
            )
    return parser


def _described(config: type) -> dict[str, str]:
    """Return the descriptions of a config's fields from the docstrings of its classes."""
    texts: dict[str, str] = {}
    for documented in reversed(config.__mro__):
        _, _, arguments = cleandoc(vars(documented).get("__doc__") or "").partition("Args:\n")
        for name, text in re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", arguments, re.MULTILINE):
            texts[name] = " ".join(text.split())
    return texts


def as_words(options: Mapping[str, Any]) -> list[str]:
    """Return options as the words of a command line."""
    words = []
    for name, value in options.items():
        if isinstance(value, (list, tuple)):
            words += [f"--{name}", *map(str, value)]
        elif value is not None:
            words += [f"--{name}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return words


def take_options_from_model(run: RunArguments, explicit: Collection[str]) -> None:
    """Read config and tokenizer of the model that a run continues from, and set the options that follow from them.

    Args:
        run: The run; its options and `origin` are set.
        explicit: The options that the user set.

    Raises:
        ValueError: If one of them contradicts the model.
    """
    for name in ("context", "composed"):
        if name in explicit:
            raise ValueError(f"{name} cannot be added to an existing model; leave it out, or train a new model.")
    source = str(run.model_name_or_path)
    config, tokenizer = run.origin = load_config(source), load_tokenizer(source)
    check_fit(config, tokenizer)
    settings = {
        "model_type": config.model_type,
        "casing": tokenizer.init_kwargs["casing"],
        "digits": tokenizer.init_kwargs["digits"],
        "fallback": list(tokenizer.init_kwargs["fallback"]),
        "max_word_pieces": tokenizer.max_word_pieces,
        "vectors_as": use_of_vectors(config) or run.vectors_as,
    }
    for name, value in settings.items():
        if name in explicit:
            check_same(name, getattr(run, name), value)
        setattr(run, name, value)


def settings_of(config: PreTrainedConfig) -> dict[str, Any]:
    """Return the entries of a config that describe the model."""
    return {name: value for name, value in config.to_dict().items() if name not in _OF_THE_FILE}


def use_of_vectors(config: TaggerConfig) -> str | None:
    """Return the value of `vectors_as` that a model was built with, or None without pretrained word vectors."""
    if config.pretrained_words:
        return "tuned"
    if config.static_dim:
        return "beside" if config.word_dim else "frozen"
    return None


def check_same(name: str, value: Any, old: Any) -> None:
    """Raise a ValueError for an option that differs from the existing model's."""
    if (list(value) if isinstance(value, tuple) else value) != (list(old) if isinstance(old, tuple) else old):
        raise ValueError(
            f"{name}={value!r} does not fit the existing model, whose {name} is {old!r}; leave the option out, or "
            "train a new model without model_name_or_path."
        )
