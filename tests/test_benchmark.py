"""`hf-xorner benchmark`, and bounds on scores and memory."""

import json

import pytest
from helpers import ok

from hf_xorner import train


@pytest.fixture
def benchmark(script, tmp_path):
    """Run a benchmark of one round; returns the printed rows, and those of the file."""

    def run(*words):
        printed = ok(script("benchmark", *words, "--rounds", 1, "--json", "figures.json")).splitlines()
        return [line.split() for line in printed], json.loads((tmp_path / "figures.json").read_text())

    return run


@pytest.mark.slow
def test_speeds_memory_and_epochs_are_measured(benchmark):
    printed, rows = benchmark("cross-bilstm-cnn", "li2020/table1/cross", "--train", "--sentences", 64)
    assert list(rows) == ["cross-bilstm-cnn", "li2020/table1/cross"]
    for row in rows.values():
        assert all(row[name] > 0 for name in ("train", "trainer", "tag", "sentence_ms"))
        assert 200 < row["peak_mb"] <= 850
    assert printed[-1][0] == "li2020/table1/cross" and printed[-1][-1] == f"{row['peak_mb']:.2f}"


@pytest.mark.slow
def test_scores_are_not_lower_than_they_were(tmp_path):
    """Without a recipe, with the options that the size of the data chooses."""
    for model_type, epochs, least in (("cross-bilstm-cnn", 5, 95), ("lstm-crf", 3, 50)):
        options = {"num_train_epochs": epochs, "seed": 42, "use_cpu": True, "disable_tqdm": True}
        tagger = train("xor", model_type=model_type, output_dir=tmp_path / model_type, **options)
        assert tagger.scores["test"]["f1"] >= least


@pytest.mark.slow
def test_tagging_and_exports_are_compared_with_spacy(benchmark):
    pytest.importorskip("spacy")
    pytest.importorskip("onnxruntime")
    _, rows = benchmark("bilstm-cnn", "--against", "spacy", "--onnx", "--train", "--sentences", 40)
    assert list(rows) == ["bilstm-cnn", "bilstm-cnn onnx", "spacy"] and rows["spacy"]["train"] > 0
    for row in rows.values():
        assert row["sentence_ms"] > 0 and row["times_spacy"] == row["tag"] / rows["spacy"]["tag"]
