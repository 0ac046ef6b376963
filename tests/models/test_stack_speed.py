"""Speed of the Stack-LSTM against its step-by-step reference, the LSTM-CRF, and batches of one sentence."""

import os
import sys
import time

import pytest
import torch
from reference_stack_lstm import StackLstmReference
from transformers import AutoModelForTokenClassification

from hf_xorner import LstmCrfConfig, StackLstmConfig, Tagger, WordCharTokenizer, load_corpus
from hf_xorner.training import TaggingCollator

BATCH, TAG_BATCH, SENTENCES, STEPWISE, ROUNDS = 32, 64, 640, 32, 3
LEAST = {"training, of the reference": 20, "training, of lstm-crf": 1 / 3, "tagging, of one at a time": 10}


def tokens_per_second(calls):
    """The best rate of each call, given with its number of tokens; rounds alternate."""
    best = dict.fromkeys(calls, 0.0)
    for number in range(ROUNDS + 1):
        for name, (call, tokens) in calls.items():
            begin = time.perf_counter()
            call()
            if number:  # The first round warms up.
                best[name] = max(best[name], tokens / (time.perf_counter() - begin))
    return best


def build(config_class, tokenizer, labels, **fields):
    torch.manual_seed(0)
    config = config_class(**tokenizer.model_fields(), id2label=dict(enumerate(labels)), **fields)
    return AutoModelForTokenClassification.from_config(config)


def training(model, batches):
    def train():
        model.train()
        for batch in batches:
            model.zero_grad()
            model(**batch).loss.backward()

    return train


def stepwise_training(model, batches, labels):
    """The reference's loss and gradients, one sentence and one action at a time, from precomputed features."""
    scorer = model.decoder.scorer
    weights = {name: weight.detach().clone().requires_grad_() for name, weight in scorer.named_parameters()}
    reference = StackLstmReference(weights, model.config)
    sentences = []
    for batch in batches:
        with torch.no_grad():
            words = model.features(batch["input_ids"], batch["char_ids"])
        for row, length in enumerate(batch["attention_mask"].sum(1).tolist()):
            names = [labels[index] for index in batch["labels"][row, :length].tolist()]
            sentences.append((words[row, :length].clone(), names))

    def train():
        for words, names in sentences:
            reference.loss(words, names).backward()

    return train


@pytest.mark.slow
@pytest.mark.skipif("HF_XORNER_CORPORA" not in os.environ, reason="HF_XORNER_CORPORA names no folder of corpora")
def test_batches_are_faster_than_single_sentences(two_threads, capsys):
    train = load_corpus("conll2003")["train"]
    labels = train.features["ner_tags"].feature.names
    rows = [train[index] for index in range(SENTENCES)]
    tokenizer = WordCharTokenizer.from_corpus(train["tokens"][:], max_word_chars=StackLstmConfig.max_word_chars)
    collate = TaggingCollator(tokenizer)
    batches = [collate(rows[start : start + BATCH]) for start in range(0, SENTENCES, BATCH)]
    stack = build(StackLstmConfig, tokenizer, labels)
    chain = build(LstmCrfConfig, tokenizer, labels, cell="standard")
    tokens = sum(len(row["tokens"]) for row in rows)
    few = sum(len(row["tokens"]) for row in rows[:STEPWISE])
    tagger, sentences = Tagger(stack, tokenizer), [row["tokens"] for row in rows]

    def tag(texts, size):
        stack.eval()
        list(tagger.tag(texts, batch_size=size))

    rates = tokens_per_second(
        {
            "training": (training(stack, batches), tokens),
            "training of lstm-crf": (training(chain, batches), tokens),
            "training step by step": (stepwise_training(stack, batches[: STEPWISE // BATCH], labels), few),
            "tagging": (lambda: tag(sentences, TAG_BATCH), tokens),
            "tagging one at a time": (lambda: tag(sentences[:STEPWISE], 1), few),
        }
    )
    ratios = {
        "training, of the reference": rates["training"] / rates["training step by step"],
        "training, of lstm-crf": rates["training"] / rates["training of lstm-crf"],
        "tagging, of one at a time": rates["tagging"] / rates["tagging one at a time"],
    }
    with capsys.disabled():
        sys.stdout.write("\n")
        for name, rate in rates.items():
            sys.stdout.write(f"  {name}: {rate:,.0f} tokens a second\n")
        for name, ratio in ratios.items():
            sys.stdout.write(f"  {name}: {ratio:.2f} times as fast\n")
    for name, ratio in ratios.items():
        assert ratio >= LEAST[name], f"{name}: {ratio:.2f}, not {LEAST[name]:.2f}"
