"""A linear-chain conditional random field (lample2016, section 2.2; ma2016, section 2.3): likelihood and posterior.

All in float32 or wider. Shapes: emissions (B, T, K), right-padded; lengths (B,); transitions (K, K) from row to
column, or (B, T, K, K) where entry t scores the move from word t − 1 to word t; start (K,) or (B, K); end (K,). −∞ bars
what it scores. Recursions stay outside of compiled graphs, which would unroll them anew for every length.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .crf_messages import IMPOSSIBLE, Chain, LogMessages, ScaledMessages, messages
from .crf_paths import k_best_paths, path_score
from .tags import IGNORED


@torch.compiler.disable
def log_partition(chain: Chain, lengths: Tensor) -> Tensor:
    """Log of the summed exponentiated scores of all paths, (B,); 0 for a sentence without words.

    Differentiable without a graph through time: the gradient is the posterior.
    """
    return _LogPartition.apply(*chain, lengths, None)


@torch.compiler.disable
def negative_log_likelihood(chain: Chain, lengths: Tensor, gold: Tensor) -> Tensor:
    """−log p of gold tags (B, T), of which IGNORED may be any: (B,); 0 for a sentence without words.

    Its gradient is the expected counts of the posterior less those of the gold tags.
    """
    return _LogPartition.apply(*chain, lengths, gold)


@torch.compiler.disable
def log_marginals(chain: Chain, lengths: Tensor) -> Tensor:
    """Log posterior probability of every tag of every word, (B, T, K); all alike beyond the end of a sentence."""
    if chain.emissions.shape[1] == 0:
        return torch.zeros_like(chain.emissions)
    return _log_marginals(messages(chain, lengths), chain.emissions)


@torch.compiler.disable
def posterior(chain: Chain, lengths: Tensor, path: Tensor) -> tuple[Tensor, Tensor]:
    """The log posterior marginals (B, T, K), and that of a path (B, T), step by step (B, T, 2).

    Of each tag on the path: its log probability by itself, and given the tag before it on the path (of the first word,
    by itself). As a chain has no longer memory, the first of a span's first word and the second of its other words add
    up to the exact log probability that the span has these tags, whatever stands around it.
    """
    if chain.emissions.shape[1] == 0:
        return torch.zeros_like(chain.emissions), chain.emissions.new_zeros(*path.shape, 2)
    sums = messages(chain, lengths)
    marginals = _log_marginals(sums, chain.emissions)
    inside = sums.alignment.inside.t()
    alone = marginals.gather(2, path.unsqueeze(2)).squeeze(2).where(inside, 0)
    # What follows a tag that cannot be is no number.
    given = sums.log_conditionals(path.t()).nan_to_num(nan=IMPOSSIBLE, neginf=IMPOSSIBLE)
    given = torch.cat([alone[:, :1], _tell(given, chain.emissions).t()], 1).where(inside, 0)
    return marginals, torch.stack([alone, given], 2)


def span_log_probs(path_log_probs: Tensor, sentence: Tensor, begin: Tensor, end: Tensor) -> Tensor:
    """Exact log probability that spans have the tags of a path: a constrained forward pass for each, in one sum.

    Args:
        path_log_probs: (B, T, 2) as `posterior` gives them.
        sentence: The sentence of each span, (N,).
        begin: Its first word, (N,).
        end: One past its last word, (N,).

    Returns:
        (N,), float64.
    """
    alone, given = path_log_probs.double().unbind(2)
    upto = given.cumsum(1)
    return alone[sentence, begin] + upto[sentence, end - 1] - upto[sentence, begin]


@torch.compiler.disable
@torch.no_grad()
def k_best(chain: Chain, lengths: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k most probable paths, best first, (B, k, T); their log probabilities (B, k), −∞ where there are fewer."""
    paths, scores = k_best_paths(chain, lengths, k)
    return paths, scores - log_partition(chain, lengths).unsqueeze(1)


