import gzip
import json
import random
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from vector_samples import LINES, MATRIX, WORDS, binary, fasttext, glove, word2vec, write_tensors, zipped

from hf_xorner.corpora import DataError
from hf_xorner.vectors import sources as vector_sources
from hf_xorner.vectors.formats import Vectors, inspect_vectors, read_vectors
from hf_xorner.vectors.text import parse_numbers

FILES = {
    "glove": ("glove", "vectors.txt", glove()),
    "word2vec": ("word2vec", "vectors.txt", word2vec()),
    "fasttext": ("fasttext", "vectors.vec", fasttext()),
    "word2vec-binary": ("word2vec-binary", "vectors.bin", binary()),
    "word2vec-binary without line breaks": ("word2vec-binary", "vectors.bin", binary(line_end=b"")),
}


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


# --- Formats ---------------------------------------------------------------------------------------------------------


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
def test_a_name_does_not_hide_what_a_file_is(write, kind, name):
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
def test_tensors_are_read_with_the_vocabulary_beside_them(tensors, type_, name, content):
    matrix = (MATRIX % 1).astype(type_)
    folder = tensors(name, content, embeddings=matrix, weights=np.ones(4, np.float32))
    for source in (folder, folder / "v.safetensors"):
        assert_is(read_vectors(source), matrix=matrix.astype(np.float32))
        assert_is(read_vectors(source, {"naïve", "Oslo"}), ["Oslo", "naïve"], matrix[1:3].astype(np.float32))


def test_the_words_of_a_vocabulary_may_be_anything_but_a_line_break(tensors):
    words = ["", "a b", "\u2028", "\x85"]
    assert read_vectors(tensors("vocabulary.txt", "\na b\n\u2028\n\x85\n", x=MATRIX)).words == words
    assert read_vectors(tensors("vocabulary.json", json.dumps(words), x=MATRIX)).words == words


@pytest.mark.parametrize("format", ["glove", "word2vec", "fasttext", "word2vec-binary"])
def test_what_gensim_writes_is_read(tmp_path, format):
    gensim = pytest.importorskip("gensim.models")
    path = tmp_path / "vectors"
    keyed = gensim.KeyedVectors(300)
    words = [f"w\u00a0{number}ß" for number in range(200)]
    keyed.add_vectors(words, np.random.default_rng(5).normal(size=(200, 300)).astype(np.float32))
    keyed.save_word2vec_format(path, binary=format == "word2vec-binary", write_header=format != "glove")
    assert_is(read_vectors(path), words, keyed.vectors)
    assert inspect_vectors(path, format).format == format


def test_a_format_that_is_told_is_not_recognised(write):
    path = write("2 1\n3 4\n")
    with pytest.raises(DataError, match="the file ends after 1 of the 2 words"):
        read_vectors(path)
    assert read_one(path, format="glove") == (["2", "3"], [[1], [4]])
    path = write(b"1 1\nw 1234", "x.txt")
    assert read_one(path) == (["w"], [[1234]])
    assert read_one(path, format="word2vec-binary") == (["w"], [[np.frombuffer(b"1234", "<f4").item()]])


# --- Legal but odd ---------------------------------------------------------------------------------------------------


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
def test_odd_lines_are_read(write, header, line, word):
    path = write(f"{header}first -1 1\n{line}\nlast 0.5 0.25\n")
    assert read_one(path) == (["first", word, "last"], [[-1, 1], [1, 2.5], [0.5, 0.25]])
    # Neither depends on what else is kept.
    assert read_one(path, wanted=[word]) == ([word], [[1, 2.5]])


@pytest.mark.parametrize("line", ["a 1 2.5 ", ". . 1 2.5", " 1 2.5", "1 1 2.5", "a\t1\t2.5"])
@pytest.mark.parametrize("times", [1, 3])
def test_odd_lines_may_be_all_there_are(write, line, times):
    found = read_vectors(write(f"{line}\n" * times))
    assert found.matrix.tolist() == [[1, 2.5]]
    assert found.duplicates == times - 1


def test_an_integer_is_part_of_a_word_where_numbers_look_otherwise(write):
    assert read_one(write("area 51 0.5 0.25\nb 1.5 2.5\nc 0.5 0.5\n"))[0] == ["area 51", "b", "c"]


@pytest.mark.parametrize("content", ["\ufeffa 1 2\nb 3 4\n", "\ufeff2 2\na 1 2\nb 3 4", "\n\na 1 2\n \nb 3 4\n\r\n\n"])
def test_marks_and_empty_lines_hold_no_word(write, content):
    assert read_one(write(content)) == (["a", "b"], [[1, 2], [3, 4]])


