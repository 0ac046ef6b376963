"""The reference implementation is checked by hand-written cases, against torch and by finite differences."""

import numpy as np
import pytest
import references as ref
import torch

WORDS, CHARS, LABELS, HIDDEN, HEADS, HEAD_DIM = 7, 6, 5, 3, 2, 2


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def crf(rng):
    return rng.normal(size=(4, 3)), rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)


def random_weights(rng, architecture):
    d_word, d_char, filters = 5, 3, 20
    weights = {
        "features.words.weight": rng.normal(size=(WORDS, d_word)),
        "features.chars.embedding.weight": rng.normal(size=(CHARS, d_char)),
        "features.char_types": np.array([0, 0, 1, 2, 3, 4]),
    }
    for n in range(3):
        weights[f"features.chars.convolutions.{n}.weight"] = rng.normal(size=(filters, d_char + 4, n + 1))
    upper_in = 2 * HIDDEN if architecture == "cross-bilstm-cnn" else HIDDEN
    for layer, d_in in enumerate((d_word + 4 + 3 * filters, upper_in)):
        weights[f"encoder.layers.{layer}.weight_ih"] = 0.3 * rng.normal(size=(2, 4 * HIDDEN, d_in))
        weights[f"encoder.layers.{layer}.weight_hh"] = rng.normal(size=(2, 4 * HIDDEN, HIDDEN))
        weights[f"encoder.layers.{layer}.bias"] = rng.normal(size=(2, 4 * HIDDEN))
    for name in ("query", "key", "value"):
        weights[f"encoder.attention.{name}.weight"] = rng.normal(size=(HEADS * HEAD_DIM, 2 * HIDDEN))
    width = 2 * HIDDEN + (HEADS * HEAD_DIM if architecture == "att-bilstm-cnn" else 0)
    weights["classifier.weight"] = rng.normal(size=(LABELS, width))
    weights["classifier.bias"] = rng.normal(size=LABELS)
    return weights


@pytest.mark.parametrize(
    ("types", "index"),
    [
        ([1, 1, 0], 0),  # "UN"
        ([1, 4, 3], 0),  # "U-2"
        ([3, 1, 0], 0),  # "4G"
        ([1, 2, 0], 1),  # "Al"
        ([1, 2, 1], 1),  # "McD"
        ([2, 2, 0], 2),  # "of"
        ([3, 2, 2], 2),  # "1st"
        ([2, 1, 2], 3),  # "iPh"
        ([3, 1, 2], 3),  # "3Com"
        ([3, 4, 3], 3),  # "1.5"
        ([0, 0, 0], 3),
    ],
)
def test_capitalisation_by_hand(types, index):
    assert ref.caps_one_hot(np.array(types)).tolist() == np.eye(4)[index].tolist()


def test_char_cnn_matches_torch_conv1d_with_max_pooling(rng):
    weights = random_weights(rng, "bilstm-cnn")
    row = np.array([2, 3, 4, 5, 0])
    one_hot = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=float)
    image = torch.tensor(np.concatenate([weights["features.chars.embedding.weight"][row], one_hot], axis=1).T)
    kernels = [torch.tensor(weights[f"features.chars.convolutions.{n}.weight"]) for n in range(3)]
    expected = torch.cat([torch.nn.functional.conv1d(image[None], kernel)[0].amax(dim=1) for kernel in kernels])
    np.testing.assert_allclose(ref.char_cnn(weights, row), expected.numpy(), atol=1e-12)


def test_unknown_row_replaces_word_and_caps_but_not_characters(rng):
    weights = random_weights(rng, "bilstm-cnn")
    input_ids, char_ids = np.array([1, 4]), np.array([[2, 2, 0], [2, 3, 0]])
    kept = ref.word_features(weights, input_ids, char_ids)
    replaced = ref.word_features(weights, input_ids, char_ids, np.arange(9.0))
    assert kept.shape == (2, 5 + 4 + 60)
    assert kept[0, 5:9].tolist() == [1, 0, 0, 0]
    assert replaced[0, :9].tolist() == list(range(9))
    assert (replaced[0, 9:] == kept[0, 9:]).all()
    assert (replaced[1] == kept[1]).all()


