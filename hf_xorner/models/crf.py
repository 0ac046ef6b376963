"""A linear-chain conditional random field: partition, posterior and best path, all in float32 or wider.

Shapes: emissions (B, T, K), right-padded; lengths (B,); transitions (K, K) from row to column; start, end (K,).
Recursions stay outside of compiled graphs, which would unroll them anew for every length.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

#: Score of what cannot be. Finite, so that sums of it stay numbers and no probability is log 0.
IMPOSSIBLE = -1e4


@torch.compiler.disable
def log_partition(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor) -> Tensor:
    """Log of the summed exponentiated scores of all paths, (B,); 0 for a sentence without words.

    Differentiable without a graph through time: the gradient is the posterior.
    """
    return _LogPartition.apply(emissions, transitions, start, end, lengths)


@torch.compiler.disable
def log_marginals(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor) -> Tensor:
    """Log posterior probability of every tag of every word, (B, T, K)."""
    prefix, _ = prefix_scores(emissions, transitions, start, lengths)
    suffix = suffix_scores(emissions, transitions, end, lengths)
    return (prefix + suffix).log_softmax(-1).transpose(0, 1)


def path_score(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, path: Tensor
) -> Tensor:
    """Score of one path a sentence: path (B, T) → (B,); 0 for a sentence without words."""
    inside = torch.arange(path.shape[1], device=path.device) < lengths.unsqueeze(1)
    local = emissions.gather(2, path.unsqueeze(-1)).squeeze(-1)
    local = torch.cat([local[:, :1] + start[path[:, :1]], local[:, 1:] + transitions[path[:, :-1], path[:, 1:]]], 1)
    last = path.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
    return local.masked_fill(~inside, 0).sum(1) + end[last].masked_fill(lengths == 0, 0)


@torch.compiler.disable
def best_path(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor) -> Tensor:
    """The path of the highest score (Viterbi), (B, T); what stands beyond a sentence's end means nothing."""
    batch, time, tags = emissions.shape
    pointers = torch.arange(tags, device=emissions.device).repeat(time, batch, 1)  # (T, B, K)
    score = start + emissions[:, 0]
    for step in range(1, time):
        best, source = (score.unsqueeze(2) + transitions).max(1)
        inside = (step < lengths).unsqueeze(1)
        score = torch.where(inside, best + emissions[:, step], score)
        score = score - score.amax(1, keepdim=True)  # Grown with the sentence, it would have no digits left for a word.
        pointers[step] = torch.where(inside, source, pointers[step])
    tag = (score + end).argmax(1, keepdim=True)
    path = torch.empty(time, batch, 1, dtype=torch.long, device=emissions.device)
    path[time - 1] = tag
    for step in range(time - 1, 0, -1):
        # Beyond the end of a sentence pointers point to themselves, and carry its last tag back to its last word.
        tag = pointers[step].gather(1, tag)
        path[step - 1] = tag
    return path.squeeze(2).transpose(0, 1)


def prefix_scores(emissions: Tensor, transitions: Tensor, start: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Log-sums of all partial paths from the start to a tag of a word, that word included.

    Returns:
        (T, B, K), at every word less the largest, so that long sentences stay as exact as short ones; and what was
        taken off in all, (B,).
    """
    prefix = torch.empty_like(emissions.transpose(0, 1), memory_format=torch.contiguous_format)
    tops = torch.empty_like(prefix[..., :1])
    score = start + emissions[:, 0]
    for step in range(len(prefix)):
        if step > 0:
            longer = (score.unsqueeze(2) + transitions).logsumexp(1) + emissions[:, step]
            score = torch.where((step < lengths).unsqueeze(1), longer, score)
        top = tops[step] = score.amax(1, keepdim=True)
        score = prefix[step] = score - top
    return prefix, tops.sum((0, 2))


def suffix_scores(emissions: Tensor, transitions: Tensor, end: Tensor, lengths: Tensor) -> Tensor:
    """(T, B, K): log-sums of partial paths from a tag of a word to the end, that word excluded, less the largest."""
    suffix = torch.empty_like(emissions.transpose(0, 1), memory_format=torch.contiguous_format)
    score = suffix[-1] = end.expand_as(suffix[-1])
    for step in range(len(suffix) - 2, -1, -1):
        longer = ((score + emissions[:, step + 1]).unsqueeze(1) + transitions).logsumexp(2)
        longer = longer - longer.amax(1, keepdim=True)
        score = suffix[step] = torch.where((step + 1 < lengths).unsqueeze(1), longer, score)
    return suffix


class _LogPartition(torch.autograd.Function):
    """The partition, with the expected counts of the posterior as its gradient."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor
    ) -> Tensor:
        """Run the forward recursion: (B,)."""
        prefix, taken_off = prefix_scores(emissions, transitions, start, lengths)
        ctx.save_for_backward(emissions, transitions, end, lengths, prefix)
        partition = (prefix[-1] + end).logsumexp(1) + taken_off
        return partition.masked_fill(lengths == 0, 0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        """Weigh each sentence's expected counts by the gradient of its partition."""
        emissions, transitions, end, lengths, prefix = ctx.saved_tensors
        (gradient,) = gradients
        weight = gradient.masked_fill(lengths == 0, 0).unsqueeze(1)  # (B, 1)
        suffix = suffix_scores(emissions, transitions, end, lengths)
        time = len(prefix)
        inside = torch.arange(time, device=lengths.device).unsqueeze(1) < lengths  # (T, B)
        marginals = (prefix + suffix).softmax(2) * weight * inside.unsqueeze(2)  # (T, B, K)
        pairs = torch.zeros_like(transitions)
        for step in range(1, time):
            into = suffix[step] + emissions[:, step]
            both = (prefix[step - 1].unsqueeze(2) + transitions + into.unsqueeze(1)).flatten(1).softmax(1)
            pairs += (weight * inside[step].unsqueeze(1) * both).sum(0).view_as(pairs)
        last = marginals.gather(0, (lengths - 1).clamp(min=0).view(1, -1, 1).expand(1, -1, marginals.shape[2]))
        return marginals.transpose(0, 1), pairs, marginals[0].sum(0), last[0].sum(0), None
