"""The Python examples of the README and the documentation run, and print the output that is shown."""

import json
import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import REPOSITORY
from processes import run_python

import hf_xorner

DOCS = REPOSITORY / "docs"
#: By their paths below docs/.
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
PAGES["README.md"] = (REPOSITORY / "README.md").read_text(encoding="utf-8")
#: Pages that docs/hooks.py makes.
GENERATED = (DOCS / "cli.md", DOCS / "recipes.md")
#: Python blocks and their output, by page and number.
EXAMPLES = {
    f"{name}-{number}": example
    for name, text in PAGES.items()
    for number, example in enumerate(re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", text, flags=re.DOTALL))
}
#: Runs each block with names of its own, and prints what each has printed, or its error.
RUN_ALL = """
import contextlib, io, json, sys, traceback
outputs = {}
for name, code in json.load(sys.stdin).items():
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)) as printed:
        try:
            exec(code, {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc(file=printed)
    outputs[name] = printed.buffer.getvalue().decode()
print(json.dumps(outputs))
"""


def missing_package(code):
    """Return the optional package that a block needs and that is not installed."""
    if '"multilingual"' in code:
        try:
            hf_xorner.multilingual()
        except hf_xorner.DataError:
            return "hf_xorner_multilingual"
    packages = re.findall(r"^(?:import|from) (spacy|ray|pyspark|fastapi)\b", code, flags=re.MULTILINE)
    return next((package for package in packages if find_spec(package) is None), None)


@pytest.fixture(scope="module")
def outputs(request, tmp_path_factory):
    """What the blocks of the selected tests print in one new process, as most of the time goes into imports."""
    selected = [item.callspec.params["name"] for item in request.session.items if "outputs" in item.fixturenames]
    blocks = {name: EXAMPLES[name][0] for name in selected if not missing_package(EXAMPLES[name][0])}
    trained = any('"runs/' in code for code in blocks.values())
    folder = request.getfixturevalue("default_run")[0] if trained else tmp_path_factory.mktemp("examples")
    (folder / "model_cards").symlink_to(REPOSITORY / "model_cards")
    done = run_python(["-c", RUN_ALL], cwd=folder, stdin_text=json.dumps(blocks))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_every_python_block_is_followed_by_its_output():
    assert len(EXAMPLES) == sum(text.count("```python") for text in PAGES.values()) >= 6


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_the_documented_output(name, outputs):
    code, expected = EXAMPLES[name]
    if package := missing_package(code):
        pytest.skip(f"{package} is not installed")
    # Training also prints a line with times after each epoch.
    assert re.sub(r"^epoch .*\n", "", outputs[name], flags=re.MULTILINE) == expected


def test_links_between_pages_exist():
    for name, text in PAGES.items():
        folder = REPOSITORY if name == "README.md" else (DOCS / name).parent
        for target in re.findall(r"\]\(([^)#:]+)[)#]", text):
            path = Path(os.path.normpath(folder / target))
            assert path.exists() or path in GENERATED, f"{name}: {target} does not exist"