@pytest.mark.parametrize("architecture", ["bilstm-cnn", "cross-bilstm-cnn"])
def test_bilstm_matches_stacked_torch_lstms(rng, architecture):
    weights = random_weights(rng, architecture)
    x = rng.normal(size=(6, 69))

    def torch_lstm(layer, direction, inputs):
        w_ih, w_hh, bias = (
            weights[f"encoder.layers.{layer}.{n}"][direction] for n in ("weight_ih", "weight_hh", "bias")
        )
        module = torch.nn.LSTM(w_ih.shape[1], HIDDEN, batch_first=True).double()
        state = {"weight_ih_l0": w_ih, "weight_hh_l0": w_hh, "bias_ih_l0": bias, "bias_hh_l0": np.zeros_like(bias)}
        module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
        inputs = inputs.flip(0) if direction else inputs
        outputs = module(inputs[None])[0][0]
        return outputs.flip(0) if direction else outputs

    with torch.no_grad():
        lower = [torch_lstm(0, d, torch.tensor(x)) for d in (0, 1)]
        inputs = [torch.cat(lower, dim=1)] * 2 if architecture == "cross-bilstm-cnn" else lower
        expected = torch.cat([torch_lstm(1, d, inputs[d]) for d in (0, 1)], dim=1).numpy()
    np.testing.assert_allclose(ref.encode(weights, architecture, x), expected, atol=1e-12)


def test_attention_matches_torch_scaled_dot_product(rng):
    weights = random_weights(rng, "att-bilstm-cnn")
    hidden = rng.normal(size=(5, 2 * HIDDEN))
    projected = [
        torch.tensor(hidden @ weights[f"encoder.attention.{name}.weight"].T).view(5, HEADS, HEAD_DIM).transpose(0, 1)
        for name in ("query", "key", "value")
    ]
    expected = torch.nn.functional.scaled_dot_product_attention(*projected).transpose(0, 1).reshape(5, -1)
    context, attended = ref.attention(weights, hidden, HEADS)
    np.testing.assert_allclose(context, expected.numpy(), atol=1e-12)
    np.testing.assert_allclose(attended.sum(axis=2), 1.0)


def test_windows_partition_the_sentence_by_hand():
    # Length 10, window 4, overlap 2: windows [0,4) [2,6) [4,8) [6,10); each owns its middle, the ends own the ends.
    contexts = [ref.context_of(p, 10, window=4, overlap=2) for p in range(10)]
    assert contexts == [(0, 4)] * 3 + [(2, 6)] * 2 + [(4, 8)] * 2 + [(6, 10)] * 3
    assert {ref.context_of(p, 4, window=4, overlap=2) for p in range(4)} == {(0, 4)}


@pytest.mark.parametrize("window", [1, 2, 5, 8])
def test_every_position_is_in_its_own_window(window):
    for overlap in range(window):
        for length in range(1, 25):
            for position in range(length):
                first, last = ref.context_of(position, length, window, overlap)
                assert 0 <= first <= position < last <= min(first + window, length)


def test_attention_is_zero_outside_the_window(rng):
    weights = random_weights(rng, "att-bilstm-cnn")
    attended = ref.attention(weights, rng.normal(size=(10, 2 * HIDDEN)), HEADS, window=4, overlap=2)[1]
    for t in range(10):
        first, last = ref.context_of(t, 10, 4, 2)
        assert (attended[:, t, first:last] > 0).all()
        assert not attended[:, t, :first].any()
        assert not attended[:, t, last:].any()


def test_crf_probabilities_sum_to_one(crf):
    paths, scores = ref.enumerate_paths(*crf)
    assert paths.shape == (3**4, 4)
    assert np.exp(scores - ref.log_partition(*crf)).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(ref.marginals(*crf).sum(axis=1), 1.0)


def test_crf_by_hand():
    emissions, transitions = np.array([[1.0, 0.0], [0.0, 0.5]]), np.array([[0.0, -2.0], [3.0, 0.0]])
    start, end = np.array([0.0, 0.25]), np.array([0.125, 0.0])
    paths, scores = ref.enumerate_paths(emissions, transitions, start, end)
    assert paths.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert scores.tolist() == [1.125, -0.5, 3.375, 0.75]
    assert ref.best_path(emissions, transitions, start, end) == [1, 0]


