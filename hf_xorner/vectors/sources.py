"""Find a file of word vectors, local or on the Hub, and open it: plain, gzip or in a zip archive."""

import logging
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

import numpy as np
from huggingface_hub import hf_hub_download
from numpy.typing import NDArray

from ..errors import DataError, first_line, why_not_loaded
from ..files import DECOMPRESSION_ERRORS, decompressed


class Block(NamedTuple):
    """Selected words and their vectors.

    Attributes:
        words: The words, in the order of the file.
        rows: Their vectors, a row each.
    """

    words: list[str]
    rows: NDArray[np.float32]  # shape: (words, dim)


def decoded(word: bytes) -> str | None:
    """Return a word as text; None if it is not UTF-8, as word2vec and fastText cut long words anywhere."""
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return None


def check_range(rows: NDArray[np.float32], largest: float, place: Callable[[int], str], advice: str) -> None:
    """Raise DataError for the first row with a number that is not finite or too large.

    Args:
        rows: The vectors. Shape: (words, dim).
        largest: The largest number that can be kept.
        place: Returns the place of a row, by its index.
        advice: What to do, for the message.
    """
    # Not the other way around: a comparison with NaN is false.
    fits = (np.abs(rows) <= np.float32(largest)).all(axis=1)
    if not fits.all():
        row = int(np.argmin(fits))
        fault = f"beyond ±{np.float32(largest):.5g}" if np.isfinite(rows[row]).all() else "NaN or infinite"
        raise DataError(f"{place(row)}: the vector holds a number that is {fault}; {advice}.")


class Selection:
    """Selects the words to keep, and counts the words."""

    def __init__(self, wanted: Collection[str] | None = None, most_frequent: int | None = None) -> None:
        """Start a selection.

        Args:
            wanted: Words to keep.
            most_frequent: How many words to keep from the beginning of the file. With both, a word is kept for either
                reason; with neither, every word is.

        Raises:
            DataError: If nothing would be selected.
        """
        if isinstance(wanted, str):
            raise DataError(f"wanted={wanted!r} is one string; give a collection of words.")
        if most_frequent is not None and most_frequent < 1:
            raise DataError(f"most_frequent={most_frequent} keeps nothing; give a number from 1, or leave it out.")
        self.wanted = wanted if wanted is None or isinstance(wanted, Set) else frozenset(wanted)
        self.most_frequent = most_frequent
        #: Words that have passed, whether kept or not.
        self.passed = 0
        #: Words that were left out as they had been kept before.
        self.duplicates = 0
        #: Words that were left out as they are not UTF-8.
        self.undecodable = 0
        self._kept: set[str] = set()
        self._missing = 0 if self.wanted is None else len(self.wanted)
        self._takes_all = wanted is None and most_frequent is None

    def choose(self, words: Sequence[str | None]) -> list[int]:
        """Return the positions of the words that are kept, each the first of its kind.

        Args:
            words: The words that pass next, None for what is not UTF-8.
        """
        kept, wanted = self._kept, self.wanted
        from_start = len(kept) + len(words) if self._takes_all else self.most_frequent or 0
        chosen = []
        for index, word in enumerate(words):
            if word is None:
                self.undecodable += 1
                continue
            if word in kept:
                self.duplicates += 1
                continue
            is_wanted = wanted is not None and word in wanted
            # All words are kept until these are complete, so that their number is that of the words kept.
            if is_wanted or len(kept) < from_start:
                kept.add(word)
                self._missing -= is_wanted
                chosen.append(index)
        self.passed += len(words)
        return chosen

    @property
    def is_complete(self) -> bool:
        """Return whether all wanted words have been found, so that the rest need not be read."""
        return not self._takes_all and self._missing == 0 and len(self._kept) >= (self.most_frequent or 0)


#: Called with the bytes of a file that have been read, and with its size.
Progress = Callable[[int, int], None]

#: Bytes that are read at a time: few enough that what is made of them stays in the processor's cache.
READ_SIZE = 1 << 20

