"""hf-xorner tag: one record is written for each record read, in order, for every format."""

import csv
import gzip
import io
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SENTENCES
from datasets import Dataset, IterableDatasetDict
from helpers import fault, lock_holder, ok, posix
from processes import run_python
from random_texts import TEXTS, random_sentences

from hf_xorner.entities import Entities, Entity
from hf_xorner.tagging import TaggingOptions, tag_source

HOSTILE = [
    "",
    "Ann Smith saw Zeus",
    " \t ",
    "NUL \0 in Ann Smith",
    "Ann\u2028Smith\u2029met\x85Zeus\x0bin\x0cNew\x1cYork",
    "👩🏽‍🚀 Ann 🇸🇪 Zeus \ud7ff\ue000\uffff",
    "\ufeffAnn in New York",
    "Ann " * 3000 + "x" * 70_000,
    "Ann\rSmith",
    *TEXTS,
]


@pytest.fixture
def tag(script, tagger_folder):
    """Run the script with the model in this process."""
    return lambda source, *options: script(
        "tag", source, "--model", tagger_folder, "--device", "cpu", "--batch_size", 2, *options
    )


def command(model, source, *options):
    words = ["tag", str(source), "--model", model, "--device", "cpu", *map(str, options)]
    return [sys.executable, "-m", "hf_xorner", *words]


def objects(text):
    """Return the objects of JSON Lines, which only \\n separates."""
    return [json.loads(line) for line in text.split("\n") if line]


def check(records, tagger, items):
    """Check that records hold the entities of the items, each tagged by itself."""
    for record, item in zip(records, items, strict=True):
        names = ["label", "start", "end", "text", *([] if isinstance(item, str) else ["word_start", "word_end"])]
        (expected,) = tagger([item])
        assert [[entity[name] for name in names] for entity in record["entities"]] == [
            [getattr(entity, name) for name in names] for entity in expected
        ]
        scores = [entity["score"] for entity in record["entities"]]
        assert scores == pytest.approx([entity.score for entity in expected], abs=1e-4)


def test_a_line_of_text_becomes_an_object(tag, tagger, tmp_path):
    for end in ("\n", "\r\n"):
        (tmp_path / "in.txt").write_bytes(b"\xef\xbb\xbf" + end.join(HOSTILE).encode())
        records = objects(ok(tag("in.txt")))
        assert [record["text"] for record in records] == HOSTILE
        assert sum(len(record["entities"]) for record in records) > 20
        check(records, tagger, HOSTILE)


def test_a_line_of_text_becomes_columns_or_rows_of_csv(tag, tagger, tmp_path):
    (tmp_path / "in.txt").write_bytes("\n".join(HOSTILE).encode())
    ok(tag("in.txt", "--output", "out.conll.gz"))
    blocks = gzip.decompress((tmp_path / "out.conll.gz").read_bytes()).decode().split("\n")
    for text in HOSTILE:
        words = tagger.tokenizer.tokenize(text)
        for word, label in zip(words, next(tagger.annotate([words])).labels, strict=True):
            assert blocks.pop(0) == f"{word}\t{label}"
        assert blocks.pop(0) == ""
    ok(tag("in.txt", "--output", "out.csv"))
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = [(int(row["record"]), row["label"], int(row["start"]), row["text"]) for row in csv.DictReader(file)]
    assert rows == [
        (number, entity.label, entity.start, entity.text)
        for number, text in enumerate(HOSTILE, 1)
        for entity in tagger(text)
    ]


def test_redacted_texts_are_written_alone_or_with_the_replaced_entities(tag, tagger, tmp_path):
    (tmp_path / "in.txt").write_bytes("\n".join(HOSTILE).encode())
    assert ok(tag("in.txt", "--redact")).split("\n")[:-1] == [
        tagger.redact(text).text.replace("\r", " ") for text in HOSTILE
    ]
    ok(tag("in.txt", "--redact", "--template", "<{label}_{number}>", "--output", "out.jsonl"))
    for record, text in zip(objects((tmp_path / "out.jsonl").read_text(encoding="utf-8")), HOSTILE, strict=True):
        assert record["text"] == tagger.redact(text, "<{label}_{number}>").text
        assert Entities(map(Entity, record["replaced"]), record["text"]).restore() == text
    (tmp_path / "in.jsonl").write_text('{"text": "Ann Smith", "author": "Ann"}\n{"no": "Ann"}')
    assert "Ann" not in ok(tag("in.jsonl", "--redact", "--skip_bad_lines"))
    (tmp_path / "two.jsonl").write_text(json.dumps({"text": "\r".join(TEXTS)}))
    assert len(io.StringIO(ok(tag("two.jsonl", "--redact")), None).readlines()) == 1
    assert "format=conll" in fault(tag("in.txt", "--redact", "--format", "conll"))


