"""`hf-xorner evaluate` from the command line."""

import json
import shutil

import pytest
from conftest import SENTENCES, build_model
from helpers import fault, ok

from hf_xorner import Tagger, train
from hf_xorner.corpora.schemes import from_iob2

PREDICTIONS = "Ann\tB-PER\tB-PER\nLee\tI-PER\tI-PER\nsaw\tO\tO\nOslo\tB-LOC\tB-PER\n\nrain\tO\tO\n"
GOLD = PREDICTIONS.replace("B-LOC\tB-PER", "B-LOC\tB-LOC")
# IOB1: B- only where an entity stands right after another of its type.
IOB1 = "Ann\tI-PER\tI-PER\nBo\tB-PER\tB-PER\n\nOslo\tI-LOC\tI-LOC\n"


@pytest.fixture
def folder(tmp_path, script):
    (tmp_path / "p.tsv").write_text(PREDICTIONS)
    (tmp_path / "gold.tsv").write_text(GOLD)
    return tmp_path


@pytest.fixture
def evaluate(folder, script):
    """Runs the script in this process; returns its output, or its error line if it must fail."""

    def run(*options, fails=False):
        result = script("evaluate", *options)
        return fault(result) if fails else ok(result).strip()

    return run


@pytest.fixture
def figures(evaluate, folder):
    """Runs the script and returns the figures it writes; NaN and infinity are none."""

    def run(*options):
        evaluate(*options, "--json", "out.json", "--resamples", 0)
        return json.loads((folder / "out.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)

    return run


@pytest.fixture
def corpus(folder):
    """A corpus of one sentence, which the training split holds twice."""
    (folder / "data").mkdir()
    rows = "".join(f"{word}\t{'B-PER' if word[0].isupper() else 'O'}\n" for words in SENTENCES for word in words)
    (folder / "data" / "train.conll").write_text(f"{rows}\n{rows}")
    (folder / "data" / "test.conll").write_text(rows)
    return folder / "data"


@pytest.fixture
def model(folder, tokenizer):
    """Save a model in a folder of a given name."""

    def save(name, spread=0.5, **options):
        model = build_model("cross-bilstm-cnn", tokenizer, spread=spread, **options)
        Tagger(model, tokenizer).save_pretrained(folder / name)
        return name

    return save


def test_predictions_of_any_system_are_scored(folder, evaluate):
    output = evaluate(
        *("--predictions", "p.tsv", "--compare", "gold.tsv", "--policy", "strict", "--resamples", "50"),
        *("--json", "new/out.json", "--plots", "new/plots", "--save_predictions", "new/p.tsv"),
    )
    assert output.startswith("2 sentences, 5 words; tags: iob2; ")
    figures = json.loads((folder / "new" / "out.json").read_text())
    assert (figures["precision"], figures["recall"], figures["f1"], figures["accuracy"]) == (50, 50, 50, 80)
    assert figures["per_type"]["PER"] == {"precision": 50, "recall": 100, "f1": pytest.approx(200 / 3), "support": 1}
    assert figures["compare"]["scores"]["f1"] == {"p": 1.0, "difference": -50.0}
    assert {"ci95", "per_length", "surface", "confusion", "chunk_tags", "macro"} <= set(figures)
    assert (folder / "new" / "p.tsv").read_text() == f"{PREDICTIONS}\n"
    assert len(list((folder / "new" / "plots").iterdir())) == 1


def test_a_model_is_scored_on_a_corpus(folder, corpus, model, evaluate):
    output = evaluate(
        *("--model", model("m", decoder="crf"), "--dataset", "data", "--json", "out.json"),
        *("--save_predictions", "said.tsv", "--resamples", 0),
    )
    figures = json.loads((folder / "out.json").read_text())
    assert (figures["sentences"], figures["tokens"]) == (1, sum(map(len, SENTENCES)))
    assert figures["vocabulary"]["entities"]["OOTV"]["support"] == 0
    assert figures["seen"]["unseen"]["support"] == 0
    assert figures["calibration"]["count"] > 0
    assert f"{figures['f1']:.2f}" in output
    evaluate("--predictions", "said.tsv", "--json", "again.json", "--resamples", 0)
    again = json.loads((folder / "again.json").read_text())
    assert all(again[name] == figures[name] for name in ("f1", "accuracy", "confusion", "surface"))
    evaluate("--model", "m", "--dataset", "data", "--split", "train", "--json", "train.json", "--resamples", 0)
    assert not {"seen", "vocabulary"} & set(json.loads((folder / "train.json").read_text()))


def test_the_training_corpus_of_another_system_can_be_named(folder, corpus, figures):
    # The scheme speaks of the predictions: BMES has no I-.
    (corpus / "train.conll").write_text("Oslo\tB-PER\nBay\tI-PER\n")
    (folder / "bmes.tsv").write_text("Ann\tS-PER\tS-PER\nOslo\tB-LOC\tE-LOC\nBay\tE-LOC\tE-LOC\n")
    scores = figures("--predictions", "bmes.tsv", "--dataset", "data", "--scheme", "bmes")
    assert (scores["seen"]["seen"]["support"], scores["seen"]["unseen"]["support"]) == (1, 1)
    assert scores["vocabulary"]["words"]["IV"]["support"] == 2
    assert (scores["scheme"], scores["malformed"]) == ("bmes", {"gold": 0, "predicted": 2})


def test_iob1_is_recognised_unless_a_scheme_is_named(folder, figures):
    (folder / "iob1.tsv").write_text(IOB1)
    scores = figures("--predictions", "iob1.tsv", "--policy", "strict")
    assert (scores["scheme"], scores["support"], scores["f1"]) == ("iob1", 3, 100)
    (folder / "io.tsv").write_text(IOB1.replace("I-", ""))
    assert figures("--predictions", "io.tsv", "--scheme", "io")["scheme"] == "iob1"
    scores = figures("--predictions", "iob1.tsv", "--policy", "strict", "--scheme", "iob2")
    assert (scores["scheme"], scores["malformed"]) == ("iob2", {"gold": 2, "predicted": 2})


def test_parts_of_speech_are_scored(folder, model, evaluate, figures):
    (folder / "tagged").mkdir()
    (folder / "tagged" / "dev.conll").write_text("a\tDT\nb\tNN\n")
    options = ("--dataset", "tagged", "--model", model("m", labels=["DT", "NN"]), "--min_precision", 90)
    assert "labels single words" in evaluate(*options, fails=True)
    (folder / "pos.tsv").write_text("a\tDT\tDT\nb\tNN\tVB\n")
    assert figures("--predictions", "pos.tsv", "--plots", "plots")["accuracy"] == 50
    assert not (folder / "plots").exists()


def test_saved_predictions_can_be_compared_despite_sentences_without_words(folder, model, figures):
    rows = [{"tokens": ["Ann", "left"], "ner_tags": ["B-PER", "O"]}, {"tokens": [], "ner_tags": []}]
    (folder / "c.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    options = ("--model", model("m"), "--dataset", "c.jsonl", "--split", "train")
    figures(*options, "--save_predictions", "said.tsv")
    scores = figures(*options, "--compare", "said.tsv")
    assert (scores["sentences"], scores["compare"]["scores"]["f1"]["p"]) == (2, 1)


def test_two_models_are_compared_with_the_sentences_in_which_they_differ(folder, corpus, model, evaluate, caplog):
    output = evaluate(
        model("m"), model("n", decoder="crf"), "data", "--json", "out.json", "--save_predictions", "m.tsv"
    )
    figures = json.loads((folder / "out.json").read_text())
    evaluate("n", "data", "--compare", "m.tsv", "--json", "reversed.json")
    reverse = json.loads((folder / "reversed.json").read_text())
    assert figures["compare"]["scores"]["f1"]["difference"] == -reverse["compare"]["scores"]["f1"]["difference"] != 0
    (row,) = figures["compare"]["sentences"]  # the corpus has one sentence
    (mirrored,) = reverse["compare"]["sentences"]
    assert row["other"] == mirrored["predicted"] != row["predicted"]
    assert figures["compare"]["better"] == reverse["compare"]["worse"]
    assert f"    other:     {', '.join(f'{kind} {text!r}' for kind, text in row['other']) or 'nothing'}" in output
    assert "unlike knows none of the labels" in evaluate("m", model("unlike", labels=["O", "B-X"]), "data", fails=True)
    evaluate(model("part", labels=["O", "B-PER"]), "data")
    assert "part lacks the labels I-PER" in caplog.text


def test_a_model_is_compared_with_predictions_in_another_scheme(folder, corpus, model, figures, evaluate):
    evaluate(model("m", decoder="crf"), "data", "--save_predictions", "same.tsv")
    lines = (folder / "same.tsv").read_text().splitlines()
    words, *tags = zip(*(line.split("\t") for line in lines if line), strict=True)
    rows = zip(words, *(from_iob2(column, "bioes") for column in tags), strict=True)
    (folder / "bioes.tsv").write_text("\n".join([*map("\t".join, rows), "", ""]))
    scores = figures("--predictions", "bioes.tsv", "--compare", "m", "--policy", "strict")
    assert scores["scheme"] == "bioes" and scores["compare"]["scores"]["f1"]["difference"] == 0


def test_errors_are_one_line_before_the_model_is_read(folder, evaluate):
    (folder / "other.tsv").write_text(PREDICTIONS.replace("B-LOC\tB-PER", "B-PER\tB-PER"))
    for options, message in (
        ("--model m", "give either a model and a corpus, or --predictions"),
        ("--model m --predictions p.tsv", "give either a model and a corpus, or --predictions"),
        ("--predictions p.tsv --policy loose", "loose"),
        ("--predictions p.tsv --scheme bmes", "the tag 'I-PER' is not bmes"),
        ("--predictions p.tsv --resamples -1", "resamples=-1"),
        ("--predictions p.tsv --compare other.tsv", "gold tags of sentence 0"),
        ("--predictions p.tsv --compare missing.tsv", "missing.tsv: there is no such file"),
        ("--predictions p.tsv --json p.tsv", "p.tsv: is an input"),
        ("m m xor --compare m", "both m and --compare name the other system"),
        ("--model m --dataset xor --split dev", "xor has no split 'dev'"),
    ):
        errors = evaluate(*options.split(), fails=True)
        assert errors.startswith("hf-xorner evaluate: ") and message in errors and "\n" not in errors


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory):
    """A folder with a file of 40 sentences, and the model that was trained on it with 4 of them held out."""
    folder = tmp_path_factory.mktemp("trained")
    names = [f"Bo{chr(97 + index // 8)}{chr(97 + index % 8)}" for index in range(40)]
    (folder / "all.conll").write_text("".join(f"we O\nsaw O\n{name} B-PER\n\n" for name in names))
    options = {"model_type": "bilstm-cnn", "max_steps": 1, "use_cpu": True, "disable_tqdm": True}
    train(folder / "all.conll", output_dir=folder / "held", **options)
    return folder


@pytest.fixture
def trained(folder, trained_once):
    """A copy of the model and of its data."""
    shutil.copytree(trained_once, folder, dirs_exist_ok=True)
    return folder / "held"


def test_sentences_that_training_held_out_are_no_training_data(trained, figures, caplog):
    facts = json.loads((trained / "facts.json").read_text())
    scores = figures("--model", trained, "--dataset", "all.conll")
    # All names differ, so those of the validation split are not in the training data.
    assert (scores["sentences"], facts["data"]["hold_out"]["sentences"]) == (4, 4)
    assert [scores["seen"][part]["support"] for part in ("seen", "unseen")] == [0, 4]
    assert any("validation is scored" in line for line in caplog.messages)
    assert not any("was trained on" in line for line in caplog.messages)
    assert figures("--model", trained, "--dataset", "all.conll", "--split", "train")["sentences"] == 36
    assert any("was trained on" in line for line in caplog.messages)


def test_a_model_trained_on_validation_has_no_held_out_sentences(trained, figures, evaluate, caplog):
    facts = json.loads((trained / "facts.json").read_text())
    facts["options"]["train_on_validation"] = True
    (trained / "facts.json").write_text(json.dumps(facts))
    figures("--model", trained, "--dataset", "all.conll")
    assert any("was trained on this split" in line for line in caplog.messages)
    assert not any("held out" in line for line in caplog.messages)
    refusal = evaluate("--model", trained, "--dataset", "all.conll", "--min_precision", 90, fails=True)
    assert "the model was not trained" in refusal


def test_another_corpus_is_not_divided(trained, folder, figures, caplog):
    (folder / "other.conll").write_text((folder / "all.conll").read_text().replace("saw O", "met O"))
    assert figures("--model", trained, "--dataset", "other.conll")["sentences"] == 40
    assert any("train is scored; sentences that the model was trained on may be" in line for line in caplog.messages)


def test_models_that_cannot_be_scored_give_one_line_errors(folder, corpus, model, evaluate):
    def refused(name, *options):
        message = evaluate("--model", name, "--dataset", "data", "--resamples", 0, *options, fails=True)
        assert "\n" not in message
        return message

    message = refused(model("other", labels=["O", "B-person", "I-person", "B-place", "I-place"]))
    assert "B-person" in message and "B-PER" in message
    assert refused("data").startswith("hf-xorner evaluate: data: ")
    assert "Expected one of cpu, cuda" in refused(model("m"), "--device", "nowhere")
    (folder / "m" / "model.safetensors").write_bytes(b"nothing")
    assert refused("m").startswith("hf-xorner evaluate: m: ")
