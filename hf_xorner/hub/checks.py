"""Whether a folder is fit for others: everything that is wrong with it, said at once."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ..corpora import load_corpus
from ..corpora.load import CORPORA_VARIABLE, NAMED_CORPORA
from ..errors import DataError, first_line
from ..files import sha256_of
from ..training.facts import FACTS_FILE, json_object
from ..training.model_files import (
    CARD,
    CONFIG,
    HANDLER,
    HANDLER_REQUIREMENTS,
    WEIGHTS,
    files_of_model,
    matches,
    pictures_of_card,
    remote_classes,
    travelling_modules,
)
from .card_content import model_card, one_line
from .loading import INVENTED_SENTENCE, Tagged, tag_as_stranger

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


#: Generated by this package, and anyone's.
OWN = "xor"


def sentences_of(
    folder: str | Path, dataset: str | None = None, data_dir: str | Path | None = None
) -> Iterator[Sequence[str]]:
    """Yield the words of each sentence of the corpus behind a model; nothing is loaded before the first is asked for.

    Args:
        folder: The model's folder, whose facts.json may name the corpus.
        dataset: The corpus, as `load_corpus` takes it; by default the one of the facts, if its files are at hand.
        data_dir: Where the files of a named corpus lie.

    Raises:
        DataError: If `dataset` cannot be loaded.
    """
    if dataset is not None:
        corpus = load_corpus(dataset, data_dir)
    else:
        named = _named_in_facts(Path(folder) / FACTS_FILE)
        place = data_dir if data_dir is not None else os.environ.get(CORPORA_VARIABLE)
        at_hand = named is not None and (os.path.exists(named) or (named in NAMED_CORPORA and place is not None))
        if named is None or named == OWN or not at_hand:
            return
        try:
            corpus = load_corpus(named, place if named in NAMED_CORPORA else None)
        except DataError:
            return  # its files are not at hand after all
    for split in corpus.values():
        yield from split["tokens"]


def _named_in_facts(path: Path) -> str | None:
    try:
        data = json_object(path.read_text(encoding="utf-8")).get("data")
    except (OSError, ValueError):
        return None
    named = data.get("source") if isinstance(data, dict) else None
    return named if isinstance(named, str) else None


MEGABYTE = 1_000_000
#: The release that the handler was written for; the lower bound is that of pyproject.toml.
TRANSFORMERS = "transformers>=5.12,<6"
WEIGHTS_INDEX = "model.safetensors.index.json"

#: A file in the Hub's cache is called by its hash.
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Unfit(ValueError):
    """Say of a folder all that keeps it from being published, one sentence a line."""


class ModelFile(NamedTuple):
    """A file as it is published: its path, its size in bytes, and its hash."""

    name: str
    size: int
    sha256: str


class Checked(NamedTuple):
    """A folder that is fit to be published.

    Attributes:
        folder: The folder.
        files: What belongs to the model.
        left: What lies there and is not published, by name; folders end in a slash.
        tagged: What the model, loaded as a stranger would load it, found in sentences.
    """

    folder: Path
    files: list[ModelFile]
    left: list[str]
    tagged: list[Tagged]


def check_folder(
    folder: str | Path,
    *,
    card: bool = True,
    max_file_mb: float = 5000,
    sentences: Iterable[Sequence[str]] = (),
) -> Checked:
    """Check that a model's folder is fit to be published, without any network.

    Args:
        folder: What `save_pretrained` or a Trainer wrote.
        card: Whether a model card must be there.
        max_file_mb: How large a file may be, in millions of bytes.
        sentences: The words of each sentence that must stand in no file: those of the corpus.

    Raises:
        Unfit: If anything is wrong, with one sentence for each fault.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise Unfit(f"{folder} is no folder; name the one that a training run has saved its model in.")
    if not (folder / CONFIG).is_file():
        raise Unfit(f"{folder} has no {CONFIG}, so there is no model in it; name the folder that one was saved in.")
    names = files_of_model(folder)
    if misplaced := faults_of_places(folder, names):
        raise Unfit("\n".join(map(one_line, misplaced)))
    structure = [*_faults_of_json(folder, names), *_faults_of_weights(folder, names), *_faults_of_code(folder)]
    faults = [*structure, *_faults_of_card(folder, card), *_faults_of_size(folder, names, max_file_mb)]
    texts, unreadable = _texts(folder, names)
    places = places_of_machine(folder)
    faults += [*unreadable, *(fault for text in texts for fault in faults_of_text(text, places))]
    faults += sentences_in(texts, sentences)
    tagged: list[Tagged] = []
    # Code that is not the package's is not run, and a model that lacks parts does not load.
    if not structure and not unreadable:
        try:
            tagged = tag_as_stranger(folder, names, widget_sentences(folder) or [INVENTED_SENTENCE])
        except ValueError as error:
            faults.append(f"{folder} does not load in a process without this package ({error}); save the model anew.")
    if faults:
        raise Unfit("\n".join(map(one_line, faults)))
    return Checked(folder, [_described(folder, name) for name in names], _left(folder, names), tagged)


def faults_of_places(folder: Path, names: Iterable[str]) -> list[str]:
    """Return the files of a folder that lie outside of it, each in one sentence: nobody expects them to be published.

    A folder of the Hub's cache may link to the blobs of its own repository.

    Args:
        folder: The model's folder.
        names: The files, by their paths in it.
    """
    root = folder.resolve()
    blobs = [place.parent / "blobs" for place in root.parents if place.name == "snapshots"]
    faults = []
    for name in names:
        real = (folder / name).resolve()
        if not name.isprintable() or "\\" in name:
            faults.append(f"{name!r} has characters that cannot be published; rename the file.")
        elif root not in real.parents and not (real.parent in blobs and _BLOB.fullmatch(real.name)):
            faults.append(f"{name} lies outside of {folder}, at {real}; put a copy in its place, or take it out.")
    return faults


