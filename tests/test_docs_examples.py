"""The example scripts of the documentation run on the built-in corpus, and print what they claim."""

import os
import re

import pytest
from conftest import REPOSITORY
from processes import run_python

EXAMPLES = REPOSITORY / "docs" / "examples"
MODEL = str(REPOSITORY / "model_cards" / "english-ner-small")
F1 = re.compile(r"F1 ([\d.]+)")


def printed_by(script, *arguments, folder):
    """Run an example in a fresh process in a folder; return its lines without those of epochs."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = run_python([EXAMPLES / script, *arguments], cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if not line.startswith("epoch ")]


def scores(lines):
    return {line.partition(":")[0]: float(match[1]) for line in lines if (match := F1.search(line))}


@pytest.mark.slow
def test_two_taggers_are_compared(tmp_path):
    lines = printed_by("compare_taggers.py", folder=tmp_path)
    f1 = scores(lines)
    assert f1["cross-bilstm-cnn"] > f1["bilstm-cnn"] + 5
    difference, p = re.search(r"f1: difference \+([\d.]+), p = (\S+)", "\n".join(lines)).groups()
    assert float(difference) == pytest.approx(f1["cross-bilstm-cnn"] - f1["bilstm-cnn"], abs=0.02)
    assert float(p) < 0.01


@pytest.mark.slow
def test_errors_are_counted_and_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")
    lines = printed_by("error_analysis.py", folder=tmp_path)
    assert sum(line.startswith("gold ") for line in lines) == 2
    assert any("[O→" in line or "→O]" in line for line in lines)
    pictures = [tmp_path / line.removeprefix("written: ") for line in lines if line.startswith("written: ")]
    assert sorted(path.name for path in pictures) == ["confusion.png", "reliability.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


@pytest.mark.slow
def test_a_published_model_learns_new_types(tmp_path):
    lines = printed_by("fine_tune.py", MODEL, folder=tmp_path)
    types = {line.split(":")[0]: set(line.split(":")[1].split()) for line in lines if line.startswith("types")}
    assert {"ORG", "LOC"} <= types["types before"]
    assert types["types after"] == {"LINK", "PER", "WORK"}
    assert scores(lines)["from the model"] > 50


@pytest.mark.slow
def test_a_teacher_helps_a_student_with_few_labels(tmp_path):
    f1 = scores(printed_by("distil.py", folder=tmp_path))
    assert f1["teacher"] > 95
    assert f1["student"] > f1["student alone"] + 5


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


@pytest.mark.slow
def test_a_large_model_teaches_a_small_one(tmp_path):
    lines = printed_by("large_to_small.py", folder=tmp_path)
    assert float(lines[-2].removeprefix("agreement with the teacher: ")) > 95
    assert float(lines[-1].removeprefix("F1 on the corpus' test split: ")) > 95
