"""scripts/train.py alone, under torchrun and under accelerate launch."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from conftest import REPOSITORY
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from helpers import fault, ok
from processes import free_port
from runs import ready
from safetensors.torch import load_file

from hf_xorner import Tagger, train
from hf_xorner.errors import TrainingError
from hf_xorner.training.arguments import parse
from hf_xorner.training.run import checkpoints_in, prepare

TRAIN = str(REPOSITORY / "scripts" / "train.py")
#: The arguments of the interpreter that start a script in two processes.
LAUNCHERS = {
    "torchrun": lambda: ["torch.distributed.run", "--standalone", "--nproc_per_node", "2"],
    "accelerate": lambda: [
        *("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"),
        *("--main_process_port", str(free_port())),
    ],
}


def test_the_script_without_arguments_trains_scores_saves_and_tags(default_run):
    folder, printed = default_run
    scores = {
        tuple(line.split()[:2]): float(line.split()[-2]) for line in printed.splitlines() if line.startswith("test ")
    }
    assert scores["test", "all"] >= 95
    assert scores["test", "LINK"] >= 95
    assert "saved in runs/xor-cross-bilstm-cnn" in printed
    left = {path.name.partition("-")[0] for path in (folder / "runs" / "xor-cross-bilstm-cnn").iterdir()}
    assert left >= {"model.safetensors", "learning_curve.png", "confusion.png", "examples.txt", "checkpoint"}
    assert len(list((folder / "runs" / "xor-cross-bilstm-cnn").glob("checkpoint-*"))) == 1
    entity = printed.splitlines()[-1].split()
    assert entity[0] in ("LINK", "WORK")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_processes_train_on_a_folder_of_columns(launcher, towns, tmp_path):
    options = ["--dataset", str(towns), "--model_type", "bilstm-cnn", "--decoder", "crf", "--hidden_size", "16"]
    options += ["--word_dim", "16", "--num_train_epochs", "8", "--per_device_train_batch_size", "4"]
    options += ["--learning_rate", "0.01", "--output_dir", str(tmp_path / "model"), "--use_cpu", "true"]
    options += ["--disable_tqdm", "true"]
    command = [sys.executable, "-m", *LAUNCHERS[launcher](), TRAIN, *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    printed = result.stdout
    # One process alone prints the scores, and 42 sentences in batches of 4 are half the steps where two share them.
    assert printed.count("precision") == 1
    assert printed.count("\nepoch ") == 8
    state = json.loads(next((tmp_path / "model").glob("checkpoint-*/trainer_state.json")).read_text())
    assert state["max_steps"] == 8 * 6
    assert [entity.label for entity in Tagger.from_pretrained(tmp_path / "model")("Doraville burns")] == ["LOC"]


def test_a_trained_model_is_replaced_only_with_overwrite(script, towns, tmp_path, caplog):
    options = ["--dataset", towns, "--output_dir", tmp_path / "out", "--hidden_size", "4", "--max_steps", "2"]
    options += ["--model_type", "bilstm-cnn", "--word_dim", "4", "--use_cpu", "true", "--disable_tqdm", "true"]
    ok(script("train", *options))
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    # Refused before the data are read; without checkpoints, there is nothing to resume.
    other = [*options, "--dataset", tmp_path / "missing", "--seed", "1"]
    assert "out holds a trained model" in fault(script("train", *other))
    for checkpoint in (tmp_path / "out").glob("checkpoint-*"):
        shutil.rmtree(checkpoint)
    assert "out holds a trained model" in fault(script("train", *other, "--resume_from_checkpoint", "true"))
    with pytest.raises(TrainingError, match="holds a trained model"):
        train(towns, output_dir=str(tmp_path / "out"), max_steps=2, seed=1)
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == weights
    (tmp_path / "out" / "model.onnx").touch()
    ok(script("train", *options, "--seed", "1", "--overwrite"))
    assert "model.onnx of the earlier model was deleted" in caplog.text
    assert (tmp_path / "out" / "model.safetensors").read_bytes() != weights
    assert not (tmp_path / "out" / "model.onnx").exists()


@pytest.fixture
def vectors(tmp_path):
    """Vectors of words in lower case: towns are alike, and one of them occurs in no corpus."""
    words = ["annaville", "bertaville", "carlaville", "doraville", "emmaville", "is", "far", "away"]
    rows = [f"{word} {'1 0' if word.endswith('ville') else '0 1'} 0.5" for word in words]
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(rows))
    return path


@pytest.mark.parametrize("use", ["tuned", "beside"])
def test_vectors_are_used_and_their_coverage_is_counted(towns, vectors, tmp_path, use):
    options = ["--dataset", str(towns), "--vectors", str(vectors), "--vectors_as", use, "--fallback", "lower"]
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


SENTENCES = {"tokens": [["Annaville", "burns"]] * 6, "ner_tags": [[1, 0]] * 6}
EMPTY = {"tokens": [[]] * 6, "ner_tags": [[]] * 6}
ONE = {"tokens": [["Annaville"]], "ner_tags": [[1]]}
MIXED = {name: EMPTY[name] + SENTENCES[name] + EMPTY[name] for name in EMPTY}


def saved(folder, **splits):
    features = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=["O", "B-LOC", "I-LOC"]))})
    DatasetDict({name: Dataset.from_dict(rows, features) for name, rows in splits.items()}).save_to_disk(str(folder))
    return folder


def options_for(corpus, out):
    words = ["--dataset", corpus, "--output_dir", out, "--hidden_size", "4", "--word_dim", "4", "--use_cpu", "true"]
    return [*map(str, words), "--disable_tqdm", "true", "--num_train_epochs", "2", "--per_device_train_batch_size", "2"]


@pytest.mark.parametrize(
    "splits",
    [dict.fromkeys(("train", "validation"), MIXED) | {"test": ONE}, {"train": ONE, "test": EMPTY}],
    ids=["batches without words", "empty test"],
)
def test_small_splits_and_sentences_without_words_are_trained_on(script, tmp_path, splits):
    ok(script("train", *options_for(saved(tmp_path / "corpus", **splits), tmp_path / "out")))
    assert all(value.isfinite().all() for value in load_file(tmp_path / "out" / "model.safetensors").values())
    assert json.loads((tmp_path / "out" / "facts.json").read_text())["scores"].keys() == splits.keys() - {"train"}


def test_training_data_without_words_give_one_sentence(script, tmp_path):
    for number, splits in enumerate(({"test": SENTENCES}, {"train": EMPTY, "test": EMPTY})):
        corpus = saved(tmp_path / str(number), **splits)
        error = fault(script("train", *options_for(corpus, tmp_path / "out")))
        assert f"hf-xorner train: {corpus} has no words to train on;" in error


def test_words_that_a_text_would_divide_are_warned_of(towns, tmp_path, caplog):
    ready(towns, tmp_path / "towns")
    assert not any("are several words in a text" in line for line in caplog.messages)
    (tmp_path / "train.conll").write_text("王小明\tB-PER\n在\tO\n北京\tB-LOC\n\n" * 20, "utf-8")
    ready(tmp_path / "train.conll", tmp_path / "out")
    assert any("67 % of the words, such as 王小明, 北京," in line for line in caplog.messages)


def test_validation_data_without_words_are_not_used_to_select_an_epoch(tmp_path):
    """All epochs score 0 on them, so the first would be taken for the best."""
    corpus = saved(tmp_path / "corpus", train=SENTENCES, validation=EMPTY)
    run = prepare(*parse([*options_for(corpus, tmp_path / "out"), "--average_epochs", "2", "--eval_on_start", "true"]))
    run.train()
    folders = (checkpoints_in(tmp_path / "out")[-1], tmp_path / "out")
    last, saved_model = (load_file(folder / "model.safetensors") for folder in folders)
    assert run.trainer.state.best_model_checkpoint is None and run.average is None
    assert all(torch.equal(last[name], saved_model[name]) for name in last)


def test_the_weights_of_the_best_epoch_are_saved(towns, tmp_path):
    options = {"hidden_size": 4, "word_dim": 4, "num_train_epochs": 3, "per_device_train_batch_size": 8}
    run = ready(towns, tmp_path / "out", **options)
    run.trainer.compute_metrics = lambda prediction: {"f1": 1 / max(1, run.trainer.state.global_step)}
    run.train()
    saved_model, best = (load_file(tmp_path / "out" / name / "model.safetensors") for name in ("", "checkpoint-6"))
    assert saved_model.keys() == best.keys()
    assert all(torch.equal(saved_model[name], best[name]) for name in best)
