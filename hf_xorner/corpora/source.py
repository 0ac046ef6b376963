"""Options of reading, and the sentences and repairs of every reader."""

import logging
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from ..errors import DataError
from .schemes import WRITTEN_SCHEMES

_log = logging.getLogger(__name__)


class Repairs:
    """Counts the repairs of a corpus by kind."""

    def __init__(self, strict: bool = False) -> None:
        """Start with no repairs.

        Args:
            strict: Raise DataError for every repair.
        """
        self.strict = strict
        self._found: dict[str, tuple[int, str]] = {}

    def add(self, kind: str, place: str, count: int = 1) -> None:
        """Count repairs of one kind.

        Args:
            kind: The kind, in words that follow a number: "I- tags that opened an entity became B-".
            place: The place of the first.
            count: Their number.

        Raises:
            DataError: If `strict` is set.
        """
        if self.strict:
            raise DataError(f"{place}: {count} {kind}; correct the data, or read them without strict.")
        before, first = self._found.get(kind, (0, place))
        self._found[kind] = (before + count, first)

    def __str__(self) -> str:
        return "; ".join(f"{count:,} {kind} (first: {place})" for kind, (count, place) in self._found.items())

    def report(self, source: str) -> None:
        """Log all repairs in one line, if there were any.

        Args:
            source: The corpus.
        """
        if self._found:
            _log.warning("%s: repaired: %s", source, self)


AUTO = "auto"
NONE = "none"
FORMATS = ("columns", "conll2012", "jsonl", "spans", "parquet", "arrow")
SCHEMES = ("plain", *WRITTEN_SCHEMES)
SEPARATORS = ("tab", "blank")


@dataclass
class Reading:
    """Options of reading; everything is recognised by default."""

    format: str = field(default=AUTO, metadata={"help": f"The format of local files: {', '.join(FORMATS)}."})
    scheme: str = field(default=AUTO, metadata={"help": f"The scheme of the tags: {', '.join(SCHEMES)}."})
    separator: str = field(default=AUTO, metadata={"help": f"What separates columns: {' or '.join(SEPARATORS)}."})
    token_column: str | None = field(
        default=None, metadata={"help": "The column of the words, by number from 0 (negative from the end) or name."}
    )
    tag_column: str | None = field(default=None, metadata={"help": "The column of the tags, likewise."})
    pos_column: str | None = field(
        default=None, metadata={"help": f"The column of the parts of speech, likewise, or {NONE!r}."}
    )
    comments: str = field(
        default=AUTO, metadata={"help": f"What begins a line of comment in files of columns, or {NONE!r}."}
    )
    strict: bool = field(default=False, metadata={"help": "Refuse what would otherwise be repaired."})

    def __post_init__(self) -> None:
        for name, allowed in (("format", FORMATS), ("scheme", SCHEMES), ("separator", SEPARATORS)):
            value = getattr(self, name)
            if value not in (AUTO, *allowed):
                raise DataError(f"{name}={value!r} is unknown; choose one of {', '.join((AUTO, *allowed))}.")
        if not isinstance(self.comments, str) or not self.comments:
            raise DataError(f"comments={self.comments!r} begins no line; give what does, {AUTO!r} or {NONE!r}.")
        # Python code may give numbers, where a command line gives strings.
        for name in ("token_column", "tag_column", "pos_column"):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, str(value))

    def reading(self) -> dict[str, Any]:
        """Return these fields without those of a subclass."""
        values = asdict(self)
        return {entry.name: values[entry.name] for entry in fields(Reading)}


class Sentence(NamedTuple):
    """A sentence with the tags of its source.

    Attributes:
        tokens: The words.
        tags: One tag for each word.
        source: The name of the source, to which a number is appended: ``"corpus/train.txt:"``, or
            ``"owner/name, train, row "``.
        line: That number: of the line of the first token, or of the one line or row that holds the whole sentence.
        lines_per_token: 1 where each token has a line of its own, 0 where one line or row holds the whole sentence.
        pos_tags: The parts of speech, if the source has them.
        doc_id: The document that the sentence belongs to, if the source has it.
    """

    tokens: list[str]
    tags: list[str]
    source: str
    line: int
    lines_per_token: int = 0
    pos_tags: list[str] | None = None
    doc_id: str | None = None

    def place(self, index: int = 0) -> str:
        """Return the place of a token, for messages."""
        return f"{self.source}{self.line + index * self.lines_per_token}"
