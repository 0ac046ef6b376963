"""Averaging of the weights of the last epochs; the average is kept only if it scores higher."""

import copy

import pytest
import runs
import torch

from hf_xorner.training.optimization import EpochAverage, keep_the_better, trained_weights


@pytest.fixture
def ready(towns, tmp_path):
    options = {"average_epochs": 2, "num_train_epochs": 3, "hidden_size": 4, "word_dim": 6}
    return runs.ready(towns, tmp_path / "out", **options)


def test_the_last_epochs_are_averaged(ready):
    seen = []
    keep = ready.average.on_epoch_end

    def watch(*arguments, model=None, **others):
        seen.append(copy.deepcopy(model))
        keep(*arguments, model=model, **others)

    ready.average.on_epoch_end = watch
    ready.trainer.train()
    assert len(seen) == 3 and len(ready.average.weights) == 2
    mean = ready.average.mean()
    last, before = (dict(model.named_parameters()) for model in (seen[2], seen[1]))
    assert set(mean) == set(last)
    for name, value in mean.items():
        torch.testing.assert_close(value, (last[name] + before[name]) / 2)
    assert any(not torch.equal(last[name], before[name]) for name in mean)


@pytest.mark.parametrize("better", [True, False])
def test_the_average_is_kept_only_if_it_scores_higher(ready, better):
    trainer, model = ready.trainer, ready.trainer.model
    best = trained_weights(model)
    average = EpochAverage(1)
    average.weights.append({name: weight + 1 for name, weight in best.items()})
    scores = iter([50.0, 60.0 if better else 50.0])
    trainer.evaluate = lambda: {"eval_f1": next(scores)}
    keep_the_better(trainer, average)
    for name, weight in trained_weights(model).items():
        assert torch.equal(weight, best[name] + 1 if better else best[name])
