"""Words of texts, ids of words, characters and pieces, and chunks of tags, in NumPy.

Used by the tokenizer, the models, corpora and scores; an ONNX export copies it into `onnx_tagger.py`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Encoding, Tokenizer

PAD, UNKNOWN = "[PAD]", "[UNK]"
UNKNOWN_ID = 1

#: Casing and digits of the forms under which an unknown word is looked up.
FALLBACKS = {"lower": ("lower", "keep"), "zero": ("keep", "zero"), "lower_zero": ("lower", "zero")}

#: One letter per character id: "." other, "U" upper-case, "l" lower-case, "d" digit, "p" punctuation or symbol.
CHARACTER_TYPE_CODES = ".Uldp"

#: Ids 0 and 1 are the padding and the unknown character; ids 2 to 5 are unknown characters of a known type.
RESERVED_CHARACTER_TYPES = "..Uldp"

#: Least and greatest numbers of the characters and of the pieces of a word.
WIDTHS = {"max_word_chars": (1, 4096), "max_word_pieces": (0, 1024)}
_CHOICES = {"casing": ("keep", "lower"), "digits": ("keep", "zero")}

#: Types of characters by the names, or first letters, of Unicode general categories.
_TYPES_BY_CATEGORY = {"Lu": "U", "Lt": "U", "Ll": "l", "Nd": "d", "P": "p", "S": "p"}

_CODE_POINTS = 0x110000

#: Letters with case, digits and punctuation lie below; all code points above are "." (CJK, private use, unassigned).
_TYPED_CODE_POINTS = 0x20000

#: Words whose pieces are cached.
WORDS_KEPT = 2**14

_DIGIT = re.compile(r"\d")


# --- Words -----------------------------------------------------------------------------------------------------------


class Words(NamedTuple):
    """The N words of a batch of sentences, one after the other; D of them are distinct."""

    counts: np.ndarray  # (sentences,) words of each
    offsets: np.ndarray  # (N, 2) in characters from the start of the text, or of the word in a list of words
    row: np.ndarray  # (N,) row of each word in the tables of distinct words
    input_ids: np.ndarray  # (D,)
    char_ids: np.ndarray  # (D, W): W is max_word_chars, or less if no word is longer
    piece_ids: np.ndarray | None  # (D, max_word_pieces), if the tokenizer cuts words into pieces


class WordLookup(NamedTuple):
    """Splits texts into words, and looks up the ids of words, of their characters and of their pieces."""

    tokenizer: Tokenizer  # the vocabulary, and the rule that splits texts
    policies: Mapping[str, Any]  # tokenizer_config.json; see `WordCharTokenizer.from_corpus`
    pieces: WordPieces | None

    def words_of(self, items: Sequence[Any], given_words: bool, encodings: Sequence[Encoding] | None = None) -> Words:
        """Return the words of texts, or of lists of words, as arrays over all items.

        Args:
            items: The texts, or lists of words.
            given_words: True for lists of words.
            encodings: The tokenizer's encodings of the texts, if it has already run.
        """
        if given_words:
            words = list(chain.from_iterable(items))
            counts = np.fromiter(map(len, items), np.int64, len(items))
            lengths = np.fromiter(map(len, words), np.int64, len(words))
            offsets = np.stack([np.zeros_like(lengths), lengths], 1)
        else:
            if encodings is None:
                with no_panic():
                    encodings = self.tokenizer.encode_batch(items, add_special_tokens=False)
            pairs = [encoding.offsets for encoding in encodings]
            counts = np.fromiter(map(len, pairs), np.int64, len(pairs))
            words = [text[start:end] for text, spans in zip(items, pairs, strict=True) for start, end in spans]
            flat = chain.from_iterable(chain.from_iterable(pairs))
            offsets = np.fromiter(flat, np.int64, 2 * len(words)).reshape(-1, 2)
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        row = np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))
        distinct = list(numbers)
        # A word "[PAD]" in a text is unknown, not padding.
        ids = np.fromiter((self.word_id(word) or UNKNOWN_ID for word in distinct), np.int64, len(distinct))
        piece_ids = None if self.pieces is None else self.pieces.of(distinct, self.policies["max_word_pieces"])
        return Words(counts, offsets, row, ids, self.character_ids_of(distinct), piece_ids)

    def model_fields(self) -> dict[str, Any]:
        """Return the fields of a tagger's config that follow from its tokenizer."""
        return {
            **{name: self.policies[name] for name in ("trained_vocab_size", "first_singleton_id", *WIDTHS)},
            "vocab_size": self.tokenizer.get_vocab_size(with_added_tokens=False),
            "pad_token_id": self.tokenizer.token_to_id(PAD),
            "char_vocab_size": len(RESERVED_CHARACTER_TYPES) + len(self.policies["characters"]),
            "char_types": type_letters(self.policies["characters"]),
            "piece_vocab_size": self.pieces.size if self.pieces else 0,
        }

    def word_id(self, word: str) -> int:
        """Return the id of a word, else of its first known other form, else of the unknown word."""
        look_up = self.tokenizer.token_to_id
        index = look_up(fold(word, self.policies["casing"], "keep"))
        if index is None:
            ids = map(look_up, self.forms(word)[1:])
            index = next((candidate for candidate in ids if candidate is not None), UNKNOWN_ID)
        return index

    def forms(self, word: str) -> list[str]:
        """Return the forms of a word in the order in which they are looked up, for ids and for pretrained vectors.

        With `casing="lower"`, all are in lower case; numbers keep a vector of their own where they have one.
        """
        word = fold(word, self.policies["casing"], "keep")
        folded = fold(word, "keep", self.policies["digits"])
        return [word, folded, *(fold(folded, *FALLBACKS[step]) for step in self.policies["fallback"])]

    def character_ids_of(self, words: Sequence[str]) -> np.ndarray:
        """Return the character ids (N, W) of words; see `Words`."""
        words = [word[: self.policies["max_word_chars"]] for word in words]
        table = character_ids(self.policies["characters"], self.policies["digits"] == "zero")
        return _padded(table[code_points("".join(words))], words, max(map(len, words), default=1) or 1)


