"""Files that are written and loaded."""

import pytest

from hf_xorner.corpora import load_corpus
from hf_xorner.corpora.assemble import words_and_tags


@pytest.fixture
def write(tmp_path):
    """Writes a file, and returns its path."""

    def write(content, name="x.conll"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def load(write):
    """Writes a file, and loads it as a training split."""
    return lambda content, name="x.conll", **options: load_corpus(write(content, name), **options)["train"]


@pytest.fixture
def read(load):
    """Writes a file, and returns its sentences: the words and the tags, with blanks between them."""

    def read(content, name="x.conll", **options):
        words, tags = words_and_tags(load(content, name, **options))
        return [(" ".join(sentence), " ".join(row)) for sentence, row in zip(words, tags, strict=True)]

    return read
