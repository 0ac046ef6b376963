"""Mixed precision and compilation through the Trainer, and a GPU that the host does not wait for."""

import pytest
import torch
from conftest import ARCHITECTURES, build_model, without_dropout
from test_trainer import tiny_data
from transformers import TrainerCallback

from hf_xorner.training.arguments import TaggerTrainingArguments
from hf_xorner.training.trainer import TaggerTrainer

STEPS = 4
BF16 = {"bf16": True}
COMPILED = {"torch_compile_backend": "aot_eager"}


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """The options of a device."""
    if request.param == "cuda":
        request.getfixturevalue("cuda")
    return {"use_cpu": request.param == "cpu"}


def losses(folder, tokenizer, model_type, callbacks=None, **options):
    """The loss of every step, and that of the evaluation."""
    torch.compiler.reset()
    model = build_model(model_type, tokenizer, spread=0.2, **without_dropout(model_type))
    once = {"logging_strategy": "steps", "logging_steps": 1, "eval_strategy": "no", "save_strategy": "no"}
    quiet = {"load_best_model_at_end": False, "disable_tqdm": True, "per_device_train_batch_size": 2}
    arguments = TaggerTrainingArguments(str(folder), **{**once, **quiet, "max_steps": STEPS, **options})
    data = tiny_data()
    data = {"train_dataset": data, "eval_dataset": data, "processing_class": tokenizer, "callbacks": callbacks}
    trainer = TaggerTrainer(model, arguments, **data)
    trainer.train()
    history = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return [*history, trainer.evaluate()["eval_loss"]]


@pytest.mark.parametrize("model_type", ["cross-bilstm-cnn", "grn", "id-cnn"])
def test_bfloat16(tmp_path, tokenizer, device, model_type):
    whole = losses(tmp_path, tokenizer, model_type, **device)
    assert losses(tmp_path, tokenizer, model_type, **device, **BF16) == pytest.approx(whole, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_every_architecture_compiled(tmp_path, tokenizer, device, model_type):
    eager = losses(tmp_path, tokenizer, model_type, **device)
    assert losses(tmp_path, tokenizer, model_type, **device, **COMPILED) == pytest.approx(eager, rel=1e-3)
    assert losses(tmp_path, tokenizer, model_type, **device, **BF16, **COMPILED) == pytest.approx(eager, rel=0.05)


@pytest.mark.slow
def test_compiled_by_inductor(tmp_path, tokenizer, device):
    eager = losses(tmp_path, tokenizer, "bilstm-cnn", **device)
    compiled = losses(tmp_path, tokenizer, "bilstm-cnn", **device, torch_compile=True)
    assert compiled == pytest.approx(eager, rel=1e-4)


class NoWaiting(TrainerCallback):
    """Raises where the host waits for the GPU, from the end of the first step to that of the last but one."""

    def on_step_end(self, args, state, control, **_):
        torch.cuda.set_sync_debug_mode("error" if state.global_step < STEPS - 1 else "default")


# The actions of a Stack-LSTM are computed on the host.
@pytest.mark.parametrize("model_type", [name for name in ARCHITECTURES if name != "stack-lstm"])
def test_steps_on_cuda_do_not_wait_for_the_gpu(tmp_path, tokenizer, cuda, model_type):
    try:
        losses(tmp_path, tokenizer, model_type, [NoWaiting()], logging_strategy="no")
    finally:
        torch.cuda.set_sync_debug_mode("default")
