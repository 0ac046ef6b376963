"""What every reader yields: a sentence as its source has it, and where it stands."""

from typing import NamedTuple


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
