"""The decoder of the Stack-LSTM: the loss of its actions, and what these say of the words' tags."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers.utils.generic import maybe_autocast

from .action_scorer import ActionScorer
from .configuration_stack_lstm import StackLstmConfig
from .crf_messages import Chain
from .decoders import Axes, Decoded, Decoder
from .stack_decoding import Found, explore, search
from .tags import END, INSIDE, TagSpace
from .transitions import FIRST_REDUCE, NO_ACTION, OUT, SHIFT, TransitionSystem


class TransitionDecoder(Decoder):
    """Vectors of words, given as states, to actions to tags; there are no scores of tags to read.

    What a word's probabilities are is told by `local_posterior`, and with a beam by `beam_posterior`.
    """

    def __init__(self, config: StackLstmConfig, tags: TagSpace, input_size: int) -> None:
        super().__init__()
        self.config = config
        self.scorer = ActionScorer(config, tags, input_size)

    def chain(self, scores: Tensor, states: Tensor | None = None) -> Chain:
        """Refuse: what an action is worth depends on all actions before it."""
        raise TypeError("A Stack-LSTM scores actions, which are no chain of tags; paths have no exact span_log_probs.")

    def label_axes(self) -> Axes:
        """Actions, and types by the actions that make them; words outside of chunks have a type of their own."""
        actions = self.scorer.system.actions
        types = [*actions[FIRST_REDUCE:], actions[OUT]]
        return {
            "scorer.composition.types.weight": (types, None),
            "scorer.actions.weight": (actions, None),
            "scorer.classifier.weight": (actions, None),
            "scorer.classifier.bias": (actions,),
        }

    @torch.compiler.disable
    def negative_log_likelihood(
        self, scores: Tensor, gold: Tensor, lengths: Tensor, states: Tensor | None = None
    ) -> Tensor:
        """Of the actions that make gold tags (B, T), (B,); a word whose tag is IGNORED goes out at no cost.

        With exploration, in training: of the best actions, together, wherever the sampled ones lead.
        """
        system = self.scorer.system
        words = self.words(states)
        with maybe_autocast(words.device.type, enabled=False):
            if self.training and self.config.exploration:
                rate, chunks = self.config.exploration, system.gold_chunks(gold, lengths)
                actions, best, known = explore(self.scorer, words.detach(), lengths, chunks, rate)
                log_probs, there = self.scorer(words, lengths, actions)
                right = log_probs.masked_fill(~best[there], -torch.inf).logsumexp(1)
            else:
                actions, known = system.actions_of(gold, lengths)
                steps = int((actions != NO_ACTION).sum(1).max()) if len(actions) else 0
                actions, known = actions[:, :steps], known[:, :steps]
                log_probs, there = self.scorer(words, lengths, actions)
                right = log_probs.gather(1, actions[there].unsqueeze(1)).squeeze(1)
            losses = torch.where(known[there], -right, 0)
            return losses.new_zeros(len(lengths)).index_add(0, there.nonzero()[:, 0], losses)

    @torch.compiler.disable
    def decode(self, scores: Tensor, lengths: Tensor, states: Tensor | None = None) -> Decoded:
        """Decide by greedy or beam search."""
        system, words = self.scorer.system, self.words(states)
        batch, time, _ = words.shape
        found = self.search(words, lengths, self.config.beam_size)
        best = found.actions[:, 0]
        path = system.tags_of(best, time)
        if not best.shape[1]:
            even = found.log_probs.new_zeros(batch, time, system.tags.num_inner).log_softmax(-1)
            return Decoded(path, even, found.log_probs.new_zeros(batch, time, 2))
        probabilities = local_posterior(system, best, found.alternatives, time)
        path_log_probs = word_log_probs(system, best, found.alternatives, time)
        if self.config.beam_size > 1:
            repair = self.config.malformed_spans == "repair"
            probabilities, path_log_probs = beam_posterior(
                system, found, path, probabilities, path_log_probs, lengths, repair
            )
        # The inner tags that one public label stands for share its probability evenly.
        public = system.tags.on(probabilities.device).public
        shared = (public == public.unsqueeze(1)).sum(1).to(probabilities.dtype)
        inner = probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()[..., public] - shared.log()
        return Decoded(path, inner, path_log_probs.unsqueeze(-1).expand(-1, -1, 2))

    @torch.compiler.disable
    def k_best(self, scores: Tensor, lengths: Tensor, k: int, states: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What a beam of k ends with, best first, (B, k, T); their log probabilities (B, k), −∞ for want of more."""
        words = self.words(states)
        found = self.search(words, lengths, k)
        paths = self.scorer.system.tags_of(found.actions.flatten(0, 1), words.shape[1])
        return paths.unflatten(0, found.log_probs.shape), found.log_probs

    def search(self, words: Tensor, lengths: Tensor, size: int) -> Found:
        """Beam search, in the type of the weights."""
        with maybe_autocast(words.device.type, enabled=False):
            return search(self.scorer, words, lengths, size)

    def words(self, states: Tensor | None) -> Tensor:
        """The words in the type of the weights."""
        if states is None:
            raise ValueError("Actions depend on the words: give the encoder's states as well.")
        if self.scorer.hidden.weight.is_meta:
            raise ValueError(
                "The weights of a Stack-LSTM's decoder are on the meta device: it can be neither offloaded nor run on "
                "the meta device; load the model whole on one device."
            )
        return states.to(self.scorer.hidden.weight.dtype)


