"""The actor class of Ray Data adds the entities that one process finds."""

import pyarrow as pa
import pytest
from random_texts import GIVEN, TEXTS, lively_model

from hf_xorner import Tagger
from hf_xorner.integrations.ray import TagTables


@pytest.fixture(scope="module")
def tagger(tokenizer):
    return Tagger(lively_model("cross-bilstm-cnn", tokenizer, "crf"), tokenizer)


@pytest.fixture(scope="module")
def model(tagger, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tagger.save_pretrained(folder)
    return str(folder)


def without_scores(rows):
    return [[{name: value for name, value in entity.items() if name != "score"} for entity in row] for row in rows]


def test_tables_get_a_column_of_entities(model, tagger):
    texts = [*TEXTS, None, ""]
    table = TagTables(model)(pa.table({"id": range(len(texts)), "text": texts}))
    rows = [[entity._asdict() for entity in entities] for entities in tagger.tag([*TEXTS, "", ""])]
    assert table["entities"].to_pylist() == rows
    assert table["text"].to_pylist() == texts
    assert table.column_names == ["id", "text", "entities"]
    empty = TagTables(model)(pa.table({"text": [""]}))
    assert empty.schema.field("entities") == table.schema.field("entities")
    named = TagTables(model, column="words", output="found", min_score=0.5)(pa.table({"words": GIVEN}))
    assert named["found"].to_pylist() == [[e._asdict() for e in es] for es in tagger.tag(GIVEN, min_score=0.5)]


def test_two_actors_give_the_entities_of_one_process(model, tagger):
    ray = pytest.importorskip("ray", reason='Ray is not installed: pip install "hf_xorner[ray]"')
    pytest.importorskip("ray.data", reason='Ray Data is not installed: pip install "hf_xorner[ray]"')
    ray.init(num_cpus=2, include_dashboard=False, ignore_reinit_error=True)
    try:
        rows = [{"id": number, "text": text} for number, text in enumerate(TEXTS * 20)]
        tagged = ray.data.from_items(rows, override_num_blocks=8).map_batches(
            TagTables,
            fn_constructor_kwargs={"model": model},
            batch_format="pyarrow",
            batch_size=50,
            compute=ray.data.ActorPoolStrategy(size=2),
        )
        found = sorted(tagged.take_all(), key=lambda row: row["id"])
    finally:
        ray.shutdown()
    expected = [[entity._asdict() for entity in entities] for entities in tagger.tag(TEXTS)] * 20
    assert without_scores(row["entities"] for row in found) == without_scores(expected)
    for row, entities in zip(found, expected, strict=True):
        scores = [entity["score"] for entity in entities]
        assert [entity["score"] for entity in row["entities"]] == pytest.approx(scores, abs=1e-5)
