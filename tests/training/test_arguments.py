"""Options by name, as words and in recipes, and faults in them."""

import math
from pathlib import Path

import pytest
import torch
from helpers import fault, ok
from transformers import TrainingArguments

from hf_xorner.training.arguments import TaggerTrainingArguments, arguments_of, as_words, parse


def test_defaults_are_cross_and_the_xor_corpus():
    run, training, config = parse([])
    assert (run.model_type, run.dataset, config) == ("cross-bilstm-cnn", "xor", {})
    assert training.output_dir == "runs/xor"
    assert parse(["--model_type", "grn"])[1].output_dir == "runs/xor-grn"


@pytest.mark.parametrize(
    ("words", "dataset", "recipe"),
    [
        ("--epochs 3 my_corpus/", "my_corpus/", None),
        ("my_corpus --epochs 3", "my_corpus", None),
        ("li2020/wnut17 --epochs 3", "wnut17", "li2020/wnut17"),
        ("--epochs 3", "xor", "xor/cross"),
        ("--dataset my_corpus", "my_corpus", None),
    ],
)
def test_a_word_without_a_name_is_a_recipe_or_a_corpus(tmp_path, words, dataset, recipe):
    run, _, _ = parse([*words.split(), "--output_dir", str(tmp_path)], "xor/cross")
    assert (run.dataset, run.recipe) == (dataset, recipe)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("my_corpus --dataset xor", "both my_corpus and --dataset xor"),
        ("li2020/table1/cros", r"is unknown: .* the nearest names are li2020/table1/cross"),
        ("li2020/table1", r"is a table, .* its recipes are li2020/table1/att,"),
    ],
)
def test_a_word_that_names_no_single_corpus_or_recipe_is_refused(words, message):
    with pytest.raises(ValueError, match=message):
        parse(words.split())


def test_words_and_names_give_the_same_arguments(tmp_path):
    options = {"model_type": "att-bilstm-cnn", "output_dir": str(tmp_path), "learning_rate": 2e-3, "seeds": [1, 2]}
    options |= {"decoder": "crf", "dropout": 0.1, "char_widths": [1, 2], "constrain_transitions": True, "fallback": []}
    options |= {"lr_scheduler_kwargs": {"num_cycles": 2}, "use_cpu": True, "label_names": ["labels"]}
    run, training, config = arguments_of(options)
    assert (run.model_type, run.seeds) == ("att-bilstm-cnn", [1, 2])
    assert (training.output_dir, training.learning_rate) == (str(tmp_path), 0.002)
    assert config == {"decoder": "crf", "dropout": 0.1, "char_widths": [1, 2], "constrain_transitions": True}
    again, same, fields = parse(as_words(options))
    assert (again, fields, same.to_dict()) == (run, config, training.to_dict())
    assert parse(["--model_type", "att-bilstm-cnn", "--constrain_transitions", "--epochs", "3"])[2] == {
        "constrain_transitions": True
    }


def test_options_override_the_recipe_and_null_removes_them(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "model_type: bilstm-cnn\nlearning_rate: 1e-3\nmax_steps: 7\ndecoder: crf\nchar_widths: [1, 2]\n"
        "use_cpu: true\nlr_scheduler_kwargs: {num_cycles: 2}\ndata_dir: null\ntag_column: 3\n"
    )
    run, training, config = parse([str(recipe), "--max_steps", "9", "--decoder", "softmax", "--char-widths", "null"])
    assert (run.model_type, run.tag_column, training.lr_scheduler_kwargs) == ("bilstm-cnn", "3", {"num_cycles": 2})
    assert (training.learning_rate, training.max_steps, training.use_cpu) == (0.001, 9, True)
    assert config == {"decoder": "softmax"}


def test_single_values_and_paths_become_lists_of_texts():
    options = {"seeds": 3, "more_data": [Path("further.conll")], "dataset": "xor", "char_widths": 3}
    run, _, config = arguments_of(options, "li2020/table1/cross")
    assert (run.seeds, run.more_data, run.dataset, config["char_widths"]) == ([3], ["further.conll"], "xor", [3])


