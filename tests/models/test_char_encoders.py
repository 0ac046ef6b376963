"""Character encoders: features match the equations, do not depend on neighbours, and use dropout as in the papers."""

from itertools import cycle
from unittest import mock

import helpers
import pytest
import references as ref
import torch

from hf_xorner import CnnLstmCrfConfig
from hf_xorner.models import features
from hf_xorner.models.features import build_character_encoder, shape_of

CHARS, WIDTH = 20, 12
ENCODERS = {
    "cnn of li2020": {"char_features": "cnn"},
    "cnn of ma2016": {
        "char_features": "cnn",
        "char_widths": (3,),
        "char_type_features": False,
        "char_activation": "tanh",
        "char_bias": True,
        "char_padding": 2,
    },
    "cnn with all": {"char_features": "cnn", "char_widths": (2, 4), "char_bias": True, "char_padding": 1},
    "cnn centred": {"char_features": "cnn", "char_windows": "centred"},
    "cnn of chen2019": {
        "char_features": "cnn",
        "char_widths": (2, 3),
        "char_type_features": False,
        "char_bias": True,
        "char_windows": "centred",
    },
    "coupled lstm": {"char_features": "lstm", "char_lstm_cell": "coupled"},
    "standard lstm": {"char_features": "lstm", "char_lstm_cell": "standard"},
}
TYPES = torch.arange(CHARS) % 5


def config_of(**fields):
    sizes = {"char_vocab_size": CHARS, "max_word_chars": WIDTH, "char_dim": 4, "char_filters": 3, "char_lstm_size": 3}
    defaults = {"char_type_features": True, "char_activation": "none", "char_bias": False, "char_padding": 0}
    return CnnLstmCrfConfig(**{**sizes, **defaults, "char_dropout": 0.0, **fields})


def build(name, **fields):
    """An encoder with random weights."""
    torch.manual_seed(0)
    encoder = build_character_encoder(config_of(**ENCODERS[name], **fields))
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_()
    return encoder


def words(lengths, seed=0):
    """Random words (1, N, WIDTH) of these lengths."""
    chars = torch.randint(1, CHARS, (len(lengths), WIDTH), generator=torch.Generator().manual_seed(seed))
    return chars.masked_fill(torch.arange(WIDTH) >= torch.tensor(lengths).unsqueeze(1), 0).unsqueeze(0)


@pytest.mark.parametrize("name", ENCODERS)
def test_word_features_match_the_equations(name):
    encoder, chars = build(name).double(), words([3, 1, 12, 0, 7, 11, 3])
    weights = {f"features.chars.{key}": values.numpy() for key, values in encoder.state_dict().items()}
    weights["features.char_types"] = TYPES.numpy()
    expected = [ref.char_features(weights, row, config_of(**ENCODERS[name])) for row in chars[0].numpy()]
    helpers.close(encoder(chars, TYPES)[0], expected, 1e-12)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("lengths", [[2, 1], [0, 0], [12, 0, 5]])
def test_skipping_padding_and_repeated_words_does_not_change_results(name, lengths):
    encoder, chars = build(name), words(lengths).repeat(1, 2, 1)
    expected = encoder(chars, TYPES)
    with mock.patch("torch.compiler.is_compiling", return_value=True):
        torch.testing.assert_close(encoder(chars, TYPES), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ENCODERS)
def test_char_dropout_is_sampled_per_occurrence_of_a_word(name):
    encoder = build(name, char_dropout=0.5)
    chars = words([10]).clamp(min=6).repeat(1, 2, 1)
    first, second = encoder.train()(chars, TYPES)[0]
    assert not torch.equal(first, second)
    first, second = encoder.eval()(chars, TYPES)[0]
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("word", "shape"),
    [("UN", 0), ("I", 0), ("U.", 1), ("Ann", 1), ("McD", 1), ("iPod", 2), ("3D", 2), ("of", 3), ("1.5", 3), ("", 3)],
)
def test_word_shapes_match_strubell2017(word, shape):
    """The type of a character is used as its id."""
    types = [1 if char.isupper() else 2 if char.islower() else 3 if char.isdigit() else 4 for char in word]
    rows = torch.tensor(types + [0] * (WIDTH - len(word)))
    assert shape_of(rows, rows).item() == shape
    assert ref.shape_index(rows.numpy(), rows.numpy()) == shape


@pytest.mark.parametrize(
    ("name", "dropout"), list(zip([name for name in ENCODERS if name.startswith("cnn")], cycle([0.0, 0.5])))
)
def test_gradients_are_those_of_the_maxima(name, dropout, monkeypatch):
    """The backward pass through the maxima alone agrees with that of all responses."""

    def gradients():
        encoder = build(name, char_dropout=dropout).double().train()
        torch.manual_seed(1)
        encoder(words([1, 5, 0, 12, 3, 0]), TYPES).pow(2).sum().backward()
        return [parameter.grad for parameter in encoder.parameters()]

    by_maxima = gradients()
    monkeypatch.setattr(features._Maxima, "apply", lambda *inputs: features._responses(*inputs).amax(1))
    for gradient, reference in zip(by_maxima, gradients(), strict=True):
        helpers.close(gradient, reference, 1e-12)
