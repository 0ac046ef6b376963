"""`hf-xorner vectors` from the command line."""

import json
from functools import partial

import numpy as np
import pytest
import tiny_encoders as tiny
from helpers import fault, ok

from hf_xorner.vectors.distill import Reduction, compose, encode_words, read_composition, read_encoder
from hf_xorner.vectors.formats import read_vectors

TEXT = "the 1 0\nOslo 0 2\nb2 3 4\nthe 5 5\nb0 0.5 0\n"


@pytest.fixture
def new_process(script_in_new_process):
    """Run the script in a new process."""
    return partial(script_in_new_process, "vectors.py")


@pytest.fixture
def run(script):
    """Run the script in this process."""
    return partial(script, "vectors.py")


@pytest.fixture(autouse=True)
def text(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(TEXT)
    return path


def test_inspect_summarises_a_file(new_process, tmp_path):
    code, out, errors = new_process("inspect", "vectors.txt", "--json", "out.json")
    assert (code, errors) == (0, "")
    assert out.splitlines() == [
        "source       vectors.txt",
        "format       glove",
        "words        4",
        "dimension    2",
        "duplicates   1",
        "not UTF-8    0",
        "first words  'the' 'Oslo' 'b2' 'b0'",
        "norms        min 0.5, mean 2.125, max 5",
        "as float32   0.0 MiB",
        "as float16   0.0 MiB",
    ]
    figures = json.loads((tmp_path / "out.json").read_text())
    assert figures == {
        "source": "vectors.txt",
        "format": "glove",
        "words": 4,
        "dim": 2,
        "duplicates": 1,
        "undecodable": 0,
        "first": ["the", "Oslo", "b2", "b0"],
        "norms": {"min": 0.5, "mean": 2.125, "max": 5.0},
    }


def test_memory_is_printed_in_mebibytes(run, tmp_path):
    rest = " ".join(["0.5"] * 1024)
    (tmp_path / "large.txt").write_text("".join(f"w{number} {rest}\n" for number in range(512)))
    lines = ok(run("inspect", "large.txt")).splitlines()
    assert lines[-2:] == ["as float32   2.0 MiB", "as float16   1.0 MiB"]


def test_conversion_through_every_format_is_lossless(run, tmp_path):
    before = "vectors.txt"
    for format in ("word2vec", "word2vec-binary", "safetensors", "fasttext", "glove"):
        out = ok(run("convert", before, "--to", format, "--output", f"by_{format}"))
        duplicates = 1 if before == "vectors.txt" else 0
        assert out.splitlines()[0] == f"kept: 4 words of dimension 2, {duplicates} duplicates left out"
        before = f"by_{format}"
        assert f"format       {'word2vec' if format == 'fasttext' else format}" in ok(run("inspect", before))
    assert (tmp_path / "by_glove").read_text() == "the 1 0\nOslo 0 2\nb2 3 4\nb0 0.5 0\n"
    assert sorted(path.name for path in (tmp_path / "by_safetensors").iterdir()) == [
        "vectors.safetensors",
        "vocabulary.txt",
    ]


def test_words_are_filtered_by_options(run, tmp_path):
    (tmp_path / "words.txt").write_text("B7\nThe\n")
    (tmp_path / "train.conll").write_text("OSLO O\nOslo O\n")
    for name, options, kept in (
        ("list", ["--vocab", "words.txt"], ["the", "b0"]),
        ("corpus", ["--vocab", "train.conll"], ["Oslo"]),
        ("folder", ["--vocab", "train.conll", "--data_dir", tmp_path], ["Oslo"]),
        ("frequent", ["--most_frequent", "2"], ["the", "Oslo"]),
        ("both", ["--most_frequent", "2", "--vocab", "words.txt"], ["the", "Oslo", "b0"]),
    ):
        ok(run("convert", "vectors.txt", "--to", "safetensors", "--output", name, *options))
        assert read_vectors(tmp_path / name).words == kept


def test_half_precision_is_written_with_half(run, tmp_path):
    from safetensors.numpy import load_file

    ok(run("convert", "vectors.txt", "--to", "safetensors", "--output", "out", "--half"))
    assert load_file(tmp_path / "out" / "vectors.safetensors")["vectors"].dtype == np.float16


def test_files_are_not_overwritten_by_default(run, text):
    arguments = ["convert", "nowhere.txt", "--to", "word2vec", "--output", "vectors.txt"]
    # Reported before the source is read, which may take minutes.
    sentence = "hf-xorner vectors: vectors.txt: exists already; choose another place to write to, or set overwrite."
    assert fault(run(*arguments)) == sentence
    assert text.read_text() == TEXT
    text.rename("other.txt")
    text.write_text("old")
    arguments[1] = "other.txt"
    ok(run(*arguments, "--overwrite"))
    assert text.read_text().startswith("4 2\n")


def test_the_format_of_the_source_can_be_given(run, text):
    text.write_text("2 1\n3 4\n")
    assert "words        2" in ok(run("inspect", "vectors.txt", "--format", "glove"))
    assert fault(run("inspect", "vectors.txt")).startswith(
        "hf-xorner vectors: vectors.txt:2: the file ends after 1 of the 2"
    )


def test_a_bar_is_shown_with_progress(run):
    assert run("inspect", "vectors.txt")[2] == ""
    code, out, errors = run("inspect", "vectors.txt")
    assert (code, out[:6]) == (0, "source")
    assert "reading: 100%" in errors


def test_a_new_process_prints_a_one_line_error(new_process, text):
    text.write_text("a 1 2\nb 1\n")
    sentence = fault(new_process("convert", "vectors.txt", "--to", "safetensors", "--output", "out"))
    assert sentence == "hf-xorner vectors: vectors.txt:2: 1 number where the others have 2; correct or remove the line."
    assert not (text.parent / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "nowhere"], "nowhere: there is no such file; give a path, archive.zip:part, or owner/name:file "
         "for one on the Hub."),
        (["convert", "vectors.txt", "--to", "text", "--output", "x"], "format='text' cannot be written; choose one of "
         "glove, word2vec, fasttext, word2vec-binary, safetensors."),
        (["convert", "vectors.txt", "--to", "glove", "--output", "x", "--most_frequent", "0"], "most_frequent=0 keeps "
         "nothing; give a number from 1, or leave it out."),
    ],
)  # fmt: skip
def test_errors_are_one_line(run, arguments, message):
    assert fault(run(*arguments)) == f"hf-xorner vectors: {message}"


