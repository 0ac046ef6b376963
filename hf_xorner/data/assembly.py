"""From sentences with tags as their source has them to a data set with one numbering of the labels."""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from .columns import Sentence
from .errors import DataError
from .tags import are_plain, entity_type, is_iob, label_names, to_iob2

TRAIN = "train"


class RawSplit:
    """One split before its tags are understood, which takes the tags of all splits.

    Attributes:
        tokens: All tokens, sentence after sentence.
        tag_ids: The index of each token's tag in the order of ``first_seen``.
        lengths: The number of tokens of each sentence.
        first_seen: For each distinct tag where it stands first, in words fit for a message.
    """

    def __init__(self, sentences: Iterable[Sentence], place: Callable[[Sentence, int], str]) -> None:
        """Collect sentences.

        Args:
            sentences: The sentences of the split.
            place: Says where the token of a sentence with a given index stands: the file and line.
        """
        self.tokens: list[str] = []
        self.tag_ids: list[int] = []
        self.lengths: list[int] = []
        self.first_seen: dict[str, str] = {}
        number: dict[str, int] = {}
        for sentence in sentences:
            # New tags are rare: the check of a whole sentence at once keeps the loop over tokens in a comprehension.
            if not number.keys() >= set(sentence.tags):
                for index, tag in enumerate(sentence.tags):
                    if tag not in number:
                        number[tag] = len(number)
                        self.first_seen[tag] = place(sentence, index)
            self.tokens.extend(sentence.tokens)
            self.tag_ids.extend([number[tag] for tag in sentence.tags])
            self.lengths.append(len(sentence.tokens))


def assemble(splits: Mapping[str, RawSplit]) -> DatasetDict:
    """Build the data set of a corpus, its tags as plain labels or IOB2.

    Args:
        splits: The splits by name. ``train`` sets the labels; without it all splits together do.

    Returns:
        The splits in the given order, with ``tokens: List(string)`` and ``ner_tags: List(ClassLabel)``.

    Raises:
        DataError: If a chunk tag is neither ``O`` nor ``B-type`` nor ``I-type``, or if a split has a tag (of chunks: a
            type) that the training split lacks.
    """
    tags = set(chain.from_iterable(split.first_seen for split in splits.values()))
    plain = are_plain(tags)
    if not plain:
        _check_prefixes(splits)
    known = set(splits[TRAIN].first_seen) if TRAIN in splits else tags
    labels = label_names(known, plain)
    for split in splits.values():
        _check_known(split, labels, plain)
    return DatasetDict({name: _to_dataset(split, labels, plain) for name, split in splits.items()})


def _check_prefixes(splits: Mapping[str, RawSplit]) -> None:
    for split in splits.values():
        for tag, place in split.first_seen.items():
            if not is_iob(tag):
                raise DataError(f"{place}: unknown tag {tag!r}; expected O, or a type after B- or I- (IOB1 or IOB2).")


def _check_known(split: RawSplit, labels: list[str], plain: bool) -> None:
    known = set(labels) if plain else {entity_type(label) for label in labels}
    for tag, place in split.first_seen.items():
        if (tag if plain else entity_type(tag)) not in known:
            raise DataError(
                f"{place}: the tag {tag!r} has no example in the training split; "
                "correct it, or add examples to the training data."
            )


def _to_dataset(split: RawSplit, labels: list[str], plain: bool) -> Dataset:
    tags = list(split.first_seen)
    tag_ids = np.array(split.tag_ids, dtype=np.int64)
    lengths = np.array(split.lengths, dtype=np.int64)
    if plain:
        label_ids = np.array([labels.index(tag) for tag in tags], dtype=np.int64)[tag_ids]
    else:
        label_ids = to_iob2(tag_ids, lengths, tags, labels)
    # Arrow arrays from flat buffers: going through a list of lists takes several times as long.
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    columns = {
        "tokens": pa.ListArray.from_arrays(offsets, pa.array(split.tokens, type=pa.string())),
        "ner_tags": pa.ListArray.from_arrays(offsets, pa.array(label_ids)),
    }
    features = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=labels))})
    return Dataset.from_dict(columns, features=features)
