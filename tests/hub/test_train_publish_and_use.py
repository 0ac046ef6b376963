"""End to end: a model is trained, described and published by scripts, and loaded from the Hub without this package."""

import json
import os
import re
import runpy
import sys

import pytest
import torch
from conftest import REPOSITORY
from local_hub import LocalHub
from processes import run_python
from transformers import pipeline

from hf_xorner import Tagger
from hf_xorner.corpora import load_corpus

NAME = "ann/xor-tagger"


def in_process(arguments, environment, folder):
    """Run Python in a process of its own, and return what it printed."""
    done = run_python(arguments, cwd=folder, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def hub():
    hub = LocalHub()
    hub.add_user("ann", "hf_ann")
    yield hub
    hub.close()


@pytest.fixture(scope="module")
def sentences():
    """Sentences that training did not see, with entities to be found."""
    held_out = load_corpus("xor")["test"].filter(lambda row: any(row["ner_tags"]))
    return [" ".join(row["tokens"]) for row in held_out.select(range(24))]


def run_here(script, *arguments):
    """Run a script in this process, as most of the time goes into imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        runpy.run_path(str(script), run_name="__main__")


@pytest.fixture(scope="module")
def published(hub, sentences, tmp_path_factory):
    """The folder of a model after the three scripts, and the output of the last one."""
    folder = tmp_path_factory.mktemp("story")
    scripts = REPOSITORY / "scripts"
    tagger = folder / "tagger"
    options = ["--output_dir", tagger, "--num_train_epochs", "1", "--disable_tqdm", "true", "--use_cpu", "true"]
    run_here(scripts / "train.py", *options)
    examples = folder / "examples.txt"
    examples.write_text("\n".join(sentences), encoding="utf-8")
    run_here(scripts / "card.py", tagger, "--name", NAME, "--licence", "mit", "--sentences", examples)
    environment = hub.environment(folder / "home", token="hf_ann")
    said = in_process([scripts / "publish.py", tagger, "--repo_id", NAME, "--tag", "v1"], environment, folder)
    return tagger, said


def test_the_published_files_are_the_model_and_its_card(hub, published):
    folder, said = published
    repository = hub.repositories[NAME]
    (commit,) = set(repository.branches.values())
    assert repository.tags == {"v1": commit}
    assert commit in said
    files = hub.files(NAME, "v1")
    assert files == {name: (folder / name).read_bytes() for name in files}
    assert {"model.safetensors", "config.json", "facts.json", "README.md", "modeling_tagger.py"} <= set(files)
    assert not [name for name in files if name.endswith((".bin", ".pt", ".pth", ".pkl"))]
    card = files["README.md"].decode()
    assert f'"{NAME}"' in card
    assert "hf_ann" not in card + said


# A process that has only transformers and the name of the model.
NEW_PROCESS = """
import json, sys
from contextlib import redirect_stdout
from io import StringIO
sys.modules["hf_xorner"] = None  # What Python itself does to make an import fail.
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

name, sentences, lines = json.loads(sys.argv[1])
options = {"revision": "v1", "trust_remote_code": True}
ner = pipeline("ner", model=name, **options)
with redirect_stdout(StringIO()) as printed:
    exec(lines, {})
answers = {"printed": printed.getvalue()}
answers |= {"words": ner(sentences), "entities": ner(sentences, aggregation_strategy="simple")}
tokenizer = AutoTokenizer.from_pretrained(name, **options)
model = AutoModelForTokenClassification.from_pretrained(name, **options)
for part in (ner.model, ner.tokenizer, model, tokenizer):
    assert type(part).__module__.startswith("transformers_modules."), type(part)
batch = tokenizer([one.split() for one in sentences], is_split_into_words=True, padding=True, return_tensors="pt")
with torch.inference_mode():
    answers["logits"] = model(**batch).logits.tolist()
print("\\n" + json.dumps(answers, default=float))
"""


def test_the_published_model_gives_the_same_entities_without_the_package(hub, published, sentences, tmp_path):
    folder, _ = published
    tagger = Tagger.from_pretrained(str(folder))
    entities = [[[one.label, one.start, one.end] for one in found] for found in tagger.tag(sentences)]
    assert sum(map(len, entities)) > 5
    environment = {**hub.environment(tmp_path / "home"), "PYTHONPATH": ""}
    card = hub.files(NAME)["README.md"].decode()
    ((lines, printed),) = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", card, flags=re.DOTALL)
    assert f'"{NAME}"' in lines
    said = in_process(["-c", NEW_PROCESS, json.dumps([NAME, sentences, lines])], environment, tmp_path)
    theirs = json.loads(said.splitlines()[-1])
    assert [
        [[one["entity_group"], one["start"], one["end"]] for one in found] for found in theirs["entities"]
    ] == entities
    # The lines of the card, as somebody would copy them, print what stands below them.
    assert theirs["printed"] == printed != ""
    # Word by word with their scores, and every number that the model gives.
    ner = pipeline("ner", model=str(folder))
    assert theirs["words"] == json.loads(json.dumps(ner(sentences), default=float))
    batch = ner.tokenizer(
        [one.split() for one in sentences], is_split_into_words=True, padding=True, return_tensors="pt"
    )
    with torch.inference_mode():
        assert theirs["logits"] == ner.model(**batch).logits.tolist()
    # Everything came from the Hub, into a home that was empty.
    fetched = {path.name for path in (tmp_path / "home" / "hub").rglob("snapshots/*/*")}
    assert {"model.safetensors", "config.json", "tokenizer.json", "modeling_tagger.py"} <= fetched
