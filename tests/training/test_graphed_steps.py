"""Training steps that are captured and replayed give the weights of ordinary ones.

On the CPU, `Recorder` takes the place of CUDA graphs, and models take the paths of a GPU.
"""

import logging

import pytest
import torch
from conftest import ARCHITECTURES, LABELS, build_model, without_dropout
from datasets import Dataset
from graph_recorder import Recorder
from runs import QUIET, settings

from hf_xorner.cuda_graphs import CudaCapture, on_stream
from hf_xorner.training import TaggerTrainer, TaggerTrainingArguments, TaggingCollator
from hf_xorner.training.graphed_steps import GraphedSteps

WORDS = "Ann Smith met Zeus in New York .".split()


def data(sentences=24):
    lengths = [1 + number % len(WORDS) for number in range(sentences)]
    tags = [[(place + number) % len(LABELS) for place in range(n)] for number, n in enumerate(lengths)]
    return Dataset.from_dict({"tokens": [WORDS[:n] for n in lengths], "ner_tags": tags})


def trained(folder, tokenizer, kind="cnn-lstm-crf", capture=True, model=None, sentences=24, resume=None, **arguments):
    """Return the trainer after training in float64, without dropout."""
    model = model or build_model(kind, tokenizer, **without_dropout(kind)).double()
    recorder = Recorder(model) if capture else None
    arguments = {
        "num_train_epochs": 3,
        "per_device_train_batch_size": 4,
        "learning_rate": 0.01,
        "save_strategy": "no",
    } | arguments
    arguments = {**QUIET, "eval_strategy": "no", "load_best_model_at_end": False, **arguments}
    arguments = TaggerTrainingArguments(str(folder), **arguments)
    dataset = data(sentences)
    trainer = TaggerTrainer(model, arguments, capture=recorder, train_dataset=dataset, processing_class=tokenizer)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def assert_same_weights(trainer, other):
    expected = other.model.state_dict()
    for name, values in trainer.model.state_dict().items():
        torch.testing.assert_close(values, expected[name], rtol=1e-9, atol=1e-9, msg=name)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_captured_steps_train_the_same_model(tmp_path, tokenizer, as_on_a_gpu, kind):
    as_on_a_gpu()
    ordinary = trained(tmp_path, tokenizer, kind, capture=False)
    captured = trained(tmp_path, tokenizer, kind)
    assert captured.capture.captures == 1 and captured.capture.replays == 3 * 6 - 3
    assert_same_weights(captured, ordinary)
    assert captured.state.log_history[-1]["train_loss"] == pytest.approx(ordinary.state.log_history[-1]["train_loss"])


@pytest.mark.parametrize(
    "options",
    [
        {"gradient_accumulation_steps": 3},
        {"max_grad_norm": 0.1},
        {"optimizer": "sgd", "momentum": 0.9},
        {"optimizer": "nadam", "epoch_decay": 0.1},
        {"weight_decay": 0.1},
        {"per_device_train_batch_size": 5},  # the last batch has four sentences
    ],
    ids=str,
)
def test_captured_steps_respect_the_options(tmp_path, tokenizer, as_on_a_gpu, options):
    as_on_a_gpu()
    ordinary = trained(tmp_path, tokenizer, capture=False, **options)
    captured = trained(tmp_path, tokenizer, **options)
    assert captured.capture.replays > 5
    assert_same_weights(captured, ordinary)


def test_a_resumed_run_gives_the_same_weights(tmp_path, tokenizer, as_on_a_gpu):
    as_on_a_gpu()
    options = {"save_strategy": "epoch", "save_total_limit": 3}
    whole = trained(tmp_path, tokenizer, **options)
    resumed = trained(tmp_path, tokenizer, resume=str(tmp_path / "checkpoint-12"), **options)
    assert resumed.capture.replays == 3
    assert_same_weights(resumed, whole)


def test_dropout_differs_between_replays(tokenizer, as_on_a_gpu):
    as_on_a_gpu()
    model = build_model("cnn-lstm-crf", tokenizer, feature_dropout=0.5).double().train()
    batch = TaggingCollator(tokenizer, few_shapes=True)([*data()])
    steps = GraphedSteps(lambda inputs, count: backward(model, inputs, count), model, Recorder(model))
    losses = [steps(batch, torch.tensor(60.0)).item() for _ in range(8)]
    assert steps.replayed.capture.replays == 5
    assert len(set(losses)) == len(losses)


def backward(model, inputs, count):
    loss = model(**inputs, num_items_in_batch=count).loss
    loss.backward()
    return loss.detach()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("stack-lstm", {"exploration": 0.1}),
        ("cnn-lstm-crf", {"label_smoothing_factor": 0.1}),
        ("cnn-lstm-crf", {"neftune_noise_alpha": 1}),
    ],
    ids=str,
)
def test_other_runs_have_ordinary_steps_and_one_line_says_why(tmp_path, tokenizer, caplog, kind, options):
    with caplog.at_level(logging.WARNING):
        fields = {"exploration": options.pop("exploration")} if "exploration" in options else {}
        model = build_model(kind, tokenizer, **fields).train()
        arguments = settings(tmp_path, max_steps=6, per_device_train_batch_size=4, **options)
        recorder = Recorder(model)
        trainer = TaggerTrainer(model, arguments, capture=recorder, train_dataset=data(), processing_class=tokenizer)
        if not options.get("label_smoothing_factor"):  # the models have no logits in training
            trainer.train()
    assert recorder.captures == 0 and trainer.capture is None
    assert len([line for line in caplog.messages if "CUDA graphs" in line]) == 1


