import os
from pathlib import Path

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from hf_xorner.corpora import DataError, load_corpus
from hf_xorner.corpora import load as hub_source
from hf_xorner.corpora.splits import split_of

CORPORA = os.environ.get("HF_XORNER_CORPORA")


@pytest.fixture
def folder(tmp_path):
    def write(**files):
        for name, content in files.items():
            (tmp_path / name.replace("__", ".")).write_text(content, encoding="utf-8")
        return tmp_path

    return write


def names(dataset):
    return dataset.features["ner_tags"].feature.names


def tags(dataset):
    labels = names(dataset)
    return [[labels[tag] for tag in row] for row in dataset["ner_tags"]]


def test_folders_load_as_splits_that_share_labels(folder):
    corpus = load_corpus(
        folder(train__txt="Oslo B-LOC\nAnn B-PER\nLee I-PER\n", dev__txt="Bo B-PER\n", test__txt="x O\n")
    )
    assert list(corpus) == ["train", "validation", "test"]
    for split in corpus.values():
        assert split.features == Features(
            {
                "tokens": List(Value("string")),
                "ner_tags": List(ClassLabel(names=["O", "B-LOC", "I-LOC", "B-PER", "I-PER"])),
            }
        )
    assert list(corpus["train"]["tokens"]) == [["Oslo", "Ann", "Lee"]]
    assert tags(corpus["train"]) == [["B-LOC", "B-PER", "I-PER"]]
    assert tags(corpus["validation"]) == [["B-PER"]]


def test_iob1_is_converted_to_iob2(folder):
    source = "a I-X\nb I-X\nc B-X\nd I-Y\ne O\nf I-Y\n\ng I-Y\nh I-Y\n"
    assert tags(load_corpus(folder(some__conll=source) / "some.conll")["train"]) == [
        ["B-X", "I-X", "B-X", "B-Y", "O", "B-Y"],
        ["B-Y", "I-Y"],
    ]


def test_iob2_is_unchanged_and_types_may_contain_hyphens(folder):
    source = "a B-art-work\nb I-art-work\nc B-art-work\nd O\n"
    corpus = load_corpus(folder(some__conll=source) / "some.conll")
    assert tags(corpus["train"]) == [["B-art-work", "I-art-work", "B-art-work", "O"]]


def test_plain_tags_are_unchanged(folder):
    corpus = load_corpus(folder(train__tsv="a\tNN\nb\t-LRB-\n", test__tsv="b\tNN\n"))
    assert names(corpus["train"]) == ["-LRB-", "NN"]
    assert tags(corpus["train"]) == [["NN", "-LRB-"]]


def test_a_split_without_entities_does_not_make_tags_plain(folder):
    corpus = load_corpus(folder(train__txt="a B-X\nb O\n", test__txt="c O\n"))
    assert names(corpus["test"]) == ["O", "B-X", "I-X"]
    assert names(load_corpus(folder(other__txt="a O\n") / "other.txt")["train"]) == ["O"]


def test_without_training_data_labels_come_from_all_splits(folder):
    corpus = load_corpus(folder(dev__txt="a B-X\n", test__txt="b B-Y\n"))
    assert names(corpus["test"]) == ["O", "B-X", "I-X", "B-Y", "I-Y"]


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train.txt", "train"),
        ("wnut17train.conll", "train"),
        ("emerging.dev.conll", "validation"),
        ("emerging.test.annotated", "test"),
        ("eng.train", "train"),
        ("eng.testa", "validation"),
        ("eng.testb", "test"),
        ("valid.tsv", "validation"),
        ("Validation.CoNLL", "validation"),
        ("en_test-v2.iob2", "test"),
        ("test", "test"),
        ("README.md", None),
        ("train.json", "train"),
        ("train.jsonl.gz", "train"),
        ("dev.conll.gz", "validation"),
        ("conll-2012.development.v4_gold_conll", "validation"),
        ("train-00000-of-00002.parquet", "train"),
        ("train.zip", None),
        ("latest.txt", None),
        (".train.txt", None),
        ("train-test.txt", None),
    ],
)
def test_splits_are_recognised_by_file_name(name, split):
    assert split_of(Path(name)) == split


def test_the_annotated_test_file_is_preferred(folder):
    corpus = load_corpus(folder(emerging__test__conll="a O\n", emerging__test__annotated="a B-X\n"))
    assert tags(corpus["test"]) == [["B-X"]]


