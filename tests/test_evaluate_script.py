"""`hf-xorner evaluate` from the command line."""

import json

import pytest
import torch
from conftest import REPOSITORY, SENTENCES, build_model
from helpers import fault, ok
from processes import run_python

SCRIPT = str(REPOSITORY / "scripts" / "evaluate.py")
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
        result = script("evaluate.py", *options)
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
        build_model("cross-bilstm-cnn", tokenizer, spread=spread, **options).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
        return name

    return save


def test_predictions_of_any_system_are_scored(folder):
    command = [
        *(SCRIPT, "--predictions", "p.tsv", "--compare", "gold.tsv", "--policy", "strict"),
        *("--json", "new/out.json", "--plots", "new/plots", "--save_predictions", "new/p.tsv", "--resamples", "50"),
    ]
    result = run_python(command)
    assert result.returncode == 0, result.stderr[-3000:]
    said = result.stdout
    assert said.startswith(
        "2 sentences, 5 words; tags: iob2; malformed spans: 0 gold, 0 predicted; policy: strict\n"
    ), said
    figures = json.loads((folder / "new" / "out.json").read_text())
    assert (figures["precision"], figures["recall"], figures["f1"], figures["accuracy"]) == (50, 50, 50, 80)
    assert figures["per_type"]["PER"] == {"precision": 50, "recall": 100, "f1": pytest.approx(200 / 3), "support": 1}
    assert figures["compare"]["f1"] == {"p": 1.0, "difference": -50.0, "trials": 2, "exact": True}
    assert set(figures["ci95"]) == {"precision", "recall", "f1"}
    assert {"per_length", "surface", "confusion", "chunk_tags", "macro"} <= set(figures)
    written = ["new/p.tsv", "new/out.json", "new/plots/confusion.png"]
    assert said.split("\n")[-4:-1] == [f"written: {path}" for path in written]
    assert (folder / "new" / "p.tsv").read_text() == f"{PREDICTIONS}\n"
    assert len(list((folder / "new" / "plots").iterdir())) == 2


def test_an_error_is_one_line_and_an_exit_status(folder):
    result = run_python([SCRIPT, "--predictions", "no.tsv"])
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "hf-xorner evaluate: [Errno 2] No such file or directory: 'no.tsv'\n"


def test_a_model_is_scored_on_a_corpus(folder, corpus, model, evaluate):
    said = evaluate(
        *("--model", model("m", decoder="crf"), "--dataset", "data", "--json", "out.json"),
        *("--save_predictions", "said.tsv", "--resamples", 0),
    )
    figures = json.loads((folder / "out.json").read_text())
    assert (figures["sentences"], figures["tokens"]) == (1, sum(map(len, SENTENCES)))
    entities = figures["vocabulary"]["entities"]
    assert set(entities) == {"IV", "OOTV"}
    assert entities["OOTV"]["support"] == 0
    assert figures["seen"]["unseen"]["support"] == 0
    assert figures["calibration"]["count"] > 0
    assert f"{figures['f1']:.2f}" in said
    evaluate("--predictions", "said.tsv", "--json", "again.json", "--resamples", 0)
    same = json.loads((folder / "again.json").read_text())
    assert {name: same[name] for name in ("f1", "accuracy", "confusion", "surface")} == {
        name: figures[name] for name in ("f1", "accuracy", "confusion", "surface")
    }


def test_seen_entities_are_left_out_for_the_training_split(corpus, model, figures):
    found = figures("--model", model("m"), "--dataset", "data", "--split", "train")
    assert not {"seen", "vocabulary"} & set(found)
    found = figures("--model", "m", "--dataset", "data", "--split", "train", "--train", "data")
    assert found["seen"]["seen"]["support"] == found["support"] > 0


def test_the_training_corpus_of_another_system_can_be_named(folder, corpus, figures):
    assert figures("--predictions", "p.tsv", "--train", "data")["seen"]["unseen"]["support"] == 2
    # The data set is what train is by default. The scheme speaks of the predictions: BMES has no I-.
    (corpus / "train.conll").write_text("Oslo\tB-PER\nBay\tI-PER\n")
    (folder / "bmes.tsv").write_text("Ann\tS-PER\tS-PER\nOslo\tB-LOC\tE-LOC\nBay\tE-LOC\tE-LOC\n")
    found = figures("--predictions", "bmes.tsv", "--dataset", "data", "--scheme", "bmes")
    assert (found["seen"]["seen"]["support"], found["seen"]["unseen"]["support"]) == (1, 1)
    assert found["vocabulary"]["words"]["IV"]["support"] == 2
    assert (found["scheme"], found["malformed"]) == ("bmes", {"gold": 0, "predicted": 2})


