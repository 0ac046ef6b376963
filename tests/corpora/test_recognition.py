"""Files as other programs and annotation tools write them are recognised, and read without options."""

import gzip
import json
import os
import re
import time

import numpy as np
import pytest
from column_samples import POS, SAMPLES, TAGS, TOKENS, conllu, germeval, lines, stanza, with_ranges
from export_samples import TEXTS, brat, json_files, label_studio, label_studio_min, tags
from pandas import DataFrame

from hf_xorner.corpora import corpus_statistics, load_corpus
from hf_xorner.corpora.assemble import words_and_tags

pytest_plugins = "corpus_files"

CORPORA = os.environ.get("HF_XORNER_CORPORA")
SENTENCES = [(tokens, " ".join(tags(text, spans, tokens))) for text, spans, tokens in TEXTS]
ROWS = [(" ".join(words), " ".join(row)) for words, row in zip(TOKENS, TAGS, strict=True)]


# --- Columns ----------------------------------------------------------------------------------------------------------

#: Samples of which something uncertain is logged, and the column or encoding that the line names.
NOTED = {
    "Latin-1": "Windows-1252",
    "Windows-1252": "Windows-1252",
    "tags first": "column 1",
    "types alone": "types of entities",
    "features after the tag": "column 1",
    "UNER": "column 2",
    "UNER as it was": "column 2",
    "GermEval": "column 2",
    "CoNLL-U of Stanza": "ner=",
    "CoNLL-U of NorNE": "name=",
    "CoNLL-U Plus": "EXTRA:NER",
    "Kaggle": "Windows-1252",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_files_of_columns_are_recognised(read, name, caplog):
    file, content = SAMPLES[name]
    assert read(content, file) == ROWS
    notes = [message for message in caplog.messages if "repaired" not in message]
    assert len(notes) == (name in NOTED) and NOTED.get(name, "") in "".join(notes)


@pytest.mark.parametrize("name", ["UNER", "UNER as it was", "CoNLL-U of Stanza"])
def test_errors_name_the_line_of_the_word(read, name):
    file, content = SAMPLES[name]
    text = content.decode().replace("\tB-ORG", "\tX-ORG").replace("ner=B-ORG", "ner=X-ORG")
    line = next(number for number, line in enumerate(text.split("\n"), start=1) if "Nokia" in line)
    with pytest.raises(ValueError, match=rf":{line}: unknown tag 'X-ORG'"):
        read(text, file, scheme="iob2")


@pytest.mark.parametrize("name", ["columns by blanks", "CoNLL-U of Stanza", "CoNLL-U Plus", "Kaggle"])
def test_parts_of_speech_are_read_with_entities(load, name):
    file, content = SAMPLES[name]
    assert list(load(content, file)["pos_tags"]) == POS


def test_words_on_lines_without_features_have_no_part_of_speech(load):
    file, content = SAMPLES["lines without features"]
    expected = [["_" if number % 3 == 0 else pos for number, pos in enumerate(row, start=1)] for row in POS]
    assert list(load(content, file)["pos_tags"]) == expected


def test_an_option_reads_the_inner_entities_of_germeval(read):
    assert read(lines(germeval), "x.tsv", tag_column=3)[0] == (ROWS[0][0], "O B-LOCpart O O O O")


NESTED = "Nokia\tB-ORG\tO\nof\tI-ORG\tO\nEspoo\tI-ORG\tB-LOC\nwon\tO\tO\n\nAalto\tB-PER\tO\nslept\tO\tO\n\n"


@pytest.mark.parametrize("inner", ["B-LOC", "B-ORG", "O"])
def test_the_outer_of_two_columns_of_entities_is_read(read, caplog, inner):
    rows = read(NESTED.replace("B-LOC", inner), "finer.csv")
    assert [tags for _, tags in rows] == ["B-ORG I-ORG I-ORG O", "B-PER O"]
    assert "tags from column 1" in caplog.text and "tag_column" in caplog.text


def test_chunks_are_not_taken_for_outer_entities(read):
    assert read("The DT B-NP O\nday NN I-NP O\n\n") == [("The day", "O O")]


def test_b_o_of_universal_ner_is_outside_of_entities(read, caplog):
    file, content = SAMPLES["UNER as it was"]
    read(content, file)
    assert "3 tags B-O became O" in caplog.text


def test_o_may_be_the_name_of_a_type(read):
    assert read("a B-O\nb B-PER\n") == [("a b", "B-O B-PER")]


# --- CoNLL-U and CSV --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, POS),
        ({"tag_column": "XPOS"}, [[f"X{pos}" for pos in row] for row in POS]),
        ({"tag_column": -7}, POS),
        ({"tag_column": "misc"}, [["SpaceAfter=No" for _ in row] for row in POS]),
        ({"tag_column": "SpaceAfter"}, [["No" for _ in row] for row in POS]),
    ],
)
def test_conllu_has_parts_of_speech_or_any_other_column(read, options, expected):
    rows = read(with_ranges(lines(conllu)), "x.txt", **options)
    assert rows == [(" ".join(words), " ".join(row)) for words, row in zip(TOKENS, expected, strict=True)]


