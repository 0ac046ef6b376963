"""Pool labelled English corpora into one with a training and a dev split, with uniform conventions.

The corpora are WNUT 2017, sections of the Broad Twitter Corpus (BTC), WikiGold and Universal NER's English Web Treebank
(EWT), all freely licensed; `--conll2003` adds CoNLL-2003 with its test split, and its type MISC.
docs/english-making.md lists the changes.

    python scripts/english_corpora.py --data_dir corpora/ --output runs/english/ner-open/corpus
"""

from __future__ import annotations

import argparse
from collections import Counter
from hashlib import sha256
from pathlib import Path

from datasets import DatasetDict

from hf_xorner import load_corpus
from hf_xorner.corpora.assemble import words_and_tags

#: Words and tags of a sentence.
Sentence = tuple[list[str], list[str]]

WNUT_TYPES = "person=PER,location=LOC,corporation=ORG,group=ORG,product={misc},creative-work={misc}"
#: The share of the sentences in the dev part.
HELD_OUT = 0.1


def main() -> None:
    """Write the pooled corpus, and the dev part of each corpus as a file of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data_dir", type=Path, required=True, help="The folder of the corpora.")
    parser.add_argument("--output", type=Path, required=True, help="The folder to write to.")
    parser.add_argument("--corpora", nargs="+", default=list(READERS), help="Their names.")
    parser.add_argument("--conll2003", action="store_true", help="Add CoNLL-2003, and keep the type MISC.")
    options = parser.parse_args()
    splits = {name: READERS[name](options.data_dir, options.conll2003) for name in options.corpora}
    if options.conll2003:
        news = load_corpus("conll2003", str(options.data_dir))
        splits = {"conll2003": in_splits(news), **splits}
        leave_misc_open(splits)
        write(options.output / "test.conll", sentences(news, "test"))
    for split in ("train", "dev"):
        write(options.output / f"{split}.conll", [sentence for parts in splits.values() for sentence in parts[split]])
    for name, parts in splits.items():
        write(options.output / "parts" / f"{name}.conll", parts["dev"])
        print(f"{name:<10} {len(parts['train']):>6,} training and {len(parts['dev']):>5,} dev sentences")


def wnut17(data_dir: Path, misc: bool) -> dict[str, list[Sentence]]:
    """Return WNUT 2017 with its own splits; products and creative works are outside of entities, or unknown."""
    return in_splits(load_corpus("wnut17", str(data_dir), types=WNUT_TYPES.format(misc="?" if misc else "O")))


def btc(data_dir: Path, misc: bool) -> dict[str, list[Sentence]]:
    """Return the sections of BTC; a handle is one word, and whether it is a name is unknown where BTC tags it."""
    sentences = []
    for path in sorted((data_dir / "open").glob("btc-*.conll")):
        sentences += in_splits(load_corpus(path, skip_bad_lines=True))["train"]
    return held_out([(" ".join(words), joined_handles(words, tags)) for words, tags in sentences])


def joined_handles(words: list[str], tags: list[str]) -> Sentence:
    """Join "@" and the word after it."""
    joined: list[tuple[str, str]] = []
    for word, tag in zip(words, tags, strict=True):
        if joined and joined[-1][0] == "@":
            known = tag == joined[-1][1] == "O"
            joined[-1] = (f"@{word}", "O" if known else "?")
        else:
            joined.append((word, tag))
    return [word for word, _ in joined], [tag for _, tag in joined]


def wikigold(data_dir: Path, misc: bool) -> dict[str, list[Sentence]]:
    """Return WikiGold, documents held out; MISC is outside of entities, or kept."""
    corpus = load_corpus(data_dir / "open" / "wikigold.conll", types=None if misc else "MISC=O")
    names = map(str, corpus["train"]["doc_id"])  # the first document has none
    return held_out(list(zip(names, in_splits(corpus)["train"], strict=True)))


def ewt(data_dir: Path, misc: bool) -> dict[str, list[Sentence]]:
    """Return EWT's published splits; documents of its dev and test splits are held out."""
    named, document = [], ""
    for path in sorted((data_dir / "open").glob("ewt-*.iob2")):
        for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
            lines = block.split("\n")
            document = next((line for line in lines if line.startswith("# newdoc")), document)
            rows = [line.split("\t") for line in lines if not line.startswith("#")]
            named.append((document, ([row[1] for row in rows], [row[2] for row in rows])))
    parts = held_out(named)
    train = load_corpus(data_dir / "multilingual" / "en-ewt" / "train.iob2")
    return {**parts, "train": parts["train"] + in_splits(train)["train"]}


READERS = {"wnut17": wnut17, "btc": btc, "wikigold": wikigold, "ewt": ewt}


def in_splits(corpus: DatasetDict) -> dict[str, list[Sentence]]:
    """Return the words and tags of the training and the dev split."""
    return {
        name: sentences(corpus, split) if split in corpus else []
        for name, split in (("train", "train"), ("dev", "validation"))
    }


def sentences(corpus: DatasetDict, split: str) -> list[Sentence]:
    """Return the words and tags of a split."""
    return list(zip(*words_and_tags(corpus[split]), strict=True))


def held_out(named: list[tuple[str, Sentence]]) -> dict[str, list[Sentence]]:
    """Split sentences by the name of their document, or by their words: the first by SHA-256 are the dev part."""
    units: dict[str, list[Sentence]] = {}
    for name, sentence in named:
        units.setdefault(name, []).append(sentence)
    parts: dict[str, list[Sentence]] = {"train": [], "dev": []}
    for name in sorted(units, key=lambda name: sha256(name.encode()).digest()):
        parts["dev" if len(parts["dev"]) < HELD_OUT * len(named) else "train"] += units[name]
    return parts


def leave_misc_open(splits: dict[str, dict[str, list[Sentence]]]) -> None:
    """Give words that are mostly MISC in CoNLL-2003 and WikiGold an unknown tag in corpora without that type."""
    annotated, counts = ("conll2003", "wikigold"), Counter[tuple[str, bool]]()
    for name in annotated:
        for words, tags in splits.get(name, {}).get("train", ()):
            counts.update((word, tag.endswith("MISC")) for word, tag in zip(words, tags, strict=True))
    for name in splits.keys() - set(annotated):
        for part in splits[name].values():
            for words, tags in part:
                for index, word in enumerate(words):
                    if tags[index] == "O" and counts[word, True] > counts[word, False]:
                        tags[index] = "?"


def write(path: Path, lines: list[Sentence]) -> None:
    """Write sentences as columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    blocks = ("\n".join(map("\t".join, zip(*sentence, strict=True))) for sentence in lines if sentence[0])
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
