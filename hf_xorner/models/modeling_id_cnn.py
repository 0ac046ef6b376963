"""ID-CNN: iterated dilated convolutions (strubell2017)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_id_cnn import IdCnnConfig
from .convolutions import Layout
from .dropout import dropout
from .modeling_tagger import Encoded, Encoder, TaggerForTokenClassification
from .recurrent import DistinctWords

#: Words of a long sentence that are computed at a time, in inference.
CONVOLVED_AT_ONCE = 1 << 15


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

    Padding is reset to zero after every layer, as beyond the ends of a sentence by itself.
    """

    reads_distinct_words = True

    def __init__(self, config: IdCnnConfig, input_size: int) -> None:
        super().__init__()
        width = config.filter_width
        self.input = nn.Conv1d(input_size, config.hidden_size, width, padding=width // 2)
        self.block = nn.ModuleList(
            DilatedConvolution(config.hidden_size, width, dilation) for dilation in config.dilations
        )
        self.reach = max(config.dilations) * (width // 2)  # words that a layer reads on either side
        self.iterations = config.iterations
        # Words on either side that a state depends on.
        self.far = width // 2 + self.iterations * sum(dilation * (width // 2) for dilation in config.dilations)
        self.loss_each_iteration = config.loss_each_iteration
        self.dropout = config.dropout
        self.output_size = config.hidden_size

    def forward(
        self,
        features: Tensor | DistinctWords,
        lengths: Tensor,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> Encoded:
        """features (B, T, d) → states (B, T, hidden_size) of the last iteration; earlier ones are for the loss."""
        if isinstance(features, DistinctWords):
            begins = range(0, features.place.shape[1], CONVOLVED_AT_ONCE)
            if len(begins) > 1:
                return Encoded(torch.cat([self.states_from(begin, features, lengths) for begin in begins], 1))
            features = features.expanded()
        layout = Layout.of(lengths, features.shape[1], gap=self.reach)
        states = self.input(layout.lay_out(features)).relu() * layout.within
        layers = [states]
        for _ in range(self.iterations):
            for convolution in self.block:
                states = convolution(states).relu() * layout.within
            layers.append(states)
        judged = self.iterations if self.training and self.loss_each_iteration else 1
        taken_back = torch.cat([layout.take_back(rows) for rows in layers[-judged:]])
        *earlier, states = dropout(taken_back, self.dropout, self.training).chunk(judged)
        below = [layout.take_back(rows) for rows in layers[:-1]] if output_hidden_states else []
        return Encoded(states, (*below, states) if output_hidden_states else (), earlier=tuple(earlier))

    def states_from(self, begin: int, words: DistinctWords, lengths: Tensor) -> Tensor:
        """The states of a block of words from `begin` on, of which the words on either side are computed again."""
        before = max(0, begin - self.far)
        block = words._replace(place=words.place[:, before : begin + CONVOLVED_AT_ONCE + self.far]).expanded()
        states = self(block, (lengths - before).clamp(0, block.shape[1])).states
        return states[:, begin - before : begin - before + CONVOLVED_AT_ONCE]


class IdCnnForTokenClassification(TaggerForTokenClassification):
    """ID-CNN."""

    config_class = IdCnnConfig
    encoder_class = IdCnnEncoder
