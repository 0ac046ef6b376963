"""What the modules that travel beside the weights may do: strangers run them on their own machines.

This guards against mistakes, such as a line left from debugging. It is no prison for code that means harm.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from pathlib import Path

#: Of the standard library, what computes and touches nothing.
HARMLESS = {
    *("__future__", "abc", "collections", "contextlib", "copy", "dataclasses", "enum", "functools", "typing"),
    *("bisect", "heapq", "itertools", "math", "numbers", "random", "warnings"),
    *("json", "re", "string", "textwrap", "unicodedata"),
}

#: The libraries that every user has; and of them, what reads or writes files, runs programs or asks the network.
BARRED = {
    "torch": (
        *("load", "save", "from_file", "hub", "package", "serialization", "jit", "classes", "ops.load_library"),
        *("utils.cpp_extension", "utils.model_zoo", "multiprocessing", "distributed"),
    ),
    "numpy": (
        *("load", "save", "savez", "savez_compressed", "savetxt", "loadtxt", "genfromtxt", "fromfile", "memmap"),
        *("lib", "f2py", "ctypeslib", "DataSource"),
    ),
    "transformers": ("pipeline", "utils.hub", "dynamic_module_utils", "file_utils"),
    "tokenizers": (),
}

#: What the handler of an endpoint may use besides: it lies there to load the model beside it.
HANDLER_MAY_USE = ("transformers.pipeline",)

#: What is built in, and reads, writes or runs what is not in the file.
BARRED_NAMES = {"open", "exec", "eval", "compile", "input", "breakpoint", "globals"}
#: By these, everything can be reached from anything; the last ones load from disk or network.
BARRED_ATTRIBUTES = {
    *("__globals__", "__builtins__", "__subclasses__", "__code__", "__closure__", "__loader__"),
    *("f_globals", "gi_frame", "tofile", "push_to_hub", "load_library"),
}

#: A package of the index with its extras and versions: no option, address or folder.
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w.,\s-]*\])?\s*(?:[<>=!~]=?=?[\w.,<>=!~*+\s-]*)?(?:;[^@]*)?")


def faults_of_requirements(path: Path) -> list[str]:
    """Return the lines of a file of requirements that name more than packages and their versions, each in a sentence.

    What they hold is not shown: it may be the password of an index.
    """
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    bare = [re.sub(r"(^|\s)#.*", "", line).strip() for line in lines]
    return [
        f"{path.name}, line {number}: is no package with versions; an endpoint is to install such alone, take it out."
        for number, line in enumerate(bare, 1)
        if line and not _REQUIREMENT.fullmatch(line)
    ]


def faults_of_module(path: Path, neighbours: Container[str], allowed: Container[str] = ()) -> list[str]:
    """Return what a travelling module does that it may not, each in one sentence.

    Args:
        path: The module.
        neighbours: The names of the modules beside it, which it may import by a dot.
        allowed: What else it may use, by full names.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (ValueError, SyntaxError) as error:
        return [f"{path.name} is no Python that can be read ({error}); save the model anew."]
    aliases = _aliases(tree)
    found = [
        (line, what)
        for node in ast.walk(tree)
        for line, what in (*_faults_of_import(node, neighbours, allowed), *_faults_of_use(node, aliases, allowed))
    ]
    advice = "code that strangers run computes, and does nothing else; take it out."
    return [f"{path.name}, line {line}: {what}; {advice}" for line, what in dict.fromkeys(sorted(found))]


def _faults_of_import(node: ast.AST, neighbours: Container[str], allowed: Container[str]) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level:
        if node.level > 1 or node.module not in neighbours:
            yield node.lineno, f"imports {'.' * node.level}{node.module or ''}, which does not lie beside it"
        return
    elif isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return
    for name in names:
        top = name.partition(".")[0]
        if top not in BARRED and top not in HARMLESS:
            yield node.lineno, f"imports {top}"
        elif _is_barred(name) and name not in allowed:
            yield node.lineno, f"imports {name}"


def _faults_of_use(node: ast.AST, aliases: dict[str, str], allowed: Container[str]) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Name) and (node.id in BARRED_NAMES or _is_inner(node.id)):
        yield node.lineno, f"uses {node.id}"
    elif isinstance(node, ast.Attribute):
        name = _full_name(node, aliases)
        if node.attr in BARRED_ATTRIBUTES:
            yield node.lineno, f"uses {node.attr}"
        elif name and _is_barred(name) and name not in allowed:
            yield node.lineno, f"uses {name}"
        elif node.attr == "from_pretrained" and name is not None:
            yield node.lineno, f"uses {name}, which may reach for the network"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr"):
        yield from _faults_of_getattr(node, aliases)


def _faults_of_getattr(node: ast.Call, aliases: dict[str, str]) -> Iterator[tuple[int, str]]:
    """An attribute by its name as a string: the same rules, and none at all of a library's."""
    if len(node.args) < 2:
        return
    owner, name = node.args[:2]
    if isinstance(name, ast.Constant) and name.value in BARRED_ATTRIBUTES:
        yield node.lineno, f"uses {name.value}"
    full = _full_name(owner, aliases)
    if full and full.partition(".")[0] in BARRED:
        yield node.lineno, f"takes from {full} what a string names"


def _aliases(tree: ast.AST) -> dict[str, str]:
    """What the names that imports bind stand for."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            bound |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return bound


def _full_name(node: ast.AST, aliases: dict[str, str]) -> str | None:
    """The full name of what is imported and then taken apart by dots; None of anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return None
    return ".".join([aliases[node.id], *parts])


def _is_inner(name: str) -> bool:
    """Whether a bare name is one of Python's own between underscores, but for the harmless ones."""
    return name.startswith("__") and name.endswith("__") and name not in ("__name__", "__class__", "__all__", "__doc__")


def _is_barred(name: str) -> bool:
    library, _, rest = name.partition(".")
    return any(rest == barred or rest.startswith(f"{barred}.") for barred in BARRED.get(library, ()))
