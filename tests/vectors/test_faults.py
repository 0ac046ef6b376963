import gzip
import pickle
import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from vector_samples import MATRIX, binary, glove, write_tensors, zipped

from hf_xorner.corpora import DataError
from hf_xorner.vectors import sources as vector_sources
from hf_xorner.vectors.formats import VECTOR_FORMATS, inspect_vectors, read_vectors


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: the file holds no word; expected lines of a word and its numbers."),
        ("\n \t\r\n", ":1: the file holds no word; expected lines of a word and its numbers."),
        (
            "word\nother\n",
            ":1: there is no number behind the word; expected a word and its vector, separated by blanks.",
        ),
        ("a 1 2\nb 1 2\nc 1\n", ":3: 1 number where the others have 2; correct or remove the line."),
        ("a 1 2\nb 1 2\n\nc\n", ":4: 0 numbers where the others have 2; correct or remove the line."),
        ("a 1 2\nb 1 2\nc  1\n", ":3: 1 number where the others have 2; correct or remove the line."),
        ("a 1 2\nb 1 2\n c 1\n", ":3: 'c' is not a number; correct or remove the line."),
        ("a 1 2\nb 1 2 3\nc 1 2", ":2: 3 numbers where the others have 2; correct or remove the line."),
        ("a 1 2\nb c 0.1 2 3\nc 1 2", ":2: 3 numbers where the others have 2; correct or remove the line."),
        ("2 2\na 1 2\nb 1 2 3\n", ":3: 3 numbers where the header promises 2; correct or remove the line."),
        ("2 3\na 1 2\nb 1 2\n", ":2: 2 numbers where the header promises 3; correct or remove the line."),
        ("a 1 2\nb 1 x\n", ":2: 'x' is not a number; correct or remove the line."),
        ("a 1 2\nb 1 2,5\n", ":2: '2,5' is not a number; correct or remove the line."),
        ("a 1 2\nb 1_0 2\n", ":2: '1_0' is not a number; correct or remove the line."),
        ("a 1 2\nb 0x1 2\n", ":2: '0x1' is not a number; correct or remove the line."),
        ("a 1 2\nb 1 ٢\n", ":2: '٢' is not a number; correct or remove the line."),
        ("a 1 2\nb 1 2\u00a0\n", ":2: '2\\xa0' is not a number; correct or remove the line."),
        ("a 1 2\nb 1\r 2\n", ":2: '1\\r' is not a number; correct or remove the line."),
        ("a 1 2\nb 1\x0b 2\n", ":2: '1\\x0b' is not a number; correct or remove the line."),
        (b"a 1 2\nb 1 \xff\n", ":2: '\ufffd' is not a number; correct or remove the line."),
        ("a 1 nan\n", ":1: 'nan' is not a finite number; correct or remove the line."),
        ("1 2\na 1 NaN\n", ":2: 'NaN' is not a finite number; correct or remove the line."),
        ("a 1 2\nb 1 2\nc -inf 1\n", ":3: '-inf' is not a finite number; correct or remove the line."),
        ("a 1 2\nb 1 Infinity\n", ":2: 'Infinity' is not a finite number; correct or remove the line."),
        ("a 1 2\nb 1 1e39\n", ":2: '1e39' is not a finite number; correct or remove the line."),
        ("5 0\na\n", ":1: the header promises vectors of dimension 0; fetch or write the file again."),
        ("0 5\n", ":1: the header promises no word; fetch or write the file again."),
        (
            "3 2\na 1 2\nb 1 2\n",
            ":3: the file ends after 2 of the 3 words that the header promises; fetch it again, or correct the header.",
        ),
        (
            "3 2",
            ":1: the file ends after 0 of the 3 words that the header promises; fetch it again, or correct the header.",
        ),
        (
            "999999999999 2\na 1 2\n",
            ":2: the file ends after 1 of the 999999999999 words that the header promises; fetch it again, "
            "or correct the header.",
        ),
        ("1 2\na 1 2\nb 1 2\n", ":3: one word more than the 1 that the header promises; correct the header."),
        ("a\0b", ": neither text nor word2vec's binary; name the format, or export the vectors as text."),
        (
            "a 1 2\n".encode("utf-16"),
            ": neither text nor word2vec's binary; name the format, or export the vectors as text.",
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_faults_of_text_are_told_with_file_and_line(write, tmp_path, content, message, packed):
    if packed:
        content = content if isinstance(content, bytes) else content.encode()
        path = f"{zipped(tmp_path / 'a.zip', {'x.txt': content})}:x.txt"
    else:
        path = write(content)
    for read in (read_vectors, inspect_vectors):
        with pytest.raises(DataError) as error:
            read(path)
        assert str(error.value) == f"{path}{message}"


def test_a_fault_far_into_a_file_is_found(write, monkeypatch):
    content = "".join(f"w{number} 1 2\n" for number in range(20_000))
    for fault, message in (("w 1", "1 number where"), ("w 1 y", "'y' is not"), ("w inf 1", "'inf' is not")):
        for chunk in (1 << 20, 1000):
            monkeypatch.setattr(vector_sources, "CHUNK", chunk)
            with pytest.raises(DataError, match=f":20001: {message}"):
                read_vectors(write(f"{content}{fault}\n{content}"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            binary()[:-1],
            None,
        ),
        (
            binary()[:-2],
            ", word 4: the file ends here, but its header promises 4 words; fetch or write it again.",
        ),
        (
            binary(header=b"5 3\n"),
            ", word 5: the file ends here, but its header promises 5 words; fetch or write it again.",
        ),
        (
            binary(header=b"4 400000000000\n"),
            ", word 1: the file ends here, but its header promises 4 words; fetch or write it again.",
        ),
        (
            binary(header=b"3 3\n"),
            ": there is more in the file than the 3 words that its header promises; fetch or write it again.",
        ),
        (
            binary() + b"x",
            ": there is more in the file than the 4 words that its header promises; fetch or write it again.",
        ),
        (binary() + b"\r\n\n", None),
        (
            binary(header=b"4 0\n"),
            ": the header promises vectors of dimension 0; fetch or write the file again.",
        ),
        (binary(header=b"0 3\n"), ": the header promises no word; fetch or write the file again."),
        (
            binary(matrix=np.where(MATRIX == 2.5, np.nan, MATRIX)),
            ", word 2: the vector holds a number that is NaN or infinite; "
            "correct the vectors, or read the format that the file has.",
        ),
        (
            binary(matrix=np.where(MATRIX == -0.125, -np.inf, MATRIX)),
            ", word 2: the vector holds a number that is NaN or infinite; "
            "correct the vectors, or read the format that the file has.",
        ),
        (
            binary(header=b"\n"),
            ": expected the header of word2vec-binary, which is the number of words and the dimension; "
            "give the format that the file has, or export the vectors as text.",
        ),
    ],
)
def test_faults_of_binary_files_are_told_with_the_word(write, content, message):
    path = write(content, "x.bin")
    if message is None:
        assert (read_vectors(path).matrix == MATRIX).all()
        return
    with pytest.raises(DataError) as error:
        read_vectors(path, format="word2vec-binary")
    assert str(error.value) == f"{path}{message}"


