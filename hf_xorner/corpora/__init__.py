"""Load, write and count corpora as ``datasets.DatasetDict``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..errors import DataError as DataError
    from .load import load_corpus as load_corpus
    from .predictions import Predictions as Predictions
    from .predictions import read_predictions as read_predictions
    from .predictions import write_predictions as write_predictions
    from .source import ReadingOptions as ReadingOptions
    from .statistics import corpus_statistics as corpus_statistics
    from .statistics import statistics_table as statistics_table
    from .write import write_corpus as write_corpus
    from .xor import xor_corpus as xor_corpus


#: The names by module, which is imported when one of them is first used.
_LAZY = {
    "..errors": ("DataError",),
    ".load": ("load_corpus",),
    ".predictions": ("Predictions", "read_predictions", "write_predictions"),
    ".source": ("ReadingOptions",),
    ".statistics": ("corpus_statistics", "statistics_table"),
    ".write": ("write_corpus",),
    ".xor": ("xor_corpus",),
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: tagging needs no `datasets`, which takes two seconds to import."""
    for module, names in _LAZY.items():
        if name in names:
            return getattr(import_module(module, __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
