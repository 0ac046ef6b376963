"""Reading word vectors: formats, sources and errors."""

import gzip
import json
import pickle
import random
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from vector_samples import LINES, MATRIX, WORDS, binary, fasttext, glove, word2vec, write_tensors, zipped

from hf_xorner.corpora import DataError
from hf_xorner.vectors import formats as vector_formats
from hf_xorner.vectors import sources as vector_sources
from hf_xorner.vectors import text as vector_text
from hf_xorner.vectors.formats import VECTOR_FORMATS, Vectors, inspect_vectors, read_vectors
from hf_xorner.vectors.text import parse_numbers

FILES = {
    "glove": ("glove", "vectors.txt", glove()),
    "word2vec": ("word2vec", "vectors.txt", word2vec()),
    "fasttext": ("fasttext", "vectors.vec", fasttext()),
    "word2vec-binary": ("word2vec-binary", "vectors.bin", binary()),
    "word2vec-binary without line breaks": ("word2vec-binary", "vectors.bin", binary(line_end=b"")),
}


@pytest.fixture
def small_reads(monkeypatch):
    """Set how many bytes are read at a time."""

    def set_size(size):
        for module in (vector_formats, vector_sources, vector_text):
            monkeypatch.setattr(module, "READ_SIZE", size)

    return set_size


@pytest.fixture
def write(tmp_path):
    def write(content, name="vectors.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def tensors(tmp_path):
    return partial(write_tensors, tmp_path)


@pytest.fixture(autouse=True)
def no_hub(monkeypatch):
    def download(*asked):
        raise AssertionError(f"{asked} was asked of the Hub")

    monkeypatch.setattr(vector_sources, "download", download)


def assert_is(found, words=WORDS, matrix=MATRIX):
    assert found.words == words
    assert found.matrix.dtype == np.float32
    assert found.matrix.shape == matrix.shape
    assert (found.matrix == matrix).all()


def read_one(path, **options):
    """The words and rows of a file, as lists."""
    found = read_vectors(path, **options)
    return found.words, found.matrix.tolist()


# --- Formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("packing", ["plain", "gzip", "zip", "gzip in zip"])
def test_every_format_is_recognised(write, tmp_path, kind, packing):
    format, name, content = FILES[kind]
    if packing.startswith("gzip"):
        name, content = f"{name}.gz", gzip.compress(content)
    if packing.endswith("zip") and packing != "gzip":
        path = zipped(tmp_path / "packed.zip", {f"in/{name}": content})
        label = f"{path}:in/{name}"
    else:
        path = write(content, name)
        label = str(path)
    found = read_vectors(path)
    assert_is(found)
    assert (found.words_in_file, found.duplicates, found.undecodable) == (4, 0, 0)
    summary = inspect_vectors(path)
    assert (summary.format, summary.source, summary.words, summary.dim) == (format, label, 4, 3)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("name", ["x", "x.bin", "x.txt"])
def test_formats_are_recognised_whatever_the_file_name(write, kind, name):
    assert_is(read_vectors(write(FILES[kind][2], name)))


@pytest.mark.parametrize("type_", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocabulary.txt", "the\nOslo\nnaïve\n1984\n"),
        ("vocabulary.txt", "\ufeffthe\r\nOslo\r\nnaïve\r\n1984"),
        ("vocab.txt", "the\nOslo\nnaïve\n1984"),
        ("vocabulary.json", '["the", "Oslo", "na\\u00efve", "1984"]'),
        ("vocab.json", '{"1984": 3, "Oslo": 1, "naïve": 2, "the": 0}'),
    ],
)
def test_tensors_are_read_with_the_vocabulary_in_their_folder(tensors, type_, name, content):
    matrix = (MATRIX % 1).astype(type_)
    folder = tensors(name, content, embeddings=matrix, weights=np.ones(4, np.float32))
    for source in (folder, folder / "v.safetensors"):
        assert_is(read_vectors(source), matrix=matrix.astype(np.float32))
        assert_is(read_vectors(source, {"naïve", "Oslo"}), ["Oslo", "naïve"], matrix[1:3].astype(np.float32))


def test_vocabulary_words_may_contain_anything_but_line_breaks(tensors):
    words = ["", "a b", "\u2028", "\x85"]
    assert read_vectors(tensors("vocabulary.txt", "\na b\n\u2028\n\x85\n", x=MATRIX)).words == words
    assert read_vectors(tensors("vocabulary.json", json.dumps(words), x=MATRIX)).words == words


