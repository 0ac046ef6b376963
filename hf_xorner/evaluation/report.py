"""The full report of one system on one corpus, and the comparison of two systems."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress, zip_longest
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..corpora.schemes import Scheme
from ..entities import span_scores
from . import breakdowns
from .comparison import POLICIES, Comparison, IntArray, Policy, Tags
from .resampling import bootstrap_intervals, randomisation_test
from .scores import scores_of

if TYPE_CHECKING:
    # Scoring predictions from a file does not need it, and takes half the time without loading it.
    from ..tagger import Tagger

# Number of bins of confidence, and of example sentences.
_BINS = _EXAMPLES = 10


@dataclass(frozen=True, eq=False)
class System:
    """The predictions of one system for labelled sentences.

    Attributes:
        tokens: The words of each sentence.
        gold: The gold tag of each word.
        predicted: The predicted tag of each word.
        log_probs: The log probabilities of all words' predicted tags, sentence after sentence, if known: marginal, and
            given the tag before. Shape: (tokens, 2).
        policy: The treatment of malformed spans on both sides: "strict" drops them, "conlleval" repairs them.
        scheme: The tag scheme; "auto" infers it from the prefixes.
    """

    tokens: Sequence[Sequence[str]]
    gold: Tags
    predicted: Tags
    log_probs: Any = None
    policy: Policy = "conlleval"
    scheme: Scheme | Literal["auto"] = "auto"

    @cached_property
    def comparison(self) -> Comparison:
        """Gold and predicted tags, and how their spans match."""
        return Comparison.of(self.gold, self.predicted, self.policy, self.scheme)

    @classmethod
    def of_tagger(cls, tagger: "Tagger", tokens: Sequence[Sequence[str]], gold: Tags, batch_size: int = 64) -> "System":
        """Label sentences, given as lists of words, with a tagger.

        Raises:
            ValueError: If a probability is NaN; otherwise, it would seem that the tagger finds no entities.
        """
        annotations = list(tagger.annotate(tokens, batch_size, min_score=0))
        log_probs = np.concatenate([np.zeros((0, 2)), *(annotation.log_probs for annotation in annotations)])
        if np.isnan(log_probs).any():
            raise ValueError("the model's probabilities are nan; its training probably diverged. Score another model.")
        return cls(tokens, gold, [annotation.labels for annotation in annotations], log_probs)

    def confidences(self) -> NDArray[np.float64]:
        """Return the score of each predicted span, as `Tagger` has it. Shape: (spans,)."""
        return span_scores(self.log_probs, self.comparison.predicted.start, self.comparison.predicted.end)


class Training(NamedTuple):
    """The vocabulary of the training data.

    Attributes:
        words: Their distinct words.
        surfaces: The distinct surface forms of their entities.
    """

    words: Collection[str]
    surfaces: Collection[str]

    @classmethod
    def of(cls, tokens: Sequence[Sequence[str]], tags: Tags) -> "Training":
        """Collect the words and entities of training sentences."""
        flat = list(chain.from_iterable(tokens))
        return cls(set(flat), set(breakdowns.surface_forms(Comparison.of(tags, tags).gold, flat)))


def report(
    system: System,
    training: Training | None = None,
    vector_words: Iterable[str] | None = None,
    resamples: int = 1000,
) -> dict[str, Any]:
    """Score a system, with breakdowns.

    Args:
        system: The predictions.
        training: The vocabulary of its training data, if known.
        vector_words: The words of its pretrained vectors, if known.
        resamples: The number of resamples of the confidence intervals; 0 leaves them out.

    Returns:
        Plain numbers; scores are in percent. For tags of spans: ``precision``, ``recall``, ``f1``, ``support``,
        ``accuracy``, ``macro``, ``per_type``, ``per_length``, ``sentence_kinds``, ``chunk_tags``, ``surface``,
        ``confusion``, and ``malformed``, the numbers of spans in ``gold`` and ``predicted`` that the policy dropped or
        repaired; for plain tags ``accuracy``, ``support``, ``per_tag``, ``confusions``. Also ``policy``, ``scheme``,
        ``sentences``, ``tokens`` and, if known, ``vocabulary``, ``seen``, ``calibration`` and ``ci95``.

    Raises:
        ValueError: If the tags fit no scheme, or there is not one for each word.
    """
    comparison = system.comparison
    plain = comparison.tag_set.plain
    tokens = list(chain.from_iterable(system.tokens))
    figures: dict[str, Any] = {
        "policy": system.policy,
        "scheme": comparison.tag_set.scheme,
        "sentences": len(system.gold),
        "tokens": len(tokens),
        **scores_of(comparison),
    }
    if plain:
        figures |= breakdowns.tag_scores(comparison)
    else:
        figures |= {
            "malformed": _malformed(comparison),
            "per_length": breakdowns.per_length(comparison),
            "sentence_kinds": breakdowns.sentence_kind_scores(comparison, tokens),
            "chunk_tags": breakdowns.chunk_tag_recall(comparison),
            "surface": breakdowns.surface_scores(comparison, tokens),
            "confusion": breakdowns.confusion(comparison),
        }
    if training is not None:
        figures["vocabulary"] = breakdowns.vocabulary_partition(comparison, tokens, training.words, vector_words)
        if not plain:
            figures["seen"] = breakdowns.seen_partition(comparison, tokens, training.surfaces)
    if system.log_probs is not None and not plain:
        figures["calibration"] = calibration(system.confidences(), comparison.correct)
    if resamples:
        figures["ci95"] = bootstrap_intervals(comparison.counts_by_sentence(), resamples)
    return figures


def compare(system: System, other: System) -> dict[str, Any]:
    """Compare two systems on the same sentences, by the policy and the scheme of the first.

    Sentences without words are ignored, since files of predictions have none.

    Args:
        system: The predictions of one system.
        other: The predictions of the other system, for the same words and gold tags.

    Returns:
        ``scores``, the differences and their significance, see `randomisation_test`; ``better`` and ``worse``, the
        numbers of sentences in which the first system makes fewer and more mistakes; and ``sentences``, those with the
        greatest difference: their ``words``, and the entities of ``gold``, ``predicted`` and ``other``, as in
        `wrong_sentences`.

    Raises:
        ValueError: If words or gold tags differ.
    """
    system, other = (
        replace(
            system, tokens=_not_empty(side.tokens), gold=_not_empty(side.gold), predicted=_not_empty(side.predicted)
        )
        for side in (system, other)
    )
    for name, ours, theirs in (("words", system.tokens, other.tokens), ("gold tags", system.gold, other.gold)):
        for index, (row, other_row) in enumerate(zip_longest(ours, theirs)):
            if row != other_row:
                raise ValueError(
                    f"the {name} of sentence {index} (counted from 0) differ; compare two systems on one corpus."
                )
    difference = _errors(system.comparison) - _errors(other.comparison)
    counts, others = system.comparison.counts_by_sentence(), other.comparison.counts_by_sentence()
    sides = {"gold": system.gold, "predicted": system.predicted, "other": other.predicted}
    return {
        "scores": randomisation_test(counts, others),
        "better": int((difference < 0).sum()),
        "worse": int((difference > 0).sum()),
        "sentences": [row for _, row in _examples(np.abs(difference), system, sides)],
    }


def _not_empty(sentences: Tags) -> Tags:
    return [list(sentence) for sentence in sentences if len(sentence)]


def wrong_sentences(system: System) -> list[dict[str, Any]]:
    """Return the ten sentences in which a wrong tag has the highest probability.

    Returns:
        For each sentence its ``words``, the ``gold`` and the ``predicted`` entities as pairs of type and text (for
        plain tags, the wrong words with their tags), and the ``probability``, 1 if it is not known.
    """
    comparison = system.comparison
    wrong = comparison.labelled & (comparison.gold_ids != comparison.predicted_ids)
    probabilities = np.ones(len(wrong)) if system.log_probs is None else np.exp(system.log_probs[:, 0])
    surest = np.zeros(len(comparison.lengths))
    np.maximum.at(surest, np.repeat(np.arange(len(surest)), comparison.lengths)[wrong], probabilities[wrong])
    surest[_errors(comparison) == 0] = 0
    sides = {"gold": system.gold, "predicted": system.predicted}
    return [{"probability": sure, **row} for sure, row in _examples(surest, system, sides)]


def _errors(comparison: Comparison) -> IntArray:
    """Return the number of missed and wrong spans, or of wrong plain tags, of each sentence. Shape: (sentences,)."""
    counts = comparison.counts_by_sentence()
    return counts[:, 1:].sum(1) - (counts.shape[1] - 1) * counts[:, 0]


def _examples(
    weights: NDArray[Any], system: System, sides: Mapping[str, Tags]
) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield the sentences of the greatest weights: each weight, the words, and the entities of each side.

    For plain tags, the entities are the words with different tags.
    """
    for number in np.argsort(-weights, kind="stable")[:_EXAMPLES].tolist():
        if not weights[number]:
            return
        words, rows = system.tokens[number], [tags[number] for tags in sides.values()]
        if system.comparison.tag_set.plain:
            differ = [len(set(tags)) > 1 for tags in zip(*rows, strict=True)]
            listed = [[list(pair) for pair in compress(zip(row, words, strict=True), differ)] for row in rows]
        else:
            listed = [_entities(row, words, system.comparison) for row in rows]
        yield float(weights[number]), {"words": list(words), **dict(zip(sides, listed, strict=True))}


