r"""Find the temperature at which scores are right on text unlike the training text; docs/english-making.md has results.

For each corpus of `scripts/english_corpora.py`, a small tagger is trained on the others. Its scores on the dev part of
the corpus that it does not know are compared with how often they are right, at several temperatures:

    python scripts/temperature.py --data_dir corpora/ --vectors glove.6B.100d.txt \
        --composed runs/english/ner-open/pieces

With `--model`, the scores of a finished tagger are compared on labelled files:

    python scripts/temperature.py --model model_cards/english-ner-open --files runs/english/ner-open/corpus/dev.conll
"""

from __future__ import annotations

import argparse
from pathlib import Path

from compare_english import BATCH, KEPT, scores
from english import POOL, step, train
from english_corpora import READERS

from hf_xorner import Tagger, load_corpus
from hf_xorner.corpora.assemble import words_and_tags
from hf_xorner.evaluation.report import System

TEMPERATURES = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0)


def main() -> None:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data_dir", type=Path, help="The folder of the corpora.")
    parser.add_argument("--vectors", help="GloVe of 100 dimensions, 6 billion words.")
    parser.add_argument("--composed", help="Vectors of word pieces, which scripts/english.py writes.")
    parser.add_argument("--output", type=Path, default=Path("runs/temperature"), help="The folder to write to.")
    parser.add_argument("--model", help="A finished tagger.")
    parser.add_argument("--files", nargs="+", type=Path, default=[], help="Labelled files for it.")
    options, more = parser.parse_known_args()
    if options.model:
        for path in options.files:
            show(path.stem, options.model, path)
        return
    for name in READERS:
        corpus, tagger = options.output / name / "corpus", options.output / name / "tagger"
        others = [other for other in READERS if other != name]
        source = ["--data_dir", options.data_dir]
        step(corpus / "train.conll", POOL, *source, "--output", corpus, "--corpora", *others)
        step(corpus / "apart" / "train.conll", POOL, *source, "--output", corpus / "apart", "--corpora", name)
        vectors = ["--vectors", options.vectors, "--composed", options.composed]
        short = ["--num_train_epochs", 4, "--average_epochs", 2, "--seed", 1]
        train(tagger, "english/ner-open", "--dataset", corpus.resolve(), *vectors, *short, *more)
        show("known", str(tagger), corpus / "dev.conll")
        show(name, str(tagger), corpus / "apart" / "dev.conll")


def show(name: str, model: str, path: Path) -> None:
    """Print the calibration error of a tagger on a file, at its own temperature and at others."""
    own, found = errors(model, path)
    best = min(found, key=found.__getitem__)
    figures = "  ".join(f"{temperature}: {error:.1f}" for temperature, error in found.items())
    print(f"{name}: own temperature {own}, best {best}; {figures}", flush=True)


def errors(model: str, path: Path) -> tuple[float, dict[float, float]]:
    """Return a tagger's temperature, and the calibration error of its persons, organisations and locations at each."""
    tagger = Tagger.from_pretrained(model)
    config = tagger.model.config
    words, gold = words_and_tags(next(iter(load_corpus(path).values())))
    own, found = config.score_temperature, {}
    for config.score_temperature in TEMPERATURES:
        system = System.of_tagger(tagger, words, words, BATCH)
        figures = scores(words, gold, system.predicted, KEPT, system.log_probs)
        found[config.score_temperature] = figures["ece of Tagger"]
    return own, found


if __name__ == "__main__":
    main()
