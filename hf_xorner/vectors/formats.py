"""Read word vectors from text (word2vec, GloVe, fastText) and from safetensors, and write safetensors."""

import logging
import math
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from huggingface_hub import hf_hub_download
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from ..errors import DataError, first_line, why_not_loaded
from ..files import BYTE_ORDER_MARK, GZIP_ERRORS, HUB_NAME, check_apart, expanded, open_bytes, write_whole

#: The files of a folder of vectors: the first has one tensor, the second one word per line.
VECTOR_FILES = ("vectors.safetensors", "vocabulary.txt")
_TENSOR = "vectors"


_SUFFIX = ".safetensors"
# With "datasets/" as in URLs of the Hub.
_ON_HUB = re.compile(rf"(?P<kind>datasets/)?(?P<repo>{HUB_NAME}):(?P<file>.+)")
_HEADER = re.compile(rb"([0-9]+)[ \t]+([0-9]+)[ \t\r\n]*")
_ENDS_IN_DECIMAL = re.compile(rb"[ \t][+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?\Z")
# Number of bytes that are read at a time.
_BATCH = 1 << 20
# Number of lines that determine the dimension of a file without a header.
_VOTERS = 100
_GROWTH = 1.125

_log = logging.getLogger(__name__)


@dataclass
class Vectors:
    """Words and their vectors.

    Attributes:
        words: The words, all different.
        matrix: One row per word, float32 or float16. Shape: (words, dim).
        duplicates: Number of lines that were left out because an earlier line has their word.
    """

    words: list[str]
    matrix: NDArray[Any]
    duplicates: int = 0

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        return self.matrix.shape[1]


class _Selection:
    """Decides which words are kept.

    Args:
        wanted: Words to keep.
        most_frequent: The number of words to keep from the beginning of the file. With both, both sets are kept; with
            neither, all words.
    """

    def __init__(self, wanted: Collection[str] | None, most_frequent: int | None) -> None:
        self.wanted = frozenset(wanted or ())
        self.limit = math.inf if wanted is None and most_frequent is None else most_frequent or 0
        self.kept: set[str] = set()
        self.missing = len(self.wanted)
        self.duplicates = 0

    def takes(self, word: str) -> bool:
        """Return True if the next word of the file is to be kept."""
        if word in self.kept:
            self.duplicates += 1
            return False
        if word in self.wanted:
            self.missing -= 1
        elif len(self.kept) >= self.limit:
            return False
        self.kept.add(word)
        return True


def read_vectors(
    source: str | Path, wanted: Collection[str] | None = None, most_frequent: int | None = None
) -> Vectors:
    """Read the vectors of some words, or of all.

    Text has a word and its numbers on each line (GloVe); word2vec and fastText (``.vec``) have a first line with the
    number of words and the dimension. It may be plain, gzip, or a member of a zip archive, and is read as a stream.
    Fields are separated by blanks or TABs; the numbers are the last ones, so a word may contain blanks. Words that are
    not UTF-8 are left out and counted in the log, since word2vec and fastText may cut long words within a character.
    For duplicates, the first vector is used.

    Safetensors are a folder written by `write_vectors`, or its ``vectors.safetensors``.

    Args:
        source: A path, ``archive.zip:member``, or ``owner/name:file`` on the Hub (``datasets/owner/name:file`` for a
            dataset). Existing paths are never looked up on the Hub.
        wanted: Words to keep, with this exact spelling.
        most_frequent: The number of words to keep from the beginning of the file, where frequent words usually are.
            With ``wanted``, both sets are kept; with neither, all words. Reading stops when no later word would be
            kept.

    Returns:
        The kept words in the order of the file.

    Raises:
        DataError: If the source does not exist, has another format, or is damaged. Numbers of words that are not kept
            are not checked.
    """
    name, member = split_member(source)
    path = locate(name, VECTOR_FILES[1:] if str(name).endswith(_SUFFIX) else ())
    selection = _Selection(wanted, most_frequent)
    if path.is_dir() or path.suffix == _SUFFIX:
        words, matrix = _read_tensors(path)
        rows = [row for row, word in enumerate(words) if selection.takes(word)]
        words, matrix = [words[row] for row in rows], matrix[rows].astype(np.float32, copy=False)
    else:
        words, matrix = _read_text(path, member, selection)
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        word = words[int(np.argmin(finite))]
        raise DataError(f"{source}: the vector of {word!r} has a number that is NaN or infinite; correct or remove it.")
    return Vectors(words, matrix, selection.duplicates)


