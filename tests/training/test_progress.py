"""Output during training: one line per epoch, from the main process only, and an optional progress bar."""

import re

import pytest
from conftest import LABELS
from runs import make_trainer
from transformers import PrinterCallback, ProgressCallback, TrainerCallback

from hf_xorner.training.progress import EpochProgress
from hf_xorner.training.trainer import TaggerTrainer


@pytest.fixture
def trainer_of(tmp_path, tokenizer):
    def build(labels=LABELS, **options):
        options = {"metric_for_best_model": "f1" if labels is LABELS else "accuracy", **options}
        return make_trainer(tmp_path / "out", tokenizer, labels=labels, **options)

    return build


def test_each_epoch_prints_one_line(trainer_of, capsys):
    trainer = trainer_of()
    trainer.train()
    lines = capsys.readouterr().out.splitlines()
    scores = [entry for entry in trainer.state.log_history if "eval_f1" in entry]
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    for number, (line, score, loss) in enumerate(zip(lines, scores, losses, strict=True), 1):
        best = max(scores[:number], key=lambda entry: entry["eval_f1"])
        figures = " ".join(
            f"{name} {score[f'eval_{key}']:.2f}" for name, key in (("P", "precision"), ("R", "recall"), ("F1", "f1"))
        )
        expected = f"epoch {number}/3  loss {loss:.4f}  dev {figures}  best F1 {best['eval_f1']:.2f}"
        assert line.startswith(f"{expected} (epoch {best['epoch']:g})  ")
        assert re.search(r"  [\d.]+ s  [\d,]+ words/s$", line)


def test_plain_labels_report_accuracy(trainer_of, capsys):
    trainer_of(labels=["NN", "VB", "DT"]).train()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all("dev accuracy" in line and "best accuracy" in line for line in lines)


def test_a_resumed_run_keeps_the_best_score(trainer_of, capsys, tmp_path):
    trainer = trainer_of(save_total_limit=None, num_train_epochs=2)
    scores = iter([90.0, 10.0])
    trainer.compute_metrics = lambda prediction: {"f1": next(scores)}
    trainer.train()
    capsys.readouterr()
    trainer = trainer_of(num_train_epochs=3)
    trainer.compute_metrics = lambda prediction: {"f1": 50.0}
    trainer.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4"))
    assert "dev F1 50.00  best F1 90.00 (epoch 1)" in capsys.readouterr().out


def test_only_the_main_process_prints(trainer_of, capsys, monkeypatch):
    monkeypatch.setattr(TaggerTrainer, "is_world_process_zero", lambda self: False)
    trainer_of(disable_tqdm=False).train()
    out, err = capsys.readouterr()
    assert out == "" and "%|" not in err


def test_callbacks_of_the_user_are_kept(trainer_of):
    class Own(ProgressCallback):
        pass

    for reporter in (Own, Own(), PrinterCallback):
        callbacks = trainer_of(callbacks=[reporter]).callback_handler.callbacks
        assert not any(isinstance(callback, EpochProgress) for callback in callbacks)
        assert any(
            isinstance(callback, reporter) if isinstance(reporter, type) else callback is reporter
            for callback in callbacks
        )
    kinds = [type(callback) for callback in trainer_of(callbacks=[TrainerCallback]).callback_handler.callbacks]
    assert kinds.count(EpochProgress) == 1 and TrainerCallback in kinds
    assert ProgressCallback not in kinds and PrinterCallback not in kinds
