"""Distillation: what teachers find in the training sentences, and in text without labels, as a column of the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import torch
from datasets import Dataset, concatenate_datasets
from torch import Tensor

from ..errors import DataError
from ..models.modeling_tagger import TaggerForTokenClassification
from ..tagger import Tagger
from .batches import TEACHER_PAIRS, with_bytes


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

    @cached_property
    def digest(self) -> str:
        """A digest of the model and its tokenizer, wherever they are stored."""
        digest = blake2b(self.tokenizer.backend_tokenizer.to_str().encode(), digest_size=16)
        digest.update(repr([self.model.config.to_diff_dict(), self.tokenizer.init_kwargs]).encode(errors="replace"))
        for values in self.model.state_dict().values():
            digest.update(values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

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

    def label(sentences: list[list[str]]) -> Tensor:
        return torch.stack([teacher.pairs(sentences, tags) for teacher in teachers]).mean(0).to(torch.float16)

    data = train.select_columns(["tokens", "ner_tags"])
    if texts:
        none: list[list[int]] = [[] for _ in texts]
        data = concatenate_datasets(
            [data, Dataset.from_dict({"tokens": list(texts), "ner_tags": none}, features=data.features)]
        )
    identity = repr((tags, *(teacher.digest for teacher in teachers)))
    return with_bytes(data, TEACHER_PAIRS, label, identity, "labelling by the teacher")
