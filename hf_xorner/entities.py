"""Entities of texts, and the methods that `Tagger` and `OnnxTagger` share.

The module does not import PyTorch, since an ONNX export copies it into `onnx_tagger.py`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import chain
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .models.word_ids import BEGIN, INSIDE, NO_TYPE, OUTSIDE, checked_item, chunks_of
from .safety import visible

_log = logging.getLogger(__name__)

#: Number of characters, or of given words, from which on no more items are read ahead; limits the memory of documents.
MOST_AHEAD = 2_000_000

#: If the longest sentence of a batch has more words, the batch has fewer sentences; limits the memory of documents.
WORDS_PER_SENTENCE = 32

# --- Results ---------------------------------------------------------------------------------------------------------


class Entity(dict[str, Any]):
    """An entity of a text: a dictionary whose values are also attributes.

    For a list of words, the text is the words joined by blanks. The score is the probability that the entity's words
    have their tags, B I* E or S of its type, given the sentence.
    """

    __slots__ = ()

    label: str
    text: str
    start: int
    end: int
    word_start: int
    word_end: int
    score: float

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)


def hue_of(label: str) -> int:
    """Return the hue of a label, from 0 to 359; persons, places and organisations have different colours."""
    return sum(map(ord, label)) * 131 % 360


class Entities(list[Entity]):
    """The entities of a text, shown in colour in notebooks; slices keep the text, as do sums of the same text.

    Attributes:
        text: The text, or the list of words joined by blanks.
    """

    def __init__(self, entities: Iterable[Entity] = (), text: str = "") -> None:
        super().__init__(entities)
        self.text = text

    def __getitem__(self, index: Any) -> Any:
        selected = super().__getitem__(index)
        return Entities(selected, self.text) if isinstance(index, slice) else selected

    def __add__(self, other: Any) -> Any:
        together = super().__add__(other)
        return Entities(together, self.text) if getattr(other, "text", self.text) == self.text else together

    def redact(self, template: str = "[{label}]") -> Entities:
        """Return the text with its entities replaced; the entities keep their original texts for `restore`.

        Args:
            template: The replacement: `{label}` is the label, `{number}` counts the distinct entities of a label.

        Returns:
            The entities with the redacted `text`; their `start` and `end` are the offsets of the replacements.
        """
        text, end, replaced = "", 0, []
        numbers: dict[str, dict[str, int]] = {}  # by label and text of the entity
        for entity in self._in_order():
            of_label = numbers.setdefault(entity.label, {})
            number = str(of_label.setdefault(entity.text, len(of_label) + 1))
            text += self.text[end : entity.start]
            start, end = len(text), max(end, entity.end)
            text += template.replace("{label}", entity.label).replace("{number}", number)
            replaced.append(Entity({**entity, "start": start, "end": len(text)}))
        return Entities(replaced, text + self.text[end:])

    def restore(self) -> str:
        """Return the original text, as it was before `redact`."""
        return self._with_each(lambda entity: entity.text)

    def in_colour(self) -> str:
        """Return the text for a terminal, with each entity in colour and followed by its label."""

        def marked(entity: Entity) -> str:
            colour = f"\x1b[{31 + hue_of(entity.label) // 60}"
            text, label = visible(self.text[entity.start : entity.end]), visible(entity.label)
            return f"{colour};1m{text}{colour};22m {label}\x1b[0m"

        return self._with_each(marked, visible)

    def _repr_html_(self) -> str:
        def marked(entity: Entity) -> str:
            style = (
                f"background: hsl({hue_of(entity.label)}, 80%, 85%); color: black; border-radius: 4px; padding: 0 3px"
            )
            text, label = escape(self.text[entity.start : entity.end]), escape(entity.label)
            return f'<mark style="{style}" title="{entity.score:.3f}">{text} <small><b>{label}</b></small></mark>'

        return f'<div style="white-space: pre-wrap">{self._with_each(marked, escape)}</div>'

    def _in_order(self) -> list[Entity]:
        """Return the entities by their place in the text; a user may have sorted them or added some."""
        return sorted(self, key=lambda entity: entity.start)

    def _with_each(self, marked: Callable[[Entity], str], unmarked: Callable[[str], str] = str) -> str:
        """Return the text with `marked` applied to each entity, and `unmarked` to the text between."""
        parts, end = [], 0
        for entity in self._in_order():
            parts += [unmarked(self.text[end : entity.start]), marked(entity)]
            end = max(end, entity.end)
        return "".join([*parts, unmarked(self.text[end:])])


class Annotation(NamedTuple):
    """The words, labels and entities of one text or list of n words."""

    offsets: np.ndarray  # (n, 2) start and end of every word in the text, or in the list of words joined by blanks
    labels: list[str]  # the label of every word; O in entities with a score that is too low
    log_probs: np.ndarray  # (n, 2) log probability of every word's inner tag: marginal, and given the tag before
    entities: Entities


# --- Minimum scores --------------------------------------------------------------------------------------------------

#: One number, or numbers by label; labels without a number have 0.
NumberByLabel = float | Mapping[str, float]


def checked_numbers(numbers: NumberByLabel, option: str, most: float, labels: Collection[str]) -> None:
    """Check the numbers of an option.

    Args:
        numbers: One number, or numbers by label.
        option: The option, for the error.
        most: The maximum; the minimum is 0.
        labels: The labels of the model.

    Raises:
        ValueError: If a number is not between the limits, or a label is unknown.
    """
    for label, number in (numbers if isinstance(numbers, Mapping) else {"": numbers}).items():
        if not isinstance(number, Real) or isinstance(number, bool) or not 0 <= number <= most:
            of_label = f" of {label}" if label else ""
            raise ValueError(f"{option}{of_label} is {number!r}; give a number from 0 to {most:g}.")
        if label and label not in labels:
            raise ValueError(f"{option}: the model has no label {label!r}; choose among {', '.join(labels)}.")


def least_score(min_score: NumberByLabel, label: str) -> float:
    """Return the minimum score for entities of a label."""
    return min_score.get(label, 0.0) if isinstance(min_score, Mapping) else min_score


# --- Texts to entities -----------------------------------------------------------------------------------------------


class BaseTagger(ABC):
    """The methods of a tagger; subclasses define `label_words`.

    Args:
        labels: The labels in the order of their ids.
        tokenizer: An object whose `words_of` returns the words of texts, or of lists of words.
        min_score: Entities with a lower score are left out: one number from 0 to 1, or numbers by label, such as
            `{"PER": 0.9}`.
        default: The default of `min_score`, from the model's config.

    Attributes:
        entity_labels: The labels of entities, in the order of the model's labels.
        min_score: The argument, or its default, or 0; the methods that return entities can override it.
        batches_ahead: Number of batches that are read ahead to group sentences of similar length.
    """

    batches_ahead = 32

    def __init__(
        self,
        labels: Sequence[str],
        tokenizer: Any,
        min_score: NumberByLabel | None = None,
        default: NumberByLabel | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.labels = list(labels)
        types = [None if label == "O" else label[2:] if label[:2] in ("B-", "I-") else label for label in labels]
        self.entity_labels = list(dict.fromkeys(name for name in types if name is not None))
        numbers = [NO_TYPE if name is None else self.entity_labels.index(name) for name in types]
        # An entity extends over neighbouring words of its type, up to the next B- label.
        kinds = [OUTSIDE if label == "O" else BEGIN if label.startswith("B-") else INSIDE for label in labels]
        self._kinds, self._types = np.array(kinds), np.array(numbers)  # (labels,)
        self.min_score = self._checked(default or 0.0 if min_score is None else min_score)
        if min_score is None and self.min_score:
            _log.warning(
                "Entities with a score below %s (min_score in the model's config) are left out; min_score=0 keeps all.",
                self.min_score,
            )

    def _checked(self, min_score: NumberByLabel) -> NumberByLabel:
        """Check a minimum score against the model's labels, and return it."""
        checked_numbers(min_score, "min_score", 1, self.entity_labels)
        if min_score and "O" not in self.labels:
            raise ValueError("min_score needs a model with the label O, for the words of entities that are left out.")
        return min_score

    @abstractmethod
    def label_words(self, words: Any, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
        """Label words in batches of sentences of similar length.

        Args:
            words: The N words of sentences, from the tokenizer's `words_of`.
            batch_size: Sentences per batch; fewer if they are long.

        Returns:
            The label of every word, (N,), and the log probability of its inner tag, marginal and given the tag of the
            previous word, (N, 2).
        """

    def __call__(
        self,
        texts: Any,
        *,
        is_split_into_words: bool = False,
        batch_size: int = 128,
        min_score: NumberByLabel | None = None,
    ) -> Any:
        """Return the entities of one text, or a list with those of several texts.

        Args:
            texts: A text, or several: a list, a column of a table or any other iterable of texts. A text may also be a
                list of its words.
            is_split_into_words: True if `texts` is one list of words.
            batch_size: Texts per batch.
            min_score: Leave out entities with a lower score; by default the attribute `min_score`.

        Returns:
            `Entities`, or a list of them for several texts.
        """
        if is_split_into_words and not isinstance(texts, str):
            texts = list(texts)
        if isinstance(texts, str) or (is_split_into_words and all(isinstance(word, str) for word in texts)):
            return next(self.pipe([texts], batch_size, min_score))
        return list(self.pipe(texts, batch_size, min_score))

    def pipe(
        self, texts: Iterable[str | Sequence[str]], batch_size: int = 128, min_score: NumberByLabel | None = None
    ) -> Iterator[Entities]:
        """Yield the entities of every text or list of words, reading a few batches of a stream at a time."""
        return (annotation.entities for annotation in self.annotate(texts, batch_size, min_score))

    def redact(
        self, text: str | Sequence[str], template: str = "[{label}]", min_score: NumberByLabel | None = None
    ) -> Entities:
        """Replace the entities of one text; see `Entities.redact`."""
        return next(self.pipe([text], min_score=min_score)).redact(template)

    def annotate(
        self, texts: Iterable[str | Sequence[str]], batch_size: int = 128, min_score: NumberByLabel | None = None
    ) -> Iterator[Annotation]:
        """Yield words, labels and entities of every text or list of words, as `pipe` does."""
        if isinstance(texts, str):
            raise TypeError("expected several texts; for one text, call the tagger: tagger(text).")
        if isinstance(texts, Mapping) or hasattr(texts, "columns") or hasattr(texts, "column_names"):
            raise TypeError(f"a {type(texts).__name__} has several columns; pass that of the texts: tagger(x['text']).")
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} must be at least 1.")
        least = self.min_score if min_score is None else self._checked(min_score)
        checked = (checked_item(text, number) for number, text in enumerate(texts))
        blocks = blocks_of(checked, batch_size * self.batches_ahead, len)
        return chain.from_iterable(self._annotate(block, batch_size, least) for block in blocks)

    def _annotate(self, items: list[Any], batch_size: int, least: NumberByLabel) -> list[Annotation]:
        results: list[Any] = [None] * len(items)
        for given_words in (False, True):
            numbers = [number for number, item in enumerate(items) if isinstance(item, str) != given_words]
            if not numbers:
                continue
            batch = [items[number] for number in numbers]
            words = self.tokenizer.words_of(batch, given_words)
            offsets = _joined_offsets(words) if given_words else words.offsets
            labels, log_probs = self.label_words(words, batch_size)
            names = [self.labels[label] for label in labels.tolist()]
            texts = [" ".join(item) for item in batch] if given_words else batch
            for number, text, (begin, end) in zip(numbers, texts, _bounds(words.counts), strict=True):
                of_words = offsets[begin:end], names[begin:end], log_probs[begin:end]
                results[number] = Annotation(*of_words, Entities((), text))
            for index, entity in self._entities(texts, words.counts, offsets, labels, log_probs):
                annotation = results[numbers[index]]
                is_empty = not entity.text.strip()  # of words without characters
                if not is_empty and entity.score >= least_score(least, entity.label):
                    annotation.entities.append(entity)
                elif "O" in self.labels:
                    left_out = slice(entity.word_start, entity.word_end)
                    annotation.labels[left_out] = ["O"] * len(annotation.labels[left_out])
        return results

    def _entities(
        self, texts: list[str], counts: np.ndarray, offsets: np.ndarray, labels: np.ndarray, log_probs: np.ndarray
    ) -> Iterator[tuple[int, Entity]]:
        """Yield entities, each with the index of its text."""
        chunks = chunks_of(self._kinds[labels], self._types[labels], counts)
        ends = counts.cumsum()
        indices = ends.searchsorted(chunks.first, "right")
        scores = span_scores(log_probs, chunks.first, chunks.end)
        columns = indices, (ends - counts)[indices], *chunks, scores
        for index, begin, first, end, kind, score in zip(*(column.tolist() for column in columns), strict=True):
            start, stop = int(offsets[first, 0]), int(offsets[end - 1, 1])
            where = {"start": start, "end": stop, "word_start": first - begin, "word_end": end - begin}
            yield index, Entity(label=self.entity_labels[kind], text=texts[index][start:stop], **where, score=score)


