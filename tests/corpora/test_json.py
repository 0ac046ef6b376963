"""JSON of words and tags."""

import json

import pytest

from hf_xorner.corpora import DataError, load_corpus
from hf_xorner.corpora.assemble import words_and_tags

pytest_plugins = "corpus_files"

EXPECTED = [("Ann left", "B-PER O"), ("Rain", "O")]
LINE = '{"tokens": ["Ann", "left"], "tags": ["B-PER", "O"]}'
NEXT = '{"tokens": ["Rain"], "tags": ["O"]}'


@pytest.mark.parametrize(
    "content",
    [
        f"{LINE}\n{NEXT}\n",
        f"{LINE}\r\n\r\n{NEXT}",
        f"\ufeff{LINE}\n\ufeff{NEXT}\n\ufeff\n",
        f" {LINE} \n\t{NEXT}\n",
        f"{LINE}\n{NEXT}\n".replace("Ann", "\ufeffAnn").replace("B-PER", "B-PER\ufeff").replace("Rain", "Ra\\ufeffin"),
        f"\ufeff[{LINE},{NEXT}]",
        json.dumps([json.loads(LINE), json.loads(NEXT)], indent=2),
        f"{LINE}\n{NEXT}\n".replace("tokens", "words").replace("tags", "labels"),
        f"{LINE}\n{NEXT}\n".replace('"tags"', '"labels": ["L"], "tags": ["T"], "ner_tags"'),
    ],
)
def test_variants_of_a_file_read_the_same(read, content):
    assert read(content, "x.txt") == read(content, "x.jsonl") == EXPECTED


def test_an_object_may_have_several_lines(read):
    assert read(LINE.replace(",", ",\n"), "x.jsonl") == EXPECTED[:1]


def test_keys_are_configurable(read, load):
    record = {
        "tokens": ["no"],
        "form": ["Ann"],
        "ner_tags": ["no"],
        "entity": ["B-PER"],
        "pos_tags": ["no"],
        "x": ["N"],
    }
    options = {"token_column": "form", "tag_column": "entity", "pos_column": "x"}
    assert read(json.dumps(record), "x.jsonl", **options) == [("Ann", "B-PER")]
    assert list(load(json.dumps(record), "x.jsonl", **options)["pos_tags"]) == [["N"]]


def test_numbers_of_tags_have_names(read):
    assert read('{"tokens": ["a", "b"], "tags": [1, 0]}\n', "x.jsonl", tag_names="O B-X") == [("a b", "B-X O")]


def test_numbers_of_tags_have_the_names_of_a_file_of_t_ner(write):
    write('{"B-X": 1, "O": 0}', "folder/label.json")
    path = write('{"tokens": ["a", "b"], "tags": [1, 0]}\n', "folder/train.jsonl")
    assert words_and_tags(load_corpus(path.parent)["train"])[1] == [["B-X", "O"]]


def test_parts_of_speech_and_documents_are_read(load):
    records = [{"tokens": ["Ann"], "tags": ["O"], "pos": ["N"], "doc_id": name} for name in ("a", 7, None)]
    split = load("".join(json.dumps(record) + "\n" for record in records), "x.jsonl")
    assert (list(split["pos_tags"]), list(split["doc_id"])) == ([["N"]] * 3, ["a", "7", None])
    assert "pos_tags" not in load('{"tokens": ["Ann"], "tags": ["O"], "pos_tags": [22]}', "numbers.jsonl").column_names


BAD = [
    ("x.jsonl", ["{oops", {"tokens": ["Ann"], "tags": ["O"]}, 7, {"tokens": ["a"], "tags": []}], [":1", ":3", ":4"]),
    ("x.json", [[7, {"text": "Ann", "spans": []}, {"text": "a", "spans": [[0, 1, ""]]}]], [", record 1", ", record 3"]),
]


@pytest.mark.parametrize(("name", "records", "locations"), BAD)
def test_bad_records_are_left_out_and_listed_on_request(read, caplog, tmp_path, name, records, locations):
    text = "".join(f"{record if isinstance(record, str) else json.dumps(record)}\n" for record in records)
    with pytest.raises(DataError, match=r"or pass skip_bad_lines\.$"):
        read(text, name)
    caplog.clear()
    assert read(text, name, skip_bad_lines=True) == [("Ann", "O")]
    listed = caplog.messages[-1].split("\n  ")[1:]
    for line, location in zip(listed, locations, strict=True):
        assert line.startswith(f"{tmp_path / name}{location}")


def test_nltks_lists_of_words_with_tags_are_read():
    pairs = [[("Ann", "B-PER"), ("left", "O")], [("Rain", "O")], [("It", "PRP", "O"), ("rains", "VBZ", "O")]]
    words, tags = words_and_tags(load_corpus(pairs)["train"])
    assert (words, tags) == ([["Ann", "left"], ["Rain"], ["It", "rains"]], [["B-PER", "O"], ["O"], ["O", "O"]])
