"""Recipes: YAML files with the options of a run; the package contains those of the papers' tables."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.composer import ComposerError

from ..errors import first_line

ROOT = Path(__file__).parent.parent / "recipes"

# More than any recipe or table needs.
_MOST_BYTES, _DEEPEST = 2**18, 20
_TABLE = re.compile(r"table\d+")


class Recipe(NamedTuple):
    """A recipe with the options of those that it extends.

    Attributes:
        name: The path below the package's recipes, or the name of another file, without the suffix.
        options: The options. A null removes an option of an extended recipe.
    """

    name: str
    options: dict[str, Any]


def recipe_names() -> list[str]:
    """Return the names of the package's recipes, such as li2020/table1/cross."""
    return [name for name in _packaged() if not is_table(name)]


def table_names() -> list[str]:
    """Return the names of the package's tables, such as li2020/table1."""
    return [name for name in _packaged() if is_table(name)]


def is_table(name: str) -> bool:
    """Return whether a name is that of a table, not of a recipe."""
    return _TABLE.fullmatch(Path(name).name) is not None


def read_recipe(source: str) -> Recipe:
    """Read a recipe and those that it extends.

    Args:
        source: The name of one of the package's recipes, or a path.

    Raises:
        ValueError: If there is no such recipe, or it or one that it extends is faulty.
    """
    path = _located(source)
    return Recipe(_name_of(path), _options_of(path, []))


def read_yaml(path: Path, what: str) -> dict[str, Any]:
    """Read a YAML file that maps names to values.

    Args:
        path: The file.
        what: Its kind, for error messages.

    Raises:
        ValueError: If it cannot be read, or contains something else.
    """
    place = f"The {what} {path}"
    try:
        if path.exists() and not path.is_file():
            raise OSError(0, "it is not a file")
        if path.stat().st_size > _MOST_BYTES:
            raise OSError(0, f"it has more than {_MOST_BYTES:,} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ValueError(f"{place} cannot be read: {reason}.") from None
    found = yaml_value(text, place)
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{place} does not map options to values; write one 'option: value' a line.")
    return found


def yaml_value(text: str, place: str) -> Any:
    """Read YAML.

    Args:
        text: The YAML.
        place: Its origin, for error messages.

    Raises:
        ValueError: If it is not valid, contains aliases, or is nested too deeply.
    """
    try:
        return yaml.load(text, _Loader)
    # PyYAML also raises the errors of Python's numbers and dates.
    except Exception as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or first_line(error)
        raise ValueError(f"{place} is not valid YAML{line}: {reason}.") from None


class _Loader(yaml.SafeLoader):
    """Refuses deep nesting and aliases, with which a short file can expand to any size."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node, unless it is an alias or nested too deeply."""
        alias = self.check_event(yaml.AliasEvent)
        if alias or self.depth == _DEEPEST:
            fault = "aliases are not supported" if alias else "it is nested too deeply"
            raise ComposerError(None, None, fault, self.peek_event().start_mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


def nearest(name: str, names: list[str]) -> str:
    """Return the names most similar to one, as the end of a sentence."""
    near = get_close_matches(name, names, n=3, cutoff=0.3) or names[:3]
    return f"the nearest names are {', '.join(near)}"


def _packaged() -> list[str]:
    return sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.rglob("*.yaml"))


def _located(source: str) -> Path:
    """Return the file of a recipe, given by its name in the package or its path."""
    path, name = Path(source), source.removesuffix(".yaml")
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return path
    if name in recipe_names():
        return ROOT / f"{name}.yaml"
    if name in table_names():
        own = ", ".join(other for other in recipe_names() if other.startswith(f"{name}/"))
        raise ValueError(
            f"{source!r} is a table, which `hf-xorner reproduce` runs; its recipes are {own or 'those of others'}."
        )
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return path
    raise ValueError(
        f"The recipe {source!r} is unknown: there is no such file, and of the package's recipes "
        f"{nearest(name, recipe_names())}."
    )


def _name_of(path: Path) -> str:
    root, resolved = ROOT.resolve(), path.resolve()
    return resolved.relative_to(root).with_suffix("").as_posix() if root in resolved.parents else path.stem


def _options_of(path: Path, below: list[Path]) -> dict[str, Any]:
    """Return the options of a file and of the recipe that it extends; `below` are the files that extend this one."""
    if path.resolve() in below:
        chain = " extends ".join(_name_of(step) for step in [*below[below.index(path.resolve()) :], path])
        raise ValueError(f"The recipe {path} extends itself: {chain}; take one of these lines out.")
    options = read_yaml(path, "recipe")
    parent = options.pop("extends", "")
    if parent == "":
        return options
    if not isinstance(parent, str):
        raise ValueError(f"The recipe {path} extends {parent!r}; name one recipe.")
    file = ROOT / f"{parent}.yaml" if parent in recipe_names() else path.parent / parent
    if not file.is_file():
        raise ValueError(
            f"The recipe {path} extends {parent!r}, which is not a recipe; of the package's "
            f"{nearest(parent, recipe_names())}."
        )
    return {**_options_of(file, [*below, path.resolve()]), **options}
