"""Shared by all readers: options of reading, sentences, repairs, and sources, which decode text."""

import io
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO as File
from typing import Any, NamedTuple

from ..errors import DataError
from ..files import BYTE_ORDER_MARK, open_bytes, undecodable
from ..options import check_values, option
from .schemes import IO, WRITTEN_SCHEMES

_log = logging.getLogger(__name__)

# Number of bad lines that the log lists.
_LISTED = 10
# Share of bad spans up to which they are left out.
_MOST_BAD = 0.02


class ReadingLog:
    """Counts the repairs of a corpus by kind; collects notes on how it was read, and bad lines that were skipped."""

    def __init__(self, reading: "ReadingOptions") -> None:
        """Start with no repairs.

        Args:
            reading: The options: ``strict`` raises DataError for every repair, ``skip_bad_lines`` skips bad lines.
        """
        self.reading = reading
        self.strict = reading.strict
        self.skips = reading.skip_bad_lines and not reading.strict
        self._counts: Counter[str] = Counter()
        self._locations: dict[str, str] = {}  # of the first repair of each kind
        self._notes: dict[str, list[str]] = {}
        self._left_out: list[str] = []
        self._reasons: Counter[str] = Counter()  # of bad lines
        self._tagged = 0
        #: The number of BRAT's spans, and the errors of bad ones.
        self.spans, self.bad_spans = 0, list[DataError]()
        #: If `collects` is set, the errors of bad lines, which become bad records.
        self.collects, self.faults = False, list[DataError]()

    def add(self, kind: str, location: str, count: int = 1) -> None:
        """Count repairs of one kind.

        Args:
            kind: The kind, as words that follow a number: "I- tags that opened an entity became B-".
            location: The location of the first of these repairs.
            count: Their number.

        Raises:
            DataError: If `strict` is set.
        """
        if self.strict:
            raise DataError(f"{location}: {count} {kind}; correct the data, or read them without strict.")
        self._counts[kind] += count
        self._locations.setdefault(kind, location)

    def note(self, text: str, location: str) -> None:
        """Note how something was read.

        Args:
            text: A sentence without its full stop. Files with the same note share a line of the log.
            location: The file or dataset.
        """
        locations = self._notes.setdefault(text, [])
        if location not in locations:
            locations.append(location)

    def leave_out(self, fault: DataError, tagged: bool = False) -> None:
        """Count a bad line or record that is skipped, or raise its error if bad lines are not skipped.

        Args:
            fault: The error.
            tagged: True if the line has the tag of an entity, which is lost.
        """
        if self.collects:
            self.faults.append(fault)
            return
        if self.strict:
            raise fault
        if not self.skips:
            raise DataError(f"{str(fault).removesuffix('.')}, or pass skip_bad_lines.") from fault
        # Lines with the same fault differ in place, numbers and examples.
        reason = re.sub(r"'[^']*'|\d+", "…", str(fault).partition(";")[0].partition(": ")[2])
        self._reasons[reason] += 1
        self._tagged += tagged
        if len(self._left_out) < _LISTED:
            self._left_out.append(str(fault).partition(";")[0])

    def check_spans(self) -> None:
        """Count bad spans as repairs, or raise the error of the first if they are more than a share of all."""
        if len(self.bad_spans) > _MOST_BAD * self.spans:
            raise self.bad_spans[0]
        if self.bad_spans:
            first = str(self.bad_spans[0]).partition(";")[0]
            self.add("bad spans were left out", first, len(self.bad_spans))

    def report(self, source: str) -> None:
        """Log the notes, the repairs in one line, and the bad lines that were skipped.

        Args:
            source: The corpus.
        """
        for text, locations in self._notes.items():
            more_locations = f" and {len(locations) - 1} others" if len(locations) > 1 else ""
            _log.warning("%s%s: %s.", locations[0], more_locations, text)
        if self._counts:
            kinds = (f"{count:,} {kind} (first: {self._locations[kind]})" for kind, count in self._counts.items())
            _log.warning("%s: repaired: %s", source, "; ".join(kinds))
        if count := self._reasons.total():
            more = count - len(self._left_out)
            listed = [*self._left_out, f"and {more:,} more"] if more else self._left_out
            reasons = "; ".join(f"{number:,}: {reason}" for reason, number in self._reasons.most_common(_LISTED))
            bad = f"{count:,} bad lines or records were left out, {self._tagged:,} of them with tags of entities"
            _log.warning("%s: %s (%s):\n  %s", source, bad, reasons, "\n  ".join(listed))


AUTO = "auto"
NONE = "none"
WRITTEN_FORMATS = ("conll", "csv", "jsonl", "spans", "parquet", "arrow")
FORMATS = (*WRITTEN_FORMATS, "conllu", "conll2012", "brat", "spacy")
SCHEMES = ("plain", *WRITTEN_SCHEMES, IO)
SEPARATORS = {"tab": "\t", "blank": " "}


