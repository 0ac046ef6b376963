"""Count what was repaired, or refuse to repair."""

import logging

from ..errors import DataError

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
