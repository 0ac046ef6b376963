"""Build a tokenizer and model for the training data, new ones or from an existing model; quantize a trained model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm
from transformers import AutoModelForTokenClassification

from ..errors import DataError
from ..loading import load_model
from ..models.configuration_tagger import TaggerConfig
from ..models.features import WordFeatures, rows_of_words, trained_words
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tokenization_word_char import WordCharTokenizer, known_forms, may_be_known
from ..models.word_ids import RESERVED_CHARACTER_TYPES, WordPieces, character_ids, code_points
from ..registration import CONFIGS
from ..vectors import distill
from ..vectors.distill import AUTO, NONE, Composition, PretrainedEncoder
from ..vectors.formats import Vectors, read_vectors
from ..vectors.lookup import look_up
from .arguments import HEAD, RunArguments, check_same, settings_of, use_of_vectors


def extended(
    tokenizer: WordCharTokenizer,
    sentences: Iterable[Sequence[str]],
    min_count: int = 1,
    vector_words: Iterable[str] = (),
) -> WordCharTokenizer:
    """Build a tokenizer with the same policies and additional words and characters.

    The ids keep their three ranges: words seen more than once, words seen once, words that only have a vector. A word
    moves to the first range if one corpus contains it more than once (reading the same corpus again changes nothing),
    and from the third range to another if a corpus contains it. So words may get other ids; characters keep theirs.

    Args:
        tokenizer: The existing tokenizer.
        sentences: The words of a corpus.
        min_count: Words seen less often are not added.
        vector_words: Words that have a pretrained vector.
    """
    policies = tokenizer.init_kwargs
    surfaces = Counter(chain.from_iterable(sentences))
    seen, characters = known_forms(surfaces, policies["casing"], policies["digits"])
    known, once, trained = known_words(tokenizer), policies["first_singleton_id"], policies["trained_vocab_size"]
    more = dict.fromkeys([*known[:once], *(word for word, count in seen.items() if count >= max(min_count, 2))])
    single = [word for word, count in seen.items() if count == 1 >= min_count]
    trained_words = dict.fromkeys([*more, *known[once:trained], *single])
    rest = (word for word in chain(known[trained:], vector_words) if may_be_known(word, policies["casing"]))
    new = "".join(character for character in characters if character not in tokenizer.characters)
    return WordCharTokenizer.from_vocabulary(
        list(dict.fromkeys([*trained_words, *rest])),
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
    """Return the vocabulary of a tokenizer in the order of its ids."""
    vocabulary = tokenizer.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _characters_before(old: WordCharTokenizer, new: WordCharTokenizer) -> Tensor:
    """Return the old ids (characters,) of an extended tokenizer's characters."""
    table = character_ids(old.characters, old.init_kwargs["digits"] == "zero")
    reserved = np.arange(len(RESERVED_CHARACTER_TYPES))
    return torch.from_numpy(np.concatenate([reserved, table[code_points(new.characters)]]))


#: For each dimension of a tensor, the old indices (n,) of its entries, −1 for new entries; None if all are unchanged.
OldIndices = tuple[Tensor | None, ...]


@torch.no_grad()
def carry_over(
    old: TaggerForTokenClassification,
    new: TaggerForTokenClassification,
    old_tokenizer: WordCharTokenizer,
    new_tokenizer: WordCharTokenizer,
) -> None:
    """Copy the weights of a trained model to an extended one of the same architecture.

    New words and characters start from the vector they mapped to, usually that of unknown words, so predictions do not
    change before training. Tags, types and actions are matched by name; new ones keep their initial weights.

    Args:
        old: The trained model.
        new: The extended model.
        old_tokenizer: The tokenizer of the trained model.
        new_tokenizer: Its extension.
    """
    indices = {**_label_indices(old, new), **_vocabulary_indices(old, new, old_tokenizer, new_tokenizer)}
    tensors = new.state_dict()
    for name, values in old.state_dict().items():
        fill_rows(tensors[name], values, indices.get(name, ()))


def fill_rows(target: Tensor, values: Tensor, indices: OldIndices) -> None:
    """Copy values to a tensor of the same number of dimensions, each entry from its old index."""
    into = []
    for dimension, size in enumerate(values.shape):
        old = indices[dimension] if dimension < len(indices) else None
        if old is None:
            old = torch.arange(size)
        carried = (old >= 0).nonzero().flatten()
        values = values.index_select(dimension, old[carried])
        into.append(carried.view(-1, *(1,) * (target.dim() - dimension - 1)))
    target[tuple(into)] = values.to(target.dtype)