@pytest.mark.parametrize("format", ["glove", "word2vec", "fasttext", "word2vec-binary"])
def test_files_written_by_gensim_are_read(tmp_path, format):
    gensim = pytest.importorskip("gensim.models")
    path = tmp_path / "vectors"
    keyed = gensim.KeyedVectors(300)
    words = [f"w\u00a0{number}ß" for number in range(200)]
    keyed.add_vectors(words, np.random.default_rng(5).normal(size=(200, 300)).astype(np.float32))
    keyed.save_word2vec_format(path, binary=format == "word2vec-binary", write_header=format != "glove")
    assert_is(read_vectors(path), words, keyed.vectors)
    assert inspect_vectors(path, format).format == format


def test_a_given_format_overrides_recognition(write):
    path = write("2 1\n3 4\n")
    with pytest.raises(DataError, match="the file ends after 1 of the 2 words"):
        read_vectors(path)
    assert read_one(path, format="glove") == (["2", "3"], [[1], [4]])
    path = write(b"1 1\nw 1234", "x.txt")
    assert read_one(path) == (["w"], [[1234]])
    assert read_one(path, format="word2vec-binary") == (["w"], [[np.frombuffer(b"1234", "<f4").item()]])


# --- Valid but unusual ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("a 1 2.5 ", "a"),
        ("a 1 2.5\r", "a"),
        ("a 1 2.5 \t \r", "a"),
        ("a\t1\t2.5", "a"),
        ("a\t1 2.5", "a"),
        ("a  1   2.5", "a"),
        (" a 1 2.5", "a"),
        (" 1 2.5", ""),
        ("  1 2.5", ""),
        (". . . 1 2.5", ". . ."),
        ("at name@domain.example 1 2.5", "at name@domain.example"),
        ("a\tb 1 2.5", "a\tb"),
        ("a  b 1 2.5", "a  b"),
        ("1 1 2.5", "1"),
        ("0.5 1 2.5", "0.5"),
        ("-1e5 1 2.5", "-1e5"),
        ("nan 1 2.5", "nan"),
        ("1\u00a0000 1 2.5", "1\u00a0000"),
        ("a\u0085b 1 2.5", "a\u0085b"),
        ("\u2028 1 2.5", "\u2028"),
        ("\u3000 1 2.5", "\u3000"),
        ("a\rb 1 2.5", "a\rb"),
        ("a\x0bb\x0cc\x1cd 1 2.5", "a\x0bb\x0cc\x1cd"),
        ("\ufeff 1 2.5", "\ufeff"),
        ('"a 1 2.5', '"a'),
        ("# 1 2.5", "#"),
        ("a +1 2.5", "a"),
        ("a 1. 25e-1", "a"),
        ("a 10E-1 .25e+01", "a"),
    ],
)
@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_unusual_lines_are_read(write, header, line, word):
    path = write(f"{header}first -1 1\n{line}\nlast 0.5 0.25\n")
    assert read_one(path) == (["first", word, "last"], [[-1, 1], [1, 2.5], [0.5, 0.25]])
    # Neither depends on which other words are kept.
    assert read_one(path, wanted=[word]) == ([word], [[1, 2.5]])


@pytest.mark.parametrize("line", ["a 1 2.5 ", ". . 1 2.5", " 1 2.5", "1 1 2.5", "a\t1\t2.5"])
@pytest.mark.parametrize("times", [1, 3])
def test_files_of_only_unusual_lines_are_read(write, line, times):
    found = read_vectors(write(f"{line}\n" * times))
    assert found.matrix.tolist() == [[1, 2.5]]
    assert found.duplicates == times - 1


def test_integers_belong_to_the_word_if_the_numbers_are_decimals(write):
    assert read_one(write("area 51 0.5 0.25\nb 1.5 2.5\nc 0.5 0.5\n"))[0] == ["area 51", "b", "c"]


@pytest.mark.parametrize("content", ["\ufeffa 1 2\nb 3 4\n", "\ufeff2 2\na 1 2\nb 3 4", "\n\na 1 2\n \nb 3 4\n\r\n\n"])
def test_byte_order_marks_and_empty_lines_are_skipped(write, content):
    assert read_one(write(content)) == (["a", "b"], [[1, 2], [3, 4]])


def test_the_first_of_duplicate_vectors_is_used(write, tensors):
    words = ["a", "b", "a", "a", "c", "b"]
    matrix = np.arange(12, dtype=np.float32).reshape(6, 2)
    text = "".join(f"{word} {row[0]} {row[1]}\n" for word, row in zip(words, matrix.tolist(), strict=True))
    sources = [
        write(text, "g"),
        write(f"6 2\n{text}", "w"),
        write(binary([word.encode() for word in words], matrix), "b"),
        tensors("vocabulary.txt", "\n".join(words), x=matrix),
    ]
    for source in sources:
        found = read_vectors(source)
        assert_is(found, ["a", "b", "c"], matrix[[0, 1, 4]])
        assert (found.duplicates, found.words_in_file) == (3, 6)
        assert inspect_vectors(source).duplicates == 3
        assert read_vectors(source, ["a", "c"]).duplicates == 2


