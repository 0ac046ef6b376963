"""Read and write files: decompression, atomic writes, SHA-256, and locks."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import socket
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from filelock import FileLock, Timeout

from .errors import DataError

#: Files in the folder of a model: the facts of its training run, its card, and its graph if it is exported.
FACTS_FILE, CARD_FILE, GRAPH_FILE = "facts.json", "README.md", "model.onnx"

#: The folders of the package's models by the short names that users type; pyproject.toml names the folders as well.
#: A wheel of its own installs the multilingual model (model_cards/multilingual-ner/pyproject.toml).
PACKAGED = {
    "english": "english-ner-small",
    "english-open": "english-ner-open",
    "english-start": "english-start",
    "multilingual": "multilingual-ner",
}

#: Where pip finds a folder of the repository.
SOURCE = "git+https://github.com/hf-xorner/hf_xorner#subdirectory="

#: A repository on the Hub, as a pattern.
HUB_NAME = r"\w[\w.-]*/\w[\w.-]*"

BYTE_ORDER_MARK = "\ufeff"
_GZIP_MAGIC = b"\x1f\x8b"
GZIP_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)
# Seconds to wait for a lock that may be about to be released.
_PATIENCE = 1.0


def english() -> str:
    """Return the folder of the English model in the package, for `Tagger.from_pretrained` or `pipeline("ner", …)`."""
    return model_folder("english")


def multilingual() -> str:
    """Return the folder of the multilingual model in the package; see `english`."""
    return model_folder("multilingual")


def model_folder(name: str) -> str:
    """Return the folder of a model that `PACKAGED` names; any other name, or that of an existing folder, as it is.

    Raises:
        DataError: If the model is a wheel of its own that is not installed.
    """
    if name not in PACKAGED or Path(name).exists():
        return name
    package, folder = Path(__file__).parent, PACKAGED[name]
    installed, in_checkout = package / folder, package.parent / "model_cards" / folder
    for path in (installed, in_checkout):
        if path.is_dir():
            return str(path)
    raise DataError(f"{name}: this model is a package of its own; run `pip install {SOURCE}model_cards/{folder}`.")


# --- Reading ---------------------------------------------------------------------------------------------------------


def expanded(path: str | Path) -> Path:
    """Replace ``~`` by the home folder; a path with an unknown user is not changed, unlike by `Path.expanduser`."""
    return Path(os.path.expanduser(path))


def files_below(folder: Path) -> list[Path]:
    """Return the files of a folder and its subfolders, also of linked ones, sorted; hidden ones are left out.

    Raises:
        OSError: If a folder cannot be read.
    """

    def fail(error: OSError) -> None:
        raise error

    found: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        here = Path(parent)
        above = {os.path.realpath(path) for path in (here, *here.parents)}  # a link to one of them would be a loop
        folders[:] = [name for name in folders if name[0] != "." and os.path.realpath(here / name) not in above]
        found += (path for name in names if name[0] != "." and (path := here / name).is_file())
    return sorted(found)


def suffix_of(path: Path) -> str:
    """Return the last suffix of a file name in lower case, ``.gz`` ignored."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def decompressed(file: IO[bytes]) -> IO[bytes]:
    """Return a buffered file that is open for reading, decompressed if it is gzip."""
    compressed = cast("io.BufferedReader", file).peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
    return cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if compressed else file


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if it is gzip.

    Raises:
        DataError: While the file is read, for a damaged gzip file.
    """
    try:
        with path.open("rb") as file:
            yield decompressed(file)
    except GZIP_ERRORS as error:
        raise DataError(f"{path}: the gzip file is damaged ({error}); compress or fetch it again.") from None


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return the content of a text file, plain or gzip, with its line breaks.

    Raises:
        DataError: For a byte that the encoding does not have (with its line), or for a damaged gzip file.
    """
    with open_bytes(path) as file:
        content = file.read()
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise undecodable(path, error, encoding) from None


