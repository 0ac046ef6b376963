"""`hf-xorner reproduce` on a small table: interrupted, continued, and checked by hand."""

import contextlib
import io
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from conftest import REPOSITORY
from helpers import fault, lock_holder, ok
from seqeval.metrics import f1_score

from hf_xorner import Tagger, load_corpus
from hf_xorner.cli import reproduce
from hf_xorner.evaluation.chunk_tags import raw_chunk_tags
from hf_xorner.papers.jobs import Settings, execute, identity_of, plan
from hf_xorner.papers.presentation import to_markdown
from hf_xorner.papers.reproduction import fill, significance
from hf_xorner.papers.results import merge_results, read_results
from hf_xorner.papers.tables import published_number, published_text, read_table
from hf_xorner.training.recipes import table_names

SCRIPT = str(REPOSITORY / "scripts" / "reproduce.py")
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


def started(folder, *options):
    command = [sys.executable, SCRIPT, "towns.yaml", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # In the background of a shell, the tests ignore Ctrl-C, and the processes that they start inherit it.
    return subprocess.Popen(
        command, cwd=folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **pipes
    )


def children_of(process):
    """The child processes of a process; empty where the system does not list them."""
    try:
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        return []


def wait_for(condition, process):
    for _ in range(1500):
        if found := condition():
            return found
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    raise AssertionError("nothing happened")


@pytest.fixture(scope="module")
def reproduced(folder):
    """The table, interrupted once in the middle of a run and then run to its end."""
    runs = folder / "runs" / "tables"
    first = started(folder, "--jobs", "1", "--seeds", "1")
    wait_for(lambda: list(runs.glob("crf/*/checkpoint-*/trainer_state.json")), first)
    children = children_of(first)
    first.send_signal(signal.SIGINT)
    out, errors = first.communicate(timeout=60)
    assert first.returncode == 130, errors
    assert errors.strip().endswith("interrupted; the same command continues.")
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
    begun = {path: path.stat().st_mtime_ns for path in runs.glob("*/*/facts.json")}
    results = folder / "results.json"
    results.write_text('[{"work": "else", "dataset": "d", "split": "test", "f1_mean": 1.5}]')
    # In this process, as most of the time goes into imports.
    words = ["towns.yaml", "--seeds", "1", "2", "--jobs", "2", "--results", "results.json"]
    before = os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = reproduce.run_table(reproduce.parser().parse_args(words))
    finally:
        os.chdir(before)
    return {"folder": folder, "runs": runs, "out": out.getvalue(), "code": code, "begun": begun}


def facts_of(reproduced, recipe):
    paths = sorted(reproduced["runs"].glob(f"{recipe}/*/facts.json"))
    return [json.loads(path.read_text()) for path in paths]


def test_an_interrupted_table_is_continued(reproduced):
    assert reproduced["code"] == 0
    assert len(reproduced["begun"]) == 1
    for path, time_written in reproduced["begun"].items():
        assert path.stat().st_mtime_ns == time_written, "a finished run was run again"
    for recipe, epochs in (("plain", 2), ("crf", 5)):
        found = facts_of(reproduced, recipe)
        assert sorted(one["seed"] for one in found) == [1, 2]
        # Also of the epochs before the interruption, which the checkpoint remembers.
        assert all([row["epoch"] for row in one["curve"]] == list(range(1, epochs + 1)) for one in found)
    logs = [path.read_text() for path in reproduced["runs"].glob("crf/*/train.log")]
    assert any(log.count("sentences)") == 2 for log in logs), "none was started twice"


def test_scores_match_the_runs(reproduced):
    written = json.loads((reproduced["runs"] / "towns.json").read_text(), parse_constant=pytest.fail)
    assert written["title"] == "Towns"
    for key in ("plain", "crf"):
        found = facts_of(reproduced, key)
        cell = written["rows"][key]["cells"]["test-f1"]
        figures = {str(one["seed"]): one["scores"]["test"]["f1"] for one in found}
        assert cell["values"] == figures
        assert cell["mean"] == pytest.approx(sum(figures.values()) / 2, abs=1e-6)
        (a, b) = figures.values()
        assert cell["std"] == pytest.approx(abs(a - b) / 2**0.5, abs=1e-6)
        types = written["rows"][key]["cells"]["test-loc"]["values"]
        assert types == {str(one["seed"]): one["scores"]["test"]["per_type"]["LOC"]["f1"] for one in found}
    assert written["rows"]["plain"]["cells"]["test-f1"]["published"] == "50.25 ± 0.50"
    assert written["rows"]["stranger"]["cells"]["test-f1"]["values"] == {}
    assert written["rows"]["poor"]["cells"]["test-f1"]["mean"] is None
    speeds = {
        key: statistics.mean(one["speed"]["training_tokens_per_second"] for one in facts_of(reproduced, key))
        for key in ("plain", "crf")
    }
    assert written["rows"]["crf"]["cells"]["speed"]["shown"] == pytest.approx(speeds["crf"] / speeds["plain"], abs=1e-5)


def test_maxima_match_the_runs(reproduced):
    written = json.loads((reproduced["runs"] / "towns.json").read_text())["rows"]
    text = (reproduced["runs"] / "towns.md").read_text(encoding="utf-8")
    for key in ("plain", "crf"):
        cell = written[key]["cells"]["highest"]
        highest = max(one["scores"]["test"]["f1"] for one in facts_of(reproduced, key))
        assert cell["shown"] == pytest.approx(highest, abs=1e-5)
        assert cell["p"] is None
        assert f"| – | {highest:.2f} |" in text


def test_changes_from_a_row_are_of_the_same_seeds(reproduced, monkeypatch):
    monkeypatch.chdir(reproduced["folder"])
    (reproduced["folder"] / "changes.yaml").write_text(TABLE.replace("title:", "change_from: plain\ntitle:"))
    table, settings = read_table("changes.yaml"), Settings(reproduced["folder"] / "runs" / "tables", seeds=(1, 2))
    filled = fill(table, plan(table, settings), settings)
    f1 = {
        key: {one["seed"]: one["scores"]["test"]["f1"] for one in facts_of(reproduced, key)} for key in ("plain", "crf")
    }
    changes = {seed: f1["crf"][seed] - f1["plain"][seed] for seed in (1, 2)}
    assert filled.cells["plain", "test-f1"].mean == pytest.approx(statistics.mean(f1["plain"].values()))
    assert filled.cells["crf", "test-f1"].values == pytest.approx(changes)
    assert filled.cells["crf", "test-f1"].std == pytest.approx(statistics.stdev(changes.values()))


def test_the_training_split_is_scored_with_the_saved_models(reproduced):
    written = json.loads((reproduced["runs"] / "towns.json").read_text())["rows"]["crf"]["cells"]["train-f1"]
    lines = (reproduced["folder"] / "towns" / "train.txt").read_text().split("\n\n")
    rows = [[line.split(" ") for line in sentence.splitlines()] for sentence in lines if sentence]
    words, gold = ([[pair[place] for pair in row] for row in rows] for place in (0, 1))
    for path in reproduced["runs"].glob("crf/*/facts.json"):
        predicted = [tags for tags, _ in Tagger.from_pretrained(str(path.parent)).label(words)]
        seed = str(json.loads(path.read_text())["seed"])
        assert written["values"][seed] == pytest.approx(100 * f1_score(gold, predicted), abs=1e-5)
    assert written["p"] is None


def test_rows_are_tested_against_the_baseline(reproduced):
    written = json.loads((reproduced["runs"] / "towns.json").read_text())
    cell = written["rows"]["crf"]["cells"]["test-f1"]
    baseline = written["rows"]["plain"]["cells"]["test-f1"]
    assert baseline["p"] is None
    assert 0 <= cell["p"] <= 1
    sums = {}
    for key in ("plain", "crf"):
        counts = [np.array(json.loads(p.read_text())["test"]) for p in reproduced["runs"].glob(f"{key}/*/sentence_c*")]
        assert [len(rows) for rows in counts] == [30, 30]
        correct, predicted, gold = np.sum(counts, axis=(0, 1))
        sums[key] = 200 * correct / (predicted + gold)
    assert cell["difference"] == pytest.approx(sums["crf"] - sums["plain"], abs=1e-5)


def test_the_markdown_matches_the_json(reproduced):
    text = (reproduced["runs"] / "towns.md").read_text(encoding="utf-8")
    assert text in reproduced["out"]
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert rows["Others"].startswith("| Others | 12.50 | – |")
    figures = [one["scores"]["test"]["f1"] for one in facts_of(reproduced, "plain")]
    mean, deviation = statistics.mean(figures), statistics.stdev(figures)
    assert f"| Plain (baseline) | 50.25 ± 0.50 | {mean:.2f} ± {deviation:.2f} |" in rows["Plain (baseline)"]
    assert "With \\| CRF" in text
    assert "- 2 seeds; the paper has 5 runs." in text
    assert "- With vectors (towns): needs vectors (vectors of towns); give them as --vectors towns=FILE." in text
    assert "Not ours, as published: Others." in text
    assert (reproduced["runs"] / "towns.png").read_bytes().startswith(b"\x89PNG")


def test_results_are_merged(reproduced):
    path = reproduced["folder"] / "results.json"
    rows = json.loads(path.read_text())
    assert rows[0] == {"work": "else", "dataset": "d", "split": "test", "f1_mean": 1.5}
    assert [row["work"] for row in rows] == ["else", "towns/plain", "towns/crf"]
    figures = [one["scores"]["test"]["f1"] for one in facts_of(reproduced, "plain")]
    plain = rows[1]
    assert plain["f1_mean"] == round(statistics.mean(figures), 2)
    assert plain["f1_std"] == round(statistics.stdev(figures), 2)
    assert plain["dev_mean"] == round(
        statistics.mean(one["scores"]["validation"]["f1"] for one in facts_of(reproduced, "plain")), 2
    )
    assert (plain["p"], plain["baseline"], rows[2]["baseline"]) == (None, None, "plain")
    assert 0 <= rows[2]["p"] <= 1
    command = plain.pop("command")
    assert "--seeds 1 2" in command and "--seed " not in command and str(reproduced["folder"]) not in command
    assert {name: plain[name] for name in ("dataset", "split", "model_type", "features", "seeds", "published")} == {
        "dataset": "towns",
        "split": "test",
        "model_type": "bilstm-cnn",
        "features": "none",
        "seeds": [1, 2],
        "published": "50.25 ± 0.50",
    }


def test_results_of_plain_tags_stand_beside_those_of_entities(reproduced, monkeypatch, tmp_path):
    monkeypatch.chdir(reproduced["folder"])
    table, settings = read_table("towns.yaml"), Settings(reproduced["runs"], seeds=(1,))
    filled = fill(table, plan(table, settings), settings)
    path = tmp_path / "results.json"
    before = merge_results(path, filled)
    for of_seeds in filled.facts.values():
        for seed, one in of_seeds.items():
            of_seeds[seed] = replace(one, scores={"test": {"accuracy": 97.125}, "validation": {"accuracy": 96.0}})
    after = merge_results(path, filled)
    assert after[: len(before)] == before
    assert [row["work"] for row in after[len(before) :]] == [row["work"] for row in before]
    for row in after[len(before) :]:
        assert (row["accuracy_mean"], row["accuracy_std"], row["dev_mean"]) == (97.12, None, 96.0)
        assert "f1_mean" not in row and row["published"] is None
    assert merge_results(path, filled) == after == read_results(path)


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


def test_recall_of_chunk_tags_is_shown_as_a_change(reproduced, monkeypatch):
    monkeypatch.chdir(reproduced["folder"])
    (reproduced["folder"] / "changes.yaml").write_text(CHANGES)
    table, settings = read_table("changes.yaml"), Settings(reproduced["runs"], seeds=(1, 2))
    planned = plan(table, settings)
    filled = fill(table, planned, settings)
    dev = load_corpus("towns")["validation"]
    names = dev.features["ner_tags"].feature.names
    gold = [[names[tag] for tag in tags] for tags in dev["ner_tags"]]
    found = {
        (row, job.seed): raw_chunk_tags(Tagger.from_pretrained(str(job.folder)), list(dev["tokens"]), gold)
        for (row, _), jobs in planned.jobs.items()
        for job in jobs
    }
    for seed in (1, 2):
        for letter in "OS":
            plain, crf = (found[row, seed][letter]["all"] for row in ("plain", "crf"))
            assert filled.cells["plain", f"dev-{letter}"].values[seed] == plain
            assert filled.cells["crf", f"dev-{letter}"].values[seed] == crf - plain
    text = to_markdown(filled)
    assert f"| Plain | 99.05 | {filled.cells['plain', 'dev-O'].mean:.2f} ± " in text
    assert f"| CRF | -1.68 | {filled.cells['crf', 'dev-O'].mean:+.2f} ± " in text
    assert "| Heads | – | – |" in text, "a model without attention has no such part"
    assert merge_results(reproduced["folder"] / "none.json", filled) == []


def test_a_dry_run_lists_finished_runs(reproduced, script, monkeypatch):
    monkeypatch.chdir(reproduced["folder"])
    out = ok(script_in(script, reproduced["folder"], monkeypatch, "towns.yaml", "--seeds", 1, 2, "--dry_run"))
    states = [line.split()[0] for line in out.splitlines()[2:]]
    assert sorted(states) == ["done"] * 4 + ["missing"]
    # Another seed, and another option, are other runs; the same table without them is still there.
    more = ("--seeds", 3, "--epochs", 1, "--only", "plain", "--dry_run")
    out = ok(script_in(script, reproduced["folder"], monkeypatch, "towns.yaml", *more))
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["new", *["missing"] * 2]
    assert "--num_train_epochs 1" in out


def test_only_takes_rows_and_runs(tmp_path, corpora):
    table = read_table("ma2016/table3")
    planned = plan(table, Settings(tmp_path, only=["brnn", "conll2003"], vectors={"": "none"}, data_dir=str(corpora)))
    assert list(planned.jobs) == [("brnn", "conll2003")]


def test_a_failed_run_is_reported_and_others_continue(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    table = read_table("towns.yaml")
    settings = Settings(tmp_path / "runs", seeds=(1, 2))
    planned = plan(table, settings)
    # Fails for one of the rows, and leaves what a run leaves for the other.
    trainer = tmp_path / "train.py"
    trainer.write_text(
        "import os, sys\n"
        "if 'crf.yaml' in sys.argv[1]: sys.exit('hf-xorner train: the crf is broken.')\n"
        "open('threads', 'a').write(os.environ['OMP_NUM_THREADS'])\n"
    )
    said = []
    failed = execute(planned.all(), [sys.executable, str(trainer)], 2, 3, said.append)
    assert (folder / "threads").read_text() == "33"
    (folder / "threads").unlink()
    assert sum(line.startswith("started") for line in said) == 4
    for (row, _), jobs in planned.jobs.items():
        expected = "the crf is broken." if row == "crf" else "it ended with the code 0"
        assert [failed[job.folder] for job in jobs] == [expected] * 2
    text = to_markdown(fill(table, planned, settings, failed))
    assert "- With \\| CRF (towns), seed 1: failed: the crf is broken." in text.replace("With |", "With \\|")
    assert "| Plain (baseline) | 50.25 ± 0.50 | – |" in text


def test_facts_of_another_run_are_ignored(reproduced, monkeypatch):
    monkeypatch.chdir(reproduced["folder"])
    table = read_table("towns.yaml")
    settings = Settings(reproduced["folder"] / "runs" / "tables", seeds=(1,))
    (job,) = plan(table, settings).jobs["plain", "towns"]
    facts = job.facts()
    assert facts is not None
    for change in ({"seed": 2}, {"options": facts["options"] | {"dropout": 0.1}}, {"versions": {"torch": "1"}}):
        assert identity_of(**identity_parts(facts) | change) != job.identity
    assert identity_of(**identity_parts(facts)) == job.identity


def identity_parts(facts):
    parts = {name: facts[name] for name in ("options", "seed", "inputs", "versions")}
    return parts | {"fingerprint": facts["data"]["fingerprint"]}


def script_in(script, folder, monkeypatch, *arguments):
    monkeypatch.chdir(folder)
    return script("reproduce.py", *arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("ma2016/tabel7",), "The table 'ma2016/tabel7' is unknown; the nearest names are ma2016/table7,"),
        (("towns.yaml", "--override", "lr"), "The override 'lr' sets nothing; write option=value."),
        (("towns.yaml", "--override", "pos:a=1"), "is for the run 'pos'; the table has towns."),
        (("towns.yaml", "--vectors", "glove=x"), "vectors='glove' is not a kind of this table; it needs towns."),
        (("towns.yaml", "--only", "magic"), "only='magic' is neither a row nor a run"),
        (("towns.yaml", "--seeds", 1, 1), "a seed is named twice"),
        (("towns.yaml", "--jobs", 0), "jobs=0 is too small"),
        (("towns.yaml", "--epochs", 0), "with these overrides nothing can be run: num_train_epochs=0.0 must be"),
        (("towns.yaml", "--override", "lr=1"), "with these overrides nothing can be run: "),
        ((), "name a table; --list lists them."),
    ],
)
def test_invalid_arguments_give_one_line_errors(folder, script, monkeypatch, arguments, sentence):
    assert sentence in fault(script_in(script, folder, monkeypatch, *arguments))


