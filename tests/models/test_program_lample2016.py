"""The LSTM-CRF computes what the program of lample2016's authors computes; for the Stack-LSTM, see test_stack_lstm.py.

The program (glample/tagger, model.py and nn.py, in Theano) is transcribed here one sentence and word at a time, in
float64, but that LSTMs start from zeros, as in the paper. Its weights are drawn at random and carried into a model.
"""

import helpers
import programs
import torch
from programs import LABELS, TAGS

from hf_xorner import LstmCrfConfig
from hf_xorner.models.modeling_lstm_crf import LstmCrfForTokenClassification

RESERVED = 6  # smaller ids of characters are reserved
WORDS, CHARS, _, WORD, CHAR, _ = programs.SIZES.values()
CONFIG = programs.SIZES | {"max_word_chars": 61, "char_lstm_size": 3, "hidden_size": 6, "tanh_size": 6}
CONFIG |= {"id2label": dict(enumerate(LABELS)), "feature_dropout": 0.0, "singleton_dropout": 0.0}


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
        "word_layer": (WORDS, WORD),
        "char_layer": (CHARS, CHAR),
        **theano_lstm_shapes("char_for", CHAR, 3),
        **theano_lstm_shapes("char_rev", CHAR, 3),
        **theano_lstm_shapes("word_for", WORD + 6, 6),
        **theano_lstm_shapes("word_rev", WORD + 6, 6),
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


def test_scores_loss_paths_and_gradients_are_those_of_the_program():
    model = LstmCrfForTokenClassification(LstmCrfConfig(**CONFIG))
    weights = programs.drawn(tagger_shapes(len(TAGS)), scale=1)
    programs.carry(model, model_of_tagger(weights)).eval()
    rows = helpers.random_sentences(model.config, (6, 1, 3, 2))
    for row in rows:
        row["char_ids"] = row["char_ids"].clamp(min=RESERVED) * (row["char_ids"] > 0)
    batch = helpers.pad(rows, labels=True)
    lengths = batch["attention_mask"].sum(1)
    encoded = model.encode(batch["input_ids"], batch["char_ids"], lengths)
    emissions = model.score(encoded.states)
    paths = model.decoder.decode(emissions, lengths, encoded.states).path
    total = 0
    for number, (row, gold) in enumerate(zip(rows, programs.gold_tags(rows), strict=True)):
        ids, spellings = zip(*helpers.words_of(row), strict=True)
        scores = tagger_scores(weights, ids, spellings)
        cost, best = tagger_crf(scores, weights["transitions"], gold)
        torch.testing.assert_close(emissions[number, : len(ids)], scores, **programs.EXACT)
        assert paths[number, : len(ids)].tolist() == best
        total = total + cost
    loss = model(**batch).loss
    torch.testing.assert_close(loss, total, rtol=0, atol=1e-11)
    loss.backward()
    total.backward()
    programs.assert_gradients_match(model, model_of_tagger(programs.gradients_of(weights)))
