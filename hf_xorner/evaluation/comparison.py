"""Gold and predicted tags of the same words, their spans, and the counts that every score is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..corpora.schemes import NO_CHUNK, Scheme, TagSet, scheme_of
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


@dataclass(frozen=True, eq=False)
class Comparison:
    """Gold and predicted tags of the same words, and how their spans match.

    In a scheme of chunks, the gold tag ``?`` is that of a word without label, whose predicted tag is neither right nor
    wrong. A predicted span does not count if all its words are without label. Any other counts: as no gold span has a
    word without label, a span with words of both kinds is wrong.

    Attributes:
        gold_ids: The number of each word's gold tag, sentence after sentence. Shape: (tokens,).
        predicted_ids: The number of each word's predicted tag; that of ``?`` in spans that do not count. Shape:
            (tokens,).
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
        cls,
        gold: Sequence[Sequence[str]],
        predicted: Sequence[Sequence[str]],
        policy: Policy = "conlleval",
        scheme: Scheme | Literal["auto"] = "auto",
    ) -> "Comparison":
        """Compare sentences of tags.

        Args:
            gold: The gold tags of each sentence.
            predicted: As many predicted tags of as many sentences, in the same scheme.
            policy: "strict" drops malformed spans, "conlleval" repairs them.
            scheme: The tag scheme; "auto" infers it from the prefixes of gold and predicted tags together.

        Raises:
            ValueError: If gold and prediction differ in length or in scheme, the tags fit no scheme, or a word whose
                gold tag is not ``?`` has that as predicted tag.
        """
        if len(gold) != len(predicted):
            raise ValueError(f"{len(gold)} gold sentences but {len(predicted)} predicted ones; give as many of both.")
        for index, (tags, others) in enumerate(zip(gold, predicted, strict=True)):
            if len(tags) != len(others):
                raise ValueError(
                    f"sentence {index} (counted from 0) has {len(tags)} gold tags but {len(others)} predicted ones; "
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
            raise ValueError("a predicted tag is '?', which says that a gold tag is unknown; predict O.")
        return cls(gold_ids, predicted_ids, np.fromiter(map(len, gold), dtype=np.int64), tag_set, policy)

    @cached_property
    def labelled(self) -> BoolArray:
        """The words that have a label: a gold tag other than ``?``, or any plain tag. Shape: (tokens,)."""
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
        """The indices of the gold and the predicted spans that have both ends in common. Shape: (pairs,) each."""
        _, gold, predicted = np.intersect1d(
            self.gold.start, self.predicted.start, assume_unique=True, return_indices=True
        )
        same_end = self.gold.end[gold] == self.predicted.end[predicted]
        return gold[same_end], predicted[same_end]

    @cached_property
    def correct(self) -> BoolArray:
        """For each predicted span whether a gold span has its type and both its ends. Shape: (predicted,)."""
        gold, predicted = self.aligned
        correct = np.zeros(len(self.predicted), dtype=bool)
        correct[predicted] = self.gold.type[gold] == self.predicted.type[predicted]
        return correct

    def counts_by_sentence(self) -> IntArray:
        """Count what the scores of each sentence are made of; sums over sentences give every micro average.

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
    """Return a ratio in percent, 0 if it has no denominator."""
    return 100.0 * part / whole if whole else 0.0


def _check_schemes(gold: set[str], predicted: set[str], tag_set: TagSet) -> None:
    """Refuse IOB2 in gold and a scheme that marks ends in the prediction.

    Gold tags of such a scheme would mark an end themselves. The reverse is allowed: a tagger in its first epoch may
    never close an entity.
    """
    entities = gold.difference(NO_CHUNK)
    if entities and not tag_set.plain and tag_set.scheme != "iob2" and scheme_of(entities) == "iob2":
        raise ValueError(
            f"gold tags look like iob2 and predicted ones like {scheme_of(predicted)}; give both in one scheme, "
            f"or set scheme={tag_set.scheme!r} if that is their scheme."
        )