def test_conllu_has_documents(load):
    text = lines(stanza, before="# newdoc id = d {}\n# sent_id = 1\n")
    assert list(load(text, "x.conllu")["doc_id"]) == [f"d {n}" for n in range(1, 6)]
    assert list(load(f"# newdoc\n{lines(stanza)}", "y.conllu")["doc_id"]) == ["0"] * 5


@pytest.mark.parametrize("options", [{"tag_column": -1}, {"token_column": "word", "tag_column": 3}])
def test_columns_of_csv_have_names_and_numbers(read, options):
    file, content = SAMPLES["Kaggle"]
    assert read(content, file, **options) == ROWS


def test_csv_without_a_header_has_numbered_columns(read):
    plain = "the,DT\nold,DT\ndog,NN\n"
    assert read(plain, "pos.csv", token_column=0, tag_column=1, scheme="plain") == [("the old dog", "DT DT NN")]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.csv", 'sentence_id,word,tag\n1,"""",O\n1,"a,b",B-X\n1,"c\nd",I-X\n2,None,O\n', ['"', "a,b", "c\nd"]),
        ("x.tsv", 'word\ttag\n"\tO\n"a\tB-X\n\nb\tO\n', ['"', '"a']),
        ("x.tsv", 'word\ttag\n""""\tO\n"a"\tB-X\n\nb\tO\n', ['"', "a"]),
        ("x.csv", "text,tags\nx y,O\n", ["x y"]),
    ],
)
def test_quotation_marks_are_read_as_the_file_writes_them(load, name, content, words):
    assert load(content, name)["tokens"][0] == words


def test_a_first_quotation_mark_may_be_far_into_a_file(load):
    assert load("word\ttag\n" + "a\tO\n\n" * 1_500 + '""""\tO\n', "late.tsv")["tokens"][-1] == ['"']


def test_csv_may_name_document_and_sentence_once_and_begin_with_a_comment(load):
    text = "# made by me\ndoc_id,sentence_id,word,tag\nd,1,EU,B-X\n,,rejects,O\n# half\n,2,lamb,O\ne,3,Ann,B-X\n"
    train = load(text, "x.csv")
    assert list(train["tokens"]) == [["EU", "rejects"], ["lamb"], ["Ann"]]
    assert list(train["doc_id"]) == ["d", None, "e"]


def test_missing_empty_lines_and_missing_entities_are_noted(read, caplog):
    read("left O\n" * 300)
    assert "is one sentence of 300 words" in caplog.text and "has no entities" in caplog.text


@pytest.mark.parametrize("convert", [list, np.array])
def test_lists_that_pandas_wrote_as_text_are_read(load, convert):
    words, tags = ["L'Oréal", 'a "b"', "EU"] * 30, ["B-ORG", "O", "I-X"] * 30
    frame = DataFrame([{"tokens": convert(words), "ner_tags": convert(tags)}, {"tokens": ["a"], "ner_tags": ["O"]}])
    split = load(frame.to_csv(index=False), "x.csv")
    assert list(split["tokens"]) == [words, ["a"]] and len(split["ner_tags"][0]) == 90


def test_a_sentence_of_kaggle_may_be_one_row(load):
    row = load("Sentence,POS,Tag\n\"Ann left\",\"['N', 'V']\",\"['B-PER', 'O']\"\n", "x.csv")[0]
    assert (row["tokens"], row["pos_tags"]) == (["Ann", "left"], ["N", "V"])