def test_a_table_locked_by_another_process_is_refused(folder, script, monkeypatch, tmp_path):
    with lock_holder(tmp_path / ".towns.lock") as other:
        sentence = fault(script_in(script, folder, monkeypatch, "towns.yaml", "--output", tmp_path))
    assert f"{tmp_path / 'towns'} is being written by process {other.pid} on " in sentence
    assert not list(tmp_path.glob("plain*"))


def test_invalid_results_files_are_refused_before_training(folder, script, monkeypatch, tmp_path):
    (tmp_path / "results.json").write_text("{}")
    options = ["towns.yaml", "--output", tmp_path, "--results", tmp_path / "results.json"]
    assert "results.json: is not a list of results" in fault(script_in(script, folder, monkeypatch, *options))
    assert not list(tmp_path.glob("plain*"))


def test_tables_are_listed(script):
    lines = ok(script("reproduce.py", "--list")).splitlines()
    assert [line.split()[0] for line in lines] == table_names()
    assert lines[0].split() == ["chen2019/table1", "Corpora", "statistics"]


@pytest.mark.parametrize("name", table_names())
def test_every_table_can_be_planned(name, script, tmp_path):
    """Each run is listed, or the reason why it is missing; here the corpora are."""
    out = ok(script("reproduce.py", name, "--dry_run", "--data_dir", tmp_path, "--output", tmp_path))
    table = read_table(name)
    listed = [line for line in out.splitlines() if line.startswith("  missing ")]
    assert len(listed) == sum(len(row.recipes) for row in table.rows.values())


