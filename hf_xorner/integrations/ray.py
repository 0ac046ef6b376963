"""Ray Data: an actor class that adds a column of entities to batches of texts."""

from __future__ import annotations

import pyarrow as pa

from ..entities import NumberByLabel
from ..tagger import Tagger
from .rows import entity_rows, field_types


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
        return table.append_column(self.output, pa.array(rows, self.type))