def split_member(source: str | Path) -> tuple[str | Path, str | None]:
    """Split ``archive.zip:member`` into the archive and its member; the member is None if there is none."""
    archive, separator, member = str(source).partition(".zip:")
    return (f"{archive}.zip", member) if separator and not Path(source).exists() else (source, None)


def locate(source: str | Path, siblings: Sequence[str] = ()) -> Path:
    """Return the path of a source; a source on the Hub is downloaded.

    Args:
        source: A path, or ``owner/name:file`` on the Hub.
        siblings: Other files of the same folder to download with it.

    Raises:
        DataError: If there is no such file.
    """
    path = expanded(source)
    if path.exists():
        return path
    on_hub = _ON_HUB.fullmatch(str(source))
    if on_hub is None:
        raise DataError(
            f"{source}: there is no such file; give a path, archive.zip:member, or owner/name:file for one on the Hub."
        )
    file, kind = on_hub["file"], "dataset" if on_hub["kind"] else "model"
    folder = file.rpartition("/")[0]
    names = [file, *(f"{folder}/{name}".lstrip("/") for name in siblings)]
    try:
        paths = [hf_hub_download(on_hub["repo"], name, repo_type=kind) for name in names]
    # The errors (no such file, no network, a gate) have no common type.
    except Exception as error:
        raise DataError(f"{source}: cannot be downloaded from the Hub: {why_not_loaded(error)}.") from error
    return Path(paths[0])


# --- Text -------------------------------------------------------------------------------------------------------------


def _read_text(path: Path, member: str | None, selection: _Selection) -> tuple[list[str], NDArray[np.float32]]:
    label = f"{path}:{member}" if member else str(path)
    words: list[str] = []
    passed, undecodable, number = 0, 0, 0
    with _opened(path, member) as file:
        first = file.readlines(_BATCH)
        first[:1] = [line.removeprefix(BYTE_ORDER_MARK.encode()) for line in first[:1]]
        promised, dim = _header(first, label)
        matrix = np.empty((0, dim), dtype=np.float32)
        for lines in chain([first], iter(lambda: file.readlines(_BATCH), [])):
            values, numbers, start = [], [], len(words)
            for line in lines:
                number += 1
                if (number == 1 and promised is not None) or not line.strip():
                    continue
                encoded, numbers_text = _cut(line, dim, f"{label}:{number}")
                passed += 1
                try:
                    word = encoded.decode()
                except UnicodeDecodeError:
                    undecodable += 1
                    continue
                if selection.takes(word):
                    words.append(word)
                    values.append(numbers_text)
                    numbers.append(number)
            if len(words) > len(matrix):
                # In place, so that the matrix is never held twice.
                matrix.resize((max(len(words), int(len(matrix) * _GROWTH)), dim), refcheck=False)
            matrix[start : len(words)] = _parsed(values, numbers, dim, label)
            if not selection.missing and len(selection.kept) >= selection.limit:  # no later word would be kept
                break
        else:
            if promised not in (None, passed):
                raise DataError(f"{label}:1: announces {promised} words, but {passed} follow; download the file again.")
    matrix.resize((len(words), dim), refcheck=False)
    if undecodable:
        _log.warning("%s: left out %d of %d words, which are not UTF-8", label, undecodable, passed)
    return words, matrix