def _label_indices(old: TaggerForTokenClassification, new: TaggerForTokenClassification) -> dict[str, OldIndices]:
    """Return the `OldIndices` of all tensors that depend on the labels, which are matched by name."""
    axes = old.label_axes()
    return {
        name: tuple(
            None if entries is None else _by_name(before or [], entries)
            for before, entries in zip(axes[name], names, strict=True)
        )
        for name, names in new.label_axes().items()
    }


def _by_name(old: list[Any], new: list[Any]) -> Tensor:
    rows = {usual_name(name): row for row, name in enumerate(old)} | {name: row for row, name in enumerate(old)}
    return torch.tensor([rows.get(name, rows.get(usual_name(name), -1)) for name in new], dtype=torch.int64)


#: Other names of three types, without regard to case.
_USUAL_TYPES = dict.fromkeys(("per", "pers", "person"), "PER")
_USUAL_TYPES |= dict.fromkeys(("org", "organization", "organisation", "corporation"), "ORG")
_USUAL_TYPES |= dict.fromkeys(("loc", "location", "gpe"), "LOC")


def usual_name(name: Any) -> Any:
    """Return a tag or an action, or a pair of them, with its type as PER, ORG or LOC if it is another name of these."""
    if isinstance(name, tuple):
        return tuple(map(usual_name, name))
    return re.sub(r"[A-Za-z]+(?=\)?$)", lambda kind: _USUAL_TYPES.get(kind[0].lower(), kind[0]), name)


def _vocabulary_indices(
    old: TaggerForTokenClassification,
    new: TaggerForTokenClassification,
    old_tokenizer: WordCharTokenizer,
    new_tokenizer: WordCharTokenizer,
) -> dict[str, OldIndices]:
    """Return the `OldIndices` of all tensors that depend on words and characters."""
    # The old ids of the words, looked up with all fallbacks.
    words = torch.tensor(old_tokenizer.convert_tokens_to_ids(known_words(new_tokenizer)))
    characters = _characters_before(old_tokenizer, new_tokenizer)
    with_own = rows_of_words(words[: trained_words(new.config)], old.config)
    return {
        "features.words.weight": (with_own, None),
        "features.static.weight": (words, None),
        "features.static.scale": (words, None),
        "features.static.has_vector": (words,),
        "features.chars.embedding.weight": (characters, None),
        "features.char_types": (characters,),
    }


def vector_fields(use: str, dim: int) -> dict[str, Any]:
    """Return the fields of a config for pretrained word vectors.

    Args:
        use: See `RunArguments.vectors_as`.
        dim: The dimension of the vectors.
    """
    if use == "tuned":
        return {"word_dim": dim, "pretrained_words": True}
    return {"static_dim": dim, "word_dim": 0} if use == "frozen" else {"static_dim": dim}


@torch.no_grad()
def place_vectors(
    features: WordFeatures, tokenizer: WordCharTokenizer, vectors: Vectors, use: str, known: Collection[str] = ()
) -> None:
    """Copy pretrained vectors into a model, for all words of its vocabulary that have one.

    Args:
        features: The word features of a model for the tokenizer.
        tokenizer: The tokenizer.
        vectors: The vectors.
        use: See `RunArguments.vectors_as`.
        known: Words that keep their vector, which may have been trained.
    """
    matches = look_up(tokenizer, vectors.words)
    known = set(known)
    found, rows = matches[:, np.array([word not in known for word in known_words(tokenizer)])[matches[0]]]
    ids, values = torch.from_numpy(found), torch.from_numpy(vectors.matrix[rows])
    if use == "tuned":
        features.words.weight[ids] = values.to(features.words.weight)
    elif features.static is not None:
        features.static.fill(ids, values)


def composition_fields(composition: Composition) -> dict[str, Any]:
    """Return the fields of a config for vectors of word pieces, which replace trained word vectors."""
    vectors = composition.vectors
    return {"composed_dim": vectors.shape[1], "composed_bits": composition.bits or 8 * vectors.itemsize, "word_dim": 0}


