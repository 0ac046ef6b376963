"""The actor class of Ray Data and the function for Spark's mapInPandas add the entities that one process finds."""

import os
import re
import sys

import pandas as pd
import pyarrow as pa
import pytest
from conftest import REPOSITORY
from random_texts import GIVEN, TEXTS

from hf_xorner.export.onnx import export_onnx
from hf_xorner.integrations.ray_and_spark import ENTITIES_TYPE, TagTables, tag_frames


def assert_equal(actual, expected):
    """Compare entities; the scores depend on the batch by their last digits."""
    for row, entities in zip(actual, expected, strict=True):
        assert [{**entity, "score": pytest.approx(entity["score"], abs=1e-5)} for entity in entities] == row


def test_tables_of_ray_get_a_column_of_entities(tagger_folder, tagger):
    texts = [*TEXTS, None, ""]
    table = TagTables(tagger_folder)(pa.table({"id": range(len(texts)), "text": texts}))
    assert table["entities"].to_pylist() == tagger([*TEXTS, "", ""])
    assert table["text"].to_pylist() == texts
    assert table.column_names == ["id", "text", "entities"]
    assert TagTables(tagger_folder)(table) == table
    empty = TagTables(tagger_folder)(pa.table({"text": [""]}))
    assert empty.schema.field("entities") == table.schema.field("entities")
    named = TagTables(tagger_folder, column="words", output="found", min_score=0.5)(pa.table({"words": GIVEN}))
    assert named["found"].to_pylist() == tagger(GIVEN, min_score=0.5)


def test_two_actors_of_ray_give_the_entities_of_one_process(tagger_folder, tagger):
    ray = pytest.importorskip("ray", reason='Ray is not installed: pip install "hf_xorner[ray]"')
    pytest.importorskip("ray.data", reason='Ray Data is not installed: pip install "hf_xorner[ray]"')
    ray.init(num_cpus=2, include_dashboard=False, ignore_reinit_error=True)
    try:
        rows = [{"id": number, "text": text} for number, text in enumerate(TEXTS * 20)]
        tagged = ray.data.from_items(rows, override_num_blocks=8).map_batches(
            TagTables,
            fn_constructor_kwargs={"model": tagger_folder},
            batch_format="pyarrow",
            batch_size=50,
            compute=ray.data.ActorPoolStrategy(size=2),
        )
        found = sorted(tagged.take_all(), key=lambda row: row["id"])
    finally:
        ray.shutdown()
    assert_equal([row["entities"] for row in found], tagger(TEXTS) * 20)


def test_frames_of_spark_get_a_column_of_entities(tagger_folder, tagger):
    frames = [pd.DataFrame({"text": TEXTS[:9]}), pd.DataFrame({"text": [*TEXTS[9:], None]})]
    tagged = pd.concat(tag_frames(tagger_folder)(iter(frames)))
    assert list(tagged.columns) == ["text", "entities"]
    assert list(tagged["entities"]) == tagger([*TEXTS, ""])
    words = pd.DataFrame({"words": [pd.array(row, dtype=object) for row in GIVEN]})
    (frame,) = tag_frames(tagger_folder, column="words", output="found", min_score=0.5)(iter([words]))
    assert list(frame["found"]) == tagger(GIVEN, min_score=0.5)


def test_two_workers_of_spark_give_the_entities_of_one_process(tagger_folder, tagger, monkeypatch):
    pyspark_sql = pytest.importorskip("pyspark.sql", reason='Spark is not installed: pip install "hf_xorner[spark]"')
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    session = pyspark_sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        rows = list(enumerate([*TEXTS, None] * 20))
        frame = session.createDataFrame(rows, "id long, text string").repartition(4)
        tagged = frame.mapInPandas(tag_frames(tagger_folder), f"id long, text string, entities {ENTITIES_TYPE}")
        tagged_rows = sorted((row.asDict(recursive=True) for row in tagged.collect()), key=lambda row: row["id"])
    finally:
        session.stop()
    assert_equal([row["entities"] for row in tagged_rows], tagger([*TEXTS, ""]) * 20)


def test_the_function_of_the_page_needs_no_pytorch_in_workers(tagger_folder, tagger, tmp_path, monkeypatch):
    page = (REPOSITORY / "docs" / "integrations.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^def tag\(frames\):\n(?:(?: .*)?\n)+", page, re.MULTILINE)
    export_onnx(tagger_folder, tmp_path / "english_onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("english_onnx")
    names: dict = {}
    exec(code, names)
    (frame,) = names["tag"]([pd.DataFrame({"text": TEXTS})])
    assert list(frame["entities"]) == [[entity.text for entity in entities] for entities in tagger(TEXTS)]
