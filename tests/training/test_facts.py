"""The facts of a run: their content, reading and writing, and values that are refused."""

import getpass
import hashlib
import json
import math
import os
import random
import re
import shlex
import shutil
import socket
from dataclasses import replace

import numpy as np
import pytest
import torch
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from runs import ready, words_of
from safetensors.torch import load_file
from transformers import TrainerCallback

from hf_xorner import Tagger
from hf_xorner.corpora import load_corpus
from hf_xorner.corpora.assemble import corpus_fingerprint
from hf_xorner.evaluation.report import System, Training, report
from hf_xorner.files import file_fingerprint
from hf_xorner.training import TrainingError, parse, prepare
from hf_xorner.training.facts import (
    Facts,
    Judged,
    _figures,
    command_of,
    curve_of,
    data_facts,
    options_of,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    draw = random.Random(0)
    (folder / "towns").mkdir()
    for split, size in (("train", 24), ("dev", 6), ("test", 6)):
        towns = [draw.choice(["Anna", "Berta", "Carla"]) + "ville" for _ in range(size)]
        (folder / "towns" / f"{split}.txt").write_text("".join(f"{town} B-LOC\nburns O\n. O\n\n" for town in towns))
    (folder / "vectors.txt").write_text("annaville 1 0\nburns 0 1\n")
    return folder


TINY = {"hidden_size": 4, "word_dim": 4, "max_steps": 2}


@pytest.fixture(scope="module")
def trained(folder):
    """A run of two epochs, its scores, and what it wrote."""
    options = {
        "fallback": "lower",
        "hidden_size": 8,
        "num_train_epochs": 2,
        "per_device_train_batch_size": 8,
        "seed": 7,
    }
    options |= {"vectors": folder / "vectors.txt", "max_word_chars": 20}
    run = ready(folder / "towns", folder / "out", **options)
    return run, run.train(), folder / "out"


def test_facts_match_the_run(trained, folder):
    run, scores, out = trained
    facts = Facts.read(out)
    assert facts.recipe is None and facts.seed == 7
    assert facts.options == {
        "casing": "keep",
        "dataset": "towns",
        "digits": "keep",
        "fallback": ["lower"],
        "hidden_size": 8,
        "model_type": "cross-bilstm-cnn",
        "num_train_epochs": 2.0,
        "per_device_train_batch_size": 8,
        "seed": 7,
        "use_cpu": True,
        "vectors": "vectors.txt",
        "singleton_dropout": 0.0,
    }
    assert facts.data["splits"]["train"] == {"sentences": 24, "tokens": 72, "entities": 24, "per_type": {"LOC": 24}}
    assert facts.data["source"] == "towns"
    assert facts.inputs["vectors"] == {
        "name": "vectors.txt",
        "bytes": 24,
        "sha256": hashlib.sha256((folder / "vectors.txt").read_bytes()).hexdigest(),
    }
    for split in ("validation", "test"):
        for name in ("precision", "recall", "f1", "accuracy"):
            assert facts.scores[split][name] == pytest.approx(scores[split][name], abs=1e-4)
        assert facts.scores[split]["per_type"]["LOC"]["support"] == 6
        assert set(facts.scores[split]["per_length"]) == {"1", "2", "3", "3 or more"}
    weights = out / "model.safetensors"
    assert facts.model["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert facts.model["bytes"] == weights.stat().st_size
    model = run.trainer.model
    assert facts.model["parameters"] == sum(weight.numel() for weight in model.parameters())
    assert sum(weight.numel() for weight in load_file(weights).values()) >= facts.model["parameters"]
    # Which of them names the build depends on the release.
    assert facts.versions["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert facts.config["hidden_size"] == 8 and facts.config["model_type"] == "cross-bilstm-cnn"


def test_the_curve_has_every_epoch(trained):
    run, _, out = trained
    facts = Facts.read(out)
    assert [row["epoch"] for row in facts.curve] == [1.0, 2.0]
    logged = [entry for entry in run.trainer.state.log_history if "loss" in entry]
    assert [row["loss"] for row in facts.curve] == pytest.approx([entry["loss"] for entry in logged], rel=1e-5)
    dev = [entry["eval_f1"] for entry in run.trainer.state.log_history if "eval_f1" in entry]
    assert [row["dev"]["f1"] for row in facts.curve] == pytest.approx(dev[:2], abs=1e-4)
    seconds = sum(row["seconds"] for row in facts.curve)
    assert 0 < seconds < 60
    assert facts.speed["training_seconds"] == pytest.approx(seconds, abs=0.01)
    assert facts.speed["training_tokens_per_second"] == pytest.approx(144 / seconds, rel=0.3)
    assert facts.speed["prediction_tokens_per_second"] > 0


def test_sentence_counts_are_written(trained):
    _, scores, out = trained
    counts = json.loads((out / "sentence_counts.json").read_text())
    assert {split: len(rows) for split, rows in counts.items()} == {"validation": 6, "test": 6}
    correct, predicted, gold = (sum(column) for column in zip(*counts["test"], strict=True))
    assert 200 * correct / (predicted + gold) == pytest.approx(scores["test"]["f1"])


def test_facts_contain_no_path_host_or_user_name(trained, folder):
    text = (trained[2] / "facts.json").read_text()
    assert str(folder) not in text and str(folder.parent) not in text
    assert '"/' not in text
    assert len(socket.gethostname()) < 4 or socket.gethostname() not in text
    assert len(getpass.getuser()) < 5 or getpass.getuser() not in text


@pytest.fixture(scope="module")
def towns_and_gods(tmp_path_factory):
    """A run that learns something, on towns and gods of which some are new to it, and what it wrote."""
    folder = tmp_path_factory.mktemp("fires")
    draw = random.Random(1)
    (folder / "fires").mkdir()
    for split, size in (("train", 80), ("dev", 20), ("test", 40)):
        lines = []
        for _ in range(size):
            stem = "".join(draw.choice("abcd") for _ in range(2))
            kind, word = draw.choice([("LOC", f"{stem}ville"), ("GOD", f"{stem}us"), ("/god/lesser", f"{stem}us")])
            first = [f"great B-{kind}\n{word} I-{kind}"] if draw.random() < 0.4 else [f"{word} B-{kind}"]
            lines.append("\n".join([*first, "burns O", ". O\n\n"]))
        (folder / "fires" / f"{split}.txt").write_text("".join(lines))
    options = {"hidden_size": 8, "num_train_epochs": 4, "seed": 3, "learning_rate": 0.02, "decoder": "crf"}
    ready(folder / "fires", folder / "out", per_device_train_batch_size=8, **options).train()
    return load_corpus(str(folder / "fires")), folder / "out"


def test_facts_match_the_report(towns_and_gods):
    """The report uses the saved model, the tagger, and the corpus loaded again."""
    corpus, out = towns_and_gods
    facts = Facts.read(out)

    def sentences(split):
        names = split.features["ner_tags"].feature.names
        return list(split["tokens"]), [[names[tag] for tag in row] for row in split["ner_tags"]]

    for name in ("validation", "test"):
        system = System.of_tagger(Tagger.from_pretrained(str(out)), *sentences(corpus[name]))
        expected = report(system, training=Training.of(*sentences(corpus["train"])), resamples=0)
        found = facts.scores[name]
        for part in ("seen", "unseen"):
            assert found["seen"][part] == pytest.approx(expected["seen"][part], abs=1e-4)
        bins = [row for row in expected["calibration"]["bins"] if row["count"]]
        assert len(found["calibration"]["bins"]) == len(bins) > 1
        for row, other in zip(found["calibration"]["bins"], bins, strict=True):
            assert row == pytest.approx(other, abs=1e-3)
        assert found["calibration"]["ece"] == pytest.approx(expected["calibration"]["ece"], abs=1e-3)
        assert found["calibration"]["count"] == expected["calibration"]["count"]
        types = expected["confusion"].pop("types")
        matrix = {
            gold: {other: count for other, count in zip(types, row, strict=True) if count}
            for gold, row in zip(types, expected["confusion"].pop("matrix"), strict=True)
        }
        assert {**found["confusion"], "matrix": matrix} == {**expected["confusion"], "matrix": matrix}
        assert found["confusion"]["matrix"] == matrix
    # What would pass unseen were there none of it.
    test = facts.scores["test"]
    assert test["seen"]["seen"]["support"] > 0 < test["seen"]["unseen"]["support"]
    assert any(other != gold for gold, row in test["confusion"]["matrix"].items() for other in row)


def test_facts_contain_no_words_of_the_corpus(towns_and_gods):
    corpus, out = towns_and_gods
    words = {word for split in corpus.values() for sentence in split["tokens"] for word in sentence if len(word) > 1}
    text = (out / "facts.json").read_text() + (out / "sentence_counts.json").read_text()
    assert len(words) > 20 and not words & set(re.findall(r"\w+", text))


def test_nan_probabilities_are_not_scored():
    gold = [["B-LOC", "O"], ["O"]]
    judged = Judged(gold, gold, np.array([0.5, np.nan, 1.0]), {"f1": 100.0}, 1.0)
    figures, _ = _figures(judged, [["a", "b"], ["c"]], {"a"})
    assert "calibration" not in figures and figures["seen"]["seen"]["support"] == 1
    figures, _ = _figures(judged._replace(probabilities=np.array([0.75, 1.0, 1.0])), [["a", "b"], ["c"]], set())
    assert figures["calibration"]["ece"] == 25.0 and figures["seen"]["unseen"]["support"] == 1
    # Words without a label are not judged; then words and labels do not stand side by side.
    figures, _ = _figures(judged, [["a", "b"], ["c", "d"]], {"a"})
    assert "seen" not in figures and "surface" not in figures


def test_facts_of_earlier_versions_can_be_read(trained):
    content = json.loads((trained[2] / "facts.json").read_text())
    new = Facts.from_json(json.dumps(content))
    for scores in content["scores"].values():
        for key in ("seen", "calibration", "confusion"):
            del scores[key]
    old = Facts.from_json(json.dumps({**content, "usage": ""}))
    assert old == replace(new, scores=content["scores"])
    assert "usage" not in json.loads(old.to_json())
    with pytest.raises(ValueError, match="these are no facts of a run"):
        Facts.from_json(json.dumps({**content, "more": 1}))


def test_earlier_scores_of_long_entities_keep_their_meaning(trained):
    """Earlier versions wrote "3+" for more than three words; today's three or more has a name of its own."""
    content = json.loads((trained[2] / "facts.json").read_text())
    row = {"precision": 1.0, "recall": 2.0, "f1": 3.0, "support": 4}
    content["scores"]["test"]["per_length"] = {"1": row, "3+": {**row, "support": 5}}
    assert Facts.from_json(json.dumps(content)).scores["test"]["per_length"] == {
        "1": row,
        "4 or more": {**row, "support": 5},
    }


def test_facts_round_trip(trained, tmp_path):
    text = (trained[2] / "facts.json").read_text()
    facts = Facts.from_json(text)
    assert facts.to_json() == text
    facts.write(tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["facts.json"]
    assert Facts.read(tmp_path / "new") == facts
    assert json.dumps(json.loads(text), sort_keys=True, indent=2, ensure_ascii=False) + "\n" == text


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"curve": [{"epoch": 1.0, "loss": math.nan}]}, "nan as curve[0].loss"),
        ({"curve": [{"epoch": 1.0, "loss": -math.inf}]}, "-inf as curve[0].loss"),
        ({"options": {"vectors": "/home/me/vectors.txt"}}, "a path of this machine as options.vectors"),
    ],
)
def test_invalid_facts_are_not_written(trained, tmp_path, change, place):
    with pytest.raises(ValueError, match=re.escape(place)):
        replace(Facts.read(trained[2]), **change).write(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["[]", "{}", '{"recipe": null}', "no json"])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "facts.json").write_text(text)
    with pytest.raises(ValueError, match=r"facts\.json: "):
        Facts.read(tmp_path)
    with pytest.raises(ValueError, match="cannot be read"):
        Facts.read(tmp_path / "nothing")


