"""Which files of a folder are the model: what others need to load and to judge it, and nothing that training left."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .facts import FACTS_FILE, json_object

CONFIG, TOKENIZER_CONFIG, CARD = "config.json", "tokenizer_config.json", "README.md"
WEIGHTS = ("model.safetensors", "model-*-of-*.safetensors")
PICTURES = ("*.png", "*.svg", "*.jpg", "*.jpeg", "*.gif", "*.webp")

#: By name, as `fnmatch` reads it. Neither optimisers nor arguments of training, which are pickles, are among them.
MODEL_FILES = (
    CONFIG,
    *WEIGHTS,
    "model.safetensors.index.json",
    TOKENIZER_CONFIG,
    "tokenizer.json",
    "piece_tokenizer.json",
    "special_tokens_map.json",
    "added_tokens.json",
    CARD,
    FACTS_FILE,
    "LICENSE",
    *PICTURES,
)

#: What an Inference Endpoint runs, and what it installs for it: the second is nothing without the first.
HANDLER, HANDLER_REQUIREMENTS = "handler.py", "requirements.txt"

#: A picture of the card by its address, as Markdown or HTML has it.
_SHOWN = re.compile(r"""!\[[^\]]{0,500}\]\(\s*<?([^)\s>]+)|<img\b[^>]{0,500}?\bsrc\s*=\s*["']([^"']+)""")


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name fits one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def files_of_model(folder: Path) -> list[str]:
    """Return the files of a folder that belong to the model, by their paths in it, in order.

    These are the files of `MODEL_FILES`, the modules that config and tokenizer name with their neighbours, what
    pictures of folders below the card shows, and the handler of an endpoint with what it requires.
    """
    named = [path.name for path in folder.iterdir() if path.is_file() and matches(path.name, MODEL_FILES)]
    wanted = {*named, *(f"{module}.py" for module in travelling_modules(folder)), *pictures_of_card(folder)}
    if (folder / HANDLER).is_file():
        wanted |= {HANDLER, HANDLER_REQUIREMENTS}
    return sorted(name for name in wanted if os.path.isfile(folder / name))  # False for a name that is too long


def travelling_modules(folder: Path) -> list[str]:
    """Return the modules that config and tokenizer name, and all that these import by a dot, whether there or not."""
    waiting = [name.partition(".")[0] for name in remote_classes(folder) if "--" not in name]
    found: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _neighbours(folder / f"{module}.py")
    return sorted(found)


def remote_classes(folder: Path) -> list[str]:
    """Return what config and tokenizer have loaded by name, as `module.Class` or `owner/name--module.Class`.

    These are the classes of `auto_map`, and those of pipelines that a config brings along.
    """
    names: list[Any] = []
    for file in (CONFIG, TOKENIZER_CONFIG):
        found = _read_object(folder / file)
        for value in _values(found.get("auto_map")):
            names += value if isinstance(value, list) else [value]
        names += [value.get("impl") for value in _values(found.get("custom_pipelines")) if isinstance(value, dict)]
    return [name for name in names if isinstance(name, str)]


def pictures_of_card(folder: Path) -> list[str]:
    """Return the pictures that the card shows from its own repository, by their paths in it, whether there or not."""
    try:
        text = (folder / CARD).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    addresses = [one or other for one, other in _SHOWN.findall(text)]
    own = [address.removeprefix("./") for address in addresses if not re.match(r"[a-z][a-z+.-]*:|/|#", address)]
    # Nothing is fetched from outside of the folder.
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