def test_objects_keep_their_fields(tag, tagger, tmp_path):
    records = [
        ({"id": 12345678901234567890, "text": "Ann Smith saw Zeus", "deep": {"a": [{}]}}, "Ann Smith saw Zeus"),
        ({"words": ["New York", "é"], "other": "\ud83d"}, ["New York", "é"]),
        ({"tokens": [], "text": "Ann in Zeus"}, "Ann in Zeus"),
        ({"tokens": []}, []),
        ({"tokens": [{"start": 0}], "text": "Zeus \u2028 in \0 New York"}, "Zeus \u2028 in \0 New York"),
        ({"id": 7, "data": {"text": "Ann in New York"}, "annotations": []}, "Ann in New York"),
    ]
    inputs = [record for record, _ in records]
    (tmp_path / "in.jsonl").write_text("\n\n".join(map(json.dumps, inputs)))
    (tmp_path / "in.json").write_text("\ufeff" + json.dumps(inputs, indent=2), encoding="utf-8")
    (tmp_path / "in.txt").write_text(json.dumps(inputs))
    for name in ("in.jsonl", "in.json", "in.txt"):
        written = objects(ok(tag(name)))
        check(written, tagger, [item for _, item in records])
        for record in written:
            del record["entities"]
        assert written == inputs
    (tmp_path / "gold.jsonl").write_text('{"text": "Ann", "entities": ["gold"]}')
    (record,) = objects(ok(tag("gold.jsonl")))
    assert record["entities"] == ["gold"] and type(record["predicted_entities"]) is list
    (tmp_path / "numbers.jsonl").write_text('{"text": "Ann", "deep": [1e400, NaN, 0.5]}')
    assert json.loads(ok(tag("numbers.jsonl")), parse_constant=pytest.fail)["deep"] == [None, None, 0.5]
    (tmp_path / "iban.jsonl").write_text('{"words": ["01 23 45 67 89"]}')
    assert len(objects(ok(tag("iban.jsonl")))) == 1


COLUMNS = {
    "in.conll": "\ufeff-DOCSTART- -X- O\n\n# x = Ann\nAnn N B\nSmith  NNP\tO\n# # O\n\n\nZeus N O\n\u2028\xa0 N O\r\n",
    "in.conllu": "# sent_id = 1\n1-2\tAnnSmith\t_\n1\tAnn\tO\n2\tSmith\tO\n3\t#\tO\n\n1\tZeus\tO\n2\t\u2028\xa0\tO\n",
    "in.txt": "-DOCSTART-\n\nAnn\nSmith\n#\n\nZeus\n\u2028\xa0\n",
    "in.bmes": "0\tAnn\tO\n1\tSmith\tO\n2\t#\tO\n\n\ufeff0\tZeus\tO\n1\t\u2028\xa0\tO\n",
    "in.tsv": "Ann\tO\nSmith\tO\n#\tO\n\nZeus\tO\n\u2028\xa0\tO",
}


def test_columns_of_words(tag, tagger, tmp_path):
    sentences = [["Ann", "Smith", "#"], ["Zeus", "\u2028\xa0"]]
    for name, content in COLUMNS.items():
        (tmp_path / name).write_bytes(content.encode())
        records = objects(ok(tag(name, "--format", "jsonl")))
        assert [record["words"] for record in records] == sentences, name
        check(records, tagger, sentences)
        ok(tag(name, "--output", f"{name}.bio"))
        lines = (tmp_path / f"{name}.bio").read_text(encoding="utf-8").split("\n")
        expected = [
            line
            for words in sentences
            for line in [*map("\t".join, zip(words, next(tagger.annotate([words])).labels, strict=True)), ""]
        ]
        assert lines == [*expected, ""]
    assert objects(ok(tag("in.tsv", "--field", -1, "--format", "jsonl")))[1]["words"] == ["O", "O"]
    assert objects(ok(tag("in.conllu", "--field", 1, "--format", "jsonl")))[0]["words"] == sentences[0]
    for content, expected in (
        ("1996-08-22 CD B O\nBonn N B O\n\nAnn N B O\n", [["1996-08-22", "Bonn"], ["Ann"]]),
        ("1 CD O\nIan N O\n", [["1", "Ian"]]),
        ("#nice\tO\nAnn\tO\n", [["#nice", "Ann"]]),
        ("# 1\nAnn O\n\n# 2\nBo O\n\n# O\nBo O\n", [["Ann"], ["Bo"], ["#", "Bo"]]),
        ("text\tO\nBo\tO\n", [["text", "Bo"]]),
        ("Bonn\tO\n-DOCSTART-\t-X-\nAnn\tO\n", [["Bonn"], ["Ann"]]),
    ):
        (tmp_path / "some.conll").write_text(content)
        assert [record["words"] for record in objects(ok(tag("some.conll", "--format", "jsonl")))] == expected
    (tmp_path / "some.conll").write_text("\tAnn\tO\n")
    assert "some.conll:1: the token is empty" in fault(tag("some.conll"))


