"""Load a corpus from files, a saved dataset, the Hub or by its name."""

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset, DatasetDict, load_dataset

from ..errors import DataError, first_line, why_not_loaded
from ..files import BYTE_ORDER_MARK
from .assemble import TRAIN, Split, assemble
from .encodings import open_corpus_file
from .formats.brat import read_brat
from .formats.columns import read_columns
from .formats.conll2012 import read_conll2012
from .formats.conllu import is_conllu, names_columns, read_conllu
from .formats.csv_rows import has_header, read_csv
from .formats.json_lines import kind_of_first, read_json_lines, sniff_document, sniff_json
from .formats.layout import sample_of
from .formats.spacy import read_docbin, read_spacy_json
from .formats.spans import read_spans
from .formats.tables import open_saved, open_table, sentences_of_table
from .source import AUTO, Reading, Repairs, Sentence
from .splits import (
    ANNOTATION_SUFFIX,
    JSON_SUFFIXES,
    SPLITS,
    find_splits,
    find_unnamed,
    has_data_suffix,
    split_of,
    suffix_of,
)
from .xor import xor_corpus

_log = logging.getLogger(__name__)

# What `save_to_disk` leaves in a folder: of several splits, and of one.
_SAVED = ("dataset_dict.json", "state.json")
_CONLL2012_START = "#begin document"


def is_saved(folder: Path) -> bool:
    """Return whether a folder was written by `save_to_disk`."""
    return any((folder / name).is_file() for name in _SAVED)


def splits_of_folder(
    folder: Path, reading: Reading, prefix: str = "", tag_names: str | None = None
) -> dict[str, Split]:
    """Return the splits of a folder; files that are not read are logged in one line.

    Args:
        folder: A folder of files whose names tell their splits, of a single file, or one that `save_to_disk` wrote.
        reading: The options of reading.
        prefix: The first characters of the names of the files that are read.
        tag_names: The names of the tags, where nothing else tells them.

    Raises:
        DataError: If no file of several tells its split, or two claim the same.
    """
    if is_saved(folder):
        return {
            name: split_of_table(found, f"{folder.resolve()}, {name}", reading)
            for name, found in open_saved(folder).items()
        }
    found = find_splits(folder, prefix=prefix)
    if not found.splits:
        found = find_unnamed(folder)
    if report := found.report(folder):
        _log.warning("%s: %s.", folder, report)
    reading = _with_tag_names(next(iter(found.splits.values()))[0].with_name("label.json"), reading, tag_names)
    return {name: split_of_files(paths, reading) for name, paths in found.splits.items()}


def _with_tag_names(path: Path, reading: Reading, usual: str | None) -> Reading:
    """Return the options with the names of the tags: those given, those in T-NER's file of names, or the usual ones."""
    if reading.tag_names is not None or not path.is_file():
        return replace(reading, tag_names=reading.tag_names or usual)
    try:
        numbers = json.loads(path.read_text(encoding="utf-8"))
        if type(numbers) is not dict or any(len(name.split()) != 1 for name in numbers):
            raise ValueError("expected an object of names without blanks and their numbers")
        names = sorted(numbers, key=numbers.__getitem__)
        if [numbers[name] for name in names] != list(range(len(names))):
            raise ValueError("its numbers do not follow each other")
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: holds no numbers of tags ({first_line(error)}); give tag_names.") from None
    return replace(reading, tag_names=" ".join(names))


def split_of_table(dataset: Dataset, source: str, reading: Reading) -> Split:
    """Return a dataset as a split.

    Args:
        dataset: The data set.
        source: Its name, for messages.
        reading: The options of reading.
    """

    def read(repairs: Repairs) -> Iterator[Sentence]:
        return sentences_of_table(dataset, f"{source}, row ", reading)

    return Split(read, source)


def split_of_files(paths: Sequence[Path], reading: Reading) -> Split:
    """Return files, one after the other, as a split.

    Args:
        paths: The files, each of any format.
        reading: The options of reading.
    """
    kinds = {path: format_of(path, reading) if reading.format == AUTO else reading.format for path in paths}

    # Documents of one name in different folders are different ones.
    common = Path(os.path.commonpath([path.parent for path in paths]))

    def read(repairs: Repairs) -> Iterator[Sentence]:
        for path, kind in kinds.items():
            if kind == "brat":
                document = path.relative_to(common).with_suffix("").as_posix()
                yield from read_brat(path, reading, repairs, document)
            else:
                yield from _read_file(path, kind, reading, repairs)

    guesses_pos = reading.pos_column is None and "columns" in kinds.values()
    return Split(read, str(paths[0]), guesses_pos, ", ".join(sorted(set(kinds.values()))))


