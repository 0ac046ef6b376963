"""The Stack-LSTM as the program of lample2016's authors computes it, one sentence, word and action at a time.

Transcribed in float64 from clab/stack-lstm-ner, lstm-parse.cc, with the LSTMs of cnn (its first release) or of dynet
(later). Where program and paper differ, it follows the paper, as the table in docs/papers.md says: words are
[word ; characters], a chunk's LSTM reads the words and then the type, OUT pushes a word composed with a type of its own
and is forbidden while the stack holds words, and at the first step of a sequence the output gate reads the cell.
"""

import itertools

import programs
import references as ref
import torch

from hf_xorner import StackLstmConfig
from hf_xorner.models.modeling_stack_lstm import StackLstmForTokenClassification

WORDS, CHARS, RESERVED = 12, 20, 6  # smaller ids of characters are reserved
FIELDS = {"vocab_size": WORDS, "char_vocab_size": CHARS, "max_word_chars": 8, "word_dim": 0, "static_dim": 5}
FIELDS |= {"char_dim": 4, "char_lstm_size": 3, "hidden_size": 6, "action_dim": 4, "label_dim": 3, "composition_size": 5}
FIELDS |= {"feature_dropout": 0.0, "singleton_dropout": 0.0}
#: The program's names of the four LSTMs and of their first inputs, by the model's names.
STACKS = {"output": ("output", "output_guard"), "stack": ("stack", "stack_guard")}
STACKS |= {"buffer": ("buffer", "buffer_guard"), "history": ("action", "action_start")}


