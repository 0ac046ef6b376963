"""`train`, `evaluate` and `Tagger` as a developer calls them."""

import copy
import json
import os
import pickle
import re
import runpy
from functools import partial
from pathlib import Path

import pytest
from transformers import TrainerCallback

import hf_xorner
from hf_xorner import Entities, Entity, Tagger, evaluate, load_corpus, train

TEXT = "Ann\tB-PER\nSmith\tI-PER\nmet\tO\nZeus\tB-GOD\n\nwe\tO\nsaw\tO\nOslo\tB-LOC\n\n" * 8


class Epochs(TrainerCallback):
    def __init__(self):
        self.ended = []

    def on_epoch_end(self, args, state, control, **_):
        self.ended.append(state.epoch)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for split in ("train", "dev", "test"):
        (folder / f"{split}.conll").write_text(TEXT, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "model"
    options = {"num_train_epochs": 20, "learning_rate": 0.01, "disable_tqdm": True, "use_cpu": True}
    return train(corpus, model_type="lstm-crf", hidden_size=12, output_dir=folder, **options), folder


def test_train_returns_the_saved_tagger_with_its_scores(trained, corpus):
    tagger, folder = trained
    assert tagger.model.config.model_type == "lstm-crf"
    assert tagger.model.config.hidden_size == 12
    assert set(tagger.scores) == {"validation", "test"}
    facts = json.loads((folder / "facts.json").read_text())
    assert tagger.scores["test"]["f1"] == pytest.approx(facts["scores"]["test"]["f1"], abs=0.01)
    sentences = load_corpus(corpus)["test"]["tokens"][:2]
    assert tagger(sentences) == Tagger.from_pretrained(folder)(sentences)


def test_train_refuses_wrong_options(corpus, tmp_path):
    for options, fact in (
        ({"epcohs": 3}, "'epcohs'.* did you mean"),
        ({"num_train_epochs": "many"}, "num_train_epochs"),
        ({"push_to_hub": True, "hub_model_id": "a/b"}, "publish"),
    ):
        with pytest.raises(ValueError, match=fact):
            train(corpus, output_dir=tmp_path / "model", **options)
        assert not (tmp_path / "model").exists()


def test_train_takes_recipes_and_several_seeds(corpus, tmp_path):
    recipe, output = tmp_path / "recipe.yaml", tmp_path / "model"
    recipe.write_text(f"dataset: {corpus}\nmodel_type: grn\n", encoding="utf-8")
    options = {"num_train_epochs": 1, "disable_tqdm": True, "use_cpu": True}
    tagger = train(recipe=str(recipe), seeds=[1, 2], output_dir=output, **options)
    assert tagger.model.config.model_type == "grn"
    assert sorted(path.name for path in output.iterdir() if path.name.startswith("seed")) == ["seed-1", "seed-2"]
    options |= {"composed": None, "average_epochs": None}
    train(corpus, "wnut17/composed", output_dir=tmp_path / "other", **options)
    command = json.loads((tmp_path / "other" / "facts.json").read_text())["command"]
    assert command.startswith("hf-xorner train wnut17/composed ")


def test_a_folder_with_own_files_that_would_be_lost_is_refused(corpus, tmp_path):
    (tmp_path / "features.py").write_text("# mine")
    with pytest.raises(ValueError, match=r"features\.py would be replaced"):
        train(corpus, output_dir=tmp_path, use_cpu=True)
    (tmp_path / "features.py").rename(tmp_path / "mine.py")
    (tmp_path / "checkpoint-500").mkdir()
    (tmp_path / "checkpoint-500" / "lora.safetensors").touch()
    with pytest.raises(ValueError, match=r"lora\.safetensors would be replaced or deleted"):
        train(corpus, output_dir=tmp_path, use_cpu=True)


def test_evaluate_takes_a_tagger_or_its_folder(trained, corpus):
    tagger, folder = trained
    scores = evaluate(tagger, corpus, resamples=0)
    assert scores["f1"] == pytest.approx(tagger.scores["test"]["f1"], abs=1e-9)
    assert evaluate(str(folder), corpus, resamples=0) == scores
    with pytest.raises(ValueError, match="split 'best'"):
        evaluate(tagger, corpus, "best")
    with pytest.raises(ValueError, match="resamples"):
        evaluate(tagger, corpus, resamples=-1)


def test_data_in_memory_and_short_names_of_options_are_taken(corpus, tmp_path):
    splits = load_corpus(corpus)
    names = splits["train"].features["ner_tags"].feature.names
    pairs = [(row["tokens"], [names[tag] for tag in row["ner_tags"]]) for row in splits["train"]]
    options = {"lr": 0.01, "epochs": 5, "bs": 4, "out": tmp_path / "model", "disable_tqdm": True, "use_cpu": True}
    epochs = Epochs()
    tagger = train(pairs, callbacks=[epochs], **options)
    assert epochs.ended == [1, 2, 3, 4, 5]
    facts = json.loads((tmp_path / "model" / "facts.json").read_text())
    assert facts["data"]["source"] == "list"
    assert facts["options"]["learning_rate"] == 0.01 and facts["options"]["per_device_train_batch_size"] == 4
    scores = evaluate(tagger, splits, resamples=0)
    assert scores == evaluate(tagger, corpus, resamples=0) and scores["f1"] > 0
    assert evaluate(tagger, splits["test"], "train", resamples=0)["f1"] == scores["f1"]
    with pytest.raises(ValueError, match="xor: no such file or folder"):
        train(Path("xor"), output_dir=tmp_path / "other", use_cpu=True)  # a Path never names a corpus


def test_unknown_options_are_named_with_the_nearest_one(corpus):
    for call, options in ((load_corpus, {"skip_bad": True}), (partial(evaluate, "model"), {"skip_bad": True})):
        with pytest.raises(ValueError, match=r"'skip_bad' .* (load_corpus|evaluate).*'skip_bad_lines'"):
            call(corpus, **options)
    with pytest.raises(ValueError, match="needs a corpus, a recipe or texts for a teacher"):
        train()


def test_types_are_renamed_by_a_dictionary(corpus):
    names = load_corpus(corpus, types={"GOD": "PER", "LOC": "O"})["train"].features["ner_tags"].feature.names
    assert names == ["O", "B-PER", "I-PER"]


def test_a_call_returns_a_list_and_pipe_an_iterator(trained):
    tagger, _ = trained
    assert repr(tagger).startswith("Tagger(lstm-crf, ") and "PER" in repr(tagger)
    texts = ["Ann Smith met Zeus", ""]
    stream = tagger.pipe(iter(texts))
    assert next(stream) == tagger(texts[0])
    assert [entities.text for entities in tagger([*texts, ["Ann", "Smith"]])] == [*texts, "Ann Smith"]


def test_an_entity_is_a_dictionary_with_attributes():
    entity = Entity(label="PER", text="Ann", start=0, end=3, word_start=0, word_end=1, score=0.5)
    assert json.loads(json.dumps([entity])) == [entity]
    assert entity == {name: getattr(entity, name) for name in entity} and entity.text == entity["text"] == "Ann"
    assert list(entity) == ["label", "text", "start", "end", "word_start", "word_end", "score"]
    assert copy.copy(entity) == pickle.loads(pickle.dumps(entity)) == entity and not hasattr(entity, "other")


MARKUP = Entities(
    [Entity(label="A&B", text="<i>Ann</i>", start=3, end=13, word_start=1, word_end=2, score=0.5)], "is <i>Ann</i> & co"
)


def test_entities_are_marked_in_html_and_escaped():
    shown = MARKUP._repr_html_()
    assert "&lt;i&gt;Ann&lt;/i&gt;" in shown and "A&amp;B" in shown and "<i>" not in shown
    assert shown.count("<mark") == shown.count("</mark>") == 1
    assert shown.endswith(" &amp; co</div>")


def test_entities_are_shown_in_colour():
    shown = MARKUP.in_colour()
    assert re.sub(r"\x1b\[[\d;]+m", "", shown) == "is <i>Ann</i> A&B & co"
    assert shown.endswith("\x1b[0m & co")


def test_redacted_entities_are_not_shown():
    redacted = MARKUP.redact()
    assert "Ann" not in redacted.in_colour() + redacted._repr_html_()


def test_threads_spin_for_a_limited_time_unless_the_user_has_set_it(monkeypatch):
    monkeypatch.setattr("sys.argv", ["hf-xorner"])  # which registers no architectures
    for variables, expected in (({}, "2000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GOMP_", "OMP_WAIT"))}
        monkeypatch.setattr("os.environ", {**environment, **variables})
        runpy.run_path(hf_xorner.__file__, run_name="hf_xorner")
        assert os.environ.get("GOMP_SPINCOUNT") == expected
