"""From the scores of inner tags to a loss, a best path and a posterior."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .configuration_tagger import TaggerConfig
from .crf import IMPOSSIBLE, best_path, log_marginals, log_partition, path_score
from .tags import IGNORED, TagSpace


def build_decoder(config: TaggerConfig, tags: TagSpace) -> SoftmaxDecoder | CrfDecoder:
    """The decoder that the config names."""
    if config.decoder == "crf":
        return CrfDecoder(tags, constrained=config.constrain_transitions)
    return SoftmaxDecoder()


class SoftmaxDecoder(nn.Module):
    """Every word decides for itself."""

    def negative_log_likelihood(self, scores: Tensor, gold: Tensor, lengths: Tensor) -> Tensor:
        """Cross-entropy summed over a sentence's labelled words: scores (B, T, K), gold (B, T) → (B,)."""
        losses = nn.functional.cross_entropy(scores.transpose(1, 2), gold, ignore_index=IGNORED, reduction="none")
        return losses.sum(1)

    def forward(self, scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Best tags (B, T) and log posterior (B, T, K)."""
        return scores.argmax(-1), scores.log_softmax(-1)


class CrfDecoder(nn.Module):
    """A sentence decides as a whole: a linear-chain CRF with start and end (lample2016; li2020, section 3.4)."""

    barred_transitions: Tensor
    barred_start: Tensor
    barred_end: Tensor

    def __init__(self, tags: TagSpace, constrained: bool) -> None:
        super().__init__()
        self.allowed = tags.allowed_transitions() if constrained else None
        size = tags.num_inner
        self.transitions = nn.Parameter(torch.empty(size, size))
        self.start = nn.Parameter(torch.empty(size))
        self.end = nn.Parameter(torch.empty(size))
        for name, shape in (("transitions", (size, size)), ("start", (size,)), ("end", (size,))):
            self.register_buffer(f"barred_{name}", torch.zeros(shape, dtype=torch.bool), persistent=False)

    def reset_parameters(self) -> None:
        """Start indifferent, all transitions alike; bar what BIOES forbids."""
        for parameter in (self.transitions, self.start, self.end):
            nn.init.zeros_(parameter)
        barred = (self.barred_transitions, self.barred_start, self.barred_end)
        for index, buffer in enumerate(barred):
            buffer.zero_() if self.allowed is None else buffer.copy_(~torch.tensor(self.allowed[index]))

    def chain(self) -> tuple[Tensor, Tensor, Tensor]:
        """Transitions, start and end in float32 (float64 stays), what is barred out of reach."""
        wide = torch.promote_types(self.transitions.dtype, torch.float32)
        return (
            self.transitions.to(wide).masked_fill(self.barred_transitions, IMPOSSIBLE),
            self.start.to(wide).masked_fill(self.barred_start, IMPOSSIBLE),
            self.end.to(wide).masked_fill(self.barred_end, IMPOSSIBLE),
        )

    def negative_log_likelihood(self, scores: Tensor, gold: Tensor, lengths: Tensor) -> Tensor:
        """−log p of the gold tags: scores (B, T, K), gold (B, T) → (B,). A word without label may have any tag."""
        transitions, start, end = self.chain()
        everything = log_partition(scores, transitions, start, end, lengths)
        position = torch.arange(gold.shape[1], device=gold.device)
        free = (gold == IGNORED) & (position < lengths.unsqueeze(1))
        if not free.any():
            return everything - path_score(scores, transitions, start, end, lengths, gold.clamp(min=0))
        allowed = torch.arange(scores.shape[-1], device=gold.device) == gold.unsqueeze(-1)
        fitting = scores.masked_fill(~(allowed | free.unsqueeze(-1)), IMPOSSIBLE)
        return everything - log_partition(fitting, transitions, start, end, lengths)

    def forward(self, scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Viterbi's path (B, T) and log posterior marginals (B, T, K)."""
        chain = self.chain()
        return best_path(scores, *chain, lengths), log_marginals(scores, *chain, lengths)
