"""The taggers of lample2016 and ma2016: parameter counts, dropout and initialisation."""

import math

import helpers
import pytest
import torch
from conftest import build_model, without_dropout
from transformers import AutoModelForTokenClassification

from hf_xorner import CnnLstmCrfConfig, LstmCrfConfig
from hf_xorner.models.frozen_vectors import draw_vectors

WORDS, CHARS, TYPES = 1000, 100, 4
NER = ["O", *(f"{position}-{number}" for number in range(TYPES) for position in "BI")]
TAGS = 4 * TYPES + 1


def default_model(config_class, **fields):
    sizes = {"vocab_size": WORDS, "char_vocab_size": CHARS, "id2label": dict(enumerate(NER))}
    torch.manual_seed(0)
    return AutoModelForTokenClassification.from_config(config_class(**sizes, **fields))


def assert_uniform(weights, bound):
    """Up to a bound, and close to it."""
    assert 0.97 * bound <= weights.abs().max() <= bound


def coupled(inputs, size):
    """Weights of one direction: three gates, two peepholes, three biases."""
    return 3 * size * (inputs + size + 1) + 2 * size * size


def standard(inputs, size):
    return 4 * size * (inputs + size + 1)


@pytest.mark.parametrize("cell", [coupled, standard])
def test_default_parameter_counts_match_lample2016(cell):
    model = default_model(LstmCrfConfig, cell=cell.__name__, char_lstm_cell=cell.__name__)
    vectors = WORDS * 100 + CHARS * 25
    encoder = 2 * cell(25, 25) + 2 * cell(100 + 25 + 25, 100) + 100 * (200 + 1)
    crf = TAGS**2 + 2 * TAGS  # no transition to the start, from the end, or from start to end
    assert model.num_parameters() == vectors + encoder + TAGS * (100 + 1) + crf


def test_default_parameter_counts_match_ma2016():
    """Pairs of tags alone are scored, and those of the start."""
    vectors, cnn = WORDS * 100 + CHARS * 30, 30 * (3 * 30 + 1)
    crf = (TAGS**2 + TAGS) * (2 * 200 + 1)
    assert default_model(CnnLstmCrfConfig).num_parameters() == vectors + cnn + 2 * standard(100 + 30, 200) + crf


def recorded_inputs(model, batch):
    """Record in a forward pass: character vectors, inputs of the recurrent layer, and encoder states."""
    seen = {}
    chars = model.features.chars
    with_dropout = chars.vectors

    def vectors(rows):
        seen["chars"] = with_dropout(rows)
        return seen["chars"]

    chars.vectors = vectors
    model.encoder.layer.register_forward_pre_hook(lambda _, arguments: seen.update(inputs=arguments[0]))
    model.encoder.register_forward_hook(lambda *call: seen.update(states=call[2][0]))
    model(**batch)
    return seen


def test_dropout_is_applied_in_three_places(tokenizer):
    names = ("char_dropout", "feature_dropout", "dropout")
    for location, name in zip(("chars", "inputs", "states"), names, strict=True):
        model = build_model("cnn-lstm-crf", tokenizer, **without_dropout("cnn-lstm-crf") | {name: 0.5}).train()
        seen = recorded_inputs(model, helpers.pad(helpers.random_sentences(model.config, [30] * 20), labels=True))
        for where, values in seen.items():
            share = (values == 0).float().mean().item()
            assert share == pytest.approx(0.5 if where == location else 0.0, abs=0.03), (name, where)


@pytest.mark.parametrize("initializer", ["uniform", "glorot"])
def test_initial_values_of_lample2016_are_uniform_by_their_size_or_as_in_the_program(initializer):
    model = default_model(LstmCrfConfig, initializer=initializer)
    features, moves = model.features, model.decoder.transitions
    for weights, (rows, size) in (
        (features.words.weight[1:], (WORDS, 100)),
        (features.chars.embedding.weight, (CHARS, 25)),
        (moves, (TAGS + 2, TAGS + 2) if initializer == "glorot" else (0, 0)),
    ):
        assert_uniform(weights, math.sqrt(6 / (rows + size) if initializer == "glorot" else 3 / size) if size else 0)
    assert not model.features.words.weight[0].any()
    single = torch.empty(4000)
    draw_vectors(single, model.config)
    assert_uniform(single, math.sqrt(6 / 4001 if initializer == "glorot" else 3 / 4000))


def test_initial_values_of_ma2016_are_those_of_the_paper():
    model = default_model(CnnLstmCrfConfig)
    layer = model.encoder.layer
    assert_uniform(layer.weight_ih, math.sqrt(6 / (200 + 130)))
    assert_uniform(layer.weight_hh, math.sqrt(6 / (200 + 200)))
    assert layer.bias.sum() == layer.bias[:, 200:400].sum() == 2 * 200
    assert_uniform(model.features.words.weight[1:], math.sqrt(3 / 100))
    assert_uniform(model.features.chars.embedding.weight, math.sqrt(3 / 30))
    for scores in (model.decoder.pairs, model.decoder.starts):
        # As of W (400, TAGS + 1, TAGS + 1) in the program.
        assert_uniform(scores.weight, math.sqrt(6 / ((2 * 200 + TAGS + 1) * (TAGS + 1))))
        assert not scores.bias.any()
