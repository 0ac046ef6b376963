"""An input in chunks: what is tagged together, shared out among processes, and done or not done as a whole."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from .sources import Source

# Bytes of raw records that close a chunk even if more records would fit: long documents shall not add up.
_LARGEST = 1 << 20


class Chunk(NamedTuple):
    """Records that stand together in one input.

    Attributes:
        number: From 0, through all inputs.
        file: The number of the input.
        raws: The raw records; none in the first chunk of an empty input.
        first: The line or row of the first of them.
        digest: What tells all that has been read up to the end of this chunk from anything else.
        position: Bytes that have been read up to there.
    """

    number: int
    file: int
    raws: list[Any]
    first: int
    digest: str
    position: int


def chunks(sources: Iterable[tuple[str, Source]], records: int) -> Iterator[Chunk]:
    """Yield inputs in chunks, none of which holds records of two inputs; each input has one at least.

    Args:
        sources: The inputs, with names that belong to what tells them apart.
        records: The most records of a chunk.
    """
    digest = blake2b(digest_size=16)
    number = before = 0
    for file, (name, source) in enumerate(sources):
        digest.update(f"\0{name}\0".encode(errors="surrogateescape"))
        first, empty = source.first, True
        for raws in _together(source.raws(), records):
            digest.update(source.bytes_of(raws))
            yield Chunk(number, file, raws, first, digest.hexdigest(), before + source.position())
            first += sum(map(source.lines_of, raws))
            number, empty = number + 1, False
        if empty:
            yield Chunk(number, file, [], first, digest.hexdigest(), before)
            number += 1
        before += source.size or 0


def _together(raws: Iterable[Any], most: int) -> Iterator[list[Any]]:
    held: list[Any] = []
    size = 0
    for raw in raws:
        held.append(raw)
        size += _size(raw)
        if len(held) == most or size >= _LARGEST:
            yield held
            held, size = [], 0
    if held:
        yield held


def _size(raw: Any) -> int:
    if isinstance(raw, (bytes, str)):
        return len(raw)
    return sum(map(_size, raw)) if isinstance(raw, Sequence) else 1
