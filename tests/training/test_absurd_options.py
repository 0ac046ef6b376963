"""Invalid values of options are refused with a one-line error before training starts."""

import math
import os
from dataclasses import fields

import pytest
from helpers import fault, ok, write_towns
from transformers import PreTrainedConfig

from hf_xorner.registration import CONFIGS
from hf_xorner.training import RunArguments, TaggerTrainingArguments, parse, prepare

COUNTS = ["per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps", "ddp_timeout"]
COUNTS += ["eval_accumulation_steps", "dataloader_prefetch_factor", "torch_empty_cache_steps"]
LENGTHS = ["num_train_epochs", "eval_steps", "save_steps", "logging_steps"]
FROM_ZERO = ["save_total_limit", "early_stopping", "dataloader_num_workers", "seed", "data_seed"]
RATES = ["learning_rate", "context_learning_rate", "weight_decay", "adam_epsilon", "max_grad_norm", "warmup_steps"]
RATES += ["neftune_noise_alpha", "eval_delay", "epoch_decay"]
SHARES = ["adam_beta1", "adam_beta2", "label_smoothing_factor", "momentum"]
ALWAYS = [math.nan, math.inf, -math.inf, -2, "big", "", [0]]

REFUSED = [(name, value) for name in (*COUNTS, *LENGTHS, *FROM_ZERO, "max_steps") for value in (*ALWAYS, 10**30)]
REFUSED += [(name, 0) for name in (*COUNTS, *LENGTHS)] + [(name, 1.5) for name in (*COUNTS, *FROM_ZERO)]
REFUSED += [(name, value) for name in RATES for value in ALWAYS]
REFUSED += [(name, value) for name in SHARES for value in (*ALWAYS, 1, 1.5)]
REFUSED += [(name, "magic") for name in ("optim", "eval_strategy", "save_strategy", "logging_strategy")]
REFUSED += [("lr_scheduler_type", "magic"), ("optim_args", "momentum"), ("label_names", ["tags"]), ("output_dir", "")]
REFUSED += [("prediction_loss_only", True), ("dataloader_drop_last", True), ("batch_eval_metrics", True)]

OF_THE_RUN = [(name, value) for name in ("min_count", "most_frequent_vectors") for value in (0, -1, math.nan, "big")]
OF_THE_RUN += [(name, value) for name in ("average_epochs", "max_word_pieces") for value in (-1, math.inf, 2.5, 10**30)]
OF_THE_RUN += [("seeds", [1, -1]), ("seeds", [2**32]), ("vectors", ""), ("context", ""), ("dataset", "")]


def sentence_of(error):
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def named(options):
    return [f"{name}={value!r:.20}" for name, value in options]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=named(REFUSED))
def test_training_arguments_refuse_invalid_values(tmp_path, name, value):
    with pytest.raises(ValueError, match=name) as error:
        TaggerTrainingArguments(**{"output_dir": str(tmp_path), "use_cpu": True, name: value})
    sentence_of(error)


@pytest.mark.parametrize(("name", "value"), OF_THE_RUN, ids=named(OF_THE_RUN))
def test_run_arguments_refuse_invalid_values(name, value):
    with pytest.raises(ValueError, match=name) as error:
        RunArguments(**{name: value})
    sentence_of(error)


#: Values that fields of a type cannot have. Integers are no less than 0, and numbers are finite.
ABSURD = {
    "int": [-1, 1.5, math.nan, math.inf, "big", "", [0], {}, True, 10**30, None],
    "int | None": [-1, 1.5, math.nan, "big", [0]],
    "float": [-1, -0.5, math.nan, math.inf, "big", "", [0], {}, True, None],
    "bool": [-1, 2, math.nan, "no", [0], None],
    "str": [0, math.nan, [0], {}, True, None],
    "list[int] | tuple[int, ...]": [0, "big", [-1], [math.nan], ["big"], {}, None],
    "dict[str, Any] | None": [0, "big", [0]],
}


def test_all_config_fields_refuse_invalid_values(model_type):
    config, common = CONFIGS[model_type], {entry.name for entry in fields(PreTrainedConfig)}
    own = [entry for entry in fields(config) if entry.name not in common]
    assert {entry.type for entry in own} <= ABSURD.keys()
    for entry in own:
        for value in ABSURD[entry.type]:
            with pytest.raises(ValueError, match=f"^{entry.name}=") as error:
                config(**{entry.name: value})
            sentence_of(error)
        # The default of a field is always valid.
        config(**{entry.name: getattr(config(), entry.name)})


