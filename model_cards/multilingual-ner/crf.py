"""A linear-chain conditional random field (lample2016, section 2.2; ma2016, section 2.3): likelihood and posterior.

All in float32 or wider. Shapes: emissions (B, T, K), right-padded, T ≥ 1; lengths (B,); transitions (K, K) from row to
column, or (B, T, K, K) where entry t scores the transition from word t − 1 to word t; start (K,) or (B, K); end (K,).
A score of −∞ forbids a tag or transition. Recursions are excluded from compiled graphs, which would unroll them for
every length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .layers import cheap_to_read, length_mask
from .tags import IGNORED

#: Replaces −∞: the lowest log probability that is returned, and the log probability of forbidden gold tags.
IMPOSSIBLE = -1e4

#: Scaled weights, of which the largest is about 1, may be inexact below this.
SMALLEST = 1e-140

#: Steps unbound at a time: one by one is slow, all at once takes much memory for documents of 100,000 words.
BLOCK = 256

#: Elements of the largest intermediate tensor of `scan`; beyond it, single steps were faster on an H200.
LARGEST_SCAN = 2**25


class Chain(NamedTuple):
    """The scores of a batch."""

    emissions: Tensor  # (B, T, K)
    transitions: Tensor  # (K, K) or (B, T, K, K)
    start: Tensor  # (K,) or (B, K)
    end: Tensor  # (K,)

    def to(self, dtype: torch.dtype) -> Chain:
        """The same scores in another dtype."""
        return Chain(*(scores.to(dtype) for scores in self))

    def widened(self) -> Chain:
        """The same scores in float64, which MPS lacks."""
        return self if self.emissions.device.type == "mps" else self.to(torch.float64)

    @property
    def conditioned(self) -> bool:
        """True if every word has its own transitions."""
        return self.transitions.dim() == 4

    @property
    def has_graph(self) -> bool:
        """True if operations on the scores are recorded for gradients."""
        return torch.is_grad_enabled() and any(scores.requires_grad for scores in self)


def by_step(*values: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Iterate over several tensors along dimension 0."""
    for first in range(0, len(values[0]), BLOCK):
        yield from zip(*(value[first : first + BLOCK].unbind(0) for value in values), strict=True)


class Alignment:
    """The words that both directions read at each step, in sentences (B, T) of the given lengths."""

    def __init__(self, lengths: Tensor, time: int) -> None:
        self.time, self.batch = time, len(lengths)
        self.lengths = lengths
        self.step = torch.arange(time, device=lengths.device).unsqueeze(1)  # (T, 1)
        self.inside = length_mask(lengths, time).t()  # (T, B)
        self.inside_pairs = self.inside[1:]  # (T − 1, B) pairs of neighbouring words, at the second word

    @cached_property
    def rows(self) -> Tensor:
        """The numbers of the sentences, (B,)."""
        return torch.arange(self.batch, device=self.lengths.device)

    @cached_property
    def last(self) -> Tensor:
        """The last word of each sentence, (B,)."""
        return (self.lengths - 1).clamp(min=0)

    @cached_property
    def words(self) -> Tensor:
        """The words of each step, (T, 2, B): counted from the start and from the end."""
        return torch.stack([self.step.minimum(self.last), (self.last - self.step).clamp(min=0)], 1)

    def align(self, values: Tensor) -> Tensor:
        """Values of words (B, T, …) in the order of the steps of both directions: (T, 2, B, …)."""
        index = (self.words + self.rows * self.time).flatten()
        return values.flatten(0, 1).index_select(0, index).unflatten(0, self.words.shape)

    def moves(self, transitions: Tensor, step: int) -> Tensor:
        """The transitions of both directions into a step: (B, T, K, K) → (2, B, K, K)."""
        # Backward, the entry of the previous step's word scores the transition between the two words.
        forward = transitions[self.rows, self.words[step, 0]]
        backward = transitions[self.rows, self.words[step - 1, 1]]
        return torch.stack([forward, backward.transpose(1, 2)])

    def mirror(self, values: Tensor) -> Tensor:
        """Values of the steps of the backward direction (T, B, K) in the order of the words."""
        index = (self.words[:, 1] * self.batch + self.rows).flatten()
        return values.flatten(0, 1).index_select(0, index).view_as(values)

    def total(self, values: Tensor) -> Tensor:
        """Sum (T, B), or (T − 1, B) for pairs, over the words of each sentence: (B,)."""
        inside = self.inside if len(values) == self.time else self.inside_pairs
        return values.masked_fill(~inside, 0).sum(0)

    def at_last(self, values: Tensor) -> Tensor:
        """Values (T, B, K) at the last word of each sentence: (B, K)."""
        return values[self.last, self.rows]


