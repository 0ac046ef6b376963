"""Find the files of a corpus by the names that corpora are published under."""

import re
from pathlib import Path

from .errors import DataError

# The part of a file name that tells its split; testa and testb are CoNLL-2003's own names.
_ALIASES = {
    "train": "train",
    "training": "train",
    "dev": "validation",
    "devel": "validation",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "testa": "validation",
    "test": "test",
    "testb": "test",
}
_SPLIT_WORD = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(_ALIASES, key=len, reverse=True))})(?![a-z])")
SPLITS = ("train", "validation", "test")
SUFFIXES = frozenset(
    {"", ".txt", ".conll", ".conll03", ".tsv", ".tab", ".col", ".data", ".bio", ".iob", ".iob2", ".annotated"}
    | {f".{alias}" for alias in _ALIASES}
)


def has_column_suffix(path: Path) -> bool:
    """Tell whether a file name ends in a suffix that files of columns bear."""
    return path.suffix.lower() in SUFFIXES - {""}


def split_of(path: Path) -> str | None:
    """Return the split that a file name announces, or None.

    ``wnut17train.conll``, ``emerging.dev.conll``, ``eng.testb`` and ``validation.txt`` all tell theirs; a name that
    tells two, or whose suffix is not one of column files, tells none.
    """
    if path.name.startswith(".") or path.suffix.lower() not in SUFFIXES:
        return None
    told = {_ALIASES[word] for word in _SPLIT_WORD.findall(path.name.lower())}
    return told.pop() if len(told) == 1 else None


def find_splits(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by split, in the order train, validation, test; missing splits are left out.

    Raises:
        DataError: If two files claim one split.
    """
    claims: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        split = split_of(path)
        if split is not None and path.is_file():
            claims.setdefault(split, []).append(path)
    return {split: _only(claims[split], split) for split in SPLITS if split in claims}


def _only(paths: list[Path], split: str) -> Path:
    # WNUT 2017's test set was published twice in one folder; only the annotated file has the gold tags.
    annotated = [path for path in paths if path.suffix.lower() == ".annotated"]
    paths = annotated or paths
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths)
        raise DataError(f"{paths[0].parent}: {names} all look like the {split} split; keep one of them in the folder.")
    return paths[0]
