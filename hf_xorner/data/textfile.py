"""Open text files, plain or compressed, and say what is wrong with them."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO, cast

from ..errors import DataError

BYTE_ORDER_MARK = "\ufeff"
#: Bytes of a line above which it is refused instead of filling the memory.
LONGEST_LINE = 1 << 27
_BUFFER = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class BoundedLines(io.RawIOBase):
    """The bytes of a file, decompressed if its first bytes are those of gzip; reading a line without end raises."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self._file = file
        compressed = cast("io.BufferedReader", file).peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
        self._plain = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if compressed else file
        self._lines = 0
        self._length = 0  # of the line that is being read

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes.

        Raises:
            DataError: For a line longer than `LONGEST_LINE`.
        """
        data = self._plain.read1(len(buffer))  # type: ignore[attr-defined]
        buffer[: len(data)] = data
        end = data.rfind(b"\n")
        self._lines += data.count(b"\n")
        self._length = self._length + len(data) if end < 0 else len(data) - end - 1
        if self._length > LONGEST_LINE:
            raise DataError(
                f"{self.name}:{self._lines + 1}: the line is longer than {LONGEST_LINE:,} bytes; break it into lines."
            )
        return len(data)

    def position(self) -> int:
        """Bytes of the file that have been read, before decompression."""
        return self._file.tell()

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed if its first bytes are those of gzip; see `BoundedLines`."""
    return bounded(path.open("rb"), str(path))


def bounded(file: IO[bytes], name: str) -> IO[bytes]:
    """Return an open file as `open_bytes` would; `name` is for messages."""
    return cast("IO[bytes]", io.BufferedReader(BoundedLines(file, name), _BUFFER))


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    r"""Open a text file in UTF-8, plain or gzip; lines end in ``\n`` alone, as other breaks may stand inside a token.

    Raises:
        DataError: While the file is read, for a byte that is not UTF-8 (with its line) or a damaged gzip file.
    """
    try:
        with open_bytes(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="\n") as text:
            yield text
    except UnicodeDecodeError:
        # The decoder works on large blocks and does not know the line: look for it only now that it is needed.
        raise _undecodable(path) from None
    except _DAMAGE as error:
        raise _damaged(path, error) from None


@contextmanager
def damage_said(path: Path) -> Iterator[None]:
    """Say of which file it is that decompression fails in, where its bytes are read without `open_text`.

    Raises:
        DataError: For a damaged gzip file.
    """
    try:
        yield
    except _DAMAGE as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: the gzip file is damaged ({error}); compress or fetch it again.")


def _undecodable(path: Path) -> DataError:
    try:
        with open_bytes(path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    byte = line[error.start]
                    return DataError(f"{path}:{number}: byte 0x{byte:02x} is not valid UTF-8; save the file as UTF-8.")
    except _DAMAGE as error:
        # The line of the byte goes on to where the damage is.
        return _damaged(path, error)
    return DataError(f"{path}: the file is not valid UTF-8; save it as UTF-8.")
