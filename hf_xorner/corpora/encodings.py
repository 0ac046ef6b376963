"""Recognise the encoding of the text files of a corpus."""

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from ..errors import DataError
from ..files import open_bytes, open_text, undecodable
from .source import AUTO, Reading, Repairs

UTF_8, UTF_16, LATIN_1, WINDOWS_1252 = "utf-8", "utf-16", "latin-1", "cp1252"
_NAMES = {UTF_16: "UTF-16", LATIN_1: "Latin-1", WINDOWS_1252: "Windows-1252"}
_BLOCK = 1 << 20

_UTF_8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_LONG_RUN = re.compile(rb"[\x80-\xff]{3,}")
_BEYOND_ASCII = bytes(range(0x80, 0x100))
_LETTERS = bytes(range(ord("A"), ord("Z") + 1)) + bytes(range(ord("a"), ord("z") + 1))
# In Latin-1 these are control characters, in Windows-1252 quotation marks, dashes, the euro and some letters.
_CONTROLS = re.compile(rb"[\x80-\x9f]")
_NOT_IN_WINDOWS_1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
# Above these shares, a text is in another alphabet than the Latin one: of the bytes beyond ASCII that are in runs of
# three and more, and of such bytes among all letters, where there are enough to tell.
_MOST_IN_RUNS, _MOST_AMONG_LETTERS, _ENOUGH = 0.1, 0.2, 20


@contextmanager
def open_corpus_file(path: Path, reading: Reading) -> Iterator[TextIO]:
    """Open a text file of a corpus in its encoding; see `encoding_of` and `hf_xorner.files.open_text`."""
    with open_text(path, encoding_of(path, reading)) as file:
        yield file


def encoding_of(path: Path, reading: Reading, repairs: Repairs | None = None) -> str:
    """Return the encoding of a text file: the given one, or the one that its bytes show.

    A file is UTF-8 if all of its bytes are, and UTF-16 if it begins with that encoding's byte-order mark. Any other is
    Windows-1252 or Latin-1, unless its bytes speak against it.

    Args:
        path: A file, plain or gzip.
        reading: The options of reading.
        repairs: Where another encoding than UTF-8 is noted.

    Raises:
        DataError: If the file is damaged UTF-8, or seems to be in an encoding that cannot be recognised.
    """
    if reading.encoding != AUTO:
        return reading.encoding
    stat = path.stat()
    encoding = _recognise(path, stat.st_size, stat.st_mtime_ns)
    if encoding != UTF_8 and repairs is not None:
        repairs.note(
            f"not UTF-8, so read as {_NAMES[encoding]}; name another one as encoding if that is wrong", str(path)
        )
    return encoding


# The size and the time belong to the key, so that a file that was written again is read again.
@lru_cache(maxsize=256)
def _recognise(path: Path, size: int, modified: int) -> str:
    with open_bytes(path) as file:
        decoder = codecs.getincrementaldecoder(UTF_8)()
        first = block = file.read(_BLOCK)
        try:
            while block:
                decoder.decode(block)
                block = file.read(_BLOCK)
            cut_short = False
            decoder.decode(b"", final=True)
            return UTF_8
        except UnicodeDecodeError:
            # All blocks were UTF-8, and the last character lacks bytes.
            cut_short = not block
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return UTF_16
    if cut_short:
        raise undecodable(path)
    return _one_byte_encoding(path)


def _one_byte_encoding(path: Path) -> str:
    """Return Latin-1 or Windows-1252 for a file that is not UTF-8.

    Raises:
        DataError: If it is rather damaged UTF-8, or in another alphabet.
    """
    in_utf_8 = beyond_ascii = in_runs = letters = 0
    controls = not_in_windows = False
    with open_bytes(path) as file:
        while block := file.read(_BLOCK):
            in_utf_8 += sum(map(len, _UTF_8_CHARACTER.findall(block)))
            in_runs += sum(map(len, _LONG_RUN.findall(block)))
            beyond_ascii += _count(block, _BEYOND_ASCII)
            letters += _count(block, _LETTERS)
            controls = controls or _CONTROLS.search(block) is not None
            not_in_windows = not_in_windows or _NOT_IN_WINDOWS_1252.search(block) is not None
    # More bytes that make characters of UTF-8 than others: that is no coincidence.
    if 2 * in_utf_8 > beyond_ascii:
        raise undecodable(path)
    among_letters = beyond_ascii / (beyond_ascii + letters)
    if beyond_ascii >= _ENOUGH and (in_runs > _MOST_IN_RUNS * beyond_ascii or among_letters > _MOST_AMONG_LETTERS):
        found = str(undecodable(path)).partition(";")[0]
        raise DataError(f"{found}, and the text does not look like Latin-1; name its encoding, such as cp1251 or gbk.")
    return WINDOWS_1252 if controls and not not_in_windows else LATIN_1


def _count(block: bytes, characters: bytes) -> int:
    return len(block) - len(block.translate(None, characters))
