"""The XOR limitation of li2020: the Baseline cannot learn it, Cross and Att can.

Four phrases, whose outer words agree or disagree: "Key and Peele" and "You and I" are works of art, "Key and I" and
"You and Peele" are nothing. In the Baseline the score of a tag for the middle word is a sum of what its left and what
its right context say, and no sum computes an exclusive or.
"""

import pytest
import torch
from conftest import build_model

from hf_xorner import WordCharTokenizer

PHRASES = ["Key and Peele".split(), "You and I".split(), "Key and I".split(), "You and Peele".split()]
WHOLE_PHRASE = [["B-ART", "I-ART", "I-ART"]] * 2 + [["O", "O", "O"]] * 2
MIDDLE_WORD = [["O", "B-ART", "O"]] * 2 + [["O", "O", "O"]] * 2
LABELS = ["O", "B-ART", "I-ART"]


def train_on(tags, model_type: str, decoder: str):
    """Fit a model of li2020's sizes to the four phrases until the loss stands still; return it with its inputs."""
    tokenizer = WordCharTokenizer.from_corpus(PHRASES)
    sizes = {"hidden_size": 32, "word_dim": 32}
    model = build_model(model_type, tokenizer, labels=LABELS, spread=0.2, decoder=decoder, dropout=0.0, **sizes)
    inputs = dict(tokenizer(PHRASES, is_split_into_words=True, return_tensors="pt"))
    labels = torch.tensor([[LABELS.index(tag) for tag in row] for row in tags])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    for _ in range(250):
        optimizer.zero_grad()
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
    return model.eval(), inputs, labels


@torch.no_grad()
def middle_words_right(model, inputs, labels) -> int:
    """Return the number of phrases whose middle word has its highest inner score at the gold tag."""
    encoded = model.encode(inputs["input_ids"], inputs["char_ids"], inputs["attention_mask"].sum(1))
    return int((model.score(encoded.states).argmax(-1) == model.tags.to_inner(labels))[:, 1].sum())


@torch.no_grad()
def phrases_right(model, inputs, labels) -> int:
    """Return the number of phrases whose decoded labels are all right."""
    return int((model(**inputs).logits.argmax(-1) == labels).all(1).sum())


@pytest.mark.parametrize("model_type", ["cross-bilstm-cnn", "att-bilstm-cnn"])
def test_cross_and_att_get_every_phrase_right(model_type):
    for tags in (WHOLE_PHRASE, MIDDLE_WORD):
        assert middle_words_right(*train_on(tags, model_type, "softmax")) == 4
        assert phrases_right(*train_on(tags, model_type, "crf")) == 4


def test_the_baseline_does_not_unless_outer_labels_determine_the_middle_one_for_a_crf():
    for tags in (WHOLE_PHRASE, MIDDLE_WORD):
        assert middle_words_right(*train_on(tags, "bilstm-cnn", "softmax")) <= 3
    assert phrases_right(*train_on(WHOLE_PHRASE, "bilstm-cnn", "crf")) == 4
    assert phrases_right(*train_on(MIDDLE_WORD, "bilstm-cnn", "crf")) <= 3