def test_none_takes_an_option_out_of_a_recipe():
    removed = dict.fromkeys(("optimizer", "momentum", "epoch_decay", "char_filters"))
    _, training, config = arguments_of({**removed, "lr_scheduler_type": "linear"}, "ma2016/table6/random")
    assert (training.optimizer, training.momentum, training.epoch_decay) == (None, 0.0, None)
    assert "char_filters" not in config and config["char_dim"] == 30


def test_an_unknown_recipe_is_refused():
    with pytest.raises(ValueError, match="The recipe 'missing\\.yaml' is unknown"):
        arguments_of({}, "missing.yaml")


def test_the_metric_may_be_named_without_its_prefix():
    assert parse(["xor", "--metric_for_best_model", "loss"])[1].metric_for_best_model == "eval_loss"


REFUSED = [
    *((name, value) for name in ("per_device_train_batch_size", "num_train_epochs") for value in (0, -1, "big")),
    *((name, math.nan) for name in ("learning_rate", "max_grad_norm", "epoch_decay", "teacher_weight")),
    *(("momentum", 0.9), ("early_stopping", -1), ("optimizer", "magic"), ("output_dir", ""), ("warmup_steps", 20)),
    *(("prediction_loss_only", True), ("batch_eval_metrics", True), ("dataloader_drop_last", True)),
    *(("label_smoothing_factor", 0.1), ("hold_out", 1), ("recased", 1.5), ("average_epochs", -1), ("vectors", "")),
    *(("vectors_as", "loud"), ("calibrate", "false"), ("seeds", "1 2"), ("model_type", "bert"), ("keep_labels", True)),
    *(("teacher_text", ["a"]), ("train_only", "head"), ("decodr", "crf"), ("vocab_size", 5), ("char_types", "a")),
    *(("id2label", {}), ("context_encoder", {})),
]


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_values_that_would_give_nonsense_are_refused(tmp_path, name, value):
    with pytest.raises(ValueError, match=name) as error:
        arguments_of({"output_dir": str(tmp_path), "use_cpu": True, name: value})
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"early_stopping": 2, "eval_strategy": "no"},
        {"epoch_decay": 0.1, "lr_scheduler_type": "linear"},
        {"composed": "pieces", "vectors": "auto"},
        {"eval_strategy": "magic"},
    ],
    ids=str,
)
def test_contradicting_options_are_refused(tmp_path, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}|magic"):
        arguments_of({"output_dir": str(tmp_path), "use_cpu": True, **options})


@pytest.mark.parametrize("words", ["--decoder", "--learning_rate fast", "--char_widths [1"])
def test_words_that_are_no_values_are_refused(words):
    with pytest.raises(ValueError, match=words.split()[0]):
        parse(words.split())


def test_the_command_prints_one_line_errors_and_leaves_nothing(script, towns, tmp_path):
    words = [towns, "--output_dir", tmp_path / "out", "--hidden_size", "4", "--word_dim", "4", "--max_steps", "1"]
    wrong = ("learning_rate=nan", "metric_for_best_model=bleu", "dropout=nan", "report_to=nothing", "report_to=flyte")
    for option in wrong:
        errors = fault(script("train", *words, f"--{option}"))
        assert errors.startswith("hf-xorner train: ") and option.partition("=")[2] in errors
        assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
    (tmp_path / "file").write_text("mine")
    assert str(tmp_path / "file") in fault(script("train", *words, "--output_dir", tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "mine"
    large = ["--per_device_train_batch_size", "1000000", "--early_stopping", "1000000", "--save_total_limit", "0"]
    ok(script("train", *words, *large, "--use_cpu", "--disable_tqdm"))


def test_processes_without_a_distributed_backend_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setattr(TaggerTrainingArguments, "world_size", 1)
    # As where there is an accelerator of which processes cannot share the work.
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(TrainingArguments, "__post_init__", lambda self: None)
    with pytest.raises(ValueError, match=r"2 processes were started .* --use_cpu"):
        TaggerTrainingArguments(str(tmp_path))
