"""The output of a training run: a progress bar and one line per epoch."""

from __future__ import annotations

import sys
import time
from typing import Any

from tqdm.auto import tqdm
from transformers import ProgressCallback

from .batches import has_words, word_counts

#: The scores of an evaluation and their abbreviations.
_SCORES = {"precision": "P", "recall": "R", "f1": "F1"}


class EpochProgress(ProgressCallback):
    """Prints one line per epoch: loss, validation scores, the best score so far, seconds and words per second.

    In a terminal, a progress bar shows the last loss and score; `disable_tqdm` removes it. Only the main process
    prints.

    Args:
        words: The column of the words, for the words per second.
    """

    def __init__(self, words: str = "tokens") -> None:
        super().__init__()
        self.words = words
        self.total_words = 0
        self.loss: float | None = None
        self.shown: dict[str, str] = {}
        self.training = False
        self._start_epoch(0.0)

    def on_train_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **kwargs: Any) -> None:
        """Create the bar, at the step where a resumed run begins."""
        self.training, self.loss, self.current_step = True, None, state.global_step
        if state.is_world_process_zero:
            data = getattr(train_dataloader, "dataset", None)
            self.total_words = int(word_counts(data, self.words).sum()) if has_words(data, self.words) else 0
            options = {"dynamic_ncols": True, "disable": args.disable_tqdm}
            self.training_bar = tqdm(total=state.max_steps, initial=state.global_step, **options)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self._end_epoch(args, state)
        self._start_epoch(state.epoch or 0.0)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop the clock; the line follows when loss and scores of the epoch are known."""
        self.seconds = time.perf_counter() - self.started
        self.speed = self.total_words * (state.epoch - self.first_epoch) / max(self.seconds, 1e-9)
        self.line_is_due = True
        state.log_history.append({"epoch": state.epoch, "step": state.global_step, "seconds": round(self.seconds, 3)})

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Update the bar of an evaluation."""
        if not args.disable_tqdm:
            super().on_prediction_step(args, state, control, **kwargs)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Store the loss for the line of the epoch, and show it in the bar."""
        if logs and "loss" in logs:
            self.loss = logs["loss"]
            self._show({"loss": f"{self.loss:.4g}"})

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        """Print the scores."""
        super().on_evaluate(args, state, control, **kwargs)
        scores, text = logged_scores(metrics or {})
        self._show({name: f"{scores[name]:.4g}" for name in list(scores)[-1:]})
        if self.training and not self.line_is_due:
            # The time of an evaluation within an epoch is not training time.
            self.started += next((value for key, value in (metrics or {}).items() if key.endswith("_runtime")), 0.0)
        self._print(args, state, [*text, *self._best(args, state)])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the bar."""
        self._end_epoch(args, state)
        self.training = False
        super().on_train_end(args, state, control, **kwargs)

    def _start_epoch(self, epoch: float) -> None:
        self.first_epoch, self.started = epoch, time.perf_counter()
        self.seconds, self.speed, self.line_is_due = 0.0, 0.0, False

    def _end_epoch(self, args: Any, state: Any) -> None:
        """Print the line of an epoch that no evaluation followed."""
        if self.line_is_due:
            self._print(args, state, [])

    def _best(self, args: Any, state: Any) -> list[str]:
        """Return the best score of the run; TrainerState only has it if the best model is kept."""
        name = (args.metric_for_best_model or "").removeprefix("eval_")
        history = [(entry[f"eval_{name}"], entry["epoch"]) for entry in state.log_history if f"eval_{name}" in entry]
        if not self.training or not history:
            return []
        score, epoch = (max if args.greater_is_better else min)(history, key=lambda entry: entry[0])
        return [f"best {_SCORES.get(name, name)} {score:.2f} (epoch {_number(epoch)})"]

    def _show(self, entry: dict[str, str]) -> None:
        """Show a figure at the end of the bar."""
        if self.training_bar is not None:
            self.shown.update(entry)
            self.training_bar.set_postfix(self.shown)

    def _print(self, args: Any, state: Any, scores: list[str]) -> None:
        """Print a line, above the bar if there is one."""
        epochs = args.num_train_epochs if args.max_steps <= 0 else state.num_train_epochs
        parts = [f"epoch {_number(state.epoch)}/{_number(epochs)}"] if self.training else ["evaluation"]
        if self.training and self.loss is not None:
            parts.append(f"loss {self.loss:.4f}")
        parts += scores
        if self.line_is_due:
            parts += [f"{self.seconds:.1f} s", *([f"{self.speed:,.0f} words/s"] if self.speed else [])]
        self.line_is_due = False
        if state.is_world_process_zero:
            tqdm.write("  ".join(parts))
            sys.stdout.flush()


def logged_scores(metrics: dict[str, Any]) -> tuple[dict[str, float], list[str]]:
    """Return the scores of an evaluation (P, R and F1; the accuracy of plain labels; or the loss) and their text."""
    for names in (tuple(_SCORES), ("accuracy",), ("loss",)):
        last = next((key for key in metrics if key.endswith(f"_{names[-1]}")), None)
        if last is not None:
            prefix = last.removesuffix(f"_{names[-1]}")
            values = {name: metrics[f"{prefix}_{name}"] for name in names if f"{prefix}_{name}" in metrics}
            scores = {_SCORES.get(name, name): value for name, value in values.items()}
            digits = 4 if names == ("loss",) else 2
            data = prefix.removeprefix("eval").removeprefix("_") or "dev"
            return scores, [f"{data} " + " ".join(f"{name} {value:.{digits}f}" for name, value in scores.items())]
    return {}, []


def _number(value: float) -> str:
    return f"{round(value, 2):g}"
