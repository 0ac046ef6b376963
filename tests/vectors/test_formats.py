"""Reading word vectors from text and safetensors, writing safetensors, and errors."""

import gzip
import pickle
import random
import re
import zipfile

import helpers
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors.numpy import load_file, save_file

from hf_xorner.errors import DataError
from hf_xorner.vectors import formats
from hf_xorner.vectors.formats import VECTOR_FILES, Vectors, check_targets, read_vectors, write_vectors

WORDS = ["the", "Oslo", "naïve", "1984"]
MATRIX = np.array([[0.5, -1, 0.25], [1e-3, 2.5, -0.125], [0, 0, 0], [0.1, 3.4e38, -1e-30]], dtype=np.float32)
LINES = [f"{word} {' '.join(map(repr, row))}" for word, row in zip(WORDS, MATRIX.tolist(), strict=True)]
GLOVE = "".join(f"{line}\n" for line in LINES).encode()
TEXTS = {
    "glove": GLOVE,
    "word2vec": b"4 3\n" + GLOVE,
    # fastText leaves a blank at the end of every line.
    "fasttext": b"4 3\n" + "".join(f"{line} \n" for line in LINES).encode(),
}


@pytest.fixture
def write(tmp_path):
    def write(content, name="vectors.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture(autouse=True)
def downloads(monkeypatch):
    """The downloads from the Hub, as (repository, file, kind); those of files in the dictionary succeed."""
    calls, files = [], {}

    def download(repo, file, repo_type):
        calls.append((repo, file, repo_type))
        return str(files[file])

    monkeypatch.setattr(formats, "hf_hub_download", download)
    download.calls, download.files = calls, files
    return download


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def assert_is(vectors, words=WORDS, matrix=MATRIX):
    assert vectors.words == words
    assert vectors.matrix.dtype == np.float32
    assert np.array_equal(vectors.matrix, matrix)


# --- Text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TEXTS)
def test_text_is_read_plain_and_packed(write, tmp_path, kind):
    text = TEXTS[kind]
    archive = zipped(tmp_path / "a.zip", {"in/x.vec": text, "y.txt": "a 1\n"})
    sources = [write(text), write(gzip.compress(text), "v.gz"), f"{archive}:in/x.vec"]
    for source in [*sources, zipped(tmp_path / "single.zip", {"x": text})]:
        assert_is(read_vectors(source))


@pytest.mark.parametrize("header", ["", "3 2\n", "\ufeff", "\n"])
@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("a 1 2.5 \t \r", "a"),
        ("a\t1\t2.5", "a"),
        ("a  1   2.5", "a"),
        (" a 1 2.5", "a"),
        (" 1 2.5", ""),
        (". . . 1 2.5", ". . ."),
        ("at name@domain.example 1 2.5", "at name@domain.example"),
        ("area 51 1 2.5", "area 51"),
        ("0.5 1 2.5", "0.5"),
        ("1\u00a0000 1 2.5", "1\u00a0000"),
        ('"a 1 2.5', '"a'),
        ("# 1 2.5", "#"),
        ("a +1. 25e-1", "a"),
    ],
)
def test_unusual_lines_are_read(write, header, line, word):
    vectors = read_vectors(write(f"{header}first -1 1\n{line}\nlast 0.5 0.25\n"))
    assert vectors.words == ["first", word, "last"]
    assert vectors.matrix.tolist() == [[-1, 1], [1, 2.5], [0.5, 0.25]]


# More blanks, numbers and marks than in ordinary text.
WORD = st.text(st.sampled_from("\u00a0\u0085\u2028\ufeff1.-eaß") | st.characters(codec="utf-8"), max_size=8)
NUMBER = st.floats(width=32, allow_nan=False, allow_infinity=False) | st.integers(-5, 5).map(float)


@st.composite
def random_vectors(draw):
    words = draw(st.lists(WORD, min_size=1, max_size=6, unique=True))
    shape = (len(words), draw(st.integers(1, 5)))
    return Vectors(words, draw(arrays(np.float32, shape, elements=NUMBER)))


@given(vectors=random_vectors())
def test_any_vectors_are_read_from_text(tmp_path, vectors):
    words = ["".join("_" if character in " \t\r\n\0\x0b\x0c" else character for character in w) for w in vectors.words]
    lines = [f"{word} {' '.join(map(repr, row))}" for word, row in zip(words, vectors.matrix.tolist(), strict=True)]
    (tmp_path / "x").write_bytes("\n".join([f"{len(words)} {vectors.dim}", *lines]).encode())
    read_back = read_vectors(tmp_path / "x")
    first = [row for row, word in enumerate(words) if word not in words[:row]]
    assert read_back.words == [words[row] for row in first]
    assert np.array_equal(read_back.matrix, vectors.matrix[first])


