"""Two processes of a group take the same steps as one."""

import os
from pathlib import Path

import pytest
import torch
from processes import free_port, run_pythons
from test_trainer import REDUCTIONS, largest_difference, one_step

SCRIPT = """
import os, sys, torch
os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.path[:0] = {paths!r}
from conftest import SENTENCES
from hf_xorner import WordCharTokenizer
from hf_xorner.training.arguments import parse
from test_trainer import REDUCTIONS, one_step

tokenizer = WordCharTokenizer.from_corpus(SENTENCES, max_word_chars=10)
weights = {{r: one_step({folder!r}, tokenizer, r, per_device_train_batch_size=2) for r in REDUCTIONS}}
assert torch.distributed.get_world_size() == 2
rank = torch.distributed.get_rank()
if rank == 0:
    torch.save(weights, {folder!r} + "/weights.pt")
# Without use_cpu, each process of the stock Trainer would train alone where there is no GPU.
assert parse(["--output_dir", {folder!r}])[1].world_size == 2 or torch.accelerator.is_available()
"""


@pytest.mark.slow  # the processes form a group
def test_two_processes_take_the_same_step_as_one(tmp_path, tokenizer):
    paths = list(map(str, Path(__file__).parents[:2]))  # of the tests and the helpers that the script imports
    (tmp_path / "two.py").write_text(SCRIPT.format(paths=paths, folder=str(tmp_path)))
    group = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [{**os.environ, **group, "RANK": rank, "LOCAL_RANK": rank} for rank in "01"]  # as torchrun sets them
    for done in run_pythons([tmp_path / "two.py"], ranks, cwd=tmp_path, timeout=120):
        assert done.returncode == 0, done.stderr[-3000:]
    together = torch.load(tmp_path / "weights.pt", weights_only=True)
    for reduction in REDUCTIONS:
        alone = one_step(tmp_path, tokenizer, reduction, per_device_train_batch_size=4)
        assert largest_difference(alone, together[reduction]) < 1e-6, reduction
