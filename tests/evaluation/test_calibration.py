import numpy as np
import pytest
from conftest import LABELS
from hypothesis import given
from hypothesis import strategies as st
from random_texts import GIVEN, lively_model

from hf_xorner import Tagger
from hf_xorner.evaluation import Spans, TagSet, spans_of_ids
from hf_xorner.evaluation.calibration import calibration, entity_confidences

EMPTY = {"count": 0, "confidence": 0.0, "accuracy": 0.0}


def filled(table):
    """The bins that hold something, by their number."""
    return {index: row for index, row in enumerate(table["bins"]) if row["count"]}


# --- Calibration -----------------------------------------------------------------------------------------------------


def test_a_table_by_hand():
    table = calibration([0.05, 0.62, 0.68, 0.65, 0.95, 0.97], [False, True, False, False, True, True])
    assert table["count"] == 6
    assert filled(table) == {
        0: {
            "lower": 0.0,
            "upper": 0.1,
            "count": 1,
            "confidence": pytest.approx(5),
            "accuracy": 0.0,
        },
        6: {
            "lower": 0.6,
            "upper": 0.7,
            "count": 3,
            "confidence": pytest.approx(65),
            "accuracy": pytest.approx(100 / 3),
        },
        9: {"lower": 0.9, "upper": 1.0, "count": 2, "confidence": pytest.approx(96), "accuracy": 100.0},
    }
    assert table["ece"] == pytest.approx((1 * 5 + 3 * (65 - 100 / 3) + 2 * 4) / 6)


def test_two_bins_by_hand():
    table = calibration([0.25, 0.75, 1.0], [True, True, False], bins=2)
    assert table["bins"] == [
        {"lower": 0.0, "upper": 0.5, "count": 1, "confidence": 25.0, "accuracy": 100.0},
        {"lower": 0.5, "upper": 1.0, "count": 2, "confidence": 87.5, "accuracy": 50.0},
    ]
    assert table["ece"] == pytest.approx((75 + 2 * 37.5) / 3)


@pytest.mark.parametrize("bins", [1, 3, 7, 10, 15, 100])
def test_borders_belong_to_the_bin_below(bins):
    borders = [index / bins for index in range(bins + 1)]
    table = calibration(borders, [True] * len(borders), bins=bins)
    # 0 has no bin below and shares the first with its upper border.
    assert [row["count"] for row in table["bins"]] == [2] + [1] * (bins - 1)
    assert [row["upper"] for row in table["bins"]] == borders[1:]
    assert [row["lower"] for row in table["bins"]] == borders[:-1]


def test_borders_are_the_numbers_one_writes():
    table = calibration([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0], [True] * 10)
    assert [row["count"] for row in table["bins"]] == [1] * 10
    just_above = np.nextafter([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], 1)
    assert [row["count"] for row in calibration(just_above, [True] * 9)["bins"]] == [0] + [1] * 9


@pytest.mark.parametrize(
    ("confidences", "correct", "error"),
    [([1.0, 1.0], [True, True], 0), ([0.0], [False], 0), ([1.0], [False], 100), ([0.0], [True], 100)],
)
def test_certainty_is_right_or_wrong(confidences, correct, error):
    assert calibration(confidences, correct)["ece"] == error


def test_nothing_has_no_error():
    table = calibration([], [], bins=2)
    assert table == {
        "ece": 0.0,
        "bins": [{"lower": 0.0, "upper": 0.5, **EMPTY}, {"lower": 0.5, "upper": 1.0, **EMPTY}],
        "count": 0,
    }


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40), st.integers(1, 20))
def test_the_table_equals_a_loop(entities, bins):
    table = calibration([confidence for confidence, _ in entities], [correct for _, correct in entities], bins)
    total = 0.0
    for index, row in enumerate(table["bins"]):
        lower, upper = index / bins, (index + 1) / bins
        inside = [(c, right) for c, right in entities if lower < c <= upper or (index == 0 and c == 0)]
        assert row["count"] == len(inside)
        if inside:
            confidence = 100 * sum(c for c, _ in inside) / len(inside)
            accuracy = 100 * sum(right for _, right in inside) / len(inside)
            assert row["confidence"] == pytest.approx(confidence)
            assert row["accuracy"] == pytest.approx(accuracy)
            total += len(inside) * abs(accuracy - confidence)
    assert table["ece"] == pytest.approx(total / len(entities), abs=1e-9)


