"""Spans from the tags of every chunk scheme, for all sentences at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..corpora.schemes import Chunks, Scheme, TagSet, chunks_of
from ..models.tags import BEGIN, END, SINGLE

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Policy = Literal["strict", "conlleval"]
POLICIES = ("strict", "conlleval")


@dataclass(frozen=True, eq=False)
class Spans:
    """The spans of a corpus, sorted by sentence and start; those of a sentence never overlap.

    Attributes:
        sentence: The index of the sentence. Shape: (spans,), as the others.
        start: The index of the first word in the sentence.
        end: The index after the last word.
        type: The index of the type in the tag set.
    """

    sentence: IntArray
    start: IntArray
    end: IntArray
    type: IntArray

    def __len__(self) -> int:
        return len(self.sentence)

    def bounds(self, lengths: IntArray) -> tuple[IntArray, IntArray]:
        """Return where each span starts, and the index after its end, in the words of all sentences in a row.

        Args:
            lengths: The number of words of each sentence. Shape: (sentences,).
        """
        offset = (np.cumsum(lengths) - lengths)[self.sentence]
        return offset + self.start, offset + self.end

    def any_word(self, flag: BoolArray, lengths: IntArray) -> BoolArray:
        """Tell for each span whether one of its words is flagged.

        Args:
            flag: A truth value for each word of all sentences in a row. Shape: (tokens,).
            lengths: The number of words of each sentence. Shape: (sentences,).
        """
        first, end = self.bounds(lengths)
        flagged_before = np.append(0, np.cumsum(flag))
        return flagged_before[end] > flagged_before[first]

    def matches(self, gold: "Spans") -> BoolArray:
        """Tell for each span whether gold spans hold the same one: sentence, both ends and type.

        Returns:
            A truth value for each of these spans. Shape: (spans,).
        """
        if not len(self) or not len(gold):
            return np.zeros(len(self), dtype=bool)
        # A start belongs to one span only, so sentence and start find the one candidate.
        stride = int(max(self.start.max(), gold.start.max())) + 1
        keys, gold_keys = self.sentence * stride + self.start, gold.sentence * stride + gold.start
        at = np.minimum(np.searchsorted(gold_keys, keys), len(gold) - 1)
        return (gold_keys[at] == keys) & (gold.end[at] == self.end) & (gold.type[at] == self.type)


def spans_of_ids(ids: IntArray, lengths: IntArray, tag_set: TagSet, policy: Policy) -> Spans:
    """Return the spans of numbered tags.

    Tags fall into runs, see `hf_xorner.corpora.schemes.chunks_of`. The policies differ on runs that the scheme
    does not allow. "conlleval" repairs them: every run is a span, as in seqeval's default mode. For B- and I- that is
    the rule of conlleval.pl, which knows no S-, and joins an E- to the B- after it. "strict" drops them (li2020): only
    B I* counts in IOB2, only B I* E and S in BIOES and its kin. IOB1 allows every run, so that the policies are one
    there.

    Args:
        ids: One number for each token, sentence after sentence. Shape: (tokens,).
        lengths: The number of tokens of each sentence. Shape: (sentences,).
        tag_set: What the numbers say.
        policy: "strict" or "conlleval".
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}; expected one of {', '.join(POLICIES)}.")
    chunks = chunks_of(ids, lengths, tag_set)
    if policy == "strict":
        kinds = tag_set.kind_of[ids]
        well_formed = _well_formed(kinds[chunks.first], kinds[chunks.end - 1], tag_set.scheme)
        chunks = Chunks(*(values[well_formed] for values in chunks))
    sentence = np.repeat(np.arange(len(lengths)), lengths)[chunks.first]
    offset = (np.cumsum(lengths) - lengths)[sentence]
    return Spans(sentence, chunks.first - offset, chunks.end - offset, chunks.type)


def _well_formed(first: IntArray, last: IntArray, scheme: Scheme) -> BoolArray:
    """Tell which runs a scheme allows, by the kinds of their first and last tags: all between can be INSIDE only."""
    if scheme == "iob1":
        return np.ones(len(first), dtype=bool)
    if scheme == "iob2":
        return first == BEGIN
    return (first == SINGLE) | ((first == BEGIN) & (last == END))


def spans_of_tags(sentences: Sequence[Sequence[str]], policy: Policy, tag_set: TagSet | None = None) -> Spans:
    """Return the spans of sentences of tags; see `spans_of_ids`.

    Args:
        sentences: The tags of each sentence.
        policy: "strict" or "conlleval".
        tag_set: A numbering of the types to share with other sentences; that of the tags themselves if None.
    """
    tag_set = tag_set or TagSet.of(sorted(set(chain.from_iterable(sentences))))
    return spans_of_ids(number_tags(sentences, tag_set), lengths_of(sentences), tag_set, policy)


def number_tags(sentences: Sequence[Sequence[str]], tag_set: TagSet) -> IntArray:
    """Return the numbers of all tags, sentence after sentence. Shape: (tokens,)."""
    number = {tag: index for index, tag in enumerate(tag_set.tags)}
    return np.fromiter(map(number.__getitem__, chain.from_iterable(sentences)), dtype=np.int64)


def lengths_of(sentences: Sequence[Sequence[str]]) -> IntArray:
    """Return the number of tags of each sentence. Shape: (sentences,)."""
    return np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
