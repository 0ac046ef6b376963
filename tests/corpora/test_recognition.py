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

NOTED = {
    "Latin-1": "read as Windows-1252",
    "Windows-1252": "read as Windows-1252",
    "tags first": "words are read from column 1 and tags from column 0",
    "features after the tag": "words are read from column 0 and tags from column 1",
    "UNER": "words are read from column 1 and tags from column 2",
    "UNER as it was": "words are read from column 1 and tags from column 2",
    "GermEval": "tags from column 2 of 4, counted from 0; ignored: 0, 3, of which column 3 also holds tags of entities",
    "CoNLL-U of Stanza": "the tags are read from MISC (ner=)",
    "CoNLL-U of NorNE": "the tags are read from MISC (name=)",
    "CoNLL-U Plus": "the tags are read from EXTRA:NER",
    "Kaggle": "read as Windows-1252",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_files_of_columns_are_recognised(read, name, caplog):
    file, content = SAMPLES[name]
    assert read(content, file) == ROWS
    notes = [message for message in caplog.messages if "repaired" not in message]
    assert len(notes) == (name in NOTED) and NOTED.get(name, "") in "".join(notes)


def test_errors_name_the_line_of_the_word(read):
    for name in ("UNER", "UNER as it was", "CoNLL-U of Stanza"):
        file, content = SAMPLES[name]
        text = content.decode().replace("\tB-ORG", "\tX-ORG").replace("ner=B-ORG", "ner=X-ORG")
        line = next(at for at, line in enumerate(text.split("\n"), start=1) if "Nokia" in line)
        with pytest.raises(ValueError, match=rf":{line}: unknown tag 'X-ORG'"):
            read(text, file, scheme="iob2")


def test_parts_of_speech_are_read_with_entities(load):
    for name in ("columns by blanks", "CoNLL-U of Stanza", "CoNLL-U Plus", "Kaggle"):
        file, content = SAMPLES[name]
        assert list(load(content, file)["pos_tags"]) == POS, name
    file, content = SAMPLES["lines without features"]
    unknown = [["_" if n % 3 == 0 else pos for n, pos in enumerate(row, start=1)] for row in POS]
    assert list(load(content, file)["pos_tags"]) == unknown


def test_an_option_reads_the_inner_entities_of_germeval(read):
    assert read(lines(germeval), "x.tsv", tag_column=3)[0] == (ROWS[0][0], "O B-LOCpart O O O O")


NESTED = "Nokia\tB-ORG\tO\nof\tI-ORG\tO\nEspoo\tI-ORG\tB-LOC\nwon\tO\tO\n\nAalto\tB-PER\tO\nslept\tO\tO\n\n"


@pytest.mark.parametrize("name", ["finer.csv", "finer.tsv"])
def test_the_outer_of_two_columns_of_entities_is_read(read, caplog, name):
    for nested in (NESTED, NESTED.replace("B-LOC", "B-ORG"), NESTED.replace("B-LOC", "O")):
        assert [row for _, row in read(nested, name)] == ["B-ORG I-ORG I-ORG O", "B-PER O"]
        assert "tags from column 1" in caplog.text and "tag_column" in caplog.text
        caplog.clear()
    assert read("The DT B-NP O\nday NN I-NP O\n\n") == [("The day", "O O")]


def test_b_o_of_universal_ner_is_outside_of_entities(read, caplog):
    file, content = SAMPLES["UNER as it was"]
    read(content, file)
    assert "3 tags B-O became O (first:" in caplog.text
    # Elsewhere, O may be the name of a type.
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


def test_columns_of_csv_have_names_and_numbers(read):
    file, content = SAMPLES["Kaggle"]
    assert read(content, file, tag_column="POS")[0][1] == " ".join(POS[0])
    assert read(content, file, token_column="word", tag_column=3) == read(content, file, tag_column=-1) == ROWS
    hipe = "TOKEN\tNE-COARSE-LIT\tMISC\na\tO\t_\n\tO\tEndOfSentence\nb\tO\t_\nc\tO\tEndOfSentence\n"
    assert read(hipe, "x.tsv", skip_bad_lines=True) == [("a", "O"), ("b c", "O O")]
    plain = "the,DT\nold,DT\ndog,NN\n"
    assert read(plain, "pos.csv", token_column=0, tag_column=1, scheme="plain") == [("the old dog", "DT DT NN")]


def test_quotation_marks_are_read_as_the_file_writes_them(load):
    text = 'sentence_id,word,tag\n1,"""",O\n1,"a,b",B-X\n1,"c\nd",I-X\n2,None,O\n'
    assert list(load(text, "x.csv")["tokens"]) == [['"', "a,b", "c\nd"], ["None"]]
    assert list(load('word\ttag\n"\tO\n"a\tB-X\n\nb\tO\n', "x.tsv")["tokens"]) == [['"', '"a'], ["b"]]
    assert list(load('word\ttag\n""""\tO\n"a"\tB-X\n\nb\tO\n', "y.tsv")["tokens"]) == [['"', "a"], ["b"]]
    assert load("word\ttag\n" + "a\tO\n\n" * 1_500 + '""""\tO\n', "late.tsv")["tokens"][-1] == ['"']
    assert list(load("text,tags\nx y,O\n", "z.csv")["tokens"]) == [["x y"]]


def test_csv_may_name_document_and_sentence_once_and_begin_with_a_comment(load):
    text = "# made by me\ndoc_id,sentence_id,word,tag\nd,1,EU,B-X\n,,rejects,O\n# half\n,2,lamb,O\ne,3,Ann,B-X\n"
    train = load(text, "x.csv")
    assert list(train["tokens"]) == [["EU", "rejects"], ["lamb"], ["Ann"]]
    assert list(train["doc_id"]) == ["d", None, "e"]


def test_missing_empty_lines_and_missing_entities_are_noted(read, caplog):
    read("left O\n" * 300)
    assert "is one sentence of 300 words" in caplog.text and "has no entities" in caplog.text


def test_lists_that_pandas_wrote_as_text_are_read(load):
    words, tags = ["L'Oréal", 'a "b"', "EU"] * 30, ["B-ORG", "O", "I-X"] * 30
    for lists in ([words, tags], [np.array(words), np.array(tags)]):
        row = dict(zip(("tokens", "ner_tags"), lists, strict=True))
        split = load(DataFrame([row, {"tokens": ["a"], "ner_tags": ["O"]}]).to_csv(index=False), "x.csv")
        assert list(split["tokens"]) == [words, ["a"]] and len(split["ner_tags"][0]) == 90
    kaggle = "Sentence,POS,Tag\n\"Ann left\",\"['N', 'V']\",\"['B-PER', 'O']\"\n"
    assert (load(kaggle, "y.csv")[0]["tokens"], load(kaggle, "y.csv")[0]["pos_tags"]) == (["Ann", "left"], ["N", "V"])
    with pytest.raises(ValueError, match=r"z\.csv:3: 'ner_tags' holds \['O', x\]"):
        load("tokens,ner_tags\n['a'],['O']\n\"['a', 'b']\",\"['O', x]\"\n", "z.csv")


def test_a_sentence_number_may_not_recur_unless_in_another_document(read):
    rows = "1,Ann,B-PER\n2,left,O\n1,Lee,I-PER\n"
    with pytest.raises(ValueError, match=r"x\.csv:4: the sentence 1 begins again"):
        read(f"sentence_id,word,tag\n{rows}", "x.csv")
    assert len(read("doc_id,sentence_id,word,tag\na,1,x,O\nb,1,y,O\nb,2,z,O\n", "x.csv")) == 3
    assert len(read("sentence,word,tag\nA b,A,O\n,b,O\nC,C,O\nA b,A,O\n,b,O\n", "x.csv")) == 3


def test_rows_without_a_word_end_sentences_of_csv(read, caplog):
    for row in (",O", " , ", ",,"):
        assert read(f"word,tag\nAnn,B-PER\n{row}\nleft,O\n", "x.csv") == [("Ann", "B-PER"), ("left", "O")]
    assert "rows without a word were read as the ends of sentences" in caplog.text


def test_csv_may_have_carriage_returns_and_files_of_columns_its_suffix(read):
    assert read("word,tag\rAnn,B-PER\rleft,O\r", "x.csv") == [("Ann left", "B-PER O")]
    with pytest.raises(ValueError, match=r"x\.csv:2: .* a carriage return"):
        read("word,tag\nAn\rn,B-PER\nleft,O\n", "x.csv")
    assert read("Ann B-PER\n, O\nleft O\n", "x.csv") == [("Ann , left", "B-PER O O")]


# --- Encodings --------------------------------------------------------------------------------------------------------


def test_the_encoding_is_an_option(read, caplog):
    for encoding in ("latin-1", "cp1251", "utf-16"):
        text = "Анна\tB-PER\nушла\tO\n" if encoding == "cp1251" else "Zoë\tB-PER\nging\tO\n"
        assert read(text.encode(encoding), encoding=encoding)[0][0] == text.replace("\tB-PER\n", " ").split("\t")[0]
    assert not caplog.records


def test_other_files_than_utf_8_are_read_as_windows_1252_with_one_warning(read, tmp_path, caplog):
    assert read("[ O\nZoë B-PER\n] O\n".encode("latin-1")) == [("[ Zoë ]", "O B-PER O")]
    caplog.clear()
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.conll").write_bytes("Zoë B-PER\nging O\n".encode("cp1252"))
    (tmp_path / "x.conll").unlink()
    load_corpus(tmp_path)
    (message,) = caplog.messages
    assert message.startswith(f"{tmp_path / 'train.conll'} and 2 others: not UTF-8, so read as Windows-1252")
    # As CoNLL-2002's Dutch files.
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


def test_tasks_and_records_that_are_not_used_are_counted(read, caplog):
    assert read(json.dumps(label_studio()), "x.json") == SENTENCES
    assert "1 further annotations of the same task were left out (first:" in caplog.text
    assert "2 tasks without an annotation were left out (first:" in caplog.text
    caplog.clear()
    # Each annotation is a record, and a task without one has null as annotation.
    first, *others = label_studio_min()
    unused = {"text": "Nobody has read this .", "id": 9, "annotator": None, "annotation_id": None}
    records = [first, first | {"annotation_id": 77, "label": []}, *others, unused]
    assert read(json.dumps(records), "x.json") == SENTENCES
    assert "1 further annotations" in caplog.text and "1 tasks without an annotation" in caplog.text
    caplog.clear()
    read(json_files()["Prodigy, lines"][1], "x.jsonl")
    assert "2 records that the annotator rejected or ignored were left out" in caplog.text


def test_numbers_of_tasks_of_another_type_are_read(read):
    for number in ([1], {"a": 1}, "7", 1.5):
        task = {
            "id": number,
            "annotation_id": 1,
            "text": "Ada left",
            "label": [{"start": 0, "end": 3, "labels": ["PER"]}],
        }
        assert read(json.dumps([task]), "min.json") == [("Ada left", "B-PER O")]


def test_a_control_and_the_key_of_the_text_can_be_named(read):
    value = {"start": 0, "end": 3, "text": "Ann"}
    result = [
        {"from_name": "mood", "value": value | {"labels": ["HAPPY"]}},
        {"from_name": "ner", "value": value | {"labels": ["PER"]}},
        {"from_name": "ner", "value": {"choices": ["x"]}},
        {"value": None},
        3,
    ]
    content = json.dumps([{"data": {"tweet": "Ann", "id": 3}, "annotations": [{"result": result}]}])
    assert read(content, "x.json", token_column="tweet", tag_column="ner") == [("Ann", "B-PER")]
    with pytest.raises(
        ValueError, match=r"record 1: no text under 'text' or 'data' or 'content'; name them as token_column"
    ):
        read(content, "x.json")


def seconds_of(load, record, name):
    start = time.process_time()
    assert load(json.dumps(record), name)
    return time.process_time() - start


def test_offsets_of_long_texts_take_linear_time(load):
    """An emoji moves Label Studio's offsets, and a byte-order mark all; each span once cost a pass over the text."""
    text = "\U0001f600 " + "Ada left now . " * 20_000
    spans = [{"start": 3 + 15 * at, "end": 6 + 15 * at, "text": "Ada", "labels": ["PER"]} for at in range(20_000)]
    record = {"data": {"text": text}, "annotations": [{"result": [{"value": span} for span in spans]}]}
    assert seconds_of(load, record, "studio.json") < 10
    marked = {"text": "\ufeff" + text[2:], "spans": [[1 + 15 * at, 4 + 15 * at, "PER"] for at in range(20_000)]}
    assert seconds_of(load, marked, "marked.jsonl") < 10


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


def test_brats_offsets_may_count_line_breaks_of_windows_as_one_character(write, read):
    write("Ann left.\r\nBo slept.\r\n", "x.txt")
    for at in (10, 11):
        for text in ("\tBo", ""):
            assert read(f"T1\tPER {at} {at + 2}{text}\r\n", "x.ann")[1] == ("Bo slept .", "B-PER O O")


def test_a_few_bad_spans_of_brat_are_counted(write, read, caplog):
    write("Ann left.\n" * 100, "x.txt")
    good = "".join(f"T{at}\tPER {10 * at} {10 * at + 3}\tAnn\n" for at in range(98))
    assert read(f"{good}T98\tPER 980 983\tBob\nT99\tPER 3 4\n", "x.ann")[97:99] == [
        ("Ann left .", "B-PER O O"),
        ("Ann left .", "O O O"),
    ]
    assert "2 bad spans were left out (first: " in caplog.text and "x.ann:99: the span is 'Ann'" in caplog.text
    with pytest.raises(ValueError, match=r"x\.ann:99: 'T98' is not a span"):
        read(f"{good}T98\nT99\nT100\n", "x.ann")


def test_hashtags_long_documents_and_pairs_of_text_and_object_are_read(read):
    plus = "# global.columns = FORM NER\n# newdoc\n#BREAKING\tO\nAda\tB-PER\n"
    assert read(plus, "x.conllup") == [("#BREAKING Ada", "O B-PER")]
    rows = "sentence_id,token,tag\n" + "1,Ada,B-PER\n" * 1500
    assert [len(words.split()) for words, _ in read(rows, "x.csv")] == [1500]
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


def test_a_docbin_has_sentences_documents_and_parts_of_speech(tmp_path):
    spacy = pytest.importorskip("spacy")
    docs = []
    for words, entities, starts in (
        ("The list of ORG names . It is Москва .", ["O", "B-ORG", *"OOOOOO", "B-Stadt", "O"], (0, 6)),
        ("It rains .", [*"OOO"], (0,)),
    ):
        words = words.split(" ")
        sent_starts = [at in starts for at in range(len(words))]
        docs.append(spacy.tokens.Doc(spacy.blank("en").vocab, words, ents=entities, sent_starts=sent_starts))
    for token in docs[1]:
        token.tag_ = "X"
    spacy.tokens.DocBin(docs=docs).to_disk(tmp_path / "x.spacy")
    train = load_corpus(tmp_path / "x.spacy")["train"]
    assert [" ".join(words) for words in train["tokens"]] == ["The list of ORG names .", "It is Москва .", "It rains ."]
    assert words_and_tags(train)[1] == [["O", "B-ORG", *"OOOO"], ["O", "O", "B-Stadt", "O"], [*"OOO"]]
    assert list(train["doc_id"]) == ["0", "0", "1"] and "pos_tags" not in train.column_names
    spacy.tokens.DocBin(docs=docs[1:]).to_disk(tmp_path / "x.spacy")
    train = load_corpus(tmp_path / "x.spacy")["train"]
    assert list(train["pos_tags"]) == [["X"] * 3] and "doc_id" not in train.column_names
    blanks = {"ents": ["O", "B-PER", *"OOO"], "sent_starts": [True, False, False, True, False]}
    docs = [spacy.tokens.Doc(spacy.blank("en").vocab, ["\n", "Ann", " ", "\n", "left"], **blanks)]
    spacy.tokens.DocBin(docs=docs).to_disk(tmp_path / "x.spacy")
    assert list(load_corpus(tmp_path / "x.spacy")["train"]["tokens"]) == [["Ann"], ["left"]]
    spacy.tokens.DocBin(docs=[spacy.blank("en")("It rains")]).to_disk(tmp_path / "x.spacy")
    with pytest.raises(ValueError, match=r"x\.spacy: no document has annotated entities"):
        load_corpus(tmp_path / "x.spacy")


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
@pytest.mark.parametrize("name", ["wnut17", *(pytest.param(name, marks=pytest.mark.slow) for name in [*REAL][1:])])
def test_counts_of_real_corpora(name):  # all of their files are read
    corpus = load_corpus(os.path.join(CORPORA, name) if name == "wikiann-en" else name)
    counts = corpus_statistics(corpus)
    keys = ("sentences", "tokens", "entities")
    assert {split: tuple(of_split[key] for key in keys) for split, of_split in counts.items()} == REAL[name]
    if name == "conll2003":
        # As papers count them, with a sentence of one token for each document.
        assert [count["with_document_lines"]["sentences"] for count in counts.values()] == [14987, 3466, 3684]
    assert not any("\ufeff" in word for split in corpus.values() for row in split["tokens"] for word in row)
