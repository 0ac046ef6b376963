"""model_cards/: the cards match their configs and results; one complete model reproduces the scores of its card."""

import json
import re
import shlex

import pytest
import torch
from conftest import ARCHITECTURES, REPOSITORY
from huggingface_hub import ModelCard
from seqeval.metrics import f1_score
from transformers import AutoConfig, AutoModelForTokenClassification

from hf_xorner import Tagger, load_corpus
from hf_xorner.hub import check_folder
from hf_xorner.registration import CONFIGS
from hf_xorner.training import parse
from hf_xorner.training.arguments import DERIVED

pytestmark = pytest.mark.usefixtures("forked_offline")

CARDS = REPOSITORY / "model_cards"
FOLDERS = sorted(path for path in CARDS.iterdir() if path.is_dir())
COMPLETE = CARDS / "english-ner-small"
#: Fields of a config that follow from the training data, the vectors or the encoder.
FOLLOWING = {
    *DERIVED,
    *("composed_dim", "composed_bits", "context_layers", "context_prefix", "context_suffix", "dtype", "id2label"),
    *("label2id", "max_word_pieces", "pretrained_words", "word_dim", "static_dim", "static_bits"),
}


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


def command_of(folder):
    """The words of the training command on a card."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"## Training it again\n\n```bash\n(.*)\n```", text)
    return shlex.split(command)


def test_the_card_matches_the_config(folder):
    """The number of parameters on a card is that of its config, whose options are those of the command."""
    config = AutoConfig.from_pretrained(folder)
    assert config.model_type in ARCHITECTURES
    with torch.device("meta"):
        model = AutoModelForTokenClassification.from_config(config)
    assert f"- {model.num_parameters():,} parameters" in (folder / "README.md").read_text(encoding="utf-8")
    words = command_of(folder)
    assert words[:2] in (["python", "scripts/train.py"], ["hf-xorner", "train"])
    if "student-2" in words:  # not in the repository; the model keeps its architecture
        words[words.index("student-2")] = str(folder)
        words += shlex.split("--conditioned_transitions false --crf_emissions true --casing_features true")
    run, _, config_fields = parse(words[2:])
    assert run.model_type == config.model_type
    named = CONFIGS[run.model_type](**{**config_fields, "max_word_pieces": 1}).to_dict()
    saved = config.to_dict()
    ignored = FOLLOWING | {"_name_or_path", "architectures", "auto_map", "transformers_version", "min_score"}
    assert {name: named.get(name) for name in saved if name not in ignored} == {
        name: value for name, value in saved.items() if name not in ignored
    }


def test_the_card_matches_the_results(folder):
    """A score of a card with one seed equals that of the results if both are from the same run."""
    card = ModelCard.load(folder / "README.md")
    assert card.data.eval_results
    scores = {
        result.dataset_split: 100 * result.metric_value
        for result in card.data.eval_results
        if result.metric_type == "f1" and "mean of" not in result.metric_name
    }
    for score in scores.values():
        assert f"{score:.2f}" in card.text
    for row in json.loads((CARDS / "results.json").read_text(encoding="utf-8")):
        if shlex.split(row["command"]) == command_of(folder):
            assert row["f1_mean"] == pytest.approx(scores[row["split"]], abs=0.005)


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
    [COMPLETE, *(pytest.param(CARDS / name, marks=pytest.mark.slow) for name in ("english-ner-open", "multilingual-ner"))],
    ids=lambda folder: folder.name,
)
def test_the_complete_models_can_be_published(folder):
    """Their code is that of the package, and a process without the package tags the card's sentence."""
    checked = check_folder(folder)
    assert checked.excluded == []
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 12_000_000
    assert any(entities for _, entities in checked.tagged)


# Over 2 s, as a whole split is tagged.
def test_the_scores_of_the_complete_model_match_its_card(corpora):
    facts = json.loads((COMPLETE / "facts.json").read_text(encoding="utf-8"))
    test = load_corpus("conll2003", corpora)["test"]  # that of the pooled corpus
    names = test.features["ner_tags"].feature.names
    gold = [[names[tag] for tag in tags] for tags in test["ner_tags"]]
    annotations = Tagger.from_pretrained(str(COMPLETE)).annotate(test["tokens"])
    f1 = 100 * f1_score(gold, [annotation.labels for annotation in annotations])
    assert f1 == pytest.approx(facts["scores"]["test"]["f1"], abs=0.005)