@pytest.mark.parametrize(
    ("model_type", "fields", "sentence"),
    [
        ("cross-bilstm-cnn", {"hidden_size": 0}, "hidden_size=0"),
        ("cross-bilstm-cnn", {"num_hidden_layers": 0}, "num_hidden_layers=0"),
        ("cross-bilstm-cnn", {"max_word_chars": 0}, "max_word_chars=0"),
        ("cross-bilstm-cnn", {"char_widths": [0]}, "char_widths=[0]"),
        ("cross-bilstm-cnn", {"char_widths": []}, "char_widths=[]"),
        ("cross-bilstm-cnn", {"dropout": 1.5}, "dropout=1.5"),
        ("lstm-crf", {"char_lstm_size": 0}, "char_lstm_size=0"),
        ("stack-lstm", {"composition_size": 0}, "composition_size=0"),
    ],
)
def test_invalid_sizes_are_refused_before_reading_data(tmp_path, model_type, fields, sentence):
    words = ["--model_type", model_type, "--dataset", str(tmp_path / "nowhere"), "--output_dir", str(tmp_path / "out")]
    run, training, _ = parse([*words, "--use_cpu", "true"])
    with pytest.raises(ValueError) as error:
        prepare(run, training, fields)
    assert sentence in sentence_of(error)


@pytest.mark.parametrize("name", ["vocab_size", "char_types", "dtype", "id2label", "context_encoder"])
def test_fields_set_from_the_data_are_not_options(name):
    with pytest.raises(ValueError, match=f"'{name}' is no option"):
        parse([f"--{name}", "5"])


# --- The script -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_towns(tmp_path_factory.mktemp("absurd") / "corpus")


@pytest.fixture
def train(script, corpus, tmp_path):
    words = ["--dataset", corpus, "--output_dir", tmp_path / "out", "--hidden_size", "4", "--word_dim", "4"]
    words += ["--max_steps", "1", "--use_cpu", "true", "--disable_tqdm", "true"]
    return lambda *options: script("train.py", *words, *options)


@pytest.mark.parametrize(
    "option",
    [
        "per_device_train_batch_size=0",
        "per_device_train_batch_size=big",
        "per_device_eval_batch_size=-1",
        "learning_rate=nan",
        "num_train_epochs=inf",
        "max_steps=-5",
        "eval_steps=0",
        "min_count=-1",
        "seeds=-1",
        "metric_for_best_model=bleu",
        "hidden_size=big",
        "hidden_size=2147483647",
        "char_widths=[0]",
        "dropout=nan",
        "accelerator_config=nowhere",
        "report_to=nothing",
        "fsdp=magic",
    ],
)
def test_the_script_prints_one_line_errors(train, tmp_path, option):
    name, _, value = option.partition("=")
    code, out, errors = train(f"--{name}", value)
    last = errors.strip().splitlines()[-1]
    assert code == 1 and out == "" and "Traceback" not in errors
    assert last.startswith("hf-xorner train: ") and (name in last or value in last or "cannot be built" in last)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--dataloader_persistent_workers", "true"], "Training cannot begin: persistent_workers option needs"),
        (["--lr_scheduler_type", "cosine", "--lr_scheduler_kwargs", '{"magic": 1}'], "Training cannot begin: "),
        (["--activation_checkpointing", "true"], "Training cannot begin: "),
    ],
)
def test_errors_of_the_trainer_are_one_line(train, tmp_path, options, sentence):
    code, _, errors = train(*options)
    assert code == 1 and "Traceback" not in errors
    assert errors.strip().splitlines()[-1].startswith(f"hf-xorner train: {sentence}")
    assert not list((tmp_path / "out").glob("checkpoint-*"))


def test_an_output_folder_that_cannot_be_written_is_refused(train, tmp_path):
    (tmp_path / "file").write_text("mine")
    folders = {tmp_path / "file": "File exists", tmp_path / "file" / "below": "Not a directory"}
    if os.geteuid():
        (tmp_path / "locked").mkdir(mode=0o500)
        folders[tmp_path / "locked"] = folders[tmp_path / "locked" / "below"] = "Permission denied"
    for folder, reason in folders.items():
        sentence = fault(train("--output_dir", folder))
        assert (
            sentence
            == f"hf-xorner train: output_dir={str(folder)!r} cannot be written ({reason}); name another folder."
        )
    assert (tmp_path / "file").read_text() == "mine"
    assert "is not UTF-8; name another folder." in fault(train("--output_dir", os.fsdecode(b"out-\xff")))


def test_large_valid_numbers_are_accepted(train):
    ok(train("--per_device_train_batch_size", "1000000", "--early_stopping", "1000000", "--save_total_limit", "0"))
