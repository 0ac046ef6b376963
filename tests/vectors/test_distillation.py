"""Distilled vectors, compared with a reference that encodes one word or one piece at a time."""

import numpy as np
import pytest
import tiny_encoders as tiny
import torch

from hf_xorner.corpora import DataError
from hf_xorner.vectors.distill import (
    LONGEST_WORD,
    Reduction,
    compose,
    encode_pieces,
    encode_words,
    encoder_of,
    fit_composition,
)


def test_reduced_vectors_keep_the_most_variance_and_are_scaled():
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(500, 6)) * [9, 5, 3, 1, 0.1, 0.01]).astype(np.float32) @ rng.normal(size=(6, 6))
    reduction = Reduction.of(vectors.astype(np.float32), 3)
    reduced = reduction(vectors.astype(np.float32))
    assert reduced.dtype == np.float32
    assert reduced.mean(0) == pytest.approx(0, abs=1e-5)
    assert reduced.var(0).mean() == pytest.approx(1, rel=1e-5)
    # The singular value decomposition of the centred vectors, up to signs and to one scale for all.
    _, singular, directions = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    expected = (vectors - vectors.mean(0)) @ directions[:3].T
    expected /= np.sqrt((singular[:3] ** 2 / len(vectors)).mean())
    assert np.abs(reduced) == pytest.approx(np.abs(expected), abs=1e-4)
    assert np.array_equal(reduced, Reduction.of(vectors.astype(np.float32), 3)(vectors.astype(np.float32)))
    # Other vectors are reduced alike: the mean subtracted is that of the words.
    others = rng.normal(size=(5, 6))
    flips = np.sign((reduced * expected).sum(0))
    wanted = (others - vectors.mean(0)) @ directions[:3].T / np.sqrt((singular[:3] ** 2 / len(vectors)).mean()) * flips
    assert reduction(others.astype(np.float32)) == pytest.approx(wanted, abs=1e-4)


def test_missing_layers_are_refused():
    for encode in (lambda: encode_words(["a"], ENCODERS["bert"], [2, 4]), lambda: encode_pieces(ENCODERS["bert"], [4])):
        with pytest.raises(ValueError, match="the encoder has the layers 0 to 3"):
            encode()


ENCODERS = {
    "bert": encoder_of(tiny.bert(), tiny.bert_tokenizer()),
    # As it comes from the Hub, without add_prefix_space.
    "roberta": encoder_of(tiny.roberta(layers=3), tiny.roberta_tokenizer()),
    "gpt2": encoder_of(tiny.gpt2(layers=3), tiny.gpt2_tokenizer()),
}
# Encoding of a word after a space, between special tokens.
OWN = {
    "bert": tiny.bert_tokenizer(),
    "roberta": tiny.roberta_tokenizer(add_prefix_space=True),
    "gpt2": tiny.gpt2_tokenizer(add_prefix_space=True),
}
FRAMES = {"bert": ([2], [3]), "roberta": ([0], [2]), "gpt2": ([], [])}
WORDS = "oslo rains rainy a rain annex zeus isn't New rainiest 12:30 York a-b-c-d-e-f-g-h".split()
encoders = pytest.mark.parametrize("name", ENCODERS)


@torch.no_grad()
def reference_piece_vector(piece, name, layers):
    before, after = FRAMES[name]
    ids = torch.tensor([[*before, piece, *after]])
    states = ENCODERS[name].model(ids, output_hidden_states=True).hidden_states
    return (sum(states[layer][0, len(before)] for layer in layers) / len(layers)).numpy()


def test_a_tokenizer_with_more_pieces_than_its_encoder_is_refused():
    tokenizer = tiny.bert_tokenizer()
    tokenizer.add_tokens(["newcomer"])
    with pytest.raises(DataError, match="'mine' knows"):
        encoder_of(tiny.bert(), tokenizer, "mine")


@torch.no_grad()
def reference_word_vector(word, name, layers):
    before, after = FRAMES[name]
    ids = OWN[name](word, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    if not ids:
        return np.zeros(8)
    states = ENCODERS[name].model(torch.tensor([[*before, *ids, *after]]), output_hidden_states=True).hidden_states
    per_layer = [states[layer][0, len(before) : len(before) + len(ids)].mean(0) for layer in layers]
    return (sum(per_layer) / len(layers)).numpy()


@encoders
def test_words_are_composed_of_the_encoded_vectors_of_their_pieces(name):
    encoder, size = ENCODERS[name], len(OWN[name])
    composition = compose(WORDS, encoder, 5, [1, 3])
    assert composition.pieces is encoder.pieces
    assert (composition.vectors.shape, composition.mix.shape, composition.bias.shape) == ((size, 5), (5, 15), (5,))
    words = np.stack([reference_word_vector(word, name, [1, 3]) for word in WORDS])
    reduction = Reduction.of(words, 5)
    vectors = reduction(np.stack([reference_piece_vector(piece, name, [1, 3]) for piece in range(size)]))
    assert composition.vectors == pytest.approx(vectors, abs=1e-3)
    mix, bias = fit_composition(vectors, reduction(words), encoder.pieces.of(WORDS, LONGEST_WORD))
    assert composition.mix == pytest.approx(mix, abs=1e-3)
    assert composition.bias == pytest.approx(bias, abs=1e-3)


@encoders
def test_words_are_encoded_as_within_a_sentence_and_are_the_mean_of_their_pieces_and_of_layers(name):
    words = [*WORDS, "", "[SEP]", "<s>", "\u200b", "İstanbul", "👩🏽\u200d🚀"]
    for chosen, layers in ((None, [2, 3]), ([2], [2]), ([0], [0]), ([1, 3], [1, 3])):
        expected = np.stack([reference_word_vector(word, name, layers) for word in words])
        assert encode_words(words, ENCODERS[name], chosen) == pytest.approx(expected, abs=1e-5)
    assert encode_words([], ENCODERS[name]).shape == (0, 8)


@encoders
def test_words_longer_than_the_encoder_window_are_truncated(name):
    encoder = ENCODERS[name]
    room = encoder.window - sum(map(len, FRAMES[name]))
    ids = OWN[name]("a-" * 60, add_special_tokens=False)["input_ids"]
    assert len(ids) > room
    before, after = FRAMES[name]
    states = encoder.model(torch.tensor([[*before, *ids[:room], *after]]), output_hidden_states=True).hidden_states[3]
    expected = states[0, len(before) : len(before) + room].mean(0).detach().numpy()
    assert encode_words(["rain", "a-" * 60], encoder, [3])[1] == pytest.approx(expected, abs=1e-5)
