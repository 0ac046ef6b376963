"""LSTM-CRF (lample2016)."""

from __future__ import annotations

from torch import Tensor, nn

from .configuration_lstm_crf import LstmCrfConfig
from .modeling_tagger import Encoded, Encoder, Features, TaggerForTokenClassification
from .recurrent import BiLayer, both_directions, build_layer, concatenated


class LstmCrfEncoder(Encoder):
    """tanh(W [H→ ; H←] + b), or [H→ ; H←] if tanh_size is 0.

    H→ and H← are the states of one bidirectional LSTM layer over [word ; characters].
    """

    def __init__(self, config: LstmCrfConfig, input_size: int) -> None:
        super().__init__()
        self.lstm = build_layer(config.cell, input_size, config.hidden_size)
        self.output_size = config.tanh_size or 2 * config.hidden_size
        self.hidden = nn.Linear(2 * config.hidden_size, config.tanh_size) if config.tanh_size else None

    @property
    def first_layer(self) -> BiLayer:
        """The layer that reads the features."""
        return self.lstm

    def forward(
        self, features: Features, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """features (B, T, d) → (B, T, output_size)."""
        below = concatenated(self.lstm(both_directions(features), lengths))
        states = below if self.hidden is None else self.hidden(below).tanh()
        return Encoded(states, (below, states) if output_hidden_states else ())


class LstmCrfForTokenClassification(TaggerForTokenClassification):
    """LSTM-CRF."""

    config_class = LstmCrfConfig
    encoder_class = LstmCrfEncoder
