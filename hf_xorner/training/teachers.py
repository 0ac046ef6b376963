"""Teachers: models that label sentences for a student, of this package, of transformers, of GLiNER and of spaCy."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES
from transformers.utils import SAFE_WEIGHTS_NAME, cached_file

from ..corpora.schemes import (
    EDGE,
    UNLABELLED_TAG,
    entity_type,
    iob2_of,
    iob2_of_one,
    is_chunked,
    label_names,
    with_new_type,
)
from ..errors import DataError, why_not_loaded
from ..files import file_fingerprint, model_folder
from ..loading import check_size, moved, read_settings, without_reports
from ..models.crf import Chain, pair_posterior
from ..models.tags import TagSpace
from ..models.word_ids import RESERVED_CHARACTER_TYPES
from ..registration import CONFIGS
from ..tagger import Tagger
from .arguments import settings_of

#: Teachers that are not models of transformers, by the beginning of their names.
GLINER, SPACY = "gliner:", "spacy:"
#: GLiNER's spans with a lower score are outside of entities; from here to the minimum score, their words are unknown.
_LEAST_SCORE = 0.1
#: Pieces that two windows of a long sentence share, and the share of unknown words with which a teacher is refused.
_OVERLAP, _MOST_UNKNOWN = 64, 0.2


class Teacher(ABC):
    """A model whose labels a student learns.

    Attributes:
        source: Its name.
        labels: Its labels: IOB2, or plain ones such as parts of speech.
        certain: True if it returns spans, not the probability of each label.
    """

    source: str
    labels: list[str]
    certain = False
    _checked = False

    @property
    @abstractmethod
    def identity(self) -> str:
        """The weights and settings on which the labels depend, as text, for the cache."""

    @abstractmethod
    def probabilities(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return the probabilities of the labels of each word, (B, T, L), padded on the right; NaN if unknown.

        Each sentence has at least one word.
        """

    @cached_property
    def _memory(self) -> dict[str, Tensor]:
        return {}

    def remembered(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return `probabilities` to half precision; each sentence is labelled once."""
        keys = ["\0".join(words) for words in sentences]
        new = {key: words for key, words in zip(keys, sentences, strict=True) if words and key not in self._memory}
        if new:
            for key, words, rows in zip(new, new.values(), self.probabilities(list(new.values())), strict=True):
                self._memory[key] = rows[: len(words)].half()
        nothing = torch.zeros(1, len(self.labels))
        rows = [self._memory[key].float() if words else nothing for key, words in zip(keys, sentences, strict=True)]
        return pad_sequence(rows, batch_first=True)

    def _check_language(self, sentences: Sequence[Sequence[str]], unknown: Tensor) -> None:
        """Refuse text with many unknown words or pieces (a mask); for the first batch alone."""
        share = float(unknown.sum() / max(sum(map(len, sentences)), 1))
        if share > _MOST_UNKNOWN:
            raise DataError(
                f"teacher={self.source!r}: {100 * share:.0f} % of the words of the text, which begins with "
                f"{' '.join(sentences[0][:5])!r}, are unknown to its tokenizer; name a teacher of this language."
            )
        self._checked = True


def teachers_of(
    sources: Sequence[str], device: torch.device, types: Sequence[str] = (), min_score: float = 0.5
) -> list[Teacher]:
    """Load teachers.

    Args:
        sources: Folders, repositories on the Hub, ``gliner:NAME`` or ``spacy:NAME``.
        device: The device to run them on.
        types: The types of GLiNER, in words.
        min_score: The minimum score of GLiNER's spans.

    Raises:
        DataError: If one cannot be loaded, or has no labels, or types are given without a GLiNER.
    """
    if types and not any(source.startswith(GLINER) for source in sources):
        raise DataError(f"teacher_types are for teachers {GLINER}NAME; with others, name what to keep with types.")
    teachers: list[Teacher] = []
    for source in sources:
        if source.startswith(GLINER):
            teachers.append(GlinerTeacher(source.removeprefix(GLINER), device, types, min_score))
        elif source.startswith(SPACY):
            teachers.append(SpacyTeacher(source.removeprefix(SPACY)))
        else:
            try:
                settings = read_settings(
                    model_folder(source), [*CONFIGS, *MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES]
                )
            except Exception as error:  # no such folder, no network or a broken file: they have no common type
                raise DataError(f"teacher={source!r} cannot be loaded: {why_not_loaded(error)}.") from None
            of_package = settings.get("model_type") in CONFIGS
            teachers.append(OwnTeacher(source, device) if of_package else StockTeacher(source, device))
    return teachers


class OwnTeacher(Teacher):
    """A tagger of this package, which also has the posterior of pairs of tags."""

    def __init__(self, source: str, device: torch.device) -> None:
        self.source = source
        tagger = Tagger.from_pretrained(source, device)
        self.model, self.tokenizer = tagger.model, tagger.tokenizer
        self.labels = self.model.config.labels

    @cached_property
    def identity(self) -> str:
        """See `Teacher`."""
        pieces = self.tokenizer.pieces.to_str() if self.tokenizer.pieces else ""
        settings = settings_of(self.model.config)
        weights = tensors_digest(self.model.state_dict().items())
        return repr((weights, settings, self.tokenizer.init_kwargs, self.tokenizer.backend_tokenizer.to_str(), pieces))

    def _inputs(self, sentences: Sequence[Sequence[str]]) -> Any:
        encoded = self.tokenizer(
            sentences, is_split_into_words=True, padding=True, padding_side="right", return_tensors="pt"
        )
        if not self._checked and "char_ids" in encoded:
            characters = encoded["char_ids"]
            unknown = (characters < len(RESERVED_CHARACTER_TYPES)).all(-1) & characters.any(-1)
            self._check_language(sentences, unknown)
        return encoded.to(self.model.device)

    @torch.inference_mode()
    def probabilities(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """See `Teacher`."""
        return self.model(**self._inputs(sentences)).logits.softmax(-1).cpu()

    @torch.inference_mode()
    def pairs(self, sentences: Sequence[Sequence[str]], tags: Sequence[str]) -> Tensor:
        """Return the pair posterior of sentences, (B, T, K, K), in the order of the student's inner tags."""
        own_tags = self.model.tags.inner_tags
        if not any(sentences):
            return torch.zeros(len(sentences), 1, len(own_tags), len(own_tags))
        order = torch.tensor([own_tags.index(tag) for tag in tags], device=self.model.device)
        inputs = self._inputs(sentences)
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


class StockTeacher(Teacher):
    """A token classification model of transformers: the softmax of each word's first piece.

    Labels in BIO, BILOU, BIOES or IO become IOB2. An entity begins where the word before has another type.
    """

    def __init__(self, source: str, device: torch.device) -> None:
        self.source = source
        options: dict[str, Any] = {"trust_remote_code": False}
        try:
            config = AutoConfig.from_pretrained(source, **options)
            check_size(source, AutoModelForTokenClassification, config)
            self.tokenizer = AutoTokenizer.from_pretrained(source, **options)
            with without_reports():
                model, report = AutoModelForTokenClassification.from_pretrained(
                    source,
                    config=config,
                    use_safetensors=True,
                    output_loading_info=True,
                    # CPUs may have instructions for bfloat16, but not for float16.
                    dtype=torch.bfloat16 if config.dtype == torch.bfloat16 else torch.float32,
                    **options,
                )
        # The errors (no such folder, no network, broken files, weights in a pickle) have no common type.
        except Exception as error:
            raise DataError(f"teacher={source!r} cannot be loaded: {why_not_loaded(error)}.") from None
        if missing := sorted(report["missing_keys"]):
            raise DataError(
                f"teacher={source!r} is not trained to label words: {missing[0]} is missing in its weights."
            )
        names = [model.config.id2label[number] for number in range(model.config.num_labels)]
        if all(re.fullmatch(r"LABEL_\d+", name) for name in names):
            raise DataError(f"teacher={source!r} has no names of labels; set id2label in its config.json.")
        if not getattr(self.tokenizer, "is_fast", False):
            raise DataError(f"teacher={source!r} has no tokenizer.json; save it with a fast tokenizer.")
        self.model = moved(model.eval(), device)
        self.window = min(self.tokenizer.model_max_length, getattr(config, "max_position_embeddings", 512), 512)
        tags = list(map(iob2_of_one, names)) if "O" in names else names
        self.labels = label_names(set(tags), plain="O" not in names)
        number = {label: index for index, label in enumerate(self.labels)}
        self._columns = torch.tensor([number[tag] for tag in tags])

    @cached_property
    def identity(self) -> str:
        """See `Teacher`."""
        weights = tensors_digest(self.model.state_dict().items())
        return repr((weights, self.model.config.id2label, self.tokenizer.backend_tokenizer.to_str(), self.window))

    @torch.inference_mode()
    def probabilities(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """See `Teacher`."""
        width = max(map(len, sentences))
        found = torch.zeros(len(sentences), width, len(self._columns))
        margins = np.full((len(sentences), width), -1)
        encoded = self.tokenizer(
            list(map(list, sentences)),
            is_split_into_words=True,
            padding=True,
            truncation=True,
            max_length=self.window,
            stride=min(_OVERLAP, self.window // 4),
            return_overflowing_tokens=True,
            return_tensors="pt",
        )
        rows = encoded.pop("overflow_to_sample_mapping").tolist()
        if not self._checked and self.tokenizer.unk_token_id is not None:
            self._check_language(sentences, encoded["input_ids"] == self.tokenizer.unk_token_id)
        inputs = {name: encoded[name].to(self.model.device) for name in self.tokenizer.model_input_names}
        probabilities = self.model(**inputs).logits.float().softmax(-1).cpu()
        for window, row in enumerate(rows):
            words = np.array([-1 if word is None else word for word in encoded.word_ids(window)])
            first_pieces = np.flatnonzero((words >= 0) & (words != np.append(-1, words[:-1])))
            words = words[first_pieces]
            # Of a word in two windows, the one counts where it is further from the border.
            margin = np.minimum(first_pieces, len(encoded.word_ids(window)) - 1 - first_pieces)
            better = margin > margins[row, words]
            words, first_pieces = words[better], first_pieces[better]
            margins[row, words] = margin[better]
            found[row, words] = probabilities[window, first_pieces]
        outside = self.labels.index("O") if "O" in self.labels else 0
        summed = torch.zeros(*found.shape[:2], len(self.labels)).index_add_(2, self._columns, found)
        summed[torch.from_numpy(margins < 0)] = torch.eye(len(self.labels))[outside]  # words without pieces
        return _begun(summed, self.labels)


class SpanTeacher(Teacher):
    """A teacher whose entities are spans of characters in the words joined by blanks."""

    certain = True

    @abstractmethod
    def spans(self, texts: list[str]) -> list[list[tuple[int, int, str, float]]]:
        """Return start, end, type and score of the entities of each text."""

    def __init__(self, source: str, types: Sequence[str], min_score: float) -> None:
        self.source, self.min_score = source, min_score
        # Blanks would separate columns in files of labels.
        self.labels = label_names({f"B-{name.replace(' ', '_')}" for name in types}, plain=False)

    def probabilities(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """See `Teacher`."""
        found = torch.zeros(len(sentences), max(map(len, sentences)), len(self.labels))
        found[..., 0] = 1
        for row, spans in enumerate(self.spans([" ".join(words) for words in sentences])):
            ends = np.cumsum([len(word) + 1 for word in sentences[row]])
            for start, end, name, score in spans:
                first, last = np.searchsorted(ends, (start, end - 1), side="right")
                found[row, first : last + 1] = torch.nan if score < self.min_score else 0
                if score >= self.min_score:
                    begin = self.labels.index(f"B-{name.replace(' ', '_')}")
                    found[row, first, begin] = 1
                    found[row, first + 1 : last + 1, begin + 1] = 1
        return found


class GlinerTeacher(SpanTeacher):
    """A GLiNER, with types that are named in words."""

    def __init__(self, source: str, device: torch.device, types: Sequence[str], min_score: float) -> None:
        if not types:
            raise DataError(f"teacher={GLINER + source!r} needs types; name them with teacher_types.")
        super().__init__(GLINER + source, types, min_score)
        from gliner import GLiNER

        self.types = list(types)
        try:
            if cached_file(source, SAFE_WEIGHTS_NAME, _raise_exceptions_for_missing_entries=False) is None:
                raise OSError(  # the package would read a pickle
                    f"it has no {SAFE_WEIGHTS_NAME}; save it by its save_pretrained(…, safe_serialization=True)"
                )
            self.model = GLiNER.from_pretrained(source).to(device)
        # The errors (no such folder, no network, broken files) have no common type.
        except Exception as error:
            raise DataError(f"teacher={self.source!r} cannot be loaded: {why_not_loaded(error)}.") from None

    @cached_property
    def identity(self) -> str:
        """See `Teacher`."""
        return repr((tensors_digest(self.model.state_dict().items()), self.types, self.min_score))

    def spans(self, texts: list[str]) -> list[list[tuple[int, int, str, float]]]:
        """See `SpanTeacher`."""
        threshold = min(_LEAST_SCORE, self.min_score)
        found = self.model.inference(texts, self.types, threshold=threshold, batch_size=len(texts))
        return [[(span["start"], span["end"], span["label"], span["score"]) for span in spans] for spans in found]


class SpacyTeacher(SpanTeacher):
    """A pipeline of spaCy that finds entities; all of them count as certain."""

    def __init__(self, source: str) -> None:
        import spacy

        try:
            self.pipeline = spacy.load(source, exclude=["parser", "lemmatizer", "attribute_ruler"])
        # The errors (no such package, an incompatible version) have no common type.
        except Exception as error:
            raise DataError(f"teacher={SPACY + source!r} cannot be loaded: {why_not_loaded(error)}.") from None
        types = self.pipeline.pipe_labels.get("ner", [])
        if not types:
            raise DataError(f"teacher={SPACY + source!r} finds no entities; name a pipeline with the component ner.")
        super().__init__(SPACY + source, types, 0.0)

    @cached_property
    def identity(self) -> str:
        """See `Teacher`."""
        return repr((self.pipeline.meta, file_fingerprint(self.pipeline.path)))

    def spans(self, texts: list[str]) -> list[list[tuple[int, int, str, float]]]:
        """See `SpanTeacher`."""
        from spacy.tokens import Doc

        documents = (Doc(self.pipeline.vocab, text.split(" ")) for text in texts)
        return [
            [(span.start_char, span.end_char, span.label_, 1.0) for span in document.ents]
            for document in self.pipeline.pipe(documents)
        ]


# --- Labels of a student ---------------------------------------------------------------------------------------------


def common_labels(teachers: Sequence[Teacher], new_types: Mapping[str, str]) -> list[str]:
    """Return the labels of a student without labelled data: of the types that all teachers have.

    Args:
        teachers: The teachers.
        new_types: New types by the teachers' types.

    Raises:
        DataError: If they have no type in common, or a renamed type does not exist.
    """
    names = {entity_type(label) for teacher in teachers for label in teacher.labels}
    if unknown := sorted(new_types.keys() - names):
        raise DataError(f"types: no teacher has the type {unknown[0]!r}; they have {', '.join(sorted(names - {''}))}.")
    if UNLABELLED_TAG in new_types.values() and not all(teacher.certain for teacher in teachers):
        raise DataError(f"types: {UNLABELLED_TAG} needs teachers of spans; write O in its place.")
    renamed = ({with_new_type(label, new_types) for label in teacher.labels} for teacher in teachers)
    common = set.intersection(*renamed) - {UNLABELLED_TAG}
    if not common - {"O"}:
        raise DataError(f"the teachers {', '.join(teacher.source for teacher in teachers)} have no type in common.")
    return label_names(common, plain=not is_chunked(sorted(common)))


def check_types(teachers: Sequence[Teacher], labels: Sequence[str], new_types: Mapping[str, str]) -> None:
    """Check that teachers have all labels of a student.

    Raises:
        DataError: If one lacks a label.
    """
    for teacher in teachers:
        renamed = {with_new_type(label, new_types) for label in teacher.labels}
        if lacking := [label for label in labels if label not in renamed and label[:2] != "I-"]:
            raise DataError(
                f"teacher={teacher.source!r} has the labels {', '.join(teacher.labels)}, without {lacking[0]} of the "
                "student; name a teacher with the same types, or rename them with types."
            )


def mean_probabilities(
    teachers: Sequence[Teacher], sentences: Sequence[Sequence[str]], labels: Sequence[str], new_types: Mapping[str, str]
) -> Tensor:
    """Return the mean over the teachers of the probabilities of a student's labels, (B, T, L).

    Types that the student lacks count as outside, also those that are renamed to ``?``, unless all teachers give spans.
    NaN for words that no teacher knows.
    """
    each = []
    for teacher in teachers:
        renamed = [with_new_type(label, new_types) for label in teacher.labels]
        columns = torch.tensor([labels.index(label if label in labels else labels[0]) for label in renamed])
        found = teacher.remembered(sentences)
        unlabelled = [number for number, label in enumerate(renamed) if teacher.certain and label == UNLABELLED_TAG]
        unknown = found[..., unlabelled].sum(-1) > 0
        mapped = found.new_zeros(*found.shape[:2], len(labels)).index_add_(2, columns, found)
        each.append(mapped.masked_fill(unknown.unsqueeze(2), torch.nan))
    return torch.stack(each).nanmean(0)


def best_labels(probabilities: np.ndarray, labels: Sequence[str]) -> list[str]:
    """Return the most probable label of each word, (words, L), as whole entities, and ``?`` for unknown words."""
    known = ~np.isnan(probabilities).any(1)
    best = np.nan_to_num(probabilities).argmax(1)
    tags = [labels[label] if is_known else UNLABELLED_TAG for label, is_known in zip(best, known, strict=True)]
    if not is_chunked(labels):
        return tags
    pairs = zip([EDGE, *tags], tags, strict=False)
    # After an unknown word, an entity may go on.
    return [tag if before == UNLABELLED_TAG else iob2_of((before, tag), "iob2") for before, tag in pairs]


def pairs_of(probabilities: Tensor, lengths: Tensor, tags: TagSpace) -> Tensor:
    """Return the pair posterior (B, T, K, K) of the product of words' probabilities (B, T, L), for whole entities."""
    tables = tags.on(probabilities.device)
    emissions = probabilities.float().clamp(min=1e-12).log()[..., tables.public]
    nothing = emissions.new_zeros(())
    barred = (tables.barred_transitions, tables.barred_start, tables.barred_end)
    transitions, start, end = (nothing.expand(mask.shape).masked_fill(mask, -torch.inf) for mask in barred)
    return pair_posterior(Chain(emissions, transitions, start, end), lengths)


def _begun(probabilities: Tensor, labels: Sequence[str]) -> Tensor:
    """Move the probabilities of I- to B- where the best label of the word before is of another type."""
    if "O" not in labels:
        return probabilities
    types = [entity_type(label) for label in labels]
    best = torch.nn.functional.pad(probabilities.argmax(-1)[:, :-1], (1, 0), value=labels.index("O"))
    for number, label in enumerate(labels):
        if label.startswith("I-"):
            same = torch.tensor([name == types[number] for name in types])[best]
            moved_mass = probabilities[..., number].masked_fill(same, 0)
            probabilities[..., labels.index(f"B-{types[number]}")] += moved_mass
            probabilities[..., number] -= moved_mass
    return probabilities


@torch.no_grad()
def tensors_digest(tensors: Iterable[tuple[str, Tensor]]) -> str:
    """Return the SHA-256 of named tensors."""
    digest = hashlib.sha256()
    for name, value in tensors:
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
