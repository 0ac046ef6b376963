"""The LSTM-CRF of lample2016: parameter counts, ablations and initialisation."""

import math

import helpers
import pytest
import torch
from conftest import build_model
from transformers import AutoModelForTokenClassification

from hf_xorner import LstmCrfConfig

WORDS, CHARS, TYPES = 1000, 100, 4
NER = ["O", *(f"{position}-{number}" for number in range(TYPES) for position in "BI")]
TAGS = 4 * TYPES + 1


def default_model(**fields):
    sizes = {"vocab_size": WORDS, "char_vocab_size": CHARS, "id2label": dict(enumerate(NER))}
    torch.manual_seed(0)
    return AutoModelForTokenClassification.from_config(LstmCrfConfig(**sizes, **fields))


def number_of_weights(model):
    return sum(parameter.numel() for parameter in model.parameters())


def coupled(inputs, size):
    """Weights of one direction: three gates, two peepholes, three biases."""
    return 3 * size * (inputs + size + 1) + 2 * size * size


def standard(inputs, size):
    return 4 * size * (inputs + size + 1)


@pytest.mark.parametrize("cell", [coupled, standard])
def test_default_parameter_counts_match_the_paper(cell):
    model = default_model(cell=cell.__name__, char_lstm_cell=cell.__name__)
    vectors = WORDS * 100 + CHARS * 25
    encoder = 2 * cell(25, 25) + 2 * cell(100 + 25 + 25, 100) + 100 * (200 + 1)
    crf = (TAGS + 2) ** 2 - 2 * (TAGS + 1) - 2  # no transition to the start, from the end, or from start to end
    assert crf == TAGS**2 + 2 * TAGS
    assert number_of_weights(model) == vectors + encoder + TAGS * (100 + 1) + crf


def test_dropout_applies_to_word_and_character_features(tokenizer):
    model = build_model("lstm-crf", tokenizer, feature_dropout=0.5, singleton_dropout=0.0)
    batch = helpers.pad(helpers.random_sentences(model.config, [40] * 20))
    whole = model.features(batch["input_ids"], batch["char_ids"])
    dropped = model.train().features(batch["input_ids"], batch["char_ids"])
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])
    for part in (kept[..., :12], kept[..., 12:]):  # of words, of characters
        assert part.float().mean().item() == pytest.approx(0.5, abs=0.02)
        assert not torch.equal(part[0, 0], part[0, 1])  # each word independently


@pytest.mark.parametrize("initializer", ["uniform", "glorot"])
def test_initial_values_are_uniform_by_their_size_or_as_in_the_program(initializer):
    model = default_model(initializer=initializer)
    features, moves = model.features, model.decoder.transitions
    for weights, (rows, size) in (
        (features.words.weight[1:], (WORDS, 100)),
        (features.chars.embedding.weight, (CHARS, 25)),
        (moves, (TAGS + 2, TAGS + 2) if initializer == "glorot" else (0, 0)),
    ):
        bound = math.sqrt(6 / (rows + size) if initializer == "glorot" else 3 / size) if size else 0
        assert 0.97 * bound <= weights.abs().max() <= bound
    assert not model.features.words.weight[0].any()
