"""A training run, for one or several seeds: output folder, corpus, model, Trainer, saved model and facts."""

from __future__ import annotations

import gc
import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
from accelerate.utils import broadcast_object_list
from datasets import Dataset, DatasetDict, concatenate_datasets
from transformers import TrainerCallback, TrainingArguments, set_seed
from transformers.trainer import TRAINER_STATE_NAME
from transformers.utils import CONFIG_NAME

from ..corpora import load_corpus
from ..corpora.assemble import TAGS, TOKENS, corpus_fingerprint, words_and_tags
from ..corpora.hold_out import EXAMPLES_FILE, hold_out
from ..corpora.load import NAMED_CORPORA, Source, inputs_of, name_of
from ..corpora.schemes import UNLABELLED_TAG
from ..errors import TrainingError
from ..evaluation.comparison import Comparison
from ..evaluation.report import System, Training, report
from ..evaluation.scores import measure_of
from ..files import FACTS_FILE, GRAPH_FILE, check_apart, locked, model_folder, write_whole
from ..loading import load_config
from ..models.tags import IGNORED
from ..models.tokenization_word_char import WordCharTokenizer
from ..options import full_names
from ..registration import CONFIGS
from ..tagger import Tagger
from ..text_table import text_table
from ..vectors.distill import AUTO, NONE, START, is_english
from ..vectors.lookup import Coverage, coverage_of
from .arguments import (
    OPTIONS_OF_A_MODEL,
    RunArguments,
    TaggerTrainingArguments,
    arguments_of,
    take_options_from_model,
)
from .build import BITS, BuiltModel, build_new, continue_from, quantized, usual_name
from .data import read_texts, texts_as_corpus, with_context_states, with_more_data, with_recased, with_teachers
from .facts import RunFacts, command_of, differences, facts_before, options_of, plain, read_facts, write_facts
from .optimization import EpochAverage, fit_temperature, keep_the_better
from .teachers import StockTeacher, Teacher, teachers_of
from .trainer import TaggerTrainer, writing

_log = logging.getLogger(__name__)

# --- The output folder ------------------------------------------------------------------------------------------------

#: Lock file of the run that writes a folder.
LOCK = ".training.lock"


