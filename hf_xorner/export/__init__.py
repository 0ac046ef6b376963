"""Export taggers to ONNX, and run them without PyTorch and transformers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

#: The runtime, after the modules that it imports.
MODULES = ("safety.py", "models/word_ids.py", "entities.py", "export/runtime.py")
#: Imports among the joined modules, and from `__future__`, which must come first.
_LEFT_OUT = re.compile(r"^from (?:\.|__future__)[^(\n]*(?:\([^)]*\))?\n", re.MULTILINE)


def runtime_code(modules: Sequence[str] = MODULES) -> str:
    """Join modules into one file that does not import this package."""
    sources = [(files("hf_xorner") / name).read_text(encoding="utf-8") for name in modules]
    # Each begins with its docstring; the last one describes the file.
    docstrings, bodies = zip(*(source.split('"""\n', 1) for source in sources), strict=True)
    code = "\n\n".join(_LEFT_OUT.sub("", body).strip() + "\n" for body in bodies)
    return f'{docstrings[-1]}"""\n\nfrom __future__ import annotations\n\n{code}'
