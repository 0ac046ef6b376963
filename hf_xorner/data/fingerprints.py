"""Fingerprints of content, which stay the same wherever it lies."""

import hashlib
import json
from pathlib import Path
from typing import BinaryIO

from datasets import Dataset, DatasetDict

from .batches import flat_batches, label_names_of


def corpus_fingerprint(corpus: DatasetDict) -> str:
    """Return the SHA-256 of a corpus: its splits, labels, sentences, words and tags.

    Where the files lie, in what format, and other columns than words and tags play no role.

    Args:
        corpus: The splits in the form that `hf_xorner.data.load_corpus` returns.
    """
    rows = [[name, split_fingerprint(corpus[name], name)] for name in sorted(corpus)]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def split_fingerprint(split: Dataset, name: str) -> str:
    """Return the SHA-256 of a split: its labels, sentences, words and tags.

    Args:
        split: The split.
        name: What messages call it.
    """
    parts = [hashlib.sha256() for _ in range(3)]
    for batch in flat_batches(split, name):
        words = "".join(f"{len(word)}:{word}" for word in batch.tokens.to_pylist())
        for part, content in zip(
            parts,
            (words.encode(), batch.lengths.astype("<i8").tobytes(), batch.ids.astype("<i8").tobytes()),
            strict=True,
        ):
            part.update(content)
    row = [label_names_of(split, name), *(part.hexdigest() for part in parts)]
    return hashlib.sha256(json.dumps(row).encode()).hexdigest()


def file_fingerprint(path: Path) -> dict[str, str | int]:
    """Return the ``bytes`` and the ``sha256`` of a file, or of all files of a folder with their names in it."""
    if path.is_file():
        with path.open("rb") as file:
            return {"bytes": path.stat().st_size, "sha256": _digest(file)}
    whole, size = hashlib.sha256(), 0
    for inside in sorted(inside for inside in path.rglob("*") if inside.is_file()):
        with inside.open("rb") as file:
            whole.update(json.dumps([inside.relative_to(path).as_posix(), _digest(file)]).encode())
        size += inside.stat().st_size
    return {"bytes": size, "sha256": whole.hexdigest()}


def _digest(file: BinaryIO) -> str:
    # hashlib.file_digest came with Python 3.11.
    digest = hashlib.sha256()
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()
