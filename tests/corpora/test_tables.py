import json

import datasets
import pyarrow as pa
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, LargeList, List, Value
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

from hf_xorner.corpora import DataError
from hf_xorner.corpora.formats import tables
from hf_xorner.corpora.formats.tables import open_saved, open_table, sentences_of_table
from hf_xorner.corpora.source import Reading

NAMES = ["O", "B-PER", "I-PER"]
ROWS = {"tokens": [["Ann", "Lee", "left"], [], ["Rain"]], "ner_tags": [[1, 2, 0], [], [0]]}
FEATURES = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=NAMES))})
EXPECTED = [(["Ann", "Lee", "left"], ["B-PER", "I-PER", "O"]), ([], []), (["Rain"], ["O"])]
SOURCE = "owner/name, train, row "


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))


@pytest.fixture
def table():
    return Dataset.from_dict(ROWS, features=FEATURES)


def sentences(dataset, **options):
    return list(sentences_of_table(dataset, SOURCE, Reading(**options)))


def read(dataset, **options):
    return [(sentence.tokens, sentence.tags) for sentence in sentences(dataset, **options)]


def spelt(lists):
    return [[NAMES[value] for value in values] for values in lists]


# --- Rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tags", ["ner_tags", "tags", "labels"])
@pytest.mark.parametrize("words", ["tokens", "words"])
def test_words_and_tags_are_read_from_their_usual_columns(words, tags):
    assert read(Dataset.from_dict({"id": [1, 2, 3], tags: spelt(ROWS["ner_tags"]), words: ROWS["tokens"]})) == EXPECTED


@pytest.mark.parametrize(
    ("words", "tags"),
    [
        (List(Value("string")), List(ClassLabel(names=NAMES))),
        (LargeList(Value("large_string")), LargeList(ClassLabel(names=NAMES))),
        (List(Value("string_view")), List(Value("large_string"))),
        ([Value("string")], [ClassLabel(names=NAMES)]),
    ],
    ids=["usual", "large", "strings", "old form"],
)
def test_all_list_types_read_the_same(words, tags):
    labels = ROWS["ner_tags"] if "ClassLabel" in str(tags) else spelt(ROWS["ner_tags"])
    rows = {"tokens": ROWS["tokens"], "ner_tags": labels}
    assert read(Dataset.from_dict(rows, features=Features({"tokens": words, "ner_tags": tags}))) == EXPECTED


def test_fixed_size_lists_read_the_same():
    features = Features({"tokens": List(Value("string"), length=2), "tags": List(ClassLabel(names=NAMES), length=2)})
    dataset = Dataset.from_dict({"tokens": [["a", "b"], ["c", "d"]], "tags": [[0, 1], [2, 0]]}, features=features)
    assert read(dataset) == [(["a", "b"], ["O", "B-PER"]), (["c", "d"], ["I-PER", "O"])]


def test_the_first_of_the_usual_columns_is_used():
    columns = {"labels": "L", "tags": "T", "ner_tags": "O", "words": "w", "tokens": "t"}
    assert read(Dataset.from_dict({name: [[value]] for name, value in columns.items()})) == [(["t"], ["O"])]


def test_columns_are_configurable(table):
    dataset = table.add_column("upos", [["P", "P", "V"], [], ["N"]]).rename_columns({"tokens": "form", "ner_tags": "x"})
    found = sentences(dataset, token_column="form", tag_column="x", pos_column="upos")
    assert [sentence[:2] for sentence in found] == EXPECTED
    assert [sentence.pos_tags for sentence in found] == [["P", "P", "V"], [], ["N"]]


