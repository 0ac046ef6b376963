"""Build cached datasets with one numbering of the labels from sentences with any tags."""

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from datasets import (
    ArrowBasedBuilder,
    BuilderConfig,
    ClassLabel,
    Dataset,
    DatasetDict,
    DatasetInfo,
    Features,
    List,
    NamedSplit,
    SplitGenerator,
    Value,
    config,
)
from datasets.exceptions import DatasetGenerationError
from numpy.typing import NDArray

from ..errors import DataError, first_line
from .checks import WordSample, note_plain_tags, note_words, refuse_numbers, refuse_strange_tags
from .schemes import (
    EDGE,
    IO,
    UNLABELLED_TAG,
    Pair,
    Scheme,
    entity_type,
    iob2_of,
    is_chunked,
    is_of,
    label_names,
    prefixes_of,
    recognise,
    repairs_of,
    tags_of,
    usual_tags,
    with_new_type,
)
from .source import AUTO, Reading, Repairs, Sentence

_log = logging.getLogger(__name__)

#: More distinct tags than this are words or numbers from a wrong column.
MOST_TAGS = 10_000
#: A second column with more values than this, or with one only, holds no parts of speech.
MOST_POS = 128


class Split(NamedTuple):
    """A split that can be read several times, sentence by sentence.

    Attributes:
        read: Starts to read, and counts repairs.
        identity: A text that changes whenever the content may have changed.
        source: The source, for messages.
        guesses_pos: Whether the column of the parts of speech is a guess, so that its values must look like them.
        columns: Returns the columns of the words and of the tags, for messages.
        formats: The formats of its files, for the log.
    """

    read: Callable[[Repairs], Iterator[Sentence]]
    identity: str
    source: str
    guesses_pos: bool = False
    columns: Callable[[], tuple[str, str]] = lambda: ("", "")
    formats: str = ""


class Survey(NamedTuple):
    """The result of reading a split once.

    Attributes:
        pairs: How often each pair of neighbouring tags occurs, edges of sentences included.
        has_pos: Whether every sentence has parts of speech, and they look like some.
        has_documents: Whether any sentence belongs to a document.
        words: The first words.
    """

    pairs: Counter[Pair]
    has_pos: bool
    has_documents: bool
    words: WordSample

    @property
    def tags(self) -> set[str]:
        """The distinct tags."""
        return tags_of(self.pairs)


def survey(split: Split, repairs: Repairs) -> Survey:
    """Read a split once.

    Args:
        split: What to read.
        repairs: Where repairs of the reader are counted.

    Raises:
        DataError: For whatever the reader refuses, and for more distinct tags than any scheme has.
    """
    pairs: Counter[Pair] = Counter()
    has_pos, has_documents = True, False
    seen_pos: set[str] = set()
    words = WordSample()
    # A tag takes part in at least one pair, so pairs are a cheap bound on tags.
    bound = MOST_TAGS
    for sentence in split.read(repairs):
        words.add(sentence.tokens)
        pairs.update(zip([EDGE, *sentence.tags], [*sentence.tags, EDGE], strict=True))
        has_pos = has_pos and sentence.pos_tags is not None
        if split.guesses_pos and has_pos and len(seen_pos) <= MOST_POS:
            seen_pos.update(sentence.pos_tags or ())
        has_documents = has_documents or sentence.doc_id is not None
        if len(pairs) > bound:
            if len(tags_of(pairs)) > MOST_TAGS:
                raise DataError(
                    f"{sentence.place()}: more than {MOST_TAGS:,} different tags by now; "
                    "name the column that holds the tags as tag_column."
                )
            bound = 2 * len(pairs)
    has_pos = has_pos and (1 < len(seen_pos) <= MOST_POS or not split.guesses_pos)
    return Survey(pairs, has_pos, has_documents, words)


def find(split: Split, wanted: Callable[[Pair], bool]) -> tuple[str, str]:
    """Return the place and the second tag of the first pair that is wanted.

    The split is read again, which takes time only if there is an error or a repair to report.
    """
    for sentence in split.read(Repairs()):
        tags = sentence.tags
        for index, pair in enumerate(zip([EDGE, *tags], [*tags, EDGE], strict=True)):
            if wanted(pair):
                return sentence.place(min(index, len(tags) - 1)), pair[1]
    raise DataError(f"{split.source}: changed while it was read; load it again.")