_READERS: dict[str, Callable[[Path, Reading, Repairs], Iterator[Sentence]]] = {
    "columns": read_columns,
    "conllu": read_conllu,
    "conll2012": read_conll2012,
    "csv": read_csv,
    "jsonl": read_json_lines,
    "spans": read_spans,
    "spacy": read_docbin,
    "spacy_json": read_spacy_json,
}


def _read_file(path: Path, kind: str, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    if kind in _READERS:
        return _READERS[kind](path, reading, repairs)
    return sentences_of_table(open_table(path), f"{path}, row ", reading)


def format_of(path: Path, reading: Reading) -> str:
    """Recognise the format of a file by its suffix, or else by its first line that is not blank.

    Args:
        path: The file.
        reading: The options of reading.

    Raises:
        DataError: For an array of JSON whose first object is faulty.
    """
    suffix = suffix_of(path)
    if suffix in (".parquet", ".arrow", ".spacy"):
        return suffix[1:]
    if suffix == ANNOTATION_SUFFIX:
        return "brat"
    if suffix.endswith("gold_conll"):
        return "conll2012"
    with open_corpus_file(path, reading) as file:
        line = next((line for line in file if line.strip(f" \t\r\n{BYTE_ORDER_MARK}")), "")
    if line.replace(BYTE_ORDER_MARK, "").startswith(_CONLL2012_START):
        return "conll2012"
    if found := sniff_json(line, reading) or sniff_document(path, line, reading):
        return found
    if suffix in JSON_SUFFIXES:
        # The first line is bad.
        return kind_of_first(path, reading) if reading.skip_bad_lines else "jsonl"
    return _kind_of_columns(path, suffix, line, reading)


def _kind_of_columns(path: Path, suffix: str, line: str, reading: Reading) -> str:
    """Recognise the kind of a file with one token a line by its suffix or its first lines."""
    line = line.replace(BYTE_ORDER_MARK, "").rstrip("\r\n")
    if suffix == ".csv" or has_header(line):
        return "csv"
    if names_columns(line):
        return "conllu"
    with open_corpus_file(path, reading) as file:
        return "conllu" if is_conllu(sample_of(file, reading.comments)) else "columns"


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
        for split, paths in find_splits(folder).splits.items()
    }
    return {split: split_of_files(paths, reading) for split, paths in files.items() if paths}


def _is_wanted(path: Path) -> bool:
    folders = set(path.parts[:-1])
    return _WITHOUT_NAMES not in folders and not folders & (_LANGUAGES - {_LANGUAGE})


def load_hub_dataset(name: str, **options: Any) -> Any:
    """Load a dataset from the Hub by `datasets.load_dataset` with its options.

    Raises:
        DataError: If it cannot be loaded.
    """
    try:
        return load_dataset(name, **options)
    # The errors (no such dataset, no network, a loading script) have no common type.
    except Exception as error:
        raise DataError(
            f"{name}: not a local path, and cannot be loaded from the Hub: {why_not_loaded(error)}."
        ) from error


