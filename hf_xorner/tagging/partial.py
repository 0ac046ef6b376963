"""An output that is not finished: what is there of it beside where it will stand, and how far it has come."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..errors import DataError


class Piece(NamedTuple):
    """What came of a chunk.

    Attributes:
        chunk: The number of the chunk.
        file: The number of its input.
        digest: What tells the input up to its end from others.
        position: Bytes of the input up to its end.
        records: Records that were tagged.
        words: Their words.
        faults: Records that were passed over.
        first_fault: What was wrong with the first of them.
        content: What is to be written.
    """

    chunk: int
    file: int
    digest: str
    position: int
    records: int
    words: int
    faults: int
    first_fault: str
    content: bytes


@dataclass
class State:
    """How far an output has come: all chunks before `chunks` are in it; `bytes` of the last input's file count."""

    identity: dict[str, Any]
    chunks: int = 0
    file: int = -1
    bytes: int = 0
    digest: str = ""
    position: int = 0
    records: int = 0
    words: int = 0
    faults: int = 0
    first_fault: str = ""
    complete: bool = False


class Partial:
    """The output of a run while it is written: `NAME.partial`, a file or a folder, beside its state."""

    def __init__(self, output: Path, names: Sequence[str], identity: dict[str, Any], overwrite: bool) -> None:
        """Take up what an earlier run has left, or begin.

        Args:
            output: The output.
            names: Where the output of each input stands below it; one empty name if there is no folder.
            identity: What the run is known by: an output is continued only by a run of the same.
            overwrite: Whether an output that exists, and a part of one that does not fit, are replaced.

        Raises:
            DataError: If there is something that is not to be replaced.
        """
        self.output, self.names = output, names
        self.is_folder = list(names) != [""]
        self.path = beside(output, "")
        self._noted = beside(output, ".state")
        self._file: IO[bytes] | None = None
        if output.exists() and (not overwrite or output.is_dir()):
            # A folder may well hold something else.
            advice = "remove it" if output.is_dir() else "overwrite it"
            raise DataError(f"{output}: exists already; choose another output, or {advice}.")
        self.state = State(identity)
        found = self._found()
        unfit = self._unfit(found)
        if unfit and not overwrite:
            raise DataError(f"{self.path}: {unfit}; finish it as it was begun, remove it, or overwrite it.")
        if self.is_folder:
            self.path.mkdir(exist_ok=True)
        else:
            self.path.touch()
        if found and not unfit:
            self.state = found
        else:
            self.clear()

    def _found(self) -> State | None:
        """The state that an earlier run has noted, if anything of its output is there."""
        try:
            noted = State(**json.loads(self._noted.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return noted if self.path.exists() and noted.chunks else None

    def _unfit(self, found: State | None) -> str:
        """Why what an earlier run has left cannot be continued by this one; empty if it can, or there is nothing."""
        if self.path.exists() and self.path.is_dir() != self.is_folder:
            raise DataError(f"{self.path}: is in the way of a {'folder' if self.is_folder else 'file'}; remove it.")
        if found is None:
            # Something is noted before anything is written.
            empty = not self.path.exists() or (not any(self.path.iterdir()) if self.is_folder else not _size(self.path))
            return "" if empty or self._noted.exists() else "is of unknown origin"
        if different := [name for name, value in self.state.identity.items() if found.identity.get(name) != value]:
            return f"was begun with another {' and another '.join(different)}"
        if not found.complete and _size(self.place_of(found.file)) < found.bytes:
            return "is shorter than was noted when it was written"
        return ""

    def clear(self) -> None:
        """Forget what an earlier run has left."""
        self.state = State(self.state.identity)
        self._note()
        if self.is_folder:
            for path in self.path.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        else:
            os.truncate(self.path, 0)

    def open(self) -> None:
        """Go on where the state says; what was written after it was noted is written again."""
        if not self.state.chunks or self.state.complete:
            return
        self._file = self.place_of(self.state.file).open("r+b")
        self._file.truncate(self.state.bytes)
        self._file.seek(self.state.bytes)

    def place_of(self, file: int) -> Path:
        """Where the output of an input is written."""
        return self.path / self.names[file] if self.is_folder else self.path

    def add(self, piece: Piece) -> None:
        """Write what came of the next chunk, and note that it is there."""
        state = self.state
        if self._file is None or piece.file != state.file:
            self._close_file()
            path = self.place_of(piece.file)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb" if self.is_folder else "r+b")
            state.file, state.bytes = piece.file, 0
        self._file.write(piece.content)
        self._file.flush()  # what is noted has been written
        state.bytes += len(piece.content)
        state.chunks, state.digest, state.position = piece.chunk + 1, piece.digest, piece.position
        state.records += piece.records
        state.words += piece.words
        state.first_fault = state.first_fault or piece.first_fault
        state.faults += piece.faults
        self._note()

    def complete(self) -> None:
        """Note that all chunks are there."""
        self._close_file()
        self.state.complete = True
        self._note()

    def finish(self) -> None:
        """Put the complete output in its place."""
        os.replace(self.path, self.output)
        self._noted.unlink(missing_ok=True)

    def close(self) -> None:
        """Write no more."""
        self._close_file()

    def _note(self) -> None:
        new = beside(self.output, ".state.new")
        new.write_text(json.dumps(asdict(self.state)), encoding="utf-8")
        os.replace(new, self._noted)

    def _close_file(self) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def beside(output: Path, ending: str) -> Path:
    """Where something stands that belongs to an output not yet finished."""
    return output.with_name(f"{output.name}.partial{ending}")
