"""Export taggers to ONNX, and run them without PyTorch and transformers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

#: The runtime, after the modules that it imports.
MODULES = ("models/word_ids.py", "entities.py", "export/runtime.py")
#: Imports of the joined modules, and that of `__future__`, which must stand first.
_LEFT_OUT = re.compile(r"^from (?:\.|__future__)[^(\n]*(?:\([^)]*\))?\n", re.MULTILINE)


def runtime_code(modules: Sequence[str] = MODULES) -> str:
    """Return modules as one file, which imports nothing of this package."""
    sources = [(files("hf_xorner") / name).read_text(encoding="utf-8") for name in modules]
    # Each begins with its docstring; that of the last one describes the whole.
    docstrings, bodies = zip(*(source.split('"""\n', 1) for source in sources), strict=True)
    code = "\n\n".join(_LEFT_OUT.sub("", body).strip() + "\n" for body in bodies)
    return f'{docstrings[-1]}"""\n\nfrom __future__ import annotations\n\n{code}'
