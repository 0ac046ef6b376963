"""scripts/evaluate.py as a stranger runs it."""

import json
import subprocess
import sys

import pytest
from conftest import REPOSITORY, SENTENCES, build_model

PREDICTIONS = "Ann\tB-PER\tB-PER\nLee\tI-PER\tI-PER\nsaw\tO\tO\nOslo\tB-LOC\tB-PER\n\nrain\tO\tO\n"
GOLD = PREDICTIONS.replace("B-LOC\tB-PER", "B-LOC\tB-LOC")


def evaluate(folder, *options, fails=False):
    command = [sys.executable, str(REPOSITORY / "scripts" / "evaluate.py"), *map(str, options)]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert bool(result.returncode) == fails, result.stderr[-3000:]
    return (result.stderr if fails else result.stdout).strip()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "p.tsv").write_text(PREDICTIONS)
    (tmp_path / "gold.tsv").write_text(GOLD)
    return tmp_path


def test_predictions_of_any_system_are_judged(folder):
    said = evaluate(
        folder,
        *("--predictions", "p.tsv", "--compare", "gold.tsv", "--json", "out.json", "--plots", "plots"),
        *("--policy", "strict", "--resamples", 50),
    )
    assert "2 sentences, 5 words; malformed spans: strict" in said
    figures = json.loads((folder / "out.json").read_text())
    assert (figures["precision"], figures["recall"], figures["f1"], figures["accuracy"]) == (50, 50, 50, 80)
    assert figures["per_type"]["PER"] == {"precision": 50, "recall": 100, "f1": pytest.approx(200 / 3), "support": 1}
    assert figures["compare"]["f1"] == {"p": 1.0, "difference": -50.0, "trials": 2, "exact": True}
    assert set(figures["ci95"]) == {"precision", "recall", "f1"}
    assert {"per_length", "surface", "confusion", "chunk_tags", "macro"} <= set(figures)
    assert sorted(path.name for path in (folder / "plots").iterdir()) == ["confusion.png", "per_type.png"]


def test_a_model_is_judged_on_a_corpus(folder, tokenizer):
    model = build_model("cross-bilstm-cnn", tokenizer, decoder="crf")
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    (folder / "data").mkdir()
    rows = [
        f"{word}\tB-PER\n" if word[0].isupper() else f"{word}\tO\n" for words in SENTENCES for word in [*words, "x"]
    ]
    for name in ("train", "test"):
        (folder / "data" / f"{name}.conll").write_text("".join(rows))
    (folder / "vectors.txt").write_text("ann 0.1 0.2\nsmith 0.3\n")
    said = evaluate(
        folder,
        *("--model", "model", "--dataset", "data", "--json", "out.json", "--save_predictions", "said.tsv"),
        *("--vector_words", "vectors.txt", "--resamples", 0),
    )
    figures = json.loads((folder / "out.json").read_text())
    assert set(figures["vocabulary"]["entities"]) == {"IV", "OOTV", "OOEV", "OOBV"}
    assert figures["seen"]["unseen"]["support"] == 0
    assert figures["calibration"]["count"] > 0
    assert f"{figures['f1']:.2f}" in said
    again = evaluate(folder, "--predictions", "said.tsv", "--json", "again.json", "--resamples", 0)
    same = json.loads((folder / "again.json").read_text())
    assert {name: same[name] for name in ("f1", "accuracy", "confusion", "surface")} == {
        name: figures[name] for name in ("f1", "accuracy", "confusion", "surface")
    }
    assert again


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give either --model and --dataset, or --predictions."),
        (["--model", "m"], "give either --model and --dataset, or --predictions."),
        (["--predictions", "no.tsv"], "[Errno 2] No such file or directory: 'no.tsv'"),
        (["--predictions", "p.tsv", "--policy", "loose"], "unknown policy 'loose'; expected one of strict, conlleval."),
        (
            ["--model", "m", "--dataset", "xor", "--split", "dev"],
            "xor has no split 'dev'; choose one of train, validation, test.",
        ),
        (
            ["--predictions", "p.tsv", "--scheme", "bmes"],
            "the tag 'I-PER' is not bmes: its tags are O, or a type after B-, M-, E-, S-.",
        ),
    ],
)
def test_faults_are_one_sentence(folder, options, message):
    said = evaluate(folder, *options, fails=True).split("\n")[-1]
    assert said == f"evaluate.py: {message}"
