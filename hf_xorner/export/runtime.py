"""Tag texts with an exported model, by ONNX Runtime, tokenizers and NumPy alone.

    from onnx_tagger import OnnxTagger

    tagger = OnnxTagger.from_pretrained("folder")
    for entity in tagger("Ann Smith met Zeus in New York."):
        print(entity.label, entity.text, entity.start, entity.end, entity.score)

An export copies this file to `onnx_tagger.py` beside the model, so it imports nothing else of the package.
"""

from __future__ import annotations

import json
import logging
import os
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html import escape
from itertools import chain, islice
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Encoding, Tokenizer

_log = logging.getLogger(__name__)

#: The files that an export adds to those of a saved model: the graph, and a copy of this file.
GRAPH_FILE, RUNTIME_FILE = "model.onnx", "onnx_tagger.py"

#: Batches that are read ahead to group sentences of similar length.
BATCHES_AHEAD = 32

#: Average words per sentence above which a batch has fewer sentences: bounds the memory of long documents.
WORDS_PER_SENTENCE = 32


# --- Results ---------------------------------------------------------------------------------------------------------


class Entity(NamedTuple):
    """An entity of a text; the text of given words is these words joined by blanks."""

    label: str
    text: str
    start: int
    end: int
    word_start: int
    word_end: int
    score: float  # probability that its words have their tags, B I* E or S of its type, given the sentence


class Entities(list[Entity]):
    """The entities of a text, shown in colour in notebooks.

    Attributes:
        text: The text, or the given words joined by blanks.
    """

    def __init__(self, entities: Iterable[Entity] = (), text: str = "") -> None:
        super().__init__(entities)
        self.text = text

    def _repr_html_(self) -> str:
        parts, end = [], 0
        for entity in self:
            hue = sum(map(ord, entity.label)) * 47 % 360
            parts += [
                escape(self.text[end : entity.start]),
                f'<mark style="background: hsl({hue}, 80%, 85%); color: black; border-radius: 4px; padding: 0 3px" '
                f'title="{entity.score:.3f}">{escape(self.text[entity.start : entity.end])} '
                f"<small><b>{escape(entity.label)}</b></small></mark>",
            ]
            end = entity.end
        return f'<div style="white-space: pre-wrap">{"".join(parts)}{escape(self.text[end:])}</div>'


class Annotation(NamedTuple):
    """The words, labels and entities of one text or list of n words."""

    places: np.ndarray  # (n, 2) start and end of every word in the text, or in the given words joined by blanks
    labels: np.ndarray  # (n,) the label id of every word; O in entities that are left out for their score
    entities: Entities


# --- Least scores ----------------------------------------------------------------------------------------------------

#: One number, or numbers by label; a label without a number has none to reach.
NumberByLabel = float | Mapping[str, float]


def number_by_label(text: str, option: str) -> NumberByLabel:
    """Read one number, or numbers by label such as ``PER=0.9,LOC=0.8``, from the command line."""
    try:
        if "=" not in text:
            return float(text)
        pairs = (part.rpartition("=") for part in text.split(","))
        return {label.strip(): float(number) for label, _, number in pairs}
    except ValueError:
        raise ValueError(
            f"{option}={text!r} is not a number; give one, or one for each label: PER=0.9,LOC=0.8."
        ) from None


def checked_numbers(given: NumberByLabel, option: str, most: float, labels: Collection[str] | None = None) -> None:
    """Check numbers that were given for an option.

    Args:
        given: One number, or numbers by label.
        option: The option, for the error.
        most: The largest number that is allowed; the least is 0.
        labels: The labels of the model; None if they are not known yet.

    Raises:
        ValueError: If a number is not between the limits, or a label is unknown.
    """
    for label, number in (given if isinstance(given, Mapping) else {"": given}).items():
        if not isinstance(number, Real) or isinstance(number, bool) or not 0 <= number <= most:
            of_label = f" of {label}" if label else ""
            raise ValueError(f"{option}{of_label} is {number!r}; give a number from 0 to {most:g}.")
        if label and labels is not None and label not in labels:
            raise ValueError(f"{option}: the model has no label {label!r}; choose among {', '.join(labels)}.")


