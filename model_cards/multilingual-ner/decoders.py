"""Decoders: from scores of inner tags to a loss, the best tags and their posterior."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .configuration_tagger import TaggerConfig
from .crf import Chain, best_path, cross_entropy, negative_log_likelihood, pair_posterior, posterior
from .layers import cheap_to_read, length_mask
from .tags import IGNORED, TagSpace

#: For each parameter, the names of the entries of each dimension; None for a dimension that does not depend on labels.
Axes = dict[str, tuple[list[Any] | None, ...]]


class Decoded(NamedTuple):
    """The decoded tags of a batch and their posterior."""

    path: Tensor  # (B, T) the best inner tags
    log_probs: Tensor | None  # (B, T, K) log posterior of all inner tags, if requested
    path_log_probs: Tensor  # (B, T, 2) log probabilities of the path's tags: marginal, and given the previous tag


def build_decoder(config: TaggerConfig, tags: TagSpace, input_size: int) -> Decoder:
    """The decoder that the config names; every architecture supports both."""
    if config.decoder != "crf":
        return SoftmaxDecoder(config)
    if config.conditioned_transitions:
        return ConditionedCrfDecoder(config, tags, input_size)
    return CrfDecoder(config, tags)


class NoEmissions(nn.Module):
    """Scores of 0 for all tags, for a CRF that only scores pairs of tags."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self.num_tags = num_tags

    def forward(self, states: Tensor) -> Tensor:
        """States (B, T, h) → zeros (B, T, K)."""
        return states.new_zeros(*states.shape[:-1], self.num_tags)


