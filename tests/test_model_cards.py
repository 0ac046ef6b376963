"""model_cards/: the complete models can be published, and have the scores of their cards; results.json."""

import json
import re
import shlex

import pytest
from conftest import REPOSITORY
from seqeval.metrics import f1_score

from hf_xorner import Tagger, load_corpus
from hf_xorner.hub import check_folder
from hf_xorner.training.arguments import parse

pytestmark = pytest.mark.usefixtures("forked_offline")

CARDS = REPOSITORY / "model_cards"
FOLDERS = sorted(path for path in CARDS.iterdir() if path.is_dir())
COMPLETE = CARDS / "english-ner-small"


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


@pytest.mark.slow  # loads CoNLL-2003
def test_cards_contain_no_corpus_sentences(corpora):
    cards = [letters((folder / "README.md").read_text(encoding="utf-8")) for folder in FOLDERS]
    for name in ("conll2003", "wnut17"):
        for split in load_corpus(name, corpora).values():
            sentences = [letters("".join(words)) for words in split["tokens"] if len(words) >= 10]
            assert not [sentence for sentence in sentences if any(sentence in card for card in cards)]


def letters(text):
    return re.sub(r"[\W_]+", "", text.casefold())


# Over 2 s, as a new process loads the model.
@pytest.mark.parametrize(
    "folder",
    [
        COMPLETE,
        *(pytest.param(CARDS / name, marks=pytest.mark.slow) for name in ("english-ner-open", "multilingual-ner")),
    ],
    ids=lambda folder: folder.name,
)
def test_the_complete_models_can_be_published(folder):
    """Their code is that of the package, and a process without the package tags the card's sentence."""
    checked = check_folder(folder)
    assert checked.excluded == []
    assert any(entities for _, entities in checked.tagged)


@pytest.mark.slow  # tags a whole split
def test_the_scores_of_the_complete_model_match_its_card(corpora):
    facts = json.loads((COMPLETE / "facts.json").read_text(encoding="utf-8"))
    test = load_corpus("conll2003", corpora)["test"]  # that of the pooled corpus
    names = test.features["ner_tags"].feature.names
    gold = [[names[tag] for tag in tags] for tags in test["ner_tags"]]
    annotations = Tagger.from_pretrained(str(COMPLETE)).annotate(test["tokens"])
    f1 = 100 * f1_score(gold, [annotation.labels for annotation in annotations])
    assert f1 == pytest.approx(facts["scores"]["test"]["f1"], abs=0.005)


def test_the_command_of_every_result_trains_the_model_of_the_result():
    for row in json.loads((CARDS / "results.json").read_text(encoding="utf-8")):
        run, training, _ = parse(shlex.split(row["command"])[2:])
        assert (run.model_type, run.dataset) == (row["model_type"], row["dataset"]), row["work"]
        assert (run.seeds or [training.seed]) == row["seeds"], row["work"]