def word_log_probs(system: TransitionSystem, actions: Tensor, log_probs: Tensor, time: int) -> Tensor:
    """Log probability (B, T) of what was decided at each word: SHIFT or OUT, and REDUCE(y) at the last of a chunk.

    Over a chunk they add up to its log probability, given all that was decided before it.

    Args:
        system: What the actions belong to.
        actions: (B, S).
        log_probs: (B, S, actions), of all that could be done there.
        time: T.
    """
    own, taken = system.own_steps(actions, time)
    done = log_probs.gather(2, actions.clamp(min=0).unsqueeze(2)).squeeze(2)
    end = system.later(actions >= FIRST_REDUCE).gather(1, own).clamp(max=actions.shape[1] - 1)
    shifts = system.trace(actions).shifts
    last = (actions.gather(1, own) == SHIFT) & (shifts.gather(1, end) == shifts.gather(1, own) + 1)
    decided = done.gather(1, own) + torch.where(last, done.gather(1, end), 0)
    return torch.where(taken, decided, 0)


def local_posterior(system: TransitionSystem, actions: Tensor, log_probs: Tensor, time: int) -> Tensor:
    """Probabilities (B, T, L) of public labels that the actions' probabilities amount to, given the decisions before.

    When a word comes first on the buffer, the chunk on the stack may go on with it: SHIFT, an I- label. Or it ends, and
    with the stack empty OUT makes the word O, and SHIFT the beginning of a chunk, a B- label. Types are as probable as
    they are when the chunk is reduced. Where decoding did not go, nothing is known: if the chunk did not end, what the
    word would have been otherwise is left to O and all B- labels evenly, and if the word did not start a chunk, the
    type of that chunk is left open.

    Args:
        system: What the actions belong to.
        actions: (B, S), those decoded.
        log_probs: (B, S, actions), of all that could be done there.
        time: T.
    """
    tags, tables, many = system.tags, system.tags.on(actions.device), system.of_many_words(actions.device)
    own, _ = system.own_steps(actions, time)
    before = (own - 1).clamp(min=0)
    ended = (own > 0) & (actions.gather(1, before) >= FIRST_REDUCE)  # A chunk did end between word and word.
    arrival = torch.where(ended, before, own)
    going_on = system.trace(actions).depth.gather(1, arrival) > 0
    end = system.later(actions >= FIRST_REDUCE).gather(1, own).clamp(max=actions.shape[1] - 1)
    here, then, finally_ = (_at(log_probs, step).exp() for step in (arrival, own, end))
    inside = here[..., SHIFT].masked_fill(~going_on, 0)
    skipped = here[..., OUT].masked_fill(~going_on, 0)
    closed = (1 - inside - skipped).clamp(min=0)
    in_the_dark = going_on & ~ended
    types = system.num_types
    dark_outside = 1 / (types + 1) if tags.chunked else 0.0
    begins = closed * torch.where(in_the_dark, 1 - dark_outside, then[..., SHIFT])
    outside = skipped + closed * torch.where(in_the_dark, dark_outside, then[..., OUT])
    started = ((actions.gather(1, own) == SHIFT) & ~in_the_dark).unsqueeze(-1)
    type_begun = torch.where(started, _normal(finally_[..., FIRST_REDUCE:]), 1 / types)
    type_inside = _normal(torch.where(ended.unsqueeze(-1), here, finally_)[..., FIRST_REDUCE:] * many)
    public = log_probs.new_zeros(*own.shape, len(tags.labels))
    public = public.index_add(2, tables.begin_label, begins.unsqueeze(-1) * type_begun)
    public = public.index_add(2, tables.inside_label, inside.unsqueeze(-1) * type_inside)
    if tags.chunked:
        public[..., tags.outside[1]] += outside
    return public


