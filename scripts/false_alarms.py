"""Count the entities that taggers find in text without names: a table per 1,000 words, by genre.

Systems are folders of hf_xorner models, or spacy:NAME for a pipeline of spaCy. Only persons, organisations and
locations count, since other types differ between the systems; each system splits the text into words by itself.

    python scripts/false_alarms.py model_cards/english-ner-small spacy:en_core_web_sm
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from compare_english import TYPES

from hf_xorner import Tagger

TEXT = Path(__file__).parent.parent / "tests" / "name_free.txt"

Labels = Sequence[Sequence[str]]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("systems", nargs="+", help="Folders of models, or spacy:NAME.")
    parser.add_argument("--text", type=Path, default=TEXT, help="Texts, one a line, below lines such as # recipes.")
    options = parser.parse_args()
    genres = genres_of(options.text)
    words = {genre: sum(len(text.split()) for text in texts) for genre, texts in genres.items()}
    systems = {Path(name).name.removeprefix("spacy:"): labeller(name) for name in options.systems}
    counts = {name: {genre: alarms(tag(texts)) for genre, texts in genres.items()} for name, tag in systems.items()}
    print(f"| genre | words |{'|'.join(f' {name} ' for name in systems)}|\n|---|---:|{'---:|' * len(systems)}")
    for genre in genres:
        rates = (f" {1000 * counts[name][genre] / words[genre]:.1f} " for name in systems)
        print(f"| {genre} | {words[genre]} |{'|'.join(rates)}|")
    total = sum(words.values())
    rates = (f" {1000 * sum(counts[name].values()) / total:.1f} " for name in systems)
    print(f"| all | {total:,} |{'|'.join(rates)}|")


def genres_of(file: Path) -> dict[str, list[str]]:
    """Return the texts of each genre."""
    genres: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            texts = genres.setdefault(line[2:], [])
        else:
            texts.append(line)
    return genres


def alarms(labels: Labels) -> int:
    """Count the labels of persons, organisations and locations, as they are called in any system."""
    return sum(label in TYPES for row in labels for label in row)


def labeller(name: str) -> Callable[[Sequence[str]], Labels]:
    """Return a function from texts to the labels of the entities in each."""
    if not name.startswith("spacy:"):
        tagger = Tagger.from_pretrained(name)
        return lambda texts: [[entity.label for entity in entities] for entities in tagger(texts)]
    import spacy

    nlp = spacy.load(name.removeprefix("spacy:"))
    return lambda texts: [[entity.label_ for entity in doc.ents] for doc in nlp.pipe(texts)]


if __name__ == "__main__":
    main()
