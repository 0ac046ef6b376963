"""Fine-tune a pretrained encoder as most people would: with transformers' Trainer and nothing of this package.

    python scripts/fine_tune_transformer.py ENCODER conll2003/ output/ --epochs 3

CORPUS is a folder with train, dev and test files of columns, the word first and the tag last. The model is a stock
`AutoModelForTokenClassification`; the script prints its strict F1 by seqeval, its words a second and its size.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from seqeval.metrics import f1_score
from seqeval.scheme import IOB2
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
)

IGNORED = -100


def read(path: Path) -> list[tuple[list[str], list[str]]]:
    """Read sentences of columns; a B tag begins every entity (IOB1 becomes IOB2)."""
    sentences: list[tuple[list[str], list[str]]] = []
    words: list[str] = []
    tags: list[str] = []
    for line in [*path.read_text(encoding="utf-8").split("\n"), ""]:
        columns = line.split()
        if columns and columns[0] != "-DOCSTART-":
            words.append(columns[0])
            tag, before = columns[-1], tags[-1] if tags else "O"
            tags.append(f"B-{tag[2:]}" if tag[:2] == "I-" and before[2:] != tag[2:] else tag)
        elif words:
            sentences.append((words, tags))
            words, tags = [], []
    return sentences


def encode(sentences: list[tuple[list[str], list[str]]], tokenizer: Any, ids: dict[str, int]) -> Dataset:
    """Return pieces and labels: that of a word at its first piece."""
    encoded = tokenizer([words for words, _ in sentences], is_split_into_words=True, truncation=True)
    labels = []
    for row, (_, tags) in enumerate(sentences):
        words = encoded.word_ids(row)
        first = [word is not None and word != before for word, before in zip(words, [None, *words], strict=False)]
        labels.append([ids[tags[word]] if is_first else IGNORED for word, is_first in zip(words, first, strict=True)])
    return Dataset.from_dict({**encoded, "labels": labels})


def main() -> None:
    """Fine-tune, keep the epoch with the best dev score, and print the test score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("output")
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    splits = {name: read(next(options.corpus.glob(f"{name}.*"))) for name in ("train", "dev", "test")}
    labels = sorted({tag for _, tags in splits["train"] for tag in tags}, key=lambda tag: (tag != "O", tag[2:], tag))
    ids = {label: number for number, label in enumerate(labels)}
    tokenizer = AutoTokenizer.from_pretrained(options.encoder)
    data = {name: encode(sentences, tokenizer, ids) for name, sentences in splits.items()}
    model = AutoModelForTokenClassification.from_pretrained(
        options.encoder, id2label=dict(enumerate(labels)), label2id=ids
    )

    def score(prediction: Any) -> dict[str, float]:
        kept = prediction.label_ids != IGNORED
        rows = zip(prediction.label_ids, prediction.predictions.argmax(-1), kept, strict=True)
        gold, predicted = zip(
            *(([labels[i] for i in row[mask]], [labels[i] for i in guess[mask]]) for row, guess, mask in rows),
            strict=True,
        )
        return {"f1": 100 * f1_score(list(gold), list(predicted), mode="strict", scheme=IOB2)}

    trainer = Trainer(
        model,
        TrainingArguments(
            options.output,
            num_train_epochs=options.epochs,
            learning_rate=options.learning_rate,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model="f1",
            report_to="none",
            seed=options.seed,
        ),
        train_dataset=data["train"],
        eval_dataset=data["dev"],
        data_collator=DataCollatorForTokenClassification(tokenizer),
        processing_class=tokenizer,
        compute_metrics=score,
    )
    trainer.train()
    trainer.save_model()
    start = time.perf_counter()
    f1 = trainer.predict(data["test"]).metrics["test_f1"]
    words = sum(len(words) for words, _ in splits["test"])
    size = Path(options.output, "model.safetensors").stat().st_size / 1e6
    rate = words / (time.perf_counter() - start)
    dev = trainer.evaluate()["eval_f1"]
    print(f"dev F1 {dev:.2f}, test F1 {f1:.2f}, {np.round(rate):,.0f} words/s, {size:.1f} MB", flush=True)
    print(f"{torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
