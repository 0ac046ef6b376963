"""Resolution of sources to files: unusual names, symlinks, home folders, and layouts of splits."""

import gzip
import os
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict

from hf_xorner.corpora import DataError, load_corpus

ROWS = {"tokens": [["Ann", "left"]], "ner_tags": [["B-PER", "O"]]}
CONTENTS = {
    "x.conll": "Ann\tB-PER\nleft\tO\n",
    "x.jsonl": '{"tokens": ["Ann", "left"], "tags": ["B-PER", "O"]}\n',
    "x.gold_conll": "#begin document (a)\na 0 0 Ann - - - - - - (PER)\na 0 1 left - - - - - - *\n#end document\n",
}


@pytest.fixture
def load(tmp_path):
    def load(source, data_dir=None, **options):
        return load_corpus(source, data_dir, tmp_path / "cache", **options)

    return load


def words(corpus):
    return {name: [" ".join(row) for row in split["tokens"]] for name, split in corpus.items()}


def write(path, content=CONTENTS["x.conll"]):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- Paths ------------------------------------------------------------------------------------------------------------

ODD_NAMES = ["sp ace", "ünï", "gl[o]b*?", "per%20cent", "#hash", "q?x=1&y", "~", "-", "new\nline", "s3:x", "{a}", "..."]


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_any_file_or_folder_name_is_supported(tmp_path, monkeypatch, load, odd):
    folder = tmp_path / odd
    (tmp_path / "other").mkdir()
    for name, content in CONTENTS.items():
        write(folder / name, content)
        write(folder / f"{name}.gz", gzip.compress(content.encode()))
    with (folder / "x.parquet").open("wb") as file:
        Dataset.from_dict(ROWS).to_parquet(file)
    DatasetDict({"train": Dataset.from_dict(ROWS)}).save_to_disk(folder / odd)
    monkeypatch.chdir(tmp_path)
    for path in folder.iterdir():
        for source in (path, str(path), Path("other", "..", odd, path.name)):
            assert words(load(source)) == {"train": ["Ann left"]}


@pytest.mark.parametrize("name", CONTENTS)
def test_paths_with_two_colons_are_not_read_as_urls(tmp_path, load, name):
    assert words(load(write(tmp_path / "a::b" / name, CONTENTS[name]))) == {"train": ["Ann left"]}


def test_tildes_are_expanded_in_all_path_arguments(tmp_path, monkeypatch, load):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "x.conll")
    assert words(load("~/x.conll")) == words(load(Path("~/x.conll"))) == words(load("x.conll", "~"))
    load_corpus("~/x.conll")
    assert list((tmp_path / "my cache").rglob("*.arrow"))
    with pytest.raises(DataError) as error:
        load("~nobody_of_this_name/x.conll")
    assert str(error.value).startswith("~nobody_of_this_name/x.conll: no such file or folder;")


def test_paths_are_not_read_as_corpus_names(tmp_path, monkeypatch, load):
    monkeypatch.chdir(tmp_path)
    for name in ("xor", "wnut17"):
        write(Path(name, "train.conll"))
        assert words(load(Path(name))) == words(load(f"./{name}")) == {"train": ["Ann left"]}


def test_symlinks_are_resolved(tmp_path, load):
    write(tmp_path / "in" / "train.conll")
    (tmp_path / "link.conll").symlink_to(tmp_path / "in" / "train.conll")
    (tmp_path / "folder").symlink_to(tmp_path / "in")
    files = {load(tmp_path / name)["train"].cache_files[0]["filename"] for name in ("link.conll", "folder", "in")}
    assert len(files) == 1
    (tmp_path / "broken.conll").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"broken\.conll: no such file or folder;"):
        load(tmp_path / "broken.conll")


def test_loading_writes_only_to_the_cache(tmp_path, monkeypatch, load):
    write(tmp_path / "in" / "train.conll")
    monkeypatch.chdir(tmp_path / "in")
    load("train.conll")
    load(".")
    assert os.listdir(".") == ["train.conll"]


# --- Splits -----------------------------------------------------------------------------------------------------------


def conll2012(word):
    return CONTENTS["x.gold_conll"].replace("Ann", word)


