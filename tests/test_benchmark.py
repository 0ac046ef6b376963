"""`hf-xorner benchmark`, and bounds on scores and memory."""

import json

import pytest
from conftest import REPOSITORY
from helpers import ok
from processes import run_python

from hf_xorner import train
from hf_xorner.cli import benchmark

BENCHMARK = str(REPOSITORY / "scripts" / "benchmark.py")


def test_speeds_are_written_as_json_with_their_minimums(tmp_path):
    file = tmp_path / "figures.json"
    options = ["cross-bilstm-cnn", "--sentences", "64", "--rounds", "1", "--json", str(file)]
    result = run_python([BENCHMARK, *options])
    assert result.returncode == 0, result.stderr[-3000:]
    figures = json.loads(file.read_text())
    assert set(figures["floor"]) == {"train", "tag", "pipeline"}
    assert set(figures["models"]) == {"cross-bilstm-cnn"}
    row = figures["models"]["cross-bilstm-cnn"]
    assert set(row) == {"train", "tag", "pipeline", "peak_mb"}
    assert all(value > 0 for value in [*row.values(), *figures["floor"].values()])


def test_an_unknown_model_is_refused():
    result = run_python([BENCHMARK, "bert"])
    assert result.returncode != 0
    assert (
        result.stderr.strip()
        .splitlines()[-1]
        .startswith("hf-xorner benchmark: bert is unknown; choose among bilstm-cnn")
    )


def test_scores_are_not_lower_than_they_were(tmp_path):
    """The only test that trains long enough for a fault of training to show in the scores."""
    for model_type, epochs, least in (("cross-bilstm-cnn", 5, 95), ("lstm-crf", 3, 50)):
        options = {"num_train_epochs": epochs, "seed": 42, "use_cpu": True, "disable_tqdm": True}
        tagger = train("xor", model_type=model_type, output_dir=tmp_path / model_type, **options)
        assert tagger.scores["test"]["f1"] >= least


def test_memory_is_not_more_than_it_was():
    for model_type, most in (("cross-bilstm-cnn", 850), ("grn", 900)):
        assert benchmark.peak_mb(model_type, benchmark.Options()) <= most


def test_epochs_of_architectures_and_recipes_are_compared_with_bare_loops(script, tmp_path):
    names = ["bilstm-cnn", "li2020/table1/cross"]
    ok(script("benchmark.py", *names, "--train", "--sentences", 64, "--rounds", 1, "--json", "figures.json"))
    rows = json.loads((tmp_path / "figures.json").read_text())
    assert [row["name"] for row in rows] == names
    for row in rows:
        assert row["bare"] > 0 and row["trainer"] > 0
        assert row["overhead"] == pytest.approx(row["trainer"] / row["bare"] - 1, abs=0.02)
    code, _, errors = script("benchmark.py", "wnut17/contextual", "--train")
    assert code == 1 and "--context" in errors


def test_what_is_exported_is_measured_beside_spacy(tmp_path):
    pytest.importorskip("spacy")
    pytest.importorskip("onnxruntime")
    file = tmp_path / "figures.json"
    options = ["bilstm-cnn", "--against", "spacy", "--onnx", "--sentences", "40", "--rounds", "1"]
    result = run_python([BENCHMARK, *options, "--json", file])
    assert result.returncode == 0, result.stderr[-3000:]
    figures = json.loads(file.read_text())
    assert list(figures) == ["spacy", "bilstm-cnn", "bilstm-cnn onnx"]
    row = figures["bilstm-cnn onnx"]
    assert row["words_per_second"] > 0 and row["p50_ms"] > 0
    assert 0 < row["start_s"] < 30 and 20 < row["start_peak_mb"] < 300
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("bilstm-cnn onnx ")]
    assert line.split()[-1] == f"{row['start_peak_mb']:.0f}"


def test_exports_are_measured_beside_spacy_only(script):
    code, _, errors = script("benchmark.py", "--onnx")
    assert code == 1 and errors.startswith("hf-xorner benchmark: --onnx has no effect without --against spacy")


def test_a_comparison_with_spacy_needs_spacy(script, monkeypatch):
    monkeypatch.setattr("hf_xorner.cli.benchmark.find_spec", lambda name: None)
    code, _, errors = script("benchmark.py", "--against", "spacy")
    assert (code, errors) == (1, 'hf-xorner benchmark: --against spacy needs spaCy: pip install "hf_xorner[spacy]".\n')


def test_tagging_is_compared_with_that_of_spacy(tmp_path):
    pytest.importorskip("spacy")
    file = tmp_path / "figures.json"
    options = ["bilstm-cnn", "stack-lstm", "--against", "spacy", "--sentences", "40", "--rounds", "1"]
    result = run_python([BENCHMARK, *options, "--json", file])
    assert result.returncode == 0, result.stderr[-3000:]
    figures = json.loads(file.read_text())
    assert list(figures) == ["spacy", "bilstm-cnn", "stack-lstm"]
    for row in figures.values():
        assert row["words_per_second"] > 0 and row["p50_ms"] > 0
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("bilstm-cnn ")]
    ratio = figures["bilstm-cnn"]["words_per_second"] / figures["spacy"]["words_per_second"]
    assert float(line.split()[2]) == pytest.approx(ratio, abs=0.01)
