"""Scores and gradients of GRN and its ablations match the equations of chen2019."""

import math
from itertools import cycle

import helpers
import pytest
import reference_grn
import references as ref
import torch
from conftest import LABELS, build_model
from transformers import AutoModelForTokenClassification

from hf_xorner import GrnConfig

LENGTHS = (9, 1, 4, 6)
#: The variants with relations between words.
RELATED = ["grn", "grn dfn", "grn gattn", "grn without context", "grn one branch"]


def reference_features(weights, model, sentence):
    ids, chars = sentence["input_ids"].numpy(), sentence["char_ids"].numpy()
    return ref.word_features(weights, ids, chars, model.config)


def test_dropout_follows_the_relation_layer(tokenizer):
    model = build_model("grn", tokenizer, dropout=0.5, feature_dropout=0.0).train()
    batch = helpers.pad(helpers.random_sentences(model.config, (60,)))
    states = model.encode(batch["input_ids"], batch["char_ids"], torch.tensor([60])).states
    whole = model.eval().encode(batch["input_ids"], batch["char_ids"], torch.tensor([60])).states
    kept = states != 0
    assert 0.35 < kept.float().mean() < 0.65
    helpers.close(states[kept], 2 * whole[kept].detach(), 1e-6)


@pytest.mark.parametrize(("kind", "side"), list(zip(RELATED, cycle(["right", "left"]))), ids="-".join)
def test_norms_of_relations_are_in_word_order(tokenizer, kind, side):
    model = build_model(kind, tokenizer)
    sentences = helpers.random_sentences(model.config, LENGTHS)
    batch = helpers.pad(sentences, side=side)
    weights = helpers.weights_of(model)
    norms = model(**batch, output_attentions=True).attentions[0].squeeze(1).detach()
    for number, sentence in enumerate(sentences):
        length = len(sentence["input_ids"])
        words = slice(0, length) if side == "right" else slice(max(LENGTHS) - length, None)
        features = reference_features(weights, model, sentence)
        expected = reference_grn.relation_norms(weights, model.config, features)
        helpers.close(norms[number, words, words], expected, 1e-5)
        assert norms[number].sum() == pytest.approx(expected.sum(), rel=1e-5)  # padding has none


def test_initial_weights_are_kaiming_uniform():
    config = GrnConfig(vocab_size=500, char_vocab_size=100, id2label=dict(enumerate(LABELS)))
    torch.manual_seed(0)
    model = AutoModelForTokenClassification.from_config(config)
    fan_in = {
        "features.words.weight": 100,
        "features.chars.embedding.weight": 30,
        "features.chars.convolutions.0.weight": 3 * 30,
        **{f"encoder.context.convolutions.{index}.weight": 130 * width for index, width in enumerate((1, 3, 5))},
        "encoder.relation.projection.weight": 2 * 400,
        "classifier.weight": 400,
    }
    for name, parameter in model.named_parameters():
        bound = math.sqrt(6 / fan_in[name]) if name in fan_in else 0
        assert 0.99 * bound <= parameter.abs().max() <= bound, name