def test_rows_of_csv_and_parquet(tag, tagger, tmp_path):
    rows = [{"id": f"0{number}", "text": text} for number, text in enumerate(HOSTILE) if "\r" not in text]
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text"], delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet", row_group_size=7)
    for name in ("in.csv", "in.parquet"):
        records = objects(ok(tag(name)))
        assert [{"id": record["id"], "text": record["text"]} for record in records] == rows
        check(records, tagger, [row["text"] for row in rows])
    ok(tag("in.csv", "--field", "text", "--output", "out.csv"))
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        table = [row | {"entities": json.loads(row["entities"])} for row in csv.DictReader(file)]
    assert table == [row | {"entities": record["entities"]} for row, record in zip(rows, records, strict=True)]
    for name, content in (("in.tsv", "id\ttext\n1\tAnn in Zeus"), ("words.csv", "\nwords,text\n3,Ann in Zeus\n")):
        (tmp_path / name).write_text(content)
        check(objects(ok(tag(name, "--format", "jsonl"))), tagger, ["Ann in Zeus"])
    (tmp_path / "long.csv").write_text("text\nAnn, in Zeus\n")
    ok(tag("long.csv", "--skip_bad_lines", "--output", "long-out.csv"))
    assert (tmp_path / "long-out.csv").read_text() == 'text,entities\n"Ann, in Zeus",[]\n'
    words = [{"day": pa.scalar(0, pa.date32()).as_py(), "words": words} for words in random_sentences(20)]
    pq.write_table(pa.Table.from_pylist(words), tmp_path / "words.parquet")
    records = objects(ok(tag("words.parquet")))
    assert {record["day"] for record in records} == {"1970-01-01"}
    check(records, tagger, [row["words"] for row in words])


def test_a_dataset_on_the_hub_is_streamed(tag, tagger, monkeypatch):
    def load(name, streaming):
        assert streaming
        rows = Dataset.from_dict({"id": range(len(TEXTS)), "text": TEXTS}).to_iterable_dataset()
        return IterableDatasetDict({"train": rows, "test": rows.take(2)} if name == "a/two" else {"train": rows})

    monkeypatch.setattr("hf_xorner.corpora.load.load_dataset", load)
    check(objects(ok(tag("a/one"))), tagger, TEXTS)
    assert len(objects(ok(tag("a/two", "--split", "test")))) == 2
    assert "a/two: has the splits train, test" in fault(tag("a/two"))


def test_standard_input_is_read(tag, script, tagger_folder, tagger, monkeypatch):
    texts = "\n".join(TEXTS).encode()
    lines = "\n".join(json.dumps({"text": text}) for text in TEXTS).encode()
    for content, items in ((texts, TEXTS), (gzip.compress(texts), TEXTS), (lines, TEXTS), (b"", [])):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        check(objects(ok(tag("-"))), tagger, items)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"Ann Smith"))))
    check(objects(ok(script("tag", "--model", tagger_folder))), tagger, ["Ann Smith"])


def test_an_argument_with_a_blank_is_a_text_unless_it_names_a_file(tag, script, tagger, tmp_path, monkeypatch):
    text, long = "Ann Smith saw Zeus", "~Ann\nsaw Zeus " * 1000
    for argument in (text, long):
        check(objects(ok(tag(argument))), tagger, [argument])
    (tmp_path / "Ann Smith").write_text("Zeus\n")
    check(objects(ok(tag("Ann Smith"))), tagger, ["Zeus"])
    assert "blank" in fault(tag("Zeus"))
    (entity,) = json.loads(ok(script("tag", "He flew to Oslo.")))["entities"]  # by the English model
    assert (entity["label"], entity["text"]) == ("LOC", "Oslo")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert ok(tag(text)) == f"{tagger(text).in_colour()}\n"
    for format in ("colour", "conll", "csv"):
        assert "\x1b]" not in ok(tag("Ann\x1b]0;title\x07 Smith saw Zeus\x1b]", "--format", format))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(text)
    ok(tag("in", "--output", "out"))
    check(objects((tmp_path / "out" / "a.jsonl").read_text()), tagger, [text])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert script("tag")[0] == 2