#: For each of these places what cannot stand there.
WRONG = {
    ("recipe",): [3, [], True],
    ("command",): [None, 5],
    ("options",): [[], "x"],
    ("config", "model_type"): [[], None],
    ("config", "id2label"): [["O"], {"0": 1}],
    ("inputs",): [[], {"context": 3}, {"context": {}}, {"context": {"name": 5}}],
    ("data", "splits", "train", "tokens"): ["12", 1.5, True, 10**400],
    ("data", "splits", "train", "per_type"): [3, {"LOC": "x"}],
    ("curve",): [{}, [3], [{"loss": 1.0}], [{"epoch": "1"}], [{"epoch": 1, "dev": {"f1": None}}]],
    ("scores",): [[], {"test": 3}],
    ("scores", "test", "f1"): ["50", None, {}, 10**400],
    ("scores", "test", "per_type"): [{"LOC": {}}, {"LOC": 5}],
    ("scores", "test", "seen"): [{}, {"seen": {}}],
    ("scores", "test", "calibration"): [{"ece": 1.0, "count": 1, "bins": [3]}],
    ("scores", "test", "confusion", "matrix"): [{"LOC": 3}, None],
    ("speed",): [{}, {"training_seconds": "1"}],
    ("model", "file"): [None, 3],
    ("hardware", "cores"): ["2", None],
    ("versions",): [{"torch": 2.6}],
    ("seed",): ["1", 1.5, False],
}


