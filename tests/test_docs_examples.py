"""The example scripts of the documentation run on the built-in corpus, and print what they claim."""

import os
import re

import pytest
from conftest import REPOSITORY
from processes import run_python

EXAMPLES = REPOSITORY / "docs" / "examples"
MODEL = str(REPOSITORY / "model_cards" / "english-ner-small")
PAGE = (REPOSITORY / "docs" / "how-to" / "examples.md").read_text(encoding="utf-8")
#: The output that the page shows, by script.
SHOWN = dict(re.findall(r"^## (\w+\.py)\n.*?```text\n(.*?)```", PAGE, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.slow
@pytest.mark.parametrize("script", SHOWN)
def test_scripts_print_the_documented_output(script, tmp_path):
    if script == "error_analysis.py":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    models = [MODEL] if script == "fine_tune.py" else []
    done = run_python([EXAMPLES / script, *models], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if not line.startswith("epoch ")]
    expected = SHOWN[script].splitlines()
    # Other lines of training come first.
    assert lines[-len(expected) :] == expected
    pictures = [tmp_path / line.removeprefix("written: ") for line in lines if line.startswith("written: ")]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install nbclient ipykernel")
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    notebook = nbformat.read(EXAMPLES / "first_tagger.ipynb", as_version=4)
    nbclient.execute(notebook, cwd=tmp_path)  # raises if a cell fails
    shown = [
        output.data["text/html"] for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output
    ]
    assert "Nordwind Energy <small><b>ORG" in shown[0]
    assert "korlitea <small><b>DRINK" in shown[1]
