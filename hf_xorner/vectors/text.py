"""Read word vectors from text: GloVe, and word2vec and fastText with a header."""

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import DataError
from .sources import READ_SIZE, Block, Selection, Stream, decoded

_BYTE_ORDER_MARK = "\ufeff".encode()
# A word, and the numbers behind it, are separated by these alone: all other blanks belong to the word.
_BLANKS = b" \t"
_LINE_EDGE = b" \t\r\n"
_FIELD = re.compile(rb"[^ \t]+")
_BLANK_RUN = re.compile(rb"[ \t]+")
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_HEADER = re.compile(rb"([0-9]+)[ \t]+([0-9]+)[ \t\r\n]*")
# Lines that vote on the dimension of a file without a header.
_VOTERS = 100


def header_of(line: bytes) -> tuple[int, int] | None:
    """Return the number of words and the dimension that a file's first line gives, or None if it is not a header."""
    found = _HEADER.fullmatch(line.removeprefix(_BYTE_ORDER_MARK))
    return (int(found[1]), int(found[2])) if found else None


def checked_header(line: bytes, place: str, format: str) -> tuple[int, int]:
    """Return what `header_of` does for a line that must be a header.

    Args:
        line: The first line of a file.
        place: Its place, for messages.
        format: The format that needs it.

    Raises:
        DataError: If it is not a header, or promises nothing.
    """
    header = header_of(line)
    if header is None:
        raise DataError(
            f"{place}: expected the header of {format}, which is the number of words and the dimension; give the "
            "format that the file has (glove has no header), or export the vectors as text."
        )
    if 0 in header:
        what = "no word" if header[1] else "vectors of dimension 0"
        raise DataError(f"{place}: the header promises {what}; fetch or write the file again.")
    return header


def is_number_like(field: bytes) -> bool:
    """Return whether a field is a number, finite or not.

    Args:
        field: Bytes between blanks.
    """
    return bool(_NUMBER.fullmatch(field) or _NOT_FINITE.fullmatch(field))


def ends_in_numbers(line: bytes, dim: int) -> bool:
    """Return whether a line ends in as many numbers as a vector has.

    Args:
        line: A line of any bytes.
        dim: The dimension.
    """
    fields = _BLANK_RUN.split(line.rstrip(_LINE_EDGE))
    return len(fields) > dim and all(map(is_number_like, fields[-dim:]))


