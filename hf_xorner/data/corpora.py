"""Load any source that the package knows into one form."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from datasets import DatasetDict

from ..errors import DataError, first_line
from .assembly import TRAIN, assemble
from .files import find_splits, has_data_suffix
from .hub_source import splits_of_hub
from .local_source import split_of_files, splits_of_folder
from .ontonotes import splits_of_ontonotes
from .reading import Reading
from .xor import xor_corpus

CORPORA_VARIABLE = "HF_XORNER_CORPORA"


class NamedCorpus(NamedTuple):
    """A corpus that a name stands for.

    Attributes:
        files: The files that it consists of, in words.
        hub: A copy of it on the Hub in a plain format.
    """

    files: str
    hub: str | None = None


NAMED_CORPORA = {
    "wnut17": NamedCorpus(
        "wnut17train.conll, emerging.dev.conll and emerging.test.annotated (or train, dev and test.conll)",
        hub="manu/wnut_17",
    ),
    "conll2003": NamedCorpus(
        "eng.train, eng.testa and eng.testb (or train.txt, dev.txt and test.txt)", hub="lhoestq/conll2003"
    ),
    "ontonotes5": NamedCorpus("the folders train, development and test of CoNLL-2012's *_gold_conll files"),
}

_EXPECTED = (
    f"expected a path, one of the names xor, {', '.join(NAMED_CORPORA)}, or owner/name for a data set on the Hub"
)
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def load_corpus(
    source: str | Path, data_dir: str | Path | None = None, cache_dir: str | Path | None = None, **reading: Any
) -> DatasetDict:
    """Load a corpus as splits of words and labels, cached on disk and memory-mapped.

    A source is one of

    - ``xor``: the generated corpus, see `hf_xorner.data.xor_corpus`;
    - ``wnut17``, ``conll2003`` or ``ontonotes5``: files in ``data_dir``, or in its folder of that name; without
      ``data_dir``, in the folder that the environment variable ``HF_XORNER_CORPORA`` names. Where there are none and
      ``data_dir`` is not given, the first two come from a copy on the Hub;
    - a folder of files whose names tell their splits, or a single file, which becomes ``train``. A relative path is
      looked for in ``data_dir`` where one is given. A folder that bears the name of a corpus is written as a
      path, ``./wnut17`` or ``Path("wnut17")``;
    - ``owner/name``: a data set on the Hub with the columns ``tokens`` and ``ner_tags`` or ``tags``.

    Local files are CoNLL columns, CoNLL-2012 files, JSON Lines of words and tags or of texts with character spans,
    Parquet or Arrow, or a folder that `save_to_disk` wrote; the first three plain or compressed by gzip. Format, scheme
    of the tags and columns are recognised. What had to be repaired is logged in one line.

    Args:
        source: What to load.
        data_dir: Where local files lie.
        cache_dir: Where data sets are cached; by default where `datasets` does.
        reading: Fields of `hf_xorner.data.Reading`, for what is not recognised as it is meant: ``format``, ``scheme``,
            ``separator``, ``token_column``, ``tag_column``, ``pos_column``, ``comments``, ``strict``.

    Returns:
        The splits that exist among ``train``, ``validation`` and ``test`` with the columns ``tokens: List(string)`` and
        ``ner_tags: List(ClassLabel)``: plain tags, or IOB2 with ``O`` first and then ``B-`` and ``I-`` of each type.
        All splits share one list of names. Where the source has them, there are the columns ``pos_tags: List(string)``
        and ``doc_id: string``; ``xor`` has two of its own.

    Raises:
        DataError: If the source cannot be found or its content is faulty.
    """
    options = Reading(**reading)
    try:
        return _load(source, data_dir, cache_dir, options)
    except OSError as error:
        where = error.filename or source
        reason = error.strerror or first_line(error)
        raise DataError(f"{where}: cannot be read ({reason}); make it readable, or name another source.") from error


def _load(
    source: str | Path, data_dir: str | Path | None, cache_dir: str | Path | None, options: Reading
) -> DatasetDict:
    name = str(source)
    if not name:
        # Or else it would be the working directory.
        raise DataError(f"source='' names nothing; {_EXPECTED}.")
    # A path is meant as one: Path("./wnut17") has lost what tells it from the name.
    if isinstance(source, str) and name == "xor":
        return xor_corpus()
    if isinstance(source, str) and name in NAMED_CORPORA:
        return _load_named(name, data_dir, options, cache_dir)
    # An absolute source wins over data_dir.
    path = _expanded(data_dir or "") / _expanded(source)
    if path.is_dir():
        return assemble(splits_of_folder(path, options), options, name, cache_dir)
    if path.is_file():
        return assemble({TRAIN: split_of_files([path], options)}, options, name, cache_dir)
    # A name that ends like a file of data is a mistyped path: the Hub is not asked about it.
    if _HUB_NAME.fullmatch(name) and not has_data_suffix(path):
        return assemble(splits_of_hub(name, options, cache_dir), options, name, cache_dir)
    if path.exists():
        raise DataError(f"{path}: a pipe or device, which cannot be read twice; save what it holds to a file.")
    raise DataError(f"{path}: no such file or folder; {_EXPECTED}.")


def _load_named(name: str, data_dir: str | Path | None, reading: Reading, cache_dir: str | Path | None) -> DatasetDict:
    """Load a named corpus from local files, or else from the Hub, or say which files to put where."""
    files, hub = NAMED_CORPORA[name]
    base = data_dir if data_dir is not None else os.environ.get(CORPORA_VARIABLE)
    folder = _folder_of(name, _expanded(base)) if base else None
    if folder:
        splits = splits_of_ontonotes(folder, reading) if name == "ontonotes5" else splits_of_folder(folder, reading)
        return assemble(splits, reading, name, cache_dir)
    if data_dir is not None:
        raise DataError(f"{base}: no files of {name} here; put {files} into it, or into a folder {name} in it.")
    why = "the Hub has no copy of it"
    if hub is not None:
        try:
            splits = splits_of_hub(hub, reading, cache_dir)
        except DataError as error:
            why = f"its copy {hub} on the Hub cannot be had ({first_line(error.__cause__ or error)})"
        else:
            return assemble(splits, reading, name, cache_dir)
    raise DataError(
        f"{name}: no folder given, and {why}; put {files} into a folder and name it as data_dir, "
        f"or put them into the folder {name} below the one that the variable {CORPORA_VARIABLE} names."
    )


def _expanded(path: str | Path) -> Path:
    """Return a path with the home folder that a ``~`` means; that of an unknown user stays as it is."""
    return Path(os.path.expanduser(path))


def _folder_of(name: str, base: Path) -> Path | None:
    """Return the folder of a named corpus at or below a folder."""
    inside = base / name
    if inside.is_dir() and find_splits(inside):
        return inside
    # What lies further below a folder of several corpora may be another one of them.
    deep = name == "ontonotes5"
    return base if base.is_dir() and find_splits(base, below=deep) else None
