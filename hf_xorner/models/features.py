"""Word features: trained and frozen vectors, casing, shape, characters, and an encoder's vectors or states."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .configuration_tagger import TaggerConfig
from .contextual import ContextualFeatures
from .frozen_vectors import ComposedVectors, StaticVectors
from .layers import cheap_to_read, dropout
from .recurrent import build_layer
from .word_ids import CHARACTER_TYPE_CODES, RESERVED_CHARACTER_TYPES, UNKNOWN_ID

PADDING = 0
UPPER, LOWER = map(CHARACTER_TYPE_CODES.index, "Ul")
CHARACTER_TYPES = len(CHARACTER_TYPE_CODES) - 1  # without "."
CASINGS = 4
SHAPES = 4


class WordFeatures(nn.Module):
    """[word vector ; frozen vector ; casing ; shape ; characters ; composed vector ; encoder states], as configured.

    Casing and the character CNN follow li2020, whose word vector corresponds to the first two parts.
    """

    char_types: Tensor

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(trained_words(config), config.word_dim, padding_idx=config.pad_token_id)
        if not config.word_dim:
            # A buffer: torch.save refuses models in which an empty weight was read from a file.
            weight = self.words.weight.detach()
            del self.words.weight
            self.words.register_buffer("weight", weight, persistent=False)
        self.static = StaticVectors(config) if config.static_dim else None
        self.shapes = nn.Embedding(SHAPES, config.shape_dim) if config.shape_dim else None
        self.chars = build_character_encoder(config)
        self.composed = ComposedVectors(config) if config.composed_dim else None
        self.context = ContextualFeatures(config) if config.context_encoder else None
        # Persistent, since from_pretrained does not fill other buffers.
        self.register_buffer("char_types", _char_type_codes(config))
        casings = CASINGS if config.casing_features else 0
        size = config.word_dim + config.static_dim + casings
        encoders = [part for part in (self.chars, self.context) if part is not None]
        self.output_size = size + config.shape_dim + config.composed_dim + sum(part.output_size for part in encoders)

    def reset_parameters(self) -> None:
        """Set the character types from the config."""
        self.char_types.copy_(_char_type_codes(self.config))

    def forward(
        self, input_ids: Tensor, char_ids: Tensor, piece_ids: Tensor | None = None, context_states: Tensor | None = None
    ) -> Tensor:
        """Compute the features of words, (B, T, output_size); the arguments are those of the model's `forward`."""
        input_ids = self.without_singletons(input_ids)
        words = self.words(rows_of_words(input_ids, self.config))
        types = self.char_types
        vectors = [words]
        if self.static is not None:
            vectors.append(self.static(input_ids))
        if self.config.casing_features:
            vectors.append(one_hot(casing_of(types[char_ids]), CASINGS).to(words.dtype))
        if self.shapes is not None:
            vectors.append(self.shapes(shape_of(types[char_ids], char_ids)))
        if self.chars is not None:
            vectors.append(self.chars(char_ids, self.char_types))
        if self.composed is not None:
            vectors.append(self.composed(piece_ids))
        if self.context is not None:
            vectors.append(self.context(piece_ids, context_states).to(words.dtype))
        return dropout(torch.cat(vectors, -1), self.config.feature_dropout, self.training)

    def without_singletons(self, input_ids: Tensor) -> Tensor:
        """In training, replace words seen once by the unknown word with a probability (lample2016)."""
        config = self.config
        if not self.training or not config.singleton_dropout or config.first_singleton_id is None:
            return input_ids
        seen_once = (input_ids >= config.first_singleton_id) & (input_ids < _seen_words(config))
        dropped = torch.rand(input_ids.shape, device=input_ids.device) < config.singleton_dropout
        return input_ids.masked_fill(seen_once & dropped, UNKNOWN_ID)


# --- Word vectors ----------------------------------------------------------------------------------------------------


def _seen_words(config: TaggerConfig) -> int:
    """Number of word ids seen in training; words that only have a pretrained vector come after them."""
    return config.vocab_size if config.trained_vocab_size is None else config.trained_vocab_size


