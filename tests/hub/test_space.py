"""The handler of an endpoint and the Space: their files, and that they run without this package."""

import ast
import json
import os
import shutil
from html import unescape
from importlib.util import find_spec

import pytest
import torch
import yaml
from packaging.requirements import Requirement
from processes import run_python
from random_texts import lively_model
from transformers import pipeline

from hf_xorner import Tagger
from hf_xorner.hub.checks import published_files
from hf_xorner.hub.space import GRADIO, write_space

TEXT = "zeus saw Ann Smith in New York, and 3 birds ."
# A browser must show it, and neither run it nor take it for a part of the page.
HOSTILE = (
    '<img src=x onerror="document.title=1"> <script>document.title=2</script> '
    "${document.title=3} {{value}} & <b>Zeus</b>"
)
CARD = f"---\nlicense: mit\nwidget:\n- text: {TEXT}\n---\n# A tagger\n"
NAMES = ["model/handler.py", "model/requirements.txt", "space/README.md", "space/app.py", "space/requirements.txt"]
# Without attention, with it, with relations.
KINDS = ("cross-bilstm-cnn", "att-bilstm-cnn", "grn")
WITHOUT_PACKAGE = "import sys\nsys.modules['hf_xorner'] = None\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory, tokenizer):
    """A saved folder of a model of each kind."""
    folders = {kind: tmp_path_factory.mktemp("models") / kind for kind in KINDS}
    for kind, folder in folders.items():
        Tagger(lively_model(kind, tokenizer, "crf"), tokenizer).save_pretrained(folder)
        (folder / "README.md").write_text(CARD, encoding="utf-8")
    return folders


@pytest.fixture(scope="module")
def taggers(models):
    """The stock pipeline with each model."""
    return {kind: pipeline("ner", model=str(folder), aggregation_strategy="simple") for kind, folder in models.items()}


@pytest.fixture(scope="module")
def written(models, tmp_path_factory):
    """The files, written for one of the models; any other fits them as well."""
    folder = tmp_path_factory.mktemp("written") / "written"
    write_space(models["att-bilstm-cnn"], "me/my-tagger", folder, revision="v1")
    return folder


def environment_in(home, **more):
    """The environment of an offline process that keeps its files in one folder."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    offline = {"HF_HUB_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False", "NO_PROXY": "127.0.0.1"}
    variables = {
        "HF_HOME": str(home),
        "HF_MODULES_CACHE": str(home / "modules"),
        "GRADIO_TEMP_DIR": str(home / "gradio"),
    }
    return {**known, **offline, **variables, **more}


def answer_of(code, *arguments, home):
    """Return the JSON in the last line that a process without this package prints."""
    done = run_python(["-c", WITHOUT_PACKAGE + code, *arguments], cwd=home, env=environment_in(home))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


# --- Files ------------------------------------------------------------------------------------------------------------


def constants(path):
    """Return the values that the page has for its model."""
    assigned = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]
    names = ("NAME", "REVISION", "EXAMPLES")
    return {node.targets[0].id: ast.literal_eval(node.value) for node in assigned if node.targets[0].id in names}


def test_the_command_writes_the_files(models, script, tmp_path):
    out = tmp_path / "some folder"
    options = [models["grn"], "--repo_id", "me/my.tagger_2", "--space", out, "--tag", "v7"]
    code, printed, errors = script("publish", *options)
    assert code == 0, errors
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()) == NAMES
    assert all(f"written: {out / name}" in printed.splitlines() for name in NAMES)
    readme = (out / "space/README.md").read_text(encoding="utf-8")
    header = next(yaml.safe_load_all(readme.removeprefix("---\n").partition("---\n")[0]))
    assert (header["title"], header["sdk"], header["models"]) == ("my.tagger_2", "gradio", ["me/my.tagger_2"])
    assert Requirement(GRADIO).specifier.contains(header["sdk_version"])
    assert constants(out / "space/app.py") == {"NAME": "me/my.tagger_2", "REVISION": "v7", "EXAMPLES": [TEXT]}
    assert not any("hf_xorner" in path.read_text(encoding="utf-8") for path in out.rglob("*.py"))


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no config\.json"):
        write_space(tmp_path / "missing", "me/x", tmp_path / "written")


def test_examples_cannot_become_code(models, tmp_path):
    folder = shutil.copytree(models["grn"], tmp_path / "tagger")
    examples = [
        '"]\nimport os  # ',
        "'''\\",
        "\\g<0> \\1 \\n",
        'NAME = "x"',
        "é 👩🏽‍🚀 \u2028 \x7f",
        "\r\nEXAMPLES = []",
    ]
    card = yaml.safe_dump({"widget": [{"text": example} for example in examples]}, allow_unicode=True)
    (folder / "README.md").write_text(f"---\n{card}---\n", encoding="utf-8", newline="\n")
    write_space(folder, "me/my-tagger", tmp_path / "out", revision='v1"\n')
    expected = {"NAME": "me/my-tagger", "REVISION": 'v1"\n', "EXAMPLES": examples}
    assert constants(tmp_path / "out/space/app.py") == expected


@pytest.mark.parametrize("name", ["a/b/c", "me/na me", "../x", "me/<b>", "me/x\nmodels: y", 'me/"+exit()+"'])
def test_names_that_are_not_of_the_hub_are_refused(models, tmp_path, name):
    with pytest.raises(ValueError):
        write_space(models["grn"], name, tmp_path / "other")
    assert not (tmp_path / "other").exists()


# --- The handler ------------------------------------------------------------------------------------------------------

ASK = """
import json, runpy
handler = runpy.run_path(sys.argv[1])["EndpointHandler"](sys.argv[2])
print(json.dumps([handler(request) for request in json.loads(sys.argv[3])]))
"""


def test_the_handler_works_without_the_package(written, models, taggers, tmp_path):
    requests = [
        {"inputs": TEXT},
        {"inputs": [TEXT, "", "Nobody"]},
        {"inputs": TEXT, "parameters": {"aggregation_strategy": "none", "ignore_labels": []}},
        {"inputs": HOSTILE, "options": {"wait_for_model": True}, "parameters": None},
        {"inputs": []},
    ]
    answers = answer_of(ASK, written / "model/handler.py", models["grn"], json.dumps(requests), home=tmp_path)
    assert answers.pop() == []
    assert [len(entities) > 0 for entities in answers[1]][:2] == [True, False]
    for request, answer in zip(requests, answers, strict=False):
        expected = taggers["grn"](request["inputs"], **(request.get("parameters") or {}))
        assert rounded(answer) == rounded(json.loads(json.dumps(expected, default=float)))


def rounded(value):
    """Answers without the digits that another process may round in another way."""
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return {name: round(inner, 4) if name == "score" else inner for name, inner in value.items()}


def test_the_handler_is_published_with_the_model(models, written, tmp_path):
    folder = shutil.copytree(models["grn"], tmp_path / "tagger")
    before = published_files(folder)
    shutil.copytree(written / "model", folder, dirs_exist_ok=True)
    assert set(published_files(folder)) == {*before, "handler.py", "requirements.txt"}


# --- The functions of the page ----------------------------------------------------------------------------------------

CALL = """
import json, os, runpy
texts, answers = json.loads(sys.argv[2]), []
for model in sys.argv[3:]:
    os.environ["MODEL"] = model
    app = runpy.run_path(sys.argv[1])
    heads = (None, "1")
    maps = [[app["heat_map"](text, 3, head) for head in heads] for text in texts]
    answers.append({"entities": [app["find"](text) for text in texts], "maps": maps})
