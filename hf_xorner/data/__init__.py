"""Corpora: labelled files, Hub data sets and the generated XOR corpus as ``datasets.DatasetDict``."""

from hf_xorner.data.corpora import load_corpus
from hf_xorner.data.errors import DataError
from hf_xorner.data.xor import xor_corpus

__all__ = ["DataError", "load_corpus", "xor_corpus"]