_NAME = "hf_xorner"
_ELSEWHERE = "name another folder as cache_dir, or by the variable HF_DATASETS_CACHE"

_Batches = Callable[[], Iterator[pa.Table]]


@dataclass
class _Content(BuilderConfig):
    tables: _Batches | None = None
    features: Features | None = None
    split: NamedSplit | None = None


class _Builder(ArrowBasedBuilder):
    """Builds and caches a split of Arrow tables."""

    BUILDER_CONFIG_CLASS = _Content

    def _info(self) -> DatasetInfo:
        return DatasetInfo(features=self.config.features)

    def _split_generators(self, dl_manager: object) -> list[SplitGenerator]:
        return [SplitGenerator(name=self.config.split)]

    def _generate_tables(self) -> Iterator[tuple[int, pa.Table]]:
        yield from enumerate(self.config.tables())


def cached(
    tables: _Batches,
    features: Features,
    split: str,
    fingerprint: str,
    source: str,
    cache_dir: str | Path | None = None,
) -> Dataset:
    """Return the dataset of a split, from the cache or built.

    Args:
        tables: Returns an iterator of tables of the rows, with the types of the features.
        features: The columns.
        split: The name of the split.
        fingerprint: Identifies the content in the cache, whatever ``tables`` would yield.
        source: Where the rows come from, for messages.
        cache_dir: The cache; by default that of `datasets`.

    Raises:
        DataError: If the cache cannot be written or is damaged, or if the source is no longer what the fingerprint was
            made from.
    """
    folder = str(cache_dir or config.HF_DATASETS_CACHE)
    if "::" in folder:
        # fsspec would take what follows for another place, and all data sets would share the folder before it.
        raise DataError(f"{folder}: a folder with '::' in its name cannot be a cache; {_ELSEWHERE}.")
    content = f"{split}-{fingerprint}"
    try:
        # The content is named by its fingerprint, so that nothing has to be pickled to know it again.
        builder = _Builder(
            cache_dir=folder,
            dataset_name=_NAME,
            config_id=content,
            features=features,
            tables=tables,
            split=NamedSplit(split),
        )
        builder.download_and_prepare()
        dataset = builder.as_dataset(split=NamedSplit(split))
    except DatasetGenerationError as error:
        if isinstance(error.__cause__, (DataError, KeyError)):
            raise DataError(f"{source}: changed while it was read; load it again.") from error
        if isinstance(error.__cause__, OSError):
            raise _unwritable(folder, error.__cause__) from error
        raise
    # An earlier dataset in the cache is incomplete or damaged.
    except (FileNotFoundError, ValueError) as error:
        raise DataError(
            f"{folder}/{_NAME}/{content}: this part of the cache is damaged ({first_line(error)}); "
            "remove it, and load again."
        ) from error
    except OSError as error:
        raise _unwritable(folder, error) from error
    dataset._fingerprint = fingerprint
    return dataset


def _unwritable(folder: str, error: OSError) -> DataError:
    return DataError(f"{folder}: the cache cannot be written ({first_line(error)}); {_ELSEWHERE}.")


TOKENS, TAGS, POS_TAGS, DOC_ID = "tokens", "ner_tags", "pos_tags", "doc_id"
BATCH = 2000