@pytest.mark.parametrize(
    ("place", "value"),
    [(place, value) for place, values in WRONG.items() for value in values],
    ids=lambda one: ".".join(one) if isinstance(one, tuple) else repr(one)[:20],
)
def test_values_of_wrong_types_are_refused(trained, place, value):
    content = json.loads((trained[2] / "facts.json").read_text())
    *above, last = place
    inside = content
    for name in above:
        inside = inside[name]
    inside[last] = value
    with pytest.raises(ValueError, match=rf"^{re.escape(place[0])}[^\n]+\.$") as caught:
        Facts.from_json(json.dumps(content))
    assert str(caught.value).startswith(".".join(place))


@pytest.mark.parametrize(
    "place", [("model", "file"), ("config", "id2label"), ("data", "splits"), ("speed", "training_seconds")]
)
def test_missing_values_are_refused(trained, place):
    content = json.loads((trained[2] / "facts.json").read_text())
    del content[place[0]][place[1]]
    with pytest.raises(ValueError, match=rf"^{'.'.join(place)} is missing"):
        Facts.from_json(json.dumps(content))


@pytest.mark.parametrize(
    "value",
    [
        *("NaN", "-Infinity", "1e999", "9" * 5000, '"\\ud800"', '{"\\ud800": 1}'),
        *("[" * 100_000 + "]" * 100_000, '{"a":' * 400 + "1" + "}" * 400),
    ],
    ids=lambda value: value[:8],
)
def test_nonstandard_json_is_refused(trained, tmp_path, value):
    content = json.loads((trained[2] / "facts.json").read_text())
    (tmp_path / "facts.json").write_text(json.dumps({**content, "options": {"x": "@"}}).replace('"@"', value))
    with pytest.raises(ValueError, match=r"^[^\n]+facts\.json: [^\n]+$"):
        Facts.read(tmp_path)


