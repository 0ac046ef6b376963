"""Tables: datasets, Parquet, Arrow and saved datasets."""

import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, LargeList, List, Value
from pyarrow import feather

from hf_xorner.corpora import DataError, load_corpus
from hf_xorner.corpora.formats.arrow import sentences_of_table
from hf_xorner.corpora.source import ReadingOptions

NAMES = ["O", "B-PER", "I-PER"]
ROWS = {"tokens": [["Ann", "Lee", "left"], [], ["Rain"]], "ner_tags": [[1, 2, 0], [], [0]]}
FEATURES = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=NAMES))})
EXPECTED = [(["Ann", "Lee", "left"], ["B-PER", "I-PER", "O"]), ([], []), (["Rain"], ["O"])]


@pytest.fixture
def table():
    return Dataset.from_dict(ROWS, features=FEATURES)


def sentences(dataset, **options):
    return list(sentences_of_table(dataset, "owner/name, train", ReadingOptions(**options)))


def read(dataset, **options):
    return [(sentence.tokens, sentence.tags) for sentence in sentences(dataset, **options)]


def spelt(lists):
    return [[NAMES[value] for value in values] for values in lists]


def test_words_and_tags_are_read_from_their_usual_columns():
    for words in ("tokens", "words"):
        for tags in ("ner_tags", "tags", "labels"):
            columns = {"id": [1, 2, 3], tags: spelt(ROWS["ner_tags"]), words: ROWS["tokens"]}
            assert read(Dataset.from_dict(columns)) == EXPECTED
    columns = {"labels": "L", "tags": "T", "ner_tags": "O", "words": "w", "tokens": "t"}
    assert read(Dataset.from_dict({name: [[value]] for name, value in columns.items()})) == [(["t"], ["O"])]


@pytest.mark.parametrize(
    ("words", "tags"),
    [
        (LargeList(Value("large_string")), LargeList(ClassLabel(names=NAMES))),
        (List(Value("string_view")), List(Value("large_string"))),
        ([Value("string")], [ClassLabel(names=NAMES)]),
    ],
)
def test_all_list_types_read_the_same(words, tags):
    labels = ROWS["ner_tags"] if "ClassLabel" in str(tags) else spelt(ROWS["ner_tags"])
    rows = {"tokens": ROWS["tokens"], "ner_tags": labels}
    assert read(Dataset.from_dict(rows, features=Features({"tokens": words, "ner_tags": tags}))) == EXPECTED


def test_columns_are_configurable(table):
    dataset = table.add_column("upos", [["P", "P", "V"], [], ["N"]]).rename_columns({"tokens": "form", "ner_tags": "x"})
    rows = sentences(dataset, token_column="form", tag_column="x", pos_column="upos")
    assert [sentence[:2] for sentence in rows] == EXPECTED
    assert [sentence.pos_tags for sentence in rows] == [["P", "P", "V"], [], ["N"]]


def test_parts_of_speech_and_documents_are_read(table):
    for names in (["a", None, "b"], [7, None, 8]):
        dataset = table.add_column("doc_id", names).add_column("pos", [["P", "P", "V"], [], ["N"]])
        rows = sentences(dataset)
        assert [sentence.doc_id for sentence in rows] == [None if name is None else str(name) for name in names]
        assert [sentence.pos_tags for sentence in rows] == [["P", "P", "V"], [], ["N"]]
        assert {sentence.pos_tags for sentence in sentences(dataset, pos_column="none")} == {None}


def test_sorted_and_joined_datasets_are_read_and_rows_have_numbers(table):
    assert read(table.select([2, 0])) == [EXPECTED[2], EXPECTED[0]]
    assert read(table.with_format("numpy")) == EXPECTED
    assert read(table.select([])) == []
    rows = sentences(datasets.concatenate_datasets([table] * 500))
    assert [sentence.location() for sentence in rows[1200:1202]] == [
        f"owner/name, train, row {n}" for n in (1200, 1201)
    ]
    assert [sentence[:2] for sentence in rows] == EXPECTED * 500


