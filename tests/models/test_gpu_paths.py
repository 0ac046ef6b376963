"""On a GPU, models read no values in Python; these paths give what those of a CPU give."""

import helpers
import pytest
import torch
from conftest import TAG_SCORING, VARIANTS, build_model, in_turn, without_dropout

PAIRS = in_turn(VARIANTS, helpers.DECODERS)


def step(model, batch, **options):
    """Return the loss of a training step, and the gradients."""
    model.zero_grad()
    loss = model.train()(**batch, **options).loss
    loss.backward()
    return {"loss": loss.detach()} | {
        name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None
    }


@pytest.mark.parametrize(("variant", "decoder"), PAIRS)
def test_both_paths_give_the_same_loss_and_gradients(tokenizer, as_on_a_gpu, variant, decoder):
    model = build_model(variant, tokenizer, **without_dropout(variant), **helpers.DECODERS[decoder]).double()
    batches = [helpers.labelled_batch(model), helpers.labelled_batch(model)]
    batches[1]["labels"][0, 1] = -100
    expected = [step(model, batch) for batch in batches]
    as_on_a_gpu()
    for batch, of_cpu in zip(batches, expected, strict=True):
        of_gpu = step(model, batch)
        assert of_gpu.keys() == of_cpu.keys()
        for name, values in of_gpu.items():
            torch.testing.assert_close(values, of_cpu[name], rtol=1e-10, atol=1e-11, msg=name)


@pytest.mark.parametrize(("variant", "decoder"), [pair for pair in PAIRS if pair[0] in TAG_SCORING])
def test_training_and_tagging_read_no_values(tokenizer, variant, decoder):
    # Tensors on the meta device have no values, and its models take the paths of a GPU.
    rates = dict.fromkeys(without_dropout(variant), 0.3)
    model = build_model(variant, tokenizer, **rates, **helpers.DECODERS[decoder])
    on_meta = {name: values.to("meta") for name, values in helpers.labelled_batch(model).items()}
    gradients = step(model.to("meta"), on_meta, num_items_in_batch=torch.tensor(8.0, device="meta"))
    assert all(values.is_meta for values in gradients.values()) and len(gradients) > 1
    del on_meta["labels"]
    with torch.inference_mode():
        output = model.eval()(**on_meta, output_path_log_probs=True)
    assert output.path_log_probs.is_meta and output.logits.is_meta
