"""Compares two taggers on the same test split, with a paired significance test.

Baseline-BiLSTM-CNN and Cross-BiLSTM-CNN are trained on the built-in XOR corpus, whose entities depend on both
neighbours of a word at once. The test swaps the outputs of the two in random sentences: p is the share of such
mixtures that differ at least as much as the two do. `python compare_taggers.py [FOLDER]`; the runs are
written below the folder.
"""

import sys
from typing import Any

from hf_xorner import load_corpus, train
from hf_xorner.evaluation.report import System, compare

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "runs/compare_taggers"
SPLIT = load_corpus("xor")["test"]
NAMES = SPLIT.features["ner_tags"].feature.names
TOKENS = list(SPLIT["tokens"])
GOLD = [[NAMES[tag] for tag in row] for row in SPLIT["ner_tags"]]


def tagged_by(model_type: str) -> System:
    """Train an architecture, print its score, and return what it predicts for the test split."""
    options: dict[str, Any] = {"num_train_epochs": 3, "hidden_size": 50, "disable_tqdm": True, "overwrite": True}
    tagger = train("xor", model_type=model_type, output_dir=f"{FOLDER}/{model_type}", **options)
    assert tagger.scores is not None
    print(f"{model_type}: test F1 {tagger.scores['test']['f1']:.0f}")
    return System.of_tagger(tagger, TOKENS, GOLD)


if __name__ == "__main__":
    comparison = compare(tagged_by("cross-bilstm-cnn"), tagged_by("bilstm-cnn"))
    for measure, row in comparison["scores"].items():
        p = f"p = {row['p']:.2f}" if row["p"] >= 0.01 else "p < 0.01"
        print(f"{measure}: difference {row['difference']:+.0f}, {p}")
