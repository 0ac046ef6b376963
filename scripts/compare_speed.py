"""Compare the speed of exported taggers, and of pipelines of spaCy, from texts to entities.

Rounds alternate between the systems. The time of calls with one text is the median; that
of all texts at once is the best round.

    hf-xorner export model_cards/english-ner-small --output onnx
    python scripts/compare_speed.py onnx spacy:en_core_web_sm --data_dir corpora/
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from hf_xorner import load_corpus
from hf_xorner.export.runtime import OnnxTagger

#: Texts that are tagged one at a time.
ALONE = 300


def main() -> None:
    """Print a line for each system."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("systems", nargs="+", help="Exported folders, or spacy:NAME.")
    parser.add_argument("--corpus", default="wnut17", help="The corpus whose test split is read.")
    parser.add_argument("--data_dir", help="The folder of the corpora.")
    parser.add_argument("--rounds", type=int, default=3, help="The number of rounds.")
    options = parser.parse_args()
    sentences = load_corpus(options.corpus, options.data_dir)["test"]["tokens"]
    texts, words = list(map(" ".join, sentences)), sum(map(len, sentences))
    systems = {name: spacy_system(name[6:]) if name[:6] == "spacy:" else own_system(name) for name in options.systems}
    alone: dict[str, list[float]] = {name: [] for name in systems}
    together: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(options.rounds):
        for name, tag in systems.items():
            alone[name] += [seconds(tag, [text]) for text in texts[:ALONE]]
            together[name].append(seconds(tag, texts))
    for name in systems:
        print(f"{name}: one text {1e3 * median(alone[name]):.2f} ms, {words / min(together[name]):,.0f} words/s")


def seconds(tag: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> float:
    """Return the time of tagging texts."""
    start = time.perf_counter()
    tag(texts)
    return time.perf_counter() - start


def own_system(folder: str) -> Callable[[Sequence[str]], Any]:
    """Return a function that tags texts by ONNX Runtime."""
    return OnnxTagger.from_pretrained(folder)


def spacy_system(name: str) -> Callable[[Sequence[str]], Any]:
    """Return a function that computes the entities of a pipeline, and nothing else."""
    import spacy

    nlp = spacy.load(name, disable=["tok2vec", "tagger", "parser", "attribute_ruler", "lemmatizer"])
    return lambda texts: [[(entity.text, entity.label_) for entity in doc.ents] for doc in nlp.pipe(texts)]


if __name__ == "__main__":
    main()
