"""The facts of a run: their content, and that a command repeats the run."""

import getpass
import hashlib
import json
import random
import re
import shlex
import socket

import pytest
from runs import ready

from hf_xorner.corpora import load_corpus
from hf_xorner.corpora.assemble import corpus_fingerprint
from hf_xorner.training.arguments import parse
from hf_xorner.training.facts import command_of, input_facts, options_of, read_facts

TINY = {"hidden_size": 4, "word_dim": 4, "max_steps": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Towns and gods, of which some are new in the test data, and vectors of two words."""
    folder = tmp_path_factory.mktemp("facts")
    draw = random.Random(1)
    (folder / "towns").mkdir()
    for split, size in (("train", 80), ("dev", 20), ("test", 40)):
        lines = []
        for _ in range(size):
            stem = "".join(draw.choice("abcd") for _ in range(2))
            kind, word = draw.choice([("LOC", f"{stem}ville"), ("GOD", f"{stem}us"), ("/god/lesser", f"{stem}us")])
            first = [f"great B-{kind}\n{word} I-{kind}"] if draw.random() < 0.4 else [f"{word} B-{kind}"]
            lines.append("\n".join([*first, "burns O", ". O\n\n"]))
        (folder / "towns" / f"{split}.txt").write_text("".join(lines))
    (folder / "vectors.txt").write_text("aaville 1 0\nburns 0 1\n")
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    """A run of four epochs with vectors, its scores, and what it wrote."""
    options = {"hidden_size": 8, "num_train_epochs": 4, "seed": 3, "learning_rate": 0.02, "decoder": "crf"}
    options |= {"vectors": folder / "vectors.txt", "vectors_as": "beside", "fallback": "lower"}
    run = ready(folder / "towns", folder / "out", per_device_train_batch_size=8, **options)
    return run, run.train(), folder / "out"


@pytest.fixture(scope="module")
def facts(trained):
    return read_facts(trained[2])


def test_options_of_the_user_and_of_the_size_of_the_data_are_recorded(facts):
    assert facts["recipe"] is None and facts["seed"] == 3
    options = {"dataset": "towns", "vectors": "vectors.txt", "vectors_as": "beside", "fallback": ["lower"], "seed": 3}
    options |= {"hidden_size": 8, "learning_rate": 0.02, "num_train_epochs": 4.0, "per_device_train_batch_size": 8}
    options |= {"model_type": "cross-bilstm-cnn", "decoder": "crf", "use_cpu": True}
    chosen = {"casing": "keep", "digits": "keep", "singleton_dropout": 0.0}
    assert facts["options"] == options | chosen
    assert facts["versions"].keys() == {"python", "torch", "transformers", "datasets", "hf_xorner"}


def test_the_corpus_is_counted_and_hashed(facts, folder):
    train = facts["data"]["splits"]["train"]
    assert (train["sentences"], train["entities"], facts["data"]["source"]) == (80, 80, "towns")
    assert facts["data"]["fingerprint"] == corpus_fingerprint(load_corpus(str(folder / "towns")))


def hashed(path):
    content = path.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_vectors_are_recorded_with_their_hash(facts, folder):
    assert facts["inputs"] == {"vectors": {"name": "vectors.txt", **hashed(folder / "vectors.txt")}}


def test_the_model_is_recorded_with_its_hash(trained, facts):
    run, _, out = trained
    parameters = sum(weight.numel() for weight in run.trainer.model.parameters())
    weights = {"file": "model.safetensors", **hashed(out / "model.safetensors")}
    assert facts["model"] == {"parameters": parameters, **weights}
    assert facts["config"]["hidden_size"] == 8 and facts["config"]["model_type"] == "cross-bilstm-cnn"


def test_the_curve_has_the_loss_and_score_of_every_epoch(trained, facts):
    history = trained[0].trainer.state.log_history
    losses, scores = ([entry[name] for entry in history if name in entry] for name in ("loss", "eval_f1"))
    assert [row["loss"] for row in facts["curve"]] == pytest.approx(losses, rel=1e-5)
    assert [row["dev"]["f1"] for row in facts["curve"]] == pytest.approx(scores[:4], abs=1e-4)


def test_the_speed_is_that_of_the_epochs(facts):
    seconds, tokens = sum(row["seconds"] for row in facts["curve"]), facts["data"]["splits"]["train"]["tokens"]
    assert 0 < seconds == pytest.approx(facts["speed"]["training_seconds"], abs=0.01)
    assert facts["speed"]["training_tokens_per_second"] == pytest.approx(4 * tokens / seconds, rel=0.3)
    assert facts["speed"]["prediction_tokens_per_second"] > 0


def test_facts_contain_no_path_host_user_or_word_of_the_corpus(trained, folder):
    text = (trained[2] / "facts.json").read_text() + (trained[2] / "sentence_counts.json").read_text()
    assert str(folder) not in text and str(folder.parent) not in text
    assert len(socket.gethostname()) < 4 or socket.gethostname() not in text
    assert len(getpass.getuser()) < 5 or getpass.getuser() not in text
    corpus = load_corpus(str(folder / "towns"))
    words = {word for split in corpus.values() for sentence in split["tokens"] for word in sentence if len(word) > 1}
    assert len(words) > 20 and not words & set(re.findall(r"\w+", text))


def test_vectors_in_an_archive_are_recorded_with_its_content(tmp_path):
    (tmp_path / "v.zip").write_bytes(b"content")
    run = parse(["--vectors", f"{tmp_path}/v.zip:v.txt"])[0]
    content = {"bytes": 7, "sha256": hashlib.sha256(b"content").hexdigest()}
    assert input_facts(run) == {"vectors": {"name": "v.zip:v.txt", **content}}


def test_the_recorded_command_reproduces_the_options():
    for argv in (
        [*"--fallback lower lower_zero --decoder crf --lr_scheduler_type linear".split(), "--char_widths", "1", "2"],
        ["chen2019/table2/cnn-bilstm-att-crf", "--seed", "3"],
        ["ma2016/table7/no-dropout", "--dropout", "0.5", "--momentum", "0", "--char_dim", "31"],
        ["--lr_scheduler_kwargs", '{"num_cycles": 2}', "--pretrained_words", "true", "--tag_column", "-1"],
    ):
        run, training, fields = parse(argv)
        options = options_of(run, training, fields)
        again = shlex.split(command_of(run.recipe, options))[2:]
        assert options_of(*parse(again)) == options


def test_paths_are_recorded_as_names_and_other_options_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for source in (".", "./", str(tmp_path)):
        run, training, fields = parse(["--dataset", source, "--strip", "/[A-Z]+$", "--comments", "//"])
        options = options_of(run, training, fields)
        assert (options["dataset"], options["strip"], options["comments"]) == (tmp_path.name, "/[A-Z]+$", "//")
        assert training.output_dir == f"runs/{tmp_path.name}"
    options = options_of(*parse(["--dataset", "xor", "--vectors", "~/private/glove.txt"]))
    assert options["vectors"] == "glove.txt"


@pytest.mark.parametrize(("data_dir", "name"), [("data", "corpus"), ("other", "my/corpus")])
def test_only_a_corpus_that_is_no_folder_may_be_a_repository(tmp_path, monkeypatch, data_dir, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "my" / "corpus").mkdir(parents=True)
    assert options_of(*parse(["my/corpus", "--data_dir", data_dir]))["dataset"] == name


def test_a_run_on_plain_labels_records_accuracies(tmp_path):
    (tmp_path / "pos").mkdir()
    for split in ("train", "dev", "test"):
        (tmp_path / "pos" / f"{split}.txt").write_text("the DT\n/ /\nbarks ./x\n\n" * 4)
    ready(tmp_path / "pos", tmp_path / "out", scheme="plain", **TINY).train()
    facts = read_facts(tmp_path / "out")
    assert set(facts["config"]["id2label"].values()) == {"DT", "/", "./x"}
    assert facts["data"]["splits"]["train"]["per_tag"] == {"DT": 4, "/": 4, "./x": 4}
    assert "f1" not in facts["scores"]["test"]
    counts = json.loads((tmp_path / "out" / "sentence_counts.json").read_text())["test"]
    accuracy = 100 * sum(row[0] for row in counts) / sum(row[1] for row in counts)
    assert accuracy == pytest.approx(facts["scores"]["test"]["accuracy"], abs=1e-4)