class FlatBatch(NamedTuple):
    """Consecutive sentences of a split, with their words in one array.

    Attributes:
        split: The name of the split.
        first_row: The row of the first sentence.
        lengths: The number of tokens of each sentence. Shape: (sentences,).
        tokens: The words, sentence after sentence, none of them null. Shape: (tokens,), as the next two.
        ids: The number of each word's label; -1 for a word without label, in corpora of chunks.
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
    def chunk_ids(self) -> NDArray[np.int64]:
        """The labels of chunks, with that of ``O``, which is 0, for words without label. Shape: (tokens,)."""
        return np.maximum(self.ids, 0)

    @property
    def ends(self) -> NDArray[np.int64]:
        """The index after the last token of each sentence. Shape: (sentences,)."""
        return np.cumsum(self.lengths)

    def place(self, token: int) -> str:
        """Return the row of a token, for messages."""
        return self.place_of_sentence(int(np.searchsorted(self.ends, token, side="right")))

    def place_of_sentence(self, sentence: int) -> str:
        """Return the row of a sentence, for messages."""
        return f"{self.split}, row {self.first_row + sentence}"


def label_names_of(dataset: Dataset, split: str) -> list[str]:
    """Return the names of a split's labels.

    Raises:
        DataError: If the split is not of the form that `hf_xorner.corpora.load_corpus` returns.
    """
    feature = getattr(dataset.features.get(TAGS), "feature", None)
    if TOKENS not in dataset.features or not isinstance(feature, ClassLabel):
        raise DataError(
            f"{split}: expected the columns {TOKENS}: List(string) and {TAGS}: List(ClassLabel), "
            f"found {', '.join(dataset.column_names)}; load the corpus with load_corpus."
        )
    return list(feature.names)


def flat_batches(dataset: Dataset, split: str) -> Iterator[FlatBatch]:
    """Yield a split in flat arrays; the order of a selected or shuffled one is kept.

    Args:
        dataset: The split in the form that `hf_xorner.corpora.load_corpus` returns.
        split: Its name, for messages.

    Raises:
        DataError: If a row lacks its tokens or has more or fewer tags than tokens, or a label has no name.
    """
    names = label_names_of(dataset, split)
    least = -1 if is_chunked(names) else 0
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
        _check(batch, found, len(names), least)
        yield batch
        row += len(lengths)


def _lengths(lists: pa.Array) -> NDArray[np.int64]:
    # -1 for a missing list, so that it differs from every length that a list can have.
    return lists.value_lengths().fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


_NULL = -2


def _numbers(labels: pa.Array) -> NDArray[np.int64]:
    return labels.fill_null(_NULL).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def _check(batch: FlatBatch, found: dict[str, pa.Array], labels: int, least: int) -> None:
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
    nameless = np.flatnonzero((batch.ids < least) | (batch.ids >= labels))
    if len(nameless):
        token = int(nameless[0])
        raise DataError(f"{batch.place(token)}: the label {batch.ids[token]} has no name; give every token a label.")


def words_and_tags(split: Dataset) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words of each sentence, and the names of their labels, ``?`` for a word without label."""
    names = [*split.features[TAGS].feature.names, UNLABELLED_TAG]  # the last has the number -1
    return list(split[TOKENS]), [[names[tag] for tag in row] for row in split[TAGS]]


def corpus_fingerprint(corpus: DatasetDict) -> str:
    """Return the SHA-256 of a corpus: its splits, labels, sentences, words and tags.

    It does not depend on paths, formats, or other columns than words and tags.

    Args:
        corpus: The splits in the form that `hf_xorner.corpora.load_corpus` returns.
    """
    rows = [[name, split_fingerprint(corpus[name], name)] for name in sorted(corpus)]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def split_fingerprint(split: Dataset, name: str) -> str:
    """Return the SHA-256 of a split: its labels, sentences, words and tags.

    Args:
        split: The split.
        name: Its name, for messages.
    """
    parts = [hashlib.sha256() for _ in range(3)]
    for batch in flat_batches(split, name):
        words = "".join(f"{len(word)}:{word}" for word in batch.tokens.to_pylist())
        for part, content in zip(
            parts,
            (words.encode(), batch.lengths.astype("<i8").tobytes(), batch.ids.astype("<i8").tobytes()),
            strict=True,
        ):
            part.update(content)
    row = [label_names_of(split, name), *(part.hexdigest() for part in parts)]
    return hashlib.sha256(json.dumps(row).encode()).hexdigest()


TRAIN = "train"

# Part of every fingerprint: another number makes all cached data sets be built anew.
_VERSION = 3
# Sentences of a table.
_BATCH = 1000