@pytest.mark.parametrize("name", ["pos_tags", "pos"])
@pytest.mark.parametrize("kind", [ClassLabel(names=["N", "V"]), Value("string")])
def test_parts_of_speech_are_read_unless_disabled(name, kind):
    values = [[0, 1], None] if isinstance(kind, ClassLabel) else [["N", "V"], None]
    rows = {"tokens": [["a", "b"], ["c"]], "tags": [["O", "O"], ["O"]], name: values}
    features = Features({"tokens": List(Value("string")), "tags": List(Value("string")), name: List(kind)})
    dataset = Dataset.from_dict(rows, features=features)
    assert [sentence.pos_tags for sentence in sentences(dataset)] == [["N", "V"], None]
    assert [sentence.pos_tags for sentence in sentences(dataset, pos_column="none")] == [None, None]


def test_document_ids_are_strings_or_integers(table):
    for names in (["a", None, "b"], [7, None, 8]):
        found = sentences(table.add_column("doc_id", names))
        assert [sentence.doc_id for sentence in found] == [None if name is None else str(name) for name in names]
    assert [sentence.doc_id for sentence in sentences(table)] == [None] * 3


def test_sentences_have_row_numbers(table):
    found = sentences(table)
    assert [sentence.line for sentence in found] == [0, 1, 2]
    assert found[0].place(2) == "owner/name, train, row 0"


def test_sorted_filtered_and_formatted_datasets_are_supported(table):
    assert read(table.select([2, 0])) == [EXPECTED[2], EXPECTED[0]]
    assert read(table.with_format("numpy")) == EXPECTED
    assert read(datasets.concatenate_datasets([table, table])) == EXPECTED * 2
    assert read(table.select([])) == []


def test_only_needed_columns_are_read(table, monkeypatch):
    seen = set()
    read_lists = tables._Lists.read

    def watch(column, batch, row):
        seen.update(batch.column_names)
        return read_lists(column, batch, row)

    monkeypatch.setattr(tables._Lists, "read", watch)
    assert read(table.add_column("image", [b"x"] * 3)) == EXPECTED
    assert seen == {"tokens", "ner_tags"}


WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
PAIRS = st.tuples(WORDS, st.integers(0, 2), st.sampled_from(["N", "V"]))


@given(
    rows=st.lists(st.lists(PAIRS, max_size=5), max_size=12),
    size=st.integers(1, 13),
    order=st.randoms(use_true_random=False),
)
def test_batch_size_does_not_change_the_rows(rows, size, order):
    columns = {
        "tokens": [[pair[0] for pair in row] for row in rows],
        "ner_tags": [[pair[1] for pair in row] for row in rows],
        "pos": [[pair[2] for pair in row] if len(row) != 1 else None for row in rows],
    }
    dataset = Dataset.from_dict(columns, features=Features({**FEATURES, "pos": List(Value("string"))}))
    indices = list(range(len(rows)))
    order.shuffle(indices)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_ROWS", size)
        found = sentences(dataset.select(indices))
    assert [sentence.line for sentence in found] == list(range(len(rows)))
    for sentence, row in zip(found, dataset.select(indices), strict=True):
        assert sentence.tokens == row["tokens"]
        assert sentence.tags == spelt([row["ner_tags"]])[0]
        assert sentence.pos_tags == row["pos"]


# --- Faults of rows and columns ---------------------------------------------------------------------------------------

