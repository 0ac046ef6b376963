"""Tag texts with the model of this package, which needs ONNX Runtime, tokenizers and NumPy.

`--to package` writes this module, joined with the modules that it imports, as the `__init__.py` of a package.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..entities import Entities
from .runtime import OnnxTagger


@lru_cache(maxsize=1)
def load() -> OnnxTagger:
    """Return the tagger of the model."""
    return OnnxTagger.from_pretrained(Path(__file__).parent)


def tag(texts: Any, *, is_split_into_words: bool = False) -> Any:
    """Return the entities of one text, or a list with those of several texts; see `OnnxTagger`."""
    return load()(texts, is_split_into_words=is_split_into_words)


def pipe(texts: Iterable[str | Sequence[str]]) -> Iterator[Entities]:
    """Yield the entities of every text or list of words of a stream."""
    return load().pipe(texts)


def main() -> None:
    """Print each text of the command line, or each line of standard input, with its entities."""
    parser = argparse.ArgumentParser(description="Print each text with its entities, one JSON object per line.")
    parser.add_argument("text", nargs="*", help="A text; by default the lines of standard input.")
    texts = parser.parse_args().text or (line.strip("\r\n\ufeff") for line in sys.stdin or ())
    for stream in filter(None, (sys.stdin, sys.stdout)):  # on Windows, pipes have another encoding
        stream.reconfigure(encoding="utf-8")
    if hasattr(signal, "SIGPIPE"):  # not on Windows; the reader of the output, such as head, may close it
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        for entities in pipe(texts):
            record = {"text": entities.text, "entities": entities}
            print(json.dumps(record, ensure_ascii=False), flush=True)  # noqa: T201
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, ValueError) as error:
        sys.exit(f"{parser.prog}: {error}")