def assemble(
    splits: Mapping[str, Split], reading: Reading, source: str, cache_dir: str | Path | None = None
) -> DatasetDict:
    """Build the cached dataset of a corpus, with plain or IOB2 labels.

    Every split is read twice, as labels and repairs must be known before the first row is written.

    Args:
        splits: The splits by name. ``train`` sets the labels; without it all splits together do.
        reading: The options of reading.
        source: The name of the corpus, for messages.
        cache_dir: The cache; by default that of `datasets`.

    Returns:
        The splits in the given order, with ``tokens: List(string)`` and ``ner_tags: List(ClassLabel)``, and with
        ``pos_tags: List(string)`` and ``doc_id: string`` where the source has them.

    Raises:
        DataError: If a split has no sentence, if a tag does not belong to the scheme, if a split has a tag (of chunks:
            a type) that the training split lacks, or for a repair that ``reading.strict`` refuses.
    """
    repairs = Repairs(reading.strict)
    if reading.strip is not None:
        splits = {name: _stripped(split, reading) for name, split in splits.items()}
    surveys = {name: survey(split, repairs) for name, split in splits.items()}
    for name, found in surveys.items():
        if not found.pairs:
            bad = f" beside bad lines ({repairs.first_left_out})" if repairs.first_left_out else ""
            raise DataError(f"{splits[name].source}: the split holds no sentence{bad}; fill it, or leave it out.")
    splits, surveys = _with_usual_tags(splits, surveys, reading, repairs, source)
    pairs = set().union(*(found.pairs for found in surveys.values()))
    # Bare types have become the I- tags of IOB1.
    given = "iob1" if reading.scheme == IO else reading.scheme
    scheme = recognise(pairs) if given == AUTO else cast("Scheme", given)
    for name, found in surveys.items():
        _check_plausible(splits[name], found, scheme, reading)
        note_words(found.words, repairs, splits[name].source)
    if scheme == "plain":
        if reading.scheme == AUTO:
            note_plain_tags(tags_of(pairs), repairs, source)
    elif reading.skip_bad_lines:
        splits, surveys = _without_unknown_tags(splits, surveys, scheme, reading, repairs)
    else:
        for name, found in surveys.items():
            _check_prefixes(splits[name], found, scheme)
    known = surveys[TRAIN].tags if TRAIN in surveys else set().union(*(found.tags for found in surveys.values()))
    renamed = _renaming(reading, tags_of(pairs), scheme, source)
    labels = label_names(set(map(renamed, known)), scheme == "plain")
    for name, found in surveys.items():
        _check_known(splits[name], found, labels, scheme, renamed)
        _count_repairs(splits[name], found, scheme, repairs)
    repairs.report(source)
    for split in splits.values():
        if split.formats:
            _log.info("%s: read as %s", split.source, split.formats)
    extra = _extra_columns(surveys.values())
    return DatasetDict(
        {
            name: _build(name, split, surveys[name], scheme, renamed, labels, extra, cache_dir)
            for name, split in splits.items()
        }
    )


def _with_usual_tags(
    splits: Mapping[str, Split], surveys: dict[str, Survey], reading: Reading, repairs: Repairs, source: str
) -> tuple[Mapping[str, Split], dict[str, Survey]]:
    """Return the splits and their surveys with the usual forms of their tags."""
    counts: Counter[str] = Counter()
    for survey in surveys.values():
        for (_, tag), count in survey.pairs.items():
            counts[tag] += count
    del counts[EDGE]
    form, notes = usual_tags(counts, reading.scheme)
    if all(tag == new for tag, new in form.items()):
        return splits, surveys
    for name, survey in surveys.items():
        if empty := {tag for tag in survey.tags if not form[tag]}:
            place, tag = find(splits[name], lambda pair: pair[1] in empty)
            raise DataError(f"{place}: the tag {tag!r} is only blanks; give every word a tag.")
    for note in notes:
        repairs.note(note, source)

    def with_usual_tags(split: Split) -> Split:
        def read(repairs: Repairs) -> Iterator[Sentence]:
            for sentence in split.read(repairs):
                yield sentence._replace(tags=[form[tag] for tag in sentence.tags])

        return split._replace(read=read)

    form[EDGE] = EDGE
    changed = {}
    for name, survey in surveys.items():
        pairs: Counter[Pair] = Counter()
        for (before, tag), count in survey.pairs.items():
            pairs[form[before], form[tag]] += count
        changed[name] = survey._replace(pairs=pairs)
    return {name: with_usual_tags(split) for name, split in splits.items()}, changed