def test_a_sentence_number_may_recur_in_another_document(read):
    assert len(read("doc_id,sentence_id,word,tag\na,1,x,O\nb,1,y,O\nb,2,z,O\n", "x.csv")) == 3
    assert len(read("sentence,word,tag\nA b,A,O\n,b,O\nC,C,O\nA b,A,O\n,b,O\n", "x.csv")) == 3


def test_rows_without_a_word_end_sentences_of_csv(read, caplog):
    for row in (",O", " , ", ",,"):
        assert read(f"word,tag\nAnn,B-PER\n{row}\nleft,O\n", "x.csv") == [("Ann", "B-PER"), ("left", "O")]
    assert "rows without a word were read as the ends of sentences" in caplog.text


def test_lines_of_csv_may_end_in_carriage_returns(read):
    assert read("word,tag\rAnn,B-PER\rleft,O\r", "x.csv") == [("Ann left", "B-PER O")]


def test_files_of_columns_may_have_the_suffix_of_csv(read):
    assert read("Ann B-PER\n, O\nleft O\n", "x.csv") == [("Ann , left", "B-PER O O")]


# --- Encodings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("encoding", "word"), [("latin-1", "Zoë"), ("cp1251", "Анна"), ("utf-16", "Zoë")])
def test_the_encoding_is_an_option(read, caplog, encoding, word):
    assert read(f"{word}\tB-PER\n".encode(encoding), encoding=encoding) == [(word, "B-PER")]
    assert not caplog.records


def test_other_files_than_utf_8_are_read_as_windows_1252_with_one_warning(tmp_path, caplog):
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.conll").write_bytes("Zoë B-PER\nging O\n".encode("cp1252"))
    assert load_corpus(tmp_path)["test"]["tokens"][0] == ["Zoë", "ging"]
    (message,) = caplog.messages
    assert message.startswith(f"{tmp_path / 'train.conll'} and 2 others: not UTF-8, so read as Windows-1252")


def test_bytes_that_windows_1252_lacks_are_read_as_latin_1(read, caplog):
    """As in CoNLL-2002's Dutch files."""
    assert read(b"Belgi\x81\tB-LOC\n\x93a\tO\n") == [("Belgi\x81 \x93a", "B-LOC O")]
    assert "read as Latin-1" in caplog.text


def test_text_files_may_be_compressed(read):
    for file, content in ({**SAMPLES, **json_files()}[name] for name in ("BMES", "Kaggle", "Prodigy, lines")):
        content = content if isinstance(content, bytes) else content.encode()
        assert read(gzip.compress(content), f"{file}.gz") == read(content, file)


# --- Annotation tools -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", json_files())
def test_every_form_of_json_is_recognised(read, name):
    file, content = json_files()[name]
    assert read(content, file) == SENTENCES


def test_label_studios_unused_annotations_are_counted(read, caplog):
    assert read(json.dumps(label_studio()), "x.json") == SENTENCES
    assert "1 further annotations of the same task were left out" in caplog.text
    assert "2 tasks without an annotation were left out" in caplog.text


def test_label_studios_short_form_has_a_record_for_each_annotation(read, caplog):
    first, *others = label_studio_min()
    unused = {"text": "Nobody has read this .", "id": 9, "annotator": None, "annotation_id": None}
    records = [first, first | {"annotation_id": 77, "label": []}, *others, unused]
    assert read(json.dumps(records), "x.json") == SENTENCES
    assert "1 further annotations" in caplog.text and "1 tasks without an annotation" in caplog.text


def test_records_that_prodigys_annotator_rejected_are_left_out(read, caplog):
    assert read(json_files()["Prodigy, lines"][1], "x.jsonl") == SENTENCES
    assert "2 records that the annotator rejected or ignored were left out" in caplog.text


def test_a_control_and_the_key_of_the_text_can_be_named(read):
    value = {"start": 0, "end": 3, "text": "Ann"}
    result = [
        {"from_name": "mood", "value": value | {"labels": ["HAPPY"]}},
        {"from_name": "ner", "value": value | {"labels": ["PER"]}},
        {"from_name": "ner", "value": {"choices": ["x"]}},
    ]
    content = json.dumps([{"data": {"tweet": "Ann", "id": 3}, "annotations": [{"result": result}]}])
    assert read(content, "x.json", token_column="tweet", tag_column="ner") == [("Ann", "B-PER")]
    with pytest.raises(ValueError, match=r"no text under .* name them as token_column"):
        read(content, "x.json")


