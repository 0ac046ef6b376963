"""BLSTM-CNNs-CRF (ma2016), optionally with self-attention below the CRF (chen2019)."""

from __future__ import annotations

from torch import Tensor

from .configuration_cnn_lstm_crf import CnnLstmCrfConfig
from .layers import WindowedSelfAttention, dropout
from .modeling_tagger import Encoded, Encoder, Features, TaggerForTokenClassification
from .recurrent import BiLayer, BiLstmLayer, both_directions, build_layer, concatenated


class CnnLstmCrfEncoder(Encoder):
    """H = [H→ ; H←] of one recurrent layer over [word ; characters]; with self-attention, [H ; C]."""

    def __init__(self, config: CnnLstmCrfConfig, input_size: int) -> None:
        super().__init__()
        self.layer = build_layer("standard" if config.encoder == "lstm" else "rnn", input_size, config.hidden_size)
        self.dropout = config.dropout
        self.output_size = 2 * config.hidden_size
        self.attention = WindowedSelfAttention(config, self.output_size) if config.self_attention else None
        if self.attention is not None:
            self.output_size += self.attention.output_size

    @property
    def first_layer(self) -> BiLayer | None:
        """The layer that reads the features, if it is an LSTM."""
        return self.layer if isinstance(self.layer, BiLstmLayer) else None

    def forward(
        self, features: Features, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """features (B, T, d) → H (B, T, 2 · hidden_size) or [H ; C] (B, T, 2 · hidden_size + heads · head_dim)."""
        directions = self.layer(both_directions(features), lengths)
        states = dropout(concatenated(directions), self.dropout, self.training)
        below = Encoded(states, (states,) if output_hidden_states else ())
        if self.attention is None:
            return below
        return below.with_context(*self.attention(states, lengths, with_weights=output_attentions))


class CnnLstmCrfForTokenClassification(TaggerForTokenClassification):
    """BLSTM-CNNs-CRF."""

    config_class = CnnLstmCrfConfig
    encoder_class = CnnLstmCrfEncoder