def least_score(min_score: NumberByLabel, label: str) -> float:
    """Return the least score of the entities of a label."""
    return min_score.get(label, 0.0) if isinstance(min_score, Mapping) else min_score


# --- Texts to entities -----------------------------------------------------------------------------------------------


class BaseTagger(ABC):
    """The calls of a tagger, whatever computes its labels.

    Args:
        labels: The labels in the order of their ids.
        tokenizer: Its `words_of` gives the words of texts, or of lists of words.
        min_score: Entities with a lower score are left out: one number from 0 to 1, or numbers by label, such as
            `{"PER": 0.9}`.
        default: What `min_score` is by default: that of the model's config, if there is one.

    Attributes:
        types: The type of entity of every label.
        min_score: The argument, or its default, or 0; the methods that find entities take another one.
    """

    def __init__(
        self,
        labels: Sequence[str],
        tokenizer: Any,
        min_score: NumberByLabel | None = None,
        default: NumberByLabel | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.labels = list(labels)
        self.types = [label[2:] if label.startswith(("B-", "I-")) else label for label in labels]
        self._type = np.array([self.types.index(name) for name in self.types])  # (L,)
        self._begins = np.array([label.startswith("B-") for label in labels])
        self._outside = np.array([label == "O" for label in labels])
        self.min_score = self._checked(default or 0.0 if min_score is None else min_score)
        if min_score is None and self.min_score:
            _log.warning(
                "Entities with a score below %s are left out, the min_score in the model's config; min_score=0 keeps "
                "all.",
                self.min_score,
            )

    @property
    def entity_labels(self) -> list[str]:
        """The labels of entities, in the order of the model's labels."""
        return list(dict.fromkeys(name for name in self.types if name != "O"))

    def _checked(self, min_score: NumberByLabel) -> NumberByLabel:
        """Return a least score that fits the model."""
        checked_numbers(min_score, "min_score", 1, self.entity_labels)
        if min_score and not self._outside.any():
            raise ValueError("min_score needs a model with the label O, for the words of entities that are left out.")
        return min_score

    @abstractmethod
    def label_words(self, words: Any, batch_size: int, of_spans: bool) -> tuple[np.ndarray, np.ndarray]:
        """Label words in batches of sentences of similar length.

        Args:
            words: The N words of sentences, by the tokenizer's `words_of`.
            batch_size: Sentences per batch; fewer if they are long.
            of_spans: Whether the probabilities are those of spans.

        Returns:
            The label of every word, (N,), and its probability, (N,); or, for the probabilities of spans, the log
            probability of its inner tag, by itself and given the tag of the word before, (N, 2).
        """

    def __call__(self, item: str | Sequence[str], min_score: NumberByLabel | None = None) -> Entities:
        """Return the entities of one text, or of one list of words."""
        return next(self.stream([item], min_score=min_score))

    def tag(
        self, items: Iterable[str | Sequence[str]], batch_size: int = 128, min_score: NumberByLabel | None = None
    ) -> list[Entities]:
        """Return the entities of every text or list of words, in the order of the items."""
        return list(self.stream(items, batch_size, min_score))

    def stream(
        self, items: Iterable[str | Sequence[str]], batch_size: int = 128, min_score: NumberByLabel | None = None
    ) -> Iterator[Entities]:
        """Yield the entities of every text or list of words, reading a few batches of the items at a time."""
        if isinstance(items, str):
            raise TypeError("a list of texts is needed; for one text, call the tagger: tagger(text).")
        return (annotation.entities for annotation in self.annotate(items, batch_size, min_score))

    def annotate(
        self, items: Iterable[str | Sequence[str]], batch_size: int = 128, min_score: NumberByLabel | None = None
    ) -> Iterator[Annotation]:
        """Yield words, labels and entities of every text or list of words, as `stream` does."""
        if isinstance(items, str):
            raise TypeError("annotate() reads an iterable of texts; give a list.")
        least = self.min_score if min_score is None else self._checked(min_score)
        return chain.from_iterable(self._annotate(ahead, batch_size, least) for ahead in _ahead(items, batch_size))

    def label(
        self, sentences: Iterable[Sequence[str]], batch_size: int = 128
    ) -> Iterator[tuple[list[str], np.ndarray]]:
        """Yield the label of every word and its probability, for sentences of given words, whatever `min_score` is."""
        return chain.from_iterable(self._label(ahead, batch_size) for ahead in _ahead(sentences, batch_size))

    def _label(self, items: list[Any], batch_size: int) -> Iterator[tuple[list[str], np.ndarray]]:
        if any(isinstance(item, str) for item in items):
            raise TypeError("label() reads lists of words; use tag() for texts.")
        words = self.tokenizer.words_of(items, True)
        labels, probabilities = self.label_words(words, batch_size, of_spans=False)
        names = [self.labels[label] for label in labels.tolist()]
        for begin, end in _bounds(words.counts):
            yield names[begin:end], probabilities[begin:end]

    def _annotate(self, items: list[Any], batch_size: int, least: NumberByLabel) -> list[Annotation]:
        results: list[Any] = [None] * len(items)
        for given_words in (False, True):
            numbers = [number for number, item in enumerate(items) if isinstance(item, str) != given_words]
            if not numbers:
                continue
            batch = [items[number] for number in numbers]
            words = self.tokenizer.words_of(batch, given_words)
            places = _joined_places(words) if given_words else words.offsets
            labels, path_log_probs = self.label_words(words, batch_size, of_spans=True)
            texts = [" ".join(item) for item in batch] if given_words else batch
            for number, text, (begin, end) in zip(numbers, texts, _bounds(words.counts), strict=True):
                results[number] = Annotation(places[begin:end], labels[begin:end], Entities((), text))
            for place, entity in self._entities(texts, words.counts, places, labels, path_log_probs):
                found = results[numbers[place]]
                if entity.score < least_score(least, entity.label):
                    found.labels[entity.word_start : entity.word_end] = self._outside.argmax()
                else:
                    found.entities.append(entity)
        return results

    def _entities(
        self,
        texts: list[str],
        counts: np.ndarray,
        places: np.ndarray,
        labels: np.ndarray,
        path_log_probs: np.ndarray,
    ) -> Iterator[tuple[int, Entity]]:
        """Entities, each with the number of its text: neighbours of one type, up to the next B- label."""
        sentence = np.arange(len(texts)).repeat(counts)
        first_word = (counts.cumsum() - counts)[sentence]
        types = self._type[labels]
        starts_anew = np.ones(len(labels) + 1, dtype=bool)
        starts_anew[1:-1] = (types[1:] != types[:-1]) | (sentence[1:] != sentence[:-1]) | self._begins[labels[1:]]
        firsts = np.flatnonzero(starts_anew)
        inside = ~self._outside[labels[firsts[:-1]]]
        firsts, ends = firsts[:-1][inside], firsts[1:][inside]
        # The first word by itself, the others given the word before: exact for a chain of words.
        upto = path_log_probs[:, 1].cumsum(dtype=np.float64)
        scores = np.exp(np.minimum(path_log_probs[firsts, 0] + upto[ends - 1] - upto[firsts], 0))
        columns = (
            sentence[firsts],
            labels[firsts],
            places[firsts, 0],
            places[ends - 1, 1],
            firsts - first_word[firsts],
            ends - first_word[firsts],
            scores,
        )
        for number, label, start, end, word_start, word_end, score in zip(*(c.tolist() for c in columns), strict=True):
            text = texts[number][start:end]
            yield number, Entity(self.types[label], text, start, end, word_start, word_end, score)


def _ahead(items: Iterable[Any], batch_size: int) -> Iterator[list[Any]]:
    """Checked items of a stream, `batch_size * BATCHES_AHEAD` at a time."""
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} must be at least 1.")

    def blocks() -> Iterator[list[Any]]:
        stream, count = iter(items), 0
        while block := list(islice(stream, batch_size * BATCHES_AHEAD)):
            for number, item in enumerate(block, count):
                _check_item(item, number)
            count += len(block)
            yield block

    return blocks()


