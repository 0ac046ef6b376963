"""Encoder states as word features, compared with a reference that goes piece by piece, one window at a time."""

import copy

import helpers
import pytest
import tiny_encoders as tiny
import torch
from conftest import build_model
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTokenClassification,
    DistilBertConfig,
    DistilBertModel,
    GPT2Config,
    GPT2Model,
)

from hf_xorner import WordCharTokenizer
from hf_xorner.models import configuration_tagger
from hf_xorner.models.contextual import Windows

ENCODERS = {
    "bert": (tiny.bert(), tiny.pieces_of(tiny.bert_tokenizer())),
    "roberta": (tiny.roberta(), tiny.pieces_of(tiny.roberta_tokenizer())),
}
EXACT = {name: copy.deepcopy(encoder).double() for name, (encoder, _) in ENCODERS.items()}
TOKENIZERS = {
    name: WordCharTokenizer.from_corpus(tiny.SENTENCES, pieces=pieces, max_word_pieces=5, max_word_chars=6)
    for name, (_, pieces) in ENCODERS.items()
}
LONG = " ".join(f"Ann met Zeus{number} in Oslo ." for number in range(12))
TEXTS = ["rain", LONG, "", "Ann Smith \u200b saw 👩🏽‍🚀 in İstanbul", "\u200b \u00ad", *tiny.TEXTS]
encoders = pytest.mark.parametrize("name", ENCODERS)


def tagger(name, kind="bilstm-cnn", **fields):
    """A tagger with random weights and a given encoder."""
    encoder, pieces = ENCODERS[name]
    fields = tiny.context_fields(encoder, pieces, **fields)
    model = build_model(kind, TOKENIZERS[name], **fields)
    wanted = model.features.context.encoder.state_dict()
    states = {key: value for key, value in encoder.state_dict().items() if key in wanted}
    model.features.context.encoder.load_state_dict(states)
    return model


def piece_ids(name, texts, **options):
    return TOKENIZERS[name](texts, padding=True, return_tensors="pt", **options)["piece_ids"]


def windows_of(count, capacity, overlap):
    """Return (start, end) of the windows over a sentence, and for each piece the windows with the most context."""
    if not count:
        return [], []
    windows, start = [], 0
    while True:
        windows.append((start, min(start + capacity, count)))
        if start + capacity >= count:
            break
        start += capacity - overlap
    homes = []
    for index in range(count):
        # The smaller number of pieces before and after this one in a window; the ends of the text have no limit.
        def around(number, index=index):
            first, last = windows[number]
            before = index - first if number else count
            after = last - 1 - index if number < len(windows) - 1 else count
            return min(before, after)

        holding = [number for number, (first, last) in enumerate(windows) if first <= index < last]
        best = max(map(around, holding))
        homes.append([number for number in holding if around(number) == best])
    return windows, homes


