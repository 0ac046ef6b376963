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
    "Ann " * 500 + "x" * 70_000,
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


@pytest.fixture
def texts(tmp_path):
    """A file of difficult texts, one a line."""
    (tmp_path / "in.txt").write_bytes("\n".join(HOSTILE).encode())
    return "in.txt"


def lines_of(tagger, sentences):
    """Return the lines of words and labels, each sentence followed by an empty line."""
    lines = []
    for words in sentences:
        labels = next(tagger.annotate([words])).labels
        lines += [*map("\t".join, zip(words, labels, strict=True)), ""]
    return lines


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_line_of_text_becomes_an_object(tag, tagger, tmp_path, end):
    (tmp_path / "in.txt").write_bytes(b"\xef\xbb\xbf" + end.join(HOSTILE).encode())
    records = objects(ok(tag("in.txt")))
    assert [record["text"] for record in records] == HOSTILE
    assert sum(len(record["entities"]) for record in records) > 20
    check(records, tagger, HOSTILE)


def test_texts_become_columns(tag, tagger, texts, tmp_path):
    ok(tag(texts, "--output", "out.conll.gz"))
    lines = gzip.decompress((tmp_path / "out.conll.gz").read_bytes()).decode().split("\n")
    assert lines == [*lines_of(tagger, map(tagger.tokenizer.tokenize, HOSTILE)), ""]


def test_texts_become_rows_of_csv_one_for_each_entity(tag, tagger, texts, tmp_path):
    ok(tag(texts, "--output", "out.csv"))
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = [(int(row["record"]), row["label"], int(row["start"]), row["text"]) for row in csv.DictReader(file)]
    assert rows == [
        (number, entity.label, entity.start, entity.text)
        for number, text in enumerate(HOSTILE, 1)
        for entity in tagger(text)
    ]


def test_redacted_texts_are_written_one_a_line(tag, tagger, texts):
    redacted = [tagger.redact(text).text.replace("\r", " ") for text in HOSTILE]
    assert ok(tag(texts, "--redact")).split("\n")[:-1] == redacted


def test_redacted_objects_can_be_restored(tag, tagger, texts, tmp_path):
    ok(tag(texts, "--redact", "--template", "<{label}_{number}>", "--output", "out.jsonl"))
    for record, text in zip(objects((tmp_path / "out.jsonl").read_text(encoding="utf-8")), HOSTILE, strict=True):
        assert record["text"] == tagger.redact(text, "<{label}_{number}>").text
        assert Entities(map(Entity, record["replaced"]), record["text"]).restore() == text


def test_redaction_writes_no_other_field(tag, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "Ann Smith", "author": "Ann"}\n{"no": "Ann"}')
    assert "Ann" not in ok(tag("in.jsonl", "--redact", "--skip_bad_lines"))


RECORDS = [
    ({"id": 12345678901234567890, "text": "Ann Smith saw Zeus", "deep": {"a": [{}]}}, "Ann Smith saw Zeus"),
    ({"words": ["New York", "é"], "other": "\ud83d"}, ["New York", "é"]),
    ({"tokens": [], "text": "Ann in Zeus"}, "Ann in Zeus"),
    ({"tokens": []}, []),
    ({"tokens": [{"start": 0}], "text": "Zeus \u2028 in \0 New York"}, "Zeus \u2028 in \0 New York"),
    ({"id": 7, "data": {"text": "Ann in New York"}, "annotations": []}, "Ann in New York"),
]


@pytest.mark.parametrize("name", ["in.jsonl", "in.json", "in.txt"])
def test_objects_keep_their_fields(tag, tagger, tmp_path, name):
    inputs = [record for record, _ in RECORDS]
    content = "\n\n".join(map(json.dumps, inputs)) if name == "in.jsonl" else "\ufeff" + json.dumps(inputs, indent=2)
    (tmp_path / name).write_text(content, encoding="utf-8")
    records = objects(ok(tag(name)))
    check(records, tagger, [item for _, item in RECORDS])
    assert [{key: value for key, value in record.items() if key != "entities"} for record in records] == inputs


