"""Sources of corpora: names, the Hub, paths and folders of splits."""

from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset, DatasetDict
from pandas import DataFrame

from hf_xorner.corpora import DataError, load_corpus
from hf_xorner.corpora import load as hub_source
from hf_xorner.corpora.assemble import words_and_tags

GOOD = "Ann\tB-PER\nleft\tO\n"
ROWS = {"tokens": [["Ann", "left"]], "ner_tags": [["B-PER", "O"]]}


def write(path, content=GOOD):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def words(corpus):
    return {name: [" ".join(row) for row in split["tokens"]] for name, split in corpus.items()}


def sentences(split):
    return [(" ".join(tokens), " ".join(tags)) for tokens, tags in zip(*words_and_tags(split), strict=True)]


# --- Names ------------------------------------------------------------------------------------------------------------


def conll2012(document, *words):
    """A file of one document and one sentence; a word may bring its cell of names, `Ann:(PERSON)`."""
    lines = [f"#begin document ({document}); part 000"]
    for number, word in enumerate(words):
        form, _, name = word.partition(":")
        lines.append(f"{document}   0   {number}   {form}   NN   *   -   -   -   -   {name or '*'}   -")
    return "\n".join([*lines, "", "#end document", ""])


@pytest.fixture
def tree(tmp_path):
    """The layout of CoNLL-2012's release: version, split, language, annotations, genre, source, section."""

    def write(split, language, genre, name, *words):
        folder = tmp_path / "ontonotes5/v4/data" / split / "data" / language / "annotations" / genre / "x" / "00"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.v4_gold_conll").write_text(conll2012(f"{genre}/x/00/{name}", *words))

    write("train", "english", "nw", "x_0002", "we", "saw", "Ann:(PERSON*", "Lee:*)")
    write("train", "english", "bc", "x_0001", "Oslo:(GPE)", "rains")
    write("train", "english", "pt", "pt_0001", "no", "names")
    write("train", "chinese", "nw", "x_0003", "no", "English")
    write("development", "english", "nw", "x_0004", "Bo:(PERSON)", "left")
    write("test", "english", "nw", "x_0005", "in", "Oslo:(GPE)")
    return tmp_path


@pytest.mark.parametrize("inside", ["", "ontonotes5"])
def test_ontonotes_is_the_english_part_with_name_annotations(tree, inside):
    corpus = load_corpus("ontonotes5", tree / inside)
    assert sentences(corpus["train"]) == [("Oslo rains", "B-GPE O"), ("we saw Ann Lee", "O O B-PERSON I-PERSON")]
    assert sentences(corpus["validation"]) == [("Bo left", "B-PERSON O")]
    assert list(corpus["train"]["doc_id"]) == ["bc/x/00/x_0001", "nw/x/00/x_0002"]
    # A path to the same tree loads all of it.
    assert len(load_corpus(tree / "ontonotes5")["train"]) == 4
    with pytest.raises(DataError, match="no files of wnut17 here; put "):
        load_corpus("wnut17", tree)


def test_missing_corpora_raise_with_the_expected_files(tmp_path, monkeypatch):
    def fail(name):
        raise ConnectionError("no route")

    monkeypatch.setattr(hub_source, "load_dataset", fail)
    monkeypatch.delenv("HF_XORNER_CORPORA", raising=False)
    for name in ("conll2003", "wnut17"):
        write(tmp_path / name / "train.txt")
    with pytest.raises(DataError, match=r"no files of ontonotes5 here; put .*_gold_conll"):
        load_corpus("ontonotes5", tmp_path)
    write(tmp_path / "ontonotes5/train/arabic/a.v4_gold_conll")
    with pytest.raises(DataError, match="has no English text"):
        load_corpus("ontonotes5", tmp_path)
    with pytest.raises(DataError, match=r"the Hub has no copy of it; .*ontonotes5 .*HF_XORNER_CORPORA"):
        load_corpus("ontonotes5")
    with pytest.raises(DataError, match=r"lhoestq/conll2003 .* \(no route\); put eng\.train"):
        load_corpus("conll2003")


