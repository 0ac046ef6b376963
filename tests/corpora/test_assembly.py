"""Building cached datasets from files: repairs, errors, extra columns and caching."""

import os

import pytest
from datasets import List, Value

from hf_xorner.corpora import DataError, load_corpus
from hf_xorner.corpora import assemble as assembly


@pytest.fixture
def write(tmp_path):
    def write(content, name="some.conll"):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write


def tags(dataset):
    names = dataset.features["ner_tags"].feature.names
    return [" ".join(names[tag] for tag in row) for row in dataset["ner_tags"]]


# --- Schemes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a I-X\nb I-X\nc B-X\nd I-Y\n", ["B-X I-X B-X B-Y"]),
        ("a B-X\nb E-X\nc S-X\nd B-X\ne I-X\nf E-X\n", ["B-X I-X B-X B-X I-X I-X"]),
        ("a B-X\nb L-X\nc U-X\n", ["B-X I-X B-X"]),
        ("a B-X\nb M-X\nc E-X\nd S-Y\n", ["B-X I-X I-X B-Y"]),
    ],
)
def test_every_scheme_is_converted_to_iob2(write, content, expected, caplog):
    assert tags(load_corpus(write(content))["train"]) == expected
    assert not caplog.records


def test_the_scheme_is_configurable(write, caplog):
    path = write("a I-X\nb I-X\n")
    assert tags(load_corpus(path, scheme="iob2")["train"]) == ["B-X I-X"]
    assert "1 tags that continued no entity began one" in caplog.text
    assert tags(load_corpus(path, scheme="plain")["train"]) == ["I-X I-X"]
    with pytest.raises(
        DataError, match=r"some\.conll:1: unknown tag 'I-X'; expected O, or a type after B-, M-, E- or S-"
    ):
        load_corpus(path, scheme="bmes")


def test_unknown_options_are_refused(write):
    with pytest.raises(DataError) as error:
        load_corpus(write("a O\n"), scheme="iob3")
    assert "scheme='iob3' is unknown; choose one of auto, plain" in str(error.value)


# --- Repairs ----------------------------------------------------------------------------------------------------------


def test_repairs_are_summarised_in_one_log_line(tmp_path, write, caplog):
    write("a B-X\n\nb I-X\nc I-X\n\nd I-X\n", "train.txt")
    write("e O\nf I-X\n", "test.txt")
    corpus = load_corpus(tmp_path)
    assert tags(corpus["train"]) == ["B-X", "B-X I-X", "B-X"]
    assert tags(corpus["test"]) == ["O B-X"]
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}: repaired: 3 tags that continued no entity began one (first: {tmp_path}/train.txt:3)"
    ]


def test_kinds_of_repairs_are_counted_separately(write, caplog):
    path = write("a B-X\nb O\nc E-X\nd S-X\n")
    assert tags(load_corpus(path)["train"]) == ["B-X O B-X B-X"]
    (record,) = caplog.records
    assert f"1 entities without their last tag were closed (first: {path}:2)" in record.getMessage()
    assert f"1 tags that continued no entity began one (first: {path}:3)" in record.getMessage()


def test_strict_raises_instead_of_repairing(write):
    path = write("a B-X\nb O\nc I-X\nd O\ne I-X\n")
    with pytest.raises(DataError) as error:
        load_corpus(path, strict=True)
    assert str(error.value) == (
        f"{path}:3: 2 tags that continued no entity began one; correct the data, or read them without strict."
    )
    assert len(load_corpus(write("a I-X\nb B-X\n"), strict=True)["train"]) == 1  # valid IOB1


def test_too_many_different_tags_raise(write):
    path = write("".join(f"a O w{number}\n" for number in range(10_001)))
    with pytest.raises(DataError) as error:
        load_corpus(path)
    assert str(error.value) == (
        f"{path}:1: more than 10,000 different tags by now; name the column that holds the tags as tag_column."
    )
    assert tags(load_corpus(path, tag_column=1)["train"])[0][:3] == "O O"


# --- Columns ----------------------------------------------------------------------------------------------------------


def test_parts_of_speech_and_documents_are_columns(write):
    corpus = load_corpus(write("-DOCSTART- -X- O\n\na DT O\nb NN B-X\n\n-DOCSTART- -X- O\n\nc NN O\n"))
    assert corpus["train"].features["pos_tags"] == List(Value("string"))
    assert list(corpus["train"]["pos_tags"]) == [["DT", "NN"], ["NN"]]
    assert list(corpus["train"]["doc_id"]) == ["0", "1"]


def test_implausible_parts_of_speech_are_ignored_unless_the_column_is_named(write):
    many = "".join(f"a lemma{number} O\n" for number in range(129))
    for content in (many, "a _ O\nb _ O\n"):
        path = write(content)
        assert load_corpus(path)["train"].column_names == ["tokens", "ner_tags"]
        assert load_corpus(path, pos_column=1)["train"].column_names == ["tokens", "ner_tags", "pos_tags"]


# --- Caching ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def builds(monkeypatch):
    """The first tokens of the sentences written, one list per build."""
    found = []
    stock = assembly.cached

    def cached(tables, *rest):
        def watched():
            found.append([])
            for table in tables():
                found[-1] += [row["tokens"][0] for row in table.to_pylist()]
                yield table

        return stock(watched, *rest)

    monkeypatch.setattr(assembly, "cached", cached)
    return found


def test_datasets_are_built_once(write, builds, tmp_path):
    path = write("a O\n\nb B-X\n")
    first = load_corpus(path)["train"]
    again = load_corpus(path)["train"]
    assert builds == [["a", "b"]]
    assert list(first) == list(again)
    assert first.cache_files == again.cache_files
    assert str(tmp_path / "cache") in first.cache_files[0]["filename"]


def test_changed_files_are_rebuilt(write, builds):
    path = write("a O\n")
    load_corpus(path)
    time = os.stat(path).st_mtime_ns
    path.write_text("c O\n")
    os.utime(path, ns=(time + 1, time + 1))
    assert list(load_corpus(path)["train"]["tokens"]) == [["c"]]
    assert builds == [["a"], ["c"]]


def test_other_options_and_labels_are_rebuilt(tmp_path, write):
    write("a x B-X\n", "train.txt")
    path = write("b y B-X\n", "test.txt")
    assert load_corpus(tmp_path)["test"].features["ner_tags"].feature.names == ["O", "B-X", "I-X"]
    assert load_corpus(tmp_path, token_column=1)["test"][0]["tokens"] == ["y"]
    write("a x B-X\nc x B-W\n", "train.txt")
    corpus = load_corpus(tmp_path)
    assert corpus["test"].features["ner_tags"].feature.names == ["O", "B-W", "I-W", "B-X", "I-X"]
    assert tags(corpus["test"]) == ["B-X"]
    assert tags(load_corpus(path)["train"]) == ["B-X"]


def test_a_file_that_changes_during_reading_raises(write, monkeypatch):
    path = write("a B-X\n")
    stock = assembly.cached

    def change_first(*arguments):
        path.write_text("a B-Y\n")
        return stock(*arguments)

    monkeypatch.setattr(assembly, "cached", change_first)
    with pytest.raises(DataError) as error:
        load_corpus(path)
    assert str(error.value) == f"{path}: changed while it was read; load it again."


def test_an_unwritable_cache_raises(write, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError) as error:
        load_corpus(write("a O\n") / "cache")
    assert str(error.value).startswith(f"{tmp_path / 'file' / 'cache'}: the cache cannot be written (")
    assert str(error.value).endswith("); name another folder as cache_dir, or by the variable HF_DATASETS_CACHE.")
