"""Word vectors composed of piece vectors, compared with loops over words and pieces."""

import helpers
import numpy as np
import pytest
import tiny_encoders as tiny
import torch
from conftest import build_model
from transformers import AutoModelForTokenClassification

from hf_xorner import BiLstmCnnConfig, WordCharTokenizer

DIM = 4
PIECES = tiny.pieces_of(tiny.bert_tokenizer())
TOKENIZER = WordCharTokenizer.from_corpus(tiny.SENTENCES, pieces=PIECES, max_word_pieces=3, max_word_chars=6)
TEXTS = ["rain", "Ann \u200b saw rains in [Oslo]", "", "over " * 9, *tiny.TEXTS]


def random_parts(seed=0):
    draw = torch.Generator().manual_seed(seed)
    shapes = (PIECES.size, DIM), (DIM, 3 * DIM), (DIM,)
    return [torch.randn(*shape, generator=draw) for shape in shapes]


def tagger(kind="bilstm-cnn", fill=True, **fields):
    model = build_model(kind, TOKENIZER, composed_dim=DIM, **{"word_dim": 0, **fields})
    if fill:
        model.features.composed.fill(*random_parts())
    return model


def encoded(texts, **options):
    return TOKENIZER(texts, padding=True, return_tensors="pt", **options)


def reference_vector(row, vectors, mix, bias):
    """The vector of one word, from its pieces one by one."""
    pieces = [vectors[index - 1] for index in row if index]
    if not pieces:
        return np.zeros(DIM)
    if len(pieces) == 1:
        return pieces[0]
    roles = np.concatenate([pieces[0], sum(pieces) / len(pieces), pieces[-1]])
    return np.array([sum(mix[at] * roles) + bias[at] for at in range(DIM)])


@pytest.mark.parametrize("bits", [32, 16, 8, 4])
def test_composed_vectors_match_a_loop_over_pieces(bits):
    model = tagger(composed_bits=bits)
    vectors, mix, bias = (part.double().numpy() for part in random_parts())
    if bits == 16:
        vectors = vectors.astype(np.float16).astype(np.float64)
    if bits < 16:
        scales = [max(abs(number) for number in row) / (2 ** (bits - 1) - 1) for row in vectors]
        vectors = np.array(
            [[round(n / scale) * scale for n in row] for row, scale in zip(vectors, scales, strict=True)]
        )
    ids = encoded(TEXTS)["piece_ids"]
    assert {int((row > 0).sum()) for row in ids.flatten(0, 1)} == {0, 1, 2, 3}
    composed_vectors = model.features.composed(ids)
    assert composed_vectors.dtype == torch.float32
    expected = [[reference_vector(row, vectors, mix, bias) for row in sentence] for sentence in ids.tolist()]
    helpers.close(composed_vectors, expected, 1e-5)


@pytest.mark.parametrize("bits", [32, 16])
def test_initially_a_word_is_the_mean_of_its_pieces(bits):
    config = BiLstmCnnConfig(**TOKENIZER.model_fields(), composed_dim=DIM, composed_bits=bits)
    model = AutoModelForTokenClassification.from_config(config)
    composed, ids = model.features.composed, encoded(TEXTS)["piece_ids"]
    assert not composed(ids).any()
    composed.weight[1:] = random_parts()[0]
    vectors = composed.weight[1:].double().numpy()
    for rows, composed_vectors in zip(ids.tolist(), composed(ids), strict=True):
        for row, vector in zip(rows, composed_vectors, strict=True):
            pieces = [vectors[index - 1] for index in row if index]
            helpers.close(vector, sum(pieces) / len(pieces) if pieces else np.zeros(DIM), 1e-6)
