"""Pool labelled corpora of many languages into one with a training and a dev split.

With `--kept` m, large languages are sampled: of one with n > m sentences, about m · (n / m) ** `--exponent` are used.
docs/multilingual.md lists the corpora and their conventions.

    python scripts/multilingual_corpora.py --data_dir corpora/multilingual --output runs/multilingual/corpus
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

from english_corpora import Sentence, held_out, in_splits, write

from hf_xorner import load_corpus

#: Corpora in which only some mentions of a name are labelled.
LEFT_OUT = ("es-echr", "fr-echr")
#: A name in German court decisions that was replaced by a letter.
ANONYMISED = re.compile(r"[A-ZÄÖÜ]\d?(\.|\.\.\.|…)+|\.\.\.|…")


def main() -> None:
    """Write the pooled corpus, and the dev part of each corpus as a file of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data_dir", type=Path, required=True, help="The folder of the corpora, LANGUAGE-NAME each.")
    parser.add_argument("--output", type=Path, required=True, help="The folder to write to.")
    parser.add_argument("--left_out", nargs="*", default=LEFT_OUT, help="Names of corpora that are not used.")
    parser.add_argument("--kept", type=int, default=10**9, help="Larger languages are sampled (default: none).")
    parser.add_argument("--exponent", type=float, default=0.5, help="0: every language is cut to `kept`; 1: none is.")
    parser.add_argument("--dev", type=int, default=300, help="Most dev sentences of a corpus.")
    options = parser.parse_args()
    names = sorted(path.parent.name for path in options.data_dir.glob("*/train.iob2"))
    splits = {name: read(options.data_dir / name) for name in names if name not in options.left_out}
    sizes: dict[str, int] = {}
    for name, parts in splits.items():
        sizes[name[:2]] = sizes.get(name[:2], 0) + len(parts["train"])
    for name, parts in splits.items():
        share = min(1.0, (options.kept / sizes[name[:2]]) ** (1 - options.exponent))
        parts["train"] = sample(parts["train"], round(share * len(parts["train"])))
        parts["dev"] = sample(parts["dev"], options.dev)
        write(options.output / "parts" / f"{name}.conll", parts["dev"])
        print(f"{name:<16} {len(parts['train']):>6,} training and {len(parts['dev']):>5,} dev sentences")
    for split in ("train", "dev"):
        write(options.output / f"{split}.conll", [sentence for parts in splits.values() for sentence in parts[split]])


def read(folder: Path) -> dict[str, list[Sentence]]:
    """Return the training and the dev sentences of a corpus, held out if it has no dev split."""
    splits = in_splits(load_corpus(folder))
    if not splits["dev"]:
        splits = held_out([(" ".join(words), (words, tags)) for words, tags in splits["train"]])
    if folder.name == "de-ler":
        for sentences in splits.values():
            for words, tags in sentences:
                leave_letters_open(words, tags)
    return splits


def leave_letters_open(words: list[str], tags: list[str]) -> None:
    """Give letters that stand for a name an unknown tag, and the rest of their entity, too."""
    start = 0
    for end in range(1, len(tags) + 1):
        if end == len(tags) or not tags[end].startswith("I-"):
            if tags[start] != "O" and any(map(ANONYMISED.fullmatch, words[start:end])):
                tags[start:end] = ["?"] * (end - start)
            start = end


def sample(sentences: list[Sentence], size: int) -> list[Sentence]:
    """Return this many sentences, or all, in their order."""
    rows = random.Random(0).sample(range(len(sentences)), min(size, len(sentences)))
    return [sentences[row] for row in sorted(rows)]


if __name__ == "__main__":
    main()
