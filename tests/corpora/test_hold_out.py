"""Validation data held out from the training split."""

import random

import pytest
from corpus_files import split_of
from datasets import DatasetDict

from hf_xorner.corpora.hold_out import FEWEST_DOCUMENTS, HeldOut, hold_out

LABELS = ["O", "B-PER", "I-PER", "B-GOD"]


def split_with_names(sentences, documents=None):
    """A split of sentences of words in which capitals are names, and Zeus is a god."""
    rows = [sentence.split() for sentence in sentences]
    tags = [["B-GOD" if word == "Zeus" else "B-PER" if word.istitle() else "O" for word in row] for row in rows]
    return split_of(rows, tags, LABELS, docs=documents)


def texts(split):
    return [" ".join(row) for row in split["tokens"]]


def held_out_of(sentences, share=0.1, documents=None):
    return hold_out(DatasetDict(train=split_with_names(sentences, documents)), share, "my_corpus")


SENTENCES = [f"Ann saw {number} of them" for number in range(200)]


def test_a_tenth_is_held_out_in_the_order_of_the_data(caplog):
    corpus = DatasetDict(train=split_with_names(SENTENCES), test=split_with_names(["x"]))
    divided, held_out = hold_out(corpus, 0.1, "my_corpus")
    assert list(divided) == ["train", "validation", "test"]
    assert held_out == HeldOut(0.1, "sentence", 13, 20)
    train, validation = texts(divided["train"]), texts(divided["validation"])
    assert len(validation) == 20 and sorted(train + validation) == sorted(SENTENCES)
    assert train == [text for text in SENTENCES if text in set(train)]
    assert validation == [text for text in SENTENCES if text in set(validation)]
    assert divided["validation"].features == corpus["train"].features
    (line,) = caplog.messages
    assert line.startswith("my_corpus: no validation split; 20 of 200 training sentences were held out")


def test_the_choice_depends_on_the_sentences_alone():
    chosen = set(texts(held_out_of(SENTENCES)[0]["validation"]))
    # Fixed, so that a run can be repeated with any version.
    expected = [0, 9, 11, 21, 23, 35, 38, 39, 40, 69, 87, 94, 95, 97, 118, 132, 134, 148, 153, 184]
    assert sorted(int(text.split()[2]) for text in chosen) == expected
    shuffled = random.Random(3).sample(SENTENCES, len(SENTENCES))
    assert set(texts(held_out_of(shuffled)[0]["validation"])) == chosen


def test_documents_are_held_out_whole():
    draw = random.Random(5)
    divided, held_out = held_out_of(SENTENCES, documents=sorted(f"d{draw.randrange(30)}" for _ in SENTENCES))
    inside = set(divided["validation"]["doc_id"])
    assert held_out.by == "document" and inside
    assert not inside & set(divided["train"]["doc_id"])
    assert 14 <= held_out.sentences <= 20


@pytest.mark.parametrize(("documents", "by"), [(FEWEST_DOCUMENTS - 1, "sentence"), (FEWEST_DOCUMENTS, "document")])
def test_few_documents_are_not_held_out_whole(documents, by):
    names = [f"d{number % documents}" for number in range(200)]
    assert held_out_of(SENTENCES, 0.2, names)[1].by == by


def test_equal_sentences_stay_together():
    divided, _ = held_out_of([*SENTENCES, *SENTENCES[::2]], 0.2)
    assert not set(texts(divided["train"])) & set(texts(divided["validation"]))


def test_every_label_keeps_an_example_in_training():
    divided, _ = held_out_of(["1 Zeus", "2 Zeus", "3 Zeus", "Ann", "it rains"], 0.9)
    labels = {tag for row in divided["train"]["ner_tags"] for tag in row}
    assert labels == {LABELS.index(label) for label in ("O", "B-PER", "B-GOD")}
    assert 1 <= len(divided["validation"]) < 4


@pytest.mark.parametrize(
    ("corpus", "share", "lines"),
    [
        (DatasetDict(train=split_with_names(SENTENCES), validation=split_with_names([""])), 0.1, 0),
        (DatasetDict(train=split_with_names(SENTENCES)), 0.0, 0),
        (DatasetDict(train=split_with_names(SENTENCES[:9])), 0.1, 1),
        (DatasetDict(train=split_with_names([*SENTENCES[:9], "", ""])), 0.1, 1),
        (DatasetDict(train=split_with_names(SENTENCES[:1] * 200)), 0.1, 1),
    ],
    ids=["a validation split", "switched off", "too few", "too few with words", "all the same"],
)
def test_nothing_is_held_out(corpus, share, lines, caplog):
    divided, held_out = hold_out(corpus, share, "")
    assert held_out is None and divided is corpus
    assert len(caplog.messages) == lines
