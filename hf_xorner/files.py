"""Files that one process at a time may write."""

from __future__ import annotations

import glob
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

#: Seconds to wait for a lock: long enough for one that is just being released.
_PATIENCE = 1.0


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


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file atomically and flush it to the disk: readers find the old file or the new one.

    Args:
        path: The file, which is replaced, even if it is a link. Its folder is created.
        content: The bytes, or text that is written as UTF-8.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with new.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
    return path