def test_a_word_of_a_binary_file_is_numbered_among_all(write):
    matrix = MATRIX.copy()
    matrix[3, 1] = np.nan
    path = write(binary([b"a", b"\xff", b"a", b"b"], matrix), "x.bin")
    with pytest.raises(DataError, match="word 4: the vector holds"):
        read_vectors(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"content": "a\nb\n", "x": MATRIX}, "vocabulary.txt: 2 words for the 4 vectors of v.safetensors; "
         "give every row of the tensor its word."),
        ({"content": "", "x": MATRIX}, "vocabulary.txt: 0 words for the 4 vectors of v.safetensors; "
         "give every row of the tensor its word."),
        ({"content": b"a\nb\xff\n", "x": MATRIX}, "vocabulary.txt:2: byte 0xff is not valid UTF-8; "
         "save the file as UTF-8."),
        ({"vocabulary": None, "x": MATRIX}, "v.safetensors: there is no vocabulary beside the vectors; "
         "give their words in vocabulary.txt, one a line."),
        ({"vocabulary": "vocab.json", "content": "[1, 2, 3, 4]", "x": MATRIX}, "vocab.json: expected a list of words, "
         "or a map from words to rows; write it again."),
        ({"vocabulary": "vocab.json", "content": '{"a": 0, "b": 2}', "x": MATRIX}, "vocab.json: the map does not name "
         "every row from 0 to 1 once; correct it."),
        ({"vocabulary": "vocab.json", "content": '{"a": 0, "b": 0}', "x": MATRIX}, "vocab.json: the map does not name "
         "every row from 0 to 1 once; correct it."),
        ({"vocabulary": "vocab.json", "content": '{"a": true}', "x": MATRIX}, "vocab.json: expected a list of words, "
         "or a map from words to rows; write it again."),
        ({"vocabulary": "vocab.json", "content": "[", "x": MATRIX}, "vocab.json: no JSON "
         "(Expecting value: line 1 column 2 (char 1)); give a list of words."),
        ({"x": MATRIX, "y": MATRIX}, "v.safetensors: expected one tensor of two dimensions, words and vectors, "
         "found 'x' and 'y'; save the vectors alone."),
        ({"x": MATRIX[0]}, "v.safetensors: expected one tensor of two dimensions, words and vectors, "
         "found none; save the vectors alone."),
        ({"x": MATRIX[:, :0]}, "v.safetensors: the tensor has the shape (4, 0), without a vector; "
         "write the file again."),
        ({"content": "", "x": MATRIX[:0]}, "v.safetensors: the tensor has the shape (0, 3), without a vector; "
         "write the file again."),
        ({"x": np.ones((4, 3), np.int8)}, "v.safetensors: the tensor is of type I8; save it as one of F16, F32, F64."),
        ({"x": np.where(MATRIX == 2.5, np.inf, MATRIX)}, "v.safetensors, row 1: the vector of 'Oslo' holds a number "
         "that is NaN, infinite or beyond ±3.4028e+38; correct the vectors."),
        ({"x": MATRIX.astype(np.float64) * 1e10}, "v.safetensors, row 3: the vector of '1984' holds a number "
         "that is NaN, infinite or beyond ±3.4028e+38; correct the vectors."),
    ],
)  # fmt: skip
def test_faults_of_tensors_and_vocabularies_are_told(tensors, options, message):
    folder = tensors(**options)
    with pytest.raises(DataError) as error:
        read_vectors(folder)
    assert str(error.value) == f"{folder}/{message}"


