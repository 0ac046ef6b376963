"""A tokenizer that learns further words and characters, and what each of its ids meant to it before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from ..models.characters import character_ids, code_points
from ..models.configuration_tagger import RESERVED_CHARACTER_TYPES
from ..models.tokenization_word_char import WordCharTokenizer, known_forms, may_be_known


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
