"""The result of a sentence does not depend on padding, the padding side, or the rest of the batch."""

import helpers
import pytest
import torch
from conftest import VARIANTS, build_model, has_field, with_decoders

LENGTHS = (5, 1, 9, 3)
TOLERANCE = 1e-6


@pytest.fixture(scope="module", params=with_decoders(VARIANTS, helpers.DECODERS), ids="-".join)
def model(request, tokenizer):
    variant, decoder = request.param
    fields = helpers.DECODERS[decoder] | {"loss_reduction": "sum"}
    if has_field(variant, "attention_window"):  # the longest sentence in windows, the others whole
        fields |= {"attention_window": 6, "attention_overlap": 2}
    return build_model(variant, tokenizer, **fields)


@pytest.fixture(scope="module")
def sentences(model):
    return helpers.random_sentences(model.config, LENGTHS)


@pytest.fixture(scope="module")
def alone(model, sentences):
    """The logits (T, L) and the loss of each sentence as a batch of its own, without any padding."""
    outputs = [model(**helpers.pad([sentence], labels=True)) for sentence in sentences]
    return [output.logits[0] for output in outputs], [output.loss for output in outputs]


def assert_same(logits, expected, mask):
    for row, values, words in zip(logits, expected, mask.bool(), strict=True):
        assert torch.equal(row[words].argmax(-1), values.argmax(-1))
        torch.testing.assert_close(row[words], values, rtol=TOLERANCE, atol=TOLERANCE)


def assert_total(loss, losses):
    torch.testing.assert_close(loss, torch.stack(losses).sum(), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize(("side", "extra"), [("right", 6), ("left", 0)])
def test_results_do_not_depend_on_neighbours_or_padding(model, sentences, alone, side, extra):
    batch = helpers.pad(sentences, extra, side, labels=True)
    output = model(**batch)
    assert_same(output.logits, alone[0], batch["attention_mask"])
    assert_total(output.loss, alone[1])
    assert output.logits.isfinite().all()


def test_the_attention_mask_defaults_to_nonzero_ids(model, sentences):
    batch = helpers.pad(sentences, 2, "left", labels=True)
    with_mask = model(**batch)
    del batch["attention_mask"]
    derived = model(**batch)
    assert torch.equal(with_mask.logits, derived.logits)
    assert torch.equal(with_mask.loss, derived.loss)


@pytest.mark.parametrize(("batch_size", "width", "training"), [(0, 0, True), (0, 4, False), (3, 4, True)])
def test_batches_without_words_are_supported(model, batch_size, width, training):
    nothing = torch.zeros(batch_size, width, dtype=torch.long)
    chars = torch.zeros(batch_size, width, model.config.max_word_chars, dtype=torch.long)
    model.train(training)
    everything = {"output_attentions": True, "output_hidden_states": True, "output_path_log_probs": True}
    output = model(nothing, chars, **everything)
    assert output.logits.shape == (batch_size, width, model.config.num_labels)
    assert output.path_log_probs.shape == (batch_size, width, 2)
    assert all(states.shape[:2] == (batch_size, width) for states in output.hidden_states)
    assert all(weights.shape[::2] == (batch_size, width) for weights in output.attentions or ())
    loss = model(nothing, chars, labels=torch.full_like(nothing, helpers.IGNORED)).loss
    assert loss.item() == 0
    loss.backward()
    model.eval()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_characters_may_end_with_the_longest_word(variant, tokenizer, as_on_a_gpu):
    """On the processor, and on the paths of a GPU."""
    model = build_model(variant, tokenizer)
    sentences = helpers.random_sentences(model.config, (4, 1, 3))
    for sentence in sentences:
        sentence["char_ids"][:, 7:] = 0
    batch = helpers.pad(sentences)
    words, short = batch["attention_mask"].bool(), {**batch, "char_ids": batch["char_ids"][..., :7]}
    for switch in (lambda: None, as_on_a_gpu):
        switch()
        torch.testing.assert_close(model(**short).logits[words], model(**batch).logits[words])
