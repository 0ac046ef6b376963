"""Every architecture matches its equations for each sentence of a padded batch."""

from itertools import cycle

import chain_oracle as oracle
import helpers
import numpy as np
import pytest
import references as ref
import torch
from conftest import ARCHITECTURES, LABELS, REFERENCED, build_model, has_field

LENGTHS = (9, 1, 4, 6)
SHORT_LENGTHS = (4, 1, 3, 2)  # the references try all paths of a CRF
ATTENTIVE = ("att-bilstm-cnn", "cnn-lstm-crf attention")
WINDOWS = [(4, 2), (5, 0), (6, 3), (7, 1), (3, 2), (1, 0)]  # words, overlap


@pytest.mark.parametrize("variant", REFERENCED)
def test_inner_scores_match_the_equations(variant, tokenizer):
    for seed in range(2):
        layers = {"num_hidden_layers": 1 + 2 * seed} if has_field(variant, "num_hidden_layers") else {}
        model = build_model(variant, tokenizer, seed=seed, **layers)
        sentences = helpers.random_sentences(model.config, LENGTHS, seed)
        scores, _ = helpers.score(model, helpers.pad(sentences))
        assert scores.dtype == torch.float32
        for row, sentence in zip(scores, sentences, strict=True):
            helpers.close(row[: len(sentence["input_ids"])], helpers.reference_scores(model, sentence), 1e-5)


@pytest.mark.parametrize(("sizes", "kind"), list(zip(WINDOWS, cycle(ATTENTIVE))), ids=str)
def test_long_sentences_attend_within_their_windows(tokenizer, sizes, kind):
    window, overlap = sizes
    model = build_model(kind, tokenizer, attention_window=window, attention_overlap=overlap)
    sentences = helpers.random_sentences(model.config, (17, window, 1, 8, window + 1))
    batch = helpers.pad(sentences)
    scores, (attention,) = helpers.score(model, batch, output_attentions=True)
    without_weights, _ = helpers.score(model, batch)
    helpers.close(without_weights, scores.detach(), 1e-5)
    for number, sentence in enumerate(sentences):
        length = len(sentence["input_ids"])
        helpers.close(scores[number, :length], helpers.reference_scores(model, sentence), 1e-5)
        expected = reference_attention(model, sentence)
        helpers.close(attention[number, :, :length, :length], expected, 1e-5)
        outside = torch.from_numpy(expected == 0)
        assert not attention[number, :, :length, :length][outside].any()
        assert not attention[number, :, :length, length:].any()


def reference_attention(model, sentence):
    hidden = helpers.reference_states(model, sentence)[:, : 2 * model.config.hidden_size]
    return ref.attention(helpers.weights_of(model), hidden, model.config)[1]


@pytest.mark.parametrize(
    ("variant", "malformed_spans", "decoder"),
    [
        (variant, ("drop", "repair")[number % 2], ("softmax", "crf")[number // 2 % 2])
        for number, variant in enumerate([*REFERENCED, *ARCHITECTURES[:-1]])
    ],
)
def test_logits_are_the_posterior_with_the_decoded_path_on_top(variant, tokenizer, decoder, malformed_spans):
    model = build_model(variant, tokenizer, decoder=decoder, malformed_spans=malformed_spans)
    sentences = helpers.random_sentences(model.config, LENGTHS if decoder == "softmax" else SHORT_LENGTHS)
    logits = model(**helpers.pad(sentences)).logits
    assert logits.dtype == torch.float32
    inner = ref.inner_tags(LABELS)
    for row, sentence in zip(logits, sentences, strict=True):
        log_probs, best = reference_posterior(model, sentence)
        spans_of = ref.spans_strict if malformed_spans == "drop" else ref.spans_conlleval
        length = len(log_probs)
        decoded = ref.public_tags(spans_of([inner[tag] for tag in best]), length)
        path = [LABELS.index(label) for label in decoded]
        assert row[:length].argmax(-1).tolist() == path
        helpers.close(row[:length], ref.public_logits(log_probs, inner, LABELS, path), 1e-5)


def reference_posterior(model, sentence):
    """Log posterior (T, K) and best inner path."""
    scores = helpers.reference_scores(model, sentence)
    if model.config.decoder == "softmax":
        return ref.softmax_log_probs(scores), scores.argmax(-1).tolist()
    chain = helpers.crf_of(model, sentence)
    return np.log(oracle.counts(scores, *chain)[0]), oracle.all_paths(scores, *chain)[0][0].tolist()


#: Every architecture, and variants of more or fewer layers.
HIDDEN = [*ARCHITECTURES, "cnn-lstm-crf attention", "grn without relation", "grn without context"]


@pytest.mark.parametrize(("variant", "side"), list(zip(HIDDEN, cycle(["right", "left"]))), ids="-".join)
def test_hidden_states_begin_with_the_features_and_end_with_the_states_that_are_scored(variant, tokenizer, side):
    model = build_model(variant, tokenizer)
    sentences = helpers.random_sentences(model.config, SHORT_LENGTHS)
    output = model(**helpers.pad(sentences, side=side), output_hidden_states=True)
    features, *layers = output.hidden_states
    for number, sentence in enumerate(sentences):
        length = len(sentence["input_ids"])
        words = slice(0, length) if side == "right" else slice(max(SHORT_LENGTHS) - length, None)
        ids, chars = sentence["input_ids"].numpy(), sentence["char_ids"].numpy()
        expected = ref.word_features(helpers.weights_of(model), ids, chars, model.config)
        helpers.close(features[number, words], expected, 1e-5)
        if variant in REFERENCED:
            helpers.close(layers[-1][number, words], helpers.reference_states(model, sentence), 1e-5)


def test_the_decoded_path_in_place_of_logits_is_their_argmax(tokenizer, variant):
    model = build_model(variant, tokenizer).eval()
    batch = helpers.pad(helpers.random_sentences(model.config, [5, 0, 3, 1]))
    with torch.inference_mode():
        whole = model(**batch, output_path_log_probs=True)
        path = model(**batch, output_logits=False, output_path_log_probs=True)
    words = batch["attention_mask"].bool()
    assert path.logits is None
    assert torch.equal(path.path[words], whole.logits.argmax(-1)[words])
    torch.testing.assert_close(path.path_log_probs[words], whole.path_log_probs[words])
