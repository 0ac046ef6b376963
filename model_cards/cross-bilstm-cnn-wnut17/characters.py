"""Characters as code points, types and ids, for whole texts at once."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np

from .configuration_tagger import CHARACTER_TYPE_CODES, RESERVED_CHARACTER_TYPES

CODE_POINTS = 0x110000

#: All letters with case, digits and punctuation lie below; what is above is other (CJK, private use, unassigned).
_TYPED_CODE_POINTS = 0x20000

#: First letters (or whole names) of Unicode general categories, by the type they make.
_TYPES_BY_CATEGORY = {"Lu": "U", "Lt": "U", "Ll": "l", "Nd": "d", "P": "p", "S": "p"}


@lru_cache(maxsize=1)
def character_types() -> np.ndarray:
    """The type of every code point, an index into CHARACTER_TYPE_CODES, by Unicode category."""
    types = np.zeros(CODE_POINTS, dtype=np.uint8)
    categories = map(unicodedata.category, map(chr, range(_TYPED_CODE_POINTS)))
    codes = [_TYPES_BY_CATEGORY.get(name) or _TYPES_BY_CATEGORY.get(name[0], ".") for name in categories]
    types[:_TYPED_CODE_POINTS] = [CHARACTER_TYPE_CODES.index(code) for code in codes]
    return types


@lru_cache(maxsize=16)
def character_ids(characters: str, zero_digits: bool) -> np.ndarray:
    """The id of every code point: known characters by their place, others by their type."""
    by_type = [RESERVED_CHARACTER_TYPES.index(code) for code in CHARACTER_TYPE_CODES]
    by_type[0] = 1
    types = character_types()
    ids = np.array(by_type, dtype=np.int64)[types]
    ids[code_points(characters)] = np.arange(len(characters)) + len(RESERVED_CHARACTER_TYPES)
    if zero_digits and "0" in characters:
        ids[types == CHARACTER_TYPE_CODES.index("d")] = ids[ord("0")]
    return ids


def type_letters(characters: str) -> str:
    """One letter a character id, the reserved ones included, as a config's `char_types` wants it."""
    known = character_types()[code_points(characters)]
    return RESERVED_CHARACTER_TYPES + "".join(CHARACTER_TYPE_CODES[type_] for type_ in known)


def code_points(text: str) -> np.ndarray:
    """The code points of a text, which holds no lone surrogates."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