EMOJI, MARK = "\U0001f600", "\ufeff"


@pytest.mark.parametrize("first", [EMOJI, MARK])
def test_offsets_of_long_texts_take_linear_time(load, first):
    """An emoji moves Label Studio's offsets, and a byte-order mark all; each span once cost a pass over the text."""
    text, starts = first + "Ada left now . " * 10_000, range(1, 150_000, 15)
    spans = [{"start": at, "end": at + 3, "text": "Ada", "labels": ["PER"]} for at in starts]
    record = {"data": {"text": text}, "annotations": [{"result": [{"value": span} for span in spans]}]}
    if first == MARK:
        record = {"text": text, "spans": [[at, at + 3, "PER"] for at in starts]}
    begun = time.process_time()
    assert load(json.dumps(record), "long.json")
    assert time.process_time() - begun < 5


# --- BRAT and spaCy ---------------------------------------------------------------------------------------------------


def test_brat_is_read(write, read, load):
    text, annotation = brat()
    write(text, "x.txt")
    assert read(annotation, "x.ann") == SENTENCES
    assert set(load(annotation, "x.ann")["doc_id"]) == {"x"}
    with_tabs = re.sub(r"^(T\d+\t\w+) (\d+) ", r"\1\t\2\t", annotation, flags=re.MULTILINE)  # as ner-uk has them
    assert with_tabs != annotation and read(with_tabs, "x.ann") == SENTENCES


def test_brats_lines_are_sentences_unless_an_entity_crosses_them(write, read):
    write("\ufeffAnn met\n\nBo in New\r\n  York.\nIt rained.", "x.txt")
    assert read("\ufeffT1\tPER 1 4\tAnn\nT2\tLOC 16 27\tNew York\n", "x.ann") == [
        ("Ann met", "B-PER O"),
        ("Bo in New York .", "O O B-LOC I-LOC O"),
        ("It rained .", "O O O"),
    ]


def test_brat_is_read_in_another_encoding(write, read):
    write("Zoë left.".encode("cp1252"), "x.txt")
    assert read("T1\tPER 0 3\tZoë\n".encode("cp1252"), "x.ann", encoding="cp1252") == [("Zoë left .", "B-PER O O")]


@pytest.mark.parametrize("start", [10, 11])
@pytest.mark.parametrize("text", ["\tBo", ""])
def test_brats_offsets_may_count_line_breaks_of_windows_as_one_character(write, read, start, text):
    write("Ann left.\r\nBo slept.\r\n", "x.txt")
    assert read(f"T1\tPER {start} {start + 2}{text}\r\n", "x.ann")[1] == ("Bo slept .", "B-PER O O")


def test_a_few_bad_spans_of_brat_are_counted(write, read, caplog):
    write("Ann left.\n" * 100, "x.txt")
    good = "".join(f"T{at}\tPER {10 * at} {10 * at + 3}\tAnn\n" for at in range(98))
    rows = read(f"{good}T98\tPER 980 983\tBob\nT99\tPER 3 4\n", "x.ann")
    assert rows[97:99] == [("Ann left .", "B-PER O O"), ("Ann left .", "O O O")]
    assert "2 bad spans were left out (first: " in caplog.text and "x.ann:99: the span is 'Ann'" in caplog.text
    with pytest.raises(ValueError, match=r"x\.ann:99: 'T98' is not a span"):
        read(f"{good}T98\nT99\nT100\n", "x.ann")


def test_conllu_plus_may_have_hashtags(read):
    plus = "# global.columns = FORM NER\n# newdoc\n#BREAKING\tO\nAda\tB-PER\n"
    assert read(plus, "x.conllup") == [("#BREAKING Ada", "O B-PER")]


def test_lines_may_be_pairs_of_a_text_and_an_object(read):
    assert read(2 * '["Ada left.", {"entities": [[0, 3, "PER"]]}]\n', "x.jsonl") == 2 * [("Ada left .", "B-PER O O")]


def test_discontinuous_spans_are_joined_and_the_longest_span_is_kept(write, read, caplog):
    write("breast and ovarian cancer", "x.txt")
    annotation = "T1\tDIS 11 25\tovarian cancer\nT2\tDIS 0 6;19 25\tbreast cancer\n"
    assert read(annotation, "x.ann") == [("breast and ovarian cancer", "B-DIS I-DIS I-DIS I-DIS")]
    assert "1 discontinuous spans were read as one" in caplog.text and "1 spans that overlap" in caplog.text


