"""`hf-xorner reproduce` on a small table, checked by hand."""

import json
import random
import runpy
import signal
import statistics
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import REPOSITORY
from helpers import INTERRUPTIBLE, fault, lock_holder, posix
from seqeval.metrics import f1_score

from hf_xorner import Tagger, load_corpus
from hf_xorner.cli import main
from hf_xorner.evaluation.resampling import randomisation_test
from hf_xorner.papers.chunk_tags import raw_chunk_tags
from hf_xorner.papers.jobs import Plan, Settings, execute, plan, vectors_of
from hf_xorner.papers.presentation import to_markdown
from hf_xorner.papers.reproduction import Cell, Filled, _compare_rows, _subtract, fill
from hf_xorner.papers.tables import Column, Table, TableRow, read_table
from hf_xorner.training.recipes import table_names

BASE = """# Of these tests.
use_cpu: true
num_train_epochs: 2
word_dim: 8
hidden_size: 8
per_device_train_batch_size: 8
learning_rate: 0.03
"""
TABLE = """title: Towns
paper_runs: 5
baseline: plain
vectors: {towns: vectors of towns}
columns:
  test-f1: {head: test F1, run: towns, split: test, figure: f1}
  test-loc: {head: test LOC, run: towns, split: test, figure: per_type/LOC/f1}
  speed: {head: speed, run: towns, figure: speed/training_tokens_per_second, over: plain}
  highest: {head: maximum, run: towns, split: test, figure: f1, highest: true}
  train-f1: {head: train F1, run: towns, split: train, figure: f1}
rows:
  stranger: {name: Others, published: {test-f1: 12.5}}
  plain:
    name: Plain
    recipes: {towns: plain.yaml}
    published: {test-f1: 50.25 ± 0.50}
  crf:
    name: With | CRF
    recipes: {towns: crf.yaml}
  poor:
    name: With vectors
    recipes: {towns: plain.yaml}
    vectors: {towns: towns}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, its recipes, and a corpus that is not learned at once: towns end in -ville, and so do some rivers."""
    folder = tmp_path_factory.mktemp("table")
    draw = random.Random(0)
    (folder / "towns").mkdir()
    for split, size in (("train", 40), ("dev", 10), ("test", 30)):
        lines = []
        for _ in range(size):
            name = draw.choice(["Anna", "Berta", "Carla", "Dora", "Emma", "Frida"]) + draw.choice(["ville", "burg", ""])
            river = draw.random() < 0.4
            words = [("the", "O"), ("river", "O")] * river + [(name, "O" if river else "B-LOC"), ("burns", "O")]
            lines += [f"{word} {tag}" for word, tag in words] + [""]
        (folder / "towns" / f"{split}.txt").write_text("\n".join(lines))
    (folder / "base.yaml").write_text(f"{BASE}dataset: {folder / 'towns'}\n")
    (folder / "plain.yaml").write_text("extends: base.yaml\nmodel_type: bilstm-cnn\n")
    # Long enough to be interrupted, as nothing comes after it that is worth a wait.
    (folder / "crf.yaml").write_text("extends: base.yaml\ndecoder: crf\nnum_train_epochs: 5\n")
    (folder / "towns.yaml").write_text(TABLE)
    return folder


class InThisProcess:
    """Takes the place of `subprocess.Popen` for a training, as most of a process's time goes into imports."""

    def __init__(self, command, *, stdout, **_):
        main("train", command[command.index("train") + 1 :])
        self.returncode = 0

    def poll(self):
        return self.returncode


@pytest.fixture(scope="module")
def reproduced(folder):
    """The folder of the runs of the table, which take over 2 s."""
    (folder / "results.json").write_text('[{"work": "else", "dataset": "d", "split": "test", "f1_mean": 1.5}]')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("hf_xorner.papers.jobs.subprocess", SimpleNamespace(Popen=InThisProcess, STDOUT=None))
        with pytest.raises(SystemExit) as stop:
            main("reproduce", ["towns.yaml", "--seeds", "1", "2"])
        added = runpy.run_path(str(REPOSITORY / "scripts" / "add_results.py"))
        added["main"](["towns.yaml", "--seeds", "1", "2"], folder / "results.json")
    assert stop.value.code == 0
    return folder / "runs" / "tables"


