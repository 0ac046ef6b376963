"""Load a corpus from files, a saved dataset, the Hub or by its name."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset, DatasetDict, load_dataset

from ..errors import DataError, first_line
from ..files import BYTE_ORDER_MARK, open_text
from .assemble import TRAIN, Split, assemble
from .formats.columns import read_columns
from .formats.conll2012 import read_conll2012
from .formats.json_lines import read_json_lines, sniff_json
from .formats.spans import read_spans
from .formats.tables import open_saved, open_table, sentences_of_table
from .source import AUTO, Reading, Repairs, Sentence
from .splits import JSON_SUFFIXES, SPLITS, find_splits, has_data_suffix, split_of, suffix_of
from .xor import xor_corpus

# What `save_to_disk` leaves in a folder: of several splits, and of one.
_SAVED = ("dataset_dict.json", "state.json")
_CONLL2012_START = "#begin document"


def is_saved(folder: Path) -> bool:
    """Return whether a folder was written by `save_to_disk`."""
    return any((folder / name).is_file() for name in _SAVED)


def splits_of_folder(folder: Path, reading: Reading) -> dict[str, Split]:
    """Return the splits of a folder.

    Args:
        folder: A folder of files whose names tell their splits, or one that `save_to_disk` wrote.
        reading: The options of reading.

    Raises:
        DataError: If no file tells its split, or two claim the same.
    """
    if is_saved(folder):
        return {
            name: split_of_table(found, f"{folder.resolve()}, {name}", reading)
            for name, found in open_saved(folder).items()
        }
    files = find_splits(folder)
    if not files:
        raise DataError(f"{folder}: no file name tells its split; name them train.conll, dev.conll and test.conll.")
    return {name: split_of_files(paths, reading) for name, paths in files.items()}


def split_of_table(dataset: Dataset, source: str, reading: Reading) -> Split:
    """Return a dataset as a split.

    Args:
        dataset: The data set.
        source: Its name, for messages.
        reading: The options of reading.
    """

    def read(repairs: Repairs) -> Iterator[Sentence]:
        return sentences_of_table(dataset, f"{source}, row ", reading)

    return Split(read, repr((source, dataset._fingerprint, astuple(reading))), source)


def split_of_files(paths: Sequence[Path], reading: Reading) -> Split:
    """Return files, one after the other, as a split.

    Args:
        paths: The files, each of any format.
        reading: The options of reading.
    """
    kinds = {path: format_of(path) if reading.format == AUTO else reading.format for path in paths}

    def read(repairs: Repairs) -> Iterator[Sentence]:
        for path, kind in kinds.items():
            yield from _read_file(path, kind, reading, repairs)

    identity = repr(([_identity_of(path) for path in paths], astuple(reading)))
    guesses_pos = reading.pos_column is None and "columns" in kinds.values()
    return Split(read, identity, str(paths[0]), guesses_pos)


def _identity_of(path: Path) -> tuple[str, int, int, int]:
    stat = path.stat()
    # The time of the last status change differs even if a program has reset the modification time.
    return str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _read_file(path: Path, kind: str, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    if kind == "columns":
        return read_columns(path, reading)
    if kind == "conll2012":
        return read_conll2012(path, reading)
    if kind == "jsonl":
        return read_json_lines(path, reading)
    if kind == "spans":
        return read_spans(path, reading, repairs)
    return sentences_of_table(open_table(path), f"{path}, row ", reading)


def format_of(path: Path) -> str:
    """Recognise the format of a file by its suffix, or else by its first line that is not blank."""
    suffix = suffix_of(path)
    if suffix in (".parquet", ".arrow"):
        return suffix[1:]
    if suffix.endswith("gold_conll"):
        return "conll2012"
    with open_text(path) as file:
        line = next((line for line in file if line.strip(f" \t\r\n{BYTE_ORDER_MARK}")), "")
    if line.replace(BYTE_ORDER_MARK, "").startswith(_CONLL2012_START):
        return "conll2012"
    return sniff_json(line) or ("jsonl" if suffix in JSON_SUFFIXES else "columns")


_LANGUAGES = frozenset({"arabic", "chinese", "english"})
_LANGUAGE = "english"
#: The New Testament of the pivot texts: it has no annotation of names, and all work on names leaves it out.
_WITHOUT_NAMES = "pt"


def splits_of_ontonotes(folder: Path, reading: Reading) -> dict[str, Split]:
    """Return the English splits of OntoNotes 5.0, without the texts that have no annotated names.

    A folder of one file a split is read as it is: from CoNLL-2012's own tree, ``data/train/data/english/annotations``
    and so on, other languages and the part ``pt`` are left out.

    Args:
        folder: The folder; the files may be at any depth.
        reading: The options of reading.
    """
    files = {
        split: [path for path in paths if _is_wanted(path.relative_to(folder))]
        for split, paths in find_splits(folder).items()
    }
    return {split: split_of_files(paths, reading) for split, paths in files.items() if paths}


def _is_wanted(path: Path) -> bool:
    folders = set(path.parts[:-1])
    return _WITHOUT_NAMES not in folders and not folders & (_LANGUAGES - {_LANGUAGE})


def splits_of_hub(name: str, reading: Reading, cache_dir: str | Path | None = None) -> dict[str, Split]:
    """Return the splits of a Hub data set of tokens and tags.

    Args:
        name: ``owner/name``. It needs a column ``tokens`` and a column ``ner_tags`` or ``tags``, the latter as class
            labels or strings.
        reading: The options of reading.
        cache_dir: The cache; by default that of `datasets`.

    Raises:
        DataError: If it cannot be loaded, or has no known split.
    """
    try:
        found = load_dataset(name, cache_dir=cache_dir)
    # The errors (no such dataset, no network, a loading script) have no common type.
    except Exception as error:
        raise DataError(
            f"{name}: not a local path, and cannot be loaded from the Hub ({first_line(error)})."
        ) from error
    named = {split_of(Path(split)): split for split in found}
    splits = {
        split: split_of_table(found[named[split]], f"{name}, {named[split]}", reading)
        for split in SPLITS
        if split in named
    }
    if not splits:
        raise DataError(f"{name}: expected splits among {', '.join(SPLITS)}, found {', '.join(found)}.")
    return splits


CORPORA_VARIABLE = "HF_XORNER_CORPORA"


class NamedCorpus(NamedTuple):
    """A corpus with a name.

    Attributes:
        files: Its files, for messages.
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

    - ``xor``: the generated corpus, see `hf_xorner.corpora.xor_corpus`;
    - ``wnut17``, ``conll2003`` or ``ontonotes5``: files in ``data_dir``, or in its folder of that name; without
      ``data_dir``, in the folder that the environment variable ``HF_XORNER_CORPORA`` names. Where there are none and
      ``data_dir`` is not given, the first two come from a copy on the Hub;
    - a folder of files whose names tell their splits, or a single file, which becomes ``train``. A relative path is
      looked for in ``data_dir`` where one is given. A folder with the name of a corpus is written as a
      path, ``./wnut17`` or ``Path("wnut17")``;
    - ``owner/name``: a data set on the Hub with the columns ``tokens`` and ``ner_tags`` or ``tags``.

    Local files are CoNLL columns, CoNLL-2012 files, JSON Lines of words and tags or of texts with character spans,
    Parquet or Arrow, or a folder that `save_to_disk` wrote; the first three plain or compressed by gzip. Format, scheme
    of the tags and columns are recognised. Repairs are logged in one line.

    Args:
        source: The source.
        data_dir: The folder of local files.
        cache_dir: The cache; by default that of `datasets`.
        reading: Fields of `hf_xorner.corpora.Reading`, for what is not recognised correctly: ``format``,
            ``scheme``, ``separator``, ``token_column``, ``tag_column``, ``pos_column``, ``comments``, ``strict``.

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
    # A name with the suffix of a data file is a mistyped path, so the Hub is not asked.
    if _HUB_NAME.fullmatch(name) and not has_data_suffix(path):
        return assemble(splits_of_hub(name, options, cache_dir), options, name, cache_dir)
    if path.exists():
        raise DataError(f"{path}: a pipe or device, which cannot be read twice; save what it holds to a file.")
    raise DataError(f"{path}: no such file or folder; {_EXPECTED}.")


def _load_named(name: str, data_dir: str | Path | None, reading: Reading, cache_dir: str | Path | None) -> DatasetDict:
    """Load a named corpus from local files, or else from the Hub."""
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
            why = f"its copy {hub} on the Hub cannot be loaded ({first_line(error.__cause__ or error)})"
        else:
            return assemble(splits, reading, name, cache_dir)
    raise DataError(
        f"{name}: no folder given, and {why}; put {files} into a folder and name it as data_dir, "
        f"or put them into the folder {name} below the one that the variable {CORPORA_VARIABLE} names."
    )


def _expanded(path: str | Path) -> Path:
    """Return a path with ``~`` replaced by the home folder, unless the user is unknown."""
    return Path(os.path.expanduser(path))


def _folder_of(name: str, base: Path) -> Path | None:
    """Return the folder of a named corpus at or below a folder."""
    inside = base / name
    if inside.is_dir() and find_splits(inside):
        return inside
    # What lies further below a folder of several corpora may be another one of them.
    deep = name == "ontonotes5"
    return base if base.is_dir() and find_splits(base, below=deep) else None
