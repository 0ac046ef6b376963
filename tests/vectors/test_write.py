import gzip
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors.numpy import load_file
from vector_samples import MATRIX, WORDS, binary, glove, word2vec

from hf_xorner.corpora import DataError
from hf_xorner.vectors import write as vector_writing
from hf_xorner.vectors.formats import VECTOR_FORMATS, Vectors, read_vectors
from hf_xorner.vectors.write import check_target, write_vectors

SAMPLE = Vectors(WORDS, MATRIX)
FINITE = np.array([[0.1, -0.0], [1e-45, 3.4028235e38], [1e-5, 16777216]], dtype=np.float32)


def name_of(format):
    return "out" if format == "safetensors" else "out.txt"


def assert_same(found, expected):
    assert found.words == expected.words
    assert found.matrix.dtype == np.float32
    # Compared as bits, so that the sign of a zero counts.
    assert (found.matrix.view(np.uint32) == expected.matrix.astype(np.float32).view(np.uint32)).all()


@pytest.mark.parametrize("format", VECTOR_FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_written_vectors_are_read_back_bit_identical(tmp_path, format, dtype):
    with np.errstate(over="ignore"):
        matrix = np.nan_to_num(FINITE.astype(dtype), posinf=65504)
    vectors = Vectors(["a", "ß\u00a0", "\u2028"], matrix)
    paths = write_vectors(vectors, tmp_path / "deep" / name_of(format), format)
    assert all(path.is_file() for path in paths)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(paths)
    assert_same(read_vectors(tmp_path / "deep" / name_of(format)), vectors)
    assert_same(read_vectors(paths[0], format=format), vectors)


def test_written_bytes_match_the_formats(tmp_path):
    path = tmp_path / "x"
    write_vectors(SAMPLE, path, "word2vec-binary")
    assert path.read_bytes() == binary()
    for format, content in (("glove", glove()), ("word2vec", word2vec()), ("fasttext", word2vec())):
        write_vectors(SAMPLE, path, format, overwrite=True)
        fields = [line.split(" ") for line in path.read_text().splitlines()]
        expected = [line.split(" ") for line in content.decode().splitlines()]
        assert [line[0] for line in fields] == [line[0] for line in expected]
        assert [list(map(np.float32, line[1:])) for line in fields] == [
            list(map(np.float32, line[1:])) for line in expected
        ]
    assert [path.name for path in write_vectors(SAMPLE, tmp_path / "s")] == ["vectors.safetensors", "vocabulary.txt"]
    assert (load_file(tmp_path / "s" / "vectors.safetensors")["vectors"] == MATRIX).all()
    assert (tmp_path / "s" / "vocabulary.txt").read_bytes() == "the\nOslo\nnaïve\n1984\n".encode()


def test_half_precision_is_preserved(tmp_path):
    half = Vectors(WORDS[:3], MATRIX[:3].astype(np.float16))
    path, _ = write_vectors(half, tmp_path / "half")
    assert load_file(path)["vectors"].dtype == np.float16
    assert read_vectors(tmp_path / "half", dtype=np.float16).matrix.dtype == np.float16


@pytest.mark.parametrize("format", VECTOR_FORMATS[:4])
def test_compression_is_chosen_by_file_name(tmp_path, format):
    first, second = (write_vectors(SAMPLE, tmp_path / name, format)[0] for name in ("x.GZ", "y.gz"))
    write_vectors(SAMPLE, tmp_path / "plain", format)
    assert gzip.decompress(first.read_bytes()) == (tmp_path / "plain").read_bytes()
    assert first.read_bytes() == second.read_bytes()
    assert_same(read_vectors(first), SAMPLE)


@pytest.mark.parametrize("format", ["glove", "word2vec", "fasttext", "word2vec-binary"])
def test_written_files_are_read_by_gensim(tmp_path, format):
    gensim = pytest.importorskip("gensim.models")
    words = [f"w\u00a0{number}ß" for number in range(200)]
    matrix = np.random.default_rng(5).normal(size=(200, 300)).astype(np.float32)
    (path,) = write_vectors(Vectors(words, matrix), tmp_path / "x", format)
    keyed = gensim.KeyedVectors.load_word2vec_format(
        path, binary=format == "word2vec-binary", no_header=format == "glove"
    )
    assert keyed.index_to_key == words
    assert (keyed.vectors == matrix).all()


@pytest.mark.parametrize("format", VECTOR_FORMATS)
def test_many_blocks_are_written_to_one_file(tmp_path, monkeypatch, format):
    monkeypatch.setattr(vector_writing, "_BLOCK", 50)
    matrix = np.random.default_rng(0).normal(size=(1000, 7)).astype(np.float32)
    vectors = Vectors([f"w{number}" for number in range(1000)], matrix)
    write_vectors(vectors, tmp_path / "x", format)
    assert_same(read_vectors(tmp_path / "x"), vectors)


# More spaces, line breaks, numbers and marks than in ordinary text.
WORD = st.text(st.sampled_from(" \t\r\n\u00a0\u0085\u2028\ufeff\x1c1.-eaß") | st.characters(codec="utf-8"), max_size=8)
NUMBER = st.floats(width=32, allow_nan=False, allow_infinity=False) | st.integers(-5, 5).map(float)


@st.composite
def some_vectors(draw):
    words = draw(st.lists(WORD, min_size=1, max_size=6, unique=True))
    shape = (len(words), draw(st.integers(1, 5)))
    return Vectors(words, draw(arrays(np.float32, shape, elements=NUMBER)))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(vectors=some_vectors(), half=st.booleans())
@pytest.mark.parametrize("format", VECTOR_FORMATS)
def test_any_vectors_round_trip(tmp_path, format, vectors, half):
    if half:
        with np.errstate(over="ignore"):
            vectors = Vectors(vectors.words, np.nan_to_num(vectors.matrix.astype(np.float16)))
    path = tmp_path / "x"
    try:
        write_vectors(vectors, path, format, overwrite=True)
    except DataError as error:
        assert "cannot hold the word" in str(error) or "would be taken for a header" in str(error)
        return
    assert_same(read_vectors(path, format=format), vectors)
    # A short binary vector may happen to consist of letters.
    if format != "word2vec-binary":
        assert_same(read_vectors(path), vectors)


@pytest.mark.parametrize("format", VECTOR_FORMATS)
@pytest.mark.parametrize(
    "word", ["a b", ". . .", "", "1984", "1\u00a0000", "a\u0085b", "\u3000", '"', "#", "a\rb", "ä"]
)
def test_unusual_words_can_be_written(tmp_path, format, word):
    if format == "word2vec-binary":
        # Its words end with a blank.
        word = word.replace(" ", "_")
    vectors = Vectors(["first", word], MATRIX[:2])
    write_vectors(vectors, tmp_path / "x", format)
    assert_same(read_vectors(tmp_path / "x"), vectors)


# --- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "word", "message"),
    [
        ("glove", "a\nb", "glove cannot hold the word 'a\\nb', which holds a line break; remove it."),
        ("word2vec", " a", "word2vec cannot hold the word ' a', which begins or ends with a blank; remove it."),
        ("fasttext", "a\t", "fasttext cannot hold the word 'a\\t', which begins or ends with a blank; remove it."),
        ("glove", "a 1.5 b", "glove cannot hold the word 'a 1.5 b', which holds a number after a blank; remove it."),
        ("glove", "\ufeffa", "glove cannot hold the word '\\ufeffa', which begins with a byte-order mark; remove it."),
        ("word2vec-binary", "a b", "word2vec-binary cannot hold the word 'a b', which holds a blank; remove it."),
        ("word2vec-binary", "\na", "word2vec-binary cannot hold the word '\\na', which begins with a line break; "
         "remove it."),
        ("safetensors", "a\nb", "safetensors cannot hold the word 'a\\nb', which holds a line break; remove it."),
        ("safetensors", "a\r", "safetensors cannot hold the word 'a\\r', which holds a line break; remove it."),
        ("safetensors", "\ud800", "safetensors cannot hold the word '\\ud800', which holds half a surrogate pair; "
         "remove it."),
    ],
)  # fmt: skip
def test_words_that_a_format_cannot_hold_raise(tmp_path, format, word, message):
    with pytest.raises(DataError) as error:
        write_vectors(Vectors([word], MATRIX[:1]), tmp_path / "x", format)
    assert str(error.value) == f"{tmp_path / 'x'}: {message}"
    assert list(tmp_path.iterdir()) == []


