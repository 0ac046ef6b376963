"""The LSTM-CRF and the Stack-LSTM compute what the programs of lample2016's authors compute.

Both programs are transcribed here from their sources (glample/tagger, in Theano, and clab/stack-lstm-ner, in C++), one
sentence, word and action at a time, in float64. Their weights are drawn at random and carried into a model; scores,
losses, gradients and best paths must agree.

Where programs and paper differ, the transcription follows the paper, as the table in docs/papers.md says: LSTMs start
from zeros; the Stack-LSTM's words are [word ; characters], a chunk's LSTM reads the words and then the type, OUT pushes
a word composed with a type of its own and is forbidden while the stack holds words, and at the first step of a sequence
the output gate reads the cell.
"""

import pytest
import references as ref
import torch

from hf_xorner import LstmCrfConfig, StackLstmConfig
from hf_xorner.models.modeling_lstm_crf import LstmCrfForTokenClassification
from hf_xorner.models.modeling_stack_lstm import StackLstmForTokenClassification, greedy_search

STACK_LSTM = {"word_dim": 0, "static_dim": 5}  # words have a frozen pretrained vector or none
RELEASES = {"first": {}, "later": {"cell": "standard", "char_lstm_cell": "standard"}}

TYPES = ["PER", "LOC", "ORG"]
LABELS = ["O", *(f"{position}-{kind}" for kind in TYPES for position in "BI")]
WORDS, CHARS, FIRST_CHAR = 12, 20, 6  # smaller ids of characters are reserved
SENTENCES = (["B-PER", "I-PER", "O", "O", "B-LOC", "B-LOC"], ["O"], ["B-ORG", "I-ORG", "I-ORG"], ["O", "B-PER"])
CONFIG = {
    "vocab_size": WORDS,
    "char_vocab_size": CHARS,
    "id2label": dict(enumerate(LABELS)),
    "char_dim": 4,
    "char_lstm_size": 3,
    "hidden_size": 6,
    "feature_dropout": 0.0,
    "singleton_dropout": 0.0,
}
EXACT = {"rtol": 0, "atol": 1e-12}


class Drawn(dict):
    """Random weights by name, leaves of a graph."""

    def __init__(self, seed, shapes):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        for name, shape in shapes.items():
            self[name] = torch.randn(shape, generator=self.generator, dtype=torch.float64).requires_grad_()

    def gradients(self):
        return {name: torch.zeros_like(value) if value.grad is None else value.grad for name, value in self.items()}


def corpus():
    """Sentences of word ids, lists of characters (some longer than any common limit), and labels."""
    generator = torch.Generator().manual_seed(5)
    sentences = []
    for labels in SENTENCES:
        sizes = torch.randint(1, 8, (len(labels),), generator=generator).tolist()
        sizes[0] = 61
        chars = [torch.randint(FIRST_CHAR, CHARS, (size,), generator=generator).tolist() for size in sizes]
        sentences.append((torch.randint(2, WORDS, (len(labels),), generator=generator).tolist(), chars, labels))
    return sentences


def batch_of(sentences, width):
    """The model's inputs."""
    time = max(len(ids) for ids, _, _ in sentences)
    shape = (len(sentences), time)
    ids, labels = torch.zeros(shape, dtype=torch.long), torch.full(shape, -100)
    chars = torch.zeros(*shape, width, dtype=torch.long)
    for row, (words, spellings, names) in enumerate(sentences):
        ids[row, : len(words)] = torch.tensor(words)
        labels[row, : len(words)] = torch.tensor([LABELS.index(name) for name in names])
        for index, spelling in enumerate(spellings):
            chars[row, index, : len(spelling)] = torch.tensor(spelling)
    return {"input_ids": ids, "char_ids": chars, "labels": labels}


def carry(model, weights):
    """Set the weights of a model; all must be given."""
    names = dict(model.named_parameters())
    assert weights.keys() == names.keys()
    with torch.no_grad():
        for name, values in weights.items():
            assert names[name].shape == values.shape, name
            names[name].copy_(values)


def assert_gradients_match(model, gradients):
    for name, wanted in gradients.items():
        torch.testing.assert_close(model.get_parameter(name).grad, wanted, msg=name, **EXACT)


# LSTM-CRF: glample/tagger, model.py and nn.py


