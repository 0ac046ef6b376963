"""Write a corpus to files that reading gives back."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from datasets import DatasetDict

from ..errors import DataError
from .batches import label_names_of
from .chunks import WRITTEN_SCHEMES
from .files import SPLITS
from .limits import check_split
from .reading import FORMATS
from .text_formats import SEPARATORS, TEXT_FORMATS, Form

_SUFFIXES = {"columns": ".conll", "conll2012": ".gold_conll", "jsonl": ".jsonl", "spans": ".jsonl"}
# Text files bear the names that the field gives them, tables those of `datasets`.
_STEMS = {"validation": "dev"}
_WITH_SCHEME = ("columns", "jsonl")
# What tells a folder that `Dataset.save_to_disk` wrote.
_SAVED = "dataset_info.json"


def write_corpus(
    corpus: DatasetDict,
    folder: str | Path,
    format: str,
    scheme: str = "iob2",
    separator: str = "tab",
    overwrite: bool = False,
) -> list[Path]:
    """Write a corpus into a folder, in a format that `hf_xorner.data.load_corpus` reads back without loss.

    The formats are

    - ``columns``: ``train.conll``, ``dev.conll``, ``test.conll``; word, part of speech if there is one, and tag. A
      document begins with a line ``-DOCSTART- -X- O``, or ``-DOCSTART- (id)`` where documents are not numbered from 0;
    - ``conll2012``: ``train.gold_conll`` and so on, with the twelve columns of OntoNotes; entities only. What the
      corpus does not have (parses, speakers and others) is ``-`` or ``*``;
    - ``jsonl``: ``train.jsonl`` and so on, an object a sentence with its words and tags;
    - ``spans``: ``train.jsonl`` and so on, an object a sentence with its text, its entities as ``[start, end, label]``
      and its words' places as ``[start, end]``, in characters; entities only;
    - ``parquet``: ``train.parquet``, ``validation.parquet``, ``test.parquet``;
    - ``arrow``: a folder to ``datasets.load_from_disk``.

    The last two keep every column, the others tokens, tags, parts of speech and documents. Nothing is left half
    written: the files take their places at the end, when all of them are complete. What reading cannot know must be
    told it: that tags are plain which look like chunks, and which column of ``columns`` holds parts of speech of a
    single kind or of very many.

    Args:
        corpus: The splits in the form that `hf_xorner.data.load_corpus` returns.
        folder: Where to write; made if it does not exist.
        format: One of the formats.
        scheme: How ``columns`` and ``jsonl`` write chunk tags: "iob1", "iob2", "bioes", "bilou" or "bmes". Plain tags
            stay as they are.
        separator: What separates ``columns``: "tab" or "blank".
        overwrite: Replace files that exist.

    Returns:
        What was written, one path a split.

    Raises:
        DataError: If a file exists and is not to be replaced, or if the corpus holds what the format cannot.
    """
    _check_options(format, scheme, separator)
    folder = Path(folder).expanduser()
    targets = _targets(corpus, folder, format)
    for path in targets.values():
        _check_target(path, format, overwrite)
    for split, dataset in corpus.items():
        # Refuses what is no corpus, in whatever format.
        label_names_of(dataset, split)
        if format in TEXT_FORMATS:
            check_split(dataset, split, format, separator)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: is a file; name a folder to write into.")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".writing-", dir=folder) as aside:
        _write(corpus, Path(aside), format, Form(scheme, separator))
        # What is replaced moves into the folder that will be removed: a folder cannot be replaced in one step.
        (Path(aside) / "old").mkdir()
        for path in targets.values():
            if path.is_dir():
                os.replace(path, Path(aside) / "old" / path.name)
            os.replace(Path(aside) / path.name, path)
    return [targets[split] for split in corpus]


def _check_options(format: str, scheme: str, separator: str) -> None:
    for name, value, allowed in (
        ("format", format, FORMATS),
        ("scheme", scheme, WRITTEN_SCHEMES),
        ("separator", separator, tuple(SEPARATORS)),
    ):
        if value not in allowed:
            raise DataError(f"{name}={value!r} cannot be written; choose one of {', '.join(allowed)}.")
    if format not in _WITH_SCHEME and scheme != "iob2":
        raise DataError(
            f"scheme={scheme!r}: {format} has but one form; only {' and '.join(_WITH_SCHEME)} take a scheme."
        )
    if format != "columns" and separator != "tab":
        raise DataError(f"separator={separator!r}: {format} has but one form; only columns take a separator.")


def _targets(corpus: DatasetDict, folder: Path, format: str) -> dict[str, Path]:
    """Return the paths to be written, by split; of a saved data set also its index, which comes last."""
    strange = [split for split in corpus if split not in SPLITS]
    if strange or not corpus:
        raise DataError(f"expected splits among {', '.join(SPLITS)}, found {', '.join(strange) or 'none'}.")
    if format == "arrow":
        return {**{split: folder / split for split in corpus}, "": folder / "dataset_dict.json"}
    if format == "parquet":
        return {split: folder / f"{split}.parquet" for split in corpus}
    return {split: folder / f"{_STEMS.get(split, split)}{_SUFFIXES[format]}" for split in corpus}


def _check_target(path: Path, format: str, overwrite: bool) -> None:
    if not path.exists():
        return
    # Never more than a data set is replaced: a folder train may well hold something else.
    if path.is_dir() and not (format == "arrow" and (path / _SAVED).is_file()):
        raise DataError(f"{path}: is a folder, which is not overwritten; choose another folder to write into.")
    if not overwrite:
        raise DataError(f"{path}: exists already; choose another folder to write into, or overwrite it.")


def _write(corpus: DatasetDict, folder: Path, format: str, form: Form) -> None:
    if format == "arrow":
        corpus.save_to_disk(folder)
        return
    for split, path in _targets(corpus, folder, format).items():
        with path.open("wb") as file:
            if format == "parquet":
                corpus[split].to_parquet(file)
            else:
                for text in TEXT_FORMATS[format](corpus[split], split, form):
                    file.write(text)