def test_the_first_of_duplicates_is_used_and_words_that_are_not_utf8_are_skipped(write, caplog):
    path = write(b"5 1\na 1\n\xe4\xbd 2\na 3\n\xc3\xa4 4\n\xe4\xbd 5\n")
    vectors = read_vectors(path)
    assert (vectors.words, vectors.matrix.tolist(), vectors.duplicates) == (["a", "ä"], [[1], [4]], 1)
    assert caplog.messages == [f"{path}: left out 2 of 5 words, which are not UTF-8"]


@pytest.mark.parametrize("kind", [*TEXTS, "tensors"])
@pytest.mark.parametrize(
    ("wanted", "most_frequent", "kept"),
    [
        ({"naïve", "the", "nowhere"}, None, [0, 2]),
        (set(), None, []),
        (None, 2, [0, 1]),
        (None, 9, [0, 1, 2, 3]),
        ({"1984"}, 2, [0, 1, 3]),
    ],
)
def test_only_wanted_words_are_kept(write, tmp_path, kind, wanted, most_frequent, kept):
    if kind == "tensors":
        source, _ = write_vectors(Vectors(WORDS, MATRIX), tmp_path / "v")
    else:
        source = write(TEXTS[kind])
    assert_is(read_vectors(source, wanted, most_frequent), [WORDS[index] for index in kept], MATRIX[kept])


def test_reading_stops_early_and_only_parses_kept_vectors(write, monkeypatch):
    monkeypatch.setattr(formats, "_BATCH", 64)
    path = write(GLOVE * 10 + b"short 1\n")
    assert len(read_vectors(path, most_frequent=3)) == 3
    with pytest.raises(DataError, match=":41: 1 numbers, but"):
        read_vectors(path, ["the", "elsewhere"])
    assert_is(read_vectors(write("a 1 2\nb x nan\n"), {"a"}), ["a"], np.array([[1, 2]]))


# --- Sources ----------------------------------------------------------------------------------------------------------


def test_hub_files_and_their_vocabulary_are_downloaded(write, tmp_path, monkeypatch, downloads):
    path = write(GLOVE)
    tensors, vocabulary = write_vectors(Vectors(WORDS, MATRIX), tmp_path / "v")
    archive = zipped(tmp_path / "a.zip", {"x": GLOVE, "y": "a 1"})
    downloads.files.update({"in/x.vec.gz": path, "v/vectors.safetensors": tensors, "v/vocabulary.txt": vocabulary})
    downloads.files["a.zip"] = archive
    for source in ("owner/name:in/x.vec.gz", "datasets/o/na-me.1:v/vectors.safetensors", "owner/name:a.zip:x"):
        assert_is(read_vectors(source))
    # What exists is not looked up on the Hub.
    (tmp_path / "owner").mkdir()
    write(GLOVE, "owner/name:y")
    monkeypatch.chdir(tmp_path)
    assert_is(read_vectors("owner/name:y"))
    assert downloads.calls == [
        ("owner/name", "in/x.vec.gz", "model"),
        ("o/na-me.1", "v/vectors.safetensors", "dataset"),
        ("o/na-me.1", "v/vocabulary.txt", "dataset"),
        ("owner/name", "a.zip", "model"),
    ]
    with pytest.raises(DataError, match="owner/name:other: cannot be downloaded from the Hub"):
        read_vectors("owner/name:other")


# --- Faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: expected lines of a word and its numbers"),
        ("a\nb\n", ":1: expected lines of a word"),
        ("a 1 2\nb 1\n", ":2: 1 numbers, but"),
        ("a 1.5 2.5\nb 1.5 2.5 3.5\n", ":2: 3 numbers, but"),
        ("a 1 2\nb 1 x\n", ":2: could not convert string 'x'"),
        ("".join(f"w{number} 1 2\n" for number in range(5000)) + "w 1 y\n", ":5001: could not convert string 'y'"),
        (b"a 1 2\nb 1 \xff\n", ":2: "),
        ("a 1 2\nb 1 nan\n", ": the vector of 'b' has a number that is NaN or infinite"),
        ("a 1 2\nb 1 1e39\n", ": the vector of 'b' has"),
        ("2000000000 2\na 1 2\nb 3 4\n", ":1: announces 2000000000 words, but 2 follow; download"),
    ],
    ids=range(10),
)
def test_invalid_text_raises_with_file_and_line(write, content, message):
    path = write(content)
    with pytest.raises(DataError, match=re.escape(f"{path}{message}")):
        read_vectors(path)


