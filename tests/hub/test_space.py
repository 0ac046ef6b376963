"""The handler of an endpoint and the Space: their files, and that they run without this package.

The tests of the page need more than the other tests: Debian's packages chromium and chromium-driver, and

    pip install ".[test,space]" selenium && pytest -n 0 tests/hub/test_space.py
"""

import ast
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from html import unescape
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import yaml
from conftest import REPOSITORY
from packaging.requirements import Requirement
from processes import free_port, run_python
from random_texts import lively_model
from transformers import pipeline

from hf_xorner.hub import Unfit, check_folder
from hf_xorner.hub.checks import widget_sentences
from hf_xorner.hub.space import GRADIO, write_space
from hf_xorner.training.model_files import files_of_model

pytestmark = pytest.mark.usefixtures("forked_offline")

TEXT = "zeus saw Ann Smith in New York, and 3 birds ."
# What a browser must show, and neither run nor take for a part of the page.
HOSTILE = (
    '<img src=x onerror="document.title=1"> <script>document.title=2</script> '
    "${document.title=3} {{value}} & <b>Zeus</b>"
)
CARD = f"---\nlicense: mit\nwidget:\n- text: {TEXT}\n---\n# A tagger\n"
NAMES = ["model/handler.py", "model/requirements.txt", "space/README.md", "space/app.py", "space/requirements.txt"]
# Without attention, with it, with relations.
PAGES = ("cross-bilstm-cnn", "att-bilstm-cnn", "grn")
KINDS = (*PAGES, "cnn-lstm-crf attention")

WITHOUT_PACKAGE = "import sys\nsys.modules['hf_xorner'] = None  # What Python itself does to make an import fail.\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory, tokenizer):
    """A saved folder of a model of each kind."""
    folders = {}
    for kind in KINDS:
        folders[kind] = tmp_path_factory.mktemp("models") / kind
        lively_model(kind, tokenizer, "crf").save_pretrained(folders[kind])
        tokenizer.save_pretrained(folders[kind])
        (folders[kind] / "README.md").write_text(CARD, encoding="utf-8")
    return folders


@pytest.fixture(scope="module")
def taggers(models):
    """The stock pipeline around each model, by this package."""
    taggers = {
        kind: pipeline("ner", model=str(folder), aggregation_strategy="simple") for kind, folder in models.items()
    }
    assert all(len(tagger(TEXT)) > 1 for tagger in taggers.values())
    return taggers


@pytest.fixture(scope="module")
def places(models, tmp_path_factory):
    """The files, written for one of the models; any other fits them as well."""
    folder = tmp_path_factory.mktemp("places") / "places"
    write_space(models["att-bilstm-cnn"], "me/my-tagger", folder, revision="v1")
    return folder


@pytest.fixture
def folder(models, tmp_path):
    """A model's folder of this test's own."""
    return Path(shutil.copytree(models["cross-bilstm-cnn"], tmp_path / "tagger"))


def written(folder):
    """The files in a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in files)


def environment_in(home, **more):
    """Of a process that knows no package by its place, asks no network, and keeps what it writes in one folder."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    offline = {"HF_HUB_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False", "NO_PROXY": "127.0.0.1"}
    own = {"HF_HOME": str(home), "HF_MODULES_CACHE": str(home / "modules"), "GRADIO_TEMP_DIR": str(home / "gradio")}
    return {**known, **offline, **own, "OMP_NUM_THREADS": "1", **more}


def answer_of(code, *arguments, home):
    """Return the JSON in the last line that a process without this package prints."""
    done = run_python(["-c", WITHOUT_PACKAGE + code, *arguments], cwd=home, env=environment_in(home))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def entities_of(tagger, text):
    """Type, start and end of each entity."""
    return [(one["entity_group"], one["start"], one["end"]) for one in tagger(text)]


# --- Files ------------------------------------------------------------------------------------------------------------


def test_files_are_written(models, tmp_path):
    paths = write_space(models["grn"], "me/my.tagger_2", tmp_path / "a" / "b")
    assert [str(path.relative_to(tmp_path / "a" / "b")) for path in paths] == NAMES == written(tmp_path / "a" / "b")
    readme = (tmp_path / "a/b/space/README.md").read_text(encoding="utf-8")
    header = next(yaml.safe_load_all(readme.removeprefix("---\n").partition("---\n")[0]))
    assert header["title"] == "my.tagger_2"
    assert (header["sdk"], header["app_file"], header["models"]) == ("gradio", "app.py", ["me/my.tagger_2"])
    assert Requirement(GRADIO).specifier.contains(header["sdk_version"])
    assert readme.isascii()  # no emoji


