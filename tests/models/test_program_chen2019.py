"""GRN computes what the program of its authors computes (chen2019; GRN-NER in microsoft/vert-papers).

The program is written down a second time here, in loops over words and characters. Its weights are drawn at random and
copied to a model, in float64.
"""

import itertools

import helpers
import programs
import pytest
import torch
from programs import LABELS, TAGS

from hf_xorner import GrnConfig
from hf_xorner.models.modeling_grn import GrnForTokenClassification

#: The options with which a model computes what the program does.
PROGRAM = {"crf_boundaries": "both", "loss_reduction": "sentence"}
START, END, IMPOSSIBLE = len(TAGS), len(TAGS) + 1, -10000.0
WORDS, CHARS, LONGEST, WORD, CHAR, FILTERS = programs.SIZES.values()
SIZES = programs.SIZES | {"id2label": dict(enumerate(LABELS))}
#: Widths of the context layer's branches: the program's modes 1, 2 and 0.
WIDTHS = [(1, 3, 5), (3,), ()]


@pytest.fixture(params=WIDTHS, ids=str)
def weights(request):
    """Weights by the program's names; the vector of the padding word, whose id is 0, is 0."""
    hidden = 7 if request.param else WORD + FILTERS
    shapes = {
        "word_embeds": (WORDS, WORD),
        "char_embeds": (CHARS, CHAR),
        "char_cnn": (FILTERS, 3, CHAR),
        "char_cnn.bias": (FILTERS,),
        **{f"conv_{width}": (hidden, width, WORD + FILTERS) for width in request.param},
        **{f"conv_{width}.bias": (hidden,) for width in request.param},
        **{f"gate{number}": (hidden, hidden) for number in range(2)},
        **{f"gate{number}.bias": (hidden,) for number in range(2)},
        "hidden2tag": (len(TAGS) + 2, hidden),
        "hidden2tag.bias": (len(TAGS) + 2,),
        "transitions": (len(TAGS) + 2, len(TAGS) + 2),  # to, from
    }
    weights = programs.drawn(shapes)
    weights["word_embeds"].data[0] = 0
    weights["transitions"].data[START, :] = weights["transitions"].data[:, END] = IMPOSSIBLE
    return weights


def widths_of(weights):
    return tuple(width for width in (1, 3, 5) if f"conv_{width}" in weights)


def program_scores(weights, sentences):
    """Scores (T, tags, START and END) of sentences.

    The program fills words up to the batch's longest with a trained vector; as in the paper, they are not here.
    """
    time = max(map(len, sentences))
    batch = []
    for sentence in sentences:
        features = []
        for number, chars in sentence:
            letters = weights["char_embeds"][chars]
            strongest = programs.convolution(letters, weights["char_cnn"], weights["char_cnn.bias"]).max(0).values
            features.append(torch.cat([weights["word_embeds"][number], strongest]))
        padding = torch.cat([weights["word_embeds"][0], torch.zeros(FILTERS, dtype=torch.float64)])
        x = torch.stack(features + [padding] * (time - len(sentence)))
        if widths_of(weights):
            names = [f"conv_{width}" for width in widths_of(weights)]
            branches = [programs.convolution(x, weights[name], weights[f"{name}.bias"]) for name in names]
            x = torch.stack(branches).tanh().max(0).values
        scores = []
        for x_i in x[: len(sentence)]:
            total = torch.zeros_like(x_i)
            for x_j in x[: len(sentence)]:
                gate = weights["gate0"] @ x_i + weights["gate0.bias"] + weights["gate1"] @ x_j + weights["gate1.bias"]
                total = total + gate.sigmoid() * x_j
            scores.append(weights["hidden2tag"] @ (total / len(sentence)).tanh() + weights["hidden2tag.bias"])
        batch.append(torch.stack(scores))
    return batch


