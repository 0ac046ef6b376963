"""What a run shows while it trains: a bar in a terminal, and one line an epoch."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from huggingface_hub.utils import are_progress_bars_disabled
from tqdm.auto import tqdm
from transformers import ProgressCallback
from transformers.utils import logging

from .batches import has_words, word_counts


class Stopped(KeyboardInterrupt):
    """A signal asked to stop. No `except Exception` on the way holds this up.

    Args:
        number: The signal's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` where SIGINT or SIGTERM arrives, so that what is half written is cleared away.

    Only the main thread of a process may call this.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


#: Scores of an evaluation by their names, and how a line calls them.
_SCORES = {"precision": "P", "recall": "R", "f1": "F1"}


class EpochProgress(ProgressCallback):
    """Says of every epoch, in one line: loss, scores of the validation data, the best so far, seconds and speed.

    In a terminal a bar stands below, with the last loss and score; with `disable_tqdm` there are the lines alone. The
    main process speaks, the others are silent.

    Args:
        words: Column of the words, for the words a second.
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
        """Open the bar, where a resumed run left it."""
        self.training, self.loss, self.current_step = True, None, state.global_step
        if not state.is_world_process_zero:
            return
        data = getattr(train_dataloader, "dataset", None)
        self.total_words = int(word_counts(data, self.words).sum()) if has_words(data, self.words) else 0
        if not args.disable_tqdm:
            self.training_bar = tqdm(total=state.max_steps, initial=state.global_step, dynamic_ncols=True)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Say what is left to say of the epoch before, and start the clock."""
        self._end_epoch(args, state)
        self._start_epoch(state.epoch or 0.0)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Move the bar."""
        if self.training_bar is not None:
            super().on_step_end(args, state, control, **kwargs)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop the clock; the loss and the scores of this epoch are still to come."""
        self.seconds = time.perf_counter() - self.started
        self.speed = self.total_words * (state.epoch - self.first_epoch) / max(self.seconds, 1e-9)
        self.unsaid = True

    def on_prediction_step(
        self, args: Any, state: Any, control: Any, eval_dataloader: Any = None, **kwargs: Any
    ) -> None:
        """Move the bar of an evaluation."""
        if not args.disable_tqdm:
            super().on_prediction_step(args, state, control, eval_dataloader=eval_dataloader, **kwargs)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Note the loss, for the bar and for the line of the epoch."""
        if logs and "loss" in logs:
            self.loss = logs["loss"]
            self._set_postfix({"loss": f"{self.loss:.4g}"})

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        """Say how the model scored."""
        super().on_evaluate(args, state, control, **kwargs)
        scores, said = logged_scores(metrics or {})
        for name in list(scores)[-1:]:
            self._set_postfix({name: f"{scores[name]:.4g}"})
        if self.training and not self.unsaid:
            # Within an epoch: what the evaluation took is no time of training.
            self.started += next((value for key, value in (metrics or {}).items() if key.endswith("_runtime")), 0.0)
        self._say(args, state, [*self._head(args, state), *said, *self._best(args, state), *self._pace()])
        self.unsaid = False

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Say what is left to say, and close the bar."""
        self._end_epoch(args, state)
        self.training = False
        if self.training_bar is not None:
            super().on_train_end(args, state, control, **kwargs)

    def _start_epoch(self, epoch: float) -> None:
        self.first_epoch, self.started = epoch, time.perf_counter()
        self.seconds, self.speed, self.unsaid = 0.0, 0.0, False

    def _end_epoch(self, args: Any, state: Any) -> None:
        """Say the line of an epoch that no evaluation followed."""
        if self.unsaid:
            self._say(args, state, [*self._head(args, state), *self._pace()])
            self.unsaid = False

    def _head(self, args: Any, state: Any) -> list[str]:
        if not self.training:
            return ["evaluation"]
        loss = [] if self.loss is None else [f"loss {self.loss:.4f}"]
        return [f"epoch {_number(state.epoch)}/{_number(_epochs_of(args, state))}", *loss]

    def _best(self, args: Any, state: Any) -> list[str]:
        name = (args.metric_for_best_model or "").removeprefix("eval_")
        history = [(entry[f"eval_{name}"], entry["epoch"]) for entry in state.log_history if f"eval_{name}" in entry]
        if not self.training or not history:
            return []
        score, epoch = (max if args.greater_is_better else min)(history, key=lambda entry: entry[0])
        return [f"best {_SCORES.get(name, name)} {score:.2f} (epoch {_number(epoch)})"]

    def _pace(self) -> list[str]:
        """Seconds of the epoch's training, and its words a second."""
        if not self.unsaid:
            return []
        return [f"{self.seconds:.1f} s", *([f"{self.speed:,.0f} words/s"] if self.speed else [])]

    def _set_postfix(self, entry: dict[str, str]) -> None:
        """Show a figure at the end of the bar, beside those that stand there."""
        if self.training_bar is not None:
            self.shown.update(entry)
            self.training_bar.set_postfix(self.shown)

    def _say(self, args: Any, state: Any, parts: list[str]) -> None:
        """Write a line, above the bar where there is one."""
        if not state.is_world_process_zero:
            return
        line = "  ".join(parts)
        if self.training_bar is not None:
            self.training_bar.write(line)
        else:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


def logged_scores(metrics: dict[str, Any]) -> tuple[dict[str, float], list[str]]:
    """Precision, recall and F1 of an evaluation; of plain labels the accuracy; else the loss; and the same in words."""
    for names in (tuple(_SCORES), ("accuracy",), ("loss",)):
        last = next((key for key in metrics if key.endswith(f"_{names[-1]}")), None)
        if last is not None:
            prefix = last.removesuffix(f"_{names[-1]}")
            found = {name: metrics[f"{prefix}_{name}"] for name in names if f"{prefix}_{name}" in metrics}
            scores = {_SCORES.get(name, name): value for name, value in found.items()}
            digits = 4 if names == ("loss",) else 2
            data = prefix.removeprefix("eval").removeprefix("_") or "dev"
            return scores, [f"{data} " + " ".join(f"{name} {value:.{digits}f}" for name, value in scores.items())]
    return {}, []


def _epochs_of(args: Any, state: Any) -> float:
    """How many epochs the run is to have: as many as were asked for, or as hold the steps that were."""
    return args.num_train_epochs if args.max_steps <= 0 else state.num_train_epochs


def _number(value: float) -> str:
    return f"{round(value, 2):g}"


@contextlib.contextmanager
def without_bars() -> Iterator[None]:
    """Silence the bars of transformers, which would come between the lines, as far as the user has not."""
    if not logging.is_progress_bar_enabled() or are_progress_bars_disabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()
