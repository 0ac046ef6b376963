"""On a GPU, models read no values in Python; these paths give what those of a CPU give."""

import helpers
import pytest
import torch
from conftest import TAG_SCORING, VARIANTS, build_model, with_decoders, without_dropout
from graph_recorder import Recording

from hf_xorner.models import stack_lstm

PAIRS = with_decoders(TAG_SCORING, helpers.DECODERS)
STACKS = [(variant, "softmax") for variant in VARIANTS if variant not in TAG_SCORING]
LENGTHS = (4, 1, 3)


def labelled_batch(model, lengths=LENGTHS):
    return helpers.pad(helpers.random_sentences(model.config, lengths), labels=True)


def step(model, batch, **options):
    """Return the loss of a training step, and the gradients."""
    model.zero_grad()
    loss = model.train()(**batch, **options).loss
    loss.backward()
    return {"loss": loss.detach()} | {
        name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None
    }


@pytest.mark.parametrize("longest_word", [None, 10])
@pytest.mark.parametrize("free", [False, True], ids=["labelled", "in part"])
@pytest.mark.parametrize(("variant", "decoder"), PAIRS + STACKS)
def test_both_paths_give_the_same_loss_and_gradients(tokenizer, as_on_a_gpu, variant, decoder, free, longest_word):
    model = build_model(variant, tokenizer, **without_dropout(variant), **helpers.DECODERS[decoder]).double()
    batch = labelled_batch(model)
    if free:
        batch["labels"][0, 1] = -100
    expected = step(model, batch)
    as_on_a_gpu()
    found = step(model, batch, longest_word=longest_word)
    assert found.keys() == expected.keys()
    for name, values in found.items():
        torch.testing.assert_close(values, expected[name], rtol=1e-10, atol=1e-11, msg=name)


@pytest.mark.parametrize(("variant", "decoder"), PAIRS)
def test_a_training_step_reads_no_values(tokenizer, variant, decoder):
    # Tensors on the meta device have no values, and its models take the paths of a GPU.
    rates = dict.fromkeys(without_dropout(variant), 0.3)
    model = build_model(variant, tokenizer, **rates, **helpers.DECODERS[decoder])
    batch = labelled_batch(model)
    on_meta = {name: values.to("meta") for name, values in batch.items()}
    found = step(model.to("meta"), on_meta, num_items_in_batch=torch.tensor(8.0, device="meta"), longest_word=8)
    assert all(values.is_meta for values in found.values()) and len(found) > 1


@pytest.mark.parametrize(("variant", "decoder"), PAIRS)
def test_tagging_reads_no_values(tokenizer, variant, decoder):
    model = build_model(variant, tokenizer, **helpers.DECODERS[decoder])
    batch = helpers.pad(helpers.random_sentences(model.config, LENGTHS))
    on_meta = {name: values.to("meta") for name, values in batch.items()}
    with torch.inference_mode():
        output = model.to("meta")(**on_meta, output_path_log_probs=True, longest_word=8)
    assert output.path_log_probs.is_meta and output.logits.is_meta


@pytest.mark.parametrize("variant", [variant for variant, _ in STACKS])
def test_a_training_step_of_a_stack_lstm_reads_no_values(tokenizer, as_on_a_gpu, variant):
    model = build_model(variant, tokenizer, **dict.fromkeys(without_dropout(variant), 0.3)).double()
    batch = labelled_batch(model)
    as_on_a_gpu()
    with Recording() as recording:
        step(model, batch, longest_word=8)
    assert len(recording.operations) > 100


def test_long_batches_of_a_stack_lstm_have_shapes_by_their_actions(tokenizer, as_on_a_gpu, monkeypatch):
    model = build_model("stack-lstm", tokenizer, **without_dropout("stack-lstm")).double()
    batch = labelled_batch(model)
    expected = step(model, batch)
    as_on_a_gpu()
    monkeypatch.setattr(stack_lstm, "MOST_PLACES", 3 * 4 * 4 - 1)
    with pytest.raises(RuntimeError, match="capturing"), Recording():
        step(model, batch, longest_word=8)
    torch.testing.assert_close(step(model, batch)["loss"], expected["loss"], rtol=0, atol=1e-12)


def test_reading_a_value_raises_on_the_meta_device():
    values = torch.ones(2, device="meta")
    for read in (torch.Tensor.tolist, torch.Tensor.nonzero, torch.Tensor.unique, lambda it: bool(it.any())):
        with pytest.raises((RuntimeError, NotImplementedError)):
            read(values)
