"""The taggers of li2020 compute what the program of its authors computes, given its weights.

`Program` restates that program (TensorFlow 1.14) for one sentence at a time: its shapes, gate order, forget bias and
look-ups, which differ from ours. `carried` puts its weights into our model, through which gradients flow back to them.
Where we follow the paper or Unicode, it does, too: unknown words keep their casing, and characters beyond ASCII have
types.
"""

import string
import unicodedata
from unittest import mock

import helpers
import pytest
import torch
from conftest import LI2020
from torch.func import functional_call

from hf_xorner import Tagger, WordCharTokenizer
from hf_xorner.models.modeling_bilstm_cnn import VariationalDropout
from hf_xorner.registration import CONFIGS, MODELS

#: The options that make ours the program; all others are defaults.
PROGRAM = {"dropout_masks": "batch"}
PROGRAMS_TOKENIZER = {"min_count": 1_000_000}  # words without a vector are unknown

KNOWN_PUNCTUATION = ".-,)(\"':/$+;*&=%?[]@!`#"
CHARACTERS = [*string.digits, *string.ascii_lowercase, *string.ascii_uppercase, *KNOWN_PUNCTUATION, "UNK", "PAD"]
WORDS_LENGTH, HIDDEN, HEADS, HEAD_SIZE, WORD_SIZE, CHAR_SIZE, FILTERS = 20, 6, 3, 4, 5, 4, 3
TYPES = ["PER", "LOC", "GOD"]
TAGS = ["O", *(f"{letter}-{name}" for name in TYPES for letter in "BIES")]
LABELS = ["O", *(f"{letter}-{name}" for name in TYPES for letter in "BI")]

#: Known words are those with a vector; there are letters, digits and symbols beyond ASCII, and a word of 28 characters.
SENTENCES = [
    "Ann Smith 's Österreich cost 3 € , ÜBER-Über §7".split(),
    "ZEUS".split(),
    "über_uns { ~ } 2nd iPhone ŁÓDŹ ٣ 東京".split(),
    "the internationalisation-of-towns in New York , YORK ; unseen Unseen UNSEEN uNSEEN 12:30".split(),
]
VECTORS = "Ann Smith 's Österreich 3 , ÜBER-Über zeus über_uns ~ ŁÓDŹ ٣ the in New YORK ;".split()
VECTORS += ["internationalisation-of-towns"]
GOLD = [
    ["B-PER", "E-PER", "O", "S-LOC", "O", "O", "O", "O", "B-GOD", "E-GOD"],
    ["S-GOD"],
    ["O", "O", "O", "O", "O", "O", "S-LOC", "O", "S-LOC"],
    ["O", "B-LOC", "I-LOC", "I-LOC", "E-LOC", "O", "S-LOC", "O", "O", "O", "B-PER", "E-PER", "O"],
]
_DRAW = torch.Generator().manual_seed(0)
VECTOR_OF = {word: torch.randn(WORD_SIZE, generator=_DRAW, dtype=torch.float64) for word in VECTORS}


# --- The program -----------------------------------------------------------------------------------------------------


