"""Read word vectors from the binary files of word2vec."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .textfile import LONGEST_LINE
from .vector_selection import Block, Selection, decoded
from .vector_sources import Stream
from .vector_text import header_of

# word2vec itself takes words of up to 60 bytes.
_LONGEST_HEADER = 100
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
        self._largest = np.float32(largest)
        self._chunks = stream.rest
        line, line_end, rest = stream.head.partition(b"\n")
        header = header_of(line) if line_end and len(line) < _LONGEST_HEADER else None
        if header is None:
            raise DataError(
                f"{self.label}: expected the header of {self.format}, which is the number of words and the dimension; "
                "give the format that the file has, or export the vectors as text."
            )
        self.promised, self.dim = header
        if not self.promised or not self.dim:
            what = "no word" if self.dim else "vectors of dimension 0"
            raise DataError(f"{self.label}: the header promises {what}; fetch or write the file again.")
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
                yield from self._chosen(words, offsets, done, selection)
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
        """Return the words whose vectors lie in the buffer, where these begin, and where the last of them ends."""
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

    def _chosen(self, words: list[bytes], offsets: list[int], done: int, selection: Selection) -> Iterator[Block]:
        chosen = selection.choose(decoded(words))
        if not chosen:
            return
        rows = np.empty((len(chosen), self.dim), dtype=np.float32)
        for row, index in enumerate(chosen):
            rows[row] = np.frombuffer(self._buffer, _FLOAT, self.dim, offsets[index])
        self._check(rows, [done + 1 + index for index in chosen])
        yield Block([words[index].decode("utf-8") for index in chosen], rows)

    def _check(self, rows: NDArray[np.float32], numbers: list[int]) -> None:
        # Not the other way around: a comparison with NaN is false.
        fits = (np.abs(rows) <= self._largest).all(axis=1)
        if not fits.all():
            row = int(np.argmin(fits))
            fault = f"beyond ±{self._largest:.5g}" if np.isfinite(rows[row]).all() else "NaN or infinite"
            raise DataError(
                f"{self.label}, word {numbers[row]}: the vector holds a number that is {fault}; "
                "correct the vectors, or read the format that the file has."
            )

    def _read_on(self) -> bool:
        if len(self._buffer) > LONGEST_LINE:
            raise DataError(f"{self.label}: a word with its vector takes more than {LONGEST_LINE:,} bytes; mend it.")
        chunk = next(self._chunks, b"")
        self._buffer += chunk
        return bool(chunk)

    def _check_end(self) -> None:
        """Refuse what follows the last word, but for line breaks."""
        while True:
            if self._buffer.strip(b"\r\n"):
                raise DataError(
                    f"{self.label}: there is more in the file than the {self.promised} words that its header promises; "
                    "fetch or write it again."
                )
            self._buffer.clear()
            if not self._read_on():
                return
