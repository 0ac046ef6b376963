"""Every architecture matches its equations for each sentence of a padded batch."""

import helpers
import numpy as np
import pytest
import reference_encoders
import references as ref
import torch
from conftest import (
    ARCHITECTURES,
    LABELS,
    LI2020,
    REFERENCED,
    VARIANTS,
    build_model,
    has_field,
    with_decoders,
    without_dropout,
)

LENGTHS = (9, 1, 4, 6)
SHORT_LENGTHS = (4, 1, 3, 2)  # the references try all paths of a CRF
ATTENTIVE = ("att-bilstm-cnn", "cnn-lstm-crf attention")
WINDOWS = [(4, 2), (5, 0), (6, 3), (7, 1), (3, 2), (1, 0)]  # words, overlap


@pytest.mark.parametrize("variant", REFERENCED)
@pytest.mark.parametrize("unknown_word", ["vector", "vector_and_casing"])
@pytest.mark.parametrize("seed", [0, 1])
def test_inner_scores_match_the_equations(variant, tokenizer, unknown_word, seed):
    model = build_model(variant, tokenizer, unknown_word=unknown_word, seed=seed)
    sentences = helpers.random_sentences(model.config, LENGTHS, seed)
    scores, _ = helpers.score(model, helpers.pad(sentences))
    assert scores.dtype == torch.float32
    for row, sentence in zip(scores, sentences, strict=True):
        helpers.close(row[: len(sentence["input_ids"])], helpers.reference_scores(model, sentence), 1e-5)


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize(
    "model_type", [kind for kind in ARCHITECTURES if kind in REFERENCED and has_field(kind, "num_hidden_layers")]
)
def test_any_number_of_layers_matches_the_equations(model_type, tokenizer, layers):
    model = build_model(model_type, tokenizer, num_hidden_layers=layers)
    sentences = helpers.random_sentences(model.config, LENGTHS)
    scores, _ = helpers.score(model, helpers.pad(sentences))
    for row, sentence in zip(scores, sentences, strict=True):
        helpers.close(row[: len(sentence["input_ids"])], helpers.reference_scores(model, sentence), 1e-5)


@pytest.mark.parametrize("variant", REFERENCED)
def test_scores_of_tokenized_words_match_the_equations(variant, tokenizer):
    model = build_model(variant, tokenizer)
    words = "Ann saw 3 McDonald's in NEW York , unseen-word".split()
    batch = tokenizer([words], is_split_into_words=True, return_tensors="pt")
    scores, _ = helpers.score(model, batch)
    helpers.close(scores[0], helpers.reference_scores(model, {name: rows[0] for name, rows in batch.items()}), 1e-5)


def test_unknown_words_keep_their_casing_only_if_configured(model_type, tokenizer):
    fields = {"casing_features": True}
    words = [["ann", "Unseen"], ["ann", "unseen"]]
    batch = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    casing = slice(12, 16)
    kept = build_model(model_type, tokenizer, **fields).features(batch["input_ids"], batch["char_ids"])
    lost = build_model(model_type, tokenizer, unknown_word="vector_and_casing", **fields)
    replaced = lost.features(batch["input_ids"], batch["char_ids"])
    assert kept[:, 1, casing].tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]
    assert torch.equal(replaced[0, 1, :16], lost.features.unknown)
    assert torch.equal(replaced[1, 1, :16], lost.features.unknown)


@pytest.mark.parametrize(("window", "overlap"), WINDOWS)
@pytest.mark.parametrize("kind", ATTENTIVE)
def test_long_sentences_attend_within_their_windows(tokenizer, kind, window, overlap):
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


@pytest.mark.parametrize("kind", ATTENTIVE)
def test_attention_weights_are_returned_in_word_order(tokenizer, kind):
    model = build_model(kind, tokenizer)
    sentences = helpers.random_sentences(model.config, LENGTHS)
    for side in ("right", "left"):
        (attention,) = model(**helpers.pad(sentences, side=side), output_attentions=True).attentions
        for weights, sentence in zip(attention, sentences, strict=True):
            length = len(sentence["input_ids"])
            words = slice(0, length) if side == "right" else slice(max(LENGTHS) - length, None)
            helpers.close(weights[:, words, words], reference_attention(model, sentence), 1e-5)
            helpers.close(weights[:, words].sum(-1), 1.0, 1e-5)


def reference_attention(model, sentence):
    hidden = helpers.reference_states(model, sentence)[:, : 2 * model.config.hidden_size]
    return ref.attention(helpers.weights_of(model), hidden, **reference_encoders.attention_fields(model.config))[1]


@pytest.mark.parametrize("kind", [kind for kind in VARIANTS if kind not in ATTENTIVE and not kind.startswith("grn")])
def test_models_without_attention_return_no_attention(tokenizer, kind):
    model = build_model(kind, tokenizer)
    batch = helpers.pad(helpers.random_sentences(model.config, LENGTHS))
    assert model(**batch, output_attentions=True).attentions is None


@pytest.mark.parametrize("variant", REFERENCED)
@pytest.mark.parametrize("malformed_spans", ["drop", "repair"])
@pytest.mark.parametrize("decoder", ["softmax", "crf"])
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
    return np.log(ref.marginals(scores, *chain)), ref.best_path(scores, *chain)