def pieces_of(encoder: PretrainedEncoder | None, composition: Composition | None) -> WordPieces | None:
    """Return the tokenizer of word pieces for an encoder, composed vectors, or both.

    Raises:
        DataError: If the two cut words into different pieces.
    """
    if encoder and composition and encoder.pieces.to_str() != composition.pieces.to_str():
        raise DataError("context and composed cut words into different pieces; distil the vectors from that encoder.")
    return encoder.pieces if encoder else composition.pieces if composition else None


class BuiltModel(NamedTuple):
    """A model before training, its tokenizer, and the words that have a pretrained vector."""

    tokenizer: WordCharTokenizer
    model: TaggerForTokenClassification
    vector_words: Collection[str]


def build_new(
    run: RunArguments, sentences: Iterable[Sequence[str]], labels: list[str], config_fields: dict[str, Any]
) -> BuiltModel:
    """Build a new tokenizer and model from the training data and pretrained vectors or encoders.

    Args:
        run: The arguments of the run.
        sentences: The words of the training data.
        labels: The labels of the training data.
        config_fields: Fields of the model's config that differ from their defaults.
    """
    config_class = CONFIGS[run.model_type]
    encoder = distill.read_encoder(run.context) if run.context else None
    composition, vectors = None, None
    if run.vectors == AUTO:
        composition = distill.packaged_composition()
    elif run.composed_from:
        words = list(dict.fromkeys(chain.from_iterable(sentences)))
        composition = distill.compose_cached(
            run.composed_from, words, partial(tqdm, desc="distilling vectors", disable=None)
        )
    elif run.vectors and run.vectors != NONE:
        vectors = read_vectors(run.vectors, most_frequent=run.most_frequent_vectors)
    if run.composed:
        composition = distill.read_composition(run.composed)
    names = ("min_count", "casing", "digits", "fallback", "max_word_pieces")
    tokenizer = WordCharTokenizer.from_corpus(
        sentences,
        max_word_chars=config_fields.get("max_word_chars", config_class.max_word_chars),
        vector_words=vectors.words if vectors else (),
        pieces=pieces_of(encoder, composition),
        **{name: getattr(run, name) for name in names},
    )
    settings = {
        **(composition_fields(composition) if composition else {}),
        **(encoder.context_fields() if encoder else {}),
        **config_fields,
        **(vector_fields(run.vectors_as, vectors.dim) if vectors else {}),
        **tokenizer.model_fields(),
        "id2label": dict(enumerate(labels)),
    }
    model = AutoModelForTokenClassification.from_config(config_class(**settings))
    if composition:
        tables = (composition.vectors, composition.mix, composition.bias)
        model.features.composed.fill(*map(torch.from_numpy, tables))
    if encoder:
        # Without the pooler.
        missing, _ = model.features.context.encoder.load_state_dict(encoder.model.state_dict(), strict=False)
        assert not missing, missing
    if vectors:
        place_vectors(model.features, tokenizer, vectors, run.vectors_as)
    return BuiltModel(tokenizer, model, vectors.words if vectors else ())


#: Fields that may differ from the existing model's, as they change neither its weights nor its features; also …dropout.
_FREE = {
    *("loss_reduction", "loss_each_iteration", "dropout_masks", "initializer", "initializer_range"),
    *("attention_initializer", "context_frozen", "attention_window", "attention_overlap"),
    *("malformed_spans", "constrain_transitions"),
}


