"""The encoders of all families as plain float64 NumPy, one unpadded sentence at a time; see `references`."""

import math

import numpy as np
import reference_grn
import references as ref


def with_attention(weights, config, states):
    """[H ; C_1 ; … ; C_heads] where the model has attention (li2020, Att)."""
    if "encoder.attention.query.weight" not in weights:
        return states
    return np.concatenate([states, ref.attention(weights, states, config)[0]], axis=1)


def li2020(weights, config, x):
    """[H→ ; H←] of the top layer: features (T, d) to states (T, h).

    Baseline: H→ = L2(L1(X)), H← = L4(L3(X)). Cross: both upper LSTMs read [L1(X) ; L3(X)].
    """
    both = [x, x]
    for layer in range(config.num_hidden_layers):
        if layer and config.model_type == "cross-bilstm-cnn":
            both = [np.concatenate(both, axis=1)] * 2
        both = [ref.bidirectional(weights, f"encoder.layers.{layer}", *direction) for direction in enumerate(both)]
    return with_attention(weights, config, np.concatenate(both, axis=1))


def lstm_crf(weights, config, x):
    """A tanh layer, if any, over both directions of an LSTM (lample2016, sections 2.1 and 2.4): (T, d) to (T, h)."""
    states = np.concatenate([ref.bidirectional(weights, "encoder.lstm", direction, x) for direction in range(2)], 1)
    if not config.tanh_size:
        return states
    return np.tanh(states @ weights["encoder.hidden.weight"].T + weights["encoder.hidden.bias"])


def cnn_lstm_crf(weights, config, x):
    """Both directions of one layer (ma2016, section 2.2): (T, d) to (T, h)."""
    states = np.concatenate([ref.bidirectional(weights, "encoder.layer", direction, x) for direction in range(2)], 1)
    return with_attention(weights, config, states)


def id_cnn_iterations(weights, config, x):
    """The states after every application of the block (strubell2017): features (T, d) to (T, h) each."""
    states = np.maximum(reference_grn.convolution(x, weights["encoder.input.weight"], weights["encoder.input.bias"]), 0)
    results = []
    for _ in range(config.iterations):
        for n, dilation in enumerate(config.dilations):
            weight, bias = weights[f"encoder.block.{n}.weight"], weights[f"encoder.block.{n}.bias"]
            states = np.maximum(reference_grn.convolution(states, weight, bias, dilation), 0)
        results.append(states)
    return results


def id_cnn(weights, config, x):
    """The states after the last iteration (strubell2017): (T, d) to (T, h)."""
    return id_cnn_iterations(weights, config, x)[-1]


ENCODERS = {
    "bilstm-cnn": li2020,
    "cross-bilstm-cnn": li2020,
    "att-bilstm-cnn": li2020,
    "lstm-crf": lstm_crf,
    "cnn-lstm-crf": cnn_lstm_crf,
    "grn": reference_grn.encode,
    "id-cnn": id_cnn,
}


def states(weights, config, input_ids, char_ids):
    """The states (T, h) of one sentence."""
    return ENCODERS[config.model_type](weights, config, ref.word_features(weights, input_ids, char_ids, config))


def emissions(weights, hidden):
    """Scores of the tags (T, K); 0 where pairs of tags alone are scored (ma2016)."""
    if "classifier.weight" not in weights:
        return np.zeros((len(hidden), math.isqrt(len(weights["decoder.pairs.bias"]))))
    return hidden @ weights["classifier.weight"].T + weights["classifier.bias"]


def crf(weights, hidden):
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