def pair_scores(chain: Chain, inside: Tensor) -> Tensor:
    """Scores of the pairs of neighbouring tags with the emission of the second, (T − 1, B, K, K).

    For padding, where `inside` (T, B) is false, the last tag is repeated at a score of 0.
    """
    emissions = chain.emissions.transpose(0, 1)[1:].unsqueeze(2)
    moves = chain.transitions[:, 1:].transpose(0, 1) if chain.conditioned else chain.transitions
    repeated = torch.eye(moves.shape[-1], dtype=moves.dtype, device=moves.device).log()
    return torch.where(inside[1:, :, None, None], moves + emissions, repeated)


def scannable(pairs: Tensor) -> bool:
    """True if few large operations are faster than many small ones and fit into memory."""
    return not cheap_to_read(pairs) and pairs.numel() * pairs.shape[-1] <= LARGEST_SCAN


def scan(first: Tensor, pairs: Tensor, reduce: Callable[..., Tensor]) -> Tensor:
    """Reduced scores of the paths to each tag of each word, (T, …, K).

    On a GPU it takes O(log T) operations: tables for all pairs of tags at the two ends of 1, 2, 4, … words are joined
    with their neighbours'.

    Args:
        first: Scores of the tags of the first word, (…, K).
        pairs: Scores of the pairs of neighbouring tags, (T − 1, …, K, K).
        reduce: `torch.logsumexp` over all paths, or `torch.amax` for the best.
    """
    if first.requires_grad or pairs.requires_grad or not scannable(pairs):
        scores = [first]
        for (pair,) in by_step(pairs):
            scores.append(reduce(scores[-1].unsqueeze(-1) + pair, -2))
        return torch.stack(scores)
    paths = torch.cat([first.unsqueeze(-2).expand(1, *pairs.shape[1:]), pairs])
    words = 1
    while words < len(paths):
        reduce(paths[:-words].unsqueeze(-1) + paths[words:].unsqueeze(-3), -2, out=paths[words:])
        words *= 2
    return paths[..., 0, :]


class LogMessages:
    """Forward-backward in log space: exact for scores of any size, but with an exponential for every pair of tags.

    `forward` and `backward` (T, B, K) are log-sums over the paths to each tag from both ends of a sentence; the first
    includes the tag's emission.
    """

    def __init__(self, chain: Chain, lengths: Tensor) -> None:
        chain = chain.widened()
        if chain.has_graph:  # in which −∞ would make gradients NaN
            chain = Chain(chain.emissions, *(scores.clamp(min=IMPOSSIBLE) for scores in chain[1:]))
        self.chain, self.alignment = chain, Alignment(lengths, chain.emissions.shape[1])
        self.pairs = pair_scores(chain, self.alignment.inside)
        first = chain.start + chain.emissions[:, 0]
        ends = torch.stack([first, chain.end.expand_as(first)])
        sums = scan(ends, torch.stack([self.pairs, self.pairs.flip(0).mT], 1), torch.logsumexp)
        self.forward, self.backward = sums[:, 0], sums[:, 1].flip(0)
        self.total = (self.forward[-1] + chain.end).logsumexp(1)  # (B,) of all paths
        self.finite_total = self.total.clamp(min=torch.finfo(self.total.dtype).min)  # −∞ − −∞ would be NaN

    def log_marginals(self, path: Tensor | None = None) -> Tensor:
        """Log probability of each tag of each word, (T, B, K), or only of the tags of a path (T, B): (T, B)."""
        both = self.forward + self.backward - self.finite_total.unsqueeze(1)
        return both if path is None else both.gather(2, path.unsqueeze(2)).squeeze(2)

    def marginals(self) -> Tensor:
        """Probability of each tag of each word, (T, B, K); 0 for a sentence without any allowed path."""
        return self.log_marginals().exp()

    def log_conditionals(self, path: Tensor) -> Tensor:
        """Log probability of each tag of a path (T, B) given the tag before it: (T − 1, B)."""
        before, after = path[:-1].unsqueeze(2), path[1:].unsqueeze(2)
        pair = self.pairs.gather(2, before.unsqueeze(3).expand(-1, -1, 1, self.pairs.shape[3])).squeeze(2)
        log_probs = (pair + self.backward[1:]).gather(2, after) - self.backward[:-1].gather(2, before)
        return log_probs.squeeze(2)

    def pair_counts(self, weight: Tensor) -> Tensor:
        """Expected number of each transition, sentences weighted by (B,), in the shape of the transitions."""
        scores = self.forward[:-1].unsqueeze(3) + self.pairs + self.backward[1:].unsqueeze(2)
        counts = (scores - self.finite_total[:, None, None]).exp() * weight[:, None, None]
        counts = torch.where(self.alignment.inside_pairs[..., None, None], counts, 0)
        return F.pad(counts.transpose(0, 1), (0, 0, 0, 0, 1, 0)) if self.chain.conditioned else counts.sum((0, 1))


