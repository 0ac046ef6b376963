"""Load any source that the package knows into one form."""

import os
import re
from pathlib import Path

from datasets import DatasetDict

from .assembly import TRAIN, RawSplit, assemble
from .columns import read_columns
from .errors import DataError
from .files import find_splits, has_column_suffix
from .hub_source import load_from_hub
from .xor import xor_corpus

CORPORA_VARIABLE = "HF_XORNER_CORPORA"
NAMED_CORPORA = {
    "wnut17": "wnut17train.conll, emerging.dev.conll and emerging.test.annotated (or train, dev and test.conll)",
    "conll2003": "eng.train, eng.testa and eng.testb (or train.txt, dev.txt and test.txt)",
}

_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def load_corpus(source: str | Path, data_dir: str | Path | None = None) -> DatasetDict:
    """Load a corpus as splits of words and labels.

    A source is one of

    - ``xor``: the generated corpus, see `hf_xorner.data.xor_corpus`;
    - ``wnut17`` or ``conll2003``: files in ``data_dir``, or in its folder of that name; without ``data_dir``, in the
      folder that the environment variable ``HF_XORNER_CORPORA`` names. The network is never asked for them;
    - a folder of column files whose names tell their splits, or a single column file, which becomes ``train``. A
      relative path is looked for in ``data_dir`` where one is given. A folder that bears the name of a
      corpus is written as a path, ``./wnut17``;
    - ``owner/name``: a data set on the Hub with the columns ``tokens`` and ``ner_tags`` or ``tags``.

    Args:
        source: What to load.
        data_dir: Where local files lie.

    Returns:
        The splits that exist among ``train``, ``validation`` and ``test`` with the columns ``tokens: List(string)`` and
        ``ner_tags: List(ClassLabel)``: plain tags, or IOB2 with ``O`` first and then ``B-`` and ``I-`` of each type.
        All splits share one list of names. ``xor`` has two columns more.

    Raises:
        DataError: If the source cannot be found or its content is faulty.
    """
    name = str(source)
    if name == "xor":
        return xor_corpus()
    if name in NAMED_CORPORA:
        return _load_folder(_folder_of(name, data_dir))
    # An absolute source wins over data_dir.
    path = Path(data_dir or "").expanduser() / Path(source).expanduser()
    if path.is_dir():
        return _load_folder(path)
    if path.is_file():
        return assemble({TRAIN: _read_split(path)})
    # A name that ends like a column file is a mistyped path: the Hub is not asked about it.
    if _HUB_NAME.fullmatch(name) and not has_column_suffix(path):
        return load_from_hub(name)
    raise DataError(
        f"{path}: no such file or folder; expected a path, one of the names xor, {', '.join(NAMED_CORPORA)}, "
        "or owner/name for a data set on the Hub."
    )


def _folder_of(name: str, data_dir: str | Path | None) -> Path:
    """Return the folder of a named corpus, or say which files to put where."""
    base = data_dir if data_dir is not None else os.environ.get(CORPORA_VARIABLE)
    files = NAMED_CORPORA[name]
    if not base:
        raise DataError(
            f"{name}: no folder given; put {files} into a folder and name it as data_dir, "
            f"or put them into the folder {name} below the one that the variable {CORPORA_VARIABLE} names."
        )
    base = Path(base).expanduser()
    for folder in (base / name, base):
        if folder.is_dir() and find_splits(folder):
            return folder
    raise DataError(f"{base}: no files of {name} here; put {files} into it, or into a folder {name} in it.")


def _load_folder(folder: Path) -> DatasetDict:
    files = find_splits(folder)
    if not files:
        raise DataError(f"{folder}: no file name tells its split; name them train.conll, dev.conll and test.conll.")
    return assemble({split: _read_split(path) for split, path in files.items()})


def _read_split(path: Path) -> RawSplit:
    return RawSplit(read_columns(path), lambda sentence, index: f"{path}:{sentence.line + index}")
