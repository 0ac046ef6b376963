from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from span_oracle import POLICIES, corpus_spans, pairs_with_words, ratios_by_loop

from hf_xorner.evaluation import Comparison, Spans, seen_partition, surface_forms, vocabulary_partition

PARTS = ["IV", "OOTV", "OOEV", "OOBV"]
VOCABULARY = st.sets(st.sampled_from(["a", "b", "A", "B", "c"]))


def part_of(words, train, vectors):
    """The part of an entity, or of a word alone, by ma2016's definition."""
    some_not_in_train = any(word not in train for word in words)
    some_not_in_vectors = any(word not in vectors and word.lower() not in vectors for word in words)
    if some_not_in_train and some_not_in_vectors:
        return "OOBV"
    if some_not_in_train:
        return "OOTV"
    return "OOEV" if some_not_in_vectors else "IV"


def assert_close(found, expected):
    assert list(found) == list(expected)
    for name, row in expected.items():
        assert found[name] == pytest.approx(row, abs=1e-10)


# --- Vocabularies ----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=300)
@given(pairs_with_words(), st.sampled_from(POLICIES), VOCABULARY, VOCABULARY)
def test_words_and_entities_fall_into_the_parts_of_the_definition(pair, policy, train, vectors):
    gold, predicted, words = pair
    spans = [corpus_spans(side, "iob2", policy) for side in (gold, predicted)]
    flat = list(chain.from_iterable(words))
    right = [one == other for side in zip(gold, predicted, strict=True) for one, other in zip(*side, strict=True)]
    found = vocabulary_partition(Comparison.of(gold, predicted, policy), flat, train, vectors)
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
    assert list(found) == ["words", "entities"]
    assert_close(found["entities"], entities)
    assert_close(found["words"], of_words)


def test_the_parts_by_hand():
    words = "New York saw Zeus in Xanadu City".split()
    gold = [["B-X", "I-X", "O", "B-Y", "O", "B-X", "I-X"]]
    predicted = [["B-X", "I-X", "O", "B-Y", "B-Y", "O", "B-X"]]
    train = {"New", "York", "saw", "in", "Zeus"}
    vectors = {"new", "York", "in", "city", "saw"}
    found = vocabulary_partition(Comparison.of(gold, predicted), words, train, vectors)
    # "New" has a vector by its lower-cased form. Xanadu is in neither, City in the vectors only: together OOBV; the
    # predicted "City" alone is OOTV.
    assert found["entities"] == {
        "IV": {"precision": 50.0, "recall": 100.0, "f1": pytest.approx(200 / 3), "support": 1},
        "OOTV": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0},
        "OOEV": {"precision": 100.0, "recall": 100.0, "f1": 100.0, "support": 1},
        "OOBV": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1},
    }
    assert found["words"] == {
        "IV": {"accuracy": 75.0, "support": 4},
        "OOTV": {"accuracy": 0.0, "support": 1},
        "OOEV": {"accuracy": 100.0, "support": 1},
        "OOBV": {"accuracy": 0.0, "support": 1},
    }


def test_an_entity_of_one_word_without_training_and_another_without_vector_is_out_of_both():
    comparison = Comparison.of([["B-X", "I-X"]], [["B-X", "I-X"]])
    found = vocabulary_partition(comparison, ["known", "vector"], ["known"], ["vector"])
    assert [name for name, row in found["entities"].items() if row["support"]] == ["OOBV"]
    assert [name for name, row in found["words"].items() if row["support"]] == ["OOTV", "OOEV"]


def test_training_words_keep_their_case():
    comparison = Comparison.of([["B-X"]], [["B-X"]])
    found = vocabulary_partition(comparison, ["New"], ["new"], ["new"])
    assert found["entities"]["OOTV"]["support"] == 1
    # A vector of the upper-cased word is no vector of the lower-cased one.
    found = vocabulary_partition(comparison, ["new"], ["new"], ["New"])
    assert found["entities"]["OOEV"]["support"] == 1


def test_without_vectors_there_are_two_parts():
    comparison = Comparison.of([["B-X", "O"]], [["B-X", "O"]])
    found = vocabulary_partition(comparison, ["a", "b"], iter(["a"]))
    assert list(found["words"]) == list(found["entities"]) == ["IV", "OOTV"]
    assert found["words"]["OOTV"] == {"accuracy": 100.0, "support": 1}


def test_plain_tags_have_words_only():
    comparison = Comparison.of([["NN", "VB"]], [["NN", "NN"]])
    found = vocabulary_partition(comparison, ["a", "b"], ["a"], ["a"])
    assert list(found) == ["words"]
    assert found["words"]["OOBV"] == {"accuracy": 0.0, "support": 1}


# --- Seen entities ---------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=300)
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


def test_seen_entities_by_hand():
    # The type does not matter, the case does, and so does the whole of the form.
    words = "Paris met paris in New York City".split()
    gold = [["B-X", "O", "B-X", "O", "B-X", "I-X", "I-X"]]
    predicted = [["B-X", "O", "O", "O", "B-X", "I-X", "O"]]
    found = seen_partition(Comparison.of(gold, predicted), words, iter(["Paris", "New York"]))
    assert found == {
        "seen": {"precision": 50.0, "recall": 100.0, "f1": pytest.approx(200 / 3), "support": 1},
        "unseen": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 2},
    }


# --- Surface forms ---------------------------------------------------------------------------------------------------


def test_surface_forms_are_words_joined_by_blanks():
    found = Spans(np.array([0, 2]), np.array([1, 0]), np.array([3, 1]), np.array([0, 0]))
    assert surface_forms(found, "in New York Zeus fell".split(), np.array([3, 0, 2])) == ["New York", "Zeus"]


def test_words_that_do_not_fit_are_told():
    comparison = Comparison.of([["B-X", "O"]], [["B-X", "O"]])
    message = "1 words for 2 tags; give the words of all sentences in one flat list."
    for function in (
        lambda words: surface_forms(comparison.gold, words, comparison.lengths),
        lambda words: vocabulary_partition(comparison, words, []),
        lambda words: seen_partition(comparison, words, []),
    ):
        with pytest.raises(ValueError) as error:
            function([["a", "b"]])
        assert str(error.value) == message