def trained_words(config: TaggerConfig) -> int:
    """Number of words with a trained vector: all words with `pretrained_words`, else those seen in training."""
    return config.vocab_size if config.pretrained_words else _seen_words(config)


def rows_of_words(ids: Tensor, config: TaggerConfig) -> Tensor:
    """The rows of word ids in the table of trained vectors; words without a vector have the unknown word's row."""
    return ids.masked_fill(ids >= trained_words(config), UNKNOWN_ID)


# --- Casing and shape ------------------------------------------------------------------------------------------------


def _char_type_codes(config: TaggerConfig) -> Tensor:
    """The type of each character id, an index into CHARACTER_TYPE_CODES: (characters,)."""
    return torch.tensor([CHARACTER_TYPE_CODES.index(letter) for letter in config.char_types], dtype=torch.uint8)


def one_hot(codes: Tensor, size: int) -> Tensor:
    """Codes (…) below a size as (…, size); `F.one_hot` reads values to check them."""
    return codes.unsqueeze(-1) == torch.arange(size, device=codes.device)


def casing_of(types: Tensor) -> Tensor:
    """The casing of each word, tested in li2020's order: 0 all upper, 1 first upper, 2 all lower, 3 anything else.

    All upper: upper-case and no lower-case letters; all lower: the reverse; other characters do not matter. Characters
    beyond max_word_chars do not count. types (…, max_word_chars) → (…).
    """
    upper, lower = (types == UPPER).any(-1), (types == LOWER).any(-1)
    without_all_upper = torch.where(lower & ~upper, 2, 3)
    return torch.where(upper & ~lower, 0, torch.where(types[..., 0] == UPPER, 1, without_all_upper))


def shape_of(types: Tensor, char_ids: Tensor) -> Tensor:
    """The shape of each word: 0 all capitals, 1 first capital, 2 some capital, 3 no capital (strubell2017).

    As in its program, all characters of an all-capital word are capitals. types and char_ids (…, max_word_chars) → (…).
    """
    capital = types == UPPER
    some = capital.any(-1)
    without_all = torch.where(capital[..., 0], 1, torch.where(some, 2, 3))
    return torch.where(some & (capital | (char_ids == PADDING)).all(-1), 0, without_all)


# --- Characters ------------------------------------------------------------------------------------------------------


def build_character_encoder(config: TaggerConfig) -> CharacterEncoder | None:
    """The character encoder that the config names, if any."""
    if config.char_features == "none":
        return None
    return CharacterLstm(config) if config.char_features == "lstm" else CharacterCnn(config)


class CharacterEncoder(nn.Module):
    """A vector of each word from its characters; equal words of a batch are computed once.

    With character dropout in training, each occurrence of a word has its own dropout and is computed.
    """

    output_size: int

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.char_vocab_size, config.char_dim)
        self.dropout = config.char_dropout
        self.max_word_chars = config.max_word_chars

    @property
    def dropping(self) -> bool:
        """True if occurrences of a word have different dropout now."""
        return self.training and self.dropout > 0

    def forward(self, char_ids: Tensor, char_types: Tensor) -> Tensor:
        """char_ids (B, T, up to max_word_chars), char_types (characters,) → (B, T, output_size)."""
        rows, index = char_ids.flatten(0, 1), None
        longest = rows.shape[1]
        if self.narrows(rows):
            used = (rows != PADDING).any(0).nonzero()
            longest = int(used[-1]) + 1 if len(used) else 0
        # At least one column, for words without characters.
        width = min(longest + max(self.padding_needed(), 1), self.max_word_chars)
        rows = F.pad(rows, (0, width - rows.shape[1]), value=PADDING)
        if cheap_to_read(rows) and not self.dropping:
            rows, index = _distinct_rows(rows)
        words = self.encode(rows, char_types)
        if index is not None:
            words = F.embedding(index, words)
        return words.unflatten(0, char_ids.shape[:2])

    def narrows(self, rows: Tensor) -> bool:
        """True if columns beyond the longest word are not read."""
        return cheap_to_read(rows)

    def padding_needed(self) -> int:
        """Columns of padding beyond the longest word that change the result."""
        return 0

    def encode(self, rows: Tensor, char_types: Tensor) -> Tensor:
        """rows (N, W) → (N, output_size)."""
        raise NotImplementedError

    def vectors(self, chars: Tensor) -> Tensor:
        """The vectors (…, char_dim) of characters (…), with dropout in training."""
        vectors = self.embedding(chars)
        if not self.dropping:
            return vectors
        return torch.where((chars == PADDING).unsqueeze(-1), vectors, dropout(vectors, self.dropout))


