"""Which words of a file of vectors are kept."""

from collections.abc import Collection, Sequence, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError


class Block(NamedTuple):
    """Some words that are kept, and their vectors.

    Attributes:
        words: The words, in the order of the file.
        rows: Their vectors, a row each.
    """

    words: list[str]
    rows: NDArray[np.float32]  # shape: (words, dim)


def decoded(words: Sequence[bytes]) -> list[str | None]:
    """Return words as text, and None for those that are not UTF-8: word2vec and fastText cut long words anywhere.

    Args:
        words: Words in bytes.
    """
    try:
        return [word.decode("utf-8") for word in words]
    except UnicodeDecodeError:
        return [_decoded(word) for word in words]


def _decoded(word: bytes) -> str | None:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return None


class Selection:
    """Chooses the words to keep as they pass, and counts what passes."""

    def __init__(self, wanted: Collection[str] | None = None, most_frequent: int | None = None) -> None:
        """Begin a choice.

        Args:
            wanted: Words to keep.
            most_frequent: How many words to keep from the beginning of the file. With both, a word is kept for either
                reason; with neither, every word is.

        Raises:
            DataError: If this asks for nothing.
        """
        if isinstance(wanted, str):
            raise DataError(f"wanted={wanted!r} is one string; give a collection of words.")
        if most_frequent is not None and most_frequent < 1:
            raise DataError(f"most_frequent={most_frequent} keeps nothing; give a number from 1, or leave it out.")
        self.wanted = wanted if wanted is None or isinstance(wanted, Set) else frozenset(wanted)
        self.most_frequent = most_frequent
        #: Words that have passed, whether kept or not.
        self.passed = 0
        #: Words that were left out as they had been kept before.
        self.duplicates = 0
        #: Words that were left out as they are not UTF-8.
        self.undecodable = 0
        self._kept: set[str] = set()
        self._missing = 0 if self.wanted is None else len(self.wanted)
        self._takes_all = wanted is None and most_frequent is None

    def choose(self, words: Sequence[str | None]) -> list[int]:
        """Return the positions of the words that are kept, each the first of its kind.

        Args:
            words: The words that pass next, None for what is not UTF-8.
        """
        kept, wanted = self._kept, self.wanted
        from_start = len(kept) + len(words) if self._takes_all else self.most_frequent or 0
        chosen = []
        for index, word in enumerate(words):
            if word is None:
                self.undecodable += 1
                continue
            if word in kept:
                self.duplicates += 1
                continue
            is_wanted = wanted is not None and word in wanted
            # All words are kept until these are complete, so that their number is that of the words kept.
            if is_wanted or len(kept) < from_start:
                kept.add(word)
                self._missing -= is_wanted
                chosen.append(index)
        self.passed += len(words)
        return chosen

    @property
    def is_complete(self) -> bool:
        """Whether nothing that may still pass would be kept."""
        return not self._takes_all and self._missing == 0 and len(self._kept) >= (self.most_frequent or 0)

    def most(self, promised: int | None) -> int | None:
        """Return the most words that can be kept, or None if that is not known.

        Args:
            promised: How many words the file says it holds.
        """
        if self._takes_all:
            return promised
        asked = (self.most_frequent or 0) + (0 if self.wanted is None else len(self.wanted))
        return asked if promised is None else min(asked, promised)
