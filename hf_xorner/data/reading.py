"""How a source is to be read, where that is not left to be recognised."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..errors import DataError

AUTO = "auto"
NONE = "none"
FORMATS = ("columns", "conll2012", "jsonl", "spans", "parquet", "arrow")
SCHEMES = ("plain", "iob1", "iob2", "bioes", "bilou", "bmes")
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
