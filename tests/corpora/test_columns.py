import gzip
import random

import pytest

from hf_xorner.corpora import DataError, Reading
from hf_xorner.corpora.formats import columns
from hf_xorner.corpora.formats.columns import read_columns


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "some.conll"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read(path):
    return [(sentence.tokens, sentence.tags) for sentence in read_columns(path)]


EXPECTED = [(["Ann", "left"], ["B-PER", "O"]), (["Rain"], ["O"])]


@pytest.mark.parametrize(
    "content",
    [
        "Ann\tB-PER\nleft\tO\n\nRain\tO\n\n",
        "Ann B-PER\nleft O\n\nRain O\n",
        "Ann NNP x B-PER\nleft VBD y O\n\nRain NN z O",
        "Ann   NNP B-PER\nleft  VBD\t    O  \n\n\n\n Rain NN O\n",
        "Ann\tB-PER\r\nleft\tO\r\n\r\nRain\tO\r\n",
        "\ufeffAnn\tB-PER\nleft\tO\n\t\n\ufeffRain\tO\n",
        "Ann B-PER\nleft O\n \t \nRain O\n",
        "\n\nAnn B-PER\nleft O\n\ufeff\nRain O\n",
        "-DOCSTART- -X- O O\n\nAnn a b B-PER\nleft a b O\n-DOCSTART- -X- O O\nRain a b O\n",
        "-DOCSTART- O\n\nAnn\tB-PER\nleft\tO\n\n-DOCSTART-\nRain\tO\n",
    ],
    ids=[
        "tab",
        "blank",
        "four columns",
        "aligned",
        "crlf",
        "bom",
        "blanks only",
        "bom only",
        "docstart",
        "docstart tab",
    ],
)
def test_variants_of_a_file_read_the_same(write, content):
    assert read(write(content)) == EXPECTED


def test_tab_separated_files_split_at_tabs_only(write):
    assert read(write("New York\tB-LOC\nis fine\tO\n")) == [(["New York", "is fine"], ["B-LOC", "O"])]


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\x0b", "\x1c", "\r"])
@pytest.mark.parametrize("separator", ["\t", " "])
def test_tokens_may_contain_other_whitespace_and_line_breaks(write, blank, separator):
    token = f"1{blank}000"
    assert read(write(f"{token}{separator}O\nkm{separator}O\n")) == [([token, "km"], ["O", "O"])]


def test_tokens_that_begin_like_a_document_line_are_tokens(write):
    assert read(write("-DOCSTART-ed O\n")) == [(["-DOCSTART-ed"], ["O"])]


def test_sentences_have_line_numbers(write):
    content = "-DOCSTART- O\n\na O\nb O\n\n\nc O\n"
    assert [sentence.line for sentence in read_columns(write(content))] == [3, 7]


def test_sentences_are_read_lazily(write):
    sentences = read_columns(write("a O\n\nb O O\n"))
    assert next(sentences).tokens == ["a"]
    with pytest.raises(DataError):
        next(sentences)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a O\nb\n", ":2: 1 column where the first token line has 2"),
        ("a\tO\nb\tx\tO\n", ":2: 3 columns where the first token line has 2"),
        ("a\n", ":1: one column only"),
        ("a\tO\n\tO\n", ":2: the token is empty"),
        ("a\tO\nb\t\n", ":2: the tag is empty"),
        ("", ":1: the file holds no sentence"),
        ("\n \n-DOCSTART- O\n", ":1: the file holds no sentence"),
        ("né O\nñ O\n\n".encode() + b"na\xefve O\n", ":4: byte 0xef is not valid UTF-8"),
    ],
)
def test_invalid_files_raise_with_file_and_line(write, content, message):
    path = write(content)
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_invalid_utf8_far_into_a_file_raises(write):
    path = write("wörd O\n".encode() * 20_000 + b"\xff O\n")
    with pytest.raises(DataError, match=r":20001: byte 0xff"):
        read(path)


def test_gzip_files_are_read(tmp_path):
    for name in ("x.conll.gz", "x.conll"):
        (tmp_path / name).write_bytes(gzip.compress("né O\nb B-X\n".encode()))
        assert read(tmp_path / name) == [(["né", "b"], ["O", "B-X"])]


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:20] + b"\0\0\0\0" + data[24:]])
def test_damaged_gzip_files_raise(tmp_path, damage):
    path = tmp_path / "x.gz"
    path.write_bytes(damage(gzip.compress(b"word O\n" * 1000)))
    with pytest.raises(DataError, match=r"x\.gz: the gzip file is damaged \(.+\); compress or fetch it again\."):
        read(path)


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("1 a DT O\n2 b NN B-X\n", {"token_column": 1}, [("a b", "O B-X")]),
        ("a DT O\nb NN B-X\n", {"tag_column": 1}, [("a b", "DT NN")]),
        ("a O x\nb B-X y\n", {"tag_column": "-2"}, [("a b", "O B-X")]),
        ("a b\tO\n", {}, [("a b", "O")]),
        ("a b\tO\n", {"separator": "blank"}, [("a", "O")]),
        ("a O\tB-X\n", {"separator": "tab"}, [("a O", "B-X")]),
    ],
)
def test_columns_are_configurable(write, content, options, expected):
    found = [(" ".join(s.tokens), " ".join(s.tags)) for s in read_columns(write(content), Reading(**options))]
    # Tokens with a space inside look the same here; the case above uses a TAB.
    assert found == expected