def test_documents_of_one_name_in_two_folders_are_two(write, tmp_path):
    for folder in ("a", "b"):
        write("Ada left.\n", f"train/{folder}/1.txt")
        write("T1\tPER 0 3\tAda\n", f"train/{folder}/1.ann")
    assert load_corpus(tmp_path)["train"]["doc_id"][:] == ["a/1", "b/1"]


def load_docbin(folder, *docs):
    spacy = pytest.importorskip("spacy")
    spacy.tokens.DocBin(docs=docs).to_disk(folder / "x.spacy")
    return load_corpus(folder / "x.spacy")["train"]


def doc_of(words, entities, starts=(0,)):
    spacy = pytest.importorskip("spacy")
    sent_starts = [index in starts for index in range(len(words))]
    return spacy.tokens.Doc(spacy.blank("en").vocab, words, ents=entities, sent_starts=sent_starts)


def test_a_docbin_has_sentences_and_documents(tmp_path):
    words = "The list of ORG names . It is Москва .".split()
    first = doc_of(words, ["O", "B-ORG", *"OOOOOO", "B-Stadt", "O"], starts=(0, 6))
    train = load_docbin(tmp_path, first, doc_of(["It", "rains"], ["O", "O"]))
    assert train["tokens"][:] == [words[:6], words[6:], ["It", "rains"]]
    assert words_and_tags(train)[1] == [["O", "B-ORG", *"OOOO"], ["O", "O", "B-Stadt", "O"], ["O", "O"]]
    assert train["doc_id"][:] == ["0", "0", "1"] and "pos_tags" not in train.column_names


def test_a_docbin_may_have_parts_of_speech(tmp_path):
    doc = doc_of(["It", "rains"], ["O", "O"])
    for token in doc:
        token.tag_ = "X"
    assert load_docbin(tmp_path, doc)["pos_tags"][:] == [["X", "X"]]


def test_tokens_of_white_space_in_a_docbin_are_left_out(tmp_path):
    doc = doc_of(["\n", "Ann", " ", "\n", "left"], ["O", "B-PER", *"OOO"], starts=(0, 3))
    assert load_docbin(tmp_path, doc)["tokens"][:] == [["Ann"], ["left"]]


def test_a_docbin_without_entities_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"x\.spacy: no document has annotated entities"):
        load_docbin(tmp_path, pytest.importorskip("spacy").blank("en")("It rains"))


# --- Real corpora -----------------------------------------------------------------------------------------------------

#: Published counts of sentences, words and B- tags, by named corpus or file; one I- of each Spanish file continues no
#: entity.
REAL = {
    "wnut17": {"train": (3394, 62730, 1975), "validation": (1009, 15733, 836), "test": (1287, 23394, 1079)},
    "conll2003": {"train": (14041, 203621, 23499), "validation": (3250, 51362, 5942), "test": (3453, 46435, 5648)},
    "conll2002-es": {"train": (8323, 264715, 18798), "validation": (1915, 52923, 4352), "test": (1517, 51533, 3559)},
    "conll2002-nl": {"train": (15806, 202644, 13344), "validation": (2895, 37687, 2616), "test": (5195, 68875, 3941)},
    "wikiann-en": {"train": (20000, 160394, 27931), "validation": (10000, 80536, 14146), "test": (10000, 80326, 13958)},
}


@pytest.mark.skipif(not CORPORA, reason="HF_XORNER_CORPORA names no folder of corpora")
@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_counts_of_real_corpora(name):  # all of their files are read
    corpus = load_corpus(os.path.join(CORPORA, name) if name == "wikiann-en" else name)
    counts = corpus_statistics(corpus)
    keys = ("sentences", "tokens", "entities")
    assert {split: tuple(of_split[key] for key in keys) for split, of_split in counts.items()} == REAL[name]
    if name == "conll2003":
        # As papers count them, with a sentence of one token for each document.
        assert [count["with_document_lines"]["sentences"] for count in counts.values()] == [14987, 3466, 3684]
    assert not any("\ufeff" in word for split in corpus.values() for row in split["tokens"] for word in row)
