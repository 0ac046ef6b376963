"""What a tokenizer says of words, each asked about once."""

from __future__ import annotations

from itertools import chain

import numpy as np
import torch
from torch import Tensor

from ..models.tokenization_word_char import WordCharTokenizer

#: Words that are remembered, some 35 MB of them; rarer ones are encoded each time they occur.
MOST_WORDS = 1 << 17

_FIRST_ROOM = 1024


class WordRows:
    """Encodes sentences of given words as the tokenizer does, faster from the second time on.

    A given word is one token whatever stands beside it, so the rows of a batch are those of its words.

    Args:
        tokenizer: Of the model.
        most_words: How many words are remembered.
    """

    def __init__(self, tokenizer: WordCharTokenizer, most_words: int = MOST_WORDS) -> None:
        self.tokenizer, self.most_words = tokenizer, most_words
        self.place: dict[str, int] = {}
        self.columns: dict[str, np.ndarray] = {}

    def encode(self, sentences: list[list[str]]) -> dict[str, Tensor]:
        """Encode sentences, padded to the longest of them."""
        if not all(isinstance(sentence, (list, tuple)) for sentence in sentences):
            return self._by_tokenizer(sentences)
        try:
            words = list(chain.from_iterable(sentences))
            unseen = dict.fromkeys(word for word in words if word not in self.place)
        except TypeError:  # No words: the tokenizer says what is wrong.
            return self._by_tokenizer(sentences)
        if unseen:
            if len(self.place) + len(unseen) > self.most_words:
                return self._by_tokenizer(sentences)
            try:
                self._remember(list(unseen))
            except ValueError:
                return self._by_tokenizer(sentences)
        if not words:
            return self._by_tokenizer(sentences)
        rows = np.fromiter(map(self.place.__getitem__, words), np.int64, len(words))
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        width = lengths.max()
        start = width - lengths[:, None] if self.tokenizer.padding_side == "left" else 0
        position = np.arange(width)
        mask = (position >= start) & (position < start + lengths[:, None])
        batch = {}
        for name, column in self.columns.items():
            padded = np.full((*mask.shape, *column.shape[1:]), self.pad_of(name), column.dtype)
            padded[mask] = column[rows]
            batch[name] = torch.from_numpy(padded)
        batch["attention_mask"] = torch.from_numpy(mask.astype(np.int64))
        return batch

    def pad_of(self, name: str) -> int:
        """What stands where no word is."""
        return self.tokenizer.pad_token_id if name == "input_ids" else 0

    def _by_tokenizer(self, sentences: list[list[str]]) -> dict[str, Tensor]:
        return dict(self.tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt"))

    def _remember(self, words: list[str]) -> None:
        """Ask the tokenizer about words, and keep what it says."""
        encoded = self._by_tokenizer([words])
        encoded.pop("attention_mask")
        first = len(self.place)
        for name, rows in encoded.items():
            self.columns[name] = _with_room(self.columns.get(name), rows[0].numpy(), first + len(words))
            self.columns[name][first : first + len(words)] = rows[0].numpy()
        self.place.update(zip(words, range(first, first + len(words)), strict=True))


def _with_room(column: np.ndarray | None, like: np.ndarray, size: int) -> np.ndarray:
    """A column of at least `size` rows, which begins with what is there; its room doubles, so growing stays cheap."""
    if column is not None and len(column) >= size:
        return column
    room = max(size, _FIRST_ROOM, 0 if column is None else 2 * len(column))
    grown = np.zeros((room, *like.shape[1:]), like.dtype)
    if column is not None:
        grown[: len(column)] = column
    return grown
