"""scripts/train.py as a user starts it: alone, under torchrun, under accelerate launch."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import REPOSITORY
from helpers import TORCHRUN, accelerate, run_in_two_processes
from safetensors.torch import load_file

from hf_xorner import Tagger
from hf_xorner.training import parse, prepare

TRAIN = str(REPOSITORY / "scripts" / "train.py")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder of CoNLL columns: towns end in -ville."""
    folder = tmp_path_factory.mktemp("corpus")
    draw = random.Random(0)
    for split, size in (("train", 48), ("dev", 12), ("test", 12)):
        lines = []
        for _ in range(size):
            town = draw.choice(["Anna", "Berta", "Carla", "Dora"]) + "ville"
            rest = [(word, "O") for word in draw.choice(["is far away", "has two bridges .", "burns"]).split()]
            lines += [f"{word} {tag}" for word, tag in [(town, "B-LOC"), *rest]] + [""]
        (folder / f"{split}.txt").write_text("\n".join(lines))
    return folder


def test_without_arguments_it_trains_scores_saves_and_tags(default_run):
    folder, printed = default_run
    scores = {
        tuple(line.split()[:2]): float(line.split()[-2]) for line in printed.splitlines() if line.startswith("test ")
    }
    assert scores["test", "all"] >= 95
    assert scores["test", "LINK"] >= 95
    assert "saved in runs/xor-cross-bilstm-cnn" in printed
    assert (folder / "runs" / "xor-cross-bilstm-cnn" / "model.safetensors").is_file()
    entity = printed.splitlines()[-1].split()
    assert entity[0] in ("LINK", "WORK")