GOOD = {".jsonl": '{"text": "Zoë"}\n', ".txt": "Zoë\n", ".conll": "Zoë O\n\n", ".csv": "Ann,1\n"}
#: A file, its bad record, which follows 40 good ones, and its line.
FAULTS = [
    *(("in.jsonl", record, 41) for record in ('{"text": "Ann', "[1]", '{"id": 1}', '{"text": null}', "[" * 100_000)),
    *(("in.jsonl", f'{{"words": ["a{end}]}}', 41) for end in ('", 1', '", ""', '\\tb"')),
    ("in.jsonl", '{"text": "\\ud83d"}', 41),
    ("in.jsonl", b'{"text": "\xe9"}', 41),
    ("in.txt", b"caf\xe9", 41),
    ("in.conll", "Smith\n", 81),
    ("in.conll", b"Smi\xfe O\n", 81),
    ("in.csv", "Ann, Smith,1", 42),
]


def test_a_bad_record_is_named_or_skipped(tag, tmp_path):
    for name, bad, line in FAULTS:
        good, bad = GOOD[Path(name).suffix].encode(), bad if isinstance(bad, bytes) else bad.encode()
        header = b"text,id\n" * name.endswith(".csv")
        (tmp_path / name).write_bytes(header + good * 40 + bad + b"\n" + good * 5)
        error = fault(tag(name, "--output", "out.jsonl"))
        assert name in error and f"{line}" in error, bad
        assert not (tmp_path / "out.jsonl").exists()
        code, _, errors = tag(name, "--output", "out.jsonl", "--skip_bad_lines")
        assert code == 0 and "1 records are bad" in errors
        records = objects((tmp_path / "out.jsonl").read_text("utf-8"))
        assert [number for number, record in enumerate(records) if "error" in record] == [40]
        assert len(records) == 46 and records[40]["entities"] == []
        (tmp_path / "out.jsonl").unlink()


def test_invalid_inputs_and_options_are_refused(tag, script, tmp_path):
    (tmp_path / "in.txt").write_text("Ann\n")
    (tmp_path / "broken.txt.gz").write_bytes(gzip.compress(os.urandom(9999).hex().encode())[:-900])
    (tmp_path / "cut.json").write_text('[{"text": "Ann"}')
    (tmp_path / "odd.csv").write_bytes(b"id,text\n1,Ann\rBo\n")
    (tmp_path / "open.csv").write_text('text\n"Ann\nBo\n')
    (tmp_path / "twice.csv").write_text("id,text,id\n1,Ann,2\n")
    (tmp_path / "onto.conll").write_text("#begin document (a); part 000\na 0 0 Ann\n\n")
    (tmp_path / "texts.tsv").write_text("id\treview\n1\tAnn Smith saw Zeus yesterday.\n")
    (tmp_path / "excel.csv").write_text("text\nAnn\n", "utf-16")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    for arguments, sentence in (
        (("in.txt", "--format", "xml"), "format"),
        (("in.txt", "--batch_size", "0"), "batch_size"),
        (("in.txt", "--field", "text"), "a line of text has no fields"),
        (("in.txt", "--input_format", "conll", "--field", "4"), "columns"),
        (
            ("in.txt", "--input_format", "conll", "--field", "word"),
            "field=word, but the line has 1 columns; give a number",
        ),
        (("in.txt", "--output", "."), "exists already"),
        (("in.txt", "--output", "out.parquet"), "Parquet is not written"),
        (("in.txt", "--min_score", 0.9, "PER=0.8"), "a number, or one for each label"),
        (("odd.csv",), "odd.csv:2: the quotation marks"),
        (("open.csv",), "open.csv:2: the quotation marks"),
        (("in.txt", "--split", "test"), "leave it out"),
        (("in.txt", "--template", "x"), "set redact"),
        (("in.txt", "--redact", "--output", "out.csv"), "redact writes texts or JSON Lines"),
        (("a/missing.jsonl",), "there is no such file"),
        (("my texts.csv",), "there is no such file"),
        (("texts.tsv",), "texts.tsv:2: no text or list of words"),
        (("excel.csv",), "excel.csv:1: is not utf-8"),
        (("twice.csv",), "two columns have the same name"),
        (("broken.txt.gz",), "broken.txt.gz: the gzip file is damaged"),
        (("cut.json",), "cut.json: not JSON"),
        (("cut.parquet",), "cut.parquet: not a valid Parquet"),
        (("onto.conll",), "onto.conll:2: too few columns"),
        (("nothing.txt",), "there is no such file"),
        (("~nobody/texts.txt",), "there is no such file"),
        (("nobody/nothing",), "nobody/nothing"),
    ):
        assert sentence in fault(tag(*arguments)), arguments
    assert "nowhere" in fault(script("tag", "in.txt", "--model", "nowhere"))