@pytest.fixture
def hub(monkeypatch):
    """The names that are requested from the Hub, which has one dataset."""
    names = []
    dataset = DatasetDict({"train": Dataset.from_dict({"tokens": [["Ann"]], "ner_tags": [["B-PER"]]})})
    monkeypatch.setattr(hub_source, "load_dataset", lambda name: names.append(name) or dataset)
    return names


def test_named_corpora_without_local_files_are_copies_on_the_hub(hub, monkeypatch):
    monkeypatch.delenv("HF_XORNER_CORPORA", raising=False)
    for name in ("conll2003", "wnut17"):
        assert sentences(load_corpus(name)["train"]) == [("Ann", "B-PER")]
    assert hub == ["lhoestq/conll2003", "manu/wnut_17"]


def test_local_files_of_named_corpora_come_first(hub, monkeypatch, tmp_path):
    write(tmp_path / "conll2003" / "eng.train", "Bo NNP I-NP I-PER\n")
    monkeypatch.delenv("HF_XORNER_CORPORA", raising=False)
    assert sentences(load_corpus("conll2003", tmp_path)["train"]) == [("Bo", "B-PER")]
    with pytest.raises(DataError, match="no files of wnut17 here"):
        load_corpus("wnut17", tmp_path)
    monkeypatch.setenv("HF_XORNER_CORPORA", str(tmp_path))
    assert sentences(load_corpus("conll2003")["train"]) == [("Bo", "B-PER")]
    assert hub == []


@pytest.mark.parametrize(
    ("columns", "split", "message"),
    [
        ({"text": [["a"]], "tags": [["O"]]}, "train", "owner/name, train: .* token_column"),
        ({"tokens": [["a"], ["a", "b"]], "tags": [["O"], ["O"]]}, "test", "owner/name, test, row 1: 2 tokens"),
        ({"tokens": [["a"]], "tags": [["O"]]}, "all", "owner/name: expected splits among .* found all"),
    ],
)
def test_datasets_of_the_hub_need_splits_words_and_tags(monkeypatch, columns, split, message):
    dataset = DatasetDict({split: Dataset.from_dict(columns)})
    monkeypatch.setattr(hub_source, "load_dataset", lambda name: dataset)
    with pytest.raises(DataError, match=message):
        load_corpus("owner/name")


def test_a_configuration_of_a_hub_dataset_follows_a_colon(monkeypatch):
    dataset = DatasetDict({"train": Dataset.from_dict({"tokens": [["a", "b"]], "tags": [["B-Z", "I-Z"]]})})
    monkeypatch.setattr(hub_source, "load_dataset", lambda path, name: {"en": dataset}[name])
    assert sentences(load_corpus("owner/name:en")["train"]) == [("a b", "B-Z I-Z")]


def test_a_missing_configuration_raises_with_their_names(monkeypatch):
    def fail(path):
        raise ValueError("Config name is missing.\nPlease pick one among the available configs: ['en', 'de']")

    monkeypatch.setattr(hub_source, "load_dataset", fail)
    with pytest.raises(DataError, match=r"has the configurations \['en', 'de'\]; name one, as owner/name:NAME"):
        load_corpus("owner/name")


@pytest.mark.parametrize("source", ["conll", "data/train.txt", "./owner/name", "../name", "/some/where", "a/b/c"])
def test_only_names_are_looked_up_on_the_hub(tmp_path, monkeypatch, hub, source):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        load_corpus(source)
    assert hub == []


@pytest.mark.parametrize("folder", ["", "emerging_entities_17-master"])
def test_the_folder_of_wnut17s_shared_task_is_read(tmp_path, folder):
    for name in ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"):
        write(tmp_path / folder / name, "Ann\tB-person\nleft\tO\n")
    write(tmp_path / folder / "wnuteval.py", "import sys")
    write(tmp_path / folder / "emerging.test", "Ann\nleft\n")
    write(tmp_path / folder / "emerging.test.conll", "Ann\tB-person,O\nleft\tO,O\n")
    write(tmp_path / folder / "source" / "stacko.test", "Some text .\n")
    corpus = load_corpus("wnut17", tmp_path)
    assert words(corpus) == {"train": ["Ann left"], "validation": ["Ann left"], "test": ["Ann left"]}