@pytest.mark.parametrize("wrong", [-0.01, 1.01, float("nan"), float("inf"), 100.0])
def test_confidences_that_are_no_probabilities_are_refused(wrong):
    with pytest.raises(ValueError) as error:
        calibration([0.5, wrong], [True, True])
    assert str(error.value) == (
        f"the confidence of entity 1 (counted from 0) is {wrong}; a confidence is a probability from 0 to 1."
    )


def test_faulty_shapes_are_told():
    with pytest.raises(ValueError) as error:
        calibration([0.5, 0.6], [True])
    assert str(error.value) == (
        "confidences of the shape (2,) do not fit truth values of the shape (1,); give one of each for every entity."
    )
    with pytest.raises(ValueError, match="bins=0 is too few; give 1 or more"):
        calibration([0.5], [True], bins=0)


# --- Confidences of entities -----------------------------------------------------------------------------------------


def spans(*columns):
    return Spans(*(np.array(column, dtype=np.int64) for column in zip(*columns, strict=True)))


def test_confidences_by_hand():
    probabilities = [0.5, 1.0, 0.25, 0.75, 0.125, 1.0]
    found = entity_confidences(probabilities, spans((0, 0, 2, 0), (2, 0, 1, 0), (2, 1, 4, 0)), np.array([2, 0, 4]))
    assert found.tolist() == [0.75, 0.25, (0.75 + 0.125 + 1.0) / 3]
    assert found.dtype == np.float64


def test_no_spans_have_no_confidences():
    nothing = np.zeros(0, dtype=np.int64)
    assert entity_confidences([0.5], Spans(nothing, nothing, nothing, nothing), np.array([1])).tolist() == []


def test_certain_words_after_a_million_others_are_certain():
    # A difference of running totals would say 1.0000000000582077.
    probabilities = np.random.default_rng(0).random(1_000_003)
    probabilities[-3:] = 1.0
    found = entity_confidences(probabilities, spans((0, 1_000_000, 1_000_003, 0)), np.array([1_000_003]))
    assert found.tolist() == [1.0]


@given(st.lists(st.lists(st.sampled_from(range(len(LABELS))), max_size=6), min_size=1, max_size=6), st.data())
def test_confidences_are_means_over_words(sentences, data):
    tag_set = TagSet.of(LABELS)
    lengths = np.array([len(ids) for ids in sentences])
    ids = np.array([tag for sentence in sentences for tag in sentence], dtype=np.int64)
    probabilities = np.array(data.draw(st.lists(st.floats(0, 1, width=32), min_size=len(ids), max_size=len(ids))))
    found = spans_of_ids(ids, lengths, tag_set, "conlleval")
    rows = np.split(probabilities, np.cumsum(lengths)[:-1])
    expected = [
        rows[sentence][start:end].mean()
        for sentence, start, end in zip(found.sentence, found.start, found.end, strict=True)
    ]
    assert entity_confidences(probabilities.astype(np.float32), found, lengths) == pytest.approx(expected)


@pytest.mark.parametrize("decoder", ["softmax", "crf"])
def test_confidences_are_means_over_the_entities_of_the_tagger(tokenizer, decoder):
    model = lively_model("cross-bilstm-cnn", tokenizer, decoder)
    ids, probabilities, lengths = [], [], []
    for words in GIVEN:
        inputs = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        best = model(**inputs).logits[0].softmax(-1).max(-1)
        ids += best.indices.tolist()
        probabilities += best.values.tolist()
        lengths.append(len(words))
    lengths = np.array(lengths)
    found = spans_of_ids(np.array(ids), lengths, TagSet.of(LABELS), "conlleval")
    confidences = entity_confidences(probabilities, found, lengths)
    starts = lengths.cumsum() - lengths
    tagged = zip(starts, Tagger(model, tokenizer).tag(GIVEN), strict=True)
    means = [
        np.mean(probabilities[start + entity.word_start : start + entity.word_end])
        for start, entities in tagged
        for entity in entities
    ]
    assert len(means) > 30
    assert confidences == pytest.approx(means, abs=1e-5)


def test_probabilities_that_do_not_fit_are_told():
    with pytest.raises(ValueError) as error:
        entity_confidences([0.5, 0.5], spans((0, 0, 1, 0)), np.array([1, 2]))
    assert str(error.value) == (
        "probabilities of the shape (2,) do not fit sentences of 3 words; give one for each word."
    )
