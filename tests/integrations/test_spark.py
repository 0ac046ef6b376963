"""The function for Spark's mapInPandas adds the entities that one process finds."""

import os
import sys

import pandas as pd
import pytest
from random_texts import GIVEN, TEXTS, lively_model

from hf_xorner import Tagger
from hf_xorner.integrations.spark import ENTITIES_TYPE, tag_frames


@pytest.fixture(scope="module")
def tagger(tokenizer):
    return Tagger(lively_model("cross-bilstm-cnn", tokenizer, "crf"), tokenizer)


@pytest.fixture(scope="module")
def model(tagger, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tagger.save_pretrained(folder)
    return str(folder)


def test_frames_get_a_column_of_entities(model, tagger):
    frames = [pd.DataFrame({"text": TEXTS[:9]}), pd.DataFrame({"text": [*TEXTS[9:], None]})]
    found = pd.concat(tag_frames(model)(iter(frames)))
    assert list(found.columns) == ["text", "entities"]
    assert list(found["entities"]) == [[e._asdict() for e in es] for es in tagger.tag([*TEXTS[:9], *TEXTS[9:], ""])]
    words = pd.DataFrame({"words": [pd.array(row, dtype=object) for row in GIVEN]})
    (frame,) = tag_frames(model, column="words", output="found", min_score=0.5)(iter([words]))
    assert list(frame["found"]) == [[e._asdict() for e in es] for es in tagger.tag(GIVEN, min_score=0.5)]


def test_two_workers_give_the_entities_of_one_process(model, tagger, monkeypatch):
    pyspark_sql = pytest.importorskip("pyspark.sql", reason='Spark is not installed: pip install "hf_xorner[spark]"')
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    session = pyspark_sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        rows = [(number, text) for number, text in enumerate([*TEXTS, None] * 20)]
        frame = session.createDataFrame(rows, "id long, text string").repartition(4)
        tagged = frame.mapInPandas(tag_frames(model), f"id long, text string, entities {ENTITIES_TYPE}")
        found = sorted((row.asDict(recursive=True) for row in tagged.collect()), key=lambda row: row["id"])
    finally:
        session.stop()
    expected = [[entity._asdict() for entity in entities] for entities in tagger.tag([*TEXTS, ""])] * 20
    for row, entities in zip(found, expected, strict=True):
        assert [{**entity, "score": pytest.approx(entity["score"], abs=1e-5)} for entity in entities] == row["entities"]
