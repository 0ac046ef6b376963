import gzip

import pytest

from hf_xorner.corpora import DataError
from hf_xorner.vectors.lookup import read_words, with_foldings


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.mark.parametrize("name", ["words.txt", "words", "words.tsv"])
@pytest.mark.parametrize("content", ["Oslo\nb\nOslo\n1\u00a0000\n", "\ufeff\nOslo\r\nb\r\n\r\n1\u00a0000"])
def test_lists_have_one_word_per_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content.encode())
    assert read_words(tmp_path / name) == ["Oslo", "b", "1\u00a0000"]
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    assert read_words(tmp_path / f"{name}.gz") == ["Oslo", "b", "1\u00a0000"]


def test_the_words_of_a_corpus_come_from_all_splits(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "train.txt").write_text("Ann B-PER\nleft O\n\nleft O\n")
    (folder / "test.txt").write_text("Bo B-PER\nleft O\n")
    assert read_words(folder) == ["Ann", "left", "Bo"]
    assert read_words(folder / "train.txt") == ["Ann", "left"]
    assert read_words("train.txt", data_dir=folder) == ["Ann", "left"]


def test_json_lines_are_read_as_a_corpus(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text('{"tokens":["a","b"],"ner_tags":["O","O"]}\n')
    assert read_words(path) == ["a", "b"]


def test_a_file_without_words_raises(tmp_path):
    (tmp_path / "x.txt").write_text("\n")
    with pytest.raises(DataError, match=r"x\.txt:1: the file holds no sentence"):
        read_words(tmp_path / "x.txt")


def test_foldings_are_all_forms_used_in_lookup():
    assert with_foldings(["Oslo", "X2b٣", "İz"]) == {
        *("Oslo", "oslo", "X2b٣", "x2b٣", "X0b0", "x0b0", "İz", "iz"),
    }
