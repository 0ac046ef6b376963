"""Corpora by name: OntoNotes out of the tree of CoNLL-2012, and the copies on the Hub."""

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from hf_xorner.corpora import DataError, load_corpus
from hf_xorner.corpora import load as hub_source
from hf_xorner.corpora.statistics import corpus_statistics


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


def test_ontonotes_is_missing_from_a_folder_of_other_corpora(tmp_path):
    for name in ("conll2003", "wnut17"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.txt").write_text("Ann B-PER\n")
    with pytest.raises(ValueError, match="no files of ontonotes5 here; put "):
        load_corpus("ontonotes5", tmp_path)


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

    def load_dataset(name):
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


# --- WNUT 2017 -------------------------------------------------------------------------------------------------------


WNUT17 = "Ann\tB-person\n\t\nleft\tO\n"
COLUMNS = {"tokens": [["Ann"], ["left"]], "ner_tags": [[1], [0]]}
FEATURES = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=["O", "B-person"]))})


@pytest.mark.parametrize(
    "names",
    [
        ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"),
        ("emerging_entities_17-master/wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"),
        ("train.txt", "dev.txt", "test.txt"),
        ("train.conll", "dev.conll", "test.conll"),
        ("WNUT-2017/train.txt", "dev.txt", "test.txt"),
        ("wnut17/data/train.txt", "dev.txt", "test.txt"),
        ("wnut_17/train-00000-of-00001.parquet", "validation-00000-of-00001.parquet", "test-00000-of-00001.parquet"),
        (
            "wnut_17/data/train-00000-of-00001.parquet",
            *(f"{name}-00000-of-00001.parquet" for name in ("validation", "test")),
        ),
        ("wnut_17/wnut_17-train.parquet", "wnut_17-validation.parquet", "wnut_17-test.parquet"),
        ("wnut_17/wnut_17/train/0000.parquet", "../validation/0000.parquet", "../test/0000.parquet"),
        ("wnut_17/data/train.jsonl", "valid.jsonl", "test.jsonl"),
        ("wnut_17/train.json", "validation.json", "test.json"),
    ],
)
def test_wnut17_is_found_in_every_layout_it_is_published_in(tmp_path, names):
    first = tmp_path / names[0]
    first.parent.mkdir(parents=True, exist_ok=True)
    for name in (first.name, *names[1:]):
        path = first.parent / name
        path.parent.mkdir(exist_ok=True)
        if path.suffix == ".parquet":
            Dataset.from_dict(COLUMNS, features=FEATURES).to_parquet(path)
        elif path.suffix in (".jsonl", ".json"):
            path.write_text('{"tokens": ["Ann"], "tags": ["B-person"]}\n{"tokens": ["left"], "tags": ["O"]}\n')
        else:
            path.write_text(WNUT17)
    (first.parent / "README.md").write_text("WNUT 17")
    (first.parent / "wnuteval.py").write_text("import sys")
    if "emerging.test.annotated" in names:
        (first.parent / "emerging.test").write_text("Ann\nleft\n")
        (first.parent / "emerging.test.conll").write_text("Ann\tB-person,O\nleft\tO,O\n")
        for name in ("redd.tok.dev", "stacko.dev", "stacko.test", "twitter.gurez"):
            (first.parent / "source").mkdir(exist_ok=True)
            (first.parent / "source" / name).write_text("Some text .\n")
    corpus = load_corpus("wnut17", tmp_path)
    assert list(corpus) == ["train", "validation", "test"]
    for split in corpus.values():
        assert sentences(split) == [("Ann", "B-person"), ("left", "O")]


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
    with pytest.raises(ValueError, match="holds numbers without names"):
        load_corpus(tmp_path / "wnut_17")
    names = "O B-X B-Y B-Z B-1 B-2 B-3 B-4 B-5 B-6"
    found = load_corpus(tmp_path / "wnut_17", tag_names=names)["train"]
    assert sentences(found) == [("Ann left", "B-6 O"), ("Oslo", "B-4")]
    with pytest.raises(ValueError, match=r"train\.\w+.* a number beyond its 2 (names|classes)"):
        load_corpus(tmp_path / "wnut_17", tag_names="O B-X")


def test_the_names_of_t_ner_are_read_from_the_file_beside_the_data(tmp_path):
    folder = tmp_path / "wnut2017" / "dataset"
    folder.mkdir(parents=True)
    for split in ("train", "valid", "test"):
        (folder / f"{split}.json").write_text('{"tokens": ["Ann", "left"], "tags": [0, 2]}\n')
    (folder / "label.json").write_text('{"B-person": 0, "O": 2, "I-person": 1}')
    assert sentences(load_corpus("wnut17", tmp_path)["test"]) == [("Ann left", "B-person O")]
    (folder / "label.json").write_text('{"B-person": 0, "O": 2}')
    with pytest.raises(ValueError, match=r"label\.json: holds no numbers of tags"):
        load_corpus("wnut17", tmp_path)


# --- CoNLL-2002: two languages in one folder -------------------------------------------------------------------------


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
    found = [sentences(corpus[split]) for split in ("train", "validation", "test")]
    assert found == [[(f"{word} .", "B-PER O")] for word in words.split()]


def test_a_missing_language_raises_with_the_expected_files(two_languages):
    for path in two_languages.rglob("ned.*"):
        path.unlink()
    with pytest.raises(DataError, match=r"no files of conll2002-nl here; put ned\.train, .* a folder conll2002 in it"):
        load_corpus("conll2002-nl", two_languages)


# Sentences, tokens and entities of train, dev and test. Each Spanish split has one entity that an I- tag opens.
CONLL2002 = {
    "es": [(8323, 264715, 18797 + 1), (1915, 52923, 4351 + 1), (1517, 51533, 3558 + 1)],
    "nl": [(15806, 202644, 13344), (2895, 37687, 2616), (5195, 68875, 3941)],
}


@pytest.mark.parametrize("language", CONLL2002)
def test_counts_of_conll2002_match_the_shared_task(corpora, tmp_path, language):
    """Of words and tags alone, in UTF-8: the published Dutch files have lines without parts of speech."""
    for path in (corpora / "conll2002").glob("*.t*"):
        lines = [line.split(" ") for line in path.read_bytes().decode("latin-1").split("\n")]
        (tmp_path / path.name).write_text(
            "\n".join(f"{line[0]} {line[-1]}".strip() for line in lines), encoding="utf-8"
        )
    found = corpus_statistics(load_corpus(f"conll2002-{language}", tmp_path, tmp_path / "cache"))
    assert [(row["sentences"], row["tokens"], row["entities"]) for row in found.values()] == CONLL2002[language]
