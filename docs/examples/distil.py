"""Distils a tagger: a teacher, a student, and the same student without a teacher.

The teacher is trained on the built-in XOR corpus. The student has a fifth of its size and the labels of only 400
sentences; the teacher labels the other training sentences for it, which it gets as plain text. The student without a
teacher has the same 400 sentences and as many updates. `python distil.py [FOLDER]`.
"""

import sys
from pathlib import Path
from typing import Any

from datasets import DatasetDict

from hf_xorner import Tagger, train, xor_corpus

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "runs/distil"
LABELLED = 400


def trained(name: str, corpus: str, **options: Any) -> Tagger:
    """Train a tagger, and print its size and its score on the test split."""
    tagger = train(corpus, output_dir=f"{FOLDER}/{name}", overwrite=True, disable_tqdm=True, **options)
    assert tagger.scores is not None
    print(f"{name}: {tagger.model.num_parameters():,} parameters, test F1 {tagger.scores['test']['f1']:.0f}")
    return tagger


if __name__ == "__main__":
    corpus = xor_corpus()
    few = DatasetDict({**corpus, "train": corpus["train"].select(range(LABELLED))})
    few.save_to_disk(f"{FOLDER}/labelled")
    text = Path(FOLDER) / "text.txt"
    text.write_text("".join(f"{' '.join(words)}\n" for words in corpus["train"]["tokens"][LABELLED:]), encoding="utf-8")

    trained("teacher", "xor", num_train_epochs=3)
    small: dict[str, Any] = {"hidden_size": 50, "word_dim": 50, "max_steps": 1500, "per_device_train_batch_size": 8}
    trained("student alone", f"{FOLDER}/labelled", **small)
    taught: dict[str, Any] = {"teacher": [f"{FOLDER}/teacher"], "teacher_text": [str(text)], "teacher_weight": 0.8}
    trained("student", f"{FOLDER}/labelled", **taught, **small)
