"""Lists of words, lookup of vectors by the same forms in training and tagging, coverage, and joined tables."""

import gzip
from itertools import cycle

import numpy as np
import pytest
from conftest import ARCHITECTURES, build_model
from hypothesis import example, given
from hypothesis import strategies as st

from hf_xorner import WordCharTokenizer
from hf_xorner.corpora.load import read_words
from hf_xorner.training.build import place_vectors, vector_fields
from hf_xorner.vectors.formats import Vectors
from hf_xorner.vectors.lookup import coverage_of, join, look_up

SENTENCES = [["Ann", "saw", "Oslo", "saw", "1996"], ["oslo", "xyz", "B-52"]]
WORDS = ["saw", "oslo", "0000", "rome", "b-00", "Ann"]
MATRIX = np.arange(12, dtype=np.float32).reshape(6, 2) + 1


def tokenizer_of(*fallback, **options):
    return WordCharTokenizer.from_corpus(SENTENCES, vector_words=WORDS, fallback=fallback, **options)


def first_known(word, fallback, words):
    """The paper's order, written out: the word, then each further form of it."""
    lower = word.lower()
    zero = "".join("0" if character.isdigit() else character for character in word)
    forms = {"lower": lower, "zero": zero, "lower_zero": zero.lower()}
    return next((form for form in [word, *(forms[step] for step in fallback)] if form in words), None)


@example(words=["A"], vectors=["a", "A"], fallback=["lower"])
@given(
    words=st.lists(st.text("aAbB09.", min_size=1, max_size=4), min_size=1),
    vectors=st.lists(st.text("aAbB09.", min_size=1, max_size=4), unique=True),
    fallback=st.permutations(["lower", "zero", "lower_zero"]).flatmap(
        lambda steps: st.integers(0, 3).map(lambda count: steps[:count])
    ),
)
def test_words_get_the_vector_of_their_first_known_form(words, vectors, fallback):
    tokenizer = WordCharTokenizer.from_corpus([words], vector_words=vectors, fallback=fallback)
    row_of = dict(look_up(tokenizer, vectors).T.tolist())
    for word in words:
        form = first_known(word, fallback, set(vectors))
        row = row_of.get(tokenizer.convert_tokens_to_ids(word))
        assert (None if row is None else vectors[row]) == form


def test_words_unseen_in_training_get_their_vector_in_tagging():
    tokenizer = tokenizer_of("lower", "lower_zero")
    ids = tokenizer([["Rome", "ROME", "rome", "Lima", "2001"]], is_split_into_words=True)["input_ids"][0]
    rome = tokenizer.get_vocab()["rome"]
    assert ids == [rome, rome, rome, 1, tokenizer.get_vocab()["0000"]]
    assert ids == tokenizer.convert_tokens_to_ids(["Rome", "ROME", "rome", "Lima", "2001"])
    fields = tokenizer.model_fields()
    assert rome >= fields["trained_vocab_size"] > tokenizer.get_vocab()["xyz"]
    assert fields["vocab_size"] == fields["trained_vocab_size"] + len({"0000", "rome", "b-00"})


def test_coverage_counts_the_first_step_that_finds_a_vector():
    coverage = coverage_of(tokenizer_of("lower", "lower_zero"), WORDS, SENTENCES)
    # Exact: Ann, saw twice, oslo; lowercased: Oslo; with digits as 0: 1996, B-52; not found: xyz.
    expected = {"exact": 4, "folded": 0, "lower": 1, "lower_zero": 2, "none": 1}
    assert coverage.tokens == {step: pytest.approx(100 * count / 8) for step, count in expected.items()}
    expected["exact"] = 3
    assert coverage.types == {step: pytest.approx(100 * count / 7) for step, count in expected.items()}
    assert "lower_zero      25.00     28.57" in str(coverage)


