"""An independent oracle: the equations of strubell2017 as plain float64 NumPy, one unpadded sentence at a time.

Strubell, Verga, Belanger, McCallum. Fast and Accurate Entity Recognition with Iterated Dilated Convolutions. EMNLP
2017. T is the number of words.
"""

import numpy as np
from reference_grn import convolution


def iterations(weights, config, x):
    """The states after every application of the block: features (T, d) to (T, h) each."""
    states = np.maximum(convolution(x, weights["encoder.input.weight"], weights["encoder.input.bias"]), 0)
    results = []
    for _ in range(config.iterations):
        for n, dilation in enumerate(config.dilations):
            weight, bias = weights[f"encoder.block.{n}.weight"], weights[f"encoder.block.{n}.bias"]
            states = np.maximum(convolution(states, weight, bias, dilation), 0)
        results.append(states)
    return results


def encode(weights, config, x):
    """The states after the last iteration, from which tags are scored: features (T, d) to (T, h)."""
    return iterations(weights, config, x)[-1]
