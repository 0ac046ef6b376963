"""Words to vectors: word tables, the word's casing, what its characters say, and what an encoder knows of it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .char_encoders import PADDING, build_character_encoder
from .configuration_tagger import CHARACTER_TYPE_CODES, TaggerConfig
from .contextual import ContextualFeatures
from .tokenization_word_char import UNKNOWN_ID

#: What a word of several pieces is a linear function of: its first piece, the mean over all, and its last piece.
ROLES = 3


class ComposedVectors(nn.Module):
    """A word of one piece has that piece's vector; a word of several, A [first ; mean ; last] + b.

    The mean alone misses much of what the encoder makes of such words; A and b are fitted to that when the pieces'
    vectors are distilled. Nothing here is trained.
    """

    weight: Tensor
    mix: Tensor
    bias: Tensor

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        dim = config.composed_dim
        dtype = torch.float16 if config.composed_half else None
        # Row 0 is that of padding. Buffers, which no optimiser ever sees.
        self.register_buffer("weight", torch.zeros(config.piece_vocab_size + 1, dim, dtype=dtype))
        self.register_buffer("mix", torch.zeros(dim, ROLES * dim))
        self.register_buffer("bias", torch.zeros(dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Until vectors are placed, a word of several pieces is the mean over them."""
        self.weight.zero_()
        self.bias.zero_()
        dim = len(self.bias)
        self.mix.zero_()
        self.mix[:, dim : 2 * dim].fill_diagonal_(1)

    def fill(self, pieces: Tensor, mix: Tensor, bias: Tensor) -> None:
        """Place distilled vectors: pieces (piece_vocab_size, d), mix (d, 3d), bias (d,)."""
        self.weight[1:] = pieces.to(self.weight)
        self.mix.copy_(mix)
        self.bias.copy_(bias)

    def forward(self, piece_ids: Tensor) -> Tensor:
        """piece_ids (B, T, max_word_pieces) → (B, T, composed_dim); zeros for a word without pieces."""
        vectors = F.embedding(piece_ids, self.weight).to(self.mix.dtype)  # (B, T, W, d)
        counts = (piece_ids > 0).sum(-1, keepdim=True)  # (B, T, 1)
        first, mean = vectors[..., 0, :], vectors.sum(-2) / counts.clamp(min=1)
        place = (counts - 1).clamp(min=0).unsqueeze(-1).expand(*counts.shape, vectors.shape[-1])
        last = vectors.gather(-2, place).squeeze(-2)
        composed = F.linear(torch.cat([first, mean, last], -1), self.mix, self.bias)
        return torch.where(counts > 1, composed, first)


UPPER, LOWER = CHARACTER_TYPE_CODES.index("U"), CHARACTER_TYPE_CODES.index("l")
CASINGS = 4
SHAPES = 4


class WordFeatures(nn.Module):
    """[word vector ; frozen vector ; casing ; shape ; characters], of which a config may leave out all but the first.

    Casing and the character CNN are those of li2020, whose one vector of a word is in two parts here. Behind them,
    where the config asks for them: a vector composed of the word's pieces, and an encoder's states.
    """

    char_types: Tensor

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(word_rows(config), config.word_dim, padding_idx=config.pad_token_id)
        if not config.word_dim:
            # Not a weight: torch.save refuses models in which an empty tensor was read from a file of weights.
            weight = self.words.weight.detach()
            del self.words.weight
            self.words.register_buffer("weight", weight, persistent=False)
        self.static = StaticVectors(config) if config.static_dim else None
        self.shapes = nn.Embedding(SHAPES, config.shape_dim) if config.shape_dim else None
        self.chars = build_character_encoder(config)
        self.composed = ComposedVectors(config) if config.composed_dim else None
        self.context = ContextualFeatures(config) if config.context_encoder else None
        # Persistent, since from_pretrained leaves other buffers unfilled.
        self.register_buffer("char_types", char_type_codes(config))
        size = config.word_dim + config.static_dim + CASINGS * config.casing_features
        if config.unknown_word == "vector_and_casing":
            self.unknown = nn.Parameter(torch.empty(size))
        encoders = [part for part in (self.chars, self.context) if part is not None]
        self.output_size = size + config.shape_dim + config.composed_dim + sum(part.output_size for part in encoders)

    def reset_parameters(self) -> None:
        """Draw the unknown word as vectors are drawn; read the character types off the config."""
        if self.config.unknown_word == "vector_and_casing":
            draw_vectors(self.unknown, self.config)
        self.char_types.copy_(char_type_codes(self.config))

    def forward(
        self,
        input_ids: Tensor,
        char_ids: Tensor,
        piece_ids: Tensor | None = None,
        context_states: Tensor | None = None,
    ) -> Tensor:
        """Look words up: (B, T) and per word max_word_chars, max_word_pieces or states → (B, T, output_size)."""
        input_ids = self.without_singletons(input_ids)
        words = self.words(rows_of_words(input_ids, self.config))
        types = self.char_types[char_ids]  # (B, T, max_word_chars)
        vectors = [words]
        if self.static is not None:
            vectors.append(self.static(input_ids))
        if self.config.casing_features:
            vectors.append(F.one_hot(casing_of(types), CASINGS).to(words.dtype))
        if self.config.unknown_word == "vector_and_casing":
            known = (input_ids != UNKNOWN_ID).unsqueeze(-1)
            vectors = [torch.where(known, torch.cat(vectors, -1), self.unknown)]
        if self.shapes is not None:
            vectors.append(self.shapes(shape_of(types, char_ids)))
        if self.chars is not None:
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
        return F.dropout(torch.cat(vectors, -1), self.config.feature_dropout, self.training)

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
        """Draw the vector of words without one as vectors are drawn; nothing has a vector yet."""
        draw_vectors(self.unknown, self.config)
        self.weight.zero_()
        self.has_vector.zero_()

    def fill(self, rows: Tensor, vectors: Tensor) -> None:
        """Give words their vectors: rows (N,) and vectors (N, static_dim)."""
        self.weight[rows] = vectors.to(self.weight)
        self.has_vector[rows] = True

    def resize(self, size: int) -> None:
        """Change the number of words; new ones have no vector."""
        added = size - len(self.weight)
        self.weight, self.has_vector = F.pad(self.weight, (0, 0, 0, added)), F.pad(self.has_vector, (0, added))

    def forward(self, input_ids: Tensor) -> Tensor:
        """input_ids (B, T) → (B, T, static_dim)."""
        vectors = F.embedding(input_ids, self.weight).to(self.unknown.dtype)
        return torch.where(self.has_vector[input_ids].unsqueeze(-1), vectors, self.unknown)