def test_coverage_reports_each_fallback_step(run, tmp_path):
    (tmp_path / "train.conll").write_text("the\tO\nOSLO\tO\nB7\tO\nThe\tO\nx\tO\n")
    out = ok(run("coverage", "vectors.txt", "--vocab", "train.conll", "--fallback", "lower", "lower_zero"))
    assert [line.split() for line in out.split("\n")[2:7]] == [
        ["exact", "20.00", "20.00"],
        ["folded", "0.00", "0.00"],
        ["lower", "20.00", "20.00"],
        ["lower_zero", "20.00", "20.00"],
        ["none", "40.00", "40.00"],
    ]


@pytest.fixture
def encoder(tmp_path):
    """A tiny encoder, whose folder stands beside a list of words."""
    tiny.save_encoder(tmp_path / "encoder")
    (tmp_path / "words.txt").write_text("oslo\nrains\na\nrain\n")
    return read_encoder(str(tmp_path / "encoder"))


OPTIONS = ["--encoder", "encoder", "--vocab", "words.txt", "--dim", 3, "--layers", 1, 2]


def test_distilled_vectors_match_the_library(run, encoder, tmp_path):
    out = ok(run("distill", *OPTIONS, "--output", "out"))
    assert out.startswith("distilled: 4 words of dimension 3\n")
    vectors = read_vectors(tmp_path / "out")
    assert vectors.words == ["oslo", "rains", "a", "rain"]
    states = encode_words(vectors.words, encoder, [1, 2])
    assert np.array_equal(vectors.matrix, Reduction.of(states, 3)(states))
    code, _, errors = run("distill", *OPTIONS, "--output", "out")
    assert code == 1
    assert errors.strip().split("\n")[-1].startswith("hf-xorner vectors: ")