def test_a_line_like_a_header_raises(tmp_path):
    vectors = Vectors(["5", "b"], np.array([[3], [0.5]], np.float32))
    with pytest.raises(DataError, match=r"the first line would be taken for a header; write word2vec, which has one\."):
        write_vectors(vectors, tmp_path / "x", "glove")
    write_vectors(vectors, tmp_path / "x", "word2vec")
    assert_same(read_vectors(tmp_path / "x"), vectors)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (Vectors([], MATRIX[:0]), "there is nothing to write, as no word was kept, or the dimension is 0."),
        (Vectors(["a"], MATRIX[:1, :0]), "there is nothing to write, as no word was kept, or the dimension is 0."),
        (Vectors(["a", "a"], MATRIX[:2]), "a word has several vectors; give every word one."),
        (
            Vectors(["a", "b"], np.array([[1], [np.nan]], np.float32)),
            "the vector of 'b' holds a number that is NaN or infinite; correct it.",
        ),
        (
            Vectors(["a", "b"], np.array([[-np.inf], [1]], np.float16)),
            "the vector of 'a' holds a number that is NaN or infinite; correct it.",
        ),
    ],
)
@pytest.mark.parametrize("format", VECTOR_FORMATS)
def test_vectors_that_cannot_be_written_raise(tmp_path, format, vectors, message):
    with pytest.raises(DataError) as error:
        write_vectors(vectors, tmp_path / "x", format)
    assert str(error.value) == f"{tmp_path / 'x'}: {message}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", VECTOR_FORMATS)
