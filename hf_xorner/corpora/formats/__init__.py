"""Read one kind of file each; `FORMATS` is the table of all of them."""

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

from ...errors import DataError
from ...files import BYTE_ORDER_MARK, suffix_of
from ..source import ANNOTATION_SUFFIX, AUTO, TEXT_SUFFIX, Input, Record, Sentence
from .columns import is_columns, read_columns
from .conll2012 import is_conll2012, read_conll2012
from .conllu import is_conllu, read_conllu
from .csv_rows import is_csv, is_table, read_csv, rows_to_tag
from .json_lines import JSON_SUFFIXES, TEXT_KEY, is_json, record_of, records_to_tag
from .spacy import read_spacy
from .spans import read_brat, read_json

#: The name of the formats that are refused.
NOT_SUPPORTED = "not supported"


class Format(NamedTuple):
    """A format of files.

    Attributes:
        name: Its name in options.
        suffixes: The suffixes of its files.
        matches: Returns True if a source has this format and none of those before it in `FORMATS`.
        read: Yields the sentences of a source; None for texts without labels.
        records: Yields the records to tag of a source whose records have fields; by default, those are its sentences.
    """

    name: str
    suffixes: frozenset[str]
    matches: Callable[[Input], bool]
    read: Callable[[Input], Iterator[Sentence]] | None
    records: Callable[[Input], Iterator[Record]] | None = None


def _lazy(name: str) -> Callable[[Input], Iterator[Any]]:
    """Return a function of `tables`, which imports datasets, and is imported when it is called."""
    return lambda source: getattr(import_module(f"{__name__}.arrow"), name)(source)


def _with_suffix(*suffixes: str) -> tuple[frozenset[str], Callable[[Input], bool]]:
    return frozenset(suffixes), lambda source: suffix_of(source.path) in suffixes


# The beginnings of texts in formats that are not supported; columns may have a word such as ``<s>``.
_UNSUPPORTED = {
    "XML": re.compile(
        r"<\?xml|<!DOCTYPE|(?![{\[])[^\t\n]*<([A-Za-z]\w*)[^<>\t]*>[^\t\n]*</\1>(?![ \t]+(O|[A-Z]-\S+)\s)"
    ),
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
        # Such texts can be tagged.
        if not source.labelled and name in ("XML", "seq.in"):
            continue
        if beginning.match(text) or source.path.name == name:
            raise DataError(f"{source.path}: the format {name} is not supported; convert it to CoNLL columns or JSON.")
    return False


def _lines_to_tag(source: Input) -> Iterator[Record]:
    if (field := source.reading.token_column) is not None:
        raise DataError(f"{source.path}: field={field!r}, but a line of text has no fields; leave it out.")
    for number, line in enumerate(source.lines, start=1):
        yield record_of({TEXT_KEY: line.rstrip("\r\n")}, TEXT_KEY, f"{source.path}:{number}")


_COLUMN_SUFFIXES = ".conll .conll03 .tab .col .data .ner .annotated .crf .bio .bio2 .iob .iob1 .iob2 .bioes .bmes"
_COLUMNS = frozenset(f"{_COLUMN_SUFFIXES} .bmeso .bilou".split())


def _is_columns(source: Input) -> bool:
    return is_columns(source) or (suffix_of(source.path) in _COLUMNS and not is_table(source))


#: All formats in the order in which they are tried; the last one is used if none matches. Labelled data have no format
#: that only has records.
FORMATS = (
    Format("parquet", *_with_suffix(".parquet"), _lazy("read_table"), _lazy("records_of_table")),
    Format("arrow", *_with_suffix(".arrow"), _lazy("read_table"), _lazy("records_of_table")),
    Format("spacy", *_with_suffix(".spacy"), read_spacy),
    Format("brat", *_with_suffix(ANNOTATION_SUFFIX), read_brat),
    Format("conll2012", frozenset(), is_conll2012, read_conll2012),
    Format(NOT_SUPPORTED, frozenset(), _is_supported, read_columns),
    Format("jsonl", JSON_SUFFIXES, is_json, read_json, records_to_tag),
    Format("spans", frozenset(), is_json, read_json, records_to_tag),
    Format("csv", frozenset({".csv"}), is_csv, read_csv),
    Format("conllu", frozenset({".conllu", ".conllup"}), is_conllu, read_conllu),
    Format("conll", _COLUMNS, _is_columns, read_columns),
    Format("csv", frozenset({".tsv"}), is_table, None, rows_to_tag),
    Format("text", frozenset({TEXT_SUFFIX}), lambda source: True, None, _lines_to_tag),
)


def recognise(source: Input, name: str = AUTO) -> Format:
    """Return the format of a source: the one with a name, or the first one that matches.

    Raises:
        DataError: If the format is known but not supported.
    """
    formats = [format for format in FORMATS if name in (AUTO, format.name) and (format.read or not source.labelled)]
    return next((format for format in formats if format.matches(source)), formats[-1])
