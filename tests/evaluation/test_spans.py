from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Entities
from span_oracle import LETTERS, POLICIES, SCHEMES, all_tags, corpus_spans, in_bioes, pairs, tags_of_spans, tuples_of

from hf_xorner.corpora.schemes import TagSet, scheme_of
from hf_xorner.evaluation.comparison import Comparison
from hf_xorner.evaluation.spans import Spans, spans_of_ids

STRICT = {"iob2": IOB2, "bioes": IOBES, "bilou": BILOU, "bmes": IOBES}


def spans(sentences, policy, scheme="iob2"):
    """The spans of sentences, read with a tag set of all tags of the scheme and of those given."""
    numbers = {tag: index for index, tag in enumerate(sorted({*all_tags(scheme), *chain.from_iterable(sentences)}))}
    ids = np.array([numbers[tag] for tag in chain.from_iterable(sentences)], dtype=np.int64)
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    comparison = Comparison(ids, ids, lengths, TagSet.of(numbers, scheme), policy)
    return tuples_of(comparison.gold, comparison)


# --- Malformed spans, case by case -----------------------------------------------------------------------------------

# Each tag of a sentence as a letter and a type, both schemes with O; what either policy makes of it.
IOB2_CASES = [
    ("O O", [], []),
    ("B-X I-X O", [(0, 2, "X")], [(0, 2, "X")]),
    ("B-X B-X", [(0, 1, "X"), (1, 2, "X")], [(0, 1, "X"), (1, 2, "X")]),
    ("O I-X I-X", [], [(1, 3, "X")]),
    ("I-X B-X", [(1, 2, "X")], [(0, 1, "X"), (1, 2, "X")]),
    ("B-X I-Y I-Y", [(0, 1, "X")], [(0, 1, "X"), (1, 3, "Y")]),
    ("B-X I-Y I-X", [(0, 1, "X")], [(0, 1, "X"), (1, 2, "Y"), (2, 3, "X")]),
    ("B-X O I-X", [(0, 1, "X")], [(0, 1, "X"), (2, 3, "X")]),
]
BIOES_CASES = [
    ("S-X B-X E-X B-Y I-Y E-Y", [(0, 1, "X"), (1, 3, "X"), (3, 6, "Y")], [(0, 1, "X"), (1, 3, "X"), (3, 6, "Y")]),
    ("O I-X O", [], [(1, 2, "X")]),
    # An end without a begin.
    ("O E-X O", [], [(1, 2, "X")]),
    ("E-X E-X", [], [(0, 1, "X"), (1, 2, "X")]),
    ("I-X E-X", [], [(0, 2, "X")]),
    # A begin without an end.
    ("B-X O", [], [(0, 1, "X")]),
    ("B-X I-X O", [], [(0, 2, "X")]),
    ("B-X B-X E-X", [(1, 3, "X")], [(0, 1, "X"), (1, 3, "X")]),
    ("B-X I-X S-X", [(2, 3, "X")], [(0, 2, "X"), (2, 3, "X")]),
    # A single within a span, and around one.
    ("B-X S-X E-X", [(1, 2, "X")], [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
    ("S-X I-X E-X", [(0, 1, "X")], [(0, 1, "X"), (1, 3, "X")]),
    ("S-X E-X", [(0, 1, "X")], [(0, 1, "X"), (1, 2, "X")]),
    # What comes after an end.
    ("B-X E-X I-X", [(0, 2, "X")], [(0, 2, "X"), (2, 3, "X")]),
    ("B-X E-X E-X", [(0, 2, "X")], [(0, 2, "X"), (2, 3, "X")]),
    # Types that change on the way.
    ("B-X I-Y", [], [(0, 1, "X"), (1, 2, "Y")]),
    ("B-X I-Y E-X", [], [(0, 1, "X"), (1, 2, "Y"), (2, 3, "X")]),
    ("B-X I-X E-Y", [], [(0, 2, "X"), (2, 3, "Y")]),
    ("B-X E-Y S-Y", [(2, 3, "Y")], [(0, 1, "X"), (1, 2, "Y"), (2, 3, "Y")]),
]
IOB1_CASES = [
    ("O I-X I-X", [(1, 3, "X")]),
    ("I-X B-X I-X", [(0, 1, "X"), (1, 3, "X")]),
    ("I-X I-Y", [(0, 1, "X"), (1, 2, "Y")]),
    # B- where I- would suffice still begins a span.
    ("O B-X I-X", [(1, 3, "X")]),
    ("I-X B-Y I-Y", [(0, 1, "X"), (1, 3, "Y")]),
]


@pytest.mark.parametrize(("tags", "strict", "conlleval"), IOB2_CASES)
def test_policies_for_malformed_iob2(tags, strict, conlleval):
    assert spans([tags.split()], "strict") == [(0, *span) for span in strict]
    assert spans([tags.split()], "conlleval") == [(0, *span) for span in conlleval]


@pytest.mark.parametrize("scheme", ["bioes", "bilou", "bmes"])
@pytest.mark.parametrize(("tags", "strict", "conlleval"), BIOES_CASES)
def test_policies_for_malformed_bioes_bilou_and_bmes(tags, strict, conlleval, scheme):
    letter = dict(zip("BIES", LETTERS[scheme], strict=True))
    tags = [tag if tag == "O" else letter[tag[0]] + tag[1:] for tag in tags.split()]
    assert spans([tags], "strict", scheme) == [(0, *span) for span in strict]
    assert spans([tags], "conlleval", scheme) == [(0, *span) for span in conlleval]


@pytest.mark.parametrize(("tags", "expected"), IOB1_CASES)
def test_iob1_has_no_malformed_spans(tags, expected):
    for policy in POLICIES:
        assert spans([tags.split()], policy, "iob1") == [(0, *span) for span in expected]


def test_no_span_crosses_a_sentence():
    assert spans([["B-X"], [], ["I-X"]], "conlleval") == [(0, 0, 1, "X"), (2, 0, 1, "X")]
    assert spans([["B-X"], [], ["I-X"]], "strict") == [(0, 0, 1, "X")]
    assert spans([["B-X"], ["E-X"]], "strict", "bioes") == []


def test_no_sentences_have_no_spans():
    for scheme in SCHEMES:
        for policy in POLICIES:
            assert spans([], policy, scheme) == spans([[], []], policy, scheme) == []


# What conlleval.pl's endOfChunk and startOfChunk name: prefixes side by side of one type that end, or begin, a chunk.
# A change of type always does both, and a sentence is followed by O.
PERL_ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
PERL_BEGINS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}


def perl_spans(tags):
    """The spans that conlleval.pl counts in a sentence."""
    found, start, before, kind = [], 0, "O", ""
    for place, tag in enumerate([*tags, "O"]):
        prefix, name = tag[0], tag[2:]
        if before != "O" and (before + prefix in PERL_ENDS or name != kind):
            found.append((start, place, kind))
        if prefix != "O" and (before + prefix in PERL_BEGINS or name != kind):
            start = place
        before, kind = prefix, name
    return found


@pytest.mark.parametrize("tags", [tags for tags, _, _ in IOB2_CASES] + [tags for tags, _ in IOB1_CASES])
@pytest.mark.parametrize("scheme", ["iob1", "iob2"])
def test_conlleval_matches_the_perl_script_on_corner_cases(scheme, tags):
    assert spans([tags.split()], "conlleval", scheme) == [(0, *span) for span in perl_spans(tags.split())]


@pytest.mark.parametrize("scheme", ["iob1", "iob2"])
@settings(deadline=None, max_examples=120)
@given(data=st.data())
def test_conlleval_matches_the_perl_script_on_b_and_i(scheme, data):
    for sentences in data.draw(pairs(scheme)):
        expected = [(index, *span) for index, tags in enumerate(sentences) for span in perl_spans(tags)]
        assert spans(sentences, "conlleval", scheme) == expected


@pytest.mark.parametrize(
    ("tags", "perl"),
    [
        # It ignores S-, and joins an E- to the B- after it, even in well-formed tags.
        ("S-X S-X", [(0, 2, "X")]),
        ("S-X B-X E-X", [(0, 3, "X")]),
        ("B-X E-X B-X E-X", [(0, 4, "X")]),
        ("S-X I-X", [(0, 2, "X")]),
    ],
)
def test_conlleval_differs_from_the_perl_script_on_ends_and_singles(tags, perl):
    assert perl_spans(tags.split()) == perl
    assert len(spans([tags.split()], "conlleval", "bioes")) > len(perl)


@pytest.mark.parametrize("tags", ["O E-X O", "E-X E-X", "B-X E-X I-X", "B-X E-Y", "B-X I-X O", "I-X E-X", "O I-X E-X"])
def test_conlleval_matches_the_perl_script_on_single_runs_with_ends(tags):
    assert spans([tags.split()], "conlleval", "bioes") == [(0, *span) for span in perl_spans(tags.split())]


# --- Against seqeval --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", STRICT)
@settings(deadline=None, max_examples=120)
@given(data=st.data())
def test_strict_matches_strict_seqeval(scheme, data):
    for sentences in data.draw(pairs(scheme)):
        renamed = [in_bioes(tags, scheme) if scheme == "bmes" else tags for tags in sentences]
        assert spans(sentences, "strict", scheme) == strict_seqeval(renamed, STRICT[scheme])


@settings(deadline=None, max_examples=120)
@given(data=st.data())
def test_iob1_matches_strict_seqeval(data):
    for sentences in data.draw(pairs("iob1", well_formed=True)):
        assert spans(sentences, "strict", "iob1") == strict_seqeval(sentences, IOB1)


def strict_seqeval(sentences, scheme):
    return [
        (entity.sent_id, entity.start, entity.end, entity.tag)
        for sentence in Entities(sentences, scheme).entities
        for entity in sentence
    ]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("scheme", SCHEMES)
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_spans_match_the_definitions_and_default_seqeval(scheme, policy, data):
    for sentences in data.draw(pairs(scheme)):
        assert spans(sentences, policy, scheme) == corpus_spans(sentences, scheme, policy)


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(deadline=None)
@given(data=st.data())
def test_well_formed_spans_do_not_depend_on_scheme_and_policy(scheme, data):
    for sentences in data.draw(pairs("bioes", well_formed=True)):
        expected = corpus_spans(sentences, "bioes", "strict")
        other = [
            tags_of_spans([span[1:] for span in expected if span[0] == index], len(tags), scheme)
            for index, tags in enumerate(sentences)
        ]
        for policy in POLICIES:
            assert spans(other, policy, scheme) == expected


# --- Tag sets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("", "iob2"),
        ("O", "iob2"),
        ("B-X", "iob2"),
        ("O I-X", "iob2"),
        ("O B-X I-X", "iob2"),
        ("O B-X I-X E-X S-X", "bioes"),
        ("O I-X E-X", "bioes"),
        ("O S-X", "bioes"),
        ("O B-X E-Y S-X", "bioes"),
        ("O B-X I-X L-X U-X", "bilou"),
        ("O U-X", "bilou"),
        ("B-X L-X", "bilou"),
        ("O B-X M-X E-X S-X", "bmes"),
        ("O M-X", "bmes"),
        ("NN VB", "plain"),
        ("NN O", "plain"),
        ("NN S-X", "plain"),
        ("X-Y O", "plain"),
        ("S- O", "plain"),
    ],
)
def test_schemes_are_recognised_by_their_prefixes(tags, scheme):
    assert scheme_of(tags.split()) == TagSet.of(tags.split()).scheme == scheme


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_tag_set_has_types_and_kinds(scheme):
    tag_set = TagSet.of(all_tags(scheme), scheme)
    assert (tag_set.scheme, tag_set.plain, tag_set.types) == (scheme, False, ("X", "Y", "art-work"))
    expected = [-1 if tag == "O" else tag_set.types.index(tag[2:]) for tag in tag_set.tags]
    assert tag_set.type_of.tolist() == expected
    kinds = dict(zip(LETTERS[scheme], [1, 2, 3, 4], strict=True))
    kinds |= {"O": 0} | ({"B": 1, "I": 2} if scheme.startswith("iob") else {})
    assert tag_set.kind_of.tolist() == [kinds[tag[0]] for tag in tag_set.tags]


