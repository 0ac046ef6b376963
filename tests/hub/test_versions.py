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

pytestmark = pytest.mark.slow

TEXTS = [" ".join(words) for words in SENTENCES]
STRANGER = """
import json, sys
sys.modules["hf_xorner"] = None  # What Python itself does to make an import fail.
import transformers
ner = transformers.pipeline("ner", model=sys.argv[1], trust_remote_code=True, aggregation_strategy="simple")
found = [[[one["entity_group"], one["start"], one["end"]] for one in found] for found in ner(json.loads(sys.argv[2]))]
print("\\n" + json.dumps([transformers.__version__, transformers.__file__, found]))
"""


def oldest(name):
    """The lower bound of a dependency."""
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(rf'^  "{name}>=([\d.]+)"', text, re.MULTILINE)[1]


def install(requirements, target):
    """Install into a folder, over which nothing else is seen; without an index there is nothing to be tested."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), *requirements]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode and re.search(
        r"No module named pip|No matching distribution|Could not find a version|onnect", done.stderr
    ):
        pytest.skip(f"{' '.join(requirements)} cannot be had: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_a_published_folder_loads_under_another_transformers(which, tokenizer, tmp_path):
    folder = tmp_path / "tagger"
    for kind, decoder in (("cross-bilstm-cnn", "crf"), ("lstm-crf", "crf"), ("id-cnn", "softmax")):
        model = lively_model(kind, tokenizer, decoder)
        model.save_pretrained(folder / kind)
        tokenizer.save_pretrained(folder / kind)
    names = ("transformers", "tokenizers", "huggingface-hub")
    bound = oldest("transformers")
    install([f"{name}=={oldest(name)}" for name in names] if which == "oldest" else ["transformers"], tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "HF_HOME": str(tmp_path / "home")}
    for saved in sorted(folder.iterdir()):
        ner = pipeline("ner", model=str(saved), aggregation_strategy="simple")
        here = [[[one["entity_group"], one["start"], one["end"]] for one in found] for found in ner(TEXTS)]
        assert any(here)
        command = [sys.executable, "-c", STRANGER, str(saved), json.dumps(TEXTS)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        version, place, there = json.loads(done.stdout.splitlines()[-1])
        assert place.startswith(str(tmp_path / "site"))
        assert version.startswith(f"{bound}.") == (which == "oldest")
        assert there == here
