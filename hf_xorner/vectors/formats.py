"""Read word vectors of every published format."""

import logging
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..corpora.source import AUTO
from ..errors import DataError
from .sources import (
    READ_SIZE,
    Block,
    Place,
    Progress,
    Selection,
    Stream,
    check_name,
    check_range,
    decoded,
    locate,
    open_stream,
)
from .tensors import SUFFIX as TENSOR_SUFFIX
from .tensors import TensorReader, looks_like_tensors
from .text import TextReader, checked_header, ends_in_numbers, header_of

# word2vec itself takes words of up to 60 bytes.
_LONGEST_HEADER = 100
_LONGEST_WORD = 1 << 27  # bytes of a word with its vector
_FLOAT = np.dtype("<f4")


class BinaryReader:
    r"""Reads words and vectors of one file.

    After a header line, each word ends with a blank and is followed by its vector as little-endian 32-bit floats. Some
    programs end a vector with a line break, some do not: line breaks before a word do not belong to it.
    """

    format = "word2vec-binary"

    def __init__(self, stream: Stream, largest: float) -> None:
        """Read the header.

        Args:
            stream: The file.
            largest: The largest number that can be kept.

        Raises:
            DataError: If there is no header, or it promises nothing.
        """
        self.label = stream.label
        self._largest = largest
        self.progress = stream.progress
        self._file = stream.rest
        # Vectors may hold no byte that looks like the end of a line.
        stream.rest.raw.longest = sys.maxsize  # type: ignore[attr-defined]
        line, line_end, rest = stream.head.partition(b"\n")
        if not line_end or len(line) >= _LONGEST_HEADER:
            line = b""
        self.promised, self.dim = checked_header(line, self.label, self.format)
        self._buffer = bytearray(rest)

    def blocks(self, selection: Selection) -> Iterator[Block]:
        """Yield the words that are kept, with their vectors.

        A word that is not UTF-8 is left out and counted.

        Args:
            selection: Chooses them.

        Raises:
            DataError: For a kept vector that is not of finite numbers, for a file that ends too early or too late.
        """
        done = 0
        while done < self.promised and not selection.is_complete:
            words, offsets, end = self._complete_words(self.promised - done)
            if words:
                yield self._chosen(words, offsets, done, selection)
                done += len(words)
                del self._buffer[:end]
            elif not self._read_on():
                raise DataError(
                    f"{self.label}, word {done + 1}: the file ends here, but its header promises "
                    f"{self.promised} words; fetch or write it again."
                )
        if done == self.promised:
            self._check_end()

    def _complete_words(self, most: int) -> tuple[list[bytes], list[int], int]:
        """Return the words whose vectors are in the buffer, the starts of the vectors, and the end of the last one."""
        buffer, size = self._buffer, self.dim * _FLOAT.itemsize
        words: list[bytes] = []
        offsets: list[int] = []
        end = 0
        while len(words) < most:
            blank = buffer.find(b" ", end)
            if blank < 0 or blank + 1 + size > len(buffer):
                break
            words.append(bytes(buffer[end:blank]).lstrip(b"\n"))
            offsets.append(blank + 1)
            end = blank + 1 + size
        return words, offsets, end

    def _chosen(self, words: list[bytes], offsets: list[int], done: int, selection: Selection) -> Block:
        chosen = selection.choose(list(map(decoded, words)))
        rows = np.empty((len(chosen), self.dim), dtype=np.float32)
        for row, index in enumerate(chosen):
            rows[row] = np.frombuffer(self._buffer, _FLOAT, self.dim, offsets[index])
        check_range(
            rows,
            self._largest,
            lambda row: f"{self.label}, word {done + 1 + chosen[row]}",
            "correct the vectors, or read the format that the file has",
        )
        return Block([words[index].decode("utf-8") for index in chosen], rows)

    def _read_on(self) -> bool:
        if len(self._buffer) > _LONGEST_WORD:
            raise DataError(
                f"{self.label}: a word with its vector takes more than {_LONGEST_WORD:,} bytes; fetch the file again."
            )
        chunk = self._file.read(READ_SIZE)
        self._buffer += chunk
        return bool(chunk)

    def _check_end(self) -> None:
        """Raise DataError if more than line breaks follows the last word."""
        while True:
            if self._buffer.strip(b"\r\n"):
                raise DataError(
                    f"{self.label}: there is more in the file than the {self.promised} words that its header promises; "
                    "fetch or write it again."
                )
            self._buffer.clear()
            if not self._read_on():
                return


