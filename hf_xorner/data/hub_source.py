"""Data sets of the Hub as splits: the only part of this room that can reach for the network."""

from pathlib import Path

from datasets import load_dataset

from ..errors import DataError, first_line
from .files import SPLITS, split_of
from .local_source import split_of_table
from .reading import Reading
from .survey import Split


def splits_of_hub(name: str, reading: Reading, cache_dir: str | Path | None = None) -> dict[str, Split]:
    """Return the splits of a Hub data set of tokens and tags.

    Args:
        name: ``owner/name``. It needs a column ``tokens`` and a column ``ner_tags`` or ``tags``, the latter as class
            labels or strings.
        reading: How it is to be read.
        cache_dir: Where it is cached; by default where `datasets` does.

    Raises:
        DataError: If the set cannot be had, or has no split that is known.
    """
    try:
        found = load_dataset(name, cache_dir=cache_dir)
    # What goes wrong there (no such set, no network, a loading script) has no common type.
    except Exception as error:
        raise DataError(f"{name}: neither a local path nor to be had from the Hub ({first_line(error)}).") from error
    named = {split_of(Path(split)): split for split in found}
    splits = {
        split: split_of_table(found[named[split]], f"{name}, {named[split]}", reading)
        for split in SPLITS
        if split in named
    }
    if not splits:
        raise DataError(f"{name}: expected splits among {', '.join(SPLITS)}, found {', '.join(found)}.")
    return splits
