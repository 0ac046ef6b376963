"""What training starts from: a tokenizer and a model built for the training data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForTokenClassification

from ..errors import DataError
from ..loading import load
from ..models.configuration_tagger import RESERVED_CHARACTER_TYPES, TaggerConfig
from ..models.features import ComposedVectors, WordFeatures, rows_of_words, trained_words, words_of_rows
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tokenization_word_char import (
    UNKNOWN_ID,
    WordCharTokenizer,
    character_ids,
    code_points,
    known_forms,
    may_be_known,
)
from ..registration import CONFIGS
from ..vectors.distill import Composition, read_composition, read_encoder
from ..vectors.formats import Vectors, read_vectors
from ..vectors.lookup import look_up
from .arguments import HEAD, RunArguments, check_same, use_of_vectors
from .context import context_fields, pieces_of, place_encoder


def extended(
    tokenizer: WordCharTokenizer,
    sentences: Iterable[Sequence[str]],
    min_count: int = 1,
    vector_words: Iterable[str] = (),
) -> WordCharTokenizer:
    """Build a tokenizer of the same policies that knows further words and characters.

    Ids stay in their three parts: words seen more often, words seen once, words that only have a vector. A word comes
    into the first as soon as one corpus shows it more than once, so that the same corpus again changes nothing; what
    only had a vector comes into one of the first two when it is seen. So words may get other ids; characters keep
    theirs.

    Args:
        tokenizer: What is known so far.
        sentences: The words of a corpus.
        min_count: Words seen less often stay as they are: unknown, or with nothing but their vector.
        vector_words: Words that have a pretrained vector.
    """
    policies = tokenizer.init_kwargs
    surfaces = Counter(chain.from_iterable(sentences))
    seen, characters = known_forms(surfaces, policies["casing"], policies["digits"])
    known, once, trained = known_words(tokenizer), policies["first_singleton_id"], policies["trained_vocab_size"]
    more = dict.fromkeys([*known[:once], *(word for word, count in seen.items() if count >= max(min_count, 2))])
    single = [word for word, count in seen.items() if count == 1 >= min_count]
    trained_words = dict.fromkeys([*more, *known[once:trained], *single])
    others = (word for word in chain(known[trained:], vector_words) if may_be_known(word))
    new = "".join(character for character in characters if character not in tokenizer.characters)
    return WordCharTokenizer.from_vocabulary(
        list(dict.fromkeys([*trained_words, *others])),
        tokenizer.characters + new,
        tokenizer.pieces,
        max_word_chars=tokenizer.max_word_chars,
        casing=policies["casing"],
        digits=policies["digits"],
        fallback=policies["fallback"],
        trained_vocab_size=len(trained_words),
        first_singleton_id=len(more),
        max_word_pieces=tokenizer.max_word_pieces,
    )


def known_words(tokenizer: WordCharTokenizer) -> list[str]:
    """The words that a tokenizer knows, in the order of their ids."""
    vocabulary = tokenizer.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def words_before(old: WordCharTokenizer, new: WordCharTokenizer) -> Tensor:
    """The ids (words,) under which an extended tokenizer's words were read before, by any step of the look-up."""
    return torch.tensor(old.convert_tokens_to_ids(known_words(new)))


def characters_before(old: WordCharTokenizer, new: WordCharTokenizer) -> Tensor:
    """The ids (characters,) under which an extended tokenizer's characters were read before."""
    table = character_ids(old.characters, old.init_kwargs["digits"] == "zero")
    reserved = np.arange(len(RESERVED_CHARACTER_TYPES))
    return torch.from_numpy(np.concatenate([reserved, table[code_points(new.characters)]]))


#: Where a tensor's entries come from: of each dimension the old places (n,), −1 for what is new; None for as it is.
Places = tuple[Tensor | None, ...]


@torch.no_grad()
def carry_over(
    old: TaggerForTokenClassification,
    new: TaggerForTokenClassification,
    old_tokenizer: WordCharTokenizer,
    new_tokenizer: WordCharTokenizer,
) -> None:
    """Give a model all that another of its architecture has learned.

    Words and characters that are new begin as what they were read as before: mostly as unknown ones, of their type. So
    a text says the same to both models, until they are trained. Tags, types and actions are found by their names; those
    that are new keep what they began with.

    Args:
        old: The model that has learned.
        new: The other one.
        old_tokenizer: The tokenizer of the former.
        new_tokenizer: That of the latter, which knows at least the same words and characters.
    """
    places = {**label_places(old, new), **vocabulary_places(old, new, old_tokenizer, new_tokenizer)}
    tensors = new.state_dict()
    for name, values in old.state_dict().items():
        fill_rows(tensors[name], values, places.get(name, ()))
    if old.config.unknown_word == "vector_and_casing":
        # There, what an unknown word is stands apart from the vectors of words.
        before = words_before(old_tokenizer, new_tokenizer)[: trained_words(new.config)]
        unknown = (before == UNKNOWN_ID).nonzero().flatten()[1:]  # but id 1 itself
        new.features.words.weight[unknown] = old.features.unknown[: old.config.word_dim]