VECTOR_FORMATS = ("glove", "word2vec", "fasttext", "word2vec-binary", "safetensors")
_TYPES = (np.dtype(np.float32), np.dtype(np.float16))
_GROWTH = 1.125
_FIRST_WORDS = 10

_log = logging.getLogger(__name__)


@dataclass
class Vectors:
    """Words and their vectors.

    Attributes:
        words: The words, all different.
        matrix: A row for each, float32 or float16.
        words_in_file: How many words the file holds, all of them counted; None if it does not say so and was not read
            to its end, or if there is no file.
        duplicates: Words that were left out as they had been kept before.
        undecodable: Words that were left out as they are not UTF-8.
    """

    words: list[str]
    matrix: NDArray[Any]  # shape: (words, dim)
    words_in_file: int | None = None
    duplicates: int = 0
    undecodable: int = 0

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or len(self.words) != len(self.matrix):
            raise DataError(
                f"{len(self.words)} words for vectors of the shape {self.matrix.shape}; give every word one row."
            )
        if self.matrix.dtype not in _TYPES:
            raise DataError(f"the vectors are {self.matrix.dtype}; convert them to float32 or float16.")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        return self.matrix.shape[1]


@dataclass
class VectorSummary:
    """A summary of a file of vectors.

    Attributes:
        source: The file that was read.
        format: Its format.
        words: Distinct words.
        dim: The dimension.
        duplicates: Words that occur again.
        undecodable: Words that are not UTF-8.
        first: The first words.
        norms: The least, mean and greatest Euclidean norm of a vector, under "min", "mean" and "max".
    """

    source: str
    format: str
    words: int
    dim: int
    duplicates: int
    undecodable: int
    first: list[str] = field(default_factory=list)
    norms: dict[str, float] = field(default_factory=dict)


class _Reader(Protocol):
    label: str
    format: str
    dim: int

    @property
    def promised(self) -> int | None: ...

    def blocks(self, selection: Selection) -> Iterator[Block]: ...

    def progress(self) -> tuple[int, int]: ...


def read_vectors(
    source: str | Path,
    wanted: Collection[str] | None = None,
    most_frequent: int | None = None,
    dtype: DTypeLike = np.float32,
    format: str = AUTO,
    on_progress: Progress | None = None,
) -> Vectors:
    """Read the vectors of some words, or of all, as a stream; only these are kept in memory.

    The formats are

    - ``glove``: text, a word and its numbers a line;
    - ``word2vec`` and ``fasttext``: the same after a line with the number of words and the dimension;
    - ``word2vec-binary``: that line, then words and vectors as word2vec writes them with ``-binary 1``;
    - ``safetensors``: one tensor of two dimensions, float16, float32 or float64, and beside it ``vocabulary.txt`` with
      a word a line, or ``vocabulary.json`` with a list of words or a map from words to rows (``vocab.txt`` and
      ``vocab.json`` will do). The folder that holds them may be named in place of the file.

    All but the last may be compressed by gzip or lie in a zip archive; of several parts the largest is read unless
    one is named. Fields of text are separated by blanks or TABs and by no other character; the numbers are the last
    fields, so a word may hold blanks. Of words that occur twice the first vector counts. Words that are not UTF-8, as
    word2vec and fastText leave where they cut long ones, are left out and logged. Pickles are refused, by name or first
    bytes: gensim's own ``.kv`` and ``.model``, PyTorch's ``.pt``; so is fastText's own ``.bin``.

    Args:
        source: A path, ``archive.zip:part``, or ``owner/name:file`` on the Hub (``datasets/owner/name:file`` for a data
            set); what exists here is never looked for on the Hub.
        wanted: Words to keep, spelt exactly so.
        most_frequent: How many words to keep from the beginning of the file, where the frequent ones stand. With
            ``wanted`` too, a word is kept for either reason; with neither, every word is. Reading stops as soon as
            nothing more would be kept.
        dtype: float32 or float16.
        format: One of the formats; by default it is recognised.
        on_progress: Called with the bytes of the file that have been read, and its size.

    Returns:
        The kept words in the order of the file.

    Raises:
        DataError: If there is no such source, or it is faulty. Lines that are not kept are checked for the number
            of their fields, but not for what their numbers are.
    """
    target = np.dtype(dtype)
    if target not in _TYPES:
        raise DataError(f"dtype={target} is not kept; choose float32 or float16.")
    selection = Selection(wanted, most_frequent)
    words: list[str] = []
    with _opened(source, format, float(np.finfo(target).max)) as reader:
        matrix = np.empty((0, reader.dim), dtype=target)
        for block in _blocks(reader, selection, on_progress):
            begin, end = len(words), len(words) + len(block.words)
            if end > len(matrix):
                # Grows where it lies, so that it is never held twice.
                matrix.resize((max(end, int(len(matrix) * _GROWTH)), reader.dim), refcheck=False)
            matrix[begin:end] = block.rows
            words += block.words
        label, promised = reader.label, reader.promised
    matrix.resize((len(words), matrix.shape[1]), refcheck=False)
    if selection.undecodable:
        _log.warning("%s: left out %d of %d words, which are not UTF-8", label, selection.undecodable, selection.passed)
    in_file = promised if selection.is_complete else selection.passed
    return Vectors(words, matrix, in_file, selection.duplicates, selection.undecodable)


