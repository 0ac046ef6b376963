"""Tables: datasets, Parquet, Arrow and saved datasets."""

import json

import pyarrow as pa
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


@pytest.mark.parametrize("words", ["tokens", "words"])
@pytest.mark.parametrize("tags", ["ner_tags", "tags", "labels"])
def test_words_and_tags_are_read_from_their_usual_columns(words, tags):
    columns = {"id": [1, 2, 3], tags: spelt(ROWS["ner_tags"]), words: ROWS["tokens"]}
    assert read(Dataset.from_dict(columns)) == EXPECTED


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


@pytest.mark.parametrize("names", [["a", None, "b"], [7, None, 8]])
def test_parts_of_speech_and_documents_are_read(table, names):
    rows = sentences(table.add_column("doc_id", names).add_column("pos", [["P", "P", "V"], [], ["N"]]))
    assert [sentence.doc_id for sentence in rows] == [None if name is None else str(name) for name in names]
    assert [sentence.pos_tags for sentence in rows] == [["P", "P", "V"], [], ["N"]]


def test_selected_rows_are_read_in_their_order(table):
    assert read(table.select([2, 0])) == [EXPECTED[2], EXPECTED[0]]


def test_numbers_without_names_are_refused():
    for number in (-2, 3):
        numbers = pa.array([[0], [number]])
        dataset = Dataset(pa.table({"tokens": [["a"], ["b"]], "ner_tags": numbers}).cast(FEATURES.arrow_schema))
        with pytest.raises(DataError, match="row 1: 'ner_tags'"):
            read(dataset)


def saved_numbers(folder, names, numbers):
    features = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=names))})
    rows = {"tokens": [["a", "b", "c"]], "ner_tags": [numbers]}
    DatasetDict(train=Dataset.from_dict(rows, features)).save_to_disk(folder)
    return folder


def test_the_number_of_no_label_is_an_unknown_tag(tmp_path):
    folder = saved_numbers(tmp_path / "x", ["O", "B-X", "E-X"], [1, 2, -1])
    assert load_corpus(folder)["train"]["ner_tags"][:] == [[1, 2, -1]]


def test_the_number_of_no_label_is_refused_among_plain_tags(tmp_path):
    with pytest.raises(DataError, match="row 0"):
        load_corpus(saved_numbers(tmp_path / "x", ["NN", "VB"], [0, 1, -1]))


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