def test_numbers_without_names_are_refused():
    for number in (-2, 3):
        numbers = pa.array([[0], [number]])
        dataset = Dataset(pa.table({"tokens": [["a"], ["b"]], "ner_tags": numbers}).cast(FEATURES.arrow_schema))
        with pytest.raises(DataError, match="row 1: 'ner_tags'"):
            read(dataset)


def test_the_number_of_no_label_is_an_unknown_tag_among_chunks_only(tmp_path):
    for names, rows, expected in (
        (["O", "B-X", "E-X"], [[1, 2, -1]], [1, 2, -1]),
        (["NN", "VB"], [[0, 1, -1]], None),
    ):
        features = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=names))})
        saved = DatasetDict(train=Dataset.from_dict({"tokens": [["a", "b", "c"]], "ner_tags": rows}, features))
        saved.save_to_disk(tmp_path / names[0])
        if expected:
            assert load_corpus(tmp_path / names[0])["train"]["ner_tags"][:] == [expected]
        else:
            with pytest.raises(DataError, match="row 0"):
                load_corpus(tmp_path / names[0])


def write_stream(dataset, path):
    arrow = dataset.with_format("arrow")[:]
    with pa.ipc.new_stream(str(path), arrow.schema) as file:
        file.write_table(arrow)


FORMS = {
    "x.parquet": lambda dataset, path: dataset.to_parquet(path),
    "stream.arrow": write_stream,
    "odd [1] *?.arrow": lambda dataset, path: feather.write_feather(dataset.with_format("arrow")[:], str(path), "lz4"),
}


@pytest.mark.parametrize("name", FORMS)
def test_files_of_tables_are_read(table, tmp_path, name):
    FORMS[name](table, tmp_path / name)
    split = load_corpus(tmp_path / name)["train"]
    assert (list(split["tokens"]), split["ner_tags"][:]) == (ROWS["tokens"], ROWS["ner_tags"])


def test_saved_datasets_are_read(table, tmp_path, monkeypatch):
    DatasetDict({"train": table, "test": table.select([0])}).save_to_disk(tmp_path / "two")
    assert {name: len(split) for name, split in load_corpus(tmp_path / "two").items()} == {"train": 3, "test": 1}
    table.save_to_disk(tmp_path / "one", num_shards=2)
    monkeypatch.chdir(tmp_path)
    assert list(load_corpus("one")["train"]["tokens"]) == ROWS["tokens"]


def test_a_split_of_a_dataset_is_the_one_with_the_exact_name(table, tmp_path, caplog):
    dataset = DatasetDict({"train": table, "train_small": table.select([0]), "dev": table.select([1])})
    dataset.save_to_disk(tmp_path / "saved")
    for source in (dataset, tmp_path / "saved"):
        assert {name: len(split) for name, split in load_corpus(source).items()} == {"train": 3, "validation": 1}
    assert caplog.text.count("ignored the splits train_small") == 2


def test_bytes_that_are_not_utf8_name_the_file(tmp_path):
    words = pa.StringArray.from_buffers(1, *pa.array([b"\xff"]).buffers()[1:])
    tokens = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), words)
    pq.write_table(pa.table({"tokens": tokens, "ner_tags": [["O"]]}), tmp_path / "train.parquet")
    with pytest.raises(DataError, match=r"train\.parquet"):
        load_corpus(tmp_path / "train.parquet")


def test_a_saved_dataset_that_names_files_elsewhere_is_refused(tmp_path):
    for folder in ("mine", "other"):
        DatasetDict({"train": Dataset.from_dict(ROWS)}).save_to_disk(tmp_path / folder)
    state = tmp_path / "mine" / "train" / "state.json"
    content = state.read_text()
    (name,) = (file["filename"] for file in json.loads(content)["_data_files"])
    for elsewhere in (f"../../other/train/{name}", str(tmp_path / "other" / "train" / name)):
        state.write_text(content.replace(name, elsewhere))
        with pytest.raises(ValueError, match=r"which is not in the folder; save the dataset again"):
            load_corpus(str(tmp_path / "mine"))
    state.write_text(content)
    (tmp_path / "mine" / "dataset_dict.json").write_text('{"splits": ["train", "../other/train"]}')
    with pytest.raises(ValueError, match="which is not in the folder"):
        load_corpus(str(tmp_path / "mine"))
