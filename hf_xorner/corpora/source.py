"""What every reader yields: a sentence as its source has it, and where it stands."""

import logging
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from ..errors import DataError
from .schemes import WRITTEN_SCHEMES

_log = logging.getLogger(__name__)


class Repairs:
    """The repairs of a corpus by their kind."""

    def __init__(self, strict: bool = False) -> None:
        """Begin a count.

        Args:
            strict: Refuse every repair.
        """
        self.strict = strict
        self._found: dict[str, tuple[int, str]] = {}

    def add(self, kind: str, place: str, count: int = 1) -> None:
        """Count repairs of one kind.

        Args:
            kind: What was repaired and how, in words that a number can precede: "I- tags that opened an entity became
                B-".
            place: Where the first of them stands.
            count: How many they are.

        Raises:
            DataError: If repairs are refused.
        """
        if self.strict:
            raise DataError(f"{place}: {count} {kind}; correct the data, or read them without strict.")
        before, first = self._found.get(kind, (0, place))
        self._found[kind] = (before + count, first)

    def __str__(self) -> str:
        return "; ".join(f"{count:,} {kind} (first: {place})" for kind, (count, place) in self._found.items())

    def report(self, source: str) -> None:
        """Log one line that sums all repairs up, if there were any.

        Args:
            source: What was repaired.
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
    """What a reader may be told; everything is recognised by default."""

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
        # Numbers are welcome from Python, where a command line gives strings.
        for name in ("token_column", "tag_column", "pos_column"):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, str(value))

    def reading(self) -> dict[str, Any]:
        """Return these fields alone, without those of a class that adds more."""
        values = asdict(self)
        return {entry.name: values[entry.name] for entry in fields(Reading)}


class Sentence(NamedTuple):
    """A sentence before its tags are understood.

    Attributes:
        tokens: The words.
        tags: One tag for each, as the source has it.
        source: Where the sentence comes from, in words that a number can follow: ``"corpus/train.txt:"``, or
            ``"owner/name, train, row "``.
        line: That number: of the line of the first token, or of the one line or row that holds the whole sentence.
        lines_per_token: 1 where each token has a line of its own, 0 where one line or row holds the whole sentence.
        pos_tags: The parts of speech, where the source has them.
        doc_id: The document that the sentence belongs to, where the source tells.
    """

    tokens: list[str]
    tags: list[str]
    source: str
    line: int
    lines_per_token: int = 0
    pos_tags: list[str] | None = None
    doc_id: str | None = None

    def place(self, index: int = 0) -> str:
        """Say where the token of an index stands."""
        return f"{self.source}{self.line + index * self.lines_per_token}"
