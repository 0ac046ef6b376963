"""Distilled vectors against a slow reading of their definition, one word at a time."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizer

from hf_xorner.data import DataError
from hf_xorner.data.distillation import encode_words, reduce

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "oslo", "rain", "##s", "##y", "a", "##b", "##c"]
WORDS = ["oslo", "rains", "rainy", "a", "abcbcb", "zzz", "rain"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16
    )
    model, tokenizer = BertModel(config).eval(), BertTokenizer(str(folder / "vocab.txt"))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder, model, tokenizer


@torch.no_grad()
def slowly(word, model, tokenizer, layers):
    pieces = tokenizer.tokenize(word)
    ids = tokenizer.convert_tokens_to_ids(["[CLS]", *pieces, "[SEP]"])
    states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    per_piece = [sum(states[layer][0, 1 + at] for layer in layers) / len(layers) for at in range(len(pieces))]
    return (sum(per_piece) / len(pieces)).numpy()


@pytest.mark.parametrize(("told", "layers"), [(None, [2, 3]), ([0], [0]), ([1, 3], [1, 3])])
def test_a_word_is_the_mean_of_its_pieces_and_of_layers(encoder, told, layers):
    _, model, tokenizer = encoder
    found = encode_words(WORDS, model, tokenizer, told)
    expected = np.stack([slowly(word, model, tokenizer, layers) for word in WORDS])
    assert found == pytest.approx(expected, abs=1e-6)


def test_layers_that_are_not_there_are_refused(encoder):
    _, model, tokenizer = encoder
    with pytest.raises(DataError) as error:
        encode_words(WORDS, model, tokenizer, [2, 4])
    assert str(error.value) == "layers=[2, 4]: the encoder has the layers 0 to 3; choose among them."


def test_reduced_vectors_keep_the_most_variance_and_are_scaled():
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(500, 6)) * [9, 5, 3, 1, 0.1, 0.01]).astype(np.float32) @ rng.normal(size=(6, 6))
    found = reduce(vectors.astype(np.float32), 3)
    assert found.mean(0) == pytest.approx(0, abs=1e-5)
    assert found.var(0).mean() == pytest.approx(1, rel=1e-5)
    # The singular value decomposition of the centred vectors, up to signs and to one scale for all.
    _, singular, directions = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    expected = (vectors - vectors.mean(0)) @ directions[:3].T
    expected /= np.sqrt((singular[:3] ** 2 / len(vectors)).mean())
    assert np.abs(found) == pytest.approx(np.abs(expected), abs=1e-4)
    assert np.array_equal(found, reduce(vectors.astype(np.float32), 3))


def test_weights_count_vectors_as_often_as_they_say():
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(20, 4)).astype(np.float32)
    often = rng.integers(1, 5, size=20)
    found = reduce(vectors, 2, often.astype(np.float64))
    repeated = reduce(np.repeat(vectors, often, axis=0), 2)
    assert np.repeat(found, often, axis=0) == pytest.approx(repeated, abs=1e-4)


@pytest.mark.parametrize("size", [0, 5])
def test_more_dimensions_than_there_are_are_refused(size):
    with pytest.raises(DataError) as error:
        reduce(np.ones((3, 4), dtype=np.float32), size)
    assert str(error.value) == f"dim={size}: the encoder's vectors have 4 dimensions; give 1 to 4."