@torch.no_grad()
def reference_features(model, name, rows):
    """The feature of every word of one sentence: rows of its words' pieces, padding and all."""
    config = model.config
    pieces = [index - 1 for row in rows for index in row if index]
    room = config.context_window - len(config.context_prefix) - len(config.context_suffix)
    windows, homes = windows_of(len(pieces), room, config.context_overlap)
    read = []
    for first, last in windows:
        ids = [*config.context_prefix, *pieces[first:last], *config.context_suffix]
        hidden = EXACT[name](input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
        read.append([layer[0, len(config.context_prefix) :] for layer in hidden])
    states = []
    for piece in range(len(pieces)):
        home = max(homes[piece])  # if two windows suit a piece equally well, the later one is used
        layers = [read[home][layer][piece - windows[home][0]] for layer in config.context_layers]
        states.append(sum(layers) / len(layers))
    features, begin = [], 0
    for row in rows:
        count = sum(index > 0 for index in row)
        states_of_word = states[begin : begin + count]
        features.append(
            sum(states_of_word) / count if count else torch.zeros(config.context_encoder["hidden_size"]).double()
        )
        begin += count
    return torch.stack(features) if features else torch.zeros(0, config.context_encoder["hidden_size"]).double()


# --- Windows ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 40), max_size=5), st.integers(1, 12), st.data())
def test_windows_match_a_plain_count(counts, capacity, data):
    overlap = data.draw(st.integers(0, capacity - 1))
    actual = Windows.of(torch.tensor(counts, dtype=torch.long), capacity, overlap)
    first, size, home, position, begins = [], [], [], [], 0
    for count in counts:
        windows, homes = windows_of(count, capacity, overlap)
        for piece, best in enumerate(homes):
            chosen = int(actual.home[len(home)]) - len(first)
            assert chosen in best
            home.append(chosen + len(first))
            position.append(piece - windows[chosen][0])
        first += [begins + start for start, _ in windows]
        size += [end - start for start, end in windows]
        begins += count
    assert [values.tolist() for values in actual] == [first, size, home, position]


# --- Features ---------------------------------------------------------------------------------------------------------


@encoders
@pytest.mark.parametrize(("window", "overlap"), [(38, 9), (12, 4), (12, 9), (3, 0)])
def test_features_match_the_reference(name, window, overlap):
    model = tagger(name, context_window=window, context_overlap=overlap)
    ids = piece_ids(name, TEXTS)
    for row, features in zip(ids.tolist(), model.features.context(ids), strict=True):
        helpers.close(features, reference_features(model, name, row), 1e-5)


@pytest.mark.parametrize("layers", [[0], [3], [0, 1, 2, 3], [2, 2, 1]])
def test_features_are_means_of_the_chosen_layers(layers):
    model = tagger("bert", context_layers=layers)
    ids = piece_ids("bert", ["Ann met Zeus"])
    helpers.close(model.features.context(ids)[0], reference_features(model, "bert", ids[0].tolist()), 1e-5)


def test_many_pieces_are_encoded_in_chunks(monkeypatch):
    model, ids = tagger("bert", context_window=9, context_overlap=3), piece_ids("bert", TEXTS)
    expected = model.features.context(ids)
    calls = []
    monkeypatch.setattr("hf_xorner.models.contextual.PIECES_ON_CPU", 20)
    model.features.context.encoder.register_forward_pre_hook(
        lambda module, args, kwargs: calls.append(kwargs["input_ids"].shape), with_kwargs=True
    )
    torch.testing.assert_close(model.features.context(ids), expected, rtol=0, atol=1e-6)
    assert len(calls) > 5
    assert max(rows * (width - 2) for rows, width in calls) <= 20


# --- Batches ----------------------------------------------------------------------------------------------------------


@encoders
@pytest.mark.parametrize("side", ["left", "right"])
def test_results_do_not_depend_on_neighbours_or_padding(name, side):
    model = tagger(name)
    options = {"padding_side": side, "pad_to_multiple_of": 5, "padding": True, "return_tensors": "pt"}
    batch = TOKENIZERS[name](TEXTS, **options)
    logits = model(**batch).logits
    for text, row, mask in zip(TEXTS, logits, batch["attention_mask"].bool(), strict=True):
        alone = model(**TOKENIZERS[name](text, return_tensors="pt")).logits[0]
        torch.testing.assert_close(row[mask], alone, rtol=0, atol=1e-6)


# --- Frozen or not ----------------------------------------------------------------------------------------------------


def labelled(name):
    batch = TOKENIZERS[name](TEXTS, padding=True, return_tensors="pt")
    return {**batch, "labels": torch.where(batch["attention_mask"].bool(), 1, helpers.IGNORED)}


@encoders
@pytest.mark.parametrize("frozen", [True, False])
def test_only_trainable_weights_get_gradients(name, frozen):
    model = tagger(name, context_frozen=frozen).train()
    model(**labelled(name)).loss.backward()
    context = model.features.context
    for weight_name, weight in context.encoder.named_parameters():
        assert weight.requires_grad != frozen
        if frozen:
            assert weight.grad is None
        elif "layer.0" in weight_name or "word_embeddings" in weight_name:
            assert weight.grad.isfinite().all() and (weight.grad.any() or "key.bias" in weight_name), weight_name


@pytest.mark.parametrize("frozen", [True, False])
def test_a_frozen_encoder_has_no_dropout_in_training(frozen, tmp_path):
    model = tagger("bert", context_frozen=frozen)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path).train()
    ids = piece_ids("bert", TEXTS)
    for trained in (model.train(), loaded):
        first, second = trained.features.context(ids), trained.features.context(ids)
        assert torch.equal(first, second) == frozen
        assert first.requires_grad != frozen
    torch.testing.assert_close(loaded.eval().features.context(ids), model.eval().features.context(ids), rtol=0, atol=0)


@pytest.mark.parametrize(
    "encoder",
    [
        DistilBertModel(
            DistilBertConfig(
                vocab_size=len(tiny.BERT_PIECES), dim=8, n_layers=2, n_heads=2, hidden_dim=8, max_position_embeddings=20
            )
        ),
        GPT2Model(GPT2Config(vocab_size=len(tiny.BERT_PIECES), n_embd=8, n_layer=2, n_head=2, n_positions=20)),
    ],
    ids=["distilbert", "gpt2"],
)
def test_encoders_with_other_layer_names_are_supported(encoder, tmp_path):
    fields = tiny.context_fields(encoder, ENCODERS["bert"][1])
    model = build_model("bilstm-cnn", TOKENIZERS["bert"], **fields)
    model.save_pretrained(tmp_path)
    again = AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert torch.equal(again(**labelled("bert")).logits, model(**labelled("bert")).logits)


@pytest.mark.parametrize("model_type", configuration_tagger.ENCODERS)
def test_no_supported_encoder_depends_on_neighbours(model_type):
    sizes = {
        "vocab_size": len(tiny.BERT_PIECES),
        "hidden_size": 8,
        "intermediate_size": 8,
        "max_position_embeddings": 40,
    }
    sizes |= {"num_hidden_layers": 2, "num_attention_heads": 2, "pad_token_id": 0, "initializer_range": 1.0}
    encoder = AutoModel.from_config(AutoConfig.for_model(model_type, **sizes))
    model = build_model("bilstm-cnn", TOKENIZERS["bert"], **tiny.context_fields(encoder, ENCODERS["bert"][1])).eval()
    alone, both = (
        model(**TOKENIZERS["bert"](texts, padding=True, return_tensors="pt")).logits[0, :3]
        for texts in (["the rain in"], ["the rain in", "rain " * 12])
    )
    torch.testing.assert_close(alone, both, rtol=0, atol=1e-4)


# --- Faults -----------------------------------------------------------------------------------------------------------


def test_missing_or_invalid_piece_ids_raise():
    model = tagger("bert")
    batch = TOKENIZERS["bert"](["Ann"], return_tensors="pt")
    ids = batch.pop("piece_ids")
    for wrong in ({}, {"piece_ids": ids[..., :3]}, {"piece_ids": ids - 99}):
        with pytest.raises(ValueError, match="piece_ids"):
            model(**batch, **wrong)
