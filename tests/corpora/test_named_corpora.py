"""Corpora by name: OntoNotes out of the tree of CoNLL-2012, and the copies on the Hub."""

import pytest
from datasets import Dataset, DatasetDict

from hf_xorner.corpora import load as hub_source
from hf_xorner.corpora import load_corpus


def conll2012(document, *words):
    """A file of one document and one sentence; a word may bring its cell of names, `Ann:(PERSON)`."""
    lines = [f"#begin document ({document}); part 000"]
    for number, word in enumerate(words):
        form, _, name = word.partition(":")
        lines.append(f"{document}   0   {number}   {form}   NN   *   -   -   -   -   {name or '*'}   -")
    return "\n".join([*lines, "", "#end document", ""])


def sentences(dataset):
    names = dataset.features["ner_tags"].feature.names
    return [(" ".join(row["tokens"]), " ".join(names[tag] for tag in row["ner_tags"])) for row in dataset]


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
    assert sentences(corpus["test"]) == [("in Oslo", "O B-GPE")]
    assert list(corpus["train"]["doc_id"]) == ["bc/x/00/x_0001", "nw/x/00/x_0002"]
    assert corpus["train"][0]["pos_tags"] == ["NN", "NN"]


def test_a_path_to_the_same_tree_loads_all_of_it(tree):
    corpus = load_corpus(tree / "ontonotes5")
    assert len(corpus["train"]) == 4


def test_ontonotes_may_be_one_file_per_split(tmp_path):
    for split in ("train", "development", "test"):
        text = conll2012("a", "Ann:(PERSON)") + conll2012("b", "x")
        (tmp_path / f"{split}.english.v4_gold_conll").write_text(text)
    corpus = load_corpus("ontonotes5", tmp_path)
    assert list(corpus) == ["train", "validation", "test"]
    for split in corpus.values():
        assert sentences(split) == [("Ann", "B-PERSON"), ("x", "O")]


def test_other_corpora_in_the_folder_are_ignored(tree):
    with pytest.raises(ValueError, match="no files of wnut17 here; put "):
        load_corpus("wnut17", tree)


def test_missing_ontonotes_raises_with_the_expected_files(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_XORNER_CORPORA", raising=False)
    with pytest.raises(ValueError) as error:
        load_corpus("ontonotes5")
    assert str(error.value) == (
        "ontonotes5: no folder given, and the Hub has no copy of it; put the folders train, development and test of "
        "CoNLL-2012's *_gold_conll files into a folder and name it as data_dir, or put them into the folder ontonotes5 "
        "below the one that the variable HF_XORNER_CORPORA names."
    )


@pytest.fixture
def asked(monkeypatch):
    """The names requested from the Hub, which returns one sentence for any name."""
    found = []

    def load_dataset(name, cache_dir):
        found.append(name)
        return DatasetDict({"train": Dataset.from_dict({"tokens": [["Ann"]], "ner_tags": [["B-PER"]]})})

    monkeypatch.setattr(hub_source, "load_dataset", load_dataset)
    return found


@pytest.mark.parametrize(("name", "copy"), [("conll2003", "lhoestq/conll2003"), ("wnut17", "manu/wnut_17")])
@pytest.mark.parametrize("variable", [None, "elsewhere"])
def test_without_local_files_the_hub_copy_is_loaded(asked, monkeypatch, tmp_path, name, copy, variable):
    if variable:
        monkeypatch.setenv("HF_XORNER_CORPORA", str(tmp_path))
    else:
        monkeypatch.delenv("HF_XORNER_CORPORA", raising=False)
    assert sentences(load_corpus(name)["train"]) == [("Ann", "B-PER")]
    assert asked == [copy]


def test_local_files_are_preferred_to_the_hub(asked, monkeypatch, tmp_path):
    (tmp_path / "conll2003").mkdir()
    (tmp_path / "conll2003" / "train.txt").write_text("Bo NNP I-NP I-PER\n")
    assert sentences(load_corpus("conll2003", tmp_path)["train"]) == [("Bo", "B-PER")]
    monkeypatch.setenv("HF_XORNER_CORPORA", str(tmp_path))
    assert sentences(load_corpus("conll2003")["train"]) == [("Bo", "B-PER")]
    with pytest.raises(ValueError, match="no files of wnut17 here"):
        load_corpus("wnut17", tmp_path)
    assert asked == []
