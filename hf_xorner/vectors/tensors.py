"""Read word vectors from a safetensors file with a vocabulary beside it."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from ..errors import DataError, first_line
from ..files import BYTE_ORDER_MARK, open_text
from .sources import Block, Place, Selection, check_range, fetch_beside

SUFFIX = ".safetensors"
#: What a vocabulary may be called; the first that exists is taken.
VOCABULARIES = ("vocabulary.txt", "vocabulary.json", "vocab.txt", "vocab.json")
_TYPES = ("F16", "F32", "F64")
# Numbers of a block. The file is mapped into memory anew for each, or all of it would count as memory in use.
_BLOCK = 1 << 22
_LONGEST_HEADER = 100_000_000


def looks_like_tensors(head: bytes) -> bool:
    """Return whether a file begins like safetensors: with the length of a JSON object, and that object.

    Args:
        head: The first bytes.
    """
    return head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= _LONGEST_HEADER


class TensorReader:
    """Reads the rows of one tensor."""

    format = "safetensors"

    def __init__(self, place: Place, largest: float) -> None:
        """Read the vocabulary and the shape of the tensor.

        Args:
            place: The safetensors file, or a folder with one.
            largest: The largest number that can be kept.

        Raises:
            DataError: If there is not one tensor of two dimensions, and a word for each of its rows.
        """
        self._path = _tensor_file(place.path)
        self.label = str(self._path)
        self._largest = largest
        self._done = 0
        self._name, shape = self._tensor()
        self.promised, self.dim = shape
        if not self.promised or not self.dim:
            raise DataError(f"{self.label}: the tensor has the shape {shape}, without a vector; write the file again.")
        vocabulary = _vocabulary_of(self._path, place)
        self._words = read_vocabulary(vocabulary)
        if len(self._words) != self.promised:
            raise DataError(
                f"{vocabulary}: {len(self._words)} words for the {self.promised} vectors of {self._path.name}; "
                "give every row of the tensor its word."
            )

    def blocks(self, selection: Selection) -> Iterator[Block]:
        """Yield the words that are kept, with their vectors.

        Args:
            selection: Chooses them.

        Raises:
            DataError: For a kept vector that is not of finite numbers.
        """
        step = max(1, _BLOCK // self.dim)
        for start in range(0, len(self._words), step):
            words = self._words[start : start + step]
            chosen = selection.choose(words)
            rows = self._rows(start, start + len(words), chosen)
            numbers = [start + index for index in chosen]
            check_range(rows, self._largest, lambda row: self._place(numbers[row]), "correct the vectors")  # noqa: B023
            self._done = start + len(words)
            yield Block([words[index] for index in chosen], rows)
            if selection.is_complete:
                return

    def progress(self) -> tuple[int, int]:
        """Return how many bytes of the file have been read, and its size."""
        size = self._path.stat().st_size
        return size * self._done // len(self._words), size

    def _place(self, row: int) -> str:
        return f"{self.label}, row {row} ({self._words[row]!r})"

    def _tensor(self) -> tuple[str, tuple[int, int]]:
        """Return the name and the shape of the only tensor of two dimensions."""
        try:
            with safe_open(self._path, framework="np") as file:
                found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  it is no mapping
                shapes = {name: tuple(part.get_shape()) for name, part in found.items()}
                types = {name: part.get_dtype() for name, part in found.items()}
        except (SafetensorError, OSError) as error:
            raise DataError(f"{self.label}: not a safetensors file, or damaged ({first_line(error)}).") from None
        names = [name for name, shape in shapes.items() if len(shape) == 2]
        if len(names) != 1:
            raise DataError(
                f"{self.label}: expected one tensor of two dimensions, words and vectors, "
                f"found {' and '.join(map(repr, names)) or 'none'}; save the vectors alone."
            )
        (name,) = names
        if types[name] not in _TYPES:
            raise DataError(
                f"{self.label}: the tensor is of type {types[name]}; save it as one of {', '.join(_TYPES)}."
            )
        rows, dim = shapes[name]
        return name, (rows, dim)

    def _rows(self, start: int, end: int, chosen: list[int]) -> Any:
        with safe_open(self._path, framework="np") as file:
            rows = file.get_slice(self._name)[start:end]
        if len(chosen) < len(rows):
            rows = rows[chosen]
        # What float32 cannot hold becomes infinite, and is told as such.
        with np.errstate(over="ignore"):
            return rows.astype(np.float32, copy=False)


def files_of(source: str | Path) -> list[str]:
    """Return the local files that vectors may be read from, whether they exist or not.

    Args:
        source: A path, ``archive.zip:part``, or a name on the Hub.
    """
    text = os.path.expanduser(source)
    path = Path(text)
    vocabularies = VOCABULARIES if path.suffix.lower() == SUFFIX else ()
    archives = [text[: colon.start()] for colon in re.finditer(":", text)]
    return [text, *archives, *(str(path.with_name(name)) for name in vocabularies)]


def read_vocabulary(path: Path) -> list[str]:
    r"""Return the words of a vocabulary, in the order of the vectors.

    Args:
        path: A text of one word a line, where lines end in ``\n`` or ``\r\n`` and an empty line is an empty word; or
            JSON, a list of words, or a map from words to rows that names every row once.

    Raises:
        DataError: If it is neither.
    """
    with open_text(path) as file:
        text = file.read().removeprefix(BYTE_ORDER_MARK)
    if path.suffix.lower() != ".json":
        lines = text.removesuffix("\n").split("\n") if text else []
        return [line.removesuffix("\r") for line in lines]
    try:
        found = json.loads(text)
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({first_line(error)}); give a list of words.") from None
    if isinstance(found, list) and all(isinstance(word, str) for word in found):
        return found
    if isinstance(found, dict) and all(type(row) is int for row in found.values()):
        by_row = {row: word for word, row in found.items()}
        if sorted(by_row) == list(range(len(found))):
            return [by_row[row] for row in range(len(found))]
        raise DataError(f"{path}: the map does not name every row from 0 to {len(found) - 1} once; correct it.")
    raise DataError(f"{path}: expected a list of words, or a map from words to rows; write it again.")


def _tensor_file(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = sorted(path.glob(f"*{SUFFIX}"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise DataError(f"{path}: the folder holds no {SUFFIX} file; name a file of vectors.")
    raise DataError(f"{path}: the folder holds {' and '.join(file.name for file in found)}; name one of them.")


def _vocabulary_of(path: Path, place: Place) -> Path:
    for name in VOCABULARIES:
        if (path.parent / name).is_file():
            return path.parent / name
    if place.remote is not None:
        return fetch_beside(place, VOCABULARIES)
    raise DataError(
        f"{path}: there is no vocabulary beside the vectors; give their words in {VOCABULARIES[0]}, one a line."
    )
