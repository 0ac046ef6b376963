"""Gold and predicted tags of the same words, their spans, and the counts from which all scores are computed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..corpora.schemes import NO_CHUNK, Scheme, TagSet, scheme_of
from ..models.word_ids import BEGIN, END, SINGLE, Chunks

#: The tags of each sentence.
Tags = Sequence[Sequence[str]]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Policy = Literal["strict", "conlleval"]
POLICIES: tuple[Policy, ...] = ("strict", "conlleval")


@dataclass(frozen=True, eq=False)
class Spans:
    """The spans of a corpus, sorted by their start; they never overlap, and never cross a sentence.

    Attributes:
        start: The index of the first word, counted over all sentences. Shape: (spans,).
        end: The index after the last word. Shape: (spans,).
        type: The index of the type in the tag set. Shape: (spans,).
    """

    start: IntArray
    end: IntArray
    type: IntArray

    def __len__(self) -> int:
        return len(self.start)

    def any_word(self, flag: BoolArray) -> BoolArray:
        """Return a mask (spans,) of the spans in which a word is flagged; `flag` has the shape (tokens,)."""
        flagged_before = np.append(0, np.cumsum(flag))
        return flagged_before[self.end] > flagged_before[self.start]

    def of_words(self, words: int) -> IntArray:
        """Return the index of each word's span, -1 outside of spans. Shape: (words,)."""
        size = self.end - self.start
        inside = np.repeat(self.start - (np.cumsum(size) - size), size) + np.arange(size.sum())
        numbers = np.full(words, -1)
        numbers[inside] = np.repeat(np.arange(len(self)), size)
        return numbers


