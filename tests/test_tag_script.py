"""scripts/hf-xorner tag: one record is written for each record read, for every format and every way of running it."""

import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from conftest import LABELS, REPOSITORY, SENTENCES, build_model
from datasets import Dataset, IterableDatasetDict
from helpers import TORCHRUN, accelerate, fault, lock_holder, ok
from processes import run_python, run_pythons
from random_texts import TEXTS, lively_model, random_sentences

from hf_xorner import Tagger, WordCharTokenizer
from hf_xorner.files import LockedError
from hf_xorner.tagging import TaggingOptions, tag_source
from hf_xorner.tagging import output as output_module
from hf_xorner.tagging.read import Source
from hf_xorner.tagging.run import read_chunks

TAG = str(REPOSITORY / "scripts" / "tag.py")
HOSTILE = [
    "",
    "Ann Smith saw Zeus",
    " \t ",
    "NUL \0 in Ann Smith",
    "Ann\u2028Smith\u2029met\x85Zeus\x0bin\x0cNew\x1cYork",
    "👩🏽‍🚀 Ann 🇸🇪 Zeus \ud7ff\ue000\uffff",
    "\ufeffAnn in New York",
    '{"text": "Ann"} is no line of JSON in Zeus',
    "Ann " * 3000 + "x" * 70_000,
    "[PAD] [UNK] zeus",
    "Ann\rSmith",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory, tokenizer):
    """The folder of a model that predicts many entities."""
    folder = tmp_path_factory.mktemp("model")
    lively_model("cross-bilstm-cnn", tokenizer, "crf").save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def tagger(model):
    return Tagger.from_pretrained(model, "cpu")


@pytest.fixture
def tag(script, model):
    """Run the script with the model in this process."""
    return lambda source, *options: script("tag.py", source, "--model", model, "--device", "cpu", *options)


def command(model, source, *options, launcher=()):
    return [sys.executable, *launcher, TAG, str(source), "--model", model, "--device", "cpu", *map(str, options)]


