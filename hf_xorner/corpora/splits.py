"""Find the files of each split of a corpus by their names."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError
from ..files import HUB_NAME, files_below, suffix_of
from .formats import FORMATS
from .formats.json_lines import JSON_SUFFIXES
from .source import ANNOTATION_SUFFIX, TEXT_SUFFIX

# The parts of file names that name a split; testa and testb are used by CoNLL-2003.
_NAMES = {
    "train": "train training trn",
    "validation": "dev devel development val valid validation validate heldout tune tuning testa",
    "test": "test testb testing tst",
    "eval": "eval evaluation",
}
_ALIASES = {alias: split for split, aliases in _NAMES.items() for alias in aliases.split()}
_SPLIT_WORD = re.compile(rf"(?<![a-z])({'|'.join(sorted(_ALIASES, key=len, reverse=True))})(?:set|data)?(?![a-z])")
SPLITS = ("train", "validation", "test")
TABLE_SUFFIXES = frozenset({".parquet", ".arrow"})
#: The suffixes of labelled data.
SUFFIXES = {"", *(f".{alias}" for alias in _ALIASES)}.union(*(format.suffixes for format in FORMATS))
# Files without labelled data, even if their names contain the name of a split.
_OTHER_SUFFIX = re.compile(
    r"\.(md|rst|html?|pdf|tex|bib|docx?|png|jpe?g|svg|pyc?|ipynb|sh|pl|java|js|c|cpp|h|log|out|err|ya?ml|toml|cfg|conf"
    r"|ini|lock|xml|xlsx?|ods|npy|npz|pkl|pickle|pt|bin|safetensors|h5|vec|db|bak|orig|md5|sha256|zip|tar|tgz|bz2|xz|zst|7z|rar)"
)
_OTHER_NAME = re.compile(
    r"(read_?me|licen[cs]e|copying|changelog|citation|makefile|requirements|dataset_infos?)(\.\w+)?", re.IGNORECASE
)
# Parts of the names of files whose labels were removed.
_UNLABELLED = re.compile(r"un_?-?labell?ed|no_?labels|mask|blind|raw")
# If several files seem to hold the same split, files with these suffixes are the last choice.
_LATER = {**dict.fromkeys((".csv", *JSON_SUFFIXES), 1), TEXT_SUFFIX: 2}
_MODEL = "model.safetensors"
_PART = re.compile(r"-(\d{5})-of-(\d{5})(?=[-.])")


def has_data_suffix(path: Path) -> bool:
    """Return True if a file name has a suffix of labelled data."""
    suffix = suffix_of(path)
    return suffix != "" and (suffix in SUFFIXES or suffix.endswith("_conll"))


def is_hub_name(source: str) -> bool:
    """Return True for owner/name or owner/name:configuration, unless its suffix shows that it is a mistyped path."""
    return re.fullmatch(rf"{HUB_NAME}(:\S+)?", source) is not None and not has_data_suffix(Path(source))


def split_of(path: Path) -> str | None:
    """Return the split in a file name, or None.

    ``wnut17train.conll``, ``emerging.dev.conll``, ``eng.testb`` and ``validation.txt.gz`` each name a split; a name
    with two splits, or with another suffix than labelled data, names none. ``eval`` means the validation split.
    """
    if path.name.startswith(".") or (suffix_of(path) and not has_data_suffix(path)):
        return None
    splits = _splits_in([path.name])
    return None if len(splits) != 1 else "validation" if splits == {_EVAL} else splits.pop()


class SplitFiles(NamedTuple):
    """The files of a folder.

    Attributes:
        splits: The files to read by split, in the order train, validation, test; missing splits are left out.
        ignored: The files that are not read, by reason.
        assumed: Files whose split was guessed from the name, by this split.
    """

    splits: dict[str, list[Path]]
    ignored: dict[str, list[Path]]
    assumed: dict[str, list[Path]]

    def report(self, folder: Path) -> str:
        """Return the guesses and the files that were not read in one line; empty if there are none."""
        assumed = [f"{_listed(paths, folder)} read as the {split} split" for split, paths in self.assumed.items()]
        ignored = [f"{_listed(paths, folder)} ({reason})" for reason, paths in self.ignored.items()]
        return "; ".join([*assumed, *(["ignored " + ", ".join(ignored)] if ignored else [])])


def find_splits(folder: Path, below: bool = True, prefix: str = "") -> SplitFiles:
    """Return the files of a folder by split, and other files by the reason why they are not read.

    If no file of the folder itself names a split, subfolders are searched, as in repositories of the Hub and in
    OntoNotes; the name of a subfolder or a file then names the split. Tables and CoNLL-2012 files are preferred. A file
    with an unknown suffix is read if its name is the only one with its split. ``eval`` is the validation split, or the
    test split if there is another validation split. Hidden files are ignored. If several files in a folder name the
    same split, the first labelled one is read, preferably one in columns.

    Args:
        folder: The folder.
        below: True to search subfolders, too.
        prefix: Only files whose names begin with this are considered.

    Raises:
        DataError: If files in two folders, or numbered files such as train_1 and train_2, name the same split (parts of
            a table and BRAT's documents excepted), or if parts of a table are missing.
    """
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    files = _sorted_by_split([path for path in entries if path.is_file() and path.name.startswith(prefix)], folder)
    if files.splits:
        if folders := [path for path in entries if path.is_dir()]:
            files.ignored[_BELOW] = folders
    elif below:
        all_files = [path for path in files_below(folder) if path.name.startswith(prefix)]
        files = _sorted_by_split(filter(_is_structured, all_files), folder)
        if not files.splits:
            files = _sorted_by_split(all_files, folder)
        elif unused := [path for path in all_files if not _is_structured(path)]:
            files.ignored[_NO_TABLES] = unused
    for split, paths in files.splits.items():
        files.splits[split] = _of_one_claim(paths, split, folder)
        if unused := sorted({*paths} - {*files.splits[split]}):
            files.ignored.setdefault(_TAKEN, []).extend(unused)
        _check_parts(files.splits[split])
    return files


def find_unnamed(folder: Path) -> SplitFiles:
    """Return all files of labelled data in a folder and its subfolders, except for models, as the training split.

    If there are files of columns, others are not read; if there are JSON or CSV files, texts are not read.

    Raises:
        DataError: If there is no labelled data, or the folder is a model.
    """
    if (folder / _MODEL).is_file():
        raise DataError(f"{folder} is a model; name a corpus (for evaluate, the model comes first).")
    files = files_below(folder)
    models = {path.parent for path in files if path.name == _MODEL}
    files = [path for path in files if path.parent not in models]
    data = _best([path for path in files if has_data_suffix(path) and not _reason_against(path)])
    if not data:
        names = _listed([path for path in files if not _OTHER_NAME.fullmatch(path.name)], folder)
        fault = f"format not supported ({names})" if names else "no labelled data"
        raise DataError(f"{folder}: {fault}; convert it to CoNLL columns, CSV or JSON of words and tags.")
    if unclear := [path for path in data if _splits_in(path.relative_to(folder).parts)]:
        raise DataError(f"{folder}: {_listed(unclear, folder)} show several splits; name one file or folder.")
    first = min(_LATER.get(suffix_of(path), 0) for path in data)
    data = [path for path in data if _LATER.get(suffix_of(path), 0) == first]
    unused = [path for path in sorted({*files} - {*data}) if _reason_against(path) != _READ_ALONG]
    return SplitFiles({"train": data}, {_NOT_DATA: unused} if unused else {}, {"train": data})


_EVAL = "eval"
# Reasons why files are not read.
_NOT_DATA, _READ_ALONG = "no labelled data", "read with another file"
_NO_SPLIT, _TWO_SPLITS = "the name shows no split", "the name shows several splits"
_UNANNOTATED, _TAKEN = "not the annotated file", "another file is this split"
_BELOW, _NO_TABLES = "the files next to the folder are read", "tables or CoNLL-2012 files are read"


def _is_structured(path: Path) -> bool:
    """Return True for a table or a CoNLL-2012 file."""
    suffix = suffix_of(path)
    return suffix in TABLE_SUFFIXES or suffix.endswith("_conll")


def _sorted_by_split(files: Iterable[Path], folder: Path) -> SplitFiles:
    """Sort files by the split that their paths within a folder name."""
    usual: dict[str, list[Path]] = {}
    odd: dict[str, list[Path]] = {}
    ignored: dict[str, list[Path]] = {}
    for path in files:
        is_split = _SPLIT_WORD.fullmatch(path.name.partition(".")[0].lower())  # as in train_test_split/train.conll
        shown = _splits_in([path.name] if is_split else path.relative_to(folder).parts)
        reason = _reason_against(path) or (_TWO_SPLITS if len(shown) > 1 else "" if shown else _NO_SPLIT)
        if reason:
            ignored.setdefault(reason, []).append(path)
        else:
            claims = usual if has_data_suffix(path) or not suffix_of(path) else odd
            claims.setdefault(shown.pop(), []).append(path)
    ignored.pop(_READ_ALONG, None)
    splits: dict[str, list[Path]] = {}
    assumed: dict[str, list[Path]] = {}
    for claims in (usual, odd):
        for name, paths in sorted(claims.items(), key=lambda claim: claim[0] == _EVAL):
            split = name if name != _EVAL else next((split for split in SPLITS[1:] if split not in splits), name)
            if split in splits or split == _EVAL:
                ignored.setdefault(_TAKEN, []).extend(paths)
                continue
            splits[split] = _best(paths)
            if claims is odd or name == _EVAL:
                assumed[split] = splits[split]
            if len(splits[split]) < len(paths):
                ignored.setdefault(_UNANNOTATED, []).extend(sorted(set(paths) - set(splits[split])))
    return SplitFiles({split: splits[split] for split in SPLITS if split in splits}, ignored, assumed)


def _reason_against(path: Path) -> str:
    """Return the reason why a file does not hold labelled data by itself, or an empty string."""
    if _OTHER_SUFFIX.fullmatch(suffix_of(path)) or _OTHER_NAME.fullmatch(path.name):
        return _NOT_DATA
    is_text = path.suffix == TEXT_SUFFIX and path.with_suffix(ANNOTATION_SUFFIX).is_file()
    return _READ_ALONG if is_text or path.name == "label.json" else ""


def _splits_in(names: Iterable[str]) -> set[str]:
    """Return the splits in the names of files and folders."""
    return {_ALIASES[word] for name in names for word in _SPLIT_WORD.findall(name.lower())}


def _best(paths: list[Path]) -> list[Path]:
    """Return only the annotated files, if some names say so."""
    # WNUT 2017's folder has two files of the test set, of which only the annotated one has the gold tags.
    for suffix in (".annotated", "_gold_conll", ANNOTATION_SUFFIX):
        paths = [path for path in paths if suffix_of(path).endswith(suffix)] or paths
    return paths


def _of_one_claim(paths: list[Path], split: str, folder: Path) -> list[Path]:
    """Return the files of the best claim on a split: of one file, or of the parts of one table."""
    if all(path.suffix == ANNOTATION_SUFFIX for path in paths):
        return paths
    claims = {path: _claim_of(path.relative_to(folder), split) for path in paths}
    kinds = {claim.with_name(re.sub(r"\d+", "", claim.name)) for claim in claims.values()}
    if len({kind.parent for kind in kinds}) > 1 or len(kinds) < len(set(claims.values())):
        names = _listed(list(dict.fromkeys(claims.values())), folder, " and ")
        raise DataError(f"{folder}: {names} all look like the {split} split; name one file or folder instead.")
    best = min(claims.values(), key=_preference)
    return [path for path in paths if claims[path] == best]


def _preference(path: Path) -> tuple[bool, int, bool, list[str]]:
    """Return the order of files that seem to hold the same split: train.conll is before train-old.conll."""
    name = path.name.lower()
    return bool(_UNLABELLED.search(name)), _LATER.get(suffix_of(path), 0), not _SPLIT_WORD.match(name), name.split(".")


def _claim_of(path: Path, split: str) -> Path:
    """Return a path up to the first part that names its split, without the number of a table's part."""
    last = next(index for index, name in enumerate(path.parts) if _splits_in([name]) in ({split}, {_EVAL}))
    return Path(*path.parts[: last + 1]).with_name(_PART.sub("", path.parts[last]))


def _listed(paths: Sequence[Path], folder: Path, separator: str = ", ") -> str:
    """Return the first four paths, relative to a folder, and the number of the others, as text."""
    names = [str(path.relative_to(folder) if path.is_relative_to(folder) else path) for path in paths]
    rest = f" and {len(names) - 4:,} others" if len(names) > 4 else ""
    return separator.join(names[:4]) + rest


def _check_parts(paths: list[Path]) -> None:
    """Raise DataError if some of the numbered parts of a file are missing."""
    parts: dict[Path, set[int]] = {}
    for path in paths:
        if match := _PART.search(path.name):
            name = path.with_name(_PART.sub(f"-*-of-{match[2]}", path.name))
            parts.setdefault(name, set(range(int(match[2])))).discard(int(match[1]))
    for name, missing in parts.items():
        if missing:
            raise DataError(f"{name}: part {min(missing):05d} is missing; fetch or write all parts.")