def draw_vectors(vectors: Tensor, config: TaggerConfig) -> None:
    """Start vectors (…, d) of words, characters or shapes as the config's `initializer` says."""
    if config.initializer == "uniform":
        bound = (3 / max(vectors.shape[-1], 1)) ** 0.5
        nn.init.uniform_(vectors, -bound, bound)
    else:
        nn.init.normal_(vectors, std=config.initializer_range)


def first_added_id(config: TaggerConfig) -> int:
    """The first id of an added token; those of words come before it."""
    return config.vocab_size - config.added_vocab_size


def seen_words(config: TaggerConfig) -> int:
    """The number of word ids seen in training; those of words that only have a pretrained vector come after them."""
    return first_added_id(config) if config.trained_vocab_size is None else config.trained_vocab_size


def trained_words(config: TaggerConfig) -> int:
    """The number of words with a trained vector: all, if these start from pretrained ones, else those seen."""
    return first_added_id(config) if config.pretrained_words else seen_words(config)


def word_rows(config: TaggerConfig) -> int:
    """The number of trained vectors: those of words, then those of added tokens."""
    return trained_words(config) + config.added_vocab_size


def rows_of_words(ids: Tensor, config: TaggerConfig) -> Tensor:
    """The rows of word ids in the table of trained vectors; words without a vector there have that of unknown words."""
    trained, first_added = trained_words(config), first_added_id(config)
    rows = ids.masked_fill(ids >= trained, UNKNOWN_ID)
    return rows if not config.added_vocab_size else torch.where(ids < first_added, rows, ids - first_added + trained)


def words_of_rows(config: TaggerConfig) -> Tensor:
    """The word ids of the rows of that table, in their order."""
    return torch.cat([torch.arange(trained_words(config)), torch.arange(first_added_id(config), config.vocab_size)])


def char_type_codes(config: TaggerConfig) -> Tensor:
    """The type of each character id, an index into CHARACTER_TYPE_CODES: (characters,)."""
    return torch.tensor([CHARACTER_TYPE_CODES.index(letter) for letter in config.char_types], dtype=torch.uint8)


def casing_of(types: Tensor) -> Tensor:
    """The casing of each word, tested in li2020's order: 0 all upper, 1 first upper, 2 all lower, 3 anything else.

    A word is all upper when it holds upper-case and no lower-case letters, whatever else it holds, and all lower
    likewise; characters beyond max_word_chars are not seen. types (…, max_word_chars) → (…).
    """
    upper, lower = (types == UPPER).any(-1), (types == LOWER).any(-1)
    first_upper = types[..., 0] == UPPER
    rest = torch.where(lower & ~upper, 2, 3)
    return torch.where(upper & ~lower, 0, torch.where(first_upper, 1, rest))


def shape_of(types: Tensor, char_ids: Tensor) -> Tensor:
    """The shape of each word: 0 all capitals, 1 first capital, 2 some capital, 3 no capital (strubell2017).

    As in its program, a word is all capitals when every character of it is one. types and char_ids (…, max_word_chars),
    the former of the latter → (…).
    """
    capital = types == UPPER
    some = capital.any(-1)
    without_first = torch.where(some, 2, 3)
    without_all = torch.where(capital[..., 0], 1, without_first)
    return torch.where(some & (capital | (char_ids == PADDING)).all(-1), 0, without_all)
