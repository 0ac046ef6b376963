"""Ending a run whose score has stopped rising."""

from __future__ import annotations

from typing import Any

from transformers import EarlyStoppingCallback


class EarlyStopping(EarlyStoppingCallback):
    """The EarlyStoppingCallback of transformers, which a resumed run does not have count anew."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count the evaluations since the best one, where a checkpoint holds any."""
        super().on_train_begin(args, state, control, **kwargs)
        name = f"eval_{args.metric_for_best_model.removeprefix('eval_')}"
        scores = [entry[name] for entry in state.log_history if name in entry]
        if not args.greater_is_better:
            scores = [-score for score in scores]
        self.early_stopping_patience_counter = len(scores) - 1 - scores.index(max(scores)) if scores else 0