_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
# "datasets/" as in the addresses of the Hub.
_ON_HUB = re.compile(r"(?P<kind>datasets/)?(?P<repo>\w[\w.-]*/\w[\w.-]*):(?P<file>.+)")
_ZIP_ON_HUB = re.compile(r"(?P<file>.+?\.zip):(?P<member>.+)", re.IGNORECASE)
# Added to archives by macOS.
_NOT_CONTENT = "__MACOSX/"
_SHOWN = 4
_AS_TEXT = "export the vectors as text, as gensim's save_word2vec_format does"
_PICKLE_SUFFIXES = {".kv", ".model", ".pkl", ".pickle", ".pt", ".pth", ".joblib"}
_FOREIGN = {
    b"\xba\x16\x4f\x2f": f"is fastText's own binary; read the .vec file beside it, or {_AS_TEXT}",
    b"\x93NUMPY": "is a NumPy array without its words; save it as safetensors with a vocabulary.txt beside it",
    b"\x89HDF\r\n\x1a\n": f"is an HDF5 file; {_AS_TEXT}",
    b"PK": "is an archive in an archive; unpack the outer one",
}
_PICKLE_MAGIC = re.compile(rb"\x80[\x02-\x05]")

_log = logging.getLogger(__name__)


class Place(NamedTuple):
    """The place of vectors.

    Attributes:
        path: A local file or folder.
        member: The part of a zip archive, where one is named.
        remote: Repository, file and kind that it was fetched from, as `download` takes them; None for a local path.
    """

    path: Path
    member: str | None = None
    remote: tuple[str, str, str] | None = None


class Stream(NamedTuple):
    """The bytes of a file, decompressed.

    Attributes:
        label: What is read, for messages: a path, or ``archive.zip:part``.
        name: The file's own name.
        head: The first bytes; all of a file that is shorter than `READ_SIZE`.
        rest: What follows, open for reading.
        progress: Returns how many bytes of the file on disk have been read, and its size.
    """

    label: str
    name: str
    head: bytes
    rest: IO[bytes]
    progress: Callable[[], tuple[int, int]]


def download(repo: str, file: str, kind: str) -> Path:
    """Download a file of a Hub repository, or return it from the cache. Nothing else here uses the network.

    Args:
        repo: ``owner/name``.
        file: The path of the file in it.
        kind: "model" or "dataset".

    Raises:
        DataError: If it cannot be downloaded.
    """
    try:
        return Path(hf_hub_download(repo, file, repo_type=kind))
    # The errors (no such file, no network, a gate) have no common type.
    except Exception as error:
        raise DataError(f"{repo}:{file}: cannot be downloaded from the Hub: {why_not_loaded(error)}.") from error


def locate(source: str | Path) -> Place:
    """Return the place of a source, which is downloaded if it is on the Hub.

    Args:
        source: A path, ``archive.zip:part``, or ``owner/name:file`` on the Hub, where the file may be an archive with
            its part in turn and data sets are written ``datasets/owner/name:file``. What exists here is never looked
            for on the Hub.

    Raises:
        DataError: If there is no such thing.
    """
    text = os.path.expanduser(source)
    if Path(text).exists():
        return Place(Path(text))
    for colon in re.finditer(":", text):
        archive = Path(text[: colon.start()])
        if archive.is_file():
            return Place(archive, text[colon.end() :])
    on_hub = _ON_HUB.fullmatch(text) if isinstance(source, str) else None
    if on_hub is None:
        raise DataError(
            f"{source}: there is no such file; give a path, archive.zip:part, or owner/name:file for one on the Hub."
        )
    part = _ZIP_ON_HUB.fullmatch(on_hub["file"])
    file, member = (part["file"], part["member"]) if part else (on_hub["file"], None)
    remote = (on_hub["repo"], file, "dataset" if on_hub["kind"] else "model")
    return Place(download(*remote), member, remote)