def test_folders_without_one_file_of_tensors_are_told(tmp_path):
    with pytest.raises(DataError, match=r"the folder holds no \.safetensors file; name a file of vectors\."):
        read_vectors(tmp_path)
    for name in "ab":
        save_file({"x": MATRIX}, tmp_path / f"{name}.safetensors")
    with pytest.raises(DataError, match=r"the folder holds a\.safetensors and b\.safetensors; name one of them\."):
        read_vectors(tmp_path)
    with pytest.raises(DataError, match=r"is a folder, and no glove file; name the file\."):
        read_vectors(tmp_path, format="glove")


def test_damaged_files_are_told(tensors, write, tmp_path):
    noise = random.Random(0).randbytes(20_000)
    text = "".join(f"w{number} {byte}\n" for number, byte in enumerate(noise)).encode()
    packed = gzip.compress(text)
    for damaged in (packed[:-9], packed[: len(packed) // 2], packed[:100] + bytes(50) + packed[150:], packed + b"junk"):
        with pytest.raises(DataError, match=r"x\.gz: the gzip file is damaged \(.+\); fetch or compress it again\.$"):
            read_vectors(write(damaged, "x.gz"))
    archive = zipped(tmp_path / "x.zip", {"x.txt": text}).read_bytes()
    for damaged in (archive[:-30], archive[:1000] + bytes(50) + archive[1050:]):
        with pytest.raises(DataError, match=r"the zip archive is damaged \(.+\); fetch or compress it again\.$"):
            read_vectors(write(damaged, "x.zip"))
    folder = tensors(x=MATRIX)
    path = folder / "v.safetensors"
    for damaged in (path.read_bytes()[:-1], b"", path.read_bytes()[8:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"v\.safetensors: no safetensors file, or damaged \(.+\)\.$"):
            read_vectors(folder)


def test_archives_that_cannot_be_unpacked_are_told(tmp_path):
    path = zipped(tmp_path / "x.zip", {"x.txt": glove()})
    content = bytearray(path.read_bytes())
    # The flag that says that a part is encrypted, where the archive's directory has it and before the part.
    content[content.index(b"PK\x01\x02") + 8] |= 1
    content[6] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.txt: cannot be unpacked \(.*encrypted.*\); unpack it by another program"):
        read_vectors(path)
    zipped(path, {})
    with pytest.raises(DataError, match=r"x\.zip: the archive is empty; fetch or pack it again\."):
        read_vectors(path)


class Trap:
    """Leaves a trace when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", ["x.kv", "x.model", "x.pkl", "x.pt", "x.bin", "x.txt"])
@pytest.mark.parametrize("packing", [None, "gzip", "zip", "torch"])
def test_a_pickle_is_never_opened(write, tmp_path, protocol, name, packing):
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
            assert "looks like a pickle, which runs whatever program it holds when read; export the" in str(error.value)
            assert str(error.value).endswith("export the vectors as text, as gensim's save_word2vec_format does.")


@pytest.mark.parametrize("name", ["x.kv", "x.PT", "archive.zip:x.pkl"])
def test_a_pickle_on_the_hub_is_not_even_fetched(name):
    with pytest.raises(DataError, match="looks like a pickle"):
        read_vectors(f"owner/name:{name}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"\xba\x16\x4f\x2f\x0c\0\0\0",
            "is fastText's own binary; read the .vec file beside it, or export the vectors as text, as gensim's "
            "save_word2vec_format does.",
        ),
        (
            b"\x93NUMPY\1\0",
            "is a NumPy array without its words; save it as safetensors with a vocabulary.txt beside it.",
        ),
        (
            b"\x89HDF\r\n\x1a\n\0",
            "is an HDF5 file; export the vectors as text, as gensim's save_word2vec_format does.",
        ),
    ],
)
def test_other_formats_are_told_by_their_names(write, content, message):
    path = write(content, "x.bin")
    with pytest.raises(DataError) as error:
        read_vectors(path)
    assert str(error.value) == f"{path}: {message}"


def test_archives_in_archives_are_told(tmp_path):
    inner = zipped(tmp_path / "inner.zip", {"x": glove()})
    outer = zipped(tmp_path / "outer.zip", {"inner.zip": inner.read_bytes()})
    with pytest.raises(DataError, match=r"outer\.zip:inner\.zip: is an archive in an archive; unpack the outer one\."):
        read_vectors(outer)


def test_tensors_in_archives_are_told(tensors, tmp_path):
    content = (tensors(x=MATRIX) / "v.safetensors").read_bytes()
    with pytest.raises(DataError, match="is a safetensors file; unpack it beside its vocabulary, and name it with the"):
        read_vectors(zipped(tmp_path / "x.zip", {"v.safetensors": content}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "bin"}, "format='bin' is unknown; choose one of auto, glove, word2vec, fasttext, word2vec-binary, "
         "safetensors."),
        ({"dtype": np.int8}, "dtype=int8 is not kept; choose float32 or float16."),
        ({"most_frequent": 0}, "most_frequent=0 keeps nothing; give a number from 1, or leave it out."),
        ({"wanted": "word"}, "wanted='word' is one string; give a collection of words."),
        ({"format": "word2vec"}, "{}:1: expected the header of word2vec, which is the number of words and the "
         "dimension; read a file without one as glove."),
        ({"format": "safetensors"}, "{}: no safetensors file, or damaged (Error while deserializing header: "
         "header too large)."),
    ],
)  # fmt: skip
def test_faults_in_what_is_asked_are_told(write, options, message):
    path = write(glove())
    with pytest.raises(DataError) as error:
        read_vectors(path, **options)
    assert str(error.value) == message.format(path)


def test_a_part_of_what_is_no_archive_is_told(write):
    path = write(glove())
    with pytest.raises(DataError) as error:
        read_vectors(f"{path}:x")
    assert str(error.value) == f"{path}: is no zip archive, so it has no part 'x'; name the file alone."
