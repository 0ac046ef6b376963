"""`hf-xorner benchmark`, and bounds on scores and memory."""

import json

import pytest
from helpers import ok

from hf_xorner import train


@pytest.fixture
def benchmark(script, tmp_path):
    """Run a benchmark of one round; returns the printed rows, and those of the file."""

    def run(*words):
        printed = ok(script("benchmark.py", *words, "--rounds", 1, "--json", "figures.json")).splitlines()
        return [line.split() for line in printed], json.loads((tmp_path / "figures.json").read_text())

    return run


def test_speeds_are_measured_and_memory_is_not_more_than_it_was(benchmark):
    printed, rows = benchmark("cross-bilstm-cnn", "--sentences", 64)
    row = rows["cross-bilstm-cnn"]
    assert row["train"] > 0 and row["tag"] > 0 and 200 < row["peak_mb"] <= 850
    assert printed[-1][0] == "cross-bilstm-cnn" and printed[-1][-1] == f"{row['peak_mb']:.2f}"


def test_what_cannot_be_measured_is_refused(script, monkeypatch):
    monkeypatch.setattr("hf_xorner.cli.benchmark.find_spec", lambda name: None)
    for words, sentence in (
        (["bert"], "bert is unknown; choose among bilstm-cnn"),
        (["--onnx"], "--onnx has no effect without --against spacy"),
        (["--against", "spacy"], '--against spacy needs spaCy: pip install "hf_xorner[spacy]".'),
    ):
        code, _, errors = script("benchmark.py", *words)
        assert code == 1 and errors.startswith(f"hf-xorner benchmark: {sentence}")


@pytest.mark.slow
def test_scores_are_not_lower_than_they_were(tmp_path):
    """The only test that trains long enough for a fault of training to show in the scores."""
    for model_type, epochs, least in (("cross-bilstm-cnn", 5, 95), ("lstm-crf", 3, 50)):
        options = {"num_train_epochs": epochs, "seed": 42, "use_cpu": True, "disable_tqdm": True}
        tagger = train("xor", model_type=model_type, output_dir=tmp_path / model_type, **options)
        assert tagger.scores["test"]["f1"] >= least


def test_epochs_of_architectures_and_recipes_are_compared_with_bare_loops(benchmark):
    _, rows = benchmark("bilstm-cnn", "li2020/table1/cross", "--train", "--sentences", 64)
    assert list(rows) == ["bilstm-cnn", "li2020/table1/cross"]
    for row in rows.values():
        assert row["bare"] > 0 and row["overhead"] == pytest.approx(row["trainer"] / row["bare"] - 1)


@pytest.mark.slow
def test_tagging_and_exports_are_compared_with_spacy(benchmark):
    pytest.importorskip("spacy")
    pytest.importorskip("onnxruntime")
    _, rows = benchmark("bilstm-cnn", "--against", "spacy", "--onnx", "--sentences", 40)
    assert list(rows) == ["spacy", "bilstm-cnn", "bilstm-cnn onnx"]
    for row in rows.values():
        assert row["words_per_second"] > 0 and row["sentence_ms"] > 0
        ratio = row["words_per_second"] / rows["spacy"]["words_per_second"]
        assert row["times_spacy"] == pytest.approx(ratio)
