"""The files, settings and weights that make up a saved model, apart from what training leaves beside them."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedConfig

from ..files import FACTS_FILE

CONFIG, TOKENIZER_CONFIG, CARD = "config.json", "tokenizer_config.json", "README.md"
WEIGHTS = ("model.safetensors", "model-*-of-*.safetensors")
PICTURES = ("*.png", "*.svg", "*.jpg", "*.jpeg", "*.gif", "*.webp")

#: File names, as patterns of `fnmatch`. The pickles of a checkpoint (optimizer, arguments) are not among them.
MODEL_FILES = (
    *(CONFIG, *WEIGHTS, "model.safetensors.index.json", TOKENIZER_CONFIG, "tokenizer.json", "piece_tokenizer.json"),
    *("special_tokens_map.json", "added_tokens.json", CARD, FACTS_FILE, "LICENSE", *PICTURES),
)

#: The code of an Inference Endpoint, and the packages that are installed for it.
HANDLER, HANDLER_REQUIREMENTS = "handler.py", "requirements.txt"

#: The address of an image in the card, in Markdown or HTML.
_SHOWN = re.compile(r"""!\[[^\]]{0,500}\]\(\s*<?([^)\s>]+)|<img\b[^>]{0,500}?\bsrc\s*=\s*["']([^"']+)""")

#: Entries of a saved config that describe its file or the program that wrote it, or that were chosen after training.
_OF_THE_FILE = (
    *("_name_or_path", "transformers_version", "architectures", "auto_map", "torch_dtype", "dtype", "min_score"),
)

#: The limit of JSON's nesting.
_DEEPEST = 100


def settings_of(config: PreTrainedConfig) -> dict[str, Any]:
    """Return the entries of a config that describe the model."""
    return {name: value for name, value in config.to_dict().items() if name not in _OF_THE_FILE}


@torch.no_grad()
def tensors_digest(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Return the SHA-256 of named tensors."""
    digest = hashlib.sha256()
    for name, value in tensors:
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def files_of_model(folder: Path) -> list[str]:
    """Return the sorted relative paths of the files that belong to the model in a folder.

    These are `MODEL_FILES`, the modules that config and tokenizer name and those that they import, the images of the
    card, and the handler of an endpoint with its requirements.
    """
    named = [path.name for path in folder.iterdir() if path.is_file() and matches(path.name, MODEL_FILES)]
    wanted = {*named, *(f"{module}.py" for module in travelling_modules(folder)), *pictures_of_card(folder)}
    if (folder / HANDLER).is_file():
        wanted |= {HANDLER, HANDLER_REQUIREMENTS}
    return sorted(name for name in wanted if os.path.isfile(folder / name))  # False for a name that is too long


def travelling_modules(folder: Path) -> list[str]:
    """Return the modules that config and tokenizer name and their relative imports, even if the files are missing."""
    waiting = [name.partition(".")[0] for name in remote_classes(folder) if "--" not in name]
    found: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _neighbours(folder / f"{module}.py")
    return sorted(found)


def remote_classes(folder: Path) -> list[str]:
    """Return the classes in `auto_map` and `custom_pipelines`, as `module.Class` or `owner/name--module.Class`."""
    names: list[Any] = []
    for file in (CONFIG, TOKENIZER_CONFIG):
        found = _read_object(folder / file)
        for value in _values(found.get("auto_map")):
            names += value if isinstance(value, list) else [value]
        names += [value.get("impl") for value in _values(found.get("custom_pipelines")) if isinstance(value, dict)]
    return [name for name in names if isinstance(name, str)]


def pictures_of_card(folder: Path) -> list[str]:
    """Return the relative paths of the images that the card shows from its own repository, even if they are missing."""
    try:
        text = (folder / CARD).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    addresses = [one or other for one, other in _SHOWN.findall(text)]
    own = [address.removeprefix("./") for address in addresses if not re.match(r"[a-z][a-z+.-]*:|/|#", address)]
    # Never outside of the folder.
    return [path for path in own if ".." not in Path(path).parts and matches(path.lower(), PICTURES)]


def _values(found: Any) -> list[Any]:
    return list(found.values()) if isinstance(found, dict) else []


def _read_object(path: Path) -> dict[str, Any]:
    try:
        return json_object(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _neighbours(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level and node.module]


def json_object(text: str) -> dict[str, Any]:
    """Read a JSON object that every JSON reader accepts: finite numbers, valid strings, no deep nesting.

    Raises:
        ValueError: If it is something else.
    """
    try:
        content = json.loads(text, parse_constant=_finite, parse_float=_finite)
        level: list[Any] = [content] if isinstance(content, (dict, list)) else []
        for _ in range(_DEEPEST):
            values = (outer.values() if isinstance(outer, dict) else outer for outer in level)
            level = [inner for inner in chain.from_iterable(values) if isinstance(inner, (dict, list))]
    except RecursionError:
        level = [None]
    if level:
        raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    json.dumps(content, ensure_ascii=False).encode()  # raises for half of a surrogate pair
    return content


def _finite(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
        raise ValueError(f"{digits[:20]} is not a finite number")
    return number
