"""`hf-xorner data` from the command line."""

import json
from functools import partial

import pytest
from helpers import fault, ok


@pytest.fixture
def run(script):
    """Run the script in this process."""
    return partial(script, "data")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.txt").write_text(
        "-DOCSTART- -X- O\n\nAnn NNP I-PER\nLee NNP B-PER\nleft VBD O\n\nOslo NNP I-LOC\n"
    )
    (folder / "dev.txt").write_text("-DOCSTART- -X- O\n\nBo NNP I-PER\nslept VBD O\n")
    return folder


def test_statistics_are_printed_and_written(run, folder, tmp_path):
    lines = ok(run("stats", folder, "--json", "out.json")).splitlines()
    assert lines[0].split() == ["train", "validation"]
    assert lines[1].split() == ["sentences", "2", "1"]
    figures = json.loads((tmp_path / "out.json").read_text())
    assert figures["train"]["per_type"] == {"LOC": 1, "PER": 2}
    assert figures["train"]["with_document_lines"] == {"sentences": 3, "tokens": 5}
    assert figures["validation"]["unseen"]["entity_mentions"] == 100.0


def test_a_corpus_is_converted_and_back(run, folder, tmp_path):
    written = ok(run("convert", folder, "--to", "conll", "--output", "start", "--as_scheme", "bioes"))
    assert written.splitlines() == ["written: start/train.conll", "written: start/dev.conll"]
    text = (tmp_path / "start" / "train.conll").read_text()
    assert text == "-DOCSTART-\t-X-\tO\n\nAnn\tNNP\tS-PER\nLee\tNNP\tS-PER\nleft\tVBD\tO\n\nOslo\tNNP\tS-LOC\n\n"
    ok(run("convert", "start", "--to", "jsonl", "--output", "json"))
    ok(run("convert", "json", "--to", "conll", "--output", "back", "--as_scheme", "bioes"))
    assert (tmp_path / "back" / "train.conll").read_text() == text


def test_options_for_reading_the_source(run, tmp_path):
    (tmp_path / "tags.tsv").write_text("NN\tdog\nB-x\tcat\n")
    options = ["--scheme", "plain", "--token_column", "1", "--tag_column", "0", "--pos_column", "none"]
    ok(run("convert", "tags.tsv", *options, "--to", "jsonl", "--output", "out"))
    assert (tmp_path / "out" / "train.jsonl").read_text() == '{"tokens": ["dog", "cat"], "ner_tags": ["NN", "B-x"]}\n'


def test_errors_are_one_line(run, folder, tmp_path):
    (tmp_path / "bad.txt").write_text("Bo NNP B-PER\nLee NNP X-PER\n")
    for words, fact in (
        (["convert", "bad.txt", "--to", "jsonl", "--output", "out"], "bad.txt:2: unknown tag 'X-PER'"),
        (["stats", "nowhere.txt"], "nowhere.txt: no such file or folder"),
        (["stats", folder, "--format", "xml"], "format='xml' is unknown; choose one of auto, conll"),
        (["convert", folder, "--to", "brat", "--output", "out"], "to='brat' is unknown; choose one of conll"),
    ):
        assert fact in fault(run(*words))


@pytest.fixture
def corpus(tmp_path):
    """The file of a corpus in the folder `mine`."""
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / "train.conll"
    path.write_text("Ada S-PER\nleft O\n")
    return path


def test_no_output_replaces_an_input(run, corpus, tmp_path):
    ok(run("convert", "mine", "--to", "arrow", "--output", "saved"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "saved" in path.parts}
    for words in (
        ("convert", "mine/train.conll", "--to", "conll", "--output", "mine/../mine", "--overwrite"),
        ("convert", "saved", "--to", "arrow", "--output", "mine/../saved", "--overwrite"),
        ("stats", "mine/train.conll", "--json", "mine/../mine/train.conll"),
    ):
        assert "is an input" in fault(run(*words))
    corpus.parent.rename(tmp_path / "wnut17")
    assert "is an input" in fault(run("stats", "wnut17", "--data_dir", tmp_path, "--json", "wnut17/train.conll"))
    assert (tmp_path / "wnut17" / "train.conll").read_text() == "Ada S-PER\nleft O\n"
    assert before == {path: path.read_bytes() for path in before}


def test_a_folder_with_the_name_of_the_built_in_corpus_is_no_input(run):
    for _ in range(2):
        ok(run("stats", "xor", "--json", "xor/stats.json"))