def span_scores(log_probs: np.ndarray, first: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the probabilities of spans: exact for a linear chain.

    Args:
        log_probs: The log probability of every word's inner tag, marginal and given the tag before, (words, 2).
        first: The index of the first word of each span, (spans,).
        end: The index after its last word, (spans,).
    """
    # The marginal of the first word and the conditionals of the others.
    values = log_probs[:, 1].astype(np.float64)
    values[first] = log_probs[first, 0]
    borders = np.stack([first, end], 1).ravel()
    sums = np.add.reduceat(np.append(values, 0.0), borders)[::2] if len(borders) else np.zeros(0)
    return np.exp(np.minimum(sums, 0))


def blocks_of(items: Iterable[Any], most: int, size: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Yield lists of up to `most` items, or fewer if the sum of their sizes reaches `MOST_AHEAD`."""
    block: list[Any] = []
    total = 0
    for item in items:
        block.append(item)
        total += size(item)
        if len(block) == most or total >= MOST_AHEAD:
            yield block
            block, total = [], 0
    if block:
        yield block


def batches_of(counts: np.ndarray, batch_size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches of sentences of similar length, the longest first; sentences without words are left out.

    Args:
        counts: The number of words of each sentence.
        batch_size: Sentences per batch; fewer if they are long.

    Yields:
        The mask (B, T) of a right-padded batch, and the indices (n,) of its n words among all words.
    """
    begins = counts.cumsum() - counts
    by_length = np.argsort(-counts, kind="stable")
    by_length = by_length[counts[by_length] > 0]
    while len(by_length):
        position = np.arange(counts[by_length[0]])
        size = min(batch_size, max(1, batch_size * WORDS_PER_SENTENCE // len(position)))
        batch, by_length = by_length[:size, None], by_length[size:]
        mask = position < counts[batch]
        yield mask, (begins[batch] + position)[mask]


def _bounds(counts: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the indices of the first word of every sentence and after its last."""
    ends = counts.cumsum()
    return zip((ends - counts).tolist(), ends.tolist(), strict=True)


def _joined_offsets(words: Any) -> np.ndarray:
    """Return start and end (N, 2) of words within their sentence, joined by blanks."""
    lengths = words.offsets[:, 1]
    stops = (lengths + 1).cumsum()
    before = np.append(0, stops)[(words.counts.cumsum() - words.counts).repeat(words.counts)]
    return np.stack([stops - 1 - lengths, stops - 1], 1) - before[:, None]