@pytest.mark.parametrize("folder", ["wnut17", "WNUT_17", "wnut2017/data"])
def test_a_named_corpus_may_be_in_a_folder_of_its_name(tmp_path, folder):
    for split in ("train", "dev", "test"):
        write(tmp_path / folder / f"{split}.txt", "Ann\tB-person\nleft\tO\n")
    corpus = load_corpus("wnut17", tmp_path)
    assert words(corpus) == {"train": ["Ann left"], "validation": ["Ann left"], "test": ["Ann left"]}


NUMBERS = {"tokens": [["Ann", "left"], ["Oslo"]], "ner_tags": [[9, 0], [7]]}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_exports_of_wnut17_with_numbers_are_read_with_the_names_of_the_hub(tmp_path, suffix):
    (tmp_path / "wnut_17").mkdir()
    for split in ("train", "validation", "test"):
        path = tmp_path / "wnut_17" / f"{split}.{suffix}"
        rows = Dataset.from_dict(NUMBERS)
        rows.to_json(path) if suffix == "jsonl" else rows.to_parquet(path)
    for split in load_corpus("wnut17", tmp_path).values():
        assert sentences(split) == [("Ann left", "B-person O"), ("Oslo", "B-location")]
    with pytest.raises(ValueError, match="tag_names"):
        load_corpus(tmp_path / "wnut_17")


@pytest.fixture(params=["", "conll2002", "CoNLL-2002", "conll2002/data"])
def two_languages(request, tmp_path):
    """A folder with the files of both languages, which is itself the data_dir, or in it."""
    folder = tmp_path / request.param
    folder.mkdir(parents=True, exist_ok=True)
    for language, words in (("esp", ["Ana", "Berta", "Clara"]), ("ned", ["An", "Bram", "Cas"])):
        for split, word in zip(("train", "testa", "testb"), words, strict=True):
            (folder / f"{language}.{split}").write_text(f"{word} B-PER\n. O\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "words"), [("conll2002-es", "Ana Berta Clara"), ("conll2002-nl", "An Bram Cas")], ids=["es", "nl"]
)
def test_each_language_of_a_shared_folder_is_a_corpus(two_languages, caplog, name, words):
    corpus = load_corpus(name, two_languages)
    # The files of the other language are not listed as ignored.
    assert caplog.messages == []
    splits = [sentences(corpus[split]) for split in ("train", "validation", "test")]
    assert splits == [[(f"{word} .", "B-PER O")] for word in words.split()]


def test_a_missing_language_raises_with_the_expected_files(two_languages):
    for path in two_languages.rglob("ned.*"):
        path.unlink()
    with pytest.raises(DataError, match=r"no files of conll2002-nl here; put ned\.train, .* a folder conll2002 in it"):
        load_corpus("conll2002-nl", two_languages)


# --- Paths ------------------------------------------------------------------------------------------------------------

ODD_NAMES = ["ünï cöde", "gl[o]b*?", "per%20cent", "#hash", "~", "new\nline", "a::b", "{a}"]


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_any_file_or_folder_name_is_supported(tmp_path, monkeypatch, odd):
    folder = tmp_path / odd
    (tmp_path / "other").mkdir()
    write(folder / "x.conll")
    with (folder / "x.parquet").open("wb") as file:
        Dataset.from_dict(ROWS).to_parquet(file)
    if "::" not in odd:  # a chain of locations to `datasets`
        DatasetDict({"train": Dataset.from_dict(ROWS)}).save_to_disk(folder / odd)
    monkeypatch.chdir(tmp_path)
    for path in folder.iterdir():
        for source in (path, str(path), Path("other", "..", odd, path.name)):
            assert words(load_corpus(source)) == {"train": ["Ann left"]}


@pytest.mark.parametrize("source", ["~/x.conll", Path("~/x.conll"), "link.conll"])
def test_paths_may_have_a_tilde_or_be_links(tmp_path, monkeypatch, source):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.conll").symlink_to(write(tmp_path / "x.conll"))
    assert words(load_corpus(source)) == {"train": ["Ann left"]}


