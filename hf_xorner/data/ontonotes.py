"""OntoNotes 5.0 as the papers use it, out of the files of CoNLL-2012."""

from pathlib import Path

from .files import find_splits
from .local_source import split_of_files
from .reading import Reading
from .survey import Split

_LANGUAGES = frozenset({"arabic", "chinese", "english"})
_LANGUAGE = "english"
#: The New Testament of the pivot texts: it has no annotation of names, and all work on names leaves it out.
_WITHOUT_NAMES = "pt"


def splits_of_ontonotes(folder: Path, reading: Reading) -> dict[str, Split]:
    """Return the English splits of OntoNotes 5.0, without the texts that bear no names.

    A folder of one file a split is read as it is: from CoNLL-2012's own tree, ``data/train/data/english/annotations``
    and so on, other languages and the part ``pt`` are left out.

    Args:
        folder: Where the files lie, at any depth.
        reading: How they are to be read.
    """
    files = {
        split: [path for path in paths if _is_wanted(path.relative_to(folder))]
        for split, paths in find_splits(folder).items()
    }
    return {split: split_of_files(paths, reading) for split, paths in files.items() if paths}


def _is_wanted(path: Path) -> bool:
    folders = set(path.parts[:-1])
    return _WITHOUT_NAMES not in folders and not folders & (_LANGUAGES - {_LANGUAGE})
