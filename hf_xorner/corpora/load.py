"""Load a corpus from files, a saved dataset, the Hub or by its name."""

import json
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from datasets import Dataset, DatasetDict, load_dataset
from pandas import DataFrame

from ..errors import DataError, first_line, why_not_loaded
from ..files import expanded, suffix_of
from ..options import check_known
from .assemble import TAGS, TOKENS, TRAIN, Split, assemble, label_names_of
from .formats import recognise
from .formats.arrow import open_saved, sentences_of_table
from .formats.columns import DOCUMENT_START
from .schemes import entity_type, is_chunked
from .source import AUTO, BLANKS, Input, ReadingLog, ReadingOptions, Sentence, clean_lines
from .splits import SPLITS, TABLE_SUFFIXES, find_splits, find_unnamed, is_hub_name, split_of
from .xor import xor_corpus

_log = logging.getLogger(__name__)

# A file that `save_to_disk` writes: for several splits, and for one.
_SAVED = ("dataset_dict.json", "state.json")
# Suffixes of files that are never a list of words.
_NO_LIST = {*TABLE_SUFFIXES, ".csv", ".json", ".spacy"}


def splits_of_folder(folder: Path, repairs: ReadingLog, prefix: str = "", tag_names: str = "") -> dict[str, Split]:
    """Return the splits of a folder; files that are not read are logged in one line.

    Args:
        folder: A folder of files whose names contain the split, or of training data, or one written by `save_to_disk`.
        repairs: Counts repairs, and has the options of reading.
        prefix: Only files whose names begin with this are read.
        tag_names: The names of numbered tags, unless `reading` or a file label.json names them.

    Raises:
        DataError: If there is no labelled data, or files in two folders name the same split.
    """
    if any((folder / name).is_file() for name in _SAVED):
        return _splits_of_tables(str(folder.resolve()), open_saved(folder), repairs.reading)
    files = find_splits(folder, prefix=prefix)
    unnamed = not files.splits
    if unnamed:
        files = find_unnamed(folder)
    if report := files.report(folder):
        _log.warning("%s: %s.", folder, report)
    names = next(iter(files.splits.values()))[0].with_name("label.json")
    if not repairs.reading.tag_names:
        named = _tag_names_in(names) if names.is_file() else tag_names.split()
        repairs.reading = replace(repairs.reading, tag_names=named)
    return {name: split_of_files(paths, repairs, unnamed) for name, paths in files.splits.items()}


def _tag_names_in(path: Path) -> list[str]:
    """Return the names of the tags in a file label.json of T-NER, which maps names to numbers."""
    try:
        numbers = json.loads(path.read_text(encoding="utf-8"))
        names = sorted(numbers, key=lambda name: numbers[name])
        if [numbers[name] for name in names] == list(range(len(names))):
            return names
    except (ValueError, TypeError, LookupError):
        pass
    raise DataError(f"{path}: expected an object of names and their numbers from 0; give tag_names.")


def splits_of_object(source: Any, repairs: ReadingLog) -> dict[str, Split]:
    """Return the splits of a dataset, or of a DataFrame or list, which is converted to the text of a file and read.

    Raises:
        DataError: If it has another type, or its content is invalid.
    """
    name, reading, format = type(source).__name__, repairs.reading, repairs.reading.format
    if isinstance(source, DatasetDict):
        return _splits_of_tables(name, source, reading)
    if isinstance(source, Dataset):
        return {TRAIN: _split_of_table(source, name, reading)}
    if isinstance(source, DataFrame):
        first = (value for _, column in source.items() for value in column.dropna()[:1])
        nested = any(isinstance(value, (list, tuple, np.ndarray)) for value in first)
        text = source.to_json(orient="records", lines=True) if nested else source.to_csv(index=False)
        format = "csv" if format == AUTO and not nested else format
    elif isinstance(source, (list, tuple)):
        if any(isinstance(item, (str, Path)) for item in source):
            raise DataError(f"{name}: {str(source[0])[:60]!r} is no pair (words, tags) and no record.")
        text = json.dumps(list(map(_as_record, source)), default=_plain)
    else:
        raise DataError(f"{name}: not a corpus; give a path, a Dataset, a DataFrame, or a list of (words, tags).")
    read = Input(Path(name), repairs, text=text)
    found = recognise(read, format)
    return {TRAIN: Split(list(found.read(read) if found.read else ()), name, False, found.name)}