def theano_lstm_shapes(name, inputs, size):
    shapes = {f"w_x{gate}": (inputs, size) for gate in "ico"} | {f"w_h{gate}": (size, size) for gate in "ico"}
    shapes |= {"w_ci": (size, size), "w_co": (size, size)} | {f"b_{gate}": (size,) for gate in "ico"}
    return {f"{name}__{part}": shape for part, shape in shapes.items()}


def theano_lstm(weights, name, inputs):
    """All hidden states over inputs (T, d)."""

    def of(part):
        return weights[f"{name}__{part}"]

    c = h = torch.zeros_like(of("b_c"))
    states = []
    for x in inputs:
        i = torch.sigmoid(x @ of("w_xi") + h @ of("w_hi") + c @ of("w_ci") + of("b_i"))
        c = (1 - i) * c + i * torch.tanh(x @ of("w_xc") + h @ of("w_hc") + of("b_c"))
        o = torch.sigmoid(x @ of("w_xo") + h @ of("w_ho") + c @ of("w_co") + of("b_o"))
        h = o * torch.tanh(c)
        states.append(h)
    return torch.stack(states)


def tagger_shapes(tags):
    return {
        "word_layer": (WORDS, 5),
        "char_layer": (CHARS, 4),
        **theano_lstm_shapes("char_for", 4, 3),
        **theano_lstm_shapes("char_rev", 4, 3),
        **theano_lstm_shapes("word_for", 5 + 6, 6),
        **theano_lstm_shapes("word_rev", 5 + 6, 6),
        "tanh__weights": (12, 6),
        "tanh__bias": (6,),
        "final__weights": (6, tags),
        "final__bias": (tags,),
        "transitions": (tags + 2, tags + 2),
    }


def tagger_scores(weights, ids, spellings):
    """The scores of tags (T, n_tags)."""
    rows = []
    for word, spelling in zip(ids, spellings, strict=True):
        chars = weights["char_layer"][spelling]
        ends = theano_lstm(weights, "char_for", chars)[-1], theano_lstm(weights, "char_rev", chars.flip(0))[-1]
        rows.append(torch.cat([weights["word_layer"][word], *ends]))
    inputs = torch.stack(rows)
    states = [theano_lstm(weights, "word_for", inputs), theano_lstm(weights, "word_rev", inputs.flip(0)).flip(0)]
    hidden = torch.tanh(torch.cat(states, 1) @ weights["tanh__weights"] + weights["tanh__bias"])
    return hidden @ weights["final__weights"] + weights["final__bias"]


def tagger_crf(scores, transitions, tags):
    """The cost of tags, and the best tags, with a start and an end among the tags."""
    length, count = scores.shape
    small = scores.new_tensor(-1000.0)
    begin, end = (torch.full((1, count + 2), -1000.0, dtype=scores.dtype) for _ in range(2))
    begin[0, count] = end[0, count + 1] = 0
    observations = torch.cat([begin, torch.cat([scores, small.expand(length, 2)], 1), end])
    path = [count, *tags, count + 1]
    real = scores[range(length), tags].sum() + transitions[path[:-1], path[1:]].sum()
    alpha = best = observations[0]
    back = []
    for row in observations[1:]:
        alpha = torch.logsumexp(alpha.unsqueeze(1) + row + transitions, 0)
        best, origin = (best.unsqueeze(1) + row + transitions).max(0)
        back.append(origin)
    best_tags = [int(best.argmax())]
    for origin in reversed(back):
        best_tags.append(int(origin[best_tags[-1]]))
    return alpha.logsumexp(0) - real, best_tags[::-1][1:-1]


def bilayer_of_theano(weights, forward, backward):
    """The parameters of a `CoupledBiLstmLayer`."""

    def both(*parts):
        rows = [torch.cat([weights[f"{name}__{part}"].T for part in parts]) for name in (forward, backward)]
        return torch.stack(rows)

    return {
        "weight_ih": both("w_xi", "w_xc", "w_xo"),
        "weight_hh": both("w_hi", "w_hc", "w_ho"),
        "weight_ch": both("w_ci", "w_co"),
        "bias": torch.stack([torch.cat([weights[f"{name}__b_{g}"] for g in "ico"]) for name in (forward, backward)]),
    }


