"""Load, write and count corpora as ``datasets.DatasetDict``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..errors import DataError
    from .load import load_corpus
    from .predictions import Predictions, read_predictions, write_predictions
    from .source import Reading
    from .statistics import corpus_statistics, statistics_table
    from .write import write_corpus
    from .xor import xor_corpus

__all__ = [
    "DataError",
    "Predictions",
    "Reading",
    "corpus_statistics",
    "load_corpus",
    "read_predictions",
    "statistics_table",
    "write_corpus",
    "write_predictions",
    "xor_corpus",
]

_MODULES = ("..errors", ".source", ".load", ".predictions", ".statistics", ".write", ".xor")


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, as tagging does not need all modules."""
    modules = (import_module(module, __name__) for module in _MODULES if name in __all__)
    for module in modules:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