def _check_plausible(split: Split, found: Survey, scheme: Scheme, reading: Reading) -> None:
    token_column, tag_column = split.columns()
    refuse_numbers(found.words, reading, split.source, token_column)
    refuse_strange_tags(found.tags, scheme, found.words, reading, split.source, tag_column)


def _stripped(split: Split, reading: Reading) -> Split:
    """Return a split whose words lack what `Reading.strip` matches."""
    pattern = re.compile(reading.strip or "")

    def read(repairs: Repairs) -> Iterator[Sentence]:
        for sentence in split.read(repairs):
            tokens = [pattern.sub("", token) for token in sentence.tokens]
            if "" not in tokens:
                yield sentence._replace(tokens=tokens)
                continue
            faults = {
                index: f"nothing is left of the word {sentence.tokens[index]!r} without {reading.strip!r}"
                for index, token in enumerate(tokens)
                if not token
            }
            yield from _left_out(sentence._replace(tokens=tokens), faults, "give another pattern", reading, repairs)

    return split._replace(read=read)


def _left_out(
    sentence: Sentence, faults: Mapping[int, str], remedy: str, reading: Reading, repairs: Repairs
) -> Iterator[Sentence]:
    """Yield a sentence without the words that have faults, or raise DataError for the first of them."""
    for index, fault in faults.items():
        error = DataError(f"{sentence.place(index)}: {fault}; {remedy}.")
        repairs.leave_out(error, reading.skip_bad_lines)
    kept = [index for index in range(len(sentence.tokens)) if index not in faults]
    if kept:
        first = sentence.line
        yield sentence._replace(
            tokens=[sentence.tokens[index] for index in kept],
            tags=[sentence.tags[index] for index in kept],
            pos_tags=sentence.pos_tags and [sentence.pos_tags[index] for index in kept],
            lines=[sentence.lines[at] if sentence.lines else first + at * sentence.lines_per_token for at in kept],
        )


def _without_unknown_tags(
    splits: Mapping[str, Split], surveys: dict[str, Survey], scheme: Scheme, reading: Reading, repairs: Repairs
) -> tuple[dict[str, Split], dict[str, Survey]]:
    """Return the splits and their surveys without words whose tags belong to no scheme."""
    known, known_surveys = dict(splits), dict(surveys)
    for name, split in splits.items():
        strange = {tag for tag in surveys[name].tags if not is_of(scheme, tag)}
        if strange:
            known[name] = _without_tags(split, strange, reading)
            known_surveys[name] = survey(known[name], repairs)
            if not known_surveys[name].pairs:
                _check_prefixes(split, surveys[name], scheme)
    return known, known_surveys


def _without_tags(split: Split, strange: set[str], reading: Reading) -> Split:
    """Return a split without the words of some tags."""

    def read(repairs: Repairs) -> Iterator[Sentence]:
        # The repairs of the split itself have been counted.
        for sentence in split.read(Repairs()):
            faults = {at: f"unknown tag {tag!r}" for at, tag in enumerate(sentence.tags) if tag in strange}
            yield from _left_out(sentence, faults, "correct it", reading, repairs) if faults else [sentence]

    return split._replace(read=read)


def _check_prefixes(split: Split, found: Survey, scheme: Scheme) -> None:
    strange = {tag for tag in found.tags if not is_of(scheme, tag)}
    if strange:
        place, tag = find(split, lambda pair: pair[1] in strange)
        raise DataError(
            f"{place}: unknown tag {tag!r}; expected O, or a type after {prefixes_of(scheme)} ({scheme.upper()}); "
            "correct it, or say scheme=plain."
        )


def _renaming(reading: Reading, tags: set[str], scheme: Scheme, source: str) -> Callable[[str], str]:
    """Return the function that gives an IOB2 label its new type.

    Tags of the source's scheme keep theirs: in IOB1, the tags of two entities beside each other depend on their types.
    """
    if reading.types is not None and scheme == "plain":
        raise DataError(
            f"{source}: types={reading.types!r} renames types of entities, and here each word has a label of its own; "
            "leave types out."
        )
    if lacking := reading.new_types.keys() - set(map(entity_type, tags)):
        _log.info("%s: has no entities of %s, which types renames", source, ", ".join(sorted(lacking)))
    return partial(with_new_type, new_types=reading.new_types)


