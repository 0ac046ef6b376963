"""What must not stand in a file that goes to the Hub: places of a machine, tokens, and sentences of a corpus."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

#: Sentences of fewer words are anyone's.
LEAST_WORDS = 8
#: So many first letters of a sentence are looked up before all of it is looked for.
PREFIX = 24

_TOKEN = re.compile(r"\b(?:hf_|api_org_)[A-Za-z0-9]{20,}")
#: Folders in which the files of a user lie, on any machine; an address of the web may have a part of the same name.
_ROOTS = "home|Users|root|tmp|var/folders|private/var|mnt|media|scratch|workspace"
_PLACE = re.compile(
    rf"(?<![\w./:~-])(?:/(?:{_ROOTS})/[\w.~+-]+|[A-Za-z]:\\+(?:Users|Documents and Settings)\\+[\w.-]+)"
)
#: Below a folder of this many parts, nothing is common to many machines.
OWN_PARTS = 3


class Text(NamedTuple):
    """What a file says: its lines, where a line can be named, or else its strings.

    Attributes:
        name: The file, by its path in the model's folder.
        passages: Line number (0 where there are no lines) and text.
    """

    name: str
    passages: list[tuple[int, str]]


def read_text(folder: Path, name: str) -> Text:
    """Read what a file says: the strings of JSON with their escapes undone, the metadata of safetensors, or lines."""
    path = folder / name
    if path.suffix == ".safetensors":
        return Text(name, [(0, one) for one in _strings(safetensors_metadata(path))])
    content = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".json":
        try:
            return Text(name, [(0, one) for one in _strings(json.loads(content))])
        except ValueError:
            pass  # it is said elsewhere that this is no JSON
    return Text(name, list(enumerate(content.splitlines(), 1)))


def safetensors_metadata(path: Path) -> dict[str, Any]:
    """Return the free text in the head of a file of safetensors.

    Raises:
        ValueError: If it is none.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > path.stat().st_size:
            raise ValueError("its head is longer than the file")
        head = json.loads(file.read(size))
    if not isinstance(head, dict):
        raise ValueError("its head is no object")
    return head.get("__metadata__") or {}


def _strings(value: Any) -> Iterator[str]:
    """The strings of a JSON value; keys, which are names and in a tokenizer the vocabulary, are none of them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def places_of_machine(folder: Path) -> list[str]:
    """Return the folders of this machine that no file may name: the user's, the model's, and where one works."""
    own = [Path.home(), folder.absolute(), folder.resolve(), Path.cwd(), Path(tempfile.gettempdir())]
    # What lies directly below the root is found on many machines.
    return sorted({str(place) for place in own if len(place.parts) >= OWN_PARTS}, key=len, reverse=True)


def faults_of_text(text: Text, places: Sequence[str]) -> list[str]:
    """Return the tokens and the places of a machine that a file names, each in one sentence with its line.

    Args:
        text: What the file says.
        places: Folders of this machine, as `places_of_machine` gives them.
    """
    faults = []
    for line, passage in text.passages:
        where = f"{text.name}, line {line}" if line else text.name
        if token := _TOKEN.search(passage):
            faults.append(
                f"{where}: an access token ({token[0][:6]}…) stands here; take it out, and revoke it, for it may have "
                "been seen already."
            )
        own = next((place for place in places if place in passage), None)
        found = _PLACE.search(passage)
        if own or found:
            place = own or (found[0] if found else "")
            faults.append(f"{where}: {place} is a place of one machine; name the file or folder without it.")
    return list(dict.fromkeys(faults))


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
