"""Find the files of a corpus by the names that corpora are published under."""

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO, cast

from ...errors import DataError

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


# The part of a file name that tells its split; testa and testb are CoNLL-2003's own names.
_ALIASES = {
    "train": "train",
    "training": "train",
    "dev": "validation",
    "devel": "validation",
    "development": "validation",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "testa": "validation",
    "test": "test",
    "testb": "test",
}
_SPLIT_WORD = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(_ALIASES, key=len, reverse=True))})(?![a-z])")
SPLITS = ("train", "validation", "test")
_COLUMN_SUFFIXES = {".txt", ".conll", ".conll03", ".tsv", ".tab", ".col", ".data", ".bio", ".iob", ".iob2", ".bioes"}
JSON_SUFFIXES = frozenset({".jsonl", ".json", ".ndjson"})
TABLE_SUFFIXES = frozenset({".parquet", ".arrow"})
SUFFIXES = frozenset(
    {"", ".annotated"} | _COLUMN_SUFFIXES | JSON_SUFFIXES | TABLE_SUFFIXES | {f".{alias}" for alias in _ALIASES}
)
# OntoNotes' own, in whatever version: .v4_gold_conll, and .v4_auto_conll for what programs annotated.
_CONLL2012_SUFFIX = "_conll"
_GOLD_SUFFIX = "_gold_conll"
_COMPRESSED = ".gz"
_PART = re.compile(r"-(\d{5})-of-(\d{5})(?=[-.])")
# Names that a message shows.
_SHOWN = 4


def suffix_of(path: Path) -> str:
    """Return the last suffix of a file name in lower case, that of compression left out."""
    name = path.name.lower().removesuffix(_COMPRESSED)
    return Path(name).suffix


def has_data_suffix(path: Path) -> bool:
    """Tell whether a file name ends in a suffix that labelled data bear."""
    suffix = suffix_of(path)
    return suffix != "" and (suffix in SUFFIXES or suffix.endswith(_CONLL2012_SUFFIX))


def split_of(path: Path) -> str | None:
    """Return the split that a file name announces, or None.

    ``wnut17train.conll``, ``emerging.dev.conll``, ``eng.testb`` and ``validation.txt.gz`` all tell theirs; a name that
    tells two, or whose suffix is not one of labelled data, tells none.
    """
    if path.name.startswith(".") or (suffix_of(path) and not has_data_suffix(path)):
        return None
    return _split_told([path.name])


def find_splits(folder: Path, below: bool = True) -> dict[str, list[Path]]:
    """Return the files of a folder by split, in the order train, validation, test; missing splits are left out.

    Where no file of the folder itself tells a split, tables and CoNLL-2012 files are looked for below it, as the Hub's
    repositories and OntoNotes lay them out: the split is told by a folder or a file name.

    Args:
        folder: The folder.
        below: Whether to look below it, too.

    Raises:
        DataError: If two files claim one split, which only the numbered parts of a table and the files of one split's
            folder may do, or if some of such parts are missing.
    """
    claims: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        split = split_of(path)
        if split is not None and path.is_file():
            claims.setdefault(split, []).append(path)
    found = {split: _checked(claims[split], split) for split in SPLITS if split in claims}
    return found or (_find_below(folder) if below else {})


def _find_below(folder: Path) -> dict[str, list[Path]]:
    claims: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        suffix = suffix_of(path)
        if not (suffix in TABLE_SUFFIXES or suffix.endswith(_CONLL2012_SUFFIX)):
            continue
        split = _split_told(path.relative_to(folder).parts)
        if split is not None and path.is_file():
            claims.setdefault(split, []).append(path)
    found = {split: _best(claims[split]) for split in SPLITS if split in claims}
    for split, paths in found.items():
        _check_one_claim(list(dict.fromkeys(_claim_of(path.relative_to(folder)) for path in paths)), split, folder)
        _check_parts(paths)
    return found


def _claim_of(path: Path) -> str:
    """Return what tells the split of a file below a folder: the first folder that does, or the file itself."""
    names = path.parts
    telling = next(index for index, name in enumerate(names) if _split_told([name]))
    return str(Path(*names[: telling + 1]).with_name(_PART.sub("", names[telling])))


def _split_told(names: Iterable[str]) -> str | None:
    told = {_ALIASES[word] for name in names for word in _SPLIT_WORD.findall(name.lower())}
    return told.pop() if len(told) == 1 else None


def _checked(paths: list[Path], split: str) -> list[Path]:
    paths = _best(paths)
    if len({_PART.sub("", path.name) for path in paths}) > 1:
        _check_one_claim([path.name for path in paths], split, paths[0].parent)
    _check_parts(paths)
    return paths


def _best(paths: list[Path]) -> list[Path]:
    """Return the files that people annotated, where others stand beside them."""
    # WNUT 2017's test set was published twice in one folder; only the annotated file has the gold tags.
    for suffix in (".annotated", _GOLD_SUFFIX):
        paths = [path for path in paths if suffix_of(path).endswith(suffix)] or paths
    return paths


def _check_one_claim(names: list[str], split: str, folder: Path) -> None:
    if len(names) > 1:
        others = f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else ""
        raise DataError(
            f"{folder}: {' and '.join(names[:_SHOWN])}{others} all look like the {split} split; "
            "keep one of them in the folder."
        )


def _check_parts(paths: list[Path]) -> None:
    """Refuse the numbered parts of a file if some of them are missing."""
    parts: dict[Path, set[int]] = {}
    for path in paths:
        if found := _PART.search(path.name):
            name = path.with_name(_PART.sub(f"-*-of-{found[2]}", path.name))
            parts.setdefault(name, set(range(int(found[2])))).discard(int(found[1]))
    for name, missing in parts.items():
        if missing:
            raise DataError(f"{name}: part {min(missing):05d} is missing; fetch or write all parts.")