def run(arguments, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(arguments, capture_output=True, timeout=300, env=environment, **options)


def objects(text):
    """Return the objects of JSON Lines, which only \\n separates."""
    assert text.endswith("\n")
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


def same_entities(written, tagger, item):
    """Check that the entities of a record are those of the tagger for this item alone."""
    expected = tagger(item)
    assert [(one["label"], one["start"], one["end"], one["text"]) for one in written] == [
        (one.label, one.start, one.end, one.text) for one in expected
    ]
    assert [one["score"] for one in written] == pytest.approx([one.score for one in expected], abs=1e-4)
    if not isinstance(item, str):
        assert [(one["word_start"], one["word_end"]) for one in written] == [
            (one.word_start, one.word_end) for one in expected
        ]


def labels_alone(tagger, item):
    """Return the words of an item, and their labels when it is tagged alone."""
    words = tagger.tokenizer.tokenize(item) if isinstance(item, str) else item
    return words, next(tagger.label([words]))[0]


# --- Formats ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("final", [True, False], ids=["final end", "no final end"])
def test_each_line_of_text_becomes_one_line_of_spans(tag, tagger, tmp_path, end, final):
    texts = [*HOSTILE, *TEXTS]
    (tmp_path / "in.txt").write_bytes((end.join(texts) + end * final).encode())
    found = objects(ok(tag("in.txt", "--batch_size", 2)))
    assert [one["text"] for one in found] == texts
    assert sum(len(one["entities"]) for one in found) > 20
    for one in found:
        same_entities(one["entities"], tagger, one["text"])


def test_a_byte_order_mark_at_the_beginning_is_removed(tag, tmp_path):
    (tmp_path / "in.txt").write_bytes("\ufeffAnn\n\ufeffAnn\n".encode())
    assert [one["text"] for one in objects(ok(tag("in.txt")))] == ["Ann", "\ufeffAnn"]


def test_an_empty_file_gives_an_empty_output(tag, tmp_path):
    (tmp_path / "in.txt").write_bytes(b"")
    assert ok(tag("in.txt")) == ""
    ok(tag("in.txt", "--output", "out.jsonl"))
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_lines_of_text_become_columns_with_an_empty_line_for_each(tag, tagger, tmp_path):
    texts = [text for text in HOSTILE if "\r" not in text]
    (tmp_path / "in.txt").write_bytes("\n".join(texts).encode())
    blocks = ok(tag("in.txt", "--format", "conll", "--batch_size", 2)).split("\n")
    assert blocks.pop() == ""
    for text in texts:
        for word, label in zip(*labels_alone(tagger, text), strict=True):
            assert blocks.pop(0) == f"{word}\t{label}"
        assert blocks.pop(0) == ""
    assert blocks == []


COLUMNS = """\ufeff-DOCSTART- -X- O

# sent_id = 1
# text = Ann Smith
Ann NNP B-PER
Smith  NNP\tB-PER
# # O


-DOCSTART- (two)

Zeus NNP O
\u2028\xa0 NNP O
# x y O
in IN O\r
New NNP B-LOC \r
York NNP I-LOC\r
\r
# only a comment

Nobody NN O"""


def test_columns_are_copied_with_a_label_column_added(tag, tagger, tmp_path):
    text = COLUMNS.replace("# x y O\n", "")
    (tmp_path / "in.conll").write_bytes(text.encode())
    ok(tag("in.conll", "--output", "out.conll", "--batch_size", 1))
    written = (tmp_path / "out.conll").read_bytes().decode().split("\n")
    sentences = [["Ann", "Smith", "#"], ["Zeus", "\u2028\xa0", "in", "New", "York"], ["Nobody"]]
    tags = [tag for words in sentences for tag in labels_alone(tagger, words)[1]]
    assert len(set(tags)) > 1
    for before, after in zip(text.split("\n"), written, strict=True):
        first = before.lstrip("\ufeff").split(" ")[0].rstrip("\r")
        if not first or before.startswith(("# sent", "# text")) or "(two)" in before or "only" in before:
            assert after == before
        else:
            bare = before.rstrip("\r")
            expected = "O" if first == "-DOCSTART-" else tags.pop(0)
            assert after == f"{bare.rstrip()} {expected}{before[len(bare) :]}"
    assert tags == []
    assert [one["words"] for one in objects(ok(tag("in.conll", "--format", "spans")))] == sentences
    plain = ok(tag("in.conll", "--format", "conll"))
    assert [line.split("\t")[0] for line in plain.split("\n")] == [
        *sentences[0], "", *sentences[1], "", *sentences[2], "", ""
    ]  # fmt: skip


@pytest.mark.parametrize("separator", ["\t", " "])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_random_columns_are_unchanged_without_the_added_one(tag, tagger, tmp_path, separator, columns):
    draw = random.Random(columns)
    sentences = random_sentences(50, seed=columns)
    column = draw.randrange(columns)
    lines = []
    for words in sentences:
        for word in words:
            fields = [draw.choice("ABC") for _ in range(columns)]
            fields[column] = word
            lines.append(separator.join(fields))
        lines += [""] * draw.randrange(1, 4)
    (tmp_path / "in.tsv").write_bytes("\n".join(lines).encode())
    ok(tag("in.tsv", "--output", "out.tsv", "--field", column - columns, "--batch_size", 1))
    written = (tmp_path / "out.tsv").read_bytes().decode().split("\n")
    added = "\t" if columns == 1 else separator
    assert [line.rpartition(added)[0] if line else "" for line in written] == lines
    tags = [tag for words in sentences for tag in labels_alone(tagger, words)[1]]
    assert [line.rpartition(added)[2] for line in written if line] == tags


def test_json_lines_are_copied_with_one_field_added(tag, tagger, tmp_path):
    lines = [
        '{"id": 1.50, "text" : "Ann Smith saw Zeus"}',
        "",
        '\ufeff{"id": 12345678901234567890, "id": 2, "words": ["New York", "\\u00e9", "x\\ty"], "other": "\\ud83d"}\r',
        '  {"text": "", "deep": {"a": [{}]} }  ',
        '{"tokens": [], "text": "unused"}',
        '{"tokens": [{"start": 0}], "text": "Zeus \u2028 in \\u2028 \\u0000 New York"}',
    ]
    (tmp_path / "in.jsonl").write_bytes("\n".join(lines).encode())
    ok(tag("in.jsonl", "--output", "out.jsonl"))
    written = (tmp_path / "out.jsonl").read_bytes().decode().split("\n")
    assert len(written) == len(lines)
    for before, after in zip(lines, written, strict=True):
        if not before:
            assert after == ""
            continue
        head, _, tail = before.rpartition("}")
        assert after.startswith(head.rstrip())
        assert after.endswith("}" + tail)
        record = json.loads(after.lstrip("\ufeff"))
        words = record.get("words", record.get("tokens"))
        if words is not None and all(isinstance(word, str) for word in words):
            assert record["predicted_tags"] == (labels_alone(tagger, words)[1] if words else [])
            assert "predicted_entities" not in record
        else:
            same_entities(record["predicted_entities"], tagger, record["text"])
    # In other forms blank lines are no records.
    spans = objects(ok(tag("in.jsonl", "--format", "spans")))
    assert [one.get("text", one.get("words")) for one in spans] == [
        "Ann Smith saw Zeus", ["New York", "é", "x\ty"], "", [], "Zeus \u2028 in \u2028 \0 New York"
    ]  # fmt: skip
    for one in spans:
        same_entities(one["entities"], tagger, one.get("text", one.get("words")))
    assert "field 'id' holds" not in fault(tag("in.jsonl", "--field", "id"))


@pytest.mark.parametrize("words", [False, True])
def test_a_parquet_file_is_copied_with_one_column_added(tag, tagger, tmp_path, words):
    items = random_sentences(2300, longest=4) if words else [*TEXTS, *HOSTILE]
    column = pa.array(items)
    table = pa.table({"id": range(len(items)), "words" if words else "text": column, "z": [None] * len(items)})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=700)
    ok(tag("in.parquet", "--output", "out.parquet"))
    written = pq.read_table(tmp_path / "out.parquet")
    name = "predicted_tags" if words else "predicted_entities"
    assert written.drop_columns(name).equals(table)
    for item, found in list(zip(items, written[name].to_pylist(), strict=True))[:200]:
        if words:
            assert found == labels_alone(tagger, item)[1]
        else:
            same_entities(found, tagger, item)
    assert Dataset.from_parquet(str(tmp_path / "out.parquet"), cache_dir=str(tmp_path / "cache")).num_rows == len(items)
    spans = objects(ok(tag("in.parquet")))
    assert [one["words" if words else "text"] for one in spans] == items
    assert "there is a column id already" in fault(tag("in.parquet", "--output", "o.parquet", "--output_field", "id"))
    assert "a column of" not in fault(tag("in.parquet", "--field", "id"))


def test_gzip_is_read_and_written(tag, tmp_path):
    plain = ok_text(tag, tmp_path, "in.txt", "\n".join(TEXTS).encode())
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress("\n".join(TEXTS).encode()))
    ok(tag("in.txt.gz", "--output", "out.jsonl.gz", "--batch_size", 1))
    assert gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()).decode() == plain
    (tmp_path / "broken.txt.gz").write_bytes(gzip.compress(os.urandom(9999).hex().encode())[:-900])
    assert "broken.txt.gz: the gzip file is damaged" in fault(tag("broken.txt.gz"))


def ok_text(tag, folder, name, content):
    (folder / name).write_bytes(content)
    return ok(tag(name, "--batch_size", 1))