@pytest.mark.parametrize("binary_file", [True, False])
def test_words_that_are_not_utf8_are_skipped_and_counted(write, caplog, binary_file):
    # Real files of fastText and word2vec hold a few of them.
    words = [b"a", b"\xe4\xbd", b"\xe4\xbd", "ä".encode()]
    lines = [word + b" " + line.partition(" ")[2].encode() for word, line in zip(words, LINES, strict=True)]
    path = write(binary(words) if binary_file else b"\n".join(lines), "x.bin")
    found = read_vectors(path)
    assert_is(found, ["a", "ä"], MATRIX[[0, 3]])
    assert (found.undecodable, found.duplicates, found.words_in_file) == (2, 0, 4)
    assert caplog.messages == [f"{path}: left out 2 of 4 words, which are not UTF-8"]
    assert inspect_vectors(path).undecodable == 2


def test_binary_words_may_contain_characters_that_text_cannot(write):
    words = ["", "a\tb", "c\nd", "\r"]
    path = write(binary([word.encode() for word in words]), "x.bin")
    assert read_vectors(path).words == words


# --- Selection of words -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize(
    ("wanted", "most_frequent", "kept", "counts_all"),
    [
        ({"naïve", "the", "nowhere"}, None, [0, 2], True),
        (["1984", "1984"], None, [3], False),
        (set(), None, [], False),
        (None, 2, [0, 1], False),
        (None, 9, [0, 1, 2, 3], True),
        ({"1984"}, 2, [0, 1, 3], False),
        ({"the"}, 2, [0, 1], False),
        ({"the": 1, "Oslo": 2}.keys(), None, [0, 1], False),
    ],
)
def test_only_wanted_words_are_kept(write, kind, wanted, most_frequent, kept, counts_all):
    path = write(FILES[kind][2], FILES[kind][1])
    found = read_vectors(path, wanted, most_frequent)
    assert_is(found, [WORDS[index] for index in kept], MATRIX[kept])
    # All words are counted if all were read, or if the header has their number.
    assert found.words_in_file == (4 if counts_all or kind != "glove" else None)


def test_reading_stops_early_if_nothing_more_is_wanted(write, small_reads):
    small_reads(64)
    path = write(glove() * 10 + b"short 1\n")
    assert len(read_vectors(path, most_frequent=3)) == 3
    assert len(read_vectors(path, ["the", "1984"])) == 2
    with pytest.raises(DataError, match=":41: 1 number where"):
        read_vectors(path, ["the", "elsewhere"])


def test_most_frequent_counts_distinct_words(write):
    assert read_one(write("a 1\na 2\nb 3\nc 4\n"), most_frequent=2) == (["a", "b"], [[1], [3]])


def test_numbers_of_skipped_words_are_not_parsed(write):
    assert read_one(write("a 1 2\nb x nan\n"), wanted={"a"}) == (["a"], [[1, 2]])


@pytest.mark.parametrize("kind", FILES)
def test_half_precision_is_kept_on_request(write, kind):
    path = write(FILES[kind][2], FILES[kind][1])
    found = read_vectors(path, ["the", "Oslo"], dtype=np.float16)
    assert found.matrix.dtype == np.float16
    assert (found.matrix == MATRIX[:2].astype(np.float16)).all()
    with pytest.raises(DataError, match=r"beyond ±65504; correct"):
        read_vectors(path, dtype="float16")


def test_vectors_validate_their_shape_and_dtype():
    vectors = Vectors(["a", "b"], np.zeros((2, 5), np.float32))
    assert (len(vectors), vectors.dim, vectors.words_in_file, vectors.duplicates) == (2, 5, None, 0)
    with pytest.raises(DataError, match=r"1 words for vectors of the shape \(2, 5\); give every word one row\."):
        Vectors(["a"], np.zeros((2, 5), np.float32))
    with pytest.raises(DataError, match=r"the vectors are float64; convert them to float32 or float16\."):
        Vectors(["a"], np.zeros((1, 5)))


def test_inspect_vectors_summarises_a_file(write):
    summary = inspect_vectors(write("".join(f"w{number} {number} 0\n" for number in range(1, 13))))
    assert summary.first == [f"w{number}" for number in range(1, 11)]
    assert (summary.words, summary.dim, summary.format) == (12, 2, "glove")
    assert summary.norms == {"min": 1, "mean": 6.5, "max": 12}


@pytest.mark.parametrize("kind", [*FILES, "safetensors"])
def test_progress_reaches_the_end(write, tensors, kind):
    calls = []
    source = tensors(x=MATRIX) / "v.safetensors" if kind == "safetensors" else write(*FILES[kind][:0:-1])
    read_vectors(source, on_progress=lambda *call: calls.append(call))
    assert calls[-1] == (source.stat().st_size,) * 2
    assert calls == sorted(calls)


