"""Composition of words from pieces: fitting, writing, reading and errors."""

import numpy as np
import pytest
import tiny_encoders as tiny
from safetensors.numpy import load_file, save_file

from hf_xorner.corpora import DataError
from hf_xorner.training.build import pieces_of
from hf_xorner.vectors.distill import (
    FILES,
    Composition,
    encoder_of,
    fit_composition,
    read_composition,
    write_composition,
)

PIECES = tiny.pieces_of(tiny.bert_tokenizer())
DIM = 3


def random_composition(dtype=np.float32):
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(PIECES.size, DIM)).astype(dtype)
    mix, bias = draw.normal(size=(DIM, 3 * DIM)), draw.normal(size=DIM)
    return Composition(vectors, mix.astype(np.float32), bias.astype(np.float32), PIECES)


def random_pieces(draw, words, vocabulary):
    counts = draw.integers(1, 6, size=(words, 1))
    ids = draw.integers(1, vocabulary + 1, size=(words, 5))
    return np.where(np.arange(5) < counts, ids, 0)


def composed(vectors, mix, bias, row):
    piece_vectors = [vectors[index - 1].astype(np.float64) for index in row if index]
    if len(piece_vectors) == 1:
        return piece_vectors[0]
    return mix @ np.concatenate([piece_vectors[0], sum(piece_vectors) / len(piece_vectors), piece_vectors[-1]]) + bias


def plain_mean():
    mix = np.zeros((DIM, 3 * DIM))
    mix[:, DIM : 2 * DIM] = np.eye(DIM)
    return mix


# --- The fit ----------------------------------------------------------------------------------------------------------


def test_fit_is_least_squares_regularised_towards_the_plain_mean():
    draw = np.random.default_rng(3)
    vectors, ids = draw.normal(size=(20, DIM)).astype(np.float32), random_pieces(draw, 60, 20)
    words = draw.normal(size=(60, DIM)).astype(np.float32)
    mix, bias = fit_composition(vectors, words, ids)

    def cost(mix, bias):
        several = [number for number, row in enumerate(ids) if (row > 0).sum() > 1]
        errors = sum(((composed(vectors, mix, bias, ids[at]) - words[at]) ** 2).sum() for at in several)
        return errors + 30 * (((mix - plain_mean()) ** 2).sum() + (bias**2).sum())

    mix, bias = mix.astype(np.float64), bias.astype(np.float64)
    least = cost(mix, bias)
    for _ in range(20):
        assert cost(mix + draw.normal(size=mix.shape) * 0.01, bias + draw.normal(size=DIM) * 0.01) > least


@pytest.mark.parametrize("rows", [[], [[3, 0, 0]], [[3, 0, 0], [0, 0, 0], [1, 0, 0]]])
def test_fit_without_words_of_several_pieces_is_the_plain_mean(rows):
    vectors = np.random.default_rng(4).normal(size=(9, DIM)).astype(np.float32)
    ids = np.array(rows, dtype=np.int64).reshape(-1, 3)
    mix, bias = fit_composition(vectors, np.ones((len(ids), DIM), dtype=np.float32), ids)
    assert np.array_equal(mix, plain_mean())
    assert not bias.any()


# --- Files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_compositions_round_trip(tmp_path, dtype):
    composition = random_composition(dtype)
    composition = composition._replace(vectors=composition.vectors[::-1], mix=composition.mix[:, ::-1])
    written = write_composition(composition, tmp_path / "a" / "b")
    assert [path.name for path in written] == list(FILES)
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == sorted(FILES)
    for source in (tmp_path / "a" / "b", str(tmp_path / "a" / "b"), written[0]):
        read_back = read_composition(source)
        for name in ("vectors", "mix", "bias"):
            part = getattr(read_back, name)
            assert part.dtype == getattr(composition, name).dtype
            assert np.array_equal(part, getattr(composition, name))
        assert read_back.pieces.to_str() == PIECES.to_str()
        assert np.array_equal(read_back.pieces.of(tiny.ODD_WORDS, 9), PIECES.of(tiny.ODD_WORDS, 9))


def test_faulty_files_raise(tmp_path):
    tensors, tokenizer = write_composition(random_composition(), tmp_path)
    content, parts = tensors.read_bytes(), load_file(tensors)
    for spoil in (
        lambda: tensors.unlink(),
        lambda: tokenizer.unlink(),
        lambda: tensors.write_bytes(content[: len(content) // 2]),
        lambda: tokenizer.write_text("{"),
        lambda: save_file({**parts, "vectors": parts["vectors"][1:]}, tensors),
        lambda: save_file({**parts, "mix": np.ascontiguousarray(parts["mix"].T)}, tensors),
        lambda: save_file({"vectors": parts["vectors"], "bias": parts["bias"]}, tensors),
    ):
        write_composition(random_composition(), tmp_path, overwrite=True)
        spoil()
        with pytest.raises(DataError, match=r"composed\.safetensors"):
            read_composition(tmp_path)
    with pytest.raises(DataError, match="nowhere: there is no such file"):
        read_composition(tmp_path / "nowhere")


# --- With an encoder --------------------------------------------------------------------------------------------------


def test_pieces_that_differ_from_the_encoders_are_refused():
    composition = random_composition()
    same = encoder_of(tiny.bert(), tiny.bert_tokenizer())
    other = encoder_of(tiny.roberta(), tiny.roberta_tokenizer())
    assert pieces_of(same, composition).to_str() == PIECES.to_str()
    assert pieces_of(None, composition) is PIECES
    assert pieces_of(other, None) is other.pieces
    assert pieces_of(None, None) is None
    with pytest.raises(DataError, match="different pieces"):
        pieces_of(other, composition)
