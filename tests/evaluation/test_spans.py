import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, Entities

from hf_xorner.evaluation import TagSet, spans_of_ids, spans_of_tags

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y", "B-art-work", "I-art-work"]
SENTENCES = st.lists(st.lists(st.sampled_from(TAGS), max_size=8), max_size=6)


def spans(sentences, policy):
    tag_set = TagSet.of(TAGS)
    found = spans_of_tags(sentences, policy, tag_set)
    columns = zip(found.sentence.tolist(), found.start.tolist(), found.end.tolist(), found.type.tolist(), strict=True)
    return [(sentence, start, end, tag_set.types[index]) for sentence, start, end, index in columns]


@pytest.mark.parametrize(
    ("tags", "strict", "conlleval"),
    [
        ("O O", [], []),
        ("B-X I-X O", [(0, 2, "X")], [(0, 2, "X")]),
        ("B-X B-X", [(0, 1, "X"), (1, 2, "X")], [(0, 1, "X"), (1, 2, "X")]),
        ("O I-X I-X", [], [(1, 3, "X")]),
        ("I-X B-X", [(1, 2, "X")], [(0, 1, "X"), (1, 2, "X")]),
        ("B-X I-Y I-Y", [(0, 1, "X")], [(0, 1, "X"), (1, 3, "Y")]),
        ("B-X I-Y I-X", [(0, 1, "X")], [(0, 1, "X"), (1, 2, "Y"), (2, 3, "X")]),
        ("B-X O I-X", [(0, 1, "X")], [(0, 1, "X"), (2, 3, "X")]),
    ],
)
def test_the_policies_on_the_classic_cases(tags, strict, conlleval):
    assert spans([tags.split()], "strict") == [(0, *span) for span in strict]
    assert spans([tags.split()], "conlleval") == [(0, *span) for span in conlleval]


def test_no_span_crosses_a_sentence():
    assert spans([["B-X"], [], ["I-X"]], "conlleval") == [(0, 0, 1, "X"), (2, 0, 1, "X")]
    assert spans([["B-X"], [], ["I-X"]], "strict") == [(0, 0, 1, "X")]


def test_nothing_gives_nothing():
    assert spans([], "strict") == []
    assert spans([[], []], "conlleval") == []


@given(SENTENCES)
def test_conlleval_equals_seqevals_default(sentences):
    expected = [
        (index, start, last + 1, name)
        for index, tags in enumerate(sentences)
        for name, start, last in get_entities(list(tags))
    ]
    assert spans(sentences, "conlleval") == expected


@given(SENTENCES)
def test_strict_equals_seqevals_strict(sentences):
    expected = [
        (entity.sent_id, entity.start, entity.end, entity.tag)
        for sentence in Entities(sentences, IOB2).entities
        for entity in sentence
    ]
    assert spans(sentences, "strict") == expected


def test_numbers_serve_as_well_as_strings():
    found = spans_of_ids(np.array([2, 1, 0]), np.array([1, 2]), TagSet.of(["B-X", "I-X", "O"]), "conlleval")
    assert (found.sentence.tolist(), found.start.tolist(), found.end.tolist()) == ([1, 1], [0, 1], [1, 2])


def test_plain_tags_have_no_spans():
    assert TagSet.of(["NN", "O"]).plain
    assert not TagSet.of(["O"]).plain
    assert len(spans_of_tags([["NN", "VB"]], "strict")) == 0


@pytest.mark.parametrize("tag", ["S-X", "B-", "X", "b-X"])
def test_unknown_tags_are_refused(tag):
    with pytest.raises(ValueError) as error:
        TagSet.of(["B-X", tag])
    assert str(error.value) == f"unknown tag {tag!r}: scores need IOB2, that is O, or a type after B- or I-."


def test_unknown_policies_are_refused():
    with pytest.raises(ValueError, match="unknown policy 'loose'; expected one of strict, conlleval"):
        spans([["O"]], "loose")