def test_requirements_are_those_of_the_package(places):
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    for path in (places / "space/requirements.txt", places / "model/requirements.txt"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for requirement in map(Requirement, lines):
            (lowest,) = [one for one in requirement.specifier if one.operator == ">="]
            assert re.search(rf'"{re.escape(f"{requirement.name}{lowest}")}[",]', project)
    assert {Requirement(one).name for one in lines} == {"transformers"}


def test_every_file_of_the_package_is_installed():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["hf_xorner"]
    package = REPOSITORY / "hf_xorner"
    carried = {path for pattern in patterns for path in package.glob(pattern)}
    templates = set(package.rglob("*.template"))
    assert len(templates) == 2
    assert templates <= carried


def test_the_name_the_revision_and_the_examples_are_set(places):
    text = (places / "space/app.py").read_text(encoding="utf-8")
    assert constants(text) == {"NAME": "me/my-tagger", "REVISION": "v1", "EXAMPLES": [TEXT]}


def constants(text):
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and node.targets[0].id in ("NAME", "REVISION", "EXAMPLES"):
            assert node.targets[0].id not in found
            found[node.targets[0].id] = ast.literal_eval(node.value)
    return found


def test_examples_are_escaped(folder, tmp_path):
    examples = [
        '"]\nimport os  # ',
        "'''\\",
        "\\g<0> \\1 \\n",
        'NAME = "x"',
        "é 👩🏽‍🚀 \u2028 \x7f",
        "\r\nEXAMPLES = []",
        "{name} {} %s",
    ]
    card = yaml.safe_dump({"license": "mit", "widget": [{"text": one} for one in examples]}, allow_unicode=True)
    (folder / "README.md").write_text(f"---\n{card}---\n", encoding="utf-8", newline="\n")
    assert widget_sentences(folder) == examples
    write_space(folder, "me/my-tagger", tmp_path / "out")
    text = (tmp_path / "out/space/app.py").read_text(encoding="utf-8")
    assert constants(text) == {"NAME": "me/my-tagger", "REVISION": "main", "EXAMPLES": examples}
    (folder / "README.md").unlink()
    write_space(folder, "me/my-tagger", tmp_path / "other")
    assert len(constants((tmp_path / "other/space/app.py").read_text(encoding="utf-8"))["EXAMPLES"]) == 1


BAD_NAMES = ["", "tagger", "a/b/c", "me/na me", "../x", "me/..", "me/<b>", "me/x\nmodels: y", 'me/"+exit()+"', "me/a`b"]
BAD_NAMES += ["me/x'", "me/x\\", "me/x]", "/x", "me/", "mé/x", "me/" + "x" * 100]
BAD_REVISIONS = ['v1"', "a b", "x\ny", "..", "", "a'b", "-x"]


@pytest.mark.parametrize(
    ("option", "value"),
    [*(("repo_id", name) for name in BAD_NAMES), *(("revision", name) for name in BAD_REVISIONS)],
)
def test_hostile_names_are_refused(models, tmp_path, option, value):
    with pytest.raises(ValueError, match=f"{option}="):
        write_space(models["grn"], **{"repo_id": "me/my-tagger", "target": tmp_path / "out", option: value})
    assert not (tmp_path / "out").exists()


def test_an_existing_target_is_refused(models, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError, match="out exists"):
        write_space(models["grn"], "me/my-tagger", tmp_path / "out")
    assert written(tmp_path) == []


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no config\.json"):
        write_space(tmp_path, "me/my-tagger", tmp_path / "out")
    assert written(tmp_path) == []


def test_the_files_do_not_import_this_package(places):
    allowed = {
        "handler": {"transformers", "typing"},
        "app": {"os", "html", "pathlib", "gradio", "torch", "transformers"},
    }
    for path in places.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        tops = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                tops |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                tops.add(node.module.split(".")[0])
        assert tops == allowed[path.stem] | {"__future__"}
        assert "hf_xorner" not in text
    for path in filter(Path.is_file, places.rglob("*")):
        assert str(REPOSITORY) not in path.read_text(encoding="utf-8")


def test_the_script_writes_the_files(models, script, tmp_path):
    out = tmp_path / "some places"
    code, printed, errors = script(
        "publish.py", models["grn"], "--repo_id", "me/my-tagger", "--space", out, "--tag", "v7"
    )
    assert code == 0, errors
    assert written(out) == NAMES
    assert [line for line in printed.splitlines() if line.startswith("written: ")] == [
        f"written: {out / name}" for name in NAMES
    ]
    assert printed.endswith("nothing was published\n")
    assert constants((out / "space/app.py").read_text(encoding="utf-8"))["REVISION"] == "v7"
    for options, complaint in (((), "exists"), (("--dry_run", "true"), "leave out --dry_run")):
        code, printed, errors = script(
            "publish.py", models["grn"], "--repo_id", "me/my-tagger", "--space", out, *options
        )
        assert (code, printed) == (1, "")
        assert complaint in errors
        assert len(errors.splitlines()) == 1


# --- The handler ------------------------------------------------------------------------------------------------------

ASK = """
import json, runpy
place, model, requests = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
handler = runpy.run_path(place)["EndpointHandler"](model)
answers = []
for request in requests:
    try:
        answers.append(handler(request))
    except ValueError as error:
        answers.append("refused: " + str(error))
assert type(handler.tagger.model).__module__.startswith("transformers_modules.")
assert not any(name.startswith("hf_xorner.") for name in sys.modules)
print(json.dumps(answers))
"""

GOOD = [
    {"inputs": TEXT},
    {"inputs": [TEXT, "", "Nobody"]},
    {"inputs": [TEXT], "parameters": None},
    {"inputs": TEXT, "parameters": {"aggregation_strategy": "none", "ignore_labels": []}},
    {"inputs": TEXT, "parameters": {"aggregation_strategy": "first"}},
    {"inputs": "", "parameters": {}},
    {"inputs": []},
    {"inputs": HOSTILE, "options": {"wait_for_model": True}},
]
BAD = [
    (None, "inputs"),
    ([TEXT], "inputs"),
    (TEXT, "inputs"),
    ({}, "inputs"),
    ({"text": TEXT}, "inputs"),
    ({"inputs": None}, "neither a text nor a list"),
    ({"inputs": 3}, "neither a text nor a list"),
    ({"inputs": [TEXT, 3]}, "neither a text nor a list"),
    ({"inputs": [[TEXT]]}, "neither a text nor a list"),
    ({"inputs": {"text": TEXT}}, "neither a text nor a list"),
    ({"inputs": TEXT, "parameters": [1]}, "parameters"),
    ({"inputs": TEXT, "parameters": "simple"}, "parameters"),
    ({"inputs": TEXT, "parameters": {"strategy": "simple"}}, "parameters"),
    ({"inputs": TEXT, "parameters": {"stride": 3}}, "parameters"),
    ({"inputs": TEXT, "parameters": {"aggregation_strategy": "best"}}, "aggregation_strategy"),
    ({"inputs": TEXT, "parameters": {"aggregation_strategy": ["simple"]}}, "aggregation_strategy"),
    ({"inputs": TEXT, "parameters": {"aggregation_strategy": None}}, "aggregation_strategy"),
    ({"inputs": TEXT, "parameters": {"ignore_labels": "O"}}, "ignore_labels"),
    ({"inputs": TEXT, "parameters": {"ignore_labels": [0]}}, "ignore_labels"),
]


def test_the_handler_works_without_the_package(places, models, taggers, tmp_path):
    requests = [*GOOD, *(request for request, _ in BAD), GOOD[0]]
    answers = answer_of(ASK, places / "model/handler.py", models["grn"], json.dumps(requests), home=tmp_path)
    tagger = taggers["grn"]

    def expected(inputs, aggregation_strategy="simple", **options):
        found = tagger(inputs, aggregation_strategy=aggregation_strategy, **options)
        return json.loads(json.dumps(found, default=float))

    for request, answer in zip(GOOD, answers, strict=False):
        options = request.get("parameters") or {}
        assert rounded(answer) == rounded(expected(request["inputs"], **options) if request["inputs"] else [])
    assert [len(entities) > 0 for entities in answers[1]] == [True, False, bool(tagger("Nobody"))]
    assert len(answers[3]) == len(tagger.tokenizer.tokenize(TEXT))
    for (_, word), answer in zip(BAD, answers[len(GOOD) :], strict=False):
        assert answer.startswith("refused: ")
        assert word in answer
        assert answer.endswith(".")
    assert answers[-1] == answers[0]


def rounded(value):
    """Answers without what another process may round in another way."""
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return {name: round(one, 4) if name == "score" else one for name, one in value.items()}


def with_handler(folder, places):
    for name in ("handler.py", "requirements.txt"):
        shutil.copyfile(places / "model" / name, folder / name)
    return folder


def test_the_handler_is_published_with_the_model(folder, places):
    shutil.copyfile(places / "model/requirements.txt", folder / "requirements.txt")
    before = files_of_model(folder)
    assert not {"handler.py", "requirements.txt"} & set(before)  # the second is nothing without the first
    with_handler(folder, places)
    checked = check_folder(folder)
    assert {file.name for file in checked.files} == {*before, "handler.py", "requirements.txt"}
    assert checked.left == []


@pytest.mark.parametrize("name", ["handler.py", "requirements.txt"])
def test_the_handler_matches_the_package(folder, places, name):
    shutil.copyfile(places / "model/requirements.txt", folder / "requirements.txt")
    with_handler(folder, places)
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write("# mine\n")
    with pytest.raises(Unfit, match=rf"^{name} is not the file that --space writes"):
        check_folder(folder)


# --- The functions of the page ----------------------------------------------------------------------------------------

needs_gradio = pytest.mark.skipif(find_spec("gradio") is None, reason='gradio is not installed: pip install ".[space]"')

CALL = """
import json, os, runpy
place, texts, answers = sys.argv[1], json.loads(sys.argv[2]), []
for model in sys.argv[3:]:
    os.environ["MODEL"] = model
    app = runpy.run_path(place)
    import gradio
    found = [app["find"](text) for text in texts]
    heads = (None, "1", "mean of all")
    maps = [app["heat_map"](text, word, head) for text in texts for word in (0, 3) for head in heads]
    refused = []
    for text in ("x" * 5001, "a \\ud800 b"):
        try:
            app["show"](text, None)
        except gradio.Error as error:
            refused.append(str(error))
    shown = app["show"](texts[0], "mean of all")
    assert type(app["ner"].model).__module__.startswith("transformers_modules.")
    answers.append({"found": found, "maps": maps, "refused": refused, "visible": shown[3]["visible"]})
assert not any(name.startswith("hf_xorner.") for name in sys.modules)
print(json.dumps(answers))
"""


@needs_gradio
def test_the_page_matches_the_pipeline(places, models, taggers, tmp_path):
    texts = [TEXT, HOSTILE, "", "  \n", "Nobody", f"{TEXT}\n{TEXT}"]
    app = tmp_path / "space" / "app.py"
    shutil.copytree(places / "space", app.parent)
    # One beside the program, the others by their full paths.
    shutil.copytree(models["grn"], app.parent / "own model")
    named = ["own model" if kind == "grn" else models[kind] for kind in KINDS]
    home = tmp_path / "home"
    home.mkdir()
    answers = answer_of(CALL, app, json.dumps(texts), *named, home=home)
    for kind, answer in zip(KINDS, answers, strict=True):
        tagger = taggers[kind]
        for text, (pieces, rows, first) in zip(texts, answer["found"], strict=True):
            assert "".join(piece for piece, _ in pieces) == text
            assert all(piece for piece, _ in pieces)
            entities = tagger(text) if text.strip() else []
            assert [[text[one["start"] : one["end"]], one["entity_group"]] for one in entities] == [
                piece for piece in pieces if piece[1]
            ]
            assert [row[:2] for row in rows] == [piece for piece in pieces if piece[1]]
            for row, one in zip(rows, entities, strict=True):
                assert row[2] == pytest.approx(100 * one["score"], abs=0.06)
            words = tagger.tokenizer.tokenize(text)
            if entities:
                start = tagger.tokenizer(text, return_offsets_mapping=True)["offset_mapping"][first][0]
                assert start == entities[0]["start"]
            else:
                assert first == 0
            assert not words or first < len(words)
        assert ["5,001 characters" in answer["refused"][0], "halves of characters" in answer["refused"][1]] == [
            True
        ] * 2
        assert answer["visible"] == (kind != "cross-bilstm-cnn")
        maps = iter(answer["maps"])
        for text in texts:
            for word in (0, 3):
                for head in (None, 0, None):
                    assert_heat_map(next(maps), tagger, text, word, head)


def expected_heat(tagger, text, word, head):
    """Values and shades of a word's row, by this package's model; None where there is nothing to show."""
    batch = tagger.tokenizer([text], return_tensors="pt")
    with torch.inference_mode():
        found = tagger.model(**batch, output_attentions=True).attentions
    if found is None or word >= batch["input_ids"].shape[1]:
        return None
    if tagger.model.config.model_type == "grn":
        row = tagger.model.relation_norms(**batch, scaled=True)[0, word].tolist()
        return row, row
    weights = found[0][0]
    row = (weights.mean(0) if head is None else weights[head])[word].tolist()
    assert sum(row) == pytest.approx(1, abs=1e-5)
    return row, [value / max(row) for value in row]


def assert_heat_map(html, tagger, text, word, head):
    expected = expected_heat(tagger, text, word, head)
    if expected is None:
        assert html == ""
        return
    cells = html.partition('<div class="heat">')[2].removesuffix("</div>").split("<span")[1:]
    values = [float(cell.partition("<small>")[2].partition("<")[0]) for cell in cells]
    shades = [float(cell.partition("--heat: ")[2].partition('"')[0]) for cell in cells]
    assert values == pytest.approx(expected[0], abs=0.0051)
    assert shades == pytest.approx(expected[1], abs=0.00051)
    assert [number for number, cell in enumerate(cells) if cell.startswith(" class=chosen")] == [word]
    surfaces = [cell.partition(">")[2].partition("<small>")[0] for cell in cells]
    assert [unescape(surface) for surface in surfaces] == tagger.tokenizer.tokenize(text)
    assert not any(mark in "".join(surfaces) for mark in "<>\"'")


# --- The page in a browser --------------------------------------------------------------------------------------------


def missing():
    """Return the missing requirements of the tests of the page."""
    modules = [name for name in ("gradio", "selenium") if find_spec(name) is None]
    return modules + [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


needs_browser = pytest.mark.skipif(
    bool(missing()), reason=f"not installed: {', '.join(missing())}; see this file's head"
)

SERVE = WITHOUT_PACKAGE + "import runpy\nrunpy.run_path('app.py', run_name='__main__')\n"


class Page:
    """The page of a model in a headless Chromium that finds no other machine."""

    def __init__(self, folder, model, home):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        port = free_port()
        environment = environment_in(home, MODEL=str(model), GRADIO_SERVER_PORT=str(port))
        self.log = (home / "log").open("w+")
        command = [sys.executable, "-c", SERVE]
        self.server = subprocess.Popen(command, cwd=folder, env=environment, stdout=self.log, stderr=self.log)
        self.browser = None
        self.address = f"http://127.0.0.1:{port}/"
        self.await_server(port)
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for option in (
            *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"),
            *("disable-component-update", "disable-sync", "window-size=1100,1150", "disable-dev-shm-usage"),
            "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            f"user-data-dir={tempfile.mkdtemp(dir=home)}",
        ):
            options.add_argument(f"--{option}")
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        try:
            self.browser = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
            self.browser.get(self.address)
            self.until(lambda: self.all("#entities"))
        except BaseException:  # No other code ends these processes.
            self.close()
            raise

    def await_server(self, port):
        end = time.monotonic() + 120
        while time.monotonic() < end and self.server.poll() is None:
            with socket.socket() as door:
                if door.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.2)
        self.close()
        pytest.fail((Path(self.log.name)).read_text()[-3000:])

    def close(self):
        try:
            if self.browser is not None:
                self.browser.quit()
        finally:
            self.server.terminate()
            self.server.wait(30)
            self.log.close()

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def texts(self, selector):
        """The text of each element, as it lies in the page."""
        script = "return [...document.querySelectorAll(arguments[0])].map(one => one.textContent)"
        return self.browser.execute_script(script, selector)

    def until(self, condition, seconds=15):
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        ignored = [StaleElementReferenceException]
        return WebDriverWait(self.browser, seconds, 0.1, ignored).until(lambda _: condition())

    def find(self, text):
        """Type a text, press the button, and wait until the page shows it."""
        (area,) = self.until(lambda: self.all("#text textarea"))
        # As a visitor does it: what WebDriver empties by itself, the page does not hear of.
        area.send_keys("\ue009a\ue000", "\ue017", text)
        self.all("#find")[0].click()
        letters = "".join(text.split())
        if letters:
            self.until(lambda: "".join(self.marked_text().split()) == letters)

    def marked_text(self):
        """The text of the highlighted pieces, without their labels."""
        script = """
            const copy = document.querySelector('#entities .textfield')?.cloneNode(true);
            copy?.querySelectorAll('.label').forEach(one => one.remove());
            return copy ? copy.textContent : '';
        """
        return self.browser.execute_script(script)

    def entities(self):
        """Text and label of each highlighted entity."""
        script = """
            return [...document.querySelectorAll('#entities .label')].map(label => {
                const copy = label.parentElement.cloneNode(true);
                copy.querySelectorAll('.label').forEach(one => one.remove());
                return [copy.textContent.trim(), label.textContent.trim()];
            });
        """
        return [tuple(pair) for pair in self.browser.execute_script(script)]

    def rows(self):
        """The rows of the table."""
        cells = [one.strip() for one in self.texts('#table [data-testid^="cell-"]')]
        return [tuple(cells[start : start + 3]) for start in range(0, len(cells), 3)]

    def choose(self, box, choice):
        """Choose an entry of a box by its text."""
        self.all(f"{box} input")[0].click()
        self.until(lambda: self.all(f'[role="option"][aria-label="{choice}"]'))[0].click()

    def cells(self):
        script = "return [...document.querySelectorAll('.heat span')].map(one => one.innerText)"
        return self.browser.execute_script(script)

    def chosen(self):
        """The numbers of the words that are marked as chosen."""
        script = "return [...document.querySelectorAll('.heat span')].map(one => one.className)"
        return [number for number, name in enumerate(self.browser.execute_script(script)) if name == "chosen"]


@pytest.fixture(scope="module")
def open_page(places, models, tmp_path_factory):
    """Opens the page of a model; one at a time, and each once."""
    pages = {}

    def opened(kind):
        if kind not in pages:
            pages[kind] = Page(places / "space", models[kind], tmp_path_factory.mktemp("home"))
        return pages[kind]

    yield opened
    with ExitStack() as stack:
        for page in pages.values():
            stack.callback(page.close)


@needs_browser
@pytest.mark.parametrize("kind", PAGES)
def test_entities_are_highlighted_and_listed(open_page, taggers, kind):
    page, tagger = open_page(kind), taggers[kind]
    entities = tagger(TEXT)
    page.find(TEXT)
    expected = [(TEXT[one["start"] : one["end"]], one["entity_group"]) for one in entities]
    page.until(lambda: page.entities() == expected)
    rows = [(*pair, f"{round(100 * float(one['score']), 1):g}") for pair, one in zip(expected, entities, strict=True)]
    page.until(lambda: page.rows() == rows)


@needs_browser
@pytest.mark.parametrize("kind", PAGES)
def test_hostile_text_is_escaped(open_page, kind):
    page = open_page(kind)
    title = page.browser.title
    page.find(HOSTILE)
    if kind != "cross-bilstm-cnn":
        page.until(lambda: len(page.cells()) > 20)
        page.choose("#word", "2  img")
        page.until(lambda: page.chosen() == [1])
    time.sleep(0.5)
    assert page.browser.title == title
    for place in ("#entities", "#table", "#heat", "#word"):
        assert page.all(f"{place} img, {place} script, {place} b, {place} [onerror]") == []
    assert "".join(HOSTILE.split()) in "".join(page.marked_text().split())


@needs_browser
def test_the_page_makes_no_external_requests(open_page):
    page = open_page("grn")
    page.browser.get(page.address)
    page.find(TEXT)
    page.until(page.cells)
    messages = [json.loads(entry["message"])["message"] for entry in page.browser.get_log("performance")]
    asked = {one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"}
    assert len(asked) > 3
    assert [url for url in asked if not url.startswith((page.address, "data:", "blob:", "chrome:"))] == []
    assert [entry for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert "Traceback" not in Path(page.log.name).read_text()