def model_of_tagger(weights):
    """The model's parameters, or their gradients, from those of the program."""
    count = weights["transitions"].shape[0] - 2
    chars = bilayer_of_theano(weights, "char_for", "char_rev")
    words = bilayer_of_theano(weights, "word_for", "word_rev")
    return {
        "features.words.weight": weights["word_layer"],
        "features.chars.embedding.weight": weights["char_layer"],
        **{f"features.chars.lstm.{name}": values for name, values in chars.items()},
        **{f"encoder.lstm.{name}": values for name, values in words.items()},
        "encoder.hidden.weight": weights["tanh__weights"].T,
        "encoder.hidden.bias": weights["tanh__bias"],
        "classifier.weight": weights["final__weights"].T,
        "classifier.bias": weights["final__bias"],
        "decoder.transitions": weights["transitions"][:count, :count],
        "decoder.start": weights["transitions"][count, :count],
        "decoder.end": weights["transitions"][:count, count + 1],
    }


def test_the_lstm_crf_matches_its_program():
    model = LstmCrfForTokenClassification(LstmCrfConfig(**CONFIG, word_dim=5, tanh_size=6)).double().eval()
    tags = model.tags.inner_tags
    weights = Drawn(0, tagger_shapes(len(tags)))
    carry(model, model_of_tagger(weights))
    sentences = corpus()
    batch = batch_of(sentences, model.config.max_word_chars)
    lengths = (batch["input_ids"] > 0).sum(1)
    encoded = model.encode(batch["input_ids"], batch["char_ids"], lengths)
    emissions = model.score(encoded.states)
    paths = model.decoder.decode(emissions, lengths, encoded.states).path
    total = 0
    for row, (ids, spellings, labels) in enumerate(sentences):
        scores = tagger_scores(weights, ids, spellings)
        cost, best = tagger_crf(scores, weights["transitions"], [tags.index(tag) for tag in ref.to_inner(labels)])
        torch.testing.assert_close(emissions[row, : len(ids)], scores, **EXACT)
        assert paths[row, : len(ids)].tolist() == best
        total = total + cost
    loss = model(**batch).loss
    torch.testing.assert_close(loss, total, rtol=0, atol=1e-11)
    loss.backward()
    total.backward()
    assert_gradients_match(model, model_of_tagger(weights.gradients()))


# Stack-LSTM: clab/stack-lstm-ner, lstm-parse.cc, with the LSTMs of cnn (first release) or of dynet (later)

GATES = {"first": ("i", "c", "o"), "later": ("i", "f", "c", "o")}
#: Sizes of the inputs and states of each LSTM, and its layers.
SIZES = {"stack": (11, 6, 2), "output": (10, 6, 2), "buffer": (11, 6, 2), "action": (4, 6, 2)}
SIZES |= {"ent_fwd": (11, 5, 1), "ent_rev": (11, 5, 1), "fw_char": (4, 3, 1), "bw_char": (4, 3, 1)}


def parser_shapes(release):
    shapes = {}
    for name, (inputs, size, layers) in SIZES.items():
        for layer in range(layers):
            for gate in GATES[release]:
                shapes[f"{name}.{layer}.x2{gate}"] = (size, size if layer else inputs)
                shapes[f"{name}.{layer}.h2{gate}"] = (size, size)
                shapes[f"{name}.{layer}.b{gate}"] = (size,)
            for gate in "io" if release == "first" else "":
                shapes[f"{name}.{layer}.c2{gate}"] = (size, size)
    actions = 2 + len(TYPES)
    return shapes | {
        "char_emb": (CHARS, 4), "unknown": (5,), "action_start": (4,), "stack_guard": (11,), "output_guard": (10,),
        "buffer_guard": (11,), "p_a": (actions, 4), "p_r": (actions, 3), "pbias": (6,), "O": (6, 6), "S": (6, 6),
        "B": (6, 6), "A": (6, 6), "p2a": (actions, 6), "abias": (actions,), "R": (11, 3),
    }  # fmt: skip