@pytest.mark.parametrize("tag", ["B-", "X", "b-X", "IX", "-X", ""])
def test_unknown_tags_are_refused(tag):
    with pytest.raises(ValueError) as error:
        TagSet.of(["B-X", tag])
    assert str(error.value) == (
        f"unknown tag {tag!r}: scores need O, or a type after a prefix of IOB1 or IOB2 (B- I-), BIOES (B- I- E- S-), "
        "BILOU (B- I- L- U-) or BMES (B- M- E- S-)."
    )


@pytest.mark.parametrize(
    ("tags", "prefixes"),
    [("B-X I-X S-X U-X", "B-, I-, S-, U-"), ("M-X I-X", "I-, M-"), ("E-X L-Y O", "E-, L-"), ("M-X U-X", "M-, U-")],
)
def test_contradictory_prefixes_are_refused(tags, prefixes):
    with pytest.raises(ValueError) as error:
        TagSet.of(tags.split())
    assert str(error.value) == (
        f"the tags have the prefixes {prefixes}, which belong to no one scheme; give tags in IOB1 or IOB2 (B- I-), "
        "BIOES (B- I- E- S-), BILOU (B- I- L- U-) or BMES (B- M- E- S-)."
    )


@pytest.mark.parametrize(
    ("scheme", "tag", "prefixes"),
    [("iob2", "S-X", "B-, I-"), ("bioes", "U-X", "B-, I-, E-, S-"), ("bmes", "I-X", "B-, M-, E-, S-")],
)
def test_tags_that_do_not_match_the_given_scheme_are_refused(scheme, tag, prefixes):
    with pytest.raises(ValueError) as error:
        TagSet.of(["O", "B-X", tag], scheme)
    assert str(error.value) == f"the tag {tag!r} is not {scheme}: its tags are O, or a type after {prefixes}."