def _check_item(item: Any, number: int) -> None:
    """Raise if an item is not a text or a list of words, or holds lone surrogates."""
    if not isinstance(item, (str, list, tuple)):
        raise TypeError(f"Text {number} is a {type(item).__name__}, not a text or a list of words.")
    try:
        text = "".join(item)
        text.isascii() or text.encode()
    except TypeError:
        raise ValueError(f"A list of words holds strings alone; text {number} holds something else.") from None
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Text {number} holds a lone surrogate, U+{ord(text[error.start]):04X}, at character {error.start}; "
            "decode the text's source with errors='replace'."
        ) from None


def _bounds(counts: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and one past the last word of every sentence."""
    ends = counts.cumsum()
    return zip((ends - counts).tolist(), ends.tolist(), strict=True)


def _joined_places(words: Any) -> np.ndarray:
    """Start and end (N, 2) of given words joined by blanks."""
    lengths = words.offsets[:, 1]
    stops = (lengths + 1).cumsum()
    before = np.append(0, stops)[(words.counts.cumsum() - words.counts).repeat(words.counts)]
    return np.stack([stops - 1 - lengths, stops - 1], 1) - before[:, None]


# --- Words -----------------------------------------------------------------------------------------------------------

_PAD, _UNKNOWN = "[PAD]", "[UNK]"
_UNKNOWN_ID = 1

#: Ids of unknown characters by their Unicode category, or its first letter; of all others: 1. Those up to 5 are taken.
_ID_BY_CATEGORY = {"Lu": 2, "Lt": 2, "Ll": 3, "Nd": 4, "P": 5, "S": 5}
_FIRST_CHARACTER_ID = 6
_DIGIT_CATEGORY = "Nd"
#: Characters from here on have no type.
_TYPED_CODE_POINTS = 0x20000
_CODE_POINTS = 0x110000

#: Casing and digits of the further forms under which a word is looked up.
_FALLBACKS = {"lower": ("lower", "keep"), "zero": ("keep", "zero"), "lower_zero": ("lower", "zero")}


class _Words(NamedTuple):
    """The N words of a batch of sentences, one after the other; D of them are distinct."""

    counts: np.ndarray  # (sentences,) words of each
    offsets: np.ndarray  # (N, 2) from the start of the text, or of the given word
    place: np.ndarray  # (N,) index of each word among the distinct ones
    input_ids: np.ndarray  # (D,)
    char_ids: np.ndarray  # (D, W): W is max_word_chars, or less if no word is longer
    piece_ids: np.ndarray | None  # (D, max_word_pieces), where the tokenizer cuts words into pieces


class OnnxTokenizer:
    """The words of texts, their ids and the ids of their characters, as the model's `WordCharTokenizer` gives them.

    Args:
        tokenizer: The words and the rule that finds them.
        policies: The content of tokenizer_config.json.
        pieces: Cuts words into pieces, where the model reads them; see `_WordPieces`.
    """

    def __init__(self, tokenizer: Tokenizer, policies: dict[str, Any], pieces: _WordPieces | None = None) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True  # The text "[PAD]" is a text.
        self._tokenizer = tokenizer
        self._pieces = pieces
        self.max_word_chars: int = policies["max_word_chars"]
        self.max_word_pieces: int = policies.get("max_word_pieces", 0)
        self._fold = (policies["casing"], policies["digits"])
        self._fallback = [_FALLBACKS[step] for step in policies["fallback"]]
        self._characters = {one: index for index, one in enumerate(policies["characters"], _FIRST_CHARACTER_ID)}
        self._digit_id = self._characters.get("0") if policies["digits"] == "zero" else None
        # The id of every code point; 0 until it is first needed.
        self._character_table = np.zeros(_CODE_POINTS, dtype=np.int64)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> OnnxTokenizer:
        """Load tokenizer.json and tokenizer_config.json, and piece_tokenizer.json if the model reads pieces.

        Raises:
            ValueError: If a file is missing or broken.
        """
        folder = Path(folder)
        policies = _read_json(folder / "tokenizer_config.json")
        needed = {"characters": str, "casing": str, "digits": str, "fallback": list, "max_word_chars": int}
        for name, kind in needed.items():
            if not isinstance(policies.get(name), kind):
                raise ValueError(f"{folder}: tokenizer_config.json lacks {name!r}; copy it again.")
        for name, known in (("casing", ("keep", "lower")), ("digits", ("keep", "zero")), ("fallback", _FALLBACKS)):
            values = policies[name] if name == "fallback" else [policies[name]]
            if unknown := [value for value in values if value not in known]:
                raise ValueError(f"{folder}: {name} {unknown[0]!r} is unknown; export the model again.")
        tokenizer = _tokenizer_of(_read(folder / "tokenizer.json"), folder / "tokenizer.json")
        if (tokenizer.token_to_id(_PAD), tokenizer.token_to_id(_UNKNOWN)) != (0, _UNKNOWN_ID):
            raise ValueError(f"{folder}: tokenizer.json must number {_PAD} and {_UNKNOWN} first; copy it again.")
        pieces = None
        if policies.get("max_word_pieces", 0):
            pieces = _WordPieces(folder / "piece_tokenizer.json", policies["max_word_pieces"])
        return cls(tokenizer, policies, pieces)

    def words_of(self, items: Sequence[Any], given_words: bool) -> _Words:
        """Return the words of texts, or of lists of words, as arrays over all items."""
        if given_words:
            given = list(chain.from_iterable(items))
            counts = np.fromiter(map(len, items), np.int64, len(items))
            lengths = np.fromiter(map(len, given), np.int64, len(given))
            offsets = np.stack([np.zeros_like(lengths), lengths], 1)
        else:
            encodings: list[Encoding] = self._tokenizer.encode_batch(items, add_special_tokens=False)
            pairs = [encoding.offsets for encoding in encodings]
            counts = np.fromiter(map(len, pairs), np.int64, len(pairs))
            given = [text[start:end] for text, places in zip(items, pairs, strict=True) for start, end in places]
            flat = chain.from_iterable(chain.from_iterable(pairs))
            offsets = np.fromiter(flat, np.int64, 2 * len(given)).reshape(-1, 2)
        numbers = {word: number for number, word in enumerate(dict.fromkeys(given))}
        place = np.fromiter(map(numbers.__getitem__, given), np.int64, len(given))
        distinct = list(numbers)
        ids = np.fromiter(map(self._word_id, distinct), np.int64, len(distinct))
        piece_ids = self._pieces.of(distinct) if self._pieces is not None else None
        return _Words(counts, offsets, place, ids, self._character_ids(distinct), piece_ids)

    def tokenize(self, text: str) -> list[str]:
        """Return the words of a text, verbatim."""
        return [text[start:end] for start, end in self.words_of([text], False).offsets.tolist()]

    def _word_id(self, word: str) -> int:
        """The id of a word as it stands, or else of the first of its other forms that is known."""
        look_up = self._tokenizer.token_to_id
        index = look_up(word)
        if index is None:
            folded = _fold(word, *self._fold)
            forms = [folded, *(_fold(folded, *step) for step in self._fallback)]
            index = next((found for form in forms if (found := look_up(form)) is not None), None)
        return index or _UNKNOWN_ID  # A given word "[PAD]" pads nothing.

    def _character_ids(self, words: list[str]) -> np.ndarray:
        """Character ids (D, W) of words; see `_Words`."""
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        width = min(self.max_word_chars, int(lengths.max(initial=1)))
        points = np.frombuffer("".join(words).encode("utf-32-le"), dtype=np.uint32)
        ids = self._character_table[points]
        if not ids.all():
            for point in set(points[ids == 0].tolist()):
                self._character_table[point] = self._character_id(chr(point))
            ids = self._character_table[points]
        columns = np.arange(width)
        mask = columns < lengths[:, None]
        rows = np.zeros((len(words), width), dtype=np.int64)
        rows[mask] = ids[((lengths.cumsum() - lengths)[:, None] + columns)[mask]]
        return rows

    def _character_id(self, character: str) -> int:
        """The id of a known character, or that of its type."""
        category = unicodedata.category(character) if ord(character) < _TYPED_CODE_POINTS else "Cn"
        if category == _DIGIT_CATEGORY and self._digit_id is not None:
            return self._digit_id
        by_type = _ID_BY_CATEGORY.get(category) or _ID_BY_CATEGORY.get(category[0], _UNKNOWN_ID)
        return self._characters.get(character, by_type)


class _WordPieces:
    """The tokenizer of an encoder, applied to one word at a time."""

    def __init__(self, path: Path, width: int) -> None:
        self.width = width
        content = _read(path)
        # Byte-level BPE distinguishes words after a blank. The blank is added here, since `add_prefix_space` would also
        # add it inside words that another rule has split before. Only where that may be so, the JSON is parsed.
        self.blank = ""
        if '"ByteLevel"' in content:
            parts = _read_json(path)
            if _disable_prefix_space(parts.get("pre_tokenizer")):
                self.blank, content = " ", json.dumps(parts)
        self._tokenizer = _tokenizer_of(content, path)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    def of(self, words: list[str]) -> np.ndarray:
        """The ids + 1 of the first pieces of distinct words, (D, width), padded with 0."""
        texts = [self.blank + word if word else word for word in words] if self.blank else words
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ids = [encoding.ids[: self.width] for encoding in encodings]
        counts = np.fromiter(map(len, ids), np.int64, len(ids))
        rows = np.zeros((len(ids), self.width), dtype=np.int64)
        flat = np.fromiter(chain.from_iterable(ids), np.int64, counts.sum())
        rows[np.arange(self.width) < counts[:, None]] = flat + 1
        return rows


def _disable_prefix_space(pre_tokenizer: Any) -> bool:
    """Set `add_prefix_space` to false in every byte-level part; return whether there is one."""
    if not isinstance(pre_tokenizer, dict):
        return False
    inner = [_disable_prefix_space(part) for part in pre_tokenizer.get("pretokenizers", ())]
    byte_level = pre_tokenizer.get("type") == "ByteLevel"
    if byte_level:
        pre_tokenizer["add_prefix_space"] = False
    return byte_level or any(inner)


def _fold(word: str, casing: str, digits: str) -> str:
    """The form under which a word is looked up, as long as its surface form."""
    if digits == "zero":
        word = re.sub(r"\d", "0", word)
    # U+0130, I with a dot above, is the only character whose lower case is longer.
    return word.replace("\u0130", "i").lower() if casing == "lower" else word


# --- Files -----------------------------------------------------------------------------------------------------------


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise ValueError(f"{path.name} is missing in {path.parent}; copy the whole folder of the export.") from None
    except UnicodeError:
        raise ValueError(f"{path} is not a text in UTF-8; copy it again.") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_read(path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON ({error}); copy it again.") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a JSON object; copy it again.")
    return content


def _tokenizer_of(content: str, path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_str(content)
    # What the tokenizers library raises has no type of its own.
    except Exception as error:
        raise ValueError(f"{path} is not a tokenizer ({error}); copy it again.") from None


# --- The graph -------------------------------------------------------------------------------------------------------


class OnnxTagger(BaseTagger):
    """A model in ONNX with its tokenizer, to tag many texts at once.

    Args:
        session: ONNX Runtime's session of the model.
        tokenizer: Its tokenizer.
        labels: Its labels in the order of their ids.
        threads: Batches that are computed at a time.
        min_score: Entities with a lower score are left out; one number, or numbers by label.
        default: What `min_score` is by default.
    """

    def __init__(
        self,
        session: Any,
        tokenizer: OnnxTokenizer,
        labels: Sequence[str],
        threads: int = 1,
        min_score: NumberByLabel | None = None,
        default: NumberByLabel | None = None,
    ) -> None:
        super().__init__(labels, tokenizer, min_score, default)
        self.session = session
        self.threads = threads
        self._shapes = _checked_shapes(session, tokenizer)

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        file: str = GRAPH_FILE,
        threads: int | None = None,
        providers: Sequence[Any] = ("CPUExecutionProvider",),
        min_score: NumberByLabel | None = None,
    ) -> OnnxTagger:
        """Load an exported folder.

        Args:
            folder: The folder.
            file: The model in it.
            threads: Batches that are computed at a time; by default one for each processor.
            providers: Those of ONNX Runtime, such as "CUDAExecutionProvider".
            min_score: Entities with a lower score are left out: one number from 0 to 1, or numbers by label. By default
                `min_score` of config.json, if it is there, or else 0.

        Raises:
            ValueError: If a file is missing or broken, or one does not belong to the others.
        """
        folder = Path(folder)
        config = _read_json(folder / "config.json")
        labels = config.get("id2label")
        if not isinstance(labels, dict) or not all(
            isinstance(labels.get(str(index)), str) for index in range(len(labels))
        ):
            raise ValueError(f"{folder}: the id2label of config.json does not number labels from 0; copy it again.")
        tokenizer = OnnxTokenizer.from_pretrained(folder)
        threads = threads or _processors()
        session = _session(folder / file, providers)
        names = [labels[str(index)] for index in range(len(labels))]
        return cls(session, tokenizer, names, threads, min_score, config.get("min_score"))

    def __repr__(self) -> str:
        return f"OnnxTagger({', '.join(self.session.get_providers())}, types: {', '.join(self.entity_labels)})"

    def score(self, inputs: dict[str, np.ndarray], of_spans: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels (B, T) of a batch, and their probabilities (B, T) or `path_log_probs` (B, T, 2)."""
        outputs = ["labels", "path_log_probs" if of_spans else "probabilities"]
        labels, probabilities = self.session.run(outputs, inputs)
        return labels, probabilities

    def label_words(self, words: _Words, batch_size: int, of_spans: bool) -> tuple[np.ndarray, np.ndarray]:
        """Label words in batches of sentences of similar length; see `BaseTagger.label_words`."""
        labels = np.zeros(len(words.place), dtype=np.int64)
        probabilities = np.zeros((len(words.place), 2) if of_spans else len(words.place), dtype=np.float32)
        begins = words.counts.cumsum() - words.counts

        def label(batch: np.ndarray) -> None:
            counts = words.counts[batch, None]
            mask = np.arange(counts[0, 0]) < counts  # (B, T)
            place = (begins[batch, None] + np.arange(counts[0, 0]))[mask]
            found = self.score(self._inputs(words, words.place[place], mask), of_spans)
            labels[place], probabilities[place] = (values[mask] for values in found)

        batches = _batches(words.counts, batch_size)
        if self.threads == 1 or len(batches) < 2:
            for batch in batches:
                label(batch)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(label, batches))
        if len(labels) and not 0 <= labels.min() <= labels.max() < len(self.labels):
            raise ValueError("The model gives labels that its config.json does not number; export it again.")
        if np.isnan(probabilities).any():
            raise ValueError("The model gives probabilities that are not numbers; export it again.")
        return labels, probabilities

    def _inputs(self, words: _Words, rows: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
        """The inputs of a batch: `rows` are the distinct words at the places of its mask (B, T)."""
        rows, index = np.unique(rows, return_inverse=True)
        inputs = {"word_index": _padded(index, mask), "attention_mask": mask.astype(np.int64)}
        for name, values in words._asdict().items():
            if name in self._shapes and values is not None:
                found = values[rows]
                inputs[name] = found if found.ndim == 1 else _fitted(found, self._shapes[name][-1])
        return inputs


def _session(path: Path, providers: Sequence[Any]) -> Any:
    if not path.is_file():
        raise ValueError(f"{path.name} is missing in {path.parent}; name the folder that the export has written.")
    try:
        import onnxruntime
    except ImportError:
        raise ImportError("ONNX Runtime is missing: pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # Threads compute batches of their own.
    options.enable_mem_pattern = False  # Batches have many shapes.
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(path, options, providers=list(providers))
    # The errors of ONNX Runtime share no type but this.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(f"ONNX Runtime cannot load {path} ({reason}); export the model again.") from None


def _checked_shapes(session: Any, tokenizer: OnnxTokenizer) -> dict[str, list[Any]]:
    """The shapes of the inputs of a session, which must be those that the tokenizer fills.

    A graph computes each distinct word of a batch once: it reads their ids, and the index among them of every word.
    """
    shapes = {one.name: list(one.shape) for one in session.get_inputs()}
    batch, rows = ["batch", "words"], ["distinct"]
    expected: dict[str, list[Any]] = {"input_ids": rows, "char_ids": [*rows, tokenizer.max_word_chars]}
    # A model need not read the pieces that its tokenizer gives.
    if tokenizer.max_word_pieces and "piece_ids" in shapes:
        expected["piece_ids"] = [*rows, tokenizer.max_word_pieces]
    expected |= {"word_index": batch, "attention_mask": batch}
    if shapes.keys() != expected.keys():
        raise ValueError(
            f"The model reads {', '.join(sorted(shapes))} and its tokenizer gives {', '.join(sorted(expected))}; "
            "export the model again."
        )
    for name, shape in shapes.items():
        # Of what the tokenizer gives, only the widths of characters and pieces are numbers.
        fits = len(shape) == len(expected[name]) and all(
            given == size for given, size in zip(expected[name], shape, strict=True) if isinstance(size, int)
        )
        if not fits:
            raise ValueError(
                f"The model reads {name} of shape {_written(shape)} and its tokenizer gives "
                f"{_written(expected[name])}; export the model again."
            )
    missing = {"labels", "probabilities", "path_log_probs"} - {one.name for one in session.get_outputs()}
    if missing:
        raise ValueError(f"The model gives no {sorted(missing)[0]}; export it with hf-xorner.")
    return shapes


def _written(shape: list[Any]) -> str:
    return f"({', '.join(map(str, shape))})"


def _batches(counts: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """The numbers of sentences of similar length, in batches, the longest first; sentences without words are left."""
    by_length = np.argsort(-counts, kind="stable")
    by_length = by_length[counts[by_length] > 0]
    batches, begin = [], 0
    while begin < len(by_length):
        size = min(batch_size, max(1, batch_size * WORDS_PER_SENTENCE // int(counts[by_length[begin]])))
        batches.append(by_length[begin : begin + size])
        begin += size
    return batches


def _padded(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Pad the values (n, …) of the words of a batch: (B, T, …) with mask (B, T)."""
    padded = np.zeros((*mask.shape, *values.shape[1:]), dtype=np.int64)
    padded[mask] = values
    return padded


def _fitted(values: np.ndarray, width: Any) -> np.ndarray:
    """Cut the columns in which all values are 0, or pad to a width that a graph has fixed."""
    if isinstance(width, int):
        return np.pad(values, ((0, 0), (0, width - values.shape[1])))
    used = np.flatnonzero(values.any(0))
    return values[:, : used[-1] + 1 if len(used) else 1]


def _processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