def drawn(model_type, seed=0):
    """Random weights, named and shaped as in the program."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    weights = {"unknown": normal(WORD_SIZE), "characters": normal(len(CHARACTERS), CHAR_SIZE)}
    for width in (1, 2, 3):
        weights[f"filter {width}"] = normal(width, CHAR_SIZE + 4, FILTERS)
    upper = 2 * HIDDEN if model_type == "cross-bilstm-cnn" else HIDDEN
    for layer, size in enumerate((WORD_SIZE + 4 + 3 * FILTERS, upper)):
        for direction in ("forward", "backward"):
            weights[f"{direction} kernel {layer}"] = normal(size + HIDDEN, 4 * HIDDEN)
            weights[f"{direction} bias {layer}"] = normal(4 * HIDDEN)
    size = 2 * HIDDEN
    if model_type == "att-bilstm-cnn":
        for head in range(HEADS):
            for name in ("query", "key", "value"):
                weights[f"{name} {head}"] = normal(size, HEAD_SIZE)
        size += HEADS * HEAD_SIZE
    return {**weights, "output": normal(size, len(TAGS)), "output bias": normal(len(TAGS))}


class Program:
    """The program's network on one sentence; `masks` are its dropout masks by layer, "input", "state" or "output"."""

    def __init__(self, model_type, weights, masks=None):
        self.model_type, self.weights, self.masks = model_type, weights, masks

    def capitals(self, word):
        tests = [word.isupper(), word[0].isupper(), word.islower(), True]
        return torch.eye(4, dtype=torch.float64)[tests.index(True)]

    def character_type(self, character):
        category = unicodedata.category(character)
        types = [category == "Lu", category == "Ll", category == "Nd", category[0] in "PS"]
        return torch.tensor(types, dtype=torch.float64)

    def characters(self, word):
        """The maxima of all filters over a word of exactly 20 characters, (filters,)."""
        cut = word[:WORDS_LENGTH]
        known = [character if character in CHARACTERS else "UNK" for character in cut] + ["PAD"] * (
            WORDS_LENGTH - len(cut)
        )
        vectors = self.weights["characters"][[CHARACTERS.index(character) for character in known]]
        types = torch.zeros(WORDS_LENGTH, 4, dtype=torch.float64)
        for position, character in enumerate(cut):
            types[position] = self.character_type(character)
        rows = torch.cat([vectors, types], -1)
        vectors_of_chars = []
        for width in (1, 2, 3):
            kernel = self.weights[f"filter {width}"]
            positions = range(WORDS_LENGTH - width + 1)
            windows = torch.stack(
                [rows[position : position + width] for position in positions]
            )  # (positions, width, d)
            vectors_of_chars.append(torch.tensordot(windows, kernel, dims=2).amax(0))
        return torch.cat(vectors_of_chars)

    def features(self, word):
        vector = VECTOR_OF[word] if word in VECTOR_OF else self.weights["unknown"]
        return torch.cat([vector, self.capitals(word), self.characters(word)])

    def lstm(self, direction, layer, inputs):
        """TensorFlow's cell: one matrix for [x ; h], the gates in the order i, j, f, o, and 1 added to f."""
        kernel, bias = self.weights[f"{direction} kernel {layer}"], self.weights[f"{direction} bias {layer}"]
        h = c = torch.zeros(HIDDEN, dtype=torch.float64)
        outputs = []
        for x in inputs if direction == "forward" else inputs[::-1]:
            x = self.dropped(x, direction, layer, "input")
            i, j, f, o = (torch.cat([x, h]) @ kernel + bias).chunk(4)
            c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(j)
            output = torch.sigmoid(o) * torch.tanh(c)
            h = self.dropped(output, direction, layer, "state")
            outputs.append(self.dropped(output, direction, layer, "output"))
        return outputs if direction == "forward" else outputs[::-1]

    def dropped(self, values, direction, layer, kind):
        mask = (self.masks or {}).get((layer, kind))
        return values if mask is None else values * mask[int(direction == "backward"), 0]

    def states(self, words):
        """What the classifier reads, (T, size)."""
        forward = backward = [self.features(word) for word in words]
        for layer in range(2):
            if layer and self.model_type == "cross-bilstm-cnn":
                forward = backward = [torch.cat(pair) for pair in zip(forward, backward, strict=True)]
            forward, backward = self.lstm("forward", layer, forward), self.lstm("backward", layer, backward)
        states = torch.stack([torch.cat(pair) for pair in zip(forward, backward, strict=True)])
        if self.model_type != "att-bilstm-cnn":
            return states
        heads = []
        for head in range(HEADS):
            query, key, value = (states @ self.weights[f"{name} {head}"] for name in ("query", "key", "value"))
            heads.append(torch.softmax(query @ key.T / HEAD_SIZE**0.5, -1) @ value)
        return torch.cat([states, *heads], -1)

    def logits(self, words):
        """Scores (T, tags)."""
        return self.states(words) @ self.weights["output"] + self.weights["output bias"]

    def loss(self, sentences, gold):
        """Cross-entropy, summed over the words of all sentences and divided by their number."""
        total = sum(
            -self.logits(words).log_softmax(-1)[position, TAGS.index(tag)]
            for words, tags in zip(sentences, gold, strict=True)
            for position, tag in enumerate(tags)
        )
        return total / sum(map(len, gold))

    def entities(self, words):
        """The decoded entities (type, start, end): an open B-, then I- and E- of its type; all else is dropped."""
        spans, start, kind = set(), None, None
        for position, tag in enumerate(TAGS[index] for index in self.logits(words).argmax(-1)):
            letter, _, name = tag.partition("-")
            if letter == "S":
                spans.add((name, position, position + 1))
            if letter == "E" and start is not None and kind == name:
                spans.add((name, start, position + 1))
            if letter == "B":
                start, kind = position, name
            elif letter != "I" or kind != name:
                start = kind = None
        return spans


