"""Files of predictions: reading, writing and errors."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xorner.corpora import DataError
from hf_xorner.corpora.predictions import read_predictions, write_predictions

pytest_plugins = "corpus_files"


def test_sentences_are_read(write):
    predictions = read_predictions(write("Ann\tB-PER\tB-PER\nleft\tO\tB-LOC\n\n\nRain\tO\tO"))
    assert predictions == ([["Ann", "left"], ["Rain"]], [["B-PER", "O"], ["O"]], [["B-PER", "B-LOC"], ["O"]])


@pytest.mark.parametrize(
    "token", ["#", "# a", "-DOCSTART-", "a b", " ", "\u00a0", "\u2028", "\u0085", "\x0b", '"', "{", "'\\t'"]
)
def test_tokens_may_contain_anything_but_separators(write, token):
    assert read_predictions(write(f"{token}\tO\tB-X\nb\tO\tO\n")).tokens == [[token, "b"]]


@pytest.mark.parametrize("token", ["a", "\ufeff", "\ufeffa"])
def test_a_byte_order_mark_is_not_part_of_the_first_token(write, token):
    rows = f"{token}\tO\tO\n{token}\tO\tO\n"
    assert read_predictions(write(f"\ufeff{rows}")).tokens == [[token, token]]


@pytest.mark.parametrize("content", ["a\tO\tO\r\n\r\nb\tO\tO\r\n", "\n\na\tO\tO\n \n\t\t\nb\tO\tO\n\n\n"])
def test_sentences_end_at_empty_lines(write, content):
    assert read_predictions(write(content)).tokens == [["a"], ["b"]]
    assert read_predictions(write(gzip.compress(content.encode()))).tokens == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a\tO\tO\nb O O\n", 2),
        ("a\tO\tO\tO\n", 1),
        ("a\tO\tO\n\na\tO\t\n", 3),
        ("a\tO\tO\nb\tB-X\tB-X \n", 2),
        ("\ufeff", 1),
        (b"a\tO\tO\n\xff\tO\tO\n", 2),
    ],
)
def test_invalid_files_raise_with_file_and_line(write, content, line):
    path = write(content)
    with pytest.raises(DataError) as error:
        read_predictions(path)
    assert str(error.value).startswith(f"{path}:{line}")


TOKEN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff"), min_size=1, max_size=6)
SENTENCE = st.lists(st.tuples(TOKEN, st.sampled_from(["O", "B-X"]), st.sampled_from(["O", "I-Y"])), min_size=1)


@given(st.lists(SENTENCE, min_size=1, max_size=5))
def test_predictions_round_trip(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("p") / "p.tsv"
    columns = [[[row[index] for row in sentence] for sentence in rows] for index in range(3)]
    write_predictions(path, *columns)
    assert list(read_predictions(path)) == columns


@pytest.mark.parametrize("token", ["a\tb", "a\nb", ""])
def test_tokens_that_the_file_cannot_hold_are_refused(tmp_path, token):
    with pytest.raises(DataError, match="sentence 1"):
        write_predictions(tmp_path / "p.tsv", [["x"], [token]], [["O"], ["O"]], [["O"], ["O"]])
    assert not list(tmp_path.iterdir())