def test_the_first_of_several_vectors_counts(write, tensors):
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
def test_broken_words_are_left_out_and_counted(write, caplog, binary_file):
    # Real files of fastText and word2vec hold a few of them.
    words = [b"a", b"\xe4\xbd", b"\xe4\xbd", "ä".encode()]
    lines = [word + b" " + line.partition(" ")[2].encode() for word, line in zip(words, LINES, strict=True)]
    path = write(binary(words) if binary_file else b"\n".join(lines), "x.bin")
    found = read_vectors(path)
    assert_is(found, ["a", "ä"], MATRIX[[0, 3]])
    assert (found.undecodable, found.duplicates, found.words_in_file) == (2, 0, 4)
    assert caplog.messages == [f"{path}: left out 2 of 4 words, which are not UTF-8"]
    assert inspect_vectors(path).undecodable == 2


def test_binary_words_may_hold_what_text_cannot(write):
    words = ["", "a\tb", "c\nd", "\r"]
    path = write(binary([word.encode() for word in words]), "x.bin")
    assert read_vectors(path).words == words


# --- What is kept ----------------------------------------------------------------------------------------------------


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
def test_only_what_is_asked_for_is_kept(write, kind, wanted, most_frequent, kept, counts_all):
    path = write(FILES[kind][2], FILES[kind][1])
    found = read_vectors(path, wanted, most_frequent)
    assert_is(found, [WORDS[index] for index in kept], MATRIX[kept])
    # All words are counted where all were read, or where the header tells their number.
    assert found.words_in_file == (4 if counts_all or kind != "glove" else None)


def test_reading_stops_when_nothing_more_would_be_kept(write, monkeypatch):
    monkeypatch.setattr(vector_sources, "CHUNK", 64)
    path = write(glove() * 10 + b"short 1\n")
    assert len(read_vectors(path, most_frequent=3)) == 3
    assert len(read_vectors(path, ["the", "1984"])) == 2
    with pytest.raises(DataError, match=":41: 1 number where"):
        read_vectors(path, ["the", "elsewhere"])


def test_the_most_frequent_are_distinct(write):
    assert read_one(write("a 1\na 2\nb 3\nc 4\n"), most_frequent=2) == (["a", "b"], [[1], [3]])


def test_numbers_of_words_that_are_not_kept_are_not_read(write):
    assert read_one(write("a 1 2\nb x nan\n"), wanted={"a"}) == (["a"], [[1, 2]])


@pytest.mark.parametrize("kind", FILES)
def test_half_precision_is_kept_when_asked_for(write, kind):
    path = write(FILES[kind][2], FILES[kind][1])
    found = read_vectors(path, ["the", "Oslo"], dtype=np.float16)
    assert found.matrix.dtype == np.float16
    assert (found.matrix == MATRIX[:2].astype(np.float16)).all()
    with pytest.raises(DataError, match=r"beyond ±65504; correct"):
        read_vectors(path, dtype="float16")


def test_vectors_are_what_they_say():
    vectors = Vectors(["a", "b"], np.zeros((2, 5), np.float32))
    assert (len(vectors), vectors.dim, vectors.words_in_file, vectors.duplicates) == (2, 5, None, 0)
    with pytest.raises(DataError, match=r"1 words for vectors of the shape \(2, 5\); give every word one row\."):
        Vectors(["a"], np.zeros((2, 5), np.float32))
    with pytest.raises(DataError, match=r"the vectors are float64; convert them to float32 or float16\."):
        Vectors(["a"], np.zeros((1, 5)))


def test_a_file_is_summed_up(write):
    summary = inspect_vectors(write("".join(f"w{number} {number} 0\n" for number in range(1, 13))))
    assert summary.first == [f"w{number}" for number in range(1, 11)]
    assert (summary.words, summary.dim, summary.format) == (12, 2, "glove")
    assert summary.norms == {"min": 1, "mean": 6.5, "max": 12}


@pytest.mark.parametrize("kind", [*FILES, "safetensors"])
def test_progress_ends_at_the_end(write, tensors, kind):
    calls = []
    source = tensors(x=MATRIX) / "v.safetensors" if kind == "safetensors" else write(*FILES[kind][:0:-1])
    read_vectors(source, on_progress=lambda *call: calls.append(call))
    assert calls[-1] == (source.stat().st_size,) * 2
    assert calls == sorted(calls)


# --- Where vectors lie -----------------------------------------------------------------------------------------------


def test_a_part_of_an_archive_is_named_or_the_largest(tmp_path, caplog, monkeypatch):
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


def test_a_home_folder_is_meant_by_its_sign(write, tmp_path, monkeypatch):
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
def test_a_file_of_the_hub_is_fetched(write, monkeypatch, source, asked):
    path = write(glove())
    calls = []
    monkeypatch.setattr(vector_sources, "download", lambda *call: calls.append(call) or path)
    assert_is(read_vectors(source))
    assert calls == [asked]


def test_a_part_of_an_archive_on_the_hub_is_fetched_and_unpacked(tmp_path, monkeypatch):
    path = zipped(tmp_path / "glove.zip", {"x.txt": glove(), "larger.txt": "a 1 2\n" * 100})
    monkeypatch.setattr(vector_sources, "download", lambda *call: path)
    assert_is(read_vectors("owner/name:in/glove.zip:x.txt"))