def handler_files() -> dict[str, str]:
    """Return the files of an Inference Endpoint by name."""
    template = files(__package__) / "space_files" / f"{HANDLER}.template"
    return {HANDLER: template.read_text(encoding="utf-8"), HANDLER_REQUIREMENTS: f"{TRANSFORMERS}\n"}


def widget_sentences(folder: Path) -> list[str]:
    """Return the sentences that the card offers to be tried; none where it has none or cannot be read."""
    try:
        widget = model_card((folder / CARD).read_text(encoding="utf-8-sig")).data.get("widget")
    except (OSError, ValueError):
        return []
    items = widget if isinstance(widget, list) else []
    return [item["text"] for item in items if isinstance(item, dict) and isinstance(item.get("text"), str)]


def _faults_of_json(folder: Path, names: Sequence[str]) -> list[str]:
    faults = []
    for name in names:
        if name.endswith(".json"):
            try:
                json_object((folder / name).read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                faults.append(f"{name} cannot be read ({first_line(error)}); save the model anew.")
    return faults


def _faults_of_weights(folder: Path, names: Sequence[str]) -> list[str]:
    if not any(matches(name, WEIGHTS) for name in names):
        others = sorted(
            path.name for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".pth", ".h5", ".ckpt")
        )
        there = f", but {', '.join(others)}" if others else ""
        return [
            f"{folder} has no model.safetensors{there}; weights are published as safetensors alone, so save it anew."
        ]
    if WEIGHTS_INDEX not in names:
        return []
    try:
        shards = json_object((folder / WEIGHTS_INDEX).read_text(encoding="utf-8")).get("weight_map")
    except (OSError, ValueError):
        return []  # a fault that is found by itself
    if not isinstance(shards, dict) or not all(isinstance(name, str) for name in shards.values()):
        return [f"{WEIGHTS_INDEX} is not an index of weights; save the model anew."]
    missing = sorted(set(shards.values()) - set(names))
    return [f"{WEIGHTS_INDEX} names {', '.join(missing)}, not in {folder}; save the model anew."] if missing else []


def _faults_of_code(folder: Path) -> list[str]:
    """Return the Python files that are not exactly those of this package."""
    elsewhere = [name for name in remote_classes(folder) if "--" in name]
    faults = [
        f"{CONFIG} takes {name:.200} from another repository; load the model with this package, and save it anew."
        for name in elsewhere
    ]
    modules = [f"{module}.py" for module in travelling_modules(folder)]
    missing = [name for name in modules if not os.path.isfile(folder / name)]
    if missing:
        names = ", ".join(f"{name:.200}" for name in missing)
        faults.append(f"{folder} lacks {names}, which the model's code needs; save the model anew.")
    for name in modules:
        original, path = files("hf_xorner.models") / name, folder / name
        if os.path.isfile(path) and not (original.is_file() and path.read_bytes() == original.read_bytes()):
            faults.append(f"{name} is not the file of this version of the package; save the model anew.")
    if os.path.isfile(folder / HANDLER):
        for name, text in handler_files().items():
            path = folder / name
            if path.is_file() and path.read_bytes() != text.encode():
                faults.append(f"{name} is not the file that --space writes; write it anew.")
    return faults


def _faults_of_card(folder: Path, wanted: bool) -> list[str]:
    path = folder / CARD
    if not path.is_file():
        return [
            f"{folder} has no {CARD}; write the model's card by scripts/card.py, or publish it without one by "
            "--no_card true."
        ] * wanted
    try:
        card = model_card(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        return [f"{CARD}: its metadata cannot be read ({first_line(error)}); correct them."]
    faults = []
    if not card.data.to_dict():
        faults.append(f"{CARD} has no metadata; begin it with a block of YAML between two lines of ---.")
    absent = [name for name in pictures_of_card(folder) if not os.path.isfile(folder / name)]
    return faults + [f"{CARD} shows {name:.200}, which is not there; put it there, or take it out." for name in absent]


def _faults_of_size(folder: Path, names: Sequence[str], max_file_mb: float) -> list[str]:
    sizes = {name: (folder / name).stat().st_size for name in names}
    return [
        f"{name} has {size / MEGABYTE:,.1f} MB, more than {max_file_mb:,.0f}; save the model in smaller parts, or "
        "raise --max_file_mb."
        for name, size in sizes.items()
        if size > max_file_mb * MEGABYTE
    ]


def _texts(folder: Path, names: Sequence[str]) -> tuple[list[Text], list[str]]:
    """What the files say, and which say nothing that can be read."""
    texts, faults = [], []
    for name in names:
        try:
            texts.append(read_text(folder, name))
        except (OSError, ValueError) as error:
            faults.append(f"{name} cannot be read ({first_line(error)}); save the model anew.")
    return texts, faults


def _described(folder: Path, name: str) -> ModelFile:
    path = folder / name
    return ModelFile(name, path.stat().st_size, sha256_of(path))


def _left(folder: Path, names: Sequence[str]) -> list[str]:
    used = {Path(name).parts[0] for name in names}
    return sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir() if path.name not in used)
