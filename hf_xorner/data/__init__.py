"""Corpora: labelled files, Hub data sets and the generated XOR corpus as ``datasets.DatasetDict``."""

from .corpora import load_corpus
from .errors import DataError
from .reading import Reading
from .xor import xor_corpus

__all__ = ["DataError", "Reading", "load_corpus", "xor_corpus"]