class ScaledMessages:
    """Forward-backward on scaled probabilities in float64: each step is one matrix product, several times as fast.

    `with_emission` and `without` (T, 2, B, K) are sums over the paths to each tag, with and without its own emission,
    from the start and from the end of a sentence, by step. `alpha` and `beta` (T, B, K) are by word.

    Emissions, transitions and each step are scaled to a maximum of 1. A weight that underflows may lose a path that
    later words favour; `exact` returns True if this did not happen.
    """

    def __init__(self, chain: Chain, lengths: Tensor) -> None:
        chain = chain.to(torch.float64)
        if (lengths == 0).any():  # Padding may hold NaN.
            chain = chain._replace(emissions=chain.emissions.masked_fill((lengths == 0)[:, None, None], 0))
        self.chain, self.alignment = chain, Alignment(lengths, chain.emissions.shape[1])
        #: Maxima of each word (B, T), of each transition matrix, (B, T) or a number, and of start and end.
        self.emission_scale = chain.emissions.amax(2)
        self.transition_scale = chain.transitions.amax((-2, -1))
        self.start_scale, self.end_scale = chain.start.amax(-1), chain.end.amax(-1)
        self.moves = (chain.transitions - self.transition_scale[..., None, None]).exp_()
        emissions = self.alignment.align((chain.emissions - self.emission_scale.unsqueeze(2)).exp_())
        self.with_emission, self.without = torch.empty_like(emissions), torch.empty_like(emissions)
        self.scales = torch.empty_like(emissions[..., :1])
        weight = self.without[0]
        weight[0], weight[1] = (chain.start - self.start_scale.unsqueeze(-1)).exp(), (chain.end - self.end_scale).exp()
        both = torch.stack([self.moves, self.moves.mT]) if not chain.conditioned else None
        for step, (emission, without, product, scale) in enumerate(
            by_step(emissions, self.without, self.with_emission, self.scales)
        ):
            if step and both is not None:
                torch.bmm(weight, both, out=without)
            elif step:
                step_moves = self.alignment.moves(self.moves, step)
                torch.matmul(weight.unsqueeze(2), step_moves, out=without.unsqueeze(2))
            weight = torch.mul(without, emission, out=product)
            torch.amax(weight, 2, keepdim=True, out=scale)
            weight /= scale

    @property
    def alpha(self) -> Tensor:
        """Forward sums, with the tag's emission."""
        return self.with_emission[:, 0]

    @cached_property
    def beta(self) -> Tensor:
        """Backward sums, without the tag's emission."""
        return self.alignment.mirror(self.without[:, 1])

    @cached_property
    def beta_with_emission(self) -> Tensor:
        """Backward sums, with the tag's emission."""
        return self.alignment.mirror(self.with_emission[:, 1])

    def exact(self) -> bool:
        """True if no weight of a reachable tag underflowed."""
        weights = self.with_emission
        reachable = self._reachable()
        if reachable is not None:
            weights = weights.masked_fill(~reachable, 1)
        unscaled = weights.amin(3) * self.scales.squeeze(3)  # (T, 2, B)
        return bool(((unscaled >= SMALLEST) | ~self.alignment.inside.unsqueeze(1)).all())

    def _reachable(self) -> Tensor | None:
        """Mask of the tags that an allowed path reaches at each step, (T, 2, B or 1, K); None if it reaches all."""
        emissions, transitions, start, end = (scores > -torch.inf for scores in self.chain)
        if all(possible.all() for possible in (emissions, transitions, start, end)):
            return None
        if self.chain.conditioned:
            transitions = transitions.flatten(0, 1).any(0)
        moves = torch.stack([transitions, transitions.mT]).float()
        everywhere, settled = bool(emissions.all()), False
        words = emissions.new_ones(self.alignment.time, 2, 1, 1) if everywhere else self.alignment.align(emissions)
        start = start.view(-1, start.shape[-1]).any(0)
        reached = torch.stack([start, end]).unsqueeze(1) & words[0]
        steps = [reached]
        for possible in words[1:]:
            if not settled:
                before, reached = reached, (torch.matmul(reached.float(), moves) > 0) & possible
                settled = everywhere and torch.equal(reached, before)
            steps.append(reached)
        return torch.stack(steps)

    @property
    def total(self) -> Tensor:
        """Log of the summed exponentiated scores of all paths: (B,)."""
        alignment = self.alignment
        last = (alignment.at_last(self.alpha) * self.without[0, 1]).sum(1).log()
        words = alignment.total(self.scales[:, 0, :, 0].log() + self.emission_scale.t())
        scale = self.transition_scale
        moves = alignment.total(scale.t()[1:]) if self.chain.conditioned else alignment.last * scale
        return last + words + moves + self.start_scale + self.end_scale

    def log_marginals(self, path: Tensor | None = None) -> Tensor:
        """Log probability of each tag of each word, (T, B, K), or only of the tags of a path (T, B): (T, B)."""
        return self.marginals(path).log_()

    def marginals(self, path: Tensor | None = None) -> Tensor:
        """Probability of each tag of each word, (T, B, K), or only of the tags of a path (T, B): (T, B)."""
        both = self.alpha * self.beta
        total = both.sum(2, keepdim=True)
        return both.div_(total) if path is None else (both.gather(2, path.unsqueeze(2)) / total).squeeze(2)

    def log_conditionals(self, path: Tensor) -> Tensor:
        """Log probability of each tag of a path (T, B) given the tag before it: (T − 1, B)."""
        before, after = path[:-1].unsqueeze(2), path[1:].unsqueeze(2)
        suffix = self.beta_with_emission[1:].gather(2, after)
        norm = self.beta[:-1].gather(2, before)
        return (suffix / norm).squeeze(2).mul_(moves_along(self.moves, path)).log_()

    def pair_counts(self, weight: Tensor) -> Tensor:
        """Expected number of each transition, sentences weighted by (B,), in the shape of the transitions."""
        before, after = self.alpha[:-1], self.beta_with_emission[1:]
        norm = (self.without[1:, 0] * after).sum(2, keepdim=True)  # (T − 1, B, 1)
        before = torch.where(self.alignment.inside_pairs.unsqueeze(2), before * (weight.unsqueeze(1) / norm), 0)
        if not self.chain.conditioned:
            return (before.flatten(0, 1).t() @ after.flatten(0, 1)).mul_(self.moves)
        pairs = torch.zeros_like(self.moves)
        torch.mul(before.unsqueeze(3), after.unsqueeze(2), out=pairs[:, 1:].transpose(0, 1))
        return pairs.mul_(self.moves)