@pytest.mark.parametrize("inside", ["", "wnut17"])
def test_named_corpora_load_from_data_dir_or_its_subfolder(tmp_path, inside):
    (tmp_path / inside).mkdir(exist_ok=True)
    (tmp_path / inside / "wnut17train.conll").write_text("Ann\tB-person\n")
    assert tags(load_corpus("wnut17", tmp_path)["train"]) == [["B-person"]]


def test_named_corpora_load_from_the_environment_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_XORNER_CORPORA", str(tmp_path))
    (tmp_path / "conll2003").mkdir()
    (tmp_path / "conll2003" / "eng.train").write_text("Ann NNP I-NP I-PER\n")
    assert tags(load_corpus("conll2003")["train"]) == [["B-PER"]]


def test_relative_sources_are_resolved_in_data_dir(folder):
    assert len(load_corpus("some.conll", folder(some__conll="a O\n"))["train"]) == 1


def test_xor_loads_by_name():
    assert load_corpus("xor")["train"].column_names == ["tokens", "ner_tags", "kind", "middle"]


def test_missing_named_corpora_raise_with_the_expected_files(tmp_path, monkeypatch):
    def fail(name):
        raise ConnectionError("no route")

    monkeypatch.setattr(hub_source, "load_dataset", fail)
    monkeypatch.delenv("HF_XORNER_CORPORA", raising=False)
    with pytest.raises(DataError) as error:
        load_corpus("conll2003")
    assert str(error.value) == (
        "conll2003: no folder given, and its copy lhoestq/conll2003 on the Hub cannot be loaded (no route); "
        "put eng.train, eng.testa and eng.testb (or train.txt, dev.txt and test.txt) "
        "into a folder and name it as data_dir, or put them into the folder conll2003 below the one that the variable "
        "HF_XORNER_CORPORA names."
    )
    with pytest.raises(DataError) as error:
        load_corpus("wnut17", tmp_path)
    assert str(error.value) == (
        f"{tmp_path}: no files of wnut17 here; put wnut17train.conll, emerging.dev.conll and emerging.test.annotated "
        "(or train, dev and test.conll) into it, or into a folder wnut17 in it."
    )


@pytest.fixture
def no_hub(monkeypatch):
    def refuse(name):
        raise AssertionError("the Hub was asked")

    monkeypatch.setattr(hub_source, "load_dataset", refuse)


@pytest.mark.parametrize("source", ["conll", "data/train.txt", "./owner/name", "../name", "/some/where", "a/b/c"])
def test_invalid_hub_names_raise_without_network_access(source, tmp_path, monkeypatch, no_hub):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as error:
        load_corpus(source)
    assert str(error.value) == (
        f"{Path(source)}: no such file or folder; expected a path, one of the names xor, wnut17, conll2003, "
        "conll2002-es, conll2002-nl, ontonotes5, or owner/name for a data set on the Hub."
    )


@pytest.mark.parametrize(
    ("tags", "strange", "expected"),
    [
        ("B-X", "X-X", "B- or I- (IOB2)"),
        ("B-X", "B-", "B- or I- (IOB2)"),
        ("B-X", "b-PER", "B- or I- (IOB2)"),
        ("B-X", "PER", "B- or I- (IOB2)"),
        ("B-X E-X", "U-X", "B-, I-, E- or S- (BIOES)"),
        ("B-X U-X L-X", "E-X", "B-, I-, L- or U- (BILOU)"),
        ("B-X M-X E-X S-X", "L-X", "B-, M-, E- or S- (BMES)"),
    ],
)
def test_tags_of_unknown_or_mixed_schemes_raise_with_file_and_line(folder, tags, strange, expected):
    train = "".join(f"a {tag}\n" for tag in tags.split())
    path = folder(train__txt=train, test__txt=f"a O\n\nb O\nc {strange}\n")
    with pytest.raises(DataError) as error:
        load_corpus(path)
    assert str(error.value) == (
        f"{path}/test.txt:4: unknown tag {strange!r}; expected O, or a type after {expected}; "
        "correct it, or say scheme=plain."
    )


@pytest.mark.parametrize(("seen", "unseen"), [("B-X", "I-Y"), ("NN", "VB")])
def test_tags_missing_from_training_raise_with_file_and_line(folder, seen, unseen):
    path = folder(train__txt=f"a {seen}\n", dev__txt=f"a {seen}\n\nb {unseen}\n")
    with pytest.raises(DataError) as error:
        load_corpus(path)
    assert str(error.value) == (
        f"{path}/dev.txt:3: the tag '{unseen}' has no example in the training split; "
        "correct it, or add examples to the training data."
    )