def test_a_folder_is_mirrored(tag, tmp_path):
    folder = tmp_path / "in"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "a.txt").write_text("Ann Smith\nZeus\n")
    (folder / "b.txt.gz").write_bytes(gzip.compress(b"Zeus\n"))
    (folder / "c.jsonl").write_text('{"text": "Zeus in New York"}\n')
    (folder / "deep" / "d.conll").write_text("Ann O\n")
    (folder / "eng.testb").write_text("-DOCSTART- -X- O\n\nAnn NN O\n")
    (folder / "empty.txt").write_text("")
    (folder / ".hidden.txt").write_text("no")
    (folder / "notes.pdf").write_text("no")
    pq.write_table(pa.table({"text": ["Zeus", "Ann"]}), folder / "deep" / "e.parquet")
    code, out, errors = tag("in", "--output", "out", "--batch_size", 1)
    assert code == 0, errors
    assert out.startswith("written: out (8 records")
    assert "ignored for their suffix: notes.pdf;" in errors
    files = ["b.jsonl.gz", "c.jsonl", "deep/d.conll", "deep/e.parquet", "deep/er/a.jsonl", "empty.jsonl", "eng.testb"]
    assert list(contents_of(tmp_path / "out")) == [*(f"_tagging/{name}.json" for name in files), *files]
    assert pq.read_table(tmp_path / "out" / "deep" / "e.parquet").column_names == ["text", "predicted_entities"]
    assert (tmp_path / "out" / "deep" / "er" / "a.jsonl").read_text() == ok(tag("in/deep/er/a.txt", "--batch_size", 1))
    before = contents_of(tmp_path / "out")
    assert "8 records" in ok(tag("in", "--output", "out", "--batch_size", 1))
    assert contents_of(tmp_path / "out") == before
    (folder / "c.jsonl").write_text('{"text": "Zeus in New York City"}\n')
    assert "c.jsonl: exists already and was written with another input" in fault(
        tag("in", "--output", "out", "--batch_size", 1)
    )
    ok(tag("in", "--output", "out", "--batch_size", 1, "--overwrite"))
    after = contents_of(tmp_path / "out")
    assert {name for name in after if after[name] != before[name]} == {"c.jsonl", "_tagging/c.jsonl.json"}
    assert "inside the folder that is read" in fault(tag("in", "--output", "in/out"))
    assert "name another as output" in fault(tag("in"))
    (folder / "deep" / "er" / "a.jsonl").write_text('{"text": ""}\n')
    assert "would both be written to out2/deep/er/a.jsonl" in fault(tag("in", "--output", "out2", "--format", "spans"))


def test_a_dataset_on_the_hub_is_streamed(tag, tagger, monkeypatch, tmp_path):
    asked = []

    def load(name, streaming):
        asked.append((name, streaming))
        rows = Dataset.from_dict({"id": range(len(TEXTS)), "text": TEXTS}).to_iterable_dataset()
        return IterableDatasetDict({"train": rows, "test": rows.take(2)} if name == "a/two" else {"train": rows})

    monkeypatch.setattr("hf_xorner.corpora.load.load_dataset", load)
    found = objects(ok(tag("a/one")))
    assert asked == [("a/one", True)]
    assert [one["text"] for one in found] == TEXTS
    for one in found:
        same_entities(one["entities"], tagger, one["text"])
    assert len(objects(ok(tag("a/two", "--split", "test", "--field", "text")))) == 2
    assert "a/two: several splits; name one of train, test as split" in fault(tag("a/two"))
    assert "a/two: no split 'dev'" in fault(tag("a/two", "--split", "dev"))
    assert "no column body among id, text" in fault(tag("a/one", "--field", "body"))
    assert "row 0: 'id' holds a number" in fault(tag("a/one", "--field", "id"))
    ok(tag("a/one", "--output", "out.conll"))


@pytest.mark.parametrize(
    ("source", "suffix", "start"),
    [
        ("in.txt", ".jsonl", '{"text"'),
        ("in.txt", ".out", '{"text"'),
        ("in.txt", ".conll", "Ann\t"),
        ("in.conll", ".jsonl", '{"words"'),
        ("in.conll", ".out", "Ann O "),
        ("in.conll", ".conll", "Ann O "),
        ("in.jsonl", ".jsonl", '{"text": "Ann Smith", "predicted_entities"'),
        ("in.jsonl", ".conll", "Ann\t"),
    ],
)
def test_the_format_is_inferred_from_the_suffix_of_the_output(tag, tmp_path, source, suffix, start):
    texts = {"in.txt": "Ann Smith\n", "in.conll": "Ann O\nSmith O\n\n", "in.jsonl": '{"text": "Ann Smith"}\n'}
    (tmp_path / source).write_text(texts[source])
    ok(tag(source, "--output", f"out{suffix}"))
    assert (tmp_path / f"out{suffix}").read_text().startswith(start)


ARRAYS = {
    "one line": lambda items: json.dumps(items),
    "indented": lambda items: "\ufeff" + json.dumps(items, indent=2, ensure_ascii=False).replace("\n", "\r\n"),
    "an object a line": lambda items: "[\n" + ",\n".join(map(json.dumps, items)) + "\n]\n",
    "tasks of Label Studio": lambda items: json.dumps([{"id": 7, "data": item, "annotations": []} for item in items]),
}


@pytest.mark.parametrize("form", ARRAYS)
@pytest.mark.parametrize("format", ["spans", "same"])
def test_an_array_is_read_as_its_objects_in_lines(tag, tmp_path, form, format):
    items = [{"text": text} for text in HOSTILE] + [{"words": ["Ann", "Smith"], "id": "a\n b"}]
    (tmp_path / "in.json").write_bytes(ARRAYS[form](items).encode("utf-8", "surrogatepass"))
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
    for source in ("in.json", "in.jsonl"):
        ok(tag(source, "--output", f"{source}.out", "--format", format))
    found, expected = (objects((tmp_path / f"{name}.out").read_text("utf-8")) for name in ("in.json", "in.jsonl"))
    if form == "tasks of Label Studio" and format == "same":
        found = [task["data"] | {key: task[key] for key in task if key.startswith("predicted")} for task in found]
    assert found == expected