def test_a_folder_becomes_a_folder_of_outputs(tag, tmp_path, caplog):
    folder, out = tmp_path / "in", tmp_path / "out"
    (tmp_path / "far").mkdir()
    folder.mkdir()
    (folder / "deep").symlink_to(tmp_path / "far")
    (folder / "deep" / "a.txt").write_text("Ann Smith\nZeus\n")
    (folder / "b.txt.gz").write_bytes(gzip.compress(b"Zeus\n"))
    (folder / "c.conll").write_text("Ann O\n")
    (folder / "d.tsv").write_text("id\ttext\n7\tAnn\n")
    (folder / "loop").symlink_to(folder)
    (tmp_path / "far" / "loop").symlink_to(folder / "deep")
    (folder / "empty.txt").write_text("")
    (folder / ".hidden.txt").write_text("no")
    (folder / "notes.pdf").write_text("no")
    assert "5 records" in ok(tag("in", "--output", "out")) and "notes.pdf" in caplog.text
    files = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    assert sorted(files) == ["b.jsonl", "c.conll", "d.jsonl", "deep/a.jsonl", "empty.jsonl"]
    assert files["deep/a.jsonl"].read_text() == ok(tag("in/deep/a.txt"))
    # A second run writes what is missing.
    expected = files["b.jsonl"].read_text()
    files["b.jsonl"].unlink()
    files["c.conll"].write_text("mine")
    assert "1 records" in tag("in", "--output", "out")[1]
    assert (files["b.jsonl"].read_text(), files["c.conll"].read_text()) == (expected, "mine")
    assert "5 records" in tag("in", "--output", "out", "--overwrite")[1]
    assert files["c.conll"].read_text() != "mine"
    for output in ([], ["--output", "in/out"], ["--output", "in/c.conll"]):
        assert "name another folder" in fault(tag("in", *output))
    (tmp_path / "none").mkdir()
    assert "none: has no files to tag" in fault(tag("none", "--output", "out2"))
    (folder / "a.txt.gz").write_bytes(b"\x1f\x8b\x08")
    (folder / "f.jsonl").write_text('{"text": "Ann"}\n{\n')
    code, _, errors = tag("in", "--output", "out3")
    assert code == 1 and "2 of 7 files were not tagged" in errors and "a.txt.gz: the gzip file is damaged" in errors
    assert "f.jsonl:2: not JSON" in caplog.text and (tmp_path / "out3" / "b.jsonl").exists()
    (folder / "b.jsonl").write_text('{"text": ""}\n')
    assert "have the same output" in fault(tag("in", "--output", "out2"))


def test_an_output_that_exists_is_kept_without_overwrite(tag, tmp_path):
    (tmp_path / "in.txt").write_text("Ann\n")
    (tmp_path / "out.jsonl").write_text("mine")
    assert "out.jsonl: exists already" in fault(tag("in.txt", "--output", "out.jsonl"))
    assert (tmp_path / "out.jsonl").read_text() == "mine"
    with lock_holder(tmp_path / "out.jsonl.lock"):
        assert "is being written" in fault(tag("in.txt", "--output", "out.jsonl", "--overwrite"))
    assert (tmp_path / "out.jsonl").read_text() == "mine"
    ok(tag("in.txt", "--output", "out.jsonl", "--overwrite"))
    assert objects((tmp_path / "out.jsonl").read_text())[0]["text"] == "Ann"


