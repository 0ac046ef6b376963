"""An independent oracle: every model equation as plain float64 NumPy, one unpadded sentence at a time.

T is the number of words of the sentence, W the width of a character row, H the width of one LSTM direction, K the
number of inner tags and L the number of public labels. `weights` is a state dict of float64 arrays. Nothing here is
fast; it is meant to be read next to the papers (li2020: Li, Fu, Ma, AAAI 2020; lample2016: Lample et al., NAACL 2016;
ma2016: Ma, Hovy, ACL 2016; strubell2017: Strubell et al., EMNLP 2017). What li2020 does not have is an option here, and
`reference_encoders` holds the encoders of the other papers.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

Array = np.ndarray
Weights = dict[str, np.ndarray]
Span = tuple[str, int, int]  # type, first word, one past the last word

UNKNOWN_WORD = 1
RESERVED_CHARS = 6  # padding and unknown characters of all types have the ids below
UPPER, LOWER = 1, 2  # character types; 0 is none of the four, 3 a digit, 4 punctuation
CHAR_TYPES = 4
BEST_MARGIN = 1e-3


# Features


def caps_one_hot(types: Array) -> Array:
    """Capitalisation of a word from its character types (W,): all upper, first upper, all lower, else (li2020)."""
    upper, lower = UPPER in types, LOWER in types
    if upper and not lower:
        return np.array([1.0, 0.0, 0.0, 0.0])
    if types[0] == UPPER:
        return np.array([0.0, 1.0, 0.0, 0.0])
    if lower and not upper:
        return np.array([0.0, 0.0, 1.0, 0.0])
    return np.array([0.0, 0.0, 0.0, 1.0])


def char_cnn(
    weights: Weights,
    row: Array,
    typed: bool = True,
    padding: int = 0,
    tanh: bool = False,
    pads: str = "learned",
    windows: str = "all",
) -> Array:
    """Character features of one word from its row (W,): max over positions of each linear filter (li2020).

    ma2016: not `typed`, biases, `padding` on either side, `tanh` before the maximum. chen2019: `windows` are centred on
    the characters of the word; the features of a word without characters are the biases.
    """
    channels = []
    for place, char in enumerate([0] * padding + [*row] + [0] * padding):
        outside = not padding <= place < padding + len(row)
        if (pads == "zeros" and char == 0) or (pads == "word_end" and outside):
            channels.append(np.zeros(weights["features.chars.embedding.weight"].shape[1] + CHAR_TYPES * typed))
            continue
        type_one_hot = np.zeros(CHAR_TYPES * typed)
        char_type = int(weights["features.char_types"][char])
        if char_type and typed:
            type_one_hot[char_type - 1] = 1.0
        channels.append(np.concatenate([weights["features.chars.embedding.weight"][char], type_one_hot]))
    image = np.stack(channels, axis=1)  # (d_c + 4, W)

    features = []
    for n in range(3):
        kernels = weights.get(f"features.chars.convolutions.{n}.weight", [])  # (filters, d_c + 4, width)
        biases = weights.get(f"features.chars.convolutions.{n}.bias", np.zeros(len(kernels)))
        for kernel, bias in zip(kernels, biases, strict=True):
            width = kernel.shape[1]
            positions = list(range(image.shape[1] - width + 1))
            if windows == "centred":
                letters = [padding + place for place, char in enumerate(row) if char != 0]
                positions = [letter - (width - 1) // 2 for letter in letters]
            responses = [np.sum(kernel * image[:, p : p + width]) + bias for p in positions] or [bias]
            features.append(max(np.tanh(responses) if tanh else responses))
    return np.array(features)


def char_lstm(weights: Weights, row: Array, skip_unknown: bool) -> Array:
    """The last states of both directions of an LSTM over a word's characters (lample2016); zeros if there are none."""
    chars = [char for char in row if char != 0 and not (skip_unknown and char < RESERVED_CHARS)]
    size = weights["features.chars.lstm.weight_hh"].shape[2]
    if not chars:
        return np.zeros(2 * size)
    x = weights["features.chars.embedding.weight"][chars]
    forward, backward = (bidirectional(weights, "features.chars.lstm", direction, x) for direction in range(2))
    return np.concatenate([forward[-1], backward[0]])


