"""The LSTM-CRF of lample2016: parameter counts, ablations and initialisation."""

import math

import helpers
import pytest
import torch
from conftest import LABELS, build_model
from transformers import AutoModelForTokenClassification

from hf_xorner import LstmCrfConfig

WORDS, CHARS, TYPES = 1000, 100, 4
NER = ["O", *(f"{position}-{number}" for number in range(TYPES) for position in "BI")]
TAGS = 4 * TYPES + 1


def default_model(**fields):
    sizes = {"vocab_size": WORDS, "char_vocab_size": CHARS, "id2label": dict(enumerate(NER))}
    torch.manual_seed(0)
    return AutoModelForTokenClassification.from_config(LstmCrfConfig(**sizes, **fields))


def number_of_weights(model):
    return sum(parameter.numel() for parameter in model.parameters())


def coupled(inputs, size):
    """Weights of one direction: three gates, two peepholes, three biases."""
    return 3 * size * (inputs + size + 1) + 2 * size * size


def standard(inputs, size):
    return 4 * size * (inputs + size + 1)


@pytest.mark.parametrize("cell", [coupled, standard])
def test_default_parameter_counts_match_the_paper(cell):
    model = default_model(cell=cell.__name__, char_lstm_cell=cell.__name__)
    vectors = WORDS * 100 + CHARS * 25
    encoder = 2 * cell(25, 25) + 2 * cell(100 + 25 + 25, 100) + 100 * (200 + 1)
    crf = (TAGS + 2) ** 2 - 2 * (TAGS + 1) - 2  # no transition to the start, from the end, or from start to end
    assert crf == TAGS**2 + 2 * TAGS
    assert number_of_weights(model) == vectors + encoder + TAGS * (100 + 1) + crf


def test_learned_starts_add_an_h_and_a_c_per_direction():
    more = number_of_weights(default_model(learned_start=True)) - number_of_weights(default_model())
    assert more == 2 * 2 * (100 + 25)


def test_the_ablations_of_table_5_remove_one_component_each():
    """Characters, the CRF, and dropout."""
    names = {name for name, _ in default_model().named_parameters()}
    without_characters = {name for name, _ in default_model(char_features="none").named_parameters()}
    assert names - without_characters == {name for name in names if name.startswith("features.chars.")}
    without_crf = {name for name, _ in default_model(decoder="softmax").named_parameters()}
    assert names - without_crf == {f"decoder.{name}" for name in ("transitions", "start", "end")}
    model = default_model(feature_dropout=0.0, singleton_dropout=0.0).train()
    batch = helpers.pad(helpers.random_sentences(model.config, (5, 3)), labels=True)
    assert torch.equal(model(**batch).loss, model(**batch).loss)


def test_dropout_applies_to_word_and_character_features(tokenizer):
    model = build_model("lstm-crf", tokenizer, feature_dropout=0.5, singleton_dropout=0.0)
    batch = helpers.pad(helpers.random_sentences(model.config, [40] * 20))
    whole = model.features(batch["input_ids"], batch["char_ids"])
    dropped = model.train().features(batch["input_ids"], batch["char_ids"])
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])
    for part in (kept[..., :12], kept[..., 12:]):  # of words, of characters
        assert part.float().mean().item() == pytest.approx(0.5, abs=0.02)
        assert not torch.equal(part[0, 0], part[0, 1])  # each word independently


def test_the_loss_is_summed_over_sentences(tokenizer):
    model = build_model("lstm-crf", tokenizer)
    sentences = helpers.random_sentences(model.config, (4, 2, 3))
    apart = [model(**helpers.pad([sentence], labels=True)).loss for sentence in sentences]
    together = model(**helpers.pad(sentences, labels=True)).loss
    torch.testing.assert_close(together, sum(apart))


def test_embeddings_are_initialised_uniformly_by_their_size():
    model = default_model()
    for weights, size in ((model.features.words.weight[1:], 100), (model.features.chars.embedding.weight, 25)):
        bound = math.sqrt(3 / size)
        assert 0.97 * bound < weights.abs().max() <= bound
    assert not model.features.words.weight[0].any()


def test_learned_starts_are_saved_and_loaded(tokenizer, tmp_path):
    model = build_model("lstm-crf", tokenizer, learned_start=True, id2label=dict(enumerate(LABELS)))
    model.save_pretrained(tmp_path)
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert torch.equal(loaded.encoder.lstm.start, model.encoder.lstm.start)
    assert loaded.encoder.lstm.start.any()


def test_max_word_chars_is_not_limited_by_unused_filters():
    assert LstmCrfConfig(max_word_chars=1).max_word_chars == 1
