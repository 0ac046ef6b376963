"""Entities by their scores, and the least score for a wanted precision, compared with a loop over entities."""

import json
import math
import random

import numpy as np
import pytest
from helpers import fault, ok
from hypothesis import example, given
from hypothesis import strategies as st
from random_texts import GIVEN, TEXTS
from span_oracle import spans_by_loop

from hf_xorner import Tagger, evaluate
from hf_xorner.evaluation.thresholds import ScoredEntities, choose_min_score

TYPES = ["PER", "LOC", "GOD"]


def ratios_of(kept, gold):
    """Precision, recall and F1 in percent of (score, correct, label) triples, counted one by one."""
    right = sum(1 for entity in kept if entity[1])
    count = len(kept)
    return {
        "precision": 100 * right / count if count else 0.0,
        "recall": 100 * right / gold if gold else 0.0,
        "f1": 200 * right / (count + gold) if count + gold else 0.0,
        "support": gold,
        "entities": count,
    }


entities = st.lists(
    st.tuples(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0])), st.booleans(), st.sampled_from(TYPES)),
    max_size=30,
)


def scored(entities, gold=40):
    scores, correct, labels = zip(*entities, strict=True) if entities else ((), (), ())
    return ScoredEntities(np.array(scores, float), np.array(correct, bool), np.array(labels), {"PER": gold})


@example([(0.5, True, "PER")], 0.5, {"PER": 0.5})
@given(entities, st.floats(0, 1), st.dictionaries(st.sampled_from(TYPES), st.floats(0, 1)))
def test_ratios_equal_a_loop(found_entities, least, by_label):
    assert scored(found_entities).at(least) == pytest.approx(
        ratios_of([e for e in found_entities if e[0] >= least], 40)
    )
    kept = [e for e in found_entities if e[0] >= by_label.get(e[2], 0)]
    assert scored(found_entities).at(by_label) == pytest.approx(ratios_of(kept, 40))


@example([(0.5, True, "PER"), (0.5, False, "PER")], 100, None)
@given(entities, st.integers(0, 100), st.sampled_from([None, *TYPES]))
def test_the_least_score_keeps_the_most_entities_of_the_precision(found_entities, precision, label):
    of_label = [entity for entity in found_entities if label in (None, entity[2])]
    sizes = []
    for least in {entity[0] for entity in of_label}:
        kept = [entity for entity in of_label if entity[0] >= least]
        if 100 * sum(entity[1] for entity in kept) / len(kept) >= precision:
            sizes.append(len(kept))
    if not sizes:
        with pytest.raises(ValueError, match=f"precision.* {precision} %"):
            scored(found_entities).least_score_for(precision, label)
        return
    least = scored(found_entities).least_score_for(precision, label)
    kept = [entity for entity in of_label if entity[0] >= least]
    assert len(kept) == max(sizes)
    assert 100 * sum(entity[1] for entity in kept) / len(kept) >= precision
    assert least == 0 or len(kept) < len(of_label)


def test_the_least_score_has_few_digits():
    entities = [(0.91234, True, "PER"), (0.87654, False, "PER"), (0.5000001, True, "PER"), (0.5, False, "PER")]
    assert scored(entities).least_score_for(100) == 0.89
    assert scored(entities).least_score_for(60) == 0.50000005
    assert choose_min_score(scored(entities), {"PER": 100}) == {"PER": 0.89}
    adjacent = [(0.5, True, "PER"), (math.nextafter(0.5, 0), False, "PER")]
    assert scored(adjacent).least_score_for(100) == 0.5


# --- Tagger ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [0.4, {"PER": 0.5, "GOD": 1}, {}])
def test_a_tagger_leaves_out_entities_below_their_least_score(tagger, least):
    by_label = {name: least.get(name, 0) if isinstance(least, dict) else least for name in TYPES}
    items = [*TEXTS[::2], *GIVEN[::2]]
    left_out = 0
    filtering = Tagger(tagger.model, tagger.tokenizer, min_score=least)
    every = tagger(items, min_score=0)
    for item, entities, annotation, mine, before in zip(
        items,
        every,
        tagger.annotate(items, min_score=least),
        filtering.annotate(items),
        tagger.annotate(items),
        strict=True,
    ):
        kept = [entity for entity in entities if entity.score >= by_label[entity.label]]
        assert annotation.entities == mine.entities == kept == tagger([item, item], min_score=least)[1]
        assert filtering([item]) == tagger([item], min_score=least) == list(tagger.pipe([item], min_score=least))
        expected = before.labels.copy()
        for entity in entities:
            if entity not in kept:
                expected[entity.word_start : entity.word_end] = ["O"] * (entity.word_end - entity.word_start)
                left_out += 1
        assert annotation.labels == mine.labels == expected
    assert (left_out > 5) == bool(least)
    entity = next(entity for entities in every for entity in entities)
    assert entity in tagger(items[0], min_score=entity.score)