def shape_index(types: Array, row: Array) -> int:
    """All capitals, first capital, some capital, no capital (strubell2017), from a word's (W,) types and characters."""
    capitals = [char_type == UPPER for char_type, char in zip(types, row, strict=True) if char != 0]
    if capitals and all(capitals):
        return 0
    if capitals and capitals[0]:
        return 1
    return 2 if any(capitals) else 3


def char_features(weights: Weights, row: Array, config: object | None) -> Array:
    """The character features of a word by its config; li2020's CNN without a config."""
    if config is None:
        return char_cnn(weights, row)
    if config.char_features == "none":
        return np.zeros(0)
    if config.char_features == "lstm":
        return char_lstm(weights, row, config.skip_unknown_chars)
    return char_cnn(
        weights,
        row,
        config.char_type_features,
        config.char_padding,
        config.char_activation == "tanh",
        config.char_pads,
        config.char_windows,
    )


def word_features(
    weights: Weights, input_ids: Array, char_ids: Array, unknown_row: Array | None = None, config: object | None = None
) -> Array:
    """x_t = [word vector ; caps one-hot ; char CNN], (T, d_w + 4 + 60) (li2020, features).

    `unknown_row` (d_w + 4,), where given, replaces the whole word + caps block of an unknown word. A config may leave
    the caps or the characters out, put a vector of the word's shape between them, or make something else of the latter.
    """
    features = []
    for word, row in zip(input_ids, char_ids, strict=True):
        types = weights["features.char_types"][row]
        caps = caps_one_hot(types) if config is None or config.casing_features else []
        block = np.concatenate([weights["features.words.weight"][word], caps])
        if unknown_row is not None and word == UNKNOWN_WORD:
            block = unknown_row
        shape = weights["features.shapes.weight"][shape_index(types, row)] if config and config.shape_dim else []
        features.append(np.concatenate([block, shape, char_features(weights, row, config)]))
    return np.stack(features)


# Encoder


def sigmoid(x: Array) -> Array:
    """σ(x) = 1 / (1 + e^-x)."""
    return 1.0 / (1.0 + np.exp(-x))


def lstm(x: Array, w_ih: Array, w_hh: Array, bias: Array) -> Array:
    """Run one LSTM left to right, (T, d_in) -> (T, H): c' = f·c + i·g, h' = o·tanh(c'), from zero states."""
    h = np.zeros(w_hh.shape[1])
    c = np.zeros(w_hh.shape[1])
    outputs = []
    for x_t in x:
        i, f, g, o = np.split(w_ih @ x_t + w_hh @ h + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs)


def rnn(x: Array, w_ih: Array, w_hh: Array, bias: Array) -> Array:
    """Run one plain network left to right, (T, d_in) -> (T, H): h' = tanh(W x + U h + b), from h = 0."""
    h = np.zeros(w_hh.shape[1])
    outputs = []
    for x_t in x:
        h = np.tanh(w_ih @ x_t + w_hh @ h + bias)
        outputs.append(h)
    return np.stack(outputs)


def coupled_lstm(x: Array, w_ih: Array, w_hh: Array, bias: Array, w_ch: Array, start: Array) -> Array:
    """Run lample2016's LSTM (section 2.1) left to right, (T, d_in) -> (T, H), from `start`, its h and c."""
    (w_xi, w_xc, w_xo), (w_hi, w_hc, w_ho) = np.split(w_ih, 3), np.split(w_hh, 3)
    (w_ci, w_co), (b_i, b_c, b_o) = np.split(w_ch, 2), np.split(bias, 3)
    h, c = start
    outputs = []
    for x_t in x:
        i = sigmoid(w_xi @ x_t + w_hi @ h + w_ci @ c + b_i)
        c = (1 - i) * c + i * np.tanh(w_xc @ x_t + w_hc @ h + b_c)
        o = sigmoid(w_xo @ x_t + w_ho @ h + w_co @ c + b_o)
        h = o * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs)


def bidirectional(weights: Weights, layer: str, direction: int, x: Array) -> Array:
    """One direction of a layer of any cell; row t of the result belongs to word t."""
    matrices = [weights[f"{layer}.{name}"][direction] for name in ("weight_ih", "weight_hh", "bias")]
    ordered = x[::-1] if direction else x
    gates, size = matrices[1].shape
    if gates == size:
        states = rnn(ordered, *matrices)
    elif gates == 4 * size:
        states = lstm(ordered, *matrices)
    else:
        start = weights.get(f"{layer}.start", np.zeros((2, 2, size)))[direction]
        states = coupled_lstm(ordered, *matrices, weights[f"{layer}.weight_ch"][direction], start)
    return states[::-1] if direction else states


