"""Shared fixtures, and small models and data built in memory.

Shared code of the tests is in one of these files:

- `conftest.py`: the fixtures of all tests, sentences, labels and `build_model`, which builds a small model of any
  architecture. Fixtures that only one folder uses are in its test files.
- `helpers.py`: batches, locks, and the output of scripts.
- `processes.py`: new Python processes.
- `random_texts.py`: random sentences and texts, and a model that predicts many entities.
- `tiny_encoders.py`: contextual encoders of a few weights, and tokenizers of every family.
- `fake_hub.py`: the Hub's client, on repositories in memory.
- Oracles, which share no code with the library: `references.py` and `reference_*.py` (models in float64 loops),
  `programs.py` (parts of the authors' programs), `chain_oracle.py` (CRFs by enumeration), `tokenizer_oracle.py`,
  `span_oracle.py` (spans and scores).

Real corpora are used only if the environment variable HF_XORNER_CORPORA names their folder; without it those tests are
skipped. No test needs the network.
"""

import atexit
import gc
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from filelock import FileLock
from hypothesis import HealthCheck, settings

# No test uses the network: a name that is not found locally must fail at once.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
# The caches of datasets and of models' code are temporary folders, which the processes that tests start share.
os.environ["HF_DATASETS_CACHE"] = tempfile.mkdtemp(prefix="hf_xorner_tests_")
os.environ["HF_MODULES_CACHE"] = f"{os.environ['HF_DATASETS_CACHE']}/modules"
sys.path.insert(0, str(Path(__file__).parent))

import reference_encoders
from processes import run_python

from hf_xorner import Tagger, WordCharTokenizer
from hf_xorner.cli import main
from hf_xorner.cli.help import COMMANDS
from hf_xorner.registration import CONFIGS, MODELS

pytest.register_assert_rewrite("corpus_files")  # some tests import it, and others take it as a plugin

# Models this small are slower with several threads, most of all on a busy machine.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that tests start

atexit.register(shutil.rmtree, os.environ["HF_DATASETS_CACHE"], ignore_errors=True)

