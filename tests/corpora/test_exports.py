"""The formats of annotation tools, as far as they are not character spans (test_character_spans.py)."""

import gzip
import json
import zlib

import pytest
from export_samples import (
    COUNTS,
    DOCBIN,
    DOCBIN_OF_SENTENCES,
    TEXTS,
    brat,
    json_files,
    label_studio,
    label_studio_min,
    msgpack,
    prodigy,
    spacy_json,
    tags,
)
from hf_xorner.corpora.formats.brat import read_brat

from hf_xorner.corpora import DataError, corpus_statistics, load_corpus
from hf_xorner.corpora.formats.spacy import read_docbin, read_spacy_json, string_hash
from hf_xorner.corpora.formats.spans import read_spans
from hf_xorner.corpora.source import Reading, Repairs

SENTENCES = [(tokens.split(" "), tags(text, found, tokens)) for text, found, tokens in TEXTS]
TEXT, ANNOTATION = brat()
FILES = {
    **json_files(),
    "DocBin": ("some.spacy", DOCBIN),
    "BRAT": ("some.ann", ANNOTATION),
}


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def content_of(split):
    names = split.features["ner_tags"].feature.names
    return [(row["tokens"], [names[tag] for tag in row["ner_tags"]]) for row in split]


def sentences(reader, path, repairs=None, **options):
    found = reader(path, Reading(**options), repairs or Repairs(strict=True))
    return [(sentence.tokens, sentence.tags) for sentence in found]


@pytest.mark.parametrize("name", FILES)
def test_every_format_is_recognised_and_has_the_same_sentences(write, tmp_path, name):
    write("some.txt", TEXT)  # the text beside BRAT's annotation
    path = write(*FILES[name])
    corpus = load_corpus(path)
    assert content_of(corpus["train"]) == SENTENCES
    found = corpus_statistics(corpus)["train"]
    assert (found["sentences"], found["tokens"], found["per_type"]) == (*COUNTS[:2], {"LOC": 2, "PER": 3})


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(("array", "lines"))])
def test_json_may_be_compressed(write, tmp_path, name):
    file, content = FILES[name]
    path = write(f"{file}.gz", gzip.compress(content.encode()))
    assert content_of(load_corpus(path)["train"]) == SENTENCES


# --- Label Studio and Prodigy -----------------------------------------------------------------------------------------


def test_tasks_and_annotations_that_are_not_used_are_counted(write):
    repairs = Repairs()
    path = write("some.json", json.dumps(label_studio()))
    assert sentences(read_spans, path, repairs) == SENTENCES
    assert str(repairs) == (
        f"1 further annotations of the same task were left out (first: {path}, record 2); "
        f"2 tasks without an annotation were left out (first: {path}, record 4)"
    )


def test_a_task_is_read_once_from_json_min(write):
    # Each annotation is a record, and a task without one has null as annotation.
    first, *others = label_studio_min()
    unused = {"text": "Nobody has read this .", "id": 9, "annotator": None, "annotation_id": None}
    path = write("some.json", json.dumps([first, first | {"annotation_id": 77, "label": []}, *others, unused]))
    repairs = Repairs()
    assert sentences(read_spans, path, repairs) == SENTENCES
    assert str(repairs) == (
        f"1 further annotations of the same task were left out (first: {path}, record 2); "
        f"1 tasks without an annotation were left out (first: {path}, record 5)"
    )


def test_rejected_answers_are_counted(write):
    repairs = Repairs()
    path = write("some.json", json.dumps(prodigy()))
    assert sentences(read_spans, path, repairs) == SENTENCES
    assert str(repairs).startswith("2 records that their annotator rejected or ignored were left out")


@pytest.mark.parametrize(
    "annotations", [[7], [{"result": None}], [{"result": [3, {"value": None}, {"value": {"text": 3}}]}]]
)
def test_tasks_without_results_raise(write, tmp_path, annotations):
    path = write("some.json", json.dumps([{"data": {"text": "Ann"}, "annotations": annotations}]))
    with pytest.raises(DataError):
        load_corpus(path, strict=True)


@pytest.mark.parametrize("tasks", [label_studio()[3:], [{"data": {"text": "Ann"}, "annotations": []}]])
def test_an_export_without_annotated_tasks_raises(write, tasks):
    path = write("some.json", json.dumps(tasks))
    with pytest.raises(DataError, match=r"some\.json:1: every record is rejected, ignored or not annotated"):
        sentences(read_spans, path, Repairs())


def test_a_control_and_the_key_of_the_text_can_be_named(write):
    value = {"start": 0, "end": 3, "text": "Ann"}
    result = [
        {"from_name": "mood", "value": value | {"labels": ["HAPPY"]}},
        {"from_name": "ner", "value": value | {"labels": ["PER"]}},
        {"from_name": "ner", "value": {"choices": ["x"]}},
    ]
    path = write("some.json", json.dumps([{"data": {"tweet": "Ann", "id": 3}, "annotations": [{"result": result}]}]))
    assert sentences(read_spans, path, token_column="tweet", tag_column="ner") == [(["Ann"], ["B-PER"])]
    with pytest.raises(DataError, match=r"record 1: no text under 'text' or 'data'; name the key as token_column"):
        sentences(read_spans, path)