class Decoder(nn.Module):
    """Turns scores of inner tags (B, T, K) or the encoder's states (B, T, input_size), right-padded, into tags."""

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        self.config = config

    def tempered(self, scores: Tensor) -> Tensor:
        """Scores divided by the temperature; probabilities and losses are computed from these."""
        temperature = self.config.score_temperature
        return scores if temperature == 1 else scores / temperature

    def label_axes(self) -> Axes:
        """The axes of the parameters that count tags, types or actions, by their names."""
        return {}

    def negative_log_likelihood(self, scores: Tensor, gold: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        """−log p of the gold tags: gold (B, T) → (B,). A word without a label may have any tag."""
        raise NotImplementedError

    def decode(self, scores: Tensor, lengths: Tensor, states: Tensor, all_tags: bool = True) -> Decoded:
        """The best tags and their posterior; with `all_tags`, also the posterior of all tags."""
        raise NotImplementedError

    def cross_entropy(self, scores: Tensor, pairs: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        """Cross-entropy with the paths of a teacher, whose pair posterior is (B, T, K, K): (B,)."""
        raise ValueError("Only a model with a CRF or softmax can learn from a teacher; choose one.")

    def pair_posterior(self, scores: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        """Posterior of the pairs of neighbouring tags, (B, T, K, K); see `crf.pair_posterior`."""
        raise ValueError("Only a model with a CRF or softmax can be a teacher; choose one.")

    def forward(
        self,
        scores: Tensor,
        lengths: Tensor,
        states: Tensor,
        gold: Tensor | None = None,
        all_tags: bool = True,
        teacher_pairs: Tensor | None = None,
    ) -> Decoded | Tensor:
        """Decode, or return the losses (B,) of gold tags (B, T) or of a teacher's pair posterior (B, T, K, K).

        All calls go through `forward`, because accelerate loads offloaded weights there.
        """
        if teacher_pairs is not None:
            return self.cross_entropy(scores, teacher_pairs, lengths, states)
        if gold is not None:
            return self.negative_log_likelihood(scores, gold, lengths, states)
        return self.decode(scores, lengths, states, all_tags)


class SoftmaxDecoder(Decoder):
    """Labels every word independently."""

    def negative_log_likelihood(self, scores: Tensor, gold: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        """Cross-entropy summed over a sentence's labelled words: gold (B, T) → (B,)."""
        scores = self.tempered(scores).transpose(1, 2)
        losses = nn.functional.cross_entropy(scores, gold, ignore_index=IGNORED, reduction="none")
        return losses.sum(1)

    def cross_entropy(self, scores: Tensor, pairs: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        """Cross-entropy with the teacher's marginals of each word: (B,)."""
        inside = length_mask(lengths, scores.shape[1])
        log_probs = self.tempered(scores).masked_fill(~inside.unsqueeze(2), 0).log_softmax(-1)  # padding may hold NaN
        return -(pairs.sum(2) * log_probs).sum((1, 2))

    def pair_posterior(self, scores: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        """Products of the probabilities of neighbouring words, (B, T, K, K)."""
        inside = length_mask(lengths, scores.shape[1])
        words = torch.where(inside.unsqueeze(2), self.tempered(scores).softmax(-1), 0)
        pairs = words.new_zeros(*words.shape, words.shape[2])
        pairs[:, :1, 0] = words[:, :1]
        pairs[:, 1:] = words[:, :-1].unsqueeze(3) * words[:, 1:].unsqueeze(2)
        return pairs

    def decode(self, scores: Tensor, lengths: Tensor, states: Tensor, all_tags: bool = True) -> Decoded:
        """The most probable tag of each word."""
        log_probs = self.tempered(scores).log_softmax(-1)
        path = scores.argmax(-1)
        return Decoded(path, log_probs, log_probs.gather(2, path.unsqueeze(2)).expand(-1, -1, 2))


class CrfDecoder(Decoder):
    """Labels all words of a sentence jointly: a linear-chain CRF (lample2016; li2020, section 3.4).

    Args:
        config: The config of the model; its `constrain_transitions` and `crf_boundaries` apply.
        tags: The inner tags.
    """

    def __init__(self, config: TaggerConfig, tags: TagSpace) -> None:
        super().__init__(config)
        self.tags = tags
        self.build_moves(tags.num_inner, with_start=config.crf_boundaries != "none")
        self.end = nn.Parameter(torch.empty(tags.num_inner)) if config.crf_boundaries == "both" else None

    def build_moves(self, size: int, with_start: bool) -> None:
        """Create the parameters of the transitions among `size` tags and, optionally, of the start."""
        self.transitions = nn.Parameter(torch.empty(size, size))
        self.start = nn.Parameter(torch.empty(size)) if with_start else None

    def label_axes(self) -> Axes:
        """Transitions by the tags before and after, or by such pairs; boundaries by their tag."""
        tags = self.tags.inner_tags
        pairs = [(before, after) for before in tags for after in tags]
        axes: Axes = {"transitions": (tags, tags), "start": (tags,), "end": (tags,)}
        axes |= {"pairs.weight": (pairs, None), "pairs.bias": (pairs,)}
        axes |= {"starts.weight": (tags, None), "starts.bias": (tags,)}
        return {name: axes[name] for name, _ in self.named_parameters()}

    def reset_parameters(self) -> None:
        """Start with zeros, or with Glorot's range for one matrix that includes start and end."""
        bound = (3 / (self.tags.num_inner + 2)) ** 0.5
        for parameter in self.parameters(recurse=False):
            drawn = self.config.initializer == "glorot"
            nn.init.uniform_(parameter, -bound, bound) if drawn else nn.init.zeros_(parameter)

    def moves(self, states: Tensor) -> tuple[Tensor, Tensor | None]:
        """Scores of the transitions and of the start, if there are any."""
        return self.transitions, self.start

    def negative_log_likelihood(self, scores: Tensor, gold: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        """−log p by the forward algorithm: (B,)."""
        return negative_log_likelihood(self.tempered_chain(scores, states), lengths, gold)

    def cross_entropy(self, scores: Tensor, pairs: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        """Exact cross-entropy by the forward algorithm: (B,)."""
        return cross_entropy(self.tempered_chain(scores, states), lengths, pairs)

    def pair_posterior(self, scores: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        """Posterior of pairs by the forward-backward algorithm: (B, T, K, K)."""
        return pair_posterior(self.tempered_chain(scores, states), lengths)

    def decode(self, scores: Tensor, lengths: Tensor, states: Tensor, all_tags: bool = True) -> Decoded:
        """The best path by the Viterbi algorithm, its posterior by the forward-backward algorithm."""
        chain = self.chain(scores, states)
        dtype = chain.emissions.dtype
        if not cheap_to_read(scores):
            chain = chain.widened()  # once for both algorithms
        path = best_path(chain, lengths)
        chain = Chain(*map(self.tempered, chain))
        return Decoded(path, *posterior(chain, lengths, path, all_tags, dtype))

    def chain(self, scores: Tensor, states: Tensor) -> Chain:
        """Emissions, transitions, start and end in at least float32; forbidden ones are −∞."""
        transitions, start = self.moves(states)
        nothing = transitions.new_zeros(scores.shape[-1])
        start, end = nothing if start is None else start, nothing if self.end is None else self.end
        if self.config.constrain_transitions:
            tables = self.tags.on(scores.device)
            transitions = transitions.masked_fill(tables.barred_transitions, -torch.inf)
            start = start.masked_fill(tables.barred_start, -torch.inf)
            end = end.masked_fill(tables.barred_end, -torch.inf)
        return Chain(scores, transitions, start, end).to(torch.promote_types(scores.dtype, torch.float32))

    def tempered_chain(self, scores: Tensor, states: Tensor) -> Chain:
        """The chain's scores divided by the temperature."""
        return Chain(*map(self.tempered, self.chain(scores, states)))


class PairScores(nn.Linear):
    """W·h + b for each pair of `before` tags and K tags that follow: (…, h) → (…, before · K).

    Initial weights are within ±`bound`: Glorot's rule for convolutions, which ma2016's program applies to one tensor
    (h, K + 1, K + 1) of all pairs, start included.
    """

    def __init__(self, input_size: int, before: int, tags: int) -> None:
        super().__init__(input_size, before * tags)
        self.bound = (6 / ((input_size + tags + 1) * (tags + 1))) ** 0.5


class ConditionedCrfDecoder(CrfDecoder):
    """A CRF whose transitions depend on the words: W·h_t + b for each pair of tags (ma2016, section 2.3).

    The start is one more previous tag, so its scores depend on the first word. ma2016 scores neither an end nor single
    tags (`NoEmissions`).
    """

    def __init__(self, config: TaggerConfig, tags: TagSpace, input_size: int) -> None:
        self.input_size = input_size
        super().__init__(config, tags)

    def build_moves(self, size: int, with_start: bool) -> None:
        """Create a weight vector and a bias for each pair of tags."""
        self.pairs = PairScores(self.input_size, size, size)
        self.starts = PairScores(self.input_size, 1, size) if with_start else None

    def moves(self, states: Tensor) -> tuple[Tensor, Tensor | None]:
        """Scores of the transitions into every word, (B, T, K, K), and of the start (B, K)."""
        transitions = self.pairs(states).unflatten(2, (self.tags.num_inner, self.tags.num_inner))
        return transitions, self.starts(states[:, 0]) if self.starts is not None else None
