"""Words from their characters: filters or a bidirectional LSTM over every distinct word of a batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_tagger import CHARACTER_TYPE_CODES, RESERVED_CHARACTER_TYPES, TaggerConfig
from .recurrent import build_layer

PADDING = 0
CHARACTER_TYPES = len(CHARACTER_TYPE_CODES) - 1

#: Words whose characters are computed at a time: bounds the memory of long documents.
WORDS_AT_ONCE = 8192


def build_character_encoder(config: TaggerConfig) -> CharacterEncoder | None:
    """What the config makes of a word's characters."""
    if config.char_features == "none":
        return None
    return CharacterLstm(config) if config.char_features == "lstm" else CharacterCnn(config)


class CharacterEncoder(nn.Module):
    """A vector of each word from its characters; words that are written alike are computed once.

    Where characters' vectors are dropped in training, every occurrence of a word has a dropout of its own.
    """

    output_size: int

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.char_vocab_size, config.char_dim)
        self.dropout = config.char_dropout

    @property
    def dropping(self) -> bool:
        """Whether occurrences of a word differ by what is dropped of their characters now."""
        return self.training and self.dropout > 0

    def forward(self, char_ids: Tensor, char_types: Tensor) -> Tensor:
        """char_ids (B, T, W), char_types (characters,) → (B, T, output_size)."""
        rows = char_ids.flatten(0, 1)
        place = None
        if may_be_looked_into(rows):
            if not self.dropping:
                rows, place = distinct_rows(rows)
            rows = self.without_needless_padding(rows)
        words = self.encode(rows, char_types)
        if place is not None:
            words = F.embedding(place, words)
        return words.unflatten(0, char_ids.shape[:2])

    def without_needless_padding(self, rows: Tensor) -> Tensor:
        """The rows (N, W) without the columns of padding that change nothing in the result: (N, at most W)."""
        used = (rows != PADDING).any(0).nonzero()
        longest = int(used[-1]) + 1 if len(used) else 0
        return rows[:, : longest + self.padding_needed()]

    def padding_needed(self) -> int:
        """How many columns of padding behind the longest word make a difference."""
        raise NotImplementedError

    def encode(self, rows: Tensor, char_types: Tensor) -> Tensor:
        """rows (N, W) → (N, output_size)."""
        raise NotImplementedError

    def vectors(self, chars: Tensor) -> Tensor:
        """The vectors (…, char_dim) of characters (…), in training less what is dropped of them."""
        vectors = self.embedding(chars)
        if not self.dropping:
            return vectors
        return torch.where((chars == PADDING).unsqueeze(-1), vectors, F.dropout(vectors, self.dropout))


class CharacterFilters(nn.Conv1d):
    """The strongest responses of filters of one width over the characters of words.

    A filter's response is a sum of one number a character, so characters go through tables (character, offset) →
    filters and no convolution has to be computed.
    """

    def forward(self, characters: Tensor, rows: Tensor) -> Tensor:  # type: ignore[override]
        """Maxima over the positions of words: characters (C, channels), rows (N, W) of their places → (N, filters)."""
        table = torch.einsum("cd,fdw->cwf", characters, self.weight).flatten(1)
        strongest = torch.cat([self.maxima(part, table) for part in rows.split(WORDS_AT_ONCE)])
        return strongest if self.bias is None else strongest + self.bias

    def maxima(self, rows: Tensor, table: Tensor) -> Tensor:
        """Maxima without bias: rows (N, W), table (C, width · filters) → (N, filters)."""
        (width,) = self.kernel_size
        parts = F.embedding(rows, table).unflatten(-1, (width, -1))  # (N, W, width, filters)
        positions = rows.shape[1] - width + 1
        responses = parts[:, :positions, 0]
        for offset in range(1, width):
            responses = responses + parts[:, offset : offset + positions, offset]
        return responses.amax(1)