def splits_of_hub(name: str, reading: Reading) -> dict[str, Split]:
    """Return the splits of a Hub data set of tokens and tags.

    Args:
        name: ``owner/name``. It needs a column ``tokens`` and a column ``ner_tags`` or ``tags``, the latter as class
            labels or strings.
        reading: The options of reading.

    Raises:
        DataError: If it cannot be loaded, or has no known split.
    """
    found = load_hub_dataset(name)
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
        folders: Further names of its folder, in small letters and digits.
        prefix: The first characters of its files' names, where its folder, the first of ``folders``, has files of other
            corpora, too.
        tag_names: See `Reading`; the order of the class labels on the Hub, which exports without names have as well.
    """

    files: str
    hub: str | None = None
    folders: tuple[str, ...] = ()
    prefix: str = ""
    tag_names: str | None = None


NAMED_CORPORA = {
    "wnut17": NamedCorpus(
        "wnut17train.conll, emerging.dev.conll and emerging.test.annotated (or train, dev and test.conll)",
        hub="manu/wnut_17",
        # Of the shared task's repository, and its year in full.
        folders=("emergingentities17", "wnut2017"),
        tag_names="O B-corporation I-corporation B-creative-work I-creative-work B-group I-group B-location I-location "
        "B-person I-person B-product I-product",
    ),
    "conll2003": NamedCorpus(
        "eng.train, eng.testa and eng.testb (or train.txt, dev.txt and test.txt)",
        hub="lhoestq/conll2003",
        tag_names="O B-PER I-PER B-ORG I-ORG B-LOC I-LOC B-MISC I-MISC",
    ),
    "conll2002-es": NamedCorpus("esp.train, esp.testa and esp.testb", folders=("conll2002",), prefix="esp."),
    "conll2002-nl": NamedCorpus("ned.train, ned.testa and ned.testb", folders=("conll2002",), prefix="ned."),
    "ontonotes5": NamedCorpus("the folders train, development and test of CoNLL-2012's *_gold_conll files"),
}

_EXPECTED = (
    f"expected a path, one of the names xor, {', '.join(NAMED_CORPORA)}, or owner/name for a data set on the Hub"
)
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def load_corpus(source: str | Path, data_dir: str | Path | None = None, **reading: Any) -> DatasetDict:
    """Load a corpus as splits of words and labels, in memory.

    A source is one of

    - ``xor``: the generated corpus, see `hf_xorner.corpora.xor_corpus`;
    - ``wnut17``, ``conll2003``, ``conll2002-es``, ``conll2002-nl`` or ``ontonotes5``: files in ``data_dir``, or in its
      folder of that name (``conll2002`` for both languages); without ``data_dir``, in the folder that the environment
      variable ``HF_XORNER_CORPORA`` names. Where there are none and ``data_dir`` is not given, the first two come from
      a copy on the Hub;
    - a folder of files whose names tell their splits, or a single file, which becomes ``train``. A relative path is
      looked for in ``data_dir`` where one is given. A folder with the name of a corpus is written as a
      path, ``./wnut17`` or ``Path("wnut17")``;
    - ``owner/name``: a data set on the Hub with the columns ``tokens`` and ``ner_tags`` or ``tags``.

    Local files are CoNLL columns, CoNLL-U, CSV or TSV with a header, CoNLL-2012 files, JSON (one object a line, or an
    array) of words and tags or of texts with character spans as annotation tools export them, spaCy's JSON, all of
    these plain or compressed by gzip; spaCy's DocBin, BRAT's files, Parquet or Arrow; or a folder that `save_to_disk`
    wrote. Format, encoding, scheme of the tags and columns are recognised. Repairs are logged in one line, and so is
    what may have been recognised wrongly.

    Args:
        source: The source.
        data_dir: The folder of local files.
        reading: Fields of `hf_xorner.corpora.Reading`, for what is not recognised correctly: ``format``,
            ``scheme``, ``separator``, ``token_column``, ``tag_column``, ``pos_column``, ``comments``, ``encoding``,
            ``tag_names``, ``strip``, ``types``, ``skip_bad_lines``, ``strict``.

    Returns:
        The splits that exist among ``train``, ``validation`` and ``test`` with the columns ``tokens: List(string)`` and
        ``ner_tags: List(ClassLabel)``: plain tags, or IOB2 with ``O`` first and then ``B-`` and ``I-`` of each type,
        and -1 where the source has ``?``, the tag of a word whose tag is unknown.
        All splits share one list of names. Where the source has them, there are the columns ``pos_tags: List(string)``
        and ``doc_id: string``; ``xor`` has two of its own.

    Raises:
        DataError: If the source cannot be found, its content is faulty, or its words or tags seem to be read from a
            wrong column.
    """
    options = Reading(**reading)
    try:
        return _load(source, data_dir, options)
    except OSError as error:
        where = error.filename or source
        reason = error.strerror or first_line(error)
        raise DataError(f"{where}: cannot be read ({reason}); make it readable, or name another source.") from error


def _load(source: str | Path, data_dir: str | Path | None, options: Reading) -> DatasetDict:
    name = str(source)
    if not name:
        # Or else it would be the working directory.
        raise DataError(f"source='' names nothing; {_EXPECTED}.")
    # A path is meant as one: Path("./wnut17") has lost what tells it from the name.
    if isinstance(source, str) and name == "xor":
        return xor_corpus()
    if isinstance(source, str) and name in NAMED_CORPORA:
        return _load_named(name, data_dir, options)
    # An absolute source wins over data_dir.
    path = _expanded(data_dir or "") / _expanded(source)
    if path.is_dir():
        return assemble(splits_of_folder(path, options), options, name)
    if path.is_file():
        return assemble({TRAIN: split_of_files([path], options)}, options, name)
    # A name with the suffix of a data file is a mistyped path, so the Hub is not asked.
    if _HUB_NAME.fullmatch(name) and not has_data_suffix(path):
        return assemble(splits_of_hub(name, options), options, name)
    if path.exists():
        raise DataError(f"{path}: a pipe or device, which cannot be read twice; save what it holds to a file.")
    raise DataError(f"{path}: no such file or folder; {_EXPECTED}.")


def inputs_of(source: str | Path, data_dir: str | Path | None = None) -> list[Path]:
    """Return the file or folder that `load_corpus` reads for a source; nothing for what is generated or on the Hub."""
    base = _expanded(data_dir or "")
    if isinstance(source, str) and source in NAMED_CORPORA:
        base = _expanded(data_dir or os.environ.get(CORPORA_VARIABLE, ""))
        corpus = NAMED_CORPORA[source]
        folder = _folder_of(source, base, corpus.prefix)
        return [folder] if folder else []
    path = base / _expanded(source)
    return [path] if path.exists() else []


def _load_named(name: str, data_dir: str | Path | None, reading: Reading) -> DatasetDict:
    """Load a named corpus from local files, or else from the Hub."""
    corpus = NAMED_CORPORA[name]
    files, hub, prefix = corpus.files, corpus.hub, corpus.prefix
    inside = corpus.folders[0] if prefix else name
    base = data_dir if data_dir is not None else os.environ.get(CORPORA_VARIABLE)
    folder = _folder_of(name, _expanded(base), prefix) if base else None
    if folder:
        if name == "ontonotes5":
            splits = splits_of_ontonotes(folder, reading)
        else:
            splits = splits_of_folder(folder, reading, prefix, corpus.tag_names)
        return assemble(splits, reading, name)
    if data_dir is not None:
        raise DataError(f"{base}: no files of {name} here; put {files} into it, or into a folder {inside} in it.")
    why = "the Hub has no copy of it"
    if hub is not None:
        try:
            splits = splits_of_hub(hub, reading)
        except DataError as error:
            why = f"its copy {hub} on the Hub cannot be loaded ({first_line(error.__cause__ or error)})"
        else:
            return assemble(splits, reading, name)
    raise DataError(
        f"{name}: no folder given, and {why}; put {files} into a folder and name it as data_dir, "
        f"or put them into the folder {inside} below the one that the variable {CORPORA_VARIABLE} names."
    )


def _expanded(path: str | Path) -> Path:
    """Return a path with ``~`` replaced by the home folder, unless the user is unknown."""
    return Path(os.path.expanduser(path))


def _folder_of(name: str, base: Path, prefix: str = "") -> Path | None:
    """Return the folder of a named corpus at or below a folder."""
    if not base.is_dir():
        return None
    folders = sorted(path for path in base.iterdir() if path.is_dir())
    # The folder with the very name comes first.
    for folder in sorted(filter(partial(_is_named, name), folders), key=lambda path: path.name != name):
        if find_splits(folder, prefix=prefix).splits:
            return folder
    # What lies further below a folder of several corpora may be another one of them.
    several = any(_is_named(other, folder) for other in NAMED_CORPORA for folder in folders)
    deep = _is_named(name, base) or (name == "ontonotes5" and not several)
    return base if find_splits(base, below=deep, prefix=prefix).splits else None


def _is_named(name: str, folder: Path) -> bool:
    """Return whether a folder has a name of a corpus, such as WNUT_17 or emerging_entities_17-master."""
    plain = re.sub(r"[\W_]|master$|main$", "", folder.resolve().name.lower())
    return plain in (name.replace("-", ""), *NAMED_CORPORA[name].folders)
