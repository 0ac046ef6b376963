"""Read spaCy's training data: the binary DocBin of version 3, and the JSON of version 2.

spaCy itself is not needed. A DocBin is a zlib-compressed MessagePack object of NumPy arrays, in which strings are
replaced by their hash, and a few names by small numbers of their own.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...files import BYTE_ORDER_MARK
from ..source import NONE, Reading, Repairs, Sentence
from .json_lines import check_characters, kind_of, records
from .spans import sentences_between

_MISSING = "words without an annotation of entities were read as outside"

# --- JSON of version 2 -----------------------------------------------------------------------------------------------


def read_spacy_json(path: Path, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    """Yield the sentences of spaCy's JSON of documents, their paragraphs, sentences and tokens.

    A token's word is under ``orth``, its tag under ``ner`` (BILUO), its part of speech under ``tag``.

    Args:
        path: A file in UTF-8, plain or gzip.
        reading: The options of reading.
        repairs: Counts the words without a tag.

    Raises:
        DataError: For an object of another form, and for a file in which no token has a tag.
    """
    annotated = False
    for source, number, document in records(path, repairs.leave_out):
        place = f"{source}{number}"
        name = document.get("id")
        try:
            sentences = [_columns_of(tokens, reading, place) for tokens in _token_lists(document, place)]
        except DataError as fault:
            repairs.leave_out(fault)
            continue
        for words, tags, parts in sentences:
            annotated = annotated or set(tags) != {"-"}
            if missing := tags.count("-"):
                repairs.add(_MISSING, place, missing)
                tags = ["O" if tag == "-" else tag for tag in tags]
            doc_id = None if name is None else str(name)
            yield Sentence(words, tags, source, number, parts if all(parts) else None, doc_id)
    if not annotated:
        raise DataError(f"{path}:1: no token has a tag under 'ner'; export the entities as well.")


def _columns_of(tokens: list[dict[str, Any]], reading: Reading, place: str) -> tuple[list[str], list[str], list[str]]:
    """Return the words, the tags and the parts of speech of a sentence."""
    words = [_string(token, "orth", place) for token in tokens]
    tags = [_string(token, "ner", place, "-") for token in tokens]
    return words, tags, [_string(token, "tag", place, "") for token in tokens] if reading.pos_column != NONE else [""]


def _token_lists(document: dict[str, Any], place: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the tokens of each sentence of a document."""
    try:
        found = [
            sentence["tokens"] for paragraph in document["paragraphs"] for sentence in paragraph.get("sentences") or ()
        ]
    except (AttributeError, KeyError, TypeError):
        found = [None]
    for tokens in found:
        if type(tokens) is not list or not all(type(token) is dict for token in tokens):
            raise DataError(f"{place}: not a document of spaCy; expected paragraphs of sentences of tokens.")
        if tokens:
            yield tokens


def _string(token: dict[str, Any], key: str, place: str, default: str | None = None) -> str:
    found = token.get(key)
    value = found.replace(BYTE_ORDER_MARK, "") if type(found) is str else default if found is None else None
    if value is None or (not value and default is None):
        raise DataError(f"{place}: {key!r} of a token holds {kind_of(found)}; write a string that is not empty.")
    check_characters(value, key, place)
    return value


# --- DocBin ----------------------------------------------------------------------------------------------------------

# spaCy's numbers of attributes.
_ORTH, _TAG, _ENT_IOB, _ENT_TYPE, _SENT_START = 65, 75, 77, 78, 80
# Values of ENT_IOB: no annotation, inside, outside, begin.
_UNKNOWN, _INSIDE, _BEGIN = 0, 1, 3

