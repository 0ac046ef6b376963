"""Tokens that are added to a tokenizer, and models whose vocabulary grows or shrinks."""

import copy
import pickle

import pytest
import torch
from conftest import build_model
from tokenizers import AddedToken
from transformers import AutoModelForTokenClassification, AutoTokenizer

from hf_xorner import WordCharTokenizer

SENTENCES = [["Ann", "saw", "Oslo", "saw"], ["saw", "Oslo", "xyz"]]
#: Seen words have the ids 2 to 5, words that only have a pretrained vector 6 and 7.
TOKENIZER = WordCharTokenizer.from_corpus(SENTENCES, vector_words=["saw", "rome", "lima"], fallback=["lower"])
TEXT = "Ann saw <ent> in rome, Oslo and nowhere"

#: What is known of a word: fields of a config.
FEATURES = {
    "trained": {},
    "trained, with casing": {"unknown_word": "vector_and_casing", "casing_features": True},
    "tuned": {"pretrained_words": True},
    "frozen": {"word_dim": 0, "static_dim": 4},
    "frozen in half precision": {"word_dim": 0, "static_dim": 4, "static_bits": 16},
    "frozen in 8 bits": {"word_dim": 0, "static_dim": 4, "static_bits": 8},
    "frozen in 4 bits": {"word_dim": 0, "static_dim": 4, "static_bits": 4},
    "beside": {"static_dim": 4},
    "beside, tuned": {"static_dim": 4, "pretrained_words": True},
    "beside, with casing": {"static_dim": 4, "unknown_word": "vector_and_casing"},
}


def model_with(features, model_type="bilstm-cnn", tokenizer=TOKENIZER):
    model = build_model(model_type, tokenizer, **FEATURES[features])
    if model.features.static is not None:
        ids = torch.tensor(tokenizer.convert_tokens_to_ids(["saw", "rome", "lima"]))
        model.features.static.fill(ids, torch.arange(12.0).view(3, 4) / 8)
    return model


def with_added(*tokens):
    tokenizer = copy.deepcopy(TOKENIZER)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<ent>"]})
    tokenizer.add_tokens(list(tokens))
    return tokenizer


def logits(model, tokenizer, *words):
    return model(**tokenizer([list(words)], is_split_into_words=True, return_tensors="pt")).logits


# --- Tokenizer --------------------------------------------------------------------------------------------------------


def reloaded(tokenizer, folder):
    tokenizer.save_pretrained(folder)
    return WordCharTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("kept", ["as added", "reloaded", "pickled", "copied"])
def test_added_tokens_are_not_split_and_have_ids(tmp_path, kept):
    tokenizer = with_added("@home", "New York", AddedToken("sw", single_word=True))
    if kept == "reloaded":
        tokenizer = reloaded(tokenizer, tmp_path)
    elif kept != "as added":
        tokenizer = pickle.loads(pickle.dumps(tokenizer)) if kept == "pickled" else copy.deepcopy(tokenizer)
    text = "Ann<ent>saw @home, New York sw swim [PAD][UNK]"
    words = ["Ann", "<ent>", "saw", "@home", ",", "New York", "sw", "swim", "[", "PAD", "]", "[", "UNK", "]"]
    encoding = tokenizer(text, return_offsets_mapping=True)
    assert tokenizer.tokenize(text) == words
    assert [text[start:stop] for start, stop in encoding["offset_mapping"]] == words
    first = len(TOKENIZER)
    expected = [4, first, 2, first + 1, 1, first + 2, first + 3, 1, 1, 1, 1, 1, 1, 1]
    assert encoding["input_ids"] == expected
    assert tokenizer(words, is_split_into_words=True)["input_ids"] == expected
    assert tokenizer(words, is_split_into_words=True)["char_ids"] == encoding["char_ids"]
    assert tokenizer(["a<ent>b", "[PAD]", "[UNK]"], is_split_into_words=True)["input_ids"] == [1, 1, 1]


