"""Options that the user does not give fit the size of the training data; given ones and recipes are kept."""

import shlex

import pytest
from conftest import REPOSITORY

from hf_xorner import load_corpus
from hf_xorner.training.arguments import parse
from hf_xorner.training.facts import CHOSEN, command_of, options_of
from hf_xorner.training.run import choose_options


def corpus_of(words=("Ann",), label="B-PER"):
    return load_corpus([(list(words), [label, *["O"] * (len(words) - 1)])])["train"]


def chosen(argv, sentences, **content):
    run, training, config_fields = parse(argv)
    return choose_options(run, training, config_fields, sentences, corpus_of(**content)), training, config_fields


def test_small_corpora_get_small_batches_and_more_epochs():
    borders = ((4999, 8, 10), (5000, 16, 13), (9999, 16, 10), (10_000, 32, 13))
    for sentences, batch, epochs in ((50, 8, 40), (500, 8, 40), (2000, 8, 16), *borders, (10**6, 32, 10)):
        options, training, config_fields = chosen([], sentences)
        sizes = {"per_device_train_batch_size": batch, "num_train_epochs": epochs}
        others = {
            "early_stopping": 10,
            "vectors": "none",
            "casing": "lower",
            "digits": "zero",
            "singleton_dropout": 0.5,
        }
        assert options == {**sizes, **others}
        assert (training.per_device_train_batch_size, training.num_train_epochs) == (batch, epochs)
        assert config_fields == {"singleton_dropout": 0.5}


def test_given_options_are_kept():
    for words, missing in (
        (["--per_device_train_batch_size", "32"], {"per_device_train_batch_size"}),
        (["--max_steps", "10"], {"num_train_epochs", "early_stopping"}),
        (["--early_stopping", "3"], {"early_stopping"}),
        (["--eval_strategy", "no", "--load_best_model_at_end", "false"], {"early_stopping"}),
        (["--singleton_dropout", "0"], {"singleton_dropout"}),
        (["--casing", "keep"], {"casing"}),
        (["--vectors", "glove.txt"], {"vectors", "casing", "digits", "singleton_dropout"}),
        (["--vectors", "none"], {"vectors"}),
        (["--model_type", "lstm-crf"], {"singleton_dropout"}),
    ):
        assert set(chosen(words, 500)[0]) == {*CHOSEN, "early_stopping"} - missing
    assert chosen(["li2020/table1/cross"], 500)[0] == {}


def test_command_of_a_run_repeats_its_choice_for_any_size():
    run, training, config_fields = parse(["--num_train_epochs", "10"])
    choose_options(run, training, config_fields, 500, corpus_of())
    options = options_of(run, training, config_fields)
    again = parse(shlex.split(command_of(None, options))[2:])
    assert choose_options(*again, 10**6, corpus_of()) == {}
    assert options_of(*again) == options


ENGLISH = (REPOSITORY / "tests" / "name_free.txt").read_text(encoding="utf-8").split()


@pytest.mark.parametrize("label", ["B-PER", "B-person", "B-GPE", "I-Organisation"])
def test_english_text_starts_from_the_tagger_of_the_package(label):
    options, _, fields = chosen([], 500, words=ENGLISH, label=label)
    assert (options["model_name_or_path"], fields) == ("english-start", {}) and "vectors" not in options


def test_new_types_start_from_the_vectors_of_the_package():
    assert chosen([], 500, words=ENGLISH, label="B-DRUG")[0]["vectors"] == "auto"


@pytest.mark.parametrize(
    "words", [["--model_name_or_path", "none"], ["--model_type", "bilstm-cnn"], ["--hidden_size", "20"]]
)
def test_a_model_of_one_s_own_gets_the_vectors_of_the_package(words):
    options = chosen(words, 500, words=ENGLISH)[0]
    assert options["vectors"] == "auto" and "model_name_or_path" not in options


def test_other_text_starts_afresh():
    for words in (ENGLISH[:100], [word[::-1] for word in ENGLISH]):  # too few to tell
        assert chosen([], 500, words=words)[0]["vectors"] == "none"


def test_a_model_continues_with_options_for_new_types_alone():
    words = ["--model_name_or_path", "english-open"]
    assert chosen(words, 200, label="B-PER")[0] == {}
    sizes = {"per_device_train_batch_size": 8, "num_train_epochs": 40, "early_stopping": 10}
    assert chosen(words, 200, label="B-DRUG")[0] == sizes
