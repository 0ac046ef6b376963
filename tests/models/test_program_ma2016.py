"""BLSTM-CNNs-CRF computes what the program of its authors computes (ma2016; LasagneNLP, bi_lstm_cnn_crf.py).

The program is written down a second time here, in loops over words and characters, as its layers of Lasagne define
them; beyond a word-end it has zeros, and here the trained vector of padding (Figure 1 of the paper). Its weights are
drawn at random and copied to a model, in float64. To agree, `max_word_chars` is the corpus's longest word (45 at most),
and the loss needs one more label, which no word has: see `program_losses`.
"""

import helpers
import programs
import pytest
import torch
from programs import LABELS, TAGS

from hf_xorner import CnnLstmCrfConfig
from hf_xorner.models.modeling_cnn_lstm_crf import CnnLstmCrfForTokenClassification

PAD = len(TAGS)  # the program's label of padding, from which a sentence starts
UNITS = 6
SIZES = programs.SIZES | {"hidden_size": UNITS}
WORDS, CHARS, LONGEST, WORD, CHAR, FILTERS = programs.SIZES.values()
GATES = ("ingate", "forgetgate", "cell", "outgate")
DIRECTIONS = ("forward", "backward")


@pytest.fixture
def weights():
    """Weights by the names of Lasagne's layers; character 0 is the word-end."""
    shapes = {
        "words": (WORDS, WORD),
        "chars": (CHARS, CHAR),
        "cnn.W": (FILTERS, CHAR, 3),
        "cnn.b": (FILTERS,),
        "crf.W": (2 * UNITS, PAD + 1, PAD + 1),  # from, to
        "crf.b": (PAD + 1, PAD + 1),
    }
    for direction in DIRECTIONS:
        for gate in GATES:
            shapes |= {
                f"{direction}.{gate}.W_in": (FILTERS + WORD, UNITS),
                f"{direction}.{gate}.W_hid": (UNITS, UNITS),
                f"{direction}.{gate}.b": (UNITS,),
            }
    return programs.drawn(shapes)


def char_features(weights, chars):
    """Features of a word by a "full" convolution, in which filters are flipped and padding is on either side."""
    rows = weights["chars"][[0, 0, *chars, *[0] * (LONGEST - len(chars)), 0, 0]]
    responses = []
    for last in range(2, len(rows)):
        response = weights["cnn.b"]
        for offset in range(3):
            response = response + weights["cnn.W"][:, :, offset] @ rows[last - offset]
        responses.append(response.tanh())
    return torch.stack(responses).max(0).values


def lstm(weights, direction, inputs):
    """The states of one direction, in the order in which it reads."""
    h = c = torch.zeros(UNITS, dtype=torch.float64)
    states = []
    for x in inputs:
        i, f, g, o = (
            x @ weights[f"{direction}.{gate}.W_in"]
            + h @ weights[f"{direction}.{gate}.W_hid"]
            + weights[f"{direction}.{gate}.b"]
            for gate in GATES
        )
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    return states


def program_energies(weights, sentences):
    """Scores (T, from, to) of the pairs of labels of every sentence, the label of padding included."""
    energies = []
    for sentence in sentences:
        inputs = [torch.cat([char_features(weights, chars), weights["words"][number]]) for number, chars in sentence]
        ahead, back = lstm(weights, "forward", inputs), lstm(weights, "backward", inputs[::-1])[::-1]
        states = torch.stack([torch.cat(both) for both in zip(ahead, back, strict=True)])
        energies.append(torch.einsum("th,hij->tij", states, weights["crf.W"]) + weights["crf.b"])
    return energies


def program_losses(energies, gold):
    """log Z − score of each sentence. In log Z, any word may have the label of padding."""
    losses = []
    for pairs, tags in zip(energies, gold, strict=True):
        partition = pairs[0, PAD]
        for step in pairs[1:]:
            partition = (partition.unsqueeze(1) + step).logsumexp(0)
        path = [PAD, *tags]
        score = sum(step[before, after] for step, before, after in zip(pairs, path[:-1], path[1:], strict=True))
        losses.append(partition.logsumexp(0) - score)
    return torch.stack(losses)


