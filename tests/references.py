"""An independent oracle: every model equation as plain float64 NumPy, one unpadded sentence at a time.

T is the number of words of the sentence, W the width of a character row, H the width of one LSTM direction, K the
number of inner tags and L the number of public labels. `weights` is a state dict of float64 arrays. Nothing here is
fast; it is meant to be read next to the papers (li2020: Li, Fu, Ma, AAAI 2020; lample2016: Lample et al., NAACL 2016;
ma2016: Ma, Hovy, ACL 2016; strubell2017: Strubell et al., EMNLP 2017). `reference_encoders` holds the encoders of all
papers, and `chain_oracle` the CRF.
"""

import itertools
import math

import numpy as np
from chain_oracle import log_sum_exp

RESERVED_CHARS = 6  # padding and unknown characters of all types have the ids below
UPPER, LOWER = 1, 2  # character types; 0 is none of the four, 3 a digit, 4 punctuation
CHAR_TYPES = 4
BEST_MARGIN = 1e-3


# Features


def caps_one_hot(types):
    """Capitalisation of a word from its character types (W,): all upper, first upper, all lower, else (li2020)."""
    upper, lower = UPPER in types, LOWER in types
    if upper and not lower:
        return np.array([1.0, 0.0, 0.0, 0.0])
    if types[0] == UPPER:
        return np.array([0.0, 1.0, 0.0, 0.0])
    if lower and not upper:
        return np.array([0.0, 0.0, 1.0, 0.0])
    return np.array([0.0, 0.0, 0.0, 1.0])


def char_cnn(weights, row, config):
    """Character features of one word from its row (W,): max over positions of each linear filter (li2020).

    ma2016: no types, biases, padding on either side, tanh before the maximum. chen2019: windows are centred on the
    characters of the word; the features of a word without characters are the biases.
    """
    centred = config.char_windows == "centred"
    padding = 9 if centred else config.char_padding
    channels = []
    for char in [0] * padding + [*row] + [0] * padding:
        one_hot = np.eye(1 + CHAR_TYPES)[int(weights["features.char_types"][char])][1:]
        vector = weights["features.chars.embedding.weight"][char]
        channels.append(np.concatenate([vector, one_hot if config.char_type_features else []]))
        if centred and char == 0:
            channels[-1] = np.zeros_like(channels[-1])
    image = np.stack(channels, axis=1)  # (d_c + 4, W)

    features = []
    for n in range(3):
        kernels = weights.get(f"features.chars.convolutions.{n}.weight", [])  # (filters, d_c + 4, width)
        biases = weights.get(f"features.chars.convolutions.{n}.bias", np.zeros(len(kernels)))
        for kernel, bias in zip(kernels, biases, strict=True):
            width = kernel.shape[1]
            positions = list(range(image.shape[1] - width + 1))
            if centred:
                letters = [padding + index for index, char in enumerate(row) if char != 0]
                positions = [letter - (width - 1) // 2 for letter in letters]
            responses = [np.sum(kernel * image[:, p : p + width]) + bias for p in positions] or [bias]
            features.append(max(np.tanh(responses) if config.char_activation == "tanh" else responses))
    return np.array(features)


def char_lstm(weights, row, config):
    """The last states of both directions of an LSTM over a word's characters (lample2016); zeros if there are none."""
    chars = [char for char in row if char >= RESERVED_CHARS]
    size = weights["features.chars.lstm.weight_hh"].shape[2]
    if not chars:
        return np.zeros(2 * size)
    x = weights["features.chars.embedding.weight"][chars]
    forward, backward = (bidirectional(weights, "features.chars.lstm", direction, x) for direction in range(2))
    return np.concatenate([forward[-1], backward[0]])


def char_features(weights, row, config):
    """The character features of a word by its config."""
    if config.char_features == "none":
        return np.zeros(0)
    return char_lstm(weights, row, config) if config.char_features == "lstm" else char_cnn(weights, row, config)


def shape_index(types, row):
    """All capitals, first capital, some capital, no capital (strubell2017), from a word's (W,) types and characters."""
    capitals = [char_type == UPPER for char_type, char in zip(types, row, strict=True) if char != 0]
    if capitals and all(capitals):
        return 0
    if capitals and capitals[0]:
        return 1
    return 2 if any(capitals) else 3


def word_features(weights, input_ids, char_ids, config):
    """x_t = [word vector ; caps one-hot ; shape vector ; character features], (T, d); li2020 has no shapes."""
    features = []
    for word, row in zip(input_ids, char_ids, strict=True):
        types = weights["features.char_types"][row]
        block = [weights["features.words.weight"][word], caps_one_hot(types) if config.casing_features else []]
        shape = weights["features.shapes.weight"][shape_index(types, row)] if config.shape_dim else []
        features.append(np.concatenate([*block, shape, char_features(weights, row, config)]))
    return np.stack(features)


# Encoder


def sigmoid(x):
    """σ(x), without overflow on either side."""
    return np.exp(-np.logaddexp(0, -x))


def lstm(x, w_ih, w_hh, bias, mask=1.0):
    """Run one LSTM left to right, (T, d_in) -> (T, H): c' = f·c + i·g, h' = o·tanh(c'); the gates read mask · h."""
    h = c = np.zeros(w_hh.shape[1])
    outputs = []
    for x_t in x:
        i, f, g, o = np.split(w_ih @ x_t + w_hh @ (mask * h) + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs)


def rnn(x, w_ih, w_hh, bias):
    """Run one plain network left to right, (T, d_in) -> (T, H): h' = tanh(W x + U h + b), from h = 0."""
    h = np.zeros(w_hh.shape[1])
    outputs = []
    for x_t in x:
        h = np.tanh(w_ih @ x_t + w_hh @ h + bias)
        outputs.append(h)
    return np.stack(outputs)


def coupled_lstm(x, w_ih, w_hh, bias, w_ch):
    """Run lample2016's LSTM (section 2.1) left to right, (T, d_in) -> (T, H), from h = c = 0."""
    (w_xi, w_xc, w_xo), (w_hi, w_hc, w_ho) = np.split(w_ih, 3), np.split(w_hh, 3)
    (w_ci, w_co), (b_i, b_c, b_o) = np.split(w_ch, 2), np.split(bias, 3)
    h = c = np.zeros(w_hh.shape[1])
    outputs = []
    for x_t in x:
        i = sigmoid(w_xi @ x_t + w_hi @ h + w_ci @ c + b_i)
        c = (1 - i) * c + i * np.tanh(w_xc @ x_t + w_hc @ h + b_c)
        o = sigmoid(w_xo @ x_t + w_ho @ h + w_co @ c + b_o)
        h = o * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs)


