"""Words cut into the pieces of a pretrained encoder by its own tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from tokenizers import Tokenizer

#: The highest id of a piece; the largest vocabularies have a sixteenth of it.
_LIMIT = 1 << 24


class WordPieces:
    """An encoder's tokenizer, applied to one word at a time: a word's pieces never depend on its neighbours.

    Args:
        tokenizer: The tokenizer, or its JSON.
    """

    def __init__(self, tokenizer: Tokenizer | str) -> None:
        if isinstance(tokenizer, str):
            tokenizer = Tokenizer.from_str(tokenizer)
        # `to_str` loops over all numbers up to the highest.
        highest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
        if highest > _LIMIT:
            raise ValueError(f"its pieces must be numbered from 0 to at most {_LIMIT}")
        #: Number of ids of pieces; a vocabulary may have gaps.
        self.size = highest + 1
        parts = json.loads(tokenizer.to_str())
        # Byte-level BPE distinguishes words after a blank. The blank is added here, since `add_prefix_space` would also
        # add it inside words that another rule has split before.
        self.blank = " " if _disable_prefix_space(parts.get("pre_tokenizer")) else ""
        self.tokenizer = Tokenizer.from_str(json.dumps(parts))
        # Words are never cut or padded, and one like "[SEP]" is a word.
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = True

    def __getstate__(self) -> str:
        """Pickle the JSON: the tokenizer itself would lose `encode_special_tokens`."""
        return self.to_str()

    def __setstate__(self, state: str) -> None:
        """Restore a pickle or a copy."""
        WordPieces.__init__(self, state)

    def to_str(self) -> str:
        """The JSON of the tokenizer."""
        return self.tokenizer.to_str(pretty=True)

    def frame(self) -> tuple[list[int], list[int]]:
        """The encoder's ids of the special pieces before and after a sentence."""
        for probe in ("a", *self.tokenizer.get_vocab(with_added_tokens=False)):
            encoding = self.tokenizer.encode(probe)
            words = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
            if words:
                return encoding.ids[: words[0]], encoding.ids[words[-1] + 1 :]
        return [], []

    def of(self, words: Sequence[str], width: int) -> np.ndarray:
        """The ids + 1 of the first `width` pieces of words, (N, width), padded with 0.

        A word of which the tokenizer leaves nothing (a control character, say) has no piece.
        """
        place_of = {word: place for place, word in enumerate(dict.fromkeys(words))}
        texts = [self.blank + word if word else word for word in place_of]
        encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ids = [encoding.ids[:width] for encoding in encodings]
        counts = np.fromiter(map(len, ids), np.int64, len(ids))
        rows = np.zeros((len(ids), width), dtype=np.int64)
        rows[np.arange(width) < counts[:, None]] = np.fromiter(chain.from_iterable(ids), np.int64, counts.sum()) + 1
        return rows[np.fromiter(map(place_of.__getitem__, words), np.int64, len(words))]


def _disable_prefix_space(pre_tokenizer: Any) -> bool:
    """Set `add_prefix_space` to false in every byte-level part; return whether there is one."""
    if not isinstance(pre_tokenizer, dict):
        return False
    inner = [_disable_prefix_space(part) for part in pre_tokenizer.get("pretokenizers", ())]
    byte_level = pre_tokenizer.get("type") == "ByteLevel"
    if byte_level:
        pre_tokenizer["add_prefix_space"] = False
    return byte_level or any(inner)