@pytest.mark.parametrize("name", ["xor", "wnut17"])
def test_a_folder_with_the_name_of_a_corpus_is_written_as_a_path(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    write(Path(name, "train.conll"))
    assert words(load_corpus(Path(name))) == words(load_corpus(f"./{name}")) == {"train": ["Ann left"]}


def test_loading_writes_nothing(tmp_path):
    write(tmp_path / "train.conll")
    load_corpus(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["train.conll"]


# --- Data in memory ---------------------------------------------------------------------------------------------------


PAIRS = [(["Ann", "left"], ["B-PER", "O"]), (["in", "Oslo", "NA"], ["O", "B-LOC", "O"])]
RECORDS = [{"tokens": tokens, "ner_tags": tags} for tokens, tags in PAIRS]
ROWS_OF_WORDS = [(number, *row) for number, pair in enumerate(PAIRS) for row in zip(*pair, strict=True)]
FRAME_OF_WORDS = DataFrame(ROWS_OF_WORDS, columns=["sentence_id", "word", "tag"])
IN_MEMORY = {
    "pairs": PAIRS,
    "arrays": [tuple(map(np.array, pair)) for pair in PAIRS],
    "records": RECORDS,
    "texts": [["Ann left", {"entities": [(0, 3, "PER")]}], ["in Oslo NA", {"entities": [(3, 7, "LOC")]}]],
    "frame of words": FRAME_OF_WORDS,
    "frame of sentences": DataFrame(RECORDS),
    "frame of tuples": DataFrame([[None, *map(tuple, pair)] for pair in PAIRS], columns=["id", "tokens", "ner_tags"]),
    "dataset": Dataset.from_list(RECORDS),
}


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_data_in_memory_are_corpora(kind):
    corpus = load_corpus(IN_MEMORY[kind])
    assert sentences(corpus["train"]) == [("Ann left", "B-PER O"), ("in Oslo NA", "O B-LOC O")]


@pytest.mark.parametrize(("token", "tag"), [("Wort", "Klasse"), (1, 2)])
def test_columns_of_a_frame_can_be_named_or_numbered(token, tag):
    frame = FRAME_OF_WORDS.rename(columns={"word": "Wort", "tag": "Klasse"})
    assert load_corpus(frame, token_column=token, tag_column=tag)["train"]["tokens"][0] == ["Ann", "left"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "int: not a corpus"),
        ([], "list"),
        (["a.conll", "b.conll"], "'a.conll' is no pair"),
        ([(["a"], ["O", "O"])], "list, record 1: 1 tokens"),
        (FRAME_OF_WORDS.drop(columns="tag"), "DataFrame:1"),
    ],
    ids=["number", "empty", "paths", "lengths", "no tags"],
)
def test_other_objects_are_refused(source, message):
    with pytest.raises(DataError, match=message):
        load_corpus(source)


# --- Splits -----------------------------------------------------------------------------------------------------------


def parts(folder, name, numbers, count):
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        rows = {"tokens": [[f"{name}{number}"]], "ner_tags": [["B-X"]]}
        with (folder / f"{name}-{number:05d}-of-{count:05d}.parquet").open("wb") as file:
            Dataset.from_dict(rows).to_parquet(file)


@pytest.mark.parametrize("inside", ["", "data", "data/plain_text"])
def test_numbered_parts_are_joined_in_order(tmp_path, inside):
    parts(tmp_path / "in" / inside, "train", [2, 0, 1], count=3)
    parts(tmp_path / "in" / inside, "test", [0], count=1)
    assert words(load_corpus(tmp_path / "in")) == {"train": ["train0", "train1", "train2"], "test": ["test0"]}


# --- Which files are read ---------------------------------------------------------------------------------------------


def read_from(folder, names):
    """The first words of each split of a folder of files, of which each begins with its own name."""
    for name in names:
        write(folder / name, GOOD.replace("Ann", name))
    return {split: [row[0] for row in rows["tokens"]] for split, rows in load_corpus(folder).items()}