def folder_locked(folder: str | Path, arguments: TrainingArguments) -> AbstractContextManager[None]:
    """Hold the lock of an output folder in the main process; the folder is created if it does not exist."""
    return locked(Path(folder) / LOCK, folder) if arguments.process_index == 0 else nullcontext()


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the complete checkpoints in a folder, the newest last; the Trainer writes the state of each last."""
    states = {path: path / TRAINER_STATE_NAME for path in numbered_checkpoints(folder)}
    return [path for path, state in states.items() if state.exists() and state.read_bytes().rstrip()[-2:] == b"\n}"]


def numbered_checkpoints(folder: Path) -> list[Path]:
    """Return the folders named checkpoint-1 and so on, also incomplete ones, in the order of their numbers."""
    numbers = {path: path.name.removeprefix("checkpoint-") for path in folder.glob("checkpoint-*/")}
    return sorted((path for path in numbers if numbers[path].isdecimal()), key=lambda path: int(numbers[path]))


def checkpoint_to_resume(training: TrainingArguments) -> Path | None:
    """Return the checkpoint that `resume_from_checkpoint` names, the newest one for "true", or None."""
    answer = str(training.resume_from_checkpoint)
    if answer.casefold() in ("none", "false"):
        return None
    if answer.casefold() != "true":
        if not all(Path(answer, name).exists() for name in (CONFIG_NAME, TRAINER_STATE_NAME)):
            raise TrainingError(f"{answer} is not a checkpoint; name one, or put --resume_from_checkpoint at the end.")
        return Path(answer)
    return next(reversed(checkpoints_in(Path(str(training.output_dir)))), None)


def check_output(run: RunArguments, training: TaggerTrainingArguments) -> None:
    """Check that a run can use its output folder.

    Raises:
        DataError: If it is the folder of the corpus, or holds the model that training continues from, a teacher or the
            encoder.
        TrainingError: If it cannot be written, another run is writing it, or it holds an unfinished run or a model that
            this run neither resumes nor may overwrite.
    """
    folder = Path(str(training.output_dir))
    check_apart(folder, *inputs_of(run.dataset, run.data_dir))
    for name in filter(None, (run.model_name_or_path, run.context, *run.teacher)):
        model = Path(model_folder(name)).resolve()
        # A run deletes its older checkpoints.
        check_apart(folder, model, *([model.parent] if model.name.startswith("checkpoint-") else []))
    with folder_locked(folder, training):
        checkpoint = checkpoint_to_resume(training)
        if run.overwrite or (checkpoint and folder.resolve() in checkpoint.resolve().parents):
            return
        checkpoints = checkpoints_in(folder)
        if checkpoints and not (folder / FACTS_FILE).exists():
            raise TrainingError(
                f"{folder} holds {checkpoints[-1].name} of an unfinished run: continue it with "
                "--resume_from_checkpoint, name another --output_dir, or replace it with --overwrite."
            )
        if (folder / CONFIG_NAME).exists():
            raise TrainingError(
                f"{folder} holds a trained model: name another --output_dir, or replace the model with --overwrite."
            )
        code = {path.name for path in files("hf_xorner.models").iterdir()} - {"__init__.py"}
        own = [path for path in folder.glob("*") if path.name in (*code, EXAMPLES_FILE, FACTS_FILE, GRAPH_FILE)]
        # A run that is killed while it writes a checkpoint leaves its first files, which are code.
        incomplete = (path for path in numbered_checkpoints(folder) if not (path / CONFIG_NAME).exists())
        own += [path for checkpoint in incomplete for path in checkpoint.glob("*") if path.name not in code]
        if own:
            raise TrainingError(f"{min(own)} would be replaced or deleted; move it away, or name another --output_dir.")


# --- Several seeds ----------------------------------------------------------------------------------------------------


def folder_of(folder: str, seed: int) -> str:
    """Return the output folder of a seed, within the common one."""
    return str(Path(folder) / f"seed-{seed}")


def seed_table(scores: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return a table of the scores of several seeds in percent, with mean and sample standard deviation.

    Args:
        scores: The result of `TrainingRun.train`, by seed.
    """
    rows: list[Sequence[Any]] = [("seed", "", *map(str, scores), "mean", "deviation")]
    for split, first in next(iter(scores.values())).items():
        measure = measure_of(first)
        values = [score[split][measure] for score in scores.values()]
        spread = [stdev(values)] if len(values) > 1 else []
        rows.append((split, "F1" if measure == "f1" else measure, *values, mean(values), *spread))
    return text_table(rows, names=2)


