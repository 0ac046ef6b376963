"""Half precision, compiled graphs and other devices match float32 on a CPU."""

import helpers
import pytest
import torch
from conftest import ARCHITECTURES, VARIANTS, build_model, has_field, in_turn, without_dropout


@pytest.fixture(params=in_turn(VARIANTS, helpers.DECODERS), ids="-".join)
def model(request, tokenizer):
    variant, decoder = request.param
    return build_model(variant, tokenizer, **without_dropout(variant), **helpers.DECODERS[decoder])


@pytest.fixture(params=in_turn(ARCHITECTURES, helpers.DECODERS), ids="-".join)
def one_of_each(request, tokenizer):
    model_type, decoder = request.param
    fields = helpers.DECODERS[decoder]
    if has_field(model_type, "attention_window"):  # the longest sentence in windows, the others whole
        fields = fields | {"attention_window": 3, "attention_overlap": 1}
    return build_model(model_type, tokenizer, **without_dropout(model_type), **fields)


def test_half_precision_weights_give_float32_logits_close_to_full_precision(model, tmp_path):
    dtype, tolerance = torch.float16, 0.04
    batch = helpers.labelled_batch(model)
    model.save_pretrained(tmp_path)
    narrow = type(model).from_pretrained(tmp_path, dtype=dtype)
    assert {parameter.dtype for parameter in narrow.parameters()} == {dtype}
    output, expected = narrow(**batch), model(**batch)
    assert output.logits.dtype == output.loss.dtype == torch.float32
    assert output.logits.isfinite().all()
    words = batch["attention_mask"].bool()
    distance = (output.logits.softmax(-1) - expected.logits.softmax(-1))[words].abs()
    assert distance.mean() < tolerance
    torch.testing.assert_close(output.loss, expected.loss, rtol=tolerance, atol=0)


def gradients_of(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def assert_compiled_is_eager(model, backend):
    """Outside of training, and in one step of it."""
    torch.compiler.reset()
    batch = helpers.labelled_batch(model)
    compiled = torch.compile(model, backend=backend)
    words = batch["input_ids"] != model.config.pad_token_id  # values at padding are arbitrary
    torch.testing.assert_close(compiled(**batch).logits[words], model(**batch).logits[words], rtol=1e-5, atol=1e-5)
    model.train()
    loss, expected = compiled(**batch).loss, model(**batch).loss
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    gradients = gradients_of(model, loss)
    for name, gradient in gradients_of(model, expected).items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.slow
def test_every_variant_and_decoder_compiled_matches_eager_mode(model):
    assert_compiled_is_eager(model, "aot_eager")


@pytest.mark.slow
def test_models_compiled_with_inductor_match_eager_mode(one_of_each):
    assert_compiled_is_eager(one_of_each, "inductor")


def test_cuda_matches_the_cpu(cuda, model):
    batch = helpers.labelled_batch(model)
    words = batch["attention_mask"].bool()
    logits = model(**batch).logits
    loss = model.train()(**batch).loss
    gradients = gradients_of(model, loss)
    on_cuda = {name: values.to(cuda) for name, values in batch.items()}
    loss_on_cuda = model.to(cuda)(**on_cuda).loss
    torch.testing.assert_close(loss_on_cuda.cpu(), loss, rtol=1e-4, atol=1e-4)
    for name, gradient in gradients_of(model, loss_on_cuda).items():
        torch.testing.assert_close(gradient.cpu(), gradients[name], rtol=1e-3, atol=1e-4, msg=name)
    logits_on_cuda = model.eval()(**on_cuda).logits.cpu()
    torch.testing.assert_close(logits_on_cuda[words], logits[words], rtol=1e-4, atol=1e-4)