def spans_of_ids(ids: IntArray, lengths: IntArray, tag_set: TagSet, policy: Policy) -> Spans:
    """Return the spans of numbered tags.

    Tags form runs, see `hf_xorner.models.word_ids.continues`. The policies differ in runs that the scheme does not
    allow. "conlleval" repairs them: every run is a span, as in seqeval's default mode. For B- and I- this is the rule
    of conlleval.pl, which does not support S- and joins an E- with the B- after it. "strict" drops them (li2020): only
    B I* counts in IOB2, and only B I* E and S in BIOES, BILOU and BMES. IOB1 allows every run, so both policies agree.

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
    """Return a mask of the runs that a scheme allows, from the kinds of their first and last tags."""
    if scheme == "iob1":
        return np.ones(len(first), dtype=bool)
    if scheme == "iob2":
        return first == BEGIN
    return (first == SINGLE) | ((first == BEGIN) & (last == END))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Gold and predicted tags of the same words, and how their spans match.

    In a chunk scheme, words without a label have the gold tag ``?``; their predicted tags are neither right nor wrong.
    A predicted span is not counted if none of its words has a label. If only some have one, the span is wrong, since
    gold spans never contain words without a label.

    Attributes:
        gold_ids: The number of each word's gold tag, sentence after sentence. Shape: (tokens,).
        predicted_ids: The number of each word's predicted tag; the number of ``?`` in spans that are not counted.
            Shape: (tokens,).
        lengths: The number of words of each sentence. Shape: (sentences,).
        tag_set: The meaning of the numbers.
        policy: The treatment of malformed spans on both sides, "strict" or "conlleval"; see
            `hf_xorner.evaluation.comparison.spans_of_ids`.
    """

    gold_ids: IntArray
    predicted_ids: IntArray
    lengths: IntArray
    tag_set: TagSet
    policy: Policy = "conlleval"

    def __post_init__(self) -> None:
        if not self.labelled.all():
            spans = spans_of_ids(self.predicted_ids, self.lengths, self.tag_set, "conlleval")
            uncounted = np.append(~spans.any_word(self.labelled), False)[spans.of_words(len(self.gold_ids))]
            counted = np.where(uncounted, self.tag_set.unlabelled, self.predicted_ids)
            object.__setattr__(self, "predicted_ids", counted)

    @classmethod
    def of(
        cls, gold: Tags, predicted: Tags, policy: Policy = "conlleval", scheme: Scheme | Literal["auto"] = "auto"
    ) -> "Comparison":
        """Compare sentences of tags.

        Args:
            gold: The gold tags of each sentence.
            predicted: The predicted tags of each sentence, in the same scheme.
            policy: "strict" drops malformed spans, "conlleval" repairs them.
            scheme: The tag scheme; "auto" infers it from the prefixes of gold and predicted tags together.

        Raises:
            ValueError: If gold and prediction differ in length or in scheme, the tags fit no scheme, or a predicted tag
                is ``?`` but the gold tag is not.
        """
        if len(gold) != len(predicted):
            raise ValueError(f"{len(gold)} gold sentences but {len(predicted)} predicted ones; give the same number.")
        for index, (tags, guessed) in enumerate(zip(gold, predicted, strict=True)):
            if len(tags) != len(guessed):
                raise ValueError(
                    f"sentence {index} (counted from 0) has {len(tags)} gold tags but {len(guessed)} predicted ones; "
                    "give one tag for each word."
                )
        gold_tags, predicted_tags = set(chain.from_iterable(gold)), set(chain.from_iterable(predicted))
        tag_set = TagSet.of(sorted(gold_tags | predicted_tags), scheme)
        if scheme == "auto":
            _check_schemes(gold_tags, predicted_tags, tag_set)
        number = {tag: index for index, tag in enumerate(tag_set.tags)}
        gold_ids, predicted_ids = (
            np.fromiter(map(number.__getitem__, chain.from_iterable(side)), dtype=np.int64)
            for side in (gold, predicted)
        )
        if ((predicted_ids == tag_set.unlabelled) & (gold_ids != tag_set.unlabelled)).any():
            raise ValueError("a predicted tag is '?', which marks unknown gold tags; predict O.")
        return cls(gold_ids, predicted_ids, np.fromiter(map(len, gold), dtype=np.int64), tag_set, policy)

    @cached_property
    def labelled(self) -> BoolArray:
        """Mask of the words with a label: a gold tag other than ``?``, or any plain tag. Shape: (tokens,)."""
        return self.gold_ids != self.tag_set.unlabelled

    @cached_property
    def gold(self) -> Spans:
        """The gold spans; none for plain tags."""
        return spans_of_ids(self.gold_ids, self.lengths, self.tag_set, self.policy)

    @cached_property
    def predicted(self) -> Spans:
        """The predicted spans; none for plain tags."""
        return spans_of_ids(self.predicted_ids, self.lengths, self.tag_set, self.policy)

    @cached_property
    def aligned(self) -> tuple[IntArray, IntArray]:
        """The indices of gold and predicted spans with the same start and end. Shape: (pairs,) each."""
        _, gold, predicted = np.intersect1d(
            self.gold.start, self.predicted.start, assume_unique=True, return_indices=True
        )
        same_end = self.gold.end[gold] == self.predicted.end[predicted]
        return gold[same_end], predicted[same_end]

    @cached_property
    def correct(self) -> BoolArray:
        """Mask of the predicted spans that equal a gold span in type, start and end. Shape: (predicted,)."""
        gold, predicted = self.aligned
        correct = np.zeros(len(self.predicted), dtype=bool)
        correct[predicted] = self.gold.type[gold] == self.predicted.type[predicted]
        return correct

    def counts_by_sentence(self) -> IntArray:
        """Return the counts of each sentence; all micro averages can be computed from their sums.

        Returns:
            Correct, predicted and gold spans, shape (sentences, 3); for plain tags, correct tags and words, shape
            (sentences, 2).
        """
        sentences = len(self.lengths)
        sentence = np.repeat(np.arange(sentences), self.lengths)
        if self.tag_set.plain:
            counted = [sentence[self.gold_ids == self.predicted_ids], sentence]
        else:
            starts = self.predicted.start[self.correct], self.predicted.start, self.gold.start
            counted = [sentence[start] for start in starts]
        return np.stack([np.bincount(index, minlength=sentences) for index in counted], axis=1)

    def ratios_by(self, group_of: Callable[[Spans], IntArray], names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Score the spans of each group.

        Args:
            group_of: Returns the number of the group of each span; a correct span is in the group of its gold span.
            names: The groups by number.

        Returns:
            For each group ``precision``, ``recall``, ``f1`` in percent, and ``support``, its number of gold spans.
        """
        predicted = group_of(self.predicted)
        groups = predicted[self.correct], predicted, group_of(self.gold)
        counts = (np.bincount(group, minlength=len(names)).tolist() for group in groups)
        return {name: ratios(*row) for name, *row in zip(names, *counts, strict=True)}


def ratios(correct: int, predicted: int, gold: int) -> dict[str, float]:
    """Return precision, recall and F1 in percent, and the support; a ratio without a denominator is 0."""
    return {
        "precision": percent(correct, predicted),
        "recall": percent(correct, gold),
        "f1": percent(2 * correct, predicted + gold),
        "support": gold,
    }


def percent(part: int, whole: int) -> float:
    """Return a ratio in percent, 0 if the denominator is 0."""
    return 100.0 * part / whole if whole else 0.0


def _check_schemes(gold: set[str], predicted: set[str], tag_set: TagSet) -> None:
    """Raise if gold is IOB2 and the prediction has a scheme that marks ends.

    The reverse is allowed, since a tagger in its first epoch may never close an entity.
    """
    entities = gold.difference(NO_CHUNK)
    if entities and not tag_set.plain and tag_set.scheme != "iob2" and scheme_of(entities) == "iob2":
        raise ValueError(
            f"gold tags look like iob2 and predicted ones like {scheme_of(predicted)}; give both in one scheme, "
            f"or set scheme={tag_set.scheme!r} if that is their scheme."
        )
