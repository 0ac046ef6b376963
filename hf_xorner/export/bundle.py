"""The code that runs an exported model, as one file that an export adds to the model."""

from __future__ import annotations

import ast
from importlib.resources import files

#: The runtime, after the modules that it imports.
MODULES = ("models/word_ids.py", "entities.py", "export/runtime.py")


def runtime_code() -> str:
    """Return `MODULES` as one file, which imports nothing of this package."""
    parts = []
    for name in MODULES:
        source = (files("hf_xorner") / name).read_text(encoding="utf-8")
        docstring, *nodes = ast.parse(source).body
        lines = source.splitlines(keepends=True)
        joined = [node for node in nodes if isinstance(node, ast.ImportFrom) and _is_not_needed(node)]
        for node in reversed([docstring, *joined]):
            del lines[node.lineno - 1 : node.end_lineno]
        parts.append("".join(lines).strip() + "\n")
    return "\n\n".join([f'"""{_docstring(source)}"""\n\nfrom __future__ import annotations\n', *parts])


def _is_not_needed(node: ast.ImportFrom) -> bool:
    """True for imports of the joined modules, and for `__future__`, which must stand first."""
    return node.level > 0 or node.module == "__future__"


def _docstring(source: str) -> str:
    return ast.get_docstring(ast.parse(source), clean=False) or ""
