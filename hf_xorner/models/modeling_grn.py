"""GRN, the gated relation network, and what its paper compares it with.

Chen, Lin, Ding, Lou, Zhang, Karlsson. GRN: Gated Relation Network to Enhance Convolutional Neural Network for Named
Entity Recognition. AAAI 2019.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_grn import GrnConfig
from .convolutions import Layout
from .modeling_tagger import Encoded, Encoder, TaggerForTokenClassification
from .relation import RELATIONS


class ContextLayer(nn.Module):
    """x_i = max over branches of tanh(convolution of the branch's width), element by element (chen2019).

    Sentences end in zeros, as the paper has it: in its program shorter ones see a trained padding vector instead, and
    what is found in them depends on their batch.
    """

    def __init__(self, config: GrnConfig, input_size: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(input_size, config.hidden_size, width, padding=width // 2) for width in config.context_widths
        )
        self.reach = max(config.context_widths) // 2

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """features (B, T, d) → (B, T, hidden_size)."""
        layout = Layout.of(lengths, features.shape[1], gap=self.reach)
        words = layout.lay_out(features)
        first, *others = (convolution(words) for convolution in self.convolutions)
        for branch in others:
            first = torch.maximum(first, branch)
        # tanh rises everywhere, so that of the maximum is the maximum of those of the branches.
        return layout.take_back(first.tanh())


class GrnEncoder(Encoder):
    """Context layer, relation layer, dropout."""

    def __init__(self, config: GrnConfig, input_size: int) -> None:
        super().__init__()
        self.context = ContextLayer(config, input_size) if config.context_widths else None
        self.output_size = config.hidden_size if config.context_widths else input_size
        self.relation = None if config.relation == "none" else RELATIONS[config.relation](self.output_size)
        self.dropout = config.dropout

    def forward(
        self, features: Tensor, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """features (B, T, d) → p (B, T, hidden_size).

        In place of attention weights there are norms of relations, (B, 1, T, T), computed only where asked for.
        """
        states = features if self.context is None else self.context(features, lengths)
        below, norms = () if self.context is None or self.relation is None else (states,), None
        if self.relation is not None:
            if output_attentions:
                norms = (self.relation.norms(states, lengths).unsqueeze(1),)
            states = self.relation(states, lengths)
        states = F.dropout(states, self.dropout, self.training)
        return Encoded(states, (*below, states) if output_hidden_states else (), norms)


class GrnForTokenClassification(TaggerForTokenClassification):
    """GRN, DFN or GAttN, by the config's `relation`."""

    encoder: GrnEncoder

    config_class = GrnConfig
    encoder_class = GrnEncoder

    @torch.no_grad()
    def relation_norms(
        self, input_ids: Tensor, char_ids: Tensor, attention_mask: Tensor | None = None, scaled: bool = False
    ) -> Tensor:
        """How much any two words of a sentence have to do with each other: the L2 norm of r_ij (chen2019's heat map).

        Args:
            input_ids: Word ids (B, T), 0 for padding on either side.
            char_ids: Character ids (B, T, max_word_chars).
            attention_mask: (B, T), 1 for words and 0 for padding; what is not 0 in `input_ids` where absent.
            scaled: Bring each sentence's norms to [0, 1], its least one to 0 and its largest one to 1.

        Returns:
            (B, T, T), row i for r_i1 … r_iT; 0 where either is padding. Memory is quadratic in T.
        """
        if self.encoder.relation is None:
            raise ValueError('A model with relation="none" relates no words; ask one with a relation layer.')
        mask = (input_ids != self.config.pad_token_id) if attention_mask is None else attention_mask.bool()
        norms = self(input_ids, char_ids, mask, output_attentions=True, return_dict=True).attentions[0].squeeze(1)
        if not scaled or not norms.numel():
            return norms
        pairs = mask.unsqueeze(2) & mask.unsqueeze(1)
        least = norms.masked_fill(~pairs, float("inf")).amin((1, 2), keepdim=True)
        largest = norms.amax((1, 2), keepdim=True)
        # Where all norms are the same, as that of a single word is, they are all the least.
        range_ = torch.where(largest > least, largest - least, 1.0)
        return ((norms - least) / range_).masked_fill(~pairs, 0)