def test_a_field_named_entities_is_kept(tag, tmp_path):
    (tmp_path / "gold.jsonl").write_text('{"text": "Ann", "entities": ["gold"]}')
    (record,) = objects(ok(tag("gold.jsonl")))
    assert record["entities"] == ["gold"] and type(record["predicted_entities"]) is list


def test_numbers_that_json_does_not_have_become_null(tag, tmp_path):
    (tmp_path / "numbers.jsonl").write_text('{"text": "Ann", "deep": [1e400, NaN, 0.5]}')
    assert json.loads(ok(tag("numbers.jsonl")), parse_constant=pytest.fail)["deep"] == [None, None, 0.5]


def test_columns_of_words_become_columns(tag, tagger, tmp_path):
    (tmp_path / "in.conll").write_text(
        "\ufeff-DOCSTART- O\n\n# x = Ann\nAnn B\nSmith O\n\n\nZeus O\n", encoding="utf-8"
    )
    ok(tag("in.conll", "--output", "out.bio"))
    lines = (tmp_path / "out.bio").read_text().split("\n")
    assert lines == [*lines_of(tagger, [["Ann", "Smith"], ["Zeus"]]), ""]


def test_the_column_of_the_words_can_be_named(tag, tmp_path):
    (tmp_path / "in.conll").write_text("B-PER Ann\nO left\n")
    for column in (1, -1):
        (record,) = objects(ok(tag("in.conll", "--field", column, "--format", "jsonl")))
        assert record["words"] == ["Ann", "left"]


ROWS = [{"id": f"0{number}", "text": text} for number, text in enumerate(HOSTILE) if "\r" not in text]


@pytest.fixture
def table(tmp_path):
    """A CSV file of texts."""
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text"], delimiter=";")
        writer.writeheader()
        writer.writerows(ROWS)
    return "in.csv"


def test_rows_of_csv_become_objects(tag, tagger, table):
    records = objects(ok(tag(table)))
    assert [{"id": record["id"], "text": record["text"]} for record in records] == ROWS
    check(records, tagger, [row["text"] for row in ROWS])


def test_rows_of_csv_become_rows_with_entities(tag, table, tmp_path):
    records = objects(ok(tag(table)))
    ok(tag(table, "--field", "text", "--output", "out.csv"))
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = [row | {"entities": json.loads(row["entities"])} for row in csv.DictReader(file)]
    assert rows == [row | {"entities": record["entities"]} for row, record in zip(ROWS, records, strict=True)]


def test_the_last_column_of_csv_may_hold_commas(tag, tmp_path):
    (tmp_path / "in.csv").write_text("text\nAnn, in Zeus\n")
    ok(tag("in.csv", "--skip_bad_lines", "--output", "out.csv"))
    assert (tmp_path / "out.csv").read_text() == 'text,entities\n"Ann, in Zeus",[]\n'


