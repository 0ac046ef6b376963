"""model_cards/: each folder has the files of a Hub repository; one complete model reproduces the scores of its card."""

import json
import shlex

import pytest
import torch
from conftest import ARCHITECTURES, REPOSITORY
from huggingface_hub import ModelCard
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer

from hf_xorner import Tagger, load_corpus
from hf_xorner.files import file_fingerprint
from hf_xorner.hub import check_folder
from hf_xorner.hub.checks import faults_of_text, read_text, sentences_in
from hf_xorner.hub.publish import MANIFEST
from hf_xorner.registration import CONFIGS
from hf_xorner.training import parse
from hf_xorner.training.arguments import DERIVED
from hf_xorner.training.facts import Facts

pytestmark = pytest.mark.usefixtures("forked_offline")

SHELF = REPOSITORY / "model_cards"
FOLDERS = sorted(path for path in SHELF.iterdir() if path.is_dir())
COMPLETE = SHELF / "english-ner-small"
MEGABYTE = 1_000_000
#: Fields of a config that follow from the training data, the vectors or the encoder.
FOLLOWING = {
    *DERIVED,
    *("composed_dim", "composed_bits", "context_layers", "context_prefix", "context_suffix", "dtype", "id2label"),
    *("label2id", "max_word_pieces", "pretrained_words", "word_dim", "static_dim", "static_bits"),
    # What some of the saved configs have instead of the numbers of bits.
    *("composed_half", "composed_int8", "static_half", "static_int8"),
}


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


def test_every_card_is_of_an_architecture(folder):
    assert Facts.read(folder).config["model_type"] in ARCHITECTURES


def test_the_manifest_lists_the_files(folder):
    """After a change, `sha256sum * > .hf_xorner.sha256` in the folder writes it again."""
    lines = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    listed = dict(reversed(line.split("  ")) for line in lines)
    assert listed.keys() == {path.name for path in folder.iterdir()} - {MANIFEST}
    # The modules are compared with those of the package below.
    assert not [
        name
        for name, digest in listed.items()
        if not name.endswith(".py") and file_fingerprint(folder / name)["sha256"] != digest
    ]


def test_the_card_matches_the_facts(folder):
    facts, card = Facts.read(folder), ModelCard.load(folder / "README.md")
    assert facts.model["sha256"] in card.text
    assert facts.command in card.text
    found = {(one.dataset_split, one.metric_type): one.metric_value for one in card.data.eval_results}
    alone = "mean of" not in card.data.eval_results[0].metric_name
    for split, scores in facts.scores.items():
        for measure in ("precision", "recall", "f1"):
            assert f"{scores[measure]:.2f}" in card.text
            if alone:
                assert found[split, measure] == pytest.approx(scores[measure] / 100, abs=1e-6)


def test_the_command_matches_the_trained_model(folder):
    facts = Facts.read(folder)
    words = shlex.split(facts.command)
    assert words[:2] in (["python", "scripts/train.py"], ["hf-xorner", "train"])
    run, training, config_fields = parse(words[2:])
    assert (run.model_type, run.dataset) == (facts.config["model_type"], facts.data["source"])
    assert training.seed == facts.seed
    config_class = CONFIGS[run.model_type]
    named = config_class(**{**config_fields, "max_word_pieces": 1}).to_dict()
    saved = config_class.from_dict(facts.config).to_dict()
    assert {name: named[name] for name in saved if name not in FOLLOWING} == {
        name: value for name, value in saved.items() if name not in FOLLOWING
    }


def test_config_and_tokenizer_match(folder):
    facts = Facts.read(folder)
    config, tokenizer = AutoConfig.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    with torch.device("meta"):
        model = AutoModelForTokenClassification.from_config(config)
    assert model.num_parameters() == facts.model["parameters"]
    assert config.vocab_size == tokenizer.model_fields()["vocab_size"]
    assert tokenizer.tokenize("Mr. Moreau left") == ["Mr.", "Moreau", "left"]


def test_cards_contain_no_corpus_sentences_and_no_local_paths(folder, corpora):
    facts = Facts.read(folder)
    texts = [read_text(folder, path.name) for path in folder.iterdir() if path.suffix not in (".png", ".safetensors")]
    assert not [fault for text in texts for fault in faults_of_text(text, [])]
    corpus = load_corpus(facts.data["source"], corpora)
    for split in corpus.values():
        assert not sentences_in(texts, split["tokens"])


def test_the_complete_model_passes_the_checks_of_publishing(corpora):
    """It loads in a process without this package, and its card's sentences are tagged there."""
    sentences = [words for name in ("conll2003", "wnut17") for words in load_corpus(name, corpora)["test"]["tokens"]]
    checked = check_folder(COMPLETE, sentences=sentences)
    assert sum(path.stat().st_size for path in COMPLETE.iterdir()) <= 12 * MEGABYTE
    assert [file.name for file in checked.files] == sorted({path.name for path in COMPLETE.iterdir()} - {MANIFEST})
    assert any(found for _, found in checked.tagged)


def test_the_code_of_the_complete_model_matches_the_package():
    """After a change of the package, save the model again."""
    travelling = sorted(COMPLETE.glob("*.py"))
    assert travelling
    for path in travelling:
        assert path.read_bytes() == (REPOSITORY / "hf_xorner" / "models" / path.name).read_bytes(), path.name


def test_the_scores_of_the_complete_model_match_its_card(corpora):
    facts = Facts.read(COMPLETE)
    weights = COMPLETE / facts.model["file"]
    assert file_fingerprint(weights)["sha256"] == facts.model["sha256"]
    test = load_corpus(facts.data["source"], corpora)["test"]
    names = test.features["ner_tags"].feature.names
    tagger = Tagger.from_pretrained(str(COMPLETE))
    found = {(row, one.label, one.start, one.end) for row, one in _entities(tagger, test["tokens"])}
    gold = {
        (row, kind, *_place(words, first, last))
        for row, (words, tags) in enumerate(zip(test["tokens"], test["ner_tags"], strict=True))
        for kind, first, last in _spans([names[tag] for tag in tags])
    }
    f1 = 200 * len(found & gold) / (len(found) + len(gold))
    assert f1 == pytest.approx(facts.scores["test"]["f1"], abs=0.005)


def _entities(tagger, sentences):
    for row, entities in enumerate(tagger.tag(list(sentences))):
        for entity in entities:
            yield row, entity


def _place(words, first, last):
    """The character offsets of words in their sentence, joined by blanks."""
    start = sum(len(word) + 1 for word in words[:first])
    return start, start + len(" ".join(words[first : last + 1]))


def _spans(tags):
    """Well-formed IOB2 to spans, word by word."""
    spans, open_span = [], None
    for position, tag in enumerate([*tags, "O"]):
        if open_span and not tag.startswith("I-"):
            spans.append((*open_span, position - 1))
            open_span = None
        if tag.startswith("B-"):
            open_span = (tag[2:], position)
    return spans


def test_results_match_the_cards(folder):
    """A score of a card with one seed equals that of the results if both are from the same run."""
    facts = Facts.read(folder)
    rows = json.loads((SHELF / "results.json").read_text(encoding="utf-8"))
    for row in rows:
        if row["command"] == facts.command:
            assert row["seeds"] == [facts.seed]
            assert row["f1_mean"] == pytest.approx(facts.scores[row["split"]]["f1"], abs=0.005)