# --- Sources ----------------------------------------------------------------------------------------------------------


def test_the_named_or_largest_member_of_an_archive_is_read(tmp_path, caplog, monkeypatch):
    members = {"d/s.txt": "a 1\n", "d/l.txt": "a 1 2 3 4 5\n", "__MACOSX/d/l.txt": "x" * 99, "d/m.txt": "a 1 2\n"}
    path = zipped(tmp_path / "some.zip", members)
    assert read_vectors(path).dim == 5
    assert caplog.messages == [f"{path}: reading the largest of its 3 parts; name another as some.zip:part"]
    assert read_vectors(f"{path}:d/s.txt").dim == 1
    monkeypatch.chdir(tmp_path)
    assert read_vectors("some.zip:d/m.txt").dim == 2
    with pytest.raises(DataError) as error:
        read_vectors(f"{path}:e.txt")
    assert str(error.value) == f"{path}: the archive has no part 'e.txt'; it holds d/s.txt, d/l.txt, d/m.txt."


def test_tildes_are_expanded(write, tmp_path, monkeypatch):
    write(glove())
    monkeypatch.setenv("HOME", str(tmp_path))
    assert_is(read_vectors("~/vectors.txt"))


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("owner/name:glove.6B.100d.txt", ("owner/name", "glove.6B.100d.txt", "model")),
        ("owner/name:in/x.vec.gz", ("owner/name", "in/x.vec.gz", "model")),
        ("datasets/owner/na-me.1:x.txt", ("owner/na-me.1", "x.txt", "dataset")),
    ],
)
def test_hub_files_are_downloaded(write, monkeypatch, source, asked):
    path = write(glove())
    calls = []
    monkeypatch.setattr(vector_sources, "download", lambda *call: calls.append(call) or path)
    assert_is(read_vectors(source))
    assert calls == [asked]


def test_members_of_hub_archives_are_downloaded_and_unpacked(tmp_path, monkeypatch):
    path = zipped(tmp_path / "glove.zip", {"x.txt": glove(), "larger.txt": "a 1 2\n" * 100})
    monkeypatch.setattr(vector_sources, "download", lambda *call: path)
    assert_is(read_vectors("owner/name:in/glove.zip:x.txt"))


def test_hub_tensors_are_downloaded_with_their_vocabulary(tensors, tmp_path, monkeypatch):
    folder = tensors(vocabulary=None, x=MATRIX)
    calls = []

    def download(repo, file, kind):
        calls.append((repo, file, kind))
        if file.endswith("vocabulary.json"):
            (folder / "vocabulary.json").write_text(json.dumps(WORDS))
        elif not file.endswith("v.safetensors"):
            raise DataError(f"{file}: not there.")
        return folder / Path(file).name

    monkeypatch.setattr(vector_sources, "download", download)
    assert_is(read_vectors("owner/name:in/v.safetensors"))
    assert [file for _, file, _ in calls] == ["in/v.safetensors", "in/vocabulary.txt", "in/vocabulary.json"]
    (folder / "vocabulary.json").unlink()
    monkeypatch.setattr("hf_xorner.vectors.tensors.VOCABULARIES", ("vocab.txt",))
    with pytest.raises(DataError, match=r"in/vocab\.txt: not there\."):
        read_vectors("owner/name:in/v.safetensors")


def test_existing_local_files_are_never_requested_from_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("owner").mkdir()
    Path("owner/name:x.txt").write_bytes(glove())
    zipped("owner/name", {"y.txt": glove()})
    assert_is(read_vectors("owner/name:x.txt"))
    assert_is(read_vectors("owner/name:y.txt"))


def test_hub_download_errors_are_reported(monkeypatch):
    monkeypatch.undo()

    def no_network(*asked, **options):
        raise OSError("no network\nat all")

    monkeypatch.setattr(vector_sources, "hf_hub_download", no_network)
    with pytest.raises(DataError) as error:
        read_vectors("owner/name:x.txt")
    assert str(error.value) == "owner/name:x.txt: cannot be downloaded from the Hub: no network."


@pytest.mark.parametrize("source", ["nowhere.txt", "no/where.txt", "a/b/c:d", "owner/name", Path("owner/name:x.txt")])
def test_missing_files_raise(source):
    with pytest.raises(DataError) as error:
        read_vectors(source)
    assert str(error.value) == (
        f"{source}: there is no such file; give a path, archive.zip:part, or owner/name:file for one on the Hub."
    )


# --- Reference readers ------------------------------------------------------------------------------------------------


def line_by_line(path, dim, header):
    """Words, rows and duplicates of a text, by a simple reference reader."""
    found, duplicates = {}, 0
    for line in path.read_bytes().decode().split("\n")[header:]:
        fields = line.rstrip("\r ").split(" ")
        if fields != [""]:
            word = " ".join(fields[:-dim])
            duplicates += word in found
            found.setdefault(word, [float(field) for field in fields[-dim:]])
    return list(found), np.array(list(found.values()), dtype=np.float32), duplicates


