"""Stack-LSTM (lample2016)."""

from __future__ import annotations

from torch import Tensor, nn

from .configuration_stack_lstm import StackLstmConfig
from .modeling_tagger import Encoded, Encoder, TaggerForTokenClassification
from .transition_decoder import TransitionDecoder


class WordVectors(Encoder):
    """The features of words as they are: what else the Stack-LSTM reads depends on its actions."""

    def __init__(self, config: StackLstmConfig, input_size: int) -> None:
        super().__init__()
        self.output_size = input_size

    def forward(
        self, features: Tensor, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """features (B, T, d) → (B, T, d); there are no layers, and so no hidden states but the features."""
        return Encoded(features)


class StackLstmForTokenClassification(TaggerForTokenClassification):
    """Stack-LSTM.

    Its loss is that of the gold actions, computed without stepping along them. A word without label goes OUT, as far as
    the words after it can see, and what is done at it costs nothing. Outside of training the argmax of the logits is
    what greedy or beam search has built, and their softmax what the actions' probabilities amount to (see
    `local_posterior` and `beam_posterior`); no gradient goes through the search.

    accelerate cannot offload the decoder, and the model does not run on the meta device, since all weights of the
    decoder are used together and shapes depend on what is decoded.
    """

    config_class = StackLstmConfig
    encoder_class = WordVectors

    def build_head(self, config: StackLstmConfig) -> None:
        """Create the decoder alone: there are no scores of tags, and it reads the words themselves."""
        self.classifier = nn.Identity()
        self.decoder = TransitionDecoder(config, self.tags, self.encoder.output_size)
