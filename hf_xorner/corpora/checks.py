"""Refuse a corpus whose words or tags seem to be read from a wrong column, and note what should be known of them."""

import re
from collections.abc import Collection, Sequence
from itertools import islice

from ..errors import DataError
from .schemes import OUTSIDE_TAG, Scheme, is_of
from .source import AUTO, Reading, Repairs

#: More distinct tags without ``O`` and prefixes than this are not parts of speech.
MOST_PLAIN_TAGS = 100
# Words that are looked at, and how many are enough to tell something from them.
_SAMPLE, _ENOUGH = 20_000, 20
_NUMBER = re.compile(r"[-+]?\d[\d.,:/-]*%?")
_MOST_NUMBERS = 0.5
# A language as WikiANN marks it, and the number of a character in its word as Weibo's corpus does.
_PREFIX = re.compile(r"[a-z]{2,3}(-[a-z]+)*:(?=.)")
_DIGITS = tuple("0123456789")
_SHOWN = 3


class WordSample:
    """The first words of a split."""

    def __init__(self) -> None:
        self.count = 0
        self.numbers = 0
        self.distinct: set[str] = set()
        self.first: list[str] = []
        # A prefix that all words share, and whether all end in a digit.
        self.prefix: str | None = None
        self.with_digit = True

    def add(self, words: Sequence[str]) -> None:
        """Add the words of a sentence."""
        if self.count >= _SAMPLE or not words:
            return
        if not self.count:
            found = _PREFIX.match(words[0])
            self.prefix = found[0] if found else None
        self.first += words[: _SHOWN - len(self.first)]
        self.count += len(words)
        self.numbers += sum(_NUMBER.fullmatch(word) is not None for word in words)
        self.distinct.update(words)
        if self.prefix and not all(word.startswith(self.prefix) and word != self.prefix for word in words):
            self.prefix = None
        if self.with_digit:
            self.with_digit = all(len(word) > 1 and word.endswith(_DIGITS) for word in words)


def refuse_numbers(sample: WordSample, reading: Reading, source: str, column: str) -> None:
    """Raise DataError if most words of a split are numbers, unless their column was named.

    Args:
        sample: The first words.
        reading: The options of reading.
        source: The split, for messages.
        column: The column that the words were read from, for messages; may be empty.
    """
    if reading.token_column is None and sample.count >= _ENOUGH and sample.numbers > _MOST_NUMBERS * sample.count:
        raise DataError(
            f"{source}: {sample.numbers / sample.count:.0%} of the words{_from(column)} are numbers, such as "
            f"{_examples(sample.first)}; name the column of the words as token_column, even if it is this one."
        )


def refuse_strange_tags(
    tags: Collection[str], scheme: Scheme, sample: WordSample, reading: Reading, source: str, column: str
) -> None:
    """Raise DataError if the tags of a split do not look like tags, unless their column or scheme was named.

    Args:
        tags: The distinct tags.
        scheme: The scheme that was recognised.
        sample: The first words.
        reading: The options of reading.
        source: The split, for messages.
        column: The column that the tags were read from, for messages; may be empty.
    """
    if reading.tag_column is not None or reading.scheme != AUTO or sample.count < _ENOUGH:
        return
    strange = tags if scheme == "plain" else {tag for tag in tags if not is_of(scheme, tag)}
    fault = ""
    if scheme == "plain" and len(tags) == 1:
        fault = "all words have the same tag"
    elif len(strange) > MOST_PLAIN_TAGS and OUTSIDE_TAG not in strange:
        fault = f"{len(strange):,} different tags that are neither O nor begin with B- or I-"
    elif len(strange) > max(_ENOUGH, len(sample.distinct) / 2):
        fault = f"{len(strange):,} different tags for {len(sample.distinct):,} different words"
    if fault:
        raise DataError(
            f"{source}: {fault}{_from(column)}, such as {_examples(sorted(strange))}; name the column of the tags as "
            f"tag_column, or pass scheme=plain if these are the tags{_and_words(sample)}."
        )


def note_words(sample: WordSample, repairs: Repairs, source: str) -> None:
    """Note what all words of a split share and texts to be tagged will lack."""
    if sample.count < _ENOUGH:
        return
    if sample.prefix:
        repairs.note(f"every word begins with {sample.prefix!r}; pass strip='^{sample.prefix}' to remove it", source)
    elif sample.with_digit and not sample.numbers:
        repairs.note(
            f"every word ends in a digit ({_examples(sample.first)}); pass strip='[0-9]$' to remove it", source
        )


def note_plain_tags(tags: Collection[str], repairs: Repairs, source: str) -> None:
    """Note that tags are read as labels of single words."""
    shown = _examples(sorted(set(tags) - {OUTSIDE_TAG}))
    kind = "the tags" if OUTSIDE_TAG in tags else "parts of speech or the like"
    repairs.note(
        f"{kind} ({len(tags)} different ones, such as {shown}) have no prefixes such as B- and I-, so each word has a "
        "label of its own",
        source,
    )


def _from(column: str) -> str:
    return f" in {column}" if column else ""


def _and_words(sample: WordSample) -> str:
    return f" of words such as {_examples(sample.first)}"


def _examples(values: Collection[str]) -> str:
    return ", ".join(repr(value[:40]) for value in islice(values, _SHOWN))