def test_reading_in_chunks_matches_reading_line_by_line(tmp_path, small_reads):
    rng = random.Random(0)
    for number in range(150):
        small_reads(rng.choice([64, 100, 333, 5000]))
        dim, count, header = rng.randint(1, 9), rng.randint(1, 60), rng.randint(0, 1)
        ends = rng.choice(["\n", "\r\n", " \n"])
        lines = []
        for _ in range(count):
            word = rng.choice(["w", "ß\u00a0", ". . ", "x\u2028"]) + rng.choice("abcdefghij") * rng.randint(1, 30)
            form = rng.choice(["%.5f", "%.2e", "%.9g", "%r"])
            lines.append(f"{word} {' '.join(form % rng.gauss(0, 1) for _ in range(dim))}")
        text = ends.join(([f"{count} {dim}"] if header else []) + lines) + rng.choice(["", ends])
        path = tmp_path / f"{number}.txt"
        path.write_bytes(text.encode())
        words, rows, duplicates = line_by_line(path, dim, header)
        found = read_vectors(path)
        assert_is(found, words, rows)
        assert (found.duplicates, found.words_in_file) == (duplicates, count)
        wanted = rng.sample(words, rng.randint(1, len(words)))
        kept = [index for index, word in enumerate(words) if word in wanted]
        assert_is(read_vectors(path, wanted), [words[index] for index in kept], rows[kept])


def test_reading_binary_files_in_chunks_matches_reading_word_by_word(tmp_path, small_reads):
    rng = np.random.default_rng(0)
    for number in range(80):
        small_reads(int(rng.choice([64, 100, 333, 5000])))
        count, dim = rng.integers(1, 60), rng.integers(2, 40)
        matrix = rng.normal(size=(count, dim)).astype(np.float32)
        words = [f"w{index}" * int(rng.integers(1, 20)) for index in range(count)]
        path = tmp_path / f"{number}.bin"
        path.write_bytes(binary([word.encode() for word in words], matrix, line_end=rng.choice([b"", b"\n"])))
        assert_is(read_vectors(path), words, matrix)


def test_numbers_are_rounded_to_the_nearest_float32():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 32, 200_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values)]
    for form in ("%.9g", "%.8e", "%.17g"):
        text = " ".join(form % value for value in values.tolist()).encode()
        assert (parse_numbers([text], len(values))[0].view(np.uint32) == values.view(np.uint32)).all()
    # Just above the middle between 1 and the next float32: rounding through float64 gives 1.
    assert parse_numbers([b"1.000000059604644775390626"], 1).item() > 1