@pytest.mark.parametrize("launcher", ["python", "torchrun", "accelerate"])
def test_any_launcher_trains_on_a_folder_of_columns(launcher, corpus, tmp_path):
    start = {"python": [], "torchrun": TORCHRUN, "accelerate": accelerate()}[launcher]
    options = ["--dataset", str(corpus), "--model_type", "bilstm-cnn", "--decoder", "crf", "--hidden_size", "16"]
    options += ["--word_dim", "16", "--num_train_epochs", "8", "--per_device_train_batch_size", "4"]
    options += ["--learning_rate", "0.01", "--output_dir", str(tmp_path / "model"), "--use_cpu", "true"]
    result = subprocess.run(
        [sys.executable, *start, TRAIN, *options, "--disable_tqdm", "true"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    # One process alone prints the scores, and 48 sentences in batches of 4 are half the steps where two share them.
    assert result.stdout.count("precision") == 1
    assert result.stdout.count("\nepoch ") == 8
    state = json.loads(next((tmp_path / "model").glob("checkpoint-*/trainer_state.json")).read_text())
    assert state["max_steps"] == 8 * (12 if launcher == "python" else 6)
    assert [entity.label for entity in Tagger.from_pretrained(tmp_path / "model")("Doraville burns")] == ["LOC"]


# The script, and whether its process has left the others before it ends: no thread still holds what it sent them.
LEAVES = """
import pathlib, runpy, sys, torch
from hf_xorner.training import Stopped
from hf_xorner.training.run import TrainingRun
from hf_xorner.training.trainer import TaggerTrainer

def threads():
    return len(list(pathlib.Path("/proc/self/task").iterdir()))

def watched(run, leave=TrainingRun.leave):
    before = threads()
    assert torch.distributed.is_initialized()
    leave(run)
    assert not torch.distributed.is_initialized()
    # Gloo has two that send, and one that listens.
    assert threads() <= before - 3, (before, threads())
    pathlib.Path({note!r} + __import__("os").environ["RANK"]).touch()

def stopped(*arguments, **options):
    raise Stopped(15)

TrainingRun.leave = watched
if {stop}:
    TaggerTrainer.evaluate = stopped
sys.argv = {argv!r}
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as ending:
    assert {stop} and ending.code == 128 + 15
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux lists the threads of a process")
@pytest.mark.parametrize("stop", [False, True], ids=["at the end", "stopped amid training"])
def test_processes_leave_each_other_before_they_end(corpus, tmp_path, stop):
    options = ["--dataset", str(corpus), "--model_type", "bilstm-cnn", "--hidden_size", "8", "--word_dim", "8"]
    options += ["--num_train_epochs", "1", "--output_dir", str(tmp_path / "model"), "--use_cpu", "true"]
    argv = [str(TRAIN), *options, "--disable_tqdm", "true"]
    run_in_two_processes(LEAVES.format(argv=argv, note=str(tmp_path / "left-"), stop=stop), tmp_path)
    assert {path.name for path in tmp_path.glob("left-*")} == {"left-0", "left-1"}


def test_a_faulty_call_ends_with_one_sentence(tmp_path):
    result = subprocess.run([sys.executable, TRAIN, "--decoder", "magic"], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode != 0
    assert result.stderr.strip().splitlines()[-1] == (
        "train.py: decoder='magic' is unknown to CrossBiLstmCnnConfig; choose one of 'softmax', 'crf'."
    )


def test_a_checkpoint_is_resumed(corpus, tmp_path):
    options = [
        "--dataset",
        str(corpus),
        "--hidden_size",
        "8",
        "--output_dir",
        str(tmp_path / "model"),
        "--use_cpu",
        "true",
    ]
    command = [sys.executable, TRAIN, *options, "--disable_tqdm", "true", "--num_train_epochs"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "1"], check=True, capture_output=True, cwd=tmp_path, env=environment)
    checkpoint = next((tmp_path / "model").glob("checkpoint-*"))
    before = load_file(checkpoint / "model.safetensors")
    result = subprocess.run(
        [*command, "2", "--resume_from_checkpoint", str(checkpoint)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    after = load_file(tmp_path / "model" / "model.safetensors")
    assert before.keys() == after.keys()
    assert "epoch 2/2" in result.stdout and "epoch 1/2" not in result.stdout


@pytest.fixture
def vectors(tmp_path):
    """Vectors of words in lower case: towns are alike, and one of them occurs in no corpus."""
    words = ["annaville", "bertaville", "carlaville", "doraville", "emmaville", "is", "far", "away"]
    rows = [f"{word} {'1 0' if word.endswith('ville') else '0 1'} 0.5" for word in words]
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(rows))
    return path


@pytest.mark.parametrize("use", ["frozen", "tuned", "beside"])
def test_vectors_are_used_and_their_coverage_is_told(corpus, vectors, tmp_path, use):
    options = ["--dataset", str(corpus), "--vectors", str(vectors), "--vectors_as", use, "--fallback", "lower"]
    run, training, fields = parse([*options, "--output_dir", str(tmp_path / "out"), "--max_steps", "3"])
    ready = prepare(run, training, fields)
    assert list(ready.coverage) == ["train", "validation", "test"]
    shares = ready.coverage["train"].tokens
    assert shares["lower"] > 0 and shares["exact"] > 0 and sum(shares.values()) == pytest.approx(100)
    features, vocabulary = ready.trainer.model.features, ready.trainer.processing_class.get_vocab()
    table = features.words.weight if use == "tuned" else features.static.weight
    assert table[vocabulary["Annaville"]].tolist() == table[vocabulary["annaville"]].tolist() == [1, 0, 0.5]
    before = features.static.weight.clone() if features.static else None
    ready.train()
    tagger = Tagger.from_pretrained(str(tmp_path / "out"))
    after = tagger.model.features
    if before is not None:
        assert torch.equal(after.static.weight, before)
    # A town that no corpus holds has its vector when it is tagged.
    index = tagger.tokenizer.convert_tokens_to_ids(["Emmaville"])[0]
    assert index == tagger.tokenizer.get_vocab()["emmaville"]
    assert index >= tagger.model.config.trained_vocab_size


def test_an_unknown_use_of_vectors_is_refused():
    with pytest.raises(ValueError, match="vectors_as='loud' is unknown; choose one of frozen, tuned, beside"):
        parse(["--vectors_as", "loud"])