def best_seed(scores: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> int:
    """Return the seed with the highest validation score, or the first seed without validation data."""
    validation = {seed: splits.get("validation", {}) for seed, splits in scores.items()}
    return max(scores, key=lambda seed: validation[seed].get(measure_of(validation[seed]), 0.0))


# --- One run ----------------------------------------------------------------------------------------------------------


#: The most examples for the card, and the most words of each.
_EXAMPLES, _EXAMPLE_WORDS = 50, 40


class TrainingRun(NamedTuple):
    """A run that is ready to be trained.

    Attributes:
        corpus: The splits.
        trainer: The Trainer, whose `args.output_dir` is the folder of the run.
        coverage: The share of words with a pretrained vector, for each split; empty without vectors.
        average: The callback that keeps the weights of the last epochs, or None.
        run: The arguments.
        facts: The facts that are known before training; None except in the main process.
        chosen: The options that were set by the size of the training data.
    """

    corpus: DatasetDict
    trainer: TaggerTrainer
    coverage: dict[str, Coverage]
    average: EpochAverage | None
    run: RunArguments
    facts: dict[str, Any] | None
    chosen: dict[str, Any]

    def train(self) -> dict[str, dict[str, Any]]:
        """Train; save the model, its tokenizer and the facts; return the scores of the held-out splits.

        A finished run that is resumed with the same options and data is only scored.

        Raises:
            TrainingError: If another run writes the folder.
        """
        args, trainer = self.trainer.args, self.trainer
        with folder_locked(args.output_dir, args):
            checkpoint = checkpoint_to_resume(args)
            found: list[Any] = [[], False]
            if checkpoint and self.facts is not None:
                has_model = Path(args.output_dir, FACTS_FILE).exists()
                same = has_model and read_facts(args.output_dir)["options"] == plain(self.facts["options"])
                found = [differences(checkpoint, self.facts), same]
            changed, finished = broadcast_object_list(found)  # from the main process
            if changed:
                raise TrainingError(
                    f"{checkpoint} is of a run that differs in {', '.join(changed[:3])}; resume with the data and the "
                    "options of that run, name another --output_dir, or replace it with --overwrite in place of "
                    "--resume_from_checkpoint."
                )
            if finished:
                model = type(trainer.accelerator.unwrap_model(trainer.model)).from_pretrained(args.output_dir)
                trainer.model = trainer.model_wrapped = model.to(args.device)
                return self.score()[0]
            if trainer.is_world_process_zero():
                Path(args.output_dir, FACTS_FILE).unlink(missing_ok=True)  # written last: the run is finished
                if (graph := Path(args.output_dir, GRAPH_FILE)).exists():
                    graph.unlink()
                    _log.warning("%s of the earlier model was deleted; export the new one again.", graph)
                for earlier in [] if checkpoint else numbered_checkpoints(Path(args.output_dir)):
                    shutil.rmtree(earlier)
            trainer.accelerator.wait_for_everyone()
            trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
            if self.average is not None and self.average.weights:
                keep_the_better(trainer, self.average)
            if self.run.quantize:
                model = trainer.accelerator.unwrap_model(trainer.model)
                trainer.model = trainer.model_wrapped = quantized(model, BITS[self.run.quantize])
            if self.run.calibrate and not self.run.train_on_validation and trainer.eval_dataset is not None:
                fit_temperature(trainer)
            with writing(args.output_dir):
                trainer.save_model()
            scores, counts, seconds = self.score()
            if self.facts is not None:
                with writing(args.output_dir):
                    write_facts(trainer, self.facts, scores, counts, seconds)
                self._leave_one_checkpoint(Path(args.output_dir))
                self._write_examples(Path(args.output_dir))
        return scores

    def _leave_one_checkpoint(self, folder: Path) -> None:
        """Delete all checkpoints but the best, or else the last, unless the user set their number."""
        if "save_total_limit" not in self.run.explicit:
            best = Path(self.trainer.state.best_model_checkpoint or "").name
            for path in sorted(numbered_checkpoints(folder), key=lambda path: path.name == best)[:-1]:
                shutil.rmtree(path)

    def _write_examples(self, folder: Path) -> None:
        """Write held-out sentences with entities as examples for the card, unless the corpus is a named one."""
        if self.run.dataset not in NAMED_CORPORA:
            rows = (row[TOKENS][:_EXAMPLE_WORDS] for row in list(self.corpus.values())[-1] if any(row[TAGS]))
            write_whole(folder / EXAMPLES_FILE, "\n".join(dict.fromkeys(map(" ".join, islice(rows, _EXAMPLES)))))

    def score(self) -> tuple[dict[str, dict[str, Any]], dict[str, list[list[int]]], float]:
        """Return scores and counts of sentences of each held-out split, and the seconds of the last prediction."""
        training = Training.of(*words_and_tags(self.corpus["train"]))
        scores, counts, seconds = {}, {}, 0.0
        trained_on = ("train", "validation") if self.run.train_on_validation else ("train",)
        for name in [name for name in self.corpus if name not in trained_on]:
            system, seconds = self.predict(self.corpus[name])
            scores[name] = report(system, training=training, resamples=0)
            counts[name] = Comparison.of(system.gold, system.predicted).counts_by_sentence().tolist()
        return scores, counts, seconds

    def end_process_group(self) -> None:
        """Leave the process group, as each process should before it ends; afterwards, the model cannot be trained.

        Gloo's threads release a message some time after it has arrived and need the interpreter for it. If the
        interpreter ends at that moment, the process aborts (pytorch issue 190489), and the launcher ends the others.
        Destroying the group waits for the threads, provided that nothing else refers to the group, as the wrapped model
        does.
        """
        self.trainer.model_wrapped = self.trainer.model
        self.trainer.accelerator.free_memory()
        self.trainer.accelerator.end_training()
        gc.collect()

    def predict(self, split: Dataset) -> tuple[System, float]:
        """Return the predictions of the model for a split, and the time in seconds."""
        names = [*self.trainer.model.config.labels, UNLABELLED_TAG]  # the last has the number -1
        self.trainer.output_path_log_probs = True
        output = self.trainer.predict(split)
        self.trainer.output_path_log_probs = False
        logits, log_probs = output.predictions
        labelled = output.label_ids != IGNORED
        gold, predicted = (
            [[names[label] for label in row[mask]] for row, mask in zip(labels, labelled, strict=True)]
            for labels in (output.label_ids, logits.argmax(-1))
        )
        # They are not finite after training that diverged.
        log_probs = log_probs[labelled] if np.isfinite(log_probs[labelled]).all() else None
        return System(split[TOKENS], gold, predicted, log_probs), output.metrics.get("test_runtime", 0.0)


#: The target number of updates of the weights, and the range of epochs.
_UPDATES = 4000
_FEWEST_EPOCHS, _MOST_EPOCHS = 10, 40
#: Epochs without a better validation score, after which training stops.
_PATIENCE = 10


def choose_options(
    run: RunArguments, training: TaggerTrainingArguments, fields: dict[str, Any], sentences: int, train: Dataset
) -> dict[str, Any]:
    """Set the options in `facts.CHOSEN` and early stopping unless the user has set them, and return them.

    Nothing is set for a recipe, or for a model that training continues from if it has all labels.

    Args:
        run: The arguments of the run; changed.
        training: The Trainer's arguments; changed.
        fields: The fields of the model's config that were set; changed.
        sentences: The number of training sentences, texts and copies included.
        train: The training data.
    """
    known = run.origin and set(train.features[TAGS].feature.names) <= set(run.origin[0].labels)
    if run.recipe is not None or known:
        return {}
    chosen: dict[str, Any] = {}
    if "per_device_train_batch_size" not in run.explicit:
        chosen["per_device_train_batch_size"] = 8 if sentences < 5000 else 16 if sentences < 10000 else 32
        training.per_device_train_batch_size = chosen["per_device_train_batch_size"]
    if not {"num_train_epochs", "max_steps"} & run.explicit:
        together = training.train_batch_size * training.world_size * training.gradient_accumulation_steps
        epochs = round(_UPDATES * together / max(sentences, 1))
        chosen["num_train_epochs"] = training.num_train_epochs = float(min(max(epochs, _FEWEST_EPOCHS), _MOST_EPOCHS))
        if "early_stopping" not in run.explicit and training.eval_strategy == "epoch":
            chosen["early_stopping"] = training.early_stopping = _PATIENCE
    if run.texts_alone and "teacher_weight" not in run.explicit:
        chosen["teacher_weight"] = training.teacher_weight = 1.0
    if run.composed_from and "quantize" not in run.explicit:
        chosen["quantize"] = run.quantize = "int8"
    if not (run.origin or run.composed_from or run.composed or run.context):
        chosen |= _choose_start(run, fields, train)
    return chosen


def _choose_start(run: RunArguments, fields: dict[str, Any], train: Dataset) -> dict[str, Any]:
    """Set the model or the vectors that training starts from, or else options for a vocabulary without vectors.

    The model is the package's, for English text with a type that it knows, unless an option of the model is set.
    """
    chosen: dict[str, Any] = {}
    if not run.vectors:
        english = is_english(chain.from_iterable(train[TOKENS]))
        shared = {*load_config(START).labels[1:]} & {*map(usual_name, train.features[TAGS].feature.names)}
        if english and shared and not fields and not OPTIONS_OF_A_MODEL & run.explicit:
            chosen["model_name_or_path"] = run.model_name_or_path = START
            take_options_from_model(run, run.explicit)
            return chosen
        chosen["vectors"] = run.vectors = AUTO if english else NONE
    if run.vectors != NONE:
        return chosen
    # Forms of a word share a vector, and words seen once train the vector of unknown words.
    for name, value in (("casing", "lower"), ("digits", "zero")):
        if name not in run.explicit:
            chosen[name] = value
            setattr(run, name, value)
    if "singleton_dropout" not in run.explicit and not CONFIGS[run.model_type].singleton_dropout:
        chosen["singleton_dropout"] = fields["singleton_dropout"] = 0.5
    return chosen


def prepare(run: RunArguments, training: TaggerTrainingArguments, config_fields: dict[str, Any]) -> TrainingRun:
    """Load the corpus, build or load tokenizer and model, and create the Trainer.

    Args:
        run: The model and the data, from `arguments_of`, as the other arguments.
        training: The Trainer's arguments.
        config_fields: Fields of the model's config that differ from their defaults.

    Raises:
        ValueError: If options contradict each other, the data or the model.
    """
    if not run.model_name_or_path:
        # Raises an error about a field before data and vectors are read.
        CONFIGS[run.model_type](**{**config_fields, "max_word_pieces": run.max_word_pieces})
    teachers = teachers_of(run.teacher, training.device, run.teacher_types, run.teacher_min_score)
    named = run.vectors or run.composed or run.context or run.model_name_or_path or run.recipe
    if run.composed_from is None and not named:
        # The student's vectors may be those of its teacher's pieces.
        run.composed_from = next((teacher.source for teacher in teachers if isinstance(teacher, StockTeacher)), None)
    if run.texts_alone:
        texts = read_texts(run.teacher_text, WordCharTokenizer.from_corpus([]).tokenize)
        with training.main_process_first(desc="labelling the texts"):
            run.data = texts_as_corpus(texts, teachers, run.new_types)
    corpus = load_corpus(run.dataset if run.data is None else run.data, run.data_dir, **run.reading())
    if "train" not in corpus or not _has_words(corpus["train"]):
        raise ValueError(f"{run.dataset} has no words to train on; name a corpus with a training split.")
    corpus, held_out = hold_out(corpus, run.hold_out, run.dataset)
    fingerprint = corpus_fingerprint(corpus)
    corpus, more = with_more_data(corpus, run.more_data, run.data_dir, run.reading())
    if run.train_on_validation and "validation" in corpus:
        corpus["train"] = concatenate_datasets([corpus["train"], corpus["validation"]])
    config_fields = dict(config_fields)
    texts_apart = [] if run.texts_alone else run.teacher_text
    sentences = (len(corpus["train"]) + len(read_texts(texts_apart, str.split))) * (1 + run.recased)
    chosen = choose_options(run, training, config_fields, round(sentences), corpus["train"])
    options = options_of(run, training, config_fields)
    # Before the Trainer is created: this creates TrainingArguments, which reset the state of accelerate.
    command = command_of(run.recipe, options)
    set_seed(training.seed)
    names = corpus["train"].features[TAGS].feature.names
    build = continue_from if run.model_name_or_path else build_new
    start = build(run, corpus["train"][TOKENS], names, config_fields)
    _compare_words(corpus["train"], start.tokenizer, run.dataset)
    coverage = {
        name: coverage_of(start.tokenizer, start.vector_words, split[TOKENS])
        for name, split in corpus.items()
        if start.vector_words
    }
    labelled = len(corpus["train"])
    with training.main_process_first(desc="preparing the data"):
        corpus = _with_more_columns(corpus, run, training, start, teachers)
    validation = corpus["validation"] if "validation" in corpus and _has_words(corpus["validation"]) else None
    trainer = TaggerTrainer(
        start.model,
        training,
        train_dataset=corpus["train"],
        eval_dataset=validation,
        processing_class=start.tokenizer,
    )
    # Only the sentences of the corpora, which come before texts and copies.
    corpus = DatasetDict({**corpus, "train": corpus["train"].select(range(labelled))})
    average = EpochAverage(run.average_epochs) if run.average_epochs and trainer.eval_dataset is not None else None
    if average is not None:
        trainer.add_callback(average)
    main = trainer.is_world_process_zero()
    facts = facts_before(trainer, corpus, fingerprint, run, options, command, held_out, more) if main else None
    trainer.add_callback(RunFacts(facts))
    return TrainingRun(corpus, trainer, coverage, average, run, facts, chosen)


def _with_more_columns(
    corpus: DatasetDict,
    run: RunArguments,
    training: TaggerTrainingArguments,
    start: BuiltModel,
    teachers: Sequence[Teacher],
) -> DatasetDict:
    """Add teachers' posteriors, texts without labels, copies in another case, and states of a frozen encoder."""
    train, model = corpus["train"], start.model
    if teachers:
        texts = [] if run.texts_alone else read_texts(run.teacher_text, start.tokenizer.tokenize)
        train = with_teachers(train, texts, teachers, model, run.new_types)
    if run.recased:
        train = with_recased(train, run.recased, training.seed)
    corpus = DatasetDict({**corpus, "train": train})
    context = model.features.context
    if context is None or not model.config.context_frozen:
        return corpus
    return with_context_states(corpus, context.to(training.device), start.tokenizer, training.bf16)


def _compare_words(train: Dataset, tokenizer: WordCharTokenizer, source: str) -> None:
    """Log a warning if the tokenizer divides texts into other words than those of the corpus, as often in Chinese."""
    words = Counter(chain.from_iterable(train[:1000][TOKENS]))
    counts = tokenizer.words_of(list(words), False).counts
    divided = [word for word, count in zip(words, counts, strict=True) if count != 1]
    share = sum(map(words.__getitem__, divided)) / max(words.total(), 1)
    if share > 0.05:
        _log.warning(
            "%s: %.0f %% of the words, such as %s, are several words in a text for the tokenizer; the tagger will do "
            "worse on texts than on lists of words, so give it lists.",
            *(source, 100 * share, ", ".join(divided[:3])),
        )


def _has_words(split: Dataset) -> bool:
    return any(map(len, split[TOKENS]))


def each_run(
    run: RunArguments, training: TaggerTrainingArguments, config_fields: dict[str, Any]
) -> Iterator[TrainingRun]:
    """Yield the run of each seed, or the only run, ready to be trained; all output folders are checked first."""
    pairs = [(copy(run), copy(training)) for _ in run.seeds] or [(run, training)]
    for seed, (of_seed, settings) in zip(run.seeds, pairs, strict=False):
        of_seed.seeds, of_seed.explicit, settings.seed = [], run.explicit | {"seed"}, seed
        settings.output_dir = folder_of(str(training.output_dir), seed)
    for pair in pairs:
        check_output(*pair)
    for pair in pairs:
        ready = prepare(*pair, config_fields)
        yield ready
    ready.end_process_group()


def train(
    dataset: Source | None = None,
    recipe: str | None = None,
    *,
    callbacks: Sequence[TrainerCallback] = (),
    **options: Any,
) -> Tagger:
    """Train a tagger, save it, and return it.

        tagger = train("my_corpus/", model_type="cnn-lstm-crf", num_train_epochs=20, output_dir="my_tagger")

    Args:
        dataset: A corpus by name, a file, a folder, owner/name on the Hub, a `Dataset`, `DatasetDict`, `DataFrame` or
            list of (words, tags); see `hf_xorner.load_corpus`. By default that of the recipe.
        recipe: A recipe of the package or a YAML file, which `dataset` and `options` override.
        callbacks: Callbacks for the `Trainer`; with `seeds`, all runs share them.
        **options: The options of ``hf-xorner train``, short names such as ``lr`` included: arguments of the `Trainer`
            and fields of the model's config.

    Returns:
        The saved tagger, with the `scores` of the held-out splits; with `seeds`, the tagger with the best validation
        score.

    Raises:
        ValueError: If an option is unknown or wrong, or the corpus is missing or cannot be read.
    """
    options = full_names(options, RunArguments, TaggerTrainingArguments)
    source = options.pop("dataset", dataset)
    if source is not None:
        options["dataset"] = name_of(source)
    elif recipe is None and "teacher_text" not in options:
        raise ValueError('train needs a corpus, a recipe or texts for a teacher, such as train("my_corpus/").')
    run, training, config_fields = arguments_of(options, recipe)
    run.data = None if isinstance(source, str) else source
    if training.push_to_hub:
        raise ValueError("push_to_hub is an option of `hf-xorner train`; call hf_xorner.publish with the folder.")
    folder = str(training.output_dir)
    with folder_locked(folder, training):
        scores = {}
        for ready in each_run(run, training, config_fields):
            for callback in callbacks:
                ready.trainer.add_callback(callback)
            scores[ready.trainer.args.seed] = ready.train()
        best = best_seed(scores)
        tagger = Tagger.from_pretrained(folder_of(folder, best) if run.seeds else folder)
    tagger.scores = scores[best]
    return tagger