# --- Faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: the file holds no word"),
        ("\n \t\r\n", ":1: the file holds no word"),
        ("word\nother\n", ":1: there is no number behind the word"),
        ("a 1 2\nb 1 2\nc 1\n", ":3: 1 number where the others have 2"),
        ("a 1 2\nb 1 2\n\nc\n", ":4: 0 numbers where the others have 2"),
        ("a 1 2\nb 1 2\nc  1\n", ":3: 1 number where the others have 2"),
        ("a 1 2\nb 1 2\n c 1\n", ":3: 'c' is not a number"),
        ("a 1 2\nb 1 2 3\nc 1 2", ":2: 3 numbers where the others have 2"),
        ("a 1 2\nb c 0.1 2 3\nc 1 2", ":2: 3 numbers where the others have 2"),
        ("2 2\na 1 2\nb 1 2 3\n", ":3: 3 numbers where the header promises 2"),
        ("2 3\na 1 2\nb 1 2\n", ":2: 2 numbers where the header promises 3"),
        ("a 1 2\nb 1 x\n", ":2: 'x' is not a number"),
        ("a 1 2\nb 1 2,5\n", ":2: '2,5' is not a number"),
        ("a 1 2\nb 1_0 2\n", ":2: '1_0' is not a number"),
        ("a 1 2\nb 0x1 2\n", ":2: '0x1' is not a number"),
        ("a 1 2\nb 1 ٢\n", ":2: '٢' is not a number"),
        ("a 1 2\nb 1 2\u00a0\n", ":2: '2\\xa0' is not a number"),
        ("a 1 2\nb 1\r 2\n", ":2: '1\\r' is not a number"),
        ("a 1 2\nb 1\x0b 2\n", ":2: '1\\x0b' is not a number"),
        (b"a 1 2\nb 1 \xff\n", ":2: '\ufffd' is not a number"),
        ("a 1 nan\n", ":1: 'nan' is not a finite number"),
        ("1 2\na 1 NaN\n", ":2: 'NaN' is not a finite number"),
        ("a 1 2\nb 1 2\nc -inf 1\n", ":3: '-inf' is not a finite number"),
        ("a 1 2\nb 1 Infinity\n", ":2: 'Infinity' is not a finite number"),
        ("a 1 2\nb 1 1e39\n", ":2: '1e39' is not a finite number"),
        ("5 0\na\n", ":1: the header promises vectors of dimension 0"),
        ("0 5\n", ":1: the header promises no word"),
        ("3 2\na 1 2\nb 1 2\n", ":3: the file ends after 2 of the 3 words that the header promises"),
        ("3 2", ":1: the file ends after 0 of the 3 words that the header promises"),
        ("999999999999 2\na 1 2\n", ":2: the file ends after 1 of the 999999999999 words that the header promises"),
        ("1 2\na 1 2\nb 1 2\n", ":3: one word more than the 1 that the header promises"),
        ("a\0b", ": neither text nor word2vec's binary"),
        ("a 1 2\n".encode("utf-16"), ": neither text nor word2vec's binary"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_invalid_text_files_raise_with_file_and_line(write, tmp_path, content, message, packed):
    if packed:
        content = content if isinstance(content, bytes) else content.encode()
        path = f"{zipped(tmp_path / 'a.zip', {'x.txt': content})}:x.txt"
    else:
        path = write(content)
    for read in (read_vectors, inspect_vectors):
        with pytest.raises(DataError) as error:
            read(path)
        assert str(error.value).startswith(f"{path}{message}")


def test_an_invalid_line_far_into_a_file_raises(write, small_reads):
    content = "".join(f"w{number} 1 2\n" for number in range(20_000))
    for fault, message in (("w 1", "1 number where"), ("w 1 y", "'y' is not"), ("w inf 1", "'inf' is not")):
        for chunk in (1 << 20, 1000):
            small_reads(chunk)
            with pytest.raises(DataError, match=f":20001: {message}"):
                read_vectors(write(f"{content}{fault}\n{content}"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (binary()[:-1], None),
        (binary()[:-2], ", word 4: the file ends here, but its header promises 4 words"),
        (binary(header=b"5 3\n"), ", word 5: the file ends here, but its header promises 5 words"),
        (binary(header=b"4 400000000000\n"), ", word 1: the file ends here, but its header promises 4 words"),
        (binary(header=b"3 3\n"), ": there is more in the file than the 3 words that its header promises"),
        (binary() + b"x", ": there is more in the file than the 4 words that its header promises"),
        (binary() + b"\r\n\n", None),
        (binary(header=b"4 0\n"), ": the header promises vectors of dimension 0"),
        (binary(header=b"0 3\n"), ": the header promises no word"),
        (
            binary(matrix=np.where(MATRIX == 2.5, np.nan, MATRIX)),
            ", word 2: the vector holds a number that is NaN or infinite",
        ),
        (
            binary(matrix=np.where(MATRIX == -0.125, -np.inf, MATRIX)),
            ", word 2: the vector holds a number that is NaN or infinite",
        ),
        (binary(header=b"\n"), ": expected the header of word2vec-binary"),
    ],
)
def test_invalid_binary_files_raise_with_the_word(write, content, message):
    path = write(content, "x.bin")
    if message is None:
        assert (read_vectors(path).matrix == MATRIX).all()
        return
    with pytest.raises(DataError) as error:
        read_vectors(path, format="word2vec-binary")
    assert str(error.value).startswith(f"{path}{message}")


def test_words_of_binary_files_are_numbered_among_all_words(write):
    matrix = MATRIX.copy()
    matrix[3, 1] = np.nan
    path = write(binary([b"a", b"\xff", b"a", b"b"], matrix), "x.bin")
    with pytest.raises(DataError, match="word 4: the vector holds"):
        read_vectors(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"content": "a\nb\n", "x": MATRIX}, "vocabulary.txt: 2 words for the 4 vectors of v.safetensors"),
        ({"content": "", "x": MATRIX}, "vocabulary.txt: 0 words for the 4 vectors of v.safetensors"),
        ({"content": b"a\nb\xff\n", "x": MATRIX}, "vocabulary.txt:2: byte 0xff is not valid UTF-8"),
        ({"vocabulary": None, "x": MATRIX}, "v.safetensors: there is no vocabulary beside the vectors"),
        ({"vocabulary": "vocab.json", "content": "[1, 2, 3, 4]", "x": MATRIX}, "vocab.json: expected a list of words"),
        (
            {"vocabulary": "vocab.json", "content": '{"a": 0, "b": 2}', "x": MATRIX},
            "vocab.json: the map does not name every row from 0 to 1",
        ),
        (
            {"vocabulary": "vocab.json", "content": '{"a": 0, "b": 0}', "x": MATRIX},
            "vocab.json: the map does not name every row from 0 to 1",
        ),
        ({"vocabulary": "vocab.json", "content": '{"a": true}', "x": MATRIX}, "vocab.json: expected a list of words"),
        ({"vocabulary": "vocab.json", "content": "[", "x": MATRIX}, "vocab.json: not JSON (Expecting value"),
        ({"x": MATRIX, "y": MATRIX}, "v.safetensors: expected one tensor of two dimensions"),
        ({"x": MATRIX[0]}, "v.safetensors: expected one tensor of two dimensions"),
        ({"x": MATRIX[:, :0]}, "v.safetensors: the tensor has the shape (4, 0), without a vector"),
        ({"content": "", "x": MATRIX[:0]}, "v.safetensors: the tensor has the shape (0, 3), without a vector"),
        ({"x": np.ones((4, 3), np.int8)}, "v.safetensors: the tensor is of type I8"),
        ({"x": np.where(MATRIX == 2.5, np.inf, MATRIX)}, "v.safetensors, row 1 ('Oslo')"),
        ({"x": MATRIX.astype(np.float64) * 1e10}, "v.safetensors, row 3 ('1984')"),
    ],
)
def test_invalid_tensors_and_vocabularies_raise(tensors, options, message):
    folder = tensors(**options)
    with pytest.raises(DataError) as error:
        read_vectors(folder)
    assert str(error.value).startswith(f"{folder}/{message}")


