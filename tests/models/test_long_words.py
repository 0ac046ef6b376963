"""The taggers of lample2016 read all characters of words, whatever the length of other words in the batch."""

import pytest
import torch
from conftest import SENTENCES, build_model
from transformers import pipeline

from hf_xorner import LstmCrfConfig, Tagger, WordCharTokenizer
from hf_xorner.training import TaggingCollator

LONG = "Rechtsschutzversicherungsgesellschaften"
URL = "https://example.com/" + "a1" * 60
ABSURD = "x" * 100_000 + "Y"
KINDS = ["lstm-crf", "lstm-crf standard cells", "stack-lstm", "stack-lstm standard cells", "stack-lstm of the program"]


@pytest.fixture(scope="module")
def tokenizer():
    return WordCharTokenizer.from_corpus([*SENTENCES, [LONG, URL]], max_word_chars=LstmCrfConfig.max_word_chars)


@pytest.fixture(params=KINDS)
def model(request, tokenizer):
    return build_model(request.param, tokenizer).double()


@torch.no_grad()
def test_characters_behind_the_twentieth_are_read(model, tokenizer):
    batch = tokenizer([[LONG, LONG[:-1] + "x", LONG[:20]]], is_split_into_words=True, return_tensors="pt")
    ids = torch.ones_like(batch["input_ids"])
    whole, changed, cut = model.features(ids, batch["char_ids"])[0]
    assert not torch.allclose(whole, changed)
    assert not torch.allclose(whole, cut)


@torch.no_grad()
def test_a_result_does_not_depend_on_longer_words_in_the_batch(model, tokenizer):
    sentences = [["Ann", "saw", "Zeus"], ["see", URL, "by"], [ABSURD], [LONG, "."]]
    together = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
    logits = model(**together).logits
    for number, sentence in enumerate(sentences):
        alone = model(**tokenizer([sentence], is_split_into_words=True, return_tensors="pt")).logits[0]
        torch.testing.assert_close(logits[number, : len(sentence)], alone, rtol=0, atol=1e-10)


def test_an_absurd_word_is_read_up_to_the_limit(model, tokenizer):
    tagger = Tagger(model, tokenizer)
    (labels, whole), (cut_labels, cut) = tagger.label([["Ann", ABSURD], ["Ann", ABSURD[:200]]])
    assert labels == cut_labels
    assert whole == pytest.approx(cut)
    assert tagger.tag([f"Ann {ABSURD}"])[0].text == f"Ann {ABSURD}"


def test_the_tagger_the_pipeline_and_the_collator_agree(model, tokenizer):
    texts = ["Ann saw Zeus", f"see {URL} by 12", LONG]
    pipe = pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple", batch_size=2)
    found = [[(entity["start"], entity["end"]) for entity in entities] for entities in pipe(texts)]
    assert found == [
        [(entity.start, entity.end) for entity in entities] for entities in Tagger(model, tokenizer).tag(texts)
    ]
    words = [text.split() for text in texts]
    batch = TaggingCollator(tokenizer)([{"tokens": each} for each in words])
    expected = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
    width = batch["char_ids"].shape[-1]  # as the longest word
    assert torch.equal(batch["char_ids"], expected["char_ids"][..., :width])
    assert not expected["char_ids"][..., width:].any()
