from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from span_oracle import POLICIES, SCHEMES, TYPES, corpus_spans, in_bioes, pairs, ratios_by_loop

from hf_xorner.evaluation.breakdowns import (
    chunk_tag_recall,
    confusion,
    per_length,
    per_type,
    seen_partition,
    sentence_kind_scores,
    surface_scores,
    tag_scores,
    vocabulary_partition,
)
from hf_xorner.evaluation.comparison import Comparison

PARTS = ["IV", "OOTV", "OOEV", "OOBV"]
VOCABULARY = st.sets(st.sampled_from(["a", "b", "A", "B", "c"]))


def assert_close(actual, expected):
    assert list(actual) == list(expected)
    for name, row in expected.items():
        assert actual[name] == pytest.approx(row, abs=1e-10)


def chunk_tag_recall_by_loop(gold, predicted, scheme):
    """The recall of chunk tags, word by word."""
    letters = [chunk_letters(tags, scheme) for tags in (gold, predicted)]
    recalls = {}
    for letter in "OSBIE":
        right = [
            gold_letter == predicted_letter
            for gold_letter, predicted_letter in zip(*letters, strict=True)
            if gold_letter == letter
        ]
        recalls[letter] = {"recall": 100 * sum(right) / len(right) if right else 0, "support": len(right)}
    return recalls


def chunk_letters(sentences, scheme):
    """The letters O S B I E of tags that mark ends; of IOB tags, those of the words of their spans."""
    if scheme not in ("iob1", "iob2"):
        return [tag[0] for tags in sentences for tag in in_bioes(tags)]
    letters = [["O"] * len(tags) for tags in sentences]
    for sentence, start, end, _ in corpus_spans(sentences, scheme, "conlleval"):
        inside = "I" * (end - start - 2)
        letters[sentence][start:end] = "S" if end - start == 1 else f"B{inside}E"
    return list(chain.from_iterable(letters))


def confusion_by_loop(gold, predicted, types):
    table = {key: dict.fromkeys(types, 0) for key in ("boundary", "boundary_and_type", "missed", "inexact", "spurious")}
    matrix = {(row, column): 0 for row in types for column in types}

    def overlapping(span, others):
        return [other for other in others if other[0] == span[0] and other[1] < span[2] and span[1] < other[2]]

    for span in gold:
        around = overlapping(span, predicted)
        same_ends = [other for other in around if other[1:3] == span[1:3]]
        if same_ends:
            matrix[span[3], same_ends[0][3]] += 1
        elif not around:
            table["missed"][span[3]] += 1
        elif any(other[3] == span[3] for other in around):
            table["boundary"][span[3]] += 1
        else:
            table["boundary_and_type"][span[3]] += 1
    for span in predicted:
        around = overlapping(span, gold)
        if not around:
            table["spurious"][span[3]] += 1
        elif not any(other[1:3] == span[1:3] for other in around):
            table["inexact"][span[3]] += 1
    table["types"], table["matrix"] = list(types), [[matrix[row, column] for column in types] for row in types]
    table["support"] = {name: sum(span[3] == name for span in gold) for name in types}
    table["predicted"] = {name: sum(span[3] == name for span in predicted) for name in types}
    return table


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_breakdowns_match_loops_over_the_spans(scheme, data):
    tags, predicted_tags = data.draw(pairs(scheme))
    policy = data.draw(st.sampled_from(POLICIES))
    comparison = Comparison.of(tags, predicted_tags, policy, scheme)
    gold, predicted = (corpus_spans(side, scheme, policy) for side in (tags, predicted_tags))

    def scores_where(condition):
        return ratios_by_loop(*([span for span in side if condition(span)] for side in (gold, predicted)))

    present = {span[3] for span in gold + predicted}
    types = {name: scores_where(lambda span, name=name: span[3] == name) for name in TYPES if name in present}
    assert_close(per_type(comparison), types)
    groups = {"1": [1], "2": [2], "3": [3], "3 or more": range(3, 20)}
    lengths = {key: scores_where(lambda span, sizes=sizes: span[2] - span[1] in sizes) for key, sizes in groups.items()}
    assert_close(per_length(comparison), lengths)
    assert_close(chunk_tag_recall(comparison), chunk_tag_recall_by_loop(tags, predicted_tags, scheme))
    assert confusion(comparison) == confusion_by_loop(gold, predicted, comparison.tag_set.types)


@st.composite
def pairs_with_words(draw):
    """With few distinct words, so that surface forms come back."""
    gold, predicted = draw(pairs("iob2"))
    word = st.sampled_from(["a", "b", "A", "B", "c"])
    return gold, predicted, [draw(st.lists(word, min_size=len(tags), max_size=len(tags))) for tags in gold]


@given(pairs_with_words(), st.sampled_from(POLICIES))
def test_pairs_of_surface_form_and_type_are_scored_once(pair, policy):
    gold, predicted, words = pair
    comparison = Comparison.of(gold, predicted, policy)

    def pair_of(span):
        return " ".join(words[span[0]][span[1] : span[2]]), span[3]

    gold_spans, predicted_spans = (corpus_spans(side, "iob2", policy) for side in (gold, predicted))
    gold_pairs, predicted_pairs = set(map(pair_of, gold_spans)), set(map(pair_of, predicted_spans))
    correct = {pair_of(span) for span in predicted_spans if span in gold_spans}
    precision = len(correct) / len(predicted_pairs) if predicted_pairs else 0
    recall = len(correct) / len(gold_pairs) if gold_pairs else 0
    expected = {
        "precision": 100 * precision,
        "recall": 100 * recall,
        "f1": 200 * precision * recall / (precision + recall) if correct else 0,
        "support": len(gold_pairs),
    }
    assert surface_scores(comparison, list(chain.from_iterable(words))) == pytest.approx(expected, abs=1e-10)