def test_folders_without_exactly_one_tensor_file_raise(tmp_path):
    with pytest.raises(DataError, match=r"the folder holds no \.safetensors file"):
        read_vectors(tmp_path)
    for name in "ab":
        save_file({"x": MATRIX}, tmp_path / f"{name}.safetensors")
    with pytest.raises(DataError, match=r"the folder holds a\.safetensors and b\.safetensors"):
        read_vectors(tmp_path)
    with pytest.raises(DataError, match=r"is a folder, and no glove file"):
        read_vectors(tmp_path, format="glove")


def test_damaged_files_raise(tensors, write, tmp_path):
    noise = random.Random(0).randbytes(20_000)
    text = "".join(f"w{number} {byte}\n" for number, byte in enumerate(noise)).encode()
    packed = gzip.compress(text)
    for damaged in (packed[:-9], packed[: len(packed) // 2], packed[:100] + bytes(50) + packed[150:], packed + b"junk"):
        with pytest.raises(DataError, match=r"x\.gz: the gzip file is damaged \(.+\)"):
            read_vectors(write(damaged, "x.gz"))
    archive = zipped(tmp_path / "x.zip", {"x.txt": text}).read_bytes()
    for damaged in (archive[:-30], archive[:1000] + bytes(50) + archive[1050:]):
        with pytest.raises(DataError, match=r"the zip archive is damaged \(.+\)"):
            read_vectors(write(damaged, "x.zip"))
    folder = tensors(x=MATRIX)
    path = folder / "v.safetensors"
    for damaged in (path.read_bytes()[:-1], b"", path.read_bytes()[8:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"v\.safetensors: not a safetensors file, or damaged \(.+\)\.$"):
            read_vectors(folder)


def test_archives_that_cannot_be_unpacked_raise(tmp_path):
    path = zipped(tmp_path / "x.zip", {"x.txt": glove()})
    content = bytearray(path.read_bytes())
    # The flag of an encrypted member, in the archive's directory and in the member's header.
    content[content.index(b"PK\x01\x02") + 8] |= 1
    content[6] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.txt: cannot be unpacked \(.*encrypted.*\)"):
        read_vectors(path)
    zipped(path, {})
    with pytest.raises(DataError, match=r"x\.zip: the archive is empty"):
        read_vectors(path)


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", ["x.kv", "x.model", "x.pkl", "x.pt", "x.bin", "x.txt"])
@pytest.mark.parametrize("packing", [None, "gzip", "zip", "torch"])
def test_pickles_are_never_loaded(write, tmp_path, protocol, name, packing):
    trace = tmp_path / "trace"
    content = pickle.dumps(Trap(trace), protocol)
    if packing == "gzip":
        path = write(gzip.compress(content), name)
    elif packing:
        path = zipped(tmp_path / name, {"archive/data.pkl" if packing == "torch" else "x": content})
    else:
        path = write(content, name)
    for format in ("auto", *VECTOR_FORMATS):
        with pytest.raises(DataError) as error:
            read_vectors(path, format=format)
        assert not trace.exists()
        if format == "auto" and (protocol > 1 or packing == "torch" or name not in ("x.bin", "x.txt")):
            assert "looks like a pickle, which can run any program when it is read" in str(error.value)
            assert str(error.value).endswith("export the vectors as text, as gensim's save_word2vec_format does.")


@pytest.mark.parametrize("name", ["x.kv", "x.PT", "archive.zip:x.pkl"])
def test_pickles_on_the_hub_are_not_downloaded(name):
    with pytest.raises(DataError, match="looks like a pickle"):
        read_vectors(f"owner/name:{name}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xba\x16\x4f\x2f\x0c\0\0\0", "is fastText's own binary"),
        (b"\x93NUMPY\1\0", "is a NumPy array without its words"),
        (b"\x89HDF\r\n\x1a\n\0", "is an HDF5 file"),
    ],
)
def test_unsupported_formats_are_named_in_the_error(write, content, message):
    path = write(content, "x.bin")
    with pytest.raises(DataError) as error:
        read_vectors(path)
    assert str(error.value).startswith(f"{path}: {message}")


def test_nested_archives_raise(tmp_path):
    inner = zipped(tmp_path / "inner.zip", {"x": glove()})
    outer = zipped(tmp_path / "outer.zip", {"inner.zip": inner.read_bytes()})
    with pytest.raises(DataError, match=r"outer\.zip:inner\.zip: is an archive in an archive"):
        read_vectors(outer)


def test_tensors_in_archives_raise(tensors, tmp_path):
    content = (tensors(x=MATRIX) / "v.safetensors").read_bytes()
    with pytest.raises(DataError, match="is a safetensors file"):
        read_vectors(zipped(tmp_path / "x.zip", {"v.safetensors": content}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "bin"}, "format='bin' is unknown"),
        ({"dtype": np.int8}, "dtype=int8 is not kept"),
        ({"most_frequent": 0}, "most_frequent=0 keeps nothing"),
        ({"wanted": "word"}, "wanted='word' is one string"),
        ({"format": "word2vec"}, "{}:1: expected the header of word2vec"),
        ({"format": "safetensors"}, "{}: not a safetensors file, or damaged (Error"),
    ],
)
def test_invalid_options_raise(write, options, message):
    path = write(glove())
    with pytest.raises(DataError) as error:
        read_vectors(path, **options)
    assert str(error.value).startswith(message.format(path))