def inspect_vectors(source: str | Path, format: str = AUTO, on_progress: Progress | None = None) -> VectorSummary:
    """Summarise a file of vectors, of which none is kept in memory.

    Args:
        source: As for `read_vectors`.
        format: Likewise.
        on_progress: Likewise.

    Raises:
        DataError: If there is no such source, or it is faulty.
    """
    selection = Selection()
    first: list[str] = []
    words, total, least, greatest = 0, 0.0, np.inf, 0.0
    with _opened(source, format, float(np.finfo(np.float32).max)) as reader:
        for block in _blocks(reader, selection, on_progress):
            if not block.words:
                continue
            first += block.words[: _FIRST_WORDS - len(first)]
            words += len(block.words)
            norms = np.sqrt(np.einsum("ij,ij->i", block.rows, block.rows, dtype=np.float64))
            total += norms.sum()
            least, greatest = min(least, norms.min()), max(greatest, norms.max())
        found = VectorSummary(
            reader.label, reader.format, words, reader.dim, selection.duplicates, selection.undecodable, first
        )
    if words:
        found.norms = {"min": float(least), "mean": float(total / words), "max": float(greatest)}
    return found


def _blocks(reader: _Reader, selection: Selection, on_progress: Progress | None) -> Iterator[Block]:
    for block in reader.blocks(selection):
        yield block
        if on_progress is not None:
            on_progress(*reader.progress())
    if on_progress is not None and not selection.is_complete:
        on_progress(*reader.progress()[1:] * 2)


@contextmanager
def _opened(source: str | Path, format: str, largest: float) -> Iterator[_Reader]:
    """Open a source with the reader of its format."""
    if format not in (AUTO, *VECTOR_FORMATS):
        raise DataError(f"format={format!r} is unknown; choose one of {', '.join((AUTO, *VECTOR_FORMATS))}.")
    if format == AUTO:
        check_name(source)
    place = locate(source)
    if format == "safetensors" or (format == AUTO and _holds_tensors(place)):
        yield TensorReader(place, largest)
        return
    if place.path.is_dir():
        raise DataError(f"{place.path}: is a folder, and no {format} file; name the file.")
    with open_stream(place) as stream:
        found = _recognised(stream) if format == AUTO else format
        if found == BinaryReader.format:
            yield BinaryReader(stream, largest)
        else:
            yield TextReader(stream, found, largest)


def _holds_tensors(place: Place) -> bool:
    if place.member is not None:
        return False
    return place.path.is_dir() or place.path.suffix.lower() == TENSOR_SUFFIX


def _recognised(stream: Stream) -> str:
    """Return the format of a stream of words and numbers."""
    if looks_like_tensors(stream.head):
        raise DataError(
            f"{stream.label}: is a safetensors file; unpack it beside its vocabulary, and name it with the suffix "
            f"{TENSOR_SUFFIX}."
        )
    first, _, rest = stream.head.partition(b"\n")
    header = header_of(first)
    if header is None:
        if b"\0" in stream.head and not ends_in_numbers(first, 1):
            raise DataError(
                f"{stream.label}: neither text nor word2vec's binary; name the format, or export the vectors as text."
            )
        return "glove"
    name = stream.name.lower().removesuffix(".gz")
    as_text = "fasttext" if name.endswith(".vec") else "word2vec"
    dim = header[1]
    second = next((line for line in rest.split(b"\n", 100) if line.strip()), b"")
    if not rest or ends_in_numbers(second, dim):
        return as_text
    # It is a binary file, or text with a fault in its first line.
    vector = rest.partition(b" ")[2][: 4 * dim]
    return BinaryReader.format if name.endswith(".bin") or not _is_clean_text(vector) else as_text


def _is_clean_text(sample: bytes) -> bool:
    if any(byte < ord(" ") and byte not in b"\t\r\n" for byte in sample):
        return False
    # A character may be cut at the end.
    return "\ufffd" not in sample.decode("utf-8", errors="replace").rstrip("\ufffd")
