"""Score taggers of persons, organisations and locations on files of many languages: strict F1, words a second.

The words are those of the files, `LANGUAGE-NAME.conll` or `LANGUAGE-NAME/test.iob2`. Systems are as in
`compare_english.py`, or `natasha`; one that is named LANGUAGE=SYSTEM is only scored on files of its language. The score
of a language is that of all its files together.

    python scripts/multilingual_scores.py model_cards/multilingual-ner --files corpora/multilingual/*/test.iob2
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import compare_english
from compare_english import CASES, KEPT, Tag, Words, scores

from hf_xorner import load_corpus
from hf_xorner.corpora.assemble import words_and_tags


def main() -> None:
    """Print a line per language and system, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("systems", nargs="+", help="A folder of a model, spacy:NAME or natasha, perhaps after fr=.")
    parser.add_argument("--files", nargs="+", type=Path, required=True, help="The labelled files.")
    parser.add_argument("--all_cases", action="store_true", help="Also in lower case and IN CAPITALS.")
    parser.add_argument("--output", type=Path, help="A file for the figures.")
    options = parser.parse_args()
    systems = {name: (name.rpartition("=")[0], system_of(name.rpartition("=")[2])) for name in options.systems}
    languages: dict[str, dict[str, tuple[Words, Words]]] = {}
    for path in options.files:
        name = path.parent.name if path.stem in ("test", "dev", "train") else path.stem
        name = name if name[2:3] == "-" else f"en-{name}"
        languages.setdefault(name[:2], {})[name] = words_and_tags(next(iter(load_corpus(path).values())))
    figures: dict[str, dict[str, Any]] = {name: {} for name in systems}
    for language, files in languages.items():
        for name, (only, system) in systems.items():
            if only in ("", language):
                for case in ("as spelt", "lower case", "capitals")[: 3 if options.all_cases else 1]:
                    figures[name] |= scored(language, case, files, system)
                print(language, Path(name).name, line(figures[name], language), flush=True)
    if options.output:
        options.output.write_text(json.dumps(figures, indent=1) + "\n")


def system_of(name: str) -> Tag:
    """Return a function from words to their tags."""
    return natasha_system() if name == "natasha" else compare_english.system_of(name)


def scored(language: str, case: str, files: dict[str, tuple[Words, Words]], system: Tag) -> dict[str, Any]:
    """Return the scores of each file of a language, and of all together, and how fast they were tagged."""
    figures, everything = {}, ([], [], [])  # type: ignore[var-annotated]
    started, count = time.perf_counter(), 0
    for name, (words, gold) in files.items():
        predicted, _ = system([list(map(CASES[case], sentence)) for sentence in words])
        count += sum(map(len, words))
        figures[f"{name}, {case}"] = scores(words, gold, predicted, KEPT)
        for part, more in zip(everything, (words, gold, predicted), strict=True):
            part.extend(more)
    speed = count / (time.perf_counter() - started)
    figures[f"{language}, {case}"] = scores(*everything, KEPT) | {"words_per_second": round(speed)}
    return figures


def line(figures: dict[str, Any], language: str) -> str:
    """Return a language's F1 as text."""
    shown = (f"{name}: {score['f1']:.1f}" for name, score in figures.items() if name.startswith(language))
    return "  ".join(shown)


def natasha_system() -> Tag:
    """Return a function from words to the tags of natasha, which reads them as a text with blanks."""
    from natasha import NewsEmbedding, NewsNERTagger

    tagger = NewsNERTagger(NewsEmbedding())

    def tag(words: Words) -> tuple[Words, None]:
        return [tags_of(sentence, tagger(" ".join(sentence)).spans) for sentence in words], None

    return tag


def tags_of(words: list[str], spans: list[Any]) -> list[str]:
    """Return the tag of each word by the spans of the text in which a blank follows each word."""
    tags, start = [], 0
    for word in words:
        span = next((span for span in spans if span.start < start + len(word) and start < span.stop), None)
        first = span is not None and span.start >= start
        tags.append("O" if span is None else f"{'B' if first else 'I'}-{span.type}")
        start += len(word) + 1
    return tags


if __name__ == "__main__":
    main()
