"""Scores by type, length, chunk tag, error, kind of sentence, surface form, tag, and presence in the training data."""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ..models.word_ids import BEGIN, END, INSIDE, OUTSIDE, SINGLE
from .comparison import BoolArray, Comparison, IntArray, Spans, percent, ratios, spans_of_ids

_LENGTHS = ("1", "2", "3")
# "3+" in li2020, which includes entities of three words.
_LONG = "3 or more"
SENTENCE_KINDS = ("capitals", "numbers", "short", "other")
#: Maximum number of words of a short sentence.
_SHORT = 6
#: Number of confusions of tags in a report.
_CONFUSIONS = 10
CHUNK_TAGS = {"O": OUTSIDE, "S": SINGLE, "B": BEGIN, "I": INSIDE, "E": END}
# ma2016's parts in the order of `_part`.
_PARTS = ("IV", "OOTV", "OOEV", "OOBV")


def per_type(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Score the spans of each type in gold or prediction.

    Returns:
        For each type, sorted, ``precision``, ``recall``, ``f1`` and ``support``.
    """
    scores = comparison.ratios_by(lambda spans: spans.type, comparison.tag_set.types)
    present = set(np.union1d(comparison.gold.type, comparison.predicted.type).tolist())
    return {name: row for index, (name, row) in enumerate(scores.items()) if index in present}


def per_length(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Score the spans of each length: gold spans by their own length, predicted spans by theirs (li2020).

    Returns:
        For the lengths ``1``, ``2``, ``3`` and ``3 or more`` words ``precision``, ``recall``, ``f1`` and ``support``.
        Entities of three words are in both of the last two.
    """
    most = len(_LENGTHS)
    exact = comparison.ratios_by(lambda spans: np.minimum(spans.end - spans.start - 1, most), (*_LENGTHS, "longer"))
    long = comparison.ratios_by(lambda spans: np.where(spans.end - spans.start >= most, 1, 0), ("shorter", _LONG))
    return {name: exact[name] for name in _LENGTHS} | {_LONG: long[_LONG]}


def chunk_tag_recall(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Compute the recall of words by their chunk tag: outside, or single, begin, inside, end of an entity (li2020).

    Types and the policy are ignored; see `chunk_tags_of`.

    Returns:
        For each of ``O``, ``S``, ``B``, ``I``, ``E`` the ``recall``, and the ``support`` in words.
    """
    gold, predicted = (
        chunk_tags_of(ids, comparison)[comparison.labelled] for ids in (comparison.gold_ids, comparison.predicted_ids)
    )
    rows = _shares(gold, gold == predicted, len(CHUNK_TAGS), "recall")
    return {name: rows[kind] for name, kind in CHUNK_TAGS.items()}


def chunk_tags_of(ids: IntArray, comparison: Comparison) -> IntArray:
    """Return the chunk tag of each word: OUTSIDE, BEGIN, INSIDE, END or SINGLE. Shape: (words,).

    Tags of schemes that mark ends, such as BIOES, are not changed, even in malformed spans. IOB tags become the BIOES
    tags of their spans, none of which are dropped.

    Args:
        ids: The gold or the predicted tags of a comparison.
        comparison: The comparison.
    """
    if comparison.tag_set.scheme not in ("iob1", "iob2"):
        return comparison.tag_set.kind_of[ids]
    spans = spans_of_ids(ids, comparison.lengths, comparison.tag_set, "conlleval")
    kinds = np.where(spans.of_words(len(ids)) >= 0, INSIDE, OUTSIDE)
    kinds[spans.end - 1] = END
    kinds[spans.start] = np.where(spans.end - spans.start == 1, SINGLE, BEGIN)
    return kinds


def confusion(comparison: Comparison) -> dict[str, Any]:
    """Count gold spans by the predictions that overlap them, and predicted spans by the gold spans that overlap them.

    A gold span is counted in exactly one of these:

    - ``matrix``, by its type and the predicted type, if a predicted span has both its ends;
    - ``boundary``, if predicted spans overlap it, none has both its ends, and one has its type;
    - ``boundary_and_type``, if predicted spans overlap it, none has both its ends, and none has its type;
    - ``missed``, if no predicted span overlaps it.

    A predicted span is counted in exactly one of these: ``matrix``; ``inexact``, if it overlaps gold spans but none has
    both its ends; ``spurious``, if it overlaps none.

    Returns:
        Numbers of spans. ``types``; ``matrix``, gold types by predicted types; by gold type ``boundary``,
        ``boundary_and_type``, ``missed`` and, with the row of the matrix added, their sum ``support``; by predicted
        type ``inexact``, ``spurious`` and, with the column of the matrix added, their sum ``predicted``.
    """
    types, gold, predicted = comparison.tag_set.types, comparison.gold, comparison.predicted
    words = len(comparison.gold_ids)
    # The type of each word's span, -1 outside of spans.
    gold_types, predicted_types = (np.append(spans.type, -1)[spans.of_words(words)] for spans in (gold, predicted))
    overlapped, same_type = gold.any_word(predicted_types >= 0), gold.any_word(predicted_types == gold_types)
    overlaps = predicted.any_word(gold_types >= 0)
    in_gold, in_predicted = comparison.aligned
    pairs = gold.type[in_gold] * len(types) + predicted.type[in_predicted]
    matrix = np.bincount(pairs, minlength=len(types) ** 2).reshape(len(types), len(types))
    gold_inexact, predicted_inexact = np.ones(len(gold), dtype=bool), np.ones(len(predicted), dtype=bool)
    gold_inexact[in_gold] = predicted_inexact[in_predicted] = False
    by_type = {
        "boundary": gold.type[gold_inexact & same_type],
        "boundary_and_type": gold.type[gold_inexact & overlapped & ~same_type],
        "missed": gold.type[~overlapped],
        "support": gold.type,
        "inexact": predicted.type[predicted_inexact & overlaps],
        "spurious": predicted.type[~overlaps],
        "predicted": predicted.type,
    }
    counts = {
        name: dict(zip(types, np.bincount(of_spans, minlength=len(types)).tolist(), strict=True))
        for name, of_spans in by_type.items()
    }
    return {"types": list(types), "matrix": matrix.tolist(), **counts}


def surface_scores(comparison: Comparison, tokens: Sequence[str]) -> dict[str, float]:
    """Score unique pairs of a surface form and a type, as the shared task of WNUT 2017 did.

    A pair is correct if at least one of its occurrences was predicted exactly. Precision is the share of correct pairs
    among the predicted pairs, recall the share among the gold pairs.

    Args:
        comparison: Gold and predicted tags.
        tokens: The words of all sentences in a row.

    Returns:
        ``precision``, ``recall``, ``f1``, and ``support``, the number of gold pairs.
    """
    gold, predicted = (
        list(zip(surface_forms(spans, tokens), spans.type.tolist(), strict=True))
        for spans in (comparison.gold, comparison.predicted)
    )
    correct = {pair for pair, right in zip(predicted, comparison.correct.tolist(), strict=True) if right}
    return ratios(len(correct), len(set(predicted)), len(set(gold)))


def tag_scores(comparison: Comparison) -> dict[str, Any]:
    """Score words by their tags, as for parts of speech.

    Args:
        comparison: Gold and predicted tags; chunk tags count with their prefix.

    Returns:
        ``support`` in words; ``per_tag``: for each tag in gold or prediction ``precision``,
        ``recall``, ``f1`` and ``support``; ``confusions``: the most frequent pairs of a ``gold`` tag and a different
        ``predicted`` one, each with its ``count``, the most frequent first.
    """
    tags, gold, predicted = comparison.tag_set.tags, comparison.gold_ids, comparison.predicted_ids
    right = gold == predicted
    counts = [np.bincount(ids, minlength=len(tags)).tolist() for ids in (gold[right], predicted, gold)]
    # Only pairs that occur, as the matrix of all tags would be large for morphological tags.
    pairs, how_often = np.unique(gold[~right] * len(tags) + predicted[~right], return_counts=True)
    order = np.argsort(-how_often, kind="stable")[:_CONFUSIONS]
    return {
        "support": len(gold),
        "per_tag": {tag: ratios(*row) for tag, *row in zip(tags, *counts, strict=True) if any(row)},
        "confusions": [
            {"gold": tags[pair // len(tags)], "predicted": tags[pair % len(tags)], "count": count}
            for pair, count in zip(pairs[order].tolist(), how_often[order].tolist(), strict=True)
        ],
    }


def vocabulary_partition(
    comparison: Comparison, tokens: Sequence[str], train_words: Iterable[str], vector_words: Iterable[str] | None = None
) -> dict[str, Any]:
    """Score words and entities by whether the training data and the vectors contain them (ma2016).

    A word is in-vocabulary (``IV``) if both have it, out of the training vocabulary (``OOTV``) if only the vectors have
    it, out of the embedding vocabulary (``OOEV``) if only the training data have it, and out of both (``OOBV``)
    otherwise. An entity is OOTV if a word is not in the training data and all words have vectors, OOEV if all words are
    in the training data and a word has no vector, and OOBV if a word is not in the training data and the same or
    another word has no vector. Predicted entities are assigned by their own words.

    ma2016 lower-cases all words. So the training data have a word if they have it in any case, and the vectors if they
    have it or its lower-cased form.

    Args:
        comparison: Gold and predicted tags.
        tokens: The words of all sentences in a row.
        train_words: The words of the training data.
        vector_words: The words that have a pretrained vector; if None, there are only the parts IV and OOTV.

    Returns:
        ``words``: for each part the ``accuracy`` of its tags in percent and its ``support`` in words; for chunk tags
        also ``entities``: for each part ``precision``, ``recall``, ``f1`` and ``support``.
    """
    distinct = set(tokens)
    names: Sequence[str] = _PARTS[:2]
    known = distinct
    if vector_words is not None:
        names, known = _PARTS, distinct.union(map(str.lower, distinct)).intersection(vector_words)
    lower_cased = set(map(str.lower, train_words))
    not_in_train = ~_are_in({word for word in distinct if word.lower() in lower_cased}, tokens)
    not_in_vectors = ~_are_in({word for word in distinct if word in known or word.lower() in known}, tokens)
    labelled, part = comparison.labelled, _part(not_in_train, not_in_vectors)
    right = comparison.gold_ids == comparison.predicted_ids
    rows = _shares(part[labelled], right[labelled], len(names), "accuracy")
    scores: dict[str, Any] = {"words": dict(zip(names, rows, strict=True))}
    if not comparison.tag_set.plain:
        scores["entities"] = comparison.ratios_by(
            lambda spans: _part(spans.any_word(not_in_train), spans.any_word(not_in_vectors)), names
        )
    return scores


def seen_partition(
    comparison: Comparison, tokens: Sequence[str], train_surfaces: Collection[str]
) -> dict[str, dict[str, float]]:
    """Score entities by whether an entity of the training data has the same surface form.

    An entity is seen if an entity of the training data, of any type, has the same words in the same case, and unseen
    otherwise, even if its words occur in training outside of entities. Predicted entities are assigned by their own
    words. Augenstein, Derczynski and Bontcheva (2017) analyse systems by seen and unseen surface forms; that the type
    does not matter and the case does is this function's choice.

    Args:
        comparison: Gold and predicted tags.
        tokens: The words of all sentences in a row.
        train_surfaces: The surface forms of the entities of the training data; see `surface_forms`.

    Returns:
        ``seen`` and ``unseen``, each with ``precision``, ``recall``, ``f1`` and ``support``.
    """
    return comparison.ratios_by(
        lambda spans: np.where(_are_in(set(train_surfaces), surface_forms(spans, tokens)), 0, 1),
        ("seen", "unseen"),
    )


def sentence_kind_scores(comparison: Comparison, tokens: Sequence[str]) -> dict[str, dict[str, float]]:
    """Score entities by the kind of their sentence: headlines in capitals, lines of tables, short sentences, others.

    Args:
        comparison: Gold and predicted tags.
        tokens: The words of all sentences in a row.

    Returns:
        For each of `SENTENCE_KINDS` ``precision``, ``recall``, ``f1`` and ``support``. A sentence has the first kind
        that fits: all letters are capitals; at least a third of the words have a digit; at most six words; other.
    """
    sentence = np.repeat(np.arange(len(comparison.lengths)), comparison.lengths)
    stream = iter(tokens)
    kinds = np.array([_kind_of(list(islice(stream, size))) for size in comparison.lengths], dtype=np.int64)
    return comparison.ratios_by(lambda spans: kinds[sentence[spans.start]], SENTENCE_KINDS)


def _kind_of(words: list[str]) -> int:
    """Return the index of the first of `SENTENCE_KINDS` that fits a sentence."""
    numbers = sum(any(map(str.isdigit, word)) for word in words)
    return [" ".join(words).isupper(), 3 * numbers >= len(words), len(words) <= _SHORT, True].index(True)


def surface_forms(spans: Spans, tokens: Sequence[str]) -> list[str]:
    """Return the surface form of each span: its words, joined by spaces.

    Args:
        spans: Spans of the sentences.
        tokens: The words of all sentences in a row.
    """
    return [" ".join(tokens[start:end]) for start, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True)]


def _part(not_in_train: BoolArray, not_in_vectors: BoolArray) -> IntArray:
    """Return the index of the part of `_PARTS` of each word or span."""
    return np.where(not_in_train, 1, 0) + np.where(not_in_vectors, 2, 0)


def _are_in(known: Collection[str], names: Sequence[str]) -> BoolArray:
    return np.fromiter(map(known.__contains__, names), dtype=bool, count=len(names))


def _shares(group: IntArray, right: BoolArray, groups: int, name: str) -> list[dict[str, float]]:
    """Return the share of correct words in each group, under the given name, and the ``support`` in words."""
    counts = (np.bincount(numbers, minlength=groups).tolist() for numbers in (group[right], group))
    return [{name: percent(*row), "support": row[1]} for row in zip(*counts, strict=True)]
