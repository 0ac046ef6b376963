"""An output file that appears when it is complete.

Until then the partial file and its state lie beside it, as `NAME.partial` and `NAME.partial.state`, and a run with the
same model, options and input continues it. In a folder of outputs the state of a complete file is kept, so that an
interrupted run skips the files that are complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from ..errors import DataError
from ..files import write_whole

#: The folder of states in a folder of outputs; tools that read datasets skip names with a leading underscore.
MANIFESTS = "_tagging"


@dataclass
class Counts:
    """Numbers of records.

    Attributes:
        records: Number of records that were tagged.
        words: Number of their words.
        faults: Number of records that were skipped.
        first_fault: The error message of the first of them.
    """

    records: int = 0
    words: int = 0
    faults: int = 0
    first_fault: str = ""

    def add(self, other: Counts) -> None:
        """Add other counts."""
        self.records += other.records
        self.words += other.words
        self.faults += other.faults
        self.first_fault = self.first_fault or other.first_fault


@dataclass
class State(Counts):
    """The progress of an output.

    Attributes:
        identity: Describes the run; only a run of the same identity continues the output.
        chunks: Number of chunks in the output.
        bytes: Its size.
        digest: A digest of the input up to the end of the last chunk.
        position: Bytes of the input up to there.
        input_bytes: The size of the input, by which a complete output is known to be up to date.
    """

    identity: dict[str, Any] = field(default_factory=dict)
    chunks: int = 0
    bytes: int = 0
    digest: str = ""
    position: int = 0
    input_bytes: int | None = None


class Output:
    """One output file of a run."""

    def __init__(
        self,
        path: Path,
        identity: dict[str, Any],
        overwrite: bool,
        manifest: Path | None = None,
        input_bytes: int | None = None,
    ) -> None:
        """Continue the output of an earlier run, or begin one.

        Args:
            path: The output.
            identity: See `State`.
            overwrite: Replace an output that exists, and a partial one of another run.
            manifest: The file to keep the state in when the output is complete.
            input_bytes: See `State`.

        Raises:
            DataError: If something exists that may not be replaced.
        """
        self.path, self.manifest = path, manifest
        self.partial, self._noted = partial_of(path), partial_of(path, ".state")
        self._file: IO[bytes] | None = None
        self.state = State(identity=identity, input_bytes=input_bytes)
        done = _read_state(manifest) if manifest and path.exists() else None
        difference = _difference(done, self.state) if done else ""
        self.is_complete = done is not None and not difference and _size(path) == done.bytes
        if done and self.is_complete:
            self.state = done
            self._clear()
            return
        if path.exists() and (not overwrite or path.is_dir()):
            reason = f" and was written with another {difference}" if difference else ""
            advice = "remove it" if path.is_dir() else "set overwrite"
            raise DataError(f"{path}: exists already{reason}; choose another output, or {advice}.")
        found = _read_state(self._noted)
        fault = self._fault(found)
        if fault and not overwrite:
            raise DataError(f"{self.partial}: {fault}; finish it with the same command, remove it, or set overwrite.")
        path.parent.mkdir(parents=True, exist_ok=True)
        if found and found.chunks and not fault:
            self.state = replace(found, input_bytes=input_bytes)
        else:
            self.restart()

    def _fault(self, found: State | None) -> str:
        """Return why this run cannot continue a partial output, or an empty string."""
        if self.partial.is_dir():
            raise DataError(f"{self.partial}: is a folder where a file is needed; remove it.")
        size = _size(self.partial)
        if found is None:  # the state is written before any output
            return "is of unknown origin" if size > 0 else ""
        if size < 0 or not found.chunks:
            return ""
        # The input may have been corrected after the last chunk, which the digest shows.
        if difference := _difference(replace(found, input_bytes=self.state.input_bytes), self.state):
            return f"was begun with another {difference}"
        return "is shorter than its state says" if size < found.bytes else ""

    def restart(self) -> None:
        """Discard the output of an earlier run."""
        self.state = State(identity=self.state.identity, input_bytes=self.state.input_bytes)
        _write_state(self._noted, self.state)
        self.partial.write_bytes(b"")

    def open(self) -> None:
        """Open the partial file where its state ends; anything after that is written again."""
        self._file = self.partial.open("r+b")
        self._file.truncate(self.state.bytes)
        self._file.seek(self.state.bytes)

    def add(self, content: bytes, counts: Counts, digest: str = "", position: int = 0) -> None:
        """Write the output of the next chunk, and then the state; see `State`."""
        assert self._file is not None
        self._file.write(content)
        self._file.flush()
        self.state.add(counts)
        self.state.chunks += 1
        self.state.bytes += len(content)
        self.state.digest, self.state.position = digest, position
        _write_state(self._noted, self.state)

    def finish(self, convert: Callable[[Path, Path], None] | None = None) -> None:
        """Move the complete output to its path.

        Args:
            convert: Writes the output from the partial file, if that is not the output itself.
        """
        self.close()
        whole = self.partial
        if convert is not None:
            whole = partial_of(self.path, ".new")
            convert(self.partial, whole)
        if self.manifest is not None:
            _write_state(self.manifest, replace(self.state, bytes=_size(whole)))
        os.replace(whole, self.path)
        self._clear()

    def _clear(self) -> None:
        self.partial.unlink(missing_ok=True)
        self._noted.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the partial file."""
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def partial_of(output: Path, ending: str = "") -> Path:
    """Return the path of a file beside an output that is not complete."""
    return output.with_name(f"{output.name}.partial{ending}")


def _difference(found: State, wanted: State) -> str:
    names = [name for name, value in wanted.identity.items() if found.identity.get(name) != value]
    names += ["input"] if found.input_bytes != wanted.input_bytes else []
    return " and another ".join(names)


def _read_state(path: Path) -> State | None:
    try:
        return State(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _write_state(path: Path, state: State) -> None:
    # Written after every chunk: waiting for the disk each time would take long.
    write_whole(path, json.dumps(asdict(state)), flush=False)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1
