"""New processes load saved models: with the package, without it, and from a Trainer's checkpoint."""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
import tiny_encoders as tiny
import torch
import transformers
from conftest import ARCHITECTURES, LABELS, REPOSITORY, SENTENCES, build_model
from processes import run_python
from random_texts import TEXTS as SHORT_TEXTS
from random_texts import lively_model
from transformers import DataCollatorForTokenClassification, Trainer, TrainingArguments, pipeline

from hf_xorner import WordCharTokenizer

DECODERS = {kind: "softmax" if kind in ("bilstm-cnn", "id-cnn") else "crf" for kind in ARCHITECTURES}
TEXTS = ["Ann Smith saw [PAD] Zeus, 3 birds & O'Brien's dog in İstanbul 👩🏽‍🚀", "", "Nobody", *SHORT_TEXTS[:6]]


def output_of(code, *arguments, home=None, run=run_python):
    """Run code in a new process and return its output; its standard error must hold no complaint."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    if home is not None:
        environment |= {"HF_HOME": str(home), "HF_MODULES_CACHE": str(home / "modules")}
    # From a folder elsewhere, so that the package is not found because it lies there.
    folder = home or os.path.dirname(sys.executable)
    result = run(["-c", code, *arguments], cwd=folder, env=environment)
    assert result.returncode == 0, result.stderr
    for complaint in ("is not supported for", "Traceback", "newly initialized", "not initialized", "unexpected"):
        assert complaint not in result.stderr
    return result.stdout


def new_interpreter(arguments, **options):
    """Run an interpreter that has imported nothing."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def write_outputs(folder, model, tokenizer):
    """Write the outputs of a model and its tokenizer for a few texts; the text of a float32 number is exact."""
    batch = tokenizer([text.split() for text in TEXTS], is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = model(**batch).logits.tolist()
    entities = pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple")(TEXTS)
    spans = [[[entity["entity_group"], entity["start"], entity["end"]] for entity in sentence] for sentence in entities]
    noted = {"texts": TEXTS, "ids": dict(tokenizer(TEXTS)), "logits": logits, "spans": spans}
    (folder / "answers.json").write_text(json.dumps(noted), encoding="utf-8")
    return noted


@pytest.fixture(scope="module")
def folders(tmp_path_factory, tokenizer):
    """A saved folder of every architecture."""
    saved = []
    for kind, decoder in DECODERS.items():
        saved.append(tmp_path_factory.mktemp(kind))
        # One of them has frozen vectors, too.
        with_vectors = {"static_dim": 3, "static_bits": 16} if kind == "att-bilstm-cnn" else {}
        model = lively_model(kind, tokenizer, decoder, **with_vectors)
        if with_vectors:
            model.features.static.fill(torch.arange(2, 12), torch.randn(10, 3))
        model.save_pretrained(saved[-1])
        tokenizer.save_pretrained(saved[-1])
        assert any(write_outputs(saved[-1], model, tokenizer)["spans"])
    return [*saved, save_with_encoder(tmp_path_factory.mktemp("encoder"))]


def save_with_encoder(folder):
    """Save a model with an encoder and vectors of its pieces."""
    pieces = tiny.pieces_of(tiny.roberta_tokenizer())
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, pieces=pieces, max_word_pieces=4, max_word_chars=10)
    fields = tiny.context_fields(tiny.roberta(), pieces, composed_dim=3, composed_bits=16)
    model = lively_model("cross-bilstm-cnn", tokenizer, "crf", **fields)
    torch.manual_seed(0)
    model.features.composed.fill(torch.randn(pieces.size, 3), torch.randn(3, 9), torch.randn(3))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    assert sum(map(bool, write_outputs(folder, model, tokenizer)["spans"])) > 2
    return folder


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory, tokenizer):
    """The checkpoint of a stock Trainer after two steps over sentences of different lengths."""
    folder = tmp_path_factory.mktemp("trainer")
    rows = [
        {**tokenizer(words, is_split_into_words=True), "labels": [index % len(LABELS) for index in range(len(words))]}
        for words in SENTENCES
    ]
    options = {"max_steps": 2, "save_steps": 2, "per_device_train_batch_size": 2, "report_to": [], "use_cpu": True}
    trainer = Trainer(
        build_model("cross-bilstm-cnn", tokenizer, decoder="crf"),
        TrainingArguments(output_dir=str(folder), disable_tqdm=True, **options),
        train_dataset=rows,
        data_collator=DataCollatorForTokenClassification(tokenizer),
        processing_class=tokenizer,
    )
    trainer.train()
    write_outputs(folder / "checkpoint-2", trainer.model.eval(), tokenizer)
    return folder / "checkpoint-2"


# Loads a folder; the first lines depend on whether the process has the package.
CHECK = """
import json, sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer, pipeline

def check(folder, **options):
    expected = json.loads((Path(folder) / "answers.json").read_text(encoding="utf-8"))
    texts = expected["texts"]
    config = AutoConfig.from_pretrained(folder, **options)
    tokenizer = AutoTokenizer.from_pretrained(folder, **options)
    model = AutoModelForTokenClassification.from_pretrained(folder, **options)
    assert type(model.config) is type(config), (type(model.config), type(config))
    assert dict(tokenizer(texts)) == expected["ids"]
    words = [text.split() for text in texts]
    with torch.inference_mode():
        logits = model(**tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")).logits
    assert logits.tolist() == expected["logits"]
    pipe = pipeline("ner", model=str(folder), aggregation_strategy="simple", **options)
    spans = [[[found["entity_group"], found["start"], found["end"]] for found in sentence] for sentence in pipe(texts)]
    assert spans == expected["spans"]
    return config, tokenizer, model
"""