GOOD = {"tokens": [["a"], ["b", "c"]], "tags": [["O"], ["O", "O"]]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"form": [["a"]], "tags": [["O"]]},
            ": expected words in a column tokens or words, found the columns form, tags; "
            "rename one, or name it as token_column.",
        ),
        (
            {"words": [["a"]], "x": [["O"]]},
            ": expected tags in a column ner_tags or tags or labels, found the columns words, x; "
            "rename one, or name it as tag_column.",
        ),
        (
            GOOD | {"tags": [[0], [0, 1]]},
            ": the column tags holds numbers without names; "
            "make it a List(ClassLabel), name them in tag_names, or write strings.",
        ),
        (
            GOOD | {"pos_tags": [[0], [0, 1]]},
            ": the column pos_tags holds numbers without names; "
            "make it a List(ClassLabel), or give 'none' as pos_column.",
        ),
        (GOOD | {"tokens": ["a", "b c"]}, ": the column tokens is a Value('string'); make it one of lists of strings."),
        (
            GOOD | {"tokens": [[0.5], [1.0, 2.0]]},
            ": the column tokens is a List(Value('float64')); make it one of lists of strings.",
        ),
        (GOOD | {"doc_id": [0.5, 1.0]}, ": the column doc_id holds Value('float64'); make it one of strings."),
        (GOOD | {"tags": [["O"], ["O"]]}, ", row 1: 2 tokens but 1 tags; give every token one tag."),
        (
            GOOD | {"pos": [["N"], ["N"]]},
            ", row 1: 2 tokens but 1 parts of speech; give every token one, or leave them out.",
        ),
        (GOOD | {"tokens": [["a"], None]}, ", row 1: the column tokens holds nothing; fill or remove the row."),
        (GOOD | {"tags": [None, ["O", "O"]]}, ", row 0: the column tags holds nothing; fill or remove the row."),
        (GOOD | {"tokens": [["a"], ["b", None]]}, ", row 1: the column tokens holds nothing at index 1; correct it."),
        (GOOD | {"tags": [[None], ["O", "O"]]}, ", row 0: the column tags holds nothing at index 0; correct it."),
        (
            GOOD | {"tokens": [["a"], ["", "c"]]},
            ", row 1: the column tokens holds an empty string at index 0; correct it.",
        ),
        (GOOD | {"tags": [["O"], ["O", ""]]}, ", row 1: the column tags holds an empty string at index 1; correct it."),
    ],
)
def test_invalid_values_raise_with_their_row(columns, message):
    with pytest.raises(DataError) as error:
        read(Dataset.from_dict(columns))
    assert str(error.value) == f"owner/name, train{message}"


@pytest.mark.parametrize("number", [-2, 3])
def test_classes_without_a_name_raise_with_their_row(number):
    numbers = pa.array([[0], [0, number]])
    dataset = Dataset(pa.table({"tokens": pa.array(GOOD["tokens"]), "ner_tags": numbers}).cast(FEATURES.arrow_schema))
    with pytest.raises(DataError) as error:
        read(dataset)
    assert str(error.value) == (
        "owner/name, train, row 1: the column ner_tags holds a number beyond its 3 classes at index 1; correct it."
    )


def test_invalid_values_far_into_a_table_raise_with_their_row():
    dataset = Dataset.from_dict({"tokens": [["a"]] * 2600, "tags": [["O"]] * 2500 + [[""]] + [["O"]] * 99})
    with pytest.raises(DataError) as error:
        read(dataset)
    assert str(error.value) == (
        "owner/name, train, row 2500: the column tags holds an empty string at index 0; correct it."
    )


def test_invalid_utf8_raises_with_its_row():
    broken = pa.array([b"a", b"na\xefve"]).view(pa.string())
    tokens = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), broken)
    with pytest.raises(DataError) as error:
        read(Dataset(pa.table({"tokens": tokens, "tags": pa.array([["O"], ["O"]])})))
    assert str(error.value) == (
        "owner/name, train, row 1: the column tokens holds bytes that are no UTF-8 at index 0; correct it."
    )


@pytest.mark.parametrize(
    ("told", "what"),
    [("token_column", "words"), ("tag_column", "tags"), ("pos_column", "parts of speech")],
)
def test_a_missing_named_column_raises(table, told, what):
    with pytest.raises(DataError) as error:
        read(table, **{told: "x"})
    assert str(error.value) == (
        f"owner/name, train: expected {what} in a column x, found the columns tokens, ner_tags; "
        f"rename one, or name it as {told}."
    )


# --- Files and folders ------------------------------------------------------------------------------------------------


def write_parquet(dataset, path):
    dataset.to_parquet(path)


def write_stream(dataset, path):
    arrow = dataset.with_format("arrow")[:]
    with pa.ipc.new_stream(str(path), arrow.schema) as file:
        file.write_table(arrow)