def _as_record(item: Any) -> Any:
    """Return a pair of words and tags, or NLTK's list of words with their tags, as a record; anything else as it is."""
    if type(item) is list and item and all(type(word) is tuple and {*map(type, word)} == {str} for word in item):
        return {TOKENS: [word[0] for word in item], TAGS: [word[-1] for word in item]}
    if isinstance(item, (list, tuple)) and len(item) == 2 and not isinstance(item[0], str):
        return {TOKENS: item[0], TAGS: item[1]}
    return item


def _plain(value: Any) -> Any:
    """Convert a value that JSON does not have, such as a NumPy array or number."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)


def _split_of_table(dataset: Dataset, source: str, reading: ReadingOptions) -> Split:
    return Split(list(sentences_of_table(dataset, source, reading)), source)


def split_of_files(paths: Sequence[Path], repairs: ReadingLog, documents: bool = False) -> Split:
    """Read files, one after the other, as one split.

    Args:
        paths: The files, each of any format.
        repairs: Counts repairs, and has the options of reading.
        documents: True if each of several files is a document.
    """
    # Files of the same name in different folders are different documents.
    common = Path(os.path.commonpath([path.parent for path in paths]))
    formats = set()
    sentences: list[Sentence] = []
    for path in paths:
        document, before = path.relative_to(common).with_suffix("").as_posix(), len(sentences)
        source = Input(path, repairs, document)
        format = recognise(source, source.reading.format)
        formats.add(format.name)
        sentences += format.read(source) if format.read else ()
        if documents and len(paths) > 1:
            sentences[before:] = [sentence._replace(doc_id=document) for sentence in sentences[before:]]
    repairs.check_spans()
    guesses_pos = repairs.reading.pos_column is None and "conll" in formats
    return Split(sentences, str(paths[0]), guesses_pos, ", ".join(sorted(formats)))


#: Folders of OntoNotes that are not read: other languages, and "pt", the New Testament, which has no annotated names
#: and is left out in all papers on named entities.
_NOT_READ = {"arabic", "chinese", "pt"}


def splits_of_ontonotes(folder: Path, repairs: ReadingLog) -> dict[str, Split]:
    """Return the English splits of OntoNotes 5.0, without the texts that have no annotated names.

    In CoNLL-2012's folders, ``data/train/data/english/annotations`` and so on, other languages and ``pt`` are left out.
    A folder with one file per split is read completely.

    Args:
        folder: The folder; the files may be at any depth.
        repairs: Counts repairs, and has the options of reading.
    """
    files = {
        split: [path for path in paths if not _NOT_READ & set(path.relative_to(folder).parts[:-1])]
        for split, paths in find_splits(folder).splits.items()
    }
    if not any(files.values()):
        raise DataError(f"{folder}: has no English text with annotated names; name the folder of OntoNotes 5.0.")
    return {split: split_of_files(paths, repairs) for split, paths in files.items() if paths}


def load_hub_dataset(name: str, **options: Any) -> Any:
    """Load a dataset from the Hub; `options` are those of `datasets.load_dataset`.

    Raises:
        DataError: If it cannot be loaded.
    """
    repository, _, config = name.partition(":")
    try:
        return load_dataset(repository, **options, **({"name": config} if config else {}))
    # The errors (no such dataset, no network, a loading script) have no common type.
    except Exception as error:
        if several := re.search(r"available configs: (\[.*\])", str(error)):
            raise DataError(f"{name}: has the configurations {several[1]}; name one, as {repository}:NAME.") from None
        raise DataError(
            f"{name}: no such local path, and it cannot be loaded from the Hub: {why_not_loaded(error)}."
        ) from error


def _splits_of_tables(name: str, datasets: Any, reading: ReadingOptions) -> dict[str, Split]:
    named: dict[str, str] = {}
    # A split's own name comes before names that contain it, such as train_small.
    for given in sorted(datasets, key=lambda given: given not in SPLITS):
        if split := split_of(Path(given)):
            named.setdefault(split, given)
    if not named:
        raise DataError(f"{name}: expected splits among {', '.join(SPLITS)}, found {', '.join(datasets)}.")
    if ignored := [given for given in datasets if given not in named.values()]:
        _log.warning("%s: ignored the splits %s.", name, ", ".join(ignored))
    return {
        split: _split_of_table(datasets[named[split]], f"{name}, {named[split]}", reading)
        for split in SPLITS
        if split in named
    }


CORPORA_VARIABLE = "HF_XORNER_CORPORA"


class NamedCorpus(NamedTuple):
    """A corpus with a name.

    Attributes:
        files: Its files, for messages.
        hub: A copy on the Hub in a plain format.
        folders: Other names of its folder, in lower-case letters and digits.
        prefix: The first characters of its files' names, if its folder, the first of ``folders``, also has files of
            other corpora.
        tag_names: See `ReadingOptions`; the order of the class labels on the Hub, for exports without names.
        types: Its types of entities, if there are no `tag_names`.
    """

    files: str
    hub: str | None = None
    folders: tuple[str, ...] = ()
    prefix: str = ""
    tag_names: str = ""
    types: str = "PER ORG LOC MISC"


NAMED_CORPORA = {
    "wnut17": NamedCorpus(
        "wnut17train.conll, emerging.dev.conll and emerging.test.annotated (or train, dev and test.conll)",
        hub="manu/wnut_17",
        # The folder in the shared task's repository, and the name with the full year.
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
    "ontonotes5": NamedCorpus(
        "the folders train, development and test of CoNLL-2012's *_gold_conll files",
        types="CARDINAL DATE EVENT FAC GPE LANGUAGE LAW LOC MONEY NORP ORDINAL ORG PERCENT PERSON PRODUCT QUANTITY "
        "TIME WORK_OF_ART",
    ),
}

_EXPECTED = f"expected a path, one of the names xor, {', '.join(NAMED_CORPORA)}, or owner/name for a dataset on the Hub"


#: A source for `load_corpus`: a name, a path, or data in memory.
Source: TypeAlias = str | Path | Dataset | DatasetDict | DataFrame | Sequence[Any]


def load_corpus(source: Source, data_dir: str | Path | None = None, **reading: Any) -> DatasetDict:
    """Load a corpus as splits of words and labels, in memory.

    A source is one of

    - ``xor``: the generated corpus, see `hf_xorner.corpora.xor_corpus`;
    - ``wnut17``, ``conll2003``, ``conll2002-es``, ``conll2002-nl`` or ``ontonotes5``: files in ``data_dir``, or in its
      folder of this name (``conll2002`` for both languages); without ``data_dir``, in the folder that the environment
      variable ``HF_XORNER_CORPORA`` names. Without ``data_dir`` and local files, the first two are loaded from a copy
      on the Hub;
    - a folder of files whose names contain the split, or of training data if no name does, or a single file, which
      becomes ``train``. A relative path is relative to ``data_dir``, if given. A folder with the name of a corpus is
      written as a path, ``./wnut17`` or ``Path("wnut17")``;
    - ``owner/name``: a dataset on the Hub with the columns ``tokens`` and ``ner_tags`` or ``tags``;
    - a ``Dataset`` or ``DatasetDict`` with these columns; a pandas ``DataFrame`` with a row for each sentence (lists of
      words and tags) or for each word (as in CSV); a list of pairs (words, tags), or of records as in JSON.

    Local files are CoNLL columns, CoNLL-U, CSV or TSV with a header, CoNLL-2012 files, JSON (one object per line, or an
    array) of words and tags or of texts with character spans as annotation tools export them, all of these plain or
    compressed by gzip; spaCy's DocBin, BRAT's files, Parquet or Arrow; or a folder written by `save_to_disk`. Format,
    encoding, tag scheme and columns are recognised. Repairs and uncertain guesses are logged in one line each.

    Args:
        source: The source.
        data_dir: The folder of local files.
        reading: Fields of `hf_xorner.corpora.ReadingOptions`, for properties that are not recognised correctly:
            ``format``, ``scheme``, ``separator``, ``token_column``, ``tag_column``, ``pos_column``, ``comments``,
            ``encoding``, ``tag_names``, ``strip``, ``types``, ``skip_bad_lines``, ``strict``.

    Returns:
        The splits that exist among ``train``, ``validation`` and ``test`` with the columns ``tokens: List(string)`` and
        ``ner_tags: List(ClassLabel)``: plain tags, or IOB2 with ``O`` first and then ``B-`` and ``I-`` of each type;
        -1 for ``?``, the tag of a word whose tag is unknown. All splits have the same label names. If the source has
        them, there are the columns ``pos_tags: List(string)`` and ``doc_id: string``; ``xor`` has two other columns.

    Raises:
        DataError: If the source is not found, its content is invalid, or its words or tags seem to be from a wrong
            column.
    """
    check_known(reading, {entry.name for entry in fields(ReadingOptions)}, "load_corpus")
    options, name = ReadingOptions(**reading), name_of(source)
    # A Path is never a name, as Path("./wnut17") equals Path("wnut17").
    if isinstance(source, str) and name == "xor":
        return xor_corpus()
    repairs = ReadingLog(options)
    try:
        if isinstance(source, (str, Path)):
            splits = _splits_of(source, data_dir, repairs)
        else:
            splits = splits_of_object(source, repairs)
    except OSError as error:
        where = error.filename or source
        reason = error.strerror or first_line(error)
        raise DataError(f"{where}: cannot be read ({reason}); make it readable, or name another source.") from error
    corpus = assemble(splits, repairs, name)
    if isinstance(source, str) and name in NAMED_CORPORA and not options.types:
        _check_types(name, data_dir, corpus)
    return corpus


def _check_types(name: str, data_dir: str | Path | None, corpus: DatasetDict) -> None:
    """Check that files of a folder with another name have the types of the named corpus.

    Raises:
        DataError: If they have others.
    """
    folder = _folder_of(name, data_dir)
    labels = label_names_of(next(iter(corpus.values())), name)
    if folder is None or _is_named(name, folder) or not is_chunked(labels):
        return
    named = NAMED_CORPORA[name]
    types = set(named.types.split()) if not named.tag_names else set(map(entity_type, named.tag_names.split()))
    if others := sorted(set(map(entity_type, labels)) - types - {""}):
        raise DataError(
            f"{folder}: the files have entities of {', '.join(others)}, which {name} does not have; name the folder of "
            f"{name}, or load these files by their path."
        )


def name_of(source: Source) -> str:
    """Return the name of a source: a path or name itself, or the type of data in memory."""
    return str(source) if isinstance(source, (str, Path)) else type(source).__name__


def _splits_of(source: str | Path, data_dir: str | Path | None, repairs: ReadingLog) -> dict[str, Split]:
    name = str(source)
    if isinstance(source, str) and name in NAMED_CORPORA:
        return _splits_of_named(name, data_dir, repairs)
    # If the source is absolute, data_dir is ignored.
    path = expanded(data_dir or "") / expanded(source)
    if name and path.is_dir():
        return splits_of_folder(path, repairs)
    if path.is_file():
        return {TRAIN: split_of_files([path], repairs)}
    if is_hub_name(name):
        return _splits_of_tables(name, load_hub_dataset(name), repairs.reading)
    raise DataError(f"{name}: no such file or folder; {_EXPECTED}.")


def inputs_of(source: str | Path, data_dir: str | Path | None = None) -> list[Path]:
    """Return the file or folder that `load_corpus` reads; none for a generated corpus or one from the Hub."""
    if isinstance(source, str) and source == "xor":
        return []
    if isinstance(source, str) and source in NAMED_CORPORA:
        return list(filter(None, [_folder_of(source, data_dir)]))
    path = expanded(data_dir or "") / expanded(source)
    return [path] if path.exists() else []


def _splits_of_named(name: str, data_dir: str | Path | None, repairs: ReadingLog) -> dict[str, Split]:
    """Return the splits of a named corpus from local files, or else from the Hub."""
    corpus = NAMED_CORPORA[name]
    inside = corpus.folders[0] if corpus.prefix else name
    folder = _folder_of(name, data_dir)
    if folder and name == "ontonotes5":
        return splits_of_ontonotes(folder, repairs)
    if folder:
        return splits_of_folder(folder, repairs, corpus.prefix, corpus.tag_names)
    if data_dir is not None:
        raise DataError(
            f"{data_dir}: no files of {name} here; put {corpus.files} there, or into a folder {inside} in it."
        )
    why = "the Hub has no copy of it"
    if corpus.hub is not None:
        try:
            return _splits_of_tables(corpus.hub, load_hub_dataset(corpus.hub), repairs.reading)
        except DataError as error:
            why = f"its copy {corpus.hub} on the Hub cannot be loaded ({first_line(error.__cause__ or error)})"
    raise DataError(
        f"{name}: no folder given, and {why}; put {corpus.files} into a folder and name it as data_dir, "
        f"or put them into the folder {inside} of the folder that the variable {CORPORA_VARIABLE} names."
    )


def _folder_of(name: str, data_dir: str | Path | None) -> Path | None:
    """Return the folder of a named corpus: one in `data_dir` or else in HF_XORNER_CORPORA, or this folder itself."""
    given = data_dir if data_dir is not None else os.environ.get(CORPORA_VARIABLE)
    base, prefix = expanded(given or ""), NAMED_CORPORA[name].prefix
    if not given or not base.is_dir():
        return None
    folders = sorted(path for path in base.iterdir() if path.is_dir())
    # A folder with exactly this name comes first.
    for folder in sorted(filter(partial(_is_named, name), folders), key=lambda path: path.name != name):
        if find_splits(folder, prefix=prefix).splits:
            return folder
    # In a folder of several corpora, deeper files may belong to another corpus.
    several = any(_is_named(corpus, folder) for corpus in NAMED_CORPORA for folder in folders)
    deep = _is_named(name, base) or (name == "ontonotes5" and not several)
    return base if find_splits(base, below=deep, prefix=prefix).splits else None


def _is_named(name: str, folder: Path) -> bool:
    """Return True if a folder has a name of a corpus, such as WNUT_17 or emerging_entities_17-master."""
    plain = re.sub(r"[\W_]|master$|main$", "", folder.resolve().name.lower())
    return plain in (name.replace("-", ""), *NAMED_CORPORA[name].folders)


def read_words(source: str | Path, data_dir: str | Path | None = None) -> list[str]:
    """Return the distinct words of a list or of a corpus, in the order of their first occurrence.

    Args:
        source: A file with one word per line, plain or compressed by gzip, or a corpus as for `load_corpus`, of which
            all splits are read. A file is a list if its first line has one field.
        data_dir: The folder of the files of a named corpus.

    Raises:
        DataError: If the source cannot be read.
    """
    path = expanded(source)
    if path.is_file() and suffix_of(path) not in _NO_LIST:
        repairs = ReadingLog(ReadingOptions())
        lines = list(filter(None, clean_lines(Input(path, repairs).lines)))
        first = next((line for line in lines if line != DOCUMENT_START), " ")
        if not first.startswith('{"') and not any(blank in first for blank in BLANKS):
            repairs.report(str(path))
            return list(dict.fromkeys(lines))
    words: dict[str, None] = {}
    for split in load_corpus(source, data_dir).values():
        # Reading single rows takes several times as long.
        for batch in split.select_columns([TOKENS]).with_format("arrow").iter(100_000):
            words.update(dict.fromkeys(batch.column(TOKENS).combine_chunks().flatten().to_pylist()))
    return list(words)
