"""Helpers of the tests: random batches, weights for the references, locks, the output of scripts."""

import os
import random
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import reference_encoders
import torch
import torch.nn.functional as F
from chain_oracle import alone

from hf_xorner import files

IGNORED = -100
#: For tests of signals, pipes and devices.
posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals, pipes or devices")
#: For processes to interrupt: what is started in the background of a shell ignores Ctrl-C, with all that it starts.
INTERRUPTIBLE = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
#: A program that holds a lock; it runs the module alone, as importing the package takes seconds.
HOLDS_A_LOCK = """
import pathlib, sys, types
package = sys.modules["hf_xorner"] = types.ModuleType("hf_xorner")
package.__path__ = [str(pathlib.Path(sys.argv[1]).parent)]
from hf_xorner.files import locked
with locked(pathlib.Path(sys.argv[2]), ""):
    print("held", flush=True)
    sys.stdin.read()
"""
DECODERS = {
    "softmax": {"decoder": "softmax"},
    "crf": {"decoder": "crf"},
    "barred crf": {"decoder": "crf", "constrain_transitions": True},
}


def write_towns(folder, seed=0):
    """Write a folder of CoNLL columns, in which towns end in -ville; 42 sentences are 11 batches of 4."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    for split, size in (("train", 42), ("dev", 12), ("test", 12)):
        lines = []
        for _ in range(size):
            town = draw.choice(["Anna", "Berta", "Carla", "Dora"]) + draw.choice(["ville", "ville", "ton"])
            tag = "B-LOC" if town.endswith("ville") else "O"
            rest = [(word, "O") for word in draw.choice(["is far away", "has two bridges .", "burns"]).split()]
            lines += [f"{word} {label}" for word, label in [(town, tag), *rest]] + [""]
        (folder / f"{split}.txt").write_text("\n".join(lines))
    return folder


@contextmanager
def lock_holder(path):
    """Start a process that holds a lock until the end of the context, or until it is killed."""
    command = [sys.executable, "-c", HOLDS_A_LOCK, files.__file__, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout.readline() == "held\n"
        yield other
        other.stdin.close()


def weights_of(model):
    return {name: values.detach().double().numpy() for name, values in model.state_dict().items()}


def reference_states(model, words):
    """Return the reference's states (T, h) of one unpadded sentence."""
    ids, chars = words["input_ids"].numpy(), words["char_ids"].numpy()
    return reference_encoders.states(weights_of(model), model.config, ids, chars)


def reference_scores(model, words):
    """Return the reference's inner scores (T, K) of one unpadded sentence."""
    return reference_encoders.emissions(weights_of(model), reference_states(model, words))


def random_sentence(config, length, seed):
    """Return a sentence of random words, a quarter of them unknown, of random characters."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(2, config.vocab_size, (length,), generator=generator)
    ids[torch.rand(length, generator=generator) < 0.25] = 1
    chars = torch.randint(1, config.char_vocab_size, (length, config.max_word_chars), generator=generator)
    sizes = torch.randint(1, config.max_word_chars + 1, (length, 1), generator=generator)
    chars = chars.masked_fill(torch.arange(config.max_word_chars) >= sizes, 0)
    labels = torch.randint(0, config.num_labels, (length,), generator=generator)
    return {"input_ids": ids, "char_ids": chars, "attention_mask": torch.ones_like(ids), "labels": labels}


def random_sentences(config, lengths, seed=0):
    return [random_sentence(config, length, 100 * seed + number) for number, length in enumerate(lengths)]


def words_of(sentence):
    """Return the words of a sentence as pairs of an id and a list of characters."""
    rows = zip(sentence["input_ids"].tolist(), sentence["char_ids"], strict=True)
    return [(word, chars[chars != 0].tolist()) for word, chars in rows]


def pad(sentences, extra=0, side="right", labels=False):
    """Pad sentences to one batch, `extra` words wider than the longest."""
    width = max(len(sentence["input_ids"]) for sentence in sentences) + extra

    def padded(name):
        rows = []
        for values in (sentence[name] for sentence in sentences):
            missing = width - len(values)
            room = (0, missing) if side == "right" else (missing, 0)
            rows.append(F.pad(values, (0, 0) * (values.dim() - 1) + room, value=IGNORED if name == "labels" else 0))
        return torch.stack(rows)

    names = ["input_ids", "char_ids", "attention_mask"] + ["labels"] * labels
    return {name: padded(name) for name in names}


def labelled_batch(model, lengths=(4, 1, 3)):
    """Return random sentences with labels as one batch."""
    return pad(random_sentences(model.config, lengths), labels=True)


def score(model, batch, **options):
    """Return the scores and attention weights of a right-padded batch."""
    lengths = batch["attention_mask"].sum(1)
    encoded = model.encode(batch["input_ids"], batch["char_ids"], lengths, **options)
    return model.score(encoded.states), encoded.attentions


def crf_of(model, words):
    """Return the transitions, start and end of one sentence for the references, barred or not."""
    return reference_encoders.crf(weights_of(model), reference_states(model, words))


@torch.no_grad()
def chains_of(model, batch):
    """Return the scores of each sentence of a right-padded batch as arguments of `chain_oracle`."""
    lengths = batch["attention_mask"].sum(1)
    states = model.encode(batch["input_ids"], batch["char_ids"], lengths).states
    scores = model.score(states)
    chain = (scores, *(scores.new_zeros([scores.shape[-1]] * dimensions) for dimensions in (2, 1, 1)))
    if model.config.decoder == "crf":
        chain = model.decoder.chain(scores, states)
    return [alone(chain, row, length) for row, length in enumerate(lengths.tolist())]


def close(actual, expected, tolerance):
    actual = actual.detach().double().numpy() if isinstance(actual, torch.Tensor) else actual
    np.testing.assert_allclose(actual, np.asarray(expected), rtol=0, atol=tolerance)


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def ok(result):
    """Return the output of a script, which must have succeeded."""
    code, out, errors = result
    assert code == 0, errors[-3000:]
    return out


def fault(result):
    """Return the error line of a script that must have failed, with no output and no traceback."""
    code, out, errors = result
    assert code in (1, 2)
    assert out == ""
    assert "Traceback" not in errors
    return errors.strip().splitlines()[-1]