def test_rows_of_other_tables_bring_only_the_runs_that_are_shown():
    assert read_table("ma2016/table3").rows["blstm-cnns-crf"].recipes.keys() == {"pos", "conll2003"}
    for name, run in (("ma2016/table4", "pos"), ("ma2016/table5", "conll2003")):
        row = read_table(name).rows["ma2016"]
        assert row.recipes.keys() == row.vectors.keys() == {run}


def test_missing_columns_give_the_reason(tmp_path):
    table = read_table("lample2016/table2")
    settings = Settings(tmp_path)
    filled = fill(table, plan(table, settings), settings)
    assert filled.notes == ["CoNLL-2003, German: the German part of CoNLL-2003 is licensed."]
    assert "| S-LSTM | 75.66 | – |" in to_markdown(filled)


@pytest.mark.parametrize(
    ("name", "column"), [("ma2016/table2", "conll2003"), ("chen2019/table1", "conll2003"), ("li2020/table2", "wnut17")]
)
def test_corpus_statistics_match_the_paper(corpora, name, column):
    table, settings = read_table(name), Settings(corpora / "no", data_dir=str(corpora))
    filled = fill(table, plan(table, settings), settings)
    for key, row in table.rows.items():
        published, measured = row.published[column], filled.cells[key, column].mean
        if name == "li2020/table2":  # thousands, cut off after one decimal
            number, _, unit = published.partition(" ")
            published, measured = float(number), measured // 100 / 10
            assert unit == "thousand"
        assert measured == published, key


