"""Text to words with exact offsets, word ids, and the ids of every word's characters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Encoding, Regex, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Split
from transformers import BatchEncoding, PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils import PaddingStrategy

from .characters import character_ids, code_points, type_letters
from .configuration_tagger import RESERVED_CHARACTER_TYPES
from .word_rule import WORD_PATTERN

PAD, UNKNOWN = "[PAD]", "[UNK]"
UNKNOWN_ID = 1

#: A sentence has no longest length. A finite number keeps transformers from warning that there is none.
NO_LIMIT = 10**9

#: Longer words are unknown words; keeps the time for a word of any length linear.
LONGEST_KNOWN_WORD = 200

#: Stands in for a given word without characters, which the backend would drop.
_PLACEHOLDER = "\ue000"

#: No word continues another, but with such a prefix the pipeline's strategies know that words are words.
_CONTINUATION = "\ue000\ue001"

_DIGIT = re.compile(r"\d")

#: The casing and the digits of each further form that a word may be looked up under.
FALLBACKS = {"lower": ("lower", "keep"), "zero": ("keep", "zero"), "lower_zero": ("lower", "zero")}


class Words(NamedTuple):
    """The N words of a batch of sentences, one after the other."""

    encodings: list[Encoding]  # one a sentence
    counts: np.ndarray  # (sentences,) words of each
    input_ids: np.ndarray  # (N,)
    char_ids: np.ndarray  # (N, max_word_chars)
    offsets: np.ndarray  # (N, 2) from the start of the text, or of the given word


class _Row(NamedTuple):
    """One output row: the words from first to before last of a batch, a sentence or what truncation left of one."""

    encoding: Encoding
    sentence: int
    first: int
    last: int


class WordCharTokenizer(PreTrainedTokenizerFast):
    """Words by one rule (`word_rule.WORD_PATTERN`), or exactly as given with `is_split_into_words=True`.

    Returns `input_ids` (0 pads, 1 is unknown), `char_ids` (words × max_word_chars; 0 pads, 1 is unknown, 2 to 5 are
    unknown upper-case, lower-case, digit and punctuation characters) and `attention_mask`. Offsets are exact, a
    sentence is never cut unless asked for, and one tokenizer may serve several threads at once.

    Build one with `from_corpus`; load and save it by the ordinary calls.
    """

    model_input_names = ["input_ids", "char_ids", "attention_mask"]
    padding_side = "right"

    @classmethod
    def from_corpus(
        cls,
        sentences: Iterable[str | Sequence[str]],
        *,
        min_count: int = 1,
        casing: str = "keep",
        digits: str = "keep",
        max_word_chars: int = 20,
        min_char_count: int = 1,
        vector_words: Iterable[str] = (),
        fallback: Sequence[str] = (),
    ) -> WordCharTokenizer:
        """Build a tokenizer that knows the words and characters of a corpus.

        Args:
            sentences: Texts, or sentences as lists of words.
            min_count: Words seen less often stay unknown.
            casing: "keep", or "lower" to look words up in lower case (characters keep their case).
            digits: "keep", or "zero" to read every digit as 0, in words and in characters (lample2016).
            max_word_chars: Characters a word is cut or padded to.
            min_char_count: Characters seen less often are known by their type alone.
            vector_words: Words that have a pretrained vector. They are known, too, whether the corpus holds them or
                not; their ids come after those of the corpus.
            fallback: What is tried, in this order, for a word that is not known as it stands: "lower" its lower-cased
                form, "zero" its form with every digit as 0, "lower_zero" both (lample2016: lower, lower_zero).
        """
        if isinstance(sentences, str):
            raise TypeError("from_corpus reads many sentences; give it a list of texts, or of lists of words.")
        for name, value, choices in (("casing", casing, ("keep", "lower")), ("digits", digits, ("keep", "zero"))):
            if value not in choices:
                raise ValueError(f"{name}={value!r} is unknown; choose {choices[0]!r} or {choices[1]!r}.")
        for step in fallback:
            if step not in FALLBACKS:
                raise ValueError(f"fallback step {step!r} is unknown; choose among {', '.join(map(repr, FALLBACKS))}.")
        split = Split(Regex(WORD_PATTERN), behavior="removed", invert=True)
        surfaces: Counter[str] = Counter()
        for number, sentence in enumerate(sentences):
            if isinstance(sentence, str):
                check_sentence(sentence, False, number)
                sentence = [word for word, _ in split.pre_tokenize_str(sentence)]
            surfaces.update(sentence)
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for surface, count in surfaces.items():
            words[fold(surface, casing, digits)] += count
            for character in fold(surface, "keep", digits):
                characters[character] += count
        known = [word for word, count in _most_frequent(words) if count >= min_count and _may_be_known(word)]
        vocabulary = {word: index for index, word in enumerate([PAD, UNKNOWN, *known])}
        trained = len(vocabulary)
        for word in vector_words:
            if _may_be_known(word):
                vocabulary.setdefault(word, len(vocabulary))
        backend = Tokenizer(
            WordPiece(
                vocabulary,
                unk_token=UNKNOWN,
                continuing_subword_prefix=_CONTINUATION,
                max_input_chars_per_word=LONGEST_KNOWN_WORD,
            )
        )
        backend.pre_tokenizer = split
        return cls(
            tokenizer_object=backend,
            pad_token=PAD,
            unk_token=UNKNOWN,
            model_max_length=NO_LIMIT,
            split_special_tokens=True,  # The text "[PAD]" is a text.
            characters="".join(
                character
                for character, count in _most_frequent(characters)
                if count >= min_char_count and not _is_surrogate(character)
            ),
            max_word_chars=max_word_chars,
            casing=casing,
            digits=digits,
            fallback=list(fallback),
            trained_vocab_size=trained,
            first_singleton_id=2 + sum(words[word] > 1 for word in known),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle or a copy, whose backend has forgotten that special tokens in a text are text."""
        self.__dict__.update(state)
        self._tokenizer.encode_special_tokens = self.split_special_tokens

    @property
    def characters(self) -> str:
        """The known characters in the order of their ids."""
        return self.init_kwargs["characters"]

    @property
    def max_word_chars(self) -> int:
        """Characters a word is cut or padded to."""
        return self.init_kwargs["max_word_chars"]

    def model_fields(self) -> dict[str, Any]:
        """The fields of a tagger's config that follow from its tokenizer: `Config(**tokenizer.model_fields(), …)`."""
        return {
            "vocab_size": len(self),
            "trained_vocab_size": self.init_kwargs["trained_vocab_size"],
            "first_singleton_id": self.init_kwargs["first_singleton_id"],
            "pad_token_id": self.pad_token_id,
            "char_vocab_size": len(RESERVED_CHARACTER_TYPES) + len(self.characters),
            "char_types": type_letters(self.characters),
            "max_word_chars": self.max_word_chars,
        }

    @property
    def _looks_further(self) -> bool:
        policies = self.init_kwargs
        return policies["casing"] != "keep" or policies["digits"] != "keep" or bool(policies["fallback"])

    def tokenize(
        self, text: str, pair: str | None = None, add_special_tokens: bool = False, **kwargs: Any
    ) -> list[str]:
        """The words of a text as they stand there."""
        offsets = self(text, return_offsets_mapping=True)["offset_mapping"]
        return [text[start:end] for start, end in offsets]

    def _convert_token_to_id_with_added_voc(self, token: str) -> int:
        """The id of a word, looked up as the policies say."""
        found = map(self._tokenizer.token_to_id, self.forms(token))
        return next((index for index in found if index is not None), UNKNOWN_ID)

    @property
    def steps(self) -> list[str]:
        """The steps of looking a word up, in this order; see `forms`."""
        return ["exact", "folded", *self.init_kwargs["fallback"]]

    def forms(self, word: str) -> list[str]:
        """The form under which each step looks a word up; the same for ids and for pretrained vectors."""
        folded = fold(word, self.init_kwargs["casing"], self.init_kwargs["digits"])
        return [word, folded, *(fold(folded, *FALLBACKS[step]) for step in self.init_kwargs["fallback"])]

    def _encode_plus(
        self,
        text: str | Sequence[str] | Sequence[Sequence[str]],
        text_pair: Any = None,
        add_special_tokens: bool = True,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        verbose: bool = True,
        split_special_tokens: bool | None = None,
        **kwargs: Any,
    ) -> BatchEncoding:
        """Encode as the base class does, with character ids, and without changing the backend's state.

        The base class sets padding and truncation on the backend, which threads share; here they are done on the
        encodings that come out of it.
        """
        if text_pair is not None:
            raise ValueError("WordCharTokenizer reads single texts; give text pairs as texts of their own.")
        batch, batched = _as_batch(text, is_split_into_words)
        for number, sentence in enumerate(batch):
            check_sentence(sentence, is_split_into_words, number)
        words = self.words_of(batch, is_split_into_words)
        limit = None if truncation_strategy == TruncationStrategy.DO_NOT_TRUNCATE else max_length
        if limit and stride >= limit:
            raise ValueError(f"stride={stride} must be smaller than max_length={limit}, or no part would be new.")
        rows = _rows_of(words, limit, stride, self.truncation_side, return_overflowing_tokens)
        width = _padded_width(rows, padding_strategy, max_length, pad_to_multiple_of)
        side = padding_side or self.padding_side
        if width is not None:
            for row in rows:
                row.encoding.pad(width, direction=side, pad_id=self.pad_token_id, pad_token=PAD)

        columns = {
            "input_ids": words.input_ids,
            "char_ids": words.char_ids,
            "attention_mask": np.ones_like(words.input_ids) if return_attention_mask is not False else None,
            "special_tokens_mask": np.zeros_like(words.input_ids) if return_special_tokens_mask else None,
            "offset_mapping": words.offsets if return_offsets_mapping else None,
        }
        data: dict[str, Any] = {
            name: _cut(values, rows, width, side, fill=int(name == "special_tokens_mask"))
            for name, values in columns.items()
            if values is not None
        }
        if return_tensors is None:
            data = {name: [_as_list(row, name) for row in values] for name, values in data.items()}
        if return_length:
            data["length"] = [row.last - row.first if width is None else width for row in rows]
        if return_overflowing_tokens:
            data["overflow_to_sample_mapping"] = [row.sentence for row in rows]
        elif not batched and return_tensors is None:
            data = {name: values[0] for name, values in data.items()}
        return BatchEncoding(data, [row.encoding for row in rows], tensor_type=return_tensors)

    def words_of(self, batch: Sequence[Any], is_split_into_words: bool) -> Words:
        """The words of texts, or of lists of words, as arrays over the whole batch: the fast way in.

        The sentences must be such as `check_sentence` lets pass.
        """
        encodings = self._encode_words(batch, is_split_into_words)
        counts = np.fromiter(map(len, encodings), np.int64, len(encodings))
        if is_split_into_words:
            given = list(chain.from_iterable(batch))
            text = "".join(given)
            lengths = np.fromiter(map(len, given), np.int64, len(given))
            stops = lengths.cumsum()
            starts = stops - lengths
            offsets = np.stack([np.zeros_like(lengths), lengths], 1)
        else:
            text = "".join(batch)
            flat = chain.from_iterable(chain.from_iterable(encoding.offsets for encoding in encodings))
            offsets = np.fromiter(flat, np.int64).reshape(-1, 2)
            sizes = np.fromiter(map(len, batch), np.int64, len(batch))
            starts, stops = (offsets + (sizes.cumsum() - sizes).repeat(counts)[:, None]).T
        ids = np.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), np.int64, len(starts))
        if self._looks_further:
            for place in np.flatnonzero(ids == UNKNOWN_ID):
                ids[place] = self._convert_token_to_id_with_added_voc(text[starts[place] : stops[place]])
        ids[ids == self.pad_token_id] = UNKNOWN_ID  # A given word "[PAD]" pads nothing.
        return Words(encodings, counts, ids, self._character_ids(text, starts, stops), offsets)

    def _character_ids(self, text: str, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """The characters of words that start and stop at places (N,) of a text: (N, max_word_chars)."""
        places = starts[:, None] + np.arange(self.max_word_chars)
        table = character_ids(self.characters, self.init_kwargs["digits"] == "zero")
        # One code point more than the text has, so that there is one to look at even in an empty text.
        ids = table[np.append(code_points(text), 0)]
        return np.where(places < stops[:, None], ids[np.minimum(places, len(ids) - 1)], 0)

    def _encode_words(self, batch: Sequence[Any], is_split_into_words: bool) -> list[Encoding]:
        """Run the backend: the word rule on texts, nothing but the look-up on given words."""
        if not batch:
            return []
        if not is_split_into_words:
            return self._tokenizer.encode_batch(batch, add_special_tokens=False)
        # A backend without a rule, around the same vocabulary: one token a given word, whatever stands in it.
        look_up = Tokenizer(self._tokenizer.model)
        given = [[word or _PLACEHOLDER for word in words] for words in batch]
        return look_up.encode_batch(given, is_pretokenized=True, add_special_tokens=False)

    def _pad(self, encoded_inputs: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Pad one example, its characters too."""
        before = len(encoded_inputs["input_ids"])
        encoded_inputs = super()._pad(encoded_inputs, *args, **kwargs)
        missing = len(encoded_inputs["input_ids"]) - before
        if missing and "char_ids" in encoded_inputs:
            padding = [[0] * self.max_word_chars] * missing
            rows = list(encoded_inputs["char_ids"])
            left = (kwargs.get("padding_side") or self.padding_side) == "left"
            encoded_inputs["char_ids"] = padding + rows if left else rows + padding
        return encoded_inputs


def fold(word: str, casing: str, digits: str) -> str:
    """A word as it is looked up: of the same length as its surface form."""
    if digits == "zero":
        word = _DIGIT.sub("0", word)
    if casing == "lower":
        # The only character whose lower case is longer than itself: U+0130, I with a dot above.
        word = word.replace("\u0130", "i").lower()
    return word


def _most_frequent(counts: Counter[str]) -> list[tuple[str, int]]:
    """Most frequent first; equally frequent ones in the order of their characters, whatever the corpus's order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _may_be_known(word: str) -> bool:
    """Whether a word can be in the vocabulary."""
    reserved = word in ("", PAD, UNKNOWN) or word.startswith(_PLACEHOLDER)
    return not reserved and len(word) <= LONGEST_KNOWN_WORD and not any(map(_is_surrogate, word))


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _as_batch(text: Any, is_split_into_words: bool) -> tuple[list[Any], bool]:
    """The input as a batch, and whether it came as one."""
    batched = isinstance(text, (list, tuple))
    if is_split_into_words:
        batched = batched and bool(text) and isinstance(text[0], (list, tuple))
    return list(text) if batched else [text], batched


def check_sentence(sentence: Any, is_split_into_words: bool, number: int) -> None:
    """Refuse what is no text or no list of words, and texts with lone surrogates, saying the text's number."""
    if is_split_into_words:
        kind = "a list of words, or a list of such lists"
        fits = isinstance(sentence, (list, tuple)) and all(isinstance(word, str) for word in sentence)
    else:
        kind, fits = "a text or a list of texts", isinstance(sentence, str)
    if not fits:
        raise ValueError(
            f"With is_split_into_words={is_split_into_words} the tokenizer reads {kind}; text {number} is not so."
        )
    joined = "".join(sentence)
    try:
        joined.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Text {number} holds a lone surrogate, U+{ord(joined[error.start]):04X}, at character {error.start}; "
            "it is no character, so decode the text's source with errors='replace'."
        ) from None


def _rows_of(words: Words, limit: int | None, stride: int, side: str, with_overflow: bool) -> list[_Row]:
    """The output rows of a batch: its sentences, cut where they exceed a limit that was asked for."""
    rows = []
    begin = 0
    for sentence, encoding in enumerate(words.encodings):
        size = len(encoding)
        parts = [encoding]
        if limit is not None and size > limit:
            encoding.truncate(limit, stride=stride, direction=side)
            parts += encoding.overflowing if with_overflow else []
        for part in parts:
            first = begin + ((part.word_ids[0] or 0) if 0 < len(part) < size else 0)
            rows.append(_Row(part, sentence, first, first + len(part)))
        begin += size
    return rows


def _padded_width(
    rows: list[_Row], strategy: PaddingStrategy, max_length: int | None, multiple: int | None
) -> int | None:
    """The width that all rows are padded to, or None if each keeps its own."""
    if strategy == PaddingStrategy.DO_NOT_PAD:
        return None
    if strategy == PaddingStrategy.MAX_LENGTH:
        if max_length is None or max_length >= NO_LIMIT:
            raise ValueError('padding="max_length" needs max_length=…, since sentences have no longest length.')
        width = max_length
    else:
        width = max((row.last - row.first for row in rows), default=0)
    return width if not multiple else -(-width // multiple) * multiple


def _cut(values: np.ndarray, rows: list[_Row], width: int | None, side: str, fill: int) -> Any:
    """Cut the values of all words (N, …) into rows: arrays of their own lengths, or one array (rows, width, …)."""
    if width is None:
        parts = [values[row.first : row.last] for row in rows]
        same = len({len(part) for part in parts}) == 1
        return np.stack(parts) if same else parts
    padded = np.full((len(rows), width, *values.shape[1:]), fill, dtype=values.dtype)
    for number, row in enumerate(rows):
        size = row.last - row.first
        start = width - size if side == "left" else 0
        if size > width:
            raise ValueError(
                f"Text {row.sentence} has {size} words, more than max_length={width}; add truncation=True to cut it."
            )
        padded[number, start : start + size] = values[row.first : row.last]
    return padded


def _as_list(row: Any, name: str) -> Any:
    """A row as plain Python: offsets as pairs, everything else as (lists of) integers."""
    if not isinstance(row, np.ndarray):
        return row
    return [tuple(pair) for pair in row.tolist()] if name == "offset_mapping" else row.tolist()


WordCharTokenizer.register_for_auto_class("AutoTokenizer")
