"""GRN and what chen2019 compares it with compute what the equations say, and so do their gradients."""

import helpers
import numpy as np
import pytest
import reference_grn
import references as ref
import torch
from conftest import LABELS, build_model

LENGTHS = (9, 1, 4, 6)
SHORT_LENGTHS = (4, 1, 3)  # the reference tries all paths of a CRF
VARIANTS = {
    "GRN": {},
    "DFN": {"relation": "direct"},
    "GAttN": {"relation": "scalar_gate"},
    "without relation": {"relation": "none"},
    "without context": {"context_widths": ()},
    "one branch": {"context_widths": (3,)},
    "neither": {"relation": "none", "context_widths": ()},
}
NO_DROPOUT = {"dropout": 0.0, "feature_dropout": 0.0}
INNER = ref.inner_tags(LABELS)


@pytest.fixture(params=VARIANTS)
def fields(request):
    return VARIANTS[request.param]


def reference_features(weights, model, sentence):
    ids, chars = sentence["input_ids"].numpy(), sentence["char_ids"].numpy()
    return ref.word_features(weights, ids, chars, config=model.config)


def reference_scores(weights, model, sentence):
    states = reference_grn.encode(weights, model.config, reference_features(weights, model, sentence))
    return states @ weights["classifier.weight"].T + weights["classifier.bias"]


def reference_loss(weights, model, sentences):
    """The summed negative log-likelihood under a CRF that has transitions and nothing else (chen2019)."""
    loss = 0.0
    for sentence in sentences:
        gold = [INNER.index(tag) for tag in ref.to_inner([LABELS[label] for label in sentence["labels"].tolist()])]
        allowed = np.arange(len(INNER)) == np.array(gold)[:, None]
        nothing = np.zeros(len(INNER))
        chain = (weights["decoder.transitions"], nothing, nothing)
        loss -= ref.log_likelihood_of_set(reference_scores(weights, model, sentence), *chain, allowed)
    return loss


@pytest.mark.parametrize("seed", [0, 1])
def test_inner_scores_are_those_of_the_equations(tokenizer, fields, seed):
    model = build_model("grn", tokenizer, seed=seed, **fields)
    sentences = helpers.random_sentences(model.config, LENGTHS, seed)
    scores, _ = helpers.score(model, helpers.pad(sentences, extra=2))
    weights = helpers.weights_of(model)
    for row, sentence in zip(scores, sentences, strict=True):
        helpers.close(row[: len(sentence["input_ids"])], reference_scores(weights, model, sentence), 1e-5)


def test_branches_may_have_any_odd_width(tokenizer):
    model = build_model("grn", tokenizer, context_widths=(7, 1))
    sentences = helpers.random_sentences(model.config, LENGTHS)
    scores, _ = helpers.score(model, helpers.pad(sentences))
    weights = helpers.weights_of(model)
    for row, sentence in zip(scores, sentences, strict=True):
        helpers.close(row[: len(sentence["input_ids"])], reference_scores(weights, model, sentence), 1e-5)


def test_the_loss_and_its_gradients_are_those_of_the_equations(tokenizer, fields):
    """Gradients against finite differences of the equations, each parameter in a direction of its own."""
    model = build_model("grn", tokenizer, **fields, **NO_DROPOUT).double().train()
    sentences = helpers.random_sentences(model.config, SHORT_LENGTHS)
    loss = model(**helpers.pad(sentences, labels=True)).loss
    loss.backward()
    weights = helpers.weights_of(model)
    helpers.close(loss, reference_loss(weights, model, sentences), 1e-5)
    rng = np.random.default_rng(0)
    for name, parameter in model.named_parameters():
        direction = rng.normal(size=parameter.shape)
        if name == "features.words.weight":
            direction[0] = 0  # padding has no gradient
        slope = slope_of(lambda w: reference_loss(w, model, sentences), weights, name, direction)
        assert (parameter.grad.numpy() * direction).sum() == pytest.approx(slope, rel=1e-4, abs=1e-4), name


def slope_of(function, weights, name, direction, step=1e-6):
    """How fast a function of the weights grows where one of them moves in a direction, by central differences."""
    ahead, behind = ({**weights, name: weights[name] + sign * step * direction} for sign in (1, -1))
    return (function(ahead) - function(behind)) / (2 * step)


