"""`hf-xorner benchmark`: its figures and its bounds."""

import json

import pytest
from conftest import REPOSITORY
from processes import run_python

from hf_xorner.cli import benchmark

BENCHMARK = str(REPOSITORY / "scripts" / "benchmark.py")


def test_speeds_are_written_as_json_with_their_minimums(tmp_path):
    file = tmp_path / "figures.json"
    options = ["--models", "cross-bilstm-cnn", "--sentences", "64", "--rounds", "1", "--json", str(file)]
    result = run_python([BENCHMARK, *options])
    assert result.returncode == 0, result.stderr[-3000:]
    figures = json.loads(file.read_text())
    assert set(figures["floor"]) == {"train", "tag", "pipeline"}
    assert set(figures["models"]) == {"cross-bilstm-cnn"}
    row = figures["models"]["cross-bilstm-cnn"]
    assert set(row) == {"train", "tag", "pipeline", "peak_mb"}
    assert all(value > 0 for value in [*row.values(), *figures["floor"].values()])


def test_an_unknown_model_is_refused():
    result = run_python([BENCHMARK, "--models", "bert"])
    assert result.returncode != 0
    assert (
        result.stderr.strip()
        .splitlines()[-1]
        .startswith("hf-xorner benchmark: bert is unknown; choose among bilstm-cnn")
    )


def test_missed_bounds_are_reported(monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "trained_score", lambda model_type, epochs: 60.0)
    monkeypatch.setattr(benchmark, "peak_mb", lambda name, device: 880.0)
    with pytest.raises(SystemExit) as stop:
        benchmark.run(["--guard", "scores", "memory"])
    lines = capsys.readouterr().out.splitlines()
    missed = [line.split(":")[0] for line in lines if line.startswith("MISSED")]
    assert missed == [
        "MISSED test F1 of cross-bilstm-cnn, 5 epochs on xor",
        "MISSED peak memory of cross-bilstm-cnn in MB",
    ]
    assert stop.value.code == len(missed)
    assert len(lines) == 4


def test_what_is_exported_is_measured_beside_spacy(tmp_path):
    pytest.importorskip("spacy")
    pytest.importorskip("onnxruntime")
    file = tmp_path / "figures.json"
    options = ["--against", "spacy", "--onnx", "--models", "bilstm-cnn", "--sentences", "40", "--rounds", "1"]
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
    assert code == 1 and errors.startswith("hf-xorner benchmark: --onnx is of no use without --against spacy")


def test_a_comparison_with_spacy_needs_spacy(script, monkeypatch):
    monkeypatch.setattr("hf_xorner.cli.spacy_speed.find_spec", lambda name: None)
    code, _, errors = script("benchmark.py", "--against", "spacy")
    assert (code, errors) == (1, 'hf-xorner benchmark: --against spacy needs spaCy: pip install "hf_xorner[spacy]".\n')


def test_tagging_is_compared_with_that_of_spacy(tmp_path):
    pytest.importorskip("spacy")
    file = tmp_path / "figures.json"
    options = ["--against", "spacy", "--models", "bilstm-cnn,stack-lstm", "--sentences", "40", "--rounds", "1"]
    result = run_python([BENCHMARK, *options, "--json", file])
    assert result.returncode == 0, result.stderr[-3000:]
    figures = json.loads(file.read_text())
    assert list(figures) == ["spacy", "bilstm-cnn", "stack-lstm"]
    for row in figures.values():
        assert row["words_per_second"] > 0 and row["p50_ms"] > 0
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("bilstm-cnn ")]
    ratio = figures["bilstm-cnn"]["words_per_second"] / figures["spacy"]["words_per_second"]
    assert float(line.split()[2]) == pytest.approx(ratio, abs=0.01)