@pytest.mark.parametrize("half", [False, True])
def test_composed_vectors_match_the_library(run, encoder, tmp_path, half):
    options = [*OPTIONS, "--composed", "true", "--output", "out", "--half", str(half).lower()]
    out = ok(run("distill", *options))
    assert out.splitlines() == [
        f"distilled: {len(tiny.BERT_PIECES):,} pieces of dimension 3",
        "written: out/composed.safetensors",
        "written: out/piece_tokenizer.json",
    ]
    found = read_composition(tmp_path / "out")
    expected = compose(["oslo", "rains", "a", "rain"], encoder, 3, [1, 2])
    assert found.vectors.dtype == (np.float16 if half else np.float32)
    assert np.array_equal(found.vectors, expected.vectors.astype(found.vectors.dtype))
    assert np.array_equal(found.mix, expected.mix) and np.array_equal(found.bias, expected.bias)
    assert found.pieces.to_str() == expected.pieces.to_str()
    # Reported before anything is encoded.
    options[options.index("encoder")] = "nowhere"
    sentence = "out/composed.safetensors: exists already; choose another place to write to, or set overwrite."
    assert fault(run("distill", *options)) == f"hf-xorner vectors: {sentence}"
    options[options.index("nowhere")] = "encoder"
    ok(run("distill", *options, "--overwrite"))


def test_progress_and_errors_of_composing(run, encoder):
    code, _, errors = run("distill", *OPTIONS, "--composed", "--output", "out", "--progress")
    assert code == 0
    assert errors.count("encoding: 100%") >= 2
    options = [*OPTIONS, "--composed", "--output", "other"]
    options[options.index(3)] = 9
    sentence = "dim=9: the encoder's vectors have 8 dimensions; give 1 to 8."
    assert fault(run("distill", *options)) == f"hf-xorner vectors: {sentence}"


def test_files_are_joined(new_process, tmp_path):
    (tmp_path / "more.vec").write_text("2 1\noslo 3\nof -4\n")
    code, out, errors = new_process("join", "vectors.txt", "more.vec", "--fallback", "lower", "--output", "both")
    assert (code, errors) == (0, "")
    assert out.splitlines()[0] == "joined: 6 words of dimension 2 + 1"
    joined = read_vectors(tmp_path / "both")
    assert joined.words == ["the", "Oslo", "b2", "b0", "oslo", "of"]
    first = np.array([[1, 0], [0, 2], [3, 4], [0.5, 0], [0, 0], [0, 0]]) / np.sqrt((1 + 4 + 9 + 16 + 0.25) / 8)
    second = np.array([0, 3, 0, 0, 3, -4])[:, None] / np.sqrt(25 / 2)
    np.testing.assert_allclose(joined.matrix, np.hstack([first, second]), rtol=1e-6)


def test_joining_requires_two_files_and_overwrites_none(run, tmp_path):
    assert "one source of vectors" in fault(run("join", "vectors.txt", "--output", "both"))
    assert not (tmp_path / "both").exists()
    line = fault(run("join", "vectors.txt", "vectors.txt", "--output", "vectors.txt", "--to", "glove"))
    assert "vectors.txt" in line and (tmp_path / "vectors.txt").read_text() == TEXT


def test_the_input_is_never_the_output(run, text, tmp_path):
    ok(run("convert", text, "--to", "safetensors", "--output", "table"))
    link, tensors, words = tmp_path / "link.txt", tmp_path / "table" / "vectors.safetensors", tmp_path / "words.txt"
    link.symlink_to(text)
    words.write_text("Oslo\n")
    encoder = tmp_path / "encoder"
    tiny.save_encoder(encoder)
    pieces = encoder / "tokenizer.json"
    before = {path: path.read_bytes() for path in (text, tensors, words, pieces)}
    replace = ("--overwrite", "true")
    for arguments in (
        ("convert", text, "--to", "glove", "--output", "link.txt"),
        ("convert", text, "--to", "glove", "--output", words, "--vocab", "words.txt"),
        ("convert", "table", "--to", "safetensors", "--output", tmp_path / "table"),
        ("convert", tensors, "--to", "glove", "--output", "table/vocabulary.txt"),
        ("join", text, "table", "--output", "table"),
        ("join", text, text, "--to", "word2vec", "--output", "./vectors.txt"),
        ("distill", "--encoder", encoder, "--vocab", words, "--to", "glove", "--output", "words.txt"),
        ("distill", "--encoder", encoder, "--vocab", words, "--to", "glove", "--output", pieces),
    ):
        assert "is an input" in fault(run(*arguments, *replace)), arguments
    assert "is an input" in fault(run("inspect", text, "--json", "link.txt"))
    assert {path: path.read_bytes() for path in before} == before