def write_file(dataset, path):
    arrow = dataset.with_format("arrow")[:]
    with pa.ipc.new_file(str(path), arrow.schema) as file:
        file.write_table(arrow)


def write_feather(dataset, path):
    feather.write_feather(dataset.with_format("arrow")[:], str(path), compression="lz4")


FORMS = {"parquet": write_parquet, "stream": write_stream, "file": write_file, "feather": write_feather}
every_form = pytest.mark.parametrize("write", FORMS.values(), ids=FORMS)


@every_form
@pytest.mark.parametrize("name", ["train.parquet", "odd [1] *?.arrow", "train"])
def test_all_file_formats_open_under_any_name(table, tmp_path, monkeypatch, write, name):
    write(table, tmp_path / name)
    # Another file that the name would match as a glob pattern.
    write(table.select([0]), tmp_path / "odd 1 --.arrow")
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / name, (tmp_path / name).relative_to(tmp_path)):
        opened = open_table(path)
        assert opened.features == FEATURES
        assert read(opened) == EXPECTED


@every_form
def test_rewritten_files_are_read_again(table, tmp_path, write):
    write(table, tmp_path / "some")
    assert len(open_table(tmp_path / "some")) == 3
    (tmp_path / "some").unlink()
    write(table.select([2]), tmp_path / "some")
    assert read(open_table(tmp_path / "some")) == EXPECTED[2:]


@every_form
def test_damaged_files_raise_a_one_sentence_error(table, tmp_path, write):
    path = tmp_path / "some"
    write(table, path)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(DataError) as error:
        open_table(path)
    assert str(error.value).startswith(f"{path}: the file is not a valid Parquet or Arrow file (")
    assert str(error.value).endswith("); write or fetch it again.")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"Ann O\n", b"PAR1", b"ARROW1", b"\x80\x04\x95" + b"\0" * 40])
def test_files_of_another_format_raise(tmp_path, content):
    path = tmp_path / "some.arrow"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"some\.arrow: the file is not a valid Parquet or Arrow file \(.+\); write or"):
        open_table(path)


def test_saved_splits_are_read(table, tmp_path):
    DatasetDict({"train": table, "test": table.select([0])}).save_to_disk(tmp_path / "saved")
    opened = open_saved(tmp_path / "saved")
    assert list(opened) == ["train", "test"]
    assert read(opened["train"]) == EXPECTED
    assert read(opened["test"]) == EXPECTED[:1]


def test_a_single_saved_dataset_is_the_training_split(table, tmp_path, monkeypatch):
    table.save_to_disk(tmp_path / "saved", num_shards=2)
    monkeypatch.chdir(tmp_path)
    opened = open_saved((tmp_path / "saved").relative_to(tmp_path))
    assert list(opened) == ["train"]
    assert read(opened["train"]) == EXPECTED


def lose_rows(folder):
    next(folder.glob("*.arrow")).unlink()


def cut_rows(folder):
    path = next(folder.glob("*.arrow"))
    path.write_bytes(path.read_bytes()[:200])


def garble_state(folder):
    (folder / "state.json").write_text("{")


def empty_state(folder):
    (folder / "state.json").write_text(json.dumps({}))


def lose_everything(folder):
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.parametrize("damage", [lose_rows, cut_rows, garble_state, empty_state, lose_everything])
@pytest.mark.parametrize("splits", [True, False])
def test_damaged_folders_raise_a_one_sentence_error(table, tmp_path, damage, splits):
    folder = tmp_path / "saved"
    (DatasetDict({"train": table}) if splits else table).save_to_disk(folder)
    damage(folder / "train" if splits else folder)
    with pytest.raises(DataError) as error:
        open_saved(folder)
    assert str(error.value).startswith(f"{folder}: the folder is not a valid dataset of save_to_disk (")
    assert str(error.value).endswith("); save or fetch it again.")
    assert "\n" not in str(error.value)