class StackLstmProgram:
    """The program with random weights and pretrained vectors of some words."""

    def __init__(self, labels, cell="coupled", layers=2, seed=0):
        self.labels, self.layers, self.chunked = labels, layers, ref.is_chunked(labels)
        names = [label[2:] if self.chunked else label for label in labels if label != "O"]
        self.types = list(dict.fromkeys(names))
        self.actions = ["SHIFT", "OUT", *(f"REDUCE({name})" for name in self.types)]
        self.gates = ("i", "f", "c", "o") if cell == "standard" else ("i", "c", "o")
        self.fields = {"cell": cell, "char_lstm_cell": cell, "num_hidden_layers": layers}
        self.weights = programs.drawn(self.shapes(), seed, scale=1)
        vectors = torch.randn(WORDS, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        self.pretrained = {word: vectors[word] for word in range(2, WORDS) if word % 3}  # the others have none

    def shapes(self):
        sizes = {"stack": (11, 6, self.layers), "output": (10, 6, self.layers), "buffer": (11, 6, self.layers)}
        sizes |= {"action": (4, 6, self.layers), "ent_fwd": (11, 5, 1), "ent_rev": (11, 5, 1)}
        shapes = {}
        for name, (inputs, size, layers) in (sizes | {"fw_char": (4, 3, 1), "bw_char": (4, 3, 1)}).items():
            for layer in range(layers):
                for gate in self.gates:
                    shapes[f"{name}.{layer}.x2{gate}"] = (size, size if layer else inputs)
                    shapes[f"{name}.{layer}.h2{gate}"] = (size, size)
                    shapes[f"{name}.{layer}.b{gate}"] = (size,)
                for gate in "io" if "f" not in self.gates else "":
                    shapes[f"{name}.{layer}.c2{gate}"] = (size, size)
        actions = len(self.actions)
        return shapes | {
            "char_emb": (CHARS, 4), "unknown": (5,), "action_start": (4,), "stack_guard": (11,), "output_guard": (10,),
            "buffer_guard": (11,), "p_a": (actions, 4), "p_r": (actions, 3), "pbias": (6,), "O": (6, 6), "S": (6, 6),
            "B": (6, 6), "A": (6, 6), "p2a": (actions, 6), "abias": (actions,), "R": (11, 3),
        }  # fmt: skip

    # Networks

    def words(self, ids, spellings):
        """The inputs of the LSTMs: [t ; → ; ←], with one vector t for all words without a pretrained one."""
        words = []
        for word, spelling in zip(ids, spellings, strict=True):
            chars = [self.weights["char_emb"][char] for char in spelling]
            ends = [Builder(self, "fw_char", chars).top, Builder(self, "bw_char", chars[::-1]).top]
            words.append(torch.cat([self.pretrained.get(word, self.weights["unknown"]), *ends]))
        return torch.stack(words) if words else torch.zeros(0, 11, dtype=torch.float64)

    def compose(self, words, action):
        """The vector of a chunk: an LSTM from each side over its words and the type's token behind them."""
        tokens = [*words, self.weights["R"] @ self.weights["p_r"][self.actions.index(action)]]
        return torch.cat([Builder(self, "ent_fwd", tokens).top, Builder(self, "ent_rev", tokens[::-1]).top])

    # Transitions

    def many(self, kind):
        return f"I-{kind}" in self.labels

    def valid(self, waiting, shifted):
        """The actions that are possible with so many words in the buffer and on the stack."""
        actions = ["SHIFT"] * bool(waiting and (not shifted or any(map(self.many, self.types))))
        actions += ["OUT"] * bool(waiting and self.chunked and not shifted)
        return actions + [f"REDUCE({kind})" for kind in self.types if shifted == 1 or (shifted and self.many(kind))]

    def parse(self, words, gold=None):
        """The actions of a sentence, greedy unless given, log probabilities of all valid ones at each, and the chunks.

        A chunk is a type, "" for words outside, and the numbers of its words.
        """
        lstms = {name: Builder(self, name, [self.weights[guard]]) for name, guard in STACKS.values()}
        for word in reversed(words):
            lstms["buffer"].add(word)
        waiting, shifted = list(reversed(range(len(words)))), []
        actions, choices, chunks = [], [], []
        while waiting or shifted:
            valid = self.valid(len(waiting), len(shifted))
            state = self.weights["pbias"]
            for matrix, name in zip("OSBA", ("output", "stack", "buffer", "action"), strict=True):
                state = state + self.weights[matrix] @ lstms[name].top
            scores = self.weights["abias"] + self.weights["p2a"] @ state.relu()
            scores = scores[[self.actions.index(action) for action in valid]].log_softmax(0)
            choices.append(dict(zip(valid, scores, strict=True)))
            actions.append(max(choices[-1], key=choices[-1].get) if gold is None else gold[len(actions)])
            lstms["action"].add(self.weights["p_a"][self.actions.index(actions[-1])])
            if actions[-1] == "SHIFT":
                shifted.append(waiting.pop())
                lstms["stack"].add(words[shifted[-1]])
                lstms["buffer"].states.pop()
                continue
            if actions[-1] == "OUT":
                chunk = [waiting.pop()]
                lstms["buffer"].states.pop()
            else:
                chunk, shifted = shifted, []
                del lstms["stack"].states[1:]
            lstms["output"].add(self.compose([words[word] for word in chunk], actions[-1]))
            chunks.append((actions[-1].removeprefix("OUT").removeprefix("REDUCE(").removesuffix(")"), chunk))
        return actions, choices, chunks

    def loss(self, words, labels):
        """The negative log-likelihood of the actions of labels, of which None are unknown and do not count."""
        inner = ref.to_inner(["O" if label is None else label for label in labels])
        gold, known = [], []
        for tag, label in zip(inner, labels, strict=True):
            position, kind = ref.split(tag) if self.chunked else ("S", tag)
            outside = label is None or tag == "O"
            gold += ["OUT"] if outside else ["SHIFT", *[f"REDUCE({kind})"] * (position in ("E", "S"))]
            known += [label is not None] * (len(gold) - len(known))
        _, choices, _ = self.parse(words, gold)
        taken = [of_step[action] for of_step, action, counts in zip(choices, gold, known, strict=True) if counts]
        return -sum(taken, words.sum() * 0)

    def tags(self, chunks, length):
        """Public labels of chunks."""
        if not self.chunked:
            return [kind for kind, _ in chunks]
        return ref.public_tags([(kind, words[0], words[-1] + 1) for kind, words in chunks if kind], length)

    # The model

    def model(self):
        """The model with the program's weights and vectors."""
        config = StackLstmConfig(**FIELDS, **self.fields, id2label=dict(enumerate(self.labels)))
        model = programs.carry(StackLstmForTokenClassification(config), self.weights_of_model()).eval()
        model.features.static.fill(torch.tensor([*self.pretrained]), torch.stack([*self.pretrained.values()]))
        return model

    def weights_of_model(self):
        return self._by_names_of_model(self.weights, forget_bias=1.0)

    def gradients_of_model(self):
        return self._by_names_of_model(programs.gradients_of(self.weights), forget_bias=0.0)

    def _by_names_of_model(self, weights, forget_bias):
        def gates(name, layer, part):
            values = [weights[f"{name}.{layer}.{part}{gate}"] for gate in self.gates]
            if part == "b" and "f" in self.gates:
                values[1] = values[1] + forget_bias
            return torch.cat(values)

        def lstm(name, layer=0):
            parts = {"weight_ih": gates(name, layer, "x2"), "weight_hh": gates(name, layer, "h2")}
            if "f" not in self.gates:
                parts["weight_ch"] = torch.cat([weights[f"{name}.{layer}.c2{gate}"] for gate in "io"])
            return parts | {"bias": gates(name, layer, "b")}

        def stack_lstm(name, start):
            first, *above = (lstm(name, layer) for layer in range(self.layers))
            parts = {
                part: torch.stack([first[part], *(of[part] for of in above)]) for part in first.keys() - {"weight_ih"}
            }
            upward = {"weight_up": torch.stack([of["weight_ih"] for of in above])} if above else {}
            return parts | upward | {"weight_ih": first["weight_ih"], "start": weights[start]}

        def bilayer(prefix, first, second):
            both = lstm(first), lstm(second)
            return {f"{prefix}.{part}": torch.stack([of[part] for of in both]) for part in both[0]}

        scorer = {
            "composition.types.weight": weights["p_r"][[*range(2, 2 + len(self.types)), 1]],
            "composition.label.weight": weights["R"],
            **bilayer("composition.layer", "ent_fwd", "ent_rev"),
            "actions.weight": weights["p_a"],
            "hidden.weight": torch.cat([weights[name] for name in "OSBA"], 1),
            "hidden.bias": weights["pbias"],
            "classifier.weight": weights["p2a"],
            "classifier.bias": weights["abias"],
        }
        for name, of_program in STACKS.items():
            scorer |= {f"{name}.{part}": values for part, values in stack_lstm(*of_program).items()}
        return {
            "features.static.unknown": weights["unknown"],
            "features.chars.embedding.weight": weights["char_emb"],
            **bilayer("features.chars.lstm", "fw_char", "bw_char"),
            **{f"decoder.scorer.{name}": values for name, values in scorer.items()},
        }


class Builder:
    """An LSTM that grows by one input at a time; its states are removed to rewind it."""

    def __init__(self, program, name, inputs):
        self.program, self.name, self.states = program, name, []  # of each step, the h and c of each layer
        for x in inputs:
            self.add(x)

    def add(self, x):
        before, after = self.states[-1] if self.states else itertools.repeat(None), []
        layers = self.program.layers if self.name in ("stack", "output", "buffer", "action") else 1
        for layer, of_layer in zip(range(layers), before, strict=False):
            after.append(self.cell(layer, x, of_layer))
            x = after[-1][0]
        self.states.append(after)

    def cell(self, layer, x, before):
        def of(part):
            return self.program.weights[f"{self.name}.{layer}.{part}"]

        def read(gate):
            value = of(f"b{gate}") + of(f"x2{gate}") @ x
            return value if before is None else value + of(f"h2{gate}") @ before[0]

        if "f" in self.program.gates:
            i, f, o, g = read("i").sigmoid(), (read("f") + 1).sigmoid(), read("o").sigmoid(), read("c").tanh()
            c = i * g if before is None else f * before[1] + i * g
            return o * c.tanh(), c
        i = read("i") if before is None else read("i") + of("c2i") @ before[1]
        i, g = i.sigmoid(), read("c").tanh()
        c = i * g if before is None else (1 - i) * before[1] + i * g
        return (read("o") + of("c2o") @ c).sigmoid() * c.tanh(), c

    @property
    def top(self):
        return self.states[-1][-1][0]