def test_a_member_of_a_file_that_is_not_an_archive_raises(write):
    path = write(glove())
    with pytest.raises(DataError) as error:
        read_vectors(f"{path}:x")
    assert str(error.value).startswith(f"{path}: is not a zip archive")


# --- Cost -------------------------------------------------------------------------------------------------------------

MEASURED = """
    import json, os, sys, time
    from hf_xorner.vectors.formats import read_vectors

    def memory(name):
        # Not `resource.getrusage`, whose peak a process inherits from the one that started it.
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(name)) * 1024

    def measure(options):
        if "wanted" in options:
            options["wanted"] = {f"word{number}" for number in range(options["wanted"])}
        before, start = memory("VmRSS"), time.process_time()
        found = read_vectors(sys.argv[1], **options)
        seconds = time.process_time() - start
        peak = memory("VmHWM") - before
        return {"seconds": seconds, "peak": peak, "kept": found.matrix.nbytes, "words": len(found)}

    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
    for options in json.loads(sys.argv[2]):
        if not os.fork():
            print(json.dumps(measure(options)), flush=True)
            os._exit(0)
        assert os.wait()[1] == 0
"""


def measured(path, *options):
    """Time and memory of reading a file with each of the options, each in a process of its own, on one core."""
    command = [sys.executable, "-c", textwrap.dedent(MEASURED), str(path), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return list(map(json.loads, done.stdout.splitlines()))


def write_large(path, words, dim, header=False):
    """A text of many words; the numbers of a line recur every 997 words."""
    rng = np.random.default_rng(0)
    rests = [" ".join(f"{value:.5f}" for value in row) for row in rng.normal(0, 0.4, (997, dim)).tolist()]
    with path.open("w") as file:
        if header:
            file.write(f"{words} {dim}\n")
        for start in range(0, words, 997):
            file.write("".join(f"word{start + at} {rest}\n" for at, rest in enumerate(rests[: words - start])))
    return path


only_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


@only_linux
def test_peak_memory_is_below_twice_the_kept_vectors(tmp_path):
    path = write_large(tmp_path / "x.txt", 60_000, 200)
    results = measured(path, {}, {"most_frequent": 50_000}, {"wanted": 50_000})
    for found, words in zip(results, (60_000, 50_000, 50_000), strict=True):
        assert found["words"] == words
        assert found["peak"] < 2 * found["kept"]


@only_linux
@pytest.mark.slow
@pytest.mark.parametrize("header", [False, True])
def test_reading_400_000_words_of_300_numbers_takes_less_than_a_minute(tmp_path, header):
    (found,) = measured(write_large(tmp_path / "x.txt", 400_000, 300, header), {})
    assert found["words"] == 400_000
    assert found["seconds"] < 60
    assert found["peak"] < 2 * found["kept"]