def program_path(pairs):
    """The best labels of a sentence, by Viterbi without the label of padding."""
    best, pointers = pairs[0, PAD, :PAD], []
    for step in pairs[1:, :PAD, :PAD]:
        best, before = (best.unsqueeze(1) + step).max(0)
        pointers.append(before)
    path = [int(best.argmax())]
    for before in reversed(pointers):
        path.append(int(before[path[-1]]))
    return path[::-1]


def carried(weights, tags):
    """The weights of a model with this number of inner tags by their names; or gradients from gradients."""

    def gates(part):
        return torch.stack(
            [torch.cat([weights[f"{direction}.{gate}.{part}"].t() for gate in GATES]) for direction in DIRECTIONS]
        )

    inputs = gates("W_in")
    pairs, bias = weights["crf.W"].permute(1, 2, 0), weights["crf.b"]  # (from, to, …)
    return {
        "features.words.weight": weights["words"],
        "features.chars.embedding.weight": weights["chars"],
        "features.chars.convolutions.0.weight": weights["cnn.W"].flip(2),
        "features.chars.convolutions.0.bias": weights["cnn.b"],
        # [word ; characters] here, characters first in the program.
        "encoder.layer.weight_ih": torch.cat([inputs[:, :, FILTERS:], inputs[:, :, :FILTERS]], 2),
        "encoder.layer.weight_hh": gates("W_hid"),
        "encoder.layer.bias": gates("b"),
        "decoder.pairs.weight": pairs[:tags, :tags].flatten(0, 1),
        "decoder.pairs.bias": bias[:tags, :tags].flatten(),
        "decoder.starts.weight": pairs[PAD, :tags],
        "decoder.starts.bias": bias[PAD, :tags],
    }


def model_of(weights, labels=LABELS):
    """A model with the program's weights, without dropout."""
    without_dropout = {"char_dropout": 0.0, "dropout": 0.0, "feature_dropout": 0.0}
    config = CnnLstmCrfConfig(**SIZES, **without_dropout, id2label=dict(enumerate(labels)))
    model = CnnLstmCrfForTokenClassification(config)
    return programs.carry(model, carried(weights, model.tags.num_inner)).eval()


def data():
    """Sentences as lists of words, their gold tags, and as rows of a batch."""
    rows = helpers.random_sentences(CnnLstmCrfConfig(**SIZES, id2label=dict(enumerate(LABELS))), (6, 2, 1, 4))
    return [helpers.words_of(row) for row in rows], programs.gold_tags(rows), rows


def test_scores_and_paths_are_those_of_the_program(weights):
    sentences, _, rows = data()
    model, batch = model_of(weights), helpers.pad(rows)
    lengths = batch["attention_mask"].sum(1)
    states = model.encode(batch["input_ids"], batch["char_ids"], lengths).states
    scores = model.score(states)
    pairs, starts = model.decoder.moves(states)
    paths = model.decoder(scores, lengths, states).path
    assert not scores.any()
    with torch.no_grad():
        expected = program_energies(weights, sentences)
    for number, (length, energies) in enumerate(zip(lengths, expected, strict=True)):
        helpers.close(starts[number], energies[0, PAD, :PAD], 1e-12)
        helpers.close(pairs[number, 1:length], energies[1:, :PAD, :PAD], 1e-12)
        assert paths[number, :length].tolist() == program_path(energies)


def test_the_loss_and_its_gradients_are_those_of_the_program_with_one_more_label(weights):
    sentences, gold, rows = data()
    loss = program_losses(program_energies(weights, sentences), gold).mean()
    loss.backward()
    # Plain labels are the inner tags themselves.
    rows = [{**row, "labels": torch.tensor(tags)} for row, tags in zip(rows, gold, strict=True)]
    model = model_of(weights, labels=[*(tag.replace("-", "") for tag in TAGS), "PAD"])
    model_loss = model(**helpers.pad(rows, labels=True)).loss
    model_loss.backward()
    helpers.close(model_loss, loss.item(), 1e-12)
    gradients = carried(programs.gradients_of(weights), PAD + 1)
    gradients["features.words.weight"][0] = 0
    ours = {name: values.grad for name, values in model.named_parameters()}
    for part in ("weight", "bias"):
        # In the program the start and the label of padding are one.
        shared = ours[f"decoder.pairs.{part}"].view(PAD + 1, PAD + 1, -1)[PAD]
        shared += ours.pop(f"decoder.starts.{part}").view_as(shared)
    for name, gradient in ours.items():
        helpers.close(gradient, gradients[name], 1e-12)
