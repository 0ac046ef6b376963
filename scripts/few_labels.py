"""Train on few sentences from several starts: a table of test F1, false entities and seconds.

The sentences are drawn at random from the training split; training holds out a tenth of them. False entities are those
that the model finds in a text without names, by default in English.

    python scripts/few_labels.py conll2003 --data_dir corpora/ --sizes 100 200
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from datasets import DatasetDict
from false_alarms import TEXT, genres_of

import hf_xorner

#: The options of each start.
STARTS = {
    "no vectors": {"vectors": "none"},
    "vectors of the package": {"vectors": "auto"},
    "default": {},
    "`english-open`": {"model_name_or_path": "english-open"},
    "`multilingual`": {"model_name_or_path": "multilingual"},
}
#: The number of test sentences.
TESTED = 1000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", help="A corpus with the splits train and test.")
    parser.add_argument("--data_dir", help="The folder of the corpora.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 200, 1000], help="Numbers of sentences.")
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=list(STARTS), help="The starts.")
    parser.add_argument("--text", type=Path, default=TEXT, help="Texts without names, as for false_alarms.py.")
    options = parser.parse_args()
    corpus = hf_xorner.load_corpus(options.corpus, options.data_dir)
    texts = [text for texts in genres_of(options.text).values() for text in texts]
    print("| sentences | start | F1 | false entities | epochs | seconds |\n|---:|---|---:|---:|---:|---:|", flush=True)
    for size in options.sizes:
        counts = {"train": size, "test": min(TESTED, len(corpus["test"]))}
        few = DatasetDict({name: corpus[name].shuffle(seed=1).select(range(count)) for name, count in counts.items()})
        for start in options.starts:
            with TemporaryDirectory() as folder:
                before = time.perf_counter()
                tagger = hf_xorner.train(few, output_dir=Path(folder) / "model", **STARTS[start])
                seconds = time.perf_counter() - before
                facts = hf_xorner.training.facts.read_facts(Path(folder) / "model")
            f1, found = tagger.scores["test"]["f1"], sum(map(len, tagger(texts)))
            epochs = facts["curve"][-1]["epoch"]
            print(f"| {size:,} | {start} | {f1:.1f} | {found} | {epochs:.0f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