class CharacterFilters(nn.Conv1d):
    """The strongest responses of filters of one width over the characters of words.

    A response is a sum of one number per character, looked up in a table (character, offset) → filters. That takes the
    place of a convolution.
    """

    def forward(  # type: ignore[override]
        self, characters: Tensor, rows: Tensor, not_centred_on: Tensor | None = None
    ) -> Tensor:
        """Maxima over the positions of words: characters (C, channels), rows (N, W) of their indices → (N, filters).

        Windows centred on the characters in the mask `not_centred_on` (C,) are ignored; 0 if there is no other window.
        """
        table = torch.einsum("cd,fdw->cwf", characters, self.weight)
        (width,) = self.kernel_size
        if not_centred_on is not None:
            centre = torch.arange(width, device=rows.device) == (width - 1) // 2
            table = table.masked_fill((not_centred_on.unsqueeze(1) & centre).unsqueeze(2), -torch.inf)
        table = table.flatten(1)
        if torch.is_grad_enabled() and cheap_to_read(rows):
            strongest = _Maxima.apply(rows, table, width)
        else:
            strongest = _responses(rows, table, width).amax(1)
        if not_centred_on is not None:
            strongest = strongest.masked_fill(strongest == -torch.inf, 0)
        return strongest if self.bias is None else strongest + self.bias


def _responses(rows: Tensor, table: Tensor, width: int) -> Tensor:
    """Responses of filters at each position: rows (N, W), table (C, width · filters) → (N, W − width + 1, filters)."""
    parts = F.embedding(rows, table).unflatten(-1, (width, -1))  # (N, W, width, filters)
    positions = rows.shape[1] - width + 1
    responses = parts[:, :positions, 0]
    for offset in range(1, width):
        responses = responses + parts[:, offset : offset + positions, offset]
    return responses


class _Maxima(torch.autograd.Function):
    """Maxima of the responses over positions; the backward pass only visits the characters at the maxima."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, table: Tensor, width: int) -> Tensor:
        """rows (N, W), table (C, width · filters) → (N, filters)."""
        strongest, position = _responses(rows, table, width).max(1)
        ctx.save_for_backward(rows, position)
        ctx.width, ctx.shape = width, table.shape
        return strongest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, None]:
        """Add each filter's gradient to its entries of the table."""
        rows, position = ctx.saved_tensors
        columns = torch.arange(ctx.shape[1], device=rows.device).unflatten(0, (ctx.width, -1))  # (width, filters)
        entries = [rows.gather(1, position + offset) * ctx.shape[1] + columns[offset] for offset in range(ctx.width)]
        table = gradients[0].new_zeros(ctx.shape[0] * ctx.shape[1])
        for entry in entries:
            table.index_add_(0, entry.flatten(), gradients[0].flatten())
        return None, table.view(ctx.shape), None


