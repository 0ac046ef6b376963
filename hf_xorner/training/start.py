"""What training starts from: a tokenizer and a model built for the training data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from transformers import AutoModelForTokenClassification

from ..data.composition import read_composition
from ..data.encoders import read_encoder
from ..data.vector_files import read_vectors
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tokenization_word_char import WordCharTokenizer
from ..registration import CONFIGS
from .arguments import RunArguments
from .context import context_fields, pieces_of, place_encoder
from .vectors import composition_fields, place_composition, place_vectors, vector_fields


class Start(NamedTuple):
    """A model that is ready to be trained, its tokenizer, and the words that have a pretrained vector, if any do."""

    tokenizer: WordCharTokenizer
    model: TaggerForTokenClassification
    vector_words: Collection[str]


def build_afresh(
    run: RunArguments, sentences: Iterable[Sequence[str]], labels: list[str], config_fields: dict[str, Any]
) -> Start:
    """Build tokenizer and model from nothing but the training data, and what is pretrained.

    Args:
        run: What is to be built.
        sentences: The words of the training data.
        labels: Its labels.
        config_fields: Fields of the model's config that differ from their defaults.
    """
    config_class = CONFIGS[run.model_type]
    encoder = read_encoder(run.context) if run.context else None
    composition = read_composition(run.composed) if run.composed else None
    vectors = read_vectors(run.vectors, most_frequent=run.most_frequent_vectors) if run.vectors else None
    tokenizer = WordCharTokenizer.from_corpus(
        sentences,
        min_count=run.min_count,
        casing=run.casing,
        digits=run.digits,
        max_word_chars=config_fields.get("max_word_chars", config_class.max_word_chars),
        fallback=run.fallback,
        vector_words=vectors.words if vectors else (),
        pieces=pieces_of(encoder, composition),
        max_word_pieces=run.max_word_pieces,
    )
    if composition:
        config_fields = {**composition_fields(composition), **config_fields}
    if encoder:
        config_fields = {**context_fields(encoder), **config_fields}
    if vectors:
        config_fields = {**config_fields, **vector_fields(run.vectors_as, vectors.dim)}
    config = config_class(**{**config_fields, **tokenizer.model_fields(), "id2label": dict(enumerate(labels))})
    model = AutoModelForTokenClassification.from_config(config)
    if composition:
        place_composition(model.features.composed, composition)
    if encoder:
        place_encoder(model.features.context, encoder.model)
    if vectors:
        place_vectors(model.features, tokenizer, vectors, run.vectors_as)
    return Start(tokenizer, model, vectors.words if vectors else ())
