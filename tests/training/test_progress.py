"""Output during training: one line per epoch, from the main process only, and an optional progress bar."""

import re

import pytest
from conftest import LABELS
from runs import make_trainer
from transformers import PrinterCallback, ProgressCallback, TrainerCallback

from hf_xorner.training import TaggerTrainer
from hf_xorner.training.progress import EpochProgress

LINE = re.compile(
    r"epoch (?P<epoch>[\d.]+)/(?P<of>[\d.]+)"
    r"(  loss (?P<loss>[\d.]+))?"
    r"(  (?P<data>\w+) (P (?P<p>[\d.]+) R (?P<r>[\d.]+) F1 (?P<f1>[\d.]+)|accuracy (?P<accuracy>[\d.]+)))?"
    r"(  best (F1|accuracy) (?P<best>[\d.]+) \(epoch (?P<best_epoch>[\d.]+)\))?"
    r"(  (?P<seconds>[\d.]+) s  (?P<speed>[\d,]+) words/s)?"
)


@pytest.fixture
def trainer_of(tmp_path, tokenizer):
    def build(labels=LABELS, **options):
        options = {"metric_for_best_model": "f1" if labels is LABELS else "accuracy", **options}
        return make_trainer(tmp_path / "out", tokenizer, labels=labels, **options)

    return build


def lines_of(capsys):
    out = capsys.readouterr().out.splitlines()
    matches = [LINE.fullmatch(line) for line in out]
    assert all(matches), out
    return [match.groupdict() for match in matches]


def test_each_epoch_prints_one_line(trainer_of, capsys):
    trainer = trainer_of()
    trainer.train()
    lines = lines_of(capsys)
    history = trainer.state.log_history
    scores = [entry for entry in history if "eval_f1" in entry]
    losses = [entry["loss"] for entry in history if "loss" in entry]
    assert [(line["epoch"], line["of"]) for line in lines] == [("1", "3"), ("2", "3"), ("3", "3")]
    for number, (line, entry, loss) in enumerate(zip(lines, scores, losses, strict=True)):
        assert line["data"] == "dev"
        assert float(line["loss"]) == pytest.approx(loss, abs=5e-5)
        printed = [float(line[name]) for name in ("p", "r", "f1")]
        assert printed == pytest.approx([entry[f"eval_{name}"] for name in ("precision", "recall", "f1")], abs=5e-3)
        best = max(scores[: number + 1], key=lambda entry: entry["eval_f1"])
        assert float(line["best"]) == pytest.approx(best["eval_f1"], abs=5e-3)
        assert float(line["best_epoch"]) == best["epoch"]
        assert float(line["seconds"]) >= 0 and int(line["speed"].replace(",", "")) > 0


def test_plain_labels_report_accuracy(trainer_of, capsys):
    trainer_of(labels=["NN", "VB", "DT"]).train()
    lines = lines_of(capsys)
    assert len(lines) == 3 and all(line["accuracy"] and line["best"] for line in lines)


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
