"""Sentences of words and labels to padded tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..models.tags import IGNORED
from ..models.tokenization_word_char import WordCharTokenizer
from .word_rows import WordRows

#: Column of the states of a frozen encoder, float32 words × dimensions as bytes; also the model's name for them.
CONTEXT_STATES = "context_states"


@dataclass
class TaggingCollator:
    """Encodes examples as they are drawn: nothing but the corpus and its distinct words has to be kept in memory.

    Args:
        tokenizer: The tokenizer of the model.
        words: Column of the words.
        labels: Column of the labels; examples without it are collated without labels.
    """

    tokenizer: WordCharTokenizer
    words: str = "tokens"
    labels: str = "ner_tags"
    _rows: WordRows | None = field(default=None, init=False, repr=False, compare=False)

    def __call__(self, examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        """Pad the examples to the longest of them."""
        if any(self.words not in example for example in examples):
            raise ValueError(
                f"An example has the columns {sorted(examples[0])} and none called {self.words!r}; name the column of "
                "the words: TaggingCollator(tokenizer, words=…)."
            )
        sentences = [example[self.words] for example in examples]
        if self._rows is None or self._rows.tokenizer is not self.tokenizer:
            self._rows = WordRows(self.tokenizer)
        batch = self._rows.encode(sentences)
        if CONTEXT_STATES in examples[0]:
            states = [example[CONTEXT_STATES] for example in examples]
            batch[CONTEXT_STATES] = _padded_states(states, batch["attention_mask"].bool())
        if self.labels not in examples[0]:
            return batch
        mask = batch["attention_mask"].bool()
        flat = [label for example in examples for label in example[self.labels]]
        if len(flat) != int(mask.sum()):
            number = next(i for i, e in enumerate(examples) if len(e[self.labels]) != len(e[self.words]))
            example = examples[number]
            raise ValueError(
                f"Example {number} of the batch has {len(example[self.words])} {self.words} and "
                f"{len(example[self.labels])} {self.labels}; every word needs one label ({IGNORED} for none)."
            )
        labels = torch.full(mask.shape, IGNORED)
        try:
            labels[mask] = torch.tensor(flat, dtype=labels.dtype)
        except (TypeError, ValueError):
            wrong = next((label for label in flat if not isinstance(label, Integral)), flat)
            raise ValueError(
                f"{self.labels} holds {wrong!r}, and labels are numbers: those of the model's id2label, or {IGNORED} "
                "for none."
            ) from None
        return {**batch, "labels": labels}


def _padded_states(rows: list[bytes], mask: Tensor) -> Tensor:
    """The states of an encoder, kept as bytes a sentence, beside the words of a batch: mask (B, T) → (B, T, d)."""
    flat = torch.from_numpy(np.frombuffer(b"".join(rows), dtype=np.float32).copy())
    words = int(mask.sum())
    size = len(flat) // words if words else 0
    padded = flat.new_zeros(*mask.shape, size)
    padded[mask] = flat.view(words, size)
    return padded