def test_automatic_annotation_is_ignored_if_gold_annotation_exists(tmp_path, load):
    folder = tmp_path / "data" / "train" / "nw"
    write(folder / "a.v4_gold_conll", conll2012("Ann"))
    write(folder / "a.v4_auto_conll", conll2012("Auto"))
    write(tmp_path / "data" / "test" / "nw" / "b.v9_auto_conll", conll2012("Bo"))
    assert words(load(tmp_path / "data")) == {"train": ["Ann left"], "test": ["Bo left"]}
    write(tmp_path / "flat" / "train.v4_gold_conll", conll2012("Ann"))
    write(tmp_path / "flat" / "train.v4_auto_conll", conll2012("Auto"))
    assert words(load(tmp_path / "flat")) == {"train": ["Ann left"]}


def test_splits_may_be_in_different_folders(tmp_path, load):
    write(tmp_path / "v4/data/train/english/a.v4_gold_conll", conll2012("Ann"))
    write(tmp_path / "v4/data/train/chinese/a.v4_gold_conll", conll2012("An"))
    write(tmp_path / "v9/data/test/english/a.v9_gold_conll", conll2012("Bo"))
    assert words(load(tmp_path)) == {"train": ["An left", "Ann left"], "test": ["Bo left"]}


def parts(folder, name, numbers, of):
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        rows = {"tokens": [[f"{name}{number}"]], "ner_tags": [["B-X"]]}
        with (folder / f"{name}-{number:05d}-of-{of:05d}.parquet").open("wb") as file:
            Dataset.from_dict(rows).to_parquet(file)


@pytest.mark.parametrize("inside", ["", "data", "data/plain_text"])
def test_numbered_parts_are_joined_in_order(tmp_path, load, inside):
    parts(tmp_path / "in" / inside, "train", [2, 0, 1], of=3)
    parts(tmp_path / "in" / inside, "test", [0], of=1)
    assert words(load(tmp_path / "in")) == {"train": ["train0", "train1", "train2"], "test": ["test0"]}


@pytest.mark.parametrize("inside", ["", "data"])
def test_missing_parts_raise(tmp_path, load, inside):
    folder = tmp_path / "in" / inside
    parts(folder, "train", [0, 1, 3], of=5)
    with pytest.raises(DataError) as error:
        load(tmp_path / "in")
    assert str(error.value) == (f"{folder}/train-*-of-00005.parquet: part 00002 is missing; fetch or write all parts.")
    # A part can be loaded alone by its own name.
    assert words(load(folder / "train-00003-of-00005.parquet")) == {"train": ["train3"]}


def test_two_datasets_in_one_folder_are_not_mixed(tmp_path, load):
    for name in "abcdef":
        parts(tmp_path / "in" / name, "train", [0, 1], of=2)
    with pytest.raises(DataError) as error:
        load(tmp_path / "in")
    assert str(error.value) == (
        f"{tmp_path}/in: a/train.parquet and b/train.parquet and c/train.parquet and d/train.parquet and 2 others all "
        "look like the train split; keep one of them in the folder."
    )
    assert words(load(tmp_path / "in" / "c")) == {"train": ["train0", "train1"]}


# --- Which files are read ---------------------------------------------------------------------------------------------


def read_from(tmp_path, load, caplog, names):
    """Which file each split was read from, and the line that was logged."""
    for name in names:
        write(tmp_path / "in" / name, CONTENTS["x.conll"].replace("Ann", name))
    corpus = load(tmp_path / "in")
    found = {name: [row[0] for row in split["tokens"]] for name, split in corpus.items()}
    return found, "\n".join(caplog.messages).removeprefix(f"{tmp_path}/in: ")