def test_crf_without_transitions_is_a_softmax_per_word(rng):
    emissions = rng.normal(size=(4, 3))
    independent = (emissions, np.zeros((3, 3)), np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(ref.marginals(*independent), np.exp(ref.softmax_log_probs(emissions)))
    assert ref.best_path(*independent) == emissions.argmax(axis=1).tolist()


def test_crf_likelihood_of_a_set(crf):
    paths, scores = ref.enumerate_paths(*crf)
    for path, score in zip(paths.tolist(), scores, strict=True):
        assert ref.log_likelihood(*crf, path) == pytest.approx(score - ref.log_partition(*crf))
    path = [0, 2, 1, 1]
    assert ref.log_likelihood_of_set(*crf, np.eye(3, dtype=bool)[path]) == pytest.approx(ref.log_likelihood(*crf, path))
    assert ref.log_likelihood_of_set(*crf, np.ones((4, 3), dtype=bool)) == pytest.approx(0.0)
    assert ref.log_likelihood_of_set(*crf, np.zeros((4, 3), dtype=bool)) == -np.inf
    one_known = np.ones((4, 3), dtype=bool)
    one_known[2] = [False, True, False]
    assert ref.log_likelihood_of_set(*crf, one_known) == pytest.approx(np.log(ref.marginals(*crf)[2, 1]))


def test_inner_tags():
    assert ref.inner_tags(["B-per", "O", "B-a-b", "I-per"]) == ["O", "B-per", "I-per", "E-per", "S-per", "S-a-b"]
    assert ref.inner_tags(["NOUN", "VERB", "O"]) == ["NOUN", "VERB", "O"]
    with pytest.raises(ValueError, match="no B-per"):
        ref.inner_tags(["O", "I-per"])


@pytest.mark.parametrize(
    ("tags", "inner"),
    [
        ("", ""),
        ("O", "O"),
        ("B-x", "S-x"),
        ("B-x I-x", "B-x E-x"),
        ("O B-x I-x I-x O", "O B-x I-x E-x O"),
        ("B-x B-x I-x", "S-x B-x E-x"),
        ("I-x I-x O I-y", "B-x E-x O S-y"),
        ("B-x I-y I-y", "S-x B-y E-y"),
        ("NOUN VERB", "NOUN VERB"),
    ],
)
def test_to_inner(tags, inner):
    assert ref.to_inner(tags.split()) == inner.split()


@pytest.mark.parametrize(
    ("inner", "strict", "conlleval"),
    [
        ("", [], []),
        ("O S-x B-y I-y E-y", [("x", 1, 2), ("y", 2, 5)], [("x", 1, 2), ("y", 2, 5)]),
        ("S-x S-x", [("x", 0, 1), ("x", 1, 2)], [("x", 0, 1), ("x", 1, 2)]),
        ("B-x B-x E-x", [("x", 1, 3)], [("x", 0, 1), ("x", 1, 3)]),
        ("B-x I-x O", [], [("x", 0, 2)]),
        ("B-x", [], [("x", 0, 1)]),
        ("O I-x E-x", [], [("x", 1, 3)]),
        ("B-x E-y", [], [("x", 0, 1), ("y", 1, 2)]),
        ("B-x I-y E-x", [], [("x", 0, 1), ("y", 1, 2), ("x", 2, 3)]),
        ("B-x E-x I-x", [("x", 0, 2)], [("x", 0, 2), ("x", 2, 3)]),
        ("S-x E-x", [("x", 0, 1)], [("x", 0, 1), ("x", 1, 2)]),
        ("E-x E-x", [], [("x", 0, 1), ("x", 1, 2)]),
        ("B-x S-y E-x", [("y", 1, 2)], [("x", 0, 1), ("y", 1, 2), ("x", 2, 3)]),
    ],
)
def test_spans(inner, strict, conlleval):
    assert ref.spans_strict(inner.split()) == strict
    assert ref.spans_conlleval(inner.split()) == conlleval


def test_well_formed_tags_round_trip():
    tags = ["B-x", "B-x", "I-x", "O", "B-y", "I-y", "I-y", "B-x"]
    for spans_of in (ref.spans_strict, ref.spans_conlleval):
        assert ref.public_tags(spans_of(ref.to_inner(tags)), len(tags)) == tags


def test_public_logits_sum_inner_tags_and_put_the_decoded_label_first():
    public = ["O", "B-x", "I-x", "B-y"]
    inner = ref.inner_tags(public)  # O, B-x, I-x, E-x, S-x, S-y
    log_probs = np.log([[0.1, 0.2, 0.05, 0.05, 0.4, 0.2]] * 2)
    logits = ref.public_logits(log_probs, inner, public, path=[1, 3])
    np.testing.assert_allclose(np.exp(logits[0]), [0.1, 0.6, 0.1, 0.2])
    np.testing.assert_allclose(logits[1], np.log([0.1, 0.2 * np.exp(-1e-3), 0.1, 0.2]))
    assert logits.argmax(axis=1).tolist() == [1, 3]


def test_plain_public_logits_are_the_inner_ones():
    log_probs = np.log([[0.7, 0.3]])
    np.testing.assert_allclose(ref.public_logits(log_probs, ["N", "V"], ["N", "V"], path=[0]), log_probs)