@posix
def test_the_input_is_never_the_output(tag, tagger_folder, tmp_path):
    gold = tmp_path / "g.conll"
    gold.write_text("Ann B-PER\n\n")
    (tmp_path / "link.conll").symlink_to(gold)
    (tmp_path / "h.conll.partial").hardlink_to(gold)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "g.conll").hardlink_to(gold)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "g.conll").symlink_to(gold)
    config = (Path(tagger_folder) / "config.json").read_bytes()
    for source, output in (
        (gold, "g.conll"),
        (gold, "link.conll"),
        ("link.conll", gold),
        (gold, "h.conll"),
        ("texts", "out"),
        (gold, f"{tagger_folder}/config.json"),
    ):
        assert "is an input" in fault(tag(source, "--output", output, "--overwrite")), output
    stdin = os.dup(0)
    with gold.open() as redirected:
        os.dup2(redirected.fileno(), 0)
        assert "is an input" in fault(tag("-", "--output", gold, "--overwrite"))
        os.dup2(stdin, 0)
    os.mkfifo(tmp_path / "device")
    assert "device: exists already" in fault(tag(gold, "--output", "device", "--overwrite"))
    assert gold.read_text() == "Ann B-PER\n\n"
    assert (Path(tagger_folder) / "config.json").read_bytes() == config


@posix
def test_a_link_at_the_place_of_a_partial_output_is_replaced(tag, tmp_path):
    (tmp_path / "mine").write_text("kept")
    (tmp_path / "texts.txt").write_text("Ann Smith left")
    (tmp_path / "out.jsonl.partial").symlink_to(tmp_path / "mine")
    ok(tag("texts.txt", "--output", "out.jsonl"))
    assert (tmp_path / "mine").read_text() == "kept"
    assert not (tmp_path / "out.jsonl").is_symlink()


def many(path, count):
    draw = random.Random(0)
    path.write_text("".join(f"{' '.join(draw.choice(SENTENCES))} {number}\n" for number in range(count)))
    return path


@pytest.mark.slow
def test_a_killed_process_leaves_a_partial_file_that_is_written_again(tag, tmp_path, tagger_folder):
    source = many(tmp_path / "in.txt", 1200)
    partial, output = tmp_path / "out.jsonl.partial", tmp_path / "out.jsonl"
    process = subprocess.Popen(
        command(tagger_folder, source, "--output", output, "--batch_size", 1), stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not (partial.exists() and partial.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert partial.exists() and not output.exists()
    ok(tag("in.txt", "--output", "out.jsonl"))
    assert len(objects(output.read_text())) == 1200
    assert not list(tmp_path.glob("out.jsonl.*"))


def test_records_are_flushed_block_by_block_to_standard_output(monkeypatch, tagger, tmp_path):
    flushed = []

    class Stream(io.BytesIO):
        def flush(self):
            flushed.append(self.getvalue().count(b"\n"))

    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=Stream(), isatty=lambda: False))
    size = tagger.batches_ahead
    tag_source(str(many(tmp_path / "in.txt", 3 * size)), TaggingOptions(format="jsonl", batch_size=1), tagger)
    assert flushed == [size, 2 * size, 3 * size]


def test_the_graph_of_an_earlier_model_next_to_weights_is_not_used(script, tagger_folder, tmp_path):
    model = shutil.copytree(tagger_folder, tmp_path / "model")
    (model / "model.onnx").write_bytes(b"outdated")
    assert json.loads(ok(script("tag", "Ann Smith", "--model", model)))["text"] == "Ann Smith"


@pytest.mark.slow
@posix
def test_a_closed_pipe_ends_the_run_without_an_error(tmp_path, tagger_folder):
    source = many(tmp_path / "in.txt", 20_000)
    words = command(tagger_folder, source, "--batch_size", 1)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert json.loads(process.stdout.readline())["entities"] is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=120) == 0


PEAK = """
import sys
from hf_xorner.cli import main
main("tag", sys.argv[1:])
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM:")).split()[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_memory_does_not_grow_with_the_input(tmp_path, tagger_folder):
    """Growth only shows in large inputs: with records of 5 kB, keeping them would be measured."""
    draw, peaks = random.Random(0), []
    for count in (1000, 6000):
        records = ({"text": " ".join(draw.choice(SENTENCES)), "more": draw.randbytes(2500).hex()} for _ in range(count))
        source = tmp_path / f"{count}.jsonl"
        source.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        words = command(tagger_folder, source, "--output", tmp_path / f"out{count}.jsonl", "--batch_size", 16)[4:]
        done = run_python(["-c", PEAK, *words])
        assert done.returncode == 0, done.stderr[-3000:]
        peaks.append(int(done.stdout.split()[-1]) / 1024)
    assert peaks[1] - peaks[0] < 12, peaks