def test_folders_with_no_or_too_many_files_are_refused(folder):
    path = folder(notes__txt="a O\n", more__txt="a O\n")
    with pytest.raises(DataError) as error:
        load_corpus(path)
    assert str(error.value) == (
        f"{path}: no file name tells its split (more.txt, notes.txt); name them train.conll, dev.conll and test.conll."
    )
    path = folder(dev__txt="a O\n", valid__txt="a O\n")
    with pytest.raises(DataError) as error:
        load_corpus(path)
    assert str(error.value) == (
        f"{path}: dev.txt and valid.txt all look like the validation split; keep one of them in the folder."
    )


class TestHub:
    @pytest.fixture
    def hub(self, monkeypatch):
        def give(columns, features=None, split="train"):
            found = DatasetDict({split: Dataset.from_dict(columns, features=features)})
            monkeypatch.setattr(hub_source, "load_dataset", lambda name: found)

        return give

    @pytest.mark.parametrize("column", ["ner_tags", "tags"])
    def test_class_labels_are_renumbered(self, hub, column):
        features = Features({"tokens": List(Value("string")), column: List(ClassLabel(names=["B-Z", "O", "I-Z"]))})
        hub({"tokens": [["a", "b"], []], column: [[0, 2], []]}, features)
        corpus = load_corpus("owner/name")
        assert names(corpus["train"]) == ["O", "B-Z", "I-Z"]
        assert tags(corpus["train"]) == [["B-Z", "I-Z"], []]

    def test_string_tags_are_supported(self, hub):
        hub({"tokens": [["a"]], "tags": [["I-X"]]})
        assert tags(load_corpus("owner/name")["train"]) == [["B-X"]]

    @pytest.mark.parametrize(
        ("columns", "split", "message"),
        [
            (
                {"text": [["a"]], "tags": [["O"]]},
                "train",
                "owner/name, train: expected words in a column tokens or words, found the columns text, tags; "
                "rename one, or name it as token_column.",
            ),
            (
                {"tokens": [["a"]], "tags": [[1]]},
                "train",
                "owner/name, train: the column tags holds numbers without names; make it a List(ClassLabel), "
                "name them in tag_names, or write strings.",
            ),
            (
                {"tokens": [["a"], ["a", "b"]], "tags": [["O"], ["O"]]},
                "test",
                "owner/name, test, row 1: 2 tokens but 1 tags; give every token one tag.",
            ),
            (
                {"tokens": [["a"], ["b"]], "tags": [["B-X"], ["X-X"]]},
                "train",
                "owner/name, train, row 1: unknown tag 'X-X'; expected O, or a type after B- or I- (IOB2); "
                "correct it, or say scheme=plain.",
            ),
            (
                {"tokens": [["a"]], "tags": [["O"]]},
                "all",
                "owner/name: expected splits among train, validation, test, found all.",
            ),
        ],
    )
    def test_invalid_datasets_raise(self, hub, columns, split, message):
        hub(columns, split=split)
        with pytest.raises(DataError) as error:
            load_corpus("owner/name")
        assert str(error.value) == message

    def test_hub_errors_are_reported_in_one_sentence(self, monkeypatch):
        def fail(name):
            raise ConnectionError("no route\nto the host")

        monkeypatch.setattr(hub_source, "load_dataset", fail)
        with pytest.raises(DataError) as error:
            load_corpus("owner/name")
        assert str(error.value) == (
            "owner/name: not a local path, and cannot be loaded from the Hub: no route; check the connection, "
            "or name a local path."
        )


@pytest.mark.skipif(not CORPORA, reason="HF_XORNER_CORPORA names no folder of corpora")
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("wnut17", {"train": (3394, 62730, 1975), "validation": (1009, 15733, 836), "test": (1287, 23394, 1079)}),
        (
            "conll2003",
            {"train": (14041, 203621, 23499), "validation": (3250, 51362, 5942), "test": (3453, 46435, 5648)},
        ),
    ],
)
def test_counts_of_the_real_corpora(name, counts):
    found = {}
    for split, dataset in load_corpus(name).items():
        labels = [label for row in tags(dataset) for label in row]
        assert not any("\ufeff" in token for row in dataset["tokens"] for token in row)
        found[split] = (len(dataset), len(labels), sum(label.startswith("B-") for label in labels))
    assert found == counts