class CharacterCnn(CharacterEncoder):
    """The character CNN of li2020: [vector ; type] of characters, "valid" filters without bias, max over positions.

    Options turn it into the CNNs of ma2016 and chen2019: no types, bias, tanh, padding on either side, centred windows.
    tanh is monotonic, so it is computed after the maximum. With character dropout, each occurrence of a character has
    its own vector.
    """

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__(config)
        self.widths = tuple(config.char_widths)
        self.with_types = config.char_type_features
        self.with_tanh = config.char_activation == "tanh"
        self.centred = config.char_windows == "centred"
        self.padding = max(self.widths) // 2 if self.centred else config.char_padding
        channels = config.char_dim + (CHARACTER_TYPES if self.with_types else 0)
        self.convolutions = nn.ModuleList(
            CharacterFilters(channels, config.char_filters, width, bias=config.char_bias) for width in self.widths
        )
        self.output_size = config.char_filters * len(self.widths)

    def padding_needed(self) -> int:
        """The reach of the widest filter, minus the padding that is always added."""
        return 0 if self.centred else max(max(self.widths) - self.padding, 0)

    def encode(self, rows: Tensor, char_types: Tensor) -> Tensor:
        """Every filter's maximum over the positions of a word: rows (N, W) → (N, output_size)."""
        chars = torch.arange(len(char_types), device=rows.device)
        if self.dropping:
            chars, rows = _occurrences(rows)
        rows = F.pad(rows + 1, (self.padding, self.padding))
        characters, padding = self.channels(chars, char_types)
        left_out = padding if self.centred else None
        strongest = torch.cat([filters(characters, rows, left_out) for filters in self.convolutions], -1)
        return strongest.tanh() if self.with_tanh else strongest

    def channels(self, chars: Tensor, char_types: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs of the filters (C + 1, channels) for characters (C,), and a mask (C + 1,) of padding.

        The first entry is new: the padding on either side of the rows.
        """
        chars = F.pad(chars, (1, 0), value=PADDING)
        characters, padding = self.vectors(chars), chars == PADDING
        if self.with_types:
            types = one_hot(char_types[chars], len(CHARACTER_TYPE_CODES))[..., 1:]
            characters = torch.cat([characters, types.to(characters.dtype)], -1)
        if self.centred:
            characters = characters.masked_fill(padding.unsqueeze(1), 0)
        return characters, padding


class CharacterLstm(CharacterEncoder):
    """The character LSTM of lample2016: the last states of both directions, without unknown characters."""

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__(config)
        self.lstm = build_layer(config.char_lstm_cell, config.char_dim, config.char_lstm_size)
        self.output_size = 2 * config.char_lstm_size

    def narrows(self, rows: Tensor) -> bool:
        """True on a GPU as well, unless the collator did it: waiting for the host is cheaper than steps of padding."""
        full_width = rows.shape[1] == self.max_word_chars
        return super().narrows(rows) or (full_width and not (rows.is_meta or torch.compiler.is_compiling()))

    def encode(self, rows: Tensor, char_types: Tensor) -> Tensor:
        """rows (N, W) → (N, output_size); zeros for a word without known characters."""
        rows = rows.masked_fill(rows < len(RESERVED_CHARACTER_TYPES), PADDING)
        rows = rows.gather(1, torch.argsort((rows == PADDING).to(torch.uint8), dim=1, stable=True))
        lengths = (rows != PADDING).sum(1)
        states = self.lstm(self.vectors(rows).expand(2, -1, -1, -1), lengths)  # (2, N, W, size)
        last = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, states.shape[-1])
        ends = torch.cat([states[0].gather(1, last).squeeze(1), states[1, :, 0]], -1)
        return ends * (lengths > 0).unsqueeze(1)


def _occurrences(rows: Tensor) -> tuple[Tensor, Tensor]:
    """All occurrences of characters (M,) in rows (N, W), and the rows as indices into them; padding is one entry."""
    if not cheap_to_read(rows):
        return rows.flatten(), torch.arange(rows.numel(), device=rows.device).view_as(rows)
    real = rows != PADDING
    numbers = real.flatten().cumsum(0).view_as(rows)
    return F.pad(rows[real], (1, 0), value=PADDING), numbers.masked_fill(~real, 0)


def _distinct_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows of (N, W), and the index of every row among them.

    Rows are compared by a 64-bit hash, which is several times as fast as `torch.unique` on rows. If hashes collide, all
    rows are returned.
    """
    count, width = rows.shape
    # Powers of an odd number modulo 2⁶⁴, from the wrapping product of integers.
    powers = torch.full((width,), 0x9E3779B97F4A7C15 - 2**64, dtype=torch.int64, device=rows.device).cumprod(0)
    keys, index = torch.unique((rows * powers).sum(-1), return_inverse=True)
    first = index.new_empty(len(keys)).scatter_(0, index, torch.arange(count, device=rows.device))
    distinct = rows[first]
    if not torch.equal(distinct[index], rows):
        return rows, torch.arange(count, device=rows.device)
    return distinct, index