def test_rows_of_parquet_become_objects(tag, tagger, tmp_path):
    rows = [{"day": pa.scalar(0, pa.date32()).as_py(), "words": words} for words in random_sentences(20)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet", row_group_size=7)
    records = objects(ok(tag("in.parquet")))
    assert {record["day"] for record in records} == {"1970-01-01"}
    check(records, tagger, [row["words"] for row in rows])


def test_a_dataset_on_the_hub_is_streamed(tag, tagger, monkeypatch):
    def load(name, streaming):
        assert streaming
        rows = Dataset.from_dict({"id": range(len(TEXTS)), "text": TEXTS}).to_iterable_dataset()
        return IterableDatasetDict({"train": rows, "test": rows.take(2)} if name == "a/two" else {"train": rows})

    monkeypatch.setattr("hf_xorner.corpora.load.load_dataset", load)
    check(objects(ok(tag("a/one"))), tagger, TEXTS)
    assert len(objects(ok(tag("a/two", "--split", "test")))) == 2
    assert "a/two: has the splits train, test" in fault(tag("a/two"))


LINES = "\n".join(TEXTS).encode()
JSON_LINES = "\n".join(json.dumps({"text": text}) for text in TEXTS).encode()


@pytest.mark.parametrize("source", ["-", None])
@pytest.mark.parametrize(
    "content", [LINES, gzip.compress(LINES), JSON_LINES, b""], ids=["lines", "gzip", "JSON", "empty"]
)
def test_standard_input_is_read(script, tagger_folder, tagger, monkeypatch, content, source):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    records = objects(ok(script("tag", *filter(None, [source]), "--model", tagger_folder)))
    check(records, tagger, TEXTS if content else [])


@pytest.mark.parametrize("text", ["Ann Smith saw Zeus", "~Ann\nsaw Zeus " * 1000], ids=["short", "long"])
def test_an_argument_with_a_blank_is_a_text(tag, tagger, text):
    check(objects(ok(tag(text))), tagger, [text])


def test_an_argument_with_a_blank_may_name_a_file(tag, tagger, tmp_path):
    (tmp_path / "Ann Smith").write_text("Zeus\n")
    check(objects(ok(tag("Ann Smith"))), tagger, ["Zeus"])


def test_an_argument_without_a_blank_is_no_text(tag):
    assert "blank" in fault(tag("Zeus"))


def test_without_a_model_the_english_one_tags(script):
    (entity,) = json.loads(ok(script("tag", "He flew to Oslo.")))["entities"]
    assert (entity["label"], entity["text"]) == ("LOC", "Oslo")


def test_entities_are_coloured_in_a_terminal(tag, tagger, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert ok(tag("Ann Smith saw Zeus")) == f"{tagger('Ann Smith saw Zeus').in_colour()}\n"


@pytest.mark.parametrize("format", ["colour", "conll", "csv"])
def test_control_characters_do_not_reach_a_terminal(tag, monkeypatch, format):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "\x1b]" not in ok(tag("Ann\x1b]0;title\x07 Smith saw Zeus\x1b]", "--format", format))


def test_a_terminal_as_standard_input_needs_a_source(script, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert script("tag")[0] == 2


GOOD = {".jsonl": '{"text": "Zoë"}\n', ".txt": "Zoë\n", ".conll": "Zoë O\n\n", ".csv": "Ann,1\n"}
#: A file, its bad record, which follows 40 good ones, and its line. The readers' other faults are in tests/corpora.
FAULTS = {
    "no text": ("in.jsonl", b'{"id": 1}', 41),
    "a tab in a word": ("in.jsonl", b'{"words": ["a\\tb"]}', 41),
    "latin-1": ("in.txt", b"caf\xe9", 41),
    "too few columns": ("in.conll", b"Smith\n", 81),
    "too many columns": ("in.csv", b"Ann, Smith,1", 42),
}


@pytest.mark.parametrize("fault_of", FAULTS)
def test_a_bad_record_is_named_and_can_be_skipped(tag, fault_of, tmp_path):
    name, bad, line = FAULTS[fault_of]
    good, header = GOOD[Path(name).suffix].encode(), b"text,id\n" if name.endswith(".csv") else b""
    (tmp_path / name).write_bytes(header + good * 40 + bad + b"\n" + good * 5)
    error = fault(tag(name, "--output", "out.jsonl"))
    assert name in error and str(line) in error
    assert not (tmp_path / "out.jsonl").exists()
    code, _, errors = tag(name, "--output", "out.jsonl", "--skip_bad_lines")
    assert code == 0 and "1 records are bad" in errors
    records = objects((tmp_path / "out.jsonl").read_text("utf-8"))
    assert [number for number, record in enumerate(records) if "error" in record] == [40]
    assert len(records) == 46 and records[40]["entities"] == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--format xml", "format"),
        ("--batch_size 0", "batch_size"),
        ("--field text", "a line of text has no fields"),
        ("--input_format conll --field 4", "columns"),
        ("--input_format conll --field word", "field=word, but the line has 1 columns; give a number"),
        ("--output .", "exists already"),
        ("--output out.parquet", "Parquet is not written"),
        ("--min_score 0.9 PER=0.8", "a number, or one for each label"),
        ("--split test", "leave it out"),
        ("--template x", "set redact"),
        ("--redact --output out.csv", "redact writes texts or JSON Lines"),
        ("--redact --format conll", "format=conll"),
        ("--model nowhere", "nowhere"),
    ],
)
def test_invalid_options_are_refused(tag, tmp_path, options, sentence):
    (tmp_path / "in.txt").write_text("Ann\n")
    assert sentence in fault(tag("in.txt", *options.split()))


@pytest.mark.parametrize("source", ["a/missing.jsonl", "my texts.csv", "nothing.txt", "~nobody/texts.txt"])
def test_a_missing_file_is_named(tag, source):
    assert "there is no such file" in fault(tag(source))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("broken.txt.gz", gzip.compress(os.urandom(9999))[:-900], "broken.txt.gz: the gzip file is damaged"),
        ("twice.csv", b"id,text,id\n1,Ann,2\n", "two columns have the same name"),
        ("texts.tsv", b"id\treview\n1\tAnn Smith saw Zeus yesterday.\n", "texts.tsv:2: no text or list of words"),
    ],
)
def test_a_damaged_file_is_named(tag, tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    assert sentence in fault(tag(name))


@pytest.fixture
def folder(tmp_path):
    """A folder of five files, one below a link, with links in circles and files that are not tagged."""
    folder, linked = tmp_path / "in", tmp_path / "far"
    folder.mkdir()
    linked.mkdir()
    (folder / "deep").symlink_to(linked)
    (folder / "loop").symlink_to(folder)
    (linked / "loop").symlink_to(folder / "deep")
    (linked / "a.txt").write_text("Ann Smith\nZeus\n")
    (folder / "b.txt.gz").write_bytes(gzip.compress(b"Zeus\n"))
    (folder / "c.conll").write_text("Ann O\n")
    (folder / "d.tsv").write_text("id\ttext\n7\tAnn\n")
    (folder / "empty.txt").write_text("")
    (folder / ".hidden.txt").write_text("no")
    (folder / "notes.pdf").write_text("no")
    return folder


def test_a_folder_becomes_a_folder_of_outputs(tag, folder, tmp_path, caplog):
    assert "5 records" in ok(tag("in", "--output", "out")) and "notes.pdf" in caplog.text
    out = tmp_path / "out"
    names = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert names == ["b.jsonl", "c.conll", "d.jsonl", "deep/a.jsonl", "empty.jsonl"]
    assert (out / "deep" / "a.jsonl").read_text() == ok(tag("in/deep/a.txt"))


def test_a_second_run_over_a_folder_writes_what_is_missing(tag, folder, tmp_path):
    ok(tag("in", "--output", "out"))
    missing, changed = tmp_path / "out" / "b.jsonl", tmp_path / "out" / "c.conll"
    expected = missing.read_text()
    missing.unlink()
    changed.write_text("mine")
    assert "1 records" in ok(tag("in", "--output", "out"))
    assert (missing.read_text(), changed.read_text()) == (expected, "mine")
    assert "5 records" in ok(tag("in", "--output", "out", "--overwrite"))
    assert changed.read_text() != "mine"


@pytest.mark.parametrize("output", [[], ["--output", "in/out"], ["--output", "in/c.conll"]], ids=str)
def test_outputs_of_a_folder_need_another_folder(tag, folder, output):
    assert "name another folder" in fault(tag("in", *output))


def test_a_damaged_file_in_a_folder_does_not_stop_the_others(tag, folder, tmp_path, caplog):
    (folder / "a.txt.gz").write_bytes(b"\x1f\x8b\x08")
    (folder / "f.jsonl").write_text('{"text": "Ann"}\n{\n')
    code, _, errors = tag("in", "--output", "out")
    assert code == 1 and "2 of 7 files were not tagged" in errors and "a.txt.gz: the gzip file is damaged" in errors
    assert "f.jsonl:2: not JSON" in caplog.text and (tmp_path / "out" / "b.jsonl").exists()


def test_two_files_with_the_same_output_are_refused(tag, folder):
    (folder / "b.jsonl").write_text('{"text": ""}\n')
    assert "have the same output" in fault(tag("in", "--output", "out"))


def test_a_folder_without_files_is_refused(tag, tmp_path):
    (tmp_path / "none").mkdir()
    assert "none: has no files to tag" in fault(tag("none", "--output", "out"))


def test_an_output_that_exists_is_kept_without_overwrite(tag, tmp_path):
    (tmp_path / "in.txt").write_text("Ann\n")
    (tmp_path / "out.jsonl").write_text("mine")
    assert "out.jsonl: exists already" in fault(tag("in.txt", "--output", "out.jsonl"))
    with lock_holder(tmp_path / "out.jsonl.lock"):
        assert "is being written" in fault(tag("in.txt", "--output", "out.jsonl", "--overwrite"))
    assert (tmp_path / "out.jsonl").read_text() == "mine"
    ok(tag("in.txt", "--output", "out.jsonl", "--overwrite"))
    assert objects((tmp_path / "out.jsonl").read_text())[0]["text"] == "Ann"


@posix
def test_the_input_is_never_the_output(tag, tagger_folder, tmp_path):
    gold, config = tmp_path / "g.conll", Path(tagger_folder) / "config.json"
    gold.write_text("Ann B-PER\n\n")
    (tmp_path / "h.conll.partial").hardlink_to(gold)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "g.conll").hardlink_to(gold)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "g.conll").symlink_to(gold)
    before = config.read_bytes()
    for source, output in ((gold, "g.conll"), (gold, "h.conll"), ("texts", "out"), (gold, config)):
        assert "is an input" in fault(tag(source, "--output", output, "--overwrite")), output
    assert (gold.read_text(), config.read_bytes()) == ("Ann B-PER\n\n", before)


