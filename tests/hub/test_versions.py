"""A published folder loads under the oldest supported transformers, and under the newest."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import REPOSITORY, SENTENCES
from random_texts import lively_model
from transformers import pipeline

from hf_xorner import Tagger

pytestmark = pytest.mark.slow

TEXTS = [" ".join(words) for words in SENTENCES]
KINDS = {"cross-bilstm-cnn": "crf", "lstm-crf": "crf", "id-cnn": "softmax"}
TAG = """
import json, sys
sys.modules["hf_xorner"] = None
import transformers
ner = transformers.pipeline("ner", model=sys.argv[1], trust_remote_code=True, aggregation_strategy="simple")
found = ner(json.loads(sys.argv[2]))
print("\\n" + json.dumps([transformers.__version__, transformers.__file__, found], default=float))
"""


def spans(tagged):
    return [[(entity["entity_group"], entity["start"], entity["end"]) for entity in entities] for entities in tagged]


@pytest.mark.parametrize("library", ["oldest", "newest"])
def test_a_published_folder_loads_under_another_transformers(library, tokenizer, tmp_path):
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    lowest = {
        name: re.search(rf'^  "{name}>=([\d.]+)', project, re.MULTILINE)[1]
        for name in ("transformers", "tokenizers", "huggingface-hub")
    }
    wanted = [f"{name}=={version}" for name, version in lowest.items()] if library == "oldest" else ["transformers"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tmp_path / "site"), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if re.search(r"No matching distribution|Could not find a version|onnect", done.stderr):
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "HF_HOME": str(tmp_path / "home")}
    for kind, decoder in KINDS.items():
        saved = tmp_path / kind
        Tagger(lively_model(kind, tokenizer, decoder), tokenizer).save_pretrained(saved)
        expected = spans(pipeline("ner", model=str(saved), aggregation_strategy="simple")(TEXTS))
        assert any(expected)
        command = [sys.executable, "-c", TAG, str(saved), json.dumps(TEXTS)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        version, path, spans_there = json.loads(done.stdout.splitlines()[-1])
        assert path.startswith(str(tmp_path / "site"))
        assert version.startswith(f"{lowest['transformers']}.") == (library == "oldest")
        assert spans(spans_there) == expected
