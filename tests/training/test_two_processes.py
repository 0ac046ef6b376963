"""Two processes of a group take the same steps as one, and split the sentences between them."""

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from processes import run_in_two_processes
from test_sampling import DRAWN
from test_trainer import REDUCTIONS, largest_difference, one_step

SCRIPT = """
import json, os, sys, torch
os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.path[:0] = {paths!r}
import test_sampling
from conftest import SENTENCES
from hf_xorner import WordCharTokenizer
from hf_xorner.training import parse
from test_trainer import REDUCTIONS, one_step

tokenizer = WordCharTokenizer.from_corpus(SENTENCES, max_word_chars=10)
weights = {{r: one_step({folder!r}, tokenizer, r, per_device_train_batch_size=2) for r in REDUCTIONS}}
assert torch.distributed.get_world_size() == 2
rank = torch.distributed.get_rank()
if rank == 0:
    torch.save(weights, {folder!r} + "/weights.pt")

tokenizer = WordCharTokenizer.from_corpus(test_sampling.sentences_of([7]), max_word_chars=5)
data, batches = test_sampling.data_of(test_sampling.DRAWN[:200].tolist()), {{}}
for order in ("group_by_length", "random"):
    trainer = test_sampling.trainer_of({folder!r}, tokenizer, data, train_sampling_strategy=order)
    batches[order] = test_sampling.seen_in_training(trainer)
# Without use_cpu, each process of the stock Trainer would train alone where there is no GPU.
assert parse(["--output_dir", {folder!r}])[1].world_size == 2 or torch.accelerator.is_available()
with open({folder!r} + f"/{{rank}}.json", "w") as file:
    json.dump(batches, file)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What the processes wrote; over 2 s, as they form a group."""
    folder = tmp_path_factory.mktemp("two")
    paths = list(map(str, Path(__file__).parents[:2]))  # of the tests and the helpers that the script imports
    (folder / "two.py").write_text(SCRIPT.format(paths=paths, folder=str(folder)))
    run_in_two_processes(folder / "two.py", cwd=folder)
    return folder


def test_two_processes_take_the_same_step_as_one(trained, tmp_path, tokenizer):
    together = torch.load(trained / "weights.pt", weights_only=True)
    for reduction in REDUCTIONS:
        alone = one_step(tmp_path, tokenizer, reduction, per_device_train_batch_size=4)
        assert largest_difference(alone, together[reduction]) < 1e-6, reduction


def test_two_processes_split_the_sentences(trained):
    written = [json.loads((trained / f"{rank}.json").read_text()) for rank in (0, 1)]
    lengths = sorted(DRAWN[:200].tolist())
    for order in ("group_by_length", "random"):
        first, second = (batches[order] for batches in written)
        assert len(first) == len(second) == 50
        for epoch in (slice(0, 25), slice(25, 50)):
            assert sorted(chain.from_iterable(first[epoch] + second[epoch])) == lengths
        assert first[:25] != first[25:]
    # The batches of one step have similar lengths in both processes.
    first, second = (batches["group_by_length"] for batches in written)
    apart = [abs(max(left) - max(right)) for left, right in zip(first, second, strict=True)]
    strangers = [abs(max(left) - max(right)) for left, right in zip(first, reversed(second), strict=True)]
    assert np.mean(apart) < 0.5 * np.mean(strangers)
