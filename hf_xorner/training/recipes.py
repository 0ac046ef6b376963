"""Recipes: the options of a run as a YAML file, those of the papers' tables among the package's own."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parent.parent / "recipes"
EXTENDS = "extends"

_SUFFIXES = (".yaml", ".yml")
_TABLE = re.compile(r"table\d+")


class Recipe(NamedTuple):
    """A recipe by its name, with what it extends taken in.

    Attributes:
        name: Where it lies below the package's recipes, without the suffix; of another file, the name without folders.
        options: Its options. One that is null takes back what an extended recipe says.
    """

    name: str
    options: dict[str, Any]


def recipe_names() -> list[str]:
    """The names of the package's recipes, such as li2020/table1/cross."""
    return [name for name in _packaged() if not is_table(name)]


def table_names() -> list[str]:
    """The names of the package's tables, such as li2020/table1."""
    return [name for name in _packaged() if is_table(name)]


def is_table(name: str) -> bool:
    """Whether a name of the package is that of a whole table."""
    return _TABLE.fullmatch(Path(name).name) is not None


def read_recipe(source: str) -> Recipe:
    """Read a recipe and those that it extends.

    Args:
        source: The name of one of the package's, or a path.

    Raises:
        ValueError: If there is no such recipe, or it is no list of options, or extends what is none.
    """
    path = _located(source)
    return Recipe(_name_of(path), _options_of(path, []))


def read_yaml(path: Path, what: str) -> dict[str, Any]:
    """Read a YAML file that maps names to values.

    Args:
        path: The file.
        what: What it is, for messages.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ValueError(f"The {what} {path} cannot be read: {reason}.") from None
    except yaml.YAMLError as error:
        raise ValueError(f"The {what} {path} is no YAML: {error}.") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"The {what} {path} is no list of options; write one 'option: value' a line.")
    return found


def nearest(name: str, names: list[str]) -> str:
    """The names most like one, as the end of a sentence."""
    near = get_close_matches(name, names, n=3, cutoff=0.3) or names[:3]
    return f"the nearest names are {', '.join(near)}"


def _packaged() -> list[str]:
    return sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.rglob("*.yaml"))


def _located(source: str) -> Path:
    """The file of a recipe: one that is there, one of the package, or one that will be found missing."""
    path, name = Path(source), source.removesuffix(".yaml")
    written_as_path = path.suffix in _SUFFIXES
    if written_as_path and path.is_file():
        return path
    if name in recipe_names():
        return ROOT / f"{name}.yaml"
    if name in table_names():
        own = ", ".join(other for other in recipe_names() if other.startswith(f"{name}/"))
        raise ValueError(
            f"{source!r} is a whole table, which scripts/reproduce.py runs; its recipes are {own or 'those of others'}."
        )
    if written_as_path or path.is_file():
        return path
    raise ValueError(
        f"The recipe {source!r} is unknown: there is no such file, and of the package's recipes "
        f"{nearest(name, recipe_names())}."
    )


def _name_of(path: Path) -> str:
    resolved = path.resolve()
    root = ROOT.resolve()
    return resolved.relative_to(root).with_suffix("").as_posix() if root in resolved.parents else path.stem


def _options_of(path: Path, below: list[Path]) -> dict[str, Any]:
    """The options of a file, over those of the recipe that it extends.

    Args:
        path: The file.
        below: The files that extend it, by way of one another.
    """
    if path.resolve() in below:
        chain = " extends ".join(_name_of(step) for step in [*below[below.index(path.resolve()) :], path])
        raise ValueError(f"The recipe {path} extends itself: {chain}; take one of these lines out.")
    options = read_yaml(path, "recipe")
    if EXTENDS not in options:
        return options
    parent = options.pop(EXTENDS)
    if not isinstance(parent, str):
        raise ValueError(f"The recipe {path} extends {parent!r}; name one recipe.")
    return {**_options_of(_parent(parent, path), [*below, path.resolve()]), **options}


def _parent(name: str, path: Path) -> Path:
    """The file that a recipe extends: one of the package's by its name, or one by its path from the recipe's folder."""
    beside = path.parent / name
    if name in recipe_names():
        return ROOT / f"{name}.yaml"
    if beside.is_file():
        return beside
    raise ValueError(
        f"The recipe {path} extends {name!r}, which is no recipe; of the package's {nearest(name, recipe_names())}."
    )
