"""The lines of a file or of standard input, as bytes, and how far they have been read."""

import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ..data.textfile import BYTE_ORDER_MARK, bounded, damage_said, open_bytes
from ..errors import DataError

STDIN = "-"
MARK = BYTE_ORDER_MARK.encode()
BLANK = b" \t\r\n"


class Lines:
    r"""The lines of a file, plain or gzip, or of standard input; they end in ``\n`` alone."""

    def __init__(self, name: str) -> None:
        """Name a file, or `STDIN`, which can be read but once."""
        self.path = None if name == STDIN else Path(name)
        self.name = "standard input" if name == STDIN else name
        self.size = None if self.path is None else os.stat(self.path).st_size
        self._file: IO[bytes] | None = None
        self._head: list[bytes] = []

    def __iter__(self) -> Iterator[bytes]:
        if self.path is None:
            self._file, head, self._head = self._file or _standard_input(), self._head, []
            with damage_said(Path(self.name)):
                yield from chain(head, self._file)
            return
        with damage_said(self.path), open_bytes(self.path) as file:
            self._file = file
            yield from file
            self._file = None

    def first_line(self) -> str:
        """The first line that is not blank, without a byte-order mark, for recognising the format."""
        line = b""
        if self.path is not None:
            line = next((line for line in self if line.strip(BLANK + MARK)), b"")
        else:
            self._file = self._file or _standard_input()
            with damage_said(Path(self.name)):
                for line in self._file:
                    self._head.append(line)
                    if line.strip(BLANK + MARK):
                        break
        return line.decode("utf-8", "replace").replace(BYTE_ORDER_MARK, "")

    def position(self) -> int:
        """Bytes of the file as it lies on the disk that have been read by who reads on; 0 for standard input."""
        if self.path is None:
            return 0
        if self._file is None:
            return self.size or 0
        file: Any = self._file
        return file.raw.position()


def _standard_input() -> IO[bytes]:
    return bounded(sys.stdin.buffer, "standard input")


def decoded(raw: bytes, place: str) -> str:
    """Return the text of bytes.

    Raises:
        DataError: If they are no UTF-8.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = place
        before = raw.count(b"\n", 0, error.start)
        if before:
            name, number = place.rsplit(":", 1)
            line = f"{name}:{int(number) + before}"
        byte = raw[error.start]
        raise DataError(f"{line}: byte 0x{byte:02x} is not valid UTF-8; save the file as UTF-8.") from None