def test_unknown_schemes_are_refused():
    with pytest.raises(ValueError) as error:
        TagSet.of(["O"], "iobes")
    assert str(error.value) == "unknown scheme 'iobes'; expected one of auto, plain, iob2, iob1, bioes, bilou, bmes."


def test_any_tag_is_allowed_in_the_plain_scheme():
    assert TagSet.of(["B-X", "NN"], "plain").plain


def test_plain_tags_have_no_spans():
    assert TagSet.of(["NN", "O"]).plain
    assert not TagSet.of(["O"]).plain
    assert len(Comparison.of([["NN", "VB"]], [["NN", "VB"]]).gold) == 0


def test_unknown_policies_are_refused():
    with pytest.raises(ValueError, match="unknown policy 'loose'; expected one of strict, conlleval"):
        spans([["O"]], "loose")


# --- Words of spans --------------------------------------------------------------------------------------------------


def test_spans_are_counted_over_all_sentences():
    found = spans_of_ids(np.array([2, 1, 0]), np.array([1, 2]), TagSet.of(["B-X", "I-X", "O"]), "conlleval")
    assert (found.start.tolist(), found.end.tolist()) == ([1, 2], [2, 3])


def test_a_span_is_flagged_by_any_of_its_words():
    found = Spans(np.array([1, 5, 7]), np.array([3, 6, 9]), np.array([0, 0, 0]))
    assert found.any_word(np.isin(np.arange(9), [0, 2, 4, 6])).tolist() == [True, False, False]
