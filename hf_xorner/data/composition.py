"""Open-vocabulary vectors: one for each subword piece of an encoder, and how words are composed of them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from ..errors import DataError, first_line
from ..models.pieces import WordPieces
from .vector_sources import fetch_beside, locate

#: The file of the vectors, and beside it that of the tokenizer.
FILES = ("composed.safetensors", "piece_tokenizer.json")

#: How many words the plain mean is worth, against which the composition is fitted.
_PRIOR_WORDS = 30


class Composition(NamedTuple):
    """A word of one piece has that piece's vector, a word of several mix @ [first ; mean ; last] + bias.

    Attributes:
        vectors: The pieces' vectors. Shape: (pieces, dim), float32 or float16.
        mix: Shape: (dim, 3 · dim).
        bias: Shape: (dim,).
        pieces: What cuts words into pieces.
    """

    vectors: NDArray[np.floating]
    mix: NDArray[np.float32]
    bias: NDArray[np.float32]
    pieces: WordPieces

    @property
    def dim(self) -> int:
        """The dimension of the vectors."""
        return self.vectors.shape[1]


def roles_of(vectors: NDArray[np.floating], piece_ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return [first ; mean ; last] of the vectors of each word's pieces.

    Args:
        vectors: The pieces' vectors. Shape: (pieces, dim).
        piece_ids: A piece's number and one more, 0 for none, at least one for each word. Shape: (words, width).

    Returns:
        Shape: (words, 3 · dim).
    """
    counts = (piece_ids > 0).sum(1)
    padded = np.concatenate([np.zeros((1, vectors.shape[1])), vectors.astype(np.float64)])
    sums = np.zeros((len(piece_ids), vectors.shape[1]))
    for column in piece_ids.T:
        sums += padded[column]
    last = piece_ids[np.arange(len(piece_ids)), counts - 1]
    return np.concatenate([padded[piece_ids[:, 0]], sums / counts[:, None], padded[last]], 1)


def fit_composition(
    vectors: NDArray[np.float32], words: NDArray[np.float32], piece_ids: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Fit mix and bias to the vectors that an encoder gives whole words: least squares, drawn towards the plain mean.

    Args:
        vectors: The pieces' vectors. Shape: (pieces, dim).
        words: The words' vectors. Shape: (words, dim).
        piece_ids: The words' pieces, as in `roles_of`; words of less than two are passed over. Shape: (words, width).
    """
    several = (piece_ids > 0).sum(1) > 1
    dim = vectors.shape[1]
    mix = np.zeros((3 * dim + 1, dim))
    mix[dim : 2 * dim] = np.eye(dim)
    if several.any():
        roles = np.pad(roles_of(vectors, piece_ids[several]), ((0, 0), (0, 1)), constant_values=1)
        squares = roles.T @ roles + _PRIOR_WORDS * np.eye(roles.shape[1])
        mix += np.linalg.solve(squares, roles.T @ (words[several] - roles @ mix))
    return mix[:-1].T.astype(np.float32), mix[-1].astype(np.float32)


def check_composition_target(folder: str | Path, overwrite: bool = False) -> list[Path]:
    """Return the files that `write_composition` would write, or refuse as it would.

    Args:
        folder: The folder.
        overwrite: Replace files that exist.
    """
    path = Path(folder).expanduser()
    if path.exists() and not path.is_dir():
        raise DataError(f"{path}: is no folder; name one to write {' and '.join(FILES)} into.")
    for name in FILES:
        if (path / name).exists() and not overwrite:
            raise DataError(f"{path / name}: exists already; choose another place to write to, or overwrite it.")
    return [path / name for name in FILES]


def write_composition(composition: Composition, folder: str | Path, overwrite: bool = False) -> list[Path]:
    """Write a composition into a folder.

    Args:
        composition: What to write.
        folder: The folder, made if it is not there.
        overwrite: Replace files that exist.
    """
    tensors, tokenizer = check_composition_target(folder, overwrite)
    tensors.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.write_text(composition.pieces.to_str(), encoding="utf-8")
    parts = {"vectors": composition.vectors, "mix": composition.mix, "bias": composition.bias}
    save_file({name: np.ascontiguousarray(part) for name, part in parts.items()}, tensors)
    return [tensors, tokenizer]


def read_composition(source: str | Path) -> Composition:
    """Read what `write_composition` wrote.

    Args:
        source: The folder, or ``owner/name:composed.safetensors`` on the Hub.

    Raises:
        DataError: If it is not there, or does not hold together.
    """
    place = locate(source)
    tensors = place.path / FILES[0] if place.path.is_dir() else place.path
    tokenizer = fetch_beside(place, FILES[1:]) if place.remote else tensors.with_name(FILES[1])
    for path in (tensors, tokenizer):
        if not path.is_file():
            raise DataError(f"{path}: there is no such file; distil one with vectors.py distill --composed true.")
    try:
        parts = load_file(tensors)
    # The last for numbers that NumPy does not know, such as bfloat16.
    except (SafetensorError, OSError, TypeError) as error:
        raise DataError(f"{tensors}: cannot be read ({first_line(error)}); distil it again.") from None
    try:
        pieces = WordPieces(tokenizer.read_text(encoding="utf-8"))
    # What the tokenizers library raises has no type of its own.
    except Exception as error:
        raise DataError(f"{tokenizer}: is no tokenizer ({first_line(error)}); distil it again.") from None
    dim = parts["bias"].size if "bias" in parts else 0
    expected = {"vectors": (pieces.size, dim), "mix": (dim, 3 * dim), "bias": (dim,)}
    found = {name: part.shape for name, part in parts.items()}
    if found != expected:
        raise DataError(f"{tensors}: expected the tensors {expected}, found {found}; distil it again.")
    if not all(np.isfinite(part).all() for part in parts.values()):
        raise DataError(f"{tensors}: holds a number that is NaN or infinite; distil it again.")
    return Composition(parts["vectors"], parts["mix"], parts["bias"], pieces)