def fill_rows(target: Tensor, values: Tensor, places: Places) -> None:
    """Copy values into a tensor of as many dimensions, entries coming from their old places."""
    into = []
    for dimension, size in enumerate(values.shape):
        old = places[dimension] if dimension < len(places) else None
        if old is None:
            if size != target.shape[dimension]:
                raise RuntimeError(f"{tuple(values.shape)} does not fit {tuple(target.shape)} in dimension {dimension}")
            old = torch.arange(size)
        kept = (old >= 0).nonzero().flatten()
        values = values.index_select(dimension, old[kept])
        into.append(kept.view(-1, *(1,) * (target.dim() - dimension - 1)))
    target[tuple(into)] = values.to(target.dtype)


def label_places(old: TaggerForTokenClassification, new: TaggerForTokenClassification) -> dict[str, Places]:
    """Where all that depends on the labels comes from, found by name."""
    axes = old.label_axes()
    return {
        name: tuple(
            None if entries is None else _by_name(before or [], entries)
            for before, entries in zip(axes[name], names, strict=True)
        )
        for name, names in new.label_axes().items()
    }


def _by_name(old: list[Any], new: list[Any]) -> Tensor:
    place = {name: index for index, name in enumerate(old)}
    return torch.tensor([place.get(name, -1) for name in new], dtype=torch.int64)


def vocabulary_places(
    old: TaggerForTokenClassification,
    new: TaggerForTokenClassification,
    old_tokenizer: WordCharTokenizer,
    new_tokenizer: WordCharTokenizer,
) -> dict[str, Places]:
    """Where all that depends on words and characters comes from: what each was read as before."""
    words = words_before(old_tokenizer, new_tokenizer)
    characters = characters_before(old_tokenizer, new_tokenizer)
    with_own = rows_of_words(words[words_of_rows(new.config)], old.config)
    return {
        "features.words.weight": (with_own, None),
        "features.static.weight": (words, None),
        "features.static.has_vector": (words,),
        "features.chars.embedding.weight": (characters, None),
        "features.char_types": (characters,),
    }


def vector_fields(use: str, dim: int) -> dict[str, Any]:
    """The fields of a config that a use of vectors sets.

    Args:
        use: "frozen": the only vectors of words. "tuned": what the trained vectors start from. "beside": frozen, beside
            trained ones.
        dim: Their dimension.
    """
    if use == "tuned":
        return {"word_dim": dim, "pretrained_words": True}
    return {"static_dim": dim, "word_dim": 0} if use == "frozen" else {"static_dim": dim}


@torch.no_grad()
def place_vectors(features: WordFeatures, tokenizer: WordCharTokenizer, vectors: Vectors, use: str) -> None:
    """Give every word of a tokenizer's vocabulary its vector, where there is one; the others keep what they have.

    Args:
        features: The word features of a model that was built for the tokenizer.
        tokenizer: The tokenizer.
        vectors: The vectors.
        use: See `vector_fields`.
    """
    found = look_up(tokenizer, vectors.words)
    ids, rows = torch.from_numpy(found.ids), torch.from_numpy(vectors.matrix[found.rows])
    if use == "tuned":
        features.words.weight[ids] = rows.to(features.words.weight)
    elif features.static is not None:
        features.static.fill(ids, rows)


def composition_fields(composition: Composition) -> dict[str, Any]:
    """The fields of a config that follow from vectors of pieces, which stand in place of trained ones.

    Args:
        composition: The vectors.
    """
    return {
        "composed_dim": composition.dim,
        "composed_half": composition.vectors.dtype == np.float16,
        "word_dim": 0,
    }


@torch.no_grad()
def place_composition(composed: ComposedVectors, composition: Composition) -> None:
    """Give a model its vectors of pieces.

    Args:
        composed: The part of the model that holds them.
        composition: The vectors.
    """
    composed.fill(*map(torch.from_numpy, (composition.vectors, composition.mix, composition.bias)))


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