@contextmanager
def _opened(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    """Open a text file, plain or gzip, or a member of a zip archive."""
    try:
        if path.suffix.lower() != ".zip":
            with open_bytes(path) as file:
                yield file
            return
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if member is None and len(names) == 1:
                (member,) = names
            if member not in names:
                raise DataError(f"{path}: name a member as {path.name}:member; the archive has {', '.join(names)}.")
            with archive.open(member) as file:
                yield file
    # RuntimeError for an archive with a password.
    except (*GZIP_ERRORS, zipfile.BadZipFile, RuntimeError) as error:
        raise DataError(f"{path}: cannot be unpacked ({first_line(error)}); download it again.") from None


def _header(lines: Sequence[bytes], label: str) -> tuple[int | None, int]:
    """Return the number of words, if the first line is a header with it and the dimension, else None; the dimension."""
    # This also refuses pickles of gensim and PyTorch, which are never loaded.
    if any(b"\0" in line for line in lines):
        raise DataError(f"{label}: is not text; export the vectors as text, as gensim's save_word2vec_format does.")
    header = _HEADER.fullmatch(lines[0]) if lines else None
    if header is not None:
        dim = int(header[2])
    else:
        counts = Counter(len(line.split()) - 1 for line in lines[:_VOTERS] if line.strip())
        dim = max(counts, key=lambda count: counts[count], default=0)
    if dim < 1:
        raise DataError(f"{label}:1: expected lines of a word and its numbers, separated by blanks.")
    return None if header is None else int(header[1]), dim


def _cut(line: bytes, dim: int, location: str) -> tuple[bytes, bytes]:
    """Return the word of a line and the text of its numbers."""
    line = line.rstrip()
    if line.count(b" ") == dim and b"\t" not in line:
        word, _, rest = line.partition(b" ")
        return word, rest
    fields = line.rsplit(None, dim)
    if len(fields) == dim and line[:1] in b" \t":
        return b"", line
    word = fields[0]
    if len(fields) <= dim or _ENDS_IN_DECIMAL.search(word):
        count = len(line.split()) - 1
        raise DataError(f"{location}: {count} numbers, but other lines have {dim}; correct or remove the line.")
    return word.strip(), line[len(word) :]


def _parsed(values: Sequence[bytes], numbers: Sequence[int], dim: int, label: str) -> NDArray[np.float32]:
    """Parse the numbers of lines."""
    if not values:
        return np.empty((0, dim), dtype=np.float32)
    try:
        rows = np.loadtxt(values, dtype=np.float32, comments=None, ndmin=2)
        if rows.shape[1] != dim:
            raise ValueError(f"{rows.shape[1]} numbers, but other lines have {dim}")
        return rows
    except ValueError as error:
        if len(values) == 1:
            fault = str(error).partition(" at row")[0]
            raise DataError(f"{label}:{numbers[0]}: {fault}; correct or remove the line.") from None
    # Line by line, to raise for the first invalid line.
    return np.concatenate([_parsed([text], [number], dim, label) for text, number in zip(values, numbers, strict=True)])


# --- Safetensors ------------------------------------------------------------------------------------------------------


def _read_tensors(path: Path) -> tuple[list[str], NDArray[Any]]:
    path = path / VECTOR_FILES[0] if path.is_dir() else path
    vocabulary = path.with_name(VECTOR_FILES[1])
    try:
        matrix = load_file(path)[_TENSOR]
        # Read as bytes, as a word may contain a carriage return.
        words = vocabulary.read_bytes().decode().removesuffix("\n").split("\n")
    except (SafetensorError, OSError, KeyError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: is not a tensor {_TENSOR!r} with a {vocabulary.name} in its folder ({first_line(error)}); "
            "write it with hf-xorner vectors."
        ) from None
    if len(words) != len(matrix):
        raise DataError(f"{vocabulary}: {len(words)} words for {len(matrix)} vectors; write both again.")
    return words, matrix


def write_vectors(vectors: Vectors, folder: str | Path, overwrite: bool = False) -> list[Path]:
    """Write vectors as safetensors with a vocabulary, for `read_vectors`.

    Args:
        vectors: The vectors; their dtype is kept.
        folder: The folder, created if it does not exist.
        overwrite: Replace files that exist.

    Returns:
        The files that were written.

    Raises:
        DataError: If a file exists and `overwrite` is False, or if a word contains a line break.
    """
    tensors, vocabulary = check_targets(folder, VECTOR_FILES, overwrite)
    if any("\n" in word for word in vectors.words):
        raise DataError(f"{folder}: a word contains a line break; remove it.")
    # Deleted first, so that a killed process never leaves vectors with another vocabulary.
    tensors.unlink(missing_ok=True)
    write_whole(vocabulary, "".join(f"{word}\n" for word in vectors.words))
    write_whole(tensors, save({_TENSOR: np.ascontiguousarray(vectors.matrix)}))
    return [tensors, vocabulary]


def check_targets(
    folder: str | Path, names: Iterable[str], overwrite: bool = False, inputs: Iterable[str] = ()
) -> list[Path]:
    """Return the paths of files to write into a folder; raises before a long computation if they cannot be written.

    Args:
        folder: The folder.
        names: The names of the files.
        overwrite: Replace files that exist.
        inputs: Files that are read and must not be overwritten.

    Raises:
        DataError: If the folder is a file, a file exists, or an input would be overwritten.
    """
    path = expanded(folder)
    if path.exists() and not path.is_dir():
        raise DataError(f"{path}: is not a folder; name one to write {' and '.join(names)} into.")
    targets = [path / name for name in names]
    for target in targets:
        if target.exists() and not overwrite:
            raise DataError(f"{target}: exists already; choose another folder, or set overwrite.")
        check_apart(target, *inputs)
    return targets