@pytest.mark.parametrize("model_type", [kind for kind in ARCHITECTURES if kind in REFERENCED])
@pytest.mark.parametrize("decoder", ["softmax", "crf"])
def test_plain_labels_are_decoded_unchanged(model_type, tokenizer, decoder):
    labels = ["NOUN", "VERB", "DET"]
    model = build_model(model_type, tokenizer, labels=labels, decoder=decoder)
    assert model.tags.inner_tags == labels
    sentences = helpers.random_sentences(model.config, LENGTHS if decoder == "softmax" else SHORT_LENGTHS)
    logits = model(**helpers.pad(sentences)).logits
    for row, sentence in zip(logits, sentences, strict=True):
        log_probs, path = reference_posterior(model, sentence)
        helpers.close(row[: len(path)], ref.public_logits(log_probs, labels, labels, path), 1e-5)


#: What each variant of more or fewer layers than others of its architecture returns, besides the word features.
LAYERS = {
    "bilstm-cnn": 2,
    "cross-bilstm-cnn": 2,
    "att-bilstm-cnn": 3,
    "lstm-crf": 2,
    "cnn-lstm-crf": 1,
    "cnn-lstm-crf attention": 2,
    "grn": 2,
    "grn without relation": 1,
    "grn without context": 1,
    "id-cnn": 4,
    "id-cnn one iteration": 2,
    "stack-lstm": 0,
}


@pytest.mark.parametrize("variant", LAYERS)
@pytest.mark.parametrize("side", ["right", "left"])
def test_hidden_states_are_the_features_and_the_states_of_every_layer(variant, tokenizer, side):
    model = build_model(variant, tokenizer)
    sentences = helpers.random_sentences(model.config, SHORT_LENGTHS)
    output = model(**helpers.pad(sentences, side=side), output_hidden_states=True)
    features, *layers = output.hidden_states
    assert len(layers) == LAYERS[variant]
    for number, sentence in enumerate(sentences):
        length = len(sentence["input_ids"])
        words = slice(0, length) if side == "right" else slice(max(SHORT_LENGTHS) - length, None)
        alone = model.features(sentence["input_ids"].unsqueeze(0), sentence["char_ids"].unsqueeze(0))[0]
        helpers.close(features[number, words], alone.detach(), 1e-6)
        if layers:
            helpers.close(layers[-1][number, words], helpers.reference_states(model, sentence), 1e-5)


@pytest.mark.parametrize("model_type", LI2020)
def test_hidden_states_of_a_lower_layer_match_a_model_with_fewer_layers(model_type, tokenizer):
    deep, flat = (build_model(model_type, tokenizer, num_hidden_layers=layers) for layers in (3, 1))
    shared = {name: values for name, values in deep.state_dict().items() if name in flat.state_dict()}
    flat.load_state_dict(shared)
    batch = helpers.pad(helpers.random_sentences(deep.config, LENGTHS))
    expected = flat(**batch, output_hidden_states=True).hidden_states
    found = deep(**batch, output_hidden_states=True).hidden_states
    for one, other in zip(found[:2], expected[:2], strict=True):
        torch.testing.assert_close(one, other)


def test_the_config_and_the_call_decide_what_is_returned(model_type, tokenizer):
    model = build_model(model_type, tokenizer)
    batch = helpers.pad(helpers.random_sentences(model.config, SHORT_LENGTHS), labels=True)
    assert model(**batch).hidden_states is None
    model.config.output_hidden_states = True
    by_config = model(**batch)
    assert model(**batch, output_hidden_states=False).hidden_states is None
    as_tuple = model(**batch, return_dict=False)
    assert list(by_config) == ["loss", "logits", "hidden_states"]
    assert as_tuple[0] == by_config.loss and torch.equal(as_tuple[1], by_config.logits)
    assert all(map(torch.equal, as_tuple[2], by_config.hidden_states))
    model.config.return_dict = False
    assert isinstance(model(**batch), tuple)
    assert model(**batch, return_dict=True).keys() == by_config.keys()


@pytest.mark.parametrize(("variant", "decoder"), with_decoders(VARIANTS, helpers.DECODERS))
def test_training_mode_without_labels_decodes(variant, tokenizer, decoder):
    """A newly built model is in training mode."""
    model = build_model(variant, tokenizer, **without_dropout(variant), **helpers.DECODERS[decoder])
    batch = helpers.pad(helpers.random_sentences(model.config, SHORT_LENGTHS))
    expected = model(**batch).logits
    assert torch.equal(model.train()(**batch).logits, expected)


def test_training_with_labels_does_not_decode(model_type, tokenizer):
    model = build_model(model_type, tokenizer).train()
    output = model(**helpers.pad(helpers.random_sentences(model.config, LENGTHS), labels=True))
    assert output.logits is None
    assert output.loss.requires_grad


@pytest.mark.parametrize("training", [False, True])
def test_encoders_return_one_state_per_word(variant, tokenizer, training):
    model = build_model(variant, tokenizer).train(training)
    batch = helpers.pad(helpers.random_sentences(model.config, LENGTHS))
    encoded = model.encode(batch["input_ids"], batch["char_ids"], batch["attention_mask"].sum(1))
    for states in (encoded.states, *encoded.earlier):
        assert states.shape == (len(LENGTHS), max(LENGTHS), model.encoder.output_size)


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