# Over 2 s, as a new process loads every architecture.
def test_registered_classes_load_everything(folders, checkpoint, tmp_path):
    kinds = output_of(
        CHECK
        + """
import hf_xorner
for folder in sys.argv[1:]:
    for part in check(folder):
        assert type(part).__module__.startswith("hf_xorner.models."), type(part)
    print(type(part).__name__)
""",
        *folders,
        checkpoint,
        home=tmp_path,
    )
    assert len(kinds.split()) == len(folders) + 1


# Over 2 s, as a new process loads every architecture.
def test_everything_loads_without_the_package(folders, checkpoint, tmp_path):
    # Python itself sets None to make an import fail. What is saved by the published code is loaded again, of one model.
    code = """
import shutil, sys
sys.modules["hf_xorner"] = None
{CHECK}
for folder in sys.argv[2:]:
    parts = check(folder, trust_remote_code=True)
    assert all(type(part).__module__.startswith("transformers_modules.") for part in parts)
again = Path(sys.argv[1]) / "again"
for part in parts[1:]:
    part.save_pretrained(again)
shutil.copy(Path(folder) / "answers.json", again)
check(again, trust_remote_code=True)
assert not any(name.startswith("hf_xorner.") for name in sys.modules)
"""
    output_of(code.replace("{CHECK}", CHECK), tmp_path, checkpoint, *folders, home=tmp_path)
    assert list((tmp_path / "modules").rglob("modeling_bilstm_cnn.py"))


# Over 2 s, as only a new interpreter shows what is imported.
@pytest.mark.skipif(
    transformers.__version__.startswith("5.12."), reason="transformers 5.12 imports pandas and sklearn with its models"
)
def test_importing_and_tagging_load_nothing_that_they_do_not_need(folders):
    code = """
import sys
import transformers.modeling_utils
before = set(sys.modules)
import hf_xorner
assert not {"datasets", "hf_xorner.models.modeling_tagger", "hf_xorner.corpora"} & set(sys.modules)
hf_xorner.Tagger.from_pretrained(sys.argv[1])("Ann lives in Rome .")
packages = {name.split(".")[0] for name in set(sys.modules) - before}
print(*sorted(packages - {"hf_xorner", "torch", "transformers", "tokenizers"} - set(sys.stdlib_module_names)))
"""
    assert output_of(code, folders[0], run=new_interpreter).split() in ([], ["tabulate"])  # imported by torch


# Over 2 s, as a new process trains, scores and tags, with the settings of a user who is online.
def test_commands_start_without_extras_and_local_models_and_corpora_use_no_network(folders, tmp_path):
    code = """
import os, socket, sys
from importlib import import_module
extras = dict.fromkeys("gliner matplotlib onnx onnxruntime onnxscript scipy spacy".split())
loaded = {name: sys.modules[name] for name in extras.keys() & sys.modules}
for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
    os.environ.pop(name, None)
asked = []
def refuse(host, *_, **__):
    asked.append(host)
    raise OSError("there is no network")
socket.getaddrinfo = refuse
sys.modules |= extras
import hf_xorner
from hf_xorner.cli.help import COMMANDS
for name in set(COMMANDS) - {"benchmark"}:
    import_module(f"hf_xorner.cli.{name}")
for name in extras:
    del sys.modules[name]
sys.modules |= loaded
folder, output = sys.argv[1:]
hf_xorner.Tagger.from_pretrained(folder)("Ann lives in Rome .")
hf_xorner.train("xor", model_type="bilstm-cnn", output_dir=output, max_steps=1, use_cpu=True, disable_tqdm=True)
hf_xorner.evaluate(output, "xor", resamples=0)
print(asked)
"""
    assert output_of(code, folders[0], tmp_path / "out", home=tmp_path).splitlines()[-1] == "[]"


def test_every_module_can_be_the_first_that_is_imported(tmp_path):
    code = """
import sys
from importlib import import_module
from pathlib import Path
import hf_xorner.registration
folder = Path(hf_xorner.__file__).parent
for package in ("cli", "corpora", "evaluation", "export", "hub", "papers", "training", "vectors"):
    for path in (folder / package).rglob("*.py"):
        for name in [name for name in sys.modules if name.startswith("hf_xorner.")]:
            if name.split(".")[1] not in ("models", "registration", "safety"):  # registered with transformers once
                del sys.modules[name]
        import_module(".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"))
print("imported")
"""
    assert output_of(code, home=tmp_path).splitlines()[-1] == "imported"


@pytest.mark.slow
def test_wheels_hold_the_models(tmp_path):
    copy = shutil.copytree(REPOSITORY / "model_cards" / "multilingual-ner", tmp_path / "copy")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}

    def tagged(project, name):
        build = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / project.name, project]
        new_interpreter(build, check=True)
        (wheel,) = (tmp_path / project.name).glob("*.whl")
        zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
        code = f"import hf_xorner; print(hf_xorner.Tagger.from_pretrained({name!r})('He flew to Oslo.'))"
        return new_interpreter(["-c", code], cwd=tmp_path, env=environment)

    assert "'text': 'Oslo'" in tagged(REPOSITORY, "english-open").stdout
    without = new_interpreter(["-c", "import hf_xorner; hf_xorner.multilingual()"], cwd=tmp_path, env=environment)
    assert without.stderr.splitlines()[-1].startswith("hf_xorner.errors.DataError: multilingual: ")
    assert "subdirectory=model_cards/multilingual-ner" in without.stderr
    assert "'text': 'Oslo'" in tagged(copy, "multilingual").stdout
