"""Frozen vectors next to, or instead of, trained ones: their values, and that they never change."""

from itertools import cycle

import pytest
import torch
from conftest import ARCHITECTURES, build_model
from transformers import AutoModelForTokenClassification

from hf_xorner import WordCharTokenizer

SENTENCES = [["Ann", "saw", "Oslo", "saw"], ["saw", "Oslo", "xyz"]]
TOKENIZER = WordCharTokenizer.from_corpus(SENTENCES, vector_words=["saw", "rome", "lima"], fallback=["lower"])


def model_with_vectors(model_type, **fields):
    model = build_model(model_type, TOKENIZER, **{"static_dim": 4, **fields})
    ids = torch.tensor([TOKENIZER.get_vocab()[word] for word in ("saw", "rome", "lima")])
    model.features.static.fill(ids, torch.arange(12.0).view(3, 4) / 8)
    return model


def inputs(*words):
    return TOKENIZER([list(words)], is_split_into_words=True, return_tensors="pt")


@pytest.mark.parametrize(("model_type", "word_dim"), list(zip(ARCHITECTURES, cycle([0, 3]))))
def test_features_are_the_trained_then_the_frozen_vector(model_type, word_dim):
    model = model_with_vectors(model_type, word_dim=word_dim)
    batch = inputs("saw", "rome", "Rome", "Oslo", "nothing")
    features = model.features(batch["input_ids"], batch["char_ids"])[0]
    trained, frozen = features[:, :word_dim], features[:, word_dim : word_dim + 4]
    words, static = model.features.words.weight, model.features.static
    vocabulary = TOKENIZER.get_vocab()
    # Words unseen in training use the unknown trained vector and their own frozen vector.
    assert torch.equal(trained, words[[vocabulary["saw"], 1, 1, vocabulary["Oslo"], 1]])
    expected = [static.weight[vocabulary[word]] for word in ("saw", "rome", "rome")] + [static.unknown] * 2
    assert torch.equal(frozen, torch.stack(expected))


@pytest.mark.parametrize(("model_type", "bits"), list(zip(ARCHITECTURES, cycle([32, 16]))))
def test_frozen_vectors_are_bit_identical_after_training_and_saving(model_type, bits, tmp_path):
    model = model_with_vectors(model_type, static_bits=bits)
    before = model.features.static.weight.clone()
    assert before.dtype == (torch.float16 if bits == 16 else torch.float32)
    names = [name for name, _ in model.named_parameters()]
    assert "features.static.weight" not in names and "features.static.unknown" in names
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model.train()
    batch = inputs("saw", "rome", "Oslo", "what")
    for _ in range(3):
        optimizer.zero_grad()
        model(**batch, labels=torch.tensor([[0, 1, 2, 0]])).loss.backward()
        optimizer.step()
    assert model.features.static.unknown.grad.abs().sum() > 0
    assert torch.equal(model.features.static.weight, before)
    model.eval().save_pretrained(tmp_path)
    again = AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert again.features.static.weight.dtype == before.dtype
    assert torch.equal(again.features.static.weight, before)
    assert torch.equal(again.features.static.has_vector, model.features.static.has_vector)
    torch.testing.assert_close(again(**batch).logits, model(**batch).logits, rtol=0, atol=1e-5)


def test_singletons_are_replaced_by_unknown_in_training_with_the_given_probability(model_type):
    fields = TOKENIZER.model_fields()
    assert [TOKENIZER.convert_ids_to_tokens(index) for index in range(2, fields["vocab_size"])] == [
        *("saw", "Oslo", "Ann", "xyz"),
        *("rome", "lima"),
    ]
    assert (fields["first_singleton_id"], fields["trained_vocab_size"]) == (4, 6)
    model = build_model(model_type, TOKENIZER, singleton_dropout=0.3)
    ids = torch.arange(fields["vocab_size"]).repeat(4000, 1)
    assert torch.equal(model.features.without_singletons(ids), ids)
    model.train()
    torch.manual_seed(0)
    dropped = (model.features.without_singletons(ids) == 1).float().mean(0)
    assert dropped[[0, 2, 3, 6, 7]].sum() == 0 and dropped[1] == 1
    assert dropped[4:6].sub(0.3).abs().max() < 0.03