def program_losses(weights, scores, gold):
    """log Z − score of each sentence, by a recursion over all tags, START and END included."""
    transitions, losses = weights["transitions"], []
    for emissions, tags in zip(scores, gold, strict=True):
        forward = torch.full_like(emissions[0], IMPOSSIBLE)
        forward[START] = 0
        for emission in emissions:
            forward = (forward + transitions + emission.unsqueeze(1)).logsumexp(1)
        path = [START, *tags, END]
        score = sum(transitions[after, before] for before, after in itertools.pairwise(path))
        score = score + sum(emission[tag] for emission, tag in zip(emissions, tags, strict=True))
        losses.append((forward + transitions[END]).logsumexp(0) - score)
    return torch.stack(losses)


def program_path(weights, emissions):
    """The best tags of a sentence, by Viterbi."""
    transitions, pointers = weights["transitions"], []
    best = torch.full_like(emissions[0], IMPOSSIBLE)
    best[START] = 0
    for emission in emissions:
        best, before = (best + transitions).max(1)
        best = best + emission
        pointers.append(before)
    last = best + transitions[END]
    last[[START, END]] = IMPOSSIBLE
    path = [int(last.argmax())]
    for before in reversed(pointers[1:]):
        path.append(int(before[path[-1]]))
    return path[::-1]


def carried(weights):
    """The weights of a model by their names, from the program's, or gradients from gradients."""
    tags = len(TAGS)
    tensors = {
        "features.words.weight": weights["word_embeds"],
        "features.chars.embedding.weight": weights["char_embeds"],
        "features.chars.convolutions.0.weight": weights["char_cnn"].transpose(1, 2),
        "features.chars.convolutions.0.bias": weights["char_cnn.bias"],
        "encoder.relation.projection.weight": torch.cat([weights["gate0"], weights["gate1"]], 1),
        "encoder.relation.projection.bias": weights["gate0.bias"] + weights["gate1.bias"],
        "classifier.weight": weights["hidden2tag"][:tags],
        "classifier.bias": weights["hidden2tag.bias"][:tags],
        "decoder.transitions": weights["transitions"][:tags, :tags].t(),
        "decoder.start": weights["transitions"][:tags, START],
        "decoder.end": weights["transitions"][END, :tags],
    }
    for number, width in enumerate(widths_of(weights)):
        name = f"encoder.context.convolutions.{number}"
        tensors[f"{name}.weight"] = weights[f"conv_{width}"].transpose(1, 2)
        tensors[f"{name}.bias"] = weights[f"conv_{width}.bias"]
    return tensors


def model_of(weights, **fields):
    """A model with the program's weights, without dropout."""
    without_dropout = {"dropout": 0.0, "feature_dropout": 0.0}
    config = GrnConfig(**SIZES, **without_dropout, hidden_size=7, context_widths=widths_of(weights), **fields)
    return programs.carry(GrnForTokenClassification(config), carried(weights)).eval()


def data():
    """Sentences as lists of words, their gold tags, and as a batch."""
    rows = helpers.random_sentences(GrnConfig(**SIZES), (6, 2, 1, 4))
    sentences = [helpers.words_of(row) for row in rows]
    assert LONGEST in {len(chars) for sentence in sentences for _, chars in sentence}
    return sentences, programs.gold_tags(rows), helpers.pad(rows, labels=True)


def test_scores_loss_paths_and_gradients_are_those_of_the_program(weights):
    sentences, gold, batch = data()
    expected = program_scores(weights, sentences)
    loss = program_losses(weights, expected, gold).mean()
    loss.backward()
    model = model_of(weights, **PROGRAM)
    model_loss = model(**batch).loss
    model_loss.backward()
    helpers.close(model_loss, loss.item(), 1e-12)
    lengths = batch["attention_mask"].sum(1)
    states = model.encode(batch["input_ids"], batch["char_ids"], lengths).states
    scores = model.score(states)
    paths = model.decoder(scores, lengths, states).path
    for length, row, path, emissions in zip(lengths, scores, paths, expected, strict=True):
        helpers.close(row[:length], emissions[:, : len(TAGS)].detach(), 1e-12)
        assert path[:length].tolist() == program_path(weights, emissions.detach())
    gradients = carried(programs.gradients_of(weights))
    gradients["encoder.relation.projection.bias"] /= 2  # the program has two biases, each with the gradient of ours
    gradients["features.words.weight"][0] = 0  # only the program's padding word is trained
    programs.assert_gradients_match(model, gradients)
