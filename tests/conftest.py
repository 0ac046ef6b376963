"""Tiny data, tokenizers and models, made on the spot; corpora only where the environment names them."""

import atexit
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

# No test reaches for the network: a name that is meant to be local and is not must fail at once.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
# What tests load is cached where it is forgotten with them; the processes that they start share the place.
os.environ["HF_DATASETS_CACHE"] = tempfile.mkdtemp(prefix="hf_xorner_tests_")
sys.path.insert(0, str(Path(__file__).parent))

import hf_xorner
from hf_xorner import WordCharTokenizer
from hf_xorner.registration import CONFIGS, ON_DEMAND

# Models this small lose more to threads that wait for each other than they gain, most of all on a busy machine.
torch.set_num_threads(1)

atexit.register(shutil.rmtree, os.environ["HF_DATASETS_CACHE"], ignore_errors=True)

REPOSITORY = Path(__file__).parent.parent
ARCHITECTURES = tuple(CONFIGS)
ON_DEMAND_NAMES = {entry.config_class.model_type: name for name, entry in ON_DEMAND.items()}
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-GOD"]

SENTENCES = [
    "Ann Smith met Zeus in New York .".split(),
    "zeus , 3 birds and O'Brien's dog saw LONDON".split(),
    "Nobody".split(),
    "@ann wrote : see https://example.com/x by 12:30 !".split(),
]


def build_model(model_type: str, tokenizer: WordCharTokenizer, *, labels=LABELS, seed: int = 0, spread=0.5, **fields):
    """A small model with random weights, wide enough apart that all labels are predicted somewhere."""
    sizes = {"word_dim": 12, "char_dim": 5, "char_filters": 4, "hidden_size": 8}
    if model_type == "att-bilstm-cnn":
        sizes |= {"num_attention_heads": 2, "attention_head_dim": 3}
    config = CONFIGS[model_type](**tokenizer.model_fields(), **{**sizes, "id2label": dict(enumerate(labels)), **fields})
    torch.manual_seed(seed)
    model = getattr(hf_xorner, ON_DEMAND_NAMES[model_type])(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=spread)
    return model.eval()


@pytest.fixture(scope="session")
def tokenizer() -> WordCharTokenizer:
    return WordCharTokenizer.from_corpus(SENTENCES, max_word_chars=10)


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora, laid out as wnut17/ and conll2003/."""
    folder = os.environ.get("HF_XORNER_CORPORA")
    if not folder:
        pytest.skip("HF_XORNER_CORPORA names no folder of corpora")
    return Path(folder)


@pytest.fixture(scope="session")
def default_run(tmp_path_factory) -> tuple[Path, str]:
    """The README's first command, run once: the folder it ran in, and what it printed."""
    folder = tmp_path_factory.mktemp("default_run")
    command = [sys.executable, str(REPOSITORY / "scripts" / "train.py"), "--disable_tqdm", "true"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr[-3000:]
    return folder, result.stdout


@pytest.fixture
def script_of_a_stranger(tmp_path):
    """Runs a script in a process of its own, in an empty folder: code, output, errors."""

    def run(name, *arguments):
        environment = {**os.environ, "HF_DATASETS_CACHE": str(tmp_path / "cache")}
        command = [sys.executable, str(REPOSITORY / "scripts" / name), *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def script(tmp_path, monkeypatch, capsys):
    """Runs a script in this process, as most of the time goes into imports: code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")

    def run(name, *arguments):
        path = str(REPOSITORY / "scripts" / name)
        monkeypatch.setattr(sys, "argv", [path, *map(str, arguments)])
        code, errors = 0, ""
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as stop:
            code, errors = (1, str(stop.code)) if isinstance(stop.code, str) else (stop.code, "")
        out, err = capsys.readouterr()
        return code, out, err + errors

    return run


@pytest.fixture(params=ARCHITECTURES)
def model_type(request) -> str:
    return request.param