def messages(chain: Chain, lengths: Tensor) -> ScaledMessages | LogMessages:
    """Run the recursions of a batch, scaled if that is exact, else in log space.

    A GPU always uses log space: `exact` reads values, and scaling gains little there.
    """
    if cheap_to_read(chain.emissions) and not chain.has_graph:
        scaled = ScaledMessages(chain, lengths)
        if scaled.exact():
            return scaled
    return LogMessages(chain, lengths)


def moves_along(transitions: Tensor, path: Tensor) -> Tensor:
    """Scores (T − 1, B) of the transitions of a path (T, B)."""
    if transitions.dim() == 2:
        return transitions[path[:-1], path[1:]]
    time, batch = path.shape
    word = torch.arange(1, time, device=path.device).unsqueeze(1)
    return transitions[torch.arange(batch, device=path.device), word, path[:-1], path[1:]]


#: Steps between two normalisations of Viterbi scores, which would otherwise grow with the sentence and lose precision.
STEPS_TO_GROW = 8


@torch.compiler.disable
def path_score(chain: Chain, lengths: Tensor, path: Tensor) -> Tensor:
    """Score (B,) of a path (B, T) for each sentence: 0 for a sentence without words, −∞ for a forbidden path."""
    emissions, transitions, start, end = chain
    path, inside = path.t(), length_mask(lengths, path.shape[1]).t()  # (T, B)
    words = emissions.gather(2, path.t().unsqueeze(2)).squeeze(2).t()
    moves = moves_along(transitions, path)
    first = start.expand(emissions[:, 0].shape).gather(1, path[0].unsqueeze(1)).squeeze(1)
    last = end[path.gather(0, (lengths - 1).clamp(min=0).unsqueeze(0)).squeeze(0)]
    within = words.masked_fill(~inside, 0).sum(0) + moves.masked_fill(~inside[1:], 0).sum(0)
    return within + (first + last).masked_fill(lengths == 0, 0)