def test_statistics_are_written_beside_the_published_ones(corpora):
    table, settings = read_table("ma2016/table2"), Settings(corpora / "no", data_dir=str(corpora))
    text = to_markdown(fill(table, plan(table, settings), settings))
    assert "| Train sentences | 38,219 | – | 14,987 | 14,987 |" in text
    assert "- WSJ: the Penn Treebank's WSJ sections are licensed." in text


def test_entities_are_split_by_training_and_vector_vocabulary(corpora, tmp_path):
    """The counts of words that training has are the paper's; what the vectors have is counted once more, by a loop."""

    def blocks(split):
        text = (corpora / "conll2003" / f"{split}.txt").read_text(encoding="utf-8")
        return [[line.split() for line in block.splitlines() if line.strip()] for block in text.split("\n\n")]

    train = {row[0].lower() for block in blocks("train") for row in block}
    # Any vocabulary will do: every word whose length is even, in lower case.
    words = {row[0].lower() for split in ("dev", "test") for block in blocks(split) for row in block}
    known = {word for word in words if len(word) % 2 == 0}
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"{word} 1 2\n" for word in sorted(known)), encoding="utf-8")
    table = read_table("ma2016/table8")
    settings = Settings(tmp_path, data_dir=str(corpora), vectors={"glove": str(vectors)})
    filled = fill(table, plan(table, settings), settings)
    for split, column in (("dev", "conll2003-dev"), ("test", "conll2003-test")):
        counts = dict.fromkeys(table.rows, 0)
        for block in blocks(split):
            for entity in entities_of_iob1(block):
                unseen, unknown = (any(word.lower() not in those for word in entity) for those in (train, known))
                counts[{(0, 0): "IV", (1, 0): "OOTV", (0, 1): "OOEV", (1, 1): "OOBV"}[unseen, unknown]] += 1
        assert {key: filled.cells[key, column].mean for key in table.rows} == counts
        assert min(counts.values()) > 0
        published = {key: row.published[column] for key, row in table.rows.items()}
        assert counts["IV"] + counts["OOEV"] == published["IV"] + published["OOEV"]
        assert counts["OOTV"] + counts["OOBV"] == published["OOTV"] + published["OOBV"]


