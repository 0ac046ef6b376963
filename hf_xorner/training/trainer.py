"""The Trainer for taggers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from shutil import disk_usage
from typing import Any

import torch
from torch import Tensor
from transformers import EarlyStoppingCallback, PrinterCallback, ProgressCallback, Trainer

from ..errors import TrainingError, first_line
from ..evaluation import compute_metrics_for
from ..loading import without_bars
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tags import IGNORED
from .arguments import TaggerTrainingArguments
from .batches import TEACHER_PAIRS, TaggingCollator
from .optimization import Nadam, NoDenormals, decay_by_epoch
from .progress import EpochProgress

#: The best F1 or accuracy, in percent.
PERFECT = 100.0


class EarlyStopping(EarlyStoppingCallback):
    """Stops after some evaluations without a better score, or when a score is perfect."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Set the patience again, since resuming restores that of the interrupted run."""
        super().on_train_begin(args, state, control, **options)
        self.early_stopping_patience = args.early_stopping

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **options: Any) -> None:
        """Decide after an evaluation."""
        score = metrics.get(f"eval_{args.metric_for_best_model.removeprefix('eval_')}")
        if score or state.best_metric:  # before the first correct entity, there is nothing to improve
            super().on_evaluate(args, state, control, metrics, **options)
        if score == PERFECT:
            control.should_training_stop = True


@contextmanager
def writing(folder: Any) -> Iterator[None]:
    """Convert an error in writing a model, such as a full disk; those of torch and safetensors are no OSError."""
    try:
        yield
    except Exception as error:
        raise TrainingError(
            f"{folder} cannot be written, with {disk_usage(folder).free:,} bytes free: {first_line(error)}; correct "
            "this, then continue with --resume_from_checkpoint."
        ) from error


def choose_metric(training: TaggerTrainingArguments, model: TaggerForTokenClassification, data: Any) -> None:
    """Set the metric that selects the best epoch; for a dict of validation data, by default that of the first.

    Raises:
        ValueError: If `metric_for_best_model` does not exist for the model's labels.
    """
    scores = ("f1", "precision", "recall", "accuracy") if model.tags.chunked else ("accuracy",)
    prefixes = [f"{name}_" for name in data] if isinstance(data, dict) else [""]
    metric = training.metric_for_best_model
    if metric in (None, "loss"):
        training.metric_for_best_model, training.greater_is_better = f"{prefixes[0]}{scores[0]}", True
    elif metric.removeprefix("eval_") not in [prefix + score for prefix in prefixes for score in (*scores, "loss")]:
        raise ValueError(
            f"metric_for_best_model={metric!r} is unknown; choose one of {', '.join(scores)} and eval_loss."
        )