@dataclass
class ReadingOptions:
    """Options of reading; everything is recognised by default."""

    format: str = option(AUTO, f"The format of local files: {', '.join(FORMATS)}.", choices=(AUTO, *FORMATS))
    scheme: str = option(AUTO, f"The scheme of the tags: {', '.join(SCHEMES)}.", choices=(AUTO, *SCHEMES))
    separator: str = option(AUTO, f"Separator of columns: {' or '.join(SEPARATORS)}.", choices=(AUTO, *SEPARATORS))
    token_column: str | None = option(
        None, "The column of the words, by number from 0 (negative from the end) or name."
    )
    tag_column: str | None = option(None, "The column of the tags, by number or name.")
    pos_column: str | None = option(None, f"The column of the parts of speech, by number or name, or {NONE!r}.")
    tag_names: list[str] = option(
        [], "The names of the tags in the order of their numbers, for JSON or tables with numbers."
    )
    comments: str = option(
        AUTO, f"The beginning of comment lines in files of columns, several as in '#|%', or {NONE!r}."
    )
    encoding: str = option(AUTO, "The encoding of text files: utf-8, latin-1, cp1252 or any other that Python knows.")
    strip: str | None = option(
        None, "A regular expression to remove from every word: '^en:' (WikiANN), '[0-9]$' (Weibo)."
    )
    types: list[str] = option(
        [],
        "New types of entities, as in person=PER 'product=?' event=O: person becomes PER, words of products have an "
        "unknown tag, and words of events are outside of entities.",
    )
    skip_bad_lines: bool = option(
        False, "Skip bad lines, rows of CSV and JSON records, and list the first ten of them."
    )
    strict: bool = option(False, "Raise an error in place of each repair.")

    def __post_init__(self) -> None:
        check_values(self)
        if self.encoding != AUTO:
            try:
                "".encode(self.encoding)  # fails for codecs such as hex, which do not decode text
            except LookupError as error:
                raise DataError(
                    f"encoding: {error}; give utf-8, latin-1, cp1252 or another that Python knows."
                ) from None
        try:
            re.compile(self.strip or "")
        except re.error as error:
            raise DataError(f"strip={self.strip!r} is not a regular expression ({error}); correct it.") from None
        for name, separator in (("types", ","), ("tag_names", None)):
            value = getattr(self, name) or []  # Python code may give None, one string or, for types, a dict
            if isinstance(value, Mapping):
                value = [f"{old}={new}" for old, new in value.items()]
            setattr(self, name, value.split(separator) if isinstance(value, str) else list(value))
        _ = self.new_types  # raises if one is invalid
        # Python code may give numbers, where a command line gives strings.
        for name in ("token_column", "tag_column", "pos_column"):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, str(value))

    @property
    def new_types(self) -> dict[str, str]:
        """The new types in `types`, by their old types."""
        new_types: dict[str, str] = {}
        for pair in self.types:
            old, *new = (side.strip() for side in pair.split("="))
            if not old or len(new) != 1 or not new[0] or old in new_types:
                raise DataError(
                    f"types={self.types!r}: {pair!r} is not a pair old=new, or its type occurs twice; write person=PER."
                )
            new_types[old] = new[0]
        return new_types

    def reading(self) -> dict[str, Any]:
        """Return the fields of this class, without those of a subclass."""
        return {entry.name: getattr(self, entry.name) for entry in fields(ReadingOptions)}


class Sentence(NamedTuple):
    """A sentence with the tags of its source.

    Attributes:
        tokens: The words.
        tags: One tag for each word.
        source: The name of the source, to which a number is appended: ``"corpus/train.txt:"``, or
            ``"owner/name, train, row "``.
        line: The number: the line of the first token, or the line or row of the whole sentence.
        pos_tags: The parts of speech, if the source has them.
        doc_id: The document of the sentence, if the source has documents.
        lines: The line of each token, if tokens are on separate lines.
    """

    tokens: list[str]
    tags: list[str]
    source: str
    line: int
    pos_tags: list[str] | None = None
    doc_id: str | None = None
    lines: list[int] | None = None

    def location(self, index: int = 0) -> str:
        """Return the location of a token, for messages."""
        return f"{self.source}{self.lines[index] if self.lines else self.line}"


# --- Sources ---------------------------------------------------------------------------------------------------------

#: BRAT's annotation of a text, and its text.
ANNOTATION_SUFFIX, TEXT_SUFFIX = ".ann", ".txt"
#: Only these two separate columns: a non-breaking blank or another Unicode blank belongs to its token.
BLANKS = " \t"
# Number of characters by which a text is recognised: its format, its columns and, in a stream, its encoding.
_SAMPLE = 200_000
_BEYOND_ASCII = bytes(range(0x80, 0x100))


class Record(NamedTuple):
    """A record of an input to tag.

    Attributes:
        fields: The record as an object.
        item: Its text, or its list of words; None for a bad record.
        fault: The error message of a bad record.
    """

    fields: dict[str, Any]
    item: str | list[str] | None
    fault: str = ""


