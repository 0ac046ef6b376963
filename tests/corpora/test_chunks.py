"""Chunks and schemes, compared with a loop over tokens and with seqeval's parsers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Entities

from hf_xorner.corpora import DataError
from hf_xorner.corpora.schemes import WRITTEN_SCHEMES, TagSet, from_iob2, iob2_of, is_chunked

LABELS = ["O", "B-PER", "I-PER", "B-art-work", "I-art-work", "B-O", "I-O"]
LETTERS = {
    "iob2": {"single": "B", "first": "B", "between": "I", "last": "I"},
    "bioes": {"single": "S", "first": "B", "between": "I", "last": "E"},
    "bilou": {"single": "U", "first": "B", "between": "I", "last": "L"},
    "bmes": {"single": "S", "first": "B", "between": "M", "last": "E"},
}
SEQEVAL = {"iob1": IOB1, "iob2": IOB2, "bioes": IOBES, "bilou": BILOU, "bmes": IOBES}

sentences_of_labels = st.lists(st.lists(st.sampled_from(LABELS), max_size=9), max_size=6)


def loop_spans(sentence):
    """Spans (start, end, type); an I- that continues nothing starts one."""
    spans = []
    for index, label in enumerate(sentence):
        if label == "O":
            continue
        name = label[2:]
        if label[0] == "I" and spans and spans[-1][1] == index and spans[-1][2] == name:
            spans[-1] = (spans[-1][0], index + 1, name)
        else:
            spans.append((index, index + 1, name))
    return spans


def loop_tags(sentence, scheme):
    tags = ["O"] * len(sentence)
    before = None
    for start, end, name in loop_spans(sentence):
        for index in range(start, end):
            if scheme == "iob1":
                letter = "B" if index == start and before == (start, name) else "I"
            else:
                place = "single" if end == start + 1 else "first" if index == start else "between"
                letter = LETTERS[scheme]["last" if index == end - 1 > start else place]
            tags[index] = f"{letter}-{name}"
        before = (end, name)
    return tags


def flat(sentences, labels=LABELS):
    ids = np.array([labels.index(label) for sentence in sentences for label in sentence], dtype=np.int64)
    return ids, np.array([len(sentence) for sentence in sentences], dtype=np.int64)


def written(sentences, scheme, labels=LABELS):
    ids, lengths = flat(sentences, labels)
    tag_ids, tags = from_iob2(ids, lengths, labels, scheme)
    ends = np.cumsum(lengths)
    return [[tags[index] for index in tag_ids[end - length : end]] for end, length in zip(ends, lengths, strict=True)]


@given(sentences_of_labels)
def test_every_scheme_matches_a_loop_over_tokens(sentences):
    for scheme in WRITTEN_SCHEMES:
        assert written(sentences, scheme) == [loop_tags(sentence, scheme) for sentence in sentences], scheme


@given(sentences_of_labels)
def test_every_scheme_matches_seqeval(sentences):
    spans = [loop_spans(sentence) for sentence in sentences]
    for scheme, parser in SEQEVAL.items():
        # seqeval has no BMES, but the equivalent BIOES.
        tags = [[tag.replace("M-", "I-", 1) for tag in sentence] for sentence in written(sentences, scheme)]
        found = Entities(tags, scheme=parser).entities
        assert [[(entity.start, entity.end, entity.tag) for entity in row] for row in found] == spans, scheme


@given(sentences_of_labels)
def test_well_formed_labels_round_trip(sentences):
    clean = [loop_tags(sentence, "iob2") for sentence in sentences]
    for scheme in WRITTEN_SCHEMES:
        back = [
            [iob2_of(pair, scheme) for pair in zip(["", *tags], tags, strict=False)] for tags in written(clean, scheme)
        ]
        assert back == clean, scheme


@given(sentences_of_labels)
def test_chunks_match_a_loop_over_tokens(sentences):
    tag_set = TagSet.of(LABELS)
    chunks = tag_set.chunks(*flat(sentences))
    expected, before = [], 0
    for sentence in sentences:
        expected += [(before + start, before + end, name) for start, end, name in loop_spans(sentence)]
        before += len(sentence)
    types = [tag_set.types[index] for index in chunks.type]
    assert list(zip(chunks.first, chunks.end, types, strict=True)) == expected


def test_the_schemes_by_example():
    sentence = ["B-PER", "I-PER", "I-PER", "B-PER", "B-art-work", "O", "B-PER", "I-PER"]
    assert {scheme: " ".join(written([sentence], scheme)[0]) for scheme in (*WRITTEN_SCHEMES, "brackets")} == {
        "iob1": "I-PER I-PER I-PER B-PER I-art-work O I-PER I-PER",
        "iob2": "B-PER I-PER I-PER B-PER B-art-work O B-PER I-PER",
        "bioes": "B-PER I-PER E-PER S-PER S-art-work O B-PER E-PER",
        "bilou": "B-PER I-PER L-PER U-PER U-art-work O B-PER L-PER",
        "bmes": "B-PER M-PER E-PER S-PER S-art-work O B-PER E-PER",
        "brackets": "(PER* * *) (PER) (art-work) * (PER* *)",
    }


@pytest.mark.parametrize("scheme", WRITTEN_SCHEMES)
def test_plain_labels_are_unchanged(scheme):
    assert written([["NN", "B-x"], ["VB"]], scheme, ["B-x", "NN", "VB"]) == [["NN", "B-x"], ["VB"]]


def test_plain_labels_are_recognised():
    assert is_chunked(["O"])
    assert is_chunked(LABELS)
    assert not is_chunked(["NN", "O"])
    assert not is_chunked(["B-", "O"])
    assert not is_chunked(["B-x", "S-x"])


def test_an_unknown_scheme_is_refused():
    with pytest.raises(DataError) as error:
        from_iob2(*flat([]), LABELS, "iobes")
    assert str(error.value) == ("scheme='iobes' cannot be written; choose one of iob1, iob2, bioes, bilou, bmes.")
