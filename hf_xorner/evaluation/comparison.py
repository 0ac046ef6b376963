"""Gold and predicted tags of the same words, with everything that scores need, computed once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from ..corpora.schemes import Scheme, TagSet, scheme_of
from .spans import BoolArray, IntArray, Policy, Spans, lengths_of, number_tags, spans_of_ids


@dataclass(frozen=True, eq=False)
class Comparison:
    """Gold and predicted tags of the same words, and how their spans match.

    Tags of all sentences stand in one row, sentence after sentence.

    Attributes:
        tag_set: What the numbers of tags and types say.
        lengths: The number of words of each sentence. Shape: (sentences,).
        gold_ids: The number of each word's gold tag. Shape: (tokens,).
        predicted_ids: The number of each word's predicted tag. Shape: (tokens,).
        gold: The gold spans; none for plain tags.
        predicted: The predicted spans; none for plain tags.
        correct: For each predicted span whether a gold span has its type and both its ends. Shape: (predicted,).
        found: For each gold span whether a predicted span has its type and both its ends. Shape: (gold,).
        policy: What malformed spans are, on both sides: see `hf_xorner.evaluation.spans.spans_of_ids`.
    """

    tag_set: TagSet
    lengths: IntArray
    gold_ids: IntArray
    predicted_ids: IntArray
    gold: Spans
    predicted: Spans
    correct: BoolArray
    found: BoolArray
    policy: Policy

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
            policy: What malformed spans are: "strict" drops and "conlleval" repairs them.
            scheme: How the tags mark spans; "auto" goes by the prefixes of gold and predicted tags together.

        Raises:
            ValueError: If gold and prediction differ in length or in scheme, or tags belong to no one scheme.
        """
        _check_lengths(gold, predicted)
        gold_tags, predicted_tags = set(chain.from_iterable(gold)), set(chain.from_iterable(predicted))
        tag_set = TagSet.of(sorted(gold_tags | predicted_tags), scheme)
        if scheme == "auto":
            _check_schemes(gold_tags, predicted_tags, tag_set)
        return cls.of_ids(
            number_tags(gold, tag_set), number_tags(predicted, tag_set), lengths_of(gold), tag_set, policy
        )

    @classmethod
    def of_ids(
        cls,
        gold_ids: IntArray,
        predicted_ids: IntArray,
        lengths: IntArray,
        tag_set: TagSet,
        policy: Policy = "conlleval",
    ) -> "Comparison":
        """Compare numbered tags.

        Args:
            gold_ids: The numbers of the gold tags, sentence after sentence. Shape: (tokens,).
            predicted_ids: The numbers of the predicted tags. Shape: (tokens,).
            lengths: The number of words of each sentence. Shape: (sentences,).
            tag_set: What the numbers say.
            policy: What malformed spans are: "strict" drops and "conlleval" repairs them.
        """
        if not len(gold_ids) == len(predicted_ids) == lengths.sum():
            raise ValueError(
                f"{len(gold_ids)} gold tags and {len(predicted_ids)} predicted ones do not fit sentences of "
                f"{int(lengths.sum())} words together; give a tag of each kind for each word."
            )
        gold = spans_of_ids(gold_ids, lengths, tag_set, policy)
        predicted = spans_of_ids(predicted_ids, lengths, tag_set, policy)
        return cls(
            tag_set=tag_set,
            lengths=lengths,
            gold_ids=gold_ids,
            predicted_ids=predicted_ids,
            gold=gold,
            predicted=predicted,
            correct=predicted.matches(gold),
            found=gold.matches(predicted),
            policy=policy,
        )

    def counts_by_sentence(self) -> IntArray:
        """Count correct, predicted and gold spans of each sentence: sums over sentences give every micro average.

        Plain tags have no spans: there every word counts as one, so that the F1 of the sums is the accuracy.

        Returns:
            Correct, predicted and gold spans. Shape: (sentences, 3).
        """
        sentences = len(self.lengths)
        if self.tag_set.plain:
            of_word = np.repeat(np.arange(sentences), self.lengths)
            correct = of_word[self.gold_ids == self.predicted_ids]
            return np.stack([np.bincount(correct, minlength=sentences), self.lengths, self.lengths], axis=1)
        of_span = self.predicted.sentence[self.correct], self.predicted.sentence, self.gold.sentence
        return np.stack([np.bincount(index, minlength=sentences) for index in of_span], axis=1)

    def ratios_by(
        self, gold_group: IntArray, predicted_group: IntArray, names: Sequence[str]
    ) -> dict[str, dict[str, float]]:
        """Score the spans of each group; a correct predicted span lies in the group of its gold span.

        Args:
            gold_group: The number of the group of each gold span. Shape: (gold,).
            predicted_group: The number of the group of each predicted span. Shape: (predicted,).
            names: The groups by number.

        Returns:
            For each group ``precision``, ``recall``, ``f1`` in percent, and ``support``, its number of gold spans.
        """
        groups = predicted_group[self.correct], predicted_group, gold_group
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


def _check_lengths(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold sentences but {len(predicted)} predicted ones; give as many of both.")
    different = np.flatnonzero(lengths_of(gold) != lengths_of(predicted))
    if len(different):
        index = int(different[0])
        raise ValueError(
            f"sentence {index} (counted from 0) has {len(gold[index])} gold tags but {len(predicted[index])} "
            "predicted ones; give a tag for each word."
        )


def _check_schemes(gold: set[str], predicted: set[str], tag_set: TagSet) -> None:
    """Refuse IOB2 in gold and a scheme that marks ends in the prediction.

    Gold tags of such a scheme would hold an end themselves. The reverse is no certain sign: a tagger in its first epoch
    may never close an entity.
    """
    entities = gold - {"O"}
    if entities and not tag_set.plain and tag_set.scheme != "iob2" and scheme_of(entities) == "iob2":
        raise ValueError(
            f"gold tags look like iob2 and predicted ones like {scheme_of(predicted)}; give both in one scheme, "
            f"or say scheme={tag_set.scheme!r} if that is what they are."
        )
