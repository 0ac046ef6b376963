"""Load, write and count corpora as ``datasets.DatasetDict``."""

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