@pytest.mark.parametrize(("model_type", "use"), list(zip(ARCHITECTURES, cycle(["frozen", "tuned", "beside"]))))
def test_place_vectors_sets_the_rows_of_their_words(model_type, use):
    tokenizer = tokenizer_of("lower", "lower_zero")
    model = build_model(model_type, tokenizer, **{"word_dim": 3, **vector_fields(use, 2)})
    before = model.features.words.weight.clone()
    place_vectors(model.features, tokenizer, Vectors(WORDS, MATRIX), use)
    vocabulary = tokenizer.get_vocab()
    table = model.features.words.weight if use == "tuned" else model.features.static.weight
    for word, row in {"saw": 0, "Oslo": 1, "oslo": 1, "1996": 2, "rome": 3, "B-52": 4, "Ann": 5}.items():
        assert table[vocabulary[word]].tolist() == MATRIX[row].tolist()
    unseen = vocabulary["xyz"]
    assert table[unseen].tolist() == (before[unseen].tolist() if use == "tuned" else [0, 0])
    assert table.shape[0] == len(tokenizer)
    if use != "tuned":
        assert model.features.words.weight.shape == (
            tokenizer.model_fields()["trained_vocab_size"],
            0 if use == "frozen" else 3,
        )
        has = model.features.static.has_vector
        assert has.sum() == 9  # of 12 entries: all but [PAD], [UNK] and xyz


# --- Words ------------------------------------------------------------------------------------------------------------


def test_words_come_from_a_list_or_from_all_splits_of_a_corpus(tmp_path):
    for content in ("Oslo\nb\nOslo\n1\u00a0000\n", "\ufeff\nOslo\r\nb\r\n\r\n1\u00a0000"):
        for name, packed in (("words.tsv", content.encode()), ("words.gz", gzip.compress(content.encode()))):
            (tmp_path / name).write_bytes(packed)
            assert read_words(tmp_path / name) == ["Oslo", "b", "1\u00a0000"]
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "train.txt").write_text("Ann B-PER\nleft O\n\nleft O\n")
    (folder / "test.jsonl").write_text('{"tokens":["Bo","left"],"ner_tags":["B-PER","O"]}\n')
    assert read_words(folder) == ["Ann", "left", "Bo"]
    assert read_words(folder / "test.jsonl") == ["Bo", "left"]
    assert read_words("train.txt", data_dir=folder) == ["Ann", "left"]
    (folder / "train.txt").write_text("-DOCSTART-\n\nAnn B-PER\n")
    assert read_words(folder / "train.txt") == ["Ann"]


# --- Joined tables, compared with a lookup of a word at a time --------------------------------------------------------

FIRST = Vectors(["Oslo", "the", "b2"], np.array([[3, 4], [0, 0], [1, -2]], dtype=np.float32))
SECOND = Vectors(["oslo", "of", "b0"], np.array([[0.5], [0.25], [-0.25]], dtype=np.float16))
FORMS = {
    (): lambda word: [word],
    ("lower", "lower_zero"): lambda word: [word, word.lower(), word.lower().replace("2", "0")],
}


def looked_up(word, table, forms):
    """The vector of a word, divided by the root of the mean of the squares of the table's numbers."""
    numbers = [float(number) for row in table.matrix for number in row]
    scale = (sum(number**2 for number in numbers) / len(numbers)) ** 0.5
    for form in forms(word):
        if form in table.words:
            return [float(number) / scale for number in table.matrix[table.words.index(form)]]
    return [0.0] * table.dim


@pytest.mark.parametrize("fallback", FORMS, ids=str)
def test_joined_vectors_match_lookups_in_all_tables(fallback):
    for tables in ((FIRST, SECOND), (SECOND, FIRST), (FIRST, SECOND, FIRST)):
        joined = join(tables, fallback)
        assert joined.words == [*tables[0].words, *(word for word in tables[1].words if word not in tables[0].words)]
        assert joined.matrix.dtype == np.float32
        for word, row in zip(joined.words, joined.matrix, strict=True):
            expected = [number for table in tables for number in looked_up(word, table, FORMS[fallback])]
            np.testing.assert_allclose(row, expected, rtol=1e-6)


def test_empty_tables_and_tables_of_zeros_stay_zero():
    none, zeros = Vectors([], np.zeros((0, 3), np.float32)), Vectors(["the"], np.zeros((1, 2), np.float32))
    joined = join([none, zeros, FIRST])
    assert joined.words == ["the", "Oslo", "b2"]
    assert not joined.matrix[:, :5].any() and joined.matrix[1, 5:].any()
