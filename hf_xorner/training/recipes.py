"""Recipes: the options of a run as a YAML file, those of the papers' tables among the package's own."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.composer import ComposerError

from ..errors import first_line

ROOT = Path(__file__).parent.parent / "recipes"
EXTENDS = "extends"

_SUFFIXES = (".yaml", ".yml")

# More than any recipe or table needs.
_MOST_BYTES, _DEEPEST = 2**18, 20
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

    Raises:
        ValueError: If it cannot be read, or is something else.
    """
    place = f"The {what} {path}"
    try:
        if path.exists() and not path.is_file():
            raise ValueError(f"{place} cannot be read: it is not a file.")
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"{place} cannot be read: it has more than {_MOST_BYTES:,} bytes.")
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ValueError(f"{place} cannot be read: {reason}.") from None
    found = yaml_value(text, place)
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{place} is no list of options; write one 'option: value' a line.")
    return found


def yaml_value(text: str, place: str) -> Any:
    """Read YAML.

    Args:
        text: The YAML.
        place: Where it is from, for messages.

    Raises:
        ValueError: If it is not valid, has aliases, or is nested too deeply.
    """
    try:
        return yaml.load(text, _Loader)
    # Besides its own errors, PyYAML raises those of the constructors of numbers and dates.
    except Exception as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or first_line(error)
        raise ValueError(f"{place} is not valid YAML{line}: {reason}.") from None


class _Loader(yaml.SafeLoader):
    """Reads YAML without aliases, by which a short file can expand to any size, and without deep nesting."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node, unless it is an alias or nested too deeply."""
        if self.check_event(yaml.AliasEvent):
            raise ComposerError(None, None, "aliases are not supported", self.peek_event().start_mark)
        if self.depth == _DEEPEST:
            raise ComposerError(None, None, "it is nested too deeply", self.peek_event().start_mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


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