@pytest.mark.parametrize(
    ("content", "options", "pos"),
    [
        ("a DT O\n", {}, ["DT"]),
        ("a DT B-NP O\n", {}, ["DT"]),
        ("a O\n", {}, None),
        ("a x DT B-NP O\n", {}, None),
        ("a x DT B-NP O\n", {"pos_column": 2}, ["DT"]),
        ("a DT O\n", {"pos_column": "none"}, None),
        ("a DT O\n", {"tag_column": 1}, None),
    ],
)
def test_the_second_of_three_or_four_columns_is_the_part_of_speech(write, content, options, pos):
    (sentence,) = read_columns(write(content), Reading(**options))
    assert sentence.pos_tags == pos


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        ("a O\n\nb O\n", [None, None]),
        ("-DOCSTART- -X- O\n\na O\n\nb O\n\n-DOCSTART- O\n\nc O\n", ["0", "0", "1"]),
        ("-DOCSTART- (x/y 1)\n\na O\n-DOCSTART-\nb O\n", ["x/y 1", "1"]),
        ("-DOCSTART-\t(x (y))\t\n\na\tO\n", ["x (y)"]),
    ],
)
def test_sentences_have_document_ids(write, content, documents):
    assert [sentence.doc_id for sentence in read_columns(write(content))] == documents


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("# id = 1\n# text = a b\na O\nb O\n\n# id = 2\nc O\n", {}, ["a b", "c"]),
        ("# id = 1\na\tO\n", {}, ["a"]),
        ("# O\na O\n", {}, ["# a"]),
        ("#a O\nb O\n", {}, ["#a b"]),
        ("# c\na O\nb O\n", {"comments": "# "}, ["a b"]),
        ("% c O\na O\n\n%% O\nb O\n", {"comments": "%"}, ["a", "b"]),
        ("# O\na O\n", {"comments": "none"}, ["# a"]),
    ],
)
def test_comments_are_ignored(write, content, options, expected):
    assert [" ".join(s.tokens) for s in read_columns(write(content), Reading(**options))] == expected


def test_line_numbers_count_comments_and_document_lines(write):
    content = "# a b c\n\n-DOCSTART- O\n\n# a b c\nx O\ny O\n\t\n \nz O\n"
    assert [(s.place(), s.place(len(s.tokens) - 1)) for s in read_columns(write(content))] == [
        (f"{write(content)}:6", f"{write(content)}:7"),
        (f"{write(content)}:10", f"{write(content)}:10"),
    ]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a O\n# a comment here\nb O\n", {}, ":2: 4 columns where the first token line has 2"),
        ("a O\n#x\nb O\n", {"comments": "#"}, ":2: a comment inside a sentence"),
        ("# a b\n", {"comments": "none"}, None),
        ("a O\n", {"tag_column": 2}, ":1: tag_column=2, but the line has 2 columns"),
        ("a O\n", {"token_column": "word"}, ":1: token_column=word, but the line has 2 columns"),
        ("a O\nb\tO\tO\n", {}, ":2: 3 columns where the first token line has 2"),
        ("a\tO\tO\nb\tO\nc\tO\tO\td\n", {}, ":2: 2 columns where the first token line has 3"),
    ],
)
def test_invalid_files_raise_with_options(write, content, options, message):
    path = write(content)
    if message is None:
        assert read(path)
        return
    with pytest.raises(DataError) as error:
        list(read_columns(path, Reading(**options)))
    assert str(error.value).startswith(f"{path}{message}")


def line_by_line(path):
    """Sentences of valid two-column files, by a simple reference reader."""
    sentences, inside = [], ([], [])
    for line in path.read_bytes().decode().split("\n"):
        if line.strip("\r\t "):
            token, tag = line.strip("\r").split("\t")
            inside[0].append(token)
            inside[1].append(tag)
        elif inside[0]:
            sentences.append(inside)
            inside = ([], [])
    return [*sentences, inside] if inside[0] else sentences


def test_reading_in_chunks_matches_reading_line_by_line(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "_CHUNK", 50)
    rng = random.Random(0)
    for number in range(60):
        ends = rng.choice(["\n", "\r\n"])
        lines = [
            rng.choice(["", "", "\t", " "]) if rng.random() < 0.3 else f"{'w' * rng.randint(1, 30)}\u00a0{at}\tB-X"
            for at in range(rng.randint(1, 40))
        ]
        path = tmp_path / f"{number}.tsv"
        path.write_bytes((ends.join(["first\tO", *lines]) + rng.choice(["", ends])).encode())
        assert read(path) == line_by_line(path)
