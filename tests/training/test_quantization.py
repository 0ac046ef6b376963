"""Word vectors in 8 and 4 bits: as vectors rounded by hand, and a run that ends with them."""

import helpers
import pytest
import runs
import tiny_encoders as tiny
import torch
from conftest import build_model
from safetensors.torch import load_file

from hf_xorner import Tagger, WordCharTokenizer, evaluate
from hf_xorner.training.build import quantized
from hf_xorner.training.facts import read_facts

SENTENCES = [["Ann", "saw", "Oslo", "saw"], ["saw", "Oslo", "xyz", "Rome", "nowhere"]]
PIECES = tiny.pieces_of(tiny.bert_tokenizer())
TOKENIZER = WordCharTokenizer.from_corpus(
    SENTENCES[:1], vector_words=["saw", "rome", "lima"], fallback=["lower"], pieces=PIECES, max_word_pieces=3
)
FEATURES = {
    "trained": {},
    "tuned": {"pretrained_words": True},
    "frozen": {"word_dim": 0, "static_dim": 4, "static_bits": 16},
    "beside": {"static_dim": 4, "casing_features": True},
    "composed": {"word_dim": 0, "composed_dim": 4},
    "all": {"static_dim": 4, "composed_dim": 3, "composed_bits": 16},
    "in 8 bits": {"word_dim": 0, "static_dim": 4, "static_bits": 8, "composed_dim": 4, "composed_bits": 8},
    "in 4 bits, odd": {"word_dim": 0, "static_dim": 5, "static_bits": 4, "composed_dim": 5, "composed_bits": 4},
}


def model_with(features, model_type="lstm-crf"):
    torch.manual_seed(0)
    model = build_model(model_type, TOKENIZER, **FEATURES[features])
    if model.features.static is not None:
        ids = torch.tensor(TOKENIZER.convert_tokens_to_ids(["saw", "rome", "lima"]))
        model.features.static.fill(ids, torch.randn(3, model.config.static_dim))
    if model.features.composed is not None:
        dim = model.config.composed_dim
        model.features.composed.fill(torch.randn(PIECES.size, dim), torch.randn(dim, 3 * dim), torch.randn(dim))
    return model.eval()


def rounded(row, largest):
    """A vector, each number as a whole number of 127ths or 7ths of the largest, which is stored in 16 bits."""
    scale = max(map(abs, row), default=0) / largest
    stored = torch.tensor(scale).half().item()
    return [round(number / scale) * stored if scale else 0.0 for number in row]


@pytest.fixture
def batch():
    return TOKENIZER(SENTENCES, is_split_into_words=True, padding=True, return_tensors="pt")


@pytest.mark.parametrize(("features", "bits"), list(zip(FEATURES, [8, 4] * 4, strict=True)))
def test_features_are_those_of_vectors_rounded_by_hand(features, bits, batch):
    largest = 2 ** (bits - 1) - 1
    model = model_with(features)
    small = quantized(model, bits)
    for name, weight in model.features.named_parameters():
        if name not in ("words.weight", "static.unknown"):
            weight.data.copy_(weight.data.half())
    inputs = {name: batch[name] for name in ("input_ids", "char_ids", "piece_ids")}
    expected, actual = model.features(**inputs), small.features(**inputs)
    vector, composed = model.config.word_dim + model.config.static_dim, model.config.composed_dim
    for before, after in zip(expected.flatten(0, 1).tolist(), actual.flatten(0, 1).tolist(), strict=True):
        end = len(before) - composed
        assert after[:vector] == pytest.approx(rounded(before[:vector], largest), abs=1e-6)
        assert after[vector:end] == before[vector:end]
    if composed:
        pieces = torch.arange(PIECES.size + 1)
        table, before = (tagger.features.composed.read(pieces, torch.float32) for tagger in (small, model))
        helpers.close(table, torch.tensor([rounded(row, largest) for row in before.tolist()]), 1e-6)


def test_other_weights_are_rounded_to_16_bits(model_type, batch):
    model = model_with("trained", model_type)
    small = quantized(model, 8)
    tensors = small.state_dict()
    for name, values in model.state_dict().items():
        if name != "features.words.weight":
            assert values.dtype != torch.float32 or torch.equal(values.half().float(), tensors[name]), name
    assert [name for name, _ in small.named_parameters()] == [
        name.replace("words.weight", "static.unknown") for name, _ in model.named_parameters()
    ]
    # With as many bits as are needed for their vectors, the outputs are the same.
    words = model.features.words.weight.data
    words.copy_((words * 40).round().clamp(-127, 127))
    words[:, 0] = 127
    model.load_state_dict({name: values.half() for name, values in model.state_dict().items()})
    torch.testing.assert_close(quantized(model, 8)(**batch).logits, model(**batch).logits, rtol=0, atol=1e-4)


def test_a_run_scores_and_saves_the_quantized_model(towns, tmp_path):
    options = {"model_type": "lstm-crf", "hidden_size": 8, "word_dim": 6, "num_train_epochs": 6, "learning_rate": 0.02}
    run = runs.ready(towns, tmp_path / "out", quantize="int4", average_epochs=2, **options)
    scores = run.train()
    tensors = load_file(tmp_path / "out" / "model.safetensors")
    assert tensors["features.static.weight"].dtype == torch.uint8
    assert "features.words.weight" not in tensors
    assert tensors["classifier.weight"].dtype == torch.float16
    assert Tagger.from_pretrained(tmp_path / "out").model.classifier.weight.dtype == torch.float32
    scores_of_the_folder = evaluate(tmp_path / "out", towns, resamples=0)
    assert scores["test"]["f1"] == pytest.approx(scores_of_the_folder["f1"]) and scores["test"]["f1"] > 0
    assert read_facts(tmp_path / "out")["config"]["static_bits"] == 4
    # Training can go on from it: the vectors stay, and new words share the vector of unknown words.
    more = runs.ready(towns, tmp_path / "more", model_name_or_path=tmp_path / "out", num_train_epochs=1)
    assert torch.equal(more.trainer.model.features.static.weight, tensors["features.static.weight"])
    more.train()
