"""The loss follows the config's reduction, whole or in parts, and invalid input raises a clear error."""

import logging
from itertools import cycle, product

import chain_oracle as oracle
import helpers
import pytest
import references as ref
import torch
from conftest import ARCHITECTURES, LABELS, REFERENCED, build_model, with_decoders, without_dropout

from hf_xorner import TaggerForTokenClassification

LENGTHS = (4, 2, 1, 3)
INNER = ref.inner_tags(LABELS)


@pytest.fixture
def labelled(variant, tokenizer):
    """Builds a model, and sentences of which the first lacks one label and the third all."""

    def build(**fields):
        model = build_model(variant, tokenizer, **without_dropout(variant), **fields)
        sentences = helpers.random_sentences(model.config, LENGTHS)
        sentences[0]["labels"][0] = helpers.IGNORED
        sentences[2]["labels"][:] = helpers.IGNORED
        return model, sentences

    return build


def reference_losses(model, sentences):
    """The negative log-likelihood of each sentence."""
    losses = []
    for sentence in sentences:
        scores, labels = helpers.reference_scores(model, sentence), sentence["labels"].tolist()
        # The reference reads an unlabelled word as O; then any inner tag is allowed there.
        inner = ref.to_inner(["O" if label == helpers.IGNORED else LABELS[label] for label in labels])
        allowed = [
            [label == helpers.IGNORED or tag == gold for tag in INNER]
            for label, gold in zip(labels, inner, strict=True)
        ]
        if model.config.decoder == "softmax":
            rows = zip(ref.softmax_log_probs(scores), allowed, strict=True)
            losses.append(-sum(oracle.log_sum_exp(row[known]) for row, known in rows))
        else:
            chain = scores, *helpers.crf_of(model, sentence)
            losses.append(-oracle.log_likelihood(*chain, fits=oracle.within(allowed)))
    return losses


#: By what the summed loss of the labelled sentences is divided.
REDUCTIONS = {"token": 8, "sentence": 3, "sum": 1}


@pytest.mark.parametrize(
    ("variant", "decoder", "loss_reduction"),
    [(*pair, reduction) for pair, reduction in zip(product(REFERENCED[::3], ["softmax", "crf"]), cycle(REDUCTIONS))],
    ids="-".join,
)
def test_sentence_losses_are_reduced_by_loss_reduction(labelled, decoder, loss_reduction):
    model, sentences = labelled(decoder=decoder, loss_reduction=loss_reduction)
    loss = model(**helpers.pad(sentences, labels=True)).loss
    helpers.close(loss, sum(reference_losses(model, sentences)) / REDUCTIONS[loss_reduction], 1e-5)


@pytest.mark.parametrize(
    ("variant", "decoder", "loss_reduction"),
    [
        (*pair, reduction)
        for pair, reduction in zip(with_decoders(ARCHITECTURES, ["softmax", "crf"]), cycle(REDUCTIONS))
    ],
    ids="-".join,
)
def test_gradients_of_partial_batches_add_up_to_those_of_the_whole(labelled, decoder, loss_reduction):
    items = 99 if loss_reduction == "sum" else REDUCTIONS[loss_reduction]
    model, sentences = labelled(decoder=decoder, loss_reduction=loss_reduction)
    model.double().train()
    model(**helpers.pad(sentences, labels=True)).loss.backward()
    whole = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    for part in (sentences[:1], sentences[1:3], sentences[3:]):
        model(**helpers.pad(part, labels=True), num_items_in_batch=torch.tensor(items)).loss.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, whole[name], rtol=0, atol=1e-12, msg=name)


MODEL = ARCHITECTURES[0]


@pytest.mark.parametrize("label", [len(LABELS), -1, -101])
def test_labels_outside_the_config_are_refused(tokenizer, label):
    model = build_model(MODEL, tokenizer)
    batch = helpers.pad(helpers.random_sentences(model.config, LENGTHS), labels=True)
    batch["labels"][0, 0] = label
    with pytest.raises(ValueError, match=r"labels must be from 0 to 5 \(O, B-PER, I-PER.* id2label of the data"):
        model(**batch)
    with pytest.raises(ValueError, match=r"labels have the shape \(1, "):
        model(**batch | {"labels": batch["labels"][:1]})


def test_training_without_labels_is_warned_of(tokenizer, caplog, monkeypatch):
    """A loss on the logits trains the wrong labels."""
    monkeypatch.setattr(logging.getLogger("hf_xorner"), "propagate", True)
    logging.Logger.warning_once.cache_clear()  # other tests in this process may have had the warning
    model = build_model(MODEL, tokenizer)
    batch = helpers.pad(helpers.random_sentences(model.config, LENGTHS), labels=False)
    for mode, warned in ((False, 0), (True, 1)):
        model.train(mode)(**batch)
        assert sum("pass labels" in line for line in caplog.messages) == warned


def test_the_base_class_names_the_class_to_use(tokenizer):
    with pytest.raises(TypeError, match="AutoModelForTokenClassification"):
        TaggerForTokenClassification(build_model(MODEL, tokenizer).config)


def test_characters_and_ids_outside_the_config_are_refused(tokenizer):
    model = build_model(MODEL, tokenizer)
    batch = helpers.pad(helpers.random_sentences(model.config, LENGTHS))
    wider = torch.nn.functional.pad(batch["char_ids"], (0, 1))
    with pytest.raises(ValueError, match="char_ids must have 10 ids"):
        model(**batch | {"char_ids": wider})
    for name, size in (("input_ids", model.config.vocab_size), ("char_ids", model.config.char_vocab_size)):
        wrong = batch[name].clone()
        wrong.view(-1)[0] = size
        with pytest.raises(ValueError, match=f"{name} .*below {size}.*use the tokenizer that was saved with the model"):
            model(**batch | {name: wrong})
