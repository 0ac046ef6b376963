"""Spans of tags in every chunk scheme, for all sentences at once."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..corpora.schemes import Scheme, TagSet
from ..models.word_ids import BEGIN, END, SINGLE, Chunks

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Policy = Literal["strict", "conlleval"]
POLICIES: tuple[Policy, ...] = ("strict", "conlleval")


@dataclass(frozen=True, eq=False)
class Spans:
    """The spans of a corpus, sorted by their start; they never overlap, and never cross a sentence.

    Attributes:
        start: The index of the first word, counted over all sentences in a row. Shape: (spans,), as the others.
        end: The index after the last word.
        type: The index of the type in the tag set.
    """

    start: IntArray
    end: IntArray
    type: IntArray

    def __len__(self) -> int:
        return len(self.start)

    def any_word(self, flag: BoolArray) -> BoolArray:
        """Return for each span whether any of its words is flagged; `flag` has the shape (tokens,)."""
        flagged_before = np.append(0, np.cumsum(flag))
        return flagged_before[self.end] > flagged_before[self.start]

    def of_words(self, words: int) -> IntArray:
        """Return the index of the span that each word is in, -1 outside of spans. Shape: (words,)."""
        size = self.end - self.start
        inside = np.repeat(self.start - (np.cumsum(size) - size), size) + np.arange(size.sum())
        numbers = np.full(words, -1)
        numbers[inside] = np.repeat(np.arange(len(self)), size)
        return numbers


def spans_of_ids(ids: IntArray, lengths: IntArray, tag_set: TagSet, policy: Policy) -> Spans:
    """Return the spans of numbered tags.

    Tags fall into runs, see `hf_xorner.models.word_ids.continues`. The policies differ on runs that the scheme does not
    allow. "conlleval" repairs them: every run is a span, as in seqeval's default mode. For B- and I- this is the rule
    of conlleval.pl, which does not support S-, and joins an E- to the B- after it. "strict" drops them (li2020): only
    B I* counts in IOB2, only B I* E and S in BIOES, BILOU and BMES. IOB1 allows every run: both policies agree there.

    Args:
        ids: One number for each token, sentence after sentence. Shape: (tokens,).
        lengths: The number of tokens of each sentence. Shape: (sentences,).
        tag_set: The meaning of the numbers.
        policy: "strict" or "conlleval".
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}; expected one of {', '.join(POLICIES)}.")
    chunks = tag_set.chunks(ids, lengths)
    if policy == "strict":
        kinds = tag_set.kind_of[ids]
        well_formed = _well_formed(kinds[chunks.first], kinds[chunks.end - 1], tag_set.scheme)
        chunks = Chunks(*(values[well_formed] for values in chunks))
    return Spans(chunks.first, chunks.end, chunks.type)


def _well_formed(first: IntArray, last: IntArray, scheme: Scheme) -> BoolArray:
    """Return which runs a scheme allows, by the kinds of their first and last tags; all between are INSIDE."""
    if scheme == "iob1":
        return np.ones(len(first), dtype=bool)
    if scheme == "iob2":
        return first == BEGIN
    return (first == SINGLE) | ((first == BEGIN) & (last == END))