def part_of(words, train, vectors):
    """The part of an entity, or of a word alone, by ma2016's definition."""
    some_not_in_train = any(word.lower() not in [other.lower() for other in train] for word in words)
    some_not_in_vectors = any(word not in vectors and word.lower() not in vectors for word in words)
    if some_not_in_train and some_not_in_vectors:
        return "OOBV"
    if some_not_in_train:
        return "OOTV"
    return "OOEV" if some_not_in_vectors else "IV"


@given(pairs_with_words(), st.sampled_from(POLICIES), VOCABULARY, VOCABULARY)
def test_vocabulary_parts_match_the_definition(pair, policy, train, vectors):
    gold, predicted, words = pair
    spans = [corpus_spans(side, "iob2", policy) for side in (gold, predicted)]
    flat = list(chain.from_iterable(words))
    right = [one == other for side in zip(gold, predicted, strict=True) for one, other in zip(*side, strict=True)]
    scores = vocabulary_partition(Comparison.of(gold, predicted, policy), flat, train, vectors)
    entities, of_words = {}, {}
    for name in PARTS:
        entities[name] = ratios_by_loop(
            *(
                [span for span in side if part_of(words[span[0]][span[1] : span[2]], train, vectors) == name]
                for side in spans
            )
        )
        chosen = [hit for word, hit in zip(flat, right, strict=True) if part_of([word], train, vectors) == name]
        of_words[name] = {"accuracy": 100 * sum(chosen) / len(chosen) if chosen else 0, "support": len(chosen)}
    assert list(scores) == ["words", "entities"]
    assert_close(scores["entities"], entities)
    assert_close(scores["words"], of_words)


@given(
    pairs_with_words(), st.sampled_from(POLICIES), st.sets(st.lists(st.sampled_from("abABc"), max_size=2).map(" ".join))
)
def test_entities_are_seen_when_training_has_their_surface_form(pair, policy, surfaces):
    gold, predicted, words = pair
    spans = [corpus_spans(side, "iob2", policy) for side in (gold, predicted)]
    expected = {
        name: ratios_by_loop(
            *(
                [span for span in side if (" ".join(words[span[0]][span[1] : span[2]]) in surfaces) == seen]
                for side in spans
            )
        )
        for name, seen in [("seen", True), ("unseen", False)]
    }
    comparison = Comparison.of(gold, predicted, policy)
    assert_close(seen_partition(comparison, list(chain.from_iterable(words)), surfaces), expected)


def kind_by_loop(words):
    """The kind of a sentence, a word at a time."""
    letters = [letter for word in words for letter in word if letter.upper() != letter.lower()]
    if letters and all(letter == letter.upper() for letter in letters):
        return "capitals"
    numbers = [word for word in words if any(letter.isdigit() for letter in word)]
    if len(numbers) / len(words) >= 1 / 3:
        return "numbers"
    return "short" if len(words) < 7 else "other"


@given(pairs_with_words(), st.sampled_from(POLICIES), st.randoms(use_true_random=False))
def test_sentence_kinds_match_a_loop(pair, policy, random):
    gold, predicted, words = pair
    words = [[random.choice(["A1", "B", "c", "Zeus", "7", "."]) for _ in row] for row in words]
    spans = [corpus_spans(side, "iob2", policy) for side in (gold, predicted)]
    expected = {
        name: ratios_by_loop(*([span for span in side if kind_by_loop(words[span[0]]) == name] for side in spans))
        for name in ("capitals", "numbers", "short", "other")
    }
    comparison = Comparison.of(gold, predicted, policy)
    assert_close(sentence_kind_scores(comparison, list(chain.from_iterable(words))), expected)


@st.composite
def plain_pairs(draw):
    tag = st.sampled_from(["NN", "VB", "DT", "O", "."])
    lengths = draw(st.lists(st.integers(0, 8), max_size=5))
    return [[draw(st.lists(tag, min_size=length, max_size=length)) for length in lengths] for _ in range(2)]


@given(plain_pairs())
def test_plain_tags_are_scored_one_by_one(pair):
    comparison = Comparison.of(*pair, scheme="plain")
    gold, predicted = (list(chain.from_iterable(side)) for side in pair)
    scores = tag_scores(comparison)
    assert scores["support"] == len(gold)
    expected = {
        tag: ratios_by_loop(
            *([index for index, gold_tag in enumerate(side) if gold_tag == tag] for side in (gold, predicted))
        )
        for tag in sorted({*gold, *predicted})
    }
    assert_close(scores["per_tag"], expected)
    errors = Counter(
        (gold_tag, predicted_tag)
        for gold_tag, predicted_tag in zip(gold, predicted, strict=True)
        if gold_tag != predicted_tag
    )
    ordered = sorted(errors.items(), key=lambda item: (-item[1], item[0]))[:10]
    assert [(row["gold"], row["predicted"], row["count"]) for row in scores["confusions"]] == [
        (*names, count) for names, count in ordered
    ]