@pytest.mark.parametrize(
    ("names", "splits", "line"),
    [
        (["a_train.txt", "a_dev.txt", "a_test.txt"], ["a_train.txt", "a_dev.txt", "a_test.txt"], ""),
        (["a.trn", "a.valid", "a.tst"], ["a.trn", "a.valid", "a.tst"], ""),
        (["trainset.txt", "devset.txt", "test_data.txt"], ["trainset.txt", "devset.txt", "test_data.txt"], ""),
        (
            ["x_train.conll", "x_eval.conll", "x_test.conll"],
            ["x_train.conll", "x_eval.conll", "x_test.conll"],
            "x_eval.conll read as the validation split.",
        ),
        (
            ["train.txt", "dev.txt", "eval.txt"],
            ["train.txt", "dev.txt", "eval.txt"],
            "eval.txt read as the test split.",
        ),
        (
            ["train.txt", "dev.txt", "test.txt", "eval.txt"],
            ["train.txt", "dev.txt", "test.txt"],
            "ignored eval.txt (another file is this split).",
        ),
        (
            ["train.txt", "dev.txt", "test.odd"],
            ["train.txt", "dev.txt", "test.odd"],
            "test.odd read as the test split.",
        ),
        (
            ["train.txt", "dev.txt", "test.txt", "test.odd"],
            ["train.txt", "dev.txt", "test.txt"],
            "ignored test.odd (another file is this split).",
        ),
        (
            ["train.txt", "test.txt", "README.md", "train.py", "vocab.txt", "train-test.txt", "dev.zip", "old/dev.txt"],
            ["train.txt", None, "test.txt"],
            "ignored README.md, train.py (no labelled data), dev.zip (an archive, which is not unpacked), "
            "train-test.txt (the name tells several splits), vocab.txt (the name tells no split), "
            "old (the files beside the folder are read).",
        ),
        (
            ["train.txt", *(f"{letter}.txt" for letter in "abcdefg")],
            ["train.txt"],
            "ignored a.txt, b.txt, c.txt, d.txt and 3 others (the name tells no split).",
        ),
        (["train/x.conll", "dev/x.conll", "test/x.conll"], ["train/x.conll", "dev/x.conll", "test/x.conll"], ""),
        (
            ["train/x.tsv", "valid/x.tsv", "LICENSE"],
            ["train/x.tsv", "valid/x.tsv"],
            "ignored LICENSE (no labelled data).",
        ),
        (["data/en/train.txt", "data/en/testa.txt"], ["data/en/train.txt", "data/en/testa.txt"], ""),
        (
            ["only.conll", "README.txt"],
            ["only.conll"],
            "only.conll read as the train split; ignored README.txt (no labelled data).",
        ),
    ],
)
def test_every_file_is_read_or_named_with_the_reason(tmp_path, load, caplog, names, splits, line):
    expected = dict(zip(["train", "validation", "test"], [[name] for name in splits], strict=False))
    found, logged = read_from(tmp_path, load, caplog, names)
    assert found == {split: names for split, names in expected.items() if names != [None]}
    assert logged == line


def test_all_files_of_a_folder_of_one_split_are_read(tmp_path, load, caplog):
    found, line = read_from(tmp_path, load, caplog, ["train/a.txt", "train/b.txt", "dev/c.txt"])
    assert found == {"train": ["train/a.txt", "train/b.txt"], "validation": ["dev/c.txt"]}
    assert line == ""


def test_tables_in_subfolders_come_before_other_files(tmp_path, load, caplog):
    parts(tmp_path / "in" / "data", "train", [0], of=1)
    write(tmp_path / "in" / "raw" / "train.txt")
    assert words(load(tmp_path / "in")) == {"train": ["train0"]}
    assert caplog.messages == [f"{tmp_path}/in: ignored raw/train.txt (tables or CoNLL-2012 files are read)."]


def test_hidden_files_do_not_count(tmp_path, load, caplog):
    write(tmp_path / "in" / ".git" / "train.txt")
    write(tmp_path / "in" / ".train.txt")
    write(tmp_path / "in" / "x" / "dev.txt")
    assert words(load(tmp_path / "in")) == {"validation": ["Ann left"]}
    assert caplog.messages == []


@pytest.mark.parametrize("inside", [("train", "dev"), ("", "")])
def test_folders_of_brat_are_read(tmp_path, load, caplog, inside):
    for folder, name in zip(inside, "ab", strict=True):
        write(tmp_path / "in" / folder / f"{name}.txt", "Ann left")
        write(tmp_path / "in" / folder / f"{name}.ann", "T1\tPER 0 3\tAnn\n")
    write(tmp_path / "in" / "annotation.conf", "[entities]\nPER\n")
    write(tmp_path / "in" / inside[0] / "c.txt", "not annotated")
    expected = {"train": ["Ann left"] * 2} if not inside[0] else {"train": ["Ann left"], "validation": ["Ann left"]}
    assert words(load(tmp_path / "in")) == expected
    (line,) = caplog.messages
    assert "c.txt" in line and "annotation.conf" in line and "a.txt" not in line
