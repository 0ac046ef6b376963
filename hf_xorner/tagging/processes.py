"""Several processes that share a run: they find each other, and their pieces come together, through files alone."""

import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..errors import DataError
from .partial import Partial, Piece, beside

# Seconds between two looks at what another process has written, and between two signs of life.
_LOOK = 0.05
_BEAT = 1.0


class Share(NamedTuple):
    """Which of how many processes this one is."""

    rank: int
    world: int

    @classmethod
    def of_environment(cls) -> "Share":
        """As torchrun and accelerate launch tell their processes."""
        return cls(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))


class Signs:
    """Tells for how long a file has not changed: a process that lives touches its own."""

    def __init__(self, path: Path, timeout: float, who: str) -> None:
        """Look at a file from now on.

        Args:
            path: The file.
            timeout: Seconds without a change after which its process is given up.
            who: The process, for the message.
        """
        self.path, self.timeout, self.who = path, timeout, who
        self._last: Any = None
        self._since = time.monotonic()

    def look(self) -> None:
        """Wait for a moment, and give up a process that has shown no sign of life for too long."""
        try:
            stat = os.stat(self.path)
            now: Any = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        except FileNotFoundError:
            now = None
        if now != self._last:
            self._last, self._since = now, time.monotonic()
        elif time.monotonic() - self._since > self.timeout:
            raise DataError(
                f"{self.who} has given no sign of life for {self.timeout:g} seconds; look at its messages, and start "
                "again, which goes on from what is done."
            )
        time.sleep(_LOOK)


@contextmanager
def signs_of_life(path: Path) -> Iterator[None]:
    """Touch a file as long as this process lives and is about its work."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(_BEAT):
            try:
                os.utime(path)
            except OSError:  # the run is over, or the file not there yet
                continue

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Spool:
    """The pieces of one process, one after the other, in a file that the first process reads as it grows.

    Line 1 names the start of the process that writes it, line 2 the start of the first process, so that neither takes
    what an earlier run has left for the present one.
    """

    def __init__(self, output: Path, rank: int) -> None:
        """Begin anew."""
        self.path = spool_path(output, rank)
        self.name = uuid.uuid4().hex
        self.fault_at: int | None = None
        new = self.path.with_name(f"{self.path.name}.new")
        self._file: IO[bytes] = new.open("wb")
        self._write(f"{self.name}\n".encode())
        os.replace(new, self.path)

    def answer(self, run: str) -> None:
        """Say that the first process has been heard."""
        self._write(f"{run}\n".encode())

    def add(self, piece: Piece) -> None:
        """Write a piece."""
        head = {**piece._asdict(), "content": len(piece.content)}
        self._write(json.dumps(head).encode() + b"\n" + piece.content)

    def add_fault(self, chunk: int, fault: str) -> None:
        """Write that a chunk could not be done; there will be no other after it."""
        self.fault_at = chunk
        self._write(json.dumps({"chunk": chunk, "fault": fault}).encode() + b"\n")

    def wait_for_run(self, output: Path, timeout: float) -> int:
        """Wait until the first process has seen this one; return the chunk with which work begins."""
        path = run_path(output)
        signs = Signs(path, timeout, "process 0")
        while True:
            run = _read_json(path)
            if run and run["names"].get(self.path.name) == self.name and run["first"] is not None:
                self.answer(run["run"])
                return run["first"]
            signs.look()

    def _write(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()

    def close(self) -> None:
        """Write no more."""
        self._file.close()


class Gathering:
    """What the first process does for all: tells them where to begin, and brings their pieces in order."""

    def __init__(self, output: Path, world: int, timeout: float) -> None:
        """Say that the run has begun, though not yet where.

        Args:
            output: The output.
            world: How many processes there are.
            timeout: Seconds without a sign of life after which a process is given up.
        """
        self.path = run_path(output)
        self.output, self.world = output, world
        self.run = uuid.uuid4().hex
        self.first: int | None = None
        self._names: dict[str, str] = {}
        self._files: list[IO[bytes] | None] = [None] * world
        self._signs = [Signs(spool_path(output, rank), timeout, f"process {rank}") for rank in range(world)]
        self.publish()

    def publish(self) -> None:
        """Say which processes have been seen, and with which chunk work begins."""
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_text(json.dumps({"run": self.run, "names": self._names, "first": self.first}), encoding="utf-8")
        os.replace(new, self.path)

    def begin(self, first: int) -> None:
        """Say with which chunk work begins."""
        self.first = first
        self.publish()
        self._meet()

    def pieces(self, partial: Partial, until: int | None = None) -> Iterator[Piece]:
        """Yield pieces in order, which the caller adds to the output: those that are there, or all up to a chunk."""
        while until is None or partial.state.chunks < until:
            chunk = partial.state.chunks
            rank = chunk % self.world
            piece = self._next(rank, chunk)
            if piece is not None:
                yield piece
            elif until is None:
                return
            else:
                self._signs[rank].look()

    def _meet(self) -> bool:
        """Look for processes that have not been seen to answer; tell whether all have."""
        for rank in range(self.world):
            if self._files[rank] is not None:
                continue
            path = spool_path(self.output, rank)
            try:
                file = path.open("rb")
            except FileNotFoundError:
                continue
            name, answer = (file.readline().decode("ascii", "replace") for _ in range(2))
            if answer == f"{self.run}\n":
                self._files[rank] = file
                continue
            file.close()
            if name.endswith("\n") and self._names.get(path.name) != name.strip():
                self._names[path.name] = name.strip()
                self.publish()
        return None not in self._files

    def _next(self, rank: int, chunk: int) -> Piece | None:
        """The next piece of a process, if it is there as a whole."""
        self._meet()
        file = self._files[rank]
        if file is None:
            return None
        start = file.tell()
        line = file.readline()
        if line.endswith(b"\n"):
            head = json.loads(line)
            if head["chunk"] != chunk:
                raise DataError(f"process {rank} has done chunk {head['chunk']} and not {chunk}; start all alike.")
            if "fault" in head:
                raise DataError(head["fault"])
            content = file.read(head["content"])
            if len(content) == head["content"]:
                return Piece(**{**head, "content": content})
        file.seek(start)
        return None

    def close(self) -> None:
        """Read no more."""
        for file in self._files:
            if file is not None:
                file.close()


def clear_away(output: Path) -> None:
    """Remove what processes have written for each other, those of earlier runs too."""
    beginnings = (spool_path(output, 0).name.removesuffix("0"), run_path(output).name)
    for path in list(output.parent.iterdir()):
        if path.name.startswith(beginnings):
            path.unlink(missing_ok=True)


def spool_path(output: Path, rank: int) -> Path:
    """Where a process writes its pieces."""
    return beside(output, f".process-{rank}")


def run_path(output: Path) -> Path:
    """Where the first process tells the others of the run."""
    return beside(output, ".run")


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
