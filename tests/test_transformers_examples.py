"""The token classification scripts of transformers, unchanged; TRANSFORMERS_EXAMPLES names their folder."""

import json
import os
import sys
from pathlib import Path
from subprocess import run

import pytest
import torch
from conftest import LABELS, REPOSITORY, SENTENCES, build_model

from hf_xorner import Tagger

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("TRANSFORMERS_EXAMPLES" not in os.environ, reason="TRANSFORMERS_EXAMPLES is not set"),
]

# The scripts load seqeval's metric from the Hub.
METRIC = """
import evaluate
from seqeval.metrics import accuracy_score, f1_score, precision_score, recall_score

class Seqeval:
    def __init__(self):
        self.pairs = []

    def add_batch(self, predictions, references):
        self.pairs += zip(references, predictions)

    def compute(self, predictions=(), references=()):
        gold, predicted = zip(*self.pairs, *zip(references, predictions))
        scores = {"precision": precision_score, "recall": recall_score, "f1": f1_score, "accuracy": accuracy_score}
        return {f"overall_{name}": score(list(gold), list(predicted)) for name, score in scores.items()}

evaluate.load = lambda *_, **__: Seqeval()
"""

GOLD = [
    "B-PER I-PER O B-GOD O B-LOC I-LOC O".split(),
    "B-GOD O O O O B-PER O O B-LOC".split(),
    ["O"],
    "B-PER O O O O O O O".split(),
]


def saved_model(folder, tokenizer):
    build_model("cnn-lstm-crf", tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_data(folder, rename):
    rows = [{"tokens": words, "ner_tags": list(map(rename, tags))} for words, tags in zip(SENTENCES, GOLD, strict=True)]
    (folder / "data.json").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(folder / "data.json")


def run_script(script, folder, model, data):
    """Run a script of transformers; return its exit status, its errors, and the folder that it wrote."""
    (folder / "sitecustomize.py").write_text(METRIC, encoding="utf-8")
    options = ["--model_name_or_path", model, "--train_file", data, "--validation_file", data]
    options += ["--output_dir", folder / "out", "--per_device_train_batch_size", "2", "--num_train_epochs", "2"]
    options += ["--learning_rate", "1e-3"]
    if script == "run_ner.py":
        options += ["--do_train", "--do_eval", "--report_to", "none", "--use_cpu", "--trust_remote_code", "true"]
    else:
        options += ["--trust_remote_code"]
    path = Path(os.environ["TRANSFORMERS_EXAMPLES"]) / script
    ended = run(
        [sys.executable, path, *map(str, options)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(REPOSITORY)])},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stderr, folder / "out"


scripts = pytest.mark.parametrize("script", ["run_ner.py", "run_ner_no_trainer.py"])


@scripts
def test_the_same_labels_train_and_load(script, tmp_path, tokenizer):
    model = saved_model(tmp_path / "model", tokenizer)
    status, errors, out = run_script(script, tmp_path, model, write_data(tmp_path, str))
    assert status == 0, errors[-2000:]
    tagger = Tagger.from_pretrained(str(out))
    assert tagger.model.config.id2label == dict(enumerate(LABELS))
    before = Tagger.from_pretrained(str(model)).model.state_dict()
    assert any(not torch.equal(before[name], values) for name, values in tagger.model.state_dict().items())
