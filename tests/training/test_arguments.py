"""Options on the command line and in recipes, and errors in them."""

import pytest
import torch
from transformers import TrainingArguments

from hf_xorner.training import TaggerTrainingArguments, parse


def test_defaults_are_cross_and_the_xor_corpus():
    run, training, config = parse([])
    assert (run.model_type, run.dataset, config) == ("cross-bilstm-cnn", "xor", {})
    assert training.output_dir == "runs/xor-cross-bilstm-cnn"


def test_options_reach_the_run_the_trainer_and_the_config(tmp_path):
    argv = ["--model_type", "att-bilstm-cnn", "--output_dir", str(tmp_path), "--learning_rate", "2e-3"]
    run, training, config = parse([*argv, "--decoder", "crf", "--dropout", "0.1", "--char_widths=[1, 2]"])
    assert run.model_type == "att-bilstm-cnn"
    assert (training.output_dir, training.learning_rate) == (str(tmp_path), 0.002)
    assert config == {"decoder": "crf", "dropout": 0.1, "char_widths": [1, 2]}


def test_the_command_line_overrides_the_recipe(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "model_type: bilstm-cnn\nlearning_rate: 1e-3\nmax_steps: 7\ndecoder: crf\nchar_widths: [1, 2]\n"
        "use_cpu: true\nlabel_names: [labels]\nlr_scheduler_kwargs: {num_cycles: 2}\ndata_dir: null\n"
    )
    run, training, config = parse([str(recipe), "--max_steps", "9", "--decoder", "softmax"])
    assert run.model_type == "bilstm-cnn"
    assert (training.learning_rate, training.max_steps, training.use_cpu) == (0.001, 9, True)
    assert training.label_names == ["labels"]
    assert training.lr_scheduler_kwargs == {"num_cycles": 2}
    assert config == {"decoder": "softmax", "char_widths": [1, 2]}


def test_null_resets_an_option_of_the_recipe(tmp_path):
    argv = ["ma2016/table6/random", "--output_dir", str(tmp_path)]
    _, training, _ = parse(argv)
    assert (training.optimizer, training.momentum, training.epoch_decay) == ("sgd", 0.9, 0.05)
    taken = ["--optimizer", "null", "--momentum", "null", "--epoch_decay", "null", "--char_filters", "null"]
    _, training, config = parse([*argv, *taken, "--lr_scheduler_type", "linear"])
    assert (training.optimizer, training.momentum, training.epoch_decay) == (None, 0.0, None)
    assert "char_filters" not in config
    assert config["char_dim"] == 30


def test_processes_without_a_distributed_backend_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setattr(TaggerTrainingArguments, "world_size", 1)
    # As where there is an accelerator of which processes cannot share the work.
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(TrainingArguments, "__post_init__", lambda self: None)
    with pytest.raises(ValueError, match=r"2 processes were started .* --use_cpu true"):
        TaggerTrainingArguments(str(tmp_path))


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--decodr", "crf"], "'decodr' is no option of CrossBiLstmCnnConfig or the Trainer; did you mean 'decoder'?"),
        (["--lerning_rate", "1"], "'lerning_rate' is no option .* did you mean 'learning_rate'"),
        (["--decoder"], "the option 'decoder' has no value"),
        (["--model_type", "bert"], "model_type='bert' is unknown; choose one of bilstm-cnn, cross-bilstm-cnn"),
        (["--vectors_as", "loud"], "vectors_as='loud' is unknown; choose one of frozen, tuned, beside"),
    ],
)
def test_invalid_arguments_give_one_line_errors(argv, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse(argv)
