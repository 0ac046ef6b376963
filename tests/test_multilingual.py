"""The multilingual tagger: its scripts, from raw corpora to the word pieces of an encoder, and its page."""

import importlib
from pathlib import Path

import pytest
from conftest import REPOSITORY

import hf_xorner
from hf_xorner import CnnLstmCrfConfig, Tagger, WordCharTokenizer
from hf_xorner.export.web import page_facts

CARD = REPOSITORY / "model_cards" / "multilingual-ner"
PAGE = REPOSITORY / "docs" / "multilingual.md"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    return importlib.import_module


def test_conventions_and_sizes_of_the_pooled_corpora(script, tmp_path, monkeypatch, capsys):
    names = "Herr\tO\nAlt\tB-PER\n\nder\tO\nA.\tB-PER\nGmbH\tI-PER\nBonn\tB-LOC\n\n"
    for corpus, count in (("de-ler", 1), ("de-other", 11), ("fr-one", 2), ("fr-echr", 5)):
        (tmp_path / corpus).mkdir()
        (tmp_path / corpus / "train.iob2").write_text("".join(f"{n}\tO\n{names}" for n in range(count)))
        if corpus != "de-other":  # so a tenth of it is held out
            (tmp_path / corpus / "dev.iob2").write_text(names * 3)
    pooled = tmp_path / "pooled"
    monkeypatch.setattr("sys.argv", ["", f"--data_dir={tmp_path}", f"--output={pooled}", "--kept=6", "--dev=4"])
    script("multilingual_corpora").main()
    # Letters in place of names are unknown, in court decisions alone.
    assert "A.\t?\nGmbH\t?\nBonn\tB-LOC" in (pooled / "parts" / "de-ler.conll").read_text()
    assert "Alt\tB-PER" in (pooled / "parts" / "de-ler.conll").read_text()
    assert "A.\tB-PER\nGmbH\tI-PER" in (pooled / "parts" / "fr-one.conll").read_text()
    # German has about 6 · (22 / 6) ** 0.5 = 11 sentences of 21, and French all of its 4.
    assert len((pooled / "train.conll").read_text().split("\n\n")) == pytest.approx(11 + 4, abs=1)
    assert (pooled / "parts" / "fr-one.conll").read_text().count("\n\n") == 3
    assert not (pooled / "parts" / "fr-echr.conll").exists()


def test_taggers_label_sentences_with_names(script, tmp_path, monkeypatch, tagger, tagger_folder):
    text, output = script("multilingual_text"), tmp_path / "text.conll"
    for language in text.LANGUAGES:
        (tmp_path / f"{language}.txt").write_text("Zeus met birds .\n" + "Zeus met Ann .\n" * 3)
    found = {}
    for sure in ("0", "1.1"):
        options = [f"--text={tmp_path}", f"--output={output}", "--most=2", f"--sure={sure}"]
        monkeypatch.setattr("sys.argv", ["", tagger_folder, tagger_folder, *options])
        text.main()
        sentences = [line.split("\t") for line in output.read_text().split("\n") if line]
        assert [word for word, _ in sentences] == "Zeus met Ann .".split() * 2 * len(text.LANGUAGES)
        found[sure] = {tag for _, tag in sentences}
    assert found["0"] <= set(tagger.model.config.labels) and found["1.1"] == {"?"}


def test_the_word_rule_knows_elision_and_finnish_case_endings(script, tmp_path):
    WordCharTokenizer.from_corpus([["a"]]).save_pretrained(tmp_path)
    for _ in range(2):  # the second time, nothing changes
        script("multilingual").extend_word_rule(tmp_path / "tokenizer.json")
    tokenizer = WordCharTokenizer.from_pretrained(tmp_path)
    expected = (
        "l' Europa dell' Italia d’ Alger qu' il Jusqu' à rock'n'roll O'Neil N'Djamena do n't n't Ankara'da EU:n USA:ssa"
    )
    text = "l'Europa dell'Italia d’Alger qu'il Jusqu'à rock'n'roll O'Neil N'Djamena don't n't Ankara'da EU:n USA:ssa"
    assert tokenizer.tokenize(text) == expected.split()
    # The browser splits texts by the rule of the model, too.
    pattern = page_facts(CnnLstmCrfConfig(), tokenizer)["pattern"]
    assert pattern != page_facts(CnnLstmCrfConfig(), WordCharTokenizer.from_corpus([["a"]]))["pattern"]


def test_the_model_is_found_by_its_name():
    try:
        folder = Path(hf_xorner.multilingual())
    except hf_xorner.DataError as error:
        pytest.skip(str(error))
    assert folder.name == CARD.name
    tagger = Tagger.from_pretrained("multilingual")
    assert tagger.entity_labels == ["LOC", "ORG", "PER"]
    assert [entity.text for entity in tagger("Emmanuel Macron quitta l'Europe.")] == ["Emmanuel Macron", "Europe"]


def test_the_documented_sentences_are_tagged_as_shown():
    table = PAGE.read_text(encoding="utf-8").split("| | sentence | entities |\n|---|---|---|\n")[1].split("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()]
    assert len({language for language, _, _ in rows}) >= 32
    found = Tagger.from_pretrained(str(CARD))([sentence for _, sentence, _ in rows])
    for (_, sentence, shown), entities in zip(rows, found, strict=True):
        assert shown == (", ".join(f"{each.label} {each.text} {each.score:.2f}" for each in entities) or "–"), sentence