def test_an_array_is_read_from_standard_input(tag, stdin):
    stdin(b'[{"text": "Ann Smith"}, {"text": "Zeus"}]')
    assert [found["text"] for found in objects(ok(tag("-")))] == ["Ann Smith", "Zeus"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"text": "Ann"}, 7]', "in.json, record 2: the line holds a number"),
        ('[{"text": "Ann"}, {"id": 7}]', "in.json, record 2: no text or words under"),
        ('[\n{"text": "Ann"},\n{"text": "Bo"\n', "in.json:4: the file is not JSON"),
    ],
)
def test_faults_of_an_array_are_named(tag, tmp_path, text, said):
    (tmp_path / "in.json").write_text(text)
    assert said in fault(tag("in.json", "--output", "out"))


# --- Faults ----------------------------------------------------------------------------------------------------------

GOOD = '{"text": "Ann Smith"}'
FAULTS = {
    "broken": ("in.jsonl", '{"text": "Ann', "in.jsonl:41: the line is not JSON"),
    "array": ("in.jsonl", "[1]", "in.jsonl:41: the line holds a list"),
    "no field": ("in.jsonl", '{"id": 1}', "in.jsonl:41: no text or words under"),
    "number": ("in.jsonl", '{"text": 3}', "in.jsonl:41: 'text' holds a number; write a string, or a list"),
    "null": ("in.jsonl", '{"text": null}', "in.jsonl:41: 'text' holds null"),
    "surrogate": ("in.jsonl", '{"text": "\\ud83d"}', "in.jsonl:41: 'text' holds a lone surrogate, U+D83D"),
    "mixed words": ("in.jsonl", '{"words": ["a", 1]}', "in.jsonl:41: 'words' holds a number at index 1"),
    "empty word": ("in.jsonl", '{"words": ["a", ""]}', "in.jsonl:41: 'words' holds an empty string at index 1"),
    "latin": ("in.jsonl", b'{"text": "\xe9"}', "in.jsonl:41: byte 0xe9 is not valid UTF-8"),
    "deep": ("in.jsonl", "[" * 100_000, "in.jsonl:41: the line is not JSON (nested too deep)"),
    "latin text": ("in.txt", b"caf\xe9", "in.txt:41: byte 0xe9 is not valid UTF-8"),
    "ragged": ("in.conll", "Smith\n", "in.conll:81: number of columns 1, but 2 in the first token line"),
    "latin column": ("in.conll", b"Ann O\nSmi\xfe O\n", "in.conll:82: byte 0xfe is not valid UTF-8"),
}


def faulty(folder, name, line):
    good = {".jsonl": f"{GOOD}\n", ".txt": "Ann Smith\n", ".conll": "Ann O\n\n"}[Path(name).suffix].encode()
    line = line if isinstance(line, bytes) else line.encode()
    (folder / name).write_bytes(good * 40 + line + b"\n" + good * 5)


EVERY_FAULT = [(kind, "spans") for kind in FAULTS] + [
    *((kind, format) for kind in ("broken", "latin", "ragged", "latin column") for format in ("conll", "same")),
    ("latin text", "conll"),
]


@pytest.mark.parametrize(("kind", "format"), EVERY_FAULT)
def test_a_faulty_line_is_named_and_the_records_before_it_are_kept(tag, tmp_path, kind, format):
    name, line, sentence = FAULTS[kind]
    faulty(tmp_path, name, line)
    options = ("--format", format, "--batch_size", 1)
    said = fault(tag(name, "--output", "out", *options))
    assert sentence in said and "(32 records before are kept in out.partial.)" in said
    assert not (tmp_path / "out").exists()
    kept = (tmp_path / "out.partial").read_text()
    code, _, errors = tag(name, "--output", "skipped", "--on_error", "skip", *options)
    assert code == 0, errors
    assert "hf-xorner tag: 1 records got no entities; the first: " in errors and sentence in errors
    check_the_place(kind, format, (tmp_path / "skipped").read_bytes())
    # Once it is corrected, the run continues.
    faulty(tmp_path, name, {".jsonl": GOOD, ".txt": "Ann Smith", ".conll": "Ann O\n"}[Path(name).suffix])
    ok(tag(name, "--output", "out", *options))
    assert (tmp_path / "out").read_text().startswith(kept)
    ok(tag(name, "--output", "whole", *options))
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


def check_the_place(kind, format, written):
    """The skipped record 40 of 46 has kept its place."""
    name, line, sentence = FAULTS[kind]
    if format == "spans" or (format == "same" and name == "in.jsonl"):
        records = objects(written.decode())
        assert len(records) == 46
        assert sentence in records[40]["error"]
        assert [place for place, record in enumerate(records) if "error" in record] == [40]
        assert records[40].get("entities", records[40].get("predicted_entities")) == []
    elif format == "conll":
        assert [place for place, block in enumerate(written.decode().split("\n\n")) if block.startswith("\n")] == [40]
    else:
        assert b"\n\n" + (line if isinstance(line, bytes) else line.encode()) in written


def test_words_with_tabs_are_refused_in_columns_only(tag, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"words": ["a\\tb"]}\n')
    assert "in.jsonl:1: the word 'a\\tb' holds a TAB or a line break" in fault(tag("in.jsonl", "--format", "conll"))
    assert objects(ok(tag("in.jsonl", "--format", "spans")))[0]["words"] == ["a\tb"]


