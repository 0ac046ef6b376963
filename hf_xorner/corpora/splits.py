"""Find the files of each split of a corpus by their names."""

import re
from collections.abc import Iterable
from pathlib import Path

from ..errors import DataError

# The part of a file name that tells its split; testa and testb are CoNLL-2003's own names.
_ALIASES = {
    "train": "train",
    "training": "train",
    "dev": "validation",
    "devel": "validation",
    "development": "validation",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "testa": "validation",
    "test": "test",
    "testb": "test",
}
_SPLIT_WORD = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(_ALIASES, key=len, reverse=True))})(?![a-z])")
SPLITS = ("train", "validation", "test")
_COLUMN_SUFFIXES = {".txt", ".conll", ".conll03", ".tsv", ".tab", ".col", ".data", ".bio", ".iob", ".iob2", ".bioes"}
JSON_SUFFIXES = frozenset({".jsonl", ".json", ".ndjson"})
TABLE_SUFFIXES = frozenset({".parquet", ".arrow"})
SUFFIXES = frozenset(
    {"", ".annotated"} | _COLUMN_SUFFIXES | JSON_SUFFIXES | TABLE_SUFFIXES | {f".{alias}" for alias in _ALIASES}
)
# OntoNotes' own, in whatever version: .v4_gold_conll, and .v4_auto_conll for what programs annotated.
_CONLL2012_SUFFIX = "_conll"
_GOLD_SUFFIX = "_gold_conll"
_COMPRESSED = ".gz"
_PART = re.compile(r"-(\d{5})-of-(\d{5})(?=[-.])")
# Names that a message shows.
_SHOWN = 4


def suffix_of(path: Path) -> str:
    """Return the last suffix of a file name in lower case, ``.gz`` ignored."""
    name = path.name.lower().removesuffix(_COMPRESSED)
    return Path(name).suffix


def has_data_suffix(path: Path) -> bool:
    """Return whether a file name has a suffix of labelled data."""
    suffix = suffix_of(path)
    return suffix != "" and (suffix in SUFFIXES or suffix.endswith(_CONLL2012_SUFFIX))


def split_of(path: Path) -> str | None:
    """Return the split that a file name names, or None.

    ``wnut17train.conll``, ``emerging.dev.conll``, ``eng.testb`` and ``validation.txt.gz`` name one each; a name with
    two of them, or without a suffix of labelled data, names none.
    """
    if path.name.startswith(".") or (suffix_of(path) and not has_data_suffix(path)):
        return None
    return _split_told([path.name])


def find_splits(folder: Path, below: bool = True) -> dict[str, list[Path]]:
    """Return the files of a folder by split, in the order train, validation, test; missing splits are left out.

    Where no file of the folder itself tells a split, tables and CoNLL-2012 files are looked for below it, as the Hub's
    repositories and OntoNotes lay them out: the split is told by a folder or a file name.

    Args:
        folder: The folder.
        below: Whether to look below it, too.

    Raises:
        DataError: If two files claim one split, which only the numbered parts of a table and the files of one split's
            folder may do, or if some of such parts are missing.
    """
    claims: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        split = split_of(path)
        if split is not None and path.is_file():
            claims.setdefault(split, []).append(path)
    found = {split: _checked(claims[split], split) for split in SPLITS if split in claims}
    return found or (_find_below(folder) if below else {})


def _find_below(folder: Path) -> dict[str, list[Path]]:
    claims: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        suffix = suffix_of(path)
        if not (suffix in TABLE_SUFFIXES or suffix.endswith(_CONLL2012_SUFFIX)):
            continue
        split = _split_told(path.relative_to(folder).parts)
        if split is not None and path.is_file():
            claims.setdefault(split, []).append(path)
    found = {split: _best(claims[split]) for split in SPLITS if split in claims}
    for split, paths in found.items():
        _check_one_claim(list(dict.fromkeys(_claim_of(path.relative_to(folder)) for path in paths)), split, folder)
        _check_parts(paths)
    return found


def _claim_of(path: Path) -> str:
    """Return the first part of a path that names its split."""
    names = path.parts
    telling = next(index for index, name in enumerate(names) if _split_told([name]))
    return str(Path(*names[: telling + 1]).with_name(_PART.sub("", names[telling])))


def _split_told(names: Iterable[str]) -> str | None:
    told = {_ALIASES[word] for name in names for word in _SPLIT_WORD.findall(name.lower())}
    return told.pop() if len(told) == 1 else None


def _checked(paths: list[Path], split: str) -> list[Path]:
    paths = _best(paths)
    if len({_PART.sub("", path.name) for path in paths}) > 1:
        _check_one_claim([path.name for path in paths], split, paths[0].parent)
    _check_parts(paths)
    return paths


def _best(paths: list[Path]) -> list[Path]:
    """Return the files annotated by people, if there are any."""
    # WNUT 2017's test set was published twice in one folder; only the annotated file has the gold tags.
    for suffix in (".annotated", _GOLD_SUFFIX):
        paths = [path for path in paths if suffix_of(path).endswith(suffix)] or paths
    return paths


def _check_one_claim(names: list[str], split: str, folder: Path) -> None:
    if len(names) > 1:
        others = f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else ""
        raise DataError(
            f"{folder}: {' and '.join(names[:_SHOWN])}{others} all look like the {split} split; "
            "keep one of them in the folder."
        )


def _check_parts(paths: list[Path]) -> None:
    """Raise DataError if some of the numbered parts of a file are missing."""
    parts: dict[Path, set[int]] = {}
    for path in paths:
        if found := _PART.search(path.name):
            name = path.with_name(_PART.sub(f"-*-of-{found[2]}", path.name))
            parts.setdefault(name, set(range(int(found[2])))).discard(int(found[1]))
    for name, missing in parts.items():
        if missing:
            raise DataError(f"{name}: part {min(missing):05d} is missing; fetch or write all parts.")
