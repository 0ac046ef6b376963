import pytest

from hf_xorner.data import DataError
from hf_xorner.data.columns import read_columns


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
def test_every_form_of_the_same_text_reads_the_same(write, content):
    assert read(write(content)) == EXPECTED


def test_a_tab_file_splits_at_tabs_only(write):
    assert read(write("New York\tB-LOC\nis fine\tO\n")) == [(["New York", "is fine"], ["B-LOC", "O"])]


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\x0b", "\x1c", "\r"])
@pytest.mark.parametrize("separator", ["\t", " "])
def test_other_blanks_and_line_breaks_stay_inside_tokens(write, blank, separator):
    token = f"1{blank}000"
    assert read(write(f"{token}{separator}O\nkm{separator}O\n")) == [([token, "km"], ["O", "O"])]


def test_a_token_that_only_begins_like_a_document_line_is_a_token(write):
    assert read(write("-DOCSTART-ed O\n")) == [(["-DOCSTART-ed"], ["O"])]


def test_sentences_know_their_lines(write):
    content = "-DOCSTART- O\n\na O\nb O\n\n\nc O\n"
    assert [sentence.line for sentence in read_columns(write(content))] == [3, 7]


def test_sentences_come_before_the_rest_of_the_file_is_read(write):
    sentences = read_columns(write("a O\n\nb O O\n"))
    assert next(sentences).tokens == ["a"]
    with pytest.raises(DataError):
        next(sentences)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a O\nb\n", ":2: 1 column where the lines before have 2; give every line the same number of columns."),
        ("a\tO\nb\tx\tO\n", ":2: 3 columns where the lines before have 2; give every line the same number of columns."),
        ("a\n", ":1: one column only; expected a token and its tag, separated by a TAB or blanks."),
        ("a\tO\n\tO\n", ":2: the token is empty; give every line both."),
        ("a\tO\nb\t\n", ":2: the tag is empty; give every line both."),
        ("", ":1: the file holds no sentence; expected lines of a token and its tag."),
        ("\n \n-DOCSTART- O\n", ":1: the file holds no sentence; expected lines of a token and its tag."),
        (b"a O\nb O\n\nna\xefve O\n", ":4: byte 0xef is not valid UTF-8; save the file as UTF-8."),
        ("a O\n".encode("utf-16"), ":1: byte 0xff is not valid UTF-8; save the file as UTF-8."),
    ],
)
def test_faults_are_told_with_file_and_line(write, content, message):
    path = write(content)
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value) == f"{path}{message}"


def test_a_broken_byte_far_into_a_file_is_found(write):
    path = write(b"word O\n" * 20_000 + b"\xff O\n")
    with pytest.raises(DataError, match=r":20001: byte 0xff"):
        read(path)
