"""ID-CNN computes what the program of its authors computes (strubell2017; dilated-cnn-ner), for sentences with a CRF.

The program is written down a second time here, one sentence and word at a time, with the masks of dropout that a model
has drawn. Its weights are drawn at random and copied to a model, in float64. The program has a position of padding at
each end of a sentence, whose states later convolutions read; here they read zeros.
"""

import helpers
import programs
import pytest
import references as ref
import torch
from programs import LABELS, TAGS

from hf_xorner import IdCnnConfig
from hf_xorner.models import features, modeling_id_cnn
from hf_xorner.models.modeling_id_cnn import IdCnnForTokenClassification

WORDS, CHARS, LONGEST, WORD, _, _ = programs.SIZES.values()
SHAPE, FILTERS, UNKNOWN = 2, 7, 1
DILATIONS = (1, 2, 1)
KEEP = {"feature_dropout": 0.65, "dropout": 0.85}
PENALTY = 0.01
FIELDS = {"vocab_size": WORDS, "char_vocab_size": CHARS, "max_word_chars": LONGEST, "word_dim": WORD}
FIELDS |= {
    "shape_dim": SHAPE,
    "hidden_size": FILTERS,
    "iterations": 1,
    "loss_each_iteration": False,
    "loss_reduction": "sentence",
}
FIELDS |= {"decoder": "crf", "id2label": dict(enumerate(LABELS)), "dropout_penalty": PENALTY}
FIELDS |= {name: 1 - kept for name, kept in KEEP.items()}


@pytest.fixture
def weights():
    """Weights by the program's names; the word 0 is padding."""
    shapes = {"word_embeddings": (WORDS, WORD), "shape_embeddings": (4, SHAPE), "transitions": (len(TAGS), len(TAGS))}
    shapes |= {"conv0.w": (FILTERS, 3, WORD + SHAPE), "conv0.b": (FILTERS,)}
    for number in range(len(DILATIONS)):
        shapes |= {f"dilated{number}.w": (FILTERS, 3, FILTERS), f"dilated{number}.b": (FILTERS,)}
    shapes |= {"output.w": (FILTERS, len(TAGS)), "output.b": (len(TAGS),)}
    weights = programs.drawn(shapes)
    weights["word_embeddings"].data[0] = 0
    return weights


def program_scores(weights, words, shapes, masks=None):
    """Scores (T, tags) of a sentence; masks are those of the input and of the states before the classifier."""
    inputs, hidden = masks or (1, 1)
    states = torch.cat([weights["word_embeddings"][words], weights["shape_embeddings"][shapes]], 1) * inputs
    states = programs.convolution(states, weights["conv0.w"], weights["conv0.b"]).relu()
    for number, dilation in enumerate(DILATIONS):
        weight, bias = weights[f"dilated{number}.w"], weights[f"dilated{number}.b"]
        states = programs.convolution(states, weight, bias, dilation).relu()
    return states * hidden @ weights["output.w"] + weights["output.b"]


def crf_loss(scores, transitions, tags):
    """−log p of tags by the forward algorithm, without a start or an end."""
    alpha = scores[0]
    for row in scores[1:]:
        alpha = (alpha.unsqueeze(1) + transitions).logsumexp(0) + row
    return alpha.logsumexp(0) - scores[range(len(tags)), tags].sum() - transitions[tags[:-1], tags[1:]].sum()


def carried(weights):
    """The weights of a model by their names; or gradients from gradients."""
    return {
        "features.words.weight": weights["word_embeddings"],
        "features.shapes.weight": weights["shape_embeddings"],
        "encoder.input.weight": weights["conv0.w"].transpose(1, 2),
        "encoder.input.bias": weights["conv0.b"],
        **{f"encoder.block.{n}.weight": weights[f"dilated{n}.w"].transpose(1, 2) for n in range(len(DILATIONS))},
        **{f"encoder.block.{n}.bias": weights[f"dilated{n}.b"] for n in range(len(DILATIONS))},
        "classifier.weight": weights["output.w"].T,
        "classifier.bias": weights["output.b"],
        "decoder.transitions": weights["transitions"],
    }


def test_the_loss_of_training_and_its_gradients_are_those_of_the_program(weights, monkeypatch):
    model = programs.carry(IdCnnForTokenClassification(IdCnnConfig(**FIELDS)), carried(weights))
    masks = []

    def dropout(values, rate, training=True):
        if not training:
            return values
        masks.append(torch.bernoulli(torch.full_like(values, 1 - rate)) / (1 - rate))
        return values * masks[-1]

    for module in (features, modeling_id_cnn):
        monkeypatch.setattr(module, "dropout", dropout)
    rows = helpers.random_sentences(model.config, (6, 2, 1, 4))
    loss = model.train()(**helpers.pad(rows, labels=True)).loss
    assert model.training
    loss.backward()

    losses, change = [], 0
    for number, (row, tags) in enumerate(zip(rows, programs.gold_tags(rows), strict=True)):
        size, types = len(row["input_ids"]), model.config.char_types
        kinds = [[".Uldp".index(types[char]) for char in chars] for chars in row["char_ids"].tolist()]
        shapes = [ref.shape_index(kind, chars) for kind, chars in zip(kinds, row["char_ids"].tolist(), strict=True)]
        words = row["input_ids"].tolist()
        scores = program_scores(weights, words, shapes, [mask[number, :size] for mask in masks])
        change = change + (scores - program_scores(weights, words, shapes)).square().sum()
        losses.append(crf_loss(scores, weights["transitions"], tags))
    expected = torch.stack(losses).mean() + PENALTY * change / 2
    expected.backward()
    helpers.close(loss, expected.item(), 1e-12)
    gradients = carried(programs.gradients_of(weights))
    gradients["features.words.weight"][0] = 0
    programs.assert_gradients_match(model, gradients)


def test_any_word_may_become_unknown_in_training():
    torch.manual_seed(0)
    model = IdCnnForTokenClassification(IdCnnConfig(**{**FIELDS, "word_dropout": 0.15, "dropout_penalty": 0.0}))
    read = []
    model.features.words.register_forward_hook(lambda module, inputs, output: read.append(inputs[0]))
    words = torch.randint(2, WORDS, (50, 80))
    words[:, 70:] = 0
    chars = torch.zeros(*words.shape, LONGEST, dtype=torch.long)
    for training in (True, True, False):
        model.train(training)(input_ids=words, char_ids=chars, labels=torch.zeros_like(words))
    first, second, evaluated = read
    assert torch.equal(evaluated, words) and not torch.equal(first, second)
    dropped = first != words
    assert (first[dropped] == UNKNOWN).all() and not dropped[:, 70:].any()
    assert abs(dropped[:, :70].float().mean() - 0.15) < 0.02


def test_first_weights_are_those_of_the_program():
    model = IdCnnForTokenClassification(IdCnnConfig(initializer="glorot"))
    for module in (model.encoder.input, model.classifier):
        assert (module.bias == 0.01).all()
    bound = 2**0.5 * (6 / (3 * (105 + 300))) ** 0.5
    assert 0.95 * bound < model.encoder.input.weight.abs().max() <= bound
