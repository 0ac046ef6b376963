"""A whole run: corpus, tokenizer, model, training, scores, and the folder that holds what came of it."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset, DatasetDict
from transformers import set_seed

from ..corpora import load_corpus
from ..errors import first_line
from ..evaluation import span_scores
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tags import IGNORED
from ..registration import CONFIGS
from ..vectors.lookup import Coverage, coverage_of
from .arguments import RunArguments, TaggerTrainingArguments, adopt, check_output_apart
from .build import build_afresh, go_on
from .checkpoints import folder_locked
from .context import with_context_states
from .facts import EpochClock, Judged, command_of, facts_before, leave_facts, options_of
from .optimization import EpochAverage, keep_the_better
from .run_record import RunRecord, check_unfinished
from .trainer import TaggerTrainer


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


WORDS, LABELS = "tokens", "ner_tags"


class TrainingRun(NamedTuple):
    """A run that is ready to start: `corpus` goes through `trainer` into `trainer.args.output_dir`.

    `coverage` says of each split what part of it has a pretrained vector, where there are any. `average` collects the
    weights of the last epochs, where they are to be averaged. `run`, `options` and `command` say what was asked for, to
    be written down beside the model; `record` is what `output_dir` says of the run.
    """

    corpus: DatasetDict
    trainer: TaggerTrainer
    coverage: dict[str, Coverage]
    average: EpochAverage | None
    run: RunArguments
    options: dict[str, Any]
    command: str
    record: RunRecord

    def train(self) -> dict[str, dict[str, Any]]:
        """Train, save model, tokenizer and facts, and return the scores of the held-out splits, checked by seqeval.

        Raises:
            TrainingError: If the run cannot begin or go on; what was saved before is as it was.
        """
        with folder_locked(self.trainer.args.output_dir, self.trainer.args):
            return self._train()

    def _train(self) -> dict[str, dict[str, Any]]:
        main = self.trainer.is_world_process_zero()
        before = facts_before(self.trainer, self.corpus, self.run, self.options, self.command) if main else None
        self.trainer.add_callback(EpochClock())
        self.trainer.train(resume_from_checkpoint=self.trainer.args.resume_from_checkpoint)
        if self.average is not None:
            keep_the_better(self.trainer, self.average)
        self.trainer.save_model()
        judged = {name: self.judge(split) for name, split in self.corpus.items() if name != "train"}
        if before is not None:
            self.trainer.check_saved_model()
            leave_facts(self.trainer, self.corpus, before, judged)
        self.record.finish(self.trainer)
        return {name: found.scores for name, found in judged.items()}

    def leave(self) -> None:
        """Leave the other processes, as each should before it ends; the model stays, and trains no further here.

        Gloo's threads let go of what was sent some time after it has arrived, for which they need the interpreter. One
        that ends at that moment aborts its process (pytorch issue 190489), and the launcher then ends the others. The
        threads are waited for where nobody holds the group any more, which the wrapped model does.
        """
        self.trainer.model_wrapped = self.trainer.model
        self.trainer.accelerator.free_memory()
        self.trainer.accelerator.end_training()
        gc.collect()

    def score(self, split: Dataset) -> dict[str, Any]:
        """Score the model on a split."""
        return self.judge(split).scores

    def judge(self, split: Dataset) -> Judged:
        """Have the model label a split, and score what it says."""
        names = self.trainer.model.config.labels
        output = self.trainer.predict(split)
        predicted, gold = output.predictions.argmax(-1), output.label_ids
        known = gold != IGNORED
        gold_tags, predicted_tags = (
            [[names[label] for label in row[mask]] for row, mask in zip(labels, known, strict=True)]
            for labels in (gold, predicted)
        )
        scores = span_scores(gold_tags, predicted_tags)
        logits = output.predictions[known]
        probabilities = 1 / np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)  # of the likeliest label
        return Judged(gold_tags, predicted_tags, probabilities, scores, output.metrics.get("test_runtime", 0.0))


def prepare(run: RunArguments, training: TaggerTrainingArguments, config_fields: dict[str, Any]) -> TrainingRun:
    """Load the corpus, build tokenizer and model for it or go on from a model that there is, and make the trainer.

    What does not fit is said here, in one sentence.

    Args:
        run: What is trained on what.
        training: How it is trained.
        config_fields: Fields of the model's config that differ from their defaults.
    """
    check_output(run, training)
    adopt(run)
    if not run.model_name_or_path:
        # What is wrong with the fields is said before corpus and vectors are read.
        CONFIGS[run.model_type](**{**config_fields, "max_word_pieces": run.max_word_pieces})
    options = options_of(run, training, config_fields)
    command = command_of(run.recipe, options)
    set_seed(training.seed)
    corpus = load_corpus(run.dataset, run.data_dir, **run.reading())
    if "train" not in corpus or not _has_words(corpus["train"]):
        raise ValueError(f"{run.dataset} has no words to train on; name a corpus with a training split.")
    names = corpus["train"].features[LABELS].feature.names
    start_from = go_on if run.model_name_or_path else build_afresh
    try:
        tokenizer, model, vector_words = start_from(run, corpus["train"][WORDS], names, config_fields)
    except (ArithmeticError, MemoryError, RuntimeError) as error:
        raise ValueError(f"The model cannot be built: {first_line(error)}; choose other sizes.") from error
    coverage = {}
    if vector_words:
        coverage = {name: coverage_of(tokenizer, vector_words, split[WORDS]) for name, split in corpus.items()}
    if model.features.context is not None and model.config.context_frozen:
        with training.main_process_first(desc="encoding"):
            corpus = with_context_states(corpus, model.features.context.to(training.device), tokenizer, WORDS)
    validated = "validation" in corpus and _has_words(corpus["validation"])
    choose_by(training, model, validated)
    try:
        trainer = TaggerTrainer(
            model,
            training,
            train_dataset=corpus["train"],
            eval_dataset=corpus["validation"] if validated else None,
            processing_class=tokenizer,
        )
    # Among others, for a reporter that is not installed; what the Trainer raises has no common type.
    except Exception as error:
        raise ValueError(f"The Trainer refuses its options: {first_line(error)}.") from error
    average = None
    if run.average_epochs and validated:
        average = EpochAverage(run.average_epochs)
        trainer.add_callback(average)
    record = RunRecord(corpus, asdict(run))
    trainer.add_callback(record)
    return TrainingRun(corpus, trainer, coverage, average, run, options, command, record)


def _has_words(split: Dataset) -> bool:
    return any(map(len, split[WORDS]))


def check_output(run: RunArguments, training: TaggerTrainingArguments) -> None:
    """Refuse an output folder that a run cannot use.

    Raises:
        ValueError: If it holds the model that training goes on from.
        TrainingError: If it cannot be written, another run writes it, or it has checkpoints of an unfinished run.
    """
    folder = Path(str(training.output_dir))
    if run.model_name_or_path:
        check_output_apart(run.model_name_or_path, training.output_dir)
    with folder_locked(folder, training):
        if str(training.resume_from_checkpoint).casefold() in ("none", "false"):
            check_unfinished(folder)


def choose_by(training: TaggerTrainingArguments, model: TaggerForTokenClassification, validated: bool) -> None:
    """Settle by what score the best epoch is chosen, if there are data to choose it by; else the last one is taken.

    Raises:
        ValueError: If the score that was asked for is not among those of the model's labels.
    """
    if not validated:
        training.eval_strategy, training.load_best_model_at_end, training.eval_on_start = "no", False, False
        return
    scores = ("f1", "precision", "recall", "accuracy") if model.tags.chunked else ("accuracy",)
    metric = training.metric_for_best_model
    if metric in (None, "loss"):
        training.metric_for_best_model, training.greater_is_better = scores[0], True
    elif metric.removeprefix("eval_") not in (*scores, "loss"):
        raise ValueError(
            f"metric_for_best_model={metric!r} is unknown; choose one of {', '.join(scores)} and eval_loss."
        )