def bidirectional(weights, layer, direction, x):
    """One direction of a layer of any cell; row t of the result belongs to word t."""
    matrices = [weights[f"{layer}.{name}"][direction] for name in ("weight_ih", "weight_hh", "bias")]
    ordered = x[::-1] if direction else x
    gates, size = matrices[1].shape
    if gates == size:
        states = rnn(ordered, *matrices)
    elif gates == 4 * size:
        states = lstm(ordered, *matrices)
    else:
        states = coupled_lstm(ordered, *matrices, weights[f"{layer}.weight_ch"][direction])
    return states[::-1] if direction else states


def context_of(position, length, window, overlap):
    """The words [first, last) that a position attends to: the whole sentence, or the window it belongs to."""
    if length <= window:
        return 0, length
    stride = window - overlap
    windows = max(1, math.ceil((length - overlap) / stride))
    k = min(max((position - overlap // 2) // stride, 0), windows - 1)
    return k * stride, min(k * stride + window, length)


def attention(weights, hidden, config):
    """C_k = softmax(Q_k K_kᵀ / sqrt(d_k)) V_k (li2020, Att): [C_1 ; … ; C_heads] and the weights (heads, T, T)."""
    query, key, value = (hidden @ weights[f"encoder.attention.{name}.weight"].T for name in ("query", "key", "value"))
    heads, (length, width) = config.num_attention_heads, query.shape
    head_dim = width // heads
    context = np.zeros((length, width))
    attended = np.zeros((heads, length, length))
    for k in range(heads):
        rows = slice(k * head_dim, (k + 1) * head_dim)
        for t in range(length):
            first, last = context_of(t, length, config.attention_window, config.attention_overlap)
            scores = key[first:last, rows] @ query[t, rows] / math.sqrt(head_dim)
            attended[k, t, first:last] = np.exp(softmax_log_probs(scores[None])[0])
            context[t, rows] = attended[k, t] @ value[:, rows]
    return context, attended


def softmax_log_probs(scores):
    """Log softmax of each row, (T, K)."""
    return scores - log_sum_exp(scores, axis=1)[:, None]


# Tags


def split(tag):
    """A chunk tag as its position and type: "B-person" is ("B", "person"), "O" is ("O", "")."""
    position, _, kind = tag.partition("-")
    return position, kind


def is_chunked(labels):
    """Return whether the labels are IOB2 rather than plain classes such as parts of speech."""
    return any(label.startswith(("B-", "I-")) for label in labels)


def inner_tags(labels):
    """The BIOES tags behind the public IOB2 labels: O, then B I E S of each type, or S alone without a public I."""
    if not is_chunked(labels):
        return list(labels)
    tags = ["O"]
    for kind in dict.fromkeys(split(label)[1] for label in labels if label != "O"):
        if f"I-{kind}" not in labels:
            tags.append(f"S-{kind}")
        else:
            tags += [f"{position}-{kind}" for position in "BIES"]
    return tags


def to_inner(tags):
    """IOB2 to BIOES. An I-x that continues no entity of type x becomes B-x first. Plain tags stay as they are."""
    repaired = []
    for tag in tags:
        position, kind = split(tag)
        orphan = position == "I" and (not repaired or repaired[-1] not in (f"B-{kind}", f"I-{kind}"))
        repaired.append(f"B-{kind}" if orphan else tag)

    inner = []
    for tag, following in itertools.zip_longest(repaired, repaired[1:], fillvalue="O"):
        position, kind = split(tag)
        if tag.startswith(("B-", "I-")) and following != f"I-{kind}":
            tag = f"S-{kind}" if position == "B" else f"E-{kind}"
        inner.append(tag)
    return inner


def spans_strict(inner):
    """Well-formed entities alone (type, first word, one past the last): S, or B I* E of one type (li2020, scoring)."""
    spans = []
    for first, tag in enumerate(inner):
        position, kind = split(tag)
        if position == "S":
            spans.append((kind, first, first + 1))
        if position == "B":
            last = first + 1
            while last < len(inner) and inner[last] == f"I-{kind}":
                last += 1
            if last < len(inner) and inner[last] == f"E-{kind}":
                spans.append((kind, first, last + 1))
    return spans


def spans_conlleval(inner):
    """Entities as conlleval counts them once S is B and E is I: an I starts one after O or another type."""
    tags = [("O", "")] + [({"S": "B", "E": "I"}.get(position, position), kind) for position, kind in map(split, inner)]
    starts = [now[0] == "B" or (now[0] == "I" and now[1] != before[1]) for before, now in itertools.pairwise(tags)]
    spans = []
    for first in np.flatnonzero(starts):
        last = first + 1
        while last < len(inner) and inner[last] != "O" and not starts[last]:
            last += 1
        spans.append((split(inner[first])[1], first, last))
    return spans


def public_tags(spans, length):
    """The IOB2 tags of a sentence of `length` words that holds these entities."""
    tags = ["O"] * length
    for kind, first, last in spans:
        tags[first:last] = [f"B-{kind}"] + [f"I-{kind}"] * (last - first - 1)
    return tags


def public_logits(inner_log_probs, inner, public, path):
    """Log probability of each public label, (T, L), in which the decoded label stands first by a margin.

    B-x gathers B-x and S-x, I-x gathers I-x and E-x, any other label itself. `path` holds the decoded public label ids.
    """
    partner = {"B": "S", "I": "E"}
    logits = np.zeros((len(inner_log_probs), len(public)))
    for t, row in enumerate(inner_log_probs):
        for index, label in enumerate(public):
            position, kind = split(label)
            members = {label, f"{partner[position]}-{kind}"} if is_chunked([label]) else {label}
            logits[t, index] = log_sum_exp(np.array([row[k] for k, tag in enumerate(inner) if tag in members]))
        for index in range(len(public)):
            if index != path[t]:
                logits[t, index] = min(logits[t, index], logits[t, path[t]] - BEST_MARGIN)
    return logits