def test_files_are_overwritten_only_on_request(tmp_path, format):
    path = tmp_path / "x"
    written = write_vectors(SAMPLE, path, format)
    before = [file.read_bytes() for file in written]
    other = Vectors(["other"], np.ones((1, 2), np.float32))
    for refuse in (lambda: write_vectors(other, path, format), lambda: check_target(path, format)):
        with pytest.raises(DataError) as error:
            refuse()
        assert str(error.value) == (
            f"{written[0]}: exists already; choose another place to write to, or set overwrite."
        )
    assert [file.read_bytes() for file in written] == before
    assert write_vectors(other, path, format, overwrite=True) == written
    assert_same(read_vectors(path), other)


@pytest.mark.parametrize("format", VECTOR_FORMATS)
@pytest.mark.parametrize("at", ["hf_xorner.vectors.write._write", "os.replace"])
def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch, format, at):
    path = tmp_path / "x"
    written = write_vectors(SAMPLE, path, format)
    before = [file.read_bytes() for file in written]

    def fail(*arguments, **options):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(at, fail)
        with pytest.raises(OSError, match="disk full"):
            write_vectors(Vectors(["other"], np.ones((1, 2), np.float32)), path, format, overwrite=True)
    assert sorted(file for file in tmp_path.rglob("*") if file.is_file()) in (sorted(written), written[:1])
    if at == "os.replace" and format == "safetensors":
        # Vectors without words are refused, which those of others would not be.
        with pytest.raises(DataError, match="there is no vocabulary beside the vectors"):
            read_vectors(path)
    else:
        assert [file.read_bytes() for file in written] == before


def test_file_permissions_follow_the_umask(tmp_path):
    mask = os.umask(0o027)
    try:
        written = [*write_vectors(SAMPLE, tmp_path / "s"), *write_vectors(SAMPLE, tmp_path / "g", "glove")]
    finally:
        os.umask(mask)
    assert {file.stat().st_mode & 0o777 for file in written} == {0o640}


def test_unwritable_paths_raise(tmp_path):
    (tmp_path / "file").touch()
    for path, format, message in (
        (tmp_path, "glove", "is a folder; name a file to write glove into."),
        (tmp_path / "file", "safetensors", "is not a folder; name one"),
        (
            tmp_path / "x.safetensors",
            "safetensors",
            "is not a folder; name one to write safetensors and vocabulary into.",
        ),
    ):
        with pytest.raises(DataError) as error:
            write_vectors(SAMPLE, path, format, overwrite=True)
        assert str(error.value).startswith(f"{path}: {message}")
    with pytest.raises(DataError) as error:
        write_vectors(SAMPLE, tmp_path / "x", "text")
    assert str(error.value) == (
        "format='text' cannot be written; choose one of glove, word2vec, fasttext, word2vec-binary, safetensors."
    )
