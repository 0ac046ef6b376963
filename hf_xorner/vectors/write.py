"""Write word vectors to files that are read back without loss."""

import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from safetensors.numpy import save_file

from ..errors import DataError
from ..files import BYTE_ORDER_MARK, check_apart, replacing
from .formats import VECTOR_FORMATS, Vectors
from .tensors import SUFFIX as TENSOR_SUFFIX
from .tensors import VOCABULARIES
from .text import header_of, is_number_like

_TENSOR = "vectors"
_VOCABULARY = VOCABULARIES[0]
# Numbers of a block.
_BLOCK = 1 << 18
# Reading removes a byte-order mark at the beginning of these.
_BEGIN_WITH_A_WORD = ("glove", "safetensors")
_FLOAT = np.dtype("<f4")
# A tenth less in size, which is what more effort gains, would take nearly three times as long.
_GZIP_LEVEL = 4


def write_vectors(
    vectors: Vectors, path: str | Path, format: str = "safetensors", overwrite: bool = False
) -> list[Path]:
    """Write vectors so that `hf_xorner.vectors.formats.read_vectors` reads them back without loss.

    The formats are

    - ``safetensors``: a folder with ``vectors.safetensors``, of the matrix's own type, and ``vocabulary.txt``, a word a
      line;
    - ``glove``, ``word2vec``, ``fasttext``: text; the last two are one format. Every number has the fewest digits that
      float32 reads back as the same;
    - ``word2vec-binary``: 32-bit floats.

    The last four are compressed if the file's name ends in ``.gz``. Nothing is left half written: what is written takes
    its place at the end, when it is complete.

    Args:
        vectors: The vectors. A float16 matrix is written without loss in every format.
        path: The file, or for ``safetensors`` the folder; missing folders are created.
        format: One of the formats.
        overwrite: Replace files that exist.

    Returns:
        The files that were written.

    Raises:
        DataError: If a file exists and `overwrite` is False, or if the format cannot represent a word.
    """
    targets = check_target(path, format, overwrite)
    path = Path(path).expanduser()
    _check_content(vectors, path)
    _check_words(vectors, path, format)
    if format == "safetensors":
        tensor, vocabulary = targets
        with replacing(vocabulary) as new:
            _write((f"{word}\n".encode() for word in vectors.words), new, compressed=False)
            # A process that is killed between the two files leaves vectors without words, which are refused.
            save_tensors(tensor, {_TENSOR: vectors.matrix}, obsolete=vocabulary)
        return targets
    blocks = _binary(vectors) if format == "word2vec-binary" else _text(vectors, with_header=format != "glove")
    with replacing(path) as new:
        _write(blocks, new, path.suffix.lower() == ".gz")
    return targets


def check_target(path: str | Path, format: str, overwrite: bool = False, inputs: Iterable[str] = ()) -> list[Path]:
    """Return the files that `write_vectors` would write; raises the same errors, before a long computation.

    Args:
        path: As for `write_vectors`.
        format: Likewise.
        overwrite: Likewise.
        inputs: What the vectors are made from, none of which may be overwritten.

    Raises:
        DataError: If the format is unknown, a file exists, or an input would be overwritten.
    """
    if format not in VECTOR_FORMATS:
        raise DataError(f"format={format!r} cannot be written; choose one of {', '.join(VECTOR_FORMATS)}.")
    path = Path(path).expanduser()
    if format != "safetensors":
        if path.is_dir():
            raise DataError(f"{path}: is a folder; name a file to write {format} into.")
        targets = [path]
    elif path.suffix.lower() == TENSOR_SUFFIX or (path.exists() and not path.is_dir()):
        raise DataError(f"{path}: is not a folder; name one to write safetensors and vocabulary into.")
    else:
        targets = [path / f"{_TENSOR}{TENSOR_SUFFIX}", path / _VOCABULARY]
    check_free(targets, overwrite)
    for target in targets:
        check_apart(target, *inputs)
    return targets


