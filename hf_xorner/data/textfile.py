"""Open text files, plain or compressed, and say what is wrong with them."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO, cast

from .errors import DataError

BYTE_ORDER_MARK = "\ufeff"
_GZIP_MAGIC = b"\x1f\x8b"
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed if its first bytes are those of gzip."""
    with path.open("rb") as file:
        compressed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    return cast("IO[bytes]", gzip.open(path)) if compressed else path.open("rb")


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


def is_compressed(head: bytes) -> bool:
    """Tell whether the first bytes of a file are those of gzip."""
    return head.startswith(_GZIP_MAGIC)


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