def test_a_least_score_that_does_not_fit_is_refused(tagger, tokenizer):
    for least in (-0.1, float("nan"), "0.5", True, {"PER": 2}, {"ORG": 0.5}):
        with pytest.raises(ValueError, match=r"min_score.*(0 to 1|PER, LOC, GOD)"):
            tagger("Ann", min_score=least)
        with pytest.raises(ValueError, match=r"min_score.*(0 to 1|PER, LOC, GOD)"):
            Tagger(tagger.model, tokenizer, min_score=least)


# --- Saved with the model --------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path, tagger):
    """A model, and a corpus in which its entities of high scores are right, and a third of the others."""
    tagger.save_pretrained(tmp_path / "m")
    (tmp_path / "data").mkdir()
    draw = random.Random(0)
    for split, sentences in (("train", GIVEN[:3]), ("dev", GIVEN[:20]), ("test", GIVEN[5:24])):
        blocks = []
        for words, annotation in zip(sentences, tagger.annotate(sentences), strict=True):
            tags = annotation.labels
            for entity in annotation.entities:
                if entity.score < 0.5 and draw.random() < 2 / 3:
                    tags[entity.word_start : entity.word_end] = ["O"] * (entity.word_end - entity.word_start)
            blocks.append("".join(f"{word} {tag}\n" for word, tag in zip(words, tags, strict=True)))
        (tmp_path / "data" / f"{split}.txt").write_text("\n".join(blocks))
    return tmp_path


def loop_over(tagger, path):
    """Every entity of a split as (score, correct, label), and the number of gold entities."""
    entities, gold = [], 0
    for block in path.read_text().strip().split("\n\n"):
        words, tags = zip(*(line.split(" ") for line in block.splitlines()), strict=True)
        spans = set(spans_by_loop(tags, "iob2", "conlleval"))
        gold += len(spans)
        for entity in tagger(words, is_split_into_words=True, min_score=0):
            correct = (entity.word_start, entity.word_end, entity.label) in spans
            entities.append((entity.score, correct, entity.label))
    return entities, gold


def test_evaluation_equals_a_loop_over_the_entities(saved, tagger):
    figures = evaluate(saved / "m", saved / "data", min_precision=95, resamples=0)
    entities, gold = loop_over(tagger, saved / "data" / "test.txt")
    for least, row in figures["thresholds"].items():
        assert row == pytest.approx(ratios_of([e for e in entities if e[0] >= float(least)], gold))
    assert figures["thresholds"]["0.00"]["f1"] == pytest.approx(figures["f1"])
    chosen = figures["min_score"]
    on_dev, gold_on_dev = loop_over(tagger, saved / "data" / "dev.txt")
    kept = [entity for entity in on_dev if entity[0] >= chosen["value"]]
    assert chosen["rows"]["validation"] == pytest.approx(ratios_of(kept, gold_on_dev))
    assert chosen["rows"]["test"] == pytest.approx(ratios_of([e for e in entities if e[0] >= chosen["value"]], gold))
    assert chosen["rows"]["validation"]["precision"] >= 95 > ratios_of(on_dev, gold_on_dev)["precision"]
    # The choice does not depend on the split that is scored.
    again = evaluate(tagger, saved / "data", "train", min_precision=95, resamples=0)
    assert again["min_score"]["value"] == chosen["value"]


def test_a_precision_that_cannot_be_used_is_refused(saved, script):
    for options, reason in (
        (["--min_precision", "101"], "0 to 100"),
        (["--min_precision", "PER=x"], "PER=0.9"),
        (["--min_precision", "ORG=90"], "ORG"),
        (["--save_min_score", "true"], "min_precision"),
        (["--min_precision", "95", "--dataset", "data/test.txt"], "validation"),
    ):
        assert reason in fault(script("evaluate", "--model", "m", "--dataset", "data", "--resamples", "0", *options))
    assert "min_score" not in json.loads((saved / "m" / "config.json").read_text())


def test_a_chosen_score_is_saved_and_used_by_default(saved, tagger, script, caplog):
    options = ("--model", "m", "--dataset", "data", "--resamples", "0")
    output = ok(script("evaluate", *options, "--min_precision", "95", "--save_min_score", "true"))
    value = json.loads((saved / "m" / "config.json").read_text())["min_score"]
    assert f"min_score of {value}" in output
    assert "written: m/config.json" in output
    assert f"min_score of {value}" in ok(script("evaluate", *options))

    loaded = Tagger.from_pretrained(str(saved / "m"))
    assert str(value) in caplog.text
    assert "min_score=0 keeps all" in caplog.text
    kept = [[entity for entity in entities if entity.score >= value] for entities in tagger(TEXTS)]
    assert loaded(TEXTS) == kept != tagger(TEXTS) == loaded(TEXTS, min_score=0)
    caplog.clear()
    assert Tagger.from_pretrained(str(saved / "m"), min_score=0)(TEXTS) == tagger(TEXTS)
    assert not caplog.text

    loaded.save_pretrained(saved / "again")
    assert Tagger.from_pretrained(str(saved / "again")).min_score == value
