"""The taggers of lample2016 read all characters of words, whatever the length of other words in the batch."""

import pytest
import torch
from conftest import SENTENCES, build_model

from hf_xorner import LstmCrfConfig, Tagger, WordCharTokenizer

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
def test_a_result_does_not_depend_on_longer_words_in_the_batch(model, tokenizer):
    sentences = [["Ann", "saw", "Zeus"], ["see", URL, "by"], [ABSURD], [LONG, "."]]
    together = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
    logits = model(**together).logits
    for number, sentence in enumerate(sentences):
        alone = model(**tokenizer([sentence], is_split_into_words=True, return_tensors="pt")).logits[0]
        torch.testing.assert_close(logits[number, : len(sentence)], alone, rtol=0, atol=1e-10)


def test_a_very_long_word_is_read_up_to_the_limit(model, tokenizer):
    tagger = Tagger(model, tokenizer)
    (labels, whole), (cut_labels, cut) = tagger.label([["Ann", ABSURD], ["Ann", ABSURD[:200]]])
    assert labels == cut_labels
    assert whole == pytest.approx(cut)
    assert tagger.tag([f"Ann {ABSURD}"])[0].text == f"Ann {ABSURD}"
