"""What a model has learned, carried over into another of other words, characters or labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..models.features import UNKNOWN_ID, rows_of_words, trained_words, words_of_rows
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tokenization_word_char import WordCharTokenizer
from .vocabulary import characters_before, words_before

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
        fill(tensors[name], values, places.get(name, ()))
    if old.config.unknown_word == "vector_and_casing":
        # There, what an unknown word is stands apart from the vectors of words.
        before = words_before(old_tokenizer, new_tokenizer)[: trained_words(new.config)]
        unknown = (before == UNKNOWN_ID).nonzero().flatten()[1:]  # but id 1 itself
        new.features.words.weight[unknown] = old.features.unknown[: old.config.word_dim]


def fill(target: Tensor, values: Tensor, places: Places) -> None:
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