@pytest.mark.parametrize("options", [[], ["--scheme", "iob1"]])
@pytest.mark.parametrize("policy", ["strict", "conlleval"])
def test_iob1_is_recognised(folder, figures, policy, options):
    (folder / "iob1.tsv").write_text(IOB1)
    found = figures("--predictions", "iob1.tsv", "--policy", policy, *options)
    assert (found["scheme"], found["support"], found["f1"]) == ("iob1", 3, 100)
    (folder / "other.tsv").write_text(IOB1.replace("\tI-LOC\n", "\tO\n"))
    found = figures("--predictions", "iob1.tsv", "--policy", policy, "--compare", "other.tsv", *options)
    assert found["compare"]["f1"]["difference"] == 20


def test_a_given_scheme_is_used(folder, figures):
    (folder / "iob1.tsv").write_text(IOB1)
    found = figures("--predictions", "iob1.tsv", "--policy", "strict", "--scheme", "iob2")
    assert (found["scheme"], found["support"]) == ("iob2", 1)
    assert found["malformed"] == {"gold": 2, "predicted": 2}


def test_seeds_trials_and_resamples_are_passed_on(folder, evaluate):
    rows = "a\tB-X\t{}\nb\tB-X\t{}\n\n"
    kinds = [("B-X", "O"), ("O", "O"), ("B-X", "B-X"), ("B-X", "I-X"), ("B-Y", "B-X")]
    (folder / "one.tsv").write_text("".join(rows.format(*kinds[index % 5]) for index in range(40)))
    (folder / "other.tsv").write_text("".join(rows.format(*kinds[index % 3]) for index in range(40)))

    def run(resamples, seed):
        options = ("--trials", 99, "--resamples", resamples, "--seed", seed, "--json", "o.json")
        evaluate("--predictions", "one.tsv", "--compare", "other.tsv", *options)
        found = json.loads((folder / "o.json").read_text())
        assert found["compare"]["f1"]["trials"] == 99
        return found["ci95"], found["compare"]["f1"]["p"]

    found = run(50, 1)
    assert run(50, 1) == found
    assert all(one != other for one, other in zip(run(50, 2), found, strict=True))
    assert run(51, 1)[0] != found[0]


def test_parts_of_speech_and_odd_names_are_scored(folder, evaluate, figures):
    (folder / "pos.tsv").write_text("a\tDT\tDT\nb\tNN\tVB\n")
    assert figures("--predictions", "pos.tsv", "--plots", "plots")["accuracy"] == 50
    assert not (folder / "plots").exists()
    odd = 'a\tB-$x^2$ {0} %s\tB-$x^2$ {0} %s\n"\tB-a-b-\tB-"\n\u00a0\tB-NaN\tO\n'
    (folder / "odd.tsv").write_bytes(b"\xef\xbb\xbf" + odd.replace("\n", "\r\n").encode())
    found = figures("--predictions", "odd.tsv", "--plots", "plots")
    assert list(found["per_type"]) == ['"', "$x^2$ {0} %s", "NaN", "a-b-"]
    assert (found["support"], found["recall"]) == (3, pytest.approx(100 / 3))


def test_saved_predictions_can_be_compared_despite_sentences_without_words(folder, model, figures):
    rows = [{"tokens": ["Ann", "left"], "ner_tags": ["B-PER", "O"]}, {"tokens": [], "ner_tags": []}]
    (folder / "c.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    options = ("--model", model("m"), "--dataset", "c.jsonl", "--split", "train")
    figures(*options, "--save_predictions", "said.tsv")
    found = figures(*options, "--compare", "said.tsv")
    assert (found["sentences"], found["compare"]["f1"]["p"]) == (2, 1)


@pytest.mark.parametrize("option", ["--json", "--save_predictions", "--plots"])
def test_scores_are_printed_even_if_a_file_cannot_be_written(folder, script, option):
    (folder / "file").touch()
    path = "file" if option == "--plots" else "file/out"
    code, out, errors = script("evaluate.py", "--predictions", "p.tsv", option, path)
    assert code == 1 and "File exists: 'file'" in errors
    assert "all entities                 50.00       50.00       50.00           2" in out


PREDICTED = "--predictions p.tsv"
ON_XOR = "--model m --dataset xor"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "give either --model and --dataset, or --predictions"),
        ("--model m", "give either --model and --dataset, or --predictions"),
        (f"--model m {PREDICTED}", "give either --model and --dataset, or --predictions"),
        ("--predict p.tsv", "unknown option --predict; did you mean"),
        (f"{PREDICTED} --policy loose", "'loose' is unknown"),
        (f"{PREDICTED} --scheme iobes", "scheme='iobes'"),
        (f"{PREDICTED} --scheme bmes", "the tag 'I-PER' is not bmes"),
        (f"{PREDICTED} --resamples -1", "resamples=-1"),
        (f"{PREDICTED} --trials 0", "trials=0"),
        (f"{PREDICTED} --seed -1", "seed=-1"),
        (f"{PREDICTED} --batch_size 0", "batch_size=0"),
        (f"{PREDICTED} --compare no.tsv", "No such file or directory: 'no.tsv'"),
        (f"{PREDICTED} --compare other.tsv", "gold tags of sentence 0"),
        # Other inputs are checked before the model, which would take long, and does not exist.
        (f"{ON_XOR} --split dev", "xor has no split 'dev'"),
        (f"{ON_XOR} --compare no.tsv", "No such file or directory: 'no.tsv'"),
    ],
)
def test_errors_are_one_line(folder, evaluate, options, message):
    (folder / "other.tsv").write_text(PREDICTIONS.replace("B-LOC\tB-PER", "B-PER\tB-PER"))
    said = evaluate(*options.split(), fails=True)
    assert said.startswith("hf-xorner evaluate: ") and message in said and "\n" not in said