@contextmanager
def no_panic() -> Iterator[None]:
    """Convert a panic of the tokenizers library, such as for a slow regular expression in a file, to a ValueError."""
    try:
        yield
    except BaseException as error:  # not an Exception
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"the tokenizer fails: {str(error).strip()}") from None


def check_policies(policies: Mapping[str, Any]) -> None:
    """Raise if policies of a tokenizer are missing or unknown, or numbers out of range."""
    for name in (*_CHOICES, *WIDTHS, "fallback", "characters", "trained_vocab_size", "first_singleton_id"):
        if name not in policies:
            raise ValueError(f"tokenizer_config.json has no {name}; copy the whole folder of the model.")
    for name, choices in _CHOICES.items():
        if policies[name] not in choices:
            raise ValueError(f"{name}={policies[name]!r} is unknown; choose {choices[0]!r} or {choices[1]!r}.")
    for step in policies["fallback"]:
        if step not in FALLBACKS:
            raise ValueError(f"fallback step {step!r} is unknown; choose among {', '.join(map(repr, FALLBACKS))}.")
    for name, (least, most) in WIDTHS.items():
        value = policies[name]
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"{name}={value!r} must be a whole number from {least} to {most}.")
    if not isinstance(characters := policies["characters"], str) or len({*characters}) < len(characters):
        raise ValueError("characters must be a text in which no character occurs twice; copy the whole folder.")


