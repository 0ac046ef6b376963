"""scripts/benchmark.py measures what it says, under the keys that it promises."""

import json
import subprocess
import sys

from conftest import REPOSITORY

BENCHMARK = str(REPOSITORY / "scripts" / "benchmark.py")


def test_figures_come_as_json_beside_their_floors(tmp_path):
    file = tmp_path / "figures.json"
    options = ["--models", "cross-bilstm-cnn", "--sentences", "64", "--rounds", "1", "--json", str(file)]
    result = subprocess.run([sys.executable, BENCHMARK, *options], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    figures = json.loads(file.read_text())
    assert set(figures["floor"]) == {"train", "tag", "pipeline"}
    assert set(figures["models"]) == {"cross-bilstm-cnn"}
    row = figures["models"]["cross-bilstm-cnn"]
    assert set(row) == {"train", "tag", "pipeline", "peak_mb"}
    assert all(value > 0 for value in [*row.values(), *figures["floor"].values()])


def test_an_unknown_model_is_named():
    result = subprocess.run(
        [sys.executable, BENCHMARK, "--models", "bert"], capture_output=True, text=True, timeout=120
    )
    assert result.returncode != 0
    assert result.stderr.strip().splitlines()[-1].startswith("benchmark.py: bert is unknown; choose among bilstm-cnn")