@dataclass
class Input:
    """A file, a stream or a text in memory, with the options of reading; nothing is read before it is needed.

    Attributes:
        path: The file, or a name for messages.
        repairs: Counts repairs and bad lines; has the options of reading.
        document: The name of the document that the file is, if each file is one.
        text: The text; by default that of the file.
        blocks: Blocks of whole lines of a stream, see `line_blocks`; its words or texts may have no tags.
    """

    path: Path
    repairs: ReadingLog
    document: str = ""
    text: str | None = None
    blocks: Iterator[bytes] | None = None

    @property
    def reading(self) -> ReadingOptions:
        """The options of reading."""
        return self.repairs.reading

    @property
    def labelled(self) -> bool:
        """True if words need tags."""
        return self.blocks is None

    @cached_property
    def _content(self) -> tuple[str, Iterator[str]]:
        if self.blocks is None:
            text = text_of(self.path, self.repairs) if self.text is None else self.text
            text = text.removeprefix(BYTE_ORDER_MARK)
            return text[: text.find("\n", _SAMPLE) + 1 or None], io.StringIO(text, newline="\n")
        data = next(self.blocks, b"")
        try:
            text, encoding = _decoded(data, self.path, self.repairs)
        except DataError:  # damaged UTF-8, whose bad records may be skipped
            if 0 in data:
                raise
            text, encoding = data.decode("utf-8", "surrogateescape"), "utf-8"
        text = text.removeprefix(BYTE_ORDER_MARK)
        texts = chain([text], (block.decode(encoding, "surrogateescape") for block in self.blocks))
        return text, chain.from_iterable(io.StringIO(text, newline="\n") for text in texts)

    @property
    def sample(self) -> str:
        """The first characters of the text, as whole lines."""
        return self._content[0]

    @property
    def lines(self) -> Iterator[str]:
        r"""The lines with their ends, without the byte-order mark of a file; only ``\n`` separates lines."""
        return self._content[1]

    def sentence(self, rows: Sequence[tuple[int, str, str, str]], with_pos: bool, doc_id: str | None) -> list[Sentence]:
        """Return the sentence of rows: the number of the line, the word, its tag and its part of speech.

        Without rows, there is no sentence, or an empty one if all lines became bad records.
        """
        if not rows:
            return [Sentence([], [], f"{self.path}:", 0)] if self.repairs.faults else []
        lines, tokens, tags, pos_tags = (list(values) for values in zip(*rows, strict=True))
        return [Sentence(tokens, tags, f"{self.path}:", lines[0], pos_tags if with_pos else None, doc_id, lines)]

    @cached_property
    def first_lines(self) -> list[str]:
        """The lines of `sample`, see `clean_lines`."""
        return list(clean_lines(self.sample.split("\n")))


def line_blocks(file: File[bytes]) -> Iterator[bytes]:
    """Yield the content of a file in blocks of whole lines, by the first of which a text is recognised."""
    while block := file.read(_SAMPLE) + file.readline():
        yield block


def clean_lines(lines: Iterable[str]) -> Iterator[str]:
    r"""Yield lines without ``\n``, ``\r\n`` and byte-order marks; blank ones are empty."""
    for line in lines:
        line = line.replace(BYTE_ORDER_MARK, "").rstrip("\r\n")
        yield line if line.strip(BLANKS) else ""


def text_of(path: Path, repairs: ReadingLog) -> str:
    """Read a text file, plain or gzip, in the option `encoding`, or by default in UTF-8, Windows-1252 or Latin-1.

    Raises:
        DataError: If it is not text in this encoding, or is damaged UTF-8.
    """
    with open_bytes(path) as file:
        return _decoded(file.read(), path, repairs)[0]


def _decoded(data: bytes, path: Path, repairs: ReadingLog) -> tuple[str, str]:
    """Return a text, and the name of its encoding."""
    if data.startswith(b"PK\x03\x04"):
        raise DataError(f"{path}: is a zip archive; unpack it and name a file or folder of it.")
    named = repairs.reading.encoding
    encoding = "utf-8" if named == AUTO else named
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError as error:
        fault = undecodable(path, error, encoding, ", or name its encoding")
    if named != AUTO:
        raise fault
    beyond_ascii = len(data) - len(data.translate(None, _BEYOND_ASCII))
    invalid = len(data) - len(data.decode(errors="ignore").encode())
    # If most bytes beyond ASCII form valid UTF-8, the file is damaged UTF-8.
    if 2 * invalid < beyond_ascii or b"\0" in data:
        raise fault
    try:
        text, encoding, name = data.decode("cp1252"), "cp1252", "Windows-1252"
    except UnicodeError:  # Windows-1252 has no characters for five bytes
        text, encoding, name = data.decode("latin-1"), "latin-1", "Latin-1"
    repairs.note(f"not UTF-8, so read as {name}; name another one as encoding if that is wrong", str(path))
    return text, encoding