def test_tensors_on_the_hub_bring_their_vocabulary(tensors, tmp_path, monkeypatch):
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


def test_what_exists_here_is_never_looked_for_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("owner").mkdir()
    Path("owner/name:x.txt").write_bytes(glove())
    zipped("owner/name", {"y.txt": glove()})
    assert_is(read_vectors("owner/name:x.txt"))
    assert_is(read_vectors("owner/name:y.txt"))


def test_what_the_hub_does_not_give_is_told(monkeypatch):
    monkeypatch.undo()

    def no_network(*asked, **options):
        raise OSError("no network\nat all")

    monkeypatch.setattr(vector_sources, "hf_hub_download", no_network)
    with pytest.raises(DataError) as error:
        read_vectors("owner/name:x.txt")
    assert str(error.value) == "owner/name:x.txt: not to be had from the Hub (no network)."


@pytest.mark.parametrize("source", ["nowhere.txt", "no/where.txt", "a/b/c:d", "owner/name", Path("owner/name:x.txt")])
def test_what_does_not_exist_is_told(source):
    with pytest.raises(DataError) as error:
        read_vectors(source)
    assert str(error.value) == (
        f"{source}: there is no such file; give a path, archive.zip:part, or owner/name:file for one on the Hub."
    )


# --- Against slow and obvious readers --------------------------------------------------------------------------------


def line_by_line(path, dim, header):
    """Words, rows and duplicates of a text, the slow and obvious way."""
    found, duplicates = {}, 0
    for line in path.read_bytes().decode().split("\n")[header:]:
        fields = line.rstrip("\r ").split(" ")
        if fields != [""]:
            word = " ".join(fields[:-dim])
            duplicates += word in found
            found.setdefault(word, [float(field) for field in fields[-dim:]])
    return list(found), np.array(list(found.values()), dtype=np.float32), duplicates


def test_files_of_many_chunks_read_as_if_line_by_line(tmp_path, monkeypatch):
    rng = random.Random(0)
    for number in range(150):
        monkeypatch.setattr(vector_sources, "CHUNK", rng.choice([64, 100, 333, 5000]))
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


def test_binary_files_of_many_chunks_read_word_by_word(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for number in range(80):
        monkeypatch.setattr(vector_sources, "CHUNK", int(rng.choice([64, 100, 333, 5000])))
        count, dim = rng.integers(1, 60), rng.integers(2, 40)
        matrix = rng.normal(size=(count, dim)).astype(np.float32)
        words = [f"w{index}" * int(rng.integers(1, 20)) for index in range(count)]
        path = tmp_path / f"{number}.bin"
        path.write_bytes(binary([word.encode() for word in words], matrix, line_end=rng.choice([b"", b"\n"])))
        assert_is(read_vectors(path), words, matrix)


def test_every_number_is_the_nearest_float32():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 32, 200_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values)]
    for form in ("%.9g", "%.8e", "%.17g"):
        text = " ".join(form % value for value in values.tolist()).encode()
        assert (parse_numbers([text], len(values))[0].view(np.uint32) == values.view(np.uint32)).all()
    # Just above the middle between 1 and the next float32: by way of float64 this becomes 1.
    assert parse_numbers([b"1.000000059604644775390626"], 1).item() > 1


# --- Cost ------------------------------------------------------------------------------------------------------------

MEASURED = """
    import json, os, sys, time
    from hf_xorner.vectors.formats import read_vectors

    def memory(name):
        # Not `resource.getrusage`, whose peak a process inherits from the one that started it.
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(name)) * 1024

    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
    options = json.loads(sys.argv[2])
    if "wanted" in options:
        options["wanted"] = {f"word{number}" for number in range(options["wanted"])}
    before, start = memory("VmRSS"), time.process_time()
    found = read_vectors(sys.argv[1], **options)
    seconds = time.process_time() - start
    result = {"seconds": seconds, "peak": memory("VmHWM") - before, "kept": found.matrix.nbytes, "words": len(found)}
    print(json.dumps(result))
"""


def measured(path, **options):
    """What reading a file costs in a process of its own, on one core."""
    command = [sys.executable, "-c", textwrap.dedent(MEASURED), str(path), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


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
@pytest.mark.parametrize("options", [{}, {"most_frequent": 50_000}, {"wanted": 50_000}])
def test_little_more_than_what_is_kept_is_held(tmp_path, options):
    found = measured(write_large(tmp_path / "x.txt", 60_000, 200), **options)
    assert found["words"] == (50_000 if options else 60_000)
    assert found["peak"] < 2 * found["kept"]


@only_linux
@pytest.mark.slow
@pytest.mark.parametrize("header", [False, True])
def test_400_000_words_of_300_numbers_take_less_than_a_minute(tmp_path, header):
    found = measured(write_large(tmp_path / "x.txt", 400_000, 300, header))
    assert found["words"] == 400_000
    assert found["seconds"] < 60
    assert found["peak"] < 2 * found["kept"]