def test_long_sentences_score_as_short_ones_do(tokenizer, fields):
    """Beyond every slice, and beside short ones."""
    model = build_model("grn", tokenizer, **fields)
    sentences = helpers.random_sentences(model.config, (400, 3, 120))
    together, _ = helpers.score(model, helpers.pad(sentences))
    for row, sentence in zip(together, sentences, strict=True):
        alone, _ = helpers.score(model, helpers.pad([sentence]))
        helpers.close(row[: len(sentence["input_ids"])], alone[0].detach(), 1e-5)
    weights = helpers.weights_of(model)
    helpers.close(together[2, :120], reference_scores(weights, model, sentences[2]), 1e-5)


def test_scores_do_not_depend_on_what_padding_holds(tokenizer, fields):
    model = build_model("grn", tokenizer, **fields)
    sentences = helpers.random_sentences(model.config, LENGTHS)
    batch = helpers.pad(sentences)
    expected, _ = helpers.score(model, batch)
    padding = batch["attention_mask"] == 0
    batch["input_ids"] = batch["input_ids"].masked_fill(padding, 3)
    batch["char_ids"] = batch["char_ids"].masked_fill(padding.unsqueeze(-1), 4)
    scores, _ = helpers.score(model, batch)
    helpers.close(scores[~padding], expected[~padding].detach(), 1e-6)


def test_sentences_without_words_have_no_scores_and_no_loss(tokenizer, fields):
    model = build_model("grn", tokenizer, **fields).train()
    empty = torch.zeros(2, 0, dtype=torch.long)
    chars = torch.zeros(2, 0, model.config.max_word_chars, dtype=torch.long)
    loss = model(empty, chars, labels=empty).loss
    assert loss.item() == 0
    assert model.eval()(empty, chars).logits.shape == (2, 0, len(LABELS))


def test_dropout_follows_the_relation_layer(tokenizer):
    model = build_model("grn", tokenizer, dropout=0.5, feature_dropout=0.0).train()
    batch = helpers.pad(helpers.random_sentences(model.config, (60,)))
    states = model.encode(batch["input_ids"], batch["char_ids"], torch.tensor([60])).states
    whole = model.eval().encode(batch["input_ids"], batch["char_ids"], torch.tensor([60])).states
    kept = states != 0
    assert 0.35 < kept.float().mean() < 0.65
    helpers.close(states[kept], 2 * whole[kept].detach(), 1e-6)


# Norms of relations


@pytest.mark.parametrize("side", ["right", "left"])
def test_norms_of_relations_stand_in_the_order_of_the_words(tokenizer, fields, side):
    if fields.get("relation") == "none":
        fields = {}
    model = build_model("grn", tokenizer, **fields)
    sentences = helpers.random_sentences(model.config, LENGTHS)
    batch = helpers.pad(sentences, side=side)
    weights = helpers.weights_of(model)
    norms = model.relation_norms(**batch_inputs(batch))
    scaled = model.relation_norms(**batch_inputs(batch), scaled=True)
    for number, sentence in enumerate(sentences):
        length = len(sentence["input_ids"])
        words = slice(0, length) if side == "right" else slice(max(LENGTHS) - length, None)
        features = reference_features(weights, model, sentence)
        expected = reference_grn.relation_norms(weights, model.config, features)
        helpers.close(norms[number, words, words], expected, 1e-5)
        assert norms[number].sum() == pytest.approx(expected.sum(), rel=1e-5)  # padding has none
        extent = (expected.max() - expected.min()) or 1.0
        helpers.close(scaled[number, words, words], (expected - expected.min()) / extent, 1e-5)


def batch_inputs(batch):
    return {name: batch[name] for name in ("input_ids", "char_ids", "attention_mask")}


def test_norms_of_no_words_are_none(tokenizer):
    model = build_model("grn", tokenizer)
    empty = torch.zeros(1, 0, dtype=torch.long)
    chars = torch.zeros(1, 0, model.config.max_word_chars, dtype=torch.long)
    assert model.relation_norms(empty, chars, scaled=True).shape == (1, 0, 0)


def test_models_without_relations_have_no_norms(tokenizer):
    model = build_model("grn", tokenizer, relation="none")
    batch = helpers.pad(helpers.random_sentences(model.config, LENGTHS))
    assert model(**batch, output_attentions=True).attentions is None
    with pytest.raises(ValueError, match="no relation norms"):
        model.relation_norms(**batch_inputs(batch))


# The config


def test_defaults_are_those_of_the_paper(tokenizer):
    config = type(build_model("grn", tokenizer).config)()
    assert (config.hidden_size, tuple(config.context_widths), config.relation) == (400, (1, 3, 5), "gated")
    assert (config.dropout, config.feature_dropout, config.max_word_chars) == (0.5, 0.5, 45)
    assert (config.decoder, config.crf_boundaries, config.loss_reduction) == ("crf", "none", "sum")
