"""Columns of entities, for engines that run a function on batches of rows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, get_type_hints

from ..entities import Entities, Entity, NumberByLabel
from ..tagger import Tagger


def entity_rows(tagger: Tagger, values: Iterable[Any], min_score: NumberByLabel | None) -> list[Entities]:
    """Return the entities of each value of a column.

    Args:
        tagger: The tagger.
        values: Texts, or the words of each; one that is missing (None) has no entities.
        min_score: See `Tagger`.
    """
    items = ("" if value is None else value if isinstance(value, str) else list(value) for value in values)
    return list(tagger.stream(items, min_score=min_score))


def field_types(names: dict[type, Any]) -> dict[str, Any]:
    """Return the type of each field of `Entity`, given an engine's names for `str`, `int` and `float`."""
    return {field: names[kind] for field, kind in get_type_hints(Entity).items()}


@lru_cache(maxsize=1)
def tagger_of_process(model: str, device: str | None) -> Tagger:
    """Return a tagger that is loaded once in a process, whatever number of batches the process is given."""
    return Tagger.from_pretrained(model, device)