@pytest.mark.slow
@posix
def test_the_same_command_continues_what_was_interrupted(folder, tmp_path):
    words = ["reproduce", "towns.yaml", "--jobs", "1", "--seeds", "1", "--output", str(tmp_path)]
    command = [sys.executable, "-m", "hf_xorner", *words]
    options = {"cwd": folder, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **INTERRUPTIBLE, **options)
    while not list(tmp_path.glob("crf/*/checkpoint-*/trainer_state.json")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and errors.strip().endswith("interrupted; the same command continues.")
    (finished,) = tmp_path.glob("*/*/facts.json")
    written = finished.stat().st_mtime_ns
    subprocess.run(command, check=True, **options)
    assert finished.stat().st_mtime_ns == written, "a finished run was run again"
    (continued,) = facts_of(tmp_path, "crf")
    # Also the epochs before the interruption, which the checkpoint remembers.
    assert [row["epoch"] for row in continued["curve"]] == [1, 2, 3, 4, 5]


def facts_of(runs, recipe):
    return [json.loads(path.read_text()) for path in sorted(runs.glob(f"{recipe}/*/facts.json"))]


def rows_of(runs):
    return json.loads((runs / "towns.json").read_text(), parse_constant=pytest.fail)["rows"]


@pytest.mark.parametrize(("row", "epochs"), [("plain", 2), ("crf", 5)])
def test_scores_match_the_runs(reproduced, row, epochs):
    runs, cells = facts_of(reproduced, row), rows_of(reproduced)[row]["cells"]
    assert all([point["epoch"] for point in run["curve"]] == list(range(1, epochs + 1)) for run in runs)
    scores = {str(run["seed"]): run["scores"]["test"] for run in runs}
    f1 = {seed: score["f1"] for seed, score in scores.items()}
    assert f1.keys() == {"1", "2"}
    assert cells["test-f1"]["values"] == f1
    assert cells["test-f1"]["mean"] == pytest.approx(statistics.mean(f1.values()), abs=1e-6)
    assert cells["test-f1"]["std"] == pytest.approx(statistics.stdev(f1.values()), abs=1e-6)
    assert cells["highest"]["shown"] == pytest.approx(max(f1.values()), abs=1e-5)
    assert cells["test-loc"]["values"] == {seed: score["per_type"]["LOC"]["f1"] for seed, score in scores.items()}


def test_speeds_are_shown_as_times_that_of_the_row_to_compare_with(reproduced):
    crf, plain = (
        sum(run["speed"]["training_tokens_per_second"] for run in facts_of(reproduced, row)) for row in ("crf", "plain")
    )
    assert rows_of(reproduced)["crf"]["cells"]["speed"]["shown"] == pytest.approx(crf / plain, abs=1e-5)


def test_rows_are_compared_with_the_baseline_by_the_sentences_of_all_seeds(reproduced):
    sums = []
    for row in ("crf", "plain"):
        paths = reproduced.glob(f"{row}/*/sentence_counts.json")
        sums.append(np.sum([json.loads(path.read_text())["test"] for path in paths], axis=0))
    rows, test = rows_of(reproduced), randomisation_test(*sums)["f1"]
    cell = rows["crf"]["cells"]["test-f1"]
    assert (cell["p"], cell["difference"]) == pytest.approx((test["p"], test["difference"]), abs=1e-5)
    assert rows["plain"]["cells"]["test-f1"]["p"] is None


def test_rows_without_runs_show_what_was_published(reproduced):
    rows, text = rows_of(reproduced), (reproduced / "towns.md").read_text(encoding="utf-8")
    assert rows["stranger"]["cells"]["test-f1"]["values"] == {}
    assert rows["poor"]["cells"]["test-f1"]["mean"] is None
    for cells in ("| Others | 12.50 | – |", "| Plain (baseline) | 50.25 ± 0.50 |", "| With \\| CRF |"):
        assert cells in text


def test_the_training_split_is_scored_with_the_saved_models(reproduced):
    cell = rows_of(reproduced)["crf"]["cells"]["train-f1"]
    train = load_corpus(reproduced.parents[1] / "towns")["train"]
    names = train.features["ner_tags"].feature.names
    gold = [[names[tag] for tag in tags] for tags in train["ner_tags"]]
    for path in reproduced.glob("crf/*/facts.json"):
        tagger = Tagger.from_pretrained(str(path.parent))
        predicted = [annotation.labels for annotation in tagger.annotate(train["tokens"])]
        seed = str(json.loads(path.read_text())["seed"])
        assert cell["values"][seed] == pytest.approx(100 * f1_score(gold, predicted), abs=1e-5)


def test_results_are_added_to_those_of_other_works(reproduced):
    first, plain, crf = json.loads((reproduced.parents[1] / "results.json").read_text())
    assert [row["work"] for row in (first, plain, crf)] == ["else", "towns/plain", "towns/crf"]
    f1 = [run["scores"]["test"]["f1"] for run in facts_of(reproduced, "plain")]
    assert (plain["f1_mean"], plain["f1_std"]) == (round(np.mean(f1), 2), round(statistics.stdev(f1), 2))
    assert (plain["seeds"], plain["published"], crf["baseline"]) == ([1, 2], "50.25 ± 0.50", "plain")
    assert "--seeds 1 2" in plain["command"] and str(reproduced.parent) not in plain["command"]


CHANGES = """title: Chunk tags
change_from: plain
columns:
  dev-O: {head: O, run: towns, split: validation, figure: raw_chunk_tags/O}
  dev-S: {head: S, run: towns, split: validation, figure: raw_chunk_tags/S}
rows:
  plain: {name: Plain, recipes: {towns: plain.yaml}, reads: all, published: {dev-O: 99.05}}
  crf: {name: CRF, recipes: {towns: crf.yaml}, reads: all, published: {dev-O: -1.68}}
  heads: {name: Heads, recipes: {towns: plain.yaml}, reads: H}
"""


def test_changes_from_a_row_are_of_the_same_seeds(reproduced, monkeypatch):
    monkeypatch.chdir(reproduced.parents[1])
    (reproduced.parents[1] / "changes.yaml").write_text(CHANGES)
    table, settings = read_table("changes.yaml"), Settings(str(reproduced), seeds=[1, 2])
    planned = plan(table, settings)
    filled = fill(table, planned, settings)
    dev = load_corpus("towns")["validation"]
    names = dev.features["ner_tags"].feature.names
    gold = [[names[tag] for tag in tags] for tags in dev["ner_tags"]]
    recalls = {
        (row, job.seed): raw_chunk_tags(Tagger.from_pretrained(str(job.folder)), list(dev["tokens"]), gold)
        for (row, _), jobs in planned.jobs.items()
        for job in jobs
    }
    for seed in (1, 2):
        for letter in "OS":
            plain, crf = (recalls[row, seed][letter]["all"] for row in ("plain", "crf"))
            assert filled.cells["plain", f"dev-{letter}"].values[seed] == plain
            assert filled.cells["crf", f"dev-{letter}"].values[seed] == crf - plain
    text = to_markdown(filled)
    assert f"| CRF | -1.68 | {filled.cells['crf', 'dev-O'].mean:+.2f} ± " in text
    assert "| Heads | – | – |" in text, "a model without attention has no such part"


def test_seeds_are_subtracted_pairwise_and_maxima_are_of_all():
    table = Table("t", "t", {"a": Column("a", highest=True)}, {key: TableRow(key) for key in "xy"}, change_from="x")
    cells = {("x", "a"): Cell(None, {1: 10.0, 2: 30.0}), ("y", "a"): Cell(None, {2: 35.0, 3: 1.0})}
    filled = Filled(table, cells, [], [])
    _subtract(filled, "x")
    _compare_rows(filled, Plan({}, {}))
    assert (cells["y", "a"].values, cells["x", "a"].shown) == ({2: 5.0}, 30.0)


def test_vectors_of_a_kind_come_before_those_of_all_kinds(folder):
    table, settings = read_table(str(folder / "towns.yaml")), Settings(vectors=["all.txt", "towns=towns.txt"])
    assert [vectors_of(kind, table, settings) for kind in ("towns", "glove")] == ["towns.txt", "all.txt"]


def test_a_failed_run_is_reported_and_others_continue(folder, script, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    table = read_table("towns.yaml")
    settings = Settings(str(tmp_path / "runs"), seeds=[1, 2])
    planned = plan(table, settings)
    # Fails for one of the rows, and leaves what a run leaves for the other.
    trainer = tmp_path / "train.py"
    trainer.write_text(
        "import os, sys\n"
        "if 'crf.yaml' in sys.argv[1]: sys.exit('hf-xorner train: the crf is broken.')\n"
        "open('threads', 'a').write(os.environ['OMP_NUM_THREADS'])\n"
    )
    messages = []
    failed = execute(planned.all(), [sys.executable, str(trainer)], 2, 3, messages.append)
    assert (folder / "threads").read_text() == "33"
    (folder / "threads").unlink()
    for (row, _), jobs in planned.jobs.items():
        expected = "the crf is broken." if row == "crf" else "it ended with the code 0"
        assert [failed[job.folder] for job in jobs] == [expected] * 2
    assert "seed 1: failed: the crf is broken." in to_markdown(fill(table, planned, settings, failed))
    monkeypatch.setattr("hf_xorner.cli.reproduce.execute", lambda *_: failed)
    assert script("reproduce", "towns.yaml", "--output", tmp_path / "runs", "--seeds", 1, 2)[0] == 1


def test_faults_are_one_line(folder, script, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    for fault_of, right, wrong in (("faulty", "paper_runs", "paper_run"), ("lost", "over: plain", "over: plane")):
        (folder / f"{fault_of}.yaml").write_text(TABLE.replace(right, wrong))
    for arguments, fact in (
        (("ma2016/tabel7",), "ma2016/table7"),
        (("faulty.yaml",), "faulty.yaml"),
        (("lost.yaml",), "lost.yaml is invalid: 'plane'"),
        (("towns.yaml", "--override", "lr"), "'lr'"),
        (("towns.yaml", "--override", "pos:a=1"), "'pos'"),
        (("towns.yaml", "--vectors", "glove=x"), "glove"),
        (("towns.yaml", "--only", "magic"), "magic"),
        (("towns.yaml", "--override", "learning_rate=x"), "overrides"),
    ):
        assert fact in fault(script("reproduce", *arguments))
    with lock_holder(tmp_path / ".towns.lock") as other:
        assert f"process {other.pid}" in fault(script("reproduce", "towns.yaml", "--output", tmp_path))
    assert not list(tmp_path.glob("plain*"))


# Over 2 s, as every recipe is read.
def test_every_table_is_listed_and_can_be_planned(tmp_path, corpora):
    assert len(table_names()) > 10
    for name in table_names():
        table = read_table(name)
        # Each run is missing, as the corpora are.
        planned = plan(table, Settings(str(tmp_path), data_dir=str(tmp_path)))
        assert len(planned.missing) == sum(len(row.recipes) for row in table.rows.values())
    # Rows of other tables bring only the runs that are shown.
    assert read_table("ma2016/table4").rows["ma2016"].recipes.keys() == {"pos"}
    settings = Settings(str(tmp_path), only=["brnn", "conll2003"], vectors=["none"], data_dir=str(corpora))
    assert list(plan(read_table("ma2016/table3"), settings).jobs) == [("brnn", "conll2003")]


@pytest.mark.slow  # loads CoNLL-2003
def test_corpus_statistics_match_the_paper(corpora, tmp_path):
    for name, column in (("ma2016/table2", "conll2003"), ("chen2019/table1", "conll2003"), ("li2020/table2", "wnut17")):
        table, settings = read_table(name), Settings(str(corpora / "no"), data_dir=str(corpora))
        filled = fill(table, plan(table, settings), settings)
        for key, row in table.rows.items():
            published, measured = row.published[column], filled.cells[key, column].mean
            if name == "li2020/table2":  # thousands, cut off after one decimal
                published, measured = float(published.removesuffix(" thousand")), measured // 100 / 10
            assert measured == published, key
        if name == "ma2016/table2":
            assert "| Train sentences | 38,219 | – | 14,987 | 14,987 |" in to_markdown(filled)
            assert "- WSJ: the Penn Treebank's WSJ sections are licensed." in to_markdown(filled)
    # Entities by the vocabulary of training and vectors: the parts that depend on training alone are the paper's.
    (tmp_path / "vectors.txt").write_text("the 1 2\n")
    settings = Settings(str(tmp_path), data_dir=str(corpora), vectors=[f"glove={tmp_path / 'vectors.txt'}"])
    table = read_table("ma2016/table8")
    filled = fill(table, plan(table, settings), settings)
    for column in ("conll2003-dev", "conll2003-test"):
        for parts in (("IV", "OOEV"), ("OOTV", "OOBV")):
            published = sum(table.rows[key].published[column] for key in parts)
            assert sum(filled.cells[key, column].mean for key in parts) == published