def test_a_step_that_cannot_be_captured_falls_back(tmp_path, tokenizer, caplog):
    # On the paths of a CPU, Python reads lengths.
    with caplog.at_level(logging.WARNING):
        captured = trained(tmp_path, tokenizer)
    assert captured.capture.captures == 0
    assert len([line for line in caplog.messages if "cannot be captured" in line]) == 1
    assert_same_weights(captured, trained(tmp_path, tokenizer, capture=False))


def test_a_loss_that_is_not_finite_is_logged_as_in_the_stock_trainer(tmp_path, tokenizer):
    logged = []
    for capture in (False, True):
        model = build_model("cnn-lstm-crf", tokenizer, **without_dropout("cnn-lstm-crf")).double()
        losses, loss_of = [], model.loss

        def loss(*arguments, loss_of=loss_of, losses=losses):
            losses.append(loss_of(*arguments))
            return losses[-1] + (float("nan") if len(losses) == 2 else 0)

        model.loss = loss
        trainer = trained(tmp_path, tokenizer, model=model, capture=capture, max_steps=3)
        assert trainer.args.logging_nan_inf_filter
        logged.append(trainer.state.log_history[-1]["train_loss"])
    first, _, third = (loss.item() for loss in losses)
    assert logged == pytest.approx([(first + first / 2 + third) / 3] * 2)


def test_the_collator_pads_to_few_lengths(tokenizer):
    sentences = [{"tokens": WORDS[:3], "ner_tags": [0, 1, 2]}, {"tokens": WORDS[:5], "ner_tags": [0] * 5}]
    plain, few = (TaggingCollator(tokenizer, few_shapes=few)(sentences) for few in (False, True))
    assert few.pop("longest_word") == 8
    for name, values in few.items():
        assert values.shape[1] == 8
        assert torch.equal(values[:, :5], plain[name])
        assert (values[:, 5:] == (-100 if name == "labels" else 0)).all()


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_padding_changes_neither_loss_nor_gradients(tokenizer, kind):
    model = build_model(kind, tokenizer, **without_dropout(kind)).double().train()
    sentences = [{"tokens": WORDS[:3], "ner_tags": [0, 1, 2]}, {"tokens": WORDS[:5], "ner_tags": [0] * 5}]
    found = []
    for few in (False, True):
        model.zero_grad()
        loss = backward(model, TaggingCollator(tokenizer, few_shapes=few)(sentences), torch.tensor(8.0))
        found.append({"loss": loss} | {n: w.grad.clone() for n, w in model.named_parameters() if w.grad is not None})
    for name, values in found[0].items():
        torch.testing.assert_close(found[1][name], values, rtol=1e-12, atol=1e-12, msg=name)


# --- On CUDA ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("options", [{}, {"gradient_accumulation_steps": 2, "max_grad_norm": 0.5}], ids=str)
def test_cuda_graphs_train_the_same_model(tmp_path, tokenizer, cuda, caplog, kind, options):
    with caplog.at_level(logging.WARNING):
        runs = [
            trained(tmp_path, tokenizer, kind, capture=False, use_cpu=False, cuda_graphs=graphs, **options)
            for graphs in (False, True)
        ]
    assert runs[0].capture is None and isinstance(runs[1].capture, CudaCapture)
    assert not [line for line in caplog.messages if "CUDA graph" in line]
    assert_same_weights(*runs)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_cuda_graphs_train_in_mixed_precision(tmp_path, tokenizer, cuda, caplog, precision):
    with caplog.at_level(logging.WARNING):
        model = build_model("cnn-lstm-crf", tokenizer)
        trainer = trained(
            tmp_path, tokenizer, model=model, capture=False, use_cpu=False, num_train_epochs=20, **{precision: True}
        )
    assert not [line for line in caplog.messages if "CUDA graph" in line]
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < losses[0] / 2


def test_dropout_differs_between_replays_of_a_cuda_graph(tokenizer, cuda):
    model = build_model("cnn-lstm-crf", tokenizer, feature_dropout=0.5).to(cuda).train()
    batch = TaggingCollator(tokenizer, few_shapes=True)([*data()])
    batch = {name: value.to(cuda) if isinstance(value, torch.Tensor) else value for name, value in batch.items()}
    capture = CudaCapture(cuda)
    steps = GraphedSteps(lambda inputs, count: backward(model, inputs, count), model, capture)
    with on_stream(capture.stream):
        losses = [steps(batch, torch.tensor(60.0, device=cuda)).item() for _ in range(8)]
    assert len(steps.replayed.captured) == 1
    assert len(set(losses)) == len(losses)


def test_a_step_of_a_cuda_graph_makes_the_host_wait_for_nothing(tokenizer, cuda, model_type):
    model = build_model(model_type, tokenizer).to(cuda).train()
    batch = TaggingCollator(tokenizer, few_shapes=True)([*data()])
    batch = {name: value.to(cuda) if isinstance(value, torch.Tensor) else value for name, value in batch.items()}
    count = torch.tensor(60.0, device=cuda)
    backward(model, batch, count)  # creates tables
    torch.cuda.set_sync_debug_mode("error")
    try:
        backward(model, batch, count)
    finally:
        torch.cuda.set_sync_debug_mode("default")
