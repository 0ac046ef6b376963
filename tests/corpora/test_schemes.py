"""Schemes, compared with a reader of chunks that goes token by token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.scheme import IOB1, IOB2, IOBES, Entities

from hf_xorner.corpora.schemes import EDGE, iob2_of, label_names, recognise, repairs_of

PREFIXES = {"iob1": "BI", "iob2": "BI", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES"}
TYPES = ("X", "Y", "art-work")


def pairs_of(tags):
    return list(zip([EDGE, *tags], [*tags, EDGE], strict=True))


def converted(tags, scheme):
    return [iob2_of(pair, scheme) for pair in pairs_of(tags)[:-1]]


def repairs(tags, scheme):
    return [kind for pair in pairs_of(tags) for kind in repairs_of(pair, scheme)]


def tags_in(scheme):
    return st.lists(
        st.sampled_from(["O", *(f"{prefix}-{name}" for prefix in PREFIXES[scheme] for name in TYPES)]), max_size=9
    )


def chunks_token_by_token(tags, scheme):
    """The chunks of tags as (start, end, type), where a tag that continues no chunk opens one."""
    begin, inside, end, _ = {"bilou": "BILU", "bmes": "BMES"}.get(scheme, "BIES")
    chunks, open_type = [], None
    for place, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        continues = prefix in (inside, end) and open_type == kind
        if continues:
            chunks[-1][1] = place + 1
        elif tag != "O":
            chunks.append([place, place + 1, kind])
        open_type = kind if prefix in (begin, inside) else None
    return [tuple(chunk) for chunk in chunks]


def chunks_of_iob2(tags):
    return [(entity.start, entity.end, entity.tag) for entity in Entities([tags], IOB2).entities[0]]


@pytest.mark.parametrize("scheme", PREFIXES)
@given(data=st.data())
def test_conversion_to_iob2_keeps_the_chunks(scheme, data):
    tags = data.draw(tags_in(scheme))
    found = converted(tags, scheme)
    assert chunks_of_iob2(found) == chunks_token_by_token(tags, scheme)
    assert repairs(found, "iob2") == []


@pytest.mark.parametrize("scheme", ["bioes", "bilou", "bmes"])
@given(data=st.data())
def test_repairs_are_needed_exactly_if_a_strict_reader_fails(scheme, data):
    tags = data.draw(tags_in(scheme))
    renamed = dict(zip(PREFIXES[scheme], "BIES", strict=True))
    as_iobes = [tag if tag == "O" else renamed[tag[0]] + tag[1:] for tag in tags]
    covered = sum(entity.end - entity.start for entity in Entities([as_iobes], IOBES).entities[0])
    labelled = sum(tag != "O" for tag in tags)
    assert (repairs(tags, scheme) == []) == (covered == labelled)


@given(tags=tags_in("iob1"))
def test_iob1_matches_seqeval_without_repairs(tags):
    # seqeval's IOB1 takes no B- that begins a chunk on its own; the scheme's definition gives it no meaning there.
    free_begin = any(tag[0] == "B" and before[1:] != tag[1:] for before, tag in pairs_of(tags)[:-1] if tag)
    if not free_begin:
        expected = [(entity.start, entity.end, entity.tag) for entity in Entities([tags], IOB1).entities[0]]
        assert chunks_of_iob2(converted(tags, "iob1")) == expected
    assert repairs(tags, "iob1") == []


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("O", "iob2"),
        ("B-X I-X O", "iob2"),
        ("I-X I-X O", "iob1"),
        ("I-X B-X I-X", "iob1"),
        ("I-X O B-X", "iob2"),
        ("O I-X O B-Y B-Y", "iob2"),
        ("B-X E-X", "bioes"),
        ("S-X", "bioes"),
        ("B-X I-X", "iob2"),
        ("U-X", "bilou"),
        ("B-X L-X", "bilou"),
        ("B-X M-X E-X", "bmes"),
        ("NN VB", "plain"),
        ("NN O", "plain"),
        ("-LRB- ,", "plain"),
        ("B-X Z-X E-X", "bioes"),
    ],
)
def test_schemes_are_recognised(tags, scheme):
    assert recognise(pairs_of(tags.split())) == scheme


@pytest.mark.parametrize(
    ("tags", "scheme", "expected", "count"),
    [
        ("O I-X I-X", "iob2", "O B-X I-X", 1),
        ("B-X I-Y I-Y", "iob2", "B-X B-Y I-Y", 1),
        ("I-X I-X", "iob1", "B-X I-X", 0),
        ("B-X O", "bioes", "B-X O", 1),
        ("B-X E-X S-X", "bioes", "B-X I-X B-X", 0),
        ("E-X", "bioes", "B-X", 1),
        ("B-X S-X", "bioes", "B-X B-X", 1),
        ("S-X I-X", "bioes", "B-X B-X", 2),
        ("B-X L-Y", "bilou", "B-X B-Y", 2),
        ("M-X E-X", "bmes", "B-X I-X", 1),
        ("NN VB", "plain", "NN VB", 0),
    ],
)
def test_examples(tags, scheme, expected, count):
    assert converted(tags.split(), scheme) == expected.split()
    assert len(repairs(tags.split(), scheme)) == count


def test_label_order():
    assert label_names({"I-b", "B-a", "O", "S-c"}, plain=False) == ["O", "B-a", "I-a", "B-b", "I-b", "B-c", "I-c"]
    assert label_names({"VB", "O", "NN"}, plain=True) == ["O", "NN", "VB"]