def test_unknown_keys_and_integers_are_kept(trained):
    content = json.loads((trained[2] / "facts.json").read_text())
    content["speed"] = {"training_seconds": 3, "new": None}
    content["scores"]["test"]["new"] = [1]
    assert Facts.from_json(json.dumps(content)).scores == content["scores"]


@pytest.mark.parametrize(
    "argv",
    [
        [*"--fallback lower lower_zero --decoder crf --lr_scheduler_type linear".split(), "--char_widths", "[1, 2]"],
        ["chen2019/table2/cnn-bilstm-att-crf", "--seed", "3"],
        ["ma2016/table7/no-dropout", "--dropout", "0.5", "--momentum", "0", "--char_dim", "31"],
        ["--lr_scheduler_kwargs", '{"num_cycles": 2}', "--freeze_word_embeddings", "true", "--tag_column", "-1"],
    ],
)
def test_the_recorded_command_reproduces_the_options(argv):
    run, training, fields = parse(argv)
    options = options_of(run, training, fields)
    again = shlex.split(command_of(run.recipe, options))[2:]
    assert options_of(*parse(again)) == options


def test_options_not_allowed_in_facts_are_refused_before_training(folder, monkeypatch):
    with monkeypatch.context() as patched, pytest.raises(TrainingError, match=r"as options\.vectors"):
        patched.setattr("hf_xorner.training.run.options_of", lambda *_: {"vectors": "/home/me/vectors.txt"})
        ready(folder / "towns", folder / "refused", **TINY)
    name = os.fsdecode(b"towns-\xff")
    shutil.copytree(folder / "towns", folder / name)
    with pytest.raises(ValueError, match="which is not UTF-8; rename it"):
        ready(folder / name, folder / "refused", **TINY)


