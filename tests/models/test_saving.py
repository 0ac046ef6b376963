"""Saved weights are loaded unchanged, and missing weights are initialised as in the paper."""

import copy
import math

import helpers
import pytest
import tiny_encoders
import torch
from conftest import LABELS, LI2020, TAG_SCORING, VARIANTS, build_model, with_decoders
from transformers import AutoModelForTokenClassification
from transformers.initialization import no_init_weights

from hf_xorner import WordCharTokenizer
from hf_xorner.models.configuration_bilstm_cnn import AttBiLstmCnnConfig
from hf_xorner.registration import CONFIGS


def reload(model, folder, **options):
    model.save_pretrained(folder)
    loaded, report = AutoModelForTokenClassification.from_pretrained(folder, output_loading_info=True, **options)
    assert type(loaded) is type(model)
    return loaded, report


def model_with(features):
    pieces = tiny_encoders.pieces_of(tiny_encoders.bert_tokenizer())
    tokenizer = WordCharTokenizer.from_corpus([["Ann", "saw", "Oslo"]], vector_words=["rome"], pieces=pieces)
    return build_model("bilstm-cnn", tokenizer, **FEATURES[features])


@pytest.mark.parametrize(("variant", "decoder"), with_decoders(VARIANTS, helpers.DECODERS))
def test_a_loaded_model_is_bit_identical_to_the_saved_one(variant, tokenizer, tmp_path, decoder):
    model = build_model(variant, tokenizer, **helpers.DECODERS[decoder])
    loaded, report = reload(model, tmp_path)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    for tensors in ("named_parameters", "named_buffers"):
        saved, read = dict(getattr(model, tensors)()), dict(getattr(loaded, tensors)())
        assert saved.keys() == read.keys()
        assert all(torch.equal(values, read[name]) for name, values in saved.items())
    for parameter in loaded.parameters():
        # Copied into new memory, since a kernel's rounding may depend on the alignment of a memory-mapped file.
        parameter.data = parameter.data.clone()
    batch = helpers.labelled_batch(model)
    output, expected = loaded(**batch), model(**batch)
    assert torch.equal(output.logits, expected.logits)
    assert torch.equal(output.loss, expected.loss)


FEATURES = {
    "trained": {},
    "frozen": {"word_dim": 0, "static_dim": 4},
    "frozen in half precision": {"word_dim": 0, "static_dim": 4, "static_bits": 16},
    "frozen in 8 bits": {"word_dim": 0, "static_dim": 4, "static_bits": 8},
    "frozen in 4 bits": {"word_dim": 0, "static_dim": 5, "static_bits": 4},
    "beside": {"static_dim": 4},
    "composed": {"word_dim": 0, "composed_dim": 4, "composed_bits": 16},
    "composed in 8 bits": {"word_dim": 0, "composed_dim": 4, "composed_bits": 8},
    "composed in 4 bits": {"word_dim": 0, "composed_dim": 5, "composed_bits": 4},
    "contextual": {
        "word_dim": 0,
        "context_encoder": tiny_encoders.bert().config.to_dict(),
        "context_layers": [1, 2],
        "context_frozen": False,
    },
}


@pytest.mark.parametrize("features", FEATURES)
def test_a_loaded_model_can_be_saved_and_copied(features, tmp_path):
    model, report = reload(model_with(features), tmp_path / "model")
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert all(torch.equal(values, copy.deepcopy(model).state_dict()[n]) for n, values in model.state_dict().items())
    again, _ = reload(model, tmp_path / "again")
    assert again.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(values, again.state_dict()[name]) for name, values in model.state_dict().items())


@pytest.mark.parametrize("features", FEATURES)
def test_buffers_need_no_initialisation(features):
    """Buffers follow from the config: they exist without initialisation and can be recomputed."""
    model = model_with(features)
    with no_init_weights():
        bare = type(model)(copy.deepcopy(model.config))
    with torch.device("meta"):
        emptied = type(model)(copy.deepcopy(model.config))
    emptied.to_empty(device="cpu").init_weights()
    for name, buffer in model.named_buffers():
        assert torch.equal(bare.get_buffer(name), buffer), name
        assert torch.equal(emptied.get_buffer(name), buffer), name


