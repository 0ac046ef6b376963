"""The encoders of all families as plain float64 NumPy, one unpadded sentence at a time; see `references`."""

from __future__ import annotations

import math

import numpy as np
import reference_grn
import reference_id_cnn
import references as ref
from references import Array, Weights


def li2020(weights: Weights, config, x: Array) -> Array:
    """Baseline, Cross and Att: features (T, d) to states (T, h)."""
    return ref.encode(weights, config.model_type, x, **attention_fields(config))


def lstm_crf(weights: Weights, config, x: Array) -> Array:
    """A tanh layer, if any, over both directions of an LSTM (lample2016, sections 2.1 and 2.4): (T, d) to (T, h)."""
    states = np.concatenate([ref.bidirectional(weights, "encoder.lstm", direction, x) for direction in range(2)], 1)
    if not config.tanh_size:
        return states
    return np.tanh(states @ weights["encoder.hidden.weight"].T + weights["encoder.hidden.bias"])


def cnn_lstm_crf(weights: Weights, config, x: Array) -> Array:
    """Both directions of one layer (ma2016, section 2.2), and what attention gathers from them: (T, d) to (T, h)."""
    states = np.concatenate([ref.bidirectional(weights, "encoder.layer", direction, x) for direction in range(2)], 1)
    if not config.self_attention:
        return states
    return np.concatenate([states, ref.attention(weights, states, **attention_fields(config))[0]], axis=1)


ENCODERS = {
    "bilstm-cnn": li2020,
    "cross-bilstm-cnn": li2020,
    "att-bilstm-cnn": li2020,
    "lstm-crf": lstm_crf,
    "cnn-lstm-crf": cnn_lstm_crf,
    "grn": reference_grn.encode,
    "id-cnn": reference_id_cnn.encode,
}


def attention_fields(config) -> dict[str, int]:
    """The number of heads and the window for the references; empty for models without attention."""
    if not hasattr(config, "num_attention_heads"):
        return {}
    return {
        "heads": config.num_attention_heads,
        "window": config.attention_window,
        "overlap": config.attention_overlap,
    }


def states(weights: Weights, config, input_ids: Array, char_ids: Array) -> Array:
    """The states (T, h) of one sentence; `features.unknown` is obeyed where present."""
    x = ref.word_features(weights, input_ids, char_ids, weights.get("features.unknown"), config)
    return ENCODERS[config.model_type](weights, config, x)


def emissions(weights: Weights, hidden: Array) -> Array:
    """Scores of the tags (T, K); 0 where pairs of tags alone are scored (ma2016)."""
    if "classifier.weight" not in weights:
        return np.zeros((len(hidden), math.isqrt(len(weights["decoder.pairs.bias"]))))
    return hidden @ weights["classifier.weight"].T + weights["classifier.bias"]


def crf(weights: Weights, hidden: Array) -> tuple[Array, Array, Array]:
    """Transitions, start and end of a sentence with these states, without regard to what is barred.

    Constant ones (lample2016), or scores of each pair of tags that the words condition (ma2016, section 2.3). What a
    CRF does not score is 0.
    """
    tags = emissions(weights, hidden).shape[1]
    transitions, start = weights.get("decoder.transitions"), weights.get("decoder.start", np.zeros(tags))
    if transitions is None:
        pairs = hidden @ weights["decoder.pairs.weight"].T + weights["decoder.pairs.bias"]
        transitions = pairs.reshape(-1, tags, tags)
        if "decoder.starts.weight" in weights:
            start = weights["decoder.starts.weight"] @ hidden[0] + weights["decoder.starts.bias"]
    return transitions, start, weights.get("decoder.end", np.zeros(tags))