@pytest.mark.parametrize(("name", "split"), [("test.conll", "test"), ("dev.conll", "validation"), ("x.conll", "train")])
def test_the_only_split_of_a_corpus_is_scored(folder, corpus, model, figures, caplog, name, split):
    (folder / "one").mkdir()
    (corpus / "test.conll").rename(folder / "one" / name)
    found = figures("--model", model("named"), "--dataset", folder / "one")
    assert found["sentences"] == 1
    assert any(f"has no split test; {split} is scored" in line for line in caplog.messages) == (split != "test")


@pytest.fixture
def trained(folder, script):
    """The folder of a model that was trained on a file of 40 sentences, of which 4 were held out."""
    names = [f"Bo{chr(97 + place // 8)}{chr(97 + place % 8)}" for place in range(40)]
    (folder / "all.conll").write_text("".join(f"we O\nsaw O\n{name} B-PER\n\n" for name in names))
    options = "--model_type bilstm-cnn --max_steps 1 --use_cpu true --output_dir held"
    ok(script("train.py", "--dataset", "all.conll", *options.split()))
    return folder / "held"


def test_sentences_that_training_held_out_are_no_training_data(trained, figures, caplog):
    facts = json.loads((trained / "facts.json").read_text())
    found = figures("--model", trained, "--dataset", "all.conll")
    # All names differ, so those of the validation split are not in the training data.
    assert (found["sentences"], facts["data"]["hold_out"]["sentences"]) == (4, 4)
    assert [found["seen"][part]["support"] for part in ("seen", "unseen")] == [0, 4]
    assert any("all.conll has no split test; validation is scored" in line for line in caplog.messages)
    assert not any("was trained on" in line for line in caplog.messages)


def test_scores_on_training_data_are_said_to_be(trained, figures, caplog):
    found = figures("--model", trained, "--dataset", "all.conll", "--split", "train")
    assert found["sentences"] == 36
    assert any("was trained on what is scored" in line for line in caplog.messages)


def test_the_training_data_of_another_corpus_are_divided(trained, folder, figures):
    sentences = (folder / "all.conll").read_text().split("\n\n")
    (folder / "test.conll").write_text("\n\n".join(reversed(sentences)))
    found = figures("--model", trained, "--dataset", "test.conll", "--train", "all.conll")
    assert [found["seen"][part]["support"] for part in ("seen", "unseen")] == [36, 4]


def test_another_corpus_is_not_divided(trained, folder, figures, caplog):
    text = (folder / "all.conll").read_text()
    (folder / "other.conll").write_text(text.replace("saw O", "met O"))
    assert figures("--model", trained, "--dataset", "other.conll")["sentences"] == 40
    assert not any("trained on" in line or "held out" in line for line in caplog.messages)


def test_models_that_cannot_be_scored_give_one_line_errors(folder, corpus, model, evaluate, tokenizer):
    def refused(name, *options):
        said = evaluate("--model", name, "--dataset", "data", "--resamples", 0, *options, fails=True)
        assert "\n" not in said
        return said

    said = refused(model("other", labels=["O", "B-person", "I-person", "B-place", "I-place"]))
    assert "B-person" in said and "B-PER" in said
    broken = build_model("cross-bilstm-cnn", tokenizer)
    with torch.no_grad():
        for parameter in broken.parameters():
            parameter.fill_(torch.nan)
    broken.save_pretrained(folder / "nan")
    tokenizer.save_pretrained(folder / "nan")
    assert "probabilities are nan" in refused("nan")
    assert refused("data").startswith("hf-xorner evaluate: data: ")
    assert "Expected one of cpu, cuda" in refused(model("m"), "--device", "nowhere")
    (folder / "m" / "model.safetensors").write_bytes(b"nothing")
    assert refused("m").startswith("hf-xorner evaluate: m: ")
