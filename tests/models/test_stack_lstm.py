"""The Stack-LSTM's batched loss matches a reference that processes one action at a time."""

import helpers
import pytest
import references as ref
import torch
from conftest import LABELS, build_model
from reference_stack_lstm import StackLstmReference

from hf_xorner.models.configuration_stack_lstm import StackLstmConfig
from hf_xorner.models.modeling_stack_lstm import StackLstmForTokenClassification
from hf_xorner.models.tags import IGNORED

LENGTHS = (9, 1, 4, 6, 0, 2)
VARIANTS = {
    "Stack-LSTM": {},
    "standard cells": {"cell": "standard"},
    "one layer": {"num_hidden_layers": 1},
    "three layers": {"num_hidden_layers": 3},
}
LABEL_SETS = {"types": LABELS, "plain": ["NOUN", "VERB", "DET"], "single words alone": ["B-GOD", "O"]}
NO_DROPOUT = {"feature_dropout": 0.0, "singleton_dropout": 0.0}


def build(tokenizer, labels=LABELS, seed=0, **fields):
    return build_model("stack-lstm", tokenizer, labels=labels, seed=seed, **NO_DROPOUT, **fields)


def reference_of(model, dtype=None):
    """The reference with the weights of a model, leaves of a graph."""
    prefix = "decoder.scorer."
    weights = {
        name.removeprefix(prefix): values.detach().clone().to(dtype or values.dtype).requires_grad_()
        for name, values in model.named_parameters()
        if name.startswith(prefix)
    }
    return StackLstmReference(weights, model.config)


def labelled_batch(model, unlabelled=False, seed=0):
    """Sentences as one batch, and their labels by name; some words without one where asked for."""
    sentences = helpers.random_sentences(model.config, LENGTHS, seed)
    if unlabelled:
        sentences[0]["labels"][[1, 4, 8]] = IGNORED
        sentences[1]["labels"][:] = IGNORED
    names = [
        [None if label == IGNORED else model.config.labels[label] for label in sentence["labels"].tolist()]
        for sentence in sentences
    ]
    return helpers.pad(sentences, extra=2, labels=True), names


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("unlabelled", [False, True])
def test_loss_and_gradients_match_the_reference(tokenizer, fields, unlabelled):
    number = list(VARIANTS.values()).index(fields)
    labels, training = list(LABEL_SETS.values())[(number + unlabelled) % 3], bool(number % 2)
    model = build(tokenizer, labels, **fields).double().train(training)
    batch, names = labelled_batch(model, unlabelled)
    lengths = batch["attention_mask"].sum(1)
    words = torch.randn(len(lengths), batch["input_ids"].shape[1], model.encoder.output_size, dtype=torch.double)
    words.requires_grad_()
    gold = model.tags.to_inner(batch["labels"])
    losses = model.decoder.negative_log_likelihood(None, gold, lengths, words)

    reference = reference_of(model)
    leaf = words.detach().clone().requires_grad_()
    expected = torch.stack(
        [reference.loss(leaf[row, :length], names[row]) for row, length in enumerate(lengths.tolist())]
    )
    torch.testing.assert_close(losses, expected, rtol=0, atol=1e-9)
    assert losses[3] > 0.1

    weighting = torch.linspace(0.5, 1.5, len(losses), dtype=torch.double)
    (losses * weighting).sum().backward()
    (expected * weighting).sum().backward()
    torch.testing.assert_close(words.grad, leaf.grad, rtol=0, atol=1e-9)
    for name, weight in reference.weights.items():
        gradient = model.decoder.scorer.get_parameter(name).grad
        wanted = torch.zeros_like(weight) if weight.grad is None else weight.grad
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=1e-9, msg=name)


def test_model_loss_matches_the_reference(tokenizer):
    model = build(tokenizer)
    batch, names = labelled_batch(model, unlabelled=True)
    weights = helpers.weights_of(model)
    reference = reference_of(model, torch.double)
    expected = 0.0
    for row, length in enumerate(batch["attention_mask"].sum(1).tolist()):
        if length:
            ids, chars = (batch[name][row, :length].numpy() for name in ("input_ids", "char_ids"))
            words = torch.from_numpy(ref.word_features(weights, ids, chars, model.config))
            expected += reference.loss(words, names[row]).item()
    for model.config.loss_reduction, divisor in (("token", 22 - 4), ("sentence", 4), ("sum", 1)):
        helpers.close(model(**batch).loss, expected / divisor, 1e-4 / divisor)


@pytest.mark.parametrize(("cell", "gates"), [("coupled", 3), ("standard", 4)])
def test_initialisation_matches_the_documentation(tokenizer, cell, gates):
    config = StackLstmConfig(**tokenizer.model_fields(), id2label=dict(enumerate(LABELS)), cell=cell)
    scorer = StackLstmForTokenClassification(config).decoder.scorer
    assert scorer.hidden.weight.shape == (100, 400)
    assert scorer.actions.weight.shape == (2 + 3, 16)
    assert scorer.composition.types.weight.shape == (3 + 1, 20)
    for lstm in (scorer.output, scorer.stack, scorer.buffer, scorer.history):
        assert lstm.weight_hh.shape == (2, gates * 100, 100)
        assert lstm.bias.sum() == (2 * 100 if cell == "standard" else 0)
        assert cell == "coupled" or (lstm.bias[:, 100:200] == 1).all()
        bound = (6 / 200) ** 0.5
        for weight in (lstm.weight_hh, lstm.weight_ch):
            assert weight is None or 0.95 * bound < weight.abs().max() <= bound
        assert lstm.start.any()


def test_new_labels_reinitialise_label_dependent_weights_only(tokenizer, tmp_path):
    model = build(tokenizer)
    model.save_pretrained(tmp_path)
    loaded, report = StackLstmForTokenClassification.from_pretrained(
        tmp_path, id2label={0: "O", 1: "B-NEW", 2: "I-NEW"}, ignore_mismatched_sizes=True, output_loading_info=True
    )
    changed = {key[0].removeprefix("decoder.scorer.") for key in report["mismatched_keys"]}
    assert changed == {"actions.weight", "composition.types.weight", "classifier.weight", "classifier.bias"}
    for name, parameter in loaded.named_parameters():
        assert name.removeprefix("decoder.scorer.") in changed or torch.equal(parameter, model.get_parameter(name))
