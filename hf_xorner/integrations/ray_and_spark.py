"""Ray Data and Spark: add a column of entities to batches of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_type_hints

import pyarrow as pa

from ..entities import Entities, Entity, NumberByLabel
from ..tagger import Tagger

if TYPE_CHECKING:
    from pandas import DataFrame


def entity_rows(tagger: Tagger, values: Iterable[Any], min_score: NumberByLabel | None) -> list[Entities]:
    """Return the entities of each value of a column.

    Args:
        tagger: The tagger.
        values: Texts or lists of words; a missing value (None) has no entities.
        min_score: See `Tagger`.
    """
    items = ("" if value is None else value if isinstance(value, str) else list(value) for value in values)
    return list(tagger.pipe(items, min_score=min_score))


def field_types(names: dict[type, Any]) -> dict[str, Any]:
    """Return the type of each field of `Entity`, from an engine's names of `str`, `int` and `float`."""
    return {field: names[kind] for field, kind in get_type_hints(Entity).items()}


class TagTables:
    """A callable for `map_batches` that adds a column of entities; each actor loads the model once.

        dataset.map_batches(
            TagTables,
            fn_constructor_kwargs={"model": "my_tagger"},
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=2),
        )

    Args:
        model: A folder that every node can read, or a repository on the Hub.
        column: The column of texts, or of lists of words.
        output: The name of the new column: a list of the entities of each row, with the fields of `Entity`.
        min_score: See `Tagger`.
        device: The device of the model, such as "cuda" for actors with `num_gpus=1`.
    """

    def __init__(
        self,
        model: str,
        column: str = "text",
        output: str = "entities",
        min_score: NumberByLabel | None = None,
        device: str | None = None,
    ) -> None:
        self.tagger = Tagger.from_pretrained(model, device, min_score=min_score)
        self.column, self.output = column, output
        self.type = pa.list_(pa.struct(field_types({str: pa.string(), int: pa.int64(), float: pa.float64()})))

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return a table with the new column."""
        rows = entity_rows(self.tagger, table[self.column].to_pylist(), None)
        kept = table.drop_columns(self.output) if self.output in table.column_names else table
        return kept.append_column(self.output, pa.array(rows, self.type))


_FIELDS = field_types({str: "string", int: "bigint", float: "double"})
#: The type of the new column in Spark's schema language.
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

    def tag(frames: Iterator[DataFrame]) -> Iterator[DataFrame]:
        tagger = _tagger_of_process(model, device)
        for frame in frames:
            values = frame[column].astype(object)
            values = values.where(values.notna(), None)  # pandas has NaN for a missing text
            yield frame.assign(**{output: entity_rows(tagger, values, min_score)})

    return tag


@lru_cache(maxsize=1)
def _tagger_of_process(model: str, device: str | None) -> Tagger:
    """Return a tagger that is loaded once per process, for all its batches."""
    return Tagger.from_pretrained(model, device)
