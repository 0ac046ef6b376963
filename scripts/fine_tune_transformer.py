"""Fine-tune a pretrained encoder as most people would: with transformers' Trainer and nothing of this package.

    python scripts/fine_tune_transformer.py ENCODER conll2003/ output/ --epochs 3

CORPUS is a folder with train, dev and perhaps test files of columns, the word first and the tag last; the tag `?` is
unknown. The model is a stock `AutoModelForTokenClassification`; the script prints its strict F1 by seqeval, its words a
second and its size. On processors with AMX, `--bf16` is about twice as fast; the weights are saved in bfloat16, too.
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

IGNORED, UNKNOWN = -100, "?"


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
        numbers = [ids.get(tag, IGNORED) for tag in tags]
        labels.append([numbers[word] if is_first else IGNORED for word, is_first in zip(words, first, strict=True)])
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
    parser.add_argument("--frozen", type=int, help="Embeddings and this many layers stay as they are (default: none).")
    parser.add_argument("--dropout", type=float, help="Dropout of the encoder (default: its own).")
    parser.add_argument("--bf16", action="store_true", help="Compute in bfloat16.")
    options = parser.parse_args()
    splits = {name: read(file) for name in ("train", "dev", "test") for file in options.corpus.glob(f"{name}.*")}
    found = {tag for _, tags in splits["train"] for tag in tags} - {UNKNOWN}
    labels = sorted(found, key=lambda tag: (tag != "O", tag[2:], tag))
    ids = {label: number for number, label in enumerate(labels)}
    tokenizer = AutoTokenizer.from_pretrained(options.encoder)
    data = {name: encode(sentences, tokenizer, ids) for name, sentences in splits.items()}
    changed = {"hidden_dropout_prob": options.dropout, "attention_probs_dropout_prob": options.dropout}
    model = AutoModelForTokenClassification.from_pretrained(
        options.encoder,
        id2label=dict(enumerate(labels)),
        label2id=ids,
        **({} if options.dropout is None else changed),
    )
    if options.frozen is not None:
        model.base_model.embeddings.requires_grad_(False)
        model.base_model.encoder.layer[: options.frozen].requires_grad_(False)

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
            save_only_model=True,
            load_best_model_at_end=True,
            metric_for_best_model="f1",
            report_to="none",
            seed=options.seed,
            bf16=options.bf16,
            use_cpu=not torch.accelerator.is_available(),
            train_sampling_strategy="group_by_length",
            disable_tqdm=True,
        ),
        train_dataset=data["train"],
        eval_dataset=data["dev"],
        data_collator=DataCollatorForTokenClassification(tokenizer),
        processing_class=tokenizer,
        compute_metrics=score,
    )
    trainer.train()
    if options.bf16:
        model.bfloat16()
    trainer.save_model()
    size = Path(options.output, "model.safetensors").stat().st_size / 1e6
    print(f"{size:.1f} MB, {torch.get_num_threads()} threads")
    for name in [split for split in ("dev", "test") if split in splits]:
        start = time.perf_counter()
        f1 = trainer.predict(data[name]).metrics["test_f1"]
        rate = sum(len(words) for words, _ in splits[name]) / (time.perf_counter() - start)
        print(f"{name} F1 {f1:.2f}, {np.round(rate):,.0f} words/s", flush=True)


if __name__ == "__main__":
    main()
