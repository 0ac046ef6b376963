"""Additional training data: further corpora, copies in another case, states of a frozen encoder, teachers' posterior.

The last two are columns of bytes, which `datasets` caches on disk, so each sentence is encoded once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import datasets
import numpy as np
import torch
from datasets import Dataset, DatasetDict, concatenate_datasets
from torch import Tensor

from ..corpora import load_corpus
from ..corpora.assemble import TAGS, TOKENS, TRAIN, label_names_of
from ..errors import DataError
from ..files import expanded, read_text
from ..models.contextual import ContextualFeatures
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tokenization_word_char import WordCharTokenizer
from ..tagger import Tagger
from .arguments import settings_of
from .batches import CONTEXT_STATES, TEACHER_PAIRS

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
    digest = hashlib.sha256(json.dumps([column, identity, words[TOKENS][:]]).encode()).hexdigest()[:32]
    computed = words.map(
        encode,
        batched=True,
        batch_size=_POOL,
        writer_batch_size=_POOL,
        input_columns=TOKENS,
        remove_columns=TOKENS,
        features=datasets.Features({column: datasets.Value("binary")}),
        new_fingerprint=digest,
        # A dataset in memory has no default file in the cache.
        cache_file_name=os.path.join(datasets.config.HF_DATASETS_CACHE, "hf_xorner", f"{digest}.arrow"),
        desc=description,
    )
    return concatenate_datasets([dataset, computed], axis=1)


def with_context_states(corpus: DatasetDict, context: ContextualFeatures, tokenizer: WordCharTokenizer) -> DatasetDict:
    """Add a frozen encoder's states of every word to a corpus.

    Args:
        corpus: The splits.
        context: The encoder of a tagger.
        tokenizer: The tagger's tokenizer.
    """
    device = next(context.encoder.parameters()).device

    @torch.inference_mode()
    def encode(sentences: list[list[str]]) -> Tensor:
        pieces = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")["piece_ids"]
        return context.states(pieces.to(device)).float()

    weights = _tensors_digest(context.encoder.state_dict().items())
    settings = {name: value for name, value in context.config.to_dict().items() if name.startswith("context_")}
    pieces = tokenizer.pieces.to_str() if tokenizer.pieces else ""
    identity = repr((weights, sorted(settings.items(), key=str), pieces, tokenizer.max_word_pieces))
    splits = {
        name: with_bytes(split, CONTEXT_STATES, encode, identity, f"encoding {name}") for name, split in corpus.items()
    }
    return DatasetDict(splits)


class Teacher:
    """A trained tagger whose posterior a student learns.

    Args:
        source: The tagger's folder, or its repository on the Hub.
        device: The device to run it on.

    Raises:
        ValueError: If the tagger cannot be loaded.
    """

    def __init__(self, source: str, device: torch.device) -> None:
        self.source = source
        tagger = Tagger.from_pretrained(source, device)
        self.model, self.tokenizer = tagger.model, tagger.tokenizer

    @cached_property
    def identity(self) -> str:
        """The weights and settings on which the posterior depends, as text."""
        weights = _tensors_digest(self.model.state_dict().items())
        pieces = self.tokenizer.pieces.to_str() if self.tokenizer.pieces else ""
        settings = settings_of(self.model.config)
        return repr((weights, settings, self.tokenizer.init_kwargs, self.tokenizer.backend_tokenizer.to_str(), pieces))

    @torch.inference_mode()
    def pairs(self, sentences: Sequence[Sequence[str]], tags: Sequence[str]) -> Tensor:
        """Return the pair posterior of sentences, (B, T, K, K), in the order of the student's inner tags."""
        own_tags = self.model.tags.inner_tags
        if not any(sentences):
            return torch.zeros(len(sentences), 1, len(own_tags), len(own_tags))
        order = torch.tensor([own_tags.index(tag) for tag in tags], device=self.model.device)
        inputs = self.tokenizer(
            sentences, is_split_into_words=True, padding=True, padding_side="right", return_tensors="pt"
        ).to(self.model.device)
        lengths = inputs.pop("attention_mask").sum(1)
        encoded = self.model.encode(**inputs, lengths=lengths)
        scores = self.model.score(encoded.states)
        pairs = self.model.decoder.pair_posterior(scores, lengths, encoded.states)
        # The entry of the first word is always in row 0.
        first = pairs[:, 0, 0].index_select(1, order)
        pairs = pairs.index_select(2, order).index_select(3, order)
        pairs[:, 0] = 0
        pairs[:, 0, 0] = first
        return pairs


def read_texts(files: Sequence[str], tokenize: Callable[[str], list[str]]) -> list[list[str]]:
    """Return the words of plain text with one sentence per line.

    Raises:
        DataError: If a file is not UTF-8, or has no words.
    """
    sentences: list[list[str]] = []
    for name in files:
        lines = read_text(expanded(name), "utf-8-sig").split("\n")
        in_file = [words for line in lines if (words := tokenize(line))]
        if not in_file:
            raise DataError(f"{name} has no words; name a file of plain text with one sentence per line.")
        sentences += in_file
    return sentences


def with_teachers(
    train: Dataset, texts: Sequence[Sequence[str]], teachers: Sequence[Teacher], student: TaggerForTokenClassification
) -> Dataset:
    """Append unlabelled texts to the training sentences, and add the mean posterior of the teachers as a column.

    Args:
        train: The labelled sentences: the columns tokens and ner_tags.
        texts: Sentences without labels.
        teachers: At least one.
        student: The model to train; the posterior has its inner tags.

    Raises:
        DataError: If a teacher's tags are not those of the student.
    """
    tags = student.tags.inner_tags
    for teacher in teachers:
        inner = teacher.model.tags.inner_tags
        if sorted(inner) != sorted(tags):
            raise DataError(
                f"teacher={teacher.source!r} has the tags {', '.join(sorted(inner))}, and the student "
                f"{', '.join(sorted(tags))}; name a teacher with the same types and tag_scheme."
            )

    def label(sentences: list[list[str]]) -> Tensor:
        return torch.stack([teacher.pairs(sentences, tags) for teacher in teachers]).mean(0).to(torch.float16)

    data = train.select_columns([TOKENS, TAGS])
    if texts:
        rows = {TOKENS: list(texts), TAGS: [[] for _ in texts]}
        data = concatenate_datasets([data, Dataset.from_dict(rows, features=data.features)])
    identity = repr((tags, *(teacher.identity for teacher in teachers)))
    return with_bytes(data, TEACHER_PAIRS, label, identity, "labelling by the teacher")


@torch.no_grad()
def _tensors_digest(tensors: Iterable[tuple[str, Tensor]]) -> str:
    """Return the SHA-256 of named tensors."""
    digest = hashlib.sha256()
    for name, value in tensors:
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
