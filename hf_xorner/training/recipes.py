"""Recipes: YAML files with the options of a run; the package includes the recipes of the papers' tables."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ..files import refuse_aliases

ROOT = Path(__file__).parent.parent / "recipes"

_TABLE = re.compile(r"(table|section)\d+")


class Recipe(NamedTuple):
    """A recipe, including the options of the recipes that it extends.

    Attributes:
        name: The path in the package's folder of recipes, or the name of another file, without the suffix.
        options: The options. A null removes an option of an extended recipe.
    """

    name: str
    options: dict[str, Any]


@cache
def recipe_names() -> list[str]:
    """Return the names of the package's recipes, such as li2020/table1/cross."""
    return [name for name in _packaged() if not is_table(name)]


@cache
def table_names() -> list[str]:
    """Return the names of the package's tables, such as li2020/table1."""
    return [name for name in _packaged() if is_table(name)]


def is_table(name: str) -> bool:
    """Return True if a name is that of a table, not of a recipe."""
    return _TABLE.fullmatch(Path(name).name) is not None


def read_recipe(source: str) -> Recipe:
    """Read a recipe and those that it extends.

    Args:
        source: The name of one of the package's recipes, or a path.

    Raises:
        ValueError: If there is no such recipe, or it or a recipe that it extends is invalid.
    """
    path = _located(source)
    return Recipe(_name_of(path), _options_of(path, []))


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that maps names to values.

    Raises:
        ValueError: If it contains something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
        refuse_aliases(text)
        content = yaml.load(text, _Loader)
    except (yaml.YAMLError, UnicodeError) as error:
        raise ValueError(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise ValueError(f"{path} does not map options to values; write one 'option: value' per line.")
    return content


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as a number, as YAML 1.2 does."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def nearest(name: str, names: list[str]) -> str:
    """Return the names most similar to one, as the end of a sentence."""
    near = get_close_matches(name, names, n=3, cutoff=0.3) or names[:3]
    return f"the nearest names are {', '.join(near)}"


def is_recipe(name: str) -> bool:
    """Return True for the name of a recipe, a misspelt one, a table, or a YAML file; other names are corpora."""
    papers = {recipe.partition("/")[0] for recipe in recipe_names()}
    misspelt = name.count("/") > 1 and name.partition("/")[0] in papers and not Path(name).exists()
    return name in _packaged() or misspelt or name.endswith((".yaml", ".yml"))


@cache
def _packaged() -> tuple[str, ...]:
    return tuple(sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.rglob("*.yaml")))


def _located(source: str) -> Path:
    """Return the file of a recipe, given by its name in the package or its path."""
    path, name = Path(source), source.removesuffix(".yaml")
    if path.is_file():
        return path
    if name in recipe_names():
        return ROOT / f"{name}.yaml"
    if name in table_names():
        recipes = ", ".join(recipe for recipe in recipe_names() if recipe.startswith(f"{name}/"))
        raise ValueError(
            f"{source!r} is a table, which `hf-xorner reproduce` runs; its recipes are {recipes or 'those of others'}."
        )
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
        raise ValueError(f"The recipe {path} extends itself: {chain}; remove one of these lines.")
    options = read_yaml(path)
    parent = str(options.pop("extends", ""))
    if not parent:
        return options
    file = ROOT / f"{parent}.yaml" if parent in recipe_names() else path.parent / parent
    if not file.is_file():
        raise ValueError(
            f"The recipe {path} extends {parent!r}, which is neither a file in the same folder nor a recipe of the "
            f"package; {nearest(parent, recipe_names())}."
        )
    return {**_options_of(file, [*below, path.resolve()]), **options}