@torch.compiler.disable
@torch.no_grad()
def best_path(chain: Chain, lengths: Tensor) -> Tensor:
    """The path of the highest score (Viterbi), (B, T); arbitrary beyond a sentence's end."""
    batch, time, _ = chain.emissions.shape
    alignment = Alignment(lengths, time)
    if not cheap_to_read(chain.emissions):
        return _scanned_path(chain.widened(), alignment.inside)
    scores, transitions, rows = best_scores(chain), chain.transitions, alignment.rows
    tag = (scores[alignment.last, :, rows] + chain.end).argmax(1)
    path = lengths.new_empty(time, batch)
    path[time - 1] = tag
    for step in range(time - 1, 0, -1):
        # Back pointers are computed for the tags of the path only.
        move = transitions[rows, step, :, tag].t() if chain.conditioned else transitions.index_select(1, tag)
        source = (scores[step - 1] + move).max(0).indices  # several times as fast as argmax
        # Beyond the end of a sentence its last tag is copied.
        tag = torch.where(alignment.inside[step], source, tag, out=path[step - 1])
    return path.t()


def _scanned_path(chain: Chain, inside: Tensor) -> Tensor:
    """`best_path` in O(log T) operations, for sentences with words `inside` (T, B)."""
    pairs = pair_scores(chain, inside)
    scores = scan(chain.start + chain.emissions[:, 0], pairs, torch.amax)
    last = (scores[-1] + chain.end).argmax(1)
    sources = (scores[:-1].unsqueeze(3) + pairs).max(2).indices  # (T − 1, B, K): tag of a word by that of the next
    # The last word has one tag. After it the tag is kept, so that every word can be joined with a later one.
    tags = torch.arange(scores.shape[2], device=last.device)
    joins = (len(scores) - 1).bit_length()
    paths = [sources, last.unsqueeze(1).expand_as(scores[:1]), tags.expand(2**joins - 1, *scores.shape[1:])]
    sources = torch.cat(paths)
    for join in range(joins):
        sources = sources[: -(2**join)].gather(2, sources[2**join :])
    return sources[..., 0].t()


def best_scores(chain: Chain) -> Tensor:
    """The score of the best path to each tag of each word, (T, K, B), up to a constant for each word."""
    emissions, transitions, start, _ = chain
    batch, _, tags = emissions.shape
    # Sentences last, so that sums and maxima run over contiguous memory.
    words = emissions.permute(1, 2, 0).contiguous()  # (T, K, B)
    words = words - words.amax(1, keepdim=True)
    scores = torch.empty_like(words)
    pairs = words.new_empty(tags, tags, batch)
    score = start.expand(batch, tags).t()
    for step, (word, out) in enumerate(by_step(words, scores)):
        if step:
            move = transitions[:, step].permute(1, 2, 0) if chain.conditioned else transitions.unsqueeze(2)
            score = torch.add(score.unsqueeze(1), move, out=pairs).amax(0)
        score = torch.add(score, word, out=out)
        if step % STEPS_TO_GROW == 0:
            score -= score.amax(0, keepdim=True)
    return scores