class TaggerTrainer(Trainer):
    """Trains a tagger on datasets of words and labels, scored by strict span F1 in percent.

    By default, the collator encodes the columns `tokens` and `ner_tags`, and metrics are computed for the model's
    labels. `TaggerTrainingArguments` add optimizers, learning rate decay by epoch and early stopping, and keep the
    epoch with the best F1 (of single labels, accuracy).
    """

    lr_scheduler: Any
    _signature_columns: Any
    compute_metrics: Any
    #: Predict tuples of logits and `path_log_probs`.
    output_path_log_probs: bool = False

    def __init__(self, model: Any = None, args: Any = None, **options: Any) -> None:
        if options.get("data_collator") is None and options.get("processing_class") is not None:
            options["data_collator"] = TaggingCollator(options["processing_class"])
        args = copy(args)  # changed below
        tagging = isinstance(args, TaggerTrainingArguments)
        if tagging and options.get("eval_dataset") is None:
            args.eval_strategy, args.load_best_model_at_end, args.eval_on_start = "no", False, False
        super().__init__(model, args, **options)
        if tagging and self.eval_dataset is not None:
            choose_metric(self.args, self.model, self.eval_dataset)
        self._scores_unlabelled = self.compute_metrics is None
        if self.compute_metrics is None:
            self.compute_metrics = compute_metrics_for(self.model.config.id2label)
        # The model divides the loss by the result of `_get_num_items_in_batch`.
        self.model_accepts_loss_kwargs = True
        self._words = getattr(self.data_collator, "words", "tokens")
        self.add_callback(NoDenormals)
        # Progress callbacks of the user and of notebooks are kept.
        stock = (ProgressCallback, PrinterCallback)
        callbacks = options.get("callbacks") or ()
        kinds = [callback if isinstance(callback, type) else type(callback) for callback in callbacks]
        if not any(issubclass(kind, stock) for kind in kinds) and any(self.pop_callback(kind) for kind in stock):
            self.add_callback(EpochProgress(self._words))
        patience = getattr(self.args, "early_stopping", 0)
        if patience and self.eval_dataset is not None:
            self.add_callback(EarlyStopping(patience))

    def compute_loss(self, model: Any, inputs: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        """Compute the loss; for data with a teacher's posterior, `teacher_weight` applies."""
        if TEACHER_PAIRS in inputs:
            inputs["teacher_weight"] = getattr(self.args, "teacher_weight", 1.0)
        return super().compute_loss(model, inputs, *arguments, **options)

    def prediction_step(self, model: Any, inputs: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        """Return loss, logits and labels; for the default scores, words without a label have -1, unlike padding."""
        if self.output_path_log_probs:
            inputs["output_path_log_probs"] = True
        loss, logits, labels = super().prediction_step(model, inputs, *arguments, **options)
        if labels is not None and self._scores_unlabelled:
            labels = labels.masked_fill(inputs["attention_mask"].to(labels.device).bool() & labels.eq(IGNORED), -1)
        return loss, logits, labels

    @staticmethod
    def get_optimizer_cls_and_kwargs(args: Any, model: Any = None) -> tuple[Any, dict[str, Any]]:
        """Return the class and options of `optimizer`, or by default those of `optim`."""
        if getattr(args, "optimizer", None) == "nadam":
            betas = (args.adam_beta1, args.adam_beta2)
            return Nadam, {"lr": args.learning_rate, "betas": betas, "eps": args.adam_epsilon}
        if getattr(args, "optimizer", None) == "sgd":
            return torch.optim.SGD, {"lr": args.learning_rate, "momentum": args.momentum, "fused": True}
        return Trainer.get_optimizer_cls_and_kwargs(args, model)

    def _set_signature_columns_if_needed(self) -> None:
        """Add the collator's columns to those that `remove_unused_columns` keeps."""
        already_set = self._signature_columns is not None
        super()._set_signature_columns_if_needed()
        if isinstance(self.data_collator, TaggingCollator) and not already_set:
            self._signature_columns += [self.data_collator.words, self.data_collator.labels]

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> Any:
        """Create the learning rate schedule, for `epoch_decay` if it is set."""
        of_user, decay = self.lr_scheduler is not None, getattr(self.args, "epoch_decay", None)
        scheduler = super().create_scheduler(num_training_steps, optimizer)
        if of_user or decay is None:
            return scheduler
        _, steps_per_epoch, *_ = self.set_initial_training_values(self.args, self.get_train_dataloader())
        self.lr_scheduler = decay_by_epoch(optimizer or self.optimizer, decay, steps_per_epoch)
        return self.lr_scheduler

    def _save_checkpoint(self, *arguments: Any) -> None:
        """Save a checkpoint, with one sentence for errors."""
        with writing(self.args.output_dir):
            super()._save_checkpoint(*arguments)

    def _save(self, *arguments: Any, **options: Any) -> None:
        """Save without a progress bar."""
        with without_bars():
            super()._save(*arguments, **options)

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Create the optimizer, with a separate learning rate for a fine-tuned encoder."""
        of_user, rate = self.optimizer is not None, getattr(self.args, "context_learning_rate", None)
        optimizer = super().create_optimizer(model)
        context = self.accelerator.unwrap_model(self.model).features.context
        if of_user or rate is None or context is None:
            return optimizer
        slow = set(context.encoder.parameters())
        for group in list(optimizer.param_groups):
            apart = [parameter for parameter in group["params"] if parameter in slow]
            if apart:
                group["params"] = [parameter for parameter in group["params"] if parameter not in slow]
                optimizer.add_param_group({**group, "params": apart, "lr": rate})
        return optimizer

    def _get_num_items_in_batch(self, batch_samples: list[dict[str, Tensor]], device: torch.device) -> Any:
        """Return the number of labelled words, or of labelled sentences if the loss is averaged over sentences.

        A teacher labels all words.
        """
        if batch_samples and TEACHER_PAIRS in batch_samples[0]:
            batch_samples = [{"labels": batch["attention_mask"].eq(0).long() * IGNORED} for batch in batch_samples]
        if self.accelerator.unwrap_model(self.model).config.loss_reduction == "sentence":
            batch_samples = [
                {"labels": torch.where(batch["labels"].ne(IGNORED).any(1), 0, IGNORED)} for batch in batch_samples
            ]
        return super()._get_num_items_in_batch(batch_samples, device)
