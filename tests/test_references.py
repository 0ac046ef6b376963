"""The reference implementation is checked by hand-written cases and against torch."""

import numpy as np
import pytest
import references as ref
import torch

HIDDEN, HEADS, HEAD_DIM = 3, 2, 2


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def crf(rng):
    return rng.normal(size=(4, 3)), rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)


def test_capitalisation_by_hand():
    words = {"UN": [1, 1, 0], "Al": [1, 2, 0], "of": [2, 2, 0], "iPh": [2, 1, 2], "3Com": [3, 1, 2], "-": [0, 0, 0]}
    found = [ref.caps_one_hot(np.array(types)).argmax() for types in words.values()]
    assert found == [0, 1, 2, 3, 3, 3]


def test_char_cnn_matches_torch_conv1d_with_max_pooling(rng):
    weights = {
        "features.chars.embedding.weight": rng.normal(size=(6, 3)),
        "features.char_types": np.array([0, 0, 1, 2, 3, 4]),
        **{f"features.chars.convolutions.{n}.weight": rng.normal(size=(20, 7, n + 1)) for n in range(3)},
    }
    row = np.array([2, 3, 4, 5, 0])
    one_hot = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=float)
    image = torch.tensor(np.concatenate([weights["features.chars.embedding.weight"][row], one_hot], axis=1).T)
    kernels = [torch.tensor(weights[f"features.chars.convolutions.{n}.weight"]) for n in range(3)]
    expected = torch.cat([torch.nn.functional.conv1d(image[None], kernel)[0].amax(dim=1) for kernel in kernels])
    np.testing.assert_allclose(ref.char_cnn(weights, row), expected.numpy(), atol=1e-12)


def test_lstm_matches_torch(rng):
    w_ih, w_hh, bias = rng.normal(size=(12, 5)), rng.normal(size=(12, HIDDEN)), rng.normal(size=12)
    module = torch.nn.LSTM(5, HIDDEN, batch_first=True).double()
    state = {"weight_ih_l0": w_ih, "weight_hh_l0": w_hh, "bias_ih_l0": bias, "bias_hh_l0": np.zeros_like(bias)}
    module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    x = rng.normal(size=(6, 5))
    expected = module(torch.tensor(x)[None])[0][0].detach().numpy()
    np.testing.assert_allclose(ref.lstm(x, w_ih, w_hh, bias), expected, atol=1e-12)


def test_attention_matches_torch_scaled_dot_product(rng):
    names = [f"encoder.attention.{name}.weight" for name in ("query", "key", "value")]
    weights = {name: rng.normal(size=(HEADS * HEAD_DIM, 2 * HIDDEN)) for name in names}
    hidden = rng.normal(size=(5, 2 * HIDDEN))
    projected = [torch.tensor(hidden @ weights[name].T).view(5, HEADS, HEAD_DIM).transpose(0, 1) for name in names]
    expected = torch.nn.functional.scaled_dot_product_attention(*projected).transpose(0, 1).reshape(5, -1)
    np.testing.assert_allclose(ref.attention(weights, hidden, HEADS)[0], expected.numpy(), atol=1e-12)


def test_windows_partition_the_sentence_by_hand():
    # Length 10, window 4, overlap 2: windows [0,4) [2,6) [4,8) [6,10); each owns its middle, the ends own the ends.
    contexts = [ref.context_of(p, 10, window=4, overlap=2) for p in range(10)]
    assert contexts == [(0, 4)] * 3 + [(2, 6)] * 2 + [(4, 8)] * 2 + [(6, 10)] * 3


def test_crf_by_hand():
    emissions, transitions = np.array([[1.0, 0.0], [0.0, 0.5]]), np.array([[0.0, -2.0], [3.0, 0.0]])
    start, end = np.array([0.0, 0.25]), np.array([0.125, 0.0])
    paths, scores = ref.enumerate_paths(emissions, transitions, start, end)
    assert paths.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert scores.tolist() == [1.125, -0.5, 3.375, 0.75]
    assert ref.best_path(emissions, transitions, start, end) == [1, 0]


def test_crf_likelihoods(crf):
    paths, scores = ref.enumerate_paths(*crf)
    for path, score in zip(paths.tolist(), scores, strict=True):
        assert ref.log_likelihood(*crf, path) == pytest.approx(score - ref.log_partition(*crf))
    np.testing.assert_allclose(ref.marginals(*crf).sum(axis=1), 1.0)
    one_known = np.ones((4, 3), dtype=bool)
    assert ref.log_likelihood_of_set(*crf, one_known) == pytest.approx(0.0)
    one_known[2] = [False, True, False]
    assert ref.log_likelihood_of_set(*crf, one_known) == pytest.approx(np.log(ref.marginals(*crf)[2, 1]))


def test_tags_by_hand():
    assert ref.inner_tags(["B-per", "O", "B-a-b", "I-per"]) == ["O", "B-per", "I-per", "E-per", "S-per", "S-a-b"]
    for tags, inner in {
        "O B-x I-x I-x O": "O B-x I-x E-x O",
        "B-x B-x I-x": "S-x B-x E-x",
        "I-x I-x O I-y": "B-x E-x O S-y",
        "NOUN VERB": "NOUN VERB",
    }.items():
        assert ref.to_inner(tags.split()) == inner.split()
    for inner, strict, conlleval in (
        ("B-x B-x E-x", [("x", 1, 3)], [("x", 0, 1), ("x", 1, 3)]),
        ("O I-x E-x", [], [("x", 1, 3)]),
        ("B-x I-y E-x", [], [("x", 0, 1), ("y", 1, 2), ("x", 2, 3)]),
        ("S-x E-x", [("x", 0, 1)], [("x", 0, 1), ("x", 1, 2)]),
    ):
        assert ref.spans_strict(inner.split()) == strict
        assert ref.spans_conlleval(inner.split()) == conlleval


def test_public_logits_sum_inner_tags_and_put_the_decoded_label_first():
    public = ["O", "B-x", "I-x", "B-y"]
    inner = ref.inner_tags(public)  # O, B-x, I-x, E-x, S-x, S-y
    log_probs = np.log([[0.1, 0.2, 0.05, 0.05, 0.4, 0.2]] * 2)
    logits = ref.public_logits(log_probs, inner, public, path=[1, 3])
    np.testing.assert_allclose(np.exp(logits[0]), [0.1, 0.6, 0.1, 0.2])
    np.testing.assert_allclose(logits[1], np.log([0.1, 0.2 * np.exp(-1e-3), 0.1, 0.2]))
