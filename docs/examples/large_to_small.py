"""Makes a small tagger from a large model and plain text, without labels.

The large model is a stand-in that is made on the spot, so that the example runs offline: a stock BERT of transformers,
fine-tuned on the built-in XOR corpus by the stock Trainer. The small tagger sees the text of the training split alone.
`python large_to_small.py [FOLDER]`.
"""

import sys
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import (
    BertConfig,
    BertForTokenClassification,
    BertTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from hf_xorner import evaluate, train, xor_corpus

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/large_to_small")


def fine_tune(folder: Path, split: Dataset) -> None:
    """Fine-tune a BERT whose pieces are the words of the corpus."""
    labels = split.features["ner_tags"].feature.names
    words = sorted({word.lower() for sentence in split["tokens"] for word in sentence})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    tokenizer = BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)}, model_max_length=64)

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        encoded = dict(tokenizer(row["tokens"], is_split_into_words=True))
        # Every word is one piece here; the special pieces at both ends have no label.
        return {**encoded, "labels": [-100, *row["ner_tags"], -100]}

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    config = BertConfig(vocab_size=len(pieces), id2label=dict(enumerate(labels)), **sizes)
    set_seed(1)  # the Trainer sets one only after the weights are drawn
    trainer = Trainer(
        BertForTokenClassification(config),
        TrainingArguments(str(folder), num_train_epochs=10, learning_rate=2e-3, save_strategy="no", report_to="none"),
        train_dataset=split.map(encode, remove_columns=split.column_names),
        data_collator=DataCollatorForTokenClassification(tokenizer),
        processing_class=tokenizer,
    )
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    corpus = xor_corpus()
    fine_tune(FOLDER / "large", corpus["train"])
    text = FOLDER / "text.txt"
    text.write_text("".join(f"{' '.join(words)}\n" for words in corpus["train"]["tokens"]), encoding="utf-8")

    # The same as: hf-xorner train --teacher large --teacher_text text.txt --output_dir small
    # An encoder that knows the language also gives the student its word vectors; this one does not.
    small = FOLDER / "small"
    options = {"word_dim": 50, "num_train_epochs": 5, "overwrite": True, "disable_tqdm": True}
    tagger = train(teacher=[FOLDER / "large"], teacher_text=[text], output_dir=small, **options)
    assert tagger.scores is not None
    print(f"agreement with the teacher: {tagger.scores['validation']['f1']:.0f}")
    print(f"F1 on the corpus' test split: {evaluate(tagger, corpus, resamples=0)['f1']:.0f}")