def test_a_parquet_row_without_a_value_is_reported_by_its_number(tag, tmp_path):
    pq.write_table(pa.table({"text": ["Ann", None, "Zeus"]}), tmp_path / "in.parquet")
    assert "in.parquet, row 1: the column text holds nothing" in fault(tag("in.parquet"))
    assert tag("in.parquet", "--on_error", "skip", "--output", "out.parquet")[0] == 0
    assert [row is None for row in pq.read_table(tmp_path / "out.parquet")["predicted_entities"].to_pylist()] == [
        False, True, False
    ]  # fmt: skip


def test_invalid_options_are_refused(tag, script, tmp_path):
    (tmp_path / "in.txt").write_text("Ann\n")
    for options, sentence in (
        (("--format", "xml"), "format='xml' is unknown"),
        (("--batch_size", "0"), "batch_size=0"),
        (("--field", "text"), "a line of text has no fields"),
        (("--split", "test"), "only a dataset on the Hub has splits"),
        (("--input_format", "columns", "--field", "x"), "field='x' is not the number of a column"),
        (("--input_format", "columns", "--field", "4"), "field=4, but the number of columns is 1"),
        (("--output", "."), "is a folder"),
        (("--output", "out.parquet"), "only a Parquet input is written as Parquet"),
        (("--format", "same"), "no place for tags"),
    ):
        assert sentence in fault(tag("in.txt", *options))
    assert "nowhere" in fault(script("tag.py", "in.txt", "--model", "nowhere"))
    assert "there is no such file" in fault(tag("nothing.txt"))
    assert "not a local path, and cannot be loaded from the Hub" in fault(tag("nobody/nothing"))


# --- Resuming --------------------------------------------------------------------------------------------------------


def options_for(model, output, **more):
    return TaggingOptions(model=model, output=str(output), batch_size=1, device="cpu", disable_tqdm=True, **more)


class Killed(BaseException):
    """An exception that no code catches."""


@pytest.fixture
def killed(monkeypatch):
    """Run and raise Killed after some chunks, before or after their state is written; returns whether it was raised."""
    write = output_module._write_state

    def run(source, options, pieces, moment):
        left = pieces

        def dying(path, state):
            nonlocal left
            left -= path.name.endswith(".partial.state")
            if left < 0 and moment == "written":
                raise Killed
            write(path, state)
            if left < 0:
                raise Killed

        monkeypatch.setattr(output_module, "_write_state", dying)
        try:
            tag_source(str(source), options)
        except Killed:
            return True
        finally:
            monkeypatch.setattr(output_module, "_write_state", write)
        return False

    return run


@pytest.mark.parametrize("kind", ["txt", "txt.gz", "jsonl", "conll", "parquet", "folder"])
def test_a_run_killed_at_any_chunk_continues_to_the_same_bytes(tmp_path, model, killed, kind):
    texts = [*TEXTS, *HOSTILE] * 4
    source = tmp_path / f"in.{kind}"
    contents = {
        "txt": "\n".join(texts).encode(),
        "txt.gz": gzip.compress("\n".join(texts).encode()),
        "jsonl": "".join(json.dumps({"text": text}) + "\n" for text in texts).encode(),
        "conll": "".join("\n".join(words) + "\n\n" for words in random_sentences(140)).encode(),
    }
    if kind == "folder":
        (source / "deep").mkdir(parents=True)
        for name in ("a.txt", "deep/b.txt.gz", "c.conll"):
            (source / name).write_bytes(contents[name.split(".", 1)[1]])
        (source / "bb.txt").write_text("")
    if kind in ("folder", "parquet"):
        path = source / "d.parquet" if kind == "folder" else source
        pq.write_table(pa.table({"text": texts}), path)
    elif kind in contents:
        source.write_bytes(contents[kind])
    whole, output = tmp_path / "whole", tmp_path / "out"
    form = {"format": "same"} if kind == "parquet" else {}
    tag_source(str(source), options_for(model, whole, **form))
    options, deaths = options_for(model, output, **form), 0
    # Each run does a few pieces more, until one finishes.
    for number in range(100):
        if not killed(source, options, number % 3, ("written", "noted")[number % 2]):
            break
        if kind != "folder":
            assert not output.exists()
        deaths += 1
    assert deaths > 3
    assert contents_of(output) == contents_of(whole)
    assert not list(tmp_path.rglob("*.partial*"))


def contents_of(path):
    if path.is_dir():
        return {str(one.relative_to(path)): one.read_bytes() for one in sorted(path.rglob("*")) if one.is_file()}
    return path.read_bytes()


def another_model(folder, tokenizer):
    build_model("cross-bilstm-cnn", tokenizer, seed=5, decoder="crf").save_pretrained(folder / "other")
    tokenizer.save_pretrained(folder / "other")


