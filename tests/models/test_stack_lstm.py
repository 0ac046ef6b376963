"""The Stack-LSTM computes what the program of its authors computes, for every kind of labels."""

from itertools import cycle

import helpers
import pytest
import torch
from conftest import LABELS, build_model
from programs import EXACT, assert_gradients_match
from reference_stack_lstm import RESERVED, StackLstmProgram

from hf_xorner.models.configuration_stack_lstm import StackLstmConfig
from hf_xorner.models.modeling_stack_lstm import StackLstmForTokenClassification, greedy_search
from hf_xorner.models.tags import IGNORED

LENGTHS = (9, 1, 4, 6, 0, 2)
LABEL_SETS = {"types": LABELS, "plain": ["NOUN", "VERB", "DET"], "single words alone": ["B-GOD", "O"]}
#: Cells of the program's releases, and layers.
VARIANTS = [("coupled", 2), ("standard", 2), ("coupled", 1), ("standard", 3)]


def sentences_for(model):
    """Sentences as one batch and as (ids, spellings, labels by name); some words have no label, which is None."""
    rows = helpers.random_sentences(model.config, LENGTHS)
    rows[0]["labels"][[1, 4, 8]] = IGNORED
    rows[1]["labels"][:] = IGNORED
    sentences = []
    for row in rows:
        row["char_ids"] = row["char_ids"].clamp(min=RESERVED) * (row["char_ids"] > 0)
        names = [None if label == IGNORED else model.config.labels[label] for label in row["labels"].tolist()]
        spellings = [chars for _, chars in helpers.words_of(row)]
        sentences.append((row["input_ids"].tolist(), spellings, names))
    return helpers.pad(rows, extra=2, labels=True), sentences


@pytest.mark.parametrize(("variant", "labels"), list(zip(VARIANTS * 2, cycle(LABEL_SETS))), ids=str)
def test_states_actions_loss_and_gradients_are_those_of_the_program(variant, labels):
    program = StackLstmProgram(LABEL_SETS[labels], *variant)
    model = program.model()
    batch, sentences = sentences_for(model)
    lengths = batch["attention_mask"].sum(1)
    states = model.encode(batch["input_ids"], batch["char_ids"], lengths).states
    greedy, log_probs = greedy_search(model.decoder.scorer, states, lengths)
    losses = []
    for row, (ids, spellings, names) in enumerate(sentences):
        words = program.words(ids, spellings)
        torch.testing.assert_close(states[row, : len(ids)], words, **EXACT)
        actions, choices, _ = program.parse(words)
        assert [program.actions[action] for action in greedy[row, : len(actions)]] == actions
        for actual, of_step in zip(log_probs[row], choices, strict=False):
            expected = torch.stack([of_step.get(action, torch.tensor(-torch.inf)).exp() for action in program.actions])
            torch.testing.assert_close(actual.exp(), expected.to(actual), rtol=0, atol=1e-11)
        losses.append(program.loss(words, names))
    for model.config.loss_reduction, divisor in (("token", 22 - 4), ("sentence", 4), ("sum", 1)):
        loss = model.train()(**batch).loss
        torch.testing.assert_close(loss, sum(losses) / divisor, rtol=0, atol=1e-11)
    loss.backward()
    sum(losses).backward()
    assert_gradients_match(model, program.gradients_of_model())


@pytest.mark.parametrize(("cell", "gates"), [("coupled", 3), ("standard", 4)])
def test_initialisation_matches_the_documentation(tokenizer, cell, gates):
    config = StackLstmConfig(**tokenizer.model_fields(), id2label=dict(enumerate(LABELS)), cell=cell)
    scorer = StackLstmForTokenClassification(config).decoder.scorer
    assert scorer.hidden.weight.shape == (100, 400)
    assert scorer.actions.weight.shape == (2 + 3, 16)
    assert scorer.composition.types.weight.shape == (3 + 1, 20)
    for lstm in (scorer.output, scorer.stack, scorer.buffer, scorer.history):
        assert lstm.weight_hh.shape == (2, gates * 100, 100)
        assert lstm.bias.sum() == (2 * 100 if cell == "standard" else 0)
        assert cell == "coupled" or (lstm.bias[:, 100:200] == 1).all()
        bound = (6 / 200) ** 0.5
        for weight in (lstm.weight_hh, lstm.weight_ch):
            assert weight is None or 0.95 * bound < weight.abs().max() <= bound
        assert lstm.start.any()


def test_new_labels_reinitialise_label_dependent_weights_only(tokenizer, tmp_path):
    model = build_model("stack-lstm", tokenizer)
    model.save_pretrained(tmp_path)
    loaded, report = StackLstmForTokenClassification.from_pretrained(
        tmp_path, id2label={0: "O", 1: "B-NEW", 2: "I-NEW"}, ignore_mismatched_sizes=True, output_loading_info=True
    )
    changed = {key[0].removeprefix("decoder.scorer.") for key in report["mismatched_keys"]}
    assert changed == {"actions.weight", "composition.types.weight", "classifier.weight", "classifier.bias"}
    for name, parameter in loaded.named_parameters():
        assert name.removeprefix("decoder.scorer.") in changed or torch.equal(parameter, model.get_parameter(name))
