"""Tag texts or lists of words, with the results of the `ner` pipeline but several times as fast."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .entities import BaseTagger, NumberByLabel, batches_of
from .files import CARD_FILE, FACTS_FILE
from .loading import check_fit, load, moved
from .models.modeling_tagger import TaggerForTokenClassification
from .models.tokenization_word_char import WordCharTokenizer
from .models.word_ids import Words

#: From this number of words on, distinct words are computed once for all batches, else in each batch.
FEWEST_WORDS = 256

#: Up to this number of words, PyTorch uses one thread. More hardly help, and on busy cores they wait for each other: a
#: sentence took 800 ms with two threads and 14 ms with one, where PyTorch was imported before this package.
SHORT = 64

#: Number of distinct words that are computed at a time.
DISTINCT_AT_ONCE = 512

#: The process in which PyTorch may use threads.
_process = os.getpid()


class Tagger(BaseTagger):
    """A model with its tokenizer, to tag one or many texts.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        device: The device to which the model is moved, if given.
        min_score: Entities with a lower score are left out: one number from 0 to 1, or numbers by label, such as
            `{"PER": 0.9}`. The default is `min_score` in the model's config, or 0, which keeps all.

    Attributes:
        min_score: The argument, or its default; the methods that return entities can override it.
    """

    def __init__(
        self,
        model: TaggerForTokenClassification,
        tokenizer: WordCharTokenizer,
        device: str | torch.device | None = None,
        min_score: NumberByLabel | None = None,
    ) -> None:
        check_fit(model.config, tokenizer)
        super().__init__(model.config.labels, tokenizer, min_score, getattr(model.config, "min_score", None))
        self.model = model.eval() if device is None else moved(model.eval(), device)
        #: The scores of the held-out splits by their names, if the tagger comes from `hf_xorner.train`.
        self.scores: dict[str, dict[str, Any]] | None = None

    @classmethod
    def from_pretrained(
        cls,
        source: str = "english",
        device: str | torch.device | None = None,
        min_score: NumberByLabel | None = None,
        **options: Any,
    ) -> Tagger:
        """Load a folder or a repository on the Hub with safetensors weights.

        Args:
            source: The folder, the repository as owner/name, or "english", "english-open" or "multilingual" for a
                model of the package.
            device: A device such as "cpu" or "cuda:0".
            min_score: See `Tagger`.
            options: Options of transformers' `from_pretrained`. Code in the folder runs only with
                `trust_remote_code=True`.

        Raises:
            ValueError: If a file is missing or broken, the device is not available, or `min_score` does not fit.
        """
        return cls(*load(source, **options), device, min_score)

    def __repr__(self) -> str:
        return (
            f"Tagger({self.model.config.model_type}, {self.model.num_parameters():,} parameters, {self.model.device}, "
            f"types: {', '.join(self.entity_labels)})"
        )

    def save_pretrained(self, folder: str | Path) -> None:
        """Save the model, its code and the tokenizer to a folder that `from_pretrained` loads."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.model.device

    def to(self, device: str | torch.device) -> Tagger:
        """Move the model to a device, and return the tagger."""
        self.model = moved(self.model, device)
        return self

    def push_to_hub(self, repo_id: str, **options: Any) -> Any:
        """Publish the tagger as `hf-xorner publish` does: with its code, a card and its checks.

        Args:
            repo_id: The repository, as owner/name.
            options: The other options of `hf_xorner.publish`.
        """
        import hf_xorner  # the package looks `publish` up when it is used

        with TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            for name in (FACTS_FILE, CARD_FILE):
                if (file := Path(self.model.name_or_path, name)).is_file():
                    copyfile(file, Path(folder, name))
            return hf_xorner.publish(folder, repo_id, **options)

    def label_words(self, words: Words, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
        """Label words in batches of sentences of similar length; see `BaseTagger.label_words`."""
        labels = np.zeros(len(words.row), dtype=np.int64)
        log_probs = np.zeros((len(words.row), 2), dtype=np.float32)

        def label(inputs: dict[str, Any], mask: Tensor, positions: Tensor) -> None:
            results = self.score(**inputs, attention_mask=mask.to(self.model.device))
            labels[positions], log_probs[positions] = (values.cpu()[mask] for values in results)

        _use_one_thread_after_a_fork()
        threads = torch.get_num_threads() if self.model.device.type == "cpu" else 1
        together = threads if len(words.counts) > batch_size else 1
        short = threads > 1 and len(words.row) <= SHORT
        training = [module for module in self.model.modules() if module.training]
        try:
            for module in training:
                module.training = False  # without dropout
            if short:
                torch.set_num_threads(1)
            with torch.autocast("cpu", enabled=False):  # the threads would not have it either
                _in_threads(label, self.batches(words, batch_size, self._word_states(words, together)), together)
        finally:
            for module in training:
                module.training = True
            if short:
                torch.set_num_threads(threads)
        return labels, log_probs

    def _word_states(self, words: Words, threads: int) -> Tensor | None:
        """The model's `word_states` of the distinct words; None if computing them in each batch is faster."""
        model = self.model
        if len(words.row) < FEWEST_WORDS or model.device.type != "cpu" or model.features.context is not None:
            return None
        inputs = self._inputs(words)
        parts = (inputs["char_ids"] != 0).sum(1).argsort().split(DISTINCT_AT_ONCE)  # words of similar length together
        states: list[Any] = [None] * len(parts)

        def compute_part(number: int, part: Tensor) -> None:
            inputs_of_part = {name: values[part] for name, values in inputs.items()}
            states[number] = model.word_states(**inputs_of_part)

        _in_threads(compute_part, enumerate(parts), threads)
        with torch.inference_mode():
            table = states[0].new_empty(len(words.input_ids), states[0].shape[1])
            return table.index_copy_(0, torch.cat(parts), torch.cat(states))

    def _inputs(self, words: Words) -> dict[str, Tensor]:
        """The inputs of the model for distinct words."""
        arrays = {"input_ids": words.input_ids, "char_ids": words.char_ids, "piece_ids": words.piece_ids}
        return {name: torch.from_numpy(values) for name, values in arrays.items() if values is not None}

    def score(self, **inputs: Any) -> tuple[Tensor, Tensor]:
        """Return the labels (B, T) of a batch, and their `path_log_probs` (B, T, 2)."""
        if "states" in inputs:
            return self.model.label_states(**inputs)
        output = self.model(**inputs, output_logits=False, output_path_log_probs=True, return_dict=True)
        return output.path, output.path_log_probs

    def batches(
        self, words: Words, batch_size: int, word_states: Tensor | None = None
    ) -> Iterator[tuple[dict[str, Any], Tensor, Tensor]]:
        """Yield words in batches of sentences of similar length, right-padded.

        Args:
            words: The words of sentences, from `tokenizer.words_of`.
            batch_size: Sentences per batch; fewer if they are long.
            word_states: The `word_states` of the distinct words, to which the inputs then refer.

        Yields:
            The inputs of the model, on its device; on the CPU, the mask (B, T), and the indices of the batch's words
            among all words.
        """
        inputs = self._inputs(words)
        distinct = torch.from_numpy(words.row)
        for arrays in batches_of(words.counts, batch_size):
            mask, positions = map(torch.from_numpy, arrays)
            rows = distinct[positions]
            if word_states is not None:
                yield {"rows": _pad(rows, mask), "states": word_states}, mask, positions
                continue
            yield (
                {name: _pad(values[rows], mask).to(self.model.device) for name, values in inputs.items()},
                mask,
                positions,
            )


def _use_one_thread_after_a_fork() -> None:
    """Use one thread in a forked process: OpenMP's threads do not exist there, and PyTorch would wait for them."""
    global _process
    if _process != os.getpid():
        torch.set_num_threads(1)
        _process = os.getpid()


@torch.inference_mode()
def _in_threads(call: Callable[..., None], batches: Iterable[tuple[Any, ...]], threads: int) -> None:
    """Call a function with each batch in several threads, each with one PyTorch thread: faster than the reverse."""
    if threads == 1:
        for batch in batches:
            call(*batch)
        return
    lock, batches = Lock(), iter(batches)

    @torch.inference_mode()
    def work() -> None:
        while True:
            with lock:
                batch = next(batches, None)
            if batch is None:
                return
            call(*batch)

    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        futures = [pool.submit(work) for _ in range(threads)]
    # `set_num_threads` in a thread also sets the default of threads that start later.
    torch.set_num_threads(threads)
    for future in futures:
        future.result()


def _pad(values: Tensor, mask: Tensor) -> Tensor:
    """Pad the values (N, …) of the words of a batch: (B, T, …) with mask (B, T)."""
    padded = values.new_zeros(*mask.shape, *values.shape[1:])
    padded[mask] = values
    return padded
