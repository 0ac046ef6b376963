"""Scores apart by what training has shown: words in its vocabulary and the vectors, entities it has seen."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from .comparison import Comparison, percent
from .spans import BoolArray, IntArray, Spans

#: ma2016's parts: the number of a part is 1 for what training lacks plus 2 for what the vectors lack.
PARTS = ("IV", "OOTV", "OOEV", "OOBV")


def vocabulary_partition(
    comparison: Comparison,
    tokens: Sequence[str],
    train_words: Iterable[str],
    vector_words: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Score words and entities apart by whether the training data and the vectors have them (ma2016).

    A word is in-vocabulary (``IV``) when both have it, out of the training vocabulary (``OOTV``) when only the vectors
    have it, out of the embedding vocabulary (``OOEV``) when only the training data have it, and out of both (``OOBV``).
    An entity is OOBV when some word of it is not in the training data and some word, the same or another, not in the
    vectors; OOTV when some word is not in the training data and all are in the vectors; OOEV and IV alike. Predicted
    entities belong to the part of their own words.

    Training words are compared as they stand. The vectors have a word when they have it or its lower-cased form: ma2016
    looks up lower-cased words.

    Args:
        comparison: Gold and predicted tags.
        tokens: The words of all sentences in one row.
        train_words: The words of the training data.
        vector_words: The words that have a pretrained vector. Without them there are two parts only, IV and OOTV.

    Returns:
        ``words``: for each part the ``accuracy`` of its tags in percent and its ``support`` in words; for chunk tags
        also ``entities``: for each part ``precision``, ``recall``, ``f1`` and ``support``. Parts without any are there,
        with zeros.
    """
    _check_words(tokens, comparison.lengths)
    distinct = set(tokens)
    not_in_train = ~_are_in(distinct.intersection(train_words), tokens)
    not_in_vectors = np.zeros(len(tokens), dtype=bool)
    names: tuple[str, ...] = PARTS[:2]
    if vector_words is not None:
        names = PARTS
        known = distinct.union(word.lower() for word in distinct).intersection(vector_words)
        not_in_vectors = ~_are_in({word for word in distinct if word in known or word.lower() in known}, tokens)
    part = not_in_train + 2 * not_in_vectors
    right = np.bincount(part[comparison.gold_ids == comparison.predicted_ids], minlength=len(names)).tolist()
    there = np.bincount(part, minlength=len(names)).tolist()
    words = {
        name: {"accuracy": percent(correct, support), "support": support}
        for name, correct, support in zip(names, right, there, strict=True)
    }
    if comparison.tag_set.plain:
        return {"words": words}
    gold_part, predicted_part = (
        spans.any_word(not_in_train, comparison.lengths) + 2 * spans.any_word(not_in_vectors, comparison.lengths)
        for spans in (comparison.gold, comparison.predicted)
    )
    return {"words": words, "entities": comparison.ratios_by(gold_part, predicted_part, names)}


def seen_partition(
    comparison: Comparison, tokens: Sequence[str], train_surfaces: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Score entities apart by whether their surface form is one of an entity in the training data.

    An entity is seen when an entity of the training data, of whatever type, has the same words in the same case, and
    unseen otherwise, even where its words occur in training outside of entities. Predicted entities go by their own
    words. Augenstein, Derczynski and Bontcheva (2017) analyse systems by seen and unseen surface forms; type and case
    are this function's choice.

    Args:
        comparison: Gold and predicted tags.
        tokens: The words of all sentences in one row.
        train_surfaces: The surface forms of the entities of the training data, as `surface_forms` gives them.

    Returns:
        ``seen`` and ``unseen``, each with ``precision``, ``recall``, ``f1`` and ``support``.
    """
    known = set(train_surfaces)
    gold_part, predicted_part = (
        (~_are_in(known, surface_forms(spans, tokens, comparison.lengths))).astype(np.int64)
        for spans in (comparison.gold, comparison.predicted)
    )
    return comparison.ratios_by(gold_part, predicted_part, ("seen", "unseen"))


def surface_forms(spans: Spans, tokens: Sequence[str], lengths: IntArray) -> list[str]:
    """Return the surface form of each span: its words, joined by blanks.

    Args:
        spans: Spans of the sentences.
        tokens: The words of all sentences in one row.
        lengths: The number of words of each sentence. Shape: (sentences,).
    """
    _check_words(tokens, lengths)
    first, end = spans.bounds(lengths)
    return [" ".join(tokens[start:stop]) for start, stop in zip(first.tolist(), end.tolist(), strict=True)]


def _are_in(known: Collection[str], names: Sequence[str]) -> BoolArray:
    return np.fromiter(map(known.__contains__, names), dtype=bool, count=len(names))


def _check_words(tokens: Sequence[str], lengths: IntArray) -> None:
    if len(tokens) != lengths.sum():
        raise ValueError(
            f"{len(tokens)} words for {int(lengths.sum())} tags; give the words of all sentences in one flat list."
        )