#: Strings that spaCy 3 knows by number: the first number of a row, then the names with it and the following numbers.
_SYMBOLS = """
1 IS_ALPHA IS_ASCII IS_DIGIT IS_LOWER IS_PUNCT IS_SPACE IS_TITLE IS_UPPER LIKE_URL LIKE_NUM LIKE_EMAIL IS_STOP
13 IS_OOV_DEPRECATED IS_BRACKET IS_QUOTE IS_LEFT_PUNCT IS_RIGHT_PUNCT IS_CURRENCY
64 ID ORTH LOWER NORM SHAPE PREFIX SUFFIX LENGTH CLUSTER LEMMA POS TAG DEP ENT_IOB ENT_TYPE HEAD SENT_START SPACY
82 PROB LANG ADJ ADP ADV AUX CONJ CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X EOL SPACE
380 PERSON NORP FACILITY ORG GPE LOC PRODUCT EVENT WORK_OF_ART LANGUAGE LAW DATE TIME PERCENT MONEY QUANTITY ORDINAL
397 CARDINAL acomp advcl advmod agent amod appos attr aux auxpass cc ccomp complm conj cop csubj csubjpass dep det dobj
417 expl hmod hyph infmod intj iobj mark meta neg nmod nn npadvmod nsubj nsubjpass num number oprd obj obl parataxis
437 partmod pcomp pobj poss possessive preconj prep prt punct quantmod relcl rcmod root xcomp acl
452 ENT_KB_ID MORPH ENT_ID IDX _
"""


def _symbols() -> dict[int, str]:
    names = {0: ""}
    for row in _SYMBOLS.strip().split("\n"):
        first, *strings = row.split()
        names.update(enumerate(strings, start=int(first)))
    return names