def entities_of_iob1(rows):
    """The words of each entity, where I- continues an entity of its type, and B- begins one after another."""
    entities, before = [], "O"
    for row in rows:
        tag = row[-1]
        if tag != "O":
            if tag.startswith("I-") and before[1:] == tag[1:]:
                entities[-1].append(row[0])
            else:
                entities.append([row[0]])
        before = tag
    return entities


def test_seeds_of_a_sentence_are_swapped_together():
    draw = np.random.default_rng(0)
    gold = draw.integers(1, 3, 6)
    ours, theirs = ([], [])
    for runs, chance in ((ours, 0.8), (theirs, 0.3)):
        for _ in range(2):
            correct = draw.binomial(gold, chance)
            runs.append(np.stack([correct, correct + draw.integers(0, 2, 6), gold], axis=1))
    found = significance(ours, theirs)
    a, b = np.sum(ours, 0), np.sum(theirs, 0)

    def distance(swapped):
        first, second = np.where(swapped[:, None], b, a).sum(0), np.where(swapped[:, None], a, b).sum(0)
        return abs(first[0] * (second[1] + second[2]) - second[0] * (first[1] + first[2])) / (
            (first[1] + first[2]) * (second[1] + second[2])
        )

    every = [distance(np.array([number >> place & 1 for place in range(6)], bool)) for number in range(64)]
    assert found["f1"]["exact"]
    assert found["f1"]["p"] == pytest.approx(np.mean(np.array(every) >= every[0] - 1e-12))


def test_published_scores_are_printed_unchanged():
    assert [published_text(value) for value in (91.2, 14987, "1.15–1.16", None)] == [
        "91.20",
        "14,987",
        "1.15–1.16",
        "–",
    ]
    assert published_number("87.75 ± 0.14") == (87.75, 0.14)
    assert published_number(91) == (91.0, None)
    assert published_number("+4.6") == (4.6, None)
    assert published_number(-1.68) == (-1.68, None)
    assert published_number("1.15–1.16") == published_number(None) == (None, None)


def test_other_results_files_are_not_changed(tmp_path, corpora):
    table, settings = read_table("ma2016/table2"), Settings(tmp_path, data_dir=str(corpora))
    filled = fill(table, plan(table, settings), settings)
    path = tmp_path / "results.json"
    for text in ('{"a": 1}', "[1]", "no json"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"results\.json: is not"):
            merge_results(path, filled)
        assert path.read_text() == text
