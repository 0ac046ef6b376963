"""Chunks and schemes, compared with a loop over tokens and with seqeval's parsers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Entities
from span_oracle import tags_of_spans

from hf_xorner.corpora import load_corpus
from hf_xorner.corpora.schemes import (
    EDGE,
    WRITTEN_SCHEMES,
    from_iob2,
    iob2_of,
    is_chunked,
    label_names,
    recognise,
    repairs_of,
)

pytest_plugins = "corpus_files"

TYPES = ("X", "Y", "art-work", "O")
LABELS = ["O", *(f"{prefix}-{name}" for name in TYPES for prefix in "BI")]
#: The letters for begin, inside, end and single.
LETTERS = {"iob1": "BIII", "iob2": "BIIB", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES"}
SEQEVAL = {"iob1": IOB1, "iob2": IOB2, "bioes": IOBES, "bilou": BILOU, "bmes": IOBES}

sentences_of_labels = st.lists(st.lists(st.sampled_from(LABELS), max_size=9), max_size=6)


def pairs_of(tags):
    return list(zip([EDGE, *tags], [*tags, EDGE], strict=True))


def converted(tags, scheme):
    return [iob2_of(pair, scheme) for pair in pairs_of(tags)[:-1]]


def repairs(tags, scheme):
    return [kind for pair in pairs_of(tags) for kind in repairs_of(pair, scheme)]


def tags_in(scheme):
    return st.lists(
        st.sampled_from(["O", *(f"{prefix}-{name}" for prefix in set(LETTERS[scheme]) for name in TYPES)]), max_size=9
    )


def chunks_token_by_token(tags, scheme):
    """The chunks of tags as (start, end, type), where a tag that continues no chunk opens one."""
    begin, inside, end, _ = "BIES" if scheme in ("iob1", "iob2") else LETTERS[scheme]
    chunks, open_type = [], None
    for index, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if prefix in (inside, end) and open_type == kind:
            chunks[-1][1] = index + 1
        elif tag != "O":
            chunks.append([index, index + 1, kind])
        open_type = kind if prefix in (begin, inside) else None
    return [tuple(chunk) for chunk in chunks]


def chunks_of_seqeval(tags, parser):
    return [(entity.start, entity.end, entity.tag) for entity in Entities([tags], parser).entities[0]]


# --- Reading ----------------------------------------------------------------------------------------------------------


@given(data=st.data())
def test_conversion_to_iob2_keeps_the_chunks(data):
    for scheme in LETTERS:
        tags = data.draw(tags_in(scheme))
        iob2 = converted(tags, scheme)
        assert chunks_of_seqeval(iob2, IOB2) == chunks_token_by_token(tags, scheme)
        assert repairs(iob2, "iob2") == []


@given(data=st.data())
def test_repairs_are_needed_exactly_if_a_strict_reader_fails(data):
    for scheme in ("bioes", "bilou", "bmes"):
        tags = data.draw(tags_in(scheme))
        renamed = dict(zip(LETTERS[scheme], "BIES", strict=True))
        as_iobes = [tag if tag == "O" else renamed[tag[0]] + tag[1:] for tag in tags]
        covered = sum(end - start for start, end, _ in chunks_of_seqeval(as_iobes, IOBES))
        assert (repairs(tags, scheme) == []) == (covered == sum(tag != "O" for tag in tags))


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("O", "iob2"),
        ("B-X I-X O", "iob2"),
        ("I-X I-X O", "iob1"),
        ("I-X B-X I-X", "iob1"),
        ("I-X O B-X", "iob2"),
        ("B-X E-X", "bioes"),
        ("S-X", "bioes"),
        ("U-X", "bilou"),
        ("B-X L-X", "bilou"),
        ("B-X M-X E-X", "bmes"),
        ("NN O", "plain"),
        ("N-sg V-pl D-def", "plain"),
        ("B-X Z-X E-X", "bioes"),
    ],
)
def test_schemes_are_recognised(tags, scheme):
    assert recognise(pairs_of(tags.split())) == scheme


@pytest.mark.parametrize(
    ("tags", "expected", "repaired"),
    [
        ("I-X I-X B-X I-Y", "B-X I-X B-X B-Y", ""),
        ("B-X I-Y I-Y O I-X", "B-X B-Y I-Y O B-X", "2 tags that continued no entity began one (first: x:2)"),
        ("B-X E-X S-X B-X I-X E-X", "B-X I-X B-X B-X I-X I-X", ""),
        ("B-X O E-X S-X", "B-X O B-X B-X", "1 entities without their last tag were closed (first: x:2)"),
        ("B-X L-X U-X", "B-X I-X B-X", ""),
        ("B-X M-X E-X S-Y", "B-X I-X I-X B-Y", ""),
        ("PER PER O LOC PER O O O O", "B-PER I-PER O B-LOC B-PER O O O O", "types of entities"),
        ("B_PER I_PER O B_LOC O", "B-PER I-PER O B-LOC O", "underscore"),
        ("PER-B PER-I O LOC-B", "B-PER I-PER O B-LOC", "LOC-B as B-LOC"),
        ("b-per i-per o", "B-per I-per O", "o as O"),
        ("BNEP INEP O", "B-NEP I-NEP O", "BNEP as B-NEP"),
        ("BIRD O O", "B-BIRD O O", "types of entities"),
        ("B I O", "B-ENTITY I-ENTITY O", "B as B-ENTITY"),
        ("B-PER OTHER", "B-PER O", "OTHER as O"),
        ("B-PER 0", "B-PER O", "0 as O"),
        ("B-PER O TIM TIM", "B-PER O B-TIM I-TIM", "tags without prefixes (TIM)"),
        ("O V O V V", "O V O V V", "separate label"),
        # An entity ends before a word with an unknown tag, and begins after it.
        ("? B-X I-X ? O", "? B-X I-X ? O", ""),
        ("I-X ? I-X I-X B-X ?", "B-X ? B-X I-X B-X ?", ""),
        ("B-X ? I-X O", "B-X ? B-X O", "1 tags that continued no entity began one"),
        ("? S-X B-X E-X ?", "? B-X B-X I-X ?", ""),
        ("S-X B-X ? E-X", "B-X B-X ? B-X", "1 entities without their last tag were closed"),
    ],
)
def test_tags_become_iob2_and_repairs_are_counted(read, caplog, tmp_path, tags, expected, repaired):
    content = "".join(f"w{at}\t{tag}\n" for at, tag in enumerate(tags.split()))
    assert read(content)[0][1] == expected
    log = caplog.text.replace(str(tmp_path / "x.conll"), "x")
    assert repaired in log and bool(repaired) == bool(log)
    assert read(content, scheme="plain")[0][1] == tags


def test_blanks_around_a_tag_are_removed(read, caplog):
    assert read("Ada\tB-PER \nLee\tI-PER\nleft\tO \nnow\tO\n") == [("Ada Lee left now", "B-PER I-PER O O")]
    assert "blanks" in caplog.text


def test_types_may_be_tags_on_request(read):
    assert read("a PER\nb PER\nc O\n", scheme="io") == [("a b c", "B-PER I-PER O")]


def test_labels_are_sorted_and_those_of_training(write, tmp_path):
    assert label_names({"I-b", "B-a", "O", "S-c"}, plain=False) == ["O", "B-a", "I-a", "B-b", "I-b", "B-c", "I-c"]
    assert label_names({"VB", "O", "NN"}, plain=True) == ["O", "NN", "VB"]
    write("a B-X\n", "dev.txt")
    write("c B-Y\nd O\n", "test.txt")
    for names in (["O", "B-X", "I-X", "B-Y", "I-Y"], ["O", "B-X", "I-X", "B-Y", "I-Y", "B-Z", "I-Z"]):
        for split in load_corpus(tmp_path).values():
            assert split.features["ner_tags"].feature.names == names
        write("a B-X\nb B-Y\nc B-Z\n", "train.txt")


# --- Writing and numbered tags ----------------------------------------------------------------------------------------


@given(sentences_of_labels)
def test_written_schemes_match_a_loop_and_seqeval(sentences):
    for scheme in WRITTEN_SCHEMES:
        for sentence in sentences:
            tags, chunks = from_iob2(sentence, scheme), chunks_token_by_token(sentence, "iob2")
            assert tags == tags_of_spans(chunks, len(sentence), scheme)
            # seqeval has no BMES, but the equivalent BIOES.
            renamed = [tag.replace("M-", "I-", 1) for tag in tags]
            assert chunks_of_seqeval(renamed, SEQEVAL[scheme]) == chunks
            assert converted(tags, scheme) == tags_of_spans(chunks, len(sentence), "iob2")


def test_plain_labels_are_recognised():
    assert is_chunked(["O"]) and is_chunked(LABELS)
    assert not any(map(is_chunked, (["NN", "O"], ["B-", "O"], ["B-x", "S-x"], ["O", "?"])))