def _entities(tags: Sequence[str], words: Sequence[str], comparison: Comparison) -> list[list[str]]:
    """Return the type and the text of each entity of a sentence."""
    single = Comparison.of([tags], [tags], comparison.policy, comparison.tag_set.scheme)
    types = [single.tag_set.types[kind] for kind in single.gold.type]
    return [list(pair) for pair in zip(types, breakdowns.surface_forms(single.gold, words), strict=True)]


def _malformed(comparison: Comparison) -> dict[str, int]:
    """Count the spans that the scheme does not allow, which one policy repairs and the other drops."""
    strict, repaired = (replace(comparison, policy=policy) for policy in POLICIES)
    return {"gold": len(repaired.gold) - len(strict.gold), "predicted": len(repaired.predicted) - len(strict.predicted)}


# --- Calibration -----------------------------------------------------------------------------------------------------


def calibration(confidences: ArrayLike, correct: ArrayLike) -> dict[str, Any]:
    """Compare the confidence of predicted entities with the share of correct ones.

    Ten bins of equal width cover the confidences from 0 to 1. A confidence on a border belongs to the lower bin, and 0
    to the first, as in Guo et al. (2017), equation 3. The expected calibration error is the mean distance between
    confidence and accuracy of a bin, weighted by its number of entities.

    Args:
        confidences: The confidence of each predicted entity, from 0 to 1; see `System.confidences`. Shape: (spans,).
        correct: True for those that are gold entities; see `Comparison.correct`. Shape: (spans,).

    Returns:
        ``ece``, the expected calibration error in percent; ``count``, the number of entities; and ``bins``, each with
        its limits ``lower`` and ``upper`` (from 0 to 1), its ``count``, its mean ``confidence``, and its ``accuracy``,
        the precision of its entities; both are in percent, and 0 for an empty bin.
    """
    confidences = np.asarray(confidences, dtype=np.float64)
    correct = np.asarray(correct, dtype=bool)
    # 3 / 10 is exactly the float 0.3; 3 * 0.1 is not.
    edges = np.arange(_BINS + 1) / _BINS
    bin_of = np.maximum(np.searchsorted(edges, confidences, side="left") - 1, 0)
    counts = np.bincount(bin_of, minlength=_BINS)
    confidence, accuracy = (
        100.0 * np.bincount(bin_of, weights=values, minlength=_BINS) / np.maximum(counts, 1)
        for values in (confidences, correct)
    )
    columns = {"lower": edges[:-1], "upper": edges[1:], "count": counts, "confidence": confidence, "accuracy": accuracy}
    return {
        "ece": float((counts * np.abs(accuracy - confidence)).sum() / max(1, len(confidences))),
        "bins": [{name: column[index].item() for name, column in columns.items()} for index in range(_BINS)],
        "count": len(confidences),
    }
