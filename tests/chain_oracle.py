"""An independent oracle for chains: every path of one unpadded sentence tried, and the textbook recursions in float64.

T is the number of words, at least 1, and K that of tags. Emissions (T, K); transitions (K, K), or (T, K, K) where entry
t scores the move into word t; start (K,); end (K,). −∞ bars.
"""

from functools import lru_cache

import numpy as np


def alone(chain, row, length):
    """The arguments of one sentence, from the tensors of a batch."""
    emissions, transitions, start, end = (scores.detach().double().numpy() for scores in chain)
    if transitions.ndim == 4:
        transitions, start = transitions[row, :length], start[row]
    return emissions[row, :length], transitions, start, end


def into(transitions, t):
    """The scores of the moves into word t, (K, K)."""
    return transitions if transitions.ndim == 2 else transitions[t]


@lru_cache
def every_sequence(tags, length):
    """All sequences of tags in lexicographic order, (K^T, T)."""
    return np.indices((tags,) * length).reshape(length, -1).T


def all_paths(emissions, transitions, start, end):
    """Every path that is not barred (N, T) and its score (N,), best first; among equals lexicographically."""
    length, tags = emissions.shape
    paths = every_sequence(tags, length)
    scores = start[paths[:, 0]] + end[paths[:, -1]]
    for t in range(length):
        scores = scores + emissions[t, paths[:, t]]
    for t in range(1, length):
        scores = scores + into(transitions, t)[paths[:, t - 1], paths[:, t]]
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > -np.inf]
    return paths[order], scores[order]


def log_sum_exp(values, axis=None):
    """Log Σ e^v, −∞ for nothing but −∞."""
    top = np.max(values, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top
    return total.squeeze(axis) if axis is not None else float(total.squeeze())


def probabilities(*chain):
    """The paths that are not barred (N, T), and their probabilities (N,)."""
    paths, scores = all_paths(*chain)
    return paths, np.exp(scores - log_sum_exp(scores))


def counts(emissions, transitions, start, end, fits=lambda paths: np.ones(len(paths), dtype=bool)):
    """Expected counts over the paths that fit: of tags by word (T, K), and of moves in the shape of the transitions."""
    paths, scores = all_paths(emissions, transitions, start, end)
    chosen = fits(paths)
    paths, scores = paths[chosen], scores[chosen]
    shares = np.exp(scores - log_sum_exp(scores))
    length = len(emissions)
    words, moves = np.zeros_like(emissions), np.zeros_like(transitions)
    for t in range(length):
        np.add.at(words[t], paths[:, t], shares)
        if t:
            np.add.at(into(moves, t), (paths[:, t - 1], paths[:, t]), shares)
    return words, moves


def log_likelihood(*chain, fits):
    """Log of the probability of the paths that fit."""
    paths, scores = all_paths(*chain)
    return log_sum_exp(scores[fits(paths)]) - log_sum_exp(scores)


def within(allowed):
    """Whether all tags of a path are allowed, (T, K)."""
    return lambda paths: np.array(allowed)[np.arange(paths.shape[1]), paths].all(1)


def recursions(emissions, transitions, start, end):
    """Log partition, log marginals (T, K) and expected moves, by adding logarithms."""
    length = len(emissions)
    forward, backward = np.zeros_like(emissions), np.zeros_like(emissions)
    forward[0], backward[-1] = start + emissions[0], end
    for t in range(1, length):
        forward[t] = log_sum_exp(forward[t - 1][:, None] + into(transitions, t), axis=0) + emissions[t]
    for t in range(length - 2, -1, -1):
        ahead = emissions[t + 1] + backward[t + 1]
        backward[t] = log_sum_exp(into(transitions, t + 1) + ahead, axis=1)
    total = log_sum_exp(forward[-1] + end)
    moves = np.zeros_like(transitions)
    for t in range(1, length):
        ahead = emissions[t] + backward[t]
        pair = np.exp(forward[t - 1][:, None] + into(transitions, t) + ahead - total)
        if transitions.ndim == 2:
            moves += pair
        else:
            moves[t] = pair
    return total, forward + backward - total, moves


def best_path(emissions, transitions, start, end):
    """The path of the highest score."""
    score, pointers = start + emissions[0], []
    for t in range(1, len(emissions)):
        moved = score[:, None] + into(transitions, t)
        pointers.append(moved.argmax(0))
        score = moved.max(0) + emissions[t]
    path = [int((score + end).argmax())]
    for pointer in reversed(pointers):
        path.append(int(pointer[path[-1]]))
    return path[::-1]


def score_of(emissions, transitions, start, end, path):
    """The score of one path."""
    score = start[path[0]] + end[path[-1]] + sum(emissions[t, tag] for t, tag in enumerate(path))
    return score + sum(into(transitions, t)[path[t - 1], path[t]] for t in range(1, len(path)))