@torch.compiler.disable
def log_partition(chain: Chain, lengths: Tensor) -> Tensor:
    """Log of the summed exponentiated scores of all paths, (B,); 0 for a sentence without words.

    Its gradient, the posterior, is computed without a graph through time.
    """
    return _LogPartition.apply(*chain, lengths, None)


@torch.compiler.disable
def negative_log_likelihood(chain: Chain, lengths: Tensor, gold: Tensor) -> Tensor:
    """−log p of gold tags (B, T): (B,). IGNORED matches any tag; 0 for a sentence without words."""
    return _LogPartition.apply(*chain, lengths, gold)


@torch.compiler.disable
def cross_entropy(chain: Chain, lengths: Tensor, pairs: Tensor) -> Tensor:
    """Cross-entropy between another distribution of paths, with the pair posterior (B, T, K, K), and the chain's: (B,).

    It is exact, since the score of a path is a sum over its pairs of neighbouring tags. 0 for a sentence without words.
    """
    inside = length_mask(lengths, chain.emissions.shape[1])
    words, moves, start, end = (scores.clamp(min=IMPOSSIBLE) for scores in chain)
    words = words.masked_fill(~inside.unsqueeze(2), 0)  # padding may hold NaN
    marginals = pairs.sum(2)
    if chain.conditioned:
        within = (pairs[:, 1:] * moves[:, 1:].masked_fill(~inside[:, 1:, None, None], 0)).sum((1, 2, 3))
    else:
        within = (pairs[:, 1:].sum(1) * moves).sum((1, 2))
    last = marginals[torch.arange(len(lengths), device=lengths.device), (lengths - 1).clamp(min=0)]
    mean_score = (marginals * words).sum((1, 2)) + within + (marginals[:, 0] * start).sum(1) + (last * end).sum(1)
    return log_partition(chain, lengths) - mean_score


@torch.compiler.disable
@torch.no_grad()
def pair_posterior(chain: Chain, lengths: Tensor) -> Tensor:
    """Posterior of each pair of neighbouring tags, (B, T, K, K): entry t has the tags of words t − 1 and t.

    The entry of a sentence's first word has its marginals in row 0; padding has zeros. Sums over rows are the
    marginals.
    """
    batch, time, _ = chain.emissions.shape
    transitions = chain.transitions if chain.conditioned else chain.transitions.repeat(batch, time, 1, 1)
    sums = messages(chain._replace(transitions=transitions), lengths)
    pairs = sums.pair_counts(sums.chain.emissions.new_ones(batch))
    pairs[:, 0, 0] = sums.marginals()[0].masked_fill((lengths == 0).unsqueeze(1), 0)
    return pairs.to(chain.emissions.dtype)


@torch.compiler.disable
def posterior(
    chain: Chain, lengths: Tensor, path: Tensor, all_tags: bool = True, dtype: torch.dtype | None = None
) -> tuple[Tensor | None, Tensor]:
    """Log posterior marginals (B, T, K), if `all_tags`, and log probabilities (B, T, 2) of the tags of a path (B, T).

    The latter are marginal, and conditional on the previous tag of the path (marginal for the first word). By the
    Markov property, the marginal of a span's first word and the conditionals of its other words add up to the exact
    log probability that the span has these tags.
    """
    sums, dtype = messages(chain, lengths), dtype or chain.emissions.dtype

    def finite(log_probs: Tensor) -> Tensor:
        """(T, B, …) as (B, T, …)."""
        return log_probs.to(dtype).clamp(min=IMPOSSIBLE).transpose(0, 1)

    inside = sums.alignment.inside.t()
    if all_tags:
        even = -math.log(chain.emissions.shape[2])
        marginals = finite(sums.log_marginals()).where(inside.unsqueeze(2), even)
        marginal = marginals.gather(2, path.unsqueeze(2)).squeeze(2)
    else:
        marginals, marginal = None, finite(sums.log_marginals(path.t()))
    # NaN after a forbidden tag.
    following = finite(sums.log_conditionals(path.t()).nan_to_num(nan=IMPOSSIBLE, neginf=IMPOSSIBLE))
    steps = torch.stack([marginal, torch.cat([marginal[:, :1], following], 1)], 2)
    return marginals, steps.where(inside.unsqueeze(2), 0)