# --- Ours ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def program_tokenizer():
    return WordCharTokenizer.from_corpus(SENTENCES, vector_words=VECTORS, **PROGRAMS_TOKENIZER)


def build(model_type, tokenizer, **fields):
    """Our model with the options and the vectors of the program, in double precision."""
    sizes = {"hidden_size": HIDDEN, "char_dim": CHAR_SIZE, "char_filters": FILTERS}
    if model_type == "att-bilstm-cnn":
        sizes |= {"num_attention_heads": HEADS, "attention_head_dim": HEAD_SIZE}
    vectors = {"static_dim": WORD_SIZE, "word_dim": 0}
    fields = {**sizes, **vectors, **PROGRAM, **fields, "id2label": dict(enumerate(LABELS))}
    model = MODELS[model_type].load()(CONFIGS[model_type](**tokenizer.model_fields(), **fields)).double().eval()
    vocabulary = tokenizer.get_vocab()
    model.features.static.fill(
        torch.tensor([vocabulary[word] for word in VECTORS]), torch.stack([VECTOR_OF[word] for word in VECTORS])
    )
    return model


def carried(weights, model, tokenizer):
    """The parameters of our model from those of the program."""
    unknown = CHARACTERS.index("UNK")
    characters = [
        CHARACTERS.index(character) if character in CHARACTERS else unknown for character in tokenizer.characters
    ]
    tensors = {
        "features.static.unknown": weights["unknown"],
        "features.chars.embedding.weight": weights["characters"][[-1, *[unknown] * 5, *characters]],
        "classifier.weight": weights["output"].T[[TAGS.index(tag) for tag in model.tags.inner_tags]],
        "classifier.bias": weights["output bias"][[TAGS.index(tag) for tag in model.tags.inner_tags]],
    }
    for width in (1, 2, 3):
        tensors[f"features.chars.convolutions.{width - 1}.weight"] = weights[f"filter {width}"].permute(2, 1, 0)
    for layer in range(2):
        ours = []
        for direction in ("forward", "backward"):
            kernel, bias = weights[f"{direction} kernel {layer}"], weights[f"{direction} bias {layer}"]
            i, j, f, o = torch.cat([kernel, bias.unsqueeze(0)]).T.chunk(4)
            gates = torch.cat([i, f, j, o])
            forget = torch.zeros(4 * HIDDEN, dtype=torch.float64)
            forget[HIDDEN : 2 * HIDDEN] = 1
            ours.append((gates[:, : -HIDDEN - 1], gates[:, -HIDDEN - 1 : -1], gates[:, -1] + forget))
        for name, values in zip(("weight_ih", "weight_hh", "bias"), zip(*ours, strict=True), strict=True):
            tensors[f"encoder.layers.{layer}.{name}"] = torch.stack(values)
    if "query 0" in weights:
        for name in ("query", "key", "value"):
            heads = [weights[f"{name} {head}"].T for head in range(HEADS)]
            tensors[f"encoder.attention.{name}.weight"] = torch.cat(heads)
    return tensors


def batch_of(tokenizer, sentences):
    return tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")


