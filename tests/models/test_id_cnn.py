"""ID-CNN scores and gradients match strubell2017's equations after every iteration."""

from itertools import cycle

import helpers
import numpy as np
import pytest
import reference_encoders
import references as ref
import torch
from conftest import LABELS, build_model

LENGTHS = (9, 1, 4, 6)
VARIANTS = {
    "ID-CNN": {},
    "doubling": {"iterations": 2, "dilations": (1, 2, 4, 8, 1)},
    "wide filters": {"filter_width": 5},
    "characters": {"char_features": "cnn", "casing_features": True, "shape_dim": 0},
}
NO_DROPOUT = {"dropout": 0.0, "feature_dropout": 0.0}
INNER = ref.inner_tags(LABELS)


def build(tokenizer, **fields):
    """Weights so small that nine layers of random numbers neither vanish nor explode."""
    return build_model("id-cnn", tokenizer, **{"spread": 0.3, **fields})


def reference_scores(weights, model, sentence):
    """Scores (T, K) after every iteration."""
    ids, chars = sentence["input_ids"].numpy(), sentence["char_ids"].numpy()
    features = ref.word_features(weights, ids, chars, model.config)
    return [
        states @ weights["classifier.weight"].T + weights["classifier.bias"]
        for states in reference_encoders.id_cnn_iterations(weights, model.config, features)
    ]


def reference_loss(weights, model, sentences):
    """The negative log-likelihood summed over sentences, averaged over iterations."""
    losses = []
    for sentence in sentences:
        gold = [INNER.index(tag) for tag in ref.to_inner([LABELS[label] for label in sentence["labels"].tolist()])]
        for scores in reference_scores(weights, model, sentence):
            losses.append(-ref.softmax_log_probs(scores)[np.arange(len(gold)), gold].sum())
    return sum(losses) / model.config.iterations


@pytest.mark.parametrize(("name", "training"), list(zip(VARIANTS, cycle([False, True]))))
def test_hidden_states_hold_every_iteration(tokenizer, name, training):
    model = build(tokenizer, **VARIANTS[name], **NO_DROPOUT).train(training)
    sentences = helpers.random_sentences(model.config, LENGTHS)
    hidden_states = model(**helpers.pad(sentences), output_hidden_states=True).hidden_states
    assert len(hidden_states) == 2 + model.config.iterations  # features, the first convolution, the iterations
    weights = helpers.weights_of(model)
    for number, sentence in enumerate(sentences):
        expected = reference_scores(weights, model, sentence)
        for states, scores in zip(hidden_states[2:], expected, strict=True):
            words = states[number, : len(sentence["input_ids"])]
            helpers.close(model.classifier(words), scores, 1e-5)


@pytest.mark.parametrize(("loss_reduction", "divisor"), [("token", sum(LENGTHS[1:])), ("sentence", 3), ("sum", 1)])
def test_losses_of_all_iterations_are_averaged(tokenizer, loss_reduction, divisor):
    model = build(tokenizer, loss_reduction=loss_reduction, **NO_DROPOUT).train()
    sentences = helpers.random_sentences(model.config, LENGTHS[1:])
    batch = helpers.pad(sentences, labels=True)
    expected = reference_loss(helpers.weights_of(model), model, sentences) / divisor
    helpers.close(model(**batch).loss, expected, 1e-5)
    helpers.close(model(**batch, num_items_in_batch=torch.tensor(divisor)).loss, expected, 1e-5)


def test_a_new_model_is_initialised_as_the_identity(tokenizer):
    config = build(tokenizer).config
    for convolution in type(build(tokenizer))(config).encoder.block:
        assert torch.equal(convolution.weight[..., 1], torch.eye(config.hidden_size))
        assert convolution.weight.sum() == config.hidden_size
        assert not convolution.bias.any()