def test_pickles_and_binary_formats_are_never_loaded(write, tmp_path):
    contents = [
        pickle.dumps(helpers.Trap(tmp_path / "trace"), protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ]
    contents += [gzip.compress(contents[-1]), b"2 3\nab " + MATRIX.tobytes(), "a 1 2\n".encode("utf-16")]
    for content in contents:
        for path in (write(content, "x.kv"), zipped(tmp_path / "x.zip", {"archive/data.pkl": content})):
            with pytest.raises(DataError):
                read_vectors(path)
    with pytest.raises(DataError, match=r"is not text; export the vectors as text"):
        read_vectors(write(contents[-1]))
    assert not (tmp_path / "trace").exists()


def damaged(content):
    """Content that ends early, and with bytes in the middle replaced."""
    middle = len(content) // 2
    return content[:-30], content[:middle] + bytes(50) + content[middle + 50 :]


TEXT = "".join(f"w{number} {byte}\n" for number, byte in enumerate(random.Random(0).randbytes(20_000))).encode()


def test_damaged_gzip_files_raise(write):
    for content in damaged(gzip.compress(TEXT)):
        with pytest.raises(DataError, match=r"x\.gz: .*(damaged|cannot be unpacked)"):
            read_vectors(write(content, "x.gz"))


def test_damaged_and_encrypted_archives_raise(write, tmp_path):
    archive = zipped(tmp_path / "x.zip", {"x.txt": TEXT}).read_bytes()
    # The flag of an encrypted member, in the archive's directory and in the member's header.
    encrypted = bytearray(archive)
    encrypted[archive.index(b"PK\x01\x02") + 8] |= 1
    encrypted[6] |= 1
    for content in (*damaged(archive), bytes(encrypted)):
        with pytest.raises(DataError, match=r"x\.zip: cannot be unpacked"):
            read_vectors(write(content, "x.zip"))


def test_a_member_of_an_archive_of_several_must_be_named(tmp_path):
    several = zipped(tmp_path / "several.zip", {"a.txt": TEXT, "b.txt": TEXT})
    for source in (several, f"{several}:c.txt"):
        with pytest.raises(DataError, match=r"name a member as several\.zip:member; the archive has a\.txt, b\.txt"):
            read_vectors(source)


# --- Safetensors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_written_vectors_are_read_back_bit_identical(tmp_path, dtype):
    words = ["a b", "ß\u00a0", "\u2028", "", "c\rd\r"]
    finite = [[0.1, -0.0], [1e-45, 65504], [1e-5, 16777216], [1, 2], [3, 4]]
    with np.errstate(over="ignore"):
        matrix = np.nan_to_num(np.array(finite).astype(dtype), posinf=65504)
    written = write_vectors(Vectors(words, np.asfortranarray(matrix)), tmp_path / "deep" / "v")
    assert [path.name for path in written] == list(VECTOR_FILES)
    assert load_file(written[0])["vectors"].dtype == dtype
    for source in (tmp_path / "deep" / "v", written[0]):
        vectors = read_vectors(source)
        assert vectors.words == words
        # Compared as bits, so that the sign of a zero counts.
        assert np.array_equal(vectors.matrix.view(np.uint32), matrix.astype(np.float32).view(np.uint32))


OTHER = Vectors(["other"], np.ones((1, 2), np.float32))


def test_files_are_overwritten_only_on_request(tmp_path):
    write_vectors(Vectors(WORDS, MATRIX), tmp_path)
    with pytest.raises(DataError, match=r"vectors\.safetensors: exists already"):
        write_vectors(OTHER, tmp_path)
    assert_is(read_vectors(tmp_path))
    write_vectors(OTHER, tmp_path, overwrite=True)
    assert_is(read_vectors(tmp_path), OTHER.words, OTHER.matrix)


def test_an_input_is_not_overwritten(tmp_path):
    write_vectors(OTHER, tmp_path)
    with pytest.raises(DataError, match="is an input"):
        check_targets(tmp_path, VECTOR_FILES, True, [str(tmp_path)])


def test_words_with_line_breaks_are_refused(tmp_path):
    with pytest.raises(DataError, match="a word contains a line break"):
        write_vectors(Vectors(["a\nb"], MATRIX[:1]), tmp_path)


def test_a_failed_write_leaves_no_vectors_with_the_words_of_others(tmp_path, monkeypatch):
    write_vectors(Vectors(WORDS, MATRIX), tmp_path / "v")
    with monkeypatch.context() as patch:
        patch.setattr(formats, "save", lambda tensors: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_vectors(Vectors(["b", "c", "d", "e"], MATRIX), tmp_path / "v", overwrite=True)
    with pytest.raises(DataError, match=r"v/vectors\.safetensors"):
        read_vectors(tmp_path / "v")


INFINITE = {"vectors": np.where(MATRIX == 2.5, np.inf, MATRIX)}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda tensors, _: tensors.write_bytes(tensors.read_bytes()[:-1]), "vectors.safetensors: is not a tensor"),
        (lambda tensors, _: save_file({"x": MATRIX}, tensors), "vectors.safetensors: is not"),
        (lambda _, vocabulary: vocabulary.unlink(), "vectors.safetensors: is not"),
        (lambda _, vocabulary: vocabulary.write_text("a\nb\n"), "vocabulary.txt: 2 words for 4 vectors"),
        (lambda tensors, _: save_file(INFINITE, tensors), "the vector of 'Oslo' has a number that is NaN"),
    ],
    ids=["short", "name", "no words", "few words", "infinite"],
)
def test_faulty_tensors_raise(tmp_path, spoil, message):
    spoil(*write_vectors(Vectors(WORDS, MATRIX), tmp_path))
    with pytest.raises(DataError, match=re.escape(message)):
        read_vectors(tmp_path)
