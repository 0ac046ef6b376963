"""Read and write files: decompression, atomic writes, SHA-256, and locks."""

from __future__ import annotations

import glob
import gzip
import hashlib
import io
import json
import os
import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO, cast

from filelock import FileLock, Timeout

from .errors import DataError

#: The file in which a training run records its facts, beside its model.
FACTS_FILE = "facts.json"

BYTE_ORDER_MARK = "\ufeff"
#: Bytes of a line above which it is refused instead of filling the memory.
LONGEST_LINE = 1 << 27
_GZIP_MAGIC = b"\x1f\x8b"
DECOMPRESSION_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)
# Bytes that are read at a time.
_TEXT_BLOCK, _HASH_BLOCK = 1 << 16, 1 << 20
# Seconds to wait for a lock: long enough for one that is just being released.
_PATIENCE = 1.0


# --- Reading ---------------------------------------------------------------------------------------------------------


class BoundedLines(io.RawIOBase):
    """The bytes of a file, decompressed if they are gzip; raises for a line without end."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self.longest = LONGEST_LINE
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
            DataError: For a line longer than `longest`.
        """
        data = self._plain.read1(len(buffer))  # type: ignore[attr-defined]
        buffer[: len(data)] = data
        end = data.rfind(b"\n")
        self._lines += data.count(b"\n")
        self._length = self._length + len(data) if end < 0 else len(data) - end - 1
        if self._length > self.longest:
            raise DataError(
                f"{self.name}:{self._lines + 1}: the line is longer than {self.longest:,} bytes; break it into lines."
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
    """Open a file for reading, decompressed if it is gzip; see `BoundedLines`."""
    return bounded(path.open("rb"), str(path))


def bounded(file: IO[bytes], name: str) -> IO[bytes]:
    """Return an open file as `open_bytes` does; `name` is for messages."""
    return cast("IO[bytes]", io.BufferedReader(BoundedLines(file, name), _TEXT_BLOCK))


@contextmanager
def open_text(path: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    r"""Open a text file, plain or gzip; lines end in ``\n`` only, as a token may contain other line breaks.

    Args:
        path: The file.
        encoding: Its encoding.

    Raises:
        DataError: While the file is read, for a byte that the encoding does not have (with its line) or a damaged gzip
            file.
    """
    try:
        with open_bytes(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="\n") as text:
            yield text
    except UnicodeError:
        # The decoder works on large blocks and does not know the line: look for it only now that it is needed.
        raise undecodable(path, encoding) from None
    except DECOMPRESSION_ERRORS as error:
        raise _damaged(path, error) from None


@contextmanager
def damage_reported(path: Path) -> Iterator[None]:
    """Raise DataError with the file's name for a damaged gzip file, where it is read without `open_text`."""
    try:
        yield
    except DECOMPRESSION_ERRORS as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: the gzip file is damaged ({error}); compress or fetch it again.")


def undecodable(path: Path, encoding: str = "utf-8") -> DataError:
    """Return the error for the first byte of a file that its encoding does not have."""
    name = "UTF-8" if encoding == "utf-8" else encoding
    remedy = "save the file as UTF-8" if encoding == "utf-8" else "name another encoding"
    try:
        with open_bytes(path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode(encoding)
                except UnicodeDecodeError as error:
                    return DataError(f"{path}:{number}: byte 0x{line[error.start]:02x} is not valid {name}; {remedy}.")
    except DECOMPRESSION_ERRORS as error:
        # The line of the byte goes on to where the damage is.
        return _damaged(path, error)
    # In an encoding with two bytes a character, lines of bytes are no lines.
    except UnicodeError:
        pass
    return DataError(f"{path}: the file is not valid {name}; {remedy}.")


# --- Writing ---------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(path: Path, flush: bool = True) -> Iterator[Path]:
    """Yield a path to write to, which replaces a file at the end; after an error the file is as it was.

    A file that is being written lies beside the one that it replaces, so a killed process leaves no half file under the
    name. A link is replaced, not followed.

    Args:
        path: The file, whose folder is created.
        flush: Wait until the content is on the disk before it gets the name, so that a power failure cannot leave a
            half file either.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        yield new
        if flush:
            flush_to_disk(new)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes, flush: bool = True) -> Path:
    """Write a file as `replacing` does, text in UTF-8, and return its path."""
    with replacing(path, flush) as new:
        new.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def check_apart(output: str | Path, *inputs: str | Path) -> None:
    """Check that writing an output would not destroy an input, whichever names or links lead to both.

    Args:
        output: The file to write, or the folder whose content is replaced. If single files are written into a folder,
            give the files.
        inputs: Files and folders that are read; an output that is a file of a folder that is read is refused too.
            Inputs that do not exist, such as names on the Hub, are ignored.

    Raises:
        DataError: If the output is an input.
    """
    target = Path(output).expanduser()
    if not target.exists():
        return
    for name in inputs:
        source = Path(name).expanduser()
        if not source.exists():
            continue
        inside = source.rglob("*") if source.is_dir() and not target.is_dir() else ()
        if source.samefile(target) or any(path.exists() and path.samefile(target) for path in inside):
            raise DataError(f"{output}: is an input ({name}), which would be lost; name another output.")


def flush_to_disk(path: Path) -> None:
    """Wait until a file or the names in a folder are on the disk."""
    if os.name == "nt":
        return  # Windows flushes only what is open for writing.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:  # hashlib.file_digest came with Python 3.11
        while block := file.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def file_fingerprint(path: Path) -> dict[str, Any]:
    """Return the ``bytes`` and the ``sha256`` of a file, or of all files of a folder together with their names."""
    if path.is_file():
        return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    inside = sorted(found for found in path.rglob("*") if found.is_file())
    names = "".join(json.dumps([found.relative_to(path).as_posix(), sha256_of(found)]) for found in inside)
    return {
        "bytes": sum(found.stat().st_size for found in inside),
        "sha256": hashlib.sha256(names.encode()).hexdigest(),
    }


# --- Locks -----------------------------------------------------------------------------------------------------------


class LockedError(ValueError):
    """Another process holds a lock."""


@contextmanager
def locked(path: Path, output: Path | str, process: int = 0, processes: int = 1) -> Iterator[None]:
    """Hold the lock of an output, so that no other run writes it.

    The operating system releases the lock of a process that ends, even if it is killed; the lock file that it leaves
    behind is taken over. Each process of a distributed run holds a lock of its own, so the output stays locked until
    the last of them has ended. A thread that holds the lock already may take it again.

    Args:
        path: The lock file. Its folder is created, and the file is removed at the end.
        output: The output, for the message.
        process: The number of this process in its distributed run.
        processes: The number of processes in that run.

    Raises:
        LockedError: If a process of another run holds the lock.
        OSError: If the lock file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if process == 0:
        for other in path.parent.glob(f"{glob.escape(path.name)}-*"):
            # The other processes of this run take their own locks; a run with more of them may have left some alive.
            number = other.name.rpartition("-")[2]
            if number.isdecimal() and int(number) >= processes:
                with _held(other, output):
                    pass
    with _held(path.with_name(f"{path.name}-{process}") if process else path, output):
        yield


@contextmanager
def _held(path: Path, output: Path | str) -> Iterator[None]:
    with ExitStack() as stack:
        lock = FileLock(path.absolute(), timeout=_PATIENCE, is_singleton=True)
        if not lock.is_locked:
            try:
                stack.enter_context(lock)
            except Timeout:
                raise LockedError(
                    f"{output} is being written by {_holder_of(path)}; wait until it ends, end it, or choose another "
                    "output."
                ) from None
            own = f"process {os.getpid()} on {socket.gethostname()}"
            # Removed before the lock is released: a process that waits for a removed file takes a new one.
            stack.callback(_remove, path, own)
            with suppress(OSError):
                path.write_text(own, encoding="utf-8")
        yield


def _holder_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") or "another process"
    except (OSError, ValueError):  # Windows may refuse to read a locked file.
        return "another process"


def _remove(path: Path, own: str) -> None:
    # If somebody has removed the folder, the file in its place is another run's.
    if _holder_of(path) == own:
        with suppress(OSError):
            path.unlink()