def test_added_special_tokens_are_special(tmp_path):
    for tokenizer in (with_added("@home"), reloaded(with_added("@home"), tmp_path)):
        assert set(tokenizer.all_special_tokens) == {"[PAD]", "[UNK]", "<ent>"}
        ids = tokenizer("Ann <ent> saw @home")["input_ids"]
        assert tokenizer.decode(ids) == "Ann <ent> saw @home"
        assert tokenizer.decode(ids, skip_special_tokens=True) == "Ann saw @home"
        assert tokenizer.convert_ids_to_tokens(ids, skip_special_tokens=True) == ["Ann", "saw", "@home"]


# --- Model ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", FEATURES)
def test_a_grown_model_keeps_its_predictions_and_can_be_saved(features, tmp_path):
    model, tokenizer = model_with(features), with_added("@home")
    words = ("Ann", "saw", "rome", "LIMA", "xyz", "nowhere")
    before = logits(model, TOKENIZER, *words)
    table = model.resize_token_embeddings(len(tokenizer))
    assert table is model.get_input_embeddings()
    assert torch.equal(logits(model, tokenizer, *words), before)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again = AutoModelForTokenClassification.from_pretrained(tmp_path)
    again_tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    batch = again_tokenizer(TEXT, return_tensors="pt")
    assert batch["input_ids"][0, 2] == len(TOKENIZER)
    assert torch.equal(again(**batch).logits, model(**tokenizer(TEXT, return_tensors="pt")).logits)
    assert torch.equal(logits(again, again_tokenizer, *words), before)


@pytest.mark.parametrize("features", [name for name, fields in FEATURES.items() if "word_dim" not in fields])
def test_added_tokens_have_separate_trained_vectors(features):
    model, tokenizer = model_with(features).train(), with_added("@home")
    model.resize_token_embeddings(len(tokenizer))
    table = model.get_input_embeddings()
    batch = tokenizer([["<ent>", "Ann", "rome"]], is_split_into_words=True, return_tensors="pt")
    model(**batch, labels=torch.tensor([[0, 1, 2]])).loss.backward()
    learning = table.weight.grad.abs().sum(1).nonzero().flatten().tolist()
    rome = 6 if model.config.pretrained_words else 1  # a word without a trained vector uses that of the unknown word
    assert learning == sorted([rome, 4, len(table.weight) - 2])


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("size", [9, 7, 5])  # without an added token, a word with a vector, a word that was seen
def test_a_shrunk_model_keeps_its_predictions_for_remaining_words(features, size, tmp_path):
    model, tokenizer = model_with(features), with_added("@home")
    model.resize_token_embeddings(len(tokenizer))
    words = [word for word, index in tokenizer.get_vocab().items() if 2 <= index < size]
    before = logits(model, tokenizer, *words)
    model.resize_token_embeddings(size)
    model.save_pretrained(tmp_path)
    for smaller in (model, AutoModelForTokenClassification.from_pretrained(tmp_path)):
        assert smaller.config.vocab_size == size
        assert torch.equal(logits(smaller, tokenizer, *words), before)
        with pytest.raises(ValueError, match=rf"input_ids holds {size} and the model's vocab_size is {size}"):
            smaller(torch.tensor([[size]]), torch.zeros(1, 1, tokenizer.max_word_chars, dtype=torch.long))
    model.resize_token_embeddings(len(tokenizer))
    assert torch.equal(logits(model, tokenizer, *words), before)


def test_resizing_keeps_frozen_weights_and_supports_pad_to_multiple_of(model_type):
    model = build_model(model_type, TOKENIZER, freeze_word_embeddings=True)
    assert model.resize_token_embeddings() is model.get_input_embeddings()
    assert model.config.vocab_size == len(TOKENIZER)
    model.resize_token_embeddings(len(TOKENIZER) + 1, pad_to_multiple_of=8, mean_resizing=False)
    assert model.config.vocab_size == 16
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    assert frozen == ["features.words.weight"]
