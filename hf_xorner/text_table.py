"""Tables of plain text, for the command line."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any


def text_table(rows: Iterable[Sequence[Any]], names: int = 1) -> str:
    """Return a table with columns as wide as their content.

    Args:
        rows: The cells of each row; short rows are filled up. Floats are shown with two digits, and None as "-".
        names: The number of columns that are aligned to the left, at the beginning; the others are numbers.
    """
    shown = [[_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip_longest(*shown, fillvalue="")]
    lines = (
        "  ".join(f"{cell:{'<' if column < names else '>'}{widths[column]}}" for column, cell in enumerate(row))
        for row in shown
    )
    return "\n".join(line.rstrip() for line in lines)


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)
