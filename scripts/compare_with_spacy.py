"""Compare default training with that of spaCy's NER, by F1 and CPU time, on subsets of a corpus.

Both start from random vectors and read the same files. The CPU time is user plus system time of the whole training
command (`hf-xorner train`, `spacy train`). F1 is strict, in percent, on the whole test split, with
the words of the corpus.

    python scripts/compare_with_spacy.py corpora/conll2003 --sizes 500 2000 14000 --seeds 1 2 3
    python scripts/compare_with_spacy.py corpora/wikiann-en --strip ^en: --sizes 500 2000 14000 --seeds 1 2 3
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from datasets import DatasetDict

from hf_xorner import load_corpus
from hf_xorner.corpora import write_corpus
from hf_xorner.corpora.assemble import words_and_tags
from hf_xorner.evaluation import span_scores

# Run by the interpreter that has spaCy: the files of a folder to DocBins, and words to tags.
CONVERT = """
import json, sys
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import iob_to_biluo, biluo_tags_to_spans
vocab = spacy.blank("en").vocab
for name, sentences in json.load(sys.stdin).items():
    docs = DocBin()
    for words, tags in sentences:
        doc = Doc(vocab, words=words)
        doc.ents = biluo_tags_to_spans(doc, iob_to_biluo(tags))
        docs.add(doc)
    docs.to_disk(f"{sys.argv[1]}/{name}.spacy")
"""
TAG = """
import json, sys
import spacy
from spacy.tokens import Doc
nlp = spacy.load(sys.argv[1])
docs = nlp.pipe(Doc(nlp.vocab, words=words) for words in json.load(sys.stdin))
print(json.dumps([[t.ent_iob_ + "-" * bool(t.ent_type_) + t.ent_type_ for t in doc] for doc in docs]))
"""


def main() -> None:
    """Run the comparison and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path, help="Folders with train, dev and test files.")
    parser.add_argument("--sizes", nargs="+", type=int, default=[500, 2000, 14000], help="Training sentences.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="Seeds of the training runs.")
    parser.add_argument("--spacy", default=sys.executable, help="The interpreter of an environment with spaCy.")
    parser.add_argument("--strip", help="Remove this pattern from words: ^en: for WikiANN.")
    parser.add_argument("--output", type=Path, default=Path("runs/spacy"), help="The runs; finished ones are kept.")
    parser.add_argument("--options", default="", help="Further options of hf-xorner train.")
    parser.add_argument("--only", choices=("spacy", "hf-xorner"), help="Train one of the two.")
    options = parser.parse_args()
    systems = {"spacy": with_spacy, "hf-xorner": with_xorner}
    for corpus in options.corpora:
        complete = load_corpus(str(corpus), strip=options.strip)
        for size in options.sizes:
            runs_of: dict[str, list[Any]] = {}
            for seed in options.seeds:
                folder = options.output / f"{corpus.name}-{size}-{seed}"
                for name in [options.only] if options.only else list(systems):
                    file = folder / f"{name}.json"
                    if not file.exists():
                        data = prepared(complete, size, folder / "data")
                        file.write_text(json.dumps(systems[name](data, folder, seed, options)))
                    runs_of.setdefault(name, []).append(json.loads(file.read_text()))
            for name, runs in runs_of.items():
                f1, seconds = ([run[key] for run in runs] for key in ("f1", "cpu_seconds"))
                spread = f" ± {stdev(f1):.2f}" if len(f1) > 1 else ""
                print(
                    f"{corpus.name:<12}{size:>7}  {name:<10} F1 {mean(f1):.2f}{spread}  {mean(seconds):.0f} s",
                    flush=True,
                )


def prepared(complete: DatasetDict, size: int, folder: Path) -> DatasetDict:
    """Write the first sentences of a corpus: a quarter as many for validation, and the whole test split."""
    train, dev = complete["train"], complete["validation"]
    data = DatasetDict(
        train=train.select(range(min(size, len(train)))),
        validation=dev.select(range(min(max(size // 4, 100), len(dev)))),
        test=complete["test"],
    )
    if not folder.exists():
        write_corpus(data, folder, "conll")
    return data


def with_xorner(data: DatasetDict, folder: Path, seed: int, options: Any) -> dict[str, float]:
    """Train a tagger with default options; its command also scores the test split."""
    command = [sys.executable, "-m", "hf_xorner", "train", "--dataset", str(folder / "data"), "--seed", str(seed)]
    model = folder / "hf-xorner"
    seconds = cpu_seconds([*command, "--output_dir", str(model), *options.options.split()], folder / "hf-xorner.log")
    facts = json.loads((model / "facts.json").read_text())
    return {"f1": facts["scores"]["test"]["f1"], "cpu_seconds": seconds}


def with_spacy(data: DatasetDict, folder: Path, seed: int, options: Any) -> dict[str, float]:
    """Train spaCy's NER by its default configuration for CPUs."""
    splits = {name: list(zip(*words_and_tags(split), strict=True)) for name, split in data.items()}
    python, log = options.spacy, folder / "spacy.log"
    subprocess.run([python, "-c", CONVERT, str(folder)], input=json.dumps(splits), text=True, check=True)
    config = str(folder / "config.cfg")
    spacy = [python, "-m", "spacy"]
    subprocess.run([*spacy, "init", "config", config, "--pipeline", "ner", "--force"], check=True, capture_output=True)
    files = [f"--paths.{key}={folder / name}.spacy" for key, name in (("train", "train"), ("dev", "validation"))]
    command = [*spacy, "train", config, "--output", str(folder / "spacy"), *files, f"--training.seed={seed}"]
    seconds = cpu_seconds([*command, f"--system.seed={seed}"], log)
    tag = [python, "-c", TAG, str(folder / "spacy" / "model-best")]
    words = json.dumps(list(data["test"]["tokens"]))
    predicted = json.loads(subprocess.run(tag, input=words, text=True, check=True, capture_output=True).stdout)
    return {"f1": span_scores(words_and_tags(data["test"])[1], predicted)["f1"], "cpu_seconds": seconds}


def cpu_seconds(command: list[str], log: Path) -> float:
    """Run a command, and return its user plus system time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("w") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
