"""Text to words with exact offsets, word ids, and the ids of every word's characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from tokenizers import Encoding, Regex, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Split
from transformers import BatchEncoding, PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils import PaddingStrategy

from .word_ids import (
    PAD,
    UNKNOWN,
    WordLookup,
    WordPieces,
    Words,
    check_policies,
    checked_item,
    fold,
    no_panic,
)
from .word_rule import WORD_PATTERN

#: Sentences have no maximum length. A finite number keeps transformers from warning about that.
NO_LIMIT = 10**9

#: Longer words are unknown; keeps the time for a word of any length linear.
LONGEST_KNOWN_WORD = 200

#: Replaces an empty word, which the backend would drop.
_PLACEHOLDER = "\ue000"

#: Never used, but the aggregation strategies of the pipeline need a continuing prefix to recognise words.
_CONTINUATION = "\ue000\ue001"


class WordCharTokenizer(PreTrainedTokenizerFast):
    """Splits texts into words by one rule (`word_rule.WORD_PATTERN`), or takes lists of words as they are.

    Returns `input_ids` (0 pads, 1 is unknown), `char_ids` (words × max_word_chars; 0 pads, 1 is unknown, 2 to 5 are
    unknown upper-case, lower-case, digit and punctuation characters) and `attention_mask`; with an encoder's pieces
    also `piece_ids` (words × max_word_pieces; 0 pads, other ids are those of the encoder plus 1). Offsets are exact,
    sentences are truncated only on request, and several threads may share a tokenizer.

    Build one with `from_corpus`; load it with `from_pretrained` and save it with `save_pretrained`.
    """

    model_input_names = ["input_ids", "char_ids", "attention_mask"]
    padding_side = "right"
    _pieces: WordPieces | None = None
    vocab_files_names = {"tokenizer_file": "tokenizer.json", "piece_tokenizer_file": "piece_tokenizer.json"}

    @classmethod
    def from_corpus(
        cls,
        sentences: Iterable[str | Sequence[str]],
        *,
        min_count: int = 1,
        casing: str = "keep",
        digits: str = "keep",
        max_word_chars: int = 20,
        vector_words: Iterable[str] = (),
        fallback: Sequence[str] = (),
        pieces: WordPieces | None = None,
        max_word_pieces: int = 12,
    ) -> WordCharTokenizer:
        """Build a tokenizer that knows the words and characters of a corpus.

        Args:
            sentences: Texts, or sentences as lists of words.
            min_count: Words seen less often stay unknown.
            casing: "keep", or "lower" to look words up in lower case (characters keep their case).
            digits: "keep", or "zero" to read every digit as 0, in words and in characters (lample2016).
            max_word_chars: Characters a word is cut or padded to (li2020: 20; lample2016 does not cut words: 200).
            vector_words: Words with a pretrained vector. They are known even if the corpus lacks them; their ids come
                after those of the corpus.
            fallback: Forms that are looked up, in this order, for a word that is not known: "lower" its lower-cased
                form, "zero" its form with every digit as 0, "lower_zero" both (lample2016: lower, lower_zero).
            pieces: The tokenizer of an encoder, for models that compose words of its pieces or read its states.
            max_word_pieces: Maximum pieces of a word; the fixed width of `piece_ids`.
        """
        if isinstance(sentences, str):
            raise TypeError("from_corpus reads many sentences; give it a list of texts, or of lists of words.")
        policies = {
            "casing": casing,
            "digits": digits,
            "fallback": list(fallback),
            "max_word_chars": max_word_chars,
        }
        split = Split(Regex(WORD_PATTERN), behavior="removed", invert=True)
        surfaces: Counter[str] = Counter()
        for number, sentence in enumerate(sentences):
            checked_item(sentence, number)
            if isinstance(sentence, str):
                sentence = [word for word, _ in split.pre_tokenize_str(sentence)]
            surfaces.update(sentence)
        words, characters = known_forms(surfaces, casing, digits)
        known = {word: count for word, count in words.items() if count >= min_count}
        extra = [word for word in dict.fromkeys(vector_words) if word not in known and may_be_known(word, casing)]
        return cls.from_vocabulary(
            [PAD, UNKNOWN, *known, *extra],
            "".join(characters),
            pieces,
            **policies,
            trained_vocab_size=2 + len(known),
            first_singleton_id=2 + sum(count > 1 for count in known.values()),
            max_word_pieces=max_word_pieces if pieces else 0,
        )

    @classmethod
    def from_vocabulary(
        cls, words: Sequence[str], characters: str, pieces: WordPieces | None, **policies: Any
    ) -> WordCharTokenizer:
        """Build a tokenizer from words and characters in the order of their ids, and its policies."""
        check_policies({**policies, "characters": characters})
        backend = Tokenizer(
            WordPiece(
                {word: index for index, word in enumerate(words)},
                unk_token=UNKNOWN,
                continuing_subword_prefix=_CONTINUATION,
                max_input_chars_per_word=LONGEST_KNOWN_WORD,
            )
        )
        backend.pre_tokenizer = Split(Regex(WORD_PATTERN), behavior="removed", invert=True)
        tokenizer = cls(
            tokenizer_object=backend,
            pad_token=PAD,
            unk_token=UNKNOWN,
            model_max_length=NO_LIMIT,
            split_special_tokens=True,  # "[PAD]" in a text is not a special token.
            characters=characters,
            **policies,
        )
        tokenizer._pieces = pieces
        return tokenizer

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> WordCharTokenizer:
        """Load a tokenizer with its pieces, since the folder may be gone when they are first needed.

        Raises:
            ValueError: If its policies are unknown, or the pieces' file is missing or broken.
        """
        tokenizer = super().from_pretrained(*args, **kwargs)
        if isinstance(tokenizer, cls):  # transformers returns another class where the files name one
            check_policies(tokenizer.init_kwargs)
            # A file may ask for padding or truncation.
            tokenizer.backend_tokenizer.no_padding()
            tokenizer.backend_tokenizer.no_truncation()
            _ = tokenizer.pieces
        return tokenizer

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle or a copy, whose backend has lost `encode_special_tokens`."""
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

    @property
    def max_word_pieces(self) -> int:
        """Maximum pieces of a word; 0 if words are not cut into pieces."""
        return self.init_kwargs["max_word_pieces"]

    @property
    def pieces(self) -> WordPieces | None:
        """The tokenizer of the encoder whose pieces are used, if any."""
        if not self.max_word_pieces:
            return None
        if self._pieces is None:
            path = self.init_kwargs.get("piece_tokenizer_file")
            if path is None:
                name = self.vocab_files_names["piece_tokenizer_file"]
                raise ValueError(f"{name} is missing next to tokenizer.json; copy the whole folder of the model.")
            try:
                self._pieces = WordPieces(Tokenizer.from_file(path).to_str())
            # The tokenizers library raises a plain Exception.
            except Exception as error:
                raise ValueError(f"{path} is not a tokenizer ({error}); copy it again.") from None
        return self._pieces

    def _save_pretrained(
        self, save_directory: Any, file_names: Any, legacy_format: Any = None, filename_prefix: Any = None
    ) -> tuple[str, ...]:
        """Save as the base class does, but without indentation; the pieces' tokenizer is a second file."""
        file_names = super()._save_pretrained(save_directory, file_names, legacy_format, filename_prefix)
        folder = f"{save_directory}/{filename_prefix}-" if filename_prefix else f"{save_directory}/"
        self.backend_tokenizer.save(folder + self.vocab_files_names["tokenizer_file"], pretty=False)
        if self.pieces is None:
            return file_names
        path = folder + self.vocab_files_names["piece_tokenizer_file"]
        self.pieces.tokenizer.save(path, pretty=False)
        return (*file_names, path)

    def model_fields(self) -> dict[str, Any]:
        """The fields of a tagger's config that follow from its tokenizer: `Config(**tokenizer.model_fields(), …)`."""
        return self.lookup.model_fields()

    def train_new_from_iterator(self, *args: Any, **kwargs: Any) -> WordCharTokenizer:
        """Raise: `from_corpus` builds a tokenizer."""
        raise NotImplementedError("Build a tokenizer with WordCharTokenizer.from_corpus.")

    def _add_tokens(self, new_tokens: Sequence[Any], special_tokens: bool = False) -> int:
        """Raise, except for the two special tokens: a new word needs a vector."""
        if all(str(token) in (PAD, UNKNOWN) for token in new_tokens):
            return super()._add_tokens(new_tokens, special_tokens)
        raise NotImplementedError(
            "Continue training from the model on data with the new words; add_tokens would not give them vectors."
        )

    def tokenize(
        self, text: str, pair: str | None = None, add_special_tokens: bool = False, **kwargs: Any
    ) -> list[str]:
        """The words of a text, verbatim."""
        offsets = self(text, return_offsets_mapping=True)["offset_mapping"]
        return [text[start:end] for start, end in offsets]

    def _convert_token_to_id_with_added_voc(self, token: str) -> int:
        """The id of a word, looked up as the policies say."""
        return (PAD, UNKNOWN).index(token) if token in (PAD, UNKNOWN) else self.lookup.word_id(token)

    @property
    def lookup(self) -> WordLookup:
        """Splits texts into words and finds their ids; the ONNX runtime uses the same class."""
        return WordLookup(self._tokenizer, self.init_kwargs, self.pieces)

    def _encode_plus(
        self,
        text: str | Sequence[str] | Sequence[Sequence[str]],
        text_pair: Any = None,
        *,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        **kwargs: Any,
    ) -> BatchEncoding:
        """Encode as the base class does, with character ids, and without changing the backend's state.

        The base class sets padding and truncation on the backend, which threads share; here they are done on the
        encodings that come out of it.
        """
        if text_pair is not None:
            raise ValueError("WordCharTokenizer does not read pairs of texts; pass two texts.")
        batch, batched = _as_batch(text, is_split_into_words)
        for number, sentence in enumerate(batch):
            checked_item(sentence, number)
            if isinstance(sentence, str) == is_split_into_words:
                kind = "lists of words" if is_split_into_words else "texts"
                raise ValueError(f"With {is_split_into_words=} the tokenizer reads {kind}; text {number} is not one.")
        encodings = self._encode_words(batch, is_split_into_words)
        words = self.lookup.words_of(batch, is_split_into_words, encodings)
        if truncation_strategy != TruncationStrategy.DO_NOT_TRUNCATE and max_length is not None:
            _truncate(encodings, max_length, stride, self.truncation_side)
        parts = [[first, *first.overflowing] if return_overflowing_tokens else [first] for first in encodings]
        rows, sentences = list(chain(*parts)), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        if padding_strategy != PaddingStrategy.DO_NOT_PAD:
            width = _padded_width(rows, padding_strategy, max_length, pad_to_multiple_of)
            for row in rows:
                row.pad(width, direction=padding_side or self.padding_side, pad_id=self.pad_token_id, pad_token=PAD)

        # The stock pipeline joins only outputs of one width.
        char_ids = np.pad(words.char_ids, ((0, 0), (0, self.max_word_chars - words.char_ids.shape[1])))
        columns = {
            "input_ids": words.input_ids[words.row],
            "char_ids": char_ids[words.row],
            "attention_mask": np.ones_like(words.row) if return_attention_mask is not False else None,
            "piece_ids": words.piece_ids[words.row] if words.piece_ids is not None else None,
            "special_tokens_mask": np.zeros_like(words.row) if return_special_tokens_mask else None,
            "offset_mapping": words.offsets if return_offsets_mapping else None,
        }
        begins = (words.counts.cumsum() - words.counts)[sentences]
        numbers = [_word_numbers(row, begin) for row, begin in zip(rows, begins, strict=True)]
        data: dict[str, Any] = {
            name: _gathered(values, numbers, fill=int(name == "special_tokens_mask"))
            for name, values in columns.items()
            if values is not None
        }
        if return_tensors is None:
            data = {name: [_as_list(row, name) for row in values] for name, values in data.items()}
        if return_length:
            data["length"] = [len(row) for row in rows]
        if return_overflowing_tokens:
            data["overflow_to_sample_mapping"] = sentences.tolist()
        elif not batched and return_tensors is None:
            data = {name: values[0] for name, values in data.items()}
        return BatchEncoding(data, rows, tensor_type=return_tensors)

    def words_of(self, batch: Sequence[Any], is_split_into_words: bool) -> Words:
        """The words of texts, or of lists of words, as arrays over the batch; `checked_item` must accept each."""
        return self.lookup.words_of(batch, is_split_into_words)

    def _encode_words(self, batch: Sequence[Any], is_split_into_words: bool) -> list[Encoding]:
        """Run the backend: the word rule and the look-up on texts, the look-up alone on lists of words."""
        if not batch:
            return []
        if not is_split_into_words:
            with no_panic():
                return self._tokenizer.encode_batch(batch, add_special_tokens=False)
        # A backend with the same vocabulary and without the rule: one token for each word.
        look_up = Tokenizer(self._tokenizer.model)
        nonempty = [[word or _PLACEHOLDER for word in words] for words in batch]
        return look_up.encode_batch(nonempty, is_pretokenized=True, add_special_tokens=False)

    def _pad(self, encoded_inputs: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Pad one example including its characters and pieces."""
        before = len(encoded_inputs["input_ids"])
        encoded_inputs = super()._pad(encoded_inputs, *args, **kwargs)
        missing = len(encoded_inputs["input_ids"]) - before
        for name, width in (("char_ids", self.max_word_chars), ("piece_ids", self.max_word_pieces)):
            if missing and name in encoded_inputs:
                padding = [[0] * width] * missing
                rows = list(encoded_inputs[name])
                on_left = (kwargs.get("padding_side") or self.padding_side) == "left"
                encoded_inputs[name] = padding + rows if on_left else rows + padding
        return encoded_inputs


WordCharTokenizer.register_for_auto_class("AutoTokenizer")


# --- Output rows ----------------------------------------------------------------------------------------------------


def _as_batch(text: Any, is_split_into_words: bool) -> tuple[list[Any], bool]:
    """The input as a batch, and whether it was one."""
    batched = isinstance(text, (list, tuple))
    if is_split_into_words:
        batched = batched and bool(text) and isinstance(text[0], (list, tuple))
    return list(text) if batched else [text], batched


def _truncate(encodings: list[Encoding], limit: int, stride: int, side: str) -> None:
    """Truncate sentences; the rest of each is its `overflowing` parts, which overlap by `stride` words."""
    if stride >= max(limit, 1):
        raise ValueError(f"stride={stride} must be smaller than max_length={limit}, or no part would be new.")
    for encoding in encodings:
        encoding.truncate(limit, stride=stride, direction=side)


def _padded_width(rows: list[Encoding], strategy: PaddingStrategy, max_length: int | None, multiple: int | None) -> int:
    """The width that all rows are padded to."""
    width = max(map(len, rows), default=0)
    if strategy == PaddingStrategy.MAX_LENGTH:
        if max_length is None or max_length >= NO_LIMIT:
            raise ValueError('padding="max_length" needs max_length=…, since sentences have no longest length.')
        width = max_length
    return width if not multiple else -(-width // multiple) * multiple


def _word_numbers(row: Encoding, begin: int) -> np.ndarray:
    """The number among all words of each word of a row, whose sentence begins at `begin`; -1 for padding."""
    return np.array([-1 if word is None else begin + word for word in row.word_ids], dtype=np.int64)


def _gathered(values: np.ndarray, rows: list[np.ndarray], fill: int) -> Any:
    """The values of words (N, …) in rows of their numbers, `fill` for −1: one array if the rows are equally wide."""
    padded = np.concatenate([values, np.full_like(values, fill, shape=(1, *values.shape[1:]))])
    parts = [padded[row] for row in rows] or [padded[:0]]
    equal = len({len(part) for part in parts}) == 1
    return np.stack(parts)[: len(rows)] if equal else parts


def _as_list(row: np.ndarray, name: str) -> list[Any]:
    """A row as plain Python: offsets as pairs, all else as (lists of) integers."""
    return [tuple(pair) for pair in row.tolist()] if name == "offset_mapping" else row.tolist()


# --- Vocabulary and policies ----------------------------------------------------------------------------------------


def known_forms(surfaces: Counter[str], casing: str, digits: str) -> tuple[dict[str, int], dict[str, int]]:
    """Folded words and characters of surface forms with their counts, most frequent first, then alphabetically."""
    words: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    for surface, count in surfaces.items():
        words[fold(surface, casing, digits)] += count
        for character in fold(surface, "keep", digits):
            characters[character] += count
    by_count = [sorted(counts.items(), key=lambda item: (-item[1], item[0])) for counts in (words, characters)]
    return {word: count for word, count in by_count[0] if may_be_known(word)}, dict(by_count[1])


def may_be_known(word: str, casing: str = "keep") -> bool:
    """True if a word can be in the vocabulary of a tokenizer that looks words up in this casing."""
    reserved = word in ("", PAD, UNKNOWN) or word.startswith(_PLACEHOLDER) or fold(word, casing, "keep") != word
    return not reserved and len(word) <= LONGEST_KNOWN_WORD