class TextReader:
    """Reads the lines of one file."""

    def __init__(self, stream: Stream, format: str, largest: float) -> None:
        """Read the header, or find the dimension from the first lines.

        Args:
            stream: The file.
            format: "glove", "word2vec" or "fasttext"; only the first has no header.
            largest: The largest number that can be kept.

        Raises:
            DataError: If the file holds no vectors, or not the header that it should.
        """
        self.label = stream.label
        self.format = format
        self.progress = stream.progress
        self.promised: int | None = None
        self._largest = np.float32(largest)
        self._batches = _batches_of_lines(stream)
        self._first = next(self._batches, [])
        if not any(line.strip(_LINE_EDGE) for line in self._first):
            raise DataError(f"{self.label}:1: the file holds no word; expected lines of a word and its numbers.")
        if format == "glove":
            self.dim = self._voted_dim()
            self._start = 0
            return
        self.promised, self.dim = checked_header(self._first[0], f"{self.label}:1", format)
        self._start = 1

    def blocks(self, selection: Selection) -> Iterator[Block]:
        """Yield the words that are kept, with their vectors.

        A word that is not UTF-8 is left out and counted.

        Args:
            selection: Chooses them.

        Raises:
            DataError: For a line of other than a word and as many numbers as all others, for what is kept but not a
                finite number, and if there are not as many words as the header promises.
        """
        number = 1 + self._start
        lines: list[bytes] | None = self._first[self._start :]
        while lines is not None:
            words, rests, numbers = self._cut(lines, number)
            if self.promised is not None and selection.passed + len(words) > self.promised:
                raise DataError(
                    f"{self.label}:{numbers[self.promised - selection.passed]}: one word more than the "
                    f"{self.promised} that the header promises; correct the header."
                )
            chosen = selection.choose(list(map(decoded, words)))
            rows = self._parsed([rests[index] for index in chosen], [numbers[index] for index in chosen])
            yield Block([words[index].decode("utf-8") for index in chosen], rows)
            if selection.is_complete:
                return
            number += len(lines)
            lines = next(self._batches, None)
        if self.promised is not None and selection.passed < self.promised:
            raise DataError(
                f"{self.label}:{number - 1}: the file ends after {selection.passed} of the {self.promised} words that "
                "the header promises; fetch it again, or correct the header."
            )

    def _voted_dim(self) -> int:
        """Return the dimension on which most of the first lines agree.

        A line that is in order has as many numbers at its end as the dimension; a line whose word holds no blank has
        one field more than that, though one of the numbers be faulty.
        """
        by_numbers: Counter[int] = Counter()
        by_fields: Counter[int] = Counter()
        for line in [line for line in self._first if line.strip(_LINE_EDGE)][:_VOTERS]:
            # An empty word leaves no field behind.
            fields = [b""] if line[:1] in (b" ", b"\t") else []
            fields += _FIELD.findall(line.rstrip(_LINE_EDGE))
            numbers = next((at for at, field in enumerate(reversed(fields)) if not is_number_like(field)), len(fields))
            # A word may itself be a number.
            by_numbers[min(numbers, len(fields) - 1)] += 1
            by_fields[len(fields) - 1] += 1
        del by_numbers[0], by_fields[0]
        if not by_numbers:
            raise DataError(
                f"{self.label}:1: there is no number behind the word; expected a word and its vector, separated by "
                "blanks."
            )
        return max(by_numbers | by_fields, key=lambda dim: (by_numbers[dim] + by_fields[dim], by_numbers[dim]))

    def _cut(self, lines: Sequence[bytes], number: int) -> tuple[list[bytes], list[bytes], list[int]]:
        """Return the words of lines, the text of their numbers, and the numbers of the lines."""
        dim = self.dim
        words, rests, numbers = [], [], []
        for at, line in enumerate(lines, start=number):
            line = line.rstrip(_LINE_EDGE)
            if line.count(b" ") == dim and b"\t" not in line:
                # Were two of these blanks neighbours, one of the numbers would be empty, and could not be parsed.
                word, _, rest = line.partition(b" ")
            elif line:
                word, rest = self._cut_odd(line, at)
            else:
                continue
            words.append(word)
            rests.append(rest)
            numbers.append(at)
        return words, rests, numbers

    def _cut_odd(self, line: bytes, number: int) -> tuple[bytes, bytes]:
        """Return the word and the numbers of a line with unusual separators."""
        fields = list(_FIELD.finditer(line))
        is_empty_word = fields[0].start() > 0 and len(fields) == self.dim
        if len(fields) <= self.dim and not is_empty_word:
            raise self._ragged(number, len(fields) - 1)
        values = [field[0] for field in fields[-self.dim :]]
        # A word may hold blanks, but hardly a number that looks like those of the vector: the line is too long.
        for index, field in enumerate(fields[1 : -self.dim], start=1):
            whole = _INTEGER.fullmatch(field[0])
            if _NUMBER.fullmatch(field[0]) and (not whole or _INTEGER.fullmatch(values[0])):
                raise self._ragged(number, len(fields) - index)
        return line[: fields[-self.dim].start()].strip(_BLANKS), b" ".join(values)

    def _ragged(self, number: int, count: int) -> DataError:
        promise = "where the others have" if self.promised is None else "where the header promises"
        return DataError(
            f"{self.label}:{number}: {count} number{'' if count == 1 else 's'} {promise} {self.dim}; "
            "correct or remove the line."
        )

    def _parsed(self, rests: Sequence[bytes], numbers: Sequence[int]) -> NDArray[np.float32]:
        try:
            rows = parse_numbers(rests, self.dim)
        except pa.ArrowInvalid:
            rests = [self._checked(rest, number) for rest, number in zip(rests, numbers, strict=True)]
            rows = parse_numbers(rests, self.dim)
        # Not the other way around: a comparison with NaN is false.
        fits = np.abs(rows) <= self._largest
        if not fits.all():
            row, column = np.argwhere(~fits)[0]
            value = rests[row].split(b" ")[column].decode()
            fault = f"beyond ±{self._largest:.5g}" if np.isfinite(rows[row, column]) else "not a finite number"
            raise DataError(f"{self.label}:{numbers[row]}: {value!r} is {fault}; correct or remove the line.")
        return rows

    def _checked(self, rest: bytes, number: int) -> bytes:
        """Return the numbers of a line in a form that can be parsed; raises for the first that cannot."""
        values = _BLANK_RUN.split(rest.strip(_BLANKS))
        if len(values) != self.dim:
            raise self._ragged(number, len(values))
        for value in values:
            if not is_number_like(value):
                shown = value.decode("utf-8", errors="replace")
                raise DataError(f"{self.label}:{number}: {shown!r} is not a number; correct or remove the line.")
        return b" ".join(value.removeprefix(b"+") for value in values)


def parse_numbers(rests: Sequence[bytes], dim: int) -> NDArray[np.float32]:
    """Return the numbers of lines, each rounded to the nearest float32.

    Of what numpy, pandas and pyarrow offer, this takes the least time (40 ns a number, where `numpy.fromstring` takes
    230) and copies nothing but the text.

    Args:
        rests: As many numbers as the dimension each, with one blank between them.
        dim: The dimension.

    Raises:
        pyarrow.ArrowInvalid: If anything is not a number.
    """
    text = b" ".join([*rests, b""])
    # Arrow has strings lie end to end, so the blanks go, and the ends move forward by the blanks before them.
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord(" "))
    ends -= np.arange(len(ends))
    if len(ends) != len(rests) * dim:
        raise pa.ArrowInvalid("not as many numbers as there should be")
    offsets = np.concatenate(([0], ends)).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text.translate(None, b" "))]
    strings = pa.Array.from_buffers(pa.large_string(), len(ends), buffers)
    return strings.cast(pa.float32()).to_numpy().reshape(-1, dim)


def _batches_of_lines(stream: Stream) -> Iterator[list[bytes]]:
    """Yield the lines of a stream, many at a time."""
    head = stream.head.removeprefix(_BYTE_ORDER_MARK)
    yield io.BytesIO(head if head.endswith(b"\n") else head + stream.rest.readline()).readlines()
    while lines := stream.rest.readlines(READ_SIZE):
        yield lines
