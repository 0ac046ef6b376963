"""The BLSTM-CNNs-CRF of ma2016: dropout and initialisation."""

import math

import helpers
import pytest
import torch
from conftest import build_model, without_dropout
from transformers import AutoModelForTokenClassification

from hf_xorner import CnnLstmCrfConfig

WORDS, CHARS, TYPES = 1000, 100, 4
NER = ["O", *(f"{position}-{number}" for number in range(TYPES) for position in "BI")]
TAGS = 4 * TYPES + 1
STATES = 2 * 200


def default_model(labels=NER, **fields):
    sizes = {"vocab_size": WORDS, "char_vocab_size": CHARS, "id2label": dict(enumerate(labels))}
    torch.manual_seed(0)
    return AutoModelForTokenClassification.from_config(CnnLstmCrfConfig(**sizes, **fields))


def test_initialisation_matches_the_paper():
    model = default_model()
    layer = model.encoder.layer
    for weights, inputs in ((layer.weight_ih, 130), (layer.weight_hh, 200)):
        bound = math.sqrt(6 / (200 + inputs))
        assert 0.97 * bound < weights.abs().max() <= bound
    assert layer.bias.sum() == layer.bias[:, 200:400].sum() == 2 * 200
    for weights, size in ((model.features.words.weight[1:], 100), (model.features.chars.embedding.weight, 30)):
        bound = math.sqrt(3 / size)
        assert 0.97 * bound < weights.abs().max() <= bound
    bound = math.sqrt(6 / ((STATES + TAGS + 1) * (TAGS + 1)))  # of W (STATES, TAGS + 1, TAGS + 1), in the program
    assert bound == pytest.approx(0.0282, abs=1e-4)
    for scores in (model.decoder.pairs, model.decoder.starts):
        assert 0.97 * bound < scores.weight.abs().max() <= bound
        assert not scores.bias.any()


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
    for place, name in zip(("chars", "inputs", "states"), names, strict=True):
        model = build_model("cnn-lstm-crf", tokenizer, **without_dropout("cnn-lstm-crf") | {name: 0.5}).train()
        seen = recorded_inputs(model, helpers.pad(helpers.random_sentences(model.config, [30] * 20), labels=True))
        for where, values in seen.items():
            share = (values == 0).float().mean().item()
            assert share == pytest.approx(0.5 if where == place else 0.0, abs=0.03), (name, where)