def test_input_files_may_be_deleted_during_training(folder, tmp_path):
    """A recipe beside which another file of its name lies, and vectors, which are removed amid the run."""
    recipe, vectors = tmp_path / "mine.yaml", tmp_path / "vectors.txt"
    recipe.write_text("hidden_size: 4\n")
    vectors.write_bytes((folder / "vectors.txt").read_bytes())
    words = words_of(dataset=folder / "towns", vectors=vectors, output_dir=tmp_path / "out", max_steps=2)
    run = prepare(*parse([str(recipe), *words]))

    class Remove(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            recipe.unlink(missing_ok=True)
            vectors.unlink(missing_ok=True)

    run.trainer.add_callback(Remove())
    run.train()
    facts = Facts.read(tmp_path / "out")
    assert facts.inputs["vectors"]["sha256"] == hashlib.sha256((folder / "vectors.txt").read_bytes()).hexdigest()
    assert not recipe.exists()


@pytest.mark.parametrize("name", ["facts.json", "sentence_counts.json"])
def test_facts_that_cannot_be_written_give_a_one_line_error(folder, tmp_path, name):
    (tmp_path / "out" / name).mkdir(parents=True)
    with pytest.raises(TrainingError, match="The facts of the run cannot be written to"):
        ready(folder / "towns", tmp_path / "out", **TINY).train()


def test_labels_with_slashes_are_recorded(tmp_path):
    (tmp_path / "pos").mkdir()
    for split in ("train", "test"):
        (tmp_path / "pos" / f"{split}.txt").write_text("and CC\n/ /\nor ./x\n\n" * 4)
    ready(tmp_path / "pos", tmp_path / "out", scheme="plain", **TINY).train()
    assert set(Facts.read(tmp_path / "out").config["id2label"].values()) == {"CC", "/", "./x"}


def test_the_first_log_entry_of_an_epoch_is_used():
    history = [
        {"loss": math.nan, "epoch": 0.5},  # left out
        {"loss": 2.0, "epoch": 1.0, "seconds": 3.0},
        {"eval_f1": 50.0, "eval_loss": 1.0, "epoch": 1.0},
        {"loss": 1.0, "epoch": 2.0},
        {"eval_f1": 60.0, "epoch": 2.0},
        {"train_runtime": 9.0, "train_loss": 1.5, "epoch": 2.0},
        {"eval_f1": 70.0, "epoch": 2.0},  # of the average of the last epochs
    ]
    assert curve_of(history)[1:] == [
        {"epoch": 1.0, "loss": 2.0, "seconds": 3.0, "dev": {"f1": 50.0}},
        {"epoch": 2.0, "loss": 1.0, "dev": {"f1": 60.0}},
    ]


def corpus_of(sentences, tags, names=("O", "B-A", "I-A")):
    features = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=list(names)))})
    return Dataset.from_dict({"tokens": sentences, "ner_tags": tags}, features)