print(json.dumps(answers))
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("gradio") is None, reason='gradio is not installed: pip install ".[space]"')
def test_the_page_matches_the_pipeline(written, models, taggers, tmp_path):
    texts = [TEXT, HOSTILE, "", "Nobody", f"{TEXT}\n{TEXT}"]
    answers = answer_of(CALL, written / "space/app.py", json.dumps(texts), *models.values(), home=tmp_path)
    for tagger, answer in zip(taggers.values(), answers, strict=True):
        for text, (pieces, rows, _), maps in zip(texts, answer["entities"], answer["maps"], strict=True):
            assert "".join(piece for piece, _ in pieces) == text
            entities = tagger(text) if text else []
            expected = [[text[entity["start"] : entity["end"]], entity["entity_group"]] for entity in entities]
            assert [row[:2] for row in rows] == [piece for piece in pieces if piece[1]] == expected
            assert [row[2] for row in rows] == pytest.approx([100 * entity["score"] for entity in entities], abs=0.06)
            for html, head in zip(maps, (None, 0), strict=True):
                check_heat_map(html, tagger, text, 3, head)


def check_heat_map(html, tagger, text, word, head):
    """Compare the values of a word's row with the attention or relations of this package's model."""
    batch = tagger.tokenizer([text], return_tensors="pt")
    with torch.inference_mode():
        layers = tagger.model(**batch, output_attentions=True).attentions
    if layers is None or word >= batch["input_ids"].shape[1]:
        assert html == ""
        return
    if tagger.model.config.model_type == "grn":
        norms = layers[0][0, 0]
        row = ((norms - norms.min()) / (norms.max() - norms.min()))[word].tolist()
    else:
        row = (layers[0][0].mean(0) if head is None else layers[0][0][head])[word].tolist()
    cells = html.partition('<div class="heat">')[2].removesuffix("</div>").split("<span")[1:]
    values = [float(cell.partition("<small>")[2].partition("<")[0]) for cell in cells]
    assert values == pytest.approx(row, abs=0.0051)
    surfaces = [cell.partition(">")[2].partition("<small>")[0] for cell in cells]
    assert [unescape(surface) for surface in surfaces] == tagger.tokenizer.tokenize(text)
    assert not any(mark in "".join(surfaces) for mark in "<>\"'")