def beam_posterior(
    system: TransitionSystem,
    found: Found,
    path: Tensor,
    local: Tensor,
    decided: Tensor,
    lengths: Tensor,
    repair: bool,
) -> tuple[Tensor, Tensor]:
    """Probabilities of public labels (B, T, L), and of chunks, that all hypotheses of a beam amount to.

    Each hypothesis says of its labels that they are as probable as its whole sequence of actions. What is left of 1 is
    the probability of the sequences that the beam does not hold, and goes to labels as the local posterior of the best
    hypothesis has it. So the probabilities are exact where the beam holds all sequences, and local where it holds next
    to nothing.

    Args:
        system: What the actions belong to.
        found: The hypotheses.
        path: Inner tags (B, T) of the best one.
        local: Local posterior (B, T, L) of the best one.
        decided: Log probabilities (B, T) of what the best one decided at each word.
        lengths: (B,).
        repair: What to do about chunks with gaps.

    Returns:
        The probabilities, and log probabilities (B, T) that add up, over each chunk of the best hypothesis, to that of
        the chunk.
    """
    batch, beam = found.log_probs.shape
    tags, time = system.tags, path.shape[1]
    weight = found.log_probs.exp()  # (B, k), 0 where there is no hypothesis
    rest = (1 - weight.sum(1)).clamp(min=0)
    inner = system.tags_of(found.actions.flatten(0, 1), time)
    position = torch.arange(time, device=lengths.device)
    mask = position < lengths.repeat_interleave(beam).unsqueeze(1)
    labels = tags.to_public_path(inner, mask, repair).unflatten(0, (batch, beam))
    weights = weight.unsqueeze(2).expand(-1, -1, time)
    public = (local * rest.view(-1, 1, 1)).scatter_add(2, labels.transpose(1, 2), weights.transpose(1, 2))

    inner = inner.unflatten(0, (batch, beam))
    differs = torch.where(inner == path.unsqueeze(1), -1, position).cummax(2).values
    kind = tags.on(path.device).kind[path]
    continues = (kind == INSIDE) | (kind == END)
    first = position.expand_as(path).masked_fill(continues, 0).cummax(1).values  # of each word's chunk
    agreeing = torch.where(differs < first.unsqueeze(1), weights, 0).sum(1)  # on the chunk up to the word
    upto = decided.cumsum(1)
    alone = upto - (upto - decided).gather(1, first)
    log_mass = torch.logaddexp(agreeing.log(), rest.log().unsqueeze(1) + alone)
    earlier = torch.cat([torch.zeros_like(log_mass[:, :1]), log_mass[:, :-1]], 1)
    return public, log_mass - torch.where(continues, earlier, 0)


def _at(values: Tensor, step: Tensor) -> Tensor:
    """What values (B, S, d) are at steps (B, T): (B, T, d)."""
    return values.gather(1, step.unsqueeze(-1).expand(-1, -1, values.shape[2]))


def _normal(weights: Tensor) -> Tensor:
    """Weights (…, d) that add up to 1, or to 0."""
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
