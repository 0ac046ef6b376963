"""Baseline-, Cross- and Att-BiLSTM-CNN (li2020)."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from .configuration_bilstm_cnn import AttBiLstmCnnConfig, BiLstmCnnConfig, CrossBiLstmCnnConfig
from .layers import WindowedSelfAttention
from .modeling_tagger import Encoded, Encoder, Features, TaggerForTokenClassification
from .recurrent import BiLstmLayer, both_directions, concatenated


class VariationalDropout(nn.Module):
    """Dropout with one mask for all words of a sentence (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float, shared: bool = False) -> None:
        super().__init__()
        self.rate = rate
        self.shared = shared

    @property
    def active(self) -> bool:
        """True if values are dropped now."""
        return self.training and self.rate > 0

    def mask(self, like: Tensor, *shape: int) -> Tensor:
        """A mask of the shape (…, B, d): zeros, and elsewhere 1 / (1 - rate); (…, 1, d) if the batch shares it."""
        *leading, batch, size = shape
        keep = like.new_empty(*leading, 1 if self.shared else batch, size)
        return keep.bernoulli_(1 - self.rate).div_(1 - self.rate)

    def forward(self, values: Tensor) -> Tensor:
        """Drop features of (2, B, T, d), with one mask per direction and sentence."""
        if not self.active:
            return values
        directions, batch, _, size = values.shape
        return values * self.mask(values, directions, batch, size).unsqueeze(2)


class BaselineEncoder(Encoder):
    """H→ = LSTM₂(LSTM₁(X)), H← = LSTM₄(LSTM₃(X)), H = [H→ ; H←]: the directions are only joined at the top."""

    #: True if both directions of an upper layer read both directions of the layer below.
    crossed: ClassVar[bool] = False

    def __init__(self, config: BiLstmCnnConfig, input_size: int) -> None:
        super().__init__()
        self.hidden_size = config.hidden_size
        self.dropout = VariationalDropout(config.dropout, shared=config.dropout_masks == "batch")
        upper = 2 * config.hidden_size if self.crossed else config.hidden_size
        sizes = [input_size, *[upper] * (config.num_hidden_layers - 1)]
        self.layers = nn.ModuleList(BiLstmLayer(size, config.hidden_size, gates_apart=False) for size in sizes)
        self.output_size = 2 * config.hidden_size

    @property
    def first_layer(self) -> Any:
        """The layer that reads the features."""
        return self.layers[0]

    def forward(
        self, features: Features, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """features (B, T, d) → H (B, T, 2 · hidden_size), also of the lower layers as hidden states."""
        states: Any = both_directions(features)
        hidden_states: tuple[Tensor, ...] = ()
        for depth, layer in enumerate(self.layers):
            if depth and output_hidden_states:
                hidden_states += (concatenated(states),)
            inputs = concatenated(states).expand(2, -1, -1, -1) if depth and self.crossed else states
            recurrent_mask = None
            if self.dropout.active:
                recurrent_mask = self.dropout.mask(inputs, 2, inputs.shape[1], self.hidden_size)
            states = layer(self.dropout(inputs), lengths, recurrent_mask)
        top = concatenated(self.dropout(states))
        return Encoded(top, (*hidden_states, top) if output_hidden_states else ())


class CrossEncoder(BaselineEncoder):
    """Both directions of an upper layer read [H→ ; H←] of the layer below (li2020, eq. 4 to 6)."""

    crossed = True


class AttEncoder(BaselineEncoder):
    """[H ; C]: the Baseline's states and the context that self-attention computes from them."""

    def __init__(self, config: AttBiLstmCnnConfig, input_size: int) -> None:
        super().__init__(config, input_size)
        self.attention = WindowedSelfAttention(config, self.output_size)
        self.output_size += self.attention.output_size

    def forward(
        self, features: Features, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """features (B, T, d) → [H ; C] (B, T, 2 · hidden_size + heads · head_dim)."""
        below = super().forward(features, lengths, output_hidden_states=output_hidden_states)
        return below.with_context(*self.attention(below.states, lengths, with_weights=output_attentions))


class BiLstmCnnForTokenClassification(TaggerForTokenClassification):
    """Baseline-BiLSTM-CNN."""

    config_class = BiLstmCnnConfig
    encoder_class = BaselineEncoder


class CrossBiLstmCnnForTokenClassification(TaggerForTokenClassification):
    """Cross-BiLSTM-CNN."""

    config_class = CrossBiLstmCnnConfig
    encoder_class = CrossEncoder


class AttBiLstmCnnForTokenClassification(TaggerForTokenClassification):
    """Att-BiLSTM-CNN."""

    config_class = AttBiLstmCnnConfig
    encoder_class = AttEncoder
