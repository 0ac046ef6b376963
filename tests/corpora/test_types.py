"""Types that are renamed or unknown, and words whose tag is unknown."""

import logging
import random

import pytest
from span_oracle import SCHEMES, tags_of_spans

from hf_xorner.corpora import DataError, corpus_statistics, load_corpus
from hf_xorner.corpora.assemble import words_and_tags

TYPES = {"person": "PER", "actor": "PER", "product": "?", "date": "O", "place": None}
OPTION = ", ".join(f"{old}={new}" for old, new in TYPES.items() if new)


def drawn_spans(draw, size):
    """Spans (start, end, type), often side by side."""
    spans, start = [], 0
    while start < size:
        end = min(size, start + draw.randint(1, 3))
        if draw.random() < 0.7:
            spans.append((start, end, draw.choice(list(TYPES))))
        start = end
    return spans


def with_new_types(spans, size):
    tags = ["O"] * size
    for first, after, name in spans:
        new = TYPES[name] or name
        size = after - first
        tags[first:after] = [new] * size if new in "O?" else [f"B-{new}"] + [f"I-{new}"] * (size - 1)
    return tags


def write(path, sentences):
    path.write_text("\n".join("".join(f"w{at}w\t{tag}\n" for at, tag in enumerate(tags)) for tags in sentences))
    return path


@pytest.mark.parametrize("scheme", SCHEMES)
def test_types_change_in_every_scheme_without_a_repair(tmp_path, scheme, caplog):
    """Entities beside others that are renamed or unknown stay as they are, also those of one type afterwards."""
    draw = random.Random(scheme)
    sizes = [draw.randint(1, 9) for _ in range(40)]
    pairs = [(drawn_spans(draw, size), size) for size in sizes]
    path = write(tmp_path / "some.conll", [tags_of_spans(*pair, scheme) for pair in pairs])
    corpus = load_corpus(path, types=OPTION, strict=True)
    expected = [with_new_types(*pair) for pair in pairs]
    assert words_and_tags(corpus["train"])[1] == expected
    assert corpus["train"].features["ner_tags"].feature.names == ["O", "B-PER", "I-PER", "B-place", "I-place"]
    counts, tags = corpus_statistics(corpus)["train"], [tag for row in expected for tag in row]
    assert (counts["tokens"], counts["unlabelled_tokens"]) == (len(tags), tags.count("?"))
    assert counts["per_type"] == {name: tags.count(f"B-{name}") for name in ("PER", "place")}
    assert counts["entities"] == sum(counts["per_type"].values())
    assert not caplog.records


def test_the_scheme_is_that_of_all_tags(tmp_path):
    """Here, only the entity that becomes unknown shows that the scheme is BIOES."""
    path = write(tmp_path / "some.conll", [["B-product", "E-product", "B-place", "I-place"]])
    assert words_and_tags(load_corpus(path, types="product=?")["train"])[1] == [["?", "?", "B-place", "I-place"]]
    with pytest.raises(DataError, match="1 entities without their last tag were closed"):
        load_corpus(path, types="product=?", strict=True)


def test_types_without_an_example_in_the_training_split_are_logged(tmp_path, caplog):
    write(tmp_path / "train.conll", [["B-PER", "O"]])
    write(tmp_path / "test.conll", [["B-person", "B-thing"]])
    corpus = load_corpus(tmp_path, types="person=PER")
    assert words_and_tags(corpus["test"])[1] == [["B-PER", "B-thing"]]
    assert corpus["train"].features == corpus["test"].features
    assert caplog.messages == [f"{tmp_path}: has no example of thing in its training split, only in test."]
    corpus = load_corpus(tmp_path, types="person=PER,thing=?")["test"]
    assert words_and_tags(corpus)[1] == [["B-PER", "?"]]


def test_types_may_change_places(tmp_path):
    path = write(tmp_path / "some.conll", [["B-A", "B-B"]])
    assert words_and_tags(load_corpus(path, types="A=B,B=A")["train"])[1] == [["B-B", "B-A"]]


def test_types_of_words_are_refused(tmp_path):
    path = write(tmp_path / "some.conll", [["NN", "VB", "?"]])
    with pytest.raises(DataError, match=r"some\.conll: types=\['NN=N'\] renames types of entities"):
        load_corpus(path, types="NN=N")


def test_types_that_the_corpus_lacks_are_logged(tmp_path, caplog):
    path = write(tmp_path / "some.conll", [["B-A", "O"]])
    with caplog.at_level(logging.INFO):
        load_corpus(path, types="A=B,C=D")
    assert "some.conll: has no entities of C, which types renames" in caplog.text


def test_a_plain_tag_named_question_mark_is_a_label(tmp_path):
    path = write(tmp_path / "some.conll", [["NN", "?", "VB"], ["?"]])
    corpus = load_corpus(path)
    assert corpus["train"].features["ner_tags"].feature.names == ["?", "NN", "VB"]
    assert corpus["train"]["ner_tags"][:] == [[1, 0, 2], [0]]
    assert corpus_statistics(corpus)["train"]["per_tag"] == {"?": 2, "NN": 1, "VB": 1}


def test_a_split_without_any_label_is_refused(tmp_path):
    write(tmp_path / "train.conll", [["B-X", "O"]])
    write(tmp_path / "test.conll", [["?"], ["?", "?"]])
    with pytest.raises(DataError, match=r"test\.conll: all words have the unknown tag \?"):
        load_corpus(tmp_path)
    write(tmp_path / "test.conll", [["B-X"]])
    with pytest.raises(DataError, match=r"test\.conll: all words have the unknown tag \?"):
        load_corpus(tmp_path, types="X=?")