def test_several_labels_of_one_region_overlap(write):
    record = label_studio_min()[0]
    record["label"][0]["labels"].append("GOD")
    repairs = Repairs()
    assert sentences(read_spans, write("some.json", json.dumps([record])), repairs) == SENTENCES[:1]
    assert str(repairs).startswith("1 spans that overlap another were left out, the longest kept")


def test_a_region_with_another_text_raises(write):
    record = label_studio_min()[0]
    record["label"][0]["start"] += 1
    path = write("some.json", json.dumps([record]))
    with pytest.raises(DataError, match=r"record 1: the span \{.*\} is \"nn Lee\" in the text"):
        sentences(read_spans, path)


# --- spaCy ------------------------------------------------------------------------------------------------------------


def test_a_docbin_has_spacys_sentences_documents_and_parts_of_speech(write):
    found = list(read_docbin(write("some.spacy", DOCBIN_OF_SENTENCES), Reading(), Repairs(strict=True)))
    assert [(" ".join(sentence.tokens), " ".join(sentence.tags), sentence.doc_id) for sentence in found] == [
        ("The list of ORG names case .", "O B-ORG O O O B-DATE O", "0"),
        ("It is Москва .", "O O B-Stadt O", "0"),
        ("It rains .", "O O O", "1"),
    ]
    assert found[0].pos_tags is None
    found = list(read_docbin(write("some.spacy", DOCBIN), Reading(), Repairs(strict=True)))
    assert [(set(sentence.pos_tags), sentence.doc_id) for sentence in found] == [({"X"}, None)] * 3
    found = list(read_docbin(write("some.spacy", DOCBIN), Reading(pos_column="none"), Repairs(strict=True)))
    assert {sentence.pos_tags for sentence in found} == {None}


def test_strings_have_spacys_numbers():
    # From spacy.strings.hash_string; lengths of all remainders by 8.
    known = {
        "B": 14230521632333904559,
        "PER": 4317129024397789502,
        "Ankara": 2209675794517331089,
        "Ann Lee": 6565722769855506839,
        "Ann Lee.": 10340682818994333052,
        "Москва": 14612109979450925279,
        "New York, New York": 15588832317807620830,
    }
    assert {text: string_hash(text.encode()) for text in known} == known


def packed(**changed):
    """A DocBin of one document, "Ann left", whose first word is an entity."""
    ann, left, person = (string_hash(text.encode()) for text in ("Ann", "left", "PER"))
    table = [ann, 3, person, left, 2, 0]
    content = {
        "attrs": [65, 77, 78],
        "tokens": b"".join(value.to_bytes(8, "little") for value in table),
        "lengths": (2).to_bytes(4, "little"),
        "strings": ["", "Ann", "left", "PER"],
    }
    return zlib.compress(msgpack(content | changed))


def test_documents_may_be_empty(write):
    lengths = b"".join(size.to_bytes(4, "little") for size in (0, 2, 0))
    path = write("some.spacy", packed(lengths=lengths))
    assert sentences(read_docbin, path) == [(["Ann", "left"], ["B-PER", "O"])]
    path = write("some.spacy", packed(lengths=lengths, attrs=[65, 77, 80], strings=["", "Ann", "left"]))
    with pytest.raises(DataError, match=r"some\.spacy: no document has annotated entities"):
        sentences(read_docbin, path)


def test_words_without_an_annotation_are_counted(write):
    assert sentences(read_docbin, write("some.spacy", packed())) == [(["Ann", "left"], ["B-PER", "O"])]
    ann, person = (string_hash(text.encode()) for text in ("Ann", "PER"))
    table = b"".join(value.to_bytes(8, "little") for value in [ann, 3, person, ann, 0, 0])
    repairs = Repairs()
    path = write("some.spacy", packed(tokens=table))
    assert sentences(read_docbin, path, repairs) == [(["Ann", "Ann"], ["B-PER", "O"])]
    assert str(repairs) == f"1 words without an annotation of entities were read as outside (first: {path}, document 0)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Ann\tB-PER\n", ": not a valid DocBin file of spaCy"),
        (DOCBIN[:-20], ": not a valid DocBin file of spaCy"),
        (zlib.compress(b"\xc1"), ": not a valid DocBin file of spaCy"),
        (zlib.compress(msgpack({"attrs": [65]})), ": not a valid DocBin file of spaCy"),
        (zlib.compress(msgpack([1])), ": not a valid DocBin file of spaCy"),
        (zlib.compress(msgpack({"attrs": [65]})[:-3]), ": not a valid DocBin file of spaCy"),
        (packed(lengths=(3).to_bytes(4, "little")), ": not a valid DocBin file of spaCy"),
        (packed(attrs=[65, 75, 76]), ": no document has annotated entities"),
        (packed(strings=["Ann"]), ", document 0: the string "),
    ],
)
def test_invalid_docbins_raise(write, content, message):
    path = write("some.spacy", content)
    with pytest.raises(DataError) as error:
        sentences(read_docbin, path)
    assert str(error.value).startswith(f"{path}{message}")