def continue_from(
    run: RunArguments, sentences: Iterable[Sequence[str]], labels: list[str], config_fields: dict[str, Any]
) -> BuiltModel:
    """Load the model that a run continues from, and extend it for the training data.

    The words and characters of the data are added, unless only the head is trained. New words with a pretrained vector
    are always added. The labels become those of the data; with `keep_labels`, the model's other labels are kept.

    Args:
        run: The arguments of the run, after `take_options_from_model`.
        sentences: The words of the training data.
        labels: The labels of the training data.
        config_fields: Fields of the model's config to change.
    """
    assert run.origin is not None, "call take_options_from_model first"
    old_config, old_tokenizer = run.origin
    old = load_model(str(run.model_name_or_path), old_config, old_tokenizer, dtype=torch.float32)
    vectors = _vectors_for(run, old_config) if run.vectors else None
    vector_words = vectors.words if vectors else ()
    head_only = run.train_only == HEAD
    tokenizer = extended(old_tokenizer, () if head_only else sentences, run.min_count, vector_words)
    if run.keep_labels:
        labels = [*labels, *(label for label in old_config.labels if label not in labels)]
    for field, value in config_fields.items():
        if not field.endswith("dropout") and field not in _FREE:
            check_same(field, value, getattr(old_config, field))
    settings = {name: value for name, value in settings_of(old_config).items() if name != "label2id"}
    derived = {**tokenizer.model_fields(), "id2label": dict(enumerate(labels)), "score_temperature": 1.0}
    config = type(old_config)(**{**settings, **config_fields, **derived})
    model = AutoModelForTokenClassification.from_config(config, dtype=torch.float32)
    carry_over(old, model, old_tokenizer, tokenizer)
    if vectors:
        place_vectors(model.features, tokenizer, vectors, run.vectors_as, known_words(old_tokenizer))
    if head_only:
        # Not saved with the model, unlike parts that the config freezes.
        for part in (model.features, model.encoder):
            part.requires_grad_(False)
    return BuiltModel(tokenizer, model, vector_words)


def _vectors_for(run: RunArguments, config: TaggerConfig) -> Vectors:
    """Read vectors for new words; their dimension must be that of the model's vectors."""
    if use_of_vectors(config) is None:
        raise ValueError(
            f"The model in {run.model_name_or_path!r} was trained without pretrained word vectors, so none can be "
            "added; leave vectors out, or train a new model."
        )
    vectors = read_vectors(run.vectors or "", most_frequent=run.most_frequent_vectors)
    size = config.word_dim if use_of_vectors(config) == "tuned" else config.static_dim
    if vectors.dim != size:
        raise DataError(
            f"{run.vectors}: the vectors have {vectors.dim} dimensions and the model's have {size}; use the vectors "
            "that the model was trained with."
        )
    return vectors


# --- Quantization -----------------------------------------------------------------------------------------------------

#: Bits per number, by the values of the option `quantize`.
BITS = {"int8": 8, "int4": 4}


@torch.no_grad()
def quantized(model: TaggerForTokenClassification, bits: int) -> TaggerForTokenClassification:
    """Return a copy of a model with frozen vectors of words and pieces in few bits, with a scale for each vector.

    The trained and the frozen vector of a word become one frozen vector. Other weights are rounded to 16 bits, in
    which `save_pretrained` saves them.

    Args:
        model: The trained model.
        bits: Bits per number, 8 or 4.
    """
    config, features = model.config, model.features
    table = _word_vectors(features)
    settings = {
        **settings_of(config),
        "word_dim": 0,
        "static_dim": table.shape[1],
        "static_bits": bits,
        "pretrained_words": False,
        "composed_bits": bits,
    }
    small = AutoModelForTokenClassification.from_config(type(config)(**settings), dtype=torch.float32)
    replaced = {f"features.{part}" for part in ("words.weight", "static.weight", "static.scale", "static.has_vector")}
    replaced |= {"features.static.unknown", "features.composed.weight", "features.composed.scale"}
    unchanged = {name: values for name, values in model.state_dict().items() if name not in replaced}
    missing, unexpected = small.load_state_dict(unchanged, strict=False)
    assert set(missing) <= replaced and not unexpected, (missing, unexpected)
    if small.features.static is not None:
        small.features.static.fill(torch.arange(len(table)), table)
        small.features.static.unknown.zero_()  # not read: every word has a vector
    if features.composed is not None:
        pieces = torch.arange(len(features.composed.weight), device=features.composed.weight.device)
        small.features.composed.store(slice(None), features.composed.read(pieces, torch.float32))
    for values in small.state_dict().values():
        if values.dtype == torch.float32:
            values.copy_(values.half())
    return small.to(model.device).eval()


def _word_vectors(features: WordFeatures) -> torch.Tensor:
    """Return [trained vector ; frozen vector] of each word id, (words, d)."""
    ids = torch.arange(features.config.vocab_size, device=features.words.weight.device)
    vectors = [features.words.weight[rows_of_words(ids, features.config)]]
    if features.static is not None:
        vectors.append(features.static(ids))
    return torch.cat(vectors, -1).float().cpu()
