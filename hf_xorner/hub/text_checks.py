"""Texts that must not be published: secrets, folders of a machine, and sentences of a corpus."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

#: Sentences of fewer words are anyone's.
LEAST_WORDS = 8
#: So many first letters of a sentence are looked up before all of it is looked for.
PREFIX = 24

#: The forms in which secrets are found; any other secret passes.
SECRETS = {
    "a private key": r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d",
    "an access token of the Hub": r"(?:hf|api_org)_(?:oauth_|jwt_)?[A-Za-z0-9]{20,}",
    "an access key of AWS": r"(?<![A-Z0-9])(?:AKIA|(?:ASIA|ABIA|ACCA)(?=[A-Z]*\d))[A-Z0-9]{16}(?![A-Z0-9])",
    # The key itself has no form of its own, so that it is found by its name.
    "a secret key of AWS": r"(?i:secret[_-]?access[_-]?key|aws[_-]?secret(?:[_-]?key)?)[\"'\s:=]{1,8}"
    r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
    "a token of GitHub": r"gh[oprsu]_[A-Za-z0-9]{30,}|github_pat_\w{22,}",
    "a key of OpenAI or Anthropic": r"(?<![A-Za-z0-9])sk-(?:(?:proj|svcacct|admin|ant)-[\w-]{20,}|[A-Za-z0-9]{20,})",
    "a token of Slack": r"xox[a-z]-[A-Za-z0-9-]{10,}",
    "a key of Google": r"AIza[\w-]{35}",
    # A password of these forms is a placeholder: $TOKEN, ${TOKEN}, {token}, <token>, ***, ...
    "a password in a URL": r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"']*:"
    r"(?!(?:\$\{?\w+\}?|\{+\w+\}+|<[^>@]*>|\*+|\.+|…)@)[^\s/@\"']+@[\w\[]",
}
_SECRET = re.compile("|".join(f"({form})" for form in SECRETS.values()), re.ASCII)
#: Where two pieces of one string meet, as in "hf_ab" + "cd".
_JOINT = re.compile(r"""["'][\s+\\]*[bfru]{0,2}["']""", re.IGNORECASE)
#: A string of JSON, and the colon by which a key is known.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?')

#: The longest head that safetensors reads.
_LONGEST_HEAD = 100_000_000

#: Folders in which the files of a user lie, on any machine; an address of the web may have a part of the same name.
_ROOTS = "home|Users|root|tmp|var/folders|private/var|mnt|media|scratch|workspace"
_PLACE = re.compile(
    rf"(?<![\w./:~-])(?:/(?:{_ROOTS})/[\w.~+-]+|[A-Za-z]:\\+(?:Users|Documents and Settings)\\+[\w.-]+)"
)
#: Below a folder of this many parts, nothing is common to many machines.
OWN_PARTS = 3


class Text(NamedTuple):
    """The text of a file.

    Attributes:
        name: The file, by its path in the model's folder.
        passages: Line number (0 where there are no lines) and text, without the keys of JSON: these are names, and in
            a tokenizer the vocabulary.
        lines: The same, of all lines.
    """

    name: str
    passages: list[tuple[int, str]]
    lines: Sequence[tuple[int, str]] = ()


def read_text(folder: Path, name: str) -> Text:
    """Read the lines of a text, of JSON with its escapes undone, or of the head of a safetensors file.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not what its name says.
    """
    path = folder / name
    head = path.suffix == ".safetensors"
    content = _head_of(path) if head else path.read_text(encoding="utf-8", errors="replace")
    # Without zeros, the ASCII of UTF-16 is read, too.
    lines = list(enumerate(content.replace("\0", "").split("\n"), 1))
    if not head and path.suffix != ".json":
        return Text(name, lines, lines)
    if head:
        lines = [(0, line) for _, line in lines]
    strings = [(number, found) for number, line in lines for found in _STRING.finditer(line)]
    values = [(number, _unescaped(found)) for number, found in strings if not found[1]]
    return Text(name, values, [(number, _STRING.sub(_with_colon, line)) for number, line in lines])


def _head_of(path: Path) -> str:
    """Return the head of a file of safetensors, which is JSON."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > min(path.stat().st_size, _LONGEST_HEAD):
            raise ValueError("its head is longer than the file, or than safetensors reads")
        return file.read(size).decode("utf-8")


def _unescaped(found: re.Match[str]) -> str:
    """Return a string of JSON without its quotes and escapes."""
    literal = found[0][: found.start(1) - found.start()] if found[1] else found[0]
    try:
        return str(json.loads(literal, strict=False)) if "\\" in literal else literal[1:-1]
    except ValueError:
        return literal


def _with_colon(found: re.Match[str]) -> str:
    return f'"{_unescaped(found)}"{found[1] or ""}'


def places_of_machine(folder: Path) -> list[str]:
    """Return the folders of this machine that no file may name: the user's, the model's, and where one works."""
    own = [Path.home(), folder.absolute(), folder.resolve(), Path.cwd(), Path(tempfile.gettempdir())]
    # What lies directly below the root is found on many machines.
    return sorted({str(place) for place in own if len(place.parts) >= OWN_PARTS}, key=len, reverse=True)


def faults_of_text(text: Text, places: Sequence[str]) -> list[str]:
    """Return the secrets and the places of a machine in a file, each in one sentence with its line.

    Args:
        text: The text of the file.
        places: Folders of this machine, as `places_of_machine` returns them.
    """
    faults = [
        f"{_where(text, line)}: contains {kind} ({secret[:4]}…); remove it, and revoke it, as others may have seen it."
        for line, kind, secret in secrets_in(text.lines)
    ]
    for line, passage in text.passages:
        own = next((place for place in places if place in passage), None)
        found = _PLACE.search(passage)
        if own or found:
            place = own or (found[0] if found else "")
            faults.append(
                f"{_where(text, line)}: {place} is a place of one machine; name the file or folder without it."
            )
    return list(dict.fromkeys(faults))


def _where(text: Text, line: int) -> str:
    return f"{text.name}, line {line}" if line else text.name


def secrets_in(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the kind and the text of each secret that has one of the forms of `SECRETS`.

    Pieces of a string that are joined in one line, or in two that follow each other, are read as one string.

    Args:
        lines: Numbers and texts.
    """
    for (number, line), (_, following) in zip(lines, [*lines[1:], (0, "")], strict=True):
        end = len(_JOINT.sub("", line.rstrip(" \t\r+\\"))) - 1
        for found in _SECRET.finditer(_JOINT.sub("", f"{line}\n{following}")):
            # What lies in the following line alone is found there.
            if found.start() < end:
                yield number, list(SECRETS)[(found.lastindex or 1) - 1], found[0]


def sentences_in(texts: Iterable[Text], sentences: Iterable[Sequence[str]]) -> list[str]:
    """Return where sentences of a corpus stand in files, one sentence for each file.

    Blanks, punctuation, case and how words are cut do not matter; what has fewer than eight words is not looked for.

    Args:
        texts: What the files say.
        sentences: The words of each sentence of the corpus.
    """
    sentences = iter(sentences)
    if (first := next(sentences, None)) is None:
        return []
    letters = [(text, _letters("\n".join(passage for _, passage in text.passages))) for text in texts]
    beginnings = [{held[place : place + PREFIX] for place in range(len(held))} for _, held in letters]
    faults: dict[str, str] = {}
    for words in chain([first], sentences):
        if sum(any(map(str.isalnum, word)) for word in words) < LEAST_WORDS:
            continue
        wanted = _letters("".join(words))
        for (text, held), begin in zip(letters, beginnings, strict=True):
            # A beginning is as long as a whole one, except at the file's end; short sentences have no full beginning.
            likely = wanted[:PREFIX] in begin or len(wanted) < PREFIX
            if text.name not in faults and likely and wanted in held:
                faults[text.name] = (
                    f"{text.name}: a sentence of the corpus stands here ({' '.join(words[:3])} …), which is not yours "
                    "to publish; write one of your own."
                )
    return list(faults.values())


def _letters(text: str) -> str:
    """A text in letters and digits alone."""
    return re.sub(r"[\W_]+", "", text.casefold())
