"""An independent oracle: the equations of chen2019 as plain float64 NumPy, one unpadded sentence at a time.

Chen, Lin, Ding, Lou, Zhang, Karlsson. GRN: Gated Relation Network to Enhance Convolutional Neural Network for Named
Entity Recognition. AAAI 2019. T is the number of words; r_ij exists here, for every pair of words in turn.
"""

import numpy as np
from references import sigmoid


def convolution(x, kernel, bias, dilation=1):
    """Filters (C, d, width) over words `dilation` apart, zeros beyond both ends: (T, d) to (T, C)."""
    length, width = len(x), kernel.shape[2]
    y = np.zeros((length, len(kernel)))
    for t in range(length):
        y[t] = bias
        for n in range(width):
            word = t + (n - width // 2) * dilation
            if 0 <= word < length:
                y[t] += kernel[:, :, n] @ x[word]
    return y


def context(weights, config, x):
    """x_i of the context layer: every branch through tanh, then the maximum of the branches."""
    branches = []
    for n in range(len(config.context_widths)):
        name = f"encoder.context.convolutions.{n}"
        branches.append(np.tanh(convolution(x, weights[f"{name}.weight"], weights[f"{name}.bias"])))
    return np.max(branches, axis=0) if branches else x


def relations(weights, x):
    """r_ij = W [x_i ; x_j] + b of all pairs: (T, d) to (T, T, C)."""
    weight, bias = weights["encoder.relation.projection.weight"], weights["encoder.relation.projection.bias"]
    return np.array([[weight @ np.concatenate([x_i, x_j]) + bias for x_j in x] for x_i in x])


def fuse(x, r, relation):
    """r_i of every word (chen2019, eq. 5 to 7)."""
    fused = []
    for r_i in r:
        total = 0.0
        for x_j, r_ij in zip(x, r_i, strict=True):
            total = total + (r_ij if relation == "direct" else sigmoid(r_ij) * x_j)
        fused.append(total / len(x))
    return np.array(fused)


def encode(weights, config, x):
    """p_i of every word: features (T, d) to (T, h)."""
    x = context(weights, config, x)
    return x if config.relation == "none" else np.tanh(fuse(x, relations(weights, x), config.relation))


def relation_norms(weights, config, x):
    """‖r_ij‖ of all pairs: features (T, d) to (T, T)."""
    r = relations(weights, context(weights, config, x))
    return np.sqrt((r**2).sum(2))