def undecodable(path: Path, error: UnicodeDecodeError, encoding: str, advice: str = "") -> DataError:
    """Return the error for a byte of a file that is invalid in its encoding."""
    line = error.object.count(b"\n", 0, error.start) + 1
    return DataError(f"{path}:{line}: is not {encoding.removesuffix('-sig')}; save the file as UTF-8{advice}.")


def refuse_aliases(text: str) -> None:
    """Raise for aliases in YAML, with which a short text can fill the memory."""
    import yaml  # imported here because most commands need no YAML

    if "*" in text and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
        raise yaml.YAMLError("aliases such as *name are not supported")


# --- Writing ---------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which replaces a file at the end; after an error, the old file is unchanged.

    The new file is written in the same folder under another name, so a killed process leaves no incomplete file under
    the final name. A link is replaced, not followed; devices such as /dev/stdout are written
    directly.

    Args:
        path: The file, whose folder is created.
    """
    if path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm"):
        yield path
        return
    path = expanded(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        yield new
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def check_only_replaces(folder: Path, names: Iterable[str], marker: str) -> None:
    """Check that files replace those of an earlier export alone, which has a file `marker`.

    Raises:
        DataError: If there are other files of these names.
    """
    if (taken := [name for name in names if (folder / name).exists()]) and not (folder / marker).exists():
        raise DataError(f"{folder / taken[0]} exists; name another folder.")


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file as `replacing` does, text in UTF-8, and return its path."""
    with replacing(path) as new:
        new.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_json(path: str | Path, content: Any) -> Path:
    """Write content as JSON, as `replacing` does, and return the path."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return write_whole(Path(path), f"{text}\n")


def check_apart(output: str | Path, *inputs: str | Path) -> None:
    """Check that writing an output would not destroy an input, even through links.

    Args:
        output: The file to write, or the folder whose content is replaced. If single files are written into a folder,
            give the files.
        inputs: Files and folders that are read; the output may not be a file in one of these folders. Inputs that do
            not exist, such as names on the Hub, are ignored.

    Raises:
        DataError: If the output is an input.
    """
    target = expanded(output)
    if not target.exists():
        return
    for name in inputs:
        source = expanded(name)
        if not source.exists():
            continue
        inside = source.rglob("*") if source.is_dir() and not target.is_dir() else ()
        if source.samefile(target) or any(path.exists() and path.samefile(target) for path in inside):
            raise DataError(f"{output}: is an input ({name}), which would be lost; name another output.")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_fingerprint(path: Path) -> dict[str, Any]:
    """Return the ``bytes`` and the ``sha256`` of a file, or of all files of a folder together with their names."""
    if path.is_file():
        return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    files = sorted(file for file in path.rglob("*") if file.is_file())
    names = "".join(json.dumps([file.relative_to(path).as_posix(), sha256_of(file)]) for file in files)
    return {
        "bytes": sum(file.stat().st_size for file in files),
        "sha256": hashlib.sha256(names.encode()).hexdigest(),
    }


# --- Locks -----------------------------------------------------------------------------------------------------------


class LockedError(ValueError):
    """Another process holds a lock."""


@contextmanager
def locked(path: Path, output: Path | str) -> Iterator[None]:
    """Hold the lock of an output, so that no other run writes it.

    The operating system releases the lock of a process that ends, even if it is killed; its lock file is then reused. A
    thread that holds the lock may take it again.

    Args:
        path: The lock file. Its folder is created, and the file is removed at the end.
        output: The output, for the message.

    Raises:
        LockedError: If another run holds the lock.
        OSError: If the lock file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.absolute(), timeout=_PATIENCE, is_singleton=True)
    if lock.is_locked:
        yield
        return
    try:
        lock.acquire()
    except Timeout:
        holder = "another process"
        with suppress(OSError):  # Windows may refuse to read a locked file.
            holder = path.read_text(encoding="utf-8") or holder
        raise LockedError(
            f"{output} is being written by {holder}; wait until it ends, end it, or choose another output."
        ) from None
    try:
        with suppress(OSError):
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):  # Removed before the release: a process that waits for the lock creates a new file.
            path.unlink()
        lock.release()
