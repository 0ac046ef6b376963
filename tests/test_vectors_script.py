"""`hf-xorner vectors` from the command line."""

from functools import partial

import numpy as np
import pytest
import tiny_encoders as tiny
from helpers import fault, ok

from hf_xorner.vectors.distill import Reduction, compose, encode_words, read_composition, read_encoder
from hf_xorner.vectors.formats import read_vectors

TEXT = "the 1 0\nOslo 0 2\nb2 3 4\nthe 5 5\nb0 0.5 0\n"


@pytest.fixture
def run(script):
    """Run the script in this process."""
    return partial(script, "vectors")


@pytest.fixture(autouse=True)
def text(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def encoder(tmp_path):
    """A tiny encoder, saved in a folder with a list of words next to it."""
    tiny.save_encoder(tmp_path / "encoder")
    (tmp_path / "words.txt").write_text("oslo\nrains\na\nrain\n")
    return read_encoder(str(tmp_path / "encoder"))


def test_words_are_selected_by_options(run, tmp_path):
    (tmp_path / "words.txt").write_text("B7\nThe\n")
    (tmp_path / "train.conll").write_text("OSLO O\nOslo O\n")
    for name, options, kept in (
        ("all", [], ["the", "Oslo", "b2", "b0"]),
        ("list", ["--vocab", "words.txt"], ["the", "b0"]),
        ("folder", ["--vocab", "train.conll", "--data_dir", tmp_path], ["Oslo"]),
        ("both", ["--most_frequent", "2", "--vocab", "words.txt"], ["the", "Oslo", "b0"]),
    ):
        out = ok(run("convert", "vectors.txt", "--output", name, *options))
        assert out.startswith(f"kept: {len(kept)} words of dimension 2, ")
        assert read_vectors(tmp_path / name).words == kept
    (tmp_path / "words.txt").write_text("zzz\n")
    assert "has none of the words of words.txt" in fault(
        run("convert", "vectors.txt", "--vocab", "words.txt", "--output", "x")
    )


def test_coverage_reports_each_fallback_step(run, tmp_path):
    (tmp_path / "train.conll").write_text("the\tO\nOSLO\tO\nB7\tO\nThe\tO\nx\tO\n")
    out = ok(run("coverage", "vectors.txt", "--dataset", "train.conll", "--fallback", "lower", "lower_zero"))
    rows = dict(line.split(maxsplit=1) for line in out.split("\n")[2:7])
    assert [rows[step].split()[0] for step in ("exact", "lower", "none")] == ["20.00", "20.00", "40.00"]


OPTIONS = ["--encoder", "encoder", "--vocab", "words.txt", "--dim", 3, "--layers", 1, 2, "--output", "out"]


@pytest.mark.parametrize(("option", "sentence"), [("--dim 900", "dim=900: the encoder"), ("--device x", "device='x'")])
def test_options_that_do_not_fit_the_encoder_are_refused(run, encoder, option, sentence):
    assert sentence in fault(run("distill", *OPTIONS, *option.split()))


def test_distilled_vectors_match_the_library(run, encoder, tmp_path):
    ok(run("distill", *OPTIONS, "--device", "cpu"))
    vectors = read_vectors(tmp_path / "out")
    assert vectors.words == ["oslo", "rains", "a", "rain"]
    states = encode_words(vectors.words, encoder, [1, 2])
    assert np.array_equal(vectors.matrix, Reduction.of(states, 3)(states))


@pytest.mark.parametrize(("half", "dtype"), [("false", np.float32), ("true", np.float16)])
def test_composed_vectors_match_the_library(run, encoder, tmp_path, half, dtype):
    ok(run("distill", *OPTIONS, "--composed", "true", "--half", half))
    expected = compose(["oslo", "rains", "a", "rain"], encoder, 3, [1, 2])
    composed = read_composition(tmp_path / "out")
    assert composed.vectors.dtype == dtype
    assert np.array_equal(composed.vectors, expected.vectors.astype(dtype))
    assert np.array_equal(composed.mix, expected.mix) and np.array_equal(composed.bias, expected.bias)
    assert composed.pieces.to_str() == expected.pieces.to_str()


def test_files_are_joined(run, tmp_path):
    (tmp_path / "more.vec").write_text("2 1\noslo 3\nof -4\n")
    out = ok(run("join", "vectors.txt", "more.vec", "--fallback", "lower", "--output", "both", "--half"))
    assert out.splitlines()[0] == "joined: 6 words of dimension 2 + 1"
    joined = read_vectors(tmp_path / "both")
    assert joined.words == ["the", "Oslo", "b2", "b0", "oslo", "of"]
    assert joined.matrix[:, 2].any()


def test_the_input_is_never_the_output(run, text, tmp_path):
    ok(run("convert", text, "--output", "table"))
    words = tmp_path / "table" / "vocabulary.txt"
    before = {path: path.read_bytes() for path in (text, *words.parent.iterdir())}
    for arguments in (("convert", "table"), ("convert", text, "--vocab", words), ("join", text, "table")):
        assert "is an input" in fault(run(*arguments, "--output", "table", "--overwrite", "true")), arguments
    assert {path: path.read_bytes() for path in before} == before
