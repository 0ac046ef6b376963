"""The temperature of scores: probabilities as by enumeration, fitted as by trying it out, kept and reset."""

import chain_oracle as oracle
import helpers
import numpy as np
import pytest
import torch
from conftest import build_model
from datasets import Dataset
from runs import make_trainer, ready
from transformers import AutoConfig

from hf_xorner.training.optimization import fit_temperature


@pytest.mark.parametrize("fields", [{"constrain_transitions": True}, {"conditioned_transitions": True}], ids=str)
def test_the_posterior_and_the_loss_are_those_of_scores_divided_by_the_temperature(fields, tokenizer):
    model = build_model("lstm-crf", tokenizer, decoder="crf", labels=["O", "B-PER", "I-PER"], **fields).double()
    batch = helpers.pad(helpers.random_sentences(model.config, (4, 1, 3)), labels=True)
    lengths, gold = batch["attention_mask"].sum(1), model.gold(batch["labels"], batch["attention_mask"].sum(1))
    model.config.score_temperature = 2.5
    states = model.encode(batch["input_ids"], batch["char_ids"], lengths).states
    decoded = model.decoder(model.score(states), lengths, states)
    losses = model.decoder(model.score(states), lengths, states, gold)
    for number, chain in enumerate(helpers.chains_of(model, batch)):
        tempered = [scores / 2.5 for scores in chain]
        paths, shares = oracle.probabilities(*tempered)
        length = len(chain[0])
        assert decoded.path[number, :length].tolist() == oracle.all_paths(*chain)[0][0].tolist()
        helpers.close(decoded.log_probs[number, :length].exp(), oracle.counts(*tempered)[0], 1e-9)
        right = (paths == gold[number, :length].numpy()).all(1)
        if right.any():
            helpers.close(losses[number], -np.log(shares[right].sum()), 1e-9)


def test_labels_do_not_depend_on_the_temperature(model_type, tokenizer):
    model = build_model(model_type, tokenizer)
    batch = helpers.pad(helpers.random_sentences(model.config, (9, 2, 5)))
    before = model(**batch).logits
    model.config.score_temperature = 3.0
    after = model(**batch).logits
    assert torch.equal(after.argmax(-1), before.argmax(-1))
    assert not torch.allclose(after, before)


LABELS = ["NOUN", "VERB", "X"]


@pytest.mark.parametrize("kind", ["bilstm-cnn", "lstm-crf", "stack-lstm"])
def test_the_temperature_is_the_most_likely_one_of_the_validation_data(kind, tokenizer, tmp_path):
    model = build_model(kind, tokenizer, labels=LABELS)
    trainer = make_trainer(tmp_path, tokenizer, labels=LABELS, size=12)
    trainer.model = trainer.model_wrapped = model
    rows = list(trainer.eval_dataset)
    for row, probabilities in zip(rows, model(**trainer.data_collator(rows)).logits.softmax(-1), strict=True):
        row["ner_tags"] = probabilities[: len(row["tokens"])].multinomial(1).flatten().tolist()
    trainer.eval_dataset, batch = Dataset.from_list(rows), trainer.data_collator(rows)
    fit_temperature(trainer)
    fitted, losses = model.config.score_temperature, {}
    total = sum(len(row["tokens"]) for row in rows) if model.config.loss_reduction == "token" else 1
    assert 0.5 < fitted < 4
    for temperature in fitted * np.linspace(0.9, 1.1, 21):
        model.config.score_temperature = float(temperature)
        # The sum over the sentences, and the negative logarithm of the prior.
        losses[temperature] = model(**batch).loss.item() * total + 32 * np.log(temperature) ** 2
    assert min(losses, key=losses.get) == pytest.approx(fitted, rel=0.021)


def test_validation_data_without_labels_leave_the_temperature_at_1(tokenizer, tmp_path):
    trainer = make_trainer(tmp_path, tokenizer, labels=LABELS, size=4)
    rows = [{**row, "ner_tags": [-1] * len(row["tokens"])} for row in trainer.eval_dataset]
    trainer.eval_dataset = Dataset.from_list(rows)
    fit_temperature(trainer)
    assert trainer.model.config.score_temperature == 1


def test_a_run_keeps_its_temperature_and_a_continued_one_starts_without(towns, tmp_path):
    folder = tmp_path / "run"
    options = {"model_type": "bilstm-cnn", "num_train_epochs": 1}
    ready(towns, folder, **options).train()
    assert AutoConfig.from_pretrained(folder).score_temperature != 1
    run = ready(towns, tmp_path / "more", "--calibrate", "false", model_name_or_path=folder, num_train_epochs=1)
    assert run.trainer.model.config.score_temperature == 1
    run.train()
    assert AutoConfig.from_pretrained(tmp_path / "more").score_temperature == 1