@posix
def test_redirected_standard_input_is_never_the_output(tag, tmp_path):
    (tmp_path / "g.conll").write_text("Ann B-PER\n\n")
    stdin = os.dup(0)
    with (tmp_path / "g.conll").open() as redirected:
        os.dup2(redirected.fileno(), 0)
        assert "is an input" in fault(tag("-", "--output", "g.conll", "--overwrite"))
        os.dup2(stdin, 0)
    assert (tmp_path / "g.conll").read_text() == "Ann B-PER\n\n"


@posix
def test_a_named_pipe_is_not_replaced(tag, tmp_path):
    os.mkfifo(tmp_path / "device")
    assert "device: exists already" in fault(tag("Ann Smith", "--output", "device", "--overwrite"))


@posix
def test_a_link_with_the_name_of_a_partial_output_is_replaced(tag, tmp_path):
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


def test_an_encoding_can_be_named(tag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_bytes("Ann in Gdańsk\n".encode("cp1250"))
    assert objects(ok(tag("in.txt", "--encoding", "cp1250", "--format", "jsonl")))[0]["text"] == "Ann in Gdańsk"


@pytest.mark.parametrize(("encoding", "expected"), [("utf-16", "read line by line"), ("nope", "unknown encoding")])
def test_other_encodings_are_refused(tag, encoding, expected):
    assert expected in fault(tag("-", "--encoding", encoding))
