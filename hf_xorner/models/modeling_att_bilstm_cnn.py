"""Att-BiLSTM-CNN (li2020)."""

from __future__ import annotations

from torch import Tensor

from .attention import WindowedSelfAttention
from .configuration_att_bilstm_cnn import AttBiLstmCnnConfig
from .modeling_bilstm_cnn import BaselineEncoder
from .modeling_tagger import Encoded, TaggerForTokenClassification
from .recurrent import DistinctWords


class AttEncoder(BaselineEncoder):
    """[H ; C]: the Baseline's states beside the context that self-attention gathers from them."""

    def __init__(self, config: AttBiLstmCnnConfig, input_size: int) -> None:
        super().__init__(config, input_size)
        self.attention = WindowedSelfAttention(config, self.output_size)
        self.output_size += self.attention.output_size

    def forward(
        self,
        features: Tensor | DistinctWords,
        lengths: Tensor,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> Encoded:
        """features (B, T, d) → [H ; C] (B, T, 2 · hidden_size + heads · head_dim)."""
        below = super().forward(features, lengths, output_hidden_states=output_hidden_states)
        return below.with_context(*self.attention(below.states, lengths, with_weights=output_attentions))


class AttBiLstmCnnForTokenClassification(TaggerForTokenClassification):
    """Att-BiLSTM-CNN."""

    config_class = AttBiLstmCnnConfig
    encoder_class = AttEncoder
