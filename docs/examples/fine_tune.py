"""Fine-tunes a published model on new types.

The model of this repository has the types PER, ORG, LOC and MISC. It is trained on the types of the built-in XOR corpus
(PER, WORK, LINK) with 200 sentences, and compared with the same architecture from random weights after as many epochs.
Types of the same name keep their weights; new ones get new weights. `python fine_tune.py MODEL [FOLDER]`; MODEL is a
folder or a repository on the Hub, such as `model_cards/english-ner-small`.
"""

import sys
from typing import Any

from datasets import DatasetDict

from hf_xorner import Tagger, train, xor_corpus

MODEL = sys.argv[1] if len(sys.argv) > 1 else "model_cards/english-ner-small"
FOLDER = sys.argv[2] if len(sys.argv) > 2 else "runs/fine_tune"

if __name__ == "__main__":
    before = Tagger.from_pretrained(MODEL)
    print("types before:", *before.entity_labels)

    corpus = xor_corpus()
    small = DatasetDict({**corpus, "train": corpus["train"].select(range(200))})
    small.save_to_disk(f"{FOLDER}/corpus")
    options: dict[str, Any] = {"num_train_epochs": 4, "per_device_train_batch_size": 8, "disable_tqdm": True}
    options |= {"overwrite": True}
    tuned = train(f"{FOLDER}/corpus", model_name_or_path=MODEL, output_dir=f"{FOLDER}/tuned", **options)
    print("types after:", *tuned.entity_labels)
    kind = before.model.config.model_type
    afresh = train(f"{FOLDER}/corpus", model_type=kind, output_dir=f"{FOLDER}/afresh", **options)
    for name, tagger in (("from the model", tuned), ("from random weights", afresh)):
        assert tagger.scores is not None
        by_type = {key: round(row["f1"]) for key, row in tagger.scores["test"]["per_type"].items()}
        print(f"{name}: test F1 {tagger.scores['test']['f1']:.0f}", by_type)