def check_fields(settings: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise if the settings of a model differ from those of its tokenizer; see `WordLookup.model_fields`."""
    for field, value in expected.items():
        given = settings.get(field, value)  # config.json lacks fields that have their default value
        if field == "char_types":
            # Characters that are newer than a version of Python have the type "." there.
            pairs = zip(value, given, strict=False)
            value = "".join(theirs if "." in (own, theirs) else own for own, theirs in pairs)
        if value != given:
            raise ValueError(
                f"The tokenizer has {field}={value!r} and the model {field}={given!r}; load both from one folder."
            )


def fold(word: str, casing: str, digits: str) -> str:
    """Return the form under which a word is looked up; it has the length of the surface form."""
    if digits == "zero":
        word = _DIGIT.sub("0", word)
    if casing == "lower":
        # U+0130, I with a dot above, is the only character whose lower case is longer.
        word = word.replace("\u0130", "i").lower()
    return word


def checked_item(item: Any, number: int) -> Any:
    """Return a text or list of words without lone surrogates; the error for anything else names its number."""
    if not isinstance(item, (str, list, tuple)):
        raise TypeError(f"Text {number} is a {type(item).__name__}, not a text or a list of words.")
    try:
        text = "".join(item)
        text.isascii() or text.encode()
    except TypeError:
        raise ValueError(f"A list of words must contain only strings; text {number} contains something else.") from None
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Text {number} holds a lone surrogate, U+{ord(text[error.start]):04X}, at character {error.start}; "
            "decode the text's source with errors='replace'."
        ) from None
    return item


def _padded(values: np.ndarray, rows: Sequence[Any], width: int) -> np.ndarray:
    """Return the concatenated values of rows as an array (rows, width), padded with 0."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    padded = np.zeros((len(rows), width), dtype=np.int64)
    padded[np.arange(width) < lengths[:, None]] = values
    return padded


# --- Characters ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def character_types() -> np.ndarray:
    """Return the type of every code point, an index into CHARACTER_TYPE_CODES, by Unicode category."""
    types = np.zeros(_CODE_POINTS, dtype=np.uint8)
    categories = list(map(unicodedata.category, map(chr, range(_TYPED_CODE_POINTS))))
    codes = {name: _TYPES_BY_CATEGORY.get(name) or _TYPES_BY_CATEGORY.get(name[0], ".") for name in set(categories)}
    by_name = {name: CHARACTER_TYPE_CODES.index(code) for name, code in codes.items()}
    types[:_TYPED_CODE_POINTS] = np.fromiter(map(by_name.__getitem__, categories), np.uint8, len(categories))
    return types


@lru_cache(maxsize=16)
def character_ids(characters: str, zero_digits: bool) -> np.ndarray:
    """Return the id of every code point: known characters in their order, others by their type."""
    by_type = [max(RESERVED_CHARACTER_TYPES.find(code), UNKNOWN_ID) for code in CHARACTER_TYPE_CODES]
    types = character_types()
    ids = np.array(by_type, dtype=np.int32)[types]
    ids[code_points(characters)] = np.arange(len(characters)) + len(RESERVED_CHARACTER_TYPES)
    if zero_digits and "0" in characters:
        ids[types == CHARACTER_TYPE_CODES.index("d")] = ids[ord("0")]
    return ids


def code_points(text: str) -> np.ndarray:
    """Return the code points of a text, which holds no lone surrogates."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


def type_letters(characters: str) -> str:
    """One letter per character id, the reserved ids included, for a config's `char_types`."""
    types = character_types()[code_points(characters)]
    return RESERVED_CHARACTER_TYPES + "".join(CHARACTER_TYPE_CODES[type_] for type_ in types)


# --- Pieces ----------------------------------------------------------------------------------------------------------


class WordPieces:
    """An encoder's tokenizer, applied to one word at a time: a word's pieces never depend on its neighbours.

    Args:
        content: The JSON of the tokenizer.
    """

    def __init__(self, content: str) -> None:
        # Byte-level BPE distinguishes words after a blank. The blank is added here, since `add_prefix_space` would also
        # add it inside words that a previous rule has split.
        self.blank = ""
        if '"ByteLevel"' in content:
            parts = json.loads(content)
            if _disable_prefix_space(parts.get("pre_tokenizer")):
                self.blank, content = " ", json.dumps(parts)
        self.tokenizer = Tokenizer.from_str(content)
        # No truncation, no padding, and "[SEP]" in a text is an ordinary word.
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = True
        self._ids_of = lru_cache(WORDS_KEPT)(self._ids)

    def __getstate__(self) -> str:
        """Pickle the JSON: the tokenizer itself would lose `encode_special_tokens`."""
        return self.to_str()

    def __setstate__(self, state: str) -> None:
        """Restore a pickle or a copy."""
        WordPieces.__init__(self, state)

    @cached_property
    def size(self) -> int:
        """Number of ids of pieces; a vocabulary may have gaps."""
        return max(self.tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def to_str(self) -> str:
        """Return the JSON of the tokenizer."""
        return self.tokenizer.to_str(pretty=True)

    def frame(self) -> tuple[list[int], list[int]]:
        """Return the encoder's ids of the special pieces before and after a sentence."""
        for probe in ("a", *self.tokenizer.get_vocab(with_added_tokens=False)):
            encoding = self.tokenizer.encode(probe)
            words = [index for index, special in enumerate(encoding.special_tokens_mask) if not special]
            if words:
                return encoding.ids[: words[0]], encoding.ids[words[-1] + 1 :]
        return [], []

    def of(self, words: Sequence[str], width: int) -> np.ndarray:
        """Return the ids + 1 of the first `width` pieces of words, (N, width), padded with 0.

        A word that the tokenizer removes, such as a control character, has no pieces.
        """
        ids = [self._ids_of(word)[:width] for word in words]
        return _padded(np.array(list(chain.from_iterable(ids)), dtype=np.int64) + 1, ids, width)

    def _ids(self, word: str) -> tuple[int, ...]:
        with no_panic():
            return tuple(self.tokenizer.encode(word and self.blank + word, add_special_tokens=False).ids)


def _disable_prefix_space(pre_tokenizer: Any) -> bool:
    """Set `add_prefix_space` to false in every byte-level part; return True if there is one."""
    if not isinstance(pre_tokenizer, dict):
        return False
    inner = [_disable_prefix_space(part) for part in pre_tokenizer.get("pretokenizers", ())]
    byte_level = pre_tokenizer.get("type") == "ByteLevel"
    if byte_level:
        pre_tokenizer["add_prefix_space"] = False
    return byte_level or any(inner)


# --- Chunks ----------------------------------------------------------------------------------------------------------

#: The kinds of tags in all schemes.
OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)

#: The type of tags outside of chunks.
NO_TYPE = -1


class Chunks(NamedTuple):
    """The chunks of some sentences, in order, as arrays (chunks,)."""

    first: np.ndarray  # index of the first word among all words
    end: np.ndarray  # index after the last word
    type: np.ndarray


def continues(kind: Any, type_: Any, kind_before: Any, type_before: Any) -> Any:
    """True where a tag continues the chunk of the tag before it; every other tag of a type begins a chunk.

    The arguments are numbers, arrays or tensors.
    """
    goes_on = (kind == INSIDE) | (kind == END)
    stays_open = (kind_before == BEGIN) | (kind_before == INSIDE)
    return goes_on & stays_open & (type_ == type_before)


def chunks_of(kinds: np.ndarray, types: np.ndarray, lengths: np.ndarray) -> Chunks:
    """Return the chunks of tags.

    Args:
        kinds: The kind of each word's tag, OUTSIDE to SINGLE, sentence after sentence. Shape: (words,).
        types: The type of each word's tag, NO_TYPE outside of chunks. Shape: (words,).
        lengths: The number of words of each sentence. Shape: (sentences,).
    """
    continued = np.zeros(len(kinds) + 1, dtype=bool)
    continued[1:-1] = continues(kinds[1:], types[1:], kinds[:-1], types[:-1])
    continued[lengths.cumsum()] = False  # at the start of the next sentence
    inside = types != NO_TYPE
    first, last = np.flatnonzero(inside & ~continued[:-1]), np.flatnonzero(inside & ~continued[1:])
    return Chunks(first, last + 1, types[first])
