"""Train on few sentences from several starts: a table of test F1, false entities and seconds.

The sentences are drawn at random from the training split; training holds out a tenth of them. A corpus without a test
split is tested on other sentences of it. False entities are those in a text without names, by default in English.
Beside the starts, there are `spacy`, or `spacy:LANGUAGE`, for `spacy train` with its default options, and
transformers:ENCODER for an encoder that `fine_tune_transformer.py` trains.

    python scripts/few_labels.py conll2003 --data_dir corpora/ --sizes 100 200
    python scripts/few_labels.py conll2003 --data_dir corpora/ --starts spacy transformers:all-MiniLM-L6-v2/
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compare_english import spacy_tags, transformers_system
from datasets import DatasetDict
from english_corpora import write
from false_alarms import TEXT, genres_of

import hf_xorner
from hf_xorner.corpora.assemble import words_and_tags
from hf_xorner.corpora.hold_out import with_validation
from hf_xorner.evaluation import span_scores

#: The options of each start.
STARTS = {
    "no vectors": {"vectors": "none"},
    "vectors of the package": {"vectors": "auto"},
    "default": {},
    "`english-open`": {"model_name_or_path": "english-open"},
    "`multilingual`": {"model_name_or_path": "multilingual"},
}
#: The number of test sentences, and the share of the training sentences that others hold out, too.
TESTED, HELD_OUT = 1000, 0.1

#: The F1 on the test sentences, the entities in a text without names, and the epochs of training.
Figures = tuple[float, int, float]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", help="A corpus.")
    parser.add_argument("--data_dir", help="The folder of the corpora.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 200, 1000], help="Numbers of sentences.")
    parser.add_argument("--starts", nargs="+", default=list(STARTS), help="The starts.")
    parser.add_argument("--bf16", action="store_true", help="Encoders are trained in bfloat16.")
    parser.add_argument("--text", type=Path, default=TEXT, help="Texts without names, as for false_alarms.py.")
    options = parser.parse_args()
    corpus = hf_xorner.load_corpus(options.corpus, options.data_dir, strip="^en:")
    texts = [text for texts in genres_of(options.text).values() for text in texts]
    train = corpus["train"].shuffle(seed=1)
    test = corpus["test"].shuffle(seed=1) if "test" in corpus else train.select(range(len(train) - TESTED, len(train)))
    print("| sentences | start | F1 | false entities | epochs | seconds |\n|---:|---|---:|---:|---:|---:|", flush=True)
    for size in options.sizes:
        few = DatasetDict(train=train.select(range(size)), test=test.select(range(min(TESTED, len(test)))))
        for start in options.starts:
            kind, _, name = start.partition(":")
            with TemporaryDirectory() as folder:
                before = time.perf_counter()
                if kind == "spacy":
                    trained = with_spacy(few, texts, Path(folder), name or "en")
                elif kind == "transformers":
                    trained = with_transformers(few, texts, Path(folder), name, ["--bf16"] * options.bf16)
                else:
                    trained = with_tagger(few, texts, Path(folder), STARTS[start])
                seconds = time.perf_counter() - before
            f1, found, epochs = trained
            print(f"| {size:,} | {start} | {f1:.1f} | {found} | {epochs:.0f} | {seconds:.0f} |", flush=True)


def with_tagger(few: DatasetDict, texts: Sequence[str], folder: Path, options: dict[str, Any]) -> Figures:
    """Train a tagger of the package."""
    tagger = hf_xorner.train(few, output_dir=folder / "model", **options)
    curve = hf_xorner.training.facts.read_facts(folder / "model")["curve"]
    return tagger.scores["test"]["f1"], sum(map(len, tagger(list(texts)))), curve[-1]["epoch"]


def with_spacy(few: DatasetDict, texts: Sequence[str], folder: Path, language: str) -> Figures:
    """Train spaCy's named entity recogniser, as its command does by default."""
    import spacy
    from spacy.tokens import Doc, DocBin

    splits, _ = with_validation(few, HELD_OUT)
    blank = spacy.blank(language)
    for name in ("train", "validation"):
        rows = zip(*words_and_tags(splits[name]), strict=True)
        docs = [Doc(blank.vocab, words=words, ents=tags) for words, tags in rows]
        DocBin(docs=docs).to_disk(folder / f"{name}.spacy")
    command = [sys.executable, "-m", "spacy"]
    config, files = str(folder / "config.cfg"), [str(folder / f"{name}.spacy") for name in ("train", "validation")]
    run([*command, "init", "config", config, "--lang", language, "--pipeline", "ner"])
    paths = ["--paths.train", files[0], "--paths.dev", files[1], "--output", str(folder)]
    epochs = run([*command, "train", config, *paths]).strip().splitlines()[-3].split()[0]
    nlp = spacy.load(folder / "model-best")
    words, gold = words_and_tags(few["test"])
    return span_scores(gold, spacy_tags(nlp, words))["f1"], sum(len(doc.ents) for doc in nlp.pipe(texts)), float(epochs)


def with_transformers(few: DatasetDict, texts: Sequence[str], folder: Path, encoder: str, more: list[str]) -> Figures:
    """Fine-tune an encoder; up to 1,000 steps of 16 sentences, or three epochs."""
    from transformers import pipeline

    splits, _ = with_validation(few, HELD_OUT)
    for split, name in (("train", "train"), ("validation", "dev")):
        write(folder / f"{name}.conll", list(zip(*words_and_tags(splits[split]), strict=True)))
    epochs = max(3, min(30, 16000 // len(splits["train"])))
    script, result = Path(__file__).with_name("fine_tune_transformer.py"), str(folder / "model")
    run([sys.executable, str(script), encoder, str(folder), result, "--epochs", str(epochs), *more])
    words, gold = words_and_tags(few["test"])
    f1 = span_scores(gold, transformers_system(result)(words)[0])["f1"]
    entities = pipeline("ner", result, aggregation_strategy="first", device=-1)(list(texts))
    return f1, sum(map(len, entities)), epochs


def run(command: list[str]) -> str:
    """Run a command, and return its output."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
