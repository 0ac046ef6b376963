"""Going on from a trained or published model: new labels, words, characters and vectors, and nothing forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from transformers import AutoModelForTokenClassification

from ..data.vector_files import Vectors, read_vectors
from ..data.vector_lookup import look_up
from ..errors import DataError
from ..loading import load
from ..models.configuration_tagger import TaggerConfig
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tokenization_word_char import WordCharTokenizer
from .adoption import HEAD, check_same, use_of_vectors
from .arguments import RunArguments
from .carrying import carry_over
from .start import Start
from .vocabulary import extended, known_words

#: Fields besides those named …dropout that change no weight, and nothing that these make of a sentence's words.
_FREE = {
    *("loss_reduction", "loss_each_iteration", "exploration", "dropout_masks", "initializer", "initializer_range"),
    *("freeze_word_embeddings", "context_frozen", "attention_window", "attention_overlap"),
    *("malformed_spans", "constrain_transitions", "beam_size", "discontiguous"),
}

#: What a saved config says of the files and the program that wrote it.
_OF_THE_FILES = ("_name_or_path", "transformers_version", "architectures", "auto_map", "dtype", "label2id")


def go_on(
    run: RunArguments, sentences: Iterable[Sequence[str]], labels: list[str], config_fields: dict[str, Any]
) -> Start:
    """Load the model that a run goes on from, and make it one for the training data.

    Its words and characters are those that it knew and those of the data; where only the head is trained, which could
    not learn new ones, those that it knew alone. New words that have a vector begin with it, in either case. Its labels
    are those of the data, or with `keep_labels` its own besides.

    Args:
        run: What is trained; see `adopt`.
        sentences: The words of the training data.
        labels: Its labels.
        config_fields: Fields of the model's config that are to be others than before.
    """
    source = run.model_name_or_path or ""
    old, old_tokenizer = load(source, dtype=torch.float32)
    vectors = vectors_for(run, old.config) if run.vectors else None
    head_only = run.train_only == HEAD
    tokenizer = extended(old_tokenizer, () if head_only else sentences, run.min_count, vectors.words if vectors else ())
    if run.keep_labels:
        labels = [*labels, *(label for label in old.config.labels if label not in labels)]
    config = config_from(old.config, config_fields, {**tokenizer.model_fields(), "id2label": dict(enumerate(labels))})
    model = AutoModelForTokenClassification.from_config(config, dtype=torch.float32)
    carry_over(old, model, old_tokenizer, tokenizer)
    if vectors:
        place_new_vectors(model, tokenizer, old_tokenizer, vectors)
    if head_only:
        freeze_all_but_head(model)
    return Start(tokenizer, model, vectors.words if vectors else ())


def config_from(config: TaggerConfig, wanted: dict[str, Any], derived: dict[str, Any]) -> TaggerConfig:
    """The config of a model that goes on from another one.

    Args:
        config: The config of the other one.
        wanted: Fields that are to differ; what makes another model of it is refused.
        derived: Fields that follow from the data.
    """
    for field, value in wanted.items():
        if not field.endswith("dropout") and field not in _FREE:
            check_same(field, value, getattr(config, field))
    settings = {name: value for name, value in config.to_dict().items() if name not in _OF_THE_FILES}
    return type(config)(**{**settings, **wanted, **derived})


def vectors_for(run: RunArguments, config: TaggerConfig) -> Vectors:
    """Read the vectors for new words; others than the model has are refused."""
    use = use_of_vectors(config)
    if use is None:
        raise ValueError(
            f"The model in {run.model_name_or_path!r} has no pretrained vectors of words that vectors could be added "
            "to; leave the option out, or train afresh."
        )
    vectors = read_vectors(run.vectors or "", most_frequent=run.most_frequent_vectors)
    size = config.word_dim if use == "tuned" else config.static_dim
    if vectors.dim != size:
        raise DataError(
            f"{run.vectors}: vectors of {vectors.dim} numbers, and the model's have {size}; give those that it was "
            "trained with."
        )
    return vectors


@torch.no_grad()
def place_new_vectors(
    model: TaggerForTokenClassification,
    tokenizer: WordCharTokenizer,
    old_tokenizer: WordCharTokenizer,
    vectors: Vectors,
) -> None:
    """Give the words that are new their vectors; a known word keeps its own, which may have been tuned."""
    found = look_up(tokenizer, vectors.words)
    known = set(known_words(old_tokenizer))
    new = torch.tensor([word not in known for word in known_words(tokenizer)])
    ids, rows = torch.from_numpy(found.ids), torch.from_numpy(found.rows)
    ids, rows = ids[new[ids]], rows[new[ids]]
    values = torch.from_numpy(vectors.matrix[rows.numpy()])
    if model.config.pretrained_words:
        model.features.words.weight[ids] = values.to(model.features.words.weight)
    elif model.features.static is not None:
        model.features.static.fill(ids, values)


def freeze_all_but_head(model: TaggerForTokenClassification) -> None:
    """Train nothing up to the encoder's states; this is not saved with the model, as what its config freezes is."""
    for part in (model.features, model.encoder):
        part.requires_grad_(False)