@pytest.mark.parametrize("variant", TAG_SCORING)
def test_new_labels_get_a_new_classifier_and_keep_other_weights(variant, tokenizer, tmp_path):
    model = build_model(variant, tokenizer, decoder="crf")
    labels = dict(enumerate(["O", "B-NEW", "I-NEW"]))
    loaded, report = reload(model, tmp_path, id2label=labels, ignore_mismatched_sizes=True)
    changed = {key[0] for key in report["mismatched_keys"]}
    names = {name for name, _ in model.named_parameters() if name.startswith(("classifier.", "decoder."))}
    assert changed == names
    for name, parameter in loaded.named_parameters():
        assert name in changed or torch.equal(parameter, model.get_parameter(name))
    heads = [*loaded.classifier.named_parameters(), *loaded.decoder.named_parameters()]
    constant = [parameter for name, parameter in heads if "weight" not in name]
    first = 0.01 if variant.startswith("id-cnn") else 0  # as in strubell2017's program
    assert all((parameter[parameter != 0] == first).all() for parameter in constant)


@pytest.fixture(params=LI2020)
def fresh(request, tokenizer):
    """A model as its config makes it, of li2020's sizes but for the vocabularies, with a large one of words."""
    fields = tokenizer.model_fields() | {"vocab_size": 500, "id2label": dict(enumerate(LABELS))}
    torch.manual_seed(0)
    config = CONFIGS[request.param](**fields, decoder="crf", static_dim=300)
    return AutoModelForTokenClassification.from_config(config)


def assert_glorot(weights, fan_in, fan_out):
    """Uniform up to √(6 / (fan_in + fan_out)), covering the whole range."""
    bound = math.sqrt(6 / (fan_in + fan_out))
    assert 0.95 * bound < weights.abs().max() <= bound
    assert weights.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_word_and_character_vectors_are_initialised_from_a_normal_distribution(fresh):
    words, chars = fresh.features.words.weight, fresh.features.chars.embedding.weight
    for weights in (words[1:], chars, fresh.features.static.unknown):
        assert weights.std().item() == pytest.approx(0.1, rel=0.1)
        assert abs(weights.mean().item()) < 0.02
    assert not words[0].any()
    assert chars[0].any()  # padding is a character like others (li2020)


def test_convolutions_and_the_classifier_are_initialised_glorot_uniform(fresh):
    config = fresh.config
    for width, convolution in enumerate(fresh.features.chars.convolutions, start=1):
        assert_glorot(convolution.weight, width * (config.char_dim + 4), width * config.char_filters)
    states = fresh.encoder.output_size
    assert_glorot(fresh.classifier.weight, states, fresh.tags.num_inner)


def test_heads_of_attention_are_initialised_glorot_uniform_each(tokenizer):
    config = AttBiLstmCnnConfig(**tokenizer.model_fields(), id2label=dict(enumerate(LABELS)))
    for fan_out, config.attention_initializer in ((40, "head"), (200, "matrix")):
        attention = AutoModelForTokenClassification.from_config(config).encoder.attention
        for projection in (attention.query, attention.key, attention.value):
            for part in projection.weight.split(fan_out):
                assert_glorot(part, 200, fan_out)


@pytest.mark.parametrize("model_type", LI2020)
def test_default_parameter_counts_match_li2020(model_type):
    words, chars, types = 1000, 100, 18
    labels = ["O", *(f"{position}-{number}" for number in range(types) for position in "BI")]
    config = CONFIGS[model_type](vocab_size=words, char_vocab_size=chars, id2label=dict(enumerate(labels)))
    model = AutoModelForTokenClassification.from_config(config)

    def lstm(inputs):
        return 4 * 100 * (inputs + 100 + 1)

    attention = 5 * 40 if model_type == "att-bilstm-cnn" else 0
    upper = 2 * 100 if model_type == "cross-bilstm-cnn" else 100
    features = words * 300 + chars * 25 + 20 * (1 + 2 + 3) * (25 + 4)
    encoder = 2 * lstm(300 + 4 + 60) + 2 * lstm(upper) + 3 * 200 * attention
    classifier = (200 + attention + 1) * (4 * types + 1)
    assert sum(parameter.numel() for parameter in model.parameters()) == features + encoder + classifier
