"""Load labelled data from the Hub: the only part of this room that can reach for the network."""

from collections.abc import Iterator

from datasets import ClassLabel, Dataset, DatasetDict, load_dataset

from .assembly import RawSplit, assemble
from .columns import Sentence
from .errors import DataError
from .files import SPLITS

_TOKEN_COLUMN = "tokens"
_TAG_COLUMNS = ("ner_tags", "tags")


def load_from_hub(name: str) -> DatasetDict:
    """Load a Hub data set of tokens and tags in the package's form.

    Args:
        name: ``owner/name``. It needs a column ``tokens`` and a column ``ner_tags`` or ``tags``, the latter as class
            labels or strings.

    Raises:
        DataError: If the set cannot be had, or lacks the splits or columns.
    """
    try:
        found = load_dataset(name)
    # What goes wrong there (no such set, no network, a loading script) has no common type.
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(f"{name}: neither a local path nor to be had from the Hub ({lines[0]}).") from error
    splits = {split: _read_split(name, split, found[split]) for split in SPLITS if split in found}
    if not splits:
        raise DataError(f"{name}: expected splits among {', '.join(SPLITS)}, found {', '.join(found)}.")
    return assemble(splits)


def _read_split(name: str, split: str, dataset: Dataset) -> RawSplit:
    return RawSplit(_sentences(name, split, dataset), lambda sentence, _: f"{name}, {split}, row {sentence.line}")


def _sentences(name: str, split: str, dataset: Dataset) -> Iterator[Sentence]:
    columns = dataset.column_names
    tag_column = next((column for column in _TAG_COLUMNS if column in columns), None)
    if _TOKEN_COLUMN not in columns or tag_column is None:
        raise DataError(
            f"{name}, {split}: expected the columns {_TOKEN_COLUMN} and {' or '.join(_TAG_COLUMNS)}, "
            f"found {', '.join(columns)}; rename the columns, or save the data as a column file."
        )
    feature = getattr(dataset.features[tag_column], "feature", None)
    names = feature.names if isinstance(feature, ClassLabel) else None
    for row, (tokens, tags) in enumerate(zip(dataset[_TOKEN_COLUMN], dataset[tag_column], strict=True)):
        if len(tokens) != len(tags):
            raise DataError(f"{name}, {split}, row {row}: {len(tokens)} tokens but {len(tags)} tags.")
        if names is not None:
            tags = [names[tag] for tag in tags]
        elif not all(isinstance(tag, str) for tag in tags):
            raise DataError(
                f"{name}, {split}: the column {tag_column} holds numbers without names; expected List(ClassLabel)."
            )
        yield Sentence(tokens, tags, row)