def _check_known(split: Split, found: Survey, labels: list[str], scheme: Scheme, renamed: Callable[[str], str]) -> None:
    plain = scheme == "plain"
    if not plain and set(map(renamed, found.tags)) == {UNLABELLED_TAG}:
        raise DataError(
            f"{split.source}: all words have the unknown tag ?; label some of them, or leave the split out."
        )
    known = set(labels) if plain else {entity_type(label) for label in labels}
    unknown = {tag for tag in found.tags if (tag if plain else entity_type(renamed(tag))) not in known}
    if unknown:
        place, tag = find(split, lambda pair: pair[1] in unknown)
        raise DataError(
            f"{place}: the tag {tag!r} has no example in the training split; "
            "correct it, or add examples to the training data."
        )


def _count_repairs(split: Split, found: Survey, scheme: Scheme, repairs: Repairs) -> None:
    counts: Counter[str] = Counter()
    for pair, count in found.pairs.items():
        for kind in repairs_of(pair, scheme):
            counts[kind] += count
    for kind, count in counts.items():
        repairs.add(kind, _first_repair(split, scheme, kind), count)


def _first_repair(split: Split, scheme: Scheme, kind: str) -> str:
    return find(split, lambda pair: kind in repairs_of(pair, scheme))[0]


def _extra_columns(surveys: Collection[Survey]) -> dict[str, Any]:
    """Return the optional columns: parts of speech if all splits have them, documents if any split has them."""
    extra: dict[str, Any] = {}
    if all(found.has_pos for found in surveys):
        extra["pos_tags"] = List(Value("string"))
    if any(found.has_documents for found in surveys):
        extra["doc_id"] = Value("string")
    return extra


def _build(
    name: str,
    split: Split,
    found: Survey,
    scheme: Scheme,
    renamed: Callable[[str], str],
    labels: list[str],
    extra: dict[str, Any],
    cache_dir: str | Path | None,
) -> Dataset:
    features = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=labels)), **extra})
    # A plain tag of this name is a label.
    number = {UNLABELLED_TAG: -1, **{label: index for index, label in enumerate(labels)}}
    label_of = {pair: number[renamed(iob2_of(pair, scheme))] for pair in found.pairs if pair[1] != EDGE}

    def tables() -> Iterator[pa.Table]:
        sentences = split.read(Repairs())
        while batch := list(islice(sentences, _BATCH)):
            yield _table(batch, label_of, features)

    identity = json.dumps([_VERSION, split.identity, scheme, labels, sorted(extra)])
    fingerprint = hashlib.sha256(identity.encode()).hexdigest()[:32]
    return cached(tables, features, name, fingerprint, split.source, cache_dir)


def _table(sentences: Sequence[Sentence], label_of: Mapping[Pair, int], features: Features) -> pa.Table:
    """Return sentences as a table, built from flat arrays for speed."""
    offsets = np.zeros(len(sentences) + 1, dtype=np.int32)
    np.cumsum([len(sentence.tokens) for sentence in sentences], out=offsets[1:])
    tags = chain.from_iterable(zip([EDGE, *found.tags], found.tags, strict=False) for found in sentences)
    labels = np.fromiter(map(label_of.__getitem__, tags), dtype=np.int64, count=int(offsets[-1]))
    columns = {
        "tokens": _lists(offsets, pa.array(_flat(found.tokens for found in sentences), pa.string())),
        "ner_tags": _lists(offsets, pa.array(labels)),
    }
    if "pos_tags" in features:
        columns["pos_tags"] = _lists(offsets, pa.array(_flat(found.pos_tags for found in sentences), pa.string()))
    if "doc_id" in features:
        columns["doc_id"] = pa.array([found.doc_id for found in sentences], pa.string())
    return pa.table(columns)


def _lists(offsets: NDArray[np.int32], values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _flat(lists: Iterable[Any]) -> list[Any]:
    return list(chain.from_iterable(lists))
