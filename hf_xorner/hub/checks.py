"""Whether a folder is fit for others: everything that is wrong with it, said at once."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from .. import models
from ..errors import first_line
from ..training.facts import json_object
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
from .card_sections import model_card
from .card_text import one_line
from .loading import INVENTED_SENTENCE, Tagged, tag_as_stranger
from .text_checks import Text, faults_of_text, places_of_machine, read_text, sentences_in

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
        original, path = files(models) / name, folder / name
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
    with (folder / name).open("rb") as file:
        found = hashlib.sha256()
        while piece := file.read(1 << 20):
            found.update(piece)
    return ModelFile(name, (folder / name).stat().st_size, found.hexdigest())


def _left(folder: Path, names: Sequence[str]) -> list[str]:
    used = {Path(name).parts[0] for name in names}
    return sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir() if path.name not in used)
