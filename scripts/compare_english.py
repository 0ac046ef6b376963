"""Compare taggers of English persons, organisations and locations: F1 on corpora, also in changed case, speed and size.

The words are those of the corpora. Systems are folders of hf_xorner models, or spacy:NAME for a pipeline of spaCy.
Other types of a system or a corpus do not count; WNUT 2017's corporations and groups are organisations. F1 is strict,
in percent.

    python scripts/compare_english.py model_cards/english-ner-small spacy:en_core_web_sm --data_dir corpora/
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hf_xorner import Tagger, load_corpus
from hf_xorner.corpora.assemble import words_and_tags
from hf_xorner.evaluation import span_scores
from hf_xorner.evaluation.report import System, report

#: The types of each system or corpus, by what they are here.
TYPES = dict.fromkeys(("PER", "PERSON", "person"), "PER")
TYPES |= dict.fromkeys(("ORG", "corporation", "group"), "ORG")
TYPES |= dict.fromkeys(("LOC", "GPE", "FAC", "location"), "LOC")
KEPT = ("PER", "ORG", "LOC")
CASES: dict[str, Callable[[str], str]] = {
    "as spelt": str,
    "lower case": str.lower,
    "capitals": str.upper,
    "Each Word With A Capital": lambda word: word[:1].upper() + word[1:].lower(),
}
#: Sentences in a batch, and rounds of which the fastest counts.
BATCH, ROUNDS = 256, 3

Words = Sequence[Sequence[str]]
#: From words to their tags, and the log probabilities of these if they are known.
Tag = Callable[[Words], tuple[Words, Any]]


def main() -> None:
    """Print a table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("systems", nargs="+", help="Folders of models, or spacy:NAME.")
    parser.add_argument("--data_dir", type=Path, required=True, help="The folder of the corpora.")
    parser.add_argument("--split", default="test", help="The split: validation or test.")
    corpora = ["conll2003", "wnut17", "wikiann-en", "test-only/pud.iob2"]
    parser.add_argument("--corpora", nargs="+", default=corpora, help="Their names; or a file.")
    parser.add_argument("--output", type=Path, help="A file for the figures.")
    parser.add_argument("--no_speed", action="store_true", help="Do not measure speed.")
    options = parser.parse_args()
    taggers = {name: Tagger.from_pretrained(name) for name in options.systems if name[:6] != "spacy:"}
    systems = {
        name: own_system(taggers[name]) if name in taggers else spacy_system(name[6:]) for name in options.systems
    }
    figures: dict[str, dict[str, Any]] = {name: {} for name in systems}
    for corpus in options.corpora:
        named = corpus in ("conll2003", "wnut17")
        source = (corpus, str(options.data_dir)) if named else (str(options.data_dir / corpus),)
        splits = load_corpus(*source, strip="^en:")
        split = splits["train"] if list(splits) == ["train"] else splits[options.split]  # a file is one split
        corpus = Path(corpus).stem
        words, gold = words_and_tags(split)
        for case, change in CASES.items():
            changed = [list(map(change, sentence)) for sentence in words]
            for name, system in systems.items():
                predicted, log_probs = system(changed)
                score = scores(words, gold, predicted, KEPT, log_probs)
                score["PER and LOC"] = scores(words, gold, predicted, ("PER", "LOC"))["f1"]
                if name in taggers:
                    score["own types"] = span_scores(gold, predicted)["f1"] if corpus == "conll2003" else None
                figures[name][f"{corpus}, {case}"] = score
                print(f"{corpus:<11} {case:<25} {Path(name).name:<28} {line(score)}", flush=True)
    if not options.no_speed:
        measure_speed(systems, figures, options.data_dir)
    if options.output:
        options.output.write_text(json.dumps(figures, indent=2) + "\n")


def scores(words: Words, gold: Words, predicted: Words, types: Sequence[str], log_probs: Any = None) -> dict[str, Any]:
    """Return F1 over the entities of some types, and of each, and the calibration error of a `Tagger`."""
    tags = [[[renamed(tag, types) for tag in sentence] for sentence in rows] for rows in (gold, predicted)]
    result = report(System(words, *tags, log_probs), resamples=0)
    figures = {"f1": result["f1"], **{name: values["f1"] for name, values in result["per_type"].items()}}
    return figures | ({"ece of Tagger": result["calibration"]["ece"]} if "calibration" in result else {})


def renamed(tag: str, types: Sequence[str]) -> str:
    """Return a tag with its type as it is called here, O, or ? where it is unknown."""
    new = TYPES.get(tag[2:])
    return tag if tag == "?" else f"{tag[:2]}{new}" if new in types else "O"


def line(score: dict[str, Any]) -> str:
    """Return the scores as text."""
    return "  ".join(f"{name} {value:.2f}" for name, value in score.items() if value is not None)


def own_system(tagger: Tagger) -> Tag:
    """Return a function from words to the tags of a model and their log probabilities, in a row."""

    def tag(words: Words) -> tuple[Words, Any]:
        system = System.of_tagger(tagger, words, words, BATCH)
        return system.predicted, system.log_probs

    return tag


def spacy_system(name: str) -> Tag:
    """Return a function from words to the tags of a pipeline, of which only the entities are computed."""
    import spacy
    from spacy.tokens import Doc

    nlp = spacy.load(name, disable=["tok2vec", "tagger", "parser", "attribute_ruler", "lemmatizer"])

    def tag(words: Words) -> tuple[Words, None]:
        docs = nlp.pipe((Doc(nlp.vocab, words=list(sentence)) for sentence in words), batch_size=BATCH)
        return [[t.ent_iob_ + "-" * bool(t.ent_type_) + t.ent_type_ for t in doc] for doc in docs], None

    return tag


def measure_speed(systems: dict[str, Tag], figures: dict[str, Any], data_dir: Path) -> None:
    """Measure words a second on the test split of CoNLL-2003, the systems in turns."""
    words = list(load_corpus("conll2003", str(data_dir))["test"]["tokens"])
    count, best = sum(map(len, words)), dict.fromkeys(systems, float("inf"))
    for _ in range(ROUNDS):
        for name, system in systems.items():
            start = time.perf_counter()
            system(words)
            best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        folder = Path(name)
        size = sum(path.stat().st_size for path in folder.glob("*")) / 1e6 if folder.is_dir() else None
        figures[name] |= {"words_per_second": round(count / seconds), "megabytes": size}
        print(f"{Path(name).name:<28} {count / seconds:,.0f} words/s" + (f", {size:.1f} MB" if size else ""))


if __name__ == "__main__":
    main()
