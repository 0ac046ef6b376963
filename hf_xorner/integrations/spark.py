"""Spark: a function for `mapInPandas` that adds a column of entities to data frames of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from ..entities import NumberByLabel
from .rows import entity_rows, field_types, tagger_of_process

if TYPE_CHECKING:
    from pandas import DataFrame

_FIELDS = field_types({str: "string", int: "bigint", float: "double"})
#: The type of the new column, in the words of Spark's schemas.
ENTITIES_TYPE = f"array<struct<{', '.join(f'{name}: {kind}' for name, kind in _FIELDS.items())}>>"


def tag_frames(
    model: str,
    column: str = "text",
    output: str = "entities",
    min_score: NumberByLabel | None = None,
    device: str | None = None,
) -> Callable[[Iterator[DataFrame]], Iterator[DataFrame]]:
    """Return a function for `mapInPandas`; each Python worker loads the model once.

        frame.mapInPandas(tag_frames("my_tagger"), f"text string, entities {ENTITIES_TYPE}")

    Args:
        model: A folder that every worker can read, or a repository on the Hub.
        column: The column of texts, or of lists of words.
        output: The name of the new column: a list of the entities of each row, with the fields of `Entity`.
        min_score: See `Tagger`.
        device: The device of the model.
    """
    return partial(_tag, model=model, column=column, output=output, min_score=min_score, device=device)


def _tag(
    frames: Iterator[DataFrame],
    model: str,
    column: str,
    output: str,
    min_score: NumberByLabel | None,
    device: str | None,
) -> Iterator[DataFrame]:
    tagger = tagger_of_process(model, device)
    for frame in frames:
        values = frame[column].astype(object)
        rows = entity_rows(tagger, values.where(values.notna(), None), min_score)  # pandas has NaN for a missing text
        yield frame.assign(**{output: rows})