def public_labels(gold):
    """IOB2 labels of BIOES tags, padded to (B, T)."""
    rows = [[LABELS.index(tag.replace("E-", "I-").replace("S-", "B-")) for tag in tags] for tags in gold]
    width = max(map(len, rows))
    return torch.tensor([row + [helpers.IGNORED] * (width - len(row)) for row in rows])


@pytest.mark.parametrize("model_type", LI2020)
def test_scores_match_the_program(model_type, program_tokenizer):
    weights, model = drawn(model_type), build(model_type, program_tokenizer)
    model.load_state_dict(carried(weights, model, program_tokenizer), strict=False)
    scores, _ = helpers.score(model, batch_of(program_tokenizer, SENTENCES))
    order = [model.tags.inner_tags.index(tag) for tag in TAGS]
    for row, words in zip(scores[..., order], SENTENCES, strict=True):
        helpers.close(row[: len(words)], Program(model_type, weights).logits(words).detach(), 1e-12)


@pytest.mark.parametrize("model_type", LI2020)
def test_loss_and_gradients_match_the_program(model_type, program_tokenizer):
    weights, model = drawn(model_type, 1), build(model_type, program_tokenizer)
    batch = {**batch_of(program_tokenizer, SENTENCES), "labels": public_labels(GOLD)}
    loss = functional_call(model, carried(weights, model, program_tokenizer), kwargs=batch).loss
    expected = Program(model_type, weights).loss(SENTENCES, GOLD)
    helpers.close(loss, expected.detach(), 1e-12)
    names, values = list(weights), list(weights.values())
    gradients, program_gradients = (torch.autograd.grad(value, values) for value in (loss, expected))
    for name, actual, wanted in zip(names, gradients, program_gradients, strict=True):
        assert wanted.any(), name
        helpers.close(actual, wanted, 1e-12)


@pytest.mark.parametrize("model_type", LI2020)
def test_dropout_is_where_the_program_has_it(model_type, program_tokenizer):
    """On every layer's input and state, and on the top layer's output: one mask a batch, direction and location."""
    weights, model = drawn(model_type, 2), build(model_type, program_tokenizer, dropout=0.35).train()
    drawn_masks, draw = [], VariationalDropout.mask
    torch.manual_seed(0)  # masks of so few values may be all zeros or have none

    def recorded(self, *arguments):
        drawn_masks.append(draw(self, *arguments))
        return drawn_masks[-1]

    batch = {**batch_of(program_tokenizer, SENTENCES), "labels": public_labels(GOLD)}
    with mock.patch.object(VariationalDropout, "mask", recorded):
        loss = functional_call(model, carried(weights, model, program_tokenizer), kwargs=batch).loss
    locations = [(0, "state"), (0, "input"), (1, "state"), (1, "input"), (1, "output")]
    masks = dict(zip(locations, drawn_masks, strict=True))
    assert all(mask.shape[:2] == (2, 1) and 0 < mask.count_nonzero() < mask.numel() for mask in masks.values())
    helpers.close(loss, Program(model_type, weights, masks).loss(SENTENCES, GOLD).detach(), 1e-12)


@pytest.mark.parametrize("model_type", LI2020)
def test_decoded_entities_match_the_program(model_type, program_tokenizer):
    """Without the spans that are malformed, of which random weights predict many."""
    model, count, dropped = build(model_type, program_tokenizer), 0, 0
    for seed in range(10, 16):
        weights = {name: values.detach() for name, values in drawn(model_type, seed).items()}
        model.load_state_dict(carried(weights, model, program_tokenizer), strict=False)
        program = Program(model_type, weights)
        for words, entities in zip(SENTENCES, Tagger(model, program_tokenizer)(SENTENCES), strict=True):
            expected = program.entities(words)
            assert {(entity.label, entity.word_start, entity.word_end) for entity in entities} == expected
            count += len(expected)
            inside = sum(end - start for _, start, end in expected)
            dropped += int((program.logits(words).argmax(-1) != 0).sum()) - inside
    assert count > 5 and dropped > 10


# --- The paper -------------------------------------------------------------------------------------------------------
