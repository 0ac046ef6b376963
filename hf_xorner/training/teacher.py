"""Distillation: what teachers find in the training sentences, and in text without labels, as a column of the data."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from datasets import Dataset, Features, Value, concatenate_datasets
from torch import Tensor

from ..errors import DataError
from ..models.modeling_tagger import TaggerForTokenClassification
from ..tagger import Tagger
from ..tagging.run import digest_of
from .batches import TEACHER_PAIRS

#: Sentences in a batch of the teachers, and of the cached dataset.
_BATCH, _WRITTEN = 32, 256


class Teacher:
    """A trained tagger, whose posterior a student learns.

    Args:
        source: Its folder, or its repository on the Hub.
        device: The device to run it on.

    Raises:
        ValueError: If it is a Stack-LSTM, or cannot be loaded.
    """

    def __init__(self, source: str, device: torch.device) -> None:
        self.source = source
        self.tagger = Tagger.from_pretrained(source, device)
        self.model, self.tokenizer = self.tagger.model, self.tagger.tokenizer
        if self.model.config.model_type == "stack-lstm":
            raise ValueError(f"teacher={source!r} is a Stack-LSTM; name a model with a CRF or softmax.")

    @torch.inference_mode()
    def pairs(self, sentences: Sequence[Sequence[str]], tags: Sequence[str]) -> Tensor:
        """Return the pair posterior of sentences, (B, T, K, K), in the order of the student's inner tags."""
        own = self.model.tags.inner_tags
        if not any(sentences):
            return torch.zeros(len(sentences), 1, len(own), len(own))
        order = torch.tensor([own.index(tag) for tag in tags], device=self.model.device)
        inputs = self.tokenizer(
            sentences, is_split_into_words=True, padding=True, padding_side="right", return_tensors="pt"
        ).to(self.model.device)
        lengths = inputs.pop("attention_mask").sum(1)
        encoded = self.model.encode(**inputs, lengths=lengths)
        scores = self.model.score(encoded.states)
        pairs = self.model.decoder.pair_posterior(scores, lengths, encoded.states)
        # The entry of the first word is in row 0, whatever the tag of this row is.
        first = pairs[:, 0, 0].index_select(1, order)
        pairs = pairs.index_select(2, order).index_select(3, order)
        pairs[:, 0] = 0
        pairs[:, 0, 0] = first
        return pairs

    def check(self, tags: Sequence[str]) -> None:
        """Raise a DataError if the teacher does not have exactly the student's tags."""
        own = self.model.tags.inner_tags
        if sorted(own) != sorted(tags):
            theirs, ours = ({tag.partition("-")[2] for tag in each if "-" in tag} or set(each) for each in (own, tags))
            raise DataError(
                f"teacher={self.source!r} has the types {', '.join(sorted(theirs))}, and the training data have "
                f"{', '.join(sorted(ours))}; name a teacher with the same types."
            )


def read_texts(files: Sequence[str], tokenize: Callable[[str], list[str]]) -> list[list[str]]:
    """Return the words of plain text, a sentence a line.

    Raises:
        DataError: If a file cannot be read, or has no words.
    """
    sentences: list[list[str]] = []
    for name in files:
        try:
            lines = Path(name).expanduser().read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise DataError(f"{name}: cannot be read ({error.strerror}); name a file of plain text.") from None
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: byte {error.start} is not UTF-8; convert the text to UTF-8.") from None
        found = [words for line in lines if (words := tokenize(line))]
        if not found:
            raise DataError(f"{name}: has no words; name a file of plain text, a sentence a line.")
        sentences += found
    return sentences


def with_teachers(
    train: Dataset, texts: Sequence[Sequence[str]], teachers: Sequence[Teacher], student: TaggerForTokenClassification
) -> Dataset:
    """Return training sentences, and behind them those of texts, with the mean posterior of the teachers.

    `datasets` caches the posterior, so that another run with the same teachers does not compute it again.

    Args:
        train: The labelled sentences: the columns tokens and ner_tags.
        texts: Sentences without labels.
        teachers: At least one.
        student: The model to train, whose inner tags are those of the posterior.
    """
    tags = student.tags.inner_tags
    for teacher in teachers:
        teacher.check(tags)

    def label(batch: dict[str, list]) -> dict[str, list]:
        mean = torch.stack([teacher.pairs(batch["tokens"], tags) for teacher in teachers]).mean(0)
        rows = mean.to(torch.float16).cpu().numpy()
        return {TEACHER_PAIRS: [row[: len(words)].tobytes() for row, words in zip(rows, batch["tokens"], strict=True)]}

    data = train.select_columns(["tokens", "ner_tags"])
    if texts:
        none: list[list[int]] = [[] for _ in texts]
        data = concatenate_datasets(
            [data, Dataset.from_dict({"tokens": list(texts), "ner_tags": none}, features=data.features)]
        )
    identity = repr((tags, *(digest_of(teacher.tagger) for teacher in teachers)))
    return data.map(
        label,
        batched=True,
        batch_size=_BATCH,
        writer_batch_size=_WRITTEN,
        features=Features({**data.features, TEACHER_PAIRS: Value("binary")}),
        new_fingerprint=hashlib.sha256(f"{data._fingerprint} {identity}".encode()).hexdigest()[:32],
        desc="labelling by the teacher",
    )
