"""ID-CNN: iterated dilated convolutions (strubell2017)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_id_cnn import IdCnnConfig
from .layers import Layout, dropout
from .modeling_tagger import Encoded, Encoder, TaggerForTokenClassification
from .word_ids import UNKNOWN_ID


class DilatedConvolution(nn.Module):
    """A convolution over words `dilation` apart, initialised as the identity (strubell2017)."""

    def __init__(self, size: int, width: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.padding = dilation * (width // 2)
        self.weight = nn.Parameter(torch.empty(size, size, width))
        self.bias = nn.Parameter(torch.empty(size))

    def reset_parameters(self) -> None:
        """Start as the identity."""
        nn.init.dirac_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, states: Tensor) -> Tensor:
        """states (B, C, T), zeros for padding → (B, C, T)."""
        return F.conv1d(states, self.weight, self.bias, padding=self.padding, dilation=self.dilation)


class IdCnnEncoder(Encoder):
    """i = ReLU(convolution), then i, B(i), B(B(i)), … with the block B of dilated convolutions (strubell2017, sec. 4).

    Padding is reset to zero after every layer, so that a sentence's result does not depend on its batch.
    """

    def __init__(self, config: IdCnnConfig, input_size: int) -> None:
        super().__init__()
        width = config.filter_width
        self.input = nn.Conv1d(input_size, config.hidden_size, width, padding=width // 2)
        self.block = nn.ModuleList(
            DilatedConvolution(config.hidden_size, width, dilation) for dilation in config.dilations
        )
        self.reach = max(config.dilations, default=0) * (width // 2)  # words that a layer reads on either side
        self.iterations = config.iterations
        self.loss_each_iteration = config.loss_each_iteration
        self.dropout = config.dropout
        self.output_size = config.hidden_size

    def forward(
        self, features: Tensor, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """features (B, T, d) → states (B, T, hidden_size) of the last iteration; earlier ones are for the loss."""
        layout = Layout.of(lengths, features.shape[1], gap=self.reach)
        states = self.input(layout.lay_out(features)).relu() * layout.within
        num_losses = self.iterations if self.training and self.loss_each_iteration else 1
        num_kept = self.iterations + 1 if output_hidden_states else num_losses
        layers = [states]
        for _ in range(self.iterations):
            for convolution in self.block:
                states = convolution(states).relu() * layout.within
            layers = [*layers, states][-num_kept:]
        taken_back = torch.cat([layout.take_back(rows) for rows in layers[-num_losses:]])
        *earlier, states = dropout(taken_back, self.dropout, self.training).chunk(num_losses)
        below = [layout.take_back(rows) for rows in layers[:-1]] if output_hidden_states else []
        return Encoded(states, (*below, states) if output_hidden_states else (), earlier=tuple(earlier))


class IdCnnForTokenClassification(TaggerForTokenClassification):
    """ID-CNN, with the word dropout and the penalty of strubell2017."""

    config_class = IdCnnConfig
    encoder_class = IdCnnEncoder

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """As in the base class; in strubell2017's program, two biases are 0.01, and ReLU has its gain."""
        super()._init_weights(module)
        if not isinstance(module, (nn.Conv1d, nn.Linear)) or module not in (self.encoder.input, self.classifier):
            return
        if module is self.encoder.input and self.config.initializer != "kaiming":
            nn.init.xavier_uniform_(module.weight, nn.init.calculate_gain("relu"))
        if module.bias is not None:
            nn.init.constant_(module.bias, 0.01)

    def encode(self, input_ids: Tensor, *inputs: Any, **options: Any) -> Encoded:
        """Encode as the base class does; in training, with word dropout and the penalty on the effect of dropout."""
        if not self.training:
            return super().encode(input_ids, *inputs, **options)
        if self.config.word_dropout:
            dropped = torch.rand(input_ids.shape, device=input_ids.device) < self.config.word_dropout
            input_ids = input_ids.masked_fill(dropped & (input_ids != self.config.pad_token_id), UNKNOWN_ID)
        encoded = super().encode(input_ids, *inputs, **options)
        if not self.config.dropout_penalty:
            return encoded
        self.eval()
        without = super().encode(input_ids, *inputs, **options)
        self.train()
        # At padding, all states are zero.
        change = self.score(encoded.states) - self.score(without.states)
        return encoded._replace(penalty=self.config.dropout_penalty * change.square().sum() / 2)
