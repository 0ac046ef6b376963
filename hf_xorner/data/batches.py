"""A corpus in flat arrays, batch after batch: what counting and writing work on."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Dataset
from numpy.typing import NDArray

from ..errors import DataError

TOKENS, TAGS, POS_TAGS, DOC_ID = "tokens", "ner_tags", "pos_tags", "doc_id"
BATCH = 2000


class FlatBatch(NamedTuple):
    """Some consecutive sentences of a split, their words in one array.

    Attributes:
        split: The name of the split.
        first_row: The row of the first sentence.
        lengths: The number of tokens of each sentence. Shape: (sentences,).
        tokens: The words, sentence after sentence, none of them null. Shape: (tokens,), as the next two.
        ids: The number of each word's label, none without a name.
        pos_tags: The parts of speech, where the split has them.
        doc_ids: The document of each sentence, null where it is unknown, where the split has them. Shape: (sentences,).
    """

    split: str
    first_row: int
    lengths: NDArray[np.int64]
    tokens: pa.Array
    ids: NDArray[np.int64]
    pos_tags: pa.Array | None
    doc_ids: pa.Array | None

    @property
    def ends(self) -> NDArray[np.int64]:
        """The index after the last token of each sentence. Shape: (sentences,)."""
        return np.cumsum(self.lengths)

    def place(self, token: int) -> str:
        """Say in which row the token of an index stands."""
        return self.place_of_sentence(int(np.searchsorted(self.ends, token, side="right")))

    def place_of_sentence(self, sentence: int) -> str:
        """Say in which row the sentence of an index stands."""
        return f"{self.split}, row {self.first_row + sentence}"


def label_names_of(dataset: Dataset, split: str) -> list[str]:
    """Return the names of a split's labels.

    Raises:
        DataError: If the split is not of the form that `hf_xorner.data.load_corpus` returns.
    """
    feature = getattr(dataset.features.get(TAGS), "feature", None)
    if TOKENS not in dataset.features or not isinstance(feature, ClassLabel):
        raise DataError(
            f"{split}: expected the columns {TOKENS}: List(string) and {TAGS}: List(ClassLabel), "
            f"found {', '.join(dataset.column_names)}; load the corpus with load_corpus."
        )
    return list(feature.names)


def flat_batches(dataset: Dataset, split: str) -> Iterator[FlatBatch]:
    """Yield a split in flat arrays, in its order; a selected or shuffled one as it was selected or shuffled.

    Args:
        dataset: The split in the form that `hf_xorner.data.load_corpus` returns.
        split: Its name, for messages.

    Raises:
        DataError: If a row lacks its tokens or has more or fewer tags than tokens, or a label has no name.
    """
    count = len(label_names_of(dataset, split))
    columns = [name for name in (TOKENS, TAGS, POS_TAGS, DOC_ID) if name in dataset.column_names]
    row = 0
    for table in dataset.select_columns(columns).with_format("arrow").iter(BATCH):
        found = {name: table.column(name).combine_chunks() for name in columns}
        lengths = _lengths(found[TOKENS])
        batch = FlatBatch(
            split,
            row,
            lengths,
            tokens=found[TOKENS].flatten(),
            ids=_numbers(found[TAGS].flatten()),
            pos_tags=found[POS_TAGS].flatten() if POS_TAGS in found else None,
            doc_ids=found.get(DOC_ID),
        )
        _check(batch, found, count)
        yield batch
        row += len(lengths)


def _lengths(lists: pa.Array) -> NDArray[np.int64]:
    # -1 for a missing list, so that it differs from every length that a list can have.
    return lists.value_lengths().fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


def _numbers(labels: pa.Array) -> NDArray[np.int64]:
    return labels.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def _check(batch: FlatBatch, found: dict[str, pa.Array], labels: int) -> None:
    if len(batch.lengths) and batch.lengths.min() < 0:
        raise DataError(f"{batch.place_of_sentence(int(batch.lengths.argmin()))}: the tokens are missing.")
    for name in (TAGS, POS_TAGS):
        if name in found and not np.array_equal(_lengths(found[name]), batch.lengths):
            sentence = int(np.flatnonzero(_lengths(found[name]) != batch.lengths)[0])
            here, there = batch.lengths[sentence], max(_lengths(found[name])[sentence], 0)
            raise DataError(f"{batch.place_of_sentence(sentence)}: {here} tokens but {there} {name}.")
    for name, flat in ((TOKENS, batch.tokens), (POS_TAGS, batch.pos_tags)):
        if flat is not None and flat.null_count:
            token = int(np.flatnonzero(flat.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(f"{batch.place(token)}: a null among the {name}; give every token a string.")
    nameless = np.flatnonzero((batch.ids < 0) | (batch.ids >= labels))
    if len(nameless):
        token = int(nameless[0])
        raise DataError(f"{batch.place(token)}: the label {batch.ids[token]} has no name; give every token a label.")
