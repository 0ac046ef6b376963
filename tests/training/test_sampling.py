"""Batches of similar length: every sentence once, in another order each epoch, the same in every process."""

from itertools import chain

import numpy as np
import pytest
import torch
from conftest import LABELS, build_model
from datasets import Dataset
from runs import settings
from torch.utils.data import RandomSampler, SequentialSampler
from transformers import Trainer

from hf_xorner import WordCharTokenizer
from hf_xorner.training import TaggerTrainer
from hf_xorner.training.batches import EpochSampler, bucketed


def sentences_of(lengths):
    return [[f"w{place % 7}" for place in range(length)] for length in lengths]


def data_of(lengths):
    """Sentences whose first label says which one it is, as far as there are labels."""
    tags = [[number % len(LABELS)] * length for number, length in enumerate(lengths)]
    return Dataset.from_dict({"tokens": sentences_of(lengths), "ner_tags": tags})


DRAWN = np.random.default_rng(3).geometric(0.07, size=203)


def test_every_sentence_is_sampled_once():
    for count in (1, 2, 7, 8, 9, 31, 32, 203):
        for size in (1, 2, 8, 500):
            assert sorted(bucketed(DRAWN[:count], size, 0, 0).tolist()) == list(range(count))


def test_epochs_differ_and_depend_on_the_seed():
    orders = [bucketed(DRAWN, 8, 42, epoch).tolist() for epoch in (0, 1, 2, 0)]
    assert orders[0] == orders[3]
    batches = [{frozenset(order[i : i + 8]) for i in range(0, 200, 8)} for order in orders]
    assert len(batches[0] & batches[1]) < 3 and len(batches[1] & batches[2]) < 3
    assert bucketed(DRAWN, 8, 43, 0).tolist() != orders[0]


@pytest.fixture(scope="module")
def words_tokenizer():
    return WordCharTokenizer.from_corpus(sentences_of([7]), max_word_chars=5)


def trainer_of(folder, tokenizer, data, **options):
    options = {"train_sampling_strategy": "group_by_length", "per_device_train_batch_size": 4, **options}
    arguments = settings(folder, **{"num_train_epochs": 2, "remove_unused_columns": False, **options})
    model = build_model("bilstm-cnn", tokenizer)
    return TaggerTrainer(model, arguments, train_dataset=data, eval_dataset=data, processing_class=tokenizer)


def seen_in_training(trainer):
    """The widths of the sentences of every batch that the collator was given."""
    batches = []
    collate = trainer.data_collator

    def watch(examples):
        batches.append([len(example["tokens"]) for example in examples])
        return collate(examples)

    trainer.data_collator = watch
    trainer.train()
    return batches


def test_the_trainer_groups_by_number_of_words(tmp_path, words_tokenizer):
    lengths = DRAWN[:64].tolist()
    trainer = trainer_of(tmp_path, words_tokenizer, data_of(lengths))
    batches = seen_in_training(trainer)
    assert len(batches) == 32
    for epoch in (batches[:16], batches[16:]):
        assert sorted(chain.from_iterable(epoch)) == sorted(lengths)
    assert batches[:16] != batches[16:]
    assert np.mean([max(batch) - min(batch) for batch in batches]) < 0.5 * np.mean(
        [max(lengths[i : i + 4]) - min(lengths[i : i + 4]) for i in range(0, 64, 4)]
    )
    again = trainer_of(tmp_path, words_tokenizer, data_of(lengths))
    torch.manual_seed(123)
    assert seen_in_training(again) == batches
    other = trainer_of(tmp_path, words_tokenizer, data_of(lengths), data_seed=7)
    assert seen_in_training(other) != batches


def test_random_order_matches_the_stock_trainer(tmp_path, words_tokenizer, monkeypatch):
    options = {"train_sampling_strategy": "random", "num_train_epochs": 3, "data_seed": 7}
    data = data_of(DRAWN[:40].tolist())
    trainer = trainer_of(tmp_path / "own", words_tokenizer, data, **options)
    assert isinstance(trainer._get_train_sampler(), EpochSampler)
    batches = seen_in_training(trainer)
    assert len({str(batches[start : start + 10]) for start in (0, 10, 20)}) == 3
    monkeypatch.setattr(TaggerTrainer, "_get_train_sampler", Trainer._get_train_sampler)
    stock = trainer_of(tmp_path / "stock", words_tokenizer, data, **options)
    assert isinstance(stock._get_train_sampler(), RandomSampler)
    assert seen_in_training(stock) == batches


def test_predictions_keep_the_order_of_the_data(tmp_path, words_tokenizer):
    data = data_of([3, 9, 1, 4, 2, 8])
    trainer = trainer_of(tmp_path, words_tokenizer, data, per_device_eval_batch_size=2)
    assert isinstance(trainer._get_eval_sampler(data), SequentialSampler)
    output = trainer.predict(data)
    assert [(row != -100).sum() for row in output.label_ids] == [3, 9, 1, 4, 2, 8]
    assert output.label_ids[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
