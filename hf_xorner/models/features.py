"""Words to vectors: word tables, the casing of a word, a CNN over its characters, and what an encoder knows of it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .composed import ComposedVectors
from .configuration_tagger import CHARACTER_TYPE_CODES, TaggerConfig
from .contextual import ContextualFeatures

UNKNOWN_ID = 1
UPPER, LOWER = CHARACTER_TYPE_CODES.index("U"), CHARACTER_TYPE_CODES.index("l")
CASINGS = 4
CHARACTER_TYPES = len(CHARACTER_TYPE_CODES) - 1

#: Words whose character CNN is computed at a time: bounds the memory of long documents.
WORDS_AT_ONCE = 8192


class WordFeatures(nn.Module):
    """[word vector ; frozen vector ; casing ; character CNN], the features of li2020 with its vectors in two parts.

    Behind them, where the config asks for them: a vector composed of the word's pieces, and an encoder's states.
    """

    char_types: Tensor

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(trained_words(config), config.word_dim, padding_idx=config.pad_token_id)
        self.static = StaticVectors(config) if config.static_dim else None
        self.chars = CharacterCnn(config)
        self.composed = ComposedVectors(config) if config.composed_dim else None
        self.context = ContextualFeatures(config) if config.context_encoder else None
        # Persistent, since from_pretrained leaves other buffers unfilled.
        self.register_buffer("char_types", torch.zeros(config.char_vocab_size, dtype=torch.uint8))
        size = config.word_dim + config.static_dim + CASINGS
        if config.unknown_word == "vector_and_casing":
            self.unknown = nn.Parameter(torch.empty(size))
        self.output_size = size + self.chars.output_size + config.composed_dim
        if self.context is not None:
            self.output_size += self.context.output_size

    def reset_parameters(self) -> None:
        """Draw the unknown word from N(0, initializer_range); read the character types off the config."""
        if self.config.unknown_word == "vector_and_casing":
            nn.init.normal_(self.unknown, std=self.config.initializer_range)
        codes = [CHARACTER_TYPE_CODES.index(letter) for letter in self.config.char_types]
        self.char_types.copy_(torch.tensor(codes, dtype=torch.uint8))

    def forward(
        self,
        input_ids: Tensor,
        char_ids: Tensor,
        piece_ids: Tensor | None = None,
        context_states: Tensor | None = None,
    ) -> Tensor:
        """Look words up: (B, T) and per word max_word_chars, max_word_pieces or states → (B, T, output_size)."""
        input_ids = self.without_singletons(input_ids)
        words = self.words(input_ids.masked_fill(input_ids >= self.words.num_embeddings, UNKNOWN_ID))
        types = self.char_types[char_ids]  # (B, T, max_word_chars)
        vectors = [words, F.one_hot(casing_of(types), CASINGS).to(words.dtype)]
        if self.static is not None:
            vectors.insert(1, self.static(input_ids))
        if self.config.unknown_word == "vector_and_casing":
            known = (input_ids != UNKNOWN_ID).unsqueeze(-1)
            vectors = [torch.where(known, torch.cat(vectors, -1), self.unknown)]
        vectors.append(self.chars(char_ids, self.char_types))
        if self.composed is not None:
            if piece_ids is None:
                raise ValueError(
                    "This model composes words of their pieces and needs piece_ids; use the tokenizer that was saved "
                    "with it."
                )
            vectors.append(self.composed(piece_ids))
        if self.context is not None:
            vectors.append(self.context(piece_ids, context_states).to(words.dtype))
        return torch.cat(vectors, -1)

    def without_singletons(self, input_ids: Tensor) -> Tensor:
        """In training, read words seen once as unknown ones with a probability (lample2016)."""
        config = self.config
        if not self.training or not config.singleton_dropout or config.first_singleton_id is None:
            return input_ids
        seen_once = (input_ids >= config.first_singleton_id) & (input_ids < seen_words(config))
        dropped = torch.rand(input_ids.shape, device=input_ids.device) < config.singleton_dropout
        return input_ids.masked_fill(seen_once & dropped, UNKNOWN_ID)


class StaticVectors(nn.Module):
    """Pretrained vectors that no training changes; a word without one has a vector that training learns."""

    weight: Tensor
    has_vector: Tensor

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        self.config = config
        # Buffers, which no optimiser ever sees.
        dtype = torch.float16 if config.static_half else None
        self.register_buffer("weight", torch.zeros(config.vocab_size, config.static_dim, dtype=dtype))
        self.register_buffer("has_vector", torch.zeros(config.vocab_size, dtype=torch.bool))
        self.unknown = nn.Parameter(torch.empty(config.static_dim))

    def reset_parameters(self) -> None:
        """Draw the vector of words without one from N(0, initializer_range); nothing has a vector yet."""
        nn.init.normal_(self.unknown, std=self.config.initializer_range)
        self.weight.zero_()
        self.has_vector.zero_()

    def fill(self, rows: Tensor, vectors: Tensor) -> None:
        """Give words their vectors: rows (N,) and vectors (N, static_dim)."""
        self.weight[rows] = vectors.to(self.weight)
        self.has_vector[rows] = True

    def forward(self, input_ids: Tensor) -> Tensor:
        """input_ids (B, T) → (B, T, static_dim)."""
        vectors = F.embedding(input_ids, self.weight).to(self.unknown.dtype)
        return torch.where(self.has_vector[input_ids].unsqueeze(-1), vectors, self.unknown)


def seen_words(config: TaggerConfig) -> int:
    """The number of word ids that training saw; those of words that only have a vector come after them."""
    return config.vocab_size if config.trained_vocab_size is None else config.trained_vocab_size


def trained_words(config: TaggerConfig) -> int:
    """The number of words that have a trained vector: all, if these start from pretrained ones, else those seen."""
    return config.vocab_size if config.pretrained_words else seen_words(config)


def casing_of(types: Tensor) -> Tensor:
    """The casing of each word, tested in li2020's order: 0 all upper, 1 first upper, 2 all lower, 3 anything else.

    A word is all upper when it holds upper-case and no lower-case letters, whatever else it holds, and all lower
    likewise; characters beyond max_word_chars are not seen. types (…, max_word_chars) → (…).
    """
    upper, lower = (types == UPPER).any(-1), (types == LOWER).any(-1)
    first_upper = types[..., 0] == UPPER
    rest = torch.where(lower & ~upper, 2, 3)
    return torch.where(upper & ~lower, 0, torch.where(first_upper, 1, rest))


class CharacterCnn(nn.Module):
    """The character CNN of li2020: [vector ; type] a character, "valid" filters without bias, max over positions.

    Without a nonlinearity before the maximum, a filter's response is a sum of one number a character, so characters
    go through tables (character, offset) → filters and no convolution has to be computed.
    """

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        self.widths = tuple(config.char_widths)
        self.embedding = nn.Embedding(config.char_vocab_size, config.char_dim)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.char_dim + CHARACTER_TYPES, config.char_filters, width, bias=False)
            for width in self.widths
        )
        self.output_size = config.char_filters * len(self.widths)

    def forward(self, char_ids: Tensor, char_types: Tensor) -> Tensor:
        """char_ids (B, T, W), char_types (characters,) → (B, T, output_size)."""
        rows = char_ids.flatten(0, 1)
        # One row a distinct word. A GPU is faster without: finding the distinct words makes it wait for the host.
        if rows.device.type == "cpu" and not torch.compiler.is_compiling():
            rows, place = distinct_rows(rows)
        else:
            place = None
        tables = self.response_tables(char_types)
        responses = torch.cat([self.strongest_responses(part, tables) for part in rows.split(WORDS_AT_ONCE)])
        if place is not None:
            responses = F.embedding(place, responses)
        return responses.unflatten(0, char_ids.shape[:2])

    def response_tables(self, char_types: Tensor) -> list[Tensor]:
        """For every width, what a character at each offset adds to each filter: (characters, width · filters)."""
        one_hot = F.one_hot(char_types.long(), CHARACTER_TYPES + 1)[:, 1:].to(self.embedding.weight.dtype)
        characters = torch.cat([self.embedding.weight, one_hot], -1)  # (characters, d)
        return [
            torch.einsum("cd,fdw->cwf", characters, convolution.weight).flatten(1) for convolution in self.convolutions
        ]

    def strongest_responses(self, rows: Tensor, tables: list[Tensor]) -> Tensor:
        """Every filter's maximum over the positions of a word: rows (N, W) → (N, output_size)."""
        strongest = []
        for width, table in zip(self.widths, tables, strict=True):
            parts = F.embedding(rows, table).unflatten(-1, (width, -1))  # (N, W, width, filters)
            positions = rows.shape[1] - width + 1
            responses = parts[:, :positions, 0]
            for offset in range(1, width):
                responses = responses + parts[:, offset : offset + positions, offset]
            strongest.append(responses.amax(1))
        return torch.cat(strongest, -1)


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
