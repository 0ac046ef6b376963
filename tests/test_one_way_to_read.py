"""`data` and `tag` read the same words from every file of the tests of corpora, and from files in other guises."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "corpora"))
from column_samples import SAMPLES, SENTENCES, TOKENS
from export_samples import brat, json_files

from hf_xorner import WordCharTokenizer
from hf_xorner.corpora import load_corpus
from hf_xorner.tagging import TaggingOptions, records_of

words_of = WordCharTokenizer.from_corpus([]).tokenize


@pytest.fixture
def tagged(tmp_path):
    """Writes a file, and returns the words that `tag` reads."""

    def tagged(name, content, **options):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        records = list(records_of(str(tmp_path / name), TaggingOptions(**options))[1])
        assert not any(record.fault for record in records)
        return [words_of(record.item) if isinstance(record.item, str) else record.item for record in records]

    return tagged


@pytest.mark.parametrize("name", [*SAMPLES, *json_files()])
def test_every_sample_is_read_by_both(tagged, tmp_path, name):
    file, content = {**SAMPLES, **json_files()}[name]
    tagged_words = tagged(file, content)
    loaded = list(load_corpus(tmp_path / file)["train"]["tokens"])
    if name.startswith(("Prodigy", "Label Studio")):
        # Rejected answers and tasks without an annotation are tagged, too.
        tagged_words = list(dict.fromkeys(map(tuple, tagged_words)))
        loaded = list(map(tuple, loaded))
    assert tagged_words == loaded


def test_brat_and_spacy_are_read_by_both(tagged, tmp_path):
    text, annotation = brat()
    (tmp_path / "x.txt").write_text(text)
    assert tagged("x.ann", annotation) == list(load_corpus(tmp_path / "x.ann")["train"]["tokens"])
    spacy = pytest.importorskip("spacy")
    doc = spacy.tokens.Doc(spacy.blank("en").vocab, ["Ann", "left"])
    assert tagged("x.spacy", spacy.tokens.DocBin(docs=[doc]).to_bytes()) == [["Ann", "left"]]


def test_words_need_no_tags(tagged):
    text = "".join("".join(f"{word}\n" for word in row) + "\n" for row in TOKENS)
    assert tagged("x.conll", text) == TOKENS == tagged("x.txt", f"-DOCSTART-\n\n{text}")
    rows = "sentence_id,word\n" + "".join(f"{at},{word}\n" for at, row in enumerate(TOKENS) for word in row)
    assert tagged("x.csv", rows) == TOKENS


def test_tables_of_texts_stay_rows(tagged):
    for file, content in (
        ("x.tsv", "id\ttitle\n1\tAnn Smith\n2\tZeus\n"),
        ("x.csv", "title,label\nAnn Smith,good\nZeus,bad\n"),
    ):
        assert tagged(file, content, field="title") == [["Ann", "Smith"], ["Zeus"]]
    assert tagged("y.csv", "text,label\nAnn Smith,good\nZeus,bad\n") == [["Ann", "Smith"], ["Zeus"]]
    header = "sentence_id\ttoken\ttag\n" + "".join(
        f"{at}\t{word}\t{tag}\n" for at, row in enumerate(SENTENCES) for word, tag, _ in row
    )
    assert tagged("y.tsv", header) == TOKENS


def test_texts_stay_texts(tagged):
    text = "Ann Smith saw Zeus.\n\nHello, T-shirt\nI am fine, <b>Bo</b>\nPlan B\n"
    assert tagged("x.txt", text) == [words_of(line) for line in text.split("\n")[:-1]]
    assert tagged("y.txt", "Zoë ging.\n".encode("latin-1")) == [["Zoë", "ging", "."]]
    assert tagged("x.jsonl", json.dumps({"text": "Bo left", "tokens": ["Bo", "left"]})) == [["Bo", "left"]]
