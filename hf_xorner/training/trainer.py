"""The Trainer, with what a tagger needs besides."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi
from torch import Tensor
from transformers import Trainer
from transformers.trainer_utils import HubStrategy

from ..evaluation import compute_metrics_for
from ..models.tags import IGNORED
from .collator import TaggingCollator
from .model_files import CARD, files_of_model


class TaggerTrainer(Trainer):
    """Trains a tagger on data sets of words and labels, scored by strict span F1 in percent.

    Everything is the stock Trainer's; where they are not given, the collator encodes `tokens` and `ner_tags`, and the
    scores are those of the model's labels. To the Hub goes what belongs to the model, once, at the end: the stock
    Trainer would send the pickles of its checkpoints along. `hf_xorner.hub.publish` checks before it uploads.
    """

    def __init__(self, model: Any = None, args: Any = None, **options: Any) -> None:
        if options.get("data_collator") is None and options.get("processing_class") is not None:
            options["data_collator"] = TaggingCollator(options["processing_class"])
        if options.get("compute_metrics") is None and model is not None:
            options["compute_metrics"] = compute_metrics_for(model.config.id2label)
        if args is not None and args.push_to_hub:
            args.hub_strategy = HubStrategy.END
        super().__init__(model, args, **options)
        # The count below is always the one that the loss is to be divided by.
        self.model_accepts_loss_kwargs = True

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
