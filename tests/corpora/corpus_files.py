"""Files that are written and loaded, and splits in memory."""

import pytest
from datasets import ClassLabel, Dataset, Features, List, Value

from hf_xorner.corpora import load_corpus
from hf_xorner.corpora.assemble import words_and_tags


def split_of(tokens, tags, labels, pos=None, docs=None):
    """A split of sentences; the tag "?" is unknown."""
    numbers = {"?": -1, **{label: number for number, label in enumerate(labels)}}
    columns = {"tokens": tokens, "ner_tags": [[numbers[tag] for tag in row] for row in tags]}
    features = {"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=labels))}
    if pos is not None:
        columns["pos_tags"], features["pos_tags"] = pos, List(Value("string"))
    if docs is not None:
        columns["doc_id"], features["doc_id"] = docs, Value("string")
    return Dataset.from_dict(columns, features=Features(features))


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
