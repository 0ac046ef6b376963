"""The XOR limitation of li2020: the Baseline cannot learn it, Cross and Att can.

Four phrases, whose outer words agree or disagree: "Key and Peele" and "You and I" are works of art, "Key and I" and
"You and Peele" are nothing. In the Baseline the score of a tag for the middle word is a sum of what its left and what
its right context say, and no sum computes an exclusive or.
"""

import pytest
import torch
from conftest import build_model

from hf_xorner import WordCharTokenizer
from hf_xorner.training import parse, prepare

PHRASES = ["Key and Peele".split(), "You and I".split(), "Key and I".split(), "You and Peele".split()]
WHOLE_PHRASE = [["B-ART", "I-ART", "I-ART"]] * 2 + [["O", "O", "O"]] * 2
MIDDLE_WORD = [["O", "B-ART", "O"]] * 2 + [["O", "O", "O"]] * 2
LABELS = ["O", "B-ART", "I-ART"]
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


def train_on(tags, model_type: str, decoder: str, seed: int):
    """Fit a model of li2020's sizes to the four phrases until the loss stands still; return it with its inputs."""
    tokenizer = WordCharTokenizer.from_corpus(PHRASES)
    sizes = {"hidden_size": 32, "word_dim": 32}
    model = build_model(
        model_type, tokenizer, labels=LABELS, seed=seed, spread=0.2, decoder=decoder, dropout=0.0, **sizes
    )
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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tags", [WHOLE_PHRASE, MIDDLE_WORD], ids=["B-I-E", "O-S-O"])
def test_word_by_word_the_baseline_gets_at_most_three_middle_words_right(tags, seed):
    assert middle_words_right(*train_on(tags, "bilstm-cnn", "softmax", seed)) <= 3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tags", [WHOLE_PHRASE, MIDDLE_WORD], ids=["B-I-E", "O-S-O"])
@pytest.mark.parametrize("model_type", ["cross-bilstm-cnn", "att-bilstm-cnn"])
def test_word_by_word_cross_and_att_get_all_middle_words_right(model_type, tags, seed):
    assert middle_words_right(*train_on(tags, model_type, "softmax", seed)) == 4


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crf_helps_the_baseline_if_the_outer_labels_determine_the_middle_one(seed):
    assert phrases_right(*train_on(WHOLE_PHRASE, "bilstm-cnn", "crf", seed)) == 4


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crf_does_not_help_the_baseline_if_only_the_middle_word_is_labelled(seed):
    assert phrases_right(*train_on(MIDDLE_WORD, "bilstm-cnn", "crf", seed)) <= 3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tags", [WHOLE_PHRASE, MIDDLE_WORD], ids=["B-I-E", "O-S-O"])
@pytest.mark.parametrize("model_type", ["cross-bilstm-cnn", "att-bilstm-cnn"])
def test_cross_and_att_with_a_crf_get_both_labellings_right(model_type, tags, seed):
    assert phrases_right(*train_on(tags, model_type, "crf", seed)) == 4


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["softmax", "crf"])
def test_the_gap_on_the_test_split_of_the_xor_corpus(decoder, tmp_path):
    """Entities that are a middle word alone (type LINK): F1 after the epochs in which Cross and Att learn them all."""
    scores = {}
    for model_type in ("bilstm-cnn", "cross-bilstm-cnn", "att-bilstm-cnn"):
        options = ["--model_type", model_type, "--decoder", decoder, "--output_dir", str(tmp_path / model_type)]
        run, training, config_fields = parse([*options, "--num_train_epochs", "15", "--disable_tqdm", "true"])
        test = prepare(run, training, config_fields).train()["test"]
        scores[model_type] = test["per_type"]["LINK"]["f1"]
    assert scores["bilstm-cnn"] < 75
    assert scores["cross-bilstm-cnn"] > 95
    assert scores["att-bilstm-cnn"] > 95