class CharacterCnn(CharacterEncoder):
    """The character CNN of li2020: [vector ; type] a character, "valid" filters without bias, max over positions.

    As options, that of ma2016: vectors alone, bias, tanh before the maximum, padding on either side. tanh leaves the
    order of responses as it is, so it is computed after the maximum. Where dropout gives every occurrence of a
    character a vector of its own, the filters read every occurrence.
    """

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__(config)
        self.widths = tuple(config.char_widths)
        self.with_types = config.char_type_features
        self.with_tanh = config.char_activation == "tanh"
        self.padding = config.char_padding
        channels = config.char_dim + CHARACTER_TYPES * self.with_types
        self.convolutions = nn.ModuleList(
            CharacterFilters(channels, config.char_filters, width, bias=config.char_bias) for width in self.widths
        )
        self.output_size = config.char_filters * len(self.widths)

    def padding_needed(self) -> int:
        """As much as the widest filter takes to see padding alone, less what is put there anyway."""
        return max(max(self.widths) - self.padding, 0)

    def encode(self, rows: Tensor, char_types: Tensor) -> Tensor:
        """Every filter's maximum over the positions of a word: rows (N, W) → (N, output_size)."""
        if self.padding:
            rows = F.pad(rows, (self.padding, self.padding), value=PADDING)
        chars = torch.arange(len(char_types), device=rows.device)
        if self.dropping:
            chars, rows = occurrences(rows)
        characters = self.with_type(self.vectors(chars), char_types[chars])
        strongest = torch.cat([filters(characters, rows) for filters in self.convolutions], -1)
        return strongest.tanh() if self.with_tanh else strongest

    def with_type(self, vectors: Tensor, types: Tensor) -> Tensor:
        """[vector ; one-hot type] of characters: vectors (…, char_dim), types (…) → (…, channels)."""
        if not self.with_types:
            return vectors
        one_hot = F.one_hot(types.long(), CHARACTER_TYPES + 1)[..., 1:]
        return torch.cat([vectors, one_hot.to(vectors.dtype)], -1)


class CharacterLstm(CharacterEncoder):
    """The character LSTM of lample2016: [last state of the forward ; last state of the backward direction].

    The forward direction's last state is that at the last character, the backward direction's that at the first.
    """

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__(config)
        self.skip_unknown = config.skip_unknown_chars
        self.lstm = build_layer(config.char_lstm_cell, config.char_dim, config.char_lstm_size, config.learned_start)
        self.output_size = 2 * config.char_lstm_size

    def padding_needed(self) -> int:
        """One column, so that there is a character to look at where no word has any."""
        return 1

    def encode(self, rows: Tensor, char_types: Tensor) -> Tensor:
        """rows (N, W) → (N, output_size); a word of no characters gets zeros."""
        if self.skip_unknown:
            rows = without_unknown(rows)
        return torch.cat([self.last_states(part) for part in rows.split(WORDS_AT_ONCE)])

    def last_states(self, rows: Tensor) -> Tensor:
        """The last states of both directions: rows (N, W) → (N, output_size)."""
        lengths = (rows != PADDING).sum(1)
        states = self.lstm(self.vectors(rows).expand(2, -1, -1, -1), lengths)  # (2, N, W, size)
        last = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, states.shape[-1])
        ends = torch.cat([states[0].gather(1, last).squeeze(1), states[1, :, 0]], -1)
        return ends * (lengths > 0).unsqueeze(1)


def may_be_looked_into(rows: Tensor) -> bool:
    """Whether shapes may depend on what a tensor holds: a GPU would wait for the host, and a graph would break."""
    return rows.device.type == "cpu" and not torch.compiler.is_compiling()


def occurrences(rows: Tensor) -> tuple[Tensor, Tensor]:
    """All occurrences of characters in rows (N, W), (M,), and rows of their places among them; padding shares one."""
    if not may_be_looked_into(rows):
        return rows.flatten(), torch.arange(rows.numel(), device=rows.device).view_as(rows)
    real = rows != PADDING
    places = real.flatten().cumsum(0).view_as(rows)
    return F.pad(rows[real], (1, 0), value=PADDING), places.masked_fill(~real, 0)


def without_unknown(rows: Tensor) -> Tensor:
    """Rows (N, W) of characters without those that have no id of their own; the rest moves up."""
    rows = rows.masked_fill(rows < len(RESERVED_CHARACTER_TYPES), PADDING)
    return rows.gather(1, (rows == PADDING).to(torch.uint8).argsort(dim=1, stable=True))


def distinct_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows of (N, W) and, for every row, its place among them; all rows where they cannot be told apart.

    Rows are told apart by a 64-bit key, which sorts far faster than whole rows do; equal keys are checked.
    """
    count, width = rows.shape
    # Powers of an odd number modulo 2⁶⁴, from the wrapping product of integers.
    powers = torch.full((width,), 0x9E3779B97F4A7C15 - 2**64, dtype=torch.int64, device=rows.device).cumprod(0)
    keys, place = torch.unique((rows * powers).sum(-1), return_inverse=True)
    first = place.new_empty(len(keys)).scatter_(0, place, torch.arange(count, device=rows.device))
    distinct = rows[first]
    if not torch.equal(distinct[place], rows):
        return rows, torch.arange(count, device=rows.device)
    return distinct, place
