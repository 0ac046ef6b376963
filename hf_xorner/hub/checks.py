"""Check that a model's folder is fit to be published, and list everything that is wrong with it."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from datasets import DatasetDict

from ..corpora import load_corpus
from ..corpora.load import CORPORA_VARIABLE, NAMED_CORPORA
from ..errors import DataError, first_line
from ..export.runtime import GRAPH_FILE, RUNTIME_FILE
from ..files import FACTS_FILE, file_fingerprint
from ..training.model_files import (
    CARD,
    CONFIG,
    HANDLER,
    HANDLER_REQUIREMENTS,
    WEIGHTS,
    files_of_model,
    json_object,
    matches,
    pictures_of_card,
    remote_classes,
    travelling_modules,
)
from .card_content import model_card, one_line
from .loading import INVENTED_SENTENCE, Tagged, tag_in_new_process
from .onnx_files import faults_of_onnx, text_of_graph

WEIGHTS_INDEX = "model.safetensors.index.json"
#: The releases that the handler was written for; the lower bound is that of pyproject.toml.
TRANSFORMERS = "transformers>=5.12,<6"
#: The generated corpus, whose sentences are not secret.
OWN = "xor"

#: Shorter sentences of a corpus may be anyone's; in words.
_LEAST_WORDS = 8
#: Letters of a sentence that are looked up before the whole sentence is searched for.
_PREFIX = 24
_MEGABYTE = 1_000_000
#: The longest header that safetensors reads.
_LONGEST_HEADER = 100_000_000
#: Files in the Hub's cache are named by their hashes.
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

#: The forms of secrets that are found.
_SECRETS = {
    "a private key": r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d",
    "an access token of the Hub": r"(?:hf|api_org)_(?:oauth_|jwt_)?[A-Za-z0-9]{20,}",
    "an access key of AWS": r"(?<![A-Z0-9])(?:AKIA|(?:ASIA|ABIA|ACCA)(?=[A-Z]*\d))[A-Z0-9]{16}(?![A-Z0-9])",
    # The key itself has no typical form, so its name is searched for.
    "a secret key of AWS": r"(?i:secret[_-]?access[_-]?key|aws[_-]?secret(?:[_-]?key)?)[\"'\s:=]{1,8}"
    r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
    "a token of GitHub": r"gh[oprsu]_[A-Za-z0-9]{30,}|github_pat_\w{22,}",
    "a key of OpenAI or Anthropic": r"(?<![A-Za-z0-9])sk-(?:(?:proj|svcacct|admin|ant)-[\w-]{20,}|[A-Za-z0-9]{20,})",
    "a token of Slack": r"xox[a-z]-[A-Za-z0-9-]{10,}",
    "a key of Google": r"AIza[\w-]{35}",
    # Passwords of these forms are placeholders: $TOKEN, ${TOKEN}, {token}, <token>, ***, ...
    "a password in a URL": r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"']*:"
    r"(?!(?:\$\{?\w+\}?|\{+\w+\}+|<[^>@]*>|\*+|\.+|…)@)[^\s/@\"']+@[\w\[]",
}
_SECRET = re.compile("|".join(f"({form})" for form in _SECRETS.values()), re.ASCII)
#: The joint of two string literals that Python concatenates, as in "hf_ab" + "cd".
_JOINT = re.compile(r"""["'][\s+\\]*[bfru]{0,2}["']""", re.IGNORECASE)
#: A string of JSON; a colon follows a key.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?')

#: Folders that hold users' files on some machine; URLs may have a part of the same name.
_ROOTS = "home|Users|root|tmp|var/folders|private/var|mnt|media|scratch|workspace"
_LOCAL_PATH = re.compile(
    rf"(?<![\w./:~-])(?:/(?:{_ROOTS})/[\w.~+-]+|[A-Za-z]:\\+(?:Users|Documents and Settings)\\+[\w.-]+)"
)


class Unfit(ValueError):
    """Raised with everything that keeps a folder from being published, one sentence a line."""


class ModelFile(NamedTuple):
    """A published file: its path, its size in bytes, and its hash."""

    name: str
    size: int
    sha256: str


class Checked(NamedTuple):
    """A folder that is fit to be published.

    Attributes:
        folder: The folder.
        files: The files of the model.
        left: Everything else in the folder, which is not published; folders end in a slash.
        tagged: The entities that the model found in example sentences, loaded without this package.
    """

    folder: Path
    files: list[ModelFile]
    left: list[str]
    tagged: list[Tagged]


def check_folder(
    folder: str | Path,
    *,
    card: bool = True,
    onnx: bool = False,
    max_file_mb: float = 5000,
    sentences: Iterable[Sequence[str]] = (),
) -> Checked:
    """Check that a model's folder is fit to be published, without using the network.

    Args:
        folder: The output of `save_pretrained` or a Trainer.
        card: Whether a model card is required.
        onnx: Whether the files of an export to ONNX are published, too.
        max_file_mb: The size limit of a file, in millions of bytes.
        sentences: The words of each sentence that no file may contain: those of the corpus.

    Raises:
        Unfit: If anything is wrong, with one sentence for each fault.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise Unfit(f"{folder} is not a folder; name the output folder of a training run.")
    if not (folder / CONFIG).is_file():
        raise Unfit(f"{folder} has no {CONFIG}, so there is no model in it; name the output folder of a training run.")
    names = files_of_model(folder)
    names += [name for name in (GRAPH_FILE, RUNTIME_FILE) if onnx and (folder / name).is_file()]
    faults = faults_of_places(folder, names)
    tagged: list[Tagged] = []
    if not faults:
        texts, unreadable = _texts(folder, names)
        # Foreign code is not run, and an incomplete model does not load.
        structure = [*unreadable, *_faults_of_weights(folder, names), *_faults_of_code(folder)]
        faults = [*structure, *_faults_of_card(folder, card), *_faults_of_size(folder, names, max_file_mb)]
        places = _places_of_machine(folder)
        faults += [fault for text in texts for fault in faults_of_text(text, places)]
        faults += sentences_in(texts, sentences)
        if not structure:
            try:
                tagged = tag_in_new_process(folder, names, widget_sentences(folder) or [INVENTED_SENTENCE])
            except ValueError as error:
                faults.append(f"{folder} does not load in a process without this package ({error}); save it again.")
        if onnx and not structure:
            faults += faults_of_onnx(folder, tagged)
    if faults:
        raise Unfit("\n".join(map(one_line, faults)))
    found = {name: file_fingerprint(folder / name) for name in names}
    described = [ModelFile(name, int(one["bytes"]), str(one["sha256"])) for name, one in found.items()]
    used = {Path(name).parts[0] for name in names}
    left = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir() if path.name not in used)
    return Checked(folder, described, left, tagged)


# --- Files -----------------------------------------------------------------------------------------------------------


def faults_of_places(folder: Path, names: Iterable[str]) -> list[str]:
    """Return a sentence for each file that links out of its folder, or whose name cannot be published.

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
            faults.append(f"{name} lies outside of {folder}, at {real}; replace it by a copy, or remove it.")
    return faults


def _faults_of_weights(folder: Path, names: Sequence[str]) -> list[str]:
    if not any(matches(name, WEIGHTS) for name in names):
        others = sorted(
            path.name for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".pth", ".h5", ".ckpt")
        )
        there = f", but {', '.join(others)}" if others else ""
        return [f"{folder} has no model.safetensors{there}; only safetensors are published, so save the model again."]
    try:
        index = json_object((folder / WEIGHTS_INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []  # there is none, or it is reported as unreadable
    shards = index.get("weight_map")
    if not isinstance(shards, dict) or not all(isinstance(name, str) for name in shards.values()):
        return [f"{WEIGHTS_INDEX} is not an index of weights; save the model again."]
    missing = sorted(set(shards.values()) - set(names))
    return [f"{WEIGHTS_INDEX} names {', '.join(missing)}, not in {folder}; save the model again."] if missing else []


def _faults_of_code(folder: Path) -> list[str]:
    """Return a sentence for each Python file that differs from that of this package."""
    faults = [
        f"{CONFIG} loads {name:.200} from another repository; load the model with this package, and save it again."
        for name in remote_classes(folder)
        if "--" in name
    ]
    modules = [f"{module}.py" for module in travelling_modules(folder)]
    if missing := [f"{name:.200}" for name in modules if not os.path.isfile(folder / name)]:
        faults.append(f"{folder} lacks {', '.join(missing)}, which the model's code needs; save the model again.")
    for name in modules:
        original, path = files("hf_xorner.models") / name, folder / name
        if os.path.isfile(path) and not (original.is_file() and path.read_bytes() == original.read_bytes()):
            faults.append(f"{name} is not the file of this version of the package; save the model again.")
    for name, text in handler_files().items() if os.path.isfile(folder / HANDLER) else ():
        if (folder / name).is_file() and (folder / name).read_bytes() != text.encode():
            faults.append(f"{name} is not the file that --space writes; write it again.")
    return faults


def handler_files() -> dict[str, str]:
    """Return the content of an Inference Endpoint's files by name."""
    template = files(__package__) / "space_files" / f"{HANDLER}.template"
    return {HANDLER: template.read_text(encoding="utf-8"), HANDLER_REQUIREMENTS: f"{TRANSFORMERS}\n"}


def _faults_of_card(folder: Path, required: bool) -> list[str]:
    path = folder / CARD
    if not path.is_file():
        fault = f"{folder} has no {CARD}; write it by `hf-xorner card`, or publish without one by --no_card true."
        return [fault] * required
    try:
        card = model_card(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        return [f"{CARD}: its metadata cannot be read ({first_line(error)}); correct them."]
    faults = []
    if not card.data.to_dict():
        faults.append(f"{CARD} has no metadata; begin it with a block of YAML between two lines of ---.")
    absent = [name for name in pictures_of_card(folder) if not os.path.isfile(folder / name)]
    return faults + [f"{CARD} shows {name:.200}, which does not exist; add or remove it." for name in absent]


def widget_sentences(folder: Path) -> list[str]:
    """Return the example sentences of the card; none if it has none or cannot be read."""
    try:
        widget = model_card((folder / CARD).read_text(encoding="utf-8-sig")).data.get("widget")
    except (OSError, ValueError):
        return []
    items = widget if isinstance(widget, list) else []
    return [item["text"] for item in items if isinstance(item, dict) and isinstance(item.get("text"), str)]


def _faults_of_size(folder: Path, names: Sequence[str], max_file_mb: float) -> list[str]:
    sizes = {name: (folder / name).stat().st_size / _MEGABYTE for name in names}
    return [
        f"{name} has {size:,.1f} MB, more than {max_file_mb:,.0f}; save the model in shards, or raise --max_file_mb."
        for name, size in sizes.items()
        if size > max_file_mb
    ]


# --- Texts -----------------------------------------------------------------------------------------------------------


class Text(NamedTuple):
    """The text of a file.

    Attributes:
        name: The file, by its path in the model's folder.
        passages: Line number (0 if there are no lines) and text, without the keys of JSON: these are names, and in a
            tokenizer the vocabulary.
        lines: The same, with the keys.
    """

    name: str
    passages: list[tuple[int, str]]
    lines: Sequence[tuple[int, str]] = ()


def read_text(folder: Path, name: str) -> Text:
    """Read the lines of a text, of JSON with its escapes decoded, or what is no weight in a file of weights.

    Raises:
        OSError: If it cannot be read.
        ValueError: If the header is broken.
    """
    path = folder / name
    header = path.suffix in (".safetensors", ".onnx")
    read = _header_of if path.suffix == ".safetensors" else text_of_graph
    content = read(path) if header else path.read_text(encoding="utf-8", errors="replace")
    # Without zeros, ASCII in UTF-16 is found as well.
    lines = [(0 if header else number, line) for number, line in enumerate(content.replace("\0", "").split("\n"), 1)]
    if path.suffix not in (".json", ".safetensors"):
        return Text(name, lines, lines)
    values = [(number, _decoded(one)) for number, line in lines for one in _STRING.finditer(line) if not one[1]]
    keyed = [(number, _STRING.sub(lambda one: f'"{_decoded(one)}"{one[1] or ""}', line)) for number, line in lines]
    return Text(name, values, keyed)


def _texts(folder: Path, names: Sequence[str]) -> tuple[list[Text], list[str]]:
    """Return the texts of files, and a sentence for each file that cannot be read."""
    texts, faults = [], []
    for name in names:
        try:
            texts.append(read_text(folder, name))
            if name.endswith(".json"):
                json_object((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            faults.append(f"{name} cannot be read ({first_line(error)}); save the model again.")
    return texts, faults


def _header_of(path: Path) -> str:
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > min(path.stat().st_size, _LONGEST_HEADER):
            raise ValueError("its header is longer than the file, or than safetensors reads")
        return file.read(size).decode("utf-8")


def _decoded(found: re.Match[str]) -> str:
    """Return a string of JSON without its quotes and escapes."""
    literal = found[0].removesuffix(found[1] or "")
    try:
        return str(json.loads(literal, strict=False)) if "\\" in literal else literal[1:-1]
    except ValueError:
        return literal


def _places_of_machine(folder: Path) -> list[str]:
    """Return the home, the model's, the working and the temporary folder, longest first."""
    own = [Path.home(), folder.absolute(), folder.resolve(), Path.cwd(), Path(tempfile.gettempdir())]
    # Many machines have the same folders directly below the root.
    return sorted({str(place) for place in own if len(place.parts) > 2}, key=len, reverse=True)


def faults_of_text(text: Text, places: Sequence[str]) -> list[str]:
    """Return a sentence with file and line for each secret and each path of a machine in a text.

    Args:
        text: The text of the file.
        places: Folders of this machine.
    """
    found = [
        (line, f"contains {kind} ({secret[:4]}…); remove it, and revoke it, as others may have seen it")
        for line, kind, secret in secrets_in(text.lines)
    ]
    for line, passage in text.passages:
        place = next((place for place in places if place in passage), None) or _LOCAL_PATH.search(passage)
        if place:
            shown = place if isinstance(place, str) else place[0]
            found.append((line, f"{shown} is a path of one machine; name the file or folder without it"))
    return list(
        dict.fromkeys(
            f"{text.name}, line {line}: {fault}." if line else f"{text.name}: {fault}." for line, fault in found
        )
    )


def secrets_in(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield line number, kind and text of each secret.

    String literals that are concatenated, in one line or with the next one, are read as one string.

    Args:
        lines: Numbers and texts.
    """
    for (number, line), (_, following) in zip(lines, [*lines[1:], (0, "")], strict=True):
        end = len(_JOINT.sub("", line.rstrip(" \t\r+\\"))) - 1
        for found in _SECRET.finditer(_JOINT.sub("", f"{line}\n{following}")):
            if found.start() < end:  # else it begins in the next line, and is found there
                yield number, list(_SECRETS)[(found.lastindex or 1) - 1], found[0]


# --- Sentences of the corpus -----------------------------------------------------------------------------------------


def sentences_in(texts: Iterable[Text], sentences: Iterable[Sequence[str]]) -> list[str]:
    """Return a sentence for each file that contains a sentence of a corpus.

    Spaces, punctuation, case and tokenisation are ignored, and so are sentences of fewer than eight words.

    Args:
        texts: The texts of the files.
        sentences: The words of each sentence of the corpus.
    """
    held = {text.name: _letters("\n".join(passage for _, passage in text.passages)) for text in texts}
    prefixes = {name: {letters[at : at + _PREFIX] for at in range(len(letters))} for name, letters in held.items()}
    faults: dict[str, str] = {}
    for words in sentences:
        if sum(any(map(str.isalnum, word)) for word in words) < _LEAST_WORDS:
            continue
        wanted = _letters("".join(words))
        for name, letters in held.items():
            likely = wanted[:_PREFIX] in prefixes[name] or len(wanted) < _PREFIX
            if name not in faults and likely and wanted in letters:
                begin = " ".join(words[:3])
                faults[name] = (
                    f"{name} contains a sentence of the corpus ({begin} …), which is not yours to publish; replace it."
                )
    return list(faults.values())


def _letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text.casefold())


def sentences_of(
    folder: str | Path, dataset: str | None = None, data_dir: str | Path | None = None
) -> Iterator[Sequence[str]]:
    """Yield the words of each sentence of a model's training corpora, which are loaded when they are requested.

    Args:
        folder: The model's folder, whose facts.json may name the corpora.
        dataset: The corpus, as `load_corpus` takes it; by default those of the facts whose files are available.
        data_dir: The folder of the files of a named corpus.

    Raises:
        DataError: If `dataset` cannot be loaded.
    """
    if dataset is not None:
        yield from _words_of(load_corpus(dataset, data_dir))
        return
    data_dir = data_dir if data_dir is not None else os.environ.get(CORPORA_VARIABLE)
    for named in _named_in_facts(Path(folder) / FACTS_FILE):
        available = os.path.exists(named) or (named in NAMED_CORPORA and data_dir is not None)
        if available and named != OWN:
            with suppress(DataError):
                yield from _words_of(load_corpus(named, data_dir if named in NAMED_CORPORA else None))


def _words_of(corpus: DatasetDict) -> Iterator[Sequence[str]]:
    for split in corpus.values():
        yield from split["tokens"]


def _named_in_facts(path: Path) -> list[str]:
    """Return the names of the corpora in a file of facts."""
    try:
        data = json_object(path.read_text(encoding="utf-8"))["data"]
        named = [data["source"], *(more["source"] for more in data.get("more_data", []))]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []
    return [name for name in named if isinstance(name, str)]
