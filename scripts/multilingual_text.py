"""Label sentences of text in many languages by the mean of several taggers, as a corpus for more training.

A word whose label is unsure has the tag ?, which training leaves open.

    python scripts/multilingual_text.py runs/multilingual/teacher runs/multilingual/first \
        --text corpora/multilingual/text --output text.conll
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path

import torch
from english_corpora import Sentence, write

from hf_xorner import Tagger
from hf_xorner.training.teachers import Teacher, best_labels, common_labels, mean_probabilities, teachers_of

#: The languages of the tagger and their neighbours.
LANGUAGES = (
    *("be", "bg", "ca", "cs", "da", "de", "el", "en", "es", "et", "fi", "fr", "gl", "hr", "hu", "id", "it"),
    *("lt", "lv", "mk", "nb", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "tr", "uk"),
)
_BATCH = 32


def main() -> None:
    """Write the labelled sentences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("taggers", nargs="+", help="Their folders; the last one divides texts into words.")
    parser.add_argument("--text", type=Path, required=True, help="The folder of the text, a file per language.")
    parser.add_argument("--output", type=Path, required=True, help="The file to write.")
    parser.add_argument("--most", type=int, default=5000, help="At most so many sentences of a language.")
    parser.add_argument("--sure", type=float, default=0.6, help="The least probability of a label.")
    options = parser.parse_args()
    tokenize = Tagger.from_pretrained(options.taggers[-1]).tokenizer.tokenize
    sentences = list(map(tokenize, sentences_with_names(options.text, options.most)))
    teachers = teachers_of(options.taggers, torch.device("cpu"))
    write(options.output, list(labelled(sentences, teachers, options.sure)))


def sentences_with_names(folder: Path, most: int) -> Iterator[str]:
    """Yield sentences in which a word after the first begins with a capital letter, `most` of a language."""
    for language in LANGUAGES:
        lines = (folder / f"{language}.txt").read_text(encoding="utf-8").splitlines()
        named = [line for line in lines if any(word[0].isupper() for word in re.findall(r"\w+", line)[1:])]
        yield from random.Random(1).sample(named, min(most, len(named)))


def labelled(sentences: list[list[str]], teachers: list[Teacher], sure: float) -> Iterator[Sentence]:
    """Yield the words and tags of sentences, the shortest first."""
    sentences, labels = sorted(sentences, key=len), common_labels(teachers, {})
    for start in range(0, len(sentences), _BATCH):
        batch = sentences[start : start + _BATCH]
        probabilities = mean_probabilities(teachers, batch, labels, {}).float().numpy()
        for words, padded in zip(batch, probabilities, strict=True):
            rows = padded[: len(words)]
            pairs = zip(best_labels(rows, labels), rows.max(1), strict=True)
            yield words, [label if probability >= sure else "?" for label, probability in pairs]


if __name__ == "__main__":
    main()