def _check_content(vectors: Vectors, path: Path) -> None:
    if not len(vectors) or not vectors.dim:
        raise DataError(f"{path}: there is nothing to write, as no word was kept, or the dimension is 0.")
    if len(set(vectors.words)) != len(vectors):
        raise DataError(f"{path}: a word has several vectors; give every word one.")
    step = max(1, _BLOCK // vectors.dim)
    for start in range(0, len(vectors), step):
        finite = np.isfinite(vectors.matrix[start : start + step]).all(axis=1)
        if not finite.all():
            word = vectors.words[start + int(np.argmin(finite))]
            raise DataError(f"{path}: the vector of {word!r} holds a number that is NaN or infinite; correct it.")


def _check_words(vectors: Vectors, path: Path, format: str) -> None:
    """Raise DataError for a word that would not be read back."""
    fault = {"safetensors": _fault_in_vocabulary, "word2vec-binary": _fault_in_binary}.get(format, _fault_in_text)
    for index, word in enumerate(vectors.words):
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            found: str | None = "holds half a surrogate pair"
        else:
            found = fault(word)
        if index == 0 and found is None and format in _BEGIN_WITH_A_WORD and word.startswith(BYTE_ORDER_MARK):
            found = "begins with a byte-order mark"
        if found is not None:
            raise DataError(f"{path}: {format} cannot hold the word {word!r}, which {found}; remove it.")
    if format == "glove" and vectors.dim == 1 and header_of(next(_text(vectors, with_header=False)).split(b"\n")[0]):
        raise DataError(f"{path}: the first line would be taken for a header; write word2vec, which has one.")


def _fault_in_vocabulary(word: str) -> str | None:
    if "\n" in word or word.endswith("\r"):
        return "holds a line break"
    return None


def _fault_in_binary(word: str) -> str | None:
    if " " in word:
        return "holds a blank"
    return "begins with a line break" if word.startswith("\n") else None


def _fault_in_text(word: str) -> str | None:
    if "\n" in word:
        return "holds a line break"
    if word.strip(" \t") != word:
        return "begins or ends with a blank"
    if any(is_number_like(field) for field in word.encode().replace(b"\t", b" ").split(b" ")[1:]):
        return "holds a number after a blank"
    return None


def save_tensors(path: Path, parts: Mapping[str, NDArray[Any]], obsolete: Path | None = None) -> None:
    """Write a safetensors file with the permissions of any new file.

    Args:
        path: The file, which is replaced as a whole.
        parts: Its tensors by name.
        obsolete: A file to remove before the tensors get their name.
    """
    with replacing(path) as new:
        new.touch()
        mode = new.stat().st_mode
        save_file({name: np.ascontiguousarray(part) for name, part in parts.items()}, new)
        new.chmod(mode)  # safetensors lets only the owner read its files
        if obsolete is not None:
            obsolete.unlink(missing_ok=True)


def check_free(paths: Iterable[Path], overwrite: bool) -> None:
    """Raise DataError for a file that exists and may not be overwritten."""
    for path in paths:
        if path.exists() and not overwrite:
            raise DataError(f"{path}: exists already; choose another place to write to, or set overwrite.")


def _text(vectors: Vectors, with_header: bool) -> Iterator[bytes]:
    """Yield the lines of words and numbers."""
    if with_header:
        yield f"{len(vectors)} {vectors.dim}\n".encode()
    step = max(1, _BLOCK // vectors.dim)
    for start in range(0, len(vectors), step):
        rows = vectors.matrix[start : start + step].astype(np.float32)
        # Arrow writes the fewest digits that tell a number from its neighbours.
        numbers = pa.array(rows.reshape(-1)).cast(pa.string())
        offsets = np.arange(0, rows.size + 1, vectors.dim, dtype=np.int32)
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), numbers), " ")
        lines = pc.binary_join_element_wise(pa.array(vectors.words[start : start + step], pa.string()), joined, " ")
        yield "\n".join([*lines.to_pylist(), ""]).encode()


def _binary(vectors: Vectors) -> Iterator[bytes]:
    """Yield the words and floats, with a line break after each vector, as word2vec writes them."""
    yield f"{len(vectors)} {vectors.dim}\n".encode()
    for word, row in zip(vectors.words, vectors.matrix, strict=True):
        yield f"{word} ".encode() + row.astype(_FLOAT).tobytes() + b"\n"


def _write(blocks: Iterable[bytes], path: Path, compressed: bool) -> None:
    with path.open("wb") as plain:
        if not compressed:
            plain.writelines(blocks)
            return
        # Without a time and a name inside, the same vectors give the same file.
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, cast("IO[bytes]", plain), mtime=0) as packed:
            packed.writelines(blocks)