#: Examples of Hypothesis for each test: few by default, and many with `--hypothesis-profile nightly`.
for name, examples in (("nightly", 500), ("default", 12)):
    settings.register_profile(name, max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    settings.load_profile(name)


def pytest_collection_modifyitems(items):
    """Run the files of this folder first, which run programs and take longest, so that no core idles at the end."""
    items.sort(key=lambda item: item.path.parent != Path(__file__).parent)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Run one process a core if pytest-xdist is there; it takes each file whole, as loading takes most of the time."""
    if getattr(config.option, "numprocesses", 0) is None and not hasattr(config, "workerinput"):
        vars(config.option).update(numprocesses="auto", dist="loadfile", loadscopereorder=False)


def pytest_collection_finish():
    """Exempt imported modules and collected tests from garbage collection, most of which would walk through them."""
    gc.collect()
    gc.freeze()


REPOSITORY = Path(__file__).parent.parent
ARCHITECTURES = tuple(CONFIGS)
LI2020 = ("bilstm-cnn", "cross-bilstm-cnn", "att-bilstm-cnn")
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-GOD"]

SENTENCES = [
    "Ann Smith met Zeus in New York .".split(),
    "zeus , 3 birds and O'Brien's dog saw LONDON".split(),
    "Nobody".split(),
    "@ann wrote : see https://example.com/x by 12:30 !".split(),
]


#: Sizes of a small model; those whose field an architecture does not have are ignored.
SIZES = {
    "word_dim": 12,
    "char_dim": 5,
    "char_filters": 4,
    "char_lstm_size": 3,
    "hidden_size": 8,
    "tanh_size": 7,
    "num_attention_heads": 2,
    "attention_head_dim": 3,
    "action_dim": 4,
    "label_dim": 3,
    "composition_size": 5,
}

#: Every architecture and the ablations of its paper: name -> (architecture, config fields).
VARIANTS = {name: (name, {}) for name in ARCHITECTURES} | {
    "lstm-crf standard cells": ("lstm-crf", {"cell": "standard", "char_lstm_cell": "standard"}),
    "lstm-crf without characters": ("lstm-crf", {"char_features": "none", "tanh_size": 0}),
    "cnn-lstm-crf rnn": ("cnn-lstm-crf", {"encoder": "rnn", "char_features": "none"}),
    "cnn-lstm-crf plain characters": ("cnn-lstm-crf", {"char_padding": 0, "char_activation": "none"}),
    "cnn-lstm-crf with emissions": ("cnn-lstm-crf", {"crf_emissions": True}),
    "cnn-lstm-crf of chen2019": ("cnn-lstm-crf", {"conditioned_transitions": False, "crf_boundaries": "none"}),
    "cnn-lstm-crf attention": ("cnn-lstm-crf", {"self_attention": True, "crf_boundaries": "both", "shape_dim": 3}),
    "grn all windows": ("grn", {"char_windows": "all", "crf_boundaries": "both"}),
    "grn dfn": ("grn", {"relation": "direct"}),
    "grn gattn": ("grn", {"relation": "scalar_gate"}),
    "grn without relation": ("grn", {"relation": "none"}),
    "grn without context": ("grn", {"context_widths": ()}),
    "grn one branch": ("grn", {"context_widths": (3,)}),
    "id-cnn one iteration": ("id-cnn", {"iterations": 1}),
    "id-cnn last loss": ("id-cnn", {"loss_each_iteration": False, "dilations": (1, 2, 4, 1)}),
    "stack-lstm standard cells": ("stack-lstm", {"cell": "standard", "char_lstm_cell": "standard"}),
    "stack-lstm one layer": ("stack-lstm", {"num_hidden_layers": 1}),
}

#: The variants that score tags; the actions of a Stack-LSTM have their own reference (test_stack_lstm.py).
TAG_SCORING = tuple(kind for kind, (name, _) in VARIANTS.items() if name != "stack-lstm")
#: Those whose equations are written down a second time, in NumPy.
REFERENCED = tuple(kind for kind in TAG_SCORING if VARIANTS[kind][0] in reference_encoders.ENCODERS)


def with_decoders(kinds, decoders) -> list[tuple[str, str]]:
    """Return each variant with one decoder in turn, and each architecture with all; a Stack-LSTM has one."""
    others = [(kind, name) for kind in kinds if kind in ARCHITECTURES and kind in TAG_SCORING for name in decoders]
    return list(dict.fromkeys([*in_turn(kinds, decoders), *others]))


def in_turn(kinds, decoders) -> list[tuple[str, str]]:
    """Return each variant with one decoder in turn; a Stack-LSTM has one."""
    names = list(decoders)
    return [
        (kind, names[number % len(names)] if kind in TAG_SCORING else names[0]) for number, kind in enumerate(kinds)
    ]


def has_field(kind: str, field: str) -> bool:
    """Return whether the config of a variant has a field."""
    return hasattr(CONFIGS[VARIANTS[kind][0]], field)


def without_dropout(kind: str) -> dict[str, float]:
    """Return the fields that switch off every dropout of a variant."""
    names = ("dropout", "feature_dropout", "char_dropout", "singleton_dropout")
    return {name: 0.0 for name in names if has_field(kind, name)}


def build_model(kind: str, tokenizer: WordCharTokenizer, *, labels=LABELS, seed: int = 0, spread=0.5, **fields):
    """Build a small model with random weights, spread so that every label is predicted somewhere."""
    model_type, variant = VARIANTS[kind]
    fields = {**variant, "id2label": dict(enumerate(labels)), **fields}
    sizes = {name: size for name, size in SIZES.items() if has_field(kind, name)}
    config = CONFIGS[model_type](**tokenizer.model_fields(), **{**sizes, **fields})
    torch.manual_seed(seed)
    model = MODELS[model_type].load()(config)
    if model_type == "stack-lstm":
        draw_varied_actions(model)
        return model.eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Many unbounded layers would make numbers too large for the precision of float32.
            unbounded = model_type == "id-cnn" and name.startswith("encoder.")
            parameter.normal_(std=0.25 if unbounded else spread)
    return model.eval()


@torch.no_grad()
def draw_varied_actions(model) -> None:
    """Draw random weights, large for inputs and small for biases, so that actions vary in a sentence."""
    for name, parameter in model.named_parameters():
        parameter.normal_(std=1.0 if ".weight_" in name else 0.1 if "bias" in name else 0.5)
    classifier = model.decoder.scorer.classifier.weight
    classifier.copy_(3 * (classifier - classifier.mean(1, keepdim=True)))


@pytest.fixture(scope="session")
def tokenizer() -> WordCharTokenizer:
    """The tokenizer of the words in SENTENCES."""
    return WordCharTokenizer.from_corpus(SENTENCES, max_word_chars=10)


@pytest.fixture(scope="session")
def tagger(tokenizer) -> Tagger:
    """A tagger with a CRF that finds many entities in the texts of random_texts.py."""
    from random_texts import lively_model  # which imports this file

    return Tagger(lively_model("cross-bilstm-cnn", tokenizer, "crf"), tokenizer)


@pytest.fixture(scope="session")
def tagger_folder(tagger, tmp_path_factory) -> str:
    """The folder in which that tagger is saved."""
    folder = tmp_path_factory.mktemp("tagger")
    tagger.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def towns(tmp_path_factory) -> Path:
    """The folder of a small corpus in columns, which no test changes."""
    from helpers import write_towns

    return write_towns(tmp_path_factory.mktemp("towns") / "towns")


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora, with the subfolders wnut17 and conll2003; the test is skipped without it."""
    folder = os.environ.get("HF_XORNER_CORPORA")
    if not folder:
        pytest.skip("HF_XORNER_CORPORA does not name a folder of corpora")
    return Path(folder)


@pytest.fixture(scope="session")
def default_run(tmp_path_factory) -> tuple[Path, str]:
    """The README's first command, run once for all workers: a copy of the folder it ran in, and its output."""
    base = tmp_path_factory.getbasetemp()
    original = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "default_run"
    with FileLock(f"{original}.lock"):
        if not (original / "output.txt").exists():
            original.mkdir()
            result = run_python([REPOSITORY / "scripts" / "train.py", "--disable_tqdm", "true"], cwd=original)
            assert result.returncode == 0, result.stderr[-3000:]
            (original / "output.txt").write_text(result.stdout, encoding="utf-8")
    folder = tmp_path_factory.mktemp("default_run")
    shutil.copytree(original / "runs", folder / "runs")
    return folder, (original / "output.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def forked_offline():
    """Fork the processes in which `hf_xorner.hub` loads a model; a test of test_checks starts one as it is."""

    def run(command, *, input, cwd, env, **_):
        return run_python(command[1:], stdin_text=input, cwd=cwd, env=env)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hf_xorner.hub.checks.subprocess", SimpleNamespace(**{**vars(subprocess), "run": run}))
        yield


@pytest.fixture
def script(tmp_path, monkeypatch, capsys):
    """Run a subcommand, or a script of scripts/, in this process; returns the exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")

    def run(name, *arguments):
        words, code, errors = list(map(str, arguments)), 0, ""
        try:
            if name in COMMANDS:
                main(name, words)
            else:
                path = str(REPOSITORY / "scripts" / name)
                monkeypatch.setattr(sys, "argv", [path, *words])
                runpy.run_path(path, run_name="__main__")
        except SystemExit as stop:
            code, errors = (1, str(stop.code)) if isinstance(stop.code, str) else (stop.code, "")
        out, err = capsys.readouterr()
        return code, out, err + errors

    return run


@pytest.fixture(params=ARCHITECTURES)
def model_type(request) -> str:
    """Every architecture."""
    return request.param


@pytest.fixture(params=VARIANTS)
def variant(request) -> str:
    """Every key of VARIANTS."""
    return request.param


@pytest.fixture
def cuda(monkeypatch) -> torch.device:
    """A CUDA device that computes in float32: by default, cuDNN computes convolutions and LSTMs in TF32."""
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    return torch.device("cuda")


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Return a function that switches models to the paths of a GPU, on which Python reads no values."""

    def switch():
        for name in ("layers", "crf", "features", "modeling_grn", "modeling_tagger", "recurrent"):
            monkeypatch.setattr(f"hf_xorner.models.{name}.cheap_to_read", lambda values: False)

    return switch
