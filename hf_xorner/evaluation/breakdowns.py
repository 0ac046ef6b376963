"""Scores apart by type, length, chunk tag, kind of error, surface form and tag, in percent."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..models.tags import BEGIN, END, INSIDE, OUTSIDE, SINGLE
from .comparison import Comparison, percent, ratios
from .partitions import surface_forms
from .spans import IntArray, Spans

_LENGTHS = ("1", "2", "3", "3+")
_CHUNK_TAGS = {"O": OUTSIDE, "S": SINGLE, "B": BEGIN, "I": INSIDE, "E": END}


def per_type(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Score the spans of each type.

    Returns:
        For each type in gold or prediction ``precision``, ``recall``, ``f1`` and ``support``, the types sorted.
    """
    gold, predicted = comparison.gold.type, comparison.predicted.type
    scores = comparison.ratios_by(gold, predicted, comparison.tag_set.types)
    # A type of the label set without any span has no score.
    present = set(np.union1d(gold, predicted).tolist())
    return {name: scores[name] for index, name in enumerate(comparison.tag_set.types) if index in present}


def per_length(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Score the spans of each length: gold spans by their own length, predicted ones by theirs (li2020).

    Returns:
        For the lengths ``1``, ``2``, ``3`` and ``3+``, which is more than 3 words, so that the supports add up:
        ``precision``, ``recall``, ``f1`` and ``support``.
    """
    gold, predicted = (
        np.minimum(spans.end - spans.start, len(_LENGTHS)) - 1 for spans in (comparison.gold, comparison.predicted)
    )
    return comparison.ratios_by(gold, predicted, _LENGTHS)


def chunk_tag_recall(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Compute the recall of words by their chunk tag: outside, or single, begin, inside, end of an entity (li2020).

    Both sides are read as BIOES tags of their spans, whatever scheme the tags are in: words of spans that the policy
    drops are outside. A word is recalled when the predicted tag has its chunk tag and its type.

    Returns:
        For each of ``O``, ``S``, ``B``, ``I``, ``E`` the ``recall``, and the ``support`` in words.
    """
    gold_type, predicted_type = (
        _types_of_words(spans, comparison) for spans in (comparison.gold, comparison.predicted)
    )
    gold_kind, predicted_kind = (
        _kinds_of_words(spans, comparison) for spans in (comparison.gold, comparison.predicted)
    )
    recalled = (gold_kind == predicted_kind) & (gold_type == predicted_type)
    right = np.bincount(gold_kind[recalled], minlength=len(_CHUNK_TAGS)).tolist()
    there = np.bincount(gold_kind, minlength=len(_CHUNK_TAGS)).tolist()
    return {
        name: {"recall": percent(right[kind], there[kind]), "support": there[kind]}
        for name, kind in _CHUNK_TAGS.items()
    }


def confusion(comparison: Comparison) -> dict[str, Any]:
    """Count what became of each gold span, and where each predicted one came from.

    A gold span is in just one of these places:

    - ``matrix``, by its type and the predicted one, where a predicted span has both its ends;
    - ``boundary``, where predicted spans overlap it, none has both its ends, and one has its type;
    - ``boundary_and_type``, where predicted spans overlap it, none has both its ends, and none has its type;
    - ``missed``, where no predicted span overlaps it.

    A predicted span is in just one of these: ``matrix``; ``inexact``, where it overlaps gold spans but none has both
    its ends; ``spurious``, where it overlaps none.

    Returns:
        Numbers of spans. ``types``; ``matrix``, gold types down and predicted types across; by gold type ``boundary``,
        ``boundary_and_type``, ``missed`` and their sum with a row of the matrix, ``support``; by predicted type
        ``inexact``, ``spurious`` and their sum with a column of the matrix, ``predicted``.
    """
    types, gold, predicted = comparison.tag_set.types, comparison.gold, comparison.predicted
    gold_types, predicted_types = _types_of_words(gold, comparison), _types_of_words(predicted, comparison)
    overlapped = gold.any_word(predicted_types >= 0, comparison.lengths)
    same_type = gold.any_word(predicted_types == gold_types, comparison.lengths)
    overlaps = predicted.any_word(gold_types >= 0, comparison.lengths)

    gold_first, gold_end = gold.bounds(comparison.lengths)
    first, end = predicted.bounds(comparison.lengths)
    _, in_gold, in_predicted = np.intersect1d(gold_first, first, assume_unique=True, return_indices=True)
    coextensive = gold_end[in_gold] == end[in_predicted]
    in_gold, in_predicted = in_gold[coextensive], in_predicted[coextensive]
    pairs = gold.type[in_gold] * len(types) + predicted.type[in_predicted]
    matrix = np.bincount(pairs, minlength=len(types) ** 2).reshape(len(types), len(types))
    gold_exact, predicted_exact = np.zeros(len(gold), dtype=bool), np.zeros(len(predicted), dtype=bool)
    gold_exact[in_gold] = predicted_exact[in_predicted] = True

    def by_type(index: IntArray) -> dict[str, int]:
        return dict(zip(types, np.bincount(index, minlength=len(types)).tolist(), strict=True))

    return {
        "types": list(types),
        "matrix": matrix.tolist(),
        "boundary": by_type(gold.type[~gold_exact & same_type]),
        "boundary_and_type": by_type(gold.type[~gold_exact & overlapped & ~same_type]),
        "missed": by_type(gold.type[~overlapped]),
        "support": by_type(gold.type),
        "inexact": by_type(predicted.type[~predicted_exact & overlaps]),
        "spurious": by_type(predicted.type[~overlaps]),
        "predicted": by_type(predicted.type),
    }


def surface_scores(comparison: Comparison, tokens: Sequence[str]) -> dict[str, float]:
    """Score unique pairs of a surface form and a type, as the shared task of WNUT 2017 did.

    A surface form is the words of a span joined by blanks. A pair is correct when at least one of its occurrences was
    predicted exactly: precision is the share of correct pairs among those predicted, recall that among those in gold.

    Args:
        comparison: Gold and predicted tags.
        tokens: The words of all sentences in one row.

    Returns:
        ``precision``, ``recall``, ``f1``, and ``support``, the number of gold pairs.
    """
    gold = set(_surface_pairs(comparison.gold, comparison, tokens))
    predicted = _surface_pairs(comparison.predicted, comparison, tokens)
    correct = {pair for pair, right in zip(predicted, comparison.correct.tolist(), strict=True) if right}
    return ratios(len(correct), len(set(predicted)), len(gold))


def tag_scores(comparison: Comparison, most: int = 10) -> dict[str, Any]:
    """Score words by their tags: the figures for parts of speech.

    Args:
        comparison: Gold and predicted tags, plain or not: chunk tags count as they stand, prefix and all.
        most: How many confusions to name.

    Returns:
        ``accuracy`` in percent; ``support`` in words; ``per_tag``: for each tag in gold or prediction ``precision``,
        ``recall``, ``f1`` and ``support``; ``confusions``: the most frequent pairs of a ``gold`` tag and a different
        ``predicted`` one, each with its ``count``, the most frequent first.
    """
    tags, gold, predicted = comparison.tag_set.tags, comparison.gold_ids, comparison.predicted_ids
    right = gold == predicted
    counts = [np.bincount(ids, minlength=len(tags)).tolist() for ids in (gold[right], predicted, gold)]
    # Only pairs that occur: a square of all tags would be large for tags with morphology.
    pairs, how_often = np.unique(gold[~right] * len(tags) + predicted[~right], return_counts=True)
    order = np.argsort(-how_often, kind="stable")[:most]
    return {
        "accuracy": percent(int(right.sum()), len(gold)),
        "support": len(gold),
        "per_tag": {tag: ratios(*row) for tag, *row in zip(tags, *counts, strict=True) if any(row)},
        "confusions": [
            {"gold": tags[pair // len(tags)], "predicted": tags[pair % len(tags)], "count": count}
            for pair, count in zip(pairs[order].tolist(), how_often[order].tolist(), strict=True)
        ],
    }


def _surface_pairs(spans: Spans, comparison: Comparison, tokens: Sequence[str]) -> list[tuple[str, int]]:
    return list(zip(surface_forms(spans, tokens, comparison.lengths), spans.type.tolist(), strict=True))


def _words_of(spans: Spans, comparison: Comparison) -> IntArray:
    """Return the index of each word of each span, span after span."""
    first, end = spans.bounds(comparison.lengths)
    size = end - first
    return np.repeat(first - (np.cumsum(size) - size), size) + np.arange(size.sum())


def _types_of_words(spans: Spans, comparison: Comparison) -> IntArray:
    """Return the type of the span that each word is in, -1 for those in none. Shape: (tokens,)."""
    types = np.full(len(comparison.gold_ids), -1)
    types[_words_of(spans, comparison)] = np.repeat(spans.type, spans.end - spans.start)
    return types


def _kinds_of_words(spans: Spans, comparison: Comparison) -> IntArray:
    """Return where in its span each word is: OUTSIDE, BEGIN, INSIDE, END or SINGLE. Shape: (tokens,)."""
    kinds = np.full(len(comparison.gold_ids), OUTSIDE)
    kinds[_words_of(spans, comparison)] = INSIDE
    first, end = spans.bounds(comparison.lengths)
    kinds[end - 1] = END
    kinds[first] = np.where(end - first == 1, SINGLE, BEGIN)
    return kinds