def bilstm(weights: Weights, x: Array, cross: bool) -> Array:
    """[H→ ; H←] of the top layer, (T, 2H).

    Baseline (li2020): H→ = L2(L1(X)), H← = L4(L3(X)). Cross (li2020): both upper LSTMs read [L1(X) ; L3(X)].
    """
    forward, backward = x, x
    layer = 0
    while f"encoder.layers.{layer}.weight_ih" in weights:
        w_ih, w_hh, bias = (weights[f"encoder.layers.{layer}.{name}"] for name in ("weight_ih", "weight_hh", "bias"))
        if cross and layer > 0:
            forward = backward = np.concatenate([forward, backward], axis=1)
        forward = lstm(forward, w_ih[0], w_hh[0], bias[0])
        backward = lstm(backward[::-1], w_ih[1], w_hh[1], bias[1])[::-1]
        layer += 1
    return np.concatenate([forward, backward], axis=1)


def context_of(position: int, length: int, window: int | None, overlap: int | None) -> tuple[int, int]:
    """The words [first, last) that a position attends to: the whole sentence, or the window it belongs to."""
    if window is None or length <= window:
        return 0, length
    overlap = overlap or 0
    stride = window - overlap
    windows = max(1, math.ceil((length - overlap) / stride))
    k = min(max((position - overlap // 2) // stride, 0), windows - 1)
    return k * stride, min(k * stride + window, length)


def attention(
    weights: Weights, hidden: Array, heads: int, window: int | None = None, overlap: int | None = None
) -> tuple[Array, Array]:
    """C_k = softmax(Q_k K_kᵀ / sqrt(d_k)) V_k (li2020, Att): [C_1 ; … ; C_heads] and the weights (heads, T, T)."""
    query, key, value = (hidden @ weights[f"encoder.attention.{name}.weight"].T for name in ("query", "key", "value"))
    length, width = query.shape
    head_dim = width // heads
    context = np.zeros((length, width))
    attended = np.zeros((heads, length, length))
    for k in range(heads):
        rows = slice(k * head_dim, (k + 1) * head_dim)
        for t in range(length):
            first, last = context_of(t, length, window, overlap)
            scores = key[first:last, rows] @ query[t, rows] / math.sqrt(head_dim)
            attended[k, t, first:last] = np.exp(softmax_log_probs(scores[None])[0])
            context[t, rows] = attended[k, t] @ value[:, rows]
    return context, attended


def encode(
    weights: Weights, architecture: str, x: Array, heads: int = 1, window: int | None = None, overlap: int | None = None
) -> Array:
    """Hidden states (T, h) of Baseline and Cross, [H→ ; H←], or of Att, [H ; C_1 ; … ; C_heads] (li2020)."""
    if architecture == "bilstm-cnn":
        return bilstm(weights, x, cross=False)
    if architecture == "cross-bilstm-cnn":
        return bilstm(weights, x, cross=True)
    if architecture == "att-bilstm-cnn":
        hidden = bilstm(weights, x, cross=False)
        return np.concatenate([hidden, attention(weights, hidden, heads, window, overlap)[0]], axis=1)
    raise ValueError(f"no reference for the architecture {architecture!r}")


def log_sum_exp(values: Array) -> float:
    """Log Σ e^v, which is −∞ for no values at all."""
    top = max(values, default=-np.inf)
    return float(top) if top == -np.inf else float(top + np.log(np.sum(np.exp(values - top))))


def softmax_log_probs(scores: Array) -> Array:
    """Log softmax of each row, (T, K)."""
    return np.stack([row - log_sum_exp(row) for row in scores])


# The linear-chain CRF (lample2016, eq. 1 and 2), by enumeration of all K^T paths; T is at least 1.


def enumerate_paths(emissions: Array, transitions: Array, start: Array, end: Array) -> tuple[Array, Array]:
    """Every path (K^T, T) in lexicographic order and its score (K^T,): start + Σ emissions + Σ transitions + end.

    The transitions (K, K) hold for all words, or (T, K, K) for the way into each (ma2016).
    """
    length, tags = emissions.shape
    transitions = np.broadcast_to(transitions, (length, tags, tags))
    paths = np.array(list(itertools.product(range(tags), repeat=length)))
    scores = start[paths[:, 0]] + end[paths[:, -1]]
    for t in range(length):
        scores = scores + emissions[t, paths[:, t]]
    for t in range(length - 1):
        scores = scores + transitions[t + 1, paths[:, t], paths[:, t + 1]]
    return paths, scores


def log_partition(emissions: Array, transitions: Array, start: Array, end: Array) -> float:
    """Log Z: the log of the summed exponentials of all path scores."""
    return log_sum_exp(enumerate_paths(emissions, transitions, start, end)[1])


def marginals(emissions: Array, transitions: Array, start: Array, end: Array) -> Array:
    """P(y_t = j), (T, K)."""
    paths, scores = enumerate_paths(emissions, transitions, start, end)
    probabilities = np.exp(scores - log_sum_exp(scores))
    length, tags = emissions.shape
    return np.array([[probabilities[paths[:, t] == j].sum() for j in range(tags)] for t in range(length)])


def best_path(emissions: Array, transitions: Array, start: Array, end: Array) -> list[int]:
    """The path of highest score; among equals, the lexicographically first."""
    paths, scores = enumerate_paths(emissions, transitions, start, end)
    return paths[np.argmax(scores)].tolist()


def log_likelihood_of_set(emissions: Array, transitions: Array, start: Array, end: Array, allowed: Array) -> float:
    """Log of the probability of all paths whose every tag is allowed, (T, K) bool: partial observation."""
    paths, scores = enumerate_paths(emissions, transitions, start, end)
    inside = np.array([all(allowed[t, tag] for t, tag in enumerate(path)) for path in paths])
    return log_sum_exp(scores[inside]) - log_sum_exp(scores)


# Tags


def split(tag: str) -> tuple[str, str]:
    """A chunk tag as its position and type: "B-person" is ("B", "person"), "O" is ("O", "")."""
    position, _, kind = tag.partition("-")
    return position, kind


def is_chunked(labels: list[str]) -> bool:
    """Return whether the labels are IOB2 rather than plain classes such as parts of speech."""
    return any(label.startswith(("B-", "I-")) for label in labels)


def inner_tags(labels: list[str]) -> list[str]:
    """The BIOES tags behind the public IOB2 labels: O, then B I E S of each type, or S alone without a public I."""
    if not is_chunked(labels):
        return list(labels)
    tags = ["O"]
    for kind in dict.fromkeys(split(label)[1] for label in labels if label != "O"):
        if f"I-{kind}" not in labels:
            tags.append(f"S-{kind}")
        elif f"B-{kind}" in labels:
            tags += [f"{position}-{kind}" for position in "BIES"]
        else:
            raise ValueError(f"not IOB2: there is I-{kind} but no B-{kind}")
    return tags


def to_inner(tags: list[str]) -> list[str]:
    """IOB2 to BIOES. An I-x that continues no entity of type x becomes B-x first. Plain tags stay as they are."""
    repaired: list[str] = []
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


def spans_strict(inner: list[str]) -> list[Span]:
    """Well-formed entities only: S, or B I* E of one type; anything else is dropped (li2020, scoring)."""
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


def spans_conlleval(inner: list[str]) -> list[Span]:
    """Entities as conlleval repairs them: B and S start one, and so does an I or E that cannot continue the last."""

    def starts(t: int) -> bool:
        position, kind = split(inner[t])
        before, kind_before = split(inner[t - 1]) if t else ("O", "")
        if position in ("B", "S"):
            return True
        return position in ("I", "E") and (before in ("O", "E", "S") or kind != kind_before)

    spans = []
    for first in range(len(inner)):
        if starts(first):
            last = first + 1
            while last < len(inner) and inner[last] != "O" and not starts(last):
                last += 1
            spans.append((split(inner[first])[1], first, last))
    return spans


def public_tags(spans: list[Span], length: int) -> list[str]:
    """The IOB2 tags of a sentence of `length` words that holds these entities."""
    tags = ["O"] * length
    for kind, first, last in spans:
        tags[first:last] = [f"B-{kind}"] + [f"I-{kind}"] * (last - first - 1)
    return tags


def public_logits(inner_log_probs: Array, inner: list[str], public: list[str], path: list[int]) -> Array:
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
