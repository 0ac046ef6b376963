"""`hf-xorner epochs`: its times, and the refusal of unknown names."""

import json

import pytest
from conftest import REPOSITORY
from processes import run_python

SCRIPT = str(REPOSITORY / "scripts" / "epochs.py")


def epochs(tmp_path, *names):
    file = tmp_path / "figures.json"
    done = run_python([SCRIPT, *names, "--sentences", 64, "--rounds", 1, "--json", file])
    return done, json.loads(file.read_text()) if file.exists() else None


def test_epochs_of_architectures_and_recipes_are_compared_with_bare_loops(tmp_path):
    names = ["bilstm-cnn", "li2020/table1/cross", "li2020/table1/cross-ontonotes", "wnut17/contextual"]
    done, rows = epochs(tmp_path, *names)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [row["name"] for row in rows] == ["bilstm-cnn", "li2020/table1/cross", "wnut17/contextual"]
    assert [row["same"] for row in rows] == [[], ["li2020/table1/cross-ontonotes"], []]
    for row in rows[:2]:
        assert row["bare"] > 0 and row["trainer"] > 0
        assert row["overhead"] == pytest.approx(row["trainer"] / row["bare"] - 1, abs=0.02)
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"{row['name']} ")]
        assert f"{row['trainer']:.2f}" in line
    assert "--context" in rows[2]["missing"]


def test_an_unknown_name_is_refused(tmp_path):
    done, rows = epochs(tmp_path, "bert")
    assert (done.returncode, rows) == (1, None)
    assert done.stderr.strip().splitlines()[-1] == "hf-xorner epochs: bert is neither a recipe nor an architecture."


@pytest.mark.parametrize(
    ("option", "value"), [("sentences", 0), ("rounds", -1), ("device", "magic"), ("json", "nowhere/figures.json")]
)
def test_an_invalid_option_is_refused_before_timing(script, option, value):
    code, out, errors = script("epochs.py", "lstm-crf", f"--{option}", value)
    assert code == 1 and out == ""
    assert errors.startswith("hf-xorner epochs: ") and str(value) in errors and len(errors.splitlines()) == 1


def test_a_comparison_with_spacy_is_refused_without_spacy(script, monkeypatch):
    monkeypatch.setattr("hf_xorner.cli.spacy_speed.find_spec", lambda name: None)
    code, out, errors = script("epochs.py", "lstm-crf", "--against", "spacy")
    assert (code, out) == (1, "")
    assert errors == 'hf-xorner epochs: --against spacy needs spaCy: pip install "hf_xorner[spacy]".\n'


def test_an_epoch_is_compared_with_that_of_spacy(tmp_path):
    pytest.importorskip("spacy")
    done, (row,) = epochs(tmp_path, "grn/branch-3", "--against", "spacy")
    assert done.returncode == 0, done.stderr[-3000:]
    assert row["spacy"] > 0
    assert row["share_of_spacy"] == pytest.approx(row["trainer"] / row["spacy"], rel=0.02, abs=0.02)
    assert done.stdout.splitlines()[-1].split()[-2:] == [f"{row['spacy']:.2f}", f"{row['share_of_spacy']:.2f}"]
