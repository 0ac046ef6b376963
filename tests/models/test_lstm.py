"""The recurrent layers match their equations, and dropout uses one mask for all words of a sentence."""

import helpers
import pytest
import references as ref
import torch
from conftest import LI2020, build_model

from hf_xorner.models import recurrent
from hf_xorner.models.recurrent import BiLstmLayer, BiRnnLayer, DistinctWords, Packing, both_directions, build_layer

LENGTHS = torch.tensor([5, 0, 3, 1])
INPUT, HIDDEN, TIME = 3, 4, 5


@pytest.fixture
def layer():
    torch.manual_seed(0)
    layer = BiLstmLayer(INPUT, HIDDEN).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer


@pytest.fixture
def inputs():
    return torch.randn(2, len(LENGTHS), TIME, INPUT, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def mask():
    """A dropout mask of the recurrent states, (2, B, H)."""
    kept = torch.rand(2, len(LENGTHS), HIDDEN, generator=torch.Generator().manual_seed(2)) < 0.6
    return kept.double() / 0.6


def within(states):
    """The states of words, without those of padding."""
    return states[:, torch.arange(TIME) < LENGTHS.unsqueeze(1)]


def states_and_gradients(layer, inputs, *mask):
    """The states of words, and the gradients of the inputs and weights by their sum of squares."""
    layer.zero_grad()
    leaf = inputs.clone().requires_grad_()
    states = within(layer(leaf, LENGTHS, *mask))
    states.pow(2).sum().backward()
    return [states, leaf.grad, *(parameter.grad.clone() for parameter in layer.parameters())]


def test_states_with_a_mask_per_sentence_match_the_equations(layer, inputs, mask):
    states = layer(inputs, LENGTHS, mask)
    weights = [[values[direction].detach().numpy() for values in layer.parameters()] for direction in range(2)]
    for sentence, length in enumerate(LENGTHS.tolist()):
        if length:
            forward, backward = inputs[:, sentence, :length].numpy()
            ahead, back = mask[:, sentence].numpy()
            expected = ref.lstm(forward, *weights[0], ahead), ref.lstm(backward[::-1], *weights[1], back)[::-1]
            helpers.close(states[:, sentence, :length], expected, 1e-12)


def test_the_fused_and_the_stepped_recurrence_agree_in_states_and_gradients(layer, inputs, mask):
    shared = mask[:, :1]
    results = [states_and_gradients(layer, inputs, each) for each in (shared, shared.expand_as(mask).contiguous())]
    for fused, stepped in zip(*results, strict=True):
        torch.testing.assert_close(fused, stepped, rtol=0, atol=1e-12)


@pytest.mark.parametrize("training", [False, True])
def test_small_states_keep_their_digits_in_half_precision(layer, inputs, training):
    layer, inputs = layer.to(torch.bfloat16), (inputs / 100).to(torch.bfloat16)
    torch.nn.init.zeros_(layer.bias)
    with torch.set_grad_enabled(training):
        states = within(layer(inputs, LENGTHS)).double()
        exact = within(layer.double()(inputs.double(), LENGTHS))
    torch.testing.assert_close(states, exact, rtol=0.03, atol=1e-4)


@pytest.fixture(params=["rnn", "standard", "coupled"])
def any_layer(request):
    torch.manual_seed(0)
    layer = build_layer(request.param, INPUT, HIDDEN).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer


def test_every_cell_matches_its_equations(any_layer, inputs):
    weights = {f"layer.{name}": values.numpy() for name, values in any_layer.state_dict().items()}
    states = any_layer(inputs, LENGTHS)
    for sentence, length in enumerate(LENGTHS.tolist()):
        for direction in range(2 if length else 0):
            words = inputs[direction, sentence, :length].numpy()
            expected = ref.bidirectional(weights, "layer", direction, words)
            helpers.close(states[direction, sentence, :length], expected, 1e-12)


@pytest.mark.parametrize("words_in_block", [1, 4, 1000])
def test_distinct_words_give_the_same_states_block_by_block(any_layer, words_in_block, monkeypatch):
    if isinstance(any_layer, BiRnnLayer):
        pytest.skip("reads features alone")
    table, index = torch.randn(3, INPUT, dtype=torch.float64), torch.randint(3, (len(LENGTHS), TIME))
    monkeypatch.setattr(recurrent, "WORDS_IN_BLOCK", words_in_block)
    with torch.inference_mode():
        expected = any_layer(both_directions(table[index]), LENGTHS)
        states = any_layer(DistinctWords(any_layer.word_products(table), index), LENGTHS)
    torch.testing.assert_close(within(states), within(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize("training", [False, True])
def test_a_pass_changes_no_weight_even_of_a_single_unit(any_layer, inputs, training):
    layer = type(any_layer)(INPUT, 1).double()
    layer.reset_parameters()
    before = {name: values.clone() for name, values in layer.state_dict().items()}
    with torch.set_grad_enabled(training):
        layer(inputs, LENGTHS)
        if not training and not isinstance(layer, BiRnnLayer):
            layer(DistinctWords(layer.word_products(inputs[0, 0]), torch.zeros(4, 5, dtype=torch.long)), LENGTHS)
    assert all(torch.equal(values, before[name]) for name, values in layer.state_dict().items())


def test_stepping_through_padding_as_on_a_gpu_changes_no_result(any_layer, inputs, monkeypatch):
    expected = states_and_gradients(any_layer, inputs)
    monkeypatch.setattr(Packing, "of", Packing.padded)
    for values, wanted in zip(states_and_gradients(any_layer, inputs), expected, strict=True):
        torch.testing.assert_close(values, wanted, rtol=0, atol=1e-12)


def test_every_cell_is_initialised_glorot_uniform_per_gate(any_layer):
    layer = type(any_layer)(30, 50)
    layer.gates_apart = True
    layer.reset_parameters()
    for name, weights in layer.named_parameters():
        if name != "bias":
            bound = (6 / (weights.shape[2] + 50)) ** 0.5
            assert 0.97 * bound < weights.abs().max() <= bound
    assert layer.bias.sum() == (2 * 50 if isinstance(layer, BiLstmLayer) else 0)


def recorded_layer_inputs(model, batch):
    """Inputs and recurrent mask of every recurrent layer of the model in one forward pass."""
    seen = []
    for layer in model.encoder.layers:
        layer.register_forward_pre_hook(lambda _, arguments: seen.append((arguments[0], arguments[2])))
    model(**batch)
    return seen


@pytest.mark.parametrize(
    ("model_type", "dropout_masks", "masks"),
    list(zip(LI2020, ["batch", "sequence", "sequence"], [1, 4, 4], strict=True)),
)
def test_training_masks_inputs_and_recurrent_states_of_every_layer(model_type, tokenizer, dropout_masks, masks):
    model = build_model(model_type, tokenizer, dropout=0.5, dropout_masks=dropout_masks, hidden_size=16).train()
    batch = helpers.pad(helpers.random_sentences(model.config, (5, 3, 4, 2)), labels=True)
    layers = recorded_layer_inputs(model, batch)
    assert len(layers) == 2
    for inputs, recurrent_mask in layers:
        assert recurrent_mask.shape == (2, masks, 16)
        assert set(recurrent_mask.unique().tolist()) == {0.0, 2.0}
        dropped = (inputs[..., :12] == 0).all(2)  # (2, B, d), for features that are nonzero without dropout
        assert 0.2 < dropped.float().mean() < 0.8
        assert not torch.equal(dropped[0], dropped[1])
        assert torch.equal(dropped[:, 0], dropped[:, 1]) == (masks == 1)
    assert not torch.equal(layers[0][1], layers[1][1])
