"""Additional training data: further corpora, copies in another case, states of a frozen encoder, teachers' posterior.

The last two are columns of bytes, which `datasets` caches on disk, so each sentence is encoded once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import datasets
import numpy as np
import torch
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value, concatenate_datasets
from torch import Tensor
from tqdm.auto import tqdm

from ..corpora import load_corpus
from ..corpora.assemble import TAGS, TOKENS, TRAIN, label_names_of
from ..corpora.schemes import UNLABELLED_TAG, entity_type
from ..errors import DataError
from ..files import expanded, files_below
from ..models.contextual import ContextualFeatures
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tokenization_word_char import WordCharTokenizer
from ..tagging import TaggingOptions, records_of
from .batches import CONTEXT_STATES, TEACHER_PAIRS, word_counts
from .teachers import (
    OwnTeacher,
    Teacher,
    best_labels,
    check_types,
    common_labels,
    mean_probabilities,
    pairs_of,
    tensors_digest,
)

# --- Further sentences ------------------------------------------------------------------------------------------------


def with_more_data(
    corpus: DatasetDict, sources: Sequence[str], data_dir: str | None, reading: dict[str, Any]
) -> tuple[DatasetDict, list[Dataset]]:
    """Append the training sentences of further corpora to a corpus; return it and the sentences of each further one.

    Other splits of the further corpora are not used.

    Args:
        corpus: The corpus, which sets the labels.
        sources: The further corpora; this and the next two arguments are passed to `load_corpus`.
        data_dir: The folder of local files.
        reading: The options of reading.

    Raises:
        DataError: If a further corpus cannot be read, has no training sentences, or has a label that `corpus` lacks.
    """
    if not sources:
        return corpus, []
    train = corpus[TRAIN].select_columns([TOKENS, TAGS])
    more = [_more_like(train, source, load_corpus(source, data_dir, **reading)) for source in sources]
    return DatasetDict({**corpus, TRAIN: concatenate_datasets([train, *more])}), more


def _more_like(reference: Dataset, source: str, corpus: DatasetDict) -> Dataset:
    """Return the training sentences of a further corpus, with the label numbers of the reference."""
    if TRAIN not in corpus:
        raise DataError(f"more_data={source!r} has no training split; it has {', '.join(corpus)}.")
    train, names = corpus[TRAIN], label_names_of(reference, TRAIN)
    source_names = label_names_of(train, TRAIN)
    used = sorted({tag for row in train[TAGS] for tag in row if tag >= 0})
    if lacking := [source_names[tag] for tag in used if source_names[tag] not in names]:
        raise DataError(
            f"more_data={source!r}: the label {lacking[0]!r} is not among dataset's, which are {', '.join(names)}; "
            "rename its type with types, as in person=PER."
        )
    # The last entry is for -1, the number of words without a label.
    numbers = [*(names.index(label) if label in names else -1 for label in source_names), -1]
    tags = [[numbers[tag] for tag in row] for row in train[TAGS]]
    return Dataset.from_dict({TOKENS: train[TOKENS][:], TAGS: tags}, features=reference.features)


_CASES = (str.lower, str.upper, lambda word: word[:1].upper() + word[1:].lower())


def with_recased(train: Dataset, share: float, seed: int) -> Dataset:
    """Append copies of some training sentences in lower case, IN CAPITALS or With Initial Capitals.

    All other columns are copied unchanged: the labels, and the teachers' posterior for the original spelling.

    Args:
        train: The sentences.
        share: The probability of each sentence to be copied.
        seed: The seed for the choice of sentences and cases.
    """
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(random.random(len(train)) < share)
    cases = random.integers(len(_CASES), size=len(rows))

    def recase(words: list[str], row: int) -> dict[str, list[str]]:
        return {TOKENS: list(map(_CASES[cases[row]], words))}

    copies = train.select(rows)
    copies = copies.map(recase, with_indices=True, input_columns=TOKENS, features=copies.features, keep_in_memory=True)
    return concatenate_datasets([train, copies])


# --- Columns that a model computes ------------------------------------------------------------------------------------

#: Sentences in a pool that is sorted by length, and in a batch.
_POOL, _BATCH = 1024, 32


def with_bytes(
    dataset: Dataset, column: str, compute: Callable[[list[list[str]]], Tensor], identity: str, description: str
) -> Dataset:
    """Add values of every word as a column of bytes, which `datasets` caches.

    Batches consist of sentences of similar length, to save padding.

    Args:
        dataset: The sentences.
        column: The new column.
        compute: Returns the values (B, T, …) of sentences, padded on the right.
        identity: A text that identifies everything else on which the values depend, for the cache.
        description: The text of the progress bar.
    """

    def encode(sentences: list[list[str]]) -> dict[str, list[bytes]]:
        order = sorted(range(len(sentences)), key=lambda row: len(sentences[row]))
        values = [b""] * len(sentences)
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            computed = compute([sentences[row] for row in rows]).cpu().numpy()
            for row, array in zip(rows, computed, strict=True):
                values[row] = array[: len(sentences[row])].tobytes()
        return {column: values}

    if not len(dataset):
        return dataset
    words = dataset.select_columns([TOKENS])
    parts = []
    counts = word_counts(words, TOKENS)
    with tqdm(total=int(counts.sum()), desc=description, unit=" words", unit_scale=True, disable=None) as bar:
        for start in range(0, len(words), _POOL):  # an interrupted run continues with the next pool
            pool = words.select(range(start, min(start + _POOL, len(words))))
            digest = hashlib.sha256(json.dumps([column, identity, pool[TOKENS][:]]).encode()).hexdigest()[:32]
            computed = _map(
                pool,
                encode,
                batched=True,
                batch_size=_POOL,
                input_columns=TOKENS,
                remove_columns=TOKENS,
                features=Features({column: Value("binary")}),
                new_fingerprint=digest,
                # A dataset in memory has no default file in the cache.
                cache_file_name=os.path.join(datasets.config.HF_DATASETS_CACHE, "hf_xorner", f"{digest}.arrow"),
            )
            parts.append(computed)
            bar.update(int(counts[start : start + _POOL].sum()))
    return concatenate_datasets([dataset, concatenate_datasets(parts)], axis=1)


def _map(dataset: Dataset, *arguments: Any, **options: Any) -> Dataset:
    """Call `Dataset.map` without its progress bar."""
    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        return dataset.map(*arguments, **options)
    finally:
        if shown:
            datasets.enable_progress_bars()


def with_context_states(
    corpus: DatasetDict, context: ContextualFeatures, tokenizer: WordCharTokenizer, bf16: bool = False
) -> DatasetDict:
    """Add a frozen encoder's states of every word to a corpus.

    Args:
        corpus: The splits.
        context: The encoder of a tagger.
        tokenizer: The tagger's tokenizer.
        bf16: Whether the encoder computes in bfloat16.
    """
    device = next(context.encoder.parameters()).device

    @torch.inference_mode()
    def encode(sentences: list[list[str]]) -> Tensor:
        pieces = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")["piece_ids"]
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            return context.states(pieces.to(device)).float()

    weights = tensors_digest(context.encoder.state_dict().items())
    settings = {name: value for name, value in context.config.to_dict().items() if name.startswith("context_")}
    pieces = tokenizer.pieces.to_str() if tokenizer.pieces else ""
    identity = repr((weights, sorted(settings.items(), key=str), pieces, tokenizer.max_word_pieces, bf16))
    splits = {
        name: with_bytes(split, CONTEXT_STATES, encode, identity, f"encoding {name}") for name, split in corpus.items()
    }
    return DatasetDict(splits)


# --- Teachers ---------------------------------------------------------------------------------------------------------

#: Words after which a long line is divided, from this number of words on, and the longest sentence.
_ENDS, _LONG, _LONGEST = {".", "!", "?", "…", "。"}, 40, 100


def read_texts(names: Sequence[str], tokenize: Callable[[str], list[str]]) -> list[list[str]]:
    """Return the words of texts, or of sentences, in any format that `tag` reads; long texts become several sentences.

    Args:
        names: Files, folders, and datasets on the Hub, of which the split train is read.
        tokenize: Divides a text into words.

    Raises:
        DataError: If one cannot be read, or has no words.
    """
    sentences: list[list[str]] = []
    for name in names:
        path = expanded(name)
        before = len(sentences)
        for file in map(str, files_below(path)) if path.is_dir() else [name]:
            for record in records_of(file, TaggingOptions(split=None if path.exists() else TRAIN))[1]:
                if record.item is None:
                    raise DataError(record.fault)
                words = tokenize(record.item) if isinstance(record.item, str) else record.item
                sentences += _divided(words)
        if len(sentences) == before:
            raise DataError(f"{name} has no words; name a file of plain text with one sentence per line.")
    return sentences


def _divided(words: list[str]) -> Iterator[list[str]]:
    """Yield the sentences of a line."""
    start = 0
    if len(words) > _LONG:
        for end, word in enumerate(words, 1):
            if word in _ENDS or end - start == _LONGEST:
                yield words[start:end]
                start = end
    if start < len(words):
        yield words[start:]


def texts_as_corpus(
    texts: Sequence[Sequence[str]], teachers: Sequence[Teacher], new_types: Mapping[str, str]
) -> DatasetDict:
    """Return sentences with the labels of teachers, as a corpus without a validation split."""
    labels = common_labels(teachers, new_types)
    check_types(teachers, labels, new_types)
    features = Features({TOKENS: List(Value("string")), TAGS: List(ClassLabel(names=labels))})
    tags = _labels_of(texts, teachers, labels, new_types)
    return DatasetDict({TRAIN: Dataset.from_dict({TOKENS: list(texts), TAGS: tags}, features=features)})


def with_teachers(
    train: Dataset,
    texts: Sequence[Sequence[str]],
    teachers: Sequence[Teacher],
    student: TaggerForTokenClassification,
    new_types: Mapping[str, str],
) -> Dataset:
    """Append unlabelled texts to the training sentences, with the labels of teachers.

    Teachers with probabilities add their mean posterior as a column, for all sentences. Spans become the labels of the
    texts.

    Args:
        train: The labelled sentences: the columns tokens and ner_tags.
        texts: Sentences without labels.
        teachers: At least one.
        student: The model to train; the posterior has its inner tags.
        new_types: New types by the teachers' types.

    Raises:
        DataError: If a teacher lacks types of the student.
    """
    labels, tags = student.config.labels, student.tags.inner_tags
    check_types(teachers, labels, new_types)
    certain = all(teacher.certain for teacher in teachers)
    data = train.select_columns([TOKENS, TAGS])
    if texts:
        numbers = _labels_of(texts, teachers, labels, new_types) if certain else [[] for _ in texts]
        rows = Dataset.from_dict({TOKENS: list(texts), TAGS: numbers}, features=data.features)
        data = concatenate_datasets([data, rows])
    if certain:
        return data
    own = [teacher for teacher in teachers if isinstance(teacher, OwnTeacher)]
    renamed = any(entity_type(name) in new_types for teacher in own for name in teacher.labels)
    same_tags = not renamed and all(sorted(teacher.model.tags.inner_tags) == sorted(tags) for teacher in own)

    def label(sentences: list[list[str]]) -> Tensor:
        if len(own) == len(teachers) and same_tags:
            pairs = torch.stack([teacher.pairs(sentences, tags) for teacher in own]).mean(0)
        else:
            lengths = torch.tensor(list(map(len, sentences)))
            pairs = pairs_of(mean_probabilities(teachers, sentences, labels, new_types), lengths, student.tags)
        return pairs.to(torch.float16)

    identity = repr((tags, new_types, *(teacher.identity for teacher in teachers)))
    return with_bytes(data, TEACHER_PAIRS, label, identity, "labelling by the teacher")


def _labels_of(
    texts: Sequence[Sequence[str]], teachers: Sequence[Teacher], labels: Sequence[str], new_types: Mapping[str, str]
) -> list[list[int]]:
    """Return the numbers of the teachers' labels of texts, -1 for unknown words."""
    identity = repr((labels, new_types, *(teacher.identity for teacher in teachers)))
    number = {label: index for index, label in enumerate(labels)} | {UNLABELLED_TAG: -1}

    def label(sentences: list[list[str]]) -> Tensor:
        return mean_probabilities(teachers, sentences, labels, new_types).to(torch.float16)

    sentences = Dataset.from_dict({TOKENS: list(texts)})
    column = with_bytes(sentences, "probabilities", label, identity, "labelling by the teacher")["probabilities"]
    arrays = (np.frombuffer(row, np.float16).reshape(-1, len(labels)) for row in column)
    return [[number[tag] for tag in best_labels(array, labels)] for array in arrays]
