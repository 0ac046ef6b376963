"""Files that were once read wrongly, slowly, or with a traceback."""

import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_xorner.corpora import DataError, load_corpus
from hf_xorner.corpora.assemble import words_and_tags
from hf_xorner.corpora.formats.tables import open_table, sentences_of_table
from hf_xorner.corpora.source import Reading


@pytest.fixture
def load(tmp_path):
    def load(content, name="train.conll", **options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return load_corpus(path, **options)["train"]

    return load


def tags(split):
    return [" ".join(row) for row in words_and_tags(split)[1]]


NESTED = "Nokia\tB-ORG\tO\nof\tI-ORG\tO\nEspoo\tI-ORG\tB-LOC\nwon\tO\tO\n\nAalto\tB-PER\tO\nslept\tO\tO\n\n"


@pytest.mark.parametrize("name", ["finer.csv", "finer.tsv", "finer.conll"])
@pytest.mark.parametrize("nested", [NESTED, NESTED.replace("B-LOC", "B-ORG"), NESTED.replace("B-LOC", "O")])
def test_the_outer_of_two_columns_of_entities_is_read(load, caplog, name, nested):
    expected = ["B-ORG I-ORG I-ORG O", "B-PER O"]
    assert tags(load(nested, name)) == expected
    assert "tags from column 1" in caplog.text and "tag_column" in caplog.text


def test_a_csv_without_a_header_has_its_columns_recognised(load, caplog):
    rows = [line.split("\t") for line in NESTED.replace("B-LOC", "B-ORG").splitlines()]
    found = load("".join(",".join(row) + "\n" for row in rows), "finer.csv")
    assert tags(found) == ["B-ORG I-ORG I-ORG O", "B-PER O"]
    assert "tags from column 1" in caplog.text and "column 2 holds tags of entities, too" in caplog.text


def test_a_last_column_without_entities_beside_syntactic_chunks_stays_the_tags(load):
    assert tags(load("The DT B-NP O\nday NN I-NP O\n\n")) == ["O O"]


def test_documents_of_one_name_in_two_folders_are_two(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / "train" / folder).mkdir(parents=True)
        (tmp_path / "train" / folder / "1.txt").write_text("Ada left.\n")
        (tmp_path / "train" / folder / "1.ann").write_text("T1\tPER 0 3\tAda\n")
    corpus = load_corpus(tmp_path)
    assert corpus["train"]["doc_id"][:] == ["a/1", "b/1"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("PER PER O LOC PER O O O O", "B-PER I-PER O B-LOC B-PER O O O O"),
        ("B_PER I_PER O B_LOC O", "B-PER I-PER O B-LOC O"),
        ("S_PER B_LOC E_LOC O O", "B-PER B-LOC I-LOC O O"),
    ],
)
def test_entities_in_an_unusual_notation_are_entities(load, caplog, written, expected):
    lines = "".join(f"w{at}\t{tag}\n" for at, tag in enumerate(written.split()))
    assert tags(load(lines)) == [expected]
    assert "tags" in caplog.text
    assert tags(load(lines, "other.conll", scheme="plain")) == [written]


def test_the_scheme_of_bare_types_can_be_given(load):
    assert tags(load("a PER\nb PER\nc O\n", scheme="io")) == ["B-PER I-PER O"]


def test_blanks_around_a_tag_are_no_part_of_it(load, caplog):
    assert tags(load("Ada\tB-PER \nLee\tI-PER\nleft\tO \nnow\tO\n")) == ["B-PER I-PER O O"]
    assert "blanks" in caplog.text
    with pytest.raises(DataError, match=r"blank\.conll:2"):
        load("Ada\tB-PER\nleft\t \u00a0\n", "blank.conll")


def test_parts_of_speech_with_an_o_stay_plain_tags(load):
    """The tag set of tweets has O for pronouns."""
    assert tags(load("he\tO\nsaw\tV\nit\tO\nrun\tV\nfar\tV\n")) == ["O V O V V"]


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


def test_a_few_bytes_of_parquet_do_not_fill_the_memory(tmp_path):
    table = pa.table({"tokens": [["x" * 1_000_000]] * 1000, "ner_tags": [["O"]] * 1000})
    pq.write_table(table, tmp_path / "small.parquet", compression="zstd")
    del table
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(DataError, match="row 0: the column tokens holds more than"):
        next(sentences_of_table(open_table(tmp_path / "small.parquet"), "small, row ", Reading()))
    assert pa.default_memory_pool().max_memory() <= max(before, 1 << 28)


@pytest.mark.parametrize("content", ["[0, 5]", "[0, 1]", '"O"', "1", '{"O": [0]}', '{"B-a b": 0}', "[" * 9999])
def test_a_file_of_tag_names_of_another_form_is_refused(tmp_path, content):
    (tmp_path / "train.json").write_text('{"tokens": ["a"], "tags": [0]}\n')
    (tmp_path / "label.json").write_text(content)
    with pytest.raises(DataError, match=r"label\.json"):
        load_corpus(tmp_path)


@pytest.mark.parametrize("number", [[1], {"a": 1}, "7", None, 1.5])
def test_numbers_of_tasks_of_another_type_are_read(load, number):
    task = {"id": number, "annotation_id": 1, "text": "Ada left", "label": [{"start": 0, "end": 3, "labels": ["PER"]}]}
    assert tags(load(json.dumps([task, task]), "min.json")) == ["B-PER O"] * 2


@pytest.mark.parametrize("offset", ["9" * 5000, "-1", "1.5", "\u0663"])
def test_offsets_of_brat_of_another_form_are_refused(tmp_path, offset):
    (tmp_path / "1.txt").write_text("Ada left.\n")
    (tmp_path / "1.ann").write_text(f"T1\tPER 0 {offset}\tAda\n")
    with pytest.raises(DataError, match=r"1\.ann:1"):
        load_corpus(tmp_path)
