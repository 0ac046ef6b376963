from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from span_oracle import all_tags, pairs, tuples_of

from hf_xorner.corpora.schemes import TagSet, scheme_of
from hf_xorner.evaluation.comparison import Comparison


def spans(sentences, policy, scheme="iob2"):
    """The spans of sentences, read with a tag set of all tags of the scheme and of those given."""
    numbers = {tag: index for index, tag in enumerate(sorted({*all_tags(scheme), *chain.from_iterable(sentences)}))}
    ids = np.array([numbers[tag] for tag in chain.from_iterable(sentences)], dtype=np.int64)
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    comparison = Comparison(ids, ids, lengths, TagSet.of(numbers, scheme), policy)
    return tuples_of(comparison.gold, comparison)


# What conlleval.pl's endOfChunk and startOfChunk name: prefixes side by side of one type that end, or begin, a chunk.
# A change of type always does both, and a sentence is followed by O.
PERL_ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
PERL_BEGINS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}


def perl_spans(tags):
    """The spans that conlleval.pl counts in a sentence."""
    spans, start, before, kind = [], 0, "O", ""
    for index, tag in enumerate([*tags, "O"]):
        prefix, name = tag[0], tag[2:]
        if before != "O" and (before + prefix in PERL_ENDS or name != kind):
            spans.append((start, index, kind))
        if prefix != "O" and (before + prefix in PERL_BEGINS or name != kind):
            start = index
        before, kind = prefix, name
    return spans


@given(data=st.data())
def test_conlleval_matches_the_perl_script(data):
    for scheme in ("iob1", "iob2"):
        for sentences in data.draw(pairs(scheme)):
            expected = [(index, *span) for index, tags in enumerate(sentences) for span in perl_spans(tags)]
            assert spans(sentences, "conlleval", scheme) == expected
    # It joins an E- to the B- after it, and ignores S-, so only single runs with ends are alike.
    for tags in ("O E-X O", "E-X E-X", "B-X E-X I-X", "B-X E-Y", "B-X I-X O", "I-X E-X", "O I-X E-X"):
        assert spans([tags.split()], "conlleval", "bioes") == [(0, *span) for span in perl_spans(tags.split())]


def test_schemes_are_recognised_by_their_prefixes():
    for scheme, examples in {
        "iob2": ["", "O", "B-X", "O I-X", "O B-X I-X"],
        "bioes": ["O B-X I-X E-X S-X", "O I-X E-X", "O S-X", "O B-X E-Y S-X"],
        "bilou": ["O B-X I-X L-X U-X", "O U-X", "B-X L-X"],
        "bmes": ["O B-X M-X E-X S-X", "O M-X"],
        "plain": ["NN VB", "NN O", "NN S-X", "S- O"],
    }.items():
        for tags in examples:
            assert scheme_of(tags.split()) == TagSet.of(tags.split()).scheme == scheme, tags
    assert len(Comparison.of([["NN", "VB"]], [["NN", "VB"]]).gold) == 0


def test_tags_of_no_scheme_are_refused():
    for tags, scheme, message in (
        *((["B-X", tag], "auto", f"the tag {tag!r} is not iob2") for tag in ("B-", "X", "b-X", "IX", "-X", "")),
        (["B-X", "I-X", "S-X", "U-X"], "auto", "is not bioes"),
        (["M-X", "I-X"], "auto", "is not iob2"),
        (["O", "S-X"], "iob2", "'S-X' is not iob2"),
        (["O", "I-X"], "bmes", "'I-X' is not bmes"),
        (["O"], "iobes", "unknown scheme 'iobes'"),
    ):
        with pytest.raises(ValueError, match=message):
            TagSet.of(tags, scheme)
    with pytest.raises(ValueError, match="unknown policy 'loose'"):
        spans([["O"]], "loose")