class Builder:
    """An LSTM that grows by one input at a time and can be rewound."""

    def __init__(self, weights, name, release):
        self.weights, self.name, self.release = weights, name, release
        self.states = []  # of each step, the h and c of each layer

    def add(self, x):
        layers = SIZES[self.name][2]
        before = self.states[-1] if self.states else [None] * layers
        after = []
        for layer in range(layers):
            after.append(self.cell(layer, x, before[layer]))
            x = after[-1][0]
        self.states.append(after)
        return self

    def cell(self, layer, x, before):
        def of(part):
            return self.weights[f"{self.name}.{layer}.{part}"]

        def read(gate):
            value = of(f"b{gate}") + of(f"x2{gate}") @ x
            return value if before is None else value + of(f"h2{gate}") @ before[0]

        if self.release == "later":
            i, f, o, g = read("i").sigmoid(), (read("f") + 1).sigmoid(), read("o").sigmoid(), read("c").tanh()
            c = i * g if before is None else f * before[1] + i * g
            return o * c.tanh(), c
        i = read("i") if before is None else read("i") + of("c2i") @ before[1]
        i, g = i.sigmoid(), read("c").tanh()
        c = i * g if before is None else (1 - i) * before[1] + i * g
        return (read("o") + of("c2o") @ c).sigmoid() * c.tanh(), c

    def rewind(self):
        self.states.pop()

    def back(self):
        return self.states[-1][-1][0]


def parser_words(weights, release, ids, spellings, pretrained):
    """The inputs of the LSTMs: [t ; → ; ←], with one vector t for all words without a pretrained one."""
    words = []
    for word, spelling in zip(ids, spellings, strict=True):
        chars = [weights["char_emb"][char] for char in spelling]
        ends = []
        for name, tokens in (("fw_char", chars), ("bw_char", chars[::-1])):
            lstm = Builder(weights, name, release)
            for token in tokens:
                lstm.add(token)
            ends.append(lstm.back())
        words.append(torch.cat([pretrained.get(word, weights["unknown"]), *ends]))
    return words


def compose(weights, release, words, action):
    """The vector of a chunk."""
    forward, reverse = (Builder(weights, name, release) for name in ("ent_fwd", "ent_rev"))
    tokens = [*words, weights["R"] @ weights["p_r"][action]]
    for item, opposite in zip(tokens, tokens[::-1], strict=True):
        forward.add(item)
        reverse.add(opposite)
    return torch.cat([forward.back(), reverse.back()])


def parse(weights, release, words, gold=None):
    """The actions, greedy unless given, and the log probability of each; as `log_prob_parser` of the program."""
    stack, output, buffer, history = (
        Builder(weights, name, release) for name in ("stack", "output", "buffer", "action")
    )
    history.add(weights["action_start"])
    stack.add(weights["stack_guard"])
    output.add(weights["output_guard"])
    waiting, shifted = words[::-1], []
    for item in [weights["buffer_guard"], *waiting]:
        buffer.add(item)
    actions, log_probs = [], []
    while waiting or shifted:
        valid = [0, 1][: 1 + (not shifted)] if waiting else []
        valid += range(2, 2 + len(TYPES)) if shifted else []
        state = weights["pbias"] + weights["O"] @ output.back() + weights["S"] @ stack.back()
        state = state + weights["B"] @ buffer.back() + weights["A"] @ history.back()
        scores = (weights["abias"] + weights["p2a"] @ state.relu())[valid].log_softmax(0)
        action = valid[int(scores.argmax())] if gold is None else gold[len(actions)]
        actions.append(action)
        log_probs.append(scores[valid.index(action)])
        history.add(weights["p_a"][action])
        if action == 0:
            shifted.append(waiting.pop())
            stack.add(shifted[-1])
            buffer.rewind()
        elif action == 1:
            output.add(compose(weights, release, [waiting.pop()], 1))
            buffer.rewind()
        else:
            output.add(compose(weights, release, shifted, action))
            while shifted:
                shifted.pop()
                stack.rewind()
    return actions, log_probs


def gold_actions(labels):
    actions = []
    for label, after in zip(labels, [*labels[1:], "O"], strict=True):
        actions.append(1 if label == "O" else 0)
        if label != "O" and after != f"I-{label[2:]}":
            actions.append(2 + TYPES.index(label[2:]))
    return actions


