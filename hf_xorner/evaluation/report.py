"""Every number that a reader of papers on names expects, of one system on one corpus."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..corpora.schemes import Scheme
from .breakdowns import chunk_tag_recall, confusion, per_length, surface_scores, tag_scores
from .calibration import calibration, entity_confidences
from .comparison import Comparison
from .partitions import seen_partition, surface_forms, vocabulary_partition
from .resampling import bootstrap_intervals, randomisation_test
from .scores import check_by_seqeval, scores_of
from .spans import IntArray, Policy, Spans, lengths_of, spans_of_ids, spans_of_tags

if TYPE_CHECKING:
    # Predictions from a file are scored without it, in half the time that loading it takes.
    from ..tagger import Tagger

Tags = Sequence[Sequence[str]]


class System(NamedTuple):
    """What one system says of labelled sentences.

    Attributes:
        tokens: The words of each sentence.
        gold: The gold tag of each word.
        predicted: The predicted tag of each word.
        probabilities: The probability of each predicted tag, in one row, where it is known.
    """

    tokens: Sequence[Sequence[str]]
    gold: Tags
    predicted: Tags
    probabilities: Any = None

    @classmethod
    def of_tagger(cls, tagger: "Tagger", tokens: Sequence[Sequence[str]], gold: Tags, batch_size: int = 64) -> "System":
        """Have a tagger label sentences of given words.

        Raises:
            ValueError: If its probabilities are no numbers: it would seem to find no entity.
        """
        labelled = list(tagger.label(tokens, batch_size))
        probabilities = np.concatenate([np.zeros(0, dtype=np.float32), *(row for _, row in labelled)])
        if np.isnan(probabilities).any():
            raise ValueError("the model's probabilities are nan, as after training that diverged; score another model.")
        return cls(tokens, gold, [tags for tags, _ in labelled], probabilities)


class Training(NamedTuple):
    """What the training data have shown.

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
        return cls(set(flat), set(surface_forms(spans_of_tags(tags, "conlleval"), flat, lengths_of(tags))))


def report(
    system: System,
    policy: Policy = "conlleval",
    scheme: Scheme | Literal["auto"] = "auto",
    training: Training | None = None,
    vector_words: Iterable[str] | None = None,
    resamples: int = 1000,
    seed: int = 13,
) -> dict[str, Any]:
    """Score a system, seqeval agreeing, and break the score down.

    Args:
        system: What it said.
        policy: What malformed spans are: "strict" drops and "conlleval" repairs them.
        scheme: How the tags mark spans; "auto" goes by their prefixes.
        training: What its training data have shown, if known.
        vector_words: The words that its pretrained vectors have, if known.
        resamples: The number of resamples that the confidence intervals rest on; 0 leaves them out.
        seed: Of the resamples.

    Returns:
        Plain numbers, in percent where they are scores. For tags of spans: ``precision``, ``recall``, ``f1``,
        ``support``, ``accuracy``, ``macro``, ``per_type``, ``per_length``, ``chunk_tags``, ``surface``,
        ``confusion``, and ``malformed``, the numbers of spans in ``gold`` and ``predicted`` that the policy dropped or
        repaired; for plain tags ``accuracy``, ``support``, ``per_tag``, ``confusions``. Besides ``policy``, ``scheme``,
        ``sentences``, ``tokens`` and, where they can be had, ``vocabulary``, ``seen``, ``calibration`` and ``ci95``.

    Raises:
        ValueError: If the tags are not in one scheme or do not fit together.
        RuntimeError: If seqeval comes to other figures.
    """
    comparison = Comparison.of(system.gold, system.predicted, policy, scheme)
    scores = scores_of(comparison)
    check_by_seqeval(scores, comparison, system.gold, system.predicted)
    tokens = list(chain.from_iterable(system.tokens))
    found: dict[str, Any] = {
        "policy": policy,
        "scheme": comparison.tag_set.scheme,
        "sentences": len(system.gold),
        "tokens": len(tokens),
    }
    if comparison.tag_set.plain:
        found |= tag_scores(comparison)
    else:
        found |= scores | {
            "malformed": _malformed(comparison),
            "per_length": per_length(comparison),
            "chunk_tags": chunk_tag_recall(comparison),
            "surface": surface_scores(comparison, tokens),
            "confusion": confusion(comparison),
        }
    if training is not None:
        found["vocabulary"] = vocabulary_partition(comparison, tokens, training.words, vector_words)
        if not comparison.tag_set.plain:
            found["seen"] = seen_partition(comparison, tokens, training.surfaces)
    if system.probabilities is not None and not comparison.tag_set.plain:
        confidences = entity_confidences(system.probabilities, comparison.predicted, comparison.lengths)
        found["calibration"] = calibration(confidences, comparison.correct)
    if resamples:
        found["ci95"] = bootstrap_intervals(_counts(comparison), resamples, seed=seed)
    return found


def compare(
    system: System,
    other: System,
    policy: Policy = "conlleval",
    scheme: Scheme | Literal["auto"] = "auto",
    trials: int = 10_000,
    seed: int = 13,
) -> dict[str, dict[str, Any]]:
    """Test whether two systems differ on the same sentences; see `randomisation_test`.

    Sentences without words do not count: files of predictions do not hold them.

    Args:
        system: What one system said.
        other: What the other said of the same words, with the same gold tags.
        policy: See `report`.
        scheme: See `report`.
        trials: The number of random trials.
        seed: Of the trials.

    Raises:
        ValueError: If words or gold tags differ.
    """
    system, other = _with_words(system), _with_words(other)
    for name, ours, theirs in (("words", system.tokens, other.tokens), ("gold tags", system.gold, other.gold)):
        if len(ours) != len(theirs):
            raise ValueError(f"{len(ours)} sentences here and {len(theirs)} there; compare two systems on one corpus.")
        different = next(
            (at for at, pair in enumerate(zip(ours, theirs, strict=True)) if list(pair[0]) != list(pair[1])), None
        )
        if different is not None:
            raise ValueError(
                f"the {name} of sentence {different} (counted from 0) differ; compare two systems on one corpus."
            )
    counts, others = (_counts(Comparison.of(side.gold, side.predicted, policy, scheme)) for side in (system, other))
    return randomisation_test(counts, others, trials, seed)


def _with_words(system: System) -> System:
    """Leave out the sentences without words."""
    tokens, gold, predicted = ([row for row in rows if len(row)] for rows in system[:3])
    return System(tokens, gold, predicted)


def _malformed(comparison: Comparison) -> dict[str, int]:
    """Count the spans that the scheme does not allow: those that one policy repairs and the other drops."""
    other: Policy = "strict" if comparison.policy == "conlleval" else "conlleval"

    def count(spans: Spans, ids: IntArray) -> int:
        return abs(len(spans) - len(spans_of_ids(ids, comparison.lengths, comparison.tag_set, other)))

    return {
        "gold": count(comparison.gold, comparison.gold_ids),
        "predicted": count(comparison.predicted, comparison.predicted_ids),
    }


def _counts(comparison: Comparison) -> IntArray:
    """Count by sentence what the figures are made of: spans, or, for plain tags, right tags and words."""
    counts = comparison.counts_by_sentence()
    return counts[:, :2] if comparison.tag_set.plain else counts