def check_name(source: str | Path) -> None:
    """Raise DataError for a name of a pickle, before it is downloaded.

    Args:
        source: As for `locate`.
    """
    path = Path(os.path.expanduser(source))
    if path.suffix.lower() in _PICKLE_SUFFIXES and not path.is_dir():
        raise _pickle(str(source))


def fetch_beside(place: Place, names: Sequence[str]) -> Path:
    """Download a file from the folder of another one on the Hub.

    Args:
        place: The file of the Hub.
        names: Its possible names; the first that exists is taken.

    Raises:
        DataError: If there is none.
    """
    assert place.remote is not None
    repo, file, kind = place.remote
    faults = []
    for name in names:
        try:
            return download(repo, PurePosixPath(file).with_name(name).as_posix(), kind)
        except DataError as error:
            faults.append(error)
    raise faults[0]


@contextmanager
def open_stream(place: Place) -> Iterator[Stream]:
    """Open a file, decompressed.

    Args:
        place: Its place.

    Raises:
        DataError: At once for a file that does not hold vectors by its first bytes, and while it is read for damage.
    """
    path, label, name, kind = place.path, str(place.path), place.path.name, "gzip file"
    try:
        with ExitStack() as stack:
            on_disk = file = cast("IO[bytes]", stack.enter_context(path.open("rb", buffering=READ_SIZE)))
            if on_disk.peek(4)[:4] in _ZIP_MAGICS:  # type: ignore[attr-defined]
                kind = "zip archive"
                archive = stack.enter_context(zipfile.ZipFile(file))
                member = _member(archive, label, place.member)
                label, name = f"{path}:{member.filename}", Path(member.filename).name
                file = stack.enter_context(_open_member(archive, member, label))
            elif place.member is not None:
                raise DataError(f"{path}: is not a zip archive with a part {place.member!r}; name the file alone.")
            rest = stack.enter_context(decompressed(file))
            head = rest.read(READ_SIZE)
            _check_start(head, label)
            yield Stream(label, name, head, rest, lambda: (on_disk.tell(), os.fstat(on_disk.fileno()).st_size))
    except (*DECOMPRESSION_ERRORS, zipfile.BadZipFile) as error:
        raise DataError(f"{label}: the {kind} is damaged ({first_line(error)}); fetch or compress it again.") from None


def _check_start(head: bytes, label: str) -> None:
    if _PICKLE_MAGIC.match(head):
        raise _pickle(label)
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise DataError(f"{label}: {what}.")


def _pickle(label: str) -> DataError:
    return DataError(f"{label}: looks like a pickle, which can run any program when it is read; {_AS_TEXT}.")


def _member(archive: zipfile.ZipFile, label: str, named: str | None) -> zipfile.ZipInfo:
    """Return the part of an archive that is named, or else the largest."""
    found = [info for info in archive.infolist() if not info.is_dir() and not info.filename.startswith(_NOT_CONTENT)]
    names = [info.filename for info in found]
    if named is not None:
        for info in found:
            if info.filename == named:
                return info
        others = f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else ""
        shown = ", ".join(names[:_SHOWN]) or "nothing"
        raise DataError(f"{label}: the archive has no part {named!r}; it holds {shown}{others}.")
    if not found:
        raise DataError(f"{label}: the archive is empty; fetch or pack it again.")
    # A checkpoint of PyTorch.
    if any(Path(name).name == "data.pkl" for name in names):
        raise _pickle(label)
    largest = max(found, key=lambda info: info.file_size)
    if len(found) > 1:
        _log.warning(
            "%s: reading the largest of its %d parts; name another as %s:part", label, len(found), Path(label).name
        )
    return largest


def _open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, label: str) -> IO[bytes]:
    try:
        return archive.open(member)
    # For a password, or a compression that is not known.
    except (RuntimeError, NotImplementedError) as error:
        raise DataError(f"{label}: cannot be unpacked ({first_line(error)}); unpack it by another program.") from None
