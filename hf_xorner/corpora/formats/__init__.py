"""Read one kind of file each; `FORMATS` is the table of all of them."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...errors import DataError
from ...files import BYTE_ORDER_MARK, suffix_of
from ..source import ANNOTATION_SUFFIX, AUTO, Input, Sentence
from .columns import read_columns
from .conll2012 import is_conll2012, read_conll2012
from .conllu import is_conllu, read_conllu
from .csv_rows import is_csv, read_csv
from .json_lines import JSON_SUFFIXES, is_json, is_json_of_spans, read_json_lines
from .spacy import read_spacy
from .spans import read_brat, read_spans
from .tables import read_table


class Format(NamedTuple):
    """A format of files.

    Attributes:
        name: Its name in options.
        suffixes: The suffixes of its files.
        matches: Returns True if a source has this format and none of those before it in `FORMATS`.
        read: Yields the sentences of a source.
    """

    name: str
    suffixes: frozenset[str]
    matches: Callable[[Input], bool]
    read: Callable[[Input], Iterator[Sentence]]


def _with_suffix(*suffixes: str) -> tuple[frozenset[str], Callable[[Input], bool]]:
    return frozenset(suffixes), lambda source: suffix_of(source.path) in suffixes


# The beginnings of texts in formats that are not supported; columns may have a word such as ``<s>``.
_UNSUPPORTED = {
    "XML": re.compile(r"<\?xml|<!DOCTYPE|[^\t\n]*<([A-Za-z]\w*)[^<>\t]*>[^\t\n]*</\1>(?![ \t]+(O|[A-Z]-\S+)\s)"),
    "Rasa": re.compile(r'\{\s*"rasa_nlu_data"|(version: \S+\s+)?nlu:\s'),
    "Snips": re.compile(r'\{\s*"\w+"\s*:\s*\[\s*\{\s*"data"\s*:\s*\['),
    "BioC": re.compile(r'\{[^\[{]*"documents"\s*:'),
    "PubTator": re.compile(r"[^|\s]+\|[ta]\|"),
    "WebAnno TSV": re.compile(r"#FORMAT=WebAnno"),
    "seq.in": re.compile(r"(?!)"),  # recognised by its name
}


def _is_supported(source: Input) -> bool:
    """Raise DataError for a format that is known but not supported; no source matches."""
    text = source.sample.lstrip(f" \t\r\n{BYTE_ORDER_MARK}")
    for name, beginning in _UNSUPPORTED.items():
        if beginning.match(text) or source.path.name == name:
            raise DataError(f"{source.path}: the format {name} is not supported; convert it to CoNLL columns or JSON.")
    return False


_COLUMN_SUFFIXES = (
    ".txt .conll .conll03 .tsv .tab .col .data .ner .annotated .crf "
    ".bio .bio2 .iob .iob1 .iob2 .bioes .bmes .bmeso .bilou"
)
#: All formats in the order in which they are tried; the last one is used if none matches.
FORMATS = (
    Format("parquet", *_with_suffix(".parquet"), read_table),
    Format("arrow", *_with_suffix(".arrow"), read_table),
    Format("spacy", *_with_suffix(".spacy"), read_spacy),
    Format("brat", *_with_suffix(ANNOTATION_SUFFIX), read_brat),
    Format("conll2012", frozenset(), is_conll2012, read_conll2012),
    Format("not supported", frozenset(), _is_supported, read_columns),
    Format("spans", frozenset(), is_json_of_spans, read_spans),
    Format("jsonl", JSON_SUFFIXES, is_json, read_json_lines),
    Format("csv", frozenset({".csv"}), is_csv, read_csv),
    Format("conllu", frozenset({".conllu", ".conllup"}), is_conllu, read_conllu),
    Format("conll", frozenset(_COLUMN_SUFFIXES.split()), lambda source: True, read_columns),
)


def recognise(source: Input) -> Format:
    """Return the format of a source: the one that its options name, or the first one that matches.

    Raises:
        DataError: If the format is known but not supported.
    """
    name = source.reading.format
    return next(format for format in FORMATS if (name == AUTO and format.matches(source)) or format.name == name)