def _log_marginals(sums: ScaledMessages | LogMessages, like: Tensor) -> Tensor:
    """(B, T, K) in the type of the emissions."""
    inside = sums.alignment.inside.t().unsqueeze(2)
    return _tell(sums.log_marginals(), like).transpose(0, 1).where(inside, -math.log(like.shape[2]))


def _tell(log_probs: Tensor, like: Tensor) -> Tensor:
    """Log probabilities as they leave this module: finite, and in the type of the emissions."""
    return log_probs.to(like.dtype).clamp(min=IMPOSSIBLE)


class _LogPartition(torch.autograd.Function):
    """The partition, less the score of the gold tags where there are any."""

    @staticmethod
    def forward(
        ctx: Any,
        emissions: Tensor,
        transitions: Tensor,
        start: Tensor,
        end: Tensor,
        lengths: Tensor,
        gold: Tensor | None,
    ) -> Tensor:
        """Run the recursions of both directions, of which the backward pass needs the second: (B,)."""
        chain = Chain(emissions, transitions, start, end)
        ctx.chain, ctx.lengths, ctx.gold, ctx.sums, ctx.fitting = chain, lengths, gold, None, None
        if emissions.shape[1] == 0:
            return emissions.new_zeros(len(emissions))
        ctx.sums = messages(chain, lengths)
        total = ctx.sums.log_partition()
        if gold is not None:
            free = (gold == IGNORED) & ctx.sums.alignment.inside.t()
            if not free.is_meta and free.any():
                # The paths that fit the labels are those of a chain that bars all else.
                tags = torch.arange(emissions.shape[2], device=gold.device)
                fits = (tags == gold.unsqueeze(2)) | (gold == IGNORED).unsqueeze(2)
                ctx.fitting = messages(chain._replace(emissions=emissions.masked_fill(~fits, -torch.inf)), lengths)
                fitting = ctx.fitting.log_partition()
            else:
                ctx.gold = gold.clamp(min=0)
                fitting = path_score(chain.to(total.dtype), lengths, ctx.gold)
            total = torch.where(fitting == -torch.inf, -IMPOSSIBLE, total - fitting)
        return total.masked_fill(lengths == 0, 0).to(emissions.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Weigh each sentence's counts by its gradient."""
        chain, lengths, sums = ctx.chain, ctx.lengths, ctx.sums
        if sums is None:
            return *(torch.zeros_like(scores) for scores in chain), None, None
        alignment = sums.alignment
        weight = gradients[0].masked_fill(lengths == 0, 0).to(sums.chain.emissions.dtype)
        words, pairs = sums.marginals(), sums.pair_counts(weight)
        if ctx.fitting is not None:
            words -= ctx.fitting.marginals()
            pairs -= ctx.fitting.pair_counts(weight.to(ctx.fitting.chain.emissions.dtype))
        elif ctx.gold is not None:
            path = ctx.gold.t()
            words.scatter_add_(2, path.unsqueeze(2), words.new_full((1, 1, 1), -1).expand(*path.shape, 1))
            _take_moves(pairs, path, weight * alignment.inside_pairs)
        words = torch.where(alignment.inside.unsqueeze(2), words * weight.unsqueeze(1), 0)
        start = words[0] if chain.start.dim() == 2 else words[0].sum(0)
        counts = (words.transpose(0, 1), pairs, start, alignment.at_last(words).sum(0))
        return *(count.to(scores.dtype) for count, scores in zip(counts, chain, strict=True)), None, None


def _take_moves(pairs: Tensor, path: Tensor, weight: Tensor) -> None:
    """Take the moves of a path (T, B), weighted by (T − 1, B), from the counts of moves, in place."""
    tags = pairs.shape[-1]
    place = path[:-1] * tags + path[1:]
    if pairs.dim() == 2:
        pairs.view(-1).index_add_(0, place.flatten(), weight.flatten(), alpha=-1)
    else:
        pairs[:, 1:].view(*place.t().shape, tags * tags).scatter_add_(
            2, place.t().unsqueeze(2), -weight.t().unsqueeze(2)
        )