@pytest.mark.parametrize(
    ("train", "validation", "test", "others"),
    [
        ("a_train.txt", "a_dev.txt", "a_test.txt", []),
        ("a.trn", "a.valid", "a.tst", []),
        ("trainset.txt", "devset.txt", "test_data.txt", []),
        ("x_train.conll", "x_eval.conll", "x_test.conll", []),
        ("train.txt", "dev.txt", "test.txt", ["eval.txt", "old/dev.txt", "test.zip", "train.py"]),
        ("train.txt", "dev.txt", "test.odd", []),
        ("train.conll", "dev.conll", "de-test.tsv", ["train.json", "de-test-unlabeled.tsv", "test-masked.conll"]),
        ("train.csv", "dev.csv", "a.2015.test.csv", ["wiki.test.csv", "small_train.csv"]),
        ("train.conll", "dev.conll", "test.conll", ["train-small.conll", "train (1).conll"]),
        ("splits_train_dev/train.conll", "splits_train_dev/dev.conll", "splits_train_dev/test.conll", []),
    ],
)
def test_splits_are_found_by_the_names_of_files(tmp_path, train, validation, test, others):
    read = read_from(tmp_path, [train, validation, test, *others])
    assert read == {"train": [train], "validation": [validation], "test": [test]}


def test_files_that_are_not_read_are_named_with_the_reason(tmp_path, caplog):
    others = ["README.md", "vocab.txt", "train-test.txt", "train-small.txt", "old/dev.txt", "x_eval.txt"]
    read_from(tmp_path, ["train.txt", *others])
    assert caplog.messages == [
        f"{tmp_path}: x_eval.txt read as the validation split; ignored README.md (no labelled data), "
        "train-test.txt (the name shows several splits), vocab.txt (the name shows no split), "
        "old (the files next to the folder are read), train-small.txt (another file is this split)."
    ]


def test_files_without_splits_are_documents_of_the_training_data(tmp_path, caplog):
    names = [f"part/{letter}.conll" for letter in "abcdefghijk"]
    read = read_from(tmp_path, [*names, "labels.txt", "more.csv", "m/model.safetensors", "m/c.json"])
    assert read == {"train": names}
    assert "and 7 others read as the train split; ignored labels.txt, more.csv" in caplog.text
    assert list(load_corpus(tmp_path)["train"]["doc_id"]) == list("abcdefghijk")


def test_tables_in_subfolders_come_before_other_files(tmp_path, caplog):
    parts(tmp_path / "far", "train", [0], count=1)
    write(tmp_path / "in" / "raw" / "train.txt")
    (tmp_path / "in" / "data").symlink_to(tmp_path / "far")  # links are followed
    assert words(load_corpus(tmp_path / "in")) == {"train": ["train0"]}
    assert caplog.messages == [f"{tmp_path}/in: ignored raw/train.txt (tables or CoNLL-2012 files are read)."]


@pytest.mark.parametrize("inside", [("train", "dev"), ("", "")])
def test_folders_of_brat_are_read(tmp_path, caplog, inside):
    for folder, name in zip(inside, "ab", strict=True):
        write(tmp_path / "in" / folder / f"{name}.txt", "Ann left")
        write(tmp_path / "in" / folder / f"{name}.ann", "T1\tPER 0 3\tAnn\n")
    write(tmp_path / "in" / "annotation.conf", "[entities]\nPER\n")
    write(tmp_path / "in" / inside[0] / "c.txt", "not annotated")
    expected = {"train": ["Ann left"] * 2} if not inside[0] else {"train": ["Ann left"], "validation": ["Ann left"]}
    assert words(load_corpus(tmp_path / "in")) == expected
    (line,) = caplog.messages
    assert "c.txt" in line and "annotation.conf" in line and "a.txt" not in line


def test_a_named_corpus_is_never_another_one(tmp_path):
    write(tmp_path / "train.txt", "Bo NNP I-NP I-MISC\n")
    assert sentences(load_corpus("conll2003", tmp_path)["train"]) == [("Bo", "B-MISC")]
    for name in ("wnut17", "ontonotes5"):
        with pytest.raises(DataError, match=f"entities of MISC, which {name} does not have"):
            load_corpus(name, tmp_path)