class _LogPartition(torch.autograd.Function):
    """The log partition, minus the score of the gold tags if there are any."""

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
        """Run both recursions, which the backward pass needs as well: (B,)."""
        chain = Chain(emissions, transitions, start, end)
        ctx.chain, ctx.lengths, ctx.gold = chain, lengths, None
        ctx.fits_apart = gold is not None and has_free_words(gold, lengths)
        if gold is None:
            ctx.sums = messages(chain, lengths)
            total = ctx.sums.total
        elif ctx.fits_apart:
            # The paths that fit the labels are those of a chain that forbids all others; both chains form one batch.
            tags = torch.arange(emissions.shape[2], device=gold.device)
            fits = (tags == gold.unsqueeze(2)) | (gold == IGNORED).unsqueeze(2)
            ctx.sums = messages(doubled(chain, emissions.masked_fill(~fits, -torch.inf)), lengths.repeat(2))
            total, fitting = ctx.sums.total.chunk(2)
            total = torch.where(fitting == -torch.inf, -IMPOSSIBLE, total - fitting)
        else:
            ctx.sums, ctx.gold = messages(chain, lengths), gold.clamp(min=0)
            total = ctx.sums.total
            fitting = path_score(chain.to(total.dtype), lengths, ctx.gold)
            total = torch.where(fitting == -torch.inf, -IMPOSSIBLE, total - fitting)
        return total.masked_fill(lengths == 0, 0).to(emissions.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Expected counts of the posterior minus the counts of the gold tags, weighted by each sentence's gradient."""
        chain, lengths, sums = ctx.chain, ctx.lengths, ctx.sums
        alignment = sums.alignment
        weight = gradients[0].masked_fill(lengths == 0, 0).to(sums.chain.emissions.dtype)
        if ctx.fits_apart:
            weight = torch.cat([weight, -weight])
        words, pairs = sums.marginals(), sums.pair_counts(weight)
        if ctx.gold is not None:
            path = ctx.gold.t()
            words.scatter_add_(2, path.unsqueeze(2), words.new_full((1, 1, 1), -1).expand(*path.shape, 1))
            _subtract_transitions(pairs, path, weight * alignment.inside_pairs)
        words = torch.where(alignment.inside.unsqueeze(2), words * weight.unsqueeze(1), 0)
        end = alignment.at_last(words).sum(0)
        if ctx.fits_apart:
            words = words[:, : len(lengths)] + words[:, len(lengths) :]
            pairs = pairs if pairs.dim() == 2 else pairs[: len(lengths)] + pairs[len(lengths) :]
        start = words[0] if chain.start.dim() == 2 else words[0].sum(0)
        counts = (words.transpose(0, 1), pairs, start, end)
        return *(count.to(scores.dtype) for count, scores in zip(counts, chain, strict=True)), None, None


def has_free_words(gold: Tensor, lengths: Tensor) -> bool:
    """True if a word has no gold tag (B, T), or if the tags are not readable."""
    if not cheap_to_read(gold):
        return True
    return bool(((gold == IGNORED) & length_mask(lengths, gold.shape[1])).any())


def doubled(chain: Chain, emissions: Tensor) -> Chain:
    """The B sentences of a chain, then the same sentences with other emissions: 2B sentences."""
    transitions = chain.transitions.repeat(2, 1, 1, 1) if chain.conditioned else chain.transitions
    start = chain.start if chain.start.dim() == 1 else chain.start.repeat(2, 1)
    return Chain(torch.cat([chain.emissions, emissions]), transitions, start, chain.end)


def _subtract_transitions(pairs: Tensor, path: Tensor, weight: Tensor) -> None:
    """Subtract the transitions of a path (T, B), weighted by (T − 1, B), from counts in place."""
    tags = pairs.shape[-1]
    index = path[:-1] * tags + path[1:]
    if pairs.dim() == 2:
        pairs.view(-1).index_add_(0, index.flatten(), weight.flatten(), alpha=-1)
    else:
        pairs[:, 1:].view(*index.t().shape, tags * tags).scatter_add_(
            2, index.t().unsqueeze(2), -weight.t().unsqueeze(2)
        )