def test_the_corpus_fingerprint_depends_only_on_its_content():
    base = corpus_of([["a", "b"], ["c"]], [[0, 1], [2]])
    same = base.add_column("more", [1, 2])
    found = corpus_fingerprint(DatasetDict(train=base, test=base))
    assert found == corpus_fingerprint(DatasetDict(test=same, train=same))
    different = [
        corpus_of([["ab"], ["c"]], [[0], [2]]),
        corpus_of([["a"], ["b", "c"]], [[0], [1, 2]]),
        corpus_of([["a", "b"], ["c"]], [[0, 1], [1]]),
        corpus_of([["a", "b"], ["c"]], [[0, 1], [2]], ("O", "B-B", "I-B")),
        corpus_of([["a", "b"], ["d"]], [[0, 1], [2]]),
        corpus_of([["c"], ["a", "b"]], [[2], [0, 1]]),
    ]
    prints = {corpus_fingerprint(DatasetDict(train=other, test=base)) for other in different}
    assert len(prints | {found}) == 7


def test_the_folder_fingerprint_covers_names_and_contents(tmp_path):
    def made(name, files):
        for inside, text in files.items():
            path = tmp_path / name / inside
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return file_fingerprint(tmp_path / name)

    first = made("one", {"a": "x", "b/c": "yz"})
    assert first["bytes"] == 3
    assert first == made("two", {"b/c": "yz", "a": "x"})
    assert first != made("three", {"a": "x", "b/d": "yz"})
    assert first != made("four", {"a": "xy", "b/c": "z"})


def test_plain_labels_are_counted_by_tag():
    corpus = DatasetDict(train=corpus_of([["a", "b"]], [[0, 1]], ("DT", "NN")))
    assert data_facts("owner/name", corpus)["splits"]["train"] == {
        "sentences": 1,
        "tokens": 2,
        "per_tag": {"DT": 1, "NN": 1},
    }
    assert data_facts("owner/name", corpus)["source"] == "owner/name"


def test_the_data_held_out_for_validation_are_recorded(tmp_path):
    lines = "".join(f"Ann B-PER\nsaw O\n{number} O\n\n" for number in range(40))
    (tmp_path / "some.conll").write_text(lines)
    words = {"corpus": tmp_path / "some.conll", "num_train_epochs": 1, "hidden_size": 4, "word_dim": 4}
    run = ready(out=tmp_path / "out", hold_out=0.2, **words)
    assert {name: len(split) for name, split in run.corpus.items()} == {"train": 32, "validation": 8}
    run.train()
    facts = Facts.read(tmp_path / "out")
    assert facts.data["hold_out"] == {"share": 0.2, "by": "sentence", "seed": 13, "sentences": 8}
    assert "--hold_out 0.2" in facts.command
    # The recorded options give the same data again; without any, nothing is recorded.
    again = ready(out=tmp_path / "again", **{**words, "hold_out": facts.options["hold_out"]})
    assert again.facts.data == facts.data
    assert "hold_out" not in ready(out=tmp_path / "none", hold_out=0, **words).facts.data


def test_a_run_on_plain_labels_records_accuracies(tmp_path):
    (tmp_path / "pos").mkdir()
    for split in ("train", "dev", "test"):
        (tmp_path / "pos" / f"{split}.txt").write_text("the DT\ndog NN\nbarks VB\n\n" * 4)
    ready(tmp_path / "pos", tmp_path / "out", **TINY).train()
    facts = Facts.read(tmp_path / "out")
    assert set(facts.scores["test"]) == {"accuracy"}
    counts = json.loads((tmp_path / "out" / "sentence_counts.json").read_text())["test"]
    assert 100 * sum(row[0] for row in counts) / sum(row[1] for row in counts) == pytest.approx(
        facts.scores["test"]["accuracy"], abs=1e-4
    )
