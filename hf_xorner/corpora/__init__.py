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


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: tagging needs no `datasets`, which takes two seconds to import."""
    for module in ("..errors", ".source", ".load", ".predictions", ".statistics", ".write", ".xor"):
        if not name.startswith("_") and hasattr(imported := import_module(module, __name__), name):
            return getattr(imported, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