def read_docbin(path: Path, reading: Reading, repairs: Repairs) -> Iterator[Sentence]:
    """Yield the sentences of a DocBin file.

    Documents are numbered from 0. Where no document has several sentences, each is a sentence without a number. Words
    are spaCy's tokens, parts of speech its ``TAG``. A sentence does not end inside an entity. Groups of spans
    (``doc.spans``) are not read.

    Args:
        path: The file.
        reading: The options of reading.
        repairs: Counts the words without an annotation of entities.

    Raises:
        DataError: If the file is damaged or of another kind, or has no annotated entities.
    """
    try:
        content = _unpacked(zlib.decompress(path.read_bytes()))
        columns, lengths, strings = _arrays(content)
    except (zlib.error, struct.error, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a valid DocBin file of spaCy ({error}); save or fetch it again.") from None
    if not {_ENT_IOB, _ENT_TYPE} <= columns.keys() or not columns[_ENT_IOB].any():
        raise DataError(
            f"{path}: no document has annotated entities; set doc.ents, and save the attributes ENT_IOB and ENT_TYPE."
        )
    with_pos = _TAG in columns and reading.pos_column != NONE
    starts = columns[_SENT_START] == 1 if _SENT_START in columns else np.zeros(lengths.sum(), dtype=bool)
    first_words = (np.cumsum(lengths) - lengths)[lengths > 0]
    has_sentences = starts.sum() > starts[first_words].sum()
    first = 0
    for document, size in enumerate(lengths.tolist()):
        found = {attribute: column[first : first + size] for attribute, column in columns.items()}
        source = f"{path}, document "
        try:
            words, types = ([strings[value] for value in found[name].tolist()] for name in (_ORTH, _ENT_TYPE))
            parts = [strings[value] for value in found[_TAG].tolist()] if with_pos else [""]
        except KeyError as error:
            raise DataError(f"{source}{document}: the string {error} is missing; save the file again.") from None
        if "" in words:
            raise DataError(f"{source}{document}: the word at index {words.index('')} is empty; remove it.")
        kinds = found[_ENT_IOB].tolist()
        if missing := kinds.count(_UNKNOWN):
            repairs.add(_MISSING, f"{source}{document}", missing)
        tags = [_tag(kind, name) for kind, name in zip(kinds, types, strict=True)]
        doc_id = str(document) if has_sentences else None
        for start, end in sentences_between(starts[first : first + size].tolist(), tags):
            pos_tags = parts[start:end] if all(parts) else None
            yield Sentence(words[start:end], tags[start:end], source, document, pos_tags, doc_id)
        first += size


def _tag(kind: int, name: str) -> str:
    # An entity without a type marks words that spaCy must not take for one.
    return f"{'I' if kind == _INSIDE else 'B'}-{name}" if kind in (_INSIDE, _BEGIN) and name else "O"


def _arrays(content: dict[str, Any]) -> tuple[dict[int, NDArray[np.uint64]], NDArray[np.int32], dict[int, str]]:
    """Return the columns of all tokens by attribute, the lengths of the documents, and the strings by number."""
    attributes = [int(attribute) for attribute in content["attrs"]]
    table = np.frombuffer(content["tokens"], dtype="<u8").reshape(-1, len(attributes))
    lengths = np.frombuffer(content["lengths"], dtype="<i4")
    if lengths.sum() != len(table):
        raise ValueError("the lengths of its documents do not add up")
    strings = {string_hash(string.encode()): string.replace(BYTE_ORDER_MARK, "") for string in content["strings"]}
    return dict(zip(attributes, table.T, strict=True)), lengths, strings | _symbols()


_PRIME, _WORD = 0xC6A4A7935BD1E995, 0xFFFFFFFFFFFFFFFF


def string_hash(text: bytes) -> int:
    """Return the number that spaCy gives a string: MurmurHash64A with the seed 1."""
    value = 1 ^ (len(text) * _PRIME & _WORD)
    whole = len(text) - len(text) % 8
    for (block,) in struct.iter_unpack("<Q", text[:whole]):
        block = block * _PRIME & _WORD
        value = (value ^ ((block ^ block >> 47) * _PRIME & _WORD)) * _PRIME & _WORD
    if whole < len(text):
        value = (value ^ int.from_bytes(text[whole:], "little")) * _PRIME & _WORD
    value = (value ^ value >> 47) * _PRIME & _WORD
    return value ^ value >> 47


# MessagePack's numbers by the byte before them, and the type and the form of the length of what else has one.
_NUMBERS = dict(enumerate((">f", ">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"), start=0xCA))
_SIZED: dict[int, tuple[type, str]] = {
    **dict(enumerate(((bytes, ">B"), (bytes, ">H"), (bytes, ">I")), start=0xC4)),
    **dict(enumerate(((str, ">B"), (str, ">H"), (str, ">I")), start=0xD9)),
    **dict(enumerate(((list, ">H"), (list, ">I"), (dict, ">H"), (dict, ">I")), start=0xDC)),
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _unpacked(data: bytes) -> Any:
    """Return the value that MessagePack holds; its extension types, which a DocBin does not have, are refused."""
    return _value_at(data, 0)[0]


def _value_at(data: bytes, at: int) -> tuple[Any, int]:
    """Return the value at some place, and the place after it."""
    byte, at = data[at], at + 1
    if byte in _CONSTANTS:
        return _CONSTANTS[byte], at
    if byte < 0x80 or byte >= 0xE0:
        return (byte if byte < 0x80 else byte - 0x100), at
    if byte in _NUMBERS:
        return struct.unpack_from(_NUMBERS[byte], data, at)[0], at + struct.calcsize(_NUMBERS[byte])
    if byte < 0xC0:
        kind: type = dict if byte < 0x90 else list if byte < 0xA0 else str
        size = byte & (0x1F if kind is str else 0x0F)
    else:
        kind, form = _SIZED[byte]
        (size,) = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
    if kind in (bytes, str):
        if at + size > len(data):
            raise ValueError("it ends too early")
        return (data[at : at + size] if kind is bytes else data[at : at + size].decode()), at + size
    values = []
    for _ in range(2 * size if kind is dict else size):
        value, at = _value_at(data, at)
        values.append(value)
    return (dict(zip(values[::2], values[1::2], strict=True)) if kind is dict else values), at