def test_spacys_json_has_documents_and_parts_of_speech(write):
    path = write("some.json", json.dumps(spacy_json()))
    found = list(read_spacy_json(path, Reading(), Repairs(strict=True)))
    assert [(set(sentence.pos_tags), sentence.doc_id) for sentence in found] == [({"X"}, str(n)) for n in range(3)]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([{"orth": "Ann"}], ":1: no token has a tag under 'ner'"),
        ([{"ner": "O"}], ", record 1: 'orth' of a token holds null"),
        ([{"orth": "", "ner": "O"}], ", record 1: 'orth' of a token holds a string"),
        (["Ann"], ", record 1: not a document of spaCy"),
        (None, ", record 1: not a document of spaCy"),
    ],
)
def test_invalid_json_of_spacy_raises(write, tokens, message):
    path = write("some.json", json.dumps([{"paragraphs": [{"sentences": [{"tokens": tokens}]}]}]))
    with pytest.raises(DataError) as error:
        sentences(read_spacy_json, path, Repairs())
    assert str(error.value).startswith(f"{path}{message}")


# --- BRAT -------------------------------------------------------------------------------------------------------------


def test_brats_lines_are_sentences_unless_an_entity_crosses_them(write):
    path = write("some.txt", "\ufeffAnn met\n\nBo in New\r\n  York.\nIt rained.")
    write("some.ann", "T1\tPER 1 4\tAnn\nT2\tLOC 16 27\tNew York\n")
    found = list(read_brat(path, Reading(), Repairs(strict=True)))
    assert [(" ".join(sentence.tokens), " ".join(sentence.tags), sentence.place()) for sentence in found] == [
        ("Ann met", "B-PER O", f"{path}:1"),
        ("Bo in New York .", "O O B-LOC I-LOC O", f"{path}:3"),
        ("It rained .", "O O O", f"{path}:5"),
    ]
    assert {sentence.doc_id for sentence in found} == {"some"}


def test_discontinuous_spans_are_joined_and_the_longest_span_is_kept(write):
    write("some.txt", "breast and ovarian cancer")
    path = write("some.ann", "T1\tDIS 11 25\tovarian cancer\nT2\tDIS 0 6;19 25\tbreast cancer\n")
    repairs = Repairs()
    assert sentences(read_brat, path, repairs) == [
        (["breast", "and", "ovarian", "cancer"], ["B-DIS", "I-DIS", "I-DIS", "I-DIS"])
    ]
    with pytest.raises(DataError, match=r"some\.ann:2: 1 discontinuous spans were read as one"):
        sentences(read_brat, path)
    assert str(repairs) == (
        f"1 discontinuous spans were read as one, with the words between their parts (first: {path}:2); "
        f'1 spans that overlap another were left out, the longest kept (first: {path}, span "DIS 11 25")'
    )


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("T1 PER 0 3\tAnn\n", ":1: 'T1 PER 0 3"),
        ("R1\tx\nT1\tPER 0\n", ":2: 'T1"),
        ("T1\tPER 0 30\n", ":1: the span 'PER 0 30' is empty or reaches outside of the text, which has 8 characters"),
        ("T1\tPER 3 3\n", ":1: the span 'PER 3 3' is empty"),
        ("T1\tPER 3 4\n", ': the span "PER 3 4" covers no word'),
        ("T1\tPER 0 3\tBob\n", ":1: the span 'PER 0 3' is 'Ann' in the text, and 'Bob' here"),
    ],
)
def test_invalid_annotations_of_brat_raise(write, annotation, message):
    write("some.txt", "Ann left")
    path = write("some.ann", annotation)
    with pytest.raises(DataError) as error:
        sentences(read_brat, path)
    assert str(error.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(("present", "absent"), [("some.ann", "some.txt"), ("some.txt", "some.ann")])
def test_brat_needs_text_and_annotation(write, present, absent):
    path = write(present, "")
    with pytest.raises(DataError) as error:
        load_corpus(path, format="brat")
    assert str(error.value).startswith(f"{path}: no {absent} beside it")


def test_a_changed_text_is_read_anew(write, tmp_path):
    write("some.txt", "Ann")
    path = write("some.ann", "T1\tPER 0 3\n")
    assert content_of(load_corpus(path)["train"]) == [(["Ann"], ["B-PER"])]
    write("some.txt", "Bob left")
    assert content_of(load_corpus(path)["train"]) == [(["Bob", "left"], ["B-PER", "O"])]