CHANGES = {
    "model": (another_model, "was begun with another model;"),
    "input": (lambda folder, _: (folder / "in.txt").write_text("\n".join(["Nobody", *TEXTS[1:]])), "another input"),
    "same size": (
        lambda folder, _: (folder / "in.txt").write_text("\n".join([TEXTS[0].swapcase(), *TEXTS[1:], *TEXTS * 3])),
        "another input",
    ),
    "shorter": (lambda folder, _: (folder / "in.txt").write_text(TEXTS[0]), "another input"),
    "options": (lambda folder, _: None, "another choice of options"),
    "state": (lambda folder, _: (folder / "out.jsonl.partial.state").unlink(), "is of unknown origin"),
    "cut": (lambda folder, _: os.truncate(folder / "out.jsonl.partial", 10), "is shorter than its state says"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_output_of_another_run_is_refused_or_overwritten(tmp_path, model, tokenizer, killed, change):
    source, output = tmp_path / "in.txt", tmp_path / "out.jsonl"
    source.write_text("\n".join(TEXTS * 4))
    assert killed(source, options_for(model, output), 2, "noted")
    make_change, said = CHANGES[change]
    make_change(tmp_path, tokenizer)
    model = str(tmp_path / "other") if change == "model" else model
    other = {"on_error": "skip"} if change == "options" else {}
    with pytest.raises(ValueError, match=said):
        tag_source(str(source), options_for(model, output, **other))
    tag_source(str(source), options_for(model, output, overwrite=True, **other))
    tag_source(str(source), options_for(model, tmp_path / "whole", **other, format="spans"))
    assert output.read_bytes() == (tmp_path / "whole").read_bytes()


def test_an_output_that_exists_is_kept_without_overwrite(tag, tmp_path):
    (tmp_path / "in.txt").write_text("Ann\n")
    (tmp_path / "out.jsonl").write_text("mine")
    assert "out.jsonl: exists already; choose another output, or set overwrite" in fault(
        tag("in.txt", "--output", "out.jsonl")
    )
    assert (tmp_path / "out.jsonl").read_text() == "mine"
    ok(tag("in.txt", "--output", "out.jsonl", "--overwrite"))
    assert objects((tmp_path / "out.jsonl").read_text())[0]["text"] == "Ann"


def test_a_second_run_on_one_output_is_refused_and_changes_nothing(tmp_path, model, killed):
    source, output = tmp_path / "in.txt", tmp_path / "out.jsonl"
    source.write_text("\n".join(TEXTS * 4))
    assert killed(source, options_for(model, output), 2, "noted")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with lock_holder(tmp_path / "out.jsonl.partial.lock") as other:
        with pytest.raises(LockedError, match=f"out.jsonl is being written by process {other.pid} on "):
            tag_source(str(source), options_for(model, output, overwrite=True))
        assert before == {path: path.read_bytes() for path in before}
    tag_source(str(source), options_for(model, output))
    assert len(objects(output.read_text())) == len(TEXTS) * 4


def many(path, count):
    draw = random.Random(0)
    path.write_text("".join(f"{' '.join(draw.choice(SENTENCES))} {number}\n" for number in range(count)))
    return path


def test_a_killed_process_is_continued_by_the_same_command(tmp_path, model):
    source = many(tmp_path / "in.txt", 1200)
    options = ("--output", tmp_path / "out.jsonl", "--batch_size", 2)
    process = subprocess.Popen(command(model, source, *options), stderr=subprocess.DEVNULL)
    partial, state = tmp_path / "out.jsonl.partial", tmp_path / "out.jsonl.partial.state"
    deadline = time.monotonic() + 120
    while not (state.exists() and json.loads(state.read_text())["records"]) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert partial.exists() and not (tmp_path / "out.jsonl").exists()
    assert 0 < json.loads(state.read_text())["records"] < 1200
    assert run_python(command(model, source, *options)[1:]).returncode == 0
    assert not partial.exists()
    tag_source(str(source), TaggingOptions(model, str(tmp_path / "whole.jsonl"), batch_size=2, device="cpu"))
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


# --- Several processes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("launcher", ["torchrun", pytest.param("accelerate", marks=pytest.mark.slow)])
def test_processes_of_a_launcher_write_a_shard_each(tmp_path, model, launcher):
    source = many(tmp_path / "in.txt", 300)
    launched = TORCHRUN if launcher == "torchrun" else accelerate()
    done = run(command(model, source, "--output", tmp_path / "out", "--batch_size", 1, launcher=launched))
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    tag_source(str(source), options_for(model, tmp_path / "whole.jsonl"))
    files = contents_of(tmp_path / "out")
    shards = [f"part-{rank:05d}-of-00002.jsonl" for rank in range(2)]
    assert list(files) == [*(f"_tagging/{shard}.json" for shard in shards), *shards]
    assert b"".join(files[shard] for shard in shards) == (tmp_path / "whole.jsonl").read_bytes()
    assert all(files[shard].count(b"\n") >= 140 for shard in shards)  # 10 chunks of 32 records
    written = sorted(line for line in done.stdout.decode().splitlines() if line.startswith("written: "))
    assert [line.split("/")[-1].split()[0] for line in written] == shards


@pytest.mark.parametrize(("kind", "world"), [("txt.gz", 2), ("conll", 3), ("parquet", 3), ("jsonl", 3), ("txt.gz", 20)])
def test_shards_together_are_the_output_of_one_process(tmp_path, model, monkeypatch, kind, world):
    source, form = tmp_path / f"in.{kind}", {"format": "spans"} if kind == "txt.gz" else {"format": "same"}
    texts = [*TEXTS, *(text for text in HOSTILE if text.isprintable())] * 3
    if kind == "parquet":
        pq.write_table(pa.table({"text": texts, "id": range(len(texts))}), source)
    elif kind == "jsonl":
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    elif kind == "conll":
        source.write_text("".join("\n".join(words) + "\n\n" for words in random_sentences(70)))
    else:
        source.write_bytes(gzip.compress("\n".join(texts).encode()))
    # Only gzip needs the name to tell.
    whole = tmp_path / f"whole.{'jsonl.gz' if kind == 'txt.gz' else kind}"
    tag_source(str(source), options_for(model, whole, **form))
    monkeypatch.setenv("WORLD_SIZE", str(world))
    outputs, records = [], 0
    for rank in range(world):
        monkeypatch.setenv("RANK", str(rank))
        tally = tag_source(str(source), options_for(model, tmp_path / "out", **form))
        outputs += tally.outputs
        records += tally.records
    assert records == (70 if kind == "conll" else len(texts))
    if kind == "parquet":
        joined = pa.concat_tables(pq.read_table(path) for path in outputs)
        assert joined.equals(pq.read_table(whole).cast(joined.schema))
    elif kind == "txt.gz":
        assert b"".join(map(gzip.decompress, map(Path.read_bytes, outputs))) == gzip.decompress(whole.read_bytes())
    else:
        assert b"".join(map(Path.read_bytes, outputs)) == whole.read_bytes()


def test_several_processes_share_the_files_of_a_folder(tmp_path, model, monkeypatch):
    (tmp_path / "in").mkdir()
    for number in range(5):
        (tmp_path / "in" / f"{number}.txt").write_text("\n".join(TEXTS[number:]))
    tag_source(str(tmp_path / "in"), options_for(model, tmp_path / "whole"))
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, names in ((1, ["1.jsonl", "3.jsonl"]), (0, ["0.jsonl", "2.jsonl", "4.jsonl"])):
        monkeypatch.setenv("RANK", str(rank))
        tally = tag_source(str(tmp_path / "in"), options_for(model, tmp_path / "out"))
        assert [path.name for path in tally.outputs] == names
    assert contents_of(tmp_path / "out") == contents_of(tmp_path / "whole")


def test_a_killed_shard_is_continued_and_a_complete_one_is_skipped(tmp_path, model, killed, monkeypatch):
    source, options = many(tmp_path / "in.txt", 300), options_for(model, tmp_path / "out")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    tag_source(str(source), options)
    monkeypatch.setenv("RANK", "1")
    assert killed(source, options, 3, "noted")
    assert not (tmp_path / "out" / "part-00001-of-00002.jsonl").exists()
    tagged = []
    monkeypatch.setattr(Tagger, "annotate", counted(Tagger.annotate, tagged))
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        tag_source(str(source), options)
    assert 0 < len(tagged) < 9  # of 10 chunks of the second shard, those that were missing
    monkeypatch.delenv("WORLD_SIZE")
    tag_source(str(source), options_for(model, tmp_path / "whole.jsonl"))
    shards = sorted((tmp_path / "out").glob("part-*"))
    assert b"".join(map(Path.read_bytes, shards)) == (tmp_path / "whole.jsonl").read_bytes()


def counted(method, calls):
    def call(self, items, *arguments):
        calls.append(len(items))
        return method(self, items, *arguments)

    return call


def test_several_processes_require_an_output_folder(tmp_path, model, monkeypatch):
    source = many(tmp_path / "in.txt", 3)
    monkeypatch.setenv("WORLD_SIZE", "2")
    (tmp_path / "file").write_text("mine")
    for name in ("out.jsonl", "file"):
        with pytest.raises(ValueError, match=f"{name}: .* name a folder"):
            tag_source(str(source), options_for(model, tmp_path / name))


def test_a_fault_in_one_shard_leaves_the_other_complete(tmp_path, model):
    source = many(tmp_path / "in.txt", 200)
    lines = source.read_bytes().split(b"\n")
    lines[150] = b"\xff"
    source.write_bytes(b"\n".join(lines))
    ranks = [{**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"} for rank in range(2)]
    first, second = run_pythons(command(model, source, "--output", tmp_path / "out", "--batch_size", 1)[1:], ranks)
    assert [first.returncode, second.returncode] == [0, 1]
    assert "in.txt:151: byte 0xff" in second.stderr and "records before are kept in" in second.stderr
    assert [path.name for path in (tmp_path / "out").glob("*.jsonl")] == ["part-00000-of-00002.jsonl"]


def test_standard_streams_require_one_process(monkeypatch, model, tmp_path):
    (tmp_path / "in.txt").write_text("Ann\n")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    for source, output in ((str(tmp_path / "in.txt"), None), ("-", str(tmp_path / "out"))):
        with pytest.raises(ValueError, match="for one process alone"):
            tag_source(source, TaggingOptions(model=model, output=output))


# --- Pipes -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def stdin(monkeypatch):
    """Replace standard input by bytes."""

    def put(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

    return put


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_standard_input_is_read(tag, stdin, tmp_path, packed):
    content = "\n".join([*HOSTILE, *TEXTS]).encode()
    (tmp_path / "in.txt").write_bytes(content)
    expected = ok(tag("in.txt", "--batch_size", 1))
    stdin(gzip.compress(content) if packed else content)
    assert ok(tag("-", "--batch_size", 1)) == expected
    stdin(b"")
    assert ok(tag("-")) == ""


def test_a_pipe_is_read_and_written(tmp_path, model):
    content = "\n".join(TEXTS * 100).encode()
    done = run(command(model, "-"), input=content)
    assert done.returncode == 0, done.stderr
    assert [one["text"] for one in objects(done.stdout.decode())] == TEXTS * 100


def test_standard_input_is_recognised_and_continued(tag, stdin, tmp_path):
    lines = "".join(f'{{"text": "{" ".join(words)}"}}\n' for words in random_sentences(60))
    options = ("--output", "out.jsonl", "--batch_size", 1)
    stdin(f"\n{lines}oh\n".encode())
    assert "standard input:62: the line is not JSON" in fault(tag("-", *options))
    stdin(lines.encode())
    assert "was begun with another input; finish it with that one, or remove it." in fault(tag("-", *options))
    stdin(f"\n{lines}".encode())
    ok(tag("-", *options))
    assert len(objects((tmp_path / "out.jsonl").read_text().removeprefix("\n"))) == 60


def test_a_closed_pipe_ends_the_run_without_an_error(tmp_path, model):
    source = many(tmp_path / "in.txt", 20_000)
    process = subprocess.Popen(
        command(model, source, "--batch_size", 1), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert json.loads(process.stdout.readline())["entities"] is not None
    process.stdout.close()
    errors = process.stderr.read().decode()
    assert process.wait(timeout=120) == 0
    assert "Traceback" not in errors and "Broken" not in errors and "tag.py" not in errors


def test_progress_is_shown_in_a_terminal_only(tmp_path, model, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    source = many(tmp_path / "in.txt", 100)
    for stream, more, shown in ((Terminal(), {}, True), (io.StringIO(), {}, False), (Terminal(), {"x": True}, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        options = TaggingOptions(model=model, device="cpu", disable_tqdm=bool(more))
        tag_source(str(source), options, io.BytesIO())
        assert ("100 texts" in stream.getvalue() and "words/s" in stream.getvalue()) == shown
        assert ("100%" in stream.getvalue()) == shown or not shown


# --- Memory and time -------------------------------------------------------------------------------------------------

PEAKS = """
import os, runpy, sys
# The commands follow the program; each is run in a process of its own, which has the imports of this one.
import hf_xorner.cli.tag
for words in map(str.split, sys.argv[1:]):
    if os.fork():
        if os.wait()[1]:
            sys.exit("the command failed")
        continue
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    print("peak", int(line.split()[1]) / 1024, flush=True)
    break
"""
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")


def peaks_of(*commands):
    """Return the peak memory of each command in MB."""
    done = run([sys.executable, "-c", PEAKS, *(" ".join(words[1:]) for words in commands)])
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return [float(line.split()[1]) for line in done.stdout.decode().splitlines() if line.startswith("peak ")]


@needs_proc
def test_memory_does_not_grow_with_the_input(tmp_path, model):
    """The records have 5 kB each, so that keeping them in memory would be measured."""
    draw, commands = random.Random(0), []
    for count in (1000, 6000):
        source = tmp_path / f"{count}.jsonl"
        with source.open("w") as file:
            for _ in range(count):
                record = {"text": " ".join(draw.choice(SENTENCES)), "ballast": draw.randbytes(2500).hex()}
                file.write(json.dumps(record) + "\n")
        commands.append(command(model, source, "--output", tmp_path / f"out{count}.jsonl", "--batch_size", 16))
    less, more = peaks_of(*commands)
    assert more - less < 12, (less, more)


@pytest.mark.slow
@needs_proc
def test_a_million_sentences_take_the_memory_of_a_quarter(tmp_path, model):
    peaks = []
    for count in (250_000, 1_000_000):
        source = many(tmp_path / f"{count}.txt", count)
        peaks += peaks_of(command(model, source, "--output", tmp_path / "out.jsonl", "--overwrite"))
        with (tmp_path / "out.jsonl").open("rb") as file:
            assert sum(1 for _ in file) == count
    assert peaks[1] - peaks[0] < 25, peaks


@pytest.mark.slow
def test_the_script_is_about_as_fast_as_the_tagger(tmp_path, tokenizer):
    """The time of the script and of Tagger.tag on the same texts; rounds alternate, and the best one counts."""
    words = WordCharTokenizer.from_corpus(SENTENCES)
    folder = tmp_path / "model"
    model = build_model("cross-bilstm-cnn", words, labels=LABELS, hidden_size=200, word_dim=100, decoder="crf")
    with torch.no_grad():
        model.classifier.bias[model.tags.inner_tags.index("O")] = 10.0
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    source = many(tmp_path / "in.txt", 6000)
    texts = source.read_text().splitlines()
    tagger = Tagger.from_pretrained(str(folder), "cpu")
    times = np.full((2, 4), np.inf)
    for number in range(4):
        start = time.perf_counter()
        for _ in tagger.tag(texts):
            pass
        times[0, number] = time.perf_counter() - start
        start = time.perf_counter()
        tag_source(
            str(source), TaggingOptions(model=str(folder), device="cpu", output=str(tmp_path / f"{number}.jsonl"))
        )
        times[1, number] = time.perf_counter() - start
    tagging, script = times.min(1)
    assert script < tagging / 0.85 + 0.5, times  # half a second for loading the model


# --- Chunks ----------------------------------------------------------------------------------------------------------


class Records(Source):
    """A source in memory."""

    def __init__(self, *records):
        self.kept = records

    def raw_records(self):
        return iter(self.kept)


def test_chunks_number_their_lines():
    found = list(read_chunks(Records(b"1\n", b"2\n", b"3\n"), 2))
    assert [(chunk.raw_records, chunk.first) for chunk in found] == [([b"1\n", b"2\n"], 1), ([b"3\n"], 3)]
    assert list(read_chunks(Records(), 2)) == []


def test_long_records_close_a_chunk():
    long = b"x" * (1 << 19) + b"\n"
    assert [len(chunk.raw_records) for chunk in read_chunks(Records(*[long] * 5), 1000)] == [2, 2, 1]


def test_a_digest_covers_the_input_up_to_its_chunk():
    inputs = ([b"a", b"b"], [b"a", b"c"])
    digests = [[chunk.digest for chunk in read_chunks(Records(*records), 1)] for records in inputs]
    assert digests[0][0] == digests[1][0] and digests[0][1] != digests[1][1]


def test_the_input_is_never_the_output(tag, model, tmp_path):
    gold = tmp_path / "g.conll"
    gold.write_text("Ann B-PER\n\n")
    (tmp_path / "link.conll").symlink_to(gold)
    (tmp_path / "h.conll.partial").hardlink_to(gold)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "g.conll").hardlink_to(gold)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "g.conll").symlink_to(gold)
    config = (Path(model) / "config.json").read_bytes()
    for source, output in (
        (gold, "g.conll"),
        (gold, "link.conll"),
        ("link.conll", gold),
        (gold, "h.conll"),
        ("texts", "out"),
        (gold, f"{model}/config.json"),
    ):
        assert "is an input" in fault(tag(source, "--output", output, "--overwrite", "true")), output
    with gold.open() as standard_input:
        arguments = command(model, "-", "--output", gold, "--overwrite", "true")
        assert b"is an input" in run(arguments, stdin=standard_input, cwd=tmp_path).stderr
    assert gold.read_text() == "Ann B-PER\n\n"
    assert (Path(model) / "config.json").read_bytes() == config
