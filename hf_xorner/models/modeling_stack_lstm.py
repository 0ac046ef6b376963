"""Stack-LSTM (lample2016)."""

from __future__ import annotations

from torch import Tensor, nn

from .configuration_stack_lstm import StackLstmConfig
from .modeling_tagger import Encoded, Encoder, TaggerForTokenClassification
from .transition_decoder import TransitionDecoder


class WordVectors(Encoder):
    """The features, or a relu layer over them: all LSTMs depend on the actions and belong to the decoder."""

    def __init__(self, config: StackLstmConfig, input_size: int) -> None:
        super().__init__()
        size = config.word_layer_size
        self.hidden = nn.Linear(input_size, size) if size else None
        self.output_size = size or input_size

    def forward(
        self, features: Tensor, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """features (B, T, d) → (B, T, output_size)."""
        if self.hidden is None:
            return Encoded(features)
        states = self.hidden(features).relu()
        return Encoded(states, (states,) if output_hidden_states else ())


class StackLstmForTokenClassification(TaggerForTokenClassification):
    """Stack-LSTM.

    The loss is that of the gold actions, computed in parallel. A word without label is treated as OUT at no cost. In
    evaluation the argmax of the logits is the result of greedy search, and their softmax a posterior derived from the
    actions' probabilities (see `local_posterior`), without gradient.

    The decoder can be neither offloaded by accelerate nor run on the meta device: shapes depend on what is decoded.
    """

    config_class = StackLstmConfig
    encoder_class = WordVectors

    def build_head(self, config: StackLstmConfig) -> None:
        """Create the decoder only: it reads the words themselves in place of scores of tags."""
        self.classifier = nn.Identity()
        self.decoder = TransitionDecoder(config, self.tags, self.encoder.output_size)
