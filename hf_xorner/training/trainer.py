"""The Trainer, with what a tagger needs besides."""

from __future__ import annotations

import glob
from collections.abc import Sized
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi
from torch import Tensor
from torch.utils.data import Sampler, SequentialSampler
from transformers import PrinterCallback, ProgressCallback, Trainer
from transformers.trainer_utils import HubStrategy

from ..evaluation import compute_metrics_for
from ..models.tags import IGNORED
from .batches import LengthBuckets, Shuffled, TaggingCollator, has_words, word_counts
from .checkpoints import ResumableTrainer
from .model_files import CARD, files_of_model
from .optimization import EarlyStopping, Nadam, decay_by_epoch
from .progress import EpochProgress, without_bars

#: What says how training goes, if the user brings none: each is put in the place of another.
_REPORTERS = (ProgressCallback, PrinterCallback)


class TaggerTrainer(ResumableTrainer):
    """Trains a tagger on data sets of words and labels, scored by strict span F1 in percent.

    Everything is the stock Trainer's, but that a run may be killed at any moment and resumed; where they are not given,
    the collator encodes `tokens` and `ner_tags`, and the scores are those of the model's labels. What
    `TaggerTrainingArguments` know besides is done here too: optimiser, decay of the learning rate by epochs, early
    stopping, and batches of sentences of similar length (`train_sampling_strategy="group_by_length"`).

    To the Hub goes what belongs to the model, once, at the end: the stock Trainer would send the pickles of its
    checkpoints along. `hf_xorner.hub.publish` checks before it uploads.
    """

    lr_scheduler: Any
    _signature_columns: Any

    def __init__(self, model: Any = None, args: Any = None, **options: Any) -> None:
        if options.get("data_collator") is None and options.get("processing_class") is not None:
            options["data_collator"] = TaggingCollator(options["processing_class"])
        if options.get("compute_metrics") is None and model is not None:
            options["compute_metrics"] = compute_metrics_for(model.config.id2label)
        reporters = [callback for callback in options.get("callbacks") or () if _reports(callback)]
        if args is not None and args.push_to_hub:
            args.hub_strategy = HubStrategy.END
        super().__init__(model, args, **options)
        # The count below is always the one that the loss is to be divided by.
        self.model_accepts_loss_kwargs = True
        self._words = getattr(self.data_collator, "words", "tokens")
        self._steps_per_epoch = 0
        if not reporters:
            self._report_by_epoch()
        patience = getattr(self.args, "early_stopping", 0)
        if patience and self.eval_dataset is not None:
            self.add_callback(EarlyStopping(patience))

    def _report_by_epoch(self) -> None:
        """Replace the stock reporter; a notebook keeps its own."""
        if any(self.pop_callback(kind) for kind in _REPORTERS):
            self.add_callback(EpochProgress(self._words))

    @staticmethod
    def get_optimizer_cls_and_kwargs(args: Any, model: Any = None) -> tuple[Any, dict[str, Any]]:
        """Return what `optimizer` asks for, or else `optim`."""
        if getattr(args, "optimizer", None) == "nadam":
            betas = (args.adam_beta1, args.adam_beta2)
            return Nadam, {"lr": args.learning_rate, "betas": betas, "eps": args.adam_epsilon}
        if getattr(args, "optimizer", None) == "sgd":
            return torch.optim.SGD, {"lr": args.learning_rate, "momentum": args.momentum}
        return Trainer.get_optimizer_cls_and_kwargs(args, model)

    def _set_signature_columns_if_needed(self) -> None:
        """Count the columns that the collator encodes as used: `remove_unused_columns` is about all others."""
        already_set = self._signature_columns is not None
        super()._set_signature_columns_if_needed()
        if isinstance(self.data_collator, TaggingCollator) and not already_set:
            self._signature_columns += [self.data_collator.words, self.data_collator.labels]

    def set_initial_training_values(self, *arguments: Any) -> Any:
        """Note how many steps an epoch has."""
        values = super().set_initial_training_values(*arguments)
        self._steps_per_epoch = values[1]
        return values

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> Any:
        """Create the schedule: from epoch to epoch, where `epoch_decay` asks for that."""
        given, decay = self.lr_scheduler is not None, getattr(self.args, "epoch_decay", None)
        scheduler = super().create_scheduler(num_training_steps, optimizer)
        if given or decay is None:
            return scheduler
        if not isinstance(self.train_dataset, Sized):
            raise ValueError(
                "epoch_decay counts epochs, so the training data must have a length; this stream has none."
            )
        if not self._steps_per_epoch:
            self.set_initial_training_values(self.args, self.get_train_dataloader())
        self.lr_scheduler = decay_by_epoch(optimizer or self.optimizer, decay, self._steps_per_epoch)
        return self.lr_scheduler

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler | None:
        """Draw an order that a resumed run finds again, or group by the number of words, which Trainer does not see."""
        args = self.args
        data = self.train_dataset if train_dataset is None else train_dataset
        seed = args.seed if args.data_seed is None else args.data_seed
        if args.train_sampling_strategy == "random" and isinstance(data, Sized) and len(data):
            return Shuffled(len(data), seed, self._epoch)
        if not self._groups_by_length or not has_words(data, self._words):
            return super()._get_train_sampler(train_dataset)
        together = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        return LengthBuckets(word_counts(data, self._words), together, seed, self._epoch)

    def _epoch(self) -> int:
        """The number of the epoch that begins, or goes on."""
        return int(self.state.epoch or 0)

    def _get_eval_sampler(self, eval_dataset: Any) -> Sampler | None:
        """Leave evaluation in the order of the data, also where training groups by length."""
        if not self._groups_by_length or not isinstance(eval_dataset, Sized):
            return super()._get_eval_sampler(eval_dataset)
        return SequentialSampler(eval_dataset) if self.args.world_size <= 1 else None

    @property
    def _groups_by_length(self) -> bool:
        return self.args.train_sampling_strategy == "group_by_length"

    def _save(self, *arguments: Any, **options: Any) -> None:
        """Save without a bar."""
        with without_bars():
            super()._save(*arguments, **options)

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Create the optimiser, with a learning rate of its own for an encoder that is trained along."""
        given, rate = self.optimizer is not None, getattr(self.args, "context_learning_rate", None)
        optimizer = super().create_optimizer(model)
        context = self.accelerator.unwrap_model(self.model).features.context
        if given or rate is None or context is None:
            return optimizer
        slow = set(context.encoder.parameters())
        for group in list(optimizer.param_groups):
            apart = [parameter for parameter in group["params"] if parameter in slow]
            if apart:
                group["params"] = [parameter for parameter in group["params"] if parameter not in slow]
                options = {name: value for name, value in group.items() if name not in ("params", "initial_lr")}
                optimizer.add_param_group({**options, "params": apart, "lr": rate})
        return optimizer

    def push_to_hub(
        self,
        commit_message: str | None = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        private: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Upload the model to `args.hub_model_id`: the files that belong to it, and none that training left beside.

        A card that is there is kept; the options are the stock Trainer's.
        """
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        token = token if token is not None else self.args.hub_token
        if self.hub_model_id is None:
            self.init_hf_repo(token=token, private=private)
        self.save_model(_internal_call=True)
        if not self.is_world_process_zero():
            return None
        folder = Path(self.args.output_dir)
        if not (folder / CARD).exists():
            self.create_model_card(**kwargs)
        client: Any = HfApi()
        return client.upload_folder(
            repo_id=self.hub_model_id,
            folder_path=folder,
            commit_message=commit_message,
            token=token,
            run_as_future=not blocking,
            allow_patterns=[glob.escape(name) for name in files_of_model(folder)],
            revision=revision if revision is not None else self.args.hub_revision,
        )

    def _get_num_items_in_batch(self, batch_samples: list[dict[str, Tensor]], device: torch.device) -> Any:
        """Count labelled sentences instead of words, where the loss is averaged over sentences."""
        if self.accelerator.unwrap_model(self.model).config.loss_reduction == "sentence":
            batch_samples = [
                {"labels": torch.where(batch["labels"].ne(IGNORED).any(1), 0, IGNORED)} for batch in batch_samples
            ]
        return super()._get_num_items_in_batch(batch_samples, device)


def _reports(callback: Any) -> bool:
    """Whether a callback, or a class of callbacks, takes the place of the Trainer's own bar."""
    return issubclass(callback if isinstance(callback, type) else type(callback), _REPORTERS)