def model_of_parser(weights, release, forget_bias):
    """The model's parameters, or with `forget_bias=0` their gradients, from those of the program."""

    def gates(name, layer, part):
        values = [weights[f"{name}.{layer}.{part}{gate}"] for gate in GATES[release]]
        if part == "b" and release == "later":
            values[1] = values[1] + forget_bias
        return torch.cat(values)

    def lstm(name, layer):
        parts = {"weight_ih": gates(name, layer, "x2"), "weight_hh": gates(name, layer, "h2")}
        parts["bias"] = gates(name, layer, "b")
        if release == "first":
            parts["weight_ch"] = torch.cat([weights[f"{name}.{layer}.c2{gate}"] for gate in "io"])
        return parts

    def stack_lstm(name, start):
        below, above = lstm(name, 0), lstm(name, 1)
        parts = {part: torch.stack([below[part], above[part]]) for part in below if part != "weight_ih"}
        return parts | {"weight_ih": below["weight_ih"], "weight_up": above["weight_ih"][None], "start": weights[start]}

    def bilayer(first, second, prefix):
        parts = lstm(first, 0), lstm(second, 0)
        return {f"{prefix}.{part}": torch.stack([parts[0][part], parts[1][part]]) for part in parts[0]}

    stacks = {"output": "output_guard", "stack": "stack_guard", "buffer": "buffer_guard", "history": "action_start"}
    scorer = {
        "composition.types.weight": weights["p_r"][[*range(2, 2 + len(TYPES)), 1]],
        "composition.label.weight": weights["R"],
        **bilayer("ent_fwd", "ent_rev", "composition.layer"),
        "actions.weight": weights["p_a"],
        "hidden.weight": torch.cat([weights[name] for name in "OSBA"], 1),
        "hidden.bias": weights["pbias"],
        "classifier.weight": weights["p2a"],
        "classifier.bias": weights["abias"],
    }
    for name, start in stacks.items():
        parts = stack_lstm("action" if name == "history" else name, start)
        scorer |= {f"{name}.{part}": values for part, values in parts.items()}
    return {
        "features.static.unknown": weights["unknown"],
        "features.chars.embedding.weight": weights["char_emb"],
        **bilayer("fw_char", "bw_char", "features.chars.lstm"),
        **{f"decoder.scorer.{name}": values for name, values in scorer.items()},
    }


def parser_and_model(release):
    """The program's weights and pretrained vectors, and a model with both."""
    sizes = {"action_dim": 4, "label_dim": 3, "composition_size": 5}
    model = StackLstmForTokenClassification(StackLstmConfig(**CONFIG, **sizes, **STACK_LSTM, **RELEASES[release]))
    weights = Drawn(0, parser_shapes(release))
    model = model.double().eval()
    carry(model, model_of_parser(weights, release, 1.0))
    vectors = torch.randn(WORDS, 5, generator=weights.generator, dtype=torch.float64)
    pretrained = {word: vectors[word] for word in range(2, WORDS) if word % 3}  # the others have none
    model.features.static.fill(torch.tensor([*pretrained]), torch.stack([*pretrained.values()]))
    return weights, pretrained, model


@pytest.mark.parametrize("release", RELEASES)
def test_the_stack_lstm_matches_its_program(release):
    weights, pretrained, model = parser_and_model(release)
    sentences = corpus()
    batch = batch_of(sentences, model.config.max_word_chars)
    lengths = (batch["input_ids"] > 0).sum(1)
    states = model.encode(batch["input_ids"], batch["char_ids"], lengths).states
    greedy, greedy_log_probs = greedy_search(model.decoder.scorer, states, lengths)
    total = 0
    for row, (ids, spellings, labels) in enumerate(sentences):
        words = parser_words(weights, release, ids, spellings, pretrained)
        torch.testing.assert_close(states[row, : len(ids)], torch.stack(words), **EXACT)
        actions, log_probs = parse(weights, release, words)
        assert greedy[row, : len(actions)].tolist() == actions
        taken = greedy_log_probs[row, range(len(actions)), actions]
        torch.testing.assert_close(taken, torch.stack(log_probs).detach(), rtol=0, atol=1e-11)
        total = total - sum(parse(weights, release, words, gold_actions(labels))[1])
    loss = model(**batch).loss
    torch.testing.assert_close(loss, total, rtol=0, atol=1e-11)
    loss.backward()
    total.backward()
    assert_gradients_match(model, model_of_parser(weights.gradients(), release, 0.0))


def test_the_defaults_are_those_of_the_paper():
    chain, stack = LstmCrfConfig(), StackLstmConfig()
    for config in (chain, stack):
        assert (config.cell, config.char_lstm_cell) == ("coupled", "coupled")
        assert config.max_word_chars == 200
    assert stack.num_hidden_layers == 2
